"""Findings in a series over time. The findings are levels and drops of a rate, and periodic spikes of a latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isclose

import numpy as np

from tkperf.analysis.timeline.levels import (
    BACK,
    BAND,
    LASTING,
    LEAST_FOR_LEVELS,
    MOST_CHANGE_AT_END,
    NEARLY_NOTHING,
    Drop,
    LevelKind,
    Levels,
    RateLevel,
    Swing,
    find_drops,
    find_levels,
)
from tkperf.analysis.timeline.series import Series, has_idle, make_series
from tkperf.analysis.timeline.spikes import LEAST_FOR_SPIKES, PeriodicSpikes, find_periodic_spikes
from tkperf.model.measurement import FloatArray
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN
from tkperf.model.workload import Workload


class Recorded(StrEnum):
    """The kind of record to which each value of a series belongs. Places are the numbers of rounds, or times in s."""

    ROUNDS = "rounds"
    SLICES = "slices"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """The spread of the rate of a load that issues I/Os in bursts, with idle time between the bursts. tkperf does not
    search for levels and drops in such a rate.
    """

    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The findings in the series of one quantity of one workload over time.

    Places are times in s from the start of the stream, or numbers of rounds.

    Attributes:
        quantity: key of the quantity.
        values: number of values in the series.
        levels: phases of a rate in order; empty if tkperf did not search for levels.
        settled: whether the rate is steady at the end, or None if tkperf did not search for levels.
        end_change_percent: fitted change of the rate over the last quarter, in percent of the median of this quarter. A
            negative value means that the rate falls. None means that tkperf did not search for levels.
        end_noise_percent: change over the last quarter that noise alone can explain, in percent of the same median.
            None means that tkperf did not search for levels.
        swing: spread of a rate that did not settle because it varies around a level, or None if there is no swing.
        is_too_short: whether the last quarter has too few values to decide whether the rate settled.
        drops: sudden falls of a rate. A fall to the last level of the rate is not included.
        spikes: periodic spikes of a latency, or None if there are no periodic spikes.
        bursts: spread of a rate with idle time between its values. Such a rate has no other findings. None means that
            there are no bursts.
    """

    workload: Workload
    quantity: str
    recorded: Recorded
    values: int
    levels: tuple[RateLevel, ...] = ()
    settled: bool | None = None
    end_change_percent: float | None = None
    end_noise_percent: float | None = None
    swing: Swing | None = None
    is_too_short: bool = False
    drops: tuple[Drop, ...] = ()
    spikes: PeriodicSpikes | None = None
    bursts: Bursts | None = None

    @property
    def still_changes_percent(self) -> float | None:
        """Return the change of a rate over the last quarter in percent, if the rate did not settle. None means that the
        rate settled, that the change is small or within noise, or that tkperf did not search for levels.
        """
        change, noise = self.end_change_percent, self.end_noise_percent
        if self.settled is not False or change is None or noise is None:
            return None
        return change if abs(change) > max(100 * MOST_CHANGE_AT_END, noise) else None

    @property
    def changes(self) -> bool:
        """Return whether the rate has more than one level."""
        return self.settled is False or any(level.kind is not LevelKind.STEADY for level in self.levels)


def preferred(timelines: Sequence[Timeline]) -> tuple[Timeline, ...]:
    """Return each finding once. If the one-second samples of a workload show findings about a quantity, the same
    findings in the slices are omitted.
    """
    finer = {(timeline.workload, timeline.quantity) for timeline in timelines if timeline.recorded is Recorded.SECONDS}
    return tuple(
        timeline
        for timeline in timelines
        if timeline.recorded is Recorded.SECONDS or (timeline.workload, timeline.quantity) not in finer
    )


def without_levels(timeline: Timeline) -> Timeline:
    """Return the timeline of slices without levels, because the one-second samples show the levels more precisely."""
    return replace(
        timeline,
        levels=(),
        settled=None,
        end_change_percent=None,
        end_noise_percent=None,
        swing=None,
        is_too_short=False,
    )


SPIKING = (LATENCY_MAX, LATENCY_MEAN)
SEARCHED = (IOPS.key, *(quantity.key for quantity in SPIKING))
"""Keys of the quantities for which tkperf searches for findings over time."""
MOST_DOWN = 0.2
"""The largest share of the values that may belong to drops.

If a rate stays low for a longer time, it has no meaningful level between the drops.
"""


