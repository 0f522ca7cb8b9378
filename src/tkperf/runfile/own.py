"""Decide who can have written a run file. tkperf shows a stranger's file, but does not act on its content."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tkperf.model.errors import RefusedError, RunFileError

# Endings of files that SQLite keeps next to a database.
SQLITE_ENDINGS = ("-journal", "-wal", "-shm")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

FileStamp = tuple[int, int, int, int]
"""Device, inode, size in bytes, time of the last change in ns."""


@dataclass(frozen=True, slots=True)
class OwnContent:
    """All bytes of a run file, read by the checked descriptor, with the state of the file then."""

    content: bytes
    state: FileStamp


def state_of(status: os.stat_result) -> FileStamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def read_own(path: Path) -> OwnContent:
    """Return the content of a run file that only root and the effective user can have written.

    A file half written because of a kill has to be repaired before: this function reads no journal.

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
            # Closing it releases the lock. A writer holds the lock exclusively.
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
        RefusedError: the file, or a file that SQLite reads next to it, belongs to another user than root and the
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
    for side in (real.with_name(real.name + ending) for ending in SQLITE_ENDINGS):
        try:
            yield from _of_file(side, side.lstat())
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
    # An access list for others shows in the group's bits, so no group is an exception.
    if status.st_mode & _OTHERS_WRITE:
        yield f"others can write to {path}: chmod go-w if none of them has"


def others_can_lay(real: Path) -> bool:
    """Return whether another user than root and the effective one can put files next to a run file."""
    folder = real.parent.stat()
    return folder.st_uid not in (0, os.geteuid()) or bool(folder.st_mode & _OTHERS_WRITE)


def journal_of(real: Path) -> Path:
    """Return the place of the rollback journal of a run file."""
    return real.with_name(real.name + "-journal")


def may_roll_back(real: Path, status: os.stat_result) -> bool:
    """Return whether only users who can write to a run file can have written the journal next to it.

    SQLite rolls a journal back into its file, whoever put it there. The owner of the folder may be
    any user, as in the home of the user who calls sudo: another user's journal belongs to that user.
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
