"""Who can have written a run file. A stranger's is shown, but nothing is done by what it says."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tkperf.model.errors import RefusedError, RunFileError

# Of files that SQLite keeps next to a database.
SQLITE_ENDINGS = ("-journal", "-wal", "-shm")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

FileState = tuple[int, int, int, int]
"""Device, inode, size in bytes, time of the last change in ns."""


@dataclass(frozen=True, slots=True)
class OwnContent:
    """All bytes of a run file, read by the descriptor that was checked; its state then."""

    content: bytes
    state: FileState


def state_of(status: os.stat_result) -> FileState:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def read_own(path: Path) -> OwnContent:
    """The content of a run file that only root and the effective user can have written.

    What a kill left half written has to be put right before: no journal is read here.

    Raises:
        RefusedError: another user can have written it.
        RunFileError: its run still goes on.
        OSError: it cannot be read.
    """
    real = path.resolve()
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        require_own(path, os.fstat(descriptor))
        try:
            # Unlocked when it is closed. A writer holds it exclusively.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFileError(f"{path} is being written: its run still goes on") from None
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read()
        return OwnContent(content, state_of(os.fstat(descriptor)))
    finally:
        os.close(descriptor)


def require_own(path: Path, status: os.stat_result) -> None:
    """Refuse to act on a run file, open with this status, that another user can have written.

    Raises:
        RefusedError: it, or what SQLite reads next to it, belongs to another user than root and the
            effective one, or others can write to it or to a folder above it.
    """
    real = path.resolve()
    reason = next(_reasons(real, status), None)
    if reason is not None:
        raise RefusedError(
            f"{path} is shown, but not resumed: {reason}; what it says may be a stranger's. "
            "Nothing was touched"
        )


def _reasons(real: Path, status: os.stat_result) -> Iterator[str]:
    yield from _of_file(real, status)
    for beside in (real.with_name(real.name + ending) for ending in SQLITE_ENDINGS):
        try:
            yield from _of_file(beside, beside.lstat())
        except FileNotFoundError:
            continue
    for folder in real.parents:
        mode = folder.stat().st_mode
        if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
            yield f"others can write to the folder {folder}: chmod go-w, or move the run file away"


def _of_file(path: Path, status: os.stat_result) -> Iterator[str]:
    if status.st_uid not in (0, os.geteuid()):
        yield (
            f"{path} belongs to uid {status.st_uid}: resume it as that user, or chown it if you "
            "know who wrote it"
        )
    # An access list for others shows in the group's bits, so that no group is an exception.
    if status.st_mode & _OTHERS_WRITE:
        yield f"others can write to {path}: chmod go-w if none of them has"


def has_journal(real: Path) -> bool:
    return os.path.lexists(_journal_of(real))


def others_can_lay(real: Path) -> bool:
    """Whether another user than root and the effective one can put files next to a run file."""
    folder = real.parent.stat()
    return folder.st_uid not in (0, os.geteuid()) or bool(folder.st_mode & _OTHERS_WRITE)


def _journal_of(real: Path) -> Path:
    return real.with_name(real.name + "-journal")


def may_roll_back(real: Path, status: os.stat_result) -> bool:
    """Whether the journal next to a run file is of those who can write to the file anyway.

    SQLite rolls a journal back into its file, whoever put it there. The owner of the folder may be
    anybody, as in the home of the user who calls sudo: another user's journal belongs to that user.
    """
    try:
        journal = _journal_of(real).lstat()
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
