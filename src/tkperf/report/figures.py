"""Each kind of figure as a table or a chart of a page, whatever test asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tkperf.analysis.layout import OFFERED, Axis, arrange
from tkperf.analysis.results import SectionResult
from tkperf.analysis.tables import build_areas, build_listing, build_matrices, directions_of
from tkperf.analysis.timeline.findings import Recorded, Timeline
from tkperf.analysis.timeline.wording import preferred
from tkperf.figures import Figure, FigureKind
from tkperf.measurement import TOO_FEW_IOS
from tkperf.quantity import IOPS, LATENCY_MEAN, PERCENTILES, Direction, Quantity
from tkperf.report.charts import rounds
from tkperf.report.charts.bars_3d import bars_3d
from tkperf.report.charts.demand import against, heat_map, over_demand, split_demand
from tkperf.report.charts.hard_disk import box_plot, over_areas
from tkperf.report.charts.latency import (
    exceedance,
    histogram_rows,
    mark_rows,
    response_time_histogram,
)
from tkperf.report.charts.offered import over_offered
from tkperf.report.charts.over_time import mark_over_time
from tkperf.report.charts.seconds import (
    find_recorded,
    over_seconds,
    part_rows,
    seconds_rows,
    window_rows,
)
from tkperf.report.charts.vega import Spec, has_values
from tkperf.report.naming import (
    Naming,
    capitalise,
    describe_axes,
    describe_curves,
    describe_direction,
    describe_together,
    list_words,
)
from tkperf.report.page import ChartView, TableView
from tkperf.report.subject import Subject, find_quantities, show_table
from tkperf.units import format_capacity
from tkperf.workload import Workload

Views = Iterator[TableView | ChartView]
Build = Callable[[Subject, Figure], Views]


def build_figures(subject: Subject) -> tuple[tuple[TableView, ...], tuple[ChartView, ...]]:
    """The tables and the charts that the section's plan asks for and that have something to show."""
    tables: list[TableView] = []
    charts: list[ChartView] = []
    count: Counter[str] = Counter()
    for figure in subject.section.plan.figures:
        for view in _BUILD[figure.kind](subject, figure):
            if isinstance(view, TableView):
                tables.append(view)
                continue
            # The first chart of a kind has its name, the others are numbered.
            count[view.key] += 1
            number = count[view.key] if count[view.key] > 1 else ""
            if has_values(view.spec):
                charts.append(replace(view, key=f"{subject.key}{view.key}{number}"))
    return tuple(tables), tuple(charts)


def name_by_axes(section: SectionResult, quantity: str, axis: str = "") -> str:
    """``IOPS by block size and R/W mix``."""
    axes = (axis.title for axis in _axes(section, axis))
    return f"{capitalise(quantity)} by {describe_axes(axes)}"


def _axes(section: SectionResult, axis: str = "") -> tuple[Axis, ...]:
    x, others = rounds.split_axes((cell.workload for cell in section.cells), axis)
    return (x, *others)


def _matrix(subject: Subject, figure: Figure) -> Views:
    for table in build_matrices(subject.section, find_quantities(figure.quantities)):
        yield show_table(table, subject.links)


def _listing(subject: Subject, figure: Figure) -> Views:
    if subject.section.cells:
        yield show_table(build_listing(subject.section, figure), subject.links)


def _over_rounds(subject: Subject, figure: Figure) -> Views:
    """One chart for the mixes that the figure names; one for each mix if it names none."""
    section = subject.section
    measured = {cell.workload for round_result in section.rounds for cell in round_result.cells}
    mixes = sorted({workload.read_percent for workload in measured})
    for mix in (None,) if figure.read_percents else mixes:
        shown = figure.read_percents if mix is None else (mix,)
        of = "" if mix is None else f": {describe_direction(measured, mix)}"
        curves = rounds.shown_over_rounds(section, shown, most_threads=figure.most_threads)
        naming = rounds.naming_over_rounds(section, shown, most_threads=figure.most_threads)
        threads = "; of the most threads alone" if figure.most_threads else ""
        for quantity in find_quantities(figure.quantities):
            title = (figure.title or f"{capitalise(quantity.label)} over the rounds") + of
            yield ChartView(
                key="convergence",
                text=f"{title}: {quantity.title} of every round{describe_curves(naming.axes)}{threads}.",
                spec=mark_over_time(
                    rounds.convergence(
                        section,
                        quantity,
                        title,
                        read_percents=shown,
                        most_threads=figure.most_threads,
                        log=figure.log,
                    ),
                    _timelines_of(subject, Recorded.ROUNDS, curves),
                    (quantity,),
                    x="round",
                ),
            )


def _timelines_of(
    subject: Subject, recorded: Recorded, workloads: Sequence[Workload] | None = None
) -> tuple[Timeline, ...]:
    """What was found over time, of these workloads."""
    return tuple(
        timeline
        for timeline in subject.section.timelines
        if timeline.recorded is recorded and (workloads is None or timeline.workload in workloads)
    )


