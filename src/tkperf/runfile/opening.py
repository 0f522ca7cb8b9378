"""Open a run file to write: a new one, or the file of a run that goes on. Its writer holds the lock while it lives."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from tkperf.model.errors import RunFileError, reason_of
from tkperf.runfile import backlog
from tkperf.runfile.own import require_own
from tkperf.runfile.schema import create_tables, require_schema

# A row with histograms fills its last page only in part, so small pages waste less.
PAGE_BYTES = 1024
# tkperf status and attach try the lock to see whether there is a writer (writers.py).
LOOKERS_WAIT_S = 0.3

LockedDatabase = tuple[int, sqlite3.Connection]
"""The locked descriptor and the database."""


def create_run_file(path: Path) -> LockedDatabase:
    """Create a new, empty run file.

    Raises:
        RunFileError: it exists (nothing is overwritten) or cannot be created.
    """
    try:
        lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        raise RunFileError(describe_existing(path)) from None
    except OSError as error:
        raise RunFileError(
            f"cannot create {path}: {reason_of(error)}; choose a folder you may write to with "
            "--output"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock, connect_to_write(path, create_tables)
    except BaseException as error:
        os.close(lock)
        # The file is tkperf's own, and would prevent the next attempt.
        path.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error | OSError):
            raise RunFileError(f"cannot create {path}: {reason_of(error)}") from error
        raise


def reopen_run_file(path: Path) -> LockedDatabase:
    """Open a run file without a writer, to continue it. That changes nothing in it.

    Raises:
        RefusedError: another user can have written it.
        RunFileError: it cannot be written to, its run still goes on, or its schema is another.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RunFileError(
            f"{path} cannot be written to: {reason_of(error)}; a run goes on in its own file"
        ) from error
    try:
        # A journal may have been put next to it since it was read.
        require_own(path, os.fstat(lock))
        _lock(lock)
        return lock, connect_to_write(path, lambda db: require_schema(db, path))
    except BaseException as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise RunFileError(f"{path} is being written: its run still goes on") from None
        if isinstance(error, sqlite3.Error | OSError):
            raise RunFileError(f"cannot write {path}: {reason_of(error)}") from error
        raise


def connect_to_write(
    path: Path, prepare: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection:
    """Open the database in a file, and have it prepared.

    The writer begins and ends transactions (isolation_level None). A rollback journal, so that a
    finished run is one file. EXTRA syncs the folder, too, after each commit: with FULL a power cut just after
    it could bring the journal back and so lose the step.
    """
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=backlog.READER_WAIT_S,
    )
    try:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("PRAGMA foreign_keys = ON")
        prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _lock(descriptor: int) -> None:
    """Take the lock; a process that only looks holds it for a moment.

    Raises:
        BlockingIOError: a writer holds it.
    """
    until_s = time.monotonic() + LOOKERS_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.02)
        else:
            return


def require_resumable(path: Path) -> None:
    """Find out before anything else whether a run can go on in its file.

    Raises:
        RunFileError: see ``reopen_run_file``.
    """
    lock, db = reopen_run_file(path)
    db.close()
    os.close(lock)


def describe_existing(path: Path) -> str:
    return (
        f"{path} exists already and is not overwritten: choose another NAME or another --output "
        "folder"
    )
