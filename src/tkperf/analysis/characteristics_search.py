"""Find the characteristics of sections: recovery, saturation, levels, drops and spikes. This module also detects the
cache of a drive from the change of the write rate over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from tkperf.analysis.characteristics import (
    AFTER_FRESH,
    AFTER_FRESH_UNTIL,
    AFTER_RECOVERY,
    DROPS,
    FRESH,
    FRESH_UNTIL,
    NO_BACKLOG,
    RECOVERY,
    SATURATED,
    SHARE_OF_FIRST,
    SPIKE_PERIODS,
    STEADY,
    STEADY_FROM,
    Characteristic,
)
from tkperf.analysis.loads_together import find_factors, find_reads_within_limit
from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.analysis.timeline.levels import LevelKind, RateLevel
from tkperf.analysis.timeline.series import spread
from tkperf.analysis.timeline.timelines import Recorded, Timeline, preferred
from tkperf.analysis.uncertainty.estimate import EXTREME, Basis, Uncertainty, build_between, build_ratio
from tkperf.analysis.uncertainty.means import uncertainty_of_levels, uncertainty_of_median
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import BACKLOG, IOPS, IOS, QUANTITIES, Measure, Quantity, find_quantities
from tkperf.model.workload import Arrival, Workload
from tkperf.procedures.building_blocks import ARRIVALS_SPREAD

LEAST_DONE = 0.99
"""A level has a backlog if the device completed less than this share of the offered I/Os. Random arrivals are allowed
for, because fewer I/Os may then be due by chance.
"""
MOST_SATURATED_RANGE = 0.20
"""The greatest allowed difference between the rates of saturated levels, as a share of the mean of these rates. The PTS
allows the same range within a steady window.

If the difference is greater, the rate of the drive falls when the offered rate rises. The mean of such rates is not a
useful rate of the drive.
"""
LEAST_BEHIND_S = 0.01
"""As many I/Os as are offered during this time, in s, may wait without counting as a backlog. fio reports times with a
resolution of 1 ms, and this time is ten times as long.
"""
NOISE_SIGMAS = 3.0
"""The number of standard deviations by which noise can increase the number of I/Os that wait at the end of a level."""
RECOVERED_WITHIN = 0.05
"""A rate counts as recovered unless the rate is lower than the earlier rate by more than this share of the earlier
rate.
"""
RECOVERED_SIGMAS = 50.0
"""The limit for a recovered rate, expressed in standard deviations of the earlier slices. The smaller of the limits
``RECOVERED_WITHIN`` and ``RECOVERED_SIGMAS`` applies.

