"""Result of an importer in tkperf's records: what was taken, what was left out, and remarks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tkperf.model.errors import InputFileError
from tkperf.model.figures import TestPlan
from tkperf.model.measurement import IoStats
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import RunStatus, RunWarning, StepRecord, TestRecord, VerdictRecord
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import format_count

# Largest number of threads, and queue depth: a file with more is damaged or invented.
LARGEST_DEMAND = 65_536
# Largest integer of a run file.
LARGEST_COUNT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """Records of an imported run; facts that the other tool did not keep are None.

    Attributes:
        date: the day, as the file has it.
        written_s: time at which the first file was written, after its steps, in seconds since 1970.
        profile: tables of a profile, as far as the file has their numbers.
        notices: notices of the file itself.
    """

    name: str
    tool: str
    profile_name: str
    profile: dict[str, object]
    tests: tuple[TestRecord, ...]
    warnings: tuple[RunWarning, ...]
    date: str | None = None
    written_s: float | None = None
    fio_version: str | None = None
    command_line: str | None = None
    description: str | None = None
    feature_matrix: str | None = None
    host: dict[str, object] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def imported_test(
    name: str,
    steps: Sequence[StepRecord],
    verdicts: Sequence[VerdictRecord],
    sections: Sequence[SectionOutcome],
    plan: TestPlan | None = None,
) -> TestRecord:
    """Return a complete test from elsewhere; without ``plan`` it is shown like a test of tkperf."""
    return TestRecord(
        name=name,
        status=RunStatus.COMPLETE,
        started_s=0.0,
        ended_s=None,
        outcomes=tuple(sections),
        purges=(),
        steps=tuple(steps),
        verdicts=tuple(verdicts),
        plan=plan,
    )


def describe_rounds(rounds: int, files: str, verdict: SteadyStateVerdict) -> str:
    """Return the reason why a section ended; views themselves explain missing verdicts."""
    counted = f"{rounds} round{'s' * (rounds > 1)} in the imported {files}"
    if not verdict.judged:
        return counted
    reached = "reached" if verdict.reached else f"not reached: {verdict.reason}"
    return f"{counted}, steady state {reached}"


def require_room(steps: Sequence[StepRecord], *, place: str) -> None:
    """Refuse amounts that a run file, or a sum over its rounds, cannot hold.

    Raises:
        InputFileError: an amount is too large; names ``place``, the file and its part.
    """
    for quantity, largest in (
        ("I/Os", sum(step.measurement.ios for step in steps)),
        ("bytes", sum(step.measurement.bytes for step in steps)),
        (
            "I/Os in latency bins",
            sum(side.histogram.total for step in steps for side in _sides(step)),
        ),
        (
            "ns of latency",
            max((side.latency_sum_ns for step in steps for side in _sides(step)), default=0),
        ),
    ):
        if largest > LARGEST_COUNT:
            raise InputFileError(
                f"{place}: {largest:.3g} {quantity} are more than a run file can hold"
            )


def _sides(step: StepRecord) -> tuple[IoStats, IoStats]:
    return step.measurement.read, step.measurement.write


def readable(text: str) -> str:
    """Return text from a file for storage and display: control characters and surrogates become U+FFFD."""
    if text.replace("\n", "").isprintable():  # nearly all text
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"
        else character
        for character in text.replace("\r\n", "\n")
    )


def one_line(text: str) -> str:
    """Return readable text on one line, for a name, a version or a date within a sentence."""
    return " ".join(readable(text).split())


# Number of names from a long list.
MOST_LISTED = 5
# A limit keeps many odd files from filling the run file with warnings.
MOST_WARNINGS = 50

NaturalKey: TypeAlias = tuple[tuple[object, ...], str]


class Unusable(Exception):  # noqa: N818 - a finding about a file, not a fault of ours
    """A result that cannot be imported.

    ``kind`` is the reason, in words common to all of its kind; ``detail`` describes this one.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}{detail}")
        self.kind = kind
        self.detail = detail


