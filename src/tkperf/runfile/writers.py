"""Find the writers of run files by the kernel's locks: a lock ends with its process, so no list can be stale.

The writer of a run file holds an exclusive flock on it. ``/proc/locks`` shows every user which
process holds one. ``/proc/PID/fdinfo`` shows the process's owner and root which of its open files it is.
"""

from __future__ import annotations

import fcntl
import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tkperf.model.choices import RUN_FILE_SUFFIX

PROC = Path("/proc")
_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The process that writes a run file.

    Attributes:
        pid: None if the process is not visible from here: another container, another machine.
        user: owner of the process; None: not known.
        path: the file as that process has it open; None if access is not allowed.
        program: its program, such as ``python3.11``; None if access is not allowed.
        is_tkperf: it is a Python that also has the database open; None if access is not allowed.
    """

    pid: int | None
    user: str | None = None
    path: Path | None = None
    program: str | None = None
    is_tkperf: bool | None = None


def is_being_written(path: Path) -> bool:
    """Return whether a writer holds the file's lock.

    Raises:
        OSError: the file cannot be opened.
    """
    # Not blocking: opening a pipe of that name would wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def find_writer(path: Path, *, proc: Path = PROC) -> Writer | None:
    """Return the writer of a run file; None if there is none.

    Raises:
        OSError: the file cannot be opened.
    """
    if not is_being_written(path):
        return None
    status = path.stat()
    for pid, inode in _exclusive_locks(proc):
        if inode != status.st_ino:
            continue
        opened = _open_files(proc / str(pid))
        if opened is None:
            return Writer(pid=pid, user=_user_of(pid, proc))
        found = [one for one in opened if one.is_same(status)]
        if any(one.holds_lock(pid) for one in found):
            return _writer(pid, found, proc)
    return Writer(pid=None)


def find_running(*, proc: Path = PROC) -> Iterator[Writer]:
    """Yield a writer for each run file on this machine that is being written, as far as visible from here.

    Processes of other users have no path.
    """
    for pid in dict.fromkeys(pid for pid, _ in _exclusive_locks(proc)):
        opened = _open_files(proc / str(pid))
        if opened is None:
            if _names_tkperf(pid, proc):
                yield Writer(pid=pid, user=_user_of(pid, proc))
            continue
        for one in opened:
            if one.path.suffix == RUN_FILE_SUFFIX and one.holds_lock(pid):
                yield _writer(pid, [other for other in opened if other.key == one.key], proc)


@dataclass(frozen=True, slots=True)
class _Open:
    """A file that a process has open. ``info``: the kernel's text about the descriptor."""

    path: Path
    key: tuple[int, int]
    info: str

    def is_same(self, status: os.stat_result) -> bool:
        return self.key == (status.st_dev, status.st_ino)

    def holds_lock(self, pid: int) -> bool:
        """Return whether this process itself took an exclusive lock by this descriptor."""
        return any(
            fields[:1] == ["lock:"] and fields[2:6] == ["FLOCK", "ADVISORY", "WRITE", str(pid)]
            for fields in map(str.split, self.info.splitlines())
        )

    @property
    def is_writable(self) -> bool:
        for line in self.info.splitlines():
            name, _, value = line.partition(":")
            if name == "flags":
                return int(value, 8) & os.O_ACCMODE == os.O_RDWR
        return False


def _exclusive_locks(proc: Path) -> Iterator[tuple[int, int]]:
    """Yield process and inode of each flock for writing (proc_locks(5))."""
    try:
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        # A lock that waits for another has an arrow: "1: -> FLOCK ...".
        if fields[1:4] == ["FLOCK", "ADVISORY", "WRITE"]:
            with suppress(ValueError, IndexError):
                yield int(fields[4]), int(fields[5].rpartition(":")[2])


def _open_files(process: Path) -> list[_Open] | None:
    """Return a process's open files that have a path; None if access is not allowed."""
    opened = []
    try:
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                target = str(link.readlink()).removesuffix(_DELETED)
                if target.startswith("/"):
                    status = link.stat()
                    info = (process / "fdinfo" / link.name).read_text()
                    opened.append(_Open(Path(target), (status.st_dev, status.st_ino), info))
    except FileNotFoundError:
        return []
    except OSError:
        return None
    return opened


def _writer(pid: int, opened: list[_Open], proc: Path) -> Writer:
    """Return the writer of a file; ``opened``: the process's descriptors of that file."""
    program = None
    with suppress(OSError):
        program = (proc / str(pid) / "exe").readlink().name.removesuffix(_DELETED)
    # tkperf opens the lock and the database. Another program that only locks the file opens it once.
    writable = sum(one.is_writable for one in opened)
    return Writer(
        pid=pid,
        user=_user_of(pid, proc),
        path=opened[0].path,
        program=program,
        is_tkperf=program is not None and program.startswith("python") and writable > 1,
    )


def _user_of(pid: int, proc: Path) -> str | None:
    try:
        uid = (proc / str(pid)).stat().st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _names_tkperf(pid: int, proc: Path) -> bool:
    try:
        words = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(os.path.basename(word) == b"tkperf" for word in words[:3])  # noqa: PTH119 # bytes