def find_timelines(
    workload: Workload,
    recorded: Recorded,
    place: Sequence[float] | FloatArray,
    width: Sequence[float] | FloatArray,
    values: Mapping[str, Sequence[float | None] | FloatArray],
    *,
    as_new: bool,
) -> Iterator[Timeline]:
    """Yield the findings in the IOPS and latencies of a workload over rounds, slices or seconds.

    Args:
        place, width: start and length of each value.
        values: the values of each quantity in ``SEARCHED``. The keys are those of the quantities. None or NaN means
            that a value was not measured.
        as_new: whether the series begin on a purged device to which nothing was written.
    """
    about = Timeline(workload=workload, quantity=IOPS.key, recorded=recorded, values=0)
    rate = make_series(place, values[IOPS.key], width)
    about = replace(about, values=len(rate))
    if recorded is Recorded.SLICES and has_idle(place, width):
        if len(rate):
            yield replace(about, bursts=_summarise(rate.values))
        return
    drops = find_drops(rate)
    if (found := find_levels(_without_drops(rate, drops), as_new=as_new)) is not None:
        yield replace(
            about,
            levels=_with_bytes(found.phases, rate, workload),
            settled=found.settled,
            end_change_percent=found.end_change_percent,
            end_noise_percent=found.end_noise_percent,
            swing=found.swing,
            is_too_short=found.is_too_short,
            drops=tuple(
                _with_level_after(drop, found, rate.spacing)
                for drop in drops
                if _recurs(drop, drops) or not _is_transition(drop, found, rate.spacing)
            ),
        )
    for quantity in SPIKING:
        latency = make_series(place, values[quantity.key], width)
        if len(latency) >= LEAST_FOR_SPIKES:
            spikes = find_periodic_spikes(latency)
            yield replace(about, quantity=quantity.key, values=len(latency), spikes=spikes)


def _summarise(values: FloatArray) -> Bursts:
    return Bursts(median=float(np.median(values)), least=float(values.min()), most=float(values.max()))


def _without_drops(rate: Series, drops: Sequence[Drop]) -> Series:
    """Return a rate without the values during drops from which the rate recovered. If there are too many such values,
    return the whole rate.

    A level consists of the values between drops. If a rate stays low for more than a fifth of the time, it has no such
    level.
    """
    kept = np.ones(len(rate), dtype=bool)
    for drop in drops:
        if drop.recovered:
            kept &= (rate.place < drop.start) | (rate.place + rate.width > drop.end)
    left = int(kept.sum())
    if left < max(LEAST_FOR_LEVELS, (1 - MOST_DOWN) * len(rate)):
        return rate
    return Series(place=rate.place[kept], width=rate.width[kept], values=rate.values[kept])


def _with_bytes(levels: Sequence[RateLevel], rate: Series, workload: Workload) -> tuple[RateLevel, ...]:
    """Return the levels with the bytes that were read and written up to the end of each level. For rounds, the bytes
    are not known.
    """
    if not rate.width.all():
        return tuple(levels)
    moved = np.cumsum(rate.values * rate.width) * workload.mean_block_bytes
    return tuple(
        replace(level, end_bytes=float(moved[np.searchsorted(rate.place, level.end - 1e-6) - 1])) for level in levels
    )


def _is_transition(drop: Drop, found: Levels, spacing: float) -> bool:
    """Return whether a fall without recovery leads to the last level, or belongs to a rate that is still changing.

    A fall from one level to a second level that is not the last level counts as a drop.
    """
    if drop.recovered or _find_level_after(drop, found, spacing) is not None:
        return False
    last = found.phases[-1]
    if last.kind is LevelKind.STEADY:
        return drop.start <= last.start or last.value < BACK * drop.before
    return drop.after > NEARLY_NOTHING * drop.before


def _find_level_after(drop: Drop, found: Levels, spacing: float) -> RateLevel | None:
    """Return the second level if a fall without recovery leads to this level."""
    if drop.recovered:
        return None
    for level in found.phases:
        if level.kind is LevelKind.SECOND and abs(drop.start - level.start) <= LASTING * spacing:
            return level
    return None


def _with_level_after(drop: Drop, found: Levels, spacing: float) -> Drop:
    """Return a drop to a second level. The value after the drop is that of the second level, because this value is more
    precise than a median of nine seconds.
    """
    level = _find_level_after(drop, found, spacing)
    return drop if level is None else replace(drop, after=level.value)


def _recurs(drop: Drop, drops: Sequence[Drop]) -> bool:
    """Return whether the rate recovered from an earlier, similar fall. If so, the rate is likely to recover after the
    end of the series.
    """
    return any(
        earlier.recovered
        and earlier.start < drop.start
        and isclose(earlier.before, drop.before, rel_tol=BAND)
        and isclose(earlier.after, drop.after, rel_tol=BAND)
        for earlier in drops
    )
