"""A step's samples as columns: for drawing and for statistics over a whole day at once.

The facts are those in ``Sample`` without the histograms, a hundred times cheaper to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from math import ceil

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def _empty() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seconds:
    """One value of each column for each sample, reads and writes together; NaN is "not measured".

    ``start_s`` counts from the first I/O of the step, or of the first step if several were
    joined. Latencies are of the whole response time.
    """

    start_s: FloatArray = field(default_factory=_empty)
    duration_s: FloatArray = field(default_factory=_empty)
    iops: FloatArray = field(default_factory=_empty)
    megabytes_per_s: FloatArray = field(default_factory=_empty)
    latency_mean_us: FloatArray = field(default_factory=_empty)
    latency_max_us: FloatArray = field(default_factory=_empty)

    def __len__(self) -> int:
        return self.start_s.size

    @property
    def end_s(self) -> float:
        """Return the end of the last sample; 0 without samples."""
        return float(self.start_s[-1] + self.duration_s[-1]) if len(self) else 0.0


def join(pieces: Sequence[Seconds], starts_s: Sequence[float]) -> Seconds:
    """Return pieces one after the other, each moved to its start."""
    if not pieces:
        return Seconds()
    columns = {
        column.name: np.concatenate([getattr(piece, column.name) for piece in pieces])
        for column in fields(Seconds)
        if column.name != "start_s"
    }
    moved = [piece.start_s + start_s for piece, start_s in zip(pieces, starts_s, strict=True)]
    return Seconds(start_s=np.concatenate(moved), **columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SecondsColumn:
    """A value over time in a limited number of columns: as many as a plot of that width can show.

    ``low`` and ``high`` are the extremes of the samples that begin in a column, so that no spike
    is lost however many samples share it; ``mean`` is their mean.
    """

    at_s: FloatArray
    low: FloatArray
    mean: FloatArray
    high: FloatArray


def reduce_to_columns(start_s: FloatArray, values: FloatArray, columns: int) -> SecondsColumn:
    """Return minimum, mean and maximum of each of ``columns`` equal parts of the time.

    Parts without a measured sample are left out. With no more samples than columns each sample
    has its own column. Samples may come in any order.

    Raises:
        ValueError: there is no column to fill.
    """
    if columns < 1:
        raise ValueError("there must be a column")
    order = np.argsort(start_s, kind="stable")
    order = order[~np.isnan(values[order])]
    start_s, values = start_s[order], values[order]
    if values.size <= columns:
        return SecondsColumn(at_s=start_s, low=values, mean=values, high=values)
    span_s = start_s[-1] - start_s[0] or 1.0
    column_of = np.minimum(((start_s - start_s[0]) / span_s * columns).astype(int), columns - 1)
    first = np.flatnonzero(np.diff(column_of, prepend=-1))
    counts = np.diff(first, append=values.size)
    return SecondsColumn(
        at_s=start_s[first],
        low=np.minimum.reduceat(values, first),
        mean=np.add.reduceat(values, first) / counts,
        high=np.maximum.reduceat(values, first),
    )


def places_of_extremes(values: Sequence[float], most: int) -> list[int]:
    """Return the places of the lowest and the highest of each group of neighbours, at most ``most`` in all.

    The result has all places if there are no more, and always the first and the last.

    Raises:
        ValueError: ``most`` does not leave two groups.
    """
    if most < 6:
        raise ValueError("too few to keep extremes")
    if len(values) <= most:
        return list(range(len(values)))
    kept = {0, len(values) - 1}
    size = ceil(2 * len(values) / (most - 2))
    for first in range(0, len(values), size):
        group = range(first, min(first + size, len(values)))
        kept |= {min(group, key=values.__getitem__), max(group, key=values.__getitem__)}
    return sorted(kept)
