"""Uncertainty of means: rates, mean latencies and CPU use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import pi, sqrt

import numpy as np

from tkperf.analysis.uncertainty.estimate import Basis, Uncertainty, build_from_resolution, build_from_spread
from tkperf.analysis.uncertainty.spread import Spread, spread_of_few, spread_of_series
from tkperf.model.measurement import FloatArray, Seconds

# From this number of rounds on, the correlation of neighbouring rounds is measured. If there are fewer rounds, a
# correlation is assumed.
ROUNDS_IN_SERIES = 20

# Standard deviation of the median of normally distributed values, divided by the standard deviation of the mean.
_MEDIAN_STRAYS = sqrt(pi / 2)

ONCE = "measured once, and fewer than 4 seconds are kept of it"


def uncertainty_of_mean(
    value: float, rounds: Sequence[float], within: Spread | None, step: float, *, earlier: Sequence[float] = ()
) -> Uncertainty:
    """Return the uncertainty of a mean. The uncertainty is computed from the spread of the rounds. For a single
    measurement, the uncertainty is computed from the spread of the one-second samples.

    The spread of the rounds includes the random effects within the rounds. An effect that recurs in each round, such as
    a transient after the preceding step, is not random and is not included.

    Args:
        value: the mean.
        rounds: values of the rounds; empty if the differences are not random, as for areas of a disk.
        within: spread of the same mean, computed from the one-second samples of the rounds, or None if unknown.
        step: resolution of the value.
        earlier: the earlier rounds, in order.
    """
    spread, basis = spread_of_rounds(np.array(rounds), np.array(earlier)), Basis.ROUNDS
    if spread is None:
        spread, basis = within, Basis.SECONDS
    if spread is None:
        return Uncertainty(reason=ONCE)
    if spread.standard <= step / sqrt(12):
        return build_from_resolution(value, step)
    return build_from_spread(value, spread, basis, at_least=spread.at_least)


def uncertainty_of_median(value: float, values: Sequence[float], basis: Basis) -> Uncertainty:
    """Return the uncertainty of the median of the slices or rounds of a level. The result is the uncertainty of the
    mean, multiplied by sqrt(pi / 2).
    """
    spread = spread_of_rounds(np.array(values))
    if spread is None:
        return Uncertainty(reason="fewer than two slices or rounds are at hand")
    wider = replace(spread, standard=spread.standard * _MEDIAN_STRAYS, of_level=spread.of_level * _MEDIAN_STRAYS)
    return build_from_spread(value, wider, basis, at_least=spread.at_least)


def uncertainty_of_levels(value: float, rates: Sequence[float]) -> Uncertainty:
    """Return the uncertainty of the mean rate of levels with rising offered rates. The order of these levels does not
    show a change over time.
    """
    spread = spread_of_few(np.array(rates), in_time=False)
    if spread is None:
        return Uncertainty(reason=ONCE)
    return build_from_spread(value, spread, Basis.LEVELS, at_least=False)


def spread_of_rounds(values: FloatArray, earlier: FloatArray | None = None) -> Spread | None:
    """Return the spread of rounds. If there are many rounds, the correlation of neighbouring rounds is measured. If
    there are few rounds, a correlation is assumed.
    """
    if values.size >= ROUNDS_IN_SERIES:
        return spread_of_series([values])
    return spread_of_few(values, earlier)


def rates_within(seconds: Sequence[Seconds], column: str) -> Spread | None:
    """Return the spread of the mean rate over all rounds, computed from the one-second samples of each round.
    ``column`` is the name of the column that contains the rate.
    """
    return spread_of_series([_ratio_series(getattr(one, column) * one.duration_s, one.duration_s) for one in seconds])


def latencies_within(seconds: Sequence[Seconds]) -> Spread | None:
    """Return the spread of the mean latency over all rounds, computed from the one-second samples of each round. Within
    a round, each I/O has the same weight.
    """
    return spread_of_series([_latency_series(one) for one in seconds])


def _latency_series(seconds: Seconds) -> FloatArray:
    measured = ~np.isnan(seconds.latency_mean_us)
    ios = np.where(measured, seconds.iops * seconds.duration_s, 0.0)
    return _ratio_series(np.where(measured, seconds.latency_mean_us, 0.0) * ios, ios)


def _ratio_series(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a series with the mean 0 and the same spread as the ratio sum(above) / sum(below).

    The ratio of two sums is linearised (Cochran 1977, 6.4), so a short last second and seconds with few I/Os have
    little weight.
    """
    whole = below.sum()
    if not below.size or not whole > 0:
        return np.empty(0)
    residuals: FloatArray = (above - above.sum() / whole * below) / (whole / below.size)
    return residuals