def _window(subject: Subject, figure: Figure) -> Views:
    """The window that was judged, if one was, once for each tracking variable."""
    section, verdicts = subject.section, subject.section.window_verdicts
    for number, verdict in enumerate(verdict for verdict in verdicts if verdict.judged):
        title = figure.title or "Steady state verification: the window"
        if len(verdicts) > 1:
            title += f" of {verdict.tracking}"
        yield ChartView(
            key=f"window{number or ''}",
            text=f"{verdict.tracking} in the window with its average, the lines at 110 % and 90 % of "
            "it, and the best linear fit. The lines are a convention; the criterion is the range.",
            spec=rounds.steady_state_window(verdict, title, "Slice" if section.slices else "Round"),
        )


def _over_axis(subject: Subject, figure: Figure) -> Views:
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
        title = figure.title or name_by_axes(section, quantity.label, figure.axis)
        yield ChartView(
            key="2d",
            text=f"{title}: means over the window{describe_curves(others)}.",
            spec=rounds.over_axis(section.cells, quantity, title, log=figure.log, axis=figure.axis),
        )


def _over_offered(subject: Subject, figure: Figure) -> Views:
    section = subject.section
    naming = Naming(axes=_axes(section)[1:])
    curves = describe_curves(naming.axes)
    knee = section.knee and section.knee.missed_iops and section.knee.kept_iops
    marked = f" Marked: the last level that was kept up with, {knee:,.0f} IOPS." if knee else ""
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
                knee=section.knee,
                links=subject.links,
                log=figure.log,
            ),
        )


def _bars_3d(subject: Subject, figure: Figure) -> Views:
    section = subject.section
    for quantity in find_quantities(figure.quantities):
        title = figure.title or f"{name_by_axes(section, quantity.title)}, 3-D"
        spec = bars_3d(section, quantity, title)
        if spec is not None:
            layout = arrange(cell.workload for cell in section.cells)
            text = (
                f"{title}: every cell of the window's table as a bar, the "
                f"{describe_axes([layout.column_axis.title])} to the right, the "
                f"{describe_axes(layout.row_titles)} to the back."
            )
            yield ChartView(key="3d", text=text, spec=spec)


def _heat_map(subject: Subject, figure: Figure) -> Views:
    cells = subject.section.cells
    if len(cells) < 2:
        return
    layout = arrange(cell.workload for cell in cells)
    by = describe_axes((*layout.row_titles, layout.column_axis.title))
    for quantity in find_quantities(figure.quantities):
        title = figure.title or f"{capitalise(quantity.title)} by {by}"
        yield ChartView(
            key="heat",
            text=f"{title}: every cell of the window's table, the darker the greater.",
            spec=heat_map(cells, quantity, title),
        )


def _against(subject: Subject, figure: Figure) -> Views:
    """Nothing is drawn over what a single cell has."""
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


def _over_demand(subject: Subject, figure: Figure) -> Views:
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


def _over_areas(subject: Subject, figure: Figure) -> Views:
    section = subject.section
    if not section.areas:
        return
    for quantity in find_quantities(figure.quantities):
        if section.cells:
            yield show_table(build_areas(section, quantity), subject.links)
        title = figure.title or f"{capitalise(quantity.label)} over area"
        text = f"{capitalise(quantity.title)} of every area from the start of the disk to its end."
        yield ChartView(key="area", text=text, spec=over_areas(section, quantity, title))


def _spread(subject: Subject, figure: Figure) -> Views:
    section = subject.section
    if not section.areas:
        return
    for quantity in find_quantities(figure.quantities):
        yield ChartView(
            key="box",
            text=f"Spread of {quantity.title} over the areas: median, quartiles, and whiskers to the "
            "slowest and the fastest area.",
            spec=box_plot(
                section,
                quantity,
                figure.title or f"{capitalise(quantity.label)}, spread over areas",
            ),
        )


def _over_time(subject: Subject, figure: Figure) -> Views:
    if len(subject.section.slices) > 1:
        yield _stream(subject, figure, "time", rounds.TIME, "over time", "over time")


def _over_written(subject: Subject, figure: Figure) -> Views:
    if _written_known(subject):
        text = "over the total amount written (TGBW)"
        yield _stream(subject, figure, "tgbw", rounds.TOTAL_WRITTEN, "over total GB written", text)


def _over_fills(subject: Subject, figure: Figure) -> Views:
    capacity_bytes = subject.capacity_bytes
    if capacity_bytes and _written_known(subject):
        text = f"over the amount written in multiples of {format_capacity(capacity_bytes)}, the capacity in use"
        over = rounds.drive_fills(capacity_bytes)
        yield _stream(subject, figure, "fills", over, "over drive fills", text)


def _written_known(subject: Subject) -> bool:
    slices = subject.section.slices
    return len(slices) > 1 and slices[-1].total_written_bytes is not None


