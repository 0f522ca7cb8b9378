"""Build the tables of a section's results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.analysis.workload_axes import MIX, find_axes, place_of, text_on
from tkperf.model.figures import Figure
from tkperf.model.measurement import explain_rare
from tkperf.model.quantity import (
    IOPS,
    LATENCY_MAX,
    LATENCY_MEAN,
    PERCENTILES,
    THROUGHPUT,
    Direction,
    Measure,
    Quantity,
    find_quantities,
)
from tkperf.model.units import NOT_MEASURED, find_latency_unit, format_exact, format_number, format_window
from tkperf.model.workload import Workload
from tkperf.page.findings.stream_findings import describe_trimmed
from tkperf.page.naming import MARKABLE, address, arrange, capitalise, describe_axes, name_within
from tkperf.page.page import TableView
from tkperf.page.shown_section import NO_LINKS, ShownSection
from tkperf.page.words.run import describe_stream
from tkperf.page.words.uncertainty import MEANING, describe_value, explain_marks, mark, summarise

# If the ratio between the greatest and the smallest value exceeds this factor, colours have a logarithmic scale.
WIDE_RANGE = 20.0
# The columns in the table of a stream.
STREAM_QUANTITIES = (IOPS, THROUGHPUT, LATENCY_MEAN, *PERCENTILES, LATENCY_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNumber:
    """A number in a table.

    Attributes:
        value: the value; None if it was not measured.
        digits: the number of digits, as in ``units.format_number``.
        workload: the workload of the number; None if the number does not belong to a single workload.
        part: number of the round, area or slice; None if the number is a figure of the section.
        measure, uncertainty: the measure and the uncertainty of the number; None if the number has no uncertainty.
    """

    value: float | None
    digits: int | None = None
    mark: str = ""
    workload: Workload | None = None
    part: int | None = None
    direction: Direction = Direction.ALL
    measure: Measure | None = None
    uncertainty: Uncertainty | None = None

    def text(self, unit: float = 1.0) -> str:
        """Return the number with its marks, or a dash if the number was not measured.

        Args:
            unit: size of the displayed unit, in units of the value.
        """
        if self.value is None:
            return NOT_MEASURED + self.mark
        return format_number(self.value / unit, self.digits) + self.mark

    def sure(self) -> str:
        """Return a sentence with all digits of the number and its uncertainty. The text is empty if the number was not
        measured.
        """
        if self.value is None:
            return ""
        if self.measure is None:
            return format_exact(self.value)
        return describe_value(self.value, self.uncertainty, self.measure)


def build_table(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str | TableNumber]],
    *,
    links: Mapping[Workload, str] = NO_LINKS,
    labels: int = 1,
    over: str = "",
    across: str = "",
    notes: Sequence[str] = (),
    shaded: bool = False,
    sure: bool = False,
    stepwise: bool = False,
    folded: bool = False,
) -> TableView:
    """Return a table of texts and numbers. Each number links to the cell from which it was computed.

    Args:
        title: the name of the quantity, with its unit.
        head: the headings of the columns. The headings of the labels are first.
        rows: the rows. Each row consists of ``labels`` texts, followed by figures.
        over: the basis of the numbers, such as the rounds of a window; empty if the title already contains the basis.
        across: the name of the field whose values are the headings of the columns, if there is such a field.
        notes: the meaning of the marks.
        shaded: whether all figures belong to one quantity, so that colours can show the size of a figure.
        sure: whether a note states the uncertainty of the figures.
        stepwise, folded: the same as in ``TableView``.
    """
    rows = [tuple(row) for row in rows]
    names = [tuple(str(cell) for cell in row[:labels]) for row in rows]
    figures = [
        [cell if isinstance(cell, TableNumber) else TableNumber(value=None) for cell in row[labels:]] for row in rows
    ]
    title, head, lengths_us = _suit_latencies(title, head, labels, figures)
    by = describe_axes((*head[:labels], across)) if across else ""
    # The slash ("/") already identifies a mix. All other headings are plain numbers and need the title of the axis
    # before the number.
    before = f"{across} " if across not in ("", MIX.title) else ""
    title = capitalise(title) + (f" by {by}" if by else "")
    known = (
        (one.measure, one.value, one.uncertainty) for row in figures for one in row if sure and one.measure is not None
    )
    return TableView(
        title=", ".join(text for text in (title, over) if text),
        columns=(*head[:labels], *(before + text for text in head[labels:])),
        rows=tuple(
            (
                *of_row,
                *(
                    cell.text(length_us) if isinstance(cell, TableNumber) else cell
                    for cell, length_us in zip(row[labels:], lengths_us, strict=True)
                ),
            )
            for of_row, row in zip(names, rows, strict=True)
        ),
        labels=labels,
        notes=(*notes, *summarise(known)),
        links=tuple(tuple(_address(one, links) for one in row) for row in figures),
        hints=tuple(tuple(one.sure() for one in row) for row in figures),
        heat=shade([[one.value for one in row] for row in figures]) if shaded else (),
        folded=folded,
        stepwise=stepwise,
    )


_IN_US = f"({LATENCY_MEAN.unit})"


def _suit_latencies(
    title: str, head: Sequence[str], labels: int, figures: Sequence[Sequence[TableNumber]]
) -> tuple[str, tuple[str, ...], tuple[float, ...]]:
    """Return the title and the headings with units that suit the latencies. Also return the size of each column's unit,
    in units of the values.

    A table of a single latency has one unit. In any other table, each column has its own unit.
    """
    columns = [[row[number].value for row in figures] for number in range(len(head) - labels)]
    if _IN_US in title:
        unit, length_us = find_latency_unit(value for column in columns for value in column)
        return title.replace(_IN_US, f"({unit})"), tuple(head), (length_us,) * len(columns)
    names, lengths_us = list(head), [1.0] * len(columns)
    for number, column in enumerate(columns):
        name = head[labels + number]
        if _IN_US in name:
            unit, lengths_us[number] = find_latency_unit(column)
            names[labels + number] = name.replace(_IN_US, f"({unit})")
    return title, tuple(names), tuple(lengths_us)


def _address(figure: TableNumber, links: Mapping[Workload, str]) -> str:
    """Return the address of the part from which a figure was computed. For a latency, the address also contains the
    mark.

    The result is empty if the figure has no details.
    """
    if figure.workload is None:
        return ""
    part = "" if figure.part is None else str(figure.part)
    if figure.workload.is_mixed and figure.direction is not Direction.ALL:
        part = figure.direction.value
    measure = figure.measure
    mark = measure.short if isinstance(measure, Quantity) and measure in MARKABLE else ""
    return address(links.get(figure.workload, ""), part, mark)


def shade(rows: Sequence[Sequence[float | None]]) -> tuple[tuple[float | None, ...], ...]:
    """Return the position of each figure on a scale from the smallest figure (0) to the greatest figure (1).

    None means that the figure was not measured, or that all figures are equal. The scale is logarithmic if the greatest
    figure is more than ``WIDE_RANGE`` times the smallest. If the greatest figure is less than twice the smallest
    figure, its position is not 1. Instead, its position is the relative difference from the smallest figure, so that
    small differences have pale colours.
    """
    known = [value for row in rows for value in row if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high:
        return tuple((None,) * len(row) for row in rows)
    scale = math.log if low > 0 and high > WIDE_RANGE * low else float
    strength = min(1.0, high / low - 1) if low > 0 else 1.0
    span = scale(high) - scale(low)
    return tuple(
        tuple(None if value is None else strength * ((scale(value) - scale(low)) / span) for value in row)
        for row in rows
    )


def figure(
    cell: CellResult | None, quantity: Quantity, direction: Direction = Direction.ALL, part: int | None = None
) -> TableNumber:
    """Return a quantity of a cell with its marks. If there is no cell, the quantity counts as not measured."""
    if cell is None:
        return TableNumber(value=None)
    return TableNumber(
        value=cell.value(quantity, direction),
        digits=quantity.digits,
        mark=mark(cell),
        workload=cell.workload,
        part=part,
        direction=direction,
        measure=quantity,
        uncertainty=cell.uncertainty_of(quantity, direction),
    )


def describe_over(section: SectionResult, quantity: Quantity) -> str:
    """Return the basis of the values of a section: ``mean of rounds 1–5``. The text is empty if there is no window."""
    if not section.window:
        return ""
    window = format_window(section.window)
    if section.areas:
        window = window.replace("round", "area")
    return f"{quantity.over} of {window}"


def build_matrix(shown: ShownSection, quantity: Quantity) -> TableView:
    """Build a table of one quantity for all cells of a section. The rows and columns are the fields in which the
    workloads differ.
    """
    section = shown.section
    layout = arrange(cell.workload for cell in section.cells)
    cells = {cell.workload: cell for cell in section.cells}
    return build_table(
        quantity.title,
        (*layout.row_titles, *(layout.column_axis.text(work) for work in layout.columns)),
        (
            (*layout.row_text(row), *(figure(None if work is None else cells[work], quantity) for work in works))
            for row, works in zip(layout.rows, layout.at, strict=True)
        ),
        links=shown.links,
        labels=len(layout.row_axes),
        over=describe_over(section, quantity),
        across=layout.column_axis.title,
        notes=_notes(section.cells, (quantity,)),
        shaded=True,
        sure=True,
    )


def build_matrices(shown: ShownSection, quantities: Iterable[Quantity]) -> tuple[TableView, ...]:
    """Build a matrix for each quantity that has a value."""
    return tuple(
        build_matrix(shown, quantity)
        for quantity in quantities
        if any(cell.value(quantity) is not None for cell in shown.section.cells)
    )


def build_directions(shown: ShownSection, quantity: Quantity) -> TableView | None:
    """Build a folded table of reads, writes and both together for mixed workloads. Return None if there are no separate
    values for the reads.
    """
    section = shown.section
    # In a combination, reads and writes belong to the streams, and each stream has its own row.
    mixed = [cell for cell in section.cells if cell.workload.is_mixed and not cell.workload.is_combination]
    if all(cell.value(quantity, Direction.READ) is None for cell in mixed):
        return None
    axes = find_axes(cell.workload for cell in section.cells)
    directions = (Direction.READ, Direction.WRITE, Direction.ALL)
    return build_table(
        f"{quantity.title} of mixed workloads, reads and writes apart",
        ("Workload", *directions),
        (
            (name_within(cell.workload, axes), *(figure(cell, quantity, direction) for direction in directions))
            for cell in mixed
        ),
        links=shown.links,
        over=describe_over(section, quantity),
        notes=_notes(mixed, (quantity,)),
        sure=True,
        stepwise=True,
        folded=True,
    )


def build_listing(shown: ShownSection, asked: Figure) -> TableView:
    """Build a table with a row for each workload. If ``apart`` is True, the table also has separate rows for the reads
    and the writes of a mix.
    """
    section, quantities = shown.section, find_quantities(asked.quantities)
    axes = find_axes(cell.workload for cell in section.cells)
    cells = list(section.cells)
    if not any(cell.workload.together for cell in cells):  # Streams remain in the order of their combination.
        cells.sort(key=lambda cell: place_of(cell.workload, axes))
    named = asked.apart or not axes
    labels = (*(axis.title for axis in axes), *(("",) if named else ()))
    return build_table(
        asked.title or ", ".join(quantity.label for quantity in quantities),
        (*labels, *(name_column(quantity) for quantity in quantities)),
        (
            (
                *(text_on(axis, cell.workload) for axis in axes),
                *((words,) if named else ()),
                *(figure(cell, quantity, direction) for quantity in quantities),
            )
            for cell in cells
            for direction, words in directions_of(cell.workload, apart=asked.apart)
        ),
        links=shown.links,
        labels=len(labels),
        over="" if len(axes) else describe_over(section, quantities[0]),
        notes=(*describe_trimmed((cell.workload for cell in cells), shown.capacity_bytes), *_notes(cells, quantities)),
        sure=True,
        stepwise=True,
    )


def directions_of(workload: Workload, *, apart: bool) -> tuple[tuple[Direction, str], ...]:
    """Return the directions that are shown for a workload, with their names.

    Args:
        apart: whether to also show the reads and the writes of a mix separately.
    """
    if workload.flushes or workload.trims:
        return ((Direction.ALL, "flushes" if workload.flushes else "trims"),)
    if not workload.is_mixed:
        return ((Direction.ALL, "reads" if workload.read_percent else "writes"),)
    if not apart:
        return ((Direction.ALL, "reads and writes"),)
    return ((Direction.READ, "reads"), (Direction.WRITE, "writes"), (Direction.ALL, "reads and writes"))


def name_column(quantity: Quantity) -> str:
    """Return the heading of the column for a quantity: ``p99.9 (µs)``."""
    unit = quantity.unit
    return f"{quantity.short} ({unit})" if unit and unit != quantity.short else quantity.short


def build_areas(shown: ShownSection, quantity: Quantity) -> TableView:
    """Build a table of a quantity over the areas of a disk. The table contains the first, the last, the slowest and the
    fastest area, and the mean.
    """
    section = shown.section
    axes = find_axes(cell.workload for cell in section.cells)
    rows: list[tuple[str | TableNumber, ...]] = []
    for cell in section.cells:
        areas = [
            (value, area.number, mark(of_area))
            for area, of_area in shown.rounds.get(cell.workload, ())
            if area.complete and (value := of_area.value(quantity)) is not None
        ]
        if not areas:
            continue
        mean = (cell.value(quantity), None, mark(cell))
        figures = (
            TableNumber(value=value, digits=quantity.digits, mark=marks, workload=cell.workload, part=part)
            for value, part, marks in (areas[0], areas[-1], mean, min(areas), max(areas))
        )
        rows.append((name_within(cell.workload, axes), *figures))
    return build_table(
        f"{quantity.title} over {len(section.window)} of {section.areas} areas of the disk",
        ("", "first area", "last area", "mean", "slowest", "fastest"),
        rows,
        links=shown.links,
        notes=explain_marks(section.cells),
    )


def build_stream(shown: ShownSection) -> TableView:
    """Build a table of a stream. The table contains the first slice, the last slice, and the whole stream or its
    window.
    """
    section = shown.section
    first, last = section.slices[0], section.slices[-1]
    of_window = "steady-state window" if section.verdict else "all slices"
    whole = of_window if section.window and len(section.slices) > 1 else "whole"
    lines: list[tuple[str, CellResult, int | None]] = []
    for place, cell in enumerate(first.cells):
        name = f"{name_within(cell.workload, ())}, " if first.parts else ""
        if last is not first or not section.cells:
            lines.append((f"{name}slice {first.number} (first)", cell, first.number))
        if last is not first:
            lines.append((f"{name}slice {last.number} (last)", last.cells[place], last.number))
        if (of_all := shown.cells.get(cell.workload)) is not None:
            lines.append((f"{name}{whole}", of_all, None))
    return build_table(
        f"{section.workload}: {describe_stream(section)}",
        ("", *(name_column(quantity) for quantity in STREAM_QUANTITIES)),
        ((name, *(figure(cell, quantity, part=part) for quantity in STREAM_QUANTITIES)) for name, cell, part in lines),
        links=shown.links,
        notes=_notes([cell for _, cell, _ in lines], STREAM_QUANTITIES),
        sure=True,
    )


def _notes(cells: Sequence[CellResult], displayed: Sequence[Quantity]) -> tuple[str, ...]:
    """Return the meaning of the marks. If a percentile is shown, also return the meaning of a dash."""
    rare = next(
        (
            note
            for quantity in displayed
            if quantity in PERCENTILES
            for note in explain_rare(
                ({percentile.key: cell.value(percentile) for percentile in PERCENTILES} for cell in cells),
                only=quantity.key,
            )
        ),
        None,
    )
    return (*explain_marks(cells), *(() if rare is None else (rare,)))


def explain_intervals(result: RunResult) -> tuple[str, ...]:
    """Return the explanation of intervals for the whole report. The result is empty if the run has no intervals."""
    known = (
        one.known
        for test in result.tests
        for section in test.sections
        for cell in section.cells
        if cell.uncertainty is not None
        for one in cell.uncertainty.all.values()
    )
    return (MEANING,) if any(known) else ()
