"""Drives of one model: the distribution of each headline figure over them, and the outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tkperf.analysis.comparing.entries import Change, judge_change
from tkperf.analysis.comparing.headlines import ComparedHeadline
from tkperf.analysis.comparing.robust import OUTLIER_SCORE, Distribution, describe_distribution
from tkperf.model.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A run beyond the limit of the modified z-score; its own uncertainty does not reach the median."""

    name: str
    value: float
    score: float
    from_median_percent: float
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortFigure:
    """A headline figure over the drives.

    Attributes:
        own_percent: the median over the runs of half the 95 % interval of a single run's figure; None: not known.
    """

    headline: ComparedHeadline
    distribution: Distribution
    own_percent: float | None
    outliers: tuple[Outlier, ...]

    @property
    def spread_percent(self) -> float | None:
        """The spread in percent of the median; unknown (None) if more than half of the runs agree."""
        spread = self.distribution.spread
        return 100 * spread / abs(self.distribution.median) if spread else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A cohort and its figures.

    Attributes:
        model: None if the drives differ in it or it is not known.
        title: the number of drives and their model; it counts runs if the serial numbers are not known or repeat.
    """

    model: str | None
    title: str
    figures: tuple[CohortFigure, ...]


def build_cohort(
    names: Sequence[str],
    models: Sequence[object],
    serials: Sequence[object],
    headlines: Sequence[ComparedHeadline],
) -> Cohort:
    """Return the cohort of these runs; ``models`` and ``serials`` are one for each run, None: not known."""
    one = len(set(models)) == 1 and models[0] is not None
    figures = (_figure(names, headline) for headline in headlines)
    own = all(serials) and len(set(serials)) == len(serials)
    return Cohort(
        model=str(models[0]) if one else None,
        title=format_count(len(names), "drive" if own else "run")
        + (f" of model {models[0]}" if one else ""),
        figures=tuple(figure for figure in figures if figure is not None),
    )


def _figure(names: Sequence[str], headline: ComparedHeadline) -> CohortFigure | None:
    known = [
        (name, entry, entry.value)
        for name, entry in zip(names, headline.entries, strict=True)
        if entry.value is not None
    ]
    if len(known) < 2 or not median([value for _, _, value in known]):
        return None
    distribution = describe_distribution([value for _, _, value in known])
    middle = distribution.median
    scores = distribution.scores or (0.0,) * len(known)
    halves = [
        100 * half / abs(value)
        for _, entry, value in known
        if value
        and entry.uncertainty is not None
        and (half := entry.uncertainty.of_level.expanded) is not None
    ]
    outliers = tuple(
        Outlier(
            name=name,
            value=value,
            score=score,
            from_median_percent=100 * (value / middle - 1),
            change=judge_change(value / middle, headline.measure, within_noise=False),
        )
        for (name, entry, value), score in zip(known, scores, strict=True)
        if abs(score) > OUTLIER_SCORE
        and not (entry.uncertainty is not None and entry.uncertainty.of_level.covers(middle))
    )
    return CohortFigure(
        headline=headline,
        distribution=distribution,
        own_percent=median(halves) if halves else None,
        outliers=tuple(sorted(outliers, key=lambda one: -abs(one.score))),
    )
