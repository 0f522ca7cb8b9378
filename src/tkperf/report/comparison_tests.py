"""Charts over a whole test of a comparison: TKperf's four, by their names there, and more."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tkperf.analysis.compare import IOPS, MEAN, THROUGHPUT, ComparedRow, Comparison, Measure
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.report.charts.comparison import (
    compared_areas,
    compared_bars,
    compared_exceedance,
    compared_streams,
    describe_ranges,
)
from tkperf.report.charts.rounds import TIME, Over, drive_fills, find_time_unit
from tkperf.report.parts import ChartView
from tkperf.report.section_parts import iops, throughput
from tkperf.units import KIB

_FOUR_KIB = 4 * KIB
# TKperf's choice of mixes for each of its bar charts.
_MIXES = {"iops": (100, 50, 0), "lat": (100, 65, 0)}


def build_test_charts(comparison: Comparison, test: str) -> tuple[ChartView, ...]:
    """The charts over all sections of a test, those that TKperf's users know first."""
    return (*_of_tkperf(comparison, test), *_more(comparison, test))


def find_tkperf_charts(charts: tuple[ChartView, ...]) -> tuple[ChartView, ...]:
    """Those that tkperf-cmp wrote as pictures; their keys are the names of its files."""
    return tuple(chart for chart in charts if chart.key.startswith("comp"))


def _of_tkperf(comparison: Comparison, test: str) -> Iterator[ChartView]:
    rows = [row for row in comparison.rows if row.test == test]
    if test == "writesat":
        yield from _write_saturation(comparison)
    elif comparison.results[0].info.suite == "hdd":
        return
    elif test == "tp":
        yield _bars(
            comparison, "compTPPlt", _of_measure(rows, THROUGHPUT), "TP R/W measurement test"
        )
    elif test in _MIXES:
        measure, name, title = (
            (IOPS, "compIOPSPlt", "IOPS measurement test, 4 KiB")
            if test == "iops"
            else (MEAN, "compLATPlt", "LAT measurement test: mean latency, 4 KiB")
        )
        chosen = [
            row
            for row in _of_measure(rows, measure)
            if row.cell.block_size_bytes == _FOUR_KIB
            and row.cell.read_percent in _MIXES[test]
            # The histogram run repeats a cell of the latency test.
            and row.section == rows[0].section
        ]
        if chosen:
            yield _bars(comparison, name, chosen, title)


def _of_measure(rows: list[ComparedRow], measure: Measure) -> list[ComparedRow]:
    return [row for row in rows if row.measure is measure]


def _bars(comparison: Comparison, key: str, rows: list[ComparedRow], title: str) -> ChartView:
    measure = rows[0].measure
    return ChartView(
        key=key,
        text=f"{title}: a bar for each run{describe_ranges(rows, ', with its range over {}')}.",
        spec=compared_bars(
            rows, comparison.names, title=title, quantity=f"{measure.name} ({measure.unit})"
        ),
    )


def _write_saturation(comparison: Comparison) -> Iterator[ChartView]:
    sections = _streams(comparison, "writesat").get("Write Saturation", {})
    if not sections:
        return
    lasted_s = max(
        section.slices[-1].start_s + section.slices[-1].duration_s for section in sections.values()
    )
    unit, unit_s = find_time_unit(lasted_s)
    in_unit = Over(title=TIME.title, at=lambda each: TIME.at(each) / unit_s)
    title = "Write saturation test"
    yield ChartView(
        key="compWriteSatIOPSPlt",
        text=f"{title}: IOPS of every slice over time, a curve for each run.",
        spec=compared_streams(
            sections,
            title=title,
            over=dict.fromkeys(sections, in_unit),
            x_title=f"{TIME.title} ({unit})",
        ),
    )
    ranges = {
        name: result.info.active_range_length_bytes
        for name, result in zip(comparison.names, comparison.results, strict=True)
    }
    fills = {name: drive_fills(length) for name, length in ranges.items() if length}
    if len(fills) == len(sections):
        title = "Write saturation test, over drive fills"
        yield ChartView(
            key="writesatfills",
            text="IOPS of every slice over what was written in multiples of the capacity in use, "
            "so that drives of different sizes are seen in the same state.",
            spec=compared_streams(sections, title=title, over=fills, x_title="Drive fills"),
        )


def _more(comparison: Comparison, test: str) -> Iterator[ChartView]:
    for number, (name, sections) in enumerate(_streams(comparison, test).items()):
        title = f"Exceedance: {name}"
        if all(section.histogram_us for section in sections.values()):
            yield ChartView(
                key=f"{test}exceedance{number}",
                text=f"{title}, the share of all I/Os that took longer than a response time.",
                spec=compared_exceedance(sections, title=title),
            )
    quantity, value = ("MB/s", throughput) if test == "tp" else ("IOPS", iops)
    for number, (name, sections) in enumerate(_areas(comparison, test).items()):
        yield ChartView(
            key=f"{test}areas{number}",
            text=f"{name}: {quantity} over the device, from its start to its end.",
            spec=compared_areas(sections, title=name, value=value, quantity=quantity),
        )


Sections = dict[str, dict[str, SectionResult]]


def _streams(comparison: Comparison, test: str) -> Sections:
    return _in_all(comparison, test, lambda section: bool(section.slices))


def _areas(comparison: Comparison, test: str) -> Sections:
    return _in_all(comparison, test, lambda section: bool(section.areas))


def _in_all(comparison: Comparison, test: str, wanted: Callable[[SectionResult], bool]) -> Sections:
    """By section the runs' parts of it; only sections that every run has."""
    found: Sections = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        for section in _sections(result, test):
            if wanted(section):
                found.setdefault(section.name, {})[name] = section
    return {name: each for name, each in found.items() if len(each) == len(comparison.names)}


def _sections(result: RunResult, test: str) -> tuple[SectionResult, ...]:
    return next((each.sections for each in result.tests if each.name == test), ())
