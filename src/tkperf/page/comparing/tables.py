"""Tables of a comparison as data: headline figures, ratios, values. Every output renders these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from tkperf.analysis.comparing.arrangement import Arrangement
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import (
    Change,
    ComparedRow,
    Entry,
)
from tkperf.analysis.layout import arrange, listing_axes, name_within
from tkperf.model.quantity import Measure
from tkperf.model.units import NOT_MEASURED, format_number
from tkperf.page.comparing.ratios import describe_ratio, format_ratio, mark_certainty
from tkperf.page.words.flags import explain_marks, mark
from tkperf.page.words.uncertainty import (
    INTERVAL,
    describe,
    describe_interval,
    two_digits,
)

MOST_ACROSS = 6
"""Most runs with full columns; with more, a row gives the ends and the middle, or each run has a narrow column."""
_SEPARATORS = "-_. "
RATIO_MARKS = {
    Change.WITHIN_NOISE: f"(1.02): within noise: the {INTERVAL} of the ratio contains 1, or, of a maximum or "
    "where only a lower limit of the interval is known, the ranges overlap.",
    Change.CANNOT_BE_TOLD: "1.02?: noise is not known: not both values have an uncertainty, as what was measured once, "
    "or only a lower limit of it, and their ranges do not tell.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """A table of texts; the first ``labels`` columns name the row.

    Attributes:
        hints: text of each cell on request, for the columns after the labels.
        changes: change that each cell shows, likewise.
        notes: explanations of the marks.
    """

    title: str
    head: tuple[str, ...]
    labels: int
    rows: tuple[tuple[str, ...], ...]
    hints: tuple[tuple[str, ...], ...] = ()
    changes: tuple[tuple[Change | None, ...], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    text: str
    hint: str = ""
    change: Change | None = None


Line = tuple[tuple[str, ...], list[Cell]]


def build_compared_table(
    title: str,
    head: Sequence[str],
    lines: Sequence[Line],
    notes: Sequence[str] = (),
) -> ComparedTable:
    """Return a table of lines with labels and cells; ``head`` covers both. Explain the marks that occur."""
    cells = [cell for _, of_line in lines for cell in of_line]
    marked = {cell.change for cell in cells if cell.text.endswith(("?", ")"))}
    marks = (text for change, text in RATIO_MARKS.items() if change in marked)
    return ComparedTable(
        title=title,
        head=tuple(head),
        labels=len(lines[0][0]) if lines else 1,
        rows=tuple((*labels, *(cell.text for cell in cells)) for labels, cells in lines),
        hints=tuple(tuple(cell.hint for cell in cells) for _, cells in lines),
        changes=tuple(tuple(cell.change for cell in cells) for _, cells in lines),
        notes=(*marks, *notes),
    )


def reference_of(comparison: Comparison) -> str:
    """Name the reference of the ratios."""
    of_cohort = comparison.arrangement is Arrangement.COHORT
    return "the median" if of_cohort else comparison.names[0]


def ratios_of(comparison: Comparison, row: ComparedRow) -> tuple[float | None, ...]:
    """Return each run's ratio to the first, in a cohort to the median of the row; None: no ratio."""
    if comparison.arrangement is not Arrangement.COHORT:
        first, *others = row.entries
        return (1.0 if first.value else None, *(entry.ratio for entry in others))
    values = [entry.value for entry in row.entries if entry.value is not None]
    middle = median(values) if values else 0.0
    return tuple(
        entry.value / middle if middle and entry.value is not None else None
        for entry in row.entries
    )


# ---- ratios


