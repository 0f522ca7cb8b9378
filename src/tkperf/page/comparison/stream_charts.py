"""Charts of a test in a comparison: curves of its sections, spikes over time, areas of hard disks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.results import SectionResult
from tkperf.model.quantity import IOPS, LATENCY_MAX, Quantity, find_quantities
from tkperf.page.chart import Axis, Chart, Curve, Point, Scale
from tkperf.page.comparison.run_curves import build_run_curves, call_runs, colour_runs, draw_runs
from tkperf.page.figures.curves import StreamAxis, draw_stream, flag, over_time
from tkperf.page.findings.headlines import find_highest_spikes
from tkperf.page.naming import capitalise, find_naming, name_figure
from tkperf.page.page import ChartView

# Results of a section by run.
Sections = dict[str, SectionResult]


def build_test_charts(comparison: Comparison, test: str) -> tuple[ChartView, ...]:
    """Return the charts of a test: one curve for each run wherever its report contains a curve, and the areas of hard
    disks.
    """
    return (*build_run_curves(comparison, test), *_areas(comparison, test))


def build_over_time(comparison: Comparison, sections: Sections, key: str, title: str) -> ChartView:
    """Return the chart of the IOPS of every slice over time, in one unit of time."""
    called, colours = call_runs(comparison.names), colour_runs(comparison.names)
    curves = tuple(
        replace(curve, name=called[run], colour=colours[run]) for run, curve in _find_courses(sections, IOPS).items()
    )
    chart = Chart(title=title, x=_find_time(sections), y=Axis(title=IOPS.title), curves=curves, series="Run")
    return ChartView(key=key, text=f"{title}: IOPS of every slice over time, a curve for each run.", chart=chart)


def build_spike_charts(comparison: Comparison) -> Iterator[ChartView]:
    """Yield a chart of the maximum latency of all runs over time, for the load under which a run has its highest
    periodic spikes. Without spikes, yield nothing.
    """
    drawn: set[tuple[str, str]] = set()
    for result in comparison.results:
        found = find_highest_spikes(result.tests)
        if found is None:
            continue
        test, section, timeline = found
        sections = find_streams(comparison, test.name).get(section.name)
        if sections is None or (test.name, section.name) in drawn:
            continue
        drawn.add((test.name, section.name))
        title = f"{name_figure(timeline.workload)}: {LATENCY_MAX.label}"
        chart = Chart(title=title, x=_find_time(sections), y=Axis(title=LATENCY_MAX.title, scale=Scale.LOG))
        yield ChartView(
            key=f"spikes{len(drawn)}",
            text=f"{title}: that of the slices over time, a curve for each run.",
            chart=draw_runs(comparison, chart, _find_courses(sections, LATENCY_MAX)),
            question="Which run has latency spikes?",
        )


def find_streams(comparison: Comparison, test: str) -> dict[str, Sections]:
    """Return the streams of several slices that all runs measured, by section and then by run."""
    return _in_all(comparison, test, lambda section: len(section.slices) > 1)


def _find_time(sections: Sections) -> Axis:
    return Axis(title=_over_time(sections).title)


def _over_time(sections: Sections) -> StreamAxis:
    return over_time(max(section.slices[-1].end_s for section in sections.values()))


def _find_courses(sections: Sections, quantity: Quantity) -> dict[str, Curve]:
    """Return a quantity of every slice over time, for each run."""
    time = _over_time(sections)
    return {
        run: replace(curve, dots=False)
        for run, section in sections.items()
        for curve in draw_stream(section, (quantity,), "", time).curves
    }


def _areas(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield a chart of hard disks with a view for each workload.

    Disks may have different numbers of areas, so each area's place is its share of the disk.
    """
    areas = _in_all(comparison, test, lambda section: bool(section.areas))
    for number, (name, sections) in enumerate(areas.items()):
        plan = next(iter(sections.values())).plan
        for quantity in find_quantities(plan.quantities)[:1]:
            views = list(_draw_areas(comparison, sections, quantity, name))
            if views:
                first = replace(views[0], others=tuple(views[1:]))
                yield replace(first, key=f"{test}areas{number}", question="How do the results change over the disk?")


def _in_all(comparison: Comparison, test: str, wanted: Callable[[SectionResult], bool]) -> dict[str, Sections]:
    """Return the results of the runs for each section, only for sections that all runs have."""
    by_section: dict[str, Sections] = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        for section in (each for one in result.tests if one.name == test for each in one.sections):
            if wanted(section):
                by_section.setdefault(section.name, {})[name] = section
    runs = len(comparison.names)
    return {name: of_runs for name, of_runs in by_section.items() if len(of_runs) == runs}


def _draw_areas(comparison: Comparison, sections: Sections, quantity: Quantity, title: str) -> Iterator[ChartView]:
    workloads = dict.fromkeys(cell.workload for section in sections.values() for _, cell in section.cells_of_rounds())
    naming = find_naming(workloads)
    of_runs = {run: (section.areas or 1, section.rounds_of_workloads()) for run, section in sections.items()}
    for number, workload in enumerate(workloads):
        curves = {
            run: Curve(
                points=tuple(
                    Point(100 * (area.number - 0.5) / count, cell.value(quantity), flag=flag(cell))
                    for area, cell in areas[workload]
                )
            )
            for run, (count, areas) in of_runs.items()
            if workload in areas
        }
        name = naming.name_of(workload)
        chart = Chart(
            title=f"{title}: {name}",
            x=Axis(title="Place on the device (% of its capacity)"),
            y=Axis(title=quantity.title),
        )
        text = f"{title}: {name}. {capitalise(quantity.title)} over the device, from its start to its end."
        drawn = draw_runs(comparison, chart, curves)
        yield ChartView(key=f"{title}-{number}", text=text, chart=drawn, choice=(name,))
