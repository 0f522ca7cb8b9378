"""Describe the check of claims on a run, and on many drives as a matrix of drives and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

from tkperf.analysis.characteristics import CHARACTERISTICS
from tkperf.analysis.claim_results import Checked, CheckedFile, ClaimKind, ClaimResult, Doubt, limit_of
from tkperf.analysis.verdict import CheckCode, CheckReason, Judgement, judge_check
from tkperf.analysis.workload_axes import ACCESS, AXES, BLOCKS, MIX
from tkperf.model.quantity import QUANTITIES, Direction, Measure
from tkperf.model.units import (
    NOT_FOUND,
    NOT_MEASURED,
    find_digit_place,
    format_block_size_kib,
    format_count,
    format_to_place,
    list_names,
    unit_for_people,
)
from tkperf.page.naming import name_figure, name_load
from tkperf.page.page import Cell, Column, ReportView, Row, TableView, build_table
from tkperf.page.verdict_texts import CLAIM_LEVELS, NoteLevel, Verdict, count_passed, word_verdict
from tkperf.page.words.conditions import find_cut_short, find_differences, find_remarks
from tkperf.page.words.run import find_badges, find_notices, leave_out_said
from tkperf.page.words.uncertainty import INTERVAL

_SMALLEST_MARGIN = 0.05  # in percent
_MOST_SIGMAS = 10  # a larger number adds no information
_MOST_FINER = 6  # most digits beyond the usual ones, to show that a value differs from its limit
_WITHIN_UNCERTAINTY = "within the uncertainty"
# The table has all.
_MOST_REASONS = 5
_MOST_CLAIMS = 3
_NOT_CHECKED = "could not be checked"
_MEANING = (
    "Only a claim that is met passes. A claim is not judged, and no failure of the drive, if its value was not "
    "measured or "
    "did not reach steady state, if its load does not show what the device alone can do (such as buffered I/O), or if "
    "the "
    "run has not ended or its file is damaged. Among several runs, a run passes by its least margin."
)
_MARGIN = (
    "Margin: distance to the limit on its good side, in percent of the limit, and in standard "
    f"uncertainties (sigma). It does not decide. Within the uncertainty: its {INTERVAL} "
    "contains the limit, with a baseline that of the difference of both levels."
)


class ClaimText(NamedTuple):
    """A claim's finding in words."""

    limit: str
    measured: str
    margin: str
    state: str


def describe_claim(finding: ClaimResult) -> ClaimText:
    """Return a finding in words; the state is ``met`` or ``met, within the uncertainty``."""
    state = finding.state.value
    margin = _describe_margin(finding.margin_percent)
    sigmas = finding.margin_sigmas
    if sigmas is not None:
        many = f"{abs(sigmas):.1f}" if abs(sigmas) <= _MOST_SIGMAS else f"over {_MOST_SIGMAS}"
        margin = f"{margin}, {many} sigma"
    return ClaimText(
        limit=_describe_limit(finding),
        measured=_describe_measured(finding),
        margin=margin,
        state=f"{state}, {_WITHIN_UNCERTAINTY}" if finding.certain is False else state,
    )


def name_claims(findings: Iterable[ClaimResult]) -> dict[str, str]:
    """Return the name of each claim by its words in the file: ``4 KiB random read IOPS``.

    Names that are alike have their section or test with them.
    """
    by_claim: dict[str, ClaimResult] = {}
    for finding in findings:
        known = by_claim.get(finding.claim)
        if known is None or known.workload is None:
            by_claim[finding.claim] = finding
    names = {claim: _name(finding) for claim, finding in by_claim.items()}
    places = {claim: one.about.section or one.about.test for claim, one in by_claim.items()}
    for more in (places, {claim: claim for claim in by_claim}):
        times = Counter(names.values())
        names = {claim: f"{name} ({more[claim]})" if times[name] > 1 else name for claim, name in names.items()}
    return names


