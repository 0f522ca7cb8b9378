"""The 95 % interval should contain the true value in 95 of 100 measurements. The test series are AR(1) noise with a
known mean, because the seconds of a drive are correlated. Every trial has a fixed seed.
"""

from __future__ import annotations

from math import hypot, inf, sqrt

import numpy as np
import pytest

from tkperf.analysis.cell_uncertainty import rounds_before
from tkperf.analysis.uncertainty.estimate import (
    EXTREME,
    Basis,
    Uncertainty,
    build_between,
    build_from_resolution,
    build_ratio,
    scale,
)
from tkperf.analysis.uncertainty.means import (
    ONCE,
    latencies_within,
    rates_within,
    uncertainty_of_mean,
    uncertainty_of_median,
)
from tkperf.analysis.uncertainty.percentiles import uncertainties_of_percentiles
from tkperf.analysis.uncertainty.spread import coverage_factor, spread_of_series
from tkperf.model.histogram import BUCKET_UPPER_NS, BUCKETS, Histogram
from tkperf.model.measurement import FloatArray, IoStats, Seconds
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES

TRIALS = 1000


def ar1(chance: np.random.Generator, trials: int, values: int, correlation: float) -> FloatArray:
    """Return series with the mean 0 and the given correlation of neighbouring values. Each row is one series."""
    noise = chance.standard_normal((trials, values))
    series = np.empty_like(noise)
    series[:, 0] = noise[:, 0] / sqrt(1 - correlation**2)
    for place in range(1, values):
        series[:, place] = correlation * series[:, place - 1] + noise[:, place]
    return series


@pytest.mark.parametrize(
    ("degrees", "factor"),
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (9, 2.262),
        (30, 2.042),
        (100, 1.984),
        (120, 1.980),
        (inf, 1.960),
    ],
)
def test_the_coverage_factor_is_that_of_the_tables(degrees: float, factor: float) -> None:
    assert coverage_factor(degrees) == pytest.approx(factor, abs=0.0005)


def test_the_expansion_goes_on_where_the_series_ends() -> None:
    assert coverage_factor(100) > coverage_factor(101) > coverage_factor(102)
    step = coverage_factor(99) - coverage_factor(100)
    assert coverage_factor(100) - coverage_factor(101) == pytest.approx(step, rel=0.03)


def test_there_is_no_coverage_factor_without_degrees_of_freedom() -> None:
    with pytest.raises(ValueError, match="single value"):
        coverage_factor(0)


@pytest.mark.parametrize(
    ("seconds", "correlation"),
    [(60, 0.0), (60, -0.3), (60, 0.3), (60, 0.5), (300, 0.0), (300, 0.7), (1200, 0.5), (1200, 0.8)],
)
def test_the_seconds_of_one_step_hold_the_mean_of_those_that_follow(seconds: int, correlation: float) -> None:
    """The interval that is computed from the seconds of one step contains the mean of the following seconds in about 95
    % of the trials. This also holds if the seconds are correlated.
    """
    series = ar1(np.random.default_rng(1), TRIALS, 3 * seconds, correlation)
    spreads = [spread_of_series([one[:seconds]]) for one in series]
    covered = np.mean(
        [
            spread is not None and abs(one[:seconds].mean() - one[seconds:].mean()) < spread.expanded
            for one, spread in zip(series, spreads, strict=True)
        ]
    )
    assert 0.91 < covered < 0.98


def test_without_regard_to_correlation_it_would_cover_far_less() -> None:
    """An interval that ignores the correlation contains the true mean much less often. For this reason, tkperf groups
    the seconds into blocks.
    """
    series = ar1(np.random.default_rng(1), TRIALS, 300, 0.7)
    naive = coverage_factor(299) * series.std(axis=1, ddof=1) / sqrt(300)
    covered = np.mean(np.abs(series.mean(axis=1)) < naive)
    assert covered < 0.65


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.98), (0.31, 0.94), (0.6, 0.92)])
def test_five_rounds_hold_the_mean_of_the_next_ten(correlation: float, least: float) -> None:
    """With the assumed correlation, the interval from five rounds contains the mean of the next ten rounds as often as
    stated. ``bench/coverage.py`` tests steady windows and drift.
    """
    series = ar1(np.random.default_rng(2), 4 * TRIALS, 15, correlation)
    held = np.mean(
        [
            bool(uncertainty_of_mean(one[:5].mean(), one[:5].tolist(), None, 1e-9).covers(one[5:].mean()))
            for one in series
        ]
    )
    assert held > least
    if correlation == 0.31:
        assert held < 0.98