def build_ratios(comparison: Comparison, rows: Sequence[ComparedRow]) -> ComparedTable:
    """Return a row for each row, a column for each run that is compared with the reference."""
    axes = listing_axes(row.workload for row in rows)
    of_cohort = comparison.arrangement is Arrangement.COHORT
    names, left_out = short_names(comparison.names)
    others = names if of_cohort else names[1:]
    # Outputs keep the first column in sight when the others scroll.
    together = len(names) > MOST_ACROSS
    lines: list[Line] = []
    for row in rows:
        loads = [axis.text(row.workload) for axis in axes]
        labels: tuple[str, ...] = (*loads, row.title)
        if together:
            labels = (f"{name_within(row.workload, axes)} {row.title}",)
        values = [entry.value for entry in row.entries if entry.value is not None]
        value = median(values) if of_cohort and values else row.entries[0].value
        told = format_number(value, row.quantity.digits)
        own = row.entries[0]
        first = Cell(text=told if of_cohort else own.not_found or told + mark(own))
        cells = ratio_cells(comparison, row)
        lines.append((labels, [first, *(cells if of_cohort else cells[1:])]))
    reference = reference_of(comparison)
    places = ("",) if together else (*(axis.title for axis in axes), "")
    head = (*places, "Median" if of_cohort else names[0], *others)
    return build_compared_table(
        f"Ratios to {reference}",
        head,
        lines,
        (
            *((f"Columns are headed without '{left_out}'.",) if left_out else ()),
            *explain_marks(entry for row in rows for entry in row.entries),
        ),
    )


def ratio_cells(comparison: Comparison, row: ComparedRow) -> list[Cell]:
    """Return the ratio of each run."""
    of_cohort = comparison.arrangement is Arrangement.COHORT
    ratios = ratios_of(comparison, row)
    return [
        _ratio_cell(row.quantity, entry, ratio, of_cohort=of_cohort)
        for entry, ratio in zip(row.entries, ratios, strict=True)
    ]


def _ratio_cell(measure: Measure, entry: Entry, ratio: float | None, *, of_cohort: bool) -> Cell:
    if ratio is None:
        return Cell(text=entry.not_found or NOT_MEASURED)
    text = format_ratio(ratio)
    if of_cohort:
        return Cell(text=text + mark(entry), hint=hint(measure, entry, to_first=False))
    return Cell(
        text=mark_certainty(entry, text + mark(entry)),
        hint=hint(measure, entry),
        change=entry.change,
    )


def build_ratio_matrices(
    comparison: Comparison, rows: Sequence[ComparedRow]
) -> Iterator[ComparedTable]:
    """Yield a matrix of ratios of two runs, for each quantity of cells that differ in two axes."""
    first, second = comparison.names
    cells = [row for row in rows if not row.part]
    for measure in dict.fromkeys(row.quantity for row in cells):
        of_measure = {row.workload: row for row in cells if row.quantity is measure}
        layout = arrange(of_measure)
        if len(layout.columns) < 2 or len(layout.rows) < 2:
            continue
        lines: list[Line] = []
        for row, line in zip(layout.rows, layout.at, strict=True):
            found = [None if work is None else of_measure[work].entries[1] for work in line]
            lines.append((
                layout.row_text(row),
                [Cell(text=NOT_MEASURED) if entry is None
                 else _ratio_cell(measure, entry, entry.ratio, of_cohort=False)
                 for entry in found],
            ))  # fmt: skip
        across = layout.column_axis
        yield build_compared_table(
            f"{measure.label}: {second} / {first}, by {across.title}",
            (*layout.row_titles, *(across.text(work) for work in layout.columns)),
            lines,
        )


# ---- values


def build_values(comparison: Comparison, rows: Sequence[ComparedRow]) -> ComparedTable:
    """Return every run's value with its ratio to the first."""
    axes = listing_axes(row.workload for row in rows)
    lines: list[Line] = [
        (
            (*(axis.text(row.workload) for axis in axes), row.title),
            [
                Cell(
                    text=describe_entry(row.quantity, entry),
                    hint=hint(row.quantity, entry),
                    change=entry.change,
                )
                for entry in row.entries
            ],
        )
        for row in rows
    ]
    head = (*(axis.title for axis in axes), "", *comparison.names)
    title = f"Values, and ratios to {comparison.names[0]} with their uncertainty ({INTERVAL})"
    notes = explain_marks(entry for row in rows for entry in row.entries)
    return build_compared_table(title, head, lines, notes)


