"""The seconds of a step as two blobs: their numbers, and the histogram of each.

Numbers alone are what reports and statistics ask for, so they are kept apart. Both are blocks of some
seconds, whose columns are packed by ``proportional.py``. docs/run-file.md has the format.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tkperf.histogram import BUCKETS, IntArray, coarsen
from tkperf.measurement import NO_IO, IoStats, Sample
from tkperf.runfile.packed import put_indices, take_indices
from tkperf.runfile.proportional import Packing, Rows, Unpacking, build_trend
from tkperf.runfile.sample_rows import SampleRow, open_rows, select_rows
from tkperf.runfile.second_columns import (
    SecondColumns,
    SideColumns,
    Table,
    as_samples,
    as_seconds,
)
from tkperf.seconds import Seconds

BLOCK_SECONDS = 100
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
    columns = _decode_seconds(kept.seconds)
    count = columns.table.shape[1]
    packed = Unpacking(kept.histograms, _most_histogram_bytes(count))
    pieces = [list(_take_tables(packed, side)) for side in columns.sides]
    packed.end()
    return as_samples(columns, pieces, len(kept.histograms))


def read_seconds(kept: KeptSeconds) -> Seconds:
    """The same as columns, without looking at the histograms.

    Raises:
        ValueError: damaged.
    """
    if kept.rows or kept.details is not None:
        return as_seconds(open_rows(kept.rows, kept.details)[0])
    return Seconds() if kept.seconds is None else as_seconds(_decode_seconds(kept.seconds))


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


def _decode_seconds(blob: bytes) -> SecondColumns:
    most = _most_seconds(len(blob))
    packed = Unpacking(blob, most * _MOST_SECOND_BYTES)
    count = packed.one()
    if not 0 < count <= most:
        raise ValueError("its samples are more than its size can hold")
    ended_us = 0
    blocks: list[IntArray] = []
    for first in range(0, count, BLOCK_SECONDS):
        blocks.append(_take_block(packed, min(BLOCK_SECONDS, count - first), ended_us))
        ended_us = blocks[-1][:2, -1].sum()
    packed.end()
    return SecondColumns(blocks[0] if len(blocks) == 1 else np.hstack(blocks))


def _take_block(packed: Unpacking, rows: int, ended_us: int) -> IntArray:
    """Some seconds, as ``SecondColumns`` has them."""
    busy = [number for number in (0, 1) if packed.one()]
    block = packed.columns(2 + 6 * len(busy), rows)
    idle_us, duration_us, *of_each = block.group(2 + 3 * len(busy), _equal(rows))
    of_time = block.group(2 * len(busy), Rows(weights=duration_us))
    table = np.zeros((14, rows), dtype=np.int64)
    table[0], table[1] = ended_us + np.cumsum(idle_us + duration_us) - duration_us, duration_us
    for place, number in enumerate(busy):
        trailing, least, most = of_each[3 * place : 3 * place + 3]
        ios, sums_ns = of_time[2 * place : 2 * place + 2]
        moved = block.group(1, Rows(weights=ios))[0]
        own = table[2 + 6 * number : 8 + 6 * number]
        own[0], own[1], own[2], own[3], own[4], own[5] = (
            ios, moved, sums_ns, ios - trailing, least, most,
        )  # fmt: skip
    return table


def _take_tables(packed: Unpacking, side: SideColumns) -> Iterator[Table]:
    for first in range(0, side.ios.size, BLOCK_SECONDS):
        here = slice(first, first + BLOCK_SECONDS)
        ios, sums_ns = side.latency_ios[here], side.latency_sum_ns[here]
        filled = take_indices(packed)
        if not filled.size:
            yield filled, np.zeros((ios.size, 0), dtype=np.int64)
            continue
        block = packed.columns(filled.size, ios.size, trend=True)
        rows = Rows(weights=ios, trend=build_trend(ios, sums_ns))
        yield filled, block.group(filled.size, rows).T


def _equal(rows: int) -> Rows:
    """Of what is alike in every second."""
    return Rows(weights=np.ones(rows, dtype=np.int64))
