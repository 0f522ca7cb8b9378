"""The gate: holds a started fio just before its first I/O until tkperf lets it go.

Every job thread of the waiting fio runs ``exec_prerun`` = ``flock -s LOCK test -e GO``, having
added a byte to a file so that tkperf can count who waits. tkperf holds the lock exclusively; to open the gate it creates GO and drops the lock, which wakes all
threads at once, late comers included. If tkperf dies, the kernel drops the lock, GO is missing,
and every thread fails instead of starting: the gate fails closed and leaves no orphan.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from pathlib import Path


class Gate:
    """Closed when made; ``open`` lets every waiter pass, now and later."""

    def __init__(self, folder: Path, name: str) -> None:
        self._lock_path = folder / f"{name}.lock"
        self._go_path = folder / f"{name}.go"
        self._arrived_path = folder / f"{name}.arrived"
        self._lock = os.open(self._lock_path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    @property
    def command(self) -> str:
        """Shell command that returns 0 once the gate is open, non-zero if its owner died."""
        lock, go, arrived = (
            shlex.quote(str(path)) for path in (self._lock_path, self._go_path, self._arrived_path)
        )
        return f"printf . >> {arrived} && flock -s {lock} test -e {go}"

    @property
    def waiting(self) -> int:
        """How many have come to the gate so far."""
        try:
            return self._arrived_path.stat().st_size
        except FileNotFoundError:
            return 0

    def open(self) -> None:
        self._go_path.touch()
        self.close()

    def close(self) -> None:
        """Drop the lock. Without ``open`` before, all waiters fail."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
