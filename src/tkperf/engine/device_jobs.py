"""The fio jobs of steps and fills on one device or set. The module contains their seeds, their text, their start, and
the evidence about each job and each slice of a stream.

fio runs on this host and waits at a gate. It uses only devices for which a permit exists, and inherits the locks of the
permits. The job files and gates are in a folder in memory. tkperf may move this folder to another place during the run.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tkperf.device.permit import ErasePermit
from tkperf.engine import EngineLoad
from tkperf.engine.device_engine import PermittedDevice
from tkperf.engine.fio_job import FioTarget, render_fill_job, render_step_job
from tkperf.engine.fio_output import NOTHING_YET, FioReading, JobReading
from tkperf.engine.fio_process import FioProcess
from tkperf.engine.gate import Gate
from tkperf.model.phases import Fill
from tkperf.model.plausibility import Evidence, JobSeen
from tkperf.model.workload import Access, ActiveRange, Step, Workload, split_regions
from tkperf.system.work_folder import WorkFolder


def step_evidence(process: FioProcess, step: Step, active_range: ActiveRange) -> Evidence:
    """Return the evidence of a timed step that has ended."""
    readings = iter(process.last.jobs)
    jobs: list[JobSeen] = []
    for stream in step.workload.streams:
        load = stream.workload
        shows_depth = load.access is Access.RANDOM or _holds_a_full_queue(load, load.region or active_range)
        for job in islice(readings, load.jobs):
            reached = job.reached(load.io_depth) if shows_depth else None
            jobs.append(replace(_job_seen(job), reached_depth=reached))
    return _at_the_clocks(process, jobs)


def _holds_a_full_queue(workload: Workload, span: ActiveRange) -> bool:
    """Return whether the queue of a sequential job becomes full before fio returns to the start of the job's region.

    Before fio returns to the start, fio waits for all outstanding I/Os.
    """
    regions = split_regions(span, workload.jobs, workload.block_size_bytes)
    shortest_bytes = min(region.length_bytes for region in regions)
    return shortest_bytes >= 4 * workload.io_depth * workload.block_size_bytes


def fill_evidence(process: FioProcess, planned_bytes: tuple[int, ...]) -> Evidence:
    """Return the evidence of a fill that has ended. ``planned_bytes`` contains the bytes that each job should write."""
    jobs = [
        replace(_job_seen(job), planned_bytes=planned)
        for job, planned in zip(process.last.jobs, planned_bytes, strict=True)
    ]
    return _at_the_clocks(process, jobs)


def _job_seen(job: JobReading) -> JobSeen:
    return JobSeen(ios=job.ios, bytes=job.bytes, elapsed_s=job.elapsed_s)


class StreamWatch:
    """A watch over a stream, slice by slice. For each job, the watch stores the time since which the job has completed
    no I/O.
    """

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
    """Return the earliest possible time, on the monotonic clock, of an I/O that the reading ``origin`` does not
    contain.

    fio starts its clock after the gate is opened. A late first I/O or a late report does not change the result.
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


# A seed of 48 bits is short enough to type, and JSON represents it exactly as a number.
RUN_SEED_BITS = 48
# fio reads the seed as a signed 64-bit number.
_JOB_SEED_BITS = 62

# A function that returns the job file for the targets and for the command of the gate. If the command is None, the job
# file contains no gate, so that a user can run the job again.
Render = Callable[[Sequence[FioTarget], str | None], str]


class Seeds:
    """The seeds of the jobs of a run. If two runs have the same run seed and the same order of jobs, fio receives the
    same seeds.

    No two jobs of a run have the same seed, because the PTS does not allow a repeated sequence of addresses.
    """

    def __init__(self, run_seed: int) -> None:
        self.go_on(run_seed, resumptions=0)

    def go_on(self, run_seed: int, *, resumptions: int) -> None:
        """Use the ``run_seed`` of a run that is resumed. The seeds of the following jobs differ from the seeds before
        the interruption.
        """
        self.run_seed = run_seed
        self._resumptions = resumptions
        self._taken: Counter[EngineLoad | Fill] = Counter()

    def next_of(self, load: EngineLoad | Fill) -> int:
        """Return the seed of the next job of a load. Prepared jobs that never start do not change the seed."""
        text = f"{self.run_seed}:{self._resumptions}:{self._taken[load]}:{load!r}"
        digest = hashlib.sha256(text.encode()).digest()
        return int.from_bytes(digest[:8], "little") >> (64 - _JOB_SEED_BITS)

    def take(self, load: EngineLoad | Fill) -> int:
        """Return the seed of a job that starts now. The job is counted, so that the next job receives another seed."""
        seed = self.next_of(load)
        self._taken[load] += 1
        return seed


