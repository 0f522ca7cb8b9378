"""Results as tables: plain data that every output renders in its own way.

Numbers remain numbers, with their digits, marks and workload, so that a page can link them and a
terminal can shorten them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tkperf.analysis.axes import find_axes, place_of
from tkperf.analysis.results import CellResult, RunResult, SectionResult
from tkperf.analysis.uncertainty.estimate import Uncertainty
from tkperf.model.figures import Figure
from tkperf.model.measurement import explain_rare
from tkperf.model.quantity import (
    IOPS,
    LATENCY_MAX,
    LATENCY_MEAN,
    PERCENTILES,
    QUANTITIES,
    THROUGHPUT,
    Direction,
    Measure,
    Quantity,
)
from tkperf.model.units import NOT_MEASURED, format_exact, format_number, format_window
from tkperf.model.workload import Workload
from tkperf.page.layout import arrange
from tkperf.page.naming import name_within
from tkperf.page.words.flags import explain_marks, mark
from tkperf.page.words.run import describe_stream
from tkperf.page.words.uncertainty import MEANING, describe_value, summarise

# Colours follow the logarithm if the greatest value is more than this many times the least.
WIDE_RANGE = 20.0
# Columns of a stream's table.
STREAM_QUANTITIES = (IOPS, THROUGHPUT, LATENCY_MEAN, *PERCENTILES, LATENCY_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNumber:
    """A number of a table.

    Attributes:
        value: None: not measured.
        digits: digits as in ``units.format_number``.
        workload: None: the number is not about a single workload.
        part: number of its round, area or slice; None: the number is one of the section's figures.
        measure, uncertainty: None: the number has no uncertainty of its own.
    """

    value: float | None
    digits: int | None = None
    mark: str = ""
    workload: Workload | None = None
    part: int | None = None
    direction: Direction = Direction.ALL
    measure: Measure | None = None
    uncertainty: Uncertainty | None = None

    def text(self) -> str:
        """Return the number with its marks; a dash if it was not measured."""
        if self.value is None:
            return NOT_MEASURED + self.mark
        return format_number(self.value, self.digits) + self.mark

    def sure(self) -> str:
        """Return the number in full and its uncertainty, in a sentence; empty if it was not measured."""
        if self.value is None:
            return ""
        if self.measure is None:
            return format_exact(self.value)
        return describe_value(self.value, self.uncertainty, self.measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """A table; its ``rows`` begin with ``labels`` texts each, and figures follow.

    Attributes:
        title: name of the quantity, with its unit.
        over: basis of the numbers, such as rounds of a window; empty if the title has it.
        across: name of the field whose values head the columns, if there is one.
        head: head of each column, the labels first.
        notes: meaning of the marks.
        shaded: all figures are of one quantity, so that colours can show their size.
        stepwise: as in ``TableView``.
    """

    title: str
    over: str = ""
    across: str = ""
    head: tuple[str, ...]
    labels: int = 1
    rows: tuple[tuple[str | TableNumber, ...], ...]
    notes: tuple[str, ...] = ()
    shaded: bool = False
    stepwise: bool = False


def shade(table: ResultTable) -> tuple[tuple[float | None, ...], ...]:
    """Return the position of each figure between the least (0) and the greatest (1).

    None: not measured, or all figures are equal. The scale is logarithmic if the greatest is more than
    ``WIDE_RANGE`` times the least. If the greatest is less than twice the least, its position is not 1 but
    its relative excess over the least: small differences remain pale.
    """
    rows = [
        [cell.value if isinstance(cell, TableNumber) else None for cell in row[table.labels :]]
        for row in table.rows
    ]
    known = [value for row in rows for value in row if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high:
        return tuple((None,) * len(row) for row in rows)
    scale = math.log if low > 0 and high > WIDE_RANGE * low else float
    strength = min(1.0, high / low - 1) if low > 0 else 1.0
    span = scale(high) - scale(low)
    return tuple(
        tuple(
            None if value is None else strength * ((scale(value) - scale(low)) / span)
            for value in row
        )
        for row in rows
    )


def figure(
    cell: CellResult | None, quantity: Quantity, direction: Direction, part: int | None = None
) -> TableNumber:
    """Return a quantity of a cell, with its marks; without a cell it is not measured."""
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
    """Return the basis of a section's values, ``mean of rounds 1–5``; empty without a window."""
    if not section.window:
        return ""
    window = format_window(section.window)
    if section.areas:
        window = window.replace("round", "area")
    return f"{quantity.over} of {window}"


