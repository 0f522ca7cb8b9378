"""A comparison as a report: the same page, with runs in the place of rounds. Pure."""

from __future__ import annotations

from tkperf.analysis.compare import Change, ComparedRow, Comparison, Entry
from tkperf.analysis.flags import explain_marks, mark
from tkperf.analysis.layout import listing_axes
from tkperf.analysis.results import SectionResult
from tkperf.analysis.uncertainty.wording import describe, describe_interval
from tkperf.quantity import Measure, Quantity
from tkperf.report.comparison_charts import build_bars, build_test_charts
from tkperf.report.explanation import UNITS
from tkperf.report.marking import mark_charts
from tkperf.report.naming import capitalise
from tkperf.report.page import ChartView, ReportView, SectionView, TableView, TestView
from tkperf.report.tkperf_charts import build_tkperf_charts
from tkperf.report.wording import format_fact, format_known_capacity
from tkperf.units import format_number

FEWEST_CHARTED_CELLS = 2
_WORDS = (
    "Every ratio is to the first run. Values are those of each run's own report: means over its "
    "steady-state window, over the areas of a hard disk, or of a whole stream."
)


def build_comparison_view(comparison: Comparison) -> ReportView:
    """Everything the report of a comparison says."""
    titles = {test.name: test.title for test in comparison.results[0].tests}
    view = ReportView(
        title=" / ".join(comparison.names),
        subtitle=f"comparison of {len(comparison.names)} runs; ratios are to {comparison.names[0]}",
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
                charts=_test_charts(comparison, test),
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
                    f"fio {format_fact(result.info.fio_version).removeprefix('fio-')}",
                )
            ),
        )
        for name, result in zip(comparison.names, comparison.results, strict=True)
    )


def _overview(comparison: Comparison) -> TableView:
    """How many values of each section are better, worse, within noise, or none of these."""
    rows = []
    for test, section in dict.fromkeys((row.test, row.section) for row in comparison.rows):
        of_section = [row for row in comparison.rows if (row.test, row.section) == (test, section)]
        for position, name in enumerate(comparison.names[1:], start=1):
            changes = [row.entries[position].change for row in of_section]
            rows.append((section, name, *(str(changes.count(change)) for change in Change)))
    return TableView(
        title=f"Values better or worse than those of {comparison.names[0]}",
        columns=("Section", "Run", *(change.value.capitalize() for change in Change)),
        rows=tuple(rows),
        notes=(
            "Within noise: the interval that covers the ratio to 95 % contains 1 (of a maximum, which has "
            "none: the ranges over the steady-state windows of both runs overlap). Cannot be told: "
            "not both values have an uncertainty, as of one round without seconds or a stream that "
            "was not level. Not comparable: not measured in one of the runs, or 0 in the first.",
        ),
    )


def _test_charts(comparison: Comparison, test: str) -> tuple[ChartView, ...]:
    """Those that TKperf's users know first."""
    of_tkperf = tuple(build_tkperf_charts(comparison, test))
    return (*of_tkperf, *build_test_charts(comparison, test, over_time=not of_tkperf))


def _sections(comparison: Comparison, test: str) -> tuple[SectionView, ...]:
    of_test = [row for row in comparison.rows if row.test == test]
    return tuple(
        _section(
            comparison,
            [row for row in of_test if row.section == section],
            f"{test}{number}",
        )
        for number, section in enumerate(dict.fromkeys(row.section for row in of_test))
    )


def _section(comparison: Comparison, rows: list[ComparedRow], key: str) -> SectionView:
    name = rows[0].section
    of_cells = [row for row in rows if isinstance(row.quantity, Quantity)]
    state, summary = _steady_state(comparison, rows[0])
    return SectionView(
        key=key,
        title=name,
        state=state,
        summary=summary,
        determination=None,
        tables=(_table(comparison, rows),),
        charts=tuple(
            build_bars(
                comparison,
                f"{key}{number}",
                [row for row in of_cells if row.quantity is quantity],
                title=f"{name}: {quantity.label}",
                text=f"{capitalise(quantity.label)} of every workload",
            )
            for number, quantity in enumerate(dict.fromkeys(row.quantity for row in of_cells))
            # A bar or two say no more than the table.
            if len({row.workload for row in of_cells}) > FEWEST_CHARTED_CELLS
        ),
    )


def _steady_state(comparison: Comparison, row: ComparedRow) -> tuple[str, str]:
    """The state of the row's section over all runs, and what each run did unless all are steady."""
    by_run = {
        name: section
        for name, result in zip(comparison.names, comparison.results, strict=True)
        for test in result.tests
        for section in test.sections
        if (test.name, section.name) == (row.test, row.section)
    }
    states = {section.steady for section in by_run.values()}
    if states == {True}:
        return "reached", "in every run"
    endings = "; ".join(f"{name}: {_ended(section)}" for name, section in by_run.items())
    return "NOT reached" if False in states else "not judged", endings


def _ended(section: SectionResult) -> str:
    states = {True: "reached", False: "not reached", None: "not judged"}
    return f"{states[section.steady]} ({section.ended_because})"


def _table(comparison: Comparison, rows: list[ComparedRow]) -> TableView:
    axes = listing_axes(row.workload for row in rows)
    return TableView(
        title=f"Values, and ratios to {comparison.names[0]} with their uncertainty (95 %); in parentheses: "
        "within noise, with a question mark: cannot be told",
        columns=(*(axis.title for axis in axes), "", *comparison.names),
        labels=len(axes) + 1,
        rows=tuple(
            (
                *(axis.text(row.workload) for axis in axes),
                row.quantity.title,
                *(_text(entry) for entry in row.entries),
            )
            for row in rows
        ),
        notes=explain_marks(entry for row in rows for entry in row.entries),
        hints=tuple(tuple(_hint(row.quantity, entry) for entry in row.entries) for row in rows),
    )


def _hint(measure: Measure, entry: Entry) -> str:
    """How far the value and its ratio can be trusted."""
    ratio = describe_interval(entry.ratio, entry.ratio_uncertainty, 3)
    words = (
        describe(entry.value, entry.uncertainty, measure),
        f"ratio {ratio}" if ratio else "",
    )
    return "; ".join(filter(None, words))


def _text(entry: Entry) -> str:
    if entry.not_found is not None:
        return entry.not_found
    value = format_number(entry.value, 1) + mark(entry)
    return f"{value} {entry.ratio_text}".rstrip()
