"""The cause of a failure of SQLite.

SQLite itself says "unable to open database file" or "disk I/O error" for any error of the kernel.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tkperf.model.errors import is_full

# SQLite opens a database, its journal, and the folder, which it syncs.
_DESCRIPTORS = 3
_PROBE_BYTES = 1 << 16


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 if it is not known."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_busy(error: BaseException) -> bool:
    return primary_code(error) == sqlite3.SQLITE_BUSY


def may_pass(cause: BaseException) -> bool:
    """Return whether a failure to write may pass: no free space, a lock, or no known cause.

    Args:
        cause: as ``find_write_cause`` returns it.
    """
    return is_full(cause) or not isinstance(cause, OSError)


def find_write_cause(error: Exception, path: Path) -> Exception:
    """Return the kernel's reason why a database cannot be written; the same error if no reason is
    found now.

    The function repeats SQLite's steps with an unnamed file in the same folder. It does not open
    the database, because closing the database would drop the locks that this process has on it.
    """
    if not _hides_cause(error):
        return error
    try:
        _open_several(_DESCRIPTORS)
        with tempfile.TemporaryFile(dir=path.absolute().parent) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
        if path.exists() and not os.access(path, os.W_OK):
            return PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as cause:
        return cause
    return error


def find_read_cause(error: Exception, path: Path) -> Exception:
    """Return the kernel's reason why a database cannot be read; the same error if no reason is
    found now.
    """
    if not _hides_cause(error):
        return error
    try:
        _open_several(_DESCRIPTORS)
        path.stat()
    except OSError as cause:
        return cause
    return error


def _hides_cause(error: Exception) -> bool:
    code = primary_code(error)
    return isinstance(error, sqlite3.Error) and code in (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
    )


def _open_several(count: int) -> None:
    with ExitStack() as opened:
        for _ in range(count):
            opened.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
