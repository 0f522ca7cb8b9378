"""A comparison as JSON and as Markdown: the same data that its pages show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from tkperf.analysis.comparing.cohort import Cohort
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import ComparedRow, Entry
from tkperf.analysis.comparing.history import History
from tkperf.analysis.results import RunResult
from tkperf.page.comparing.findings import find_common_notices, find_findings
from tkperf.page.comparing.headline_tables import build_headline_tables
from tkperf.page.comparing.ratios import describe_ratio_uncertainty
from tkperf.page.comparing.tables import (
    MOST_ACROSS,
    ComparedTable,
    build_summary,
    build_values,
    reference_of,
)
from tkperf.page.comparing.telemetry import find_telemetry_differences
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.run import find_notices
from tkperf.page.words.uncertainty import MEANING_OF_RATIO
from tkperf.render.export_json import finite
from tkperf.render.export_workload import WORKLOAD, workload_row
from tkperf.render.markdown_text import inert, inert_line, render_rows

COMPARISON_SCHEMA = "tkperf-comparison/1"
_DEVICE = ("kind", "model", "serial", "firmware", "capacity_bytes", "write_cache_in_run")


def render_comparison_json(comparison: Comparison) -> str:
    """Return the whole comparison. "Not measured" is null; headline figures give the number of their row."""
    document = {
        "schema": COMPARISON_SCHEMA,
        "arrangement": comparison.arrangement.value,
        "ratios_to": reference_of(comparison),
        "findings": tuple(find_findings(comparison)),
        "notices": find_common_notices(comparison),
        "runs": [
            _run(name, result)
            for name, result in zip(comparison.names, comparison.results, strict=True)
        ],
        "headlines": [
            {"test": one.test, "load": one.load, "row": comparison.rows.index(one.row)}
            for one in comparison.headlines
        ],
        "cohort": comparison.cohort and _cohort(comparison.cohort, comparison.rows),
        "history": comparison.history and _history(comparison.history, comparison.rows),
        "conditions": [
            asdict(group) for group in find_conditions(comparison.names, comparison.results)
        ],
        "telemetry": [
            asdict(difference)
            for difference in find_telemetry_differences(comparison.names, comparison.results)
        ],
        "rows": [_row(row) for row in comparison.rows],
    }
    return json.dumps(finite(document), indent=2, allow_nan=False)


def _run(name: str, result: RunResult) -> dict[str, object]:
    info = result.info
    return {
        "name": name,
        "status": result.status.value,
        "notices": find_notices(result),
        "started_utc": info.started_utc,
        "profile": info.profile_name,
        "specification": info.specification,
        "fio_version": info.fio_version,
        **{key: info.device.get(key) for key in _DEVICE},
    }


def _row(row: ComparedRow) -> dict[str, object]:
    return {
        "test": row.test,
        "section": row.section,
        "workload": dict(zip(WORKLOAD, workload_row(row.workload), strict=True)),
        "part": row.part or None,
        "key": row.quantity.key,
        "measure": row.quantity.label,
        "unit": row.quantity.unit,
        "better": row.quantity.better.value,
        "entries": [_entry(entry) for entry in row.entries],
    }


def _entry(entry: Entry) -> dict[str, object]:
    told = asdict(entry)
    ratio = told.pop("ratio_uncertainty") or {}
    own = told.pop("uncertainty") or {}
    return told | {
        "low_95": own.get("low"),
        "high_95": own.get("high"),
        "no_uncertainty_because": own.get("reason"),
        "ratio_low_95": ratio.get("low"),
        "ratio_high_95": ratio.get("high"),
    }


def _cohort(cohort: Cohort, rows: tuple[ComparedRow, ...]) -> dict[str, object]:
    return {
        "model": cohort.model,
        "figures": [
            {
                "row": rows.index(figure.headline.row),
                **asdict(figure.distribution),
                "spread_percent": figure.spread_percent,
                "own_percent": figure.own_percent,
                "outliers": [asdict(outlier) for outlier in figure.outliers],
            }
            for figure in cohort.figures
        ],
    }


def _history(history: History, rows: tuple[ComparedRow, ...]) -> dict[str, object]:
    return {
        "serial": history.serial,
        "period_days": history.period.days,
        "days_since_1970": history.days,
        "firmware": [asdict(change) for change in history.firmware],
        "figures": [
            {
                "row": rows.index(figure.headline.row),
                "median": figure.median,
                "percent_per_period": figure.trend and figure.trend.slope,
                "percent_per_period_low_95": figure.trend and figure.trend.low,
                "percent_per_period_high_95": figure.trend and figure.trend.high,
                "change": figure.change.value,
            }
            for figure in history.figures
        ],
    }


def render_comparison_markdown(comparison: Comparison) -> str:
    """Return findings, headline figures, every section's values, conditions."""
    lines = [f"# {inert(' / '.join(comparison.names))}", ""]
    lines += [f"**{inert(notice)}**\n" for notice in find_common_notices(comparison)]
    lines += [f"{inert_line(finding)}\n" for finding in find_findings(comparison)]
    for table in build_headline_tables(comparison):
        lines += _table(table)
    titles = {test.name: test.title for test in comparison.results[0].tests}
    few = len(comparison.names) <= MOST_ACROSS
    for test in dict.fromkeys(row.test for row in comparison.rows):
        lines += [f"## {inert(titles.get(test, test))}", ""]
        lines += [
            f"{inert(each.text)}\n"
            for each in find_telemetry_differences(comparison.names, comparison.results)
            if each.test == test
        ]
        of_test = [row for row in comparison.rows if row.test == test]
        for section in dict.fromkeys(row.section for row in of_test):
            rows = [row for row in of_test if row.section == section]
            table = build_values(comparison, rows) if few else build_summary(comparison, rows)
            lines += [f"### {inert(section)}", "", *_table(table)]
    if any(describe_ratio_uncertainty(entry) for row in comparison.rows for entry in row.entries):
        lines += [MEANING_OF_RATIO, ""]
    lines += ["## Conditions", ""] if find_conditions(comparison.names, comparison.results) else []
    for group in find_conditions(comparison.names, comparison.results):
        lines += [
            f"**{inert(group.title)}**",
            "",
            *(f"- {inert(text)}" for text in group.texts),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _table(table: ComparedTable) -> Iterator[str]:
    yield from (inert(table.title), "", *render_rows(table.head, table.rows), "")
    for note in table.notes:
        yield from (inert_line(note), "")
