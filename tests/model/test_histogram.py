"""Histograms with fio's buckets neither lose nor add I/Os."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.model.histogram import (
    BUCKET_LOWER_NS,
    BUCKET_MIDDLE_NS,
    BUCKET_UPPER_NS,
    BUCKETS,
    EMPTY,
    Histogram,
    bucket_of_ns,
)
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES, percentile_rank

latencies = st.lists(st.integers(min_value=0, max_value=10**10), min_size=1, max_size=200)


def of(values: list[int]) -> Histogram:
    dense = np.zeros(BUCKETS, dtype=np.int64)
    for value in values:
        dense[bucket_of_ns(value)] += 1
    return Histogram.from_dense(dense)


@given(st.integers(min_value=0, max_value=int(BUCKET_UPPER_NS[-1])))
def test_a_latency_lies_within_its_bucket(value: int) -> None:
    """Buckets cover all latencies without a gap. A bucket is 1 ns wide, or its width exceeds 1/64 of its values by at
    most 1 ns.
    """
    bucket = bucket_of_ns(value)
    assert BUCKET_LOWER_NS[bucket] <= value <= BUCKET_UPPER_NS[bucket]
    width = int(BUCKET_UPPER_NS[bucket]) - int(BUCKET_LOWER_NS[bucket]) + 1
    assert width == 1 or width <= value / 64 + 1


def test_buckets_are_known_by_fios_names() -> None:
    """Each bucket is found by fio's name for it, which is the middle value of the bucket."""
    assert [bucket_of_ns(int(middle)) for middle in BUCKET_MIDDLE_NS] == list(range(BUCKETS))


@given(latencies, latencies)
def test_merge_and_difference_are_inverse(a: list[int], b: list[int]) -> None:
    """After two histograms are merged, either of them can be subtracted again. The totals of the two histograms
    add up.
    """
    whole = of(a) + of(b)
    assert whole == of(a + b)
    assert whole - of(a) == of(b)
    assert whole.total == len(a) + len(b)


def test_a_difference_never_goes_below_zero() -> None:
    """Subtracting I/Os that a histogram does not contain is an error. The subtraction never leads to a negative
    count.
    """
    with pytest.raises(ValueError, match="does not contain"):
        of([100]) - of([100, 100])


@given(latencies, st.sampled_from([50.0, 90.0, 95.0]))
def test_a_percentile_lies_in_the_bucket_of_the_true_one(values: list[int], percent: float) -> None:
    """A percentile that is computed from the histogram lies in the same bucket as the exact order statistic."""
    histogram = of(values)
    found = histogram.percentile_ns(percent)
    if found is None:
        assert len(values) * (100 - percent) < 1000
        return
    rank = count_to_rank(percent, len(values))
    assert bucket_of_ns(int(found)) == bucket_of_ns(sorted(values)[rank - 1])


def count_to_rank(percent: float, total: int, start: int = 1) -> int:
    """Return how many of the fastest I/Os make up ``percent`` of all I/Os. The function computes with thousandths of a
    percent.
    """
    thousandths = {50.0: 50_000, 90.0: 90_000, 95.0: 95_000, 99.0: 99_000, 99.9: 99_900, 99.99: 99_990, 99.999: 99_999}[
        percent
    ]
    rank = start
    while rank * 100_000 < thousandths * total:
        rank += 1
    return rank


@pytest.mark.parametrize("percent", REPORTED_PERCENTILES)
def test_ranks_are_those_found_by_counting(percent: float) -> None:
    """The rank of a percentile equals the rank that is found by counting. The test covers every number of I/Os up to
    5,000, and larger numbers at which floating-point arithmetic would be wrong.
    """
    before = 1
    for total in range(1, 5_001):
        before = count_to_rank(percent, total, before)
        assert percentile_rank(percent, total) == before
    for total in (10_000, 100_000, 999_000, 1_000_000, 3_000_000, 10**15):
        exact = -(-total * round(percent * 1000) // 100_000)  # rounded up
        assert percentile_rank(percent, total) == exact


@pytest.mark.parametrize("percent", REPORTED_PERCENTILES)
def test_a_percentile_is_the_last_io_of_its_share(percent: float) -> None:
    """Percentile p is the latency of the slowest I/O among the fastest p % of the I/Os. For example, if 99,900 of
    100,000 I/Os took 100 µs, the 99.9th percentile is 100 µs. If one more I/O is slow, the percentile is the latency of
    the slow I/Os.
    """
    fast, slow = 100_000, 10_000_000
    for total in (*range(1, 5_001), *range(10_000, 110_000, 1_000), 1_000_000, 2_000_000):
        rank = percentile_rank(percent, total)
        if total * (100_000 - round(percent * 1000)) < 10 * 100_000:
            assert two(fast, rank, slow, total - rank).percentile_ns(percent) is None
            continue
        for quick, expected in ((rank, fast), (rank - 1, slow)):
            found = two(fast, quick, slow, total - quick).percentile_ns(percent)
            assert found is not None
            assert bucket_of_ns(int(found)) == bucket_of_ns(expected)


def two(fast_ns: int, quick: int, slow_ns: int, rest: int) -> Histogram:
    counts = {bucket_of_ns(fast_ns): quick, bucket_of_ns(slow_ns): rest}
    filled = {bucket: count for bucket, count in counts.items() if count}
    return Histogram([*filled], [*filled.values()])


@pytest.mark.parametrize(
    ("percent", "least"),
    [(50, 20), (90, 100), (95, 200), (99, 1_000), (99.9, 10_000), (99.99, 100_000), (99.999, 1_000_000)],
)
def test_a_percentile_needs_ten_ios_expected_beyond_it(percent: float, least: int) -> None:
    """A percentile is measured only if at least ten I/Os are expected beyond it. Without I/O, no percentile is
    measured.
    """
    bucket = bucket_of_ns(1000)
    assert Histogram([bucket], [least - 1]).percentile_ns(percent) is None
    assert Histogram([bucket], [least]).percentile_ns(percent) is not None
    assert EMPTY.percentile_ns(percent) is None


@pytest.mark.parametrize(("indices", "counts"), [([1, 1], [1, 1]), ([2, 1], [1, 1]), ([1], [0]), ([BUCKETS], [1])])
def test_an_impossible_histogram_cannot_be_made(indices: list[int], counts: list[int]) -> None:
    """An impossible histogram cannot be constructed. Its indices must ascend within the range of buckets, and its
    counts must be positive.
    """
    with pytest.raises(ValueError, match=r"bucket|ascend"):
        Histogram(indices, counts)
