"""Findings in a series over time: levels and drops of a rate, periodic spikes of a latency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tkperf.analysis.timeline.levels import (
    BACK,
    LEAST_FOR_LEVELS,
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
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, Figures
from tkperf.model.seconds import FloatArray, Seconds
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


SPIKING = (LATENCY_MAX, LATENCY_MEAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Figures of one workload, in the order of measurement."""

    workload: Workload
    recorded: Recorded
    place: tuple[float, ...]
    width: tuple[float, ...]
    figures: tuple[Figures, ...]

    @property
    def has_idle(self) -> bool:
        """Return whether its slices are bursts."""
        return self.recorded is Recorded.SLICES and has_idle(self.place, self.width)

    def series(self, key: str) -> Series:
        """Return the series of one quantity."""
        return make_series(self.place, [figures[key] for figures in self.figures], self.width)


def find_timelines(tracks: Iterable[Track], *, as_new: bool) -> tuple[Timeline, ...]:
    """Return the findings in each workload's IOPS and latencies over rounds or slices.

    Args:
        tracks: figures of the workloads.
        as_new: the series begin on a purged device without any writes since.
    """
    return tuple(timeline for track in tracks for timeline in _find(track, as_new))


def find_in_seconds(
    workload: Workload, seconds: Seconds, *, as_new: bool, levels: bool
) -> tuple[Timeline, ...]:
    """Return the findings in the seconds of a long step or of a stream.

    Args:
        workload: workload of the step.
        seconds: the seconds.
        as_new: they begin on a purged device without any writes since.
        levels: report levels, too, because slices do not give them.
    """

    def series(key: str) -> Series:
        return make_series(seconds.start_s, getattr(seconds, key), seconds.duration_s)

    about = Timeline(workload=workload, quantity="", recorded=Recorded.SECONDS, values=0)
    timelines = list(_spikes(about, {quantity.key: series(quantity.key) for quantity in SPIKING}))
    rate = series(IOPS.key)
    if len(rate) >= LEAST_FOR_LEVELS:
        # Levels separate drops from transitions even if slices already report them.
        levels_of_rate = find_levels(rate, as_new=as_new)
        timelines.insert(
            0,
            _rate(
                about, rate, levels_of_rate if levels else None, _sudden_drops(rate, levels_of_rate)
            ),
        )
    return tuple(timelines)


def _find(track: Track, as_new: bool) -> Iterator[Timeline]:
    about = Timeline(workload=track.workload, quantity="", recorded=track.recorded, values=0)
    rate = track.series(IOPS.key)
    if track.has_idle:
        if len(rate):
            yield replace(
                about, quantity=IOPS.key, values=len(rate), bursts=_summarise(rate.values)
            )
        return
    if len(rate) >= LEAST_FOR_LEVELS:
        levels = find_levels(rate, as_new=as_new)
        yield _rate(about, rate, levels, _sudden_drops(rate, levels))
    yield from _spikes(about, {quantity.key: track.series(quantity.key) for quantity in SPIKING})


def _summarise(values: FloatArray) -> Bursts:
    return Bursts(
        median=float(np.median(values)), least=float(values.min()), most=float(values.max())
    )


def _rate(
    about: Timeline, series: Series, levels: Levels | None, drops: tuple[Drop, ...]
) -> Timeline:
    return replace(
        about,
        quantity=IOPS.key,
        values=len(series),
        levels=() if levels is None else levels.phases,
        settled=None if levels is None else levels.settled,
        drops=drops,
    )


def _sudden_drops(series: Series, levels: Levels | None) -> tuple[Drop, ...]:
    """Return the drops that are not part of the transition from the first level to the steady one."""
    last = None if levels is None else levels.phases[-1]
    steady = last if last is not None and last.kind is LevelKind.STEADY else None
    return tuple(drop for drop in find_drops(series) if not _is_transition(drop, steady))


def _is_transition(drop: Drop, steady: RateLevel | None) -> bool:
    """Return whether a fall leads to the steady level, or may: as at the end of a fast burst after idle time."""
    if steady is None:
        return not drop.recovered and drop.least > NEARLY_NOTHING * drop.before
    falls_to_it = not drop.recovered and steady.value < BACK * drop.before
    return drop.start <= steady.start or falls_to_it


def _spikes(about: Timeline, series: dict[str, Series]) -> Iterator[Timeline]:
    for key, of_quantity in series.items():
        if len(of_quantity) >= LEAST_FOR_SPIKES:
            spikes = find_periodic_spikes(of_quantity)
            yield replace(about, quantity=key, values=len(of_quantity), spikes=spikes)