def _name(finding: ClaimResult) -> str:
    claim, workload = finding.about, finding.workload
    measure = _measure_of(finding)
    size_bytes = claim.size_bytes()
    if workload is not None:
        load = name_figure(workload)
        conditions = [
            axis.words(workload)
            for axis in AXES
            if axis not in (ACCESS, BLOCKS, MIX) and getattr(claim, axis.key) is not None
        ]
    else:
        blocks = "" if size_bytes is None else f"{format_block_size_kib(size_bytes)} KiB"
        load, conditions = name_load(blocks, claim.access, claim.read_percent), []
        load = load or claim.section or claim.test
    joined = ", " if "," in load or claim.metric in CHARACTERISTICS else " "
    of = "" if claim.direction is Direction.ALL else f" of {claim.direction}s"
    return ", ".join((joined.join(filter(None, (load, measure.label + of))), *conditions))


def _measure_of(finding: ClaimResult) -> Measure:
    return QUANTITIES.get(finding.about.metric) or CHARACTERISTICS[finding.about.metric]


def _describe_limit(finding: ClaimResult, after: str = "") -> str:
    """Return ``≥ 500 MB/s``; after a name that ends with the unit ``≥ 75,000``."""
    claim, unit = finding.about, _measure_of(finding).unit
    if claim.not_found:
        return NOT_FOUND
    limit = limit_of(claim)
    number = f"{limit:,.6g}" if limit < 10**6 else f"{limit:,.0f}"
    sign = "≤" if claim.at_least is None else "≥"
    return " ".join(filter(None, (sign, number, "" if after.endswith(unit) else unit)))


def _describe_measured(finding: ClaimResult) -> str:
    """Return the value with its unit, with enough digits to show on which side of the limit it lies."""
    if finding.value is None:
        return NOT_MEASURED
    place = find_digit_place(finding.value)
    gap = abs(finding.value * (finding.margin_percent or 0) / 100)
    if gap:
        place = max(min(place, find_digit_place(gap) + 2), place - _MOST_FINER)
    return f"{format_to_place(finding.value, place)} {unit_for_people(finding.unit)}".rstrip()


def _describe_margin(margin: float | None) -> str:
    """Return ``+12.3 %``; a margin below 0.05 % has one digit."""
    if margin is None:
        return NOT_MEASURED
    if not margin:
        return "0.0 %"
    return f"{margin:+,.1f} %" if abs(margin) >= _SMALLEST_MARGIN else f"{margin:+.1g} %"


def build_claims_table(checked: Checked) -> TableView:
    """Return the findings as a report shows them."""
    names = name_claims(checked.claim_results)
    kinds = Counter(map(checked.judge, checked.claim_results))
    rows = [(finding, describe_claim(finding)) for finding in checked.claim_results]

    def describe_state(row: tuple[ClaimResult, ClaimText]) -> Cell:
        finding, words = row
        doubtful = NoteLevel.CAUTION if finding.certain is False else None
        text = ", ".join((*_doubts(checked, finding), words.state))
        return text, CLAIM_LEVELS.get(checked.judge(finding), doubtful)

    columns: list[Column[tuple[ClaimResult, ClaimText]]] = [
        Column("Claim", lambda row: names[row[0].claim]),
        Column("State", describe_state),
        Column("Margin", lambda row: row[1].margin),
        Column("Measured", lambda row: row[1].measured),
        Column("Limit", lambda row: row[1].limit),
        Column("Note", lambda row: row[0].note or ""),
        Column("Source", lambda row: row[0].source or ""),
    ]
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return build_table("Claims", rows, columns, notes=(counts, _MARGIN, *find_check_warnings(checked)))


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


def answer_check(files: Sequence[CheckedFile]) -> Verdict:
    """Return the answer for several runs, each of which is one file."""
    passed = f"{sum(one.passes for one in files)} of {len(files)} pass"
    return _answer(judge_check(files), passed, _name_runs(files), name_columns(files))


def answer_claims(checked: Checked) -> Verdict:
    """Return the answer for a single run."""
    name = checked.result.info.name
    files = (CheckedFile(file=name, checked=checked),)
    return _answer(judge_check(files), count_passed(checked), {name: ""}, name_columns(files))


def _answer(
    verdict: Judgement[CheckReason], passed: str, runs: Mapping[str, str], columns: Mapping[str, str]
) -> Verdict:
    """Return the answer with one sentence: ``23 of 24 pass; S4510-17 fails 3 claims (...)``."""
    texts = [_describe_reason(one, runs, columns) for one in verdict.reasons]
    more = len(texts) - _MOST_REASONS
    shown = texts if more < 2 else [*texts[:_MOST_REASONS], f"and {more} more"]
    return word_verdict(verdict, texts, reasons=("; ".join((passed, *shown)),))


