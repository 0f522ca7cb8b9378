"""I/O statistics: sums, extremes and differences."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import io_stats, latency_lists
from tkperf.model.measurement import NO_IO, IoStats, Measurement, Sample, add_all, as_answer, explain_rare
from tkperf.model.quantity import combine
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES
from tkperf.model.workload import Access, Workload


@given(latency_lists, latency_lists)
def test_together_means_are_weighted_by_ios_and_extremes_are_true(a: list[int], b: list[int]) -> None:
    """The mean latency of reads and writes together is weighted by the numbers of I/Os. The minimum and the maximum are
    those of all I/Os.
    """
    both = io_stats(a) + io_stats(b)
    values = a + b
    assert both.latency_mean_ns == sum(values) / len(values)
    assert both.latency_max_ns == max(values)
    assert both.latency_min_ns == min(values)


@given(st.lists(latency_lists, max_size=5))
def test_many_are_what_all_their_ios_are(lists: list[list[int]]) -> None:
    """The sum of several measurements equals a single measurement of all their I/Os."""
    parts = [io_stats(each) for each in lists]
    every = [value for each in lists for value in each]
    assert add_all(parts) == add_all([NO_IO, *parts, NO_IO]) == (io_stats(every) if every else NO_IO)


@given(latency_lists, latency_lists)
def test_an_interval_is_what_cumulative_readings_gained(a: list[int], b: list[int]) -> None:
    """The difference of two cumulative readings equals the I/O between the readings. Only the minimum and the maximum
    are rounded to a bucket.
    """
    gained = io_stats(a + b).since(io_stats(a))
    alone = io_stats(b)
    assert (gained.ios, gained.bytes, gained.latency_sum_ns) == (alone.ios, alone.bytes, alone.latency_sum_ns)
    assert gained.histogram == alone.histogram
    assert gained.latency_max_ns is not None
    assert max(b) <= gained.latency_max_ns <= max(b) * (1 + 1 / 64) + 1
    assert gained.latency_min_ns is not None
    assert min(b) * (1 - 1 / 64) - 1 <= gained.latency_min_ns <= min(b)


def test_nothing_measured_is_none_never_zero() -> None:
    """If no I/O was completed, a latency is None and never zero."""
    assert NO_IO.latency_mean_ns is None
    assert NO_IO.percentile_ns(50) is None
    assert (NO_IO + NO_IO).latency_max_ns is None
    assert Measurement(duration_s=1.0, read=NO_IO, write=NO_IO).latency_mean_us is None


def test_a_dash_for_too_few_ios_has_a_footnote() -> None:
    """A footnote explains the dash of a missing percentile if the cell has other percentiles. A cell without any
    percentile has no such footnote, because its percentiles were not measured.
    """
    some: dict[str, float | None] = {"p50": 1.0, "p99": None}
    nothing: dict[str, float | None] = {"p50": None, "p99": None}
    everything: dict[str, float | None] = {"p50": 1.0, "p99": 2.0}
    note = ("- fewer than 10 I/Os expected beyond that percentile",)
    assert explain_rare([everything, some]) == explain_rare([some], only="p99") == note
    assert explain_rare([nothing, everything]) == explain_rare([some], only="p50") == ()


@given(st.integers(min_value=1, max_value=10**6))
def test_megabytes_are_decimal(ios: int) -> None:
    """A rate in MB/s counts 10^6 bytes as one megabyte (docs/how-to/tkperf-2.2.md)."""
    seen = Measurement(duration_s=2.0, read=IoStats(ios=ios, bytes=ios * 4096), write=NO_IO)
    assert seen.megabytes_per_s == ios * 4096 / 1e6 / 2


@given(latency_lists, latency_lists)
def test_an_answers_reported_percentiles_are_as_before(a: list[int], b: list[int]) -> None:
    """The answer that a procedure receives contains the counts, extremes and reported percentiles of a measurement, for
    each direction and for both together. It does not contain the seconds.
    """
    reads, writes = io_stats(a * 20), io_stats(b * 9)
    sample = Sample(start_s=0.0, duration_s=1.0, read=reads, write=writes)
    seen = Measurement(duration_s=1.0, read=reads, write=writes, samples=(sample,))
    kept = as_answer(seen, None)
    assert kept.samples == ()
    for before, after in ((seen.read, kept.read), (seen.write, kept.write), (seen.both, kept.both)):
        assert replace(after, histogram=before.histogram) == before
        assert after.histogram.total == before.histogram.total
        for percent in REPORTED_PERCENTILES:
            assert after.percentile_ns(percent) == before.percentile_ns(percent)


def test_an_answers_histogram_is_a_few_buckets() -> None:
    """The histogram of an answer contains only few buckets. It has one bucket for each percentile of reads, of writes
    and of both together, and the last bucket.
    """
    reads, writes = io_stats(list(range(1, 10**6, 97))), io_stats(list(range(1, 10**5, 7)))
    kept = as_answer(Measurement(duration_s=1.0, read=reads, write=writes), None)
    assert len(reads.histogram.indices) > 500
    most = 3 * len(REPORTED_PERCENTILES) + 1
    assert len(kept.read.histogram.indices) <= most >= len(kept.write.histogram.indices)


def test_throughput_is_in_decimal_megabytes_and_an_extreme_is_of_all_ios() -> None:
    """Throughput is given in megabytes of 10^6 bytes. An extreme refers to all I/Os, so if the extremes of the reads
    are not known, the extremes of the writes are not used in their place.
    """
    load = Workload(access=Access.RANDOM, read_percent=50, block_size_bytes=4096, jobs=1, io_depth=1)
    known = IoStats(
        ios=2, bytes=3_000_000, latency_ios=2, latency_sum_ns=6000, latency_min_ns=2000, latency_max_ns=4000
    )
    whole = combine([Measurement(duration_s=2.0, read=known, write=known)], load)
    assert (whole["megabytes_per_s"], whole["latency_min_us"], whole["latency_max_us"]) == (3.0, 2.0, 4.0)
    unknown = replace(known, latency_min_ns=None, latency_max_ns=None)
    part = combine([Measurement(duration_s=2.0, read=unknown, write=known)], load)
    assert (part["megabytes_per_s"], part["latency_min_us"], part["latency_max_us"]) == (3.0, None, None)
