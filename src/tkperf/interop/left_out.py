"""Parts that an import left out, and remarks on the rest: grouped, and bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tkperf.interop.imported import readable
from tkperf.model.record import RunWarning
from tkperf.model.units import format_count

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
