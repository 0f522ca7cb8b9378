"""Draw the effect of one load on another load: reads while the drive also writes, and a reader while its neighbours
run.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from tkperf.analysis.loads_together import (
    READ_P99,
    InterferenceCell,
    InterferenceGrid,
    LimitPoint,
    NeighbourEffect,
    build_grid,
    find_neighbours,
)
from tkperf.model.figures import Figure
from tkperf.model.quantity import IOPS, LATENCY_MEAN, THROUGHPUT, Quantity, find_quantities
from tkperf.model.units import NOT_MEASURED, format_latency, format_number
from tkperf.page.chart import Axis, Chart, Curve, GridEdge, GridMap, GridSquare, Mark, Point, Rule, RuleKind, Scale
from tkperf.page.figures.curves import SURE, describe_sure, flag
from tkperf.page.findings.interference_findings import describe_factor, describe_limit
from tkperf.page.naming import capitalise
from tkperf.page.page import ChartView, Column, Views, build_table
from tkperf.page.shown_section import ShownSection
from tkperf.page.words.uncertainty import join_flags

OFFERED_READS = "Offered random reads (IOPS)"
OFFERED_WRITES = "Offered random writes (MB/s)"
_FAR_APART = 10
WITHIN_LIMIT = "Most offered reads within the limit (IOPS)"


def show_interference(shown: ShownSection, figure: Figure) -> Views:
    """Yield a map of offered reads and writes for each latency. If the section has no grid, yield nothing."""
    grid = build_grid(shown.section)
    if grid is None:
        return
    for quantity in find_quantities(figure.quantities):
        title = figure.title or f"{capitalise(quantity.label)} of the reads during writes, in µs unless said"
        limited = quantity is READ_P99
        within = " The red line encloses the cells in which the drive did all that was offered, and the reads kept "
        line = f"{within}{describe_limit(grid.limit_us)}." if limited else ""
        yield ChartView(
            key="grid",
            text=f"{title}: a square for each pair of offered rates.{line} Dashed: the drive did not do all that was "
            "offered, so the cell does not count.",
            chart=GridMap(
                title=title,
                x=Axis(title=OFFERED_READS, scale=Scale.ORDINAL, places=tuple(map(_name_iops, grid.read_rates))),
                y=Axis(
                    title=OFFERED_WRITES,
                    scale=Scale.ORDINAL,
                    places=tuple(_name_megabytes(grid, rate) for rate in grid.write_rates),
                ),
                squares=tuple(_squares(shown, grid, quantity)),
                facts=("Reads", "Writes", f"Read {quantity.title}", SURE),
                edges=tuple(find_edges(grid)) if limited else (),
                limit=describe_limit(grid.limit_us) if limited else "",
            ),
        )


def _name_iops(rate: float) -> str:
    return f"{rate / 1000:,.3g}k" if rate >= 10_000 else f"{rate:,.0f}"


def _name_megabytes(grid: InterferenceGrid, write_iops: float) -> str:
    return format_number(write_iops * grid.write_block_bytes / 1e6)


def _squares(shown: ShownSection, grid: InterferenceGrid, quantity: Quantity) -> Iterator[GridSquare]:
    """Yield a square for each pair of rates. The strength of the colour shows the logarithm of the read latency."""
    values = [
        value
        for cell in grid.cells.values()
        if cell.reached and cell.reads is not None and (value := cell.reads.value(quantity))
    ]
    low, high = min(values, default=1.0), max(values, default=1.0)
    span = log(high / low) if high > low else 1.0
    for (reads, writes), cell in grid.cells.items():
        column, row = grid.read_rates.index(reads), grid.write_rates.index(writes)
        done = _describe_done(cell, reads=True), _describe_done(cell, reads=False)
        if cell.reads is None:
            # If there are no reads, there is no read latency. The square then shows whether the drive completes the
            # writes when only the writes run.
            text, strength = ("done", 0.0) if cell.reached else (NOT_MEASURED, None)
            yield GridSquare(column=column, row=row, text=text, strength=strength, facts=(*done, "no reads", ""))
            continue
        value = cell.reads.value(quantity) if cell.reached else None
        yield GridSquare(
            column=column,
            row=row,
            text=NOT_MEASURED if value is None else format_latency(value).removesuffix(" µs"),
            strength=log(value / low) / span if value else None,
            link=shown.links.get(cell.reads.workload, ""),
            flag=flag(cell.reads),
            facts=(
                *done,
                quantity.text(cell.reads.value(quantity)) + ("" if cell.reached else ", does not count"),
                describe_sure(cell.reads, quantity),
            ),
        )


def _describe_done(cell: InterferenceCell, *, reads: bool) -> str:
    """Return the completed part of the offered load in words: ``79,070 of 79,085 IOPS``."""
    of = cell.reads if reads else cell.writes
    if of is None:
        return "none"
    return f"{format_number(of.value(IOPS))} of {format_number(of.workload.offered_iops, 0)} IOPS"


def find_edges(grid: InterferenceGrid) -> Iterator[GridEdge]:
    """Yield the parts of the line that shows the limit. These parts are the sides between squares within the limit and
    squares beyond the limit.
    """
    reached = [0 if point.read_iops is None else grid.read_rates.index(point.read_iops) for point in grid.limit]
    for row, column in enumerate(reached):
        if column < len(grid.read_rates) - 1:
            yield GridEdge(column + 1, row, column + 1, row + 1)
        if row + 1 < len(reached) and reached[row + 1] != column:
            low, high = sorted((column, reached[row + 1]))
            yield GridEdge(low + 1, row + 1, high + 1, row + 1)


def show_frontier(shown: ShownSection, figure: Figure) -> Views:
    """Yield a chart that shows, for each write rate, the highest read rate whose latency is within the limit. If the
    section has no grid, yield nothing.
    """
    grid = build_grid(shown.section)
    if grid is None:
        return
    title = figure.title or f"Most reads with {describe_limit(grid.limit_us)} during writes"
    yield ChartView(
        key="frontier",
        text=f"{title}, at each offered rate of writes. Between two offered rates of reads nothing was measured. "
        "The line ends where even the lowest offered rate of reads was beyond the limit, or where the drive did not do "
        "all that was offered.",
        chart=Chart(
            title=title, x=Axis(title=OFFERED_WRITES), y=Axis(title=WITHIN_LIMIT), curves=(_frontier_curve(grid),)
        ),
    )


def _frontier_curve(grid: InterferenceGrid) -> Curve:
    """Return a curve that shows, for each write rate, the highest read rate whose latency is within the limit. If there
    is no such read rate at a write rate, the curve has no point there.
    """
    return Curve(
        points=tuple(_frontier_point(grid, point) for point in grid.limit),
        dots=True,
        facts=("Next offered rate, beyond the limit",),
    )


def _frontier_point(grid: InterferenceGrid, point: LimitPoint) -> Point:
    """Return a point with the flags of the two cells that determine the point. These cells are the last cell within the
    limit, and the next cell.
    """
    flags = dict.fromkeys(map(flag, grid.decisive_cells(point)))
    beyond = NOT_MEASURED if point.next_read_iops is None else f"{point.next_read_iops:,.0f} IOPS"
    return Point(
        point.write_bytes_per_s / 1e6,
        point.read_iops,
        flag=join_flags([words for words in flags if words]) if any(flags) else "",
        facts=(beyond,),
    )


def show_neighbours(shown: ShownSection, figure: Figure) -> Views:
    """Yield a table of all figures, unless the quantity is the mean latency. Always yield a chart that shows the factor
    by which each neighbour increases a latency of the reader. If the section has no neighbours, yield nothing.
    """
    (quantity,) = find_quantities(figure.quantities)
    effects = [one for one in find_neighbours((shown.section,), quantity) if one.factor is not None]
    if not effects:
        return
    effects.sort(key=lambda one: -(one.factor or 0.0))
    if quantity is not LATENCY_MEAN:
        yield build_table(
            f"Reader with each neighbour, {quantity.label}",
            effects,
            (
                Column("Neighbour", lambda one: one.name),
                Column("times as long", describe_factor),
                Column("with the neighbour", lambda one: quantity.text(one.reader.value(quantity))),
                Column("reader alone", lambda one: quantity.text(one.alone.value(quantity))),
                Column("the neighbour did", describe_neighbour),
            ),
        )
    title = figure.title or f"{capitalise(quantity.label)} of the reader with each neighbour"
    factors = [one.factor for one in effects if one.factor]
    # If one bar had the value 100, bars with the values 1 and 2 would look equal. In this case, points on a logarithmic
    # axis replace the bars. A bar would have to begin at 0, which does not exist on this axis.
    far_apart = max(factors) > _FAR_APART * min(factors)
    scale = Scale.LOG if far_apart else Scale.LINEAR
    yield ChartView(
        key="neighbours",
        text=f"{title}, divided by that of the reader alone in the same rounds. 1: the neighbour changes nothing.",
        chart=Chart(
            title=title,
            x=Axis(title="Neighbour", scale=Scale.ORDINAL, places=tuple(map(_name_with_factor, effects))),
            y=Axis(title="Latency with the neighbour, divided by latency alone (×)", scale=scale),
            curves=(
                Curve(
                    points=tuple(
                        Point(
                            _name_with_factor(one),
                            one.factor,
                            low=None if one.uncertainty is None else one.uncertainty.low,
                            high=None if one.uncertainty is None else one.uncertainty.high,
                            link=shown.links.get(one.reader.workload, ""),
                            flag=flag(one.reader),
                            facts=(describe_factor(one), describe_neighbour(one)),
                        )
                        for one in effects
                    ),
                    mark=Mark.POINT if far_apart else Mark.BAR,
                    facts=("Times as long", "The neighbour did"),
                ),
            ),
            rules=(Rule(kind=RuleKind.REFERENCE, y=1.0),),
        ),
    )


def _name_with_factor(effect: NeighbourEffect) -> str:
    least = "" if effect.kept_share is None else "≥ "
    return f"{effect.name}, {least}{effect.factor:.3g} ×"


def describe_neighbour(effect: NeighbourEffect) -> str:
    """Return the rate that a neighbour reached: ``1,234 MB/s``."""
    return NOT_MEASURED if effect.neighbour is None else THROUGHPUT.text(effect.neighbour.value(THROUGHPUT))
