"""The seconds of a step as two blobs: their numbers, and the histogram of each.

Numbers alone are what reports and statistics ask for, so they are kept apart. Both are blocks of some
seconds, whose columns are packed by ``proportional.py``. docs/run-file.md has the format.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from tkperf.histogram import BUCKETS, IntArray, coarsen
from tkperf.measurement import NO_IO, IoStats, Sample
from tkperf.runfile.packed import put_indices, take_indices
from tkperf.runfile.proportional import (
    Blocks,
    PackedBlock,
    Packing,
    Rows,
    Unpacking,
    build_trend,
)
from tkperf.runfile.sample_rows import SampleRow, open_rows, select_rows
from tkperf.runfile.second_columns import (
    SecondColumns,
    SideColumns,
    Table,
    as_samples,
    as_seconds,
)
from tkperf.runfile.values import BAD_ROW
from tkperf.seconds import Seconds, split

BLOCK_SECONDS = 100
# So many are taken apart together: blocks are small, and each call of numpy's takes its time.
_SECONDS_AT_ONCE = 1 << 15
# Of a step: a day and a half without a byte, or more where they take some.
_ALWAYS_SECONDS = 1 << 17
# Unpacked, of a second: a byte of each of its 14 columns, and its part of what a block has beside.
_MOST_SECOND_BYTES = 20
# Of a bucket in a block: its distance, its total, its low bits.
_MOST_BUCKET_BYTES = 20


_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSeconds:
    """What a file has of a step's seconds; rows and details only those of older versions."""

    seconds: bytes | None
    histograms: bytes | None
    rows: Sequence[SampleRow] = ()
    details: bytes | None = None


def find_of_step(db: sqlite3.Connection, sequence: int, *, histograms: bool) -> KeptSeconds:
    """What is kept of a step; without histograms where nobody asks for them."""
    columns = f"seconds, {'second_histograms' if histograms else 'NULL'}, sample_details"
    query = f"SELECT {columns} FROM step WHERE sequence = ?"  # noqa: S608 - own names only
    row = db.execute(query, (sequence,)).fetchone()
    return KeptSeconds(
        seconds=row[0],
        histograms=row[1],
        rows=select_rows(db, "sample", "step_sequence", sequence) if row[0] is None else (),
        details=row[2],
    )


def find_of_part(db: sqlite3.Connection, number: int) -> KeptSeconds:
    """The same of a part of the step under way."""
    query = "SELECT seconds, second_histograms, sample_details FROM under_way_part WHERE number = ?"
    row = db.execute(query, (number,)).fetchone()
    return KeptSeconds(
        seconds=row[0],
        histograms=row[1],
        rows=select_rows(db, "under_way_sample", "part", number) if row[0] is None else (),
        details=row[2],
    )


def read_samples(kept: KeptSeconds) -> tuple[Sample, ...]:
    """With their histograms.

    Raises:
        ValueError: damaged, or the pieces do not fit each other.
    """
    if kept.rows or kept.details is not None:
        columns, tables = open_rows(kept.rows, kept.details)
        return as_samples(columns, tables, len(kept.details or b""))
    if kept.seconds is None and kept.histograms is None:
        return ()
    if kept.seconds is None or kept.histograms is None:
        raise ValueError("samples lack their details")
    opened = _open(kept.seconds)
    (table,) = _build_tables([opened])
    columns = SecondColumns(table)
    packed = Unpacking(kept.histograms, _most_histogram_bytes(opened.seconds))
    pieces = [list(_take_tables(packed, side)) for side in columns.sides]
    packed.end()
    return as_samples(columns, pieces, len(kept.histograms))


def read_steps(db: sqlite3.Connection, sequences: Iterable[int]) -> Iterator[Seconds | Exception]:
    """The seconds of these steps, as ``read_seconds`` has them."""

    def find(sequence: int) -> KeptSeconds | Exception:
        try:
            return find_of_step(db, sequence, histograms=False)
        except BAD_ROW as error:
            return error

    return read_seconds(map(find, sequences))


def read_seconds(steps: Iterable[KeptSeconds | Exception]) -> Iterator[Seconds | Exception]:
    """The same of many steps as columns, in their order, without looking at the histograms.

    Args:
        steps: what is kept of each; the error of one that could not even be found is given back.

    Of a step that is damaged the error, one of ``BAD_ROW``, comes instead.
    """
    waiting: list[IntArray | _Opened | Exception] = []
    seconds = 0
    for kept in steps:
        try:
            waiting.append(kept if isinstance(kept, Exception) else _open_kept(kept))
        except BAD_ROW as error:
            waiting.append(_bare(error))
        seconds += _count(waiting[-1])
        if seconds >= _SECONDS_AT_ONCE:
            yield from _read_opened(waiting)
            waiting, seconds = [], 0
    yield from _read_opened(waiting)


