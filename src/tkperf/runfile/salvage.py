"""A reader for the rows of a table. The reader works even if the file is damaged. If a page of the file is unreadable,
only the rows on this page are lost.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from tkperf.model.errors import is_full, reason_of
from tkperf.model.record import LeftOut
from tkperf.runfile.limits import MOST_LEFT_OUT, ExcessError, Meter, require_few, require_rows
from tkperf.runfile.row_records import BAD_ROW, Columns

# SQLite needs descriptors for the database, for its journal, and for the folder, to which it applies fsync.
_DESCRIPTORS = 3
_PROBE_BYTES = 1 << 16


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error. 0 means that the error has no such code."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_busy(error: BaseException) -> bool:
    return primary_code(error) == sqlite3.SQLITE_BUSY


def may_pass(cause: BaseException) -> bool:
    """Return whether the cause of a failed write may disappear without an action by the user. Such causes are: no free
    space, a lock, or an unknown cause.

    Args:
        cause: the result of ``find_write_cause``.
    """
    return is_full(cause) or not isinstance(cause, OSError)


def find_write_cause(error: Exception, path: Path) -> Exception:
    """Return the kernel's reason why a database cannot be written. If no reason is found now, return ``error``.

    The function repeats the operations of SQLite with an unnamed file in the same folder. The function does not open
    the database, because this process would lose its locks on the database when it closes the database again.
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
    """Return the kernel's reason why a database cannot be read. If no reason is found now, return
    ``error``.
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


# If SQLite returns one of these results, the cause is the file or its disk, and not only a lock.
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)
_LAST_ROW = 2**63 - 1
_LONGEST_REASON = 300

T = TypeVar("T")

LostRows = tuple[int, int | None, sqlite3.DatabaseError]
"""The row number of the first lost row, the row number of the last lost row, and the error. If the second number
is None, all rows from the first lost row to the end of the table are lost.
"""
Lost = Callable[[int, int | None, sqlite3.DatabaseError], None]


def require_damage(error: BaseException) -> None:
    """Raise the error again unless only a part of the database is unreadable. A lock, for example, makes every row
    unreadable.
    """
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
        raise error


def read_rows(
    db: sqlite3.Connection, table: str, columns: str, meter: Meter, *, after: int = 0, lost: Lost
) -> Iterator[Columns]:
    """Yield the rows with a row number above ``after``, in the order of their row numbers.

    After an unreadable page, reading continues with the first row after this page.
    """
    try:
        for found, row in enumerate(_read_readable(db, table, columns, after, lost), start=1):
            require_rows(db, table, found, meter)
            meter.count_row(table, row)
            yield row
    except sqlite3.DataError as error:
        raise ExcessError(f"table {table} contains a value that is too long ({error})") from error


def _read_readable(db: sqlite3.Connection, table: str, columns: str, after: int, lost: Lost) -> Iterator[Columns]:
    first: int | None = after + 1
    while first is not None:
        begun = first
        try:
            for number, row in _select(db, table, columns, f">= {first}"):
                begun = max(begun, number + 1)
                yield row
        except sqlite3.DatabaseError as error:
            require_damage(error)
            first = _find_readable(db, table, begun)
            if first != begun:
                lost(begun, None if first is None else first - 1, error)
                continue
        else:
            return
        # sqlite3 reads one row ahead, so an error may concern the next row while the current row is readable.
        first = None
        for number, _ in list(_select(db, table, "1", f">= {begun} LIMIT 1")):
            first = number + 1
            try:
                yield from (row for _, row in _select(db, table, columns, f"= {number}"))
            except sqlite3.DatabaseError as error:
                require_damage(error)
                lost(number, number, error)


def _select(db: sqlite3.Connection, table: str, columns: str, numbers: str) -> Iterator[tuple[int, Columns]]:
    """Yield the rows with these row numbers, each together with its row number."""
    # The condition is ">=". With ">", SQLite would first search for the row with the number itself, which may be on the
    # unreadable page.
    cursor = db.cursor()
    cursor.row_factory = None  # return tuples, which are unpacked faster than sqlite3.Row
    cursor.execute(f"SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE rowid {numbers}")  # noqa: S608 - own names only
    names = [column[0] for column in cursor.description][1:]
    for number, *values in cursor:
        yield number, dict(zip(names, values, strict=True))


def _find_readable(db: sqlite3.Connection, table: str, first: int) -> int | None:
    """Return the lowest row number, not below ``first``, at which SQLite can start a search and read a row. None means
    that no such number exists.
    """

    def is_readable(number: int) -> bool:
        try:
            list(_select(db, table, "1", f">= {number} LIMIT 1"))
        except sqlite3.DatabaseError as error:
            require_damage(error)
            return False
        return True

    if is_readable(first):
        return first
    step = 1
    while not is_readable(first + step):
        step *= 2
        if first + step >= _LAST_ROW:
            return None
    unreadable, readable = first + step // 2, first + step
    while readable - unreadable > 1:
        middle = (unreadable + readable) // 2
        if is_readable(middle):
            readable = middle
        else:
            unreadable = middle
    return readable


class Salvage:
    """The rows of an open database as records. Rows that no reader can accept are omitted and reported.

    If a disk error has damaged one row, all other rows of a run of several days must stay readable.
    """

    def __init__(self, db: sqlite3.Connection, meter: Meter) -> None:
        self.db = db
        self.meter = meter
        self.left_out: list[LeftOut] = []

    def leave_out(self, what: str, reason: object, **place: Any) -> None:
        """Omit a part and report the reason. ``place`` contains the test, the section and the number if they
        are known.
        """
        require_few(len(self.left_out), self.meter.most(MOST_LEFT_OUT), "unreadable values")
        words = reason_of(reason) if isinstance(reason, BaseException) else str(reason)
        self.left_out.append(LeftOut(what=what, reason=words[:_LONGEST_REASON], **place))

    def rows(self, table: str, *, after: int = 0) -> Iterator[Columns]:
        """Yield the readable rows of a table. Lost rows are omitted and reported."""

        def lost(*rows: Any) -> None:
            self.leave_out_rows(table, *rows)

        return read_rows(self.db, table, "*", self.meter, after=after, lost=lost)

    def records(self, table: str, parse: Callable[[Columns], T]) -> Iterator[T]:
        """Yield the readable rows of a table as records. Unreadable rows are omitted and reported with their row
        numbers.
        """
        return self.parse(self.rows(table), parse, lambda row: f"{table} {row['id']}")

    def leave_out_rows(self, table: str, first: int, last: int | None, error: sqlite3.DatabaseError) -> None:
        """Omit and report rows that were lost because their page is unreadable."""
        some = f"row {first}" if first == last else f"rows {first} to {last}"
        which = f"rows from {first} on" if last is None else some
        self.leave_out(f"{which} of table {table}", error)

    def parse(
        self, rows: Iterable[Columns], parse: Callable[[Columns], T], name: Callable[[Columns], str], **place: Any
    ) -> Iterator[T]:
        """Yield rows as records. An unreadable row is omitted and reported."""
        for columns in rows:
            try:
                yield parse(columns)
            except BAD_ROW as error:
                self.leave_out(name(columns), error, **place)
