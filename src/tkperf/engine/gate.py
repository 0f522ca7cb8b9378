"""The gate: holds a started fio just before its first I/O until tkperf lets it go.

Every job thread of the waiting fio runs ``exec_prerun``, a shell. It writes its process id to a file, so
that tkperf can see which threads wait and which have died. It opens LOCK, waits for a shared lock on it
(``flock -s 9``) and tests whether GO exists. Once the gate is open, no further program is started:
``test`` is the shell's own. Starting one took 3 ms with two threads and 15 ms with eight.
tkperf holds the lock exclusively. To open the gate it creates GO and drops the lock,
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
    """A gate, closed at first; ``open`` lets every waiter pass, now and later."""

    def __init__(self, folder: Path, name: str) -> None:
        """Create the gate's files and take its lock.

        Raises:
            OSError: the files cannot be made; no lock is held then.
        """
        self._lock_path = folder / f"{name}.lock"
        self._shut_path = folder / f"{name}.shut"
        self._go_path = folder / f"{name}.go"
        self._arrived_path = folder / f"{name}.arrived"
        self._shut_path.touch()
        self._lock = os.open(self._lock_path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def command(self) -> str:
        """Return the shell command that exits with 0 once the gate is open, and fails if its owner died."""
        lock, go, arrived = (shlex.quote(str(path)) for path in (self._lock_path, self._go_path, self._arrived_path))
        return f"echo $$ >> {arrived} && exec 9< {lock} && flock -s 9 && test -e {go}"

    @property
    def waiting(self) -> int:
        """Return the number of threads at the gate now."""
        return sum(_is_alive(pid) for pid in self._arrived())

    @property
    def lost(self) -> bool:
        """Return whether a waiter died, or the gate itself is gone from its folder."""
        return not all(map(_is_alive, self._arrived())) or not self._lock_path.exists()

    @property
    def came_s(self) -> float | None:
        """Return the time of the last arrival, by the wall clock; None if none came."""
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
        """Let all waiters pass.

        Raises:
            OSError: the gate is gone from its folder; all waiters fail then.
        """
        # Unlike a new file, a new name needs no room in a folder that has become full.
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
