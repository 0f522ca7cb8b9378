"""Charts over a whole test of a comparison: streams, their tails, areas of hard disks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.model.quantity import IOPS
from tkperf.page.naming import capitalise
from tkperf.page.page import ChartView
from tkperf.page.subject import find_quantities
from tkperf.render.charts.comparison import (
    compared_areas,
    compared_exceedance,
    compared_streams,
)
from tkperf.render.charts.rounds import TIME, Over, drive_fills, find_time_unit

Sections = dict[str, dict[str, SectionResult]]


def build_test_charts(comparison: Comparison, test: str) -> tuple[ChartView, ...]:
    """Return the charts of any test whose sections are streams or areas."""
    return (
        *_courses(comparison, test),
        *_exceedances(comparison, test),
        *_areas(comparison, test),
    )


def build_over_time(sections: dict[str, SectionResult], key: str, title: str) -> ChartView:
    """Return the chart of IOPS over time of the runs' streams."""
    lasted_s = max(
        section.slices[-1].start_s + section.slices[-1].duration_s for section in sections.values()
    )
    unit, unit_s = find_time_unit(lasted_s)
    in_unit = Over(title=TIME.title, at=lambda slice_result: TIME.at(slice_result) / unit_s)
    return ChartView(
        key=key,
        text=f"{title}: IOPS of every slice over time, a curve for each run.",
        spec=compared_streams(
            sections,
            IOPS,
            title=title,
            over=dict.fromkeys(sections, in_unit),
            x_title=f"{TIME.title} ({unit})",
        ),
    )


def find_streams(comparison: Comparison, test: str) -> Sections:
    """Return the streams of several slices that every run has: by section, then by run."""
    return _in_all(comparison, test, lambda section: len(section.slices) > 1)


def _courses(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield one chart per stream: over time and, if known, over drive fills as a second view."""
    fills = dict(_fills(comparison, test))
    for number, (name, sections) in enumerate(find_streams(comparison, test).items()):
        chart = build_over_time(sections, f"{test}time{number or ''}", name)
        others = (fills[name],) if name in fills else ()
        yield replace(
            chart, question=f"{name}: how do the runs go on?", choice=("time",), others=others
        )


def _fills(comparison: Comparison, test: str) -> Iterator[tuple[str, ChartView]]:
    """Yield a chart by section if every run recorded the amount that it wrote."""
    ranges = {
        name: result.info.active_range_length_bytes
        for name, result in zip(comparison.names, comparison.results, strict=True)
    }
    fills = {name: drive_fills(length) for name, length in ranges.items() if length}
    for number, (name, sections) in enumerate(find_streams(comparison, test).items()):
        totals_recorded = all(
            section.slices[-1].total_written_bytes for section in sections.values()
        )
        if not totals_recorded or len(fills) < len(sections):
            continue
        yield (
            name,
            ChartView(
                key=f"{test}fills{number or ''}",
                text=f"{name}: IOPS of every slice over what was written in multiples of the capacity in use, "
                "so that drives of different sizes are seen in the same state.",
                choice=("drive fills",),
                spec=compared_streams(
                    sections,
                    IOPS,
                    title=f"{name}, over drive fills",
                    over=fills,
                    x_title="Drive fills",
                ),
            ),
        )


def _exceedances(comparison: Comparison, test: str) -> Iterator[ChartView]:
    streams = _in_all(comparison, test, lambda section: bool(section.slices))
    for number, (name, sections) in enumerate(streams.items()):
        title = f"Exceedance: {name}"
        if all(section.histogram_us for section in sections.values()):
            yield ChartView(
                key=f"{test}exceedance{number}",
                text=f"{title}, the share of all I/Os that took longer than a response time.",
                spec=compared_exceedance(sections, title=title),
            )


def _areas(comparison: Comparison, test: str) -> Iterator[ChartView]:
    areas = _in_all(comparison, test, lambda section: bool(section.areas))
    for number, (name, sections) in enumerate(areas.items()):
        plan = next(iter(sections.values())).plan
        for quantity in find_quantities(plan.quantities)[:1]:
            text = f"{capitalise(quantity.title)} over the device, from its start to its end."
            yield ChartView(
                key=f"{test}areas{number}",
                text=f"{name}: {text}",
                spec=compared_areas(sections, quantity, title=name),
            )


def _in_all(comparison: Comparison, test: str, wanted: Callable[[SectionResult], bool]) -> Sections:
    """Return the runs' results by section; only sections that every run has."""
    by_section: Sections = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        for section in _sections(result, test):
            if wanted(section):
                by_section.setdefault(section.name, {})[name] = section
    return {
        name: of_runs
        for name, of_runs in by_section.items()
        if len(of_runs) == len(comparison.names)
    }


def _sections(result: RunResult, test: str) -> tuple[SectionResult, ...]:
    return next(
        (test_result.sections for test_result in result.tests if test_result.name == test), ()
    )
