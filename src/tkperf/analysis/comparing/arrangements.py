"""Statistics of cohorts (drives of one model) and histories (runs of one drive): distributions, outliers and trends.

The statistics do not assume a certain distribution, and a single unusual value changes a statistic only slightly (see
docs/explanation/method.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb
from statistics import median, quantiles

import numpy as np

from tkperf.analysis.comparing.compared_rows import Change, ComparedRow, judge_change
from tkperf.analysis.uncertainty.estimate import build_exact, build_ratio
from tkperf.analysis.uncertainty.spread import COVERAGE_PERCENT
from tkperf.model.measurement import FloatArray
from tkperf.model.same_device import find_measured_part

OUTLIER_SCORE = 3.5
"""The limit of the modified z-score for outliers (Iglewicz, Hoaglin 1993; NIST/SEMATECH 1.3.5.17)."""
FEWEST_SCORED = 5
"""The smallest number of runs for which tkperf searches for outliers."""
FEWEST_IN_TREND = 5
"""The smallest number of runs for which a trend has a 95 % interval. Four values are too few, because any particular
order of four values appears by chance with a probability of 1 in 24.
"""
# Factors by which the deviations from the median are multiplied to estimate the standard deviation of normally
# distributed values. The first factor applies to the median of the absolute deviations, and the second factor to their
# mean.
_SIGMAS_OF_MAD = 1.4826
_SIGMAS_OF_MEAN = 1.2533
_BEYOND = (100 - COVERAGE_PERCENT) / 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortDistribution:
    """Distribution of a figure over several runs. All values have the unit of the figure.

    Attributes:
        spread: estimate of the standard deviation, from the median absolute deviation (MAD).
        median_low, median_high: 95 % interval of the median of all drives of this kind, or None if there are fewer than
            six values.
        lower_quartile, upper_quartile: limits between which half of the values lie.
        scores: modified z-score of each value, or None if there are fewer than five values.
        outlier_low, outlier_high: limits for the search for outliers. A value outside these limits is an outlier,
            unless its uncertainty interval contains the median. None means that there are fewer than five values.
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
    outlier_low: float | None = None
    outlier_high: float | None = None


def describe_distribution(values: Sequence[float]) -> CohortDistribution:
    """Return the distribution of two or more values."""
    ordered, middle = sorted(values), median(values)
    rank = _rank_of_median(len(values))
    lower, _, upper = quantiles(values, n=4, method="inclusive")
    deviations = [abs(value - middle) for value in values]
    sigma = _estimate_sigma(deviations)
    scored = len(values) >= FEWEST_SCORED
    return CohortDistribution(
        count=len(values),
        median=middle,
        median_low=None if rank is None else ordered[rank],
        median_high=None if rank is None else ordered[-1 - rank],
        spread=_SIGMAS_OF_MAD * median(deviations),
        lowest=ordered[0],
        lower_quartile=lower,
        upper_quartile=upper,
        highest=ordered[-1],
        scores=tuple((value - middle) / sigma if sigma else 0.0 for value in values) if scored else None,
        outlier_low=middle - OUTLIER_SCORE * sigma if scored else None,
        outlier_high=middle + OUTLIER_SCORE * sigma if scored else None,
    )


def _estimate_sigma(deviations: Sequence[float]) -> float:
    """Return the estimate of the standard deviation that is the divisor of the modified z-score. The estimate is MAD /
    0.6745. If the MAD is 0, the mean absolute deviation is used instead of the MAD.
    """
    return _SIGMAS_OF_MAD * median(deviations) or _SIGMAS_OF_MEAN * sum(deviations) / len(deviations)