def build_matrix(
    section: SectionResult, quantity: Quantity, direction: Direction = Direction.ALL
) -> ResultTable:
    """Build a table of one quantity for all cells of a section, by the fields in which their workloads differ."""
    layout = arrange(cell.workload for cell in section.cells)
    cells = {cell.workload: cell for cell in section.cells}
    of = "" if direction is Direction.ALL else f" of {direction.value}s"
    return with_sureness(
        ResultTable(
            title=f"{quantity.title}{of}",
            over=describe_over(section, quantity),
            across=layout.column_axis.title,
            head=(
                *layout.row_titles,
                *(layout.column_axis.text(work) for work in layout.columns),
            ),
            labels=len(layout.row_axes),
            rows=tuple(
                (
                    *layout.row_text(row),
                    *(
                        figure(None if work is None else cells[work], quantity, direction)
                        for work in works
                    ),
                )
                for row, works in zip(layout.rows, layout.at, strict=True)
            ),
            notes=_notes(section.cells, (quantity,)),
            shaded=True,
        )
    )


def build_matrices(
    section: SectionResult, quantities: Iterable[Quantity]
) -> tuple[ResultTable, ...]:
    """Build a matrix for each quantity that has a value."""
    return tuple(
        build_matrix(section, quantity)
        for quantity in quantities
        if any(cell.value(quantity) is not None for cell in section.cells)
    )


def build_directions(section: SectionResult, quantity: Quantity) -> ResultTable | None:
    """Build a table of reads, writes and both together for mixed workloads; None: reads have no values of their own."""
    mixed = [cell for cell in section.cells if cell.workload.read_percent not in (0, 100)]
    if all(cell.value(quantity, Direction.READ) is None for cell in mixed):
        return None
    axes = find_axes(cell.workload for cell in section.cells)
    directions = (Direction.READ, Direction.WRITE, Direction.ALL)
    return with_sureness(
        ResultTable(
            title=f"{quantity.title} of mixed workloads, reads and writes apart",
            over=describe_over(section, quantity),
            head=("Workload", *directions),
            rows=tuple(
                (
                    name_within(cell.workload, axes),
                    *(figure(cell, quantity, direction) for direction in directions),
                )
                for cell in mixed
            ),
            stepwise=True,
            notes=_notes(mixed, (quantity,)),
        )
    )


def build_listing(section: SectionResult, asked: Figure) -> ResultTable:
    """Build a table with a row for each workload; with ``apart`` also rows for the reads and writes of a mix."""
    quantities = [QUANTITIES[key] for key in asked.quantities if key in QUANTITIES]
    axes = find_axes(cell.workload for cell in section.cells)
    cells = sorted(section.cells, key=lambda cell: place_of(cell.workload, axes))
    rows = [
        (
            *(axis.text(cell.workload) for axis in axes),
            *((words,) if asked.apart or not axes else ()),
            *(figure(cell, quantity, direction) for quantity in quantities),
        )
        for cell in cells
        for direction, words in directions_of(cell.workload, apart=asked.apart)
    ]
    labels = (*(axis.title for axis in axes), *(("",) if asked.apart or not axes else ()))
    return with_sureness(
        ResultTable(
            title=asked.title or list_titles(quantities),
            over="" if len(axes) else describe_over(section, quantities[0]),
            head=(*labels, *(name_column(quantity) for quantity in quantities)),
            labels=len(labels),
            rows=tuple(rows),
            stepwise=True,
            notes=_notes(cells, quantities),
        )
    )


def directions_of(workload: Workload, *, apart: bool) -> tuple[tuple[Direction, str], ...]:
    """Return the directions to show for a workload, with their names: all I/Os, and with ``apart`` a mix's own."""
    if not 0 < workload.read_percent < 100:
        return ((Direction.ALL, "reads" if workload.read_percent else "writes"),)
    if not apart:
        return ((Direction.ALL, "reads and writes"),)
    return (
        (Direction.READ, "reads"),
        (Direction.WRITE, "writes"),
        (Direction.ALL, "reads and writes"),
    )