If the earlier rate never varied, a recovered rate must not be lower than the earlier rate at all.
"""
CLOCK_S = 0.001
"""The resolution, in s, of the time at which a slice ends. fio reports times in ms."""
RANDOM_RATE_ERROR = 0.01
"""Relative difference between the rate at which fio issues I/Os at random times (Poisson process) and the offered rate.
"""

_Measured = dict[tuple[Workload, Recorded], list[tuple[float, float, CellResult]]]
"""Start, end and values of each slice or round. The keys are the workload and the kind of record."""

_BY_RULE = Uncertainty(reason="found by a rule, not measured")


def with_characteristics(test: TestResult) -> TestResult:
    """Return the test with the characteristics of each section."""
    of_neighbours = _of_neighbours(test)
    return replace(
        test,
        sections=tuple(
            replace(
                section,
                characteristics=(
                    *_saturation(section),
                    *of_neighbours.get(section.name, ()),
                    *find_reads_within_limit(section),
                    *find_factors(section),
                    *_over_time(section),
                ),
            )
            for section in test.sections
        ),
    )


def find_characteristic(section: SectionResult, measure: Measure) -> Characteristic | None:
    """Return the first characteristic of this measure in a section, or None if the analysis did not search for this
    characteristic.
    """
    return next((found for found in section.characteristics if found.key == measure.key), None)


def changes(section: SectionResult, workload: Workload) -> bool:
    """Return whether a workload changed over time. A workload changed if its rate had several levels or did not settle,
    or if tkperf found a drop or periodic spikes.
    """
    return any(
        timeline.changes or timeline.drops or timeline.spikes
        for timeline in section.timelines
        if timeline.workload == workload
    )


def has_backlog(cell: CellResult) -> bool:
    """Return whether a level has a backlog. A level has a backlog if the device completed too few of the offered I/Os,
    or if too many I/Os wait.

    Too many I/Os wait if their number exceeds the sum of four numbers: the outstanding I/Os that the level allows, the
    I/Os offered in 10 ms, the number of I/Os that random arrivals explain, and the number of I/Os that the noise of the
    one-second samples explains. Two numbers are compared with this sum: the number of I/Os that wait at the end of the
    level, and the median number of waiting I/Os over the second half of the level. A level has a backlog if either
    number exceeds the sum. Because a median is used, a short stall is not a backlog if the drive later caught up with
    the offered rate. If a level has few or no samples, only the end of the level is judged.
    """
    offered_iops, undone_ios = cell.workload.offered_iops, cell.value(BACKLOG)
    waiting_ios = [ios for ios in (cell.backlog_median_ios, undone_ios) if ios is not None]
    if offered_iops is None or not waiting_ios:
        return True
    due_ios = (cell.value(IOS) or 0.0) + (undone_ios or 0.0)
    at_random_ios = ARRIVALS_SPREAD * cell.workload.arrivals_deviation(due_ios)
    if cell.workload.arrival is Arrival.POISSON:
        at_random_ios += RANDOM_RATE_ERROR * due_ios
    by_noise_ios = NOISE_SIGMAS * (cell.backlog_noise_ios or 0.0)
    if (undone_ios or 0.0) > (1 - LEAST_DONE) * due_ios + at_random_ios:
        return True
    limit_ios = cell.workload.total_outstanding_ios + offered_iops * LEAST_BEHIND_S
    return max(waiting_ios) > limit_ios + at_random_ios + by_noise_ios


def _saturation(section: SectionResult) -> Iterator[Characteristic]:
    """For a load at several offered rates, yield the last offered rate without a backlog, and the rate at saturation.

    A single level with a backlog is ignored if the next level has no backlog, because the drive may have been busy with
    internal work for a short time. A level is saturated if it offers more than the highest rate that the drive reached
    at any level. A level that offers more than the rate at saturation also counts as a level with a backlog, because
    the drive can sustain such a rate only for a limited time, for example with a cache. If the rates of the saturated
    levels differ from each other by more than 20 %, the result contains only bounds instead of a rate at saturation.
    Levels whose rate or backlog is not known are omitted.
    """
    levels = [cell for cell in section.cells if cell.workload.offered_iops is not None]
    loads = {replace(cell.workload, offered_iops=None) for cell in levels}
    if len(levels) < 2 or len(levels) < len(section.cells) or len(loads) > 1:
        return
    (load,) = loads
    levels = [cell for cell in levels if cell.value(IOPS) is not None and cell.value(BACKLOG) is not None]
    if not levels:
        return
    levels.sort(key=_offered)
    backlogs = [has_backlog(cell) for cell in levels]
    first = next((n for n, behind in enumerate(backlogs) if behind and all(backlogs[n : n + 2])), len(levels))
    most_iops = max(cell.value(IOPS) or 0.0 for cell in levels)
    saturated = [cell for cell in levels[first:] if _offered(cell) > most_iops]
    rates = [rate for cell in saturated if (rate := cell.value(IOPS)) is not None]
    mean = sum(rates) / len(rates) if rates else None
    if mean is not None and max(rates) - min(rates) > MOST_SATURATED_RANGE * mean:
        yield _no_backlog(levels, backlogs, first, load)
        yield Characteristic(key=SATURATED.key, workload=load, value=None, at_least=min(rates), at_most=most_iops)
        return
    while mean is not None and first and _offered(levels[first - 1]) > mean:
        first -= 1
    yield _no_backlog(levels, backlogs, first, load)
    if mean is None:
        yield Characteristic(key=SATURATED.key, workload=load, value=None, at_least=most_iops)
        return
    of_one = saturated[0].uncertainty_of(IOPS) if len(rates) == 1 else None
    yield Characteristic(
        key=SATURATED.key, workload=load, value=mean, uncertainty=of_one or uncertainty_of_levels(mean, rates)
    )


def _no_backlog(levels: Sequence[CellResult], backlogs: Sequence[bool], first: int, load: Workload) -> Characteristic:
    """Return the offered rate of the last level before the first level with a backlog, or a bound for this rate.

    If the lowest levels have a backlog but a higher level has none, no bound is given, because no bound would be true
    for all levels.
    """
    if not first and backlogs[0] and not all(backlogs):
        return Characteristic(key=NO_BACKLOG.key, workload=load, value=None)
    below = _offered(levels[first - 1]) if first else None
    above = _offered(levels[first]) if first < len(levels) else None
    if below is not None and above is not None:
        between = build_between(below, above)
        return Characteristic(key=NO_BACKLOG.key, workload=load, value=below, uncertainty=between)
    return Characteristic(key=NO_BACKLOG.key, workload=load, value=None, at_least=below, at_most=above)


def _offered(cell: CellResult) -> float:
    return cell.workload.offered_iops or 0.0


def _of_neighbours(test: TestResult) -> dict[str, tuple[Characteristic, ...]]:
    """Return the characteristics that result from the comparison of streams with the first stream of the same workload.
    The keys are the names of the sections.

    The result is empty if the plan of the test does not compare streams with each other.
    """
    asked = (figure for figure in test.figures if figure.kind is FigureKind.SECTIONS)
    rates = find_quantities(key for figure in asked for key in figure.quantities)
    if not rates:
        return {}
    streams = [section for section in test.sections if section.slices and section.cells]
    return dict(_against_first(streams, rates[0]))


def _against_first(
    streams: Sequence[SectionResult], rate: Quantity
) -> Iterator[tuple[str, tuple[Characteristic, ...]]]:
    first_of: dict[Workload, SectionResult] = {}
    for position, section in enumerate(streams):
        cell = section.cells[0]
        first = first_of.setdefault(cell.workload, section)
        level, mean = first.cells[0].value(rate), cell.value(rate)
        if first is section or not level:
            continue
        found = []
        if mean is not None:
            found.append(_share_of_first(cell, mean, first.cells[0], level, rate))
        if streams[position - 1].cells[0].workload != cell.workload:
            found += _recovery(section, first, rate)
        yield section.name, tuple(found)


def _share_of_first(cell: CellResult, mean: float, first: CellResult, level: float, rate: Quantity) -> Characteristic:
    of, to = cell.uncertainty_of(rate), first.uncertainty_of(rate)
    return Characteristic(
        key=SHARE_OF_FIRST.key,
        workload=cell.workload,
        value=100 * mean / level,
        uncertainty=build_ratio(mean, of, level, to, times=100),
    )


def _recovery(section: SectionResult, first: SectionResult, rate: Quantity) -> Iterator[Characteristic]:
    """Yield the recovery time, and the lowest rate of the later slices as a share of the earlier rate.

    The earlier rate is the median over the slices of the first stream. A slice has reached the earlier rate if the rate
    of the slice is no more than 5 % below this median. A rate often approaches the old level slowly. Without this
    tolerance, noise would therefore decide which slice is the first to reach the earlier rate. If the earlier rate
    hardly varied, the tolerance is smaller. The recovery time is the time from the first I/O of the section to the end
    of the first slice that reached the rate. The rate within a slice is not examined, so the true recovery time may be
    shorter.
    """
    workload = section.cells[0].workload
    earlier = [value for one in first.slices if (value := one.values.value(rate)) is not None]
    level = median(earlier)
    near = min(RECOVERED_WITHIN * level, RECOVERED_SIGMAS * spread(np.array(earlier)))
    rates = [one.values.value(rate) for one in section.slices]
    ends_s = [one.end_s for one in section.slices]
    place = next((n for n, value in enumerate(rates) if value is not None and value >= level - near), None)
    if place is None:
        yield Characteristic(key=RECOVERY.key, workload=workload, value=None, at_least=ends_s[-1])
        return
    within_slice = build_between(section.slices[place].start_s, ends_s[place])
    yield Characteristic(key=RECOVERY.key, workload=workload, value=ends_s[place], uncertainty=within_slice)
    later = [value for value in rates[place + 1 :] if value is not None]
    if later:
        share = 100 * min(later) / level
        least = Uncertainty(reason=EXTREME)
        yield Characteristic(key=AFTER_RECOVERY.key, workload=workload, value=share, uncertainty=least)


def _over_time(section: SectionResult) -> Iterator[Characteristic]:
    measured = _find_measured(section)
    for timeline in preferred(section.timelines):
        if timeline.settled is not None:
            yield from _levels(section, timeline, measured)
    yield from _drops(section.timelines)
    for timeline in preferred(section.timelines):
        if (measure := SPIKE_PERIODS.get((timeline.quantity, _unit(timeline)))) is not None:
            yield Characteristic(
                key=measure.key,
                workload=timeline.workload,
                value=timeline.spikes.period if timeline.spikes else None,
                uncertainty=_BY_RULE if timeline.spikes else None,
            )


def _find_measured(section: SectionResult) -> _Measured:
    """Return the slices and rounds of each workload. The function reads the steps only once for all timelines."""
    measured: _Measured = {}
    for one in section.slices:
        for cell in one.cells:
            key = cell.workload, Recorded.SLICES
            measured.setdefault(key, []).append((one.start_s, one.end_s, cell))
    for each, cell in section.cells_of_rounds():
        key = cell.workload, Recorded.ROUNDS
        measured.setdefault(key, []).append((each.number, each.number, cell))
    return measured


def _unit(timeline: Timeline) -> Recorded:
    """Return ``ROUNDS`` if the places of a timeline are numbers of rounds. If the places are times, as for slices and
    for one-second samples, return ``SLICES``.
    """
    return Recorded.ROUNDS if timeline.recorded is Recorded.ROUNDS else Recorded.SLICES


def _levels(section: SectionResult, timeline: Timeline, measured: _Measured) -> Iterator[Characteristic]:
    """Yield the steady level, and the place at which this level begins.

    If nothing was written to the device since the purge, the function also yields the level fresh out of the box and
    the next level, each with the place at which the level ends.
    """
    unit = _unit(timeline)
    fresh = next((level for level in timeline.levels if level.kind is LevelKind.FRESH), None)
    steady = next((level for level in timeline.levels if level.kind is LevelKind.STEADY), None)
    last = timeline.levels[-1].end if timeline.levels else None
    if section.is_as_new:
        yield _level(measured, timeline, FRESH, fresh)
        yield _of(timeline, FRESH_UNTIL[unit], fresh.end if fresh else None)
        second = next((level for level in timeline.levels if level.kind is LevelKind.SECOND), None)
        if fresh is not None and second is not None:
            yield _level(measured, timeline, AFTER_FRESH, second)
            yield _of(timeline, AFTER_FRESH_UNTIL[unit], second.end)
    yield _level(measured, timeline, STEADY, steady)
    yield _of(timeline, STEADY_FROM[unit], steady.start if steady else None, at_least=last if steady is None else None)


def _level(measured: _Measured, timeline: Timeline, measure: Measure, level: RateLevel | None) -> Characteristic:
    """Return a level with its uncertainty.

    The value is a median of slices or rounds. The uncertainty of a median is greater than that of a mean.
    """
    found = _of(timeline, measure, level.value if level else None)
    if level is None:
        return found
    by_slices = timeline.recorded is not Recorded.ROUNDS
    latest = level.end + CLOCK_S if by_slices else level.end
    values = [
        value
        for start, end, cell in measured.get((timeline.workload, _unit(timeline)), ())
        if level.start <= start and end <= latest and (value := cell.value(QUANTITIES[timeline.quantity])) is not None
    ]
    basis = Basis.SLICES if by_slices else Basis.ROUNDS
    return replace(found, uncertainty=uncertainty_of_median(level.value, values, basis))


def _of(timeline: Timeline, measure: Measure, value: float | None, *, at_least: float | None = None) -> Characteristic:
    return Characteristic(
        key=measure.key,
        workload=timeline.workload,
        value=value,
        at_least=at_least,
        uncertainty=None if value is None else _BY_RULE,
    )


def _drops(timelines: Iterable[Timeline]) -> Iterator[Characteristic]:
    """Yield the number of drops in the rate of each workload. If tkperf searched the one-second samples, the drops in
    the samples are counted.
    """
    by_workload: dict[Workload, Timeline] = {}
    for timeline in timelines:
        # The timeline of the one-second samples is the last timeline of a workload, so this timeline replaces the other
        # timelines.
        if timeline.quantity == IOPS.key and timeline.bursts is None:
            by_workload[timeline.workload] = timeline
    for timeline in by_workload.values():
        yield _of(timeline, DROPS, float(len(timeline.drops)))


MOST_CACHED = 0.5
"""Largest share of a drive that can be its cache.