def _stream(
    subject: Subject, figure: Figure, key: str, over: rounds.Over, of: str, text: str
) -> ChartView:
    quantities = find_quantities(figure.quantities)
    log = ", logarithmic" if figure.log else ""
    title = figure.title or f"{capitalise(_listed(quantities))} {of}{log}"
    caption = f"{capitalise(_listed(quantities))} of each slice {text}"
    workload = subject.section.slices[0].values.workload
    directions = directions_of(workload, apart=figure.apart)
    if len(directions) > 1:
        directions = tuple(named for named in directions if named[0] is not Direction.ALL)
        caption += ", reads and writes apart"
    if log:
        caption += ", the axis logarithmic"
    if set(quantities) & set(PERCENTILES):
        caption += f"; none where a slice had {TOO_FEW_IOS}"
    spec = rounds.stream(
        subject.section,
        quantities,
        title,
        over=over,
        log=figure.log,
        directions=directions,
        link=subject.links.get(workload, ""),
    )
    if over is rounds.TIME:
        timelines = preferred(subject.section.timelines)
        spec = mark_over_time(
            spec, timelines, quantities, scale=1 / rounds.stream_unit(subject.section)[1]
        )
        if "layer" in spec:
            caption += ". Marked: what was found over time"
    return ChartView(
        key=key,
        text=f"{caption}. Workload: {subject.section.workload}.",
        spec=spec,
    )


def _listed(quantities: tuple[Quantity, ...]) -> str:
    if len(quantities) > 1 and all(quantity.unit == LATENCY_MEAN.unit for quantity in quantities):
        words = [quantity.label.removesuffix(" latency") for quantity in quantities]
        return f"{list_words(words)} latency"
    return list_words([quantity.label for quantity in quantities])


def _seconds(subject: Subject, figure: Figure) -> Views:
    quantities = find_recorded(find_quantities(figure.quantities))
    for detail in subject.details.values():
        if not len(detail.seconds) or not quantities:
            continue
        what = describe_together(quantities)
        judged = any(part.judged for part in detail.parts)
        yield ChartView(
            key="seconds",
            text=f"{what} of every second: where a point stands for several, the shade reaches "
            "from the lowest to the highest."
            + (" Shaded green: the window that was judged." if judged else ""),
            spec=mark_over_time(
                over_seconds(
                    seconds_rows(detail, quantities),
                    window_rows(detail),
                    part_rows(detail),
                    quantities,
                    figure.title or f"{what}, every second",
                ),
                _timelines_of(subject, Recorded.SECONDS),
                quantities,
                scale=1000,  # its axis has ms
                x="t",
            ),
            cell=subject.links[detail.workload],
        )


def _histogram(subject: Subject, figure: Figure) -> Views:
    text = (
        "All I/Os by response time, and the share of them that took no longer (confidence level). "
        "Marked: average (ART), percentiles, maximum (MRT). Buckets are 1/64 of the response time "
        "wide or less; counts step where the width doubles. The curve is exact at a bucket's edges, "
        "straight within."
    )
    title = figure.title or "Response time histogram"
    yield from _distribution(subject, figure, "rth", title, text, response_time_histogram)


def _exceedance(subject: Subject, figure: Figure) -> Views:
    text = "The share of all I/Os that took longer than a response time."
    title = figure.title or "Exceedance"
    yield from _distribution(subject, figure, "exceedance", title, text, exceedance)


def _distribution(
    subject: Subject, figure: Figure, key: str, title: str, text: str, draw: Callable[..., Spec]
) -> Views:
    for detail in subject.details.values():
        for direction, words in directions_of(detail.workload, apart=figure.apart):
            if figure.apart and words == "reads and writes":
                continue
            stats = detail.of(direction)
            of = f"{words} of {detail.workload}" if figure.apart else str(detail.workload)
            if buckets := histogram_rows(stats):
                spec = draw(buckets, mark_rows(stats), f"{title}: {of}")
                yield ChartView(key=key, text=text, spec=spec)


_BUILD: dict[FigureKind, Build] = {
    FigureKind.MATRIX: _matrix,
    FigureKind.LISTING: _listing,
    FigureKind.OVER_ROUNDS: _over_rounds,
    FigureKind.WINDOW: _window,
    FigureKind.OVER_AXIS: _over_axis,
    FigureKind.BARS_3D: _bars_3d,
    FigureKind.HEAT_MAP: _heat_map,
    FigureKind.AGAINST: _against,
    FigureKind.OVER_DEMAND: _over_demand,
    FigureKind.OVER_TIME: _over_time,
    FigureKind.OVER_WRITTEN: _over_written,
    FigureKind.OVER_FILLS: _over_fills,
    FigureKind.SECONDS: _seconds,
    FigureKind.HISTOGRAM: _histogram,
    FigureKind.EXCEEDANCE: _exceedance,
    FigureKind.OVER_AREAS: _over_areas,
    FigureKind.SPREAD: _spread,
}
