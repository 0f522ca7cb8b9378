"""Export comparisons and rankings for programs, as JSON and as a table. The data are the same as on the pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tkperf.analysis.comparing.arrangements import Cohort, History
from tkperf.analysis.comparing.compared_rows import ComparedRow, Entry
from tkperf.analysis.comparing.comparison import Comparison, ComparisonReason
from tkperf.analysis.comparing.decision import DecisionFigure
from tkperf.analysis.comparing.decision_figures import build_decision
from tkperf.analysis.comparing.ranking import RankedRun, Ranking
from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import Judgement
from tkperf.page.comparison.conclusions import (
    describe_comparison_verdict,
    find_comparison_notices,
    find_conclusions,
    find_telemetry_differences,
    find_verdict,
)
from tkperf.page.comparison.decision_texts import describe_uses, find_title
from tkperf.page.comparison.ranking_page import describe_unranked
from tkperf.page.comparison.ratio_texts import describe_loads, name_reference
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.run import find_notices
from tkperf.render.export_json import DRIVE, Row, build_verdict, finite, plain_workload
from tkperf.render.export_tables import DataTable

COMPARISON_SCHEMA = "tkperf-comparison/1"
_DEVICE = ("kind", "model", "serial", "firmware", "capacity_bytes", "write_cache_in_run")


def render_comparison_json(comparison: Comparison) -> str:
    """Return the whole comparison as JSON. The value null means that a value was not measured. Each headline figure
    contains the number of its row.
    """
    loads = describe_loads(comparison)
    titles = {test.name: test.title for test in comparison.results[0].tests}
    conditions = find_conditions(comparison.names, comparison.results)
    document = {
        "schema": COMPARISON_SCHEMA,
        "arrangement": comparison.arrangement.value,
        "ratios_to": name_reference(comparison),
        "verdict": _verdict(comparison, find_verdict(comparison, conditions)),
        "decision": _decision(comparison),
        "findings": tuple(find_conclusions(comparison)),
        "notices": find_comparison_notices(comparison),
        "runs": [_run(name, result) for name, result in zip(comparison.names, comparison.results, strict=True)],
        "headlines": [
            {"test": titles.get(row.test, row.test), "load": loads[row.place], "row": comparison.rows.index(row)}
            for row in comparison.headlines
        ],
        "cohort": comparison.cohort and _cohort(comparison.cohort, comparison.rows),
        "history": comparison.history and _history(comparison.history, comparison.rows),
        "conditions": [asdict(group) for group in conditions],
        "telemetry": [
            asdict(difference) for difference in find_telemetry_differences(comparison.names, comparison.results)
        ],
        "rows": [_row(row) for row in comparison.rows],
    }
    return json.dumps(finite(document), indent=2, allow_nan=False)


def _decision(comparison: Comparison) -> dict[str, object]:
    decision = build_decision(comparison)
    return {
        "title": find_title(comparison, decision),
        "uses": [{"name": name, "text": text} for name, text in describe_uses(comparison, decision)],
        "figures": [_figure(figure) for figure in (*decision.figures, *decision.alone)],
    }


def _figure(figure: DecisionFigure) -> dict[str, object]:
    """Return a figure of the decision. The figure identifies runs by their numbers in ``runs``. The ratios of the
    figure are relative to the best ranked value.
    """
    return {
        "figure": figure.key,
        "use": figure.use,
        "test": figure.test,
        "section": figure.section,
        "workload": plain_workload(figure.workload),
        "part": figure.part or None,
        "key": figure.measure.key,
        "measure": figure.measure.label,
        "unit": figure.measure.unit,
        "better": figure.measure.better.value,
        "ranking": figure.ranking,
        "cells": [_entry(cell.entry) | {"unranked": cell.unranked, "standing": cell.standing} for cell in figure.cells],
    }


def _verdict(comparison: Comparison, judged: Judgement[ComparisonReason]) -> dict[str, Any]:
    verdict = build_verdict(describe_comparison_verdict(comparison, judged))
    for reason in verdict["reasons"]:
        del reason["of_run"]
    return verdict


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
        "workload": plain_workload(row.workload),
        "part": row.part or None,
        "key": row.quantity.key,
        "measure": row.quantity.label,
        "unit": row.quantity.unit,
        "better": row.quantity.better.value,
        "entries": [_entry(entry) for entry in row.entries],
    }


def _entry(entry: Entry) -> dict[str, object]:
    fields = asdict(entry)
    ratio = fields.pop("ratio_uncertainty") or {}
    own = fields.pop("uncertainty") or {}
    return fields | {
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
                "row": rows.index(figure.row),
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
        "period_days": history.period_days,
        "days_since_1970": history.days,
        "firmware": [asdict(change) for change in history.firmware],
        "figures": [
            {
                "row": rows.index(figure.row),
                "median": figure.median,
                "percent_per_period": figure.trend and figure.trend.slope,
                "percent_per_period_low_95": figure.trend and figure.trend.low,
                "percent_per_period_high_95": figure.trend and figure.trend.high,
                "change": figure.change.value,
            }
            for figure in history.figures
        ],
    }


RANKING_SCHEMA = "tkperf-ranking/1"
_TYPES = {
    "run": str,
    "target": str,
    "place": int,
    "figure": str,
    "unit": str,
    "value": float,
    "low_95": float,
    "high_95": float,
    "ratio_to_best": float,
    "standing": str,
    "not_ranked": str,
    **DRIVE,
    "profile": str,
    "host": str,
    "started_utc": str,
}


def render_ranking_json(ranking: Ranking) -> str:
    """Return the whole ranking as JSON. The value null means that a value is not known."""
    document = {
        "schema": RANKING_SCHEMA,
        "figure": ranking.key,
        "key": ranking.measure.key,
        "unit": ranking.measure.unit_in_data,
        "better": ranking.measure.better.value,
        "simulated": ranking.is_simulated,
        "conditions": dict(ranking.conditions),
        "ranked": [_ranked_run(ranking, one) for one in ranking.ranked],
        "not_ranked": [_ranked_run(ranking, one) for one in ranking.others],
    }
    return json.dumps(finite(document), indent=2, allow_nan=False)


def _ranked_run(ranking: Ranking, one: RankedRun) -> dict[str, object]:
    row = dict(zip(_TYPES, _ranking_row(ranking, one), strict=True))
    del row["figure"], row["unit"]
    return row | {
        "differing": [{"name": each.name, "value": each.value, "ranked": each.ranked} for each in one.differing],
        "simulated": one.run.is_simulated,
    }


def build_ranking_table(ranking: Ranking) -> DataTable:
    """Return a table with a row for each run. The ranked runs are first."""
    return DataTable(name="ranking", types=_TYPES, rows=tuple(_rows(ranking)))


def _rows(ranking: Ranking) -> Iterator[Row]:
    for one in ranking.runs:
        yield _ranking_row(ranking, one)


def _ranking_row(ranking: Ranking, one: RankedRun) -> Row:
    entry, run = one.cell.entry, one.run
    known = None if entry.uncertainty is None else entry.uncertainty.of_level
    return (
        run.name,
        run.device.get("kind"),
        one.place,
        ranking.key,
        ranking.measure.unit_in_data,
        entry.value,
        known and known.low,
        known and known.high,
        entry.ratio,
        one.cell.standing,
        describe_unranked(one) if one.place is None else None,
        *(run.device.get(name) for name in DRIVE),
        run.profile_name,
        run.host,
        run.started_utc,
    )
