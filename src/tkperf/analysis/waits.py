"""Backlog of an offered rate and time that its I/Os waited, from the I/Os done in each second.

fio counts latency from submission. While all places are taken, an I/O that is due waits for one; the number
of those that wait is what is due, less what is done and what the places hold. Its area over time is
the sum of their waits (Little's law).
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
"""Resolution of the end of a second, as fio has its times in ms: shorter waits are not told from none."""
LEAST_SECONDS = 4
"""Levels of fewer are judged at their end: half of them are no course."""


def with_waits(
    section: SectionResult, steps: Sequence[StepRecord], seconds: Mapping[int, Seconds]
) -> SectionResult:
    """The section, its cells at an offered rate with the mean latency that includes the wait, and the median backlog.

    Args:
        steps: of the section.
        seconds: of each step, by its ``id``; of those not kept there are none.
    """
    of_cells = find_window_steps(steps, section.window)
    whole = is_whole_stream(steps, section.window)

    def with_wait(cell: CellResult) -> CellResult:
        of_cell = of_cells.get(cell.workload, [])
        latency_us = cell.value(LATENCY_MEAN)
        # A slice of a stream may begin with I/Os that wait.
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
    if workload.offered_iops is None or len(seconds) < LEAST_SECONDS:
        return None
    due = workload.offered_iops * np.cumsum(seconds.duration_s)
    waiting = np.maximum(due - np.cumsum(seconds.iops * seconds.duration_s), 0.0)
    return float(np.median(waiting[len(seconds) // 2 :]))


def mean_wait_s(workload: Workload, seconds: Seconds) -> float | None:
    """Mean time that an I/O waited to be issued, over those that were; None: not measured.

    The area of those that wait, less the part of the I/Os that still wait at the end, by the I/Os
    that were issued: exact for I/Os that are issued in the order in which they are due. When random
    arrivals were due nobody knows: half a percent fewer than asked for would pass for a wait of 0.1 s in a minute.
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
