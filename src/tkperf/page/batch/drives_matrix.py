"""Build the matrix and the tiles at the beginning of the page with the results of a batch.

The matrix shows drives and claims, or drives and figures if there are no claims. A tile shows a line with a dot for
each drive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import quote as quote_address

from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, ModelGroup, sort_drives
from tkperf.analysis.claim_results import ClaimResult
from tkperf.analysis.comparing.arrangements import CohortValue, Outlier
from tkperf.analysis.comparing.comparison import Arrangement, compare
from tkperf.analysis.comparing.decision_figures import build_decision
from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import judge_run
from tkperf.model.batch_state import DriveStage
from tkperf.model.errors import UsageError
from tkperf.model.units import NOT_MEASURED, drop_controls, format_number
from tkperf.page.batch.batch_progress import level_of_stage
from tkperf.page.claim_texts import describe_outcome, name_columns
from tkperf.page.comparison.comparison_charts import build_figure_tiles, choose_cohort_figures, format_distance
from tkperf.page.comparison.decision_texts import build_decision_view
from tkperf.page.comparison.ratio_texts import describe_loads
from tkperf.page.margins import (
    build_claim_tiles,
    build_head,
    build_heat_legend,
    build_margins,
    count_tiles,
    find_margin_lines,
)
from tkperf.page.matrix import DecisionView, MatrixCell, MatrixColumn, Sign
from tkperf.page.naming import name_links
from tkperf.page.page import Cell, HeadlineView
from tkperf.page.shown_section import find_section_key
from tkperf.page.verdict_texts import NoteLevel, level_of

_MOST_FIGURES = 8


def build_batch_decision(batch_result: BatchResult) -> DecisionView | None:
    """Return the matrix at the beginning of the page, or None if no drive has a result."""
    drives = sort_drives(batch_result)
    if batch_result.has_claims and any(one.checked is not None for one in drives):
        files = [one.file for one in drives]
        names, columns = [_name(one) for one in drives], name_columns(files)
        words = "Least margin of the others" if any(one.misses for one in drives) else "Least margin"
        heads = [
            build_head(_name(one), find_result(one, batch_result), detail=_find_detail(one), page=one.report)
            for one in drives
        ]
        return build_margins(
            heads, files, find_margin_lines(words, names, files, columns), [_find_addresses(one) for one in drives]
        )
    if batch_result.groups:
        return _build_distances(batch_result, drives)
    return _compare_few(batch_result)


def _name(one: BatchDriveResult) -> str:
    """Return the slot of a drive, or its serial number if the slot is not known."""
    shown = one.state.shown
    return shown.label.removesuffix(f" ({drop_controls(shown.serial or shown.name)})")


def _find_detail(one: BatchDriveResult) -> str:
    shown = one.state.shown
    serial = drop_controls(shown.serial or shown.name)
    return "" if _name(one) == serial else serial


def find_result(one: BatchDriveResult, batch_result: BatchResult) -> Cell:
    """Return the result of a drive in words: ``misses 2``, ``passes by 1.3 %``, ``run failed``. If there are no claims,
    return ``valid`` or ``unlike the others``.
    """
    text, level = describe_measurement(one)
    if one.state.stage is DriveStage.FAILED:
        # The text contains the word "run", because the verdict "Fail" on a batch means that a drive misses a claim.
        text = "run failed"
    if one.state.stage is not DriveStage.DONE and one.misses:
        return f"{text}, {describe_outcome(one.checked)[0]}", level
    if not one.is_done:
        return text, level
    if batch_result.has_claims:
        return describe_outcome(one.checked)
    if one.number in batch_result.outliers:
        return "unlike the others", NoteLevel.CAUTION
    return text, level


def describe_measurement(one: BatchDriveResult) -> Cell:
    """Return how the measurement of a drive ended. The result is the stage of the drive or, if the run is complete, the
    verdict on the run.
    """
    stage = one.state.stage
    if stage is not DriveStage.DONE:
        text, level = stage.value, level_of_stage(stage)
    elif one.result is None:
        text, level = "cannot be read", NoteLevel.FAILURE
    else:
        judged = judge_run(one.result)
        text, level = judged.state.value, level_of(judged.state)
    return text, None if level is NoteLevel.INFORMATION else level


def _find_addresses(one: BatchDriveResult) -> dict[str, str]:
    """Return the link of each claim, with the title of the claim as the key. On the page of the drive, the link leads
    to the one-second samples of the value.
    """
    found = {}
    for title, finding in {} if one.checked is None else one.checked.by_title.items():
        key = _find_cell_key(one.result, finding)
        if one.report and key:
            found[title] = f"{quote_address(one.report)}#{key}"
    return found


def _find_cell_key(result: RunResult | None, finding: ClaimResult) -> str:
    for test in () if result is None or finding.workload is None else result.tests:
        for number, section in enumerate(test.sections):
            is_meant = test.name == finding.about.test and finding.about.section in (None, section.name)
            workloads = [cell.workload for cell in section.cells]
            if is_meant and finding.workload in workloads and not section.plan.prepares:
                return name_links(find_section_key(test, number), workloads)[finding.workload]
    return ""


# Functions for batches without claims.


def _build_distances(batch_result: BatchResult, drives: Sequence[BatchDriveResult]) -> DecisionView:
    """Return the matrix of drives and headline figures. A cell contains the distance of a value from the median of the
    drive model.
    """
    columns: list[MatrixColumn] = []
    cells: dict[tuple[int, int], MatrixCell] = {}
    for group in batch_result.groups:
        loads = describe_loads(group.compared)
        for figure in choose_cohort_figures(group.compared, _MOST_FIGURES):
            measure = figure.row.quantity
            column = MatrixColumn(title=loads[figure.row.place], detail=measure.title)
            if column not in columns:
                if len(columns) == _MOST_FIGURES:
                    continue
                columns.append(column)
            outliers = {one.name: one for one in figure.outliers}
            for one, name, entry in zip(group.drives, group.compared.names, figure.row.entries, strict=True):
                cells[one.number, columns.index(column)] = _build_distance(figure, entry.value, outliers.get(name))
    rows = []
    empty = MatrixCell(text=NOT_MEASURED, sign=Sign.NONE, words="")
    for one in drives:
        head = build_head(
            _name(one),
            find_result(one, batch_result),
            detail=_find_detail(one),
            page=one.report,
            sign=Sign.OUTLIER if one.is_done and one.number in batch_result.outliers else None,
        )
        of_drive = (cells.get((one.number, number), empty) for number in range(len(columns)))
        rows.append(replace(head, cells=(*head.cells, *of_drive)))
    return DecisionView(
        lines=(),
        columns=(MatrixColumn(title="Result", detail="outliers first"), *columns),
        rows=tuple(rows),
        legend=build_heat_legend("distance from the median of the model, then the value", rows),
        is_heat_map=True,
        title="Drives and headline figures",
    )


def _build_distance(figure: CohortValue, value: float | None, outlier: Outlier | None) -> MatrixCell:
    measure, cohort = figure.row.quantity, figure.distribution
    if value is None:
        return MatrixCell(text=NOT_MEASURED, sign=Sign.NONE, words="not measured")
    percent = 100 * (value / cohort.median - 1)
    limits = (cohort.outlier_low, cohort.outlier_high)
    heat = None
    if limits[0] is not None and limits[1] is not None and limits[1] > limits[0]:
        heat = min(1.0, 2 * abs(value - cohort.median) / (limits[1] - limits[0]))
    return MatrixCell(
        text=format_distance(percent),
        sign=Sign.NONE if outlier is None else Sign.OUTLIER,
        words=format_number(value, measure.digits),
        hint=f"{measure.text(value)}; median {measure.text(cohort.median)}",
        heat=None if outlier is not None else heat,
        level=None if outlier is None else NoteLevel.CAUTION,
    )


def _compare_few(batch_result: BatchResult) -> DecisionView | None:
    """Return a direct comparison of drives. This comparison is used if there are too few drives for a distribution, or
    if the drives differ too much.

    Return None if the drives have no results in common.
    """
    done = [one for one in batch_result.done if one not in batch_result.damaged]
    results = [
        replace(one.result, info=replace(one.result.info, name=one.state.shown.label))
        for one in done
        if one.result is not None
    ]
    if len(results) < 2:
        return None
    try:
        compared = compare(results, Arrangement.RUNS)
    except UsageError:
        return None
    view = build_decision_view(compared, build_decision(compared))
    rows = (replace(row, cells=tuple(replace(cell, target="") for cell in row.cells)) for row in view.rows)
    return replace(view, rows=tuple(rows))


# Section: strips.


def build_batch_tiles(batch_result: BatchResult) -> tuple[HeadlineView, ...]:
    """Return the tiles at the beginning of the page, the worst tile first. There is one tile for each claim, or one
    tile for each headline figure if there are no claims.
    """
    most = count_tiles(len(batch_result.drives))
    if not batch_result.has_claims:
        tiles = (tile for group in batch_result.groups for tile in build_group_tiles(group, most))
        return tuple(tiles)[:most]
    drives = sort_drives(batch_result)
    numbers = {one.number for group in batch_result.groups[:1] for one in group.drives}
    in_cohort = {place for place, one in enumerate(drives) if one.number in numbers}
    return build_claim_tiles([_name(one) for one in drives], [one.file for one in drives], in_cohort)[:most]


def build_group_tiles(group: ModelGroup, most: int) -> Iterator[HeadlineView]:
    """Yield a tile for each of the most important figures of a drive model. A tile contains a dot for each drive."""
    called = dict(zip(group.compared.names, map(_name, group.drives), strict=True))
    return build_figure_tiles(group.compared, choose_cohort_figures(group.compared, most), called)
