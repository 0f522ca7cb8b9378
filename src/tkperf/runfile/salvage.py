"""Rows of a table in spite of damage: a page of the file that cannot be read costs the rows on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from tkperf.errors import reason_of
from tkperf.record import LeftOut
from tkperf.runfile.values import BAD_ROW

# What is in the way, the file or its disk, and not merely a lock.
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)
_LAST_ROW = 2**63 - 1
_LONGEST_REASON = 300

T = TypeVar("T")
Columns = dict[str, Any]

LostRows = tuple[int, int | None, sqlite3.DatabaseError]
"""First and last number of rows that were lost, None: all to the end; and why."""
Lost = Callable[[int, int | None, sqlite3.DatabaseError], None]


def is_damage(error: BaseException) -> bool:
    """Whether a part of the database cannot be read, and others may."""
    return (
        isinstance(error, sqlite3.DatabaseError)
        and getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE
    )


def read_rows(
    db: sqlite3.Connection, table: str, columns: str, *, after: int = 0, lost: Lost
) -> Iterator[Columns]:
    """The rows with a number above ``after``, by column, in the order of their numbers.

    Around a page that cannot be read it goes on with the first row behind it.
    """
    query = f"SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"  # noqa: S608 - own names only
    last = after
    while True:
        try:
            cursor = db.execute(query, (last,))
            # dict(row) looks for each name among all of them.
            names = [column[0] for column in cursor.description][1:]
            for number, *values in cursor:
                last = max(last, number)
                yield dict(zip(names, values, strict=True))
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            beyond = _find_beyond(db, table, last)
            lost(last + 1, beyond, error)
            if beyond is None:
                return
            last = beyond
        else:
            return


def _find_beyond(db: sqlite3.Connection, table: str, last: int) -> int | None:
    """The number after which rows can be read again; None: after none."""

    def next_row(after: int) -> int | None:
        """Raises DatabaseError where there is no way to it."""
        query = f"SELECT rowid FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT 1"  # noqa: S608
        row = db.execute(query, (after,)).fetchone()
        return None if row is None else row[0]

    def is_readable(after: int) -> bool:
        try:
            next_row(after)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return False
        return True

    if is_readable(last):  # its page is there, so that it is the one row that goes on elsewhere
        return next_row(last)
    step = 1
    while not is_readable(last + step):
        step *= 2
        if last + step >= _LAST_ROW:
            return None
    unreadable, readable = last + step // 2, last + step
    while readable - unreadable > 1:
        middle = (unreadable + readable) // 2
        if is_readable(middle):
            readable = middle
        else:
            unreadable = middle
    return readable


class Salvage:
    """Rows of an open database as records; what no reader can take is left out, by its name.

    One bad row, as of a damaged disk, must not hide days of good ones.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.left_out: list[LeftOut] = []

    def leave_out(self, what: str, reason: object, **place: Any) -> None:
        """``place``: test, section and number, where they are known."""
        words = reason_of(reason) if isinstance(reason, BaseException) else str(reason)
        self.left_out.append(LeftOut(what=what, reason=words[:_LONGEST_REASON], **place))

    def all_rows(self, table: str) -> list[Columns]:
        """All of a table that can be read."""
        return list(self.rows(table))

    def rows(self, table: str, columns: str = "*", *, after: int = 0) -> Iterator[Columns]:
        """The same one after the other, as ``read_rows`` has them."""

        return read_rows(
            self.db, table, columns, after=after, lost=partial(self.leave_out_rows, table)
        )

    def leave_out_rows(
        self, table: str, first: int, last: int | None, error: sqlite3.DatabaseError
    ) -> None:
        """Rows that were lost with their page."""
        some = f"row {first}" if first == last else f"rows {first} to {last}"
        which = f"rows from {first} on" if last is None else some
        self.leave_out(f"{which} of table {table}", error)

    def parse(
        self,
        rows: Iterable[Columns],
        parse: Callable[[Columns], T],
        name: Callable[[Columns], str],
        **place: Any,
    ) -> Iterator[T]:
        """Rows as records; one that cannot be is left out by its name."""
        for columns in rows:
            try:
                yield parse(columns)
            except BAD_ROW as error:
                self.leave_out(name(columns), error, **place)
