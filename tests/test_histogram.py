"""Histograms in fio's buckets: nothing lost, nothing invented."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.histogram import (
    BUCKET_LOWER_NS,
    BUCKET_MIDDLE_NS,
    BUCKET_UPPER_NS,
    BUCKETS,
    EMPTY,
    Histogram,
    bucket_of_ns,
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
    """fio names a bucket by its middle value; every name leads back to its bucket."""
    assert [bucket_of_ns(int(middle)) for middle in BUCKET_MIDDLE_NS] == list(range(BUCKETS))


@given(latencies, latencies)
def test_merge_and_difference_are_inverse(a: list[int], b: list[int]) -> None:
    """What is merged can be taken away again; totals add up."""
    whole = of(a) + of(b)
    assert whole == of(a + b)
    assert whole - of(a) == of(b)
    assert whole.total == len(a) + len(b)


def test_a_difference_never_goes_below_zero() -> None:
    """Taking away what is not there is an error, not a negative count."""
    with pytest.raises(ValueError, match="lacks"):
        of([100]) - of([100, 100])


@given(latencies, st.sampled_from([50.0, 90.0, 95.0, 99.0]))
def test_a_percentile_lies_in_the_bucket_of_the_true_one(values: list[int], percent: float) -> None:
    """The percentile from the histogram is in the same bucket as the exact order statistic."""
    histogram = of(values)
    found = histogram.percentile_ns(percent)
    if found is None:
        assert len(values) * (100 - percent) < 100
        return
    rank = int(np.ceil(percent / 100 * len(values) - 1e-9))
    assert bucket_of_ns(int(found)) == bucket_of_ns(sorted(values)[rank - 1])


def test_too_few_ios_give_no_percentile() -> None:
    """99.99 % of 9,999 I/Os is not measured; of 10,000 it is."""
    assert of([1000] * 9_999).percentile_ns(99.99) is None
    assert of([1000] * 10_000).percentile_ns(99.99) is not None
    assert EMPTY.percentile_ns(50) is None


@pytest.mark.parametrize(
    ("indices", "counts"), [([1, 1], [1, 1]), ([2, 1], [1, 1]), ([1], [0]), ([BUCKETS], [1])]
)
def test_an_impossible_histogram_cannot_be_made(indices: list[int], counts: list[int]) -> None:
    """Valid from construction: ascending indices in range, positive counts."""
    with pytest.raises(ValueError, match=r"bucket|ascend"):
        Histogram(indices, counts)
