"""Jobs in their order as phases: what runs at the same time is one load, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from tkperf.interop.fio_jobfile.account import Account, JobOptions
from tkperf.interop.fio_jobfile.loads import JobLoad, read_load
from tkperf.interop.fio_jobfile.reading import Job
from tkperf.model.choices import MOST_JOBS
from tkperf.model.units import on_one_line
from tkperf.model.workload import Access
from tkperf.procedures.own_workloads.parts import LONGEST_LOAD_NAME, FillPhase, Load, StreamPhase

# A stream is recorded in the longest that divide it and its warm-up, and are a few. fio reports once a second.
SLICES_S = (60, 30, 10, 5, 2)
FEWEST_SLICES = 5
SHORTEST_SLICES_S = (1, 0.5, 0.2, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPhase:
    """A phase with the one load that it names, and the jobs it comes from."""

    phase: StreamPhase | FillPhase
    name: str
    load: Load
    jobs: tuple[Job, ...]


def build_phases(jobs: Sequence[Job], account: Account) -> tuple[NamedPhase, ...]:
    """The phases of a job file; what cannot be kept is in the account."""
    account.jobs.extend(jobs)
    _check_one_device(jobs, account)
    merged = _merge([read_load(job, account) for job in jobs], account)
    phases: list[NamedPhase] = []
    for job_load, of_jobs in merged:
        name = _new_name(job_load.job.name, {phase.name for phase in phases})
        phases.append(_phase(name, job_load, of_jobs, account))
    last = merged[-1][0]
    if isinstance(phases[-1].phase, FillPhase) and last.runtime_s is None:
        JobOptions(last.job, account).refuse(
            "runtime",
            "it only fills the range, and nothing is measured after it: write runtime=.. and "
            "time_based=1 if it is to be measured",
            default="no runtime",
            for_good=True,
        )
    return tuple(phases)


def _merge(job_loads: Sequence[JobLoad], account: Account) -> list[tuple[JobLoad, tuple[Job, ...]]]:
    """Loads one after the other, each with the jobs that are it: those of a group that are the same."""
    merged: list[tuple[JobLoad, tuple[Job, ...]]] = []
    for job_load in job_loads:
        if not merged or job_load.stonewall:
            merged.append((job_load, (job_load.job,)))
            continue
        first, jobs = merged[-1]
        differing = _differing(first, job_load)
        if differing:
            JobOptions(job_load.job, account).refuse(
                "stonewall",
                f"it runs at the same time as [{jobs[0].name}], another load ({differing}); tkperf runs one "
                "load at a time: write stonewall into it if it is to follow",
                default="no stonewall",
            )
            merged.append((job_load, (job_load.job,)))
            continue
        merged[-1] = _together(first, job_load), (*jobs, job_load.job)
    return merged


def _differing(one: JobLoad, other: JobLoad) -> str:
    """In what two loads differ, but for the number of their threads; empty if they are the same."""
    names = [
        name
        for name in Load.__struct_fields__
        if name not in ("jobs", "offered_iops")
        and getattr(one.load, name) != getattr(other.load, name)
    ]
    names += [
        name
        for name in ("runtime_s", "ramp_s", "passes")
        if getattr(one, name) != getattr(other, name)
    ]
    if (one.load.offered_iops is None) is not (other.load.offered_iops is None):
        names.append("offered_iops")
    if one.load.access is Access.SEQUENTIAL and not names:
        names.append("sequential jobs over the same addresses")
    if _threads(one) + _threads(other) > MOST_JOBS:
        names.append(f"more than {MOST_JOBS:,} threads together")
    return ", ".join(names)


def _threads(job_load: JobLoad) -> int:
    return job_load.load.jobs or 1


def _together(one: JobLoad, other: JobLoad) -> JobLoad:
    offered_iops = one.load.offered_iops
    if offered_iops is not None:
        offered_iops += other.load.offered_iops or 0
    load = msgspec.structs.replace(
        one.load, jobs=_threads(one) + _threads(other), offered_iops=offered_iops
    )
    return replace(one, load=load)


def _phase(name: str, job_load: JobLoad, jobs: tuple[Job, ...], account: Account) -> NamedPhase:
    phase: StreamPhase | FillPhase
    if job_load.runtime_s is None:
        phase = _fill(name, job_load, account)
    else:
        slice_s = _slice_s(job_load.runtime_s, job_load.ramp_s)
        phase = StreamPhase(
            section=name,
            load=name,
            slice_s=slice_s,
            longest_s=job_load.runtime_s,
            warm_up_s=job_load.ramp_s or None,
        )
    return NamedPhase(phase=phase, name=name, load=job_load.load, jobs=jobs)


def _fill(name: str, job_load: JobLoad, account: Account) -> FillPhase:
    if not job_load.load.can_fill:
        JobOptions(job_load.job, account).refuse(
            "runtime",
            "a load of tkperf goes on for a time, unless it writes all of the range in order: write "
            "runtime=.. and time_based=1",
            default="no runtime",
            for_good=True,
        )
    return FillPhase(load=name, passes=job_load.passes)


def _slice_s(runtime_s: float, ramp_s: float) -> float:
    """The longest slice that both can be cut into without a rest, and that leaves a few."""
    tenths = [round(10 * time_s) for time_s in (runtime_s, ramp_s)]
    fewest = dict.fromkeys(SLICES_S, FEWEST_SLICES) | dict.fromkeys(SHORTEST_SLICES_S, 1)
    return next(
        slice_s
        for slice_s, slices in fewest.items()
        if not any(time % round(10 * slice_s) for time in tenths) and runtime_s >= slices * slice_s
    )


def _new_name(job: str, taken: set[str]) -> str:
    """A heading and a load's name that no other phase has."""
    plain = on_one_line(job)[:LONGEST_LOAD_NAME] or "job"
    name, number = plain, 1
    while name in taken:
        number += 1
        ending = f" ({number})"
        name = f"{plain[: LONGEST_LOAD_NAME - len(ending)]}{ending}"
    return name


def _check_one_device(jobs: Sequence[Job], account: Account) -> None:
    named: str | None = None
    for job in jobs:
        option = job.options.get("filename")
        if option is None:
            continue
        file = option.value or ""
        if ":" in file.replace("\\:", ""):
            JobOptions(job, account).refuse(
                "filename", "it names several files; tkperf measures one DEVICE"
            )
        elif named is not None and file != named:
            JobOptions(job, account).refuse(
                "filename", f"another job has {named}; tkperf measures one DEVICE"
            )
        named = named or file
