"""Calculate the backlog of an offered rate and the wait of its I/Os, from the I/Os done in each second.

fio counts latency from submission. While all places are taken, an I/O that is due waits for a place. The
number of waiting I/Os is the number due minus the number done and the number of places. Its area over
time is the sum of their waits (Little's law).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tkperf.analysis.cell_results import find_window_steps, is_whole_stream
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.model.quantity import LATENCY_MEAN, LATENCY_WITH_WAIT
from tkperf.model.record import StepKind, StepRecord
from tkperf.model.seconds import Seconds, join
from tkperf.model.workload import Arrival, Workload

CLOCK_S = 0.001
"""Resolution of the end of a second, because fio gives times in ms: shorter waits cannot be detected."""
LEAST_SECONDS_OF_LEVEL = 4
"""Fewest seconds for a median backlog; a level with fewer is judged at its end, because half of them is too short."""


def with_waits(
    section: SectionResult, steps: Sequence[StepRecord], seconds: Mapping[int, Seconds]
) -> SectionResult:
    """Return the section with the median backlog and the mean latency including the wait, for offered rates.

    Args:
        steps: steps of the section.
        seconds: seconds of each step, by its ``id``; none if they were not kept.
    """
    of_cells = find_window_steps(steps, section.window)
    whole = is_whole_stream(steps, section.window)

    def with_wait(cell: CellResult) -> CellResult:
        of_cell = of_cells.get(cell.workload, [])
        latency_us = cell.value(LATENCY_MEAN)
        # A slice of a stream may begin with waiting I/Os.
        begin_idle = whole or all(step.kind is not StepKind.CONTINUOUS for step in of_cell)
        if cell.workload.offered_iops is None or latency_us is None or not begin_idle:
            return cell
        pieces = [seconds.get(id(step), Seconds()) for step in of_cell]
        if whole:
            pieces = [_join(pieces)]
        waits = [
            wait for piece in pieces if (wait := mean_wait_s(cell.workload, piece)) is not None
        ]
        if not waits or len(waits) < len(pieces):
            return cell
        with_wait_us = latency_us + 1e6 * sum(waits) / len(waits)
        backlogs = [find_median_backlog_ios(cell.workload, piece) for piece in pieces]
        return replace(
            cell,
            all={**cell.all, LATENCY_WITH_WAIT.key: with_wait_us},
            backlog_median_ios=max((each for each in backlogs if each is not None), default=None),
        )

    return replace(section, cells=tuple(map(with_wait, section.cells)))


def find_median_backlog_ios(workload: Workload, seconds: Seconds) -> float | None:
    """Return the median number of I/Os due and not done at the ends of the second half of the seconds.

    None: fewer than four seconds, or no offered rate.
    """
    if workload.offered_iops is None or len(seconds) < LEAST_SECONDS_OF_LEVEL:
        return None
    due = workload.offered_iops * np.cumsum(seconds.duration_s)
    waiting = np.maximum(due - np.cumsum(seconds.iops * seconds.duration_s), 0.0)
    return float(np.median(waiting[len(seconds) // 2 :]))


def mean_wait_s(workload: Workload, seconds: Seconds) -> float | None:
    """Return the mean time that an I/O waited for submission, over all submitted I/Os; None: not measured.

    It is the area of the waiting I/Os, minus the part of I/Os that still wait at the end, divided by the number
    of submitted I/Os. This is exact if I/Os are submitted in the order in which they are due. The due times of
    random arrivals are not known: half a percent fewer than offered would look like a wait of 0.1 s in a minute.
    """
    offered_iops = workload.offered_iops
    if offered_iops is None or workload.arrival is Arrival.POISSON:
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
