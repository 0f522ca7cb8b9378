"""Seconds as files of versions before 11 have them: a row of table sample each, and details beside.

Read only. The format is in docs/run-file.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from tkperf.histogram import IntArray
from tkperf.runfile.packed import DO_NOT_FIT, Numbers, most_bytes, take_indices, unzigzag
from tkperf.runfile.second_columns import SecondColumns, Table

SampleRow = tuple[int, int, int | None, int | None, int | None, int | None, int | None, int | None]
_COLUMNS = (
    "start_us, duration_us, read_ios, read_bytes, read_latency_sum_ns, "
    "write_ios, write_bytes, write_latency_sum_ns"
)


def select_rows(db: sqlite3.Connection, table: str, of: str, key: int) -> list[SampleRow]:
    """The rows of a step, or of a part of one, in their order; of a newer file there are none."""
    query = f"SELECT {_COLUMNS} FROM {table} WHERE {of} = ? ORDER BY number"  # noqa: S608 - own names only
    return [tuple(row) for row in db.execute(query, (key,))]


def open_rows(
    rows: Sequence[SampleRow], details: bytes | None
) -> tuple[SecondColumns, list[Iterable[Table]]]:
    """The seconds of a step, from its rows in order and its details.

    Raises:
        ValueError: the details are damaged or do not fit the rows.
    """
    if not rows or details is None:
        raise ValueError(DO_NOT_FIT if details is not None else "samples lack their details")
    table = _as_table(rows)
    numbers = Numbers(details, 2 * most_bytes(len(rows), 3))
    columns = [*table[:, :2].T]
    tables: list[Iterable[Table]] = []
    for first in (2, 5):
        ios, bytes_, sums_ns = table[:, first : first + 3].T
        filled = take_indices(numbers)
        tables.append(zip(repeat(filled), numbers.table(len(rows), filled.size), strict=False))
        trailing = unzigzag(numbers.many(len(rows)))
        extremes = (numbers.many(len(rows)), numbers.many(len(rows)))
        columns += [ios, bytes_, sums_ns, ios - trailing, *extremes]
    numbers.end()
    return SecondColumns(np.vstack(columns)), tables


def _as_table(rows: Sequence[SampleRow]) -> IntArray:
    """Rows as numbers; NULL, as a direction without I/O has, becomes 0."""
    if any(type(value) is not int and value is not None for row in rows for value in row):
        raise ValueError("a sample has an impossible time or count")  # numpy reads 'NaN', too
    return np.array([[value or 0 for value in row] for row in rows], dtype=np.int64)
