"""The evidence from fio and the clocks, to judge whether the counters can be true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tkperf.engine.fio_job import split_regions
from tkperf.engine.fio_output import NOTHING_YET, FioReading, JobReading
from tkperf.engine.fio_process import FioProcess
from tkperf.model.plausibility import Evidence, JobSeen
from tkperf.model.workload import Access, ActiveRange, Step, Workload


def step_evidence(process: FioProcess, step: Step, active_range: ActiveRange) -> Evidence:
    """Return the evidence of a timed step that has ended."""
    workload = step.workload
    shows_depth = workload.access is Access.RANDOM or _holds_a_full_queue(workload, workload.region or active_range)
    jobs = [
        replace(_job_seen(job), reached_depth=job.reached(workload.io_depth) if shows_depth else None)
        for job in process.last.jobs
    ]
    return _at_the_clocks(process, jobs)


def _holds_a_full_queue(workload: Workload, span: ActiveRange) -> bool:
    """Return whether a sequential job's region is so long that the queue fills before fio turns back.

    fio waits for all outstanding I/Os before it turns back.
    """
    regions = split_regions(span, workload.jobs, workload.block_size_bytes)
    shortest_bytes = min(region.length_bytes for region in regions)
    return shortest_bytes >= 4 * workload.io_depth * workload.block_size_bytes


def fill_evidence(process: FioProcess, planned_bytes: tuple[int, ...]) -> Evidence:
    """Return the evidence of a fill that has ended; each of its jobs was to write its ``planned_bytes``."""
    jobs = [
        replace(_job_seen(job), planned_bytes=planned)
        for job, planned in zip(process.last.jobs, planned_bytes, strict=True)
    ]
    return _at_the_clocks(process, jobs)


def _job_seen(job: JobReading) -> JobSeen:
    return JobSeen(ios=job.ios, bytes=job.bytes, elapsed_s=job.elapsed_s)


class StreamWatch:
    """The watch over a stream, slice by slice. It remembers since when each job has done nothing."""

    def __init__(self) -> None:
        self._active_until_s: dict[int, float] = {}

    def slice_evidence(self, process: FioProcess, origin: FioReading) -> Evidence:
        """Return the evidence of the slice since ``origin``."""
        now = process.last
        jobs = []
        for number, job in enumerate(now.jobs):
            before = origin.jobs[number] if origin.jobs else None
            ios = job.ios - (before.ios if before else 0)
            if ios:
                self._active_until_s[number] = now.elapsed_s
            silent_s = now.elapsed_s - self._active_until_s.get(number, -math.inf)
            moved = job.bytes - (before.bytes if before else 0)
            jobs.append(replace(_job_seen(job), ios=ios, bytes=moved, silent_s=silent_s))
        return _at_the_clocks(process, jobs, origin)


def earliest_s(process: FioProcess, origin: FioReading = NOTHING_YET) -> float:
    """Return the earliest possible time, on the monotonic clock, of I/O that is not in ``origin``.

    fio's clock begins after its gate is opened. Late beginnings and late reports do not
    change that.
    """
    assert process.released_s is not None
    return process.released_s + origin.elapsed_s


def _at_the_clocks(process: FioProcess, jobs: Sequence[JobSeen], origin: FioReading = NOTHING_YET) -> Evidence:
    last = process.last
    stamped = last.wall_clock_s - process.released_wall_clock_s - origin.elapsed_s
    return Evidence(
        jobs=tuple(jobs),
        own_clock_s=process.last_at_s - earliest_s(process, origin),
        wall_clock_s=stamped if last.wall_clock_s else None,
        stopped=process.was_stopped(),
    )
