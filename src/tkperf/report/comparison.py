"""A comparison as a report: the same page, with runs in the place of rounds. Pure."""

from __future__ import annotations

from tkperf.analysis.compare import ComparedRow, Comparison
from tkperf.report.charts.comparison import compared_bars
from tkperf.report.comparison_tests import build_test_charts
from tkperf.report.explanation import UNITS
from tkperf.report.marking import mark_charts
from tkperf.report.parts import ChartView, ReportView, SectionView, TableView, TestView
from tkperf.report.wording import NOT_MEASURED, format_fact, format_known_capacity, format_number
from tkperf.units import format_block_size_kib, format_mix

FEWEST_CHARTED_CELLS = 2
_WORDS = (
    "Every ratio is to the first run. Values are those of each run's own report: means over its "
    "steady-state window, over the areas of a hard disk, or of a whole stream."
)
STATES = ("better", "worse", "within noise", "spread not known")


def build_comparison_view(comparison: Comparison) -> ReportView:
    """Everything the report of a comparison says."""
    titles = {test.name: test.title for test in comparison.results[0].tests}
    view = ReportView(
        title=" / ".join(comparison.names),
        subtitle=f"comparison of {len(comparison.names)} runs with {comparison.names[0]}",
        banners=_banners(comparison),
        warnings=comparison.warnings,
        disclosure=(("Runs", _runs(comparison)),),
        cards=(),
        words=(_WORDS, UNITS),
        overview=_overview(comparison),
        tests=tuple(
            TestView(
                key=test,
                title=titles.get(test, test),
                facts=(),
                sections=_sections(comparison, test),
                charts=build_test_charts(comparison, test),
            )
            for test in dict.fromkeys(row.test for row in comparison.rows)
        ),
    )
    return mark_charts(view)


def _banners(comparison: Comparison) -> tuple[str, ...]:
    """Notices of any run, each once, such as SIMULATED."""
    notices = (notice for result in comparison.results for notice in result.info.notices)
    return tuple(dict.fromkeys(notices))


def _runs(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            name,
            ", ".join(
                (
                    format_fact(result.info.device.get("model")),
                    f"serial {format_fact(result.info.device.get('serial'))}",
                    f"firmware {format_fact(result.info.device.get('firmware'))}",
                    format_known_capacity(result.info.device.get("capacity_bytes")),
                    result.info.profile_name,
                    f"write cache {format_fact(result.info.device.get('write_cache_in_run'))}",
                    format_fact(result.info.fio_version),
                )
            ),
        )
        for name, result in zip(comparison.names, comparison.results, strict=True)
    )


def _overview(comparison: Comparison) -> TableView:
    """How many cells of each section are better, worse, or within noise."""
    rows = []
    for test, section in dict.fromkeys((row.test, row.section) for row in comparison.rows):
        of_section = [row for row in comparison.rows if (row.test, row.section) == (test, section)]
        for position, name in enumerate(comparison.names[1:], start=1):
            states = [_state(row, position) for row in of_section]
            counts = (states.count(state) for state in STATES)
            rows.append((section, name, *(str(count) for count in counts)))
    return TableView(
        title=f"Values better or worse than those of {comparison.names[0]}",
        columns=("Section", "Run", *(state.capitalize() for state in STATES)),
        rows=tuple(rows),
        notes=(
            "Within noise: the ranges over the rounds of both windows overlap. Spread not known: "
            "measured once only.",
        ),
    )


def _state(row: ComparedRow, position: int) -> str:
    entry = row.entries[position]
    if entry.ratio is None:
        return NOT_MEASURED
    if entry.within_noise is None:
        return "spread not known"
    if entry.within_noise:
        return "within noise"
    return "better" if (entry.ratio > 1) == row.measure.higher_is_better else "worse"


def _sections(comparison: Comparison, test: str) -> tuple[SectionView, ...]:
    of_test = [row for row in comparison.rows if row.test == test]
    return tuple(
        _section(comparison, section, f"{test}{number}")
        for number, section in enumerate(dict.fromkeys(row.section for row in of_test))
    )


def _section(comparison: Comparison, name: str, key: str) -> SectionView:
    rows = [row for row in comparison.rows if row.section == name]
    measures = {row.measure.name: row.measure for row in rows}
    steady = [
        section.steady
        for result in comparison.results
        for test in result.tests
        for section in test.sections
        if section.name == name
    ]
    return SectionView(
        key=key,
        title=name,
        state="NOT reached" if False in steady else "reached" if True in steady else "not judged",
        summary="in every run" if all(steady) else "see the warnings",
        determination=None,
        tables=(_table(comparison, rows),),
        charts=tuple(
            ChartView(
                key=f"{key}{number}",
                text=f"{measure.name} of every cell, a bar for each run, with the window's range.",
                spec=compared_bars(
                    [row for row in rows if row.measure is measure],
                    comparison.names,
                    title=f"{name}: {measure.name}",
                    quantity=f"{measure.name} ({measure.unit})",
                ),
            )
            for number, measure in enumerate(measures.values())
            # A bar or two say no more than the table; throughput has one chart for all its sizes.
            if len({row.cell for row in rows}) > FEWEST_CHARTED_CELLS
        ),
    )


def _table(comparison: Comparison, rows: list[ComparedRow]) -> TableView:
    return TableView(
        title=f"Values, and ratios to {comparison.names[0]}; in parentheses: within noise",
        columns=("Block size (KiB)", "R/W %", "", *comparison.names),
        rows=tuple(
            (
                format_block_size_kib(row.cell.block_size_bytes),
                format_mix(row.cell.read_percent),
                f"{row.measure.name} ({row.measure.unit})",
                *(_text(row, position) for position in range(len(comparison.names))),
            )
            for row in rows
        ),
    )


def _text(row: ComparedRow, position: int) -> str:
    entry = row.entries[position]
    value = format_number(entry.value, 1)
    if entry.ratio is None:
        return value
    ratio = f"x{entry.ratio:.3f}"
    return f"{value} ({ratio})" if entry.within_noise else f"{value} {ratio}"
