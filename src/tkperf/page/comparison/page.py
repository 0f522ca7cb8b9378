"""The page of a comparison: its text with charts, matrices of ratios and the list of runs. Pure."""

from __future__ import annotations

from dataclasses import replace

from tkperf.analysis.comparing.comparison import Comparison
from tkperf.model.quantity import QUANTITIES
from tkperf.page.comparison.headline_charts import build_headline_charts
from tkperf.page.comparison.stream_charts import build_test_charts
from tkperf.page.comparison.tables import build_ratio_matrices, build_section_table
from tkperf.page.comparison.text import build_comparison_text
from tkperf.page.comparison.tkperf_plots import build_tkperf_charts
from tkperf.page.comparison.words import RATIO_MARKS
from tkperf.page.explanation import UNITS
from tkperf.page.marking import mark_charts
from tkperf.page.page import ChartView, ReportView, SectionView, TableView
from tkperf.page.wording import format_fact, format_known_capacity, format_moment
from tkperf.page.words.uncertainty import MEANING_OF_RATIO

_WORDS = (
    "Values are those of each run's own report: means over its steady-state window, over the areas of a hard "
    "disk, or of a whole stream. A stream that went from one level to another is compared phase by phase: the "
    f"value of a phase is the median of its slices, of a maximum the greatest. {MEANING_OF_RATIO} It is from "
    "those of both levels, which come from the spread of the rounds (Student's t) or of the slices; where it "
    "contains 1, the difference is within noise. Of a maximum, which has no interval, ranges that do not meet "
    "are a difference."
)


def build_comparison_page(comparison: Comparison) -> ReportView:
    """Return the report of a comparison: its text with charts, matrices of ratios and the list of runs."""
    text = build_comparison_text(comparison)
    counts = ", ".join(f"{group.count} {group.title.lower()}" for group in text.grouped_warnings)
    page = replace(
        text,
        warnings_line=f"Conditions that differ, and what the runs say of themselves: {counts}"
        if counts
        else "",
        words=(_WORDS, " ".join(RATIO_MARKS.values()), UNITS),
        overview=(*text.overview, _runs(comparison)),
        overview_charts=tuple(build_headline_charts(comparison)),
        tests=tuple(
            replace(
                test,
                sections=tuple(_add_matrices(comparison, test.key, each) for each in test.sections),
                charts=build_test_charts(comparison, test.key),
            )
            for test in text.tests
        ),
    )
    return mark_charts(page)


def build_tkperf_plots(comparison: Comparison) -> tuple[ChartView, ...]:
    """Return the pictures that tkperf-cmp made, keyed by the names of its files.

    The page of a comparison has headline figures instead.
    """
    tests = dict.fromkeys(row.test for row in comparison.rows)
    charts = tuple(chart for test in tests for chart in build_tkperf_charts(comparison, test))
    return mark_charts(
        replace(build_comparison_text(comparison), overview_charts=charts)
    ).overview_charts


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


def _add_matrices(comparison: Comparison, test: str, section: SectionView) -> SectionView:
    """Return the section of two runs with matrices of ratios, and its cells folded below them."""
    if len(comparison.names) > 2:
        return section
    rows = [row for row in comparison.rows if (row.test, row.section) == (test, section.title)]
    cells = [row for row in rows if not row.part and row.quantity.key in QUANTITIES]
    matrices = tuple(build_ratio_matrices(comparison, cells))
    if not matrices:
        return section
    others = [row for row in rows if row not in cells]
    tables: list[TableView] = [build_section_table(comparison, others)] if others else []
    # Matrices appear side by side: the page explains marks at its end.
    tables += [replace(matrix, notes=()) for matrix in matrices]
    tables.append(replace(build_section_table(comparison, cells), folded=True, ids=()))
    return replace(section, tables=tuple(tables))
