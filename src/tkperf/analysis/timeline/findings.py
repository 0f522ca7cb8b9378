"""Findings in a series over time: levels and drops of a rate, periodic spikes of a latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tkperf.analysis.timeline.levels import (
    BACK,
    NEARLY_NOTHING,
    Drop,
    LevelKind,
    Levels,
    RateLevel,
    find_drops,
    find_levels,
)
from tkperf.analysis.timeline.series import Series, has_idle, make_series
from tkperf.analysis.timeline.spikes import LEAST_FOR_SPIKES, PeriodicSpikes, find_periodic_spikes
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN
from tkperf.model.seconds import FloatArray
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
            kept.append(replace(timeline, drops=(), spikes=None, bursts=None))
    return tuple(kept)


SPIKING = (LATENCY_MAX, LATENCY_MEAN)
SEARCHED = (IOPS.key, *(quantity.key for quantity in SPIKING))
"""Keys of the quantities in whose course something is sought."""


def find_timelines(
    workload: Workload,
    recorded: Recorded,
    place: Sequence[float] | FloatArray,
    width: Sequence[float] | FloatArray,
    values: Mapping[str, Sequence[float | None] | FloatArray],
    *,
    as_new: bool,
    levels: bool = True,
) -> Iterator[Timeline]:
    """Yield the findings in a workload's IOPS and latencies over rounds, slices or seconds.

    Args:
        place, width: start and length of each value.
        values: of each quantity in ``SEARCHED``, by its key; None or NaN: not measured.
        as_new: the series begin on a purged device without any writes since.
        levels: report levels, too; without, they only separate drops from transitions.
    """
    about = Timeline(workload=workload, quantity=IOPS.key, recorded=recorded, values=0)
    rate = make_series(place, values[IOPS.key], width)
    about = replace(about, values=len(rate))
    if recorded is Recorded.SLICES and has_idle(place, width):
        if len(rate):
            yield replace(about, bursts=_summarise(rate.values))
        return
    if (found := find_levels(rate, as_new=as_new)) is not None:
        yield replace(
            about,
            levels=found.phases if levels else (),
            settled=found.settled if levels else None,
            drops=_sudden_drops(rate, found),
        )
    for quantity in SPIKING:
        latency = make_series(place, values[quantity.key], width)
        if len(latency) >= LEAST_FOR_SPIKES:
            spikes = find_periodic_spikes(latency)
            yield replace(about, quantity=quantity.key, values=len(latency), spikes=spikes)


def _summarise(values: FloatArray) -> Bursts:
    return Bursts(
        median=float(np.median(values)), least=float(values.min()), most=float(values.max())
    )


def _sudden_drops(series: Series, levels: Levels) -> tuple[Drop, ...]:
    """Return the drops that are not part of the transition from the first level to the steady one."""
    last = levels.phases[-1]
    steady = last if last.kind is LevelKind.STEADY else None
    return tuple(drop for drop in find_drops(series) if not _is_transition(drop, steady))


def _is_transition(drop: Drop, steady: RateLevel | None) -> bool:
    """Return whether a fall leads to the steady level, or may: as at the end of a fast burst after idle time."""
    if steady is None:
        return not drop.recovered and drop.least > NEARLY_NOTHING * drop.before
    falls_to_it = not drop.recovered and steady.value < BACK * drop.before
    return drop.start <= steady.start or falls_to_it
