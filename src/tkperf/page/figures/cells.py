"""Build tables and charts of cells. The tables and charts show the values over a window, and the values over the areas
of a hard disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.characteristics import NO_BACKLOG, SATURATED, Characteristic
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.analysis.workload_axes import BLOCKS, DEPTH, JOBS, MIX, OFFERED, WorkloadAxis, find_axes, place_of
from tkperf.model.figures import Figure
from tkperf.model.quantity import IOPS, Quantity, find_quantities
from tkperf.model.workload import Workload
from tkperf.page.chart import NEUTRAL, Axis, Bars3D, Chart, Curve, Mark, Place, Point, Rule, RuleKind, Scale
from tkperf.page.figures.curves import SURE, build_curves, colour_quantity, colour_values, describe_sure, flag
from tkperf.page.naming import Naming, arrange, capitalise, describe_axes, describe_curves, find_naming, list_words
from tkperf.page.page import ChartView, Views
from tkperf.page.shown_section import NO_LINKS, ShownSection
from tkperf.page.tables.cell_tables import build_areas, build_listing, build_matrices

OUTSTANDING = "Outstanding I/Os in total (TC x QD)"
_MOST_BARS = 400
IDEAL = "ideal: all that is offered"


def show_matrix(shown: ShownSection, figure: Figure) -> Views:
    yield from build_matrices(shown, find_quantities(figure.quantities))


def show_listing(shown: ShownSection, figure: Figure) -> Views:
    if shown.section.cells:
        yield build_listing(shown, figure)


def show_over_axis(shown: ShownSection, figure: Figure, *, bars: bool = False) -> Views:
    section = shown.section
    if len(section.cells) < 2:
        return
    x, *others = order_axes((cell.workload for cell in section.cells), figure.axis)
    if x is OFFERED:
        yield from _over_offered(shown, figure)
        return
    if figure.axis not in ("", x.key):
        return
    for quantity in find_quantities(figure.quantities):
        title = figure.title or _name_by_axes(section, quantity.label, figure.axis)
        curves = describe_curves(others)
        parts = curves.replace("curve", "bar") if bars else curves
        yield ChartView(
            key="2d",
            text=f"{title}: means over the window{parts}.",
            chart=_draw_over_axis(shown, figure, quantity, title, bars=bars),
        )


def _point(
    cell: CellResult, x: Place, quantity: Quantity, *facts: str, links: Mapping[Workload, str] = NO_LINKS
) -> tuple[Workload, Point]:
    """Return the point of a cell together with its workload. The interval of the value is added at the end of
    ``facts``.
    """
    link, sure = links.get(cell.workload, ""), describe_sure(cell, quantity)
    of_cell = Point(x, cell.value(quantity), link=link, flag=flag(cell), facts=(*facts, sure))
    return cell.workload, of_cell


def _draw_over_axis(shown: ShownSection, figure: Figure, quantity: Quantity, title: str, *, bars: bool) -> Chart:
    """Return a chart of a quantity over one axis of the workloads.

    The chart contains a curve, or a set of bars, for each value of the other axes.
    """
    cells = shown.section.cells
    x, *others = order_axes((cell.workload for cell in cells), figure.axis)
    naming = Naming(axes=tuple(others))
    places = dict(sorted({x.order(cell.workload): x.text(cell.workload) for cell in cells}.items()))
    points = (
        _point(cell, x.text(cell.workload), quantity, links=shown.links)
        for cell in sorted(cells, key=lambda cell: x.order(cell.workload))
    )
    mark = Mark.BAR if bars else Mark.LINE
    return Chart(
        title=title,
        x=Axis(title=x.title, scale=Scale.ORDINAL, places=tuple(places.values())),
        y=Axis(title=quantity.title, scale=_scale(figure)),
        curves=build_curves(points, naming, mark=mark, facts=(SURE,)),
        series=naming.title,
        grouped=bars,
    )


def _scale(figure: Figure) -> Scale:
    return Scale.LOG if figure.log else Scale.LINEAR


def _over_offered(shown: ShownSection, figure: Figure) -> Views:
    section = shown.section
    naming = Naming(axes=order_axes(cell.workload for cell in section.cells)[1:])
    curves = describe_curves(naming.axes)
    marks = tuple(
        found
        for found in section.characteristics
        if found.key in (NO_BACKLOG.key, SATURATED.key) and found.value is not None
    )
    marked = f" Marked: {', '.join(map(_name_mark, marks))}." if marks else ""
    displayed = [
        quantity
        for quantity in find_quantities(figure.quantities)
        if any(cell.value(quantity) is not None for cell in section.cells)
    ]
    # If the colours distinguish several loads, each quantity is drawn in a separate chart.
    together = [displayed] if displayed and not naming.axes else [[quantity] for quantity in displayed]
    for quantities in together:
        title = figure.title or f"{capitalise(quantities[0].label)} versus offered IOPS"
        ideal = " Dashed: all that was offered." if IOPS in quantities else ""
        of = list_words([quantity.title for quantity in quantities])
        yield ChartView(
            key="2d",
            text=f"{title}: {of} of every level{curves}.{ideal}{marked}",
            chart=_draw_over_offered(shown, figure, quantities, title, naming, marks),
        )


def _draw_over_offered(
    shown: ShownSection,
    figure: Figure,
    quantities: Sequence[Quantity],
    title: str,
    naming: Naming,
    marks: Sequence[Characteristic],
) -> Chart:
    """Return a chart that shows quantities with the same unit over the offered rate. If the chart shows IOPS, it also
    contains the ideal line.
    """
    cells = shown.section.cells
    curves: list[Curve] = []
    for quantity in quantities:
        points = (
            _point(cell, cell.workload.offered_iops or 0.0, quantity, links=shown.links)
            for cell in cells
            if cell.value(quantity) is not None
        )
        built = build_curves(points, naming, facts=(SURE,))
        if len(quantities) > 1:
            colour = colour_quantity(quantity)
            built = tuple(replace(each, name=quantity.short, colour=colour) for each in built)
        curves = [*built, *curves]  # The first curve is drawn last, so that it is in front of all other curves.
    if IOPS in quantities:
        most = max(cell.workload.offered_iops or 0.0 for cell in cells)
        ends = (Point(0.0, 0.0), Point(most, most))
        curves = [replace(each, name=each.name or "measured") for each in curves]
        curves.append(Curve(name=IDEAL, points=ends, colour=NEUTRAL, dash=1))
    return Chart(
        title=title,
        x=Axis(title=OFFERED.title),
        y=Axis(title=quantities[0].title, scale=_scale(figure)),
        curves=tuple(curves),
        rules=tuple(
            # The names are on separate lines, because the rates may be too close together for a single line.
            Rule(kind=RuleKind.RATE, x=mark.value, name=_name_mark(mark), row=row)
            for row, mark in enumerate(marks)
        ),
        series=naming.title,
    )


def _name_mark(mark: Characteristic) -> str:
    """Return a mark in words: ``no backlog up to 91,000 IOPS``."""
    return f"{mark.measure.label} {mark.text()} {mark.measure.unit}"


def show_bars_3d(shown: ShownSection, figure: Figure) -> Views:
    section = shown.section
    for quantity in find_quantities(figure.quantities):
        title = figure.title or f"{_name_by_axes(section, quantity.title)}, 3-D"
        chart = _build_bars(section, quantity, title)
        if chart is not None:
            layout = arrange(cell.workload for cell in section.cells)
            text = (
                f"{title}: every cell of the window's table as a bar, the "
                f"{describe_axes([layout.column_axis.title])} to the right, the "
                f"{describe_axes(layout.row_titles)} to the back."
            )
            yield ChartView(key="3d", text=text, chart=chart)


def _build_bars(section: SectionResult, quantity: Quantity, title: str) -> Bars3D | None:
    """Return the means over the window as bars. The columns of the table extend to the right, and the rows extend to
    the back.

    The rows keep their order. The end with the lower bars is in front, so that high bars do not hide low bars. Return
    None unless all these conditions are met: the workloads differ in exactly two fields, at least one cell has a value,
    and the bars are few enough to be distinguished.
    """
    layout = arrange(cell.workload for cell in section.cells)
    if min(len(layout.rows), len(layout.columns)) < 2 or len(layout.row_axes) > 1:
        return None
    if len(section.cells) > _MOST_BARS:
        return None
    cell_of = {cell.workload: cell for cell in section.cells}

    def height(work: Workload | None) -> float:
        return 0.0 if work is None else cell_of[work].value(quantity) or 0.0

    highest = [max(map(height, row), default=0.0) for row in layout.at]
    step = 1 if highest[0] <= highest[-1] else -1
    bars = {
        (back, right): Point("", value, flag=flag(cell), facts=(describe_sure(cell, quantity),))
        for back, row in enumerate(layout.at[::step])
        for right, work in enumerate(row)
        if work is not None and (cell := cell_of[work]) and (value := cell.value(quantity)) is not None
    }
    if not bars:
        return None
    axis, rows = layout.row_axes[0], layout.rows[::step]
    colours = colour_values(axis, rows)
    return Bars3D(
        title=title,
        columns=tuple(_name_edge(layout.column_axis, work) for work in layout.columns),
        rows=tuple(_name_edge(axis, work) for work in rows),
        colours=tuple(colours[axis.order(work)] for work in rows),
        column_title=layout.column_axis.title,
        row_title=axis.title,
        value_title=quantity.title,
        bars=tuple(bars.values()),
        places=tuple(bars),
        facts=(SURE,),
    )


def _name_edge(axis: WorkloadAxis, workload: Workload) -> str:
    """Return the name of a place along an edge.

    The slash ("/") shows that the name is a mix. The title of the edge shows that a name is a block size.
    """
    return axis.text(workload) if axis in (MIX, BLOCKS) else axis.words(workload)


def show_against(shown: ShownSection, figure: Figure) -> Views:
    """Yield charts that show one quantity over another quantity. If the section has only a single cell, yield
    nothing.
    """
    cells = shown.section.cells
    quantities = find_quantities(figure.quantities)
    if len(cells) < 2 or len(quantities) != 2:
        return
    upright, across = quantities
    along, others = split_demand(cell.workload for cell in cells)
    naming = Naming(axes=others)
    title = figure.title or f"{capitalise(upright.label)} against {across.label}"
    points = (
        _point(cell, x, upright, along.words(cell.workload))
        for cell in sorted(cells, key=lambda cell: along.order(cell.workload))
        if (x := cell.value(across)) is not None and cell.value(upright) is not None
    )
    yield ChartView(
        key="against",
        text=f"{title}: {upright.title} over {across.title}, a point for each cell of the window's table"
        f"{describe_curves(others)}, along it growing {describe_axes([along.title])}.",
        chart=Chart(
            title=title,
            x=Axis(title=across.title),
            y=Axis(title=upright.title, scale=_scale(figure)),
            curves=_with_depths(build_curves(points, naming, facts=(along.title, SURE))),
            series=naming.title,
        ),
    )


# If there are more points than this number, the texts would cover the curves and other texts.
_MOST_TEXTS = 16


def _with_depths(curves: tuple[Curve, ...]) -> tuple[Curve, ...]:
    """Return the curves with the demand of each point as a text beside the point.

    If there are many points, only the curve that ends at the highest value has these texts, because all curves of a
    sweep have the same demands.
    """
    many = sum(len(curve.points) for curve in curves) > _MOST_TEXTS
    highest = max(curves, key=lambda curve: curve.points[-1].y or 0.0, default=None)
    return tuple(replace(curve, has_texts=not many or curve is highest) for curve in curves)


def show_over_demand(shown: ShownSection, figure: Figure) -> Views:
    cells = sorted(shown.section.cells, key=lambda cell: cell.workload.total_outstanding_ios)
    places = tuple(dict.fromkeys(cell.workload.total_outstanding_ios for cell in cells))
    if len(places) < 2:
        return
    _, others = split_demand(cell.workload for cell in cells)
    naming = Naming(axes=others)
    for quantity in find_quantities(figure.quantities):
        title = figure.title or f"{capitalise(quantity.label)} over outstanding I/Os"
        points = (
            _point(cell, work.total_outstanding_ios, quantity, f"TC{work.jobs} QD{work.io_depth}")
            for cell in cells
            for work in (cell.workload,)
        )
        yield ChartView(
            key="outstanding",
            text=f"{title}: {quantity.title} over threads × queue depth{describe_curves(others)}; "
            "cells with the same product are drawn above each other, each by itself.",
            chart=Chart(
                title=title,
                x=Axis(title=OUTSTANDING, scale=Scale.ORDINAL, places=places),
                y=Axis(title=quantity.title, scale=_scale(figure)),
                curves=build_curves(points, naming, facts=("Demand", SURE)),
                series=naming.title,
            ),
        )


def split_demand(workloads: Iterable[Workload]) -> tuple[WorkloadAxis, tuple[WorkloadAxis, ...]]:
    """Return two results: the axis along which the demand grows within a curve, and the axes in which the curves
    differ.
    """
    axes = find_axes(workloads)
    along = next((axis for axis in (DEPTH, JOBS, OFFERED) if axis in axes), DEPTH)
    return along, tuple(axis for axis in axes if axis is not along)


def _name_by_axes(section: SectionResult, quantity: str, axis: str = "") -> str:
    """Return a title that contains the axes: ``IOPS by block size and R/W mix``."""
    axes = (axis.title for axis in order_axes((cell.workload for cell in section.cells), axis))
    return f"{capitalise(quantity)} by {describe_axes(axes)}"


def order_axes(workloads: Iterable[Workload], axis: str = "") -> tuple[WorkloadAxis, ...]:
    """Return the axes of a chart of cells. The first axis is the x axis.

    The x axis is the axis with the requested key. If no key is requested, the x axis is the block size. If all block
    sizes are equal, the x axis is the first axis.
    """
    axes = find_axes(workloads) or (BLOCKS,)
    asked = (candidate for candidate in axes if candidate.key == axis)
    x = next(asked, BLOCKS if BLOCKS in axes else axes[0])
    return (x, *(axis for axis in axes if axis is not x))


def show_over_areas(shown: ShownSection, figure: Figure) -> Views:
    section = shown.section
    if not section.areas:
        return
    for quantity in find_quantities(figure.quantities):
        if section.cells:
            yield build_areas(shown, quantity)
        points = [
            (cell.workload, Point(_find_place(area.number, section.areas), cell.value(quantity), flag=flag(cell)))
            for area, cell in section.cells_of_rounds()
        ]
        naming = find_naming(work for work, _ in points)
        yield ChartView(
            key="area",
            text=f"{capitalise(quantity.title)} of every area from the start of the disk to its end.",
            chart=Chart(
                title=figure.title or f"{capitalise(quantity.label)} over the disk",
                x=Axis(title="Place on the disk (%, 0 is its start)", domain=(0.0, 100.0)),
                y=Axis(title=quantity.title),
                curves=build_curves(points, naming),
                series=naming.title,
            ),
        )


def _find_place(area: int, areas: int) -> float:
    """Return the position of the middle of an area, in percent of the disk."""
    return round(100 * (area - 0.5) / areas, 3)


def show_spread(shown: ShownSection, figure: Figure) -> Views:
    section = shown.section
    if not section.areas:
        return
    cells = [cell for _, cell in section.cells_of_rounds()]
    workloads = {cell.workload for cell in cells}
    naming = find_naming(workloads)
    ordered = sorted(workloads, key=lambda work: place_of(work, naming.axes[::-1]))
    places = tuple(map(naming.name_of, ordered))
    for quantity in find_quantities(figure.quantities):
        points = tuple(Point(naming.name_of(cell.workload), cell.value(quantity), flag=flag(cell)) for cell in cells)
        yield ChartView(
            key="box",
            text=f"Spread of {quantity.title} over the areas: median, quartiles, and whiskers to the "
            "slowest and the fastest area.",
            chart=Chart(
                title=figure.title or f"{capitalise(quantity.label)}, spread over areas",
                x=Axis(title=naming.title, scale=Scale.ORDINAL, places=places),
                y=Axis(title=quantity.title),
                curves=(Curve(points=points, mark=Mark.BOX),),
            ),
        )
