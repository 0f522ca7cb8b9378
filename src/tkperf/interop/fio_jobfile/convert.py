"""Converter from the text of a job file to the text of a workload file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

import msgspec

from tkperf.interop.fio_jobfile.loads import JobLoad, read_load
from tkperf.interop.fio_jobfile.options import (
    WAIVABLE,
    JobOptions,
    Refusal,
    list_outcomes,
    list_refusals,
)
from tkperf.interop.fio_jobfile.reading import ALIASES, Job, ReadFile, read_jobs
from tkperf.model.choices import MOST_JOBS
from tkperf.model.errors import InputFileError, UsageError, not_known
from tkperf.model.units import on_one_line
from tkperf.model.workload import Access
from tkperf.procedures import load_profile, with_workload
from tkperf.procedures.own_workloads import parse_workload_file
from tkperf.procedures.own_workloads.parts import (
    LONGEST_LOAD_NAME,
    LONGEST_TITLE,
    FillPhase,
    Load,
    StreamPhase,
)

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


ANY_PROFILE, ANY_SUITE = "pts-e-1.1", "ssd"
WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The workload file, and a line for each option: carried over, given up, not carried over."""

    text: str
    options: tuple[str, ...]


class OptionsRefusedError(InputFileError):
    """Options of a job file that cannot be kept."""

    def __init__(self, file: str, refusals: Collection[Refusal]) -> None:
        names = sorted({refusal.option for refusal in refusals if refusal.option is not None})
        way_out = f"; to go without them: {' '.join(f'--without {name}' for name in names)}"
        count = len(refusals)
        super().__init__(
            f"{file}: {count} {'option' if count == 1 else 'options'} cannot be kept, nothing was written"
            f"{way_out if names else ''}"
        )
        self.refusals = tuple(refusals)


def convert_job_file(
    text: str,
    *,
    file: str,
    name: str,
    read_included: ReadFile,
    without: Collection[str] = (),
) -> Converted:
    """Return the workload file of a job file.

    Args:
        text: the job file.
        file: name of the job file.
        name: name of the test.
        read_included: reader of included files.
        without: options that the user gives up.

    Raises:
        OptionsRefusedError: options cannot be kept.
        UsageError: it is no job file, a value is impossible, or an option in ``without`` need not be given up.
    """
    waived = {ALIASES.get(option, option) for option in without}
    for option in sorted(waived - WAIVABLE):
        raise not_known("--without", option, sorted(WAIVABLE))
    jobs = [JobOptions(job) for job in read_jobs(file, text, read_included)]
    phases = build_phases(jobs)
    refusals = list_refusals(jobs)
    if any(refusal.option not in waived for refusal in refusals):
        raise OptionsRefusedError(file, [one for one in refusals if one.option not in waived])
    for option in sorted(waived - {refusal.option for refusal in refusals}):
        raise UsageError(
            f"--without {option}: {file} has nothing of it that would have to be given up"
        )
    given_up = tuple(dict.fromkeys(refusal.given for refusal in refusals))
    options = list_outcomes(jobs)
    written = _render_toml(name, on_one_line(file), phases, options, given_up)
    # Check it as a run does, with a profile's numbers for missing values.
    table = parse_workload_file(written, file=f"of {file}")
    with_workload(load_profile(ANY_PROFILE), ANY_SUITE, table, file=f"of {file}")
    return Converted(text=written, options=options)


def name_of_test(stem: str, taken: Sequence[str]) -> str:
    """Return the name of the test, from the name of the job file."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:56] or "job"
    return f"{name}-fio" if name in taken else name


def _render_toml(
    name: str,
    file: str,
    phases: Sequence[NamedPhase],
    options: Sequence[str],
    given_up: Sequence[str],
) -> str:
    base = file.rpartition("/")[2]
    source = f"fio's job file {base}, converted by tkperf workload from-fio"
    if given_up:
        source += f"; given up of it: {', '.join(given_up)}"
    lines = [
        *_comment(f"From fio's job file {file}, by tkperf workload from-fio. Its options:"),
        "#",
        *(f"# {line}" for line in options),
        "",
        "format = 1",
        f"name = {_string(name)}",
        f"title = {_string(f'fio job file {base}'[:LONGEST_TITLE])}",
        f"source = {_string(source)}",
    ]
    for named in phases:
        lines += ["", *_comment(_origin(named)), f"[loads.{_key(named.name)}]"]
        lines += _pairs(named.load)
    for named in phases:
        lines += ["", "[[phases]]", f'kind = "{named.phase.__struct_config__.tag}"']
        lines += _pairs(named.phase)
    return "\n".join(lines) + "\n"


def _origin(named: NamedPhase) -> str:
    places = (f"[{on_one_line(job.name)}] of line {job.line}" for job in named.jobs)
    merged = " (at the same time: the same load)" if len(named.jobs) > 1 else ""
    return f"From {', '.join(places)}{merged}"


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in wrap(text, WIDTH))


def _pairs(part: msgspec.Struct) -> Iterator[str]:
    for key, value in msgspec.to_builtins(part).items():
        if key != "kind":
            yield f"{key} = {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _string(text: str) -> str:
    # The remaining characters are the same in TOML and JSON.
    return json.dumps(on_one_line(text), ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _string(name)
