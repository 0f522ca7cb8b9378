"""Drives of one model: the distribution of each headline figure over them, and the outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tkperf.analysis.comparing.entries import Change, ComparedRow, judge_change
from tkperf.analysis.comparing.robust import OUTLIER_SCORE, Distribution, describe_distribution


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

    row: ComparedRow
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
        distinct: each run has a serial number of its own.
    """

    model: str | None
    distinct: bool
    figures: tuple[CohortFigure, ...]


def build_cohort(
    names: Sequence[str], devices: Sequence[Mapping[str, object]], rows: Sequence[ComparedRow]
) -> Cohort:
    """Return the cohort of these runs; ``devices`` are the recorded facts of each run's drive."""
    models = {device.get("model") for device in devices}
    serials = [device.get("serial") for device in devices]
    (model,) = models if len(models) == 1 else (None,)
    figures = (_figure(names, row) for row in rows)
    return Cohort(
        model=None if model is None else str(model),
        distinct=all(serials) and len(set(serials)) == len(serials),
        figures=tuple(figure for figure in figures if figure is not None),
    )


def _figure(names: Sequence[str], row: ComparedRow) -> CohortFigure | None:
    known = [
        (name, entry, entry.value)
        for name, entry in zip(names, row.entries, strict=True)
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
            change=judge_change(value / middle, row.quantity, within_noise=False),
        )
        for (name, entry, value), score in zip(known, scores, strict=True)
        if abs(score) > OUTLIER_SCORE
        and not (entry.uncertainty is not None and entry.uncertainty.of_level.covers(middle))
    )
    return CohortFigure(
        row=row,
        distribution=distribution,
        own_percent=median(halves) if halves else None,
        outliers=tuple(sorted(outliers, key=lambda one: -abs(one.score))),
    )