def _name_runs(files: Sequence[CheckedFile]) -> dict[str, str]:
    """Return a name for each file; runs of one name have their file with it."""
    names = {one.file: one.checked.result.info.name if one.checked else PurePath(one.file).name for one in files}
    times = Counter(names.values())
    return {file: name if times[name] == 1 else f"{name} ({file})" for file, name in names.items()}


def name_columns(files: Sequence[CheckedFile]) -> dict[str, str]:
    """Return ``4 KiB random read IOPS ≥ 75,000`` by the title of each claim."""
    findings = [finding for one in files if one.checked for finding in one.checked.claim_results]
    names = name_claims(findings)
    return {
        finding.title: f"{names[finding.claim]} {_describe_limit(finding, names[finding.claim])}"
        for finding in findings
    }


def _describe_reason(reason: CheckReason, runs: Mapping[str, str], columns: Mapping[str, str]) -> str:
    """Return ``S4510-17 fails 3 claims (4 KiB random read IOPS ≥ 75,000, ...)``; the name of a single run is empty."""
    names = list_names([runs[file] for file in reason.files])
    of = f"{names}: " if names else ""
    claims = format_count(len(reason.claims), "claim")
    doubts = ", ".join(reason.doubts)
    match reason.code:
        case CheckCode.CLAIM_FAILED:
            fails = "fails" if len(reason.files) == 1 else "fail"
            failed = [columns[title] for title in reason.claims]
            more = len(failed) - _MOST_CLAIMS
            if more > 1:
                failed[_MOST_CLAIMS:] = [f"{more} more"]
            return f"{names} {fails} {claims} ({'; '.join(failed)})".lstrip()
        case CheckCode.CLAIM_NOT_JUDGED:
            what = columns[reason.claims[0]] if names and len(reason.claims) == 1 else claims
            return f"{of}{what} not judged ({doubts})"
        case CheckCode.NOT_CHECKED:
            return f"{names} {_NOT_CHECKED}"


def describe_cells(checked: Checked | None) -> list[tuple[str, ClaimKind]]:
    """Return ``not steady, met +12.3 %`` and the outcome of each claim, equal ones once; empty: not checked."""
    if checked is None:
        return []
    by_title = {finding.title: finding for finding in checked.claim_results}
    return [(_describe_cell(checked, one), checked.judge(one)) for one in by_title.values()]


def _describe_cell(checked: Checked, finding: ClaimResult) -> str:
    state = finding.state.value
    if finding.margin_percent is not None:
        state += f" {_describe_margin(finding.margin_percent)}"
    return ", ".join((*_doubts(checked, finding), state))


def _doubts(checked: Checked, finding: ClaimResult) -> Iterator[Doubt]:
    """Yield the reasons not to judge by a claim's value, without those that its state says."""
    return (doubt for doubt in checked.find_doubts(finding) if doubt != finding.state.value)


def describe_outcome(checked: Checked | None) -> tuple[str, NoteLevel | None]:
    """Return ``passes by 1.3 %``, which is the least margin, or ``fails 3, 1 not judged``, and its weight."""
    if checked is None:
        return _NOT_CHECKED, NoteLevel.CAUTION
    kinds = Counter(kind for _, kind in describe_cells(checked))
    failed, open_ = kinds[ClaimKind.FAILED], kinds[ClaimKind.NOT_JUDGED]
    if failed or open_:
        words = (f"fails {failed}" * bool(failed), f"{open_} not judged" * bool(open_))
        return ", ".join(filter(None, words)), NoteLevel.FAILURE if failed else NoteLevel.CAUTION
    margins = [one.margin_percent for one in checked.claim_results if one.margin_percent is not None]
    by = f" by {_describe_margin(min(margins)).lstrip('+')}" if margins else ""
    return f"passes{by}", None


def _place_of(one: CheckedFile) -> tuple[int, int]:
    """Return the place of a run: the more claims fail, then the more are not judged, the earlier; passes come last."""
    if one.checked is None:
        return (1, 0)
    kinds = Counter(kind for _, kind in describe_cells(one.checked))
    failed, open_ = kinds[ClaimKind.FAILED], kinds[ClaimKind.NOT_JUDGED]
    return (0, -failed) if failed else (1, -open_) if open_ else (2, 0)


