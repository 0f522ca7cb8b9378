"""Robust statistics of few values: they assume no distribution, and one odd value changes little.

Formulas and sources: docs/method.md, cohorts and history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial
from statistics import median, quantiles

from tkperf.analysis.uncertainty.student import COVERAGE_PERCENT

OUTLIER_SCORE = 3.5
"""Limit of the modified z-score (Iglewicz, Hoaglin 1993; NIST/SEMATECH 1.3.5.17)."""
FEWEST_SCORED = 5
"""Fewest runs that can show an outlier."""
FEWEST_IN_TREND = 5
"""Fewest runs with an interval of 95 %: each order of four values has a chance of 1 in 24."""
# Standard deviation of normally distributed values, as a multiple of the median (or the mean) of their
# absolute deviations from the middle.
_SIGMAS_OF_MAD = 1.4826
_SIGMAS_OF_MEAN = 1.2533
_BEYOND = (100 - COVERAGE_PERCENT) / 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Distribution of one figure over runs, in its unit.

    Attributes:
        spread: estimate of the standard deviation, from the median absolute deviation (MAD).
        median_low, median_high: interval that covers the median of all such drives with 95 %;
            None with fewer than six values.
        lower_quartile, upper_quartile: half of the values lie between them.
        scores: modified z-score of each value; None with fewer than five values.
    """

    count: int
    median: float
    median_low: float | None
    median_high: float | None
    spread: float
    lowest: float
    lower_quartile: float
    upper_quartile: float
    highest: float
    scores: tuple[float, ...] | None


def describe_distribution(values: Sequence[float]) -> Distribution:
    """Return the distribution of two or more values."""
    ordered, middle = sorted(values), median(values)
    rank = _rank_of_median(len(values))
    lower, _, upper = quantiles(values, n=4, method="inclusive")
    strays = [abs(value - middle) for value in values]
    return Distribution(
        count=len(values),
        median=middle,
        median_low=None if rank is None else ordered[rank],
        median_high=None if rank is None else ordered[-1 - rank],
        spread=_SIGMAS_OF_MAD * median(strays),
        lowest=ordered[0],
        lower_quartile=lower,
        upper_quartile=upper,
        highest=ordered[-1],
        scores=_scores(values, middle, strays) if len(values) >= FEWEST_SCORED else None,
    )


def _scores(values: Sequence[float], middle: float, strays: Sequence[float]) -> tuple[float, ...]:
    """0.6745 (x - median) / MAD; the mean absolute deviation replaces a MAD of 0."""
    sigma = _SIGMAS_OF_MAD * median(strays) or _SIGMAS_OF_MEAN * sum(strays) / len(strays)
    return tuple((value - middle) / sigma if sigma else 0.0 for value in values)


def _rank_of_median(count: int) -> int | None:
    """Return how many values the interval leaves out at either end; each value is below the median by one half."""
    below, rank = 0.0, None
    for number in range(count // 2):
        below += comb(count, number) / 2**count
        if below > _BEYOND:
            break
        rank = number
    return rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A straight line by Theil and Sen's method.

    Attributes:
        slope: median of the slopes of all pairs, per unit of the places.
        low, high: interval of 95 % of the slope; None with too few values, or with two at one place.
        at: place of the line's ``level``, the median of the places.
    """

    slope: float
    low: float | None
    high: float | None
    at: float
    level: float

    @property
    def beyond_noise(self) -> bool | None:
        """Return whether the interval excludes 0; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


def find_trend(places: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Return Theil and Sen's estimate; None without two places.

    Sen (1968): the interval leaves out as many of the ordered slopes at either end as Kendall's tau
    allows pairs out of order by chance.
    """
    pairs = combinations(zip(places, values, strict=True), 2)
    slopes = sorted((y - b) / (x - a) for (a, b), (x, y) in pairs if x != a)
    if not slopes:
        return None
    slope, at = median(slopes), median(places)
    tied = len(set(places)) < len(places)
    rank = None if tied else _rank_of_slopes(len(values))
    return Trend(
        slope=slope,
        low=None if rank is None else slopes[rank],
        high=None if rank is None else slopes[-1 - rank],
        at=at,
        level=median(y - slope * (x - at) for x, y in zip(places, values, strict=True)),
    )


def _rank_of_slopes(count: int) -> int | None:
    """Return how many slopes the interval leaves out at either end; None if there is no interval."""
    orders, most = 0, _BEYOND * factorial(count)
    for left_out, found in enumerate(_inversions(count)):
        orders += found
        if orders > most:
            return left_out - 1 if left_out else None
    return None


def _inversions(count: int) -> list[int]:
    """Count the orders of so many values that have 0, 1, 2 ... pairs out of order."""
    found = [1]
    for number in range(2, count + 1):
        longer, running = [], 0
        for place in range(len(found) + number - 1):
            running += found[place] if place < len(found) else 0
            running -= found[place - number] if place >= number else 0
            longer.append(running)
        found = longer
    return found
