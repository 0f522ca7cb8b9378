"""Build the sections of each test: the tables and charts that their plans request, and the histograms that the user
requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isfinite

from tkperf.analysis.details import LoadsOfTest
from tkperf.analysis.drive_telemetry import TelemetrySeries
from tkperf.analysis.results import SectionResult, TestResult
from tkperf.analysis.selected_part import SelectedPart
from tkperf.model.figures import DONE, TABLE_KINDS, Figure, FigureKind
from tkperf.model.measurement import TOO_FEW_IOS, explain_rare
from tkperf.model.quantity import (
    IOS,
    LATENCY_MAX,
    LATENCY_MEAN,
    PERCENTILES,
    Quantity,
    combine,
    find_quantities,
    stats_of,
)
from tkperf.model.steady_state import Fit, SteadyStateVerdict
from tkperf.model.units import NOT_MEASURED, format_duration, format_number, unit_for_people
from tkperf.model.workload import Workload
from tkperf.page.chart import Chart, Distribution
from tkperf.page.facts import describe_end, describe_state
from tkperf.page.figures.cells import show_over_axis
from tkperf.page.figures.curves import find_buckets, find_marks, find_time_unit
from tkperf.page.figures.section_figures import BUILD, build_figures, join_charts, name_views, open_at_spikes
from tkperf.page.figures.telemetry import align, show_drive_reports, show_drive_reports_below
from tkperf.page.figures.timeline import FILL, Stretch, draw_test, stretches_by_section
from tkperf.page.naming import capitalise, list_words, name_quantities, summarise_loads
from tkperf.page.page import ChartView, EventsView, SectionView, TableView, Views
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import build_directions, build_matrix, build_stream, directions_of, name_column
from tkperf.page.tables.verdict_tables import build_section_tables, build_telemetry_table, merge_sections
from tkperf.page.words.time_course import describe_timelines, format_verdict_value

Charts = Iterator[ChartView]
# A chart of a change from one section to the next shows a part of each section. The first number is this part as a
# share of the shorter section. The second number is the smallest length of the part in seconds. If one of the sections
# is even shorter, the part is as long as this section.
ZOOMED_SHARE = 1 / 12
LEAST_ZOOMED_S = 20.0


def build_test_figures(
    test: TestResult,
    shown_sections: Sequence[ShownSection],
    loads: LoadsOfTest | None,
    drive_reports: TelemetrySeries | None = None,
) -> tuple[tuple[TableView, ...], tuple[ChartView, ...], EventsView]:
    """Return the tables, the charts and the events that the plan of a test requests.

    Charts without values are omitted. The events contain the charts that show the load on the device. The reports of
    the drives (``drive_reports``) follow the first chart that covers the whole test.

    Args:
        shown_sections: the sections of the test.
    """
    merged = _merge(test, shown_sections)
    # A mean of the rounds so far must not be shown together with means over a window.
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
        if drive_reports is not None and drawn and of_whole_test:
            drawn = [_aligned(drawn[0], drive_reports), *show_drive_reports_below(drive_reports), *drawn[1:]]
            drive_reports = None
        (done if figure.question == DONE else charts).extend(name_views(figure, drawn))
    # If the test has streams, the reports of the drives are shown below the charts of these streams, and not here.
    if drive_reports is not None and not any(shown.drive_reports for shown in shown_sections):
        done += show_drive_reports(drive_reports, "the whole test")
    answers = join_charts(charts, test.name)
    below = EventsView(
        tables=() if telemetry is None else (telemetry,),
        # The charts that answer questions and the charts of the load on the device are passed in a single call, so that
        # every key is unique.
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
    """Yield the charts of a figure that covers all sections. Another function builds the tables of such figures."""
    if merged is None or figure.kind in TABLE_KINDS:
        return
    views: Views = iter(())
    if figure.kind is FigureKind.OVER_AXIS:
        views = show_over_axis(merged, figure, bars=True)
    elif figure.kind in BUILD:
        views = BUILD[figure.kind](merged, figure)
    yield from (view for view in views if isinstance(view, ChartView))


def _aligned(chart: ChartView, drive_reports: TelemetrySeries) -> ChartView:
    unit_s = find_time_unit(drive_reports.length_s)[1]
    assert isinstance(chart.chart, Chart)
    return replace(chart, chart=align(chart.chart, drive_reports.length_s / unit_s))


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
            # The view of a group of neighbouring sections is named after the section in the middle of the group.
            choice=(group[len(group) // 2],) if group else (),
        )


def _names(loads: LoadsOfTest) -> tuple[str, ...]:
    """Return the names of all curves of the whole test. With these names, a curve has the same colour in every
    chart.
    """
    return tuple(dict.fromkeys(curve.name for curve in stretches_by_section(loads)))


def _preconditioning(figure: Figure, loads: LoadsOfTest) -> Charts:
    quantities = find_quantities(figure.quantities)
    fills = loads.fills().loads
    for load in fills:
        # A chart with a single point would show no more than the chart of the whole test.
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
    """Yield a chart for each group of sections. In this chart, each section starts at the time 0."""
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
        what = name_quantities(quantities) if len(quantities) > 1 else _listed(quantities)
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


_SHOWN = (LATENCY_MEAN, *PERCENTILES, LATENCY_MAX, IOS)
_COARSE = " Of single seconds histograms are kept in buckets of up to 1/16 of the response time."


def build_section_view(shown: ShownSection) -> SectionView:
    """Return a section with the tables and charts that the plan of the section requests."""
    section = shown.section
    cut_off = not section.cells and not section.slices
    tables, charts = ((), ()) if cut_off else build_figures(shown)
    # If there are fewer rounds than in a window, a line through the rounds has no meaning.
    judged = [verdict for verdict in section.window_verdicts if verdict.judged]
    return SectionView(
        key=shown.key,
        title=section.name,
        state=describe_state(section.steady),
        summary=describe_end(section),
        determination=_determination(judged) if judged else None,
        tables=(
            *(_cut_off(shown) if cut_off else ()),
            *((build_stream(shown),) if section.slices else ()),
            *tables,
            *(table for quantity in section.quantities if (table := build_directions(shown, quantity)) is not None),
        ),
        charts=open_at_spikes(charts, section.timelines),
        over_time=describe_timelines(section.timelines),
        load=summarise_loads(find_workloads(section)),
        is_brief=section.plan.prepares and section.verdict is None,
    )


def find_workloads(section: SectionResult) -> Iterator[Workload]:
    """Yield the workloads of a section. The workloads are those of the cells or, if there are no cells, those of the
    rounds or slices so far.
    """
    if section.cells:
        yield from (cell.workload for cell in section.cells)
        return
    yield from (cell.workload for _, cell in section.cells_of_rounds())
    yield from (one.values.workload for one in section.slices[:1])


def _cut_off(shown: ShownSection) -> Iterator[TableView]:
    """Yield a table of the round that was interrupted. If the section has no rounds or no quantities, yield nothing."""
    if not shown.section.rounds or not shown.section.quantities:
        return
    last = shown.section.rounds[-1]
    unfinished = replace(shown, section=replace(shown.section, cells=last.cells))
    table = build_matrix(unfinished, shown.section.quantities[0])
    yield replace(table, title=f"Round {last.number}, cut off before its end: {table.title}")


def _determination(verdicts: Sequence[SteadyStateVerdict]) -> TableView:
    """Return the table of the steady state determination that the PTS requires, with a column for each tracking
    variable.
    """
    facts = [_facts_of(verdict) for verdict in verdicts]
    labels = dict.fromkeys(label for of_verdict in facts for label in of_verdict)
    return TableView(
        title="Steady state determination",
        columns=("",) * (1 + len(facts)),
        rows=tuple((label, *(of_verdict.get(label, NOT_MEASURED) for of_verdict in facts)) for label in labels),
    )


def _facts_of(verdict: SteadyStateVerdict) -> dict[str, str]:
    average, fit = verdict.average, verdict.fit
    rows = [
        ("Steady state", describe_state(verdict.reached if verdict.judged else None)),
        ("Reason", verdict.reason),
        ("Tracking variable", f"{verdict.tracking} ({unit_for_people(verdict.unit)})"),
        ("Window", ", ".join(str(number) for number in verdict.rounds)),
        ("Values", ", ".join(format_verdict_value(verdict, value) for value in verdict.values)),
        ("Average", format_verdict_value(verdict, average)),
        ("Data excursion (max - min)", _excursion(verdict, verdict.data_excursion, verdict.allowed_data_excursion)),
        ("Slope excursion", _excursion(verdict, verdict.slope_excursion, verdict.allowed_slope_excursion)),
    ]
    if fit is not None and isfinite(fit.slope):
        rows.append(("Best linear fit", describe_fit(fit)))
        correlation = "undefined" if fit.correlation is None else f"{fit.correlation:.3f}"
        rows.append(("Correlation", correlation))
    return dict(rows)


def describe_fit(fit: Fit) -> str:
    """Return the equation of a fitted line: ``-12.15 × round + 47,625.5``. For a steep line, return ``11,104 × round -
    3,954.54``.
    """
    slope, start = f"{fit.slope:,.4g}", f"{abs(fit.intercept):,.6g}"
    if "e+" in slope:
        slope = f"{fit.slope:,.0f}"
    if "e+" in start:
        start = f"{abs(fit.intercept):,.0f}"
    return f"{slope} × round {'-' if fit.intercept < 0 else '+'} {start}"


def _excursion(verdict: SteadyStateVerdict, measured: float | None, allowed: float) -> str:
    average = verdict.average
    if measured is None or not average > 0:
        return NOT_MEASURED
    values = [format_verdict_value(verdict, value) for value in (measured, allowed)]
    return f"{values[0]} ({100 * measured / average:.1f} %), allowed {values[1]} ({100 * allowed / average:.0f} %)"


def build_selected_parts(test: str, selected: Sequence[SelectedPart]) -> tuple[SectionView, ...]:
    """Return a section for each histogram of one test that the user requested. The keys of the sections contain a
    number.
    """
    of_test = [asked for asked in selected if asked.test == test]
    return tuple(
        SectionView(
            key=f"{test}-histogram{number}",
            title=f"{asked.section}, {asked.words}",
            state="not judged",
            summary=f"Histogram of {asked.words}, as asked for: {asked.workload}",
            determination=None,
            tables=(_quantiles(asked),),
            charts=join_charts(_charts(asked), f"{test}-histogram{number}"),
        )
        for number, asked in enumerate(of_test, start=1)
    )


def _quantiles(selected: SelectedPart) -> TableView:
    workload = selected.workload
    figures = {
        words: combine([selected.measurement], workload, direction)
        for direction, words in directions_of(workload, apart=True)
    }
    percentiles = (
        {percentile.key: values[percentile.key] for percentile in PERCENTILES} for values in figures.values()
    )
    return TableView(
        title=f"Latency quantiles of {selected.words}",
        columns=("", *(name_column(quantity) for quantity in _SHOWN)),
        rows=tuple(
            (words, *(format_number(values[quantity.key], quantity.digits) for quantity in _SHOWN))
            for words, values in figures.items()
        ),
        notes=explain_rare(percentiles),
    )


def _charts(selected: SelectedPart) -> Iterator[ChartView]:
    for direction, words in directions_of(selected.workload, apart=True)[:2]:
        stats = stats_of(selected.measurement, direction)
        buckets, marks, of = find_buckets(stats), find_marks(stats), f"{words} of {selected.words}"
        histogram = ChartView(
            key=f"{direction.value}rth",
            text=f"The {of} by response time, and the share of them that took no longer." + _COARSE * selected.coarse,
            chart=Distribution(title=f"Response time histogram: {of}", buckets=buckets, marks=marks),
            question=f"How long did the {of} take?",
            choice=("histogram",),
            printed=True,
        )
        yield histogram
        yield replace(
            histogram,
            key=f"{direction.value}exceedance",
            text=f"The share of the {of} that took longer than a response time.",
            chart=Distribution(title=f"Exceedance: {of}", buckets=buckets, marks=marks, exceedance=True),
            choice=("exceedance",),
        )
