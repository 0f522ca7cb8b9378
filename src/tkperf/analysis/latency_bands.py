"""Counts of a stream's I/Os by time and response time, for a heat map.

Columns are groups of neighbouring seconds or slices, rows are bands of response time. Each I/O counts in the column
that contains its second or slice, and in the band that contains its bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from tkperf.model.histogram import BUCKETS, Histogram, IntArray, bands_of_buckets
from tkperf.model.measurement import IoStats
from tkperf.model.quantity import Direction

SHORTEST_S = 20.0
FEWEST_COLUMNS = 8
"""A shorter load, or a load with fewer columns, has no heat map, because the map would not show a course over time."""
# Possible numbers of seconds or slices in a column.
_SIZES = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
# Possible numbers of bands in a decade. The first number that results in few enough bands is used. With twelve, a band
# is 21 % wide.
_BANDS_A_DECADE = (12, 10, 8, 6, 5, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMapSize:
    """The greatest numbers of columns and bands of a heat map. Gaps in the stream may add columns."""

    columns: int
    bands: int


ON_PAGE = HeatMapSize(columns=120, bands=32)
IN_TERMINAL = HeatMapSize(columns=60, bands=14)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyBands:
    """Number of I/Os in each column of time and band of response time.

    No column covers a time that was not measured, if that time is longer than a column.

    Attributes:
        starts_s, ends_s: start and end of each column, from the first I/O of the stream.
        column_s: length of most columns.
        edges_us: lower edge of each band, then the upper edge of the last.
        counts: for each column the I/Os of each band; all 0 if no I/O ended in a column.
    """

    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    column_s: float
    edges_us: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A second or a slice at its place in the stream."""

    start_s: float
    duration_s: float
    read: IoStats
    write: IoStats

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s

    def histogram(self, direction: Direction) -> Histogram:
        """Return the response times of one direction or of all I/Os."""
        if direction is Direction.READ:
            return self.read.histogram
        if direction is Direction.WRITE:
            return self.write.histogram
        return self.read.histogram + self.write.histogram


def count_bands(pieces: Sequence[Piece], direction: Direction, size: HeatMapSize) -> LatencyBands | None:
    """Return the counts of a stream.

    Return None if the stream is too short, or if it has no histograms, as in imported results.
    """
    ordered = sorted(pieces, key=lambda piece: piece.start_s)
    if not ordered or ordered[-1].end_s < SHORTEST_S:
        return None
    columns = group_pieces(ordered, size.columns)
    if len(columns) < FEWEST_COLUMNS:
        return None
    by_bucket: IntArray = np.zeros((len(columns), BUCKETS), dtype=np.int64)
    for number, column in enumerate(columns):
        for piece in column:
            histogram = piece.histogram(direction)
            by_bucket[number, histogram.indices] += histogram.counts
    filled = np.flatnonzero(by_bucket.any(axis=0))
    if not filled.size:
        return None
    for per_decade in _BANDS_A_DECADE:
        bands, edges_ns = bands_of_buckets(per_decade)
        first, last = int(bands[filled[0]]), int(bands[filled[-1]])
        if last - first < size.bands:
            break
    counts: IntArray = np.zeros((len(columns), edges_ns.size - 1), dtype=np.int64)
    for bucket in filled.tolist():
        counts[:, bands[bucket]] += by_bucket[:, bucket]
    return LatencyBands(
        starts_s=tuple(column[0].start_s for column in columns),
        ends_s=tuple(_find_ends(columns, ordered[-1].end_s / size.columns)),
        column_s=median(column[-1].end_s - column[0].start_s for column in columns),
        edges_us=tuple((edges_ns[first : last + 2] / 1000).tolist()),
        counts=tuple(map(tuple, counts[:, first : last + 1].tolist())),
    )


def group_pieces(ordered: Sequence[Piece], most: int) -> list[list[Piece]]:
    """Return groups of neighbouring seconds or slices. A time without measurements that is longer than a column ends
    a group.
    """
    many = next((size for size in _SIZES if size * most >= len(ordered)), -(-len(ordered) // most))
    longest_gap_s = ordered[-1].end_s / most
    groups = [[ordered[0]]]
    for before, after in pairwise(ordered):
        if len(groups[-1]) == many or after.start_s - before.end_s > longest_gap_s:
            groups.append([])
        groups[-1].append(after)
    return groups


def _find_ends(columns: Sequence[Sequence[Piece]], longest_gap_s: float) -> list[float]:
    """Return the end of each column: the start of the next column, unless nothing was measured for longer than a
    column.
    """
    ends_s = []
    for column, later in pairwise(columns):
        is_gap = later[0].start_s - column[-1].end_s > longest_gap_s
        ends_s.append(column[-1].end_s if is_gap else later[0].start_s)
    return [*ends_s, columns[-1][-1].end_s]
