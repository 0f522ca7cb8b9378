"""Describe the check of claims on a run, and on many drives as a matrix of drives and claims."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from tkperf.analysis.claim_findings import Checked, ClaimFinding, ClaimState
from tkperf.analysis.results import RunResult
from tkperf.model.record import RunStatus
from tkperf.model.units import (
    NOT_MEASURED,
    find_digit_place,
    format_count,
    format_to_place,
    unit_for_people,
)
from tkperf.page.page import ReportView, TableView
from tkperf.page.words.conditions import find_cut_short, find_differences, find_remarks
from tkperf.page.words.run import find_notices
from tkperf.page.words.uncertainty import INTERVAL

_SMALLEST_MARGIN = 0.05  # in percent
_MOST_SIGMAS = 10  # a larger number adds no information
_MOST_FINER = 6  # most digits beyond the usual ones, to show that a value differs from its limit
_WITHIN_UNCERTAINTY = "within the uncertainty"


class ClaimText(NamedTuple):
    """A claim's finding in words."""

    claim: str
    limit: str
    measured: str
    margin: str
    state: str
    note: str
    source: str


def describe_claim(finding: ClaimFinding) -> ClaimText:
    """Return a finding in words; the state is ``met`` or ``met, within the uncertainty``."""
    state = finding.state.value
    margin = _describe_margin(finding)
    sigmas = finding.margin_sigmas
    if sigmas is not None:
        many = f"{abs(sigmas):.1f}" if abs(sigmas) <= _MOST_SIGMAS else f"over {_MOST_SIGMAS}"
        margin = f"{margin}, {many} sigma"
    return ClaimText(
        claim=finding.claim,
        limit=finding.limit,
        measured=_describe_measured(finding),
        margin=margin,
        state=f"{state}, {_WITHIN_UNCERTAINTY}" if finding.certain is False else state,
        note=finding.note or "",
        source=finding.source or "",
    )


def _describe_measured(finding: ClaimFinding) -> str:
    """Return the value with its unit, with enough digits to show on which side of the limit it lies."""
    if finding.value is None:
        return NOT_MEASURED
    place = find_digit_place(finding.value)
    gap = abs(finding.value * (finding.margin_percent or 0) / 100)
    if gap:
        place = max(min(place, find_digit_place(gap) + 2), place - _MOST_FINER)
    return f"{format_to_place(finding.value, place)} {unit_for_people(finding.unit)}".rstrip()


def _describe_margin(finding: ClaimFinding) -> str:
    """Return ``+12.3 %``; a margin below 0.05 % has one digit."""
    margin = finding.margin_percent
    if margin is None:
        return NOT_MEASURED
    if not margin:
        return "0.0 %"
    return f"{margin:+,.1f} %" if abs(margin) >= _SMALLEST_MARGIN else f"{margin:+.1g} %"


def build_claims_table(checked: Checked) -> TableView:
    """Return the findings as a report shows them."""
    states = Counter(finding.state.value for finding in checked.findings)
    rows = []
    for finding in checked.findings:
        text = describe_claim(finding)
        state = f"{text.state} ({text.note})" if text.note else text.state
        rows.append((text.claim, text.limit, text.measured, text.margin, state, text.source))
    return TableView(
        title="Claims",
        columns=("Claim", "Limit", "Measured", "Margin", "State", "Source"),
        rows=tuple(rows),
        notes=(
            ", ".join(f"{count} {state}" for state, count in states.items()),
            "Margin: distance to the limit on its good side, in percent of the limit, and in standard "
            f"uncertainties (sigma). Values alone decide; within the uncertainty: its {INTERVAL} "
            "contains the limit, with a baseline that of the difference of both levels.",
            *find_check_warnings(checked),
        ),
    )


