"""Converter from the text of a job file to the text of a workload file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

import msgspec

from tkperf.interop.fio_jobfile.options import (
    WAIVABLE,
    JobOptions,
    Refusal,
    list_outcomes,
    list_refusals,
)
from tkperf.interop.fio_jobfile.phases import NamedPhase, build_phases
from tkperf.interop.fio_jobfile.reading import ALIASES, ReadFile, read_jobs
from tkperf.model.errors import InputFileError, UsageError, not_known
from tkperf.model.units import on_one_line
from tkperf.procedures import load_profile, with_workload
from tkperf.procedures.own_workloads import parse_workload_file
from tkperf.procedures.own_workloads.parts import LONGEST_TITLE

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