def build_summary(comparison: Comparison, rows: Sequence[ComparedRow]) -> ComparedTable:
    """Return the ends and the middle of each row, for many runs."""
    axes = listing_axes(row.workload for row in rows)
    lines: list[Line] = [
        ((*(axis.text(row.workload) for axis in axes), row.title), summary_cells(comparison, row))
        for row in rows
    ]
    of_cohort = comparison.arrangement is Arrangement.COHORT
    head = (*(axis.title for axis in axes), "", *summary_head(comparison))
    title = "Values" if of_cohort else f"Values, and ratios to {comparison.names[0]}"
    return build_compared_table(title, head, lines)


def summary_head(comparison: Comparison) -> tuple[str, ...]:
    ends = ("Lowest ratio", "Highest ratio")
    match comparison.arrangement:
        case Arrangement.COHORT:
            return ("Median", *ends)
        case Arrangement.HISTORY:
            return (comparison.names[0], *ends, "Last ratio")
        case Arrangement.RUNS:
            return (comparison.names[0], *ends, "Median ratio")


def summary_cells(comparison: Comparison, row: ComparedRow) -> list[Cell]:
    """Return the reference's value, the lowest and highest ratio with their runs, and the last or median ratio."""
    ratios = ratios_of(comparison, row)
    known = sorted(
        (ratio, name)
        for ratio, name in zip(ratios, comparison.names, strict=True)
        if ratio is not None
    )
    values = [entry.value for entry in row.entries if entry.value is not None]
    of_cohort = comparison.arrangement is Arrangement.COHORT
    value = median(values) if of_cohort and values else row.entries[0].value
    first = Cell(text=format_number(value, row.quantity.digits))
    if not known:
        return [first, *(Cell(text=NOT_MEASURED),) * (len(summary_head(comparison)) - 1)]
    (low, least), (high, most) = known[0], known[-1]
    told = [f"{format_ratio(low)} {least}", f"{format_ratio(high)} {most}"]
    match comparison.arrangement:
        case Arrangement.HISTORY:
            last = ratios[-1]
            told.append(NOT_MEASURED if last is None else format_ratio(last))
        case Arrangement.RUNS:
            told.append(format_ratio(median([ratio for ratio, _ in known])))
    return [first, *(Cell(text=text) for text in told)]


def describe_entry(measure: Measure, entry: Entry) -> str:
    """Return ``20.5 x1.952``: the value with its marks and its ratio."""
    if entry.not_found is not None:
        return entry.not_found
    value = format_number(entry.value, measure.digits) + mark(entry)
    return f"{value} {describe_ratio(entry)}".rstrip()


def hint(measure: Measure, entry: Entry, *, to_first: bool = True) -> str:
    """Return the value in full with its uncertainty; ``to_first`` adds the ratio to the first run with its interval."""
    told = describe(entry.value, entry.uncertainty, measure)
    if entry.ratio is None or not to_first:
        return told
    interval = describe_interval(entry.ratio, entry.ratio_uncertainty, 3)
    return f"{told}; ratio {format_ratio(entry.ratio)} {interval}".rstrip()


def short_names(names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Shorten the names of many runs by their common beginning; return it, too. Few names stay whole."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    shared = "".join(letters[0] for letters in alike)
    cut = max((shared.rfind(separator) for separator in _SEPARATORS), default=-1) + 1
    if len(names) <= MOST_ACROSS or cut < 3 or any(len(name) == cut for name in names):
        return tuple(names), ""
    return tuple(name[cut:] for name in names), shared[:cut]


def describe_percent(value: float | None) -> str:
    return NOT_MEASURED if value is None else two_digits(abs(value))
