"""The gate: holds a started fio just before its first I/O until tkperf lets it go.

Every job thread of the waiting fio runs ``exec_prerun``, a shell that opens LOCK, waits for a shared
lock on it (``flock -s 9``) and tests whether GO is there, having written its process id to a file so
that tkperf can tell who waits and who has died. Once the gate is open no program is started any more:
``test`` is the shell's own. Starting one took 3 ms with two threads and 15 ms with eight.
tkperf holds the lock exclusively; to open the gate it brings GO into being and drops the lock,
which wakes all threads at once, late comers included. If tkperf dies, the kernel drops the lock,
GO is missing, and every thread fails instead of starting: the gate fails closed and leaves no
orphan.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from pathlib import Path


class Gate:
    """Closed when made; ``open`` lets every waiter pass, now and later."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises OSError where its files cannot be made; nothing is held then."""
        self._lock_path = folder / f"{name}.lock"
        self._shut_path = folder / f"{name}.shut"
        self._go_path = folder / f"{name}.go"
        self._arrived_path = folder / f"{name}.arrived"
        self._shut_path.touch()
        self._lock = os.open(self._lock_path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def command(self) -> str:
        """Shell command that returns 0 once the gate is open, non-zero if its owner died."""
        lock, go, arrived = (
            shlex.quote(str(path)) for path in (self._lock_path, self._go_path, self._arrived_path)
        )
        return f"echo $$ >> {arrived} && exec 9< {lock} && flock -s 9 && test -e {go}"

    @property
    def waiting(self) -> int:
        """How many wait at the gate now."""
        return sum(_is_alive(pid) for pid in self._arrived())

    @property
    def lost(self) -> bool:
        """Whether somebody who had come died, or the gate itself is gone from its folder."""
        return not all(map(_is_alive, self._arrived())) or not self._lock_path.exists()

    @property
    def came_s(self) -> float | None:
        """When the last of them came, by the wall clock; None if nobody did."""
        try:
            return self._arrived_path.stat().st_mtime
        except OSError:
            return None

    def _arrived(self) -> list[int]:
        try:
            return [int(pid) for pid in self._arrived_path.read_bytes().split()]
        except FileNotFoundError:
            return []

    def open(self) -> None:
        """Raises OSError if the gate is gone from its folder; all waiters fail then."""
        # Unlike a new file, a new name needs no room in a folder that is full by now.
        self._shut_path.rename(self._go_path)
        self.close()

    def close(self) -> None:
        """Drop the lock. Without ``open`` before, all waiters fail."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