def test_a_line_through_the_window_goes_on() -> None:
    """The uncertainty of a window with a slope includes the extrapolated slope. The middle of the next ten rounds lies
    7.5 rounds after the middle of the five rounds.
    """
    falling = [104.0, 102.0, 100.0, 98.0, 96.0]
    found = uncertainty_of_mean(100.0, falling, None, 1e-9)
    assert found.covers(100.0 - 7.5 * 2.0)
    assert not uncertainty_of_mean(100.0, [104.0, 98, 96, 102, 100], None, 1e-9).covers(85.0)


def test_a_window_that_is_quieter_than_the_rounds_before_it_is_not_as_sure() -> None:
    """A window that varies less than the earlier rounds is more uncertain than its own rounds suggest, because the
    window was chosen for its small variation. Earlier rounds far from the level of the window do not count.
    """
    quiet = [100.0, 100.5, 99.5, 100.2, 99.8]
    alone = uncertainty_of_mean(100.0, quiet, None, 1e-9)
    restless = uncertainty_of_mean(100.0, quiet, None, 1e-9, earlier=[90, 112, 95, 108, 88])
    from_far = uncertainty_of_mean(100.0, quiet, None, 1e-9, earlier=[400, 250, 150, 101, 100])
    assert alone.expanded is not None
    assert restless.expanded is not None
    assert from_far.expanded is not None
    assert restless.expanded > 5 * alone.expanded
    assert from_far.expanded < 3 * alone.expanded


def test_a_cells_rounds_before_are_as_far_apart_as_its_window() -> None:
    """The rounds before a window have the same distance from each other as the rounds of the window. In a stream, for
    example, only every 30th slice counts as a round.
    """
    assert rounds_before((4, 5, 6, 7, 8)) == (1, 2, 3)
    assert rounds_before((91, 121, 151, 181, 211)) == (1, 31, 61)
    assert rounds_before((1, 2, 3, 4, 5)) == rounds_before((7,)) == rounds_before(()) == ()


def test_many_rounds_one_after_the_other_are_a_series() -> None:
    """Many consecutive rounds are treated as a series, because 120 rounds with similar neighbours contain less
    information than 120 independent rounds.
    """
    series = ar1(np.random.default_rng(3), TRIALS, 360, 0.6)
    rounds = series[:, :120]
    found = [uncertainty_of_mean(one.mean(), one.tolist(), None, 1e-9) for one in rounds]
    held = [bool(one.covers(rest.mean())) for one, rest in zip(found, series[:, 120:], strict=True)]
    assert 0.91 < np.mean(held) < 0.98


def test_a_minute_too_short_for_its_correlation_mostly_says_so() -> None:
    """If a minute is too short to determine the correlation of its seconds, the result usually states this.
    docs/explanation/method.md promises this statement.
    """
    series = ar1(np.random.default_rng(1), TRIALS, 180, 0.85)
    spreads = [spread_of_series([one[:60]]) for one in series]
    assert all(spreads)
    known = [
        (one[:60].mean() - one[60:].mean(), spread)
        for one, spread in zip(series, spreads, strict=True)
        if spread is not None
    ]
    assert round(100 * np.mean([abs(gap) < spread.expanded for gap, spread in known])) == 83
    assert round(100 * np.mean([spread.at_least for _, spread in known])) == 97


def test_a_series_correlated_over_longer_than_it_lasts_gives_a_lower_limit() -> None:
    drifting = np.linspace(0.0, 1.0, 60)
    spread = spread_of_series([drifting])
    assert spread is not None
    assert spread.at_least
    assert spread.expanded > 0.25


