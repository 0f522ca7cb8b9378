"""Writers of run files: the users who may have written a file, and the process that is writing it.

tkperf shows the file of another user, but does not act on the file's content. The writer of a run file holds an
exclusive flock on the file. The lock ends with the process, so tkperf needs no list of writers, which could be out of
date. Every user can read in ``/proc/locks`` which process holds such a lock. ``/proc/PID/fdinfo`` shows to which open
file the lock belongs. Only root and the owner of the process can read this folder.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import RefusedError, RunFileError
from tkperf.system.host import read_locks

# Suffixes of the files that SQLite creates in the folder of a database.
SQLITE_ENDINGS = ("-journal", "-wal", "-shm")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
FileStamp = tuple[int, int, int, int]
"""Device, inode, size in bytes, and the time in ns at which the content or the inode last changed. No program can set
this time.
"""

PROC = Path("/proc")
_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The process that writes a run file.

    Attributes:
        pid: the number of the process. None means that the process is not visible, because it is in another container
            or machine.
        user: the owner of the process. None means that the value is not known.
        path: the path with which the process has opened the file. None means that access is not allowed.
        program: the program of the process, such as ``python3.11``. None means that access is not allowed.
        is_tkperf: whether the process is a Python that also has the database open. None means that access is not
            allowed.
    """

    pid: int | None
    user: str | None = None
    path: Path | None = None
    program: str | None = None
    is_tkperf: bool | None = None


def is_being_written(path: Path) -> bool:
    """Return whether a writer holds the lock of the file.

    Raises:
        OSError: the file cannot be opened.
    """
    # The file is opened without blocking. Otherwise, if a pipe had this name, tkperf would wait for a writer of the
    # pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def find_writer(path: Path) -> Writer | None:
    """Return the writer of a run file. None means that no process writes the file.

    Raises:
        OSError: the file cannot be opened.
    """
    if not is_being_written(path):
        return None
    status = path.stat()
    for pid, inode in _exclusive_locks():
        if inode != status.st_ino:
            continue
        opened = _open_files(PROC / str(pid))
        if opened is None:
            return Writer(pid=pid, user=_user_of(pid))
        found = [one for one in opened if one.is_same(status)]
        if any(one.holds_lock(pid) for one in found):
            return _writer(pid, found)
    return Writer(pid=None)


def find_running() -> Iterator[Writer]:
    """Yield a writer for each run file that is being written on this machine, if this process can see the writer.

    For processes of other users, ``path`` is None.
    """
    for pid in dict.fromkeys(pid for pid, _ in _exclusive_locks()):
        opened = _open_files(PROC / str(pid))
        if opened is None:
            if _names_tkperf(pid):
                yield Writer(pid=pid, user=_user_of(pid))
            continue
        for one in opened:
            if one.path.suffix == RUN_FILE_SUFFIX and one.holds_lock(pid):
                yield _writer(pid, [other for other in opened if other.key == one.key])


@dataclass(frozen=True, slots=True)
class _Open:
    """A file that a process has opened. ``info`` is the kernel's text about the descriptor."""

    path: Path
    key: tuple[int, int]
    info: str

    def is_same(self, status: os.stat_result) -> bool:
        return self.key == (status.st_dev, status.st_ino)

    def holds_lock(self, pid: int) -> bool:
        """Return whether this process acquired an exclusive lock with this descriptor."""
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


def _exclusive_locks() -> Iterator[tuple[int, int]]:
    """Yield the process id and the inode of each exclusive flock."""
    for lock in read_locks(PROC):
        if (lock.kind, lock.access) == ("FLOCK", "WRITE") and lock.pid and not lock.waits:
            yield lock.pid, lock.file[1]


def _open_files(process: Path) -> list[_Open] | None:
    """Return those open files of a process that have a path. None means that access is not allowed."""
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


def _writer(pid: int, opened: list[_Open]) -> Writer:
    """Return the writer of a file. ``opened`` contains the descriptors of the process for this file."""
    program = None
    with suppress(OSError):
        program = (PROC / str(pid) / "exe").readlink().name.removesuffix(_DELETED)
    # tkperf opens the file twice, for the lock and for the database. A program that only locks the file opens the file
    # once.
    writable = sum(one.is_writable for one in opened)
    return Writer(
        pid=pid,
        user=_user_of(pid),
        path=opened[0].path,
        program=program,
        is_tkperf=program is not None and program.startswith("python") and writable > 1,
    )


