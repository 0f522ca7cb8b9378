"""The gate, which stops a started fio process just before its first I/O until tkperf releases it.

With the option ``exec_prerun``, every job thread of the waiting fio runs a shell. The shell writes its process id to a
file, so that tkperf can see which threads wait and which have died. The shell then opens LOCK, waits for a shared lock
on this file (``flock -s 9``) and tests whether GO exists. After the gate is opened, no other program is started,
because ``test`` is a command of the shell. In an earlier version of the gate, starting a program took 3 ms with two
threads and 15 ms with eight. tkperf holds the lock exclusively. To open the gate, tkperf creates GO and releases the
lock. All threads then continue immediately, and threads that arrive later do not wait. If tkperf dies, the kernel
releases the lock, but GO does not exist. Every thread then fails instead of starting, so no fio process continues
without tkperf.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from pathlib import Path


class Gate:
    """A gate, which is closed at first. After ``open``, every thread may pass, including threads that arrive later."""

    def __init__(self, folder: Path, name: str) -> None:
        """Create the files of the gate and acquire its lock.

        Raises:
            OSError: the files cannot be created. The lock is not held in this case.
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
        """Return the shell command that exits with 0 after the gate was opened. The command fails if tkperf died before
        the gate was opened.
        """
        lock, go, arrived = (shlex.quote(str(path)) for path in (self._lock_path, self._go_path, self._arrived_path))
        return f"echo $$ >> {arrived} && exec 9< {lock} && flock -s 9 && test -e {go}"

    @property
    def waiting(self) -> int:
        """Return the number of threads that currently wait at the gate."""
        return sum(_is_alive(pid) for pid in self._arrived())

    @property
    def lost(self) -> bool:
        """Return whether a waiting thread died, or the gate was removed from its folder."""
        return not all(map(_is_alive, self._arrived())) or not self._lock_path.exists()

    @property
    def came_s(self) -> float | None:
        """Return the time at which the last thread arrived, on the wall clock. None means that no thread has
        arrived.
        """
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
        """Let all waiting threads pass.

        Raises:
            OSError: the gate was removed from its folder. All waiting threads then fail.
        """
        # tkperf can rename a file even if the file system has become full. In this case, tkperf might not be able to
        # create a file.
        self._shut_path.rename(self._go_path)
        self.close()

    def close(self) -> None:
        """Release the lock. If the gate was not opened before, all waiting threads fail."""
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
