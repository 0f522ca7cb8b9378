"""Figures of a whole test as tables and charts of a page, independent of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tkperf.analysis.details import LoadsOfTest
from tkperf.analysis.drive_telemetry import TelemetrySeries
from tkperf.analysis.results import TestResult
from tkperf.model.figures import DONE, TABLE_KINDS, Figure, FigureKind
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import PERCENTILES, Quantity, find_quantities
from tkperf.model.units import format_duration
from tkperf.page.chart import Chart
from tkperf.page.figures.cells import show_over_axis
from tkperf.page.figures.section_figures import BUILD, join_charts, name_views
from tkperf.page.figures.streams import find_time_unit
from tkperf.page.figures.telemetry import align, show_course, show_course_below
from tkperf.page.figures.timeline import FILL, Stretch, draw_test, stretches_by_section
from tkperf.page.naming import capitalise, describe_quantities, list_words
from tkperf.page.page import ChartView, EventsView, TableView, Views
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.verdict_tables import build_section_tables, build_telemetry_table, merge_sections

Charts = Iterator[ChartView]
# Around a change the chart draws this share of the shorter of the two sections on either side, and at least
# this many seconds if the section has them.
ZOOMED_SHARE = 1 / 12
LEAST_ZOOMED_S = 20.0


def build_test_figures(
    test: TestResult,
    shown_sections: Sequence[ShownSection],
    loads: LoadsOfTest | None,
    course: TelemetrySeries | None = None,
) -> tuple[tuple[TableView, ...], tuple[ChartView, ...], EventsView]:
    """Return the tables, the charts and the course of a test, as its plan asks for them.

    Charts without values are left out. The course has the charts of the work done on the device. The drives'
    own reports (``course``) come below the first chart of the whole test's time.

    Args:
        shown_sections: the sections of the test.
    """
    merged = _merge(test, shown_sections)
    # Means of the rounds so far do not belong next to means of a window.
    complete = tuple(section for section in test.sections if section.complete)
    ended = _merge(replace(test, sections=complete), shown_sections)
    views = tuple(build_section_tables(test, merged))
    telemetry = build_telemetry_table(test.telemetry)
    charts: list[ChartView] = []
    done: list[ChartView] = []
    for figure in test.figures:
        means = figure.kind is FigureKind.OVER_AXIS
        drawn = [
            *_over_sections(figure, ended if means else merged),
            *(() if loads is None or figure.kind not in _BUILD else _BUILD[figure.kind](figure, loads)),
        ]
        of_whole_test = figure.kind is FigureKind.TIMELINE and not figure.groups
        if course is not None and drawn and of_whole_test:
            drawn = [_aligned(drawn[0], course), *show_course_below(course), *drawn[1:]]
            course = None
        (done if figure.question == DONE else charts).extend(name_views(figure, drawn))
    # Streams have it below their own charts.
    if course is not None and not any(shown.course for shown in shown_sections):
        done += show_course(course, "the whole test")
    answers = join_charts(charts, test.name)
    below = EventsView(
        tables=() if telemetry is None else (telemetry,),
        # One call joins both groups, so that keys are unique.
        charts=join_charts([*charts, *done], test.name)[len(answers) :],
    )
    return views, answers, below


def _merge(test: TestResult, shown_sections: Sequence[ShownSection]) -> ShownSection | None:
    section = merge_sections(test)
    if section is None:
        return None
    return ShownSection(
        section=section,
        key=test.name,
        links={work: link for shown in shown_sections for work, link in shown.links.items()},
    )


def _over_sections(figure: Figure, merged: ShownSection | None) -> Charts:
    """Yield a figure's charts over all sections put together; the analysis builds their tables."""
    if merged is None or figure.kind in TABLE_KINDS:
        return
    views: Views = iter(())
    if figure.kind is FigureKind.OVER_AXIS:
        views = show_over_axis(merged, figure, bars=True)
    elif figure.kind in BUILD:
        views = BUILD[figure.kind](merged, figure)
    yield from (view for view in views if isinstance(view, ChartView))


def _aligned(chart: ChartView, course: TelemetrySeries) -> ChartView:
    unit_s = find_time_unit(course.length_s)[1]
    assert isinstance(chart.chart, Chart)
    return replace(chart, chart=align(chart.chart, course.length_s / unit_s))


