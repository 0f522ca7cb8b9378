"""Build the page of a check of claims. The page shows one run, or a matrix of many drives and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

from tkperf.analysis.claim_results import Checked, CheckedFile, ClaimKind, ClaimResult
from tkperf.analysis.verdict import CheckCode, CheckReason, Judgement, judge_check
from tkperf.model.units import format_count, list_names
from tkperf.page.claim_texts import (
    NOT_CHECKED,
    WITHIN_UNCERTAINTY,
    ClaimText,
    describe_cells,
    describe_claim,
    describe_outcome,
    list_doubts,
    name_claims,
    name_columns,
)
from tkperf.page.margins import (
    build_claim_bar,
    build_claim_tiles,
    build_head,
    build_margins,
    count_tiles,
    describe_margins_title,
    find_margin_lines,
)
from tkperf.page.page import Cell, Column, ReportView, Row, TableView, build_table
from tkperf.page.verdict_texts import CLAIM_LEVELS, NoteLevel, Verdict, count_passed, word_verdict
from tkperf.page.words.conditions import find_cut_short, find_differences, find_remarks
from tkperf.page.words.run import find_badges, find_shared_notices, leave_out_said
from tkperf.page.words.uncertainty import INTERVAL

# The greatest number of reasons that a verdict names. The table contains all reasons.
_MOST_REASONS = 5
_MOST_CLAIMS = 3
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


def build_claims_table(checked: Checked) -> TableView:
    """Return the findings about the claims as a table of a report."""
    names = name_claims(checked.claim_results)
    kinds = Counter(map(checked.judge, checked.claim_results))
    rows = [(finding, describe_claim(finding)) for finding in _sort_claims(checked)]

    def describe_state(row: tuple[ClaimResult, ClaimText]) -> Cell:
        finding, words = row
        doubtful = NoteLevel.CAUTION if finding.certain is False else None
        text = ", ".join((*list_doubts(checked, finding), words.state))
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


def _sort_claims(checked: Checked) -> list[ClaimResult]:
    return sorted(checked.claim_results, key=checked.rank)


def find_check_warnings(checked: Checked) -> Iterator[str]:
    """Yield the facts that a reader of the findings must know: parts of the run that were interrupted, and differences
    from the baseline.
    """
    yield from find_cut_short("run", checked.result)
    if checked.baseline is None:
        return
    for group in find_differences(("baseline", "run"), (checked.baseline, checked.result)):
        yield from group.texts
    yield from find_remarks("baseline", checked.baseline)
    if checked.not_checked:
        yield f"baseline: {format_count(checked.not_checked, 'result')} without a value, so not checked"


def answer_check(files: Sequence[CheckedFile]) -> Verdict:
    """Return the verdict on several runs. Each file contains one run."""
    passed = f"{sum(one.passes for one in files)} of {len(files)} pass"
    return _answer(judge_check(files), passed, _name_runs(files), files)


def answer_claims(checked: Checked) -> Verdict:
    """Return the verdict on a single run."""
    name = checked.result.info.name
    files = (CheckedFile(file=name, checked=checked),)
    return _answer(judge_check(files), count_passed(checked), {name: ""}, files)


def _answer(
    verdict: Judgement[CheckReason], passed: str, runs: Mapping[str, str], files: Sequence[CheckedFile]
) -> Verdict:
    """Return the verdict as one sentence: ``23 of 24 pass; S4510-17 misses 3 claims (...)``."""
    columns = name_columns(files)
    unsure = {
        (one.file, finding.title)
        for one in files
        if one.checked is not None
        for finding in one.checked.claim_results
        if finding.certain is False
    }
    texts = [_describe_reason(one, runs, columns, unsure) for one in verdict.reasons]
    more = len(texts) - _MOST_REASONS
    shown = texts if more < 2 else [*texts[:_MOST_REASONS], f"and {more} more"]
    return word_verdict(verdict, texts, reasons=("; ".join((passed, *shown)),))


def _name_runs(files: Sequence[CheckedFile]) -> dict[str, str]:
    """Return a name for each file. If several runs have the same name, the file names are added."""
    names = {one.file: one.checked.result.info.name if one.checked else PurePath(one.file).name for one in files}
    times = Counter(names.values())
    return {file: name if times[name] == 1 else f"{name} ({file})" for file, name in names.items()}


def _describe_reason(
    reason: CheckReason, runs: Mapping[str, str], columns: Mapping[str, str], unsure: Collection[tuple[str, str]]
) -> str:
    """Return a text about missed claims: ``S4510-17 misses 3 claims (4 KiB random read IOPS ≥ 75,000, ...)``. For a
    single run, the text does not contain the name of the run.

    Args:
        unsure: file and title of each claim that is met or missed within the uncertainty.
    """
    names = list_names([runs[file] for file in reason.files])
    of = f"{names}: " if names else ""
    claims = format_count(len(reason.claims), "claim")
    doubts = ", ".join(reason.doubts)
    match reason.code:
        case CheckCode.CLAIM_FAILED:
            misses = "misses" if len(reason.files) == 1 else "miss"
            failed = []
            for title in reason.claims:
                open_of = [runs[file] for file in reason.files if (file, title) in unsure]
                of_some = f" for {list_names(open_of)}" if len(open_of) < len(reason.files) else ""
                failed.append(f"{columns[title]}{f', {WITHIN_UNCERTAINTY}{of_some}' if open_of else ''}")
            more = len(failed) - _MOST_CLAIMS
            if more > 1:
                failed[_MOST_CLAIMS:] = [f"{more} more"]
            return f"{names} {misses} {claims} ({'; '.join(failed)})".lstrip()
        case CheckCode.CLAIM_NOT_JUDGED:
            what = columns[reason.claims[0]] if names and len(reason.claims) == 1 else claims
            return f"{of}{what} not judged ({doubts})"
        case CheckCode.NOT_CHECKED:
            return f"{names} {NOT_CHECKED}"


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
    """Return a table that begins with the columns ``first``. These columns are followed by a column for each claim.

    Args:
        file_of: returns the checked file of a row. If a file was not checked, the cells of its row are empty.
        options: the options of ``build_table``.
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
    """Return the page of several runs: the verdict, the matrix of runs and claims, and the warnings.

    Runs that fail are at the top of the matrix.
    """
    runs = _name_runs(files)
    ordered = sorted(files, key=lambda one: one.order)
    names = [runs[one.file] for one in ordered]
    first: list[Column[CheckedFile]] = [
        Column("Run", lambda one: runs[one.file]),
        Column("Result", lambda one: describe_outcome(one.checked)),
    ]
    table = build_claims_matrix(
        "Runs and claims",
        ordered,
        lambda one: one,
        first,
        notes=(*_find_copies(files), *_find_drives(files), *_find_errors(files)),
    )
    heads = [build_head(name, describe_outcome(one.checked)) for name, one in zip(names, ordered, strict=True)]
    columns = name_columns(ordered)
    lines = find_margin_lines("Least margin of the runs that miss none", names, ordered, columns)
    page = _build_page(
        describe_margins_title(files, "run"),
        f"check of {format_count(len(columns), 'claim')}",
        find_shared_notices({runs[one.file]: one.checked.result for one in files if one.checked is not None}),
        answer_check(files),
        table,
        (_MEANING, _MARGIN),
    )
    models = {one.checked.result.info.device.get("model") for one in ordered if one.checked is not None}
    # If the drives have several models, a median over the drives has no meaning.
    in_cohort = range(len(ordered)) if len(models) == 1 and None not in models else ()
    tiles = build_claim_tiles(names, ordered, in_cohort)[: count_tiles(len(ordered))]
    return replace(page, decision=build_margins(heads, ordered, lines), headlines=tiles)