@pytest.mark.parametrize("pieces", [[], [np.zeros(3)], [np.zeros(60), np.zeros(3)]])
def test_too_few_seconds_tell_nothing(pieces: list[FloatArray]) -> None:
    assert spread_of_series(pieces) is None


def test_a_constant_series_is_known_to_within_what_it_is_resolved_to() -> None:
    """The uncertainty of a constant series is its resolution and not 0, because a rate that is higher by one I/O in 60
    s would lead to the same values.
    """
    found = uncertainty_of_mean(500.0, [500.0] * 5, spread_of_series([np.zeros(60)] * 5), step=0.01)
    assert found == build_from_resolution(500.0, 0.01)
    assert found.basis is Basis.RESOLUTION
    assert found.standard == pytest.approx(0.01 / sqrt(12))


def test_one_round_without_seconds_has_no_uncertainty() -> None:
    assert uncertainty_of_mean(500.0, [500.0], None, 0.01) == Uncertainty(reason=ONCE)


def test_what_comes_back_in_every_round_is_not_chance() -> None:
    """A pattern that occurs in every round is not random and does not widen the interval. For example, each round
    begins fast because the preceding step was easier.
    """
    transient = np.concatenate((np.full(20, 900.0), np.full(40, 100.0)))
    rounds = [transient.mean() + stray for stray in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    found = uncertainty_of_mean(transient.mean(), rounds, spread_of_series([transient] * 5), 0.01)
    assert found.basis is Basis.ROUNDS
    # The random part is sqrt(0.57 x 0.625). The line rises by 0.5 per round and is extrapolated by 7.5 rounds.
    assert found.high == pytest.approx(transient.mean() + hypot(2.7764 * 0.597, 7.5 * 0.5), abs=0.01)
    assert found.degrees_of_freedom == 4


def test_what_was_measured_once_is_known_by_its_seconds() -> None:
    within = spread_of_series(list(ar1(np.random.default_rng(7), 1, 60, 0.0)))
    assert within is not None
    found = uncertainty_of_mean(150.0, [150.0], within, 0.01)
    assert (found.basis, found.standard) == (Basis.SECONDS, within.standard)


def seconds_of(iops: FloatArray, latency_us: FloatArray, last_s: float = 1.0) -> Seconds:
    durations = np.ones(iops.size)
    durations[-1] = last_s
    return Seconds(
        start_s=np.arange(iops.size, dtype=float),
        duration_s=durations,
        iops=iops,
        megabytes_per_s=iops * 4096 / 1e6,
        latency_mean_us=latency_us,
        latency_max_us=latency_us,
    )


def test_the_latency_of_a_second_without_io_is_left_out() -> None:
    latency = np.array([100.0, 104.0] * 30)
    iops = np.full(60, 50.0)
    latency[7], iops[7] = np.nan, 0.0
    found = latencies_within([seconds_of(iops, latency)])
    assert found is not None
    assert 0 < found.standard < 1


def test_a_short_last_second_counts_as_little_as_it_is_long() -> None:
    """A last second that lasts a hundredth of a second and has an extreme rate hardly changes the mean over a
    minute.
    """
    chance = np.random.default_rng(4)
    iops = 1000 + chance.standard_normal(60)
    plain = rates_within([seconds_of(iops, iops)], "iops")
    iops[-1] = 500.0
    short = rates_within([seconds_of(iops, iops, last_s=0.01)], "iops")
    assert plain is not None
    assert short is not None
    assert short.standard < 3 * plain.standard


def test_a_step_without_seconds_tells_nothing_of_what_is_within() -> None:
    assert rates_within([Seconds()], "iops") is None
    assert latencies_within([Seconds()]) is None


def histogram_of(latencies_ns: FloatArray) -> Histogram:
    dense = np.zeros(BUCKETS, dtype=np.int64)
    places = np.searchsorted(BUCKET_UPPER_NS, latencies_ns)
    np.add.at(dense, places.clip(max=BUCKETS - 1), 1)
    return Histogram.from_dense(dense)


@pytest.mark.parametrize(("percent", "ios"), [(50.0, 400), (99.0, 1000), (99.0, 5_000)])
@pytest.mark.parametrize("bursts", [0.0, 0.3])
def test_percentiles_of_five_rounds_cover_the_true_one(percent: float, ios: int, bursts: float) -> None:
    """The interval of a percentile from five rounds contains the true percentile of exponential latencies, even if
    bursts change the mean of each round.
    """
    chance = np.random.default_rng(5)
    place = REPORTED_PERCENTILES.index(percent)
    many = chance.exponential(100_000, 400_000) * np.exp(bursts * chance.standard_normal(400_000))
    true_us = np.percentile(many, percent) / 1000
    covered = 0
    for _ in range(TRIALS):
        means = 100_000 * np.exp(bursts * chance.standard_normal(5))
        rounds = [histogram_of(chance.exponential(mean, ios // 5)) for mean in means]
        whole = sum(rounds[1:], rounds[0])
        found = uncertainties_of_percentiles(IoStats(histogram=whole), rounds, Basis.ROUNDS)[place]
        assert found is not None
        covered += bool(found.covers(true_us))
    assert covered > 0.935 * TRIALS


def test_of_one_step_percentiles_are_known_by_counting_alone() -> None:
    """The uncertainty of a percentile of a single step is computed only from the number of I/Os. It is a lower limit,
    because I/Os may arrive in bursts.
    """
    whole = IoStats(histogram=histogram_of(np.linspace(1e5, 2e5, 10_000)))
    found = uncertainties_of_percentiles(whole, [whole.histogram], Basis.ROUNDS)
    by_percent = dict(zip(REPORTED_PERCENTILES, found, strict=True))
    assert by_percent[99.99] is None  # only one I/O lies beyond this percentile
    median = by_percent[50.0]
    assert median is not None
    assert (median.basis, median.at_least) == (Basis.COUNTS, True)
    assert median.low is not None
    assert median.high is not None
    # 5,000 +- 98 I/Os correspond to 150 +- 1 µs. The interval is extended to the edges of the buckets, which are 2 µs
    # wide.
    assert 146 < median.low <= 149
    assert 151 <= median.high < 154


def test_a_percentile_beyond_which_little_was_counted_has_no_upper_end() -> None:
    """The interval of a percentile has no upper end if a single round contains all I/Os beyond the percentile, because
    the next round may contain many more slow I/Os.
    """
    fast = histogram_of(np.full(10_000, 1e5))
    slow = histogram_of(np.concatenate((np.full(9_900, 1e5), np.full(100, 9e6))))
    rounds = [fast, fast, fast, fast, slow]
    whole = IoStats(histogram=sum(rounds[1:], rounds[0]))
    found = uncertainties_of_percentiles(whole, rounds, Basis.ROUNDS)
    of_last = found[REPORTED_PERCENTILES.index(99.9)]
    assert of_last is not None
    assert (of_last.high, of_last.standard, of_last.expanded) == (None, None, None)
    assert of_last.covers(1e9) is True
    assert of_last.covers(1.0) is False


def test_nothing_is_known_of_percentiles_without_latencies() -> None:
    assert set(uncertainties_of_percentiles(IoStats(), [], Basis.ROUNDS)) == {None}


def normal(value: float, expanded: float) -> Uncertainty:
    return Uncertainty(standard=expanded / 1.96, low=value - expanded, high=value + expanded, basis=Basis.ROUNDS)


def test_percentiles_are_compared_by_a_narrower_interval() -> None:
    """Two percentiles are compared with the interval of the level. This interval is narrower than the interval of the
    next measurement, because it omits the scatter of a second measurement.
    """
    rounds = [histogram_of(np.linspace(1e5, 2e5, 10_000) * by) for by in (0.9, 1, 1.05, 1.1, 0.95)]
    whole = IoStats(histogram=sum(rounds[1:], rounds[0]))
    found = uncertainties_of_percentiles(whole, rounds, Basis.ROUNDS)[0]
    assert found is not None
    assert found.low is not None
    level = found.of_level
    assert level.expanded is not None
    assert found.expanded is not None
    assert 0.6 < level.expanded / found.expanded < 0.9
    assert level.of_level == level
    scaled = scale(found, 2.0)
    assert scaled is not None
    assert scaled.of_level.low == pytest.approx(2 * (level.low or 0.0))


def test_a_ratio_has_the_relative_uncertainties_of_both() -> None:
    """The relative uncertainty of a ratio is the root of the sum of the squares of the two relative uncertainties, if
    both are small.
    """
    found = build_ratio(300.0, normal(300, 3), 100.0, normal(100, 1))
    assert found.low == pytest.approx(3 * (1 - 0.0141), abs=0.001)
    assert found.high == pytest.approx(3 * (1 + 0.0141), abs=0.001)
    assert found.basis is Basis.FIGURES


def test_the_ratio_of_two_runs_of_five_rounds_is_covered_and_no_more() -> None:
    """The ratio of two runs uses the intervals of the levels. An interval for the next measurement would contain 99 of
    100 ratios and would show few differences.
    """
    chance = np.random.default_rng(6)
    covered = apart = 0
    for _ in range(2 * TRIALS):
        first, second = (
            mean * (1 + 0.03 * sqrt(1 - 0.31**2) * ar1(chance, 1, 5, 0.31)[0]) for mean in (1000.0, 1100.0)
        )
        of_first, of_second = (
            uncertainty_of_mean(rounds.mean(), rounds.tolist(), None, 1e-9) for rounds in (first, second)
        )
        found = build_ratio(second.mean(), of_second, first.mean(), of_first)
        covered += bool(found.covers(1.1))
        apart += not found.covers(1.0)
    assert 0.93 < covered / (2 * TRIALS) < 0.99
    assert apart / (2 * TRIALS) > 0.8


@pytest.mark.parametrize("other", [None, Uncertainty(reason=EXTREME)])
def test_a_ratio_to_what_has_no_uncertainty_has_none(other: Uncertainty | None) -> None:
    assert not build_ratio(300.0, normal(300, 3), 100.0, other).known
    assert not build_ratio(0.0, normal(0, 3), 100.0, normal(100, 1)).known


@pytest.mark.parametrize("share", [0.01, 0.3, 0.95, 1.3])
def test_a_slower_device_has_mirrored_intervals_as_iops_and_as_latency(share: float) -> None:
    """The same relative noise leads to mirrored intervals for IOPS and for latency. Even if a few rounds differ
    greatly, the lower end of the interval is not 0.
    """
    rate = build_ratio(25.0, normal(25, 25 * share), 100.0, normal(100, 1))
    latency = build_ratio(400.0, normal(400, 400 * share), 100.0, normal(100, 1))
    assert rate.low is not None
    assert rate.high is not None
    assert latency.low == pytest.approx(1 / rate.high)
    assert latency.high == pytest.approx(1 / rate.low)


def test_a_ratio_to_what_may_be_nothing_has_no_upper_end() -> None:
    nothing = Uncertainty(standard=80, low=0, high=250, basis=Basis.COUNTS)
    found = build_ratio(300.0, normal(300, 3), 100.0, nothing)
    assert (found.high, found.standard) == (None, None)
    assert found.low is not None
    assert 0 < found.low < 3


def test_what_can_only_lie_between_two_is_no_surer_than_that() -> None:
    """A value that is only known to lie between two levels has the uncertainty of this range. The limit of an offered
    rate lies between the last level without a backlog and the next level.
    """
    found = build_between(20_000, 21_000)
    assert (found.low, found.high) == (20_000, 21_000)
    assert found.standard == pytest.approx(1000 / sqrt(12))


def test_the_median_of_a_level_strays_more_than_its_mean() -> None:
    slices = [99.0, 101.0] * 5
    mean = uncertainty_of_mean(100.0, slices, None, 1e-9)
    median = uncertainty_of_median(100.0, slices, Basis.SLICES)
    assert median.standard is not None
    assert mean.standard is not None
    assert median.standard == pytest.approx(1.2533 * mean.standard, rel=1e-4)
    assert not uncertainty_of_median(100.0, [100.0], Basis.SLICES).known
