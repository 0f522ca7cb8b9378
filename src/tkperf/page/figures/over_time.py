"""Build charts over the rounds, over time, and over the amount written. The charts also show findings about changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isclose, isfinite

from tkperf.analysis.results import CellResult, SectionResult
from tkperf.analysis.timeline.levels import LevelKind
from tkperf.analysis.timeline.timelines import Recorded, Timeline, preferred
from tkperf.model.figures import Figure
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import IOPS, LATENCY_MEAN, PERCENTILES, QUANTITIES, Direction, Quantity, find_quantities
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import format_capacity, format_duration, format_window, unit_for_people
from tkperf.model.workload import Workload
from tkperf.page.chart import (
    NEUTRAL,
    PALETTE,
    Axis,
    Chart,
    Curve,
    HeatMap,
    Legend,
    Point,
    Rule,
    RuleKind,
    Scale,
    Slice,
    Spot,
    SpotKind,
)
from tkperf.page.figures.curves import (
    TOTAL_WRITTEN,
    StreamAxis,
    build_curves,
    draw_stream,
    drive_fills,
    find_most_drawn,
    find_time_unit,
    flag,
    over_time,
)
from tkperf.page.figures.telemetry import align, show_drive_reports_below
from tkperf.page.figures.timeline import draw_seconds, find_flagged, find_recorded
from tkperf.page.naming import (
    address,
    capitalise,
    describe_curves,
    describe_direction,
    find_naming,
    list_words,
    name_in_choice,
    name_quantities,
)
from tkperf.page.page import ChartView, Views
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import directions_of

MOST_SPIKES = 2000


def mark_found(
    chart: Chart, timelines: Iterable[Timeline], quantities: Sequence[Quantity], scale: float = 1.0
) -> Chart:
    """Return the chart with marks for the findings about these quantities. If there are no findings, the chart is not
    changed.

    A level is shown as a line at its value, with a boundary at its start. Drops and periodic spikes are shown as
    points.

    Args:
        scale: factor that converts a place in the timeline to a value on the axis of the chart.
    """
    keys = {quantity.key for quantity in quantities}
    marked = [timeline for timeline in timelines if timeline.quantity in keys]
    rules = [rule for timeline in marked for rule in _levels(timeline, scale)]
    drops = [spot for timeline in marked for spot in _drops(timeline, scale)]
    spikes = [spot for timeline in marked for spot in _spikes(timeline, scale)][:MOST_SPIKES]
    if not (rules or drops or spikes):
        return chart
    return replace(chart, rules=(*chart.rules, *rules), spots=(*chart.spots, *drops, *spikes))


def _levels(timeline: Timeline, scale: float) -> Iterator[Rule]:
    if not timeline.changes:
        return
    levels = [level for level in timeline.levels if level.kind is not LevelKind.TRANSITION]
    for number, level in enumerate(levels):
        # At the start of a level, the curve arrives from the previous level. At the end of the first level, the curve
        # continues to the next level. The name of a level is placed where the curve does not pass.
        other = levels[number - 1] if number else levels[min(1, len(levels) - 1)]
        start = level.start * scale
        if number:
            yield Rule(kind=RuleKind.BOUNDARY, x=start)
        yield Rule(
            kind=RuleKind.LEVEL,
            x=start,
            x_end=level.end * scale,
            y=level.value,
            name="settled" if level.kind is LevelKind.STEADY else str(level.kind),
            below=level.value < other.value,
        )


def _drops(timeline: Timeline, scale: float) -> Iterator[Spot]:
    for drop in timeline.drops:
        yield Spot(kind=SpotKind.DROP, x=drop.start * scale, y=drop.after, text="sudden drop")


def _spikes(timeline: Timeline, scale: float) -> Iterator[Spot]:
    spikes = timeline.spikes
    if spikes is None:
        return
    unit = "rounds" if timeline.recorded is Recorded.ROUNDS else "s"
    words = f"{QUANTITIES[timeline.quantity].label}: every {spikes.period:,.1f} {unit}"
    for place in spikes.places:
        yield Spot(kind=SpotKind.SPIKE, x=place * scale, y=None, text=words)


def show_over_rounds(shown: ShownSection, figure: Figure) -> Views:
    """Yield one chart for all mixes that the figure names. If the figure names no mix, yield one chart for each mix."""
    section = shown.section
    measured = {cell.workload for _, cell in section.cells_of_rounds()}
    mixes = sorted({workload.read_percent for workload in measured})
    has_streams = any(workload.together for workload in measured)
    for mix in (None,) if figure.read_percents or has_streams else mixes:
        displayed = figure.read_percents if mix is None else (mix,)
        of = "" if mix is None else f": {describe_direction(measured, mix)}"
        curves = _shown_over_rounds(section, displayed, most_threads=figure.most_threads)
        naming = find_naming(curves)
        threads = "; of the most threads alone" if figure.most_threads else ""
        for quantity in find_quantities(figure.quantities):
            title = (figure.title or f"{capitalise(quantity.label)} over the rounds") + of
            choice = (describe_direction(measured, mix),) if mix is not None and len(mixes) > 1 else ()
            rest = f"of every round{describe_curves(naming.axes)}{threads}"
            # If the charts had no question, they would not become two views of one chart. They would be separate
            # charts.
            both = bool(section.window and figure.question)
            if both:
                yield ChartView(
                    key="relative",
                    text=f"{title}: {quantity.label} {rest}, in percent of its value over "
                    f"{format_window(section.window)}.",
                    chart=_draw_relative(shown, quantity, title, curves),
                    choice=(*choice, "relative"),
                    on_screen_only=True,
                )
            yield ChartView(
                key="convergence",
                text=f"{title}: {quantity.title} {rest}.",
                chart=mark_found(
                    _draw_over_rounds(shown, quantity, title, curves, log=figure.log),
                    _timelines_of(shown, Recorded.ROUNDS, curves),
                    (quantity,),
                ),
                choice=(*choice, "values") if both else choice,
            )


def _shown_over_rounds(
    section: SectionResult, read_percents: Sequence[int] | None, *, most_threads: bool
) -> tuple[Workload, ...]:
    """Return the workloads with these mixes in their original order. If ``most_threads`` is True, return only the
    workloads with the largest thread count.
    """
    measured = dict.fromkeys(
        cell.workload
        for _, cell in section.cells_of_rounds()
        if read_percents is None or cell.workload.read_percent in read_percents
    )
    most = max((workload.jobs for workload in measured), default=0)
    return tuple(workload for workload in measured if workload.jobs == most or not most_threads)


def _draw_over_rounds(
    shown: ShownSection, quantity: Quantity, title: str, displayed: Sequence[Workload], *, log: bool
) -> Chart:
    """Return a chart that shows a quantity over the rounds, with a curve for each workload. A click on a point opens
    the cell at the round of this point.
    """
    naming = find_naming(displayed)
    places = frozenset(displayed)
    points = (
        (
            cell.workload,
            Point(
                each.number,
                cell.value(quantity),
                flag=flag(cell),
                link=address(shown.links.get(cell.workload, ""), str(each.number)),
            ),
        )
        for each, cell in shown.section.cells_of_rounds()
        if cell.workload in places
    )
    rounds = tuple(each.number for each in shown.section.rounds)
    return Chart(
        title=title,
        x=Axis(title="Round", scale=Scale.ORDINAL, places=rounds),
        y=Axis(title=quantity.title, scale=Scale.LOG if log else Scale.LINEAR),
        curves=build_curves(points, naming),
        series=naming.title,
    )


# The axis always includes the lines at 90 % and 110 %, so that a nearly constant curve looks flat.
_OF_MEAN = (90.0, 110.0)


def _draw_relative(shown: ShownSection, quantity: Quantity, title: str, displayed: Sequence[Workload]) -> Chart:
    """Return a chart that shows a quantity over the rounds, in relation to the mean over the window. The curves of all
    block sizes therefore settle at 100 %.
    """
    naming, section = find_naming(displayed), shown.section
    means = {cell.workload: cell.value(quantity) for cell in section.cells}
    points = (
        (
            cell.workload,
            Point(
                each.number,
                None if not mean or value is None else 100 * value / mean,
                flag=flag(cell),
                link=address(shown.links.get(cell.workload, ""), str(each.number)),
                facts=(value,),
            ),
        )
        for each, cell in section.cells_of_rounds()
        if cell.workload in displayed
        for value, mean in ((cell.value(quantity), means.get(cell.workload)),)
    )
    return Chart(
        title=title,
        x=Axis(title="Round", scale=Scale.ORDINAL, places=tuple(each.number for each in section.rounds)),
        y=Axis(title=f"{capitalise(quantity.label)} (% of the window's value)", zero=False, includes=_OF_MEAN),
        curves=build_curves(points, naming, facts=(quantity.title,)),
        series=naming.title,
    )


def show_window(shown: ShownSection, figure: Figure) -> Views:
    """Yield a chart of the judged window for each tracking variable. If there is no judged window, yield nothing."""
    verdicts = shown.section.window_verdicts
    for number, verdict in enumerate(verdict for verdict in verdicts if verdict.judged):
        title = figure.title or "Steady state verification: the window"
        if len(verdicts) > 1:
            title += f" of {verdict.tracking}"
        yield ChartView(
            key=f"window{number or ''}",
            text=f"{verdict.tracking} in the window with its average, the lines at 110 % and 90 % of "
            "it, and the best linear fit. The lines are a convention; the criterion is the range.",
            chart=_draw_window(shown, verdict, title),
            choice=(verdict.tracking,) if len(verdicts) > 1 else (),
        )


def _draw_window(shown: ShownSection, verdict: SteadyStateVerdict, title: str) -> Chart:
    """Return a chart of the tracking variable in the window. The chart contains the average, the best fit, and the
    lines at 110 % and 90 % of the average.
    """
    cells = _tracked_cells(shown.section, verdict)
    measured = tuple(
        Point(
            number,
            value,
            flag=flag(cells.get(number)),
            link=address(shown.links.get(cells[number].workload, ""), str(number)) if number in cells else "",
        )
        for number, value in zip(verdict.rounds, verdict.values, strict=True)
        if isfinite(value)
    )
    unit = unit_for_people(verdict.unit)
    return Chart(
        title=title,
        x=Axis(
            title=capitalise(shown.section.part_name),
            domain=(verdict.rounds[0], verdict.rounds[-1]),
            ticks=tuple(verdict.rounds),
        ),
        y=Axis(title=unit if unit == IOPS.unit else f"Tracked value ({unit})", zero=False),
        curves=(Curve(name="measured", points=measured, colour=PALETTE[0], dots=True), *_lines_of(verdict)),
        # The lines are identified by their positions, so the names of all five lines are placed beside the plot.
        legend=Legend.ENDS,
        series_word="Line",
    )


def _lines_of(verdict: SteadyStateVerdict) -> Iterator[Curve]:
    """Yield the lines with which a window is judged. If a round of the window was not measured, yield nothing."""
    first, last, average = verdict.rounds[0], verdict.rounds[-1], verdict.average
    lines = {
        "average": (average, average, PALETTE[1]),
        "110 % of average": (1.1 * average, 1.1 * average, NEUTRAL),
        "90 % of average": (0.9 * average, 0.9 * average, NEUTRAL),
    }
    if verdict.fit is not None:
        lines["best linear fit"] = (verdict.fit.at(first), verdict.fit.at(last), PALETTE[2])
    for name, (begin, end, colour) in lines.items():
        if isfinite(begin):
            points = (Point(first, begin), Point(last, end))
            yield Curve(name=name, points=points, colour=colour, dash=1)


def _tracked_cells(section: SectionResult, verdict: SteadyStateVerdict) -> dict[int, CellResult]:
    """Return the cells that belong to the values of a verdict. The round or the slice of the cell is the key.

    The result is empty if the cells cannot be identified from the values.
    """
    of_number = {each.number: (each.values,) for each in section.slices} | {
        each.number: each.cells for each in section.rounds
    }
    return {
        number: cell
        for number, value in zip(verdict.rounds, verdict.values, strict=True)
        for cell in of_number.get(number, ())
        if any(isclose(value, other) for other in cell.all.values() if other is not None)
    }


def show_over_time(shown: ShownSection, figure: Figure) -> Views:
    slices = shown.section.slices
    if len(slices) > 1:
        over = over_time(slices[-1].end_s)
        yield from _streams(shown, figure, "time", over, "over time", "over time")
        asked = (each for each in shown.section.plan.figures if each.kind is figure.kind)
        if shown.drive_reports is not None and figure is next(asked):
            yield from show_drive_reports_below(shown.drive_reports)


def show_over_written(shown: ShownSection, figure: Figure) -> Views:
    if _written_known(shown):
        text = "over the total amount written (TGBW)"
        yield from _streams(shown, figure, "tgbw", TOTAL_WRITTEN, "over total GB written", text)


def show_over_fills(shown: ShownSection, figure: Figure) -> Views:
    capacity_bytes = shown.capacity_bytes
    if capacity_bytes and _written_known(shown):
        text = f"over the amount written in multiples of {format_capacity(capacity_bytes)}, the capacity in use"
        over = drive_fills(capacity_bytes)
        yield from _streams(shown, figure, "fills", over, "over drive fills", text)


def _written_known(shown: ShownSection) -> bool:
    slices = shown.section.slices
    return len(slices) > 1 and slices[-1].total_written_bytes is not None


def _streams(shown: ShownSection, figure: Figure, key: str, over: StreamAxis, of: str, text: str) -> Views:
    """Yield the chart of a load. For a combination, yield a chart for each stream and for the flushes."""
    workloads = _totals_last([cell.workload for cell in shown.section.slices[0].cells])
    for workload in workloads:
        view = _stream(shown, workload, figure, key, over, of, text)
        if len(workloads) > 1:
            name = name_in_choice(workload)
            chart = replace(view.chart, title=f"{view.chart.title}: {name}")
            view = replace(view, chart=chart, choice=(name,), stream=name)
        yield view


def _totals_last(workloads: Iterable[Workload]) -> list[Workload]:
    """Return the workloads with the total of a combination at the end, after the streams. The order of the streams does
    not change.
    """
    return sorted(workloads, key=lambda workload: workload.is_combination)


def _stream(
    shown: ShownSection, workload: Workload, figure: Figure, key: str, over: StreamAxis, of: str, text: str
) -> ChartView:
    quantities = find_quantities(figure.quantities)
    log = ", logarithmic" if figure.log else ""
    title = figure.title or f"{capitalise(_listed(quantities))} {of}{log}"
    caption = f"{capitalise(_listed(quantities))} of each slice {text}"
    directions = directions_of(workload, apart=figure.apart)
    if len(directions) > 1:
        directions = tuple(named for named in directions if named[0] is not Direction.ALL)
        caption += ", reads and writes apart"
    if log:
        caption += ", the axis logarithmic"
    most_drawn = find_most_drawn(shown.section)
    if len(shown.section.slices) > most_drawn:
        caption += (
            f"; of {len(shown.section.slices):,} slices the lowest and the highest of neighbours, "
            f"{most_drawn:,} at most"
        )
    if set(quantities) & set(PERCENTILES):
        caption += f"; none where a slice had {TOO_FEW_IOS}"
    chart = draw_stream(
        shown.section,
        quantities,
        title,
        over,
        workload=workload,
        log=figure.log,
        directions=directions,
        link=shown.links.get(workload, ""),
    )
    if over.unit_s is not None:
        if shown.drive_reports is not None:
            chart = align(chart, shown.drive_reports.length_s / over.unit_s)
        timelines = [one for one in preferred(shown.section.timelines) if one.workload == workload]
        marked = mark_found(chart, timelines, quantities, scale=1 / over.unit_s)
        if marked is not chart:
            caption += ". Marked: findings over time"
        chart = marked
    return ChartView(key=key, text=f"{caption}. Workload: {workload}.", chart=chart)


def _listed(quantities: tuple[Quantity, ...]) -> str:
    if len(quantities) > 1 and all(quantity.unit == LATENCY_MEAN.unit for quantity in quantities):
        words = [quantity.label.removesuffix(" latency") for quantity in quantities]
        return f"{list_words(words)} latency"
    return list_words([quantity.label for quantity in quantities])


def show_seconds(shown: ShownSection, figure: Figure) -> Views:
    quantities = find_recorded(find_quantities(figure.quantities))
    for detail in map(shown.details.__getitem__, _totals_last(shown.details)):
        if not len(detail.seconds) or not quantities:
            continue
        what = name_quantities(quantities)
        name = name_in_choice(detail.workload)
        of = f": {name}" if detail.workload.together else ""
        judged = any(part.judged for part in detail.parts)
        yield ChartView(
            key="seconds",
            text=f"{what} of every second: where a point covers several, the shade reaches "
            "from the lowest to the highest." + (" Shaded green: the window that was judged." if judged else ""),
            chart=mark_found(
                draw_seconds(detail, quantities, (figure.title or f"{what}, every second") + of),
                _timelines_of(shown, Recorded.SECONDS, (detail.workload,)),
                quantities,
                scale=1000,  # The time axis of the chart of every second is in ms.
            ),
            cell=shown.links[detail.workload],
            choice=(name,) if len(shown.details) > 1 else (),
        )


def show_heat_map(shown: ShownSection, _figure: Figure) -> Views:
    """Yield heat maps of the I/Os of a long stream over time and response time. For a mix, reads and writes are
    separate views.
    """
    for detail in shown.details.values():
        # If different loads had a common distribution of response times, this distribution would describe none of these
        # loads.
        if detail.workload.is_combination:
            continue
        names = dict(directions_of(detail.workload, apart=True))
        for direction, bands in detail.bands.items():
            unit, unit_s = find_time_unit(bands.ends_s[-1])
            columns = zip(bands.starts_s, bands.ends_s, bands.counts, strict=True)
            slices = (Slice(round(start / unit_s, 6), round(end / unit_s, 6), ios) for start, end, ios in columns)
            of = f" of the {names[direction]}" if len(detail.bands) > 1 else ""
            of += f" of {name_in_choice(detail.workload)}" if len(shown.details) > 1 else ""
            yield ChartView(
                key="heat",
                text=f"Each column has the I/Os of {_name_length(bands.column_s)}. The shade is the share of these "
                "I/Os that took as long as the row says. A column is empty where no I/O ended or nothing was "
                f"measured. Workload: {detail.workload}.",
                chart=HeatMap(
                    title=f"Response times{of} over time",
                    flags=tuple(dict.fromkeys(shade.text for shade in find_flagged(detail))),
                    x=Axis(title=f"Time ({unit})", domain=(0.0, round(bands.ends_s[-1] / unit_s, 6))),
                    edges_us=bands.edges_us,
                    slices=tuple(slices),
                ),
                choice=((name_in_choice(detail.workload),) if len(shown.details) > 1 else ())
                + ((names[direction],) if len(detail.bands) > 1 else ()),
            )


def _name_length(length_s: float) -> str:
    return format_duration(length_s).removesuffix(" 00 s").removesuffix(" 00 min")


def _timelines_of(
    shown: ShownSection, recorded: Recorded, workloads: Sequence[Workload] | None = None
) -> tuple[Timeline, ...]:
    """Return the timelines whose values belong to this kind of record. With ``workloads``, return only the timelines of
    these workloads.
    """
    wanted = None if workloads is None else frozenset(workloads)
    return tuple(
        timeline
        for timeline in shown.section.timelines
        if timeline.recorded is recorded and (wanted is None or timeline.workload in wanted)
    )