def build_claims_page(checked: Checked) -> ReportView:
    """Return the page of a single run. The page contains the verdict, and a row for each claim with a bar that shows
    the value.
    """
    result = checked.result
    table = build_claims_table(checked)
    table = replace(table, strips=tuple(build_claim_bar(checked, one) for one in _sort_claims(checked)))
    return _build_page(
        _describe_claims_title(checked),
        f"check of {result.info.name}",
        find_badges(result),
        answer_claims(checked),
        table,
        (_MEANING,),
    )


def _describe_claims_title(checked: Checked) -> str:
    """Return the title of a page of claims: ``3 of 8 claims are missed, 1 is not judged``."""
    claims = format_count(len(checked.by_title), "claim")
    counts = {kind: checked.count(kind) for kind in ClaimKind}
    parts = [
        f"{count} of {claims} {'is' if count == 1 else 'are'} {words}"
        for kind, words in ((ClaimKind.FAILED, "missed"), (ClaimKind.NOT_JUDGED, "not judged"))
        if (count := counts[kind])
    ]
    if parts:
        return ", ".join(parts)
    return "The claim is met" if len(checked.by_title) == 1 else f"All {claims} are met"


def _build_page(
    title: str, subtitle: str, banners: tuple[str, ...], answer: Verdict, table: TableView, words: tuple[str, ...]
) -> ReportView:
    return ReportView(
        title=title,
        subtitle=subtitle,
        banners=leave_out_said(banners, simulated=answer.judged.simulated),
        stamp=banners,
        words=words,
        verdict=answer,
        overview=(table,),
    )