def natural_key(name: str) -> NaturalKey:
    """Return a sort key in which numbers count as numbers: ``r2`` before ``r10``."""
    pieces = re.split(r"(\d+)", name)
    key = tuple(
        (len(piece.lstrip("0")), piece.lstrip("0")) if at % 2 else piece
        for at, piece in enumerate(pieces)
    )
    return key, name


def without_numbers(name: str) -> str:
    """Return the common part of names that differ in a counter."""
    return re.sub(r"\d+", "", name)


@dataclass(frozen=True, slots=True)
class _Remark:
    """One omission (``job`` None: a whole file) or remark."""

    file: str
    job: str | None
    detail: str


class Remarks:
    """Collect omissions and remarks, for the run file and the command line."""

    def __init__(self) -> None:
        self._left_out: dict[tuple[bool, str], list[_Remark]] = {}
        self._remarks: dict[tuple[str, str], list[_Remark]] = {}

    def leave_out_file(self, file: str, why: Unusable) -> None:
        self._left_out.setdefault((False, why.kind), []).append(_Remark(file, None, why.detail))

    def leave_out_job(self, file: str, job: str, why: Unusable) -> None:
        entry = _Remark(file, readable(job[:40]), why.detail)
        self._left_out.setdefault((True, why.kind), []).append(entry)

    def say(self, code: str, text: str, file: str, detail: str = "") -> None:
        """Remark on a file; ``text`` is common to all of its kind."""
        self._remarks.setdefault((code, text), []).append(_Remark(file, None, detail))

    def has(self, code: str) -> bool:
        return any(remark_code == code for remark_code, _ in self._remarks)

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return the warnings, omissions first: each reason once, with its number and its first place."""
        warnings = [*self._of_left_out(), *self._of_remarks()]
        if len(warnings) <= MOST_WARNINGS:
            return tuple(warnings)
        more = format_count(len(warnings) - MOST_WARNINGS, "more kind")
        last = RunWarning(
            code="more", text=f"and {more} of warnings; import fewer files to see them"
        )
        return (*warnings[:MOST_WARNINGS], last)

    def _of_left_out(self) -> Iterator[RunWarning]:
        for (of_job, kind), entries in sorted(self._left_out.items()):
            in_order = sorted(entries, key=lambda entry: natural_key(entry.file))
            first = in_order[0]
            if of_job:
                who = _jobs(in_order)
                text = f"{who} left out (first in {readable(first.file)}): {kind}{first.detail}"
            else:
                text = f"{_files(in_order)} left out: {kind}{first.detail}"
            yield RunWarning(code="job-left-out" if of_job else "file-left-out", text=text)

    def _of_remarks(self) -> Iterator[RunWarning]:
        for (code, text), entries in sorted(self._remarks.items()):
            in_order = sorted(entries, key=lambda entry: natural_key(entry.file))
            yield RunWarning(
                code=code,
                text=f"{_names([entry.file for entry in in_order])}: {text}{in_order[0].detail}",
            )


def _jobs(entries: Sequence[_Remark]) -> str:
    names = list(dict.fromkeys(str(entry.job) for entry in entries))
    if len(entries) == 1:
        return f"job {names[0]} is"
    return (
        f"{format_count(len(entries), 'result')} of job{'s' * (len(names) > 1)} {_names(names)} are"
    )


def _files(entries: Sequence[_Remark]) -> str:
    if len(entries) == 1:
        return f"{readable(entries[0].file)} is"
    return f"{format_count(len(entries), 'file')} ({_names([entry.file for entry in entries])}) are"


def _names(names: Sequence[str]) -> str:
    """List the first few names, and the number of others."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_LISTED
    listed = ", ".join(readable(name) for name in unique[:MOST_LISTED])
    return f"{listed} and {more:,} more" if more > 0 else listed
