"""The seconds of a step as columns of whole numbers: what every way of keeping them comes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tkperf.histogram import Histogram, IntArray
from tkperf.measurement import IoStats, Sample
from tkperf.runfile.packed import DO_NOT_FIT
from tkperf.seconds import Seconds

# Buckets that rows of counts are of, and the rows: some seconds at a time.
Table = tuple[IntArray, IntArray]

_IMPOSSIBLE = "a sample has an impossible time or count"
# Counts of a step's samples, sixteen bytes each: real ones take about a byte packed, equal ones less.
_ALWAYS_COUNTS, _COUNTS_PER_BYTE = 8 << 20, 8
# fio takes its counts one after the other while threads go on, and so does a histogram's total
# differ from the count beside it: by little, but by more where fio itself was held up.
_MOST_TRAILING_IOS, _MOST_TRAILING_SHARE = 1024, 0.5


class SideColumns(NamedTuple):
    """One direction. Extremes are kept plus one: 0 is "not measured"."""

    ios: IntArray
    bytes: IntArray
    latency_sum_ns: IntArray
    latency_ios: IntArray
    latency_min: IntArray
    latency_max: IntArray


class SecondColumns:
    """All of a step's seconds, in order, without their histograms.

    Attributes:
        table: its rows are start and duration in us, and for reads and for writes those of ``SideColumns``.
    """

    __slots__ = ("table",)

    def __init__(self, table: IntArray) -> None:
        """A file may be damaged.

        Raises:
            ValueError: not what seconds can be.
        """
        if table.min(initial=0) < 0 or table[1].min(initial=1) < 1:
            raise ValueError(_IMPOSSIBLE)
        self.table = table

    @classmethod
    def none(cls) -> SecondColumns:
        """Of a step that has none."""
        return cls(np.zeros((14, 0), dtype=np.int64))

    @property
    def sides(self) -> tuple[SideColumns, SideColumns]:
        """Reads and writes."""
        return SideColumns(*self.table[2:8]), SideColumns(*self.table[8:])


def as_samples(
    columns: SecondColumns, tables: Iterable[Iterable[Table]], packed_bytes: int
) -> tuple[Sample, ...]:
    """Records, from the columns and for reads, then for writes, tables of their histograms.

    Raises:
        ValueError: they do not belong together.
    """
    most_counts = _ALWAYS_COUNTS + _COUNTS_PER_BYTE * packed_bytes
    read, write = (
        _as_stats(side, _as_histograms(own, most_counts))
        for side, own in zip(columns.sides, tables, strict=True)
    )
    return tuple(
        Sample(start_s=start_us / 1e6, duration_s=duration_us / 1e6, read=r, write=w)
        for start_us, duration_us, r, w in zip(
            columns.table[0].tolist(), columns.table[1].tolist(), read, write, strict=True
        )
    )


def _as_histograms(tables: Iterable[Table], most_counts: int) -> list[Histogram]:
    histograms: list[Histogram] = []
    for filled, table in tables:
        most_counts -= int(np.count_nonzero(table))
        if most_counts < 0:
            raise ValueError("its samples are more than its size can hold")
        for counts in table:
            kept = np.flatnonzero(counts)
            histograms.append(Histogram(filled[kept], counts[kept]))
    return histograms


def _as_stats(side: SideColumns, histograms: Sequence[Histogram]) -> list[IoStats]:
    totals = np.array([histogram.total for histogram in histograms], dtype=np.int64)
    if totals.size != side.ios.size or misfits(totals, side.latency_ios).any():
        raise ValueError(DO_NOT_FIT)
    return [
        IoStats(
            ios=ios,
            bytes=moved,
            latency_sum_ns=sum_ns,
            latency_ios=latency_ios,
            latency_min_ns=least - 1 if least else None,
            latency_max_ns=most - 1 if most else None,
            histogram=histogram,
        )
        for ios, moved, sum_ns, latency_ios, least, most, histogram in zip(
            *(column.tolist() for column in side), histograms, strict=True
        )
    ]


def misfits(totals: IntArray, latency_ios: IntArray) -> NDArray[np.bool_]:
    """Which histograms hold other I/Os than those of their rows, if any hold some."""
    apart = np.abs(totals - latency_ios)
    allowed = _MOST_TRAILING_IOS + _MOST_TRAILING_SHARE * np.maximum(totals, latency_ios)
    odd: NDArray[np.bool_] = (latency_ios < 0) | (apart > allowed if totals.any() else False)
    return odd


def as_seconds(columns: SecondColumns) -> Seconds:
    """Both directions together, for drawing and statistics."""
    start_s, duration_s = columns.table[:2] / 1e6
    # Sums of two may be more than 63 bits hold.
    ios, bytes_, sum_ns, latency_ios = columns.table[2:6].astype(np.float64) + columns.table[8:12]
    highest = np.maximum(columns.table[7], columns.table[13])
    with np.errstate(divide="ignore", invalid="ignore"):
        return Seconds(
            start_s=start_s,
            duration_s=duration_s,
            iops=ios / duration_s,
            megabytes_per_s=bytes_ / duration_s / 1e6,
            latency_mean_us=np.where(latency_ios > 0, sum_ns / latency_ios / 1000, np.nan),
            latency_max_us=np.where(highest > 0, (highest - 1) / 1000, np.nan),
        )