If each cell of the cache stores one bit, the capacity of the cache is at most half of the capacity of a drive that
otherwise stores two bits in each cell, and at most a third of the capacity of a drive that otherwise stores three bits
in each cell. The free blocks of a purged drive can store at least the capacity of the drive. If the rate falls after an
amount between these limits, the cause is not certain.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The cache of a drive, found as the first level of a stream of writes. The first level is too short to be caused
    by the free blocks of a purged drive.

    Attributes:
        start_s, end_s: start and end of the fall from the first level to the next level, in s from the start of the
            stream.
        value, value_after: IOPS of the first level, before the cache was full, and of the next level.
    """

    workload: Workload
    size_bytes: float
    start_s: float
    end_s: float
    value: float
    value_after: float


def find_cache(timelines: Iterable[Timeline], capacity_bytes: float) -> Cache | None:
    """Return the cache that a stream of writes filled, or None if no level is certainly a cache."""
    for timeline in timelines:
        work = timeline.workload
        levels = [level for level in timeline.levels if level.kind is not LevelKind.TRANSITION]
        if timeline.quantity != IOPS.key or len(levels) < 2:
            continue
        # The block size of a combination is only an upper limit, so the number of bytes cannot be computed from the
        # IOPS.
        if not work.writes or work.reads or work.flushes or work.is_combination:
            continue
        first, then = levels[:2]
        is_fresh = first.kind is LevelKind.FRESH and first.end_bytes is not None
        if (
            is_fresh
            and first.end_bytes
            and first.end_bytes <= MOST_CACHED * capacity_bytes
            and then.value < first.value
        ):
            return Cache(
                workload=timeline.workload,
                size_bytes=first.end_bytes,
                start_s=first.end,
                end_s=then.start,
                value=first.value,
                value_after=then.value,
            )
    return None
