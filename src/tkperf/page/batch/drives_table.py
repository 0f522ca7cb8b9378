"""The table of the drives of a batch, with a row for each drive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, ModelGroup, sort_drives
from tkperf.analysis.comparing.comparison import Arrangement, compare
from tkperf.model.errors import UsageError
from tkperf.model.units import NOT_MEASURED, drop_controls, format_count, format_duration, format_number, list_names
from tkperf.page.batch.drives_matrix import describe_measurement
from tkperf.page.claim_texts import describe_outcome
from tkperf.page.comparison.comparison_charts import choose_cohort_figures
from tkperf.page.comparison.ratio_texts import describe_loads
from tkperf.page.page import Cell, Column, TableView, build_table, weigh
from tkperf.page.verdict_texts import NoteLevel
from tkperf.page.words.run import describe_sharing
from tkperf.page.words.uncertainty import two_digits

MOST_COLUMNS = 4
_LONGEST_KEPT, _NO_BREAK = 24, "\N{NO-BREAK SPACE}"


def build_drives_table(batch_result: BatchResult) -> TableView:
    """Return a row for each drive: its result, its first headline figures, its temperature, and the facts that
    differ.
    """
    drives = sort_drives(batch_result)
    return build_table(
        "Drives",
        drives,
        [Column("Drive", lambda one: one.label), *map(_keep_cells_together, _find_columns(batch_result))],
        pages=[one.report for one in drives],
        notes=tuple(_find_common(batch_result)),
    )


def _find_columns(batch_result: BatchResult) -> Iterator[Column[BatchDriveResult]]:
    if batch_result.has_claims:
        yield Column("Claims", lambda one: describe_outcome(one.checked) if one.is_done else _NOTHING, 1)
    yield Column("Measurement", describe_measurement, 2)
    if batch_result.outliers:
        yield Column("Unlike the others", lambda one: _describe_strays(one, batch_result), 3)
    yield from _find_figure_columns(batch_result)
    yield Column("Hottest (°C)", lambda one: NOT_MEASURED if one.hottest_c is None else f"{one.hottest_c:.0f}", 5)
    yield Column("Throttled", _describe_throttled, 10)
    for rank, (title, fact) in enumerate(_FACTS.items(), start=11):
        if len({fact(one) for one in batch_result.drives}) > 1:
            yield Column(title, partial(_describe_fact, fact), rank)
    if any(one.label != one.state.shown.name for one in batch_result.drives):
        yield Column("Run", lambda one: one.state.shown.name, 20)


def _keep_cells_together(column: Column[BatchDriveResult]) -> Column[BatchDriveResult]:
    """Return a column whose short texts are not broken into lines."""

    def find_cell(one: BatchDriveResult) -> Cell:
        text, level = weigh(column.cell(one))
        text = drop_controls(text)
        return (text.replace(" ", _NO_BREAK) if len(text) <= _LONGEST_KEPT else text), level

    return replace(column, cell=find_cell)


_NOTHING: Cell = (NOT_MEASURED, None)


def _describe_fact(fact: Callable[[BatchDriveResult], object], one: BatchDriveResult) -> Cell:
    known = fact(one)
    return (NOT_MEASURED if known is None else str(known)), None


def _of_device(key: str) -> Callable[[BatchDriveResult], object]:
    """Return a function that finds a fact about a drive in its run, or else in the batch."""

    def find(one: BatchDriveResult) -> object:
        measured = None if one.result is None else one.result.info.device.get(key)
        return measured or getattr(one.state.shown, key)

    return find


# Facts about a drive that have a column if they differ.
_FACTS: dict[str, Callable[[BatchDriveResult], object]] = {
    "Model": _of_device("model"),
    "Firmware": _of_device("firmware"),
    "Link": _of_device("link"),
    "Host": lambda one: one.state.shown.host,
    "Others at once": lambda one: None if one.state.place is None else one.state.place.others,
}


def _describe_strays(one: BatchDriveResult, batch_result: BatchResult) -> Cell:
    outliers = batch_result.outliers.get(one.number, ())
    if not outliers:
        return _NOTHING
    most = max(abs(outlier.from_median_percent) for outlier, _ in outliers)
    return f"{format_count(len(outliers), 'figure')}, up to {two_digits(most)} %", NoteLevel.CAUTION


def _find_figure_columns(batch_result: BatchResult) -> Iterator[Column[BatchDriveResult]]:
    cells: dict[str, dict[int, Cell]] = {}
    for group in batch_result.groups:
        loads = describe_loads(group.compared)
        alone = {one.number: _find_values(one, group) for one in batch_result.without_group}
        for figure in choose_cohort_figures(group.compared, MOST_COLUMNS):
            quantity, place = figure.row.quantity, figure.row.place
            column = cells.setdefault(f"{loads[place]}: {quantity.title}", {})
            for number, values in alone.items():
                column.setdefault(number, (format_number(values.get(place), quantity.digits), None))
            for one, entry in zip(group.drives, figure.row.entries, strict=True):
                is_outlier = any(of is figure for _, of in batch_result.outliers.get(one.number, ()))
                level = NoteLevel.CAUTION if is_outlier else None
                column[one.number] = format_number(entry.value, quantity.digits), level
    for rank, (title, column) in enumerate(list(cells.items())[:MOST_COLUMNS], start=6):
        yield Column(title, partial(_find_cell, column), rank)


def _find_cell(column: Mapping[int, Cell], one: BatchDriveResult) -> Cell:
    return column.get(one.number, _NOTHING)


def _find_values(one: BatchDriveResult, group: ModelGroup) -> Mapping[tuple[object, ...], float | None]:
    """Return the values of a drive without a group, by the places of the rows that it shares with a group."""
    assert one.result is not None
    try:
        pair = compare((group.compared.results[0], one.result), Arrangement.RUNS)
    except UsageError:
        return {}
    return {row.place: row.entries[1].value for row in pair.rows}


def _describe_throttled(one: BatchDriveResult) -> Cell:
    if one.throttled_s is None:
        return _NOTHING
    return (format_duration(one.throttled_s), NoteLevel.CAUTION) if one.throttled_s else ("no", None)


def _find_common(batch_result: BatchResult) -> Iterator[str]:
    """Yield how tkperf judged whether drives that were measured at the same time disturb each other."""
    for title, fact in _FACTS.items():
        known = {fact(one) for one in batch_result.drives}
        if len(known) == 1 and len(batch_result.drives) > 1 and None not in known:
            yield f"{title}: {known.pop()} (all drives)."
    alike: dict[str, list[str]] = {}
    for one in batch_result.drives:
        if (place := one.state.place) is not None and place.others:
            alike.setdefault(describe_sharing(place.sharing), []).append(one.label)
    measured = sum(len(names) for names in alike.values())
    for text, names in alike.items():
        who = "Drives measured at once" if len(names) == measured else list_names(names)
        yield f"{who}: {text}."
