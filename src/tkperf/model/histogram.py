"""Latency histograms with the same buckets as fio, so that no detail of fio's output is lost.

fio counts every completion in one of its logarithmic buckets. Below 128 ns, the buckets are exact. From 128 ns on, the
range between two successive powers of two is divided into 64 buckets (stat.h: FIO_IO_U_PLAT_BITS 6). The width of a
bucket is not more than 1/64 of its value. The middle value of a bucket represents the bucket, as in the percentiles
that fio prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tkperf.model.reported_percentiles import REPORTED_PERCENTILES, has_percentile, percentile_rank

SUB_BUCKETS = 64
BUCKETS = 29 * SUB_BUCKETS  # 29 groups reach up to about 17 s, and the last bucket contains all longer latencies

IntArray = NDArray[np.int64]


def _bucket_edges_ns() -> tuple[IntArray, IntArray]:
    index = np.arange(BUCKETS, dtype=np.int64)
    exact = index < 2 * SUB_BUCKETS
    shift = np.where(exact, 0, index // SUB_BUCKETS - 1)
    lower = np.where(exact, index, (SUB_BUCKETS + index % SUB_BUCKETS) << shift)
    upper = np.where(exact, index, lower + (np.int64(1) << shift) - 1)
    return lower, upper


BUCKET_LOWER_NS, BUCKET_UPPER_NS = _bucket_edges_ns()
BUCKET_MIDDLE_NS: IntArray = np.where(
    np.arange(BUCKETS) < 2 * SUB_BUCKETS, BUCKET_LOWER_NS, (BUCKET_LOWER_NS + BUCKET_UPPER_NS + 1) // 2
)


def bucket_of_ns(value_ns: int) -> int:
    """Return the index of the bucket that contains a latency.

    Raises:
        ValueError: the latency is negative.
    """
    if value_ns < 0:
        raise ValueError(f"latency {value_ns} ns is negative")
    if value_ns < 2 * SUB_BUCKETS:
        return value_ns
    shift = value_ns.bit_length() - 7
    return min((shift + 1) * SUB_BUCKETS + ((value_ns >> shift) & 63), BUCKETS - 1)


def _buckets_of_ns(values_ns: IntArray) -> IntArray:
    """Return the index of the bucket for each latency. For a single latency, ``bucket_of_ns`` returns the same
    index.
    """
    if np.any(values_ns < 0):
        raise ValueError(f"latency {int(values_ns.min())} ns is negative")
    # The last bucket contains all longer latencies. For shorter latencies, the exponent of the floating-point number is
    # the bit length.
    within = np.minimum(values_ns, BUCKET_UPPER_NS[-1])
    shift = np.maximum(np.frexp(within.astype(np.float64))[1].astype(np.int64) - 7, 0)
    exact = within < 2 * SUB_BUCKETS
    buckets: IntArray = np.where(exact, within, (shift + 1) * SUB_BUCKETS + ((within >> shift) & (SUB_BUCKETS - 1)))
    return buckets


class Histogram:
    """Counts of I/Os by latency. A histogram does not change. Two histograms are equal if all counts are equal.

    ``indices`` are the numbers of the buckets that contain I/Os, in ascending order. ``counts`` are the I/Os in each of
    these buckets.
    """

    __slots__ = ("_buckets_of", "_total", "counts", "indices")

    def __init__(self, indices: Iterable[int] = (), counts: Iterable[int] = ()) -> None:
        self.indices: IntArray = np.asarray(indices, dtype=np.int64)
        self.counts: IntArray = np.asarray(counts, dtype=np.int64)
        # The sum and the percentiles are stored, because every percentile needs the sum, and the percentiles are read
        # many times.
        self._total: int | None = None
        self._buckets_of: dict[float, int | None] | None = None
        if self.indices.shape != self.counts.shape or self.indices.ndim != 1:
            raise ValueError("a histogram needs one count for each bucket index")
        if self.indices.size:
            if self.indices[0] < 0 or self.indices[-1] >= BUCKETS:
                raise ValueError(f"a bucket index must be within 0..{BUCKETS - 1}")
            if (self.indices[1:] <= self.indices[:-1]).any() or (self.counts <= 0).any():
                raise ValueError("the indices of a histogram must ascend, and its counts must be positive")

    @classmethod
    def from_dense(cls, dense: IntArray) -> Histogram:
        """Build a histogram from an array that contains one count for each of the ``BUCKETS`` buckets."""
        (indices,) = dense.nonzero()
        counts = dense[indices]
        if indices.size and counts.min() < 0:
            raise ValueError("counts must be positive")
        return cls._trusted(indices, counts)

    @classmethod
    def _trusted(cls, indices: IntArray, counts: IntArray) -> Histogram:
        """Build a histogram without checks. The caller guarantees that the values are correct. The checks would take
        too long for the many histograms of a run.
        """
        made = cls.__new__(cls)
        made.indices, made.counts, made._total, made._buckets_of = indices, counts, None, None
        return made

    @classmethod
    def from_bins(cls, bins: Mapping[int, int]) -> Histogram:
        """Build a histogram from the ``bins`` of fio's format json+. The keys are the middles of the buckets in ns, and
        the values are counts.
        """
        if not bins:
            return _EMPTY
        counts = np.fromiter(bins.values(), dtype=np.int64, count=len(bins))
        values_ns = np.fromiter(bins.keys(), dtype=np.int64, count=len(bins))
        indices: IntArray = BUCKET_MIDDLE_NS.searchsorted(values_ns)
        # The keys from fio are already in ascending order and need no search. This case must be fast: each thread has
        # such a histogram for every second of a run, and the CPU time of this function is not available to the load.
        is_ascending = (indices[1:] > indices[:-1]).all()
        if (
            is_ascending
            and indices[-1] < BUCKETS
            and (BUCKET_MIDDLE_NS[indices] == values_ns).all()
            and counts.min() > 0
        ):
            return cls._trusted(indices, counts)
        dense = np.zeros(BUCKETS, dtype=np.int64)
        np.add.at(dense, _buckets_of_ns(values_ns), counts)
        return cls.from_dense(dense)

    def dense(self) -> IntArray:
        """Return an array that contains one count for each of the ``BUCKETS`` buckets."""
        dense = np.zeros(BUCKETS, dtype=np.int64)
        dense[self.indices] = self.counts
        return dense

    @property
    def total(self) -> int:
        if self._total is None:
            self._total = int(self.counts.sum())
        return self._total

    def __add__(self, other: Histogram) -> Histogram:
        if not (self.indices.size and other.indices.size):
            return self if self.indices.size else other
        both = self.dense()
        both[other.indices] += other.counts
        return Histogram.from_dense(both)

    @classmethod
    def sum_of(cls, histograms: Iterable[Histogram]) -> Histogram:
        """Return the sum of all histograms. The result is the same as that of repeated addition, but no intermediate
        sums are built.
        """
        dense = np.zeros(BUCKETS, dtype=np.int64)
        for histogram in histograms:
            dense[histogram.indices] += histogram.counts
        return cls.from_dense(dense)

    def __sub__(self, earlier: Histogram) -> Histogram:
        """Return the I/Os that this cumulative histogram contains in addition to the I/Os of an earlier cumulative
        histogram.
        """
        if not earlier.indices.size:
            return self
        difference = self.dense()
        difference[earlier.indices] -= earlier.counts
        if np.any(difference < 0):
            raise ValueError("the earlier histogram contains I/Os that the later one does not contain")
        return Histogram.from_dense(difference)

    def percentile_ns(self, percent: float) -> float | None:
        """Return the latency in ns that ``percent`` of the I/Os did not exceed. The result is accurate to one bucket.

        The value is the middle of the bucket, as in fio. The result is None if fewer than ten I/Os are expected beyond
        the percentile.
        """
        bucket = self.bucket_of_percentile(percent)
        return None if bucket is None else float(BUCKET_MIDDLE_NS[bucket])

    def bucket_of_percentile(self, percent: float) -> int | None:
        """Return the index of the bucket that contains the percentile. None means that fewer than ten I/Os are expected
        beyond the percentile.
        """
        if self._buckets_of is None:
            self._buckets_of = self._find_buckets(REPORTED_PERCENTILES)
        if percent not in self._buckets_of:
            self._buckets_of |= self._find_buckets((percent,))
        return self._buckets_of[percent]

    def _find_buckets(self, percents: Sequence[float]) -> dict[float, int | None]:
        """Return the bucket of each percentile. One call for all percentiles needs only the time of two calls for one
        percentile.
        """
        total = self.total
        found: dict[float, int | None] = dict.fromkeys(percents)
        known = [percent for percent in percents if has_percentile(percent, total)]
        if known:
            ranks = [percentile_rank(percent, total) for percent in known]
            places = self.counts.cumsum().searchsorted(ranks, side="left")
            found |= zip(known, self.indices[places].tolist(), strict=True)
        return found

    def gathered(self, ends: Iterable[int]) -> Histogram:
        """Return a histogram with fewer buckets. Each I/O counts in the next higher bucket among ``ends``. I/Os above
        all ``ends`` count in the last bucket of this histogram.

        Percentiles in one of the buckets ``ends`` do not change. The extremes and all other percentiles may change.
        """
        cuts = np.array(sorted(ends), dtype=np.int64)
        if not self.indices.size or not cuts.size:
            return self
        cuts = cuts if cuts[-1] >= self.indices[-1] else np.append(cuts, self.indices[-1])
        counts = np.zeros(cuts.size, dtype=np.int64)
        np.add.at(counts, np.searchsorted(cuts, self.indices, side="left"), self.counts)
        return Histogram(cuts[counts > 0], counts[counts > 0])

    def buckets(self) -> Iterator[tuple[int, int, int]]:
        """Yield the lowest and highest latency in ns, and the count, of each bucket with I/Os."""
        for index, count in zip(self.indices.tolist(), self.counts.tolist(), strict=True):
            yield int(BUCKET_LOWER_NS[index]), int(BUCKET_UPPER_NS[index]), count

    @property
    def lowest_ns(self) -> int | None:
        """Return the lower edge, in ns, of the first bucket with I/Os. None means that the histogram is empty."""
        return int(BUCKET_LOWER_NS[self.indices[0]]) if self.indices.size else None

    @property
    def highest_ns(self) -> int | None:
        """Return the upper edge, in ns, of the last bucket with I/Os. None means that the histogram is empty."""
        return int(BUCKET_UPPER_NS[self.indices[-1]]) if self.indices.size else None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Histogram)
            and np.array_equal(self.indices, other.indices)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self.indices.tobytes(), self.counts.tobytes()))

    def __repr__(self) -> str:
        return f"Histogram({self.total} I/Os in {self.indices.size} buckets)"


_EMPTY = Histogram()

# The histograms of single seconds are coarse: they join neighbouring buckets into groups. The width of a group does not
# exceed this fraction of the lower edge of the group.
COARSE_WIDTH = 1 / 16


def _build_coarse_buckets() -> tuple[IntArray, IntArray, IntArray]:
    """Return three arrays with an entry for each bucket: the middle bucket, the first bucket, and the last bucket of
    the group to which the bucket belongs.
    """
    middles = np.arange(BUCKETS, dtype=np.int64)
    firsts, lasts = middles.copy(), middles.copy()
    first = 0
    while first < BUCKETS:
        lower = int(BUCKET_LOWER_NS[first])
        widest = lower + max(1, int(lower * COARSE_WIDTH))
        end = int(np.searchsorted(BUCKET_UPPER_NS, widest, side="left"))
        end = max(end, first + 1)
        middle_ns = (lower + int(BUCKET_UPPER_NS[end - 1]) + 1) // 2
        middles[first:end] = bucket_of_ns(middle_ns)
        firsts[first:end], lasts[first:end] = first, end - 1
        first = end
    return middles, firsts, lasts


_COARSE_BUCKETS, _GROUP_FIRSTS, _GROUP_LASTS = _build_coarse_buckets()


def coarse_edges_ns(indices: IntArray) -> tuple[IntArray, IntArray]:
    """Return the lowest and the highest latency, in ns, of the groups of a coarse histogram. ``indices`` are the
    buckets that represent the groups.
    """
    return BUCKET_LOWER_NS[_GROUP_FIRSTS[indices]], BUCKET_UPPER_NS[_GROUP_LASTS[indices]]


def find_coarse_buckets(indices: IntArray) -> IntArray:
    """Return, for each of these buckets, the coarse bucket in which ``coarsen`` counts the I/Os of the bucket."""
    buckets: IntArray = _COARSE_BUCKETS[indices]
    return buckets


def coarsen(histogram: Histogram) -> Histogram:
    """Return the histogram with the coarse buckets in which the run file stores single seconds. The width of a coarse
    bucket does not exceed 1/16 of its value.
    """
    dense = np.zeros(BUCKETS, dtype=np.int64)
    np.add.at(dense, find_coarse_buckets(histogram.indices), histogram.counts)
    return Histogram.from_dense(dense)


EMPTY = Histogram()

# The first array contains the first bucket of each group, in ascending order. The second array contains the lowest
# latency of each group in ns.
_GROUP_STARTS = np.unique(_GROUP_FIRSTS)
_GROUP_LOWER_NS = BUCKET_LOWER_NS[_GROUP_STARTS]


@cache
def bands_of_buckets(per_decade: int) -> tuple[IntArray, IntArray]:
    """Return two arrays: the number of the latency band for each bucket, and the lowest latency in ns of each band. The
    second array also contains the end of the last band.

    A band is about 1 / ``per_decade`` of a decade wide. A band consists of whole groups of a coarse histogram.
    Therefore the histogram of a second and the histogram of a step count each I/O in the same band, and no bucket is
    split.
    """
    end_ns = int(BUCKET_UPPER_NS[-1]) + 1
    powers = np.arange(0, per_decade * np.log10(end_ns) + 1)
    wanted_ns = 10 ** (powers / per_decade)
    at = np.unique(np.searchsorted(_GROUP_LOWER_NS, wanted_ns))
    starts = np.concatenate(([0], at[(at > 0) & (at < _GROUP_STARTS.size)]))
    bands = np.searchsorted(_GROUP_STARTS[starts], np.arange(BUCKETS), side="right") - 1
    return bands, np.append(_GROUP_LOWER_NS[starts], end_ns)
