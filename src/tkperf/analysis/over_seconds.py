"""Extend the results of a run with results that are computed from the one-second samples. The additional results are
findings over time, and uncertainties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import sqrt
from typing import Protocol

import numpy as np

from tkperf.analysis.cell_uncertainty import SecondsOfSteps, find_seconds, needs_seconds, with_uncertainty
from tkperf.analysis.characteristics_search import with_characteristics
from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.analysis.run_results import analyse
from tkperf.analysis.section_results import find_window_steps, is_whole_stream
from tkperf.analysis.timeline.series import has_idle, spread
from tkperf.analysis.timeline.timelines import SEARCHED, Recorded, Timeline, find_timelines, without_levels
from tkperf.model.measurement import Seconds, join
from tkperf.model.quantity import LATENCY_MEAN, LATENCY_WITH_WAIT
from tkperf.model.record import LeftOut, RunRecord, StepKind, StepRecord, TestRecord
from tkperf.model.workload import Arrival, Workload

CLOCK_S = 0.001
"""Resolution, in s, of the time at which a sample ends. fio reports times in ms, so tkperf cannot detect shorter waits.
"""
LEAST_SECONDS_OF_LEVEL = 4
"""The smallest number of one-second samples for a median backlog. If a level has fewer samples, the second half of the
level is too short, so only the end of the level is judged.
"""


def with_waits(section: SectionResult, steps: Sequence[StepRecord], seconds: SecondsOfSteps) -> SectionResult:
    """Return the section with additional values for loads at offered rates: the median backlog, and the mean latency
    including the wait.

    Args:
        steps: steps of the section.
        seconds: the one-second samples of each step. The key is the position of the step in its test (``StepPlace``).
            The mapping does not contain steps without stored samples.
    """
    of_cells = find_window_steps(steps, section.window)
    whole = is_whole_stream(steps, section.window)

    def with_wait(cell: CellResult) -> CellResult:
        of_cell = of_cells.get(cell.workload, [])
        latency_us = cell.value(LATENCY_MEAN)
        # In a stream, I/Os may already be waiting when a slice begins, so the wait within a single slice is not known.
        begin_idle = whole or all(step.kind is not StepKind.CONTINUOUS for step in of_cell)
        if cell.workload.offered_iops is None or latency_us is None or not begin_idle:
            return cell
        pieces = [find_seconds(step, seconds) for step in of_cell]
        if whole:
            pieces = [_join(pieces)]
        waits = [wait for piece in pieces if (wait := mean_wait_s(cell.workload, piece)) is not None]
        if not waits or len(waits) < len(pieces):
            return cell
        with_wait_us = latency_us + 1e6 * sum(waits) / len(waits)
        backlogs = [find_median_backlog_ios(cell.workload, piece) for piece in pieces]
        noises = [find_backlog_noise_ios(cell.workload, piece) for piece in pieces]
        return replace(
            cell,
            all={**cell.all, LATENCY_WITH_WAIT.key: with_wait_us},
            backlog_median_ios=max((each for each in backlogs if each is not None), default=None),
            backlog_noise_ios=max((each for each in noises if each is not None), default=None),
        )

    return replace(section, cells=tuple(map(with_wait, section.cells)))


def find_median_backlog_ios(workload: Workload, seconds: Seconds) -> float | None:
    """Return the median backlog over the second half of the samples. The backlog is the number of I/Os that were due
    but not complete at the end of each second.

    None means that there are fewer than four samples, or that there is no offered rate.
    """
    if workload.offered_iops is None or len(seconds) < LEAST_SECONDS_OF_LEVEL:
        return None
    due = workload.offered_iops * np.cumsum(seconds.duration_s)
    waiting = np.maximum(due - np.cumsum(seconds.iops * seconds.duration_s), 0.0)
    return float(np.median(waiting[len(seconds) // 2 :]))


def find_backlog_noise_ios(workload: Workload, seconds: Seconds) -> float | None:
    """Return the standard deviation that noise causes in the backlog, which is the number of I/Os that are due but not
    complete at the end of the level.

    The noise is computed from the differences between neighbouring seconds. The computation must not include slow
    changes: a rate that rises and falls slowly leaves a real backlog at the end of each fall. If the device keeps up
    with the offered rate, nearly every second has the same number of I/Os, and the noise is small. None means that
    there are fewer than four samples, or that there is no offered rate.
    """
    if workload.offered_iops is None or len(seconds) < LEAST_SECONDS_OF_LEVEL:
        return None
    differences = np.diff(seconds.iops * seconds.duration_s)
    return spread(differences) / sqrt(2) * sqrt(len(seconds))


def mean_wait_s(workload: Workload, seconds: Seconds) -> float | None:
    """Return the mean time, in s, for which an I/O waited for its submission. The mean is computed over all submitted
    I/Os. None means that this time is not known.

    fio counts latency from the submission of an I/O. While all places of the queue are occupied, an I/O that is due
    waits for a place. The number of waiting I/Os is the number of due I/Os minus the number of finished I/Os and the
    number of places. The integral of this number over time is the sum of the waits (Little's law). The part of this sum
    that belongs to I/Os that still wait at the end is subtracted. The mean is the rest, divided by the number of
    submitted I/Os. The result is exact if I/Os are submitted in the order in which they are due. For random arrivals
    and for a mix of block sizes, the result is None, because the due times are not known. If such a load submitted half
    a percent fewer I/Os than were offered, this difference would look like a mean wait of about 0.15 s after a minute.
    """
    offered_iops = workload.offered_iops
    if offered_iops is None or workload.arrival is Arrival.POISSON or workload.block_mix:
        return None
    if not len(seconds) or not (seconds.iops > 0).any():
        return None
    ends_s = np.concatenate(([0.0], np.cumsum(seconds.duration_s)))
    done = np.concatenate(([0.0], np.cumsum(seconds.iops * seconds.duration_s)))
    due = offered_iops * ends_s
    not_waiting = workload.total_outstanding_ios + offered_iops * CLOCK_S
    waiting = np.maximum(due - done - not_waiting, 0.0)
    area = float(((waiting[1:] + waiting[:-1]) / 2 * seconds.duration_s).sum())
    left = float(waiting[-1])
    return max(0.0, area - left**2 / (2 * offered_iops)) / (float(due[-1]) - left)


def _join(pieces: Sequence[Seconds]) -> Seconds:
    if not all(len(piece) for piece in pieces):
        return Seconds()
    return join(pieces, [0.0] * len(pieces))


# The first limit is a time in s. If slices are shorter than this time, one-second samples show no more than the slices.
# The other limit is a number of samples. A step with fewer samples is too short for a search.
SHORTEST_SLICE_S = 2.0
LEAST_SECONDS = 120

Read = Callable[[TestRecord], Sequence[Seconds]]


class Opened(Protocol):
    """An open run file."""

    @property
    def left_out(self) -> Sequence[LeftOut]: ...

    def seconds(self, test: TestRecord, /) -> Sequence[Seconds]: ...


def analyse_opened(opened: Opened, record: RunRecord) -> RunResult:
    """Return the results of a run, including the findings from the one-second samples in the run file. If samples
    cannot be read, the results contain a warning.
    """
    result = with_seconds(analyse(record), record, opened.seconds)
    return replace(result, left_out=tuple(opened.left_out))


def with_seconds(result: RunResult, record: RunRecord, read: Read) -> RunResult:
    """Return the result with the uncertainties of all figures, and with the findings in the one-second samples of
    uninterrupted workloads.

    Args:
        result: the results computed from ``record``.
        read: the function that returns the one-second samples of each step of a test, in the order of the steps.
    """
    tests = {test.name: test for test in record.tests}
    found = tuple(
        with_characteristics(replace(test, sections=_sections(test.sections, tests[test.name], read)))
        if test.name in tests
        else test
        for test in result.tests
    )
    return replace(result, tests=found)


def _sections(sections: Sequence[SectionResult], test: TestRecord, read: Read) -> tuple[SectionResult, ...]:
    steps: dict[str, list[StepRecord]] = {section.name: [] for section in sections}
    for step in test.steps:
        steps.get(step.section, []).append(step)
    asked = any(
        _unbroken_steps(steps[section.name]) or needs_seconds(section, steps[section.name]) for section in sections
    )
    kept = read(test) if asked else ()  # reading the samples takes most of the time
    by_step = {step.place: seconds for step, seconds in zip(test.steps, kept, strict=False)}
    return tuple(_section(section, steps[section.name], by_step) for section in sections)


def _section(section: SectionResult, steps: Sequence[StepRecord], by_step: SecondsOfSteps) -> SectionResult:
    if unbroken := _unbroken_steps(steps):
        finer = tuple(_find(section, unbroken, by_step))
        with_levels = {(one.workload, one.quantity) for one in finer if one.settled is not None}
        coarse = (
            without_levels(timeline) if (timeline.workload, timeline.quantity) in with_levels else timeline
            for timeline in section.timelines
        )
        section = replace(section, timelines=(*coarse, *finer))
    return with_uncertainty(with_waits(section, steps, by_step), steps, by_step)


def _unbroken_steps(of_section: Sequence[StepRecord]) -> tuple[StepRecord, ...]:
    """Return the steps of a section with a single workload. The result is empty if the steps do not follow each other
    directly, or if they are too short for a search.
    """
    steps = tuple(step for step in of_section if step.is_in_results)
    durations_s = [step.measurement.duration_s for step in steps]
    if not steps or sum(durations_s) < LEAST_SECONDS or steps[0].kind is StepKind.AREA:
        return ()
    if len({step.key for step in steps}) > 1 or durations_s[0] < SHORTEST_SLICE_S:
        return ()
    return () if has_idle([step.started_s for step in steps], durations_s) else steps


def _find(section: SectionResult, steps: Sequence[StepRecord], by_step: SecondsOfSteps) -> Iterator[Timeline]:
    """Yield the findings (levels, drops, spikes) in the one-second samples of a load, of each of its streams, and of
    its flushes.
    """
    for part in steps[0].parts:
        kept = [(step.started_s, by_step[step.place].of(part.workload)) for step in steps if step.place in by_step]
        if not kept or sum(len(seconds) for _, seconds in kept) < LEAST_SECONDS:
            continue
        seconds = join([seconds for _, seconds in kept], [started_s - kept[0][0] for started_s, _ in kept])
        yield from find_timelines(
            part.workload,
            Recorded.SECONDS,
            seconds.start_s,
            seconds.duration_s,
            {key: getattr(seconds, key) for key in SEARCHED},
            as_new=section.is_as_new,
        )
