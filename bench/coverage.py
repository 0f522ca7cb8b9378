"""Measure how often the 95 % interval is correct.

The script tests generated rounds, long series, and percentiles with rare bursts.

Rounds are AR(1) noise with a known correlation of neighbouring rounds. Some series also have drift, single outlying
rounds, or a shift of the level. Each series ends where a test would end: at its first steady window, or after 25
rounds. Series without a steady window are left out. The script counts how many intervals of the windows contain (a) the
mean of the next ten rounds and (b) the level from which the series was generated. For comparison, "Independent" is the
interval of Student's t, which assumes that the rounds are independent. For pairs of such windows, the script counts how
often the interval of the ratio contains the true ratio of the two levels, and how often the interval distinguishes
levels that differ by 10 %. docs/adr/0046-five-rounds-need-an-assumed-correlation.md contains the resulting tables.

    python bench/coverage.py [--trials 2000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tkperf.analysis.uncertainty.estimate import Basis, Uncertainty, build_ratio
from tkperf.analysis.uncertainty.means import uncertainty_of_mean
from tkperf.analysis.uncertainty.percentiles import uncertainties_of_percentiles
from tkperf.analysis.uncertainty.spread import coverage_factor, spread_of_series
from tkperf.model.histogram import BUCKET_UPPER_NS, Histogram
from tkperf.model.measurement import FloatArray, IoStats
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES
from tkperf.model.steady_state import PTS_CRITERIA, judge

ROUNDS, WINDOW, NEXT = 25, 5, 10
"""Numbers of rounds: the most in a test, those in a window, and those after the window."""
CORRELATIONS = (0.0, 0.15, 0.31, 0.5, 0.7)
NOISES = (0.01, 0.03, 0.1)
"""The standard deviations of a round, as a share of the level."""

Chance = np.random.Generator
Change = Callable[[FloatArray, Chance], FloatArray]


def ar1(chance: Chance, trials: int, values: int, correlation: float | FloatArray) -> FloatArray:
    """Return series with the mean 0, the standard deviation 1 and the given correlation of neighbouring rounds. Each
    row is one series.
    """
    noise = chance.standard_normal((trials, values))
    series = np.empty_like(noise)
    series[:, 0] = noise[:, 0]
    for place in range(1, values):
        series[:, place] = correlation * series[:, place - 1] + noise[:, place] * np.sqrt(1 - np.square(correlation))
    return series


def stays(series: FloatArray, _chance: Chance) -> FloatArray:
    return series


def settles(series: FloatArray, chance: Chance) -> FloatArray:
    """Return series that begin at a random value between half of the level and twice the level. The series approach the
    level with a time constant of 1 to 8 rounds.
    """
    trials, values = series.shape
    excess = chance.uniform(-0.5, 1.0, (trials, 1))
    constant = chance.uniform(1, 8, (trials, 1))
    return series * (1 + excess * np.exp(-np.arange(values) / constant))


def drifts(series: FloatArray, chance: Chance) -> FloatArray:
    """Return series with a linear drift. In a window, the level changes by at most 10 %, which is the slope excursion
    that the PTS permits.
    """
    per_round = chance.uniform(-0.1, 0.1, (len(series), 1)) / (WINDOW - 1)
    return series + per_round * np.arange(series.shape[1])


def strays(series: FloatArray, chance: Chance) -> FloatArray:
    """Return series in which 3 % of the rounds are 10 to 50 % too low."""
    hit = chance.random(series.shape) < 0.03
    return series * (1 - hit * chance.uniform(0.1, 0.5, series.shape))


def shifts(series: FloatArray, chance: Chance) -> FloatArray:
    """Return series of which three in ten change their level at a random round, by up to 15 %."""
    trials, values = series.shape
    at = chance.integers(WINDOW, values, (trials, 1))
    by = chance.uniform(-0.15, 0.15, (trials, 1)) * (chance.random((trials, 1)) < 0.3)
    return series * (1 + by * (np.arange(values) >= at))


def mixed(chance: Chance, trials: int) -> FloatArray:
    """Return series that vary as much as measured series: the correlations are around 0.31 and the noise is
    around 3 %.
    """
    correlation = np.clip(chance.normal(0.31, 0.3, trials), -0.3, 0.95)
    noise = np.exp(chance.normal(np.log(0.03), 0.8, (trials, 1)))
    series: FloatArray = 1 + noise * ar1(chance, trials, ROUNDS + NEXT, correlation)
    return series


def end_of_first_steady(series: FloatArray) -> int | None:
    """Return the number of rounds that a test would run, or None if the test is not steady after 25 rounds."""
    for end in range(WINDOW, ROUNDS + 1):
        values = series[end - WINDOW : end].tolist()
        if judge(range(WINDOW), values, tracking="", unit="", criteria=PTS_CRITERIA).reached:
            return end
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A steady window, with its uncertainty and its last round."""

    value: float
    known: Uncertainty
    end: int


