"""Result of an importer in tkperf's records: what was taken, what was left out, and remarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tkperf.model.errors import InputFileError
from tkperf.model.figures import TestPlan
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
    seen = [step.measurement for step in steps]
    sides = [side for one in seen for side in (one.read, one.write)]
    for quantity, largest in (
        ("I/Os", sum(one.ios for one in seen)),
        ("bytes", sum(one.bytes for one in seen)),
        ("I/Os in latency bins", sum(side.histogram.total for side in sides)),
        ("ns of latency", max((side.latency_sum_ns for side in sides), default=0)),
    ):
        if largest > LARGEST_COUNT:
            raise InputFileError(f"{place}: {largest:.3g} {quantity} are more than a run file can hold")


def readable(text: str) -> str:
    """Return text from a file for storage and display: control characters and surrogates become U+FFFD."""
    return _UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return readable text on one line, for a name, a version or a date within a sentence."""
    return " ".join(readable(text).split())


# Number of names from a long list.
MOST_LISTED = 5
# A limit keeps many odd files from filling the run file with warnings.
MOST_WARNINGS = 50
_FILE_LEFT_OUT, _JOB_LEFT_OUT = "file-left-out", "job-left-out"

# Control characters but tab and line feed, and surrogates.
_UNREADABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
NaturalKey: TypeAlias = tuple[tuple[object, ...], str]


class Unusable(Exception):  # noqa: N818 - a finding about a file, not a fault of ours
    """A result that cannot be imported.

    ``kind`` is the reason, in words common to all of its kind; ``detail`` describes this one.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}{detail}")
        self.kind, self.detail = kind, detail


def natural_key(name: str) -> NaturalKey:
    """Return a sort key in which numbers count as numbers: ``r2`` before ``r10``."""
    pieces = re.split(r"(\d+)", name)
    key = tuple((len(piece.lstrip("0")), piece.lstrip("0")) if at % 2 else piece for at, piece in enumerate(pieces))
    return key, name


class Remarks:
    """Collect omissions and remarks, for the run file and the command line."""

    def __init__(self) -> None:
        # By code and reason: file, job (empty: the whole file) and detail.
        self._entries: dict[tuple[str, str], list[tuple[str, str, str]]] = {}

    def leave_out_file(self, file: str, why: Unusable) -> None:
        self.say(_FILE_LEFT_OUT, why.kind, file, why.detail)

    def leave_out_job(self, file: str, job: str, why: Unusable) -> None:
        entry = file, readable(job[:40]), why.detail
        self._entries.setdefault((_JOB_LEFT_OUT, why.kind), []).append(entry)

    def say(self, code: str, text: str, file: str, detail: str = "") -> None:
        """Remark on a file; ``text`` is common to all of its kind."""
        self._entries.setdefault((code, text), []).append((file, "", detail))

    def has(self, code: str) -> bool:
        return any(entry_code == code for entry_code, _ in self._entries)

    def warnings(self) -> tuple[RunWarning, ...]:
        """Return the warnings, omissions first: each reason once, with its number and its first place."""
        omissions = _FILE_LEFT_OUT, _JOB_LEFT_OUT
        kinds = sorted(self._entries, key=lambda kind: (kind[0] not in omissions, kind))
        warnings = [
            RunWarning(code=code, text=one_line(_describe(code, text, self._entries[code, text])))
            for code, text in kinds[:MOST_WARNINGS]
        ]
        more = len(kinds) - MOST_WARNINGS
        if more > 0:
            text = f"and {format_count(more, 'more kind')} of warnings; import fewer files to see them"
            warnings.append(RunWarning(code="more", text=text))
        return tuple(warnings)


def _describe(code: str, text: str, entries: Sequence[tuple[str, str, str]]) -> str:
    in_order = sorted(entries, key=lambda entry: natural_key(entry[0]))
    files = [file for file, _, _ in in_order]
    what = f"{text}{in_order[0][2]}"
    if code == _JOB_LEFT_OUT:
        jobs = list(dict.fromkeys(job for _, job, _ in in_order))
        who = f"job {jobs[0]} is"
        if len(entries) > 1:
            results = format_count(len(entries), "result")
            who = f"{results} of job{'s' * (len(jobs) > 1)} {list_readable_names(jobs)} are"
        return f"{who} left out (first in {readable(files[0])}): {what}"
    if code == _FILE_LEFT_OUT:
        who = f"{readable(files[0])} is"
        if len(files) > 1:
            who = f"{format_count(len(files), 'file')} ({list_readable_names(files)}) are"
        return f"{who} left out: {what}"
    return f"{list_readable_names(files)}: {what}"


def list_readable_names(names: Sequence[str]) -> str:
    """List the first few names, and the number of others."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - MOST_LISTED
    listed = ", ".join(readable(name) for name in unique[:MOST_LISTED])
    return f"{listed} and {more:,} more" if more > 0 else listed
