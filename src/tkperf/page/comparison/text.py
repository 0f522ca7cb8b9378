"""A comparison as every output shows it: sentences, tables, conditions."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.comparing.comparison import Arrangement, Comparison
from tkperf.analysis.comparing.entries import ComparedRow
from tkperf.analysis.results import SectionResult
from tkperf.model.units import list_names
from tkperf.page.comparison.findings import (
    describe_comparison_verdict,
    find_common_notices,
    find_findings,
)
from tkperf.page.comparison.tables import (
    MOST_ACROSS,
    build_headline_table,
    build_runs_table,
    build_section_table,
)
from tkperf.page.comparison.telemetry import find_telemetry_differences
from tkperf.page.comparison.words import (
    describe_group,
    describe_ratio_uncertainty,
    name_reference,
)
from tkperf.page.page import Facts, ReportView, SectionView, TestView
from tkperf.page.remarks import WarningGroup
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.uncertainty import MEANING_OF_RATIO

_MOST_IN_TITLE = 4


def build_comparison_text(comparison: Comparison, most_across: int = MOST_ACROSS) -> ReportView:
    """Return what every output shows: sentences, tables, conditions.

    Args:
        most_across: most runs with a column of their own.
    """
    titles = {test.name: test.title for test in comparison.results[0].tests}
    overview = (build_headline_table(comparison, most_across), build_runs_table(comparison))
    uncertain = any(
        describe_ratio_uncertainty(entry) for row in comparison.rows for entry in row.entries
    )
    return ReportView(
        title=_title(comparison),
        subtitle=_subtitle(comparison),
        banners=find_common_notices(comparison),
        verdict=describe_comparison_verdict(comparison),
        answer=tuple(find_findings(comparison)),
        grouped_warnings=tuple(
            WarningGroup(title=group.title, count=len(group.texts), texts=group.texts)
            for group in find_conditions(comparison.names, comparison.results)
        ),
        disclosure=(),
        words=(MEANING_OF_RATIO,) if uncertain else (),
        overview=tuple(table for table in overview if table is not None),
        tests=tuple(
            TestView(
                key=test,
                title=titles.get(test, test),
                facts=_telemetry(comparison, test),
                sections=tuple(_sections(comparison, test, most_across)),
            )
            for test in dict.fromkeys(row.test for row in comparison.rows)
        ),
    )


def _telemetry(comparison: Comparison, test: str) -> Facts:
    text = "; ".join(
        each.text
        for each in find_telemetry_differences(comparison.names, comparison.results)
        if each.test == test
    )
    return (("By the drives' own logs", text),) if text else ()


def _title(comparison: Comparison) -> str:
    if len(comparison.names) <= _MOST_IN_TITLE and comparison.arrangement is Arrangement.RUNS:
        return " / ".join(comparison.names)
    count = len(comparison.names)
    if comparison.cohort is not None:
        return describe_group(comparison)
    if comparison.history is not None:
        serial = comparison.history.serial
        return f"Drive {serial} over {count} runs" if serial else f"{count} runs of one drive"
    return f"{count - 1} runs against {comparison.names[0]}"


def _subtitle(comparison: Comparison) -> str:
    count = len(comparison.names)
    reference = f"ratios are to {name_reference(comparison)}"
    match comparison.arrangement:
        case Arrangement.COHORT:
            return f"cohort of {count} runs; {reference}"
        case Arrangement.HISTORY:
            return f"history; {reference}, the oldest"
        case Arrangement.RUNS:
            return f"comparison of {count} runs; {reference}"


def _sections(comparison: Comparison, test: str, most_across: int) -> Iterator[SectionView]:
    of_test = [row for row in comparison.rows if row.test == test]
    for number, name in enumerate(dict.fromkeys(row.section for row in of_test)):
        rows = [row for row in of_test if row.section == name]
        state, summary = _steady_state(comparison, rows[0])
        yield SectionView(
            key=f"{test}{number}",
            title=name,
            state=state,
            summary=summary,
            determination=None,
            tables=(build_section_table(comparison, rows, most_across),),
            charts=(),
        )


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
    by_ending: dict[str, list[str]] = {}
    for name, section in by_run.items():
        by_ending.setdefault(_ended(section), []).append(name)
    endings = "; ".join(f"{list_names(names)}: {ended}" for ended, names in by_ending.items())
    return "NOT reached" if False in states else "not judged", endings


def _ended(section: SectionResult) -> str:
    states = {True: "reached", False: "not reached", None: "not judged"}
    return f"{states[section.steady]} ({section.ended_because})"