def _rank_of_median(count: int) -> int | None:
    """Return how many of the lowest values lie below the 95 % interval of the median. The same number of the highest
    values lies above the interval. None means that there are too few values for an interval. Each value is below the
    true median with a probability of one half.
    """
    return _left_out([comb(count, number) / 2**count for number in range(count // 2)])


def _left_out(chances: Sequence[float] | FloatArray) -> int | None:
    """Return the greatest index up to which the sum of the probabilities does not exceed 2.5 %. None means that the
    first probability already exceeds 2.5 %.
    """
    number = int(np.searchsorted(np.cumsum(chances), _BEYOND, side="right")) - 1
    return None if number < 0 else number


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A straight line through values, fitted with the method of Theil and Sen. The place of a value is its position on
    the horizontal axis, such as the time of a run.

    Attributes:
        slope: median of the slopes between all pairs of values. A slope is the change of the value for each unit of the
            places.
        low, high: 95 % interval of the slope, or None if there are too few values or two values have the same place.
        at, level: a point of the line. ``at`` is the median of the places, and ``level`` is the value of the line at
            this place.
    """

    slope: float
    low: float | None
    high: float | None
    at: float
    level: float

    @property
    def beyond_noise(self) -> bool | None:
        """Return whether the interval of the slope excludes 0, or None if there is no interval."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


def find_trend(places: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Return the trend of values, estimated with the method of Theil and Sen, or None if all values have the same
    place.

    The interval is that of Sen (1968). At each end, some of the ordered slopes lie outside the interval. The number of
    these slopes follows from Kendall's tau, and is computed from the number of pairs that can be out of order by
    chance.
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
    """Return how many of the lowest slopes lie below the 95 % interval. The same number of the highest slopes lies
    above the interval. None means that there are too few values for an interval.
    """
    # The array contains the probabilities that 0, 1, 2 ... pairs are out of order. In a random order, all possible
    # numbers of earlier values that exceed a given value have the same probability.
    chances = np.ones(1)
    for number in range(2, count + 1):
        chances = np.convolve(chances, np.full(number, 1 / number))
    return _left_out(chances)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A run for which the modified z-score of the value exceeds the limit for outliers."""

    name: str
    value: float
    score: float
    from_median_percent: float
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortValue:
    """A headline figure of the drives of a cohort.

    Attributes:
        own_percent: the half-width of the 95 % interval of the figure in a single run, in percent. The median over all
            runs is used. None means that the half-width is not known.
        outliers: runs whose score exceeds the limit for outliers, and whose uncertainty interval does not contain the
            median.
        unsure: all other runs whose score exceeds this limit. Most of these runs did not reach steady state.
    """

    row: ComparedRow
    distribution: CohortDistribution
    own_percent: float | None
    outliers: tuple[Outlier, ...]
    unsure: tuple[Outlier, ...] = ()

    @property
    def spread_percent(self) -> float | None:
        """Return the spread in percent of the median. None means that the spread is not known, because more than half
        of the runs have the same value.
        """
        spread = self.distribution.spread
        return 100 * spread / abs(self.distribution.median) if spread else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A cohort and its figures.

    Attributes:
        model: the model of the drives; None if the drives have different models or a model is not known.
        distinct: whether all runs have different serial numbers.
    """

    model: str | None
    distinct: bool
    figures: tuple[CohortValue, ...]


def build_cohort(names: Sequence[str], devices: Sequence[Mapping[str, object]], rows: Sequence[ComparedRow]) -> Cohort:
    """Return the cohort that consists of these runs. ``devices`` contains the recorded facts about the drive of each
    run.
    """
    models = {device.get("model") for device in devices}
    serials = [device.get("serial") for device in devices]
    (model,) = models if len(models) == 1 else (None,)
    figures = (_cohort_figure(names, row) for row in rows)
    return Cohort(
        model=None if model is None else str(model),
        distinct=all(serials) and len(set(serials)) == len(serials),
        figures=tuple(figure for figure in figures if figure is not None),
    )


def _cohort_figure(names: Sequence[str], row: ComparedRow) -> CohortValue | None:
    known = [
        (name, entry, entry.value) for name, entry in zip(names, row.entries, strict=True) if entry.value is not None
    ]
    if len(known) < 2 or not median([value for _, _, value in known]):
        return None
    distribution = describe_distribution([value for _, _, value in known])
    middle = distribution.median
    scores = distribution.scores or (0.0,) * len(known)
    halves = [
        100 * half / abs(value)
        for _, entry, value in known
        if value and entry.uncertainty is not None and (half := entry.uncertainty.of_level.expanded) is not None
    ]
    outliers: list[Outlier] = []
    unsure: list[Outlier] = []
    for (name, entry, value), score in zip(known, scores, strict=True):
        if abs(score) <= OUTLIER_SCORE:
            continue
        far = Outlier(
            name=name,
            value=value,
            score=score,
            from_median_percent=100 * (value / middle - 1),
            change=judge_change(value / middle, row.quantity, within_noise=False),
        )
        of_median = build_ratio(value, entry.uncertainty, middle, build_exact(middle))
        (unsure if of_median.covers(1.0) else outliers).append(far)
    return CohortValue(
        row=row,
        distribution=distribution,
        own_percent=median(halves) if halves else None,
        outliers=tuple(sorted(outliers, key=lambda one: -abs(one.score))),
        unsure=tuple(unsure),
    )


# Units of time for a trend, each with its length in days. The trend uses the first unit that is not longer than the
# time between the first and the last run. If all units are longer, the trend uses the last unit.
_PERIODS = {"year": 365.0, "30 days": 30.0, "day": 1.0, "hour": 1 / 24, "minute": 1 / 1440}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryValue:
    """The trend of a headline figure.

    Attributes:
        trend: trend of the values, in percent of their median, over the time since the first run. The unit of this time
            is the period of the history. None means that there are fewer than two values.
        change: better, worse, or within noise.
    """

    row: ComparedRow
    median: float
    trend: Trend | None
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareChange:
    """A change of firmware between two runs.

    Attributes:
        name: name of the first run with the new firmware.
        day: middle of the time between the two runs, in days since 1970.
    """

    name: str
    day: float
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The history of a drive.

    Attributes:
        period, period_days: unit of time of the trends, such as ``30 days``, and the length of this unit in days.
        days: start of each run, in days since 1970.
    """

    serial: str | None
    period: str
    period_days: float
    days: tuple[float, ...]
    figures: tuple[HistoryValue, ...]
    firmware: tuple[FirmwareChange, ...]


def build_history(
    names: Sequence[str], devices: Sequence[Mapping[str, object]], days: Sequence[float], rows: Sequence[ComparedRow]
) -> History:
    """Return the history of a drive. The arguments list the runs in the order of their dates. ``devices`` contains the
    facts about the drive in each run.
    """
    spanned = days[-1] - days[0]
    period = next((name for name, length in _PERIODS.items() if spanned >= length), "minute")
    parts = {find_measured_part(device) for device in devices}
    serial = devices[0].get("serial") if len(parts) == 1 else None
    return History(
        serial=None if serial is None else str(serial),
        period=period,
        period_days=_PERIODS[period],
        days=tuple(days),
        figures=tuple(_history_figure(row, days, _PERIODS[period]) for row in rows),
        firmware=tuple(_find_changes(names, [one.get("firmware") for one in devices], days)),
    )


def _history_figure(row: ComparedRow, days: Sequence[float], period_days: float) -> HistoryValue:
    known = [
        ((day - days[0]) / period_days, entry.value)
        for day, entry in zip(days, row.entries, strict=True)
        if entry.value is not None
    ]
    middle = median([value for _, value in known])
    trend = find_trend([place for place, _ in known], [100 * value / middle for _, value in known]) if middle else None
    return HistoryValue(row=row, median=middle, trend=trend, change=_judge(row, trend))


def _judge(row: ComparedRow, trend: Trend | None) -> Change:
    if trend is None or trend.beyond_noise is None:
        return Change.INCONCLUSIVE
    rises = 2.0 if trend.slope > 0 else 0.5
    return judge_change(rises, row.quantity, within_noise=not trend.beyond_noise)


def _find_changes(names: Sequence[str], firmware: Sequence[object], days: Sequence[float]) -> list[FirmwareChange]:
    """Return each change of firmware between successive runs with known firmware."""
    known = [(name, str(version), day) for name, version, day in zip(names, firmware, days, strict=True) if version]
    return [
        FirmwareChange(name=name, day=(last + day) / 2, before=before, after=after)
        for (_, before, last), (name, after, day) in pairwise(known)
        if before != after
    ]