def _count(step: IntArray | _Opened | Exception) -> int:
    if isinstance(step, Exception):
        return 0
    return step.seconds if isinstance(step, _Opened) else step.shape[1]


def _bare(error: Exception) -> Exception:
    """What went wrong alone: its traceback keeps all that was unpacked, and others are to follow."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _open_kept(kept: KeptSeconds) -> IntArray | _Opened:
    if kept.rows or kept.details is not None:
        return open_rows(kept.rows, kept.details)[0].table
    return SecondColumns.none().table if kept.seconds is None else _open(kept.seconds)


def _read_opened(steps: Sequence[IntArray | _Opened | Exception]) -> Iterator[Seconds | Exception]:
    built = iter(_build_tables([step for step in steps if isinstance(step, _Opened)]))
    tables = [
        next(built) if isinstance(step, _Opened) else step
        for step in steps
        if not isinstance(step, Exception)
    ]
    seconds = iter(_read_tables(tables))
    return (step if isinstance(step, Exception) else next(seconds) for step in steps)


def _read_tables(tables: Sequence[IntArray]) -> list[Seconds | Exception]:
    """All at once; one by one where one of them is not what seconds can be."""
    if not tables:
        return []
    try:
        together = as_seconds(SecondColumns(_join(tables)))
    except ValueError as error:
        if len(tables) == 1:
            return [error]
        return [seconds for table in tables for seconds in _read_tables([table])]
    return list(split(together, [table.shape[1] for table in tables]))


def encode_seconds(samples: Sequence[Sample]) -> bytes | None:
    """All but the histograms: times, I/Os, bytes, latency sums and extremes of each direction."""
    if not samples:
        return None
    packing = Packing()
    packing.number(len(samples))
    ended_us = 0
    for block in _blocks(samples):
        start_us = _column(round(sample.start_s * 1e6) for sample in block)
        # The rest of a step may be shorter than a microsecond.
        duration_us = _column(max(1, round(sample.duration_s * 1e6)) for sample in block)
        end_us = start_us + duration_us
        idle_us = start_us - np.concatenate(([ended_us], end_us[:-1]))
        ended_us = end_us[-1]
        sides = [_side_columns(side) for side in _sides(block)]
        packing.put(bytes(side is not None for side in sides))
        busy = [side for side in sides if side is not None]
        packing.columns(
            (
                np.vstack((idle_us, duration_us, *(side.of_each for side in busy))),
                _equal(len(block)),
            ),
            *((side.of_time, Rows(weights=duration_us)) for side in busy),
            *((side.of_ios, Rows(weights=side.of_time[0])) for side in busy),
        )
    return packing.blob()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """Columns of a direction by what they go with: trailing, least, most; I/Os, sums; bytes."""

    of_each: IntArray
    of_time: IntArray
    of_ios: IntArray


def _side_columns(side: Sequence[IoStats]) -> _Side | None:
    """None where nothing happened."""
    if all(stats == NO_IO for stats in side):
        return None
    ios = _column(stats.ios for stats in side)
    least, most = (
        _column(0 if value is None else value + 1 for value in values)
        for values in (
            [stats.latency_min_ns for stats in side],
            [stats.latency_max_ns for stats in side],
        )
    )
    return _Side(
        # fio's latency count trails its I/O count by little, so the difference is mostly 0.
        of_each=np.vstack((ios - _column(stats.latency_ios for stats in side), least, most)),
        of_time=np.vstack((ios, _column(stats.latency_sum_ns for stats in side))),
        of_ios=_column(stats.bytes for stats in side)[np.newaxis],
    )


def encode_second_histograms(samples: Sequence[Sample]) -> bytes | None:
    """The histogram of each, coarsened: all of the reads, then all of the writes."""
    if not samples:
        return None
    packing = Packing()
    for side in _sides(samples):
        for block in _blocks(side):
            histograms = [coarsen(stats.histogram) for stats in block]
            filled = np.unique(np.concatenate([histogram.indices for histogram in histograms]))
            packing.put(put_indices(filled))
            if not filled.size:
                continue
            counts = np.zeros((filled.size, len(block)), dtype=np.int64)
            for row, histogram in enumerate(histograms):
                counts[np.searchsorted(filled, histogram.indices), row] = histogram.counts
            ios = _column(stats.latency_ios for stats in block)
            sums_ns = _column(stats.latency_sum_ns for stats in block)
            packing.columns((counts, Rows(weights=ios, trend=build_trend(ios, sums_ns))))
    return packing.blob()


def _blocks(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[at : at + BLOCK_SECONDS] for at in range(0, len(items), BLOCK_SECONDS))


def _sides(samples: Sequence[Sample]) -> tuple[list[IoStats], list[IoStats]]:
    return [sample.read for sample in samples], [sample.write for sample in samples]


def _column(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _most_seconds(packed_bytes: int) -> int:
    return _ALWAYS_SECONDS + packed_bytes


def _most_histogram_bytes(seconds: int) -> int:
    """What the histograms of so many seconds can take, unpacked."""
    blocks = -(-seconds // BLOCK_SECONDS)
    return 2 * (BUCKETS * seconds + blocks * (3 + BUCKETS * _MOST_BUCKET_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Opened:
    """The seconds of a step, in blocks, and in which of the two directions each had I/O."""

    seconds: int
    blocks: Sequence[tuple[tuple[int, ...], PackedBlock]]


def _open(blob: bytes) -> _Opened:
    most = _most_seconds(len(blob))
    packed = Unpacking(blob, most * _MOST_SECOND_BYTES)
    count = packed.one()
    if not 0 < count <= most:
        raise ValueError("its samples are more than its size can hold")
    blocks = []
    for first in range(0, count, BLOCK_SECONDS):
        busy = tuple(number for number in (0, 1) if packed.one())
        rows = min(BLOCK_SECONDS, count - first)
        blocks.append((busy, packed.block(2 + 6 * len(busy), rows)))
    packed.end()
    return _Opened(seconds=count, blocks=blocks)


def _build_tables(steps: Sequence[_Opened]) -> list[IntArray]:
    """Of each step its seconds as ``SecondColumns`` has them; blocks of one shape are built together."""
    alike: dict[tuple[tuple[int, ...], int], list[PackedBlock]] = {}
    for step in steps:
        for busy, block in step.blocks:
            alike.setdefault((busy, block.rows), []).append(block)
    built = {shape: _build_alike(shape[0], blocks) for shape, blocks in alike.items()}
    return [
        _chain([next(built[busy, block.rows]) for busy, block in step.blocks]) for step in steps
    ]


def _build_alike(busy: Sequence[int], packed: Sequence[PackedBlock]) -> Iterator[IntArray]:
    """Some at a time, also of one step: to build them takes several times what they come to."""
    at_once = max(1, _SECONDS_AT_ONCE // packed[0].rows)
    for first in range(0, len(packed), at_once):
        yield from _build_blocks(busy, packed[first : first + at_once])


def _build_blocks(busy: Sequence[int], packed: Sequence[PackedBlock]) -> IntArray:
    """Tables of blocks of one shape, in each of which time begins with 0: blocks x 14 x rows."""
    blocks = Blocks(packed)
    rows = packed[0].rows
    equal = Rows(weights=np.ones((len(packed), rows), dtype=np.int64))
    idle_us, duration_us, *of_each = blocks.group(2 + 3 * len(busy), equal).swapaxes(0, 1)
    of_time = blocks.group(2 * len(busy), Rows(weights=duration_us)).swapaxes(0, 1)
    tables = np.zeros((len(packed), 14, rows), dtype=np.int64)
    tables[:, 0] = np.cumsum(idle_us + duration_us, axis=1) - duration_us
    tables[:, 1] = duration_us
    for place, number in enumerate(busy):
        trailing, least, most = of_each[3 * place : 3 * place + 3]
        ios, sums_ns = of_time[2 * place : 2 * place + 2]
        (moved,) = blocks.group(1, Rows(weights=ios)).swapaxes(0, 1)
        for column, values in enumerate((ios, moved, sums_ns, ios - trailing, least, most)):
            tables[:, 2 + 6 * number + column] = values
    return tables


def _chain(blocks: Sequence[IntArray]) -> IntArray:
    """The blocks of a step one after the other, each beginning when the one before has ended."""
    for before, after in pairwise(blocks):
        after[0] += before[:2, -1].sum()
    return _join(blocks)


def _join(tables: Sequence[IntArray]) -> IntArray:
    return tables[0] if len(tables) == 1 else np.hstack(tables)


def _take_tables(packed: Unpacking, side: SideColumns) -> Iterator[Table]:
    for first in range(0, side.ios.size, BLOCK_SECONDS):
        here = slice(first, first + BLOCK_SECONDS)
        ios, sums_ns = side.latency_ios[here], side.latency_sum_ns[here]
        filled = take_indices(packed)
        if not filled.size:
            yield filled, np.zeros((ios.size, 0), dtype=np.int64)
            continue
        blocks = Blocks([packed.block(filled.size, ios.size, trend=True)])
        rows = Rows(weights=ios[np.newaxis], trend=build_trend(ios, sums_ns)[np.newaxis])
        (counts,) = blocks.group(filled.size, rows)
        yield filled, counts.T


def _equal(rows: int) -> Rows:
    """Of what is alike in every second."""
    return Rows(weights=np.ones(rows, dtype=np.int64))