def _timeline(figure: Figure, loads: LoadsOfTest) -> Charts:
    quantities, order = find_quantities(figure.quantities), _names(loads)
    for group in figure.groups or ((),):
        of_group = loads.of_sections(group) if group else loads
        stretches = stretches_by_section(of_group, of_group.loads[0].start_s if of_group.loads else 0.0)
        title = figure.title or f"{_listed(quantities)} over the whole test"
        text = f"{_listed(quantities)} of every load by the time it began, each section in its colour"
        if group:
            title = f"{_listed(quantities)}: {list_words(group)}"
            text = f"{title}, by the time each load began"
        elif any(load.is_fill for load in of_group.loads):
            text += f", {FILL} apart from what it prepares"
        yield ChartView(
            key="timeline",
            text=f"{text}. {_explain(quantities)}",
            chart=draw_test(stretches, quantities, title, log=figure.log, order=order),
            # Among neighbours the section in the middle is the chart's subject.
            choice=(group[len(group) // 2],) if group else (),
        )


def _names(loads: LoadsOfTest) -> tuple[str, ...]:
    """Return the names of all curves of the whole test: each curve keeps its colour in every chart."""
    return tuple(dict.fromkeys(curve.name for curve in stretches_by_section(loads)))


def _preconditioning(figure: Figure, loads: LoadsOfTest) -> Charts:
    quantities = find_quantities(figure.quantities)
    fills = loads.fills().loads
    for load in fills:
        # A single point shows no more than the chart of the whole test.
        if len(load.seconds) < 2:
            continue
        section = load.step.section
        title = figure.title or f"Preconditioning for {section}: {quantities[0].label} over time"
        text = (
            f"{_listed(quantities)} of every second while {load.step.workload} filled the active range "
            f"before {section}. {_SHADE}"
        )
        stretch = Stretch(name=FILL, loads=(load,), origin_s=load.start_s)
        drawn = draw_test((stretch,), quantities, title, log=figure.log)
        name = FILL if len(fills) == 1 else f"{FILL} for {section}"
        yield ChartView(key="preconditioning", text=text, chart=drawn, choice=(name,))


def _overlaid(figure: Figure, loads: LoadsOfTest) -> Charts:
    """Yield a chart of groups of sections, each from its own beginning."""
    quantities = find_quantities(figure.quantities)
    groups = [(group, loads.of_sections(group)) for group in figure.groups]
    stretches = tuple(
        Stretch(name=group[0], loads=of_group.loads, origin_s=of_group.loads[0].start_s)
        for group, of_group in groups
        if of_group.loads
    )
    title = figure.title or f"{_listed(quantities)} of each group of sections"
    text = (
        f"{title}: a curve for each, over the time since its first I/O; what follows the section it "
        f"is named after belongs to its curve. {_SHADE}"
    )
    drawn = draw_test(stretches, quantities, title, log=figure.log, order=_names(loads))
    yield ChartView(key="overlaid", text=text, chart=drawn)


def _changes(figure: Figure, loads: LoadsOfTest) -> Charts:
    quantities, order = find_quantities(figure.quantities), _names(loads)
    for before, after in loads.changes():
        names = before[-1].step.section, after[0].step.section
        changed_s = after[0].start_s
        shorter_s = min(changed_s - before[0].start_s, after[-1].end_s - changed_s)
        zoom_s = min(shorter_s, max(LEAST_ZOOMED_S, ZOOMED_SHARE * shorter_s))
        what = describe_quantities(quantities) if len(quantities) > 1 else _listed(quantities)
        title = figure.title or f"{what} at the change from {names[0]} to {names[1]}"
        text = (
            f"{title}: every second from {format_duration(zoom_s)} before the change to as long after "
            f"it, which is at 0. {_SHADE}"
        )
        stretches = stretches_by_section(LoadsOfTest(loads=(*before, *after)), changed_s)
        yield ChartView(
            key="change",
            text=text,
            chart=draw_test(stretches, quantities, title, log=figure.log, order=order, from_s=-zoom_s, to_s=zoom_s),
            choice=(f"{names[0]} to {names[1]}",),
        )


_SHADE = (
    "A load that is longer than a point is drawn by its seconds, others each by one value; where a point "
    "covers several, the shade reaches from the lowest to the highest."
)


def _explain(quantities: tuple[Quantity, ...]) -> str:
    rare = set(quantities) & set(PERCENTILES)
    return f"{_SHADE} No percentile where a load had {TOO_FEW_IOS}." if rare else _SHADE


def _listed(quantities: tuple[Quantity, ...]) -> str:
    return capitalise(list_words([quantity.label for quantity in quantities]))


_BUILD: dict[FigureKind, Callable[[Figure, LoadsOfTest], Charts]] = {
    FigureKind.TIMELINE: _timeline,
    FigureKind.PRECONDITIONING: _preconditioning,
    FigureKind.OVERLAID: _overlaid,
    FigureKind.CHANGES: _changes,
}