def _user_of(pid: int) -> str | None:
    try:
        uid = (PROC / str(pid)).stat().st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _names_tkperf(pid: int) -> bool:
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(os.path.basename(word) == b"tkperf" for word in words[:3])  # noqa: PTH119 # bytes


def state_of(status: os.stat_result) -> FileStamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def read_own(path: Path) -> tuple[bytes, FileStamp]:
    """Return all bytes of a run file that only root and the effective user can have written, and the state of the file
    at that time.

    If a killed writer left the file incomplete, the caller must repair the file first, because this function does not
    read a journal.
    """
    real = path.resolve()
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        require_own(path, os.fstat(descriptor))
        try:
            # The lock is released when the file is closed. It is a shared lock, which cannot be acquired while a writer
            # holds its exclusive lock.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise still_written(path) from None
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read()
        return content, state_of(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def still_written(path: Path) -> RunFileError:
    """Return the error which states that the run in this file has not ended."""
    return RunFileError(
        f"{path} is being written, because its run has not ended. Wait until the run ends, or watch it with 'tkperf "
        f"attach {path}'"
    )


def require_own(path: Path, status: os.stat_result) -> None:
    """Refuse to act on an opened run file with this status if another user may have written the file.

    Raises:
        RefusedError: the file, or a file that SQLite reads together with it, belongs to a user other than root and the
            effective user, or other users can write to the file or to a folder above it.
    """
    if (reason := _find_reason(path, status)) is not None:
        raise RefusedError(
            f"{path} can be shown, but not resumed, because another user may have written the file: {reason}. Nothing "
            "was touched"
        )


def require_own_input(path: Path, status: os.stat_result) -> None:
    """Refuse to act on an opened input file if another user may have written it. The rule is the same as for a run
    file.

    Raises:
        RefusedError: another user may have written the file.
    """
    if (reason := _find_reason(path, status)) is not None:
        raise RefusedError(
            f"{path} is not used, because another user may have written the file: {reason}. Nothing was touched"
        )


def _find_reason(path: Path, status: os.stat_result) -> str | None:
    return next(_reasons(path.resolve(), status), None)


def _reasons(real: Path, status: os.stat_result) -> Iterator[str]:
    yield from _of_file(real, status)
    for side in (real.with_name(real.name + ending) for ending in SQLITE_ENDINGS):
        try:
            yield from _of_file(side, side.lstat())
        except FileNotFoundError:
            continue
    for folder in real.parents:
        mode = folder.stat().st_mode
        if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
            yield f"others can write to the folder {folder}. Run chmod go-w, or move the file away"


def _of_file(path: Path, status: os.stat_result) -> Iterator[str]:
    if status.st_uid not in (0, os.geteuid()):
        yield (
            f"{path} belongs to uid {status.st_uid}. Run tkperf as that user, or run chown if you know "
            "who wrote the file"
        )
    # If an access list allows other users to write, the kernel also sets the write bit of the group. A file that the
    # group may write is therefore refused as well.
    if status.st_mode & _OTHERS_WRITE:
        yield f"others can write to {path}. Run chmod go-w if none of them has written to the file"


def others_can_lay(real: Path) -> bool:
    """Return whether a user other than root and the effective user can create files in the folder of a run file."""
    folder = real.parent.stat()
    return folder.st_uid not in (0, os.geteuid()) or bool(folder.st_mode & _OTHERS_WRITE)


def delete_run_file(real: Path) -> None:
    """Delete a run file and its journal, if they exist. A journal without its file would prevent a new run."""
    for path in (journal_of(real), real):
        path.unlink(missing_ok=True)


def journal_of(real: Path) -> Path:
    """Return the path of the rollback journal of a run file."""
    return real.with_name(real.name + "-journal")


def may_roll_back(real: Path, status: os.stat_result) -> bool:
    """Return whether only users who can write to a run file can have written its journal.

    SQLite rolls a journal back into its file, regardless of who created the journal. The folder may belong to any user,
    for example if it is the home of the user who calls sudo. If another user creates a journal, the journal belongs to
    that user.
    """
    try:
        journal = journal_of(real).lstat()
    except FileNotFoundError:
        return False
    folder_mode = real.parent.stat().st_mode
    shared = folder_mode & _OTHERS_WRITE and not folder_mode & stat.S_ISVTX
    return (
        stat.S_ISREG(journal.st_mode)
        and journal.st_nlink == 1
        and journal.st_uid in (0, os.geteuid(), status.st_uid)
        and not journal.st_mode & ~status.st_mode & _OTHERS_WRITE
        and not shared
    )
