"""Phases from jobs in their order: jobs at the same time become one load, or are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from tkperf.interop.fio_jobfile.loads import JobLoad, read_load
from tkperf.interop.fio_jobfile.options import JobOptions
from tkperf.interop.fio_jobfile.reading import Job
from tkperf.model.choices import MOST_JOBS
from tkperf.model.units import on_one_line
from tkperf.model.workload import Access
from tkperf.procedures.own_workloads.parts import LONGEST_LOAD_NAME, FillPhase, Load, StreamPhase

# Lengths of a stream's slices, the longest first: they divide it and its warm-up, and give a few slices.
# fio reports once a second.
SLICES_S = (60, 30, 10, 5, 2)
FEWEST_SLICES = 5
SHORTEST_SLICES_S = (1, 0.5, 0.2, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPhase:
    """A phase with its load, and the jobs of its origin."""

    phase: StreamPhase | FillPhase
    name: str
    load: Load
    jobs: tuple[Job, ...]


def build_phases(jobs: Sequence[JobOptions]) -> tuple[NamedPhase, ...]:
    """Return the phases of a job file; ``jobs`` receive the refusals of options."""
    _check_one_device(jobs)
    phases: list[NamedPhase] = []
    last: JobLoad | None = None
    for last, of_jobs in _merge([read_load(options) for options in jobs]):
        name = _new_name(last.options.job.name, {phase.name for phase in phases})
        phase = _build_phase(name, last)
        phases.append(NamedPhase(phase=phase, name=name, load=last.load, jobs=of_jobs))
    if last is not None and last.runtime_s is None:
        _refuse_no_runtime(
            last,
            "it only fills the range, and nothing is measured after it: write runtime=.. and "
            "time_based=1 if it is to be measured",
        )
    return tuple(phases)


def _merge(job_loads: Sequence[JobLoad]) -> list[tuple[JobLoad, tuple[Job, ...]]]:
    """Return successive loads, each with the jobs that run it at the same time."""
    merged: list[tuple[JobLoad, tuple[Job, ...]]] = []
    for job_load in job_loads:
        job = job_load.options.job
        if merged and not job_load.stonewall:
            first, jobs = merged[-1]
            differing = _list_differences(first, job_load)
            if not differing:
                merged[-1] = _add_threads(first, job_load), (*jobs, job)
                continue
            job_load.options.refuse(
                "stonewall",
                f"it runs at the same time as [{jobs[0].name}], another load ({', '.join(differing)}); "
                "tkperf runs one load at a time: write stonewall into it if it is to follow",
                default="no stonewall",
            )
        merged.append((job_load, (job,)))
    return merged


def _list_differences(one: JobLoad, other: JobLoad) -> list[str]:
    """Return the reasons why two jobs are not one load with the threads of both."""
    pairs = {
        name: (getattr(one.load, name), getattr(other.load, name))
        for name in Load.__struct_fields__
        if name != "jobs"
    }
    pairs["offered_iops"] = one.load.offered_iops is None, other.load.offered_iops is None
    pairs |= {
        name: (getattr(one, name), getattr(other, name))
        for name in ("runtime_s", "ramp_s", "passes")
    }
    names = [name for name, (ours, theirs) in pairs.items() if ours != theirs]
    if one.load.access is Access.SEQUENTIAL and not names:
        names.append("sequential jobs over the same addresses")
    if (one.load.jobs or 1) + (other.load.jobs or 1) > MOST_JOBS:
        names.append(f"more than {MOST_JOBS:,} threads together")
    return names


def _add_threads(one: JobLoad, other: JobLoad) -> JobLoad:
    offered_iops = one.load.offered_iops
    if offered_iops is not None:
        offered_iops += other.load.offered_iops or 0
    threads = (one.load.jobs or 1) + (other.load.jobs or 1)
    load = msgspec.structs.replace(one.load, jobs=threads, offered_iops=offered_iops)
    return replace(one, load=load)


def _build_phase(name: str, job_load: JobLoad) -> StreamPhase | FillPhase:
    if job_load.runtime_s is None:
        if not job_load.load.can_fill:
            _refuse_no_runtime(
                job_load,
                "a load of tkperf goes on for a time, unless it writes all of the range in order: write "
                "runtime=.. and time_based=1",
            )
        return FillPhase(load=name, passes=job_load.passes)
    return StreamPhase(
        section=name,
        load=name,
        slice_s=_slice_s(job_load.runtime_s, job_load.ramp_s),
        longest_s=job_load.runtime_s,
        warm_up_s=job_load.ramp_s or None,
    )


def _refuse_no_runtime(job_load: JobLoad, why: str) -> None:
    job_load.options.refuse("runtime", why, default="no runtime", for_good=True)


def _slice_s(runtime_s: float, ramp_s: float) -> float:
    """Return the longest slice that divides both times and gives a few slices."""
    tenths = [round(10 * time_s) for time_s in (runtime_s, ramp_s)]
    fewest = dict.fromkeys(SLICES_S, FEWEST_SLICES) | dict.fromkeys(SHORTEST_SLICES_S, 1)
    return next(
        slice_s
        for slice_s, slices in fewest.items()
        if not any(time % round(10 * slice_s) for time in tenths) and runtime_s >= slices * slice_s
    )


def _new_name(job: str, taken: set[str]) -> str:
    """Return a heading and load name that no other phase has."""
    plain = on_one_line(job)[:LONGEST_LOAD_NAME] or "job"
    name, number = plain, 1
    while name in taken:
        number += 1
        ending = f" ({number})"
        name = f"{plain[: LONGEST_LOAD_NAME - len(ending)]}{ending}"
    return name


def _check_one_device(jobs: Sequence[JobOptions]) -> None:
    named: str | None = None
    for options in jobs:
        file = options.text("filename")
        if file is None:
            continue
        if ":" in file.replace("\\:", ""):
            options.refuse("filename", "it names several files; tkperf measures one DEVICE")
        elif named is not None and file != named:
            options.refuse("filename", f"another job has {named}; tkperf measures one DEVICE")
        named = named or file