class DeviceJobs:
    """The fio jobs of one device or set.

    The job texts for users contain the names of the devices, so that a user can run the jobs again. fio itself receives
    the paths from the permits.
    """

    def __init__(self, device: PermittedDevice, *, clocksource: str | None = None) -> None:
        self._permit = device.permit
        self._fill_permits = device.fill_permits
        self._folder = WorkFolder()
        self._started = 0
        self._target = FioTarget(
            path=device.shown_path or device.permit.identity.path,
            ioengine=device.ioengine.name,
            active_range=device.active_range,
            clocksource=clocksource,
        )
        self._members = tuple(
            replace(
                self._target,
                path=member.identity.path,
                active_range=ActiveRange(offset_bytes=0, length_bytes=member.identity.capacity_bytes),
            )
            for member in device.member_permits
        )

    @property
    def active_range(self) -> ActiveRange:
        return self._target.active_range

    @property
    def fills_members(self) -> bool:
        """Return whether a fill preconditions the members of the set instead of the measured device."""
        return bool(self._members)

    def start_fill(self, phase: Fill, seed: int) -> FioProcess:
        """Start the fio process of a fill, which then waits at its gate. Raise the same errors as ``start_step``."""

        def render(targets: Sequence[FioTarget], prerun: str | None) -> str:
            return render_fill_job(phase.workload, phase.passes, targets, prerun=prerun, seed=seed)

        return self._start(self._fill_permits, self._fill_targets(phase), render)

    def start_step(self, step: Step, seed: int, starts_bytes: tuple[int, ...] = (), *, wait: bool = True) -> FioProcess:
        """Start the fio process of a step. The process then waits at its gate.

        Args:
            starts_bytes: the start of each sequential job within its region.
            wait: whether to wait if there is no space for the job file. If False, the caller must try again later.
        """

        def render(targets: Sequence[FioTarget], prerun: str | None) -> str:
            return render_step_job(step, targets[0], starts_bytes=starts_bytes, prerun=prerun, seed=seed)

        return self._start(
            (self._permit,), (self._target,), render, starts_bytes=starts_bytes, load=step.workload, wait=wait
        )

    def close(self) -> None:
        self._folder.close()

    def _start(
        self,
        permits: Sequence[ErasePermit],
        targets: Sequence[FioTarget],
        render: Render,
        *,
        starts_bytes: tuple[int, ...] = (),
        load: Workload | None = None,
        wait: bool = True,
    ) -> FioProcess:
        self._started += 1
        name = f"{self._started:05d}"
        # The permits refer to the checked devices, even if the names of the targets now refer to other devices.
        held_targets = [replace(target, path=permit.path) for target, permit in zip(targets, permits, strict=True)]
        held = {id(permit): permit for permit in (self._permit, *self._fill_permits)}
        inherit = [lock for permit in held.values() for lock in permit.locks]

        def start_in(work: Path) -> FioProcess:
            folder = work / name
            folder.mkdir(exist_ok=True)
            gate = Gate(folder, "gate")
            try:
                return FioProcess(
                    render(held_targets, gate.command),
                    folder,
                    gate,
                    self._permit.identity.path,
                    shown_job=render(targets, None),
                    starts_bytes=starts_bytes,
                    load=load,
                    inherit=inherit,
                )
            except BaseException:
                gate.close()
                raise

        return self._folder.write(start_in, wait=wait)

    def _fill_targets(self, phase: Fill) -> tuple[FioTarget, ...]:
        if self._members or phase.length_bytes is None:
            return self._members or (self._target,)
        filled = ActiveRange(offset_bytes=0, length_bytes=phase.length_bytes)
        drive = self._fill_permits[0].identity.path
        return (replace(self._target, path=drive, active_range=filled),)