def find_check_warnings(checked: Checked) -> Iterator[str]:
    """Yield the facts that a reader of the findings must know: parts cut short, and differences to the baseline."""
    yield from find_cut_short("run", checked.result)
    if checked.baseline is None:
        return
    for group in find_differences(("baseline", "run"), (checked.baseline, checked.result)):
        yield from group.texts
    yield from find_remarks("baseline", checked.baseline)
    if checked.not_checked:
        yield f"baseline: {format_count(checked.not_checked, 'result')} without a value, so not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A run file of many that were checked.

    Attributes:
        file: its name, as it was given.
        checked: None: it could not be checked, because of ``error``.
    """

    file: str
    checked: Checked | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCell:
    """A claim of a drive: only a claim that is met, by a steady or unjudged value of a whole run, passes."""

    text: str
    passes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """A run file with a cell for each claim; without cells it could not be checked."""

    name: str
    file: str
    cells: tuple[CheckCell, ...]
    error: str = ""

    @property
    def passes(self) -> bool:
        """Return whether every claim passes."""
        return bool(self.cells) and all(cell.passes for cell in self.cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckMatrix:
    """Drives and claims: ``claims`` are the columns, each with its limit; ``notes`` name what a reader must know."""

    claims: tuple[str, ...]
    rows: tuple[CheckRow, ...]
    notes: tuple[str, ...]

    @property
    def banner(self) -> str:
        """Return the answer: ``23 of 24 pass; S4510-17 fails 3 claims``."""
        passed = sum(row.passes for row in self.rows)
        failing = [
            f"{row.name} fails {format_count(sum(not cell.passes for cell in row.cells), 'claim')}"
            if row.cells
            else f"{row.name} could not be checked"
            for row in self.rows
            if not row.passes
        ]
        more = len(failing) - _MOST_FAILING
        if more > 0:
            failing = [*failing[:_MOST_FAILING], f"and {format_count(more, 'more run')}"]
        return "; ".join([f"{passed} of {len(self.rows)} pass", *failing])


_MOST_FAILING = 5


def build_check_matrix(files: Sequence[CheckedFile]) -> CheckMatrix:
    """Return the matrix of many run files that were checked against the same claims."""
    checks = [one.checked for one in files if one.checked is not None]
    claims = tuple(
        dict.fromkeys(_title(finding) for checked in checks for finding in checked.findings)
    )
    return CheckMatrix(
        claims=claims,
        rows=tuple(_row(one, claims) for one in files),
        notes=tuple(chain(_duplicates(files), _remarks(files))),
    )


def _title(finding: ClaimFinding) -> str:
    return f"{finding.claim} {finding.limit}"


def _row(one: CheckedFile, claims: Sequence[str]) -> CheckRow:
    if one.checked is None:
        return CheckRow(name=one.file, file=one.file, cells=(), error=one.error)
    by_claim = {_title(finding): finding for finding in one.checked.findings}
    return CheckRow(
        name=one.checked.result.info.name,
        file=one.file,
        cells=tuple(_cell(by_claim.get(claim), one.checked.result) for claim in claims),
    )


def _cell(finding: ClaimFinding | None, result: RunResult) -> CheckCell:
    if finding is None:
        return CheckCell(text=ClaimState.NOT_MEASURED.value, passes=False)
    doubts = []
    if result.status is RunStatus.RUNNING:
        doubts.append("under way")
    if result.left_out:
        doubts.append("damaged")
    if finding.is_steady is False:
        doubts.append("not steady")
    text = finding.state.value
    if finding.margin_percent is not None:
        text += f" {_describe_margin(finding)}"
    passes = finding.state is ClaimState.MET and not doubts
    return CheckCell(text=", ".join([*doubts, text]), passes=passes)


def _duplicates(files: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield the drives of which several files are given."""
    of_serial: dict[str, list[str]] = {}
    for one in files:
        serial = None if one.checked is None else one.checked.result.info.device.get("serial")
        if serial:
            of_serial.setdefault(str(serial), []).append(one.file)
    for serial, names in of_serial.items():
        if len(names) > 1:
            yield f"several runs are of drive {serial}: {', '.join(names)}"
    for file, count in Counter(one.file for one in files).items():
        if count > 1:
            yield f"{file} was given {count} times"


def _remarks(files: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield the notices of the runs, equal ones once, and why files could not be checked."""
    of_notice: dict[str, list[str]] = {}
    checked = sum(one.checked is not None for one in files)
    for one in files:
        for notice in () if one.checked is None else find_notices(one.checked.result):
            of_notice.setdefault(notice, []).append(one.file)
    for notice, names in of_notice.items():
        yield notice if len(names) == checked else f"{', '.join(names)}: {notice}"
    for one in files:
        if one.error:
            yield f"{one.file}: {one.error}"


def build_check_page(matrix: CheckMatrix) -> ReportView:
    """Return the page of a matrix: the answer, the table with what fails in red, and the notes."""
    width = len(matrix.claims)
    rows = [
        [cell.text for cell in row.cells] or ["could not be checked", *("",) * (width - 1)]
        for row in matrix.rows
    ]
    failed = [[not cell.passes for cell in row.cells] or [True] * width for row in matrix.rows]
    table = TableView(
        title="Runs and claims",
        columns=("Run", *matrix.claims),
        rows=tuple((row.name, *cells) for row, cells in zip(matrix.rows, rows, strict=True)),
        failed=tuple(map(tuple, failed)),
    )
    notices = [note for note in matrix.notes if _NOTICE.match(note)]
    return ReportView(
        title="Check of claims",
        subtitle=format_count(len(matrix.rows), "run"),
        banners=tuple(notices),
        disclosure=(),
        tests=(),
        words=tuple(note for note in matrix.notes if note not in notices),
        answer=(f"{matrix.banner}.",),
        overview=(table,),
    )


# Such as SIMULATED or QUICK PROFILE, for all runs.
_NOTICE = re.compile(r"[A-Z][A-Z ]+:")
