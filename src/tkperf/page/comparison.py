"""A comparison as a report: the same page, with runs in place of rounds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tkperf.analysis.comparing.arrangement import Arrangement
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import ComparedRow
from tkperf.analysis.results import SectionResult
from tkperf.model.quantity import QUANTITIES
from tkperf.page.comparing.findings import find_common_notices, find_findings
from tkperf.page.comparing.headline_tables import build_headline_tables
from tkperf.page.comparing.ratios import list_names
from tkperf.page.comparing.tables import (
    MOST_ACROSS,
    RATIO_MARKS,
    ComparedTable,
    build_ratio_matrices,
    build_ratios,
    build_values,
    reference_of,
)
from tkperf.page.comparing.telemetry import find_telemetry_differences
from tkperf.page.comparison_charts import build_test_charts
from tkperf.page.comparison_headlines import build_headline_charts
from tkperf.page.explanation import UNITS
from tkperf.page.marking import mark_charts
from tkperf.page.page import ChartView, Facts, ReportView, SectionView, TableView, TestView
from tkperf.page.remarks import WarningGroup
from tkperf.page.tkperf_charts import build_tkperf_charts
from tkperf.page.wording import format_fact, format_known_capacity, format_moment
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.uncertainty import MEANING_OF_RATIO

_MOST_IN_TITLE = 4
_WORDS = (
    "Values are those of each run's own report: means over its steady-state window, over the areas of a hard "
    "disk, or of a whole stream. A stream that went from one level to another is compared phase by phase: the "
    f"value of a phase is the median of its slices, of a maximum the greatest. {MEANING_OF_RATIO} It is from "
    "those of both levels, which come from the spread of the rounds (Student's t) or of the slices; where it "
    "contains 1, the difference is within noise. Of a maximum, which has no interval, ranges that do not meet "
    "are a difference."
)


def build_comparison_view(comparison: Comparison) -> ReportView:
    """Return everything that the report of a comparison says."""
    titles = {test.name: test.title for test in comparison.results[0].tests}
    view = ReportView(
        title=_title(comparison),
        subtitle=_subtitle(comparison),
        banners=find_common_notices(comparison),
        answer=tuple(find_findings(comparison)),
        warnings_line=_summarise(comparison),
        grouped_warnings=tuple(
            WarningGroup(title=group.title, count=len(group.texts), texts=group.texts)
            for group in find_conditions(comparison.names, comparison.results)
        ),
        disclosure=(),
        words=(_WORDS, " ".join(RATIO_MARKS.values()), UNITS),
        overview=(
            *(show_compared_table(table) for table in build_headline_tables(comparison)),
            _runs(comparison),
        ),
        overview_charts=tuple(build_headline_charts(comparison)),
        tests=tuple(
            TestView(
                key=test,
                title=titles.get(test, test),
                facts=_telemetry(comparison, test),
                sections=_sections(comparison, test),
                charts=build_test_charts(comparison, test),
            )
            for test in dict.fromkeys(row.test for row in comparison.rows)
        ),
    )
    return mark_charts(view)


def build_plots(comparison: Comparison) -> tuple[ChartView, ...]:
    """Return the pictures that tkperf-cmp made, keyed by the names of its files.

    The page of a comparison has headline figures instead.
    """
    tests = dict.fromkeys(row.test for row in comparison.rows)
    charts = tuple(chart for test in tests for chart in build_tkperf_charts(comparison, test))
    view = replace(build_comparison_view(comparison), overview_charts=charts, tests=())
    return mark_charts(view).overview_charts


def show_compared_table(table: ComparedTable, *, folded: bool = False) -> TableView:
    """Return a table of a comparison as a page shows it."""
    return TableView(
        title=table.title,
        columns=table.head,
        rows=table.rows,
        labels=table.labels,
        notes=table.notes,
        hints=table.hints,
        folded=folded,
    )


def _telemetry(comparison: Comparison, test: str) -> Facts:
    told = "; ".join(
        each.text
        for each in find_telemetry_differences(comparison.names, comparison.results)
        if each.test == test
    )
    return (("By the drives' own logs", told),) if told else ()


def _title(comparison: Comparison) -> str:
    if len(comparison.names) <= _MOST_IN_TITLE and comparison.arrangement is Arrangement.RUNS:
        return " / ".join(comparison.names)
    count = len(comparison.names)
    if comparison.cohort is not None:
        return comparison.cohort.title
    if comparison.history is not None:
        return f"Drive {format_fact(comparison.history.serial)} over {count} runs"
    return f"{count - 1} runs against {comparison.names[0]}"


def _subtitle(comparison: Comparison) -> str:
    count = len(comparison.names)
    reference = f"ratios are to {reference_of(comparison)}"
    match comparison.arrangement:
        case Arrangement.COHORT:
            return f"cohort of {count} runs; {reference}"
        case Arrangement.HISTORY:
            return f"history of {count} runs; {reference}, the oldest"
        case Arrangement.RUNS:
            return f"comparison of {count} runs; {reference}"


def _summarise(comparison: Comparison) -> str:
    """Return a one-line summary of the warnings below; empty without warnings."""
    counts = (
        f"{len(group.texts)} {group.title.lower()}"
        for group in find_conditions(comparison.names, comparison.results)
    )
    told = ", ".join(counts)
    return f"Conditions that differ, and what the runs say of themselves: {told}" if told else ""


def _runs(comparison: Comparison) -> TableView:
    columns = (
        "Run",
        "Model",
        "Serial number",
        "Firmware",
        "Capacity",
        "Profile",
        "Began",
        "Write cache",
        "fio",
    )
    rows = []
    for name, result in zip(comparison.names, comparison.results, strict=True):
        device = result.info.device
        rows.append(
            (
                name,
                format_fact(device.get("model") or device.get("kind")),
                format_fact(device.get("serial")),
                format_fact(device.get("firmware")),
                format_known_capacity(device.get("capacity_bytes")),
                result.info.profile_name,
                format_moment(result.info.started_utc),
                format_fact(device.get("write_cache_in_run")),
                format_fact(result.info.fio_version).removeprefix("fio-"),
            )
        )
    return TableView(title="Runs", columns=columns, rows=tuple(rows), folded=True)


def _sections(comparison: Comparison, test: str) -> tuple[SectionView, ...]:
    of_test = [row for row in comparison.rows if row.test == test]
    return tuple(
        _section(comparison, [row for row in of_test if row.section == name], f"{test}{number}")
        for number, name in enumerate(dict.fromkeys(row.section for row in of_test))
    )


def _section(comparison: Comparison, rows: list[ComparedRow], key: str) -> SectionView:
    state, summary = _steady_state(comparison, rows[0])
    return SectionView(
        key=key,
        title=rows[0].section,
        state=state,
        summary=summary,
        determination=None,
        tables=tuple(_tables(comparison, rows)),
        charts=(),
    )


def _tables(comparison: Comparison, rows: Sequence[ComparedRow]) -> Iterator[TableView]:
    """Yield ratio matrices and values for two plain runs; otherwise a table with a column of ratios for each run."""
    if comparison.arrangement is not Arrangement.RUNS or len(comparison.names) > 2:
        yield show_compared_table(build_ratios(comparison, rows))
        if len(comparison.names) <= MOST_ACROSS:
            yield show_compared_table(build_values(comparison, rows), folded=True)
        return
    cells = [row for row in rows if not row.part and row.quantity.key in QUANTITIES]
    matrices = tuple(build_ratio_matrices(comparison, cells))
    others = rows if not matrices else [row for row in rows if row not in cells]
    if others:
        yield show_compared_table(build_values(comparison, others))
    # Matrices appear side by side: the page explains colours and marks above them, and at its end.
    yield from (replace(show_compared_table(matrix), notes=()) for matrix in matrices)
    if matrices:
        yield show_compared_table(build_values(comparison, cells), folded=True)


def _steady_state(comparison: Comparison, row: ComparedRow) -> tuple[str, str]:
    """Return the state of the row's section over all runs, and each run's ending unless all are steady."""
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
    told: dict[str, list[str]] = {}
    for name, section in by_run.items():
        told.setdefault(_ended(section), []).append(name)
    endings = "; ".join(f"{list_names(names)}: {ended}" for ended, names in told.items())
    return "NOT reached" if False in states else "not judged", endings


def _ended(section: SectionResult) -> str:
    states = {True: "reached", False: "not reached", None: "not judged"}
    return f"{states[section.steady]} ({section.ended_because})"
