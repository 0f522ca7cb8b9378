"""Who writes run files, by the kernel's word: a lock ends with its process, so no list can be stale.

The writer of a run file holds an exclusive flock on it. ``/proc/locks`` tells every user which
process holds one, ``/proc/PID/fdinfo`` its owner and root by which of its open files.
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
        pid: None where it cannot be seen from here: another container, another machine.
        user: whose process it is; None is not known.
        path: the file as that process has it open; None where nobody may look.
        program: what it runs, such as ``python3.11``; None where nobody may look.
        is_tkperf: it has the database open, too, in a Python; None where nobody may look.
    """

    pid: int | None
    user: str | None = None
    path: Path | None = None
    program: str | None = None
    is_tkperf: bool | None = None


def is_being_written(path: Path) -> bool:
    """Whether a writer holds the file's lock.

    Raises:
        OSError: it cannot be opened.
    """
    # Not blocking: a pipe of that name would be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def find_writer(path: Path, *, proc: Path = PROC) -> Writer | None:
    """Who writes a run file; None: nobody.

    Raises:
        OSError: it cannot be opened.
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
    """All run files on this machine that are being written, as far as they can be seen from here.

    Those of other users' processes have no path.
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
    """A file that a process has open. ``info``: what the kernel says of the descriptor."""

    path: Path
    key: tuple[int, int]
    info: str

    def is_same(self, status: os.stat_result) -> bool:
        return self.key == (status.st_dev, status.st_ino)

    def holds_lock(self, pid: int) -> bool:
        """Whether this process itself took an exclusive lock by this descriptor."""
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
    """Process and inode of each flock for writing (proc_locks(5))."""
    try:
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        # One that waits for another has an arrow: "1: -> FLOCK ...".
        if fields[1:4] == ["FLOCK", "ADVISORY", "WRITE"]:
            with suppress(ValueError, IndexError):
                yield int(fields[4]), int(fields[5].rpartition(":")[2])


def _open_files(process: Path) -> list[_Open] | None:
    """The run files and the like among a process's open files; None where nobody may look."""
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
    """``opened``: the descriptors of the one file."""
    program = None
    with suppress(OSError):
        program = (proc / str(pid) / "exe").readlink().name.removesuffix(_DELETED)
    # The lock and the database. Another program that merely locks the file has it once.
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
