"""Findings in a series over time, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tkperf.analysis.timeline.drops import Drop
from tkperf.analysis.timeline.levels import LevelKind, RateLevel
from tkperf.analysis.timeline.spikes import PeriodicSpikes
from tkperf.model.workload import Workload


class Recorded(StrEnum):
    """Unit of a series' values. Places are numbers of rounds, else seconds."""

    ROUNDS = "rounds"
    SLICES = "slices"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """Spread of a rate that comes in bursts with idle time between them, so it has no course."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One quantity of one workload over time, and its findings.

    Places count from the start of the stream in seconds, or are numbers of rounds.

    Attributes:
        quantity: key of the quantity.
        values: number of values in the series.
        levels: phases of a rate in order; empty if levels were not sought.
        settled: the rate is level at the end; None: not sought.
        drops: sudden falls of a rate, without falls in its transition.
        spikes: periodic spikes of a latency; None: none.
        bursts: spread of a rate with idle time between its values, for which nothing else is sought; None: no bursts.
    """

    workload: Workload
    quantity: str
    recorded: Recorded
    values: int
    levels: tuple[RateLevel, ...] = ()
    settled: bool | None = None
    drops: tuple[Drop, ...] = ()
    spikes: PeriodicSpikes | None = None
    bursts: Bursts | None = None

    @property
    def changes(self) -> bool:
        """Return whether the rate has more than one level."""
        return self.settled is False or any(
            level.kind is not LevelKind.STEADY for level in self.levels
        )


def preferred(timelines: Sequence[Timeline]) -> tuple[Timeline, ...]:
    """Return each finding once: slices do not repeat a quantity that seconds have, except for its levels."""
    finer = {
        (timeline.workload, timeline.quantity)
        for timeline in timelines
        if timeline.recorded is Recorded.SECONDS
    }
    kept = []
    for timeline in timelines:
        coarse = timeline.recorded is not Recorded.SECONDS
        if not (coarse and (timeline.workload, timeline.quantity) in finer):
            kept.append(timeline)
        elif timeline.levels:
            kept.append(_without_drops(timeline))
    return tuple(kept)


def _without_drops(timeline: Timeline) -> Timeline:
    return Timeline(
        workload=timeline.workload,
        quantity=timeline.quantity,
        recorded=timeline.recorded,
        values=timeline.values,
        levels=timeline.levels,
        settled=timeline.settled,
    )
