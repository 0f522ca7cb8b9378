"""Build the report of a run from its results. The report contains findings, tests and the disclosure.

This module has no side effects. The modules html.py and pdf.py render the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tkperf.analysis.characteristics import NO_BACKLOG
from tkperf.analysis.claim_results import Checked
from tkperf.analysis.details import CellDetail, LoadsOfTest
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.analysis.selected_part import SelectedPart
from tkperf.interop import TKPERF_PROFILE
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import QUANTITIES, THROUGHPUT
from tkperf.model.run_info import NO_USER_FACTS, UserFacts
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.units import NOT_MEASURED, format_duration, format_exact, unit_for_people
from tkperf.page.cell_dialog import Cells, build_cell_charts
from tkperf.page.check import answer_claims, build_claims_table
from tkperf.page.disclosure import (
    HEAT,
    build_disclosure,
    build_page_header,
    describe_measured_device,
    describe_procedure,
    describe_run,
    explain,
    name_sheet,
    summarise_set_up,
)
from tkperf.page.facts import capacity, describe_load_generator, format_written, or_not_known
from tkperf.page.figures.section_figures import open_over_time
from tkperf.page.figures.telemetry import find_section_courses, find_test_course
from tkperf.page.findings import findings, headlines
from tkperf.page.findings.headlines import find_highest_spikes
from tkperf.page.marking import LEAD, mark_charts
from tkperf.page.naming import name_figure, summarise_loads
from tkperf.page.page import ChartView, FindingsView, HeadlineView, ReportView, TestView
from tkperf.page.sections import build_section_view, build_selected_parts, build_test_figures, find_workloads
from tkperf.page.shown_section import ShownSection, build_shown_sections
from tkperf.page.verdict_texts import describe_verdict
from tkperf.page.words.run import (
    describe_progress,
    describe_resumptions,
    describe_step_under_way,
    find_badges,
    find_banners,
    group_warnings,
    summarise_warnings,
)
from tkperf.page.words.uncertainty import describe_counts, describe_gaps
from tkperf.procedures import ORDER_OF_TKPERF


def build_headline_views(
    result: RunResult, shown_sections: Mapping[str, Sequence[ShownSection]]
) -> tuple[HeadlineView, ...]:
    """Return the headline figures. Each figure contains the key of its section and, if it belongs to a cell, the key of
    the cell.
    """
    titles = {test.name: test.title for test in result.tests}
    views = []
    for headline in headlines(result):
        of_test = shown_sections.get(headline.test, ())
        shown = next((one for one in of_test if one.section.name == headline.section), None)
        of_figure = headline.workload is not None and headline.key in QUANTITIES
        opens = shown.links.get(headline.workload, "") if shown and of_figure and headline.workload else ""
        exact = ""
        if headline.value is not None:
            exact = f"{format_exact(headline.value)} {unit_for_people(headline.unit)}".rstrip()
        views.append(
            HeadlineView(
                label=headline.label,
                text=headline.text,
                exact=exact,
                sure=headline.sure,
                verdict=headline.verdict,
                alarm=headline.alarm,
                test=titles.get(headline.test, ""),
                section=headline.test if shown is None else shown.key,
                cell=opens,
                load=headline.load,
                also=headline.also,
                needs_attention=headline.needs_attention,
            )
        )
    return tuple(views)


def build_findings_views(result: RunResult) -> tuple[FindingsView, ...]:
    """Return the findings of each test for which sentences exist."""
    found_in_run = findings(result)
    return tuple(
        FindingsView(
            key=test.name, title=test.title, sentences=tuple((finding.text, finding.alarm) for finding in found)
        )
        for test in result.tests
        if (found := [finding for finding in found_in_run if finding.test == test.name])
    )


def choose_opening_chart(
    tests: Sequence[TestView], results: Sequence[TestResult], shown_sections: Mapping[str, Sequence[ShownSection]]
) -> ChartView | None:
    """Return the chart that a reader should see first, as a copy with another key. Return None if there are no charts.

    A chart of the highest periodic spikes is preferred. If there is no such chart, the first existing chart in this
    order is used: a chart of a rate that changes over time, a chart of the effect of one load on another load, a chart
    of a search for the highest rate, and a chart of the throughput over a hard disk. If none of these charts exists,
    the result is the first chart of the first test.
    """
    sections = {section.key: section for test in tests for section in test.sections}
    spikes = find_highest_spikes(results)
    if spikes is not None:
        test, section, timeline = spikes
        views = next(view for view in tests if view.key == test.name)
        key = next(one.key for one in shown_sections[test.name] if one.section.name == section.name)
        for chart in (*sections[key].charts, *views.charts, *views.events.charts):
            if (opened := open_over_time(chart, {timeline.quantity})) is not None:
                return _as_lead_chart(opened, test, section)
    every = [(test, shown) for test in results for shown in shown_sections.get(test.name, ())]
    for asked in (_has_course, _is_of_loads_together, _is_search, _is_rate_over_disk, _is_any):
        for test, shown in every:
            drawn = sections.get(shown.key)
            if drawn is not None and drawn.charts and asked(shown):
                return _as_lead_chart(drawn.charts[0], test, shown.section)
    return None


def _has_course(shown: ShownSection) -> bool:
    return (
        not shown.section.plan.prepares
        and len(shown.section.slices) > 1
        and any(timeline.changes for timeline in shown.section.timelines)
    )


def _is_of_loads_together(shown: ShownSection) -> bool:
    kinds = {figure.kind for figure in shown.section.plan.figures}
    return bool(kinds & {FigureKind.INTERFERENCE, FigureKind.NEIGHBOURS})


def _is_search(shown: ShownSection) -> bool:
    return any(one.key == NO_BACKLOG.key for one in shown.section.characteristics)


def _is_rate_over_disk(shown: ShownSection) -> bool:
    """Return whether the section measured the throughput in MB/s over a whole hard disk. Such a curve is typical of
    every hard disk.
    """
    return bool(shown.section.areas) and shown.section.rate is THROUGHPUT


def _is_any(_shown: ShownSection) -> bool:
    return True


def _as_lead_chart(chart: ChartView, test: TestResult, section: SectionResult) -> ChartView:
    """Return a copy of a chart. Each title contains the test. If the section has only one load, the title also contains
    the load.
    """
    loads = {name_figure(cell.workload) for cell in section.cells}
    part = ", ".join((f"{test.title.split(' (')[0]} test", *(loads if len(loads) == 1 else ())))

    def lead(view: ChartView) -> ChartView:
        # If a text repeats the old title, it must repeat the new title instead. Otherwise a page would show the title
        # twice.
        repeats = view.text.startswith(view.chart.title)
        return replace(
            view,
            key=f"{LEAD}{view.key}",
            text=f"{part}: {view.text}" if repeats else view.text,
            chart=replace(view.chart, title=f"{part}: {view.chart.title}"),
        )

    return replace(lead(chart), below=False, others=tuple(map(lead, chart.others)))


# The order of the tests for each profile. For other profiles, the tests remain in the order of the run.
_ORDERS = {"tkperf-2.2": ORDER_OF_TKPERF, TKPERF_PROFILE: ORDER_OF_TKPERF}
_LENGTH_OF_DATE = len("2026-11-29")
NO_LOADS: Mapping[str, LoadsOfTest] = MappingProxyType({})


def build_view(
    result: RunResult,
    checked: Checked | None = None,
    details: Sequence[CellDetail] = (),
    loads_of_tests: Mapping[str, LoadsOfTest] = NO_LOADS,
    selected: Sequence[SelectedPart] = (),
    telemetry: Sequence[Reading] = (),
    user_facts: UserFacts = NO_USER_FACTS,
) -> ReportView:
    """Return the complete content for the report of a run.

    Args:
        checked: the outcome of the claims. Without this argument, the report has no section about claims.
        details: the details of the cells. Without this argument, a click on a cell opens nothing.
        loads_of_tests: the loads of each test, with the name of the test as the key. Without this argument, no chart
            covers a whole test.
        selected: parts of the run for which the user requested histograms.
        telemetry: the reports of the drives. They are drawn if ``loads_of_tests`` contains the times.
        user_facts: facts for this report. They replace the facts that were recorded at the start of the run.
    """
    # The tiles are computed while the tests are in the order of the run, because a comparison uses this order too.
    in_order_of_run, result = result, _in_section_order(result)
    user_facts = user_facts.with_those_of(result.info)
    groups = group_warnings(result)
    shown_sections = {
        test.name: build_shown_sections(
            test,
            details,
            result.info.active_range_length_bytes,
            find_section_courses(result, loads_of_tests.get(test.name), telemetry),
        )
        for test in result.tests
    }
    view = ReportView(
        title=result.info.name,
        subtitle=_device_line(result),
        date=(result.info.started_utc or "")[:_LENGTH_OF_DATE],
        banners=find_banners(result),
        stamp=find_badges(result),
        verdict=describe_verdict(result, checked, () if checked is None else answer_claims(checked).texts),
        headlines=build_headline_views(in_order_of_run, shown_sections),
        findings=build_findings_views(result),
        warnings_line=summarise_warnings(groups),
        grouped_warnings=groups,
        disclosure=build_disclosure(result, user_facts),
        footer=f"{result.info.software}, run {result.info.name}",
        about=describe_run(result, user_facts),
        device=describe_measured_device(result, user_facts),
        set_up_line=summarise_set_up(result),
        tests=tuple(
            _test(
                result, test, shown_sections[test.name], loads_of_tests.get(test.name), selected, telemetry, user_facts
            )
            for test in result.tests
        ),
        words=explain(result),
        colours=HEAT if any(section.cells for test in result.tests for section in test.sections) else "",
        claims=None if checked is None else build_claims_table(checked),
        cells=Cells([shown for of_test in shown_sections.values() for shown in of_test]),
        cell_charts=build_cell_charts() if details else None,
    )
    return mark_charts(replace(view, opening_chart=choose_opening_chart(view.tests, result.tests, shown_sections)))


def _in_section_order(result: RunResult) -> RunResult:
    """Return the result with its tests in the order of the reports that the specification requires. Tests that the
    specification does not contain are last.
    """
    order = _ORDERS.get(result.info.profile_name, ())
    places = {name: place for place, name in enumerate(order)}
    ordered = sorted(result.tests, key=lambda test: places.get(test.name, len(places)))
    return replace(result, tests=tuple(ordered))


def _device_line(result: RunResult) -> str:
    device = result.info.device
    words = [device.get("model") or device.get("kind"), capacity(device.get("capacity_bytes")) or "capacity not known"]
    return ", ".join(str(word) for word in words if word)


def _written(test: TestResult) -> str:
    text = format_written(test.written_bytes)
    if not test.written_again_bytes:
        return text
    return f"{text}, of that {format_written(test.written_again_bytes)} in steps measured again"


def _test(
    result: RunResult,
    test: TestResult,
    shown_sections: tuple[ShownSection, ...],
    loads: LoadsOfTest | None,
    selected: Sequence[SelectedPart],
    telemetry: Sequence[Reading],
    user_facts: UserFacts,
) -> TestView:
    course = find_test_course(result, loads, telemetry)
    tables, charts, below = build_test_figures(test, shown_sections, loads, course)
    duration = NOT_MEASURED if test.duration_s is None else format_duration(test.duration_s)
    gap = test.longest_gap_s
    facts = [
        ("Status", describe_progress(test) or test.status.value),
        ("Duration", duration),
        ("Written", _written(test)),
        *(("Interrupted or repeated", text) for text in describe_resumptions(result, test)),
    ]
    measured_loads = {cell.workload for section in test.sections for cell in section.cells}
    by_fio = result.info.fio_version is not None
    if by_fio and any(load.trims or load.flush_every is not None for load in measured_loads):
        # The version of fio is stated, because it determines when fio flushes and how many trims fio issues at a time.
        facts.append(("Flushes and trims issued by", or_not_known(describe_load_generator(result.info))))
    if (under_way := describe_step_under_way(test, result.status)) is not None:
        facts.append(("Step under way", under_way))
    if gap is not None:
        facts.append(("Longest gap between two steps, by tkperf's clock", describe_gaps(gap, test.disturbed_steps)))
    if counts := describe_counts(test.disturbed_steps, test.not_compared_steps, test.steps):
        facts.append(("Disturbed", counts))
    return TestView(
        key=test.name,
        title=test.title,
        facts=tuple(facts),
        procedure=describe_procedure(result.info, test.name),
        sections=(*(build_section_view(shown) for shown in shown_sections), *build_selected_parts(test.name, selected)),
        tables=tables,
        charts=charts,
        events=below,
        sheet=name_sheet(test),
        header=build_page_header(result, user_facts, test),
        load=summarise_loads(
            workload
            for shown in shown_sections
            if not shown.section.plan.prepares
            for workload in find_workloads(shown.section)
        ),
    )