def list_titles(quantities: Sequence[Quantity]) -> str:
    return ", ".join(quantity.label for quantity in quantities)


def name_column(quantity: Quantity) -> str:
    """Return the head of a quantity's column: ``p99.9 (µs)``."""
    unit = quantity.unit
    return f"{quantity.short} ({unit})" if unit and unit != quantity.short else quantity.short


def build_areas(section: SectionResult, quantity: Quantity) -> ResultTable:
    """Build a table of a quantity over the areas of a disk: first, last, mean, slowest and fastest."""
    axes = find_axes(cell.workload for cell in section.cells)
    rows: list[tuple[str | TableNumber, ...]] = []
    for cell in section.cells:
        areas = [
            (value, area.number, mark(of_area))
            for area in section.rounds
            if area.complete
            for of_area in area.cells
            if of_area.workload == cell.workload and (value := of_area.value(quantity)) is not None
        ]
        if not areas:
            continue
        mean = (cell.value(quantity), None, mark(cell))
        figures = (
            TableNumber(
                value=value, digits=quantity.digits, mark=marks, workload=cell.workload, part=part
            )
            for value, part, marks in (areas[0], areas[-1], mean, min(areas), max(areas))
        )
        rows.append((name_within(cell.workload, axes), *figures))
    return ResultTable(
        title=f"{quantity.title} over {len(section.window)} of {section.areas} areas of the disk",
        head=("", "first area", "last area", "mean", "slowest", "fastest"),
        rows=tuple(rows),
        notes=explain_marks(section.cells),
    )


def build_stream(section: SectionResult) -> ResultTable:
    """Build a table of a stream's first slice, last slice, and whole or window."""
    first, last = section.slices[0], section.slices[-1]
    lines: list[tuple[str, CellResult, int | None]] = []
    if last is not first or not section.cells:
        lines.append((f"slice {first.number} (first)", first.values, first.number))
    if last is not first:
        lines.append((f"slice {last.number} (last)", last.values, last.number))
    if section.cells:
        over_window = bool(section.window) and len(section.slices) > 1
        of_window = "steady-state window" if section.verdict else "all slices"
        lines.append((of_window if over_window else "whole", section.cells[0], None))
    return with_sureness(
        ResultTable(
            title=f"{section.workload}: {describe_stream(section)}; latencies in µs",
            head=("", *(quantity.short for quantity in STREAM_QUANTITIES)),
            rows=tuple(
                (
                    name,
                    *(
                        figure(cell, quantity, Direction.ALL, part)
                        for quantity in STREAM_QUANTITIES
                    ),
                )
                for name, cell, part in lines
            ),
            notes=_notes([cell for _, cell, _ in lines], STREAM_QUANTITIES),
        )
    )


def _notes(cells: Sequence[CellResult], shown: Sequence[Quantity]) -> tuple[str, ...]:
    """Return the meaning of the marks, and of a dash where a percentile is shown."""
    rare = next(
        (
            note
            for quantity in shown
            if quantity in PERCENTILES
            for note in explain_rare(
                (
                    {percentile.key: cell.value(percentile) for percentile in PERCENTILES}
                    for cell in cells
                ),
                only=quantity.key,
            )
        ),
        None,
    )
    return (*explain_marks(cells), *(() if rare is None else (rare,)))


def with_sureness(table: ResultTable) -> ResultTable:
    """Return the table with a note on the uncertainty of its figures."""
    figures = (cell for row in table.rows for cell in row if isinstance(cell, TableNumber))
    sure = summarise(
        (one.measure, one.value, one.uncertainty) for one in figures if one.measure is not None
    )
    return replace(table, notes=(*table.notes, *sure))


def explain_intervals(result: RunResult) -> tuple[str, ...]:
    """Return the meaning of intervals, once for all; empty if the run has none."""
    known = (
        one.known
        for test in result.tests
        for section in test.sections
        for cell in section.cells
        if cell.uncertainty is not None
        for one in cell.uncertainty.all.values()
    )
    return (MEANING,) if any(known) else ()