def _find_banners(files: Sequence[CheckedFile], runs: Mapping[str, str]) -> Iterator[str]:
    """Yield the notices of the runs; one that only some have is followed by their names."""
    of_notice: dict[str, list[str]] = {}
    for one in files:
        for notice in () if one.checked is None else find_notices(one.checked.result):
            of_notice.setdefault(notice, []).append(runs[one.file])
    checked = sum(one.checked is not None for one in files)
    for notice, names in of_notice.items():
        yield notice if len(names) == checked else f"{notice} ({list_names(names)})"


def _find_copies(files: Sequence[CheckedFile]) -> Iterator[str]:
    for one in files:
        if one.copies:
            same = ", ".join(dict.fromkeys((one.file, *one.copies)))
            yield f"{same}: one run, given {len(one.copies) + 1} times, counts once"


def _find_drives(files: Sequence[CheckedFile]) -> Iterator[str]:
    of_serial: dict[str, list[str]] = {}
    for one in files:
        serial = None if one.checked is None else one.checked.result.info.device.get("serial")
        if serial:
            of_serial.setdefault(str(serial), []).append(one.file)
    for serial, names in of_serial.items():
        if len(names) > 1:
            yield f"several runs are of drive {serial}: {', '.join(names)}"


def _find_errors(files: Sequence[CheckedFile]) -> Iterator[str]:
    for one in files:
        if one.error:
            yield one.error if one.error.startswith(one.file) else f"{one.file}: {one.error}"


def build_claims_matrix(
    title: str, rows: Sequence[Row], file_of: Callable[[Row], CheckedFile], first: Sequence[Column[Row]], **options: Any
) -> TableView:
    """Return a table with the ``first`` columns, then a column for each claim.

    Args:
        file_of: returns what was checked of a row. Cells of a file that was not checked are empty.
        options: as ``build_table`` has them.
    """
    files = [file_of(row) for row in rows]
    cells = [(row, describe_cells(one.checked)) for row, one in zip(rows, files, strict=True)]

    def show_first(column: Column[Row], of: tuple[Row, list[tuple[str, ClaimKind]]]) -> str | Cell:
        return column.cell(of[0])

    def show_claim(number: int, of: tuple[Row, list[tuple[str, ClaimKind]]]) -> Cell:
        if not of[1]:
            return "", None
        text, kind = of[1][number]
        return text, CLAIM_LEVELS.get(kind)

    columns = [
        *(Column(column.title, partial(show_first, column), column.rank) for column in first),
        *(Column(name, partial(show_claim, number)) for number, name in enumerate(name_columns(files).values())),
    ]
    return build_table(title, cells, columns, **options)


def build_check_page(files: Sequence[CheckedFile]) -> ReportView:
    """Return the page of several runs: the verdict, a row for each run, those that fail first, and what a reader must
    know.
    """
    runs = _name_runs(files)
    first: list[Column[CheckedFile]] = [
        Column("Run", lambda one: runs[one.file]),
        Column("Result", lambda one: describe_outcome(one.checked)),
    ]
    table = build_claims_matrix(
        "Runs and claims",
        sorted(files, key=_place_of),
        lambda one: one,
        first,
        notes=(*_find_copies(files), *_find_drives(files), *_find_errors(files)),
    )
    return _build_page(
        format_count(len(files), "run"),
        tuple(_find_banners(files, runs)),
        answer_check(files),
        table,
        (_MEANING, _MARGIN),
    )


def build_claims_page(checked: Checked) -> ReportView:
    """Return the page of a single run: the verdict, and a row for each claim."""
    result = checked.result
    table = build_claims_table(checked)
    return _build_page(result.info.name, find_badges(result), answer_claims(checked), table, (_MEANING,))


def _build_page(
    subtitle: str, banners: tuple[str, ...], answer: Verdict, table: TableView, words: tuple[str, ...]
) -> ReportView:
    return ReportView(
        title="Check of claims",
        subtitle=subtitle,
        banners=leave_out_said(banners, simulated=answer.judged.simulated),
        stamp=banners,
        words=words,
        verdict=answer,
        overview=(table,),
    )
