"""Build the tables of a comparison. The tables contain the headline figures in a form that suits the arrangement of the
runs, the values of each section, and matrices of ratios.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from tkperf.analysis.comparing.arrangements import FEWEST_IN_TREND, FEWEST_SCORED, OUTLIER_SCORE, Cohort, History
from tkperf.analysis.comparing.compared_rows import Change, ComparedRow, Entry
from tkperf.analysis.comparing.comparison import Arrangement, Comparison
from tkperf.analysis.uncertainty.spread import COVERED
from tkperf.analysis.workload_axes import text_on
from tkperf.model.quantity import Measure
from tkperf.model.units import NOT_MEASURED, format_number
from tkperf.page.comparison.ratio_texts import (
    RATIO_MARKS,
    describe_loads,
    describe_ratio,
    describe_ratio_uncertainty,
    format_ratio,
    list_ratios,
    mark_certainty,
    name_phase,
    name_reference,
    sort_figures,
    sort_headlines,
    sort_rows,
)
from tkperf.page.naming import arrange, listing_axes
from tkperf.page.page import TableView
from tkperf.page.words.uncertainty import INTERVAL, describe_interval, describe_value, explain_marks, mark, two_digits

MOST_ACROSS = 6
"""The greatest number of runs for which each run has its own column. If there are more runs, a row shows one value, and
the lowest, the highest and the middle ratio to this value.
"""
_PLACE = ("Load", "Measure")
_ALIKE = "alike"
_NO_BREAK = "\u00a0"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    text: str
    hint: str = ""
    change: Change | None = None


_Line = tuple[Sequence[str], Sequence[_Cell]]


def _build(
    title: str, columns: Sequence[str], lines: Sequence[_Line], notes: Sequence[str] = (), **more: Any
) -> TableView:
    """Return a table with a row for each line. A line consists of labels and cells. ``columns`` contains the headings
    of the labels and of the cells. The notes explain the marks that occur.
    """
    marked = {cell.change for _, cells in lines for cell in cells if cell.text.endswith(("?", ")"))}
    marks = (text for change, text in RATIO_MARKS.items() if change in marked)
    return TableView(
        title=title,
        columns=tuple(columns),
        labels=len(lines[0][0]) if lines else 1,
        rows=tuple((*labels, *map(_keep_together, cells)) for labels, cells in lines),
        hints=tuple(tuple(cell.hint for cell in cells) for _, cells in lines),
        notes=(*marks, *notes),
        **more,
    )


def _keep_together(cell: _Cell) -> str:
    """Return the text of a cell with no-break spaces, so that it stays on one line. A list of names is not changed."""
    return cell.text if ", " in cell.text else cell.text.replace(" ", _NO_BREAK)


# ---- values and ratios


def build_section_table(
    comparison: Comparison, rows: Sequence[ComparedRow], most_across: int = MOST_ACROSS
) -> TableView:
    """Return a table of the compared rows, with a column for each run.

    If there are more than ``most_across`` runs, a row shows only a summary of the ratios.
    """
    axes, rows = listing_axes(row.workload for row in rows), sort_rows(rows)
    labels = [(*(text_on(axis, row.workload) for axis in axes), _title_row(row)) for row in rows]
    places, numbers = (*(axis.title for axis in axes), ""), number_rows(comparison)
    table = _build_values(comparison, rows, "Values", places, labels, most_across)
    return replace(table, ids=tuple((numbers[row.place],) for row in rows))


def _title_row(row: ComparedRow) -> str:
    return f"{name_phase(row.part)}: {row.quantity.title}" if row.part else row.quantity.title


def number_rows(comparison: Comparison) -> dict[tuple[object, ...], str]:
    """Return the ID that the table uses for each row of the comparison. The key is ``place`` of the row."""
    return {row.place: f"row{number}" for number, row in enumerate(comparison.rows)}


def build_headline_table(comparison: Comparison, most_across: int = MOST_ACROSS) -> TableView | None:
    """Return a table with a row for each headline figure, or None if there are no headline figures."""
    if not comparison.headlines:
        return None
    loads = describe_loads(comparison)
    if comparison.cohort is not None:
        return _build_distributions(comparison, comparison.cohort)
    if comparison.history is not None:
        return _build_trends(comparison, comparison.history)
    rows = sort_headlines(comparison)
    labels = [(loads[row.place], row.quantity.title) for row in rows]
    table = _build_values(comparison, rows, "Headline figures", _PLACE, labels, most_across)
    return replace(table, targets=_find_targets(comparison, rows))


def _find_targets(comparison: Comparison, rows: Iterable[ComparedRow]) -> tuple[str, ...]:
    numbers = number_rows(comparison)
    return tuple(numbers[row.place] for row in rows)


def _build_values(
    comparison: Comparison,
    rows: Sequence[ComparedRow],
    title: str,
    places: Sequence[str],
    labels: Sequence[Sequence[str]],
    most_across: int,
) -> TableView:
    names = comparison.names
    if len(names) > most_across:
        cells = [_summary_cells(comparison, row) for row in rows]
        return _build(title, (*places, *_summary_columns(comparison)), list(zip(labels, cells, strict=True)))
    cells = [
        [
            _value_cell(comparison, row.quantity, entry, ratio)
            for entry, ratio in zip(row.entries, comparison.ratios(row), strict=True)
        ]
        for row in rows
    ]
    columns = (*places, *names)
    notes = explain_marks(entry for row in rows for entry in row.entries)
    if len(names) == 2:
        columns = (*columns, "Ratio", "Change")
        for row, of_row in zip(rows, cells, strict=True):
            entry = row.entries[1]
            of_row[1] = replace(of_row[1], text=_describe_alone(row.quantity, entry))
            of_row.append(_Cell(text=describe_ratio(entry), change=entry.change))
            of_row.append(_Cell(text=str(entry.change or ""), change=entry.change))
        if any(describe_ratio_uncertainty(row.entries[1]) for row in rows):
            notes = (*notes, f"After a ratio: its {INTERVAL}.")
    return _build(title, columns, list(zip(labels, cells, strict=True)), notes)


def _value_cell(comparison: Comparison, measure: Measure, entry: Entry, ratio: float | None) -> _Cell:
    """Return the cell of a value, such as ``20.5 ×1.952``. The cell contains the value with its marks, and its ratio.
    The cell of the run to which all ratios refer contains no ratio.
    """
    of_cohort = comparison.arrangement is Arrangement.COHORT
    text, change = _describe_alone(measure, entry), None if of_cohort else entry.change
    if ratio is not None and (of_cohort or entry.ratio is not None):
        times = f"×{format_ratio(ratio)}"
        text += f" {times if of_cohort else mark_certainty(entry, times)}"
    hint = describe_exactly(measure, entry, to_first=not of_cohort)
    return _Cell(text=text, hint=hint, change=change)


def _describe_alone(measure: Measure, entry: Entry) -> str:
    """Return the value with its marks. If tkperf searched for a value and did not find it, return a text that states
    this.
    """
    return entry.not_found or format_number(entry.value, measure.digits) + mark(entry)


def describe_exactly(measure: Measure, entry: Entry, *, to_first: bool = True) -> str:
    """Return the value with all its digits and its uncertainty.

    Args:
        to_first: whether to add the ratio to the first run, with the interval of the ratio.
    """
    value = describe_value(entry.value, entry.uncertainty, measure)
    if entry.ratio is None or not to_first:
        return value
    interval = describe_interval(entry.ratio, entry.ratio_uncertainty, 3)
    return f"{value}; ratio {format_ratio(entry.ratio)} {interval}".rstrip()


def _summary_columns(comparison: Comparison) -> tuple[str, ...]:
    ends = ("Lowest ratio", "Highest ratio")
    match comparison.arrangement:
        case Arrangement.COHORT:
            return ("Median", *ends)
        case Arrangement.HISTORY:
            return (comparison.names[0], *ends, "Last ratio")
        case Arrangement.RUNS:
            return (comparison.names[0], *ends, "Median ratio")


def _summary_cells(comparison: Comparison, row: ComparedRow) -> list[_Cell]:
    """Return the cells of a row for a table in which runs have no columns of their own. The first cell contains the
    value of the first run or, for a cohort, the median. The next cells contain the lowest and the highest ratio with
    the names of their runs.

    In a history, the last cell contains the ratio of the last run. In a comparison of runs, the last cell contains the
    median ratio. A cohort has no such cell.
    """
    known = list_ratios(comparison, row)
    values = [entry.value for entry in row.entries if entry.value is not None]
    of_cohort = comparison.arrangement is Arrangement.COHORT
    value = median(values) if of_cohort and values else row.entries[0].value
    texts = [format_number(value, row.quantity.digits)]
    if known:
        texts += [f"×{format_ratio(ratio)} {name}" for ratio, name in (min(known), max(known))]
        last = comparison.ratios(row)[-1]
        if comparison.arrangement is Arrangement.RUNS:
            last = median(ratio for ratio, _ in known)
        texts.append(NOT_MEASURED if last is None else f"×{format_ratio(last)}")
    # Cells without a ratio contain a dash. The row of a cohort has only three cells, because the median of its ratios
    # is always 1.
    texts += [NOT_MEASURED] * 3
    return [_Cell(text=text) for text in texts[: len(_summary_columns(comparison))]]


def build_runs_table(comparison: Comparison) -> TableView | None:
    """Return a table with a row for each run and a column for each headline figure.

    Return None if there are no headline figures. Also return None if there are few runs and they form neither a cohort
    nor a history.
    """
    alike = comparison.arrangement is not Arrangement.RUNS
    if not comparison.headlines or not (alike or len(comparison.names) > MOST_ACROSS):
        return None
    loads = describe_loads(comparison)
    rows = sort_headlines(comparison)
    cells = [_ratio_cells(comparison, row) for row in rows]
    dated = ("Began", "Firmware") if comparison.history is not None else ()
    return _build(
        f"Each run as ratios to {name_reference(comparison)}",
        ("Run", *dated, *(f"{loads[row.place]}: {row.quantity.title}" for row in rows)),
        [
            (_describe_run(comparison, number), [of_row[number] for of_row in cells])
            for number in _sort_runs(comparison)
        ],
    )


def _sort_runs(comparison: Comparison) -> list[int]:
    """Return the numbers of the runs. The runs that differ most are first. The runs of a history remain in the order of
    their dates.
    """
    weights: dict[str, float] = {}
    if comparison.cohort is not None:
        for one in (one for figure in comparison.cohort.figures for one in figure.outliers):
            weights[one.name] = max(weights.get(one.name, 0.0), abs(one.score))
    elif comparison.history is None:
        for row in comparison.headlines:
            for name, entry in zip(comparison.names, row.entries, strict=True):
                weights[name] = max(weights.get(name, 0.0), entry.beyond_noise)
    numbers = range(len(comparison.names))
    return sorted(numbers, key=lambda number: -weights.get(comparison.names[number], 0.0))


def _describe_run(comparison: Comparison, number: int) -> tuple[str, ...]:
    """Return the texts that name a run. In a history, these texts include the date and the firmware."""
    name, info = comparison.names[number], comparison.results[number].info
    if comparison.history is None:
        return (name,)
    firmware = info.device.get("firmware")
    return (name, (info.started_utc or "")[:10], str(firmware) if firmware else "not known")


def _ratio_cells(comparison: Comparison, row: ComparedRow) -> list[_Cell]:
    of_cohort = comparison.arrangement is Arrangement.COHORT
    cells = []
    for entry, ratio in zip(row.entries, comparison.ratios(row), strict=True):
        if ratio is None:
            cells.append(_Cell(text=entry.not_found or NOT_MEASURED))
            continue
        text = format_ratio(ratio) + mark(entry)
        cells.append(
            _Cell(
                text=text if of_cohort else mark_certainty(entry, text),
                hint=describe_exactly(row.quantity, entry, to_first=not of_cohort),
                change=None if of_cohort else entry.change,
            )
        )
    return cells


def build_ratio_matrices(comparison: Comparison, rows: Sequence[ComparedRow]) -> Iterator[TableView]:
    """Yield, for each quantity, a matrix of the ratios of two runs. If the cells of the section do not differ in two
    axes, yield nothing.
    """
    (first, second), numbers = comparison.names, number_rows(comparison)
    for measure in dict.fromkeys(row.quantity for row in rows):
        of_measure = {row.workload: row for row in rows if row.quantity is measure}
        layout = arrange(of_measure)
        if len(layout.columns) < 2 or len(layout.rows) < 2:
            continue
        missing = _Cell(text=NOT_MEASURED)
        lines = [
            (
                layout.row_text(row),
                [missing if work is None else _ratio_cells(comparison, of_measure[work])[1] for work in line],
            )
            for row, line in zip(layout.rows, layout.at, strict=True)
        ]
        across = layout.column_axis
        yield _build(
            f"{measure.label}: {second} / {first}, by {across.title}",
            (*layout.row_titles, *(across.text(work) for work in layout.columns)),
            lines,
            ids=tuple(
                tuple("" if work is None else numbers[of_measure[work].place] for work in line) for line in layout.at
            ),
        )


# ---- cohorts and histories


def _build_distributions(comparison: Comparison, cohort: Cohort) -> TableView:
    loads = describe_loads(comparison)
    lines: list[_Line] = []
    figures = sort_figures(comparison, cohort.figures)
    for figure in figures:
        found, measure = figure.distribution, figure.row.quantity
        outliers = ", ".join(one.name for one in figure.outliers)
        texts = (
            format_number(found.median, measure.digits),
            _join_ends(
                *(
                    None if end is None else format_number(end, measure.digits)
                    for end in (found.median_low, found.median_high)
                )
            ),
            _ALIKE if figure.spread_percent is None else two_digits(figure.spread_percent),
            NOT_MEASURED if figure.own_percent is None else two_digits(figure.own_percent),
            format_number(found.lowest, measure.digits),
            format_number(found.highest, measure.digits),
            outliers or ("none" if found.scores is not None else NOT_MEASURED),
        )
        scores = "; ".join(
            f"{one.name}: {one.from_median_percent:+.1f} %, score {one.score:+.1f}" for one in figure.outliers
        )
        cells = [_Cell(text=text) for text in texts[:-1]]
        lines.append(((loads[figure.row.place], measure.title), [*cells, _Cell(text=texts[-1], hint=scores)]))
    return _build(
        f"Distribution over {len(comparison.names)} runs",
        (*_PLACE, "Median", f"Median, {COVERED}", "Spread (%)", "Own ± (%)", "Lowest", "Highest", "Outliers"),
        lines,
        (
            "Spread: robust standard deviation between runs, 1.4826 × the median absolute deviation from the "
            f"median; {_ALIKE}: more than half have the same figure, so the spread is not known. Own ±: half the "
            f"{COVERED} interval of a single run's figure. Outliers: modified "
            f"z-score beyond {OUTLIER_SCORE} (0.6745 × distance from the median / median absolute deviation; "
            "Iglewicz and Hoaglin), the median beyond the run's own uncertainty; named among "
            f"{FEWEST_SCORED} runs or more.",
        ),
        targets=_find_targets(comparison, (figure.row for figure in figures)),
    )


def _build_trends(comparison: Comparison, history: History) -> TableView:
    loads = describe_loads(comparison)
    lines: list[_Line] = []
    figures = sort_figures(comparison, history.figures)
    for figure in figures:
        trend, measure, change = figure.trend, figure.row.quantity, figure.change
        slope, low, high = (
            None if number is None else f"{number:+.2f}"
            for number in ((trend.slope, trend.low, trend.high) if trend else (None,) * 3)
        )
        text = "no trend beyond noise" if change is Change.WITHIN_NOISE else str(change)
        cells = [
            _Cell(text=format_number(figure.median, measure.digits)),
            _Cell(text=slope or NOT_MEASURED),
            _Cell(text=_join_ends(low, high)),
            _Cell(text=text, change=change),
        ]
        lines.append(((loads[figure.row.place], measure.title), cells))
    return _build(
        f"Trend over {len(comparison.names)} runs",
        (*_PLACE, "Median", f"Trend (% per {history.period})", f"Trend, {COVERED}", "Change"),
        lines,
        (
            "Trend: Theil and Sen's slope, the median of the slopes between all pairs of runs, in percent of "
            f"the median, and its interval by Kendall's tau (Sen 1968); none of fewer than {FEWEST_IN_TREND} runs.",
        ),
        targets=_find_targets(comparison, (figure.row for figure in figures)),
    )


def _join_ends(low: str | None, high: str | None) -> str:
    return NOT_MEASURED if low is None or high is None else f"{low} to {high}"
