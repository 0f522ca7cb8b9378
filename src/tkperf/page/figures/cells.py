"""Tables and charts of a section's cells, the means over its window, by the axes that tell workloads apart."""

from __future__ import annotations

from tkperf.analysis.axes import OFFERED, Axis
from tkperf.analysis.characteristics import NO_BACKLOG, SATURATED
from tkperf.analysis.results import SectionResult
from tkperf.model.figures import Figure
from tkperf.model.quantity import IOPS
from tkperf.page.layout import arrange
from tkperf.page.naming import Naming, capitalise, describe_axes, describe_curves
from tkperf.page.page import ChartView, Views
from tkperf.page.subject import SectionSubject, find_quantities, show_table
from tkperf.page.tables.results import build_listing, build_matrices
from tkperf.render.charts import rounds
from tkperf.render.charts.bars_3d import bars_3d
from tkperf.render.charts.demand import against, over_demand, split_demand
from tkperf.render.charts.offered import describe_marks, over_offered


def show_matrix(subject: SectionSubject, figure: Figure) -> Views:
    for table in build_matrices(subject.section, find_quantities(figure.quantities)):
        yield show_table(table, subject.links)


def show_listing(subject: SectionSubject, figure: Figure) -> Views:
    if subject.section.cells:
        yield show_table(build_listing(subject.section, figure), subject.links)


def show_over_axis(subject: SectionSubject, figure: Figure, *, bars: bool = False) -> Views:
    section = subject.section
    if len(section.cells) < 2:
        return
    x, *others = _axes(section, figure.axis)
    if x is OFFERED:
        yield from _over_offered(subject, figure)
        return
    if figure.axis not in ("", x.key):
        return
    for quantity in find_quantities(figure.quantities):
        title = figure.title or _name_by_axes(section, quantity.label, figure.axis)
        curves = describe_curves(others)
        told_apart = curves.replace("curve", "bar") if bars else curves
        yield ChartView(
            key="2d",
            text=f"{title}: means over the window{told_apart}.",
            spec=rounds.over_axis(
                section.cells,
                quantity,
                title,
                log=figure.log,
                bars=bars,
                axis=figure.axis,
                links=subject.links,
            ),
        )


def _over_offered(subject: SectionSubject, figure: Figure) -> Views:
    section = subject.section
    naming = Naming(axes=_axes(section)[1:])
    curves = describe_curves(naming.axes)
    marks = tuple(
        found
        for found in section.characteristics
        if found.key in (NO_BACKLOG.key, SATURATED.key) and found.value is not None
    )
    marked = f" Marked: {describe_marks(marks)}." if marks else ""
    for quantity in find_quantities(figure.quantities):
        if all(cell.value(quantity) is None for cell in section.cells):
            continue
        title = figure.title or f"{capitalise(quantity.label)} v offered IOPS"
        ideal = " Dashed: all that was offered." if quantity is IOPS else ""
        yield ChartView(
            key="2d",
            text=f"{title}: {quantity.title} of every level{curves}.{ideal}{marked}",
            spec=over_offered(
                section.cells,
                quantity,
                title,
                naming=naming,
                marks=marks,
                links=subject.links,
                log=figure.log,
            ),
        )


def show_bars_3d(subject: SectionSubject, figure: Figure) -> Views:
    section = subject.section
    for quantity in find_quantities(figure.quantities):
        title = figure.title or f"{_name_by_axes(section, quantity.title)}, 3-D"
        spec = bars_3d(section, quantity, title)
        if spec is not None:
            layout = arrange(cell.workload for cell in section.cells)
            text = (
                f"{title}: every cell of the window's table as a bar, the "
                f"{describe_axes([layout.column_axis.title])} to the right, the "
                f"{describe_axes(layout.row_titles)} to the back."
            )
            yield ChartView(key="3d", text=text, spec=spec)


def show_against(subject: SectionSubject, figure: Figure) -> Views:
    """Yield one quantity drawn over another; nothing for a single cell."""
    cells = subject.section.cells
    quantities = find_quantities(figure.quantities)
    if len(cells) < 2 or len(quantities) != 2:
        return
    upright, across = quantities
    along, others = split_demand(cell.workload for cell in cells)
    title = figure.title or f"{capitalise(upright.label)} against {across.label}"
    yield ChartView(
        key="against",
        text=f"{title}: {upright.title} over {across.title}, a point for each cell of the window's table"
        f"{describe_curves(others)}, along it growing {describe_axes([along.title])}.",
        spec=against(cells, upright, across, title, log=figure.log),
    )


def show_over_demand(subject: SectionSubject, figure: Figure) -> Views:
    cells = subject.section.cells
    if len({cell.workload.total_outstanding_ios for cell in cells}) < 2:
        return
    _, others = split_demand(cell.workload for cell in cells)
    for quantity in find_quantities(figure.quantities):
        title = figure.title or f"{capitalise(quantity.label)} over outstanding I/Os"
        yield ChartView(
            key="outstanding",
            text=f"{title}: {quantity.title} over threads x queue depth{describe_curves(others)}; "
            "cells of an equal product stand above each other, none of them is left out or averaged.",
            spec=over_demand(cells, quantity, title, log=figure.log),
        )


def _name_by_axes(section: SectionResult, quantity: str, axis: str = "") -> str:
    """Return a title such as ``IOPS by block size and R/W mix``."""
    axes = (axis.title for axis in _axes(section, axis))
    return f"{capitalise(quantity)} by {describe_axes(axes)}"


def _axes(section: SectionResult, axis: str = "") -> tuple[Axis, ...]:
    x, others = rounds.split_axes((cell.workload for cell in section.cells), axis)
    return (x, *others)
