"""Histograms in fio's buckets lose no I/O and add none."""

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
    REPORTED_PERCENTILES,
    Histogram,
    bucket_of_ns,
    percentile_rank,
)

latencies = st.lists(st.integers(min_value=0, max_value=10**10), min_size=1, max_size=200)


def of(values: list[int]) -> Histogram:
    dense = np.zeros(BUCKETS, dtype=np.int64)
    for value in values:
        dense[bucket_of_ns(value)] += 1
    return Histogram.from_dense(dense)


@given(st.integers(min_value=0, max_value=int(BUCKET_UPPER_NS[-1])))
def test_a_latency_lies_within_its_bucket(value: int) -> None:
    """Buckets cover all latencies without gap, each at most 1/64 of its value wide."""
    bucket = bucket_of_ns(value)
    assert BUCKET_LOWER_NS[bucket] <= value <= BUCKET_UPPER_NS[bucket]
    width = int(BUCKET_UPPER_NS[bucket]) - int(BUCKET_LOWER_NS[bucket]) + 1
    assert width == 1 or width <= value / 64 + 1


def test_buckets_are_known_by_fios_names() -> None:
    """Each bucket is found by fio's name for it, which is its middle value."""
    assert [bucket_of_ns(int(middle)) for middle in BUCKET_MIDDLE_NS] == list(range(BUCKETS))


@given(latencies, latencies)
def test_merge_and_difference_are_inverse(a: list[int], b: list[int]) -> None:
    """A merged histogram can be subtracted again, and the totals add up."""
    whole = of(a) + of(b)
    assert whole == of(a + b)
    assert whole - of(a) == of(b)
    assert whole.total == len(a) + len(b)


def test_a_difference_never_goes_below_zero() -> None:
    """To subtract I/Os that a histogram does not contain is an error, and gives no negative count."""
    with pytest.raises(ValueError, match="does not contain"):
        of([100]) - of([100, 100])


@given(latencies, st.sampled_from([50.0, 90.0, 95.0]))
def test_a_percentile_lies_in_the_bucket_of_the_true_one(values: list[int], percent: float) -> None:
    """The percentile from the histogram is in the same bucket as the exact order statistic."""
    histogram = of(values)
    found = histogram.percentile_ns(percent)
    if found is None:
        assert len(values) * (100 - percent) < 1000
        return
    rank = count_to_rank(percent, len(values))
    assert bucket_of_ns(int(found)) == bucket_of_ns(sorted(values)[rank - 1])


def count_to_rank(percent: float, total: int, start: int = 1) -> int:
    """Return the number of the fastest I/Os that are ``percent`` of all, counted in thousandths of a percent."""
    thousandths = {50.0: 50_000, 90.0: 90_000, 95.0: 95_000, 99.0: 99_000, 99.9: 99_900, 99.99: 99_990, 99.999: 99_999}[
        percent
    ]
    rank = start
    while rank * 100_000 < thousandths * total:
        rank += 1
    return rank


@pytest.mark.parametrize("percent", REPORTED_PERCENTILES)
def test_ranks_are_those_found_by_counting(percent: float) -> None:
    """The rank of a percentile equals the rank found by counting, for every number of I/Os up to 5,000 and for
    thousands where floating point errs.
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
    """A percentile is fast if exactly its share of the I/Os is fast, and slow with one fast I/O less. For example, 99.9
    % did not exceed 100 us if 99,900 of 100,000 I/Os took 100 us.
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
    """A percentile needs at least ten I/Os beyond it. With one I/O less, and without I/O, it is not measured."""
    bucket = bucket_of_ns(1000)
    assert Histogram([bucket], [least - 1]).percentile_ns(percent) is None
    assert Histogram([bucket], [least]).percentile_ns(percent) is not None
    assert EMPTY.percentile_ns(percent) is None


@pytest.mark.parametrize(("indices", "counts"), [([1, 1], [1, 1]), ([2, 1], [1, 1]), ([1], [0]), ([BUCKETS], [1])])
def test_an_impossible_histogram_cannot_be_made(indices: list[int], counts: list[int]) -> None:
    """A histogram is valid from construction. Its indices ascend within the range, and its counts are positive."""
    with pytest.raises(ValueError, match=r"bucket|ascend"):
        Histogram(indices, counts)