def find_steady(series: FloatArray) -> Steady | None:
    end = end_of_first_steady(series)
    if end is None:
        return None
    window, earlier = series[end - WINDOW : end], series[: end - WINDOW]
    value = float(window.mean())
    known = uncertainty_of_mean(value, window.tolist(), None, 1e-9, earlier=earlier.tolist())
    return Steady(value=value, known=known, end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The results for a number of steady windows. ``held_next`` and ``held_level`` are the shares of windows, in
    percent, whose interval contains the mean of the next rounds or the true level. ``independent_next`` is the share of
    windows whose interval of Student's t contains the mean of the next rounds. ``half_percent`` is the median
    half-width of the interval, in percent of the value.
    """

    windows: int
    held_next: float
    held_level: float
    independent_next: float
    half_percent: float


def count(series: FloatArray) -> Counted:
    found = []
    for one in series:
        steady = find_steady(one)
        if steady is None:
            continue
        value, known, end = steady.value, steady.known, steady.end
        window, following = one[end - WINDOW : end], float(one[end : end + NEXT].mean())
        independent = coverage_factor(WINDOW - 1) * float(window.std(ddof=1)) / sqrt(WINDOW)
        found.append(
            (
                bool(known.covers(following)),
                bool(known.covers(1.0)),
                abs(following - value) <= independent,
                100 * (known.expanded or np.inf) / value,
            )
        )
    columns = np.array(found, dtype=float)
    shares = 100 * columns[:, :3].mean(axis=0)
    return Counted(
        windows=len(found),
        held_next=shares[0],
        held_level=shares[1],
        independent_next=shares[2],
        half_percent=float(np.median(columns[:, 3])),
    )


def cases(trials: int) -> Iterator[tuple[str, Counted]]:
    chance = np.random.default_rng(1)
    for correlation in CORRELATIONS:
        for noise in NOISES:
            series = 1 + noise * ar1(chance, trials, ROUNDS + NEXT, correlation)
            yield f"correlation {correlation:.2f}, noise {100 * noise:2.0f} %", count(series)
    changes: Sequence[Change] = (settles, drifts, strays, shifts)
    for change in changes:
        series = 1 + 0.03 * ar1(chance, trials, ROUNDS + NEXT, 0.31)
        yield f"correlation 0.31, noise  3 %, {change.__name__}", count(change(series, chance))
    for change in (stays, *changes):
        yield (f"correlation and noise mixed, {change.__name__}", count(change(mixed(chance, trials), chance)))
    everything = shifts(strays(settles(mixed(chance, trials), chance), chance), chance)
    yield "correlation and noise mixed, all of it", count(everything)


def count_ratios(noise: FloatArray, levels: FloatArray) -> str:
    """Return a line with two shares for pairs of runs. "Held" is the share of pairs whose interval contains the true
    ratio of their levels. "Separated" is the share of pairs whose interval would distinguish levels that differ by 10
    %.
    """
    found = []
    for one, level in zip(noise * levels, levels, strict=True):
        steady = find_steady(one)
        if steady is not None:
            true = float(level[steady.end - WINDOW : steady.end].mean())
            found.append((steady, true))
    held, apart = [], []
    for (one, true), (other, true_of_other) in zip(found[::2], found[1::2], strict=False):
        ratio = build_ratio(one.value, one.known, other.value, other.known)
        expected = true / true_of_other
        held.append(bool(ratio.covers(expected)))
        apart.append(not ratio.covers(expected / 1.1))
    shares = (f"{100 * np.mean(one):5.1f}" for one in (held, apart))
    return f"{len(held):7}   {'   '.join(shares)}"


def ratios(trials: int) -> Iterator[str]:
    chance = np.random.default_rng(4)
    level = np.ones((2 * trials, ROUNDS))
    for correlation in (0.0, 0.31, 0.5):
        for noise in NOISES:
            series = 1 + noise * ar1(chance, 2 * trials, ROUNDS, correlation)
            name = f"correlation {correlation:.2f}, noise {100 * noise:2.0f} %"
            yield f"{name:40}{count_ratios(series, level)}"
    for change in (stays, settles, drifts, strays, shifts):
        for name in ("correlation 0.31, noise  3 %", "mixed"):
            series = mixed(chance, 2 * trials)[:, :ROUNDS]
            if name != "mixed":
                series = 1 + 0.03 * ar1(chance, 2 * trials, ROUNDS, 0.31)
            changed = level
            if change is strays:  # outlying rounds are random and do not change the level
                series = strays(series, chance)
            else:
                changed = change(level, chance)
            yield f"{f'{name}, {change.__name__}':40}{count_ratios(series, changed)}"
    series = strays(mixed(chance, 2 * trials)[:, :ROUNDS], chance)
    yield f"{'mixed, drifts and strays':40}{count_ratios(series, drifts(level, chance))}"


def long_series(trials: int) -> Iterator[str]:
    """Test the blocking method for several lengths of series and several correlations. Compare the mean of each series
    with the mean of the values that follow the series. The number of following values is twice the length of the
    series. Count how often blocking reports "at least".
    """
    chance = np.random.default_rng(2)
    for values in (20, 60, 300, 1200):
        for correlation in (0.0, 0.31, 0.7, 0.9):
            held, level, limits = 0, 0, 0
            for one in ar1(chance, trials, 3 * values, correlation):
                spread = spread_of_series([one[:values]])
                assert spread is not None
                mean = one[:values].mean()
                held += abs(one[values:].mean() - mean) <= spread.expanded
                level += abs(mean) <= spread.expanded
                limits += spread.at_least
            shares = [f"{100 * share / trials:5.1f}" for share in (held, level, limits)]
            yield f"{values:5} values, correlation {correlation:.2f}   {'   '.join(shares)}"


def shares_of_buckets(mean_ns: float) -> FloatArray:
    """Return the share of exponentially distributed latencies in each bucket."""
    below = 1 - np.exp(-(BUCKET_UPPER_NS + 1.0) / mean_ns)
    shares: FloatArray = np.diff(below, prepend=0.0)
    return shares


USUAL, SLOW = shares_of_buckets(100_000), shares_of_buckets(1_000_000)
"""Shares of I/Os in each bucket, first with a mean latency of 0.1 ms, and then during bursts, in which I/Os take ten
times as long.
"""


def bursting(chance: Chance, bursts: float, ios: int) -> Histogram:
    """Return the histogram of a round with this average number of bursts. Each burst contains 0.05 to 0.2 % of the I/Os
    of the round.
    """
    sizes = ios * chance.uniform(0.0005, 0.002, chance.poisson(bursts))
    return Histogram.from_dense(chance.poisson(USUAL * ios + SLOW * sizes.sum()))


def percentiles(trials: int) -> Iterator[str]:
    chance = np.random.default_rng(3)
    ios = 1_000_000
    for bursts in (0.0, 0.1, 0.3, 1.0, 3.0):
        windows = [[bursting(chance, bursts, ios) for _ in range(WINDOW + NEXT)] for _ in range(trials)]
        for percent in (50.0, 99.0, 99.9):
            place = REPORTED_PERCENTILES.index(percent)
            held, limits, open_ended = 0, 0, 0
            for histograms in windows:
                first, following = (
                    IoStats(histogram=Histogram.sum_of(part)) for part in (histograms[:WINDOW], histograms[WINDOW:])
                )
                known = uncertainties_of_percentiles(first, histograms[:WINDOW], Basis.ROUNDS)[place]
                later_ns = following.histogram.percentile_ns(percent)
                assert known is not None
                assert later_ns is not None
                held += bool(known.covers(later_ns / 1000))
                limits += known.at_least
                open_ended += known.high is None
            shares = [f"{100 * share / trials:5.1f}" for share in (held, limits, open_ended)]
            yield f"{bursts:3.1f} bursts a round, p{percent:g}".ljust(32) + "   ".join(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    trials = parser.parse_args().trials
    print("Steady windows of five rounds: in percent of them the interval holds\n")
    print(f"{'':48} windows  next ten    level  independent, next ten  half of it, %")
    for name, counted in cases(trials):
        print(
            f"{name:48} {counted.windows:7} {counted.held_next:9.1f} {counted.held_level:8.1f}"
            f" {counted.independent_next:22.1f} {counted.half_percent:14.2f}"
        )
    print("\nPairs of windows: their number; ratio of levels held, 10 % told apart (%)\n")
    for line in ratios(trials):
        print(line)
    print("\nLong series by blocking: next twice as many, their level, says at least (%)\n")
    for line in long_series(trials // 2):
        print(line)
    print("\nPercentiles of five rounds: next ten, says at least, no upper end (%)\n")
    for line in percentiles(trials // 4):
        print(line)


if __name__ == "__main__":
    main()
