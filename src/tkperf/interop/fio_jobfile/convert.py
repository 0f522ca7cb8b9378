"""Converter from the text of a job file to the text of a workload file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from textwrap import wrap
from typing import TypeAlias

import msgspec

from tkperf.interop.fio_jobfile.job_sections import Job, read_jobs
from tkperf.interop.fio_jobfile.loads import JobLoad, read_load
from tkperf.interop.fio_jobfile.option_rules import JobOptions, Refusal, list_outcomes, list_refusals
from tkperf.model.errors import InputFileError
from tkperf.model.units import format_count, on_one_line
from tkperf.procedures import load_profile, with_workload
from tkperf.procedures.own_workloads import parse_workload_file
from tkperf.procedures.own_workloads.parts import LONGEST_LOAD_NAME, LONGEST_TITLE, FillPhase, StreamPhase

ANY_PROFILE, ANY_SUITE = "pts-e-1.1", "ssd"
WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# Length of a stream's slices in s, the longest first, and the fewest of them. fio reports once a second.
SLICE_LENGTHS = ((60, 5), (30, 5), (10, 5), (5, 5), (2, 5), (1, 1), (0.5, 1), (0.2, 1), (0.1, 1))


# By the name of the load.
Phases: TypeAlias = dict[str, tuple[StreamPhase | FillPhase, JobLoad]]


def build_phases(jobs: Sequence[JobOptions]) -> Phases:
    """Return the phases of a job file in order, each with its load; ``jobs`` receive the refusals of options."""
    _check_one_device(jobs)
    phases: Phases = {}
    for options in jobs:
        job_load = read_load(options)
        if phases and not job_load.stonewall:
            options.refuse(
                "stonewall",
                f"it runs at the same time as [{next(reversed(phases))}], and tkperf runs one load at a "
                "time: write stonewall into it if it is to follow, or numjobs into one if both are the "
                "same load",
                default="no stonewall",
            )
        name = _new_name(options.job.name, phases)
        phases[name] = _build_phase(name, job_load), job_load
    if phases and job_load.runtime_s is None:
        _refuse_no_runtime(
            job_load,
            "it only fills the range, and nothing is measured after it: write runtime=.. and "
            "time_based=1 if it is to be measured",
        )
    return phases


def _build_phase(name: str, job_load: JobLoad) -> StreamPhase | FillPhase:
    if job_load.runtime_s is None:
        if not job_load.load.can_fill:
            _refuse_no_runtime(
                job_load,
                "a load of tkperf runs for a time, unless it writes all of the range in order: write "
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
    job_load.options.refuse("runtime", why, default="no runtime")


def _slice_s(runtime_s: float, ramp_s: float) -> float:
    """Return the longest slice that divides both times and gives a few slices."""
    return next(
        slice_s
        for slice_s, fewest in SLICE_LENGTHS
        if runtime_s >= fewest * slice_s
        and not any(round(10 * time_s) % round(10 * slice_s) for time_s in (runtime_s, ramp_s))
    )


def _new_name(job: str, taken: Collection[str]) -> str:
    """Return a heading and load name that no other phase has."""
    plain = on_one_line(job)[:LONGEST_LOAD_NAME] or "job"
    room = LONGEST_LOAD_NAME - len(" (999)")
    numbered = (f"{plain[:room]} ({number})" for number in count(2))
    return next(name for name in chain([plain], numbered) if name not in taken)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The workload file, and a line for each option: carried over, not carried over."""

    text: str
    options: tuple[str, ...]


class OptionsRefusedError(InputFileError):
    """Options of a job file that cannot be kept."""

    def __init__(self, file: str, refusals: tuple[Refusal, ...]) -> None:
        count = format_count(len(refusals), "option")
        super().__init__(
            f"{file}: {count} cannot be kept, nothing was written: change them in the job file, or take them out"
        )
        self.refusals = refusals


def convert_job_file(text: str, *, file: str, name: str) -> Converted:
    """Return the workload file of a job file.

    Args:
        text: the job file.
        file: name of the job file.
        name: name of the test.

    Raises:
        OptionsRefusedError: options cannot be kept.
        UsageError: it is no job file, or a value is impossible.
    """
    jobs = [JobOptions(job) for job in read_jobs(file, text)]
    phases = build_phases(jobs)
    if refusals := list_refusals(jobs):
        raise OptionsRefusedError(file, refusals)
    options = list_outcomes(jobs)
    written = _render_toml(name, on_one_line(file), phases, options)
    # Check it as a run does, with a profile's numbers for missing values.
    table = parse_workload_file(written, file=f"of {file}")
    with_workload(load_profile(ANY_PROFILE), ANY_SUITE, table, file=f"of {file}")
    return Converted(text=written, options=options)


def name_of_test(stem: str, taken: Sequence[str]) -> str:
    """Return the name of the test, from the name of the job file."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:56] or "job"
    return f"{name}-fio" if name in taken else name


def _render_toml(name: str, file: str, phases: Phases, options: Sequence[str]) -> str:
    base = file.rpartition("/")[2]
    source = f"fio's job file {base}, converted by tkperf workload from-fio"
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
    for load, (_, job_load) in phases.items():
        lines += ["", *_comment(_origin(job_load.options.job)), f"[loads.{_key(load)}]"]
        lines += _pairs(job_load.load)
    for phase, _ in phases.values():
        lines += ["", "[[phases]]", f'kind = "{phase.__struct_config__.tag}"']
        lines += _pairs(phase)
    return "\n".join(lines) + "\n"


def _origin(job: Job) -> str:
    return f"From [{on_one_line(job.name)}] of line {job.line}"


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
