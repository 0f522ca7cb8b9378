"""A ranking as JSON and as a table: the same data that its page shows."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tkperf.analysis.comparing.ranking import RankedRun, Ranking
from tkperf.page.comparison.ranking_page import describe_unranked
from tkperf.render.export_json import DRIVE, Row, finite
from tkperf.render.export_tables import DataTable

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
    """Return the whole ranking. "Not known" is null."""
    document = {
        "schema": RANKING_SCHEMA,
        "figure": ranking.key,
        "key": ranking.measure.key,
        "unit": ranking.measure.unit_in_data,
        "better": ranking.measure.better.value,
        "simulated": ranking.is_simulated,
        "conditions": dict(ranking.conditions),
        "ranked": [_run(ranking, one) for one in ranking.ranked],
        "not_ranked": [_run(ranking, one) for one in ranking.others],
    }
    return json.dumps(finite(document), indent=2, allow_nan=False)


def _run(ranking: Ranking, one: RankedRun) -> dict[str, object]:
    row = dict(zip(_TYPES, _row(ranking, one), strict=True))
    del row["figure"], row["unit"]
    return row | {
        "differing": [{"name": each.name, "value": each.value, "ranked": each.ranked} for each in one.differing],
        "simulated": one.run.is_simulated,
    }


def build_ranking_table(ranking: Ranking) -> DataTable:
    """Return a row for each run, with the ranked runs first."""
    return DataTable(name="ranking", types=_TYPES, rows=tuple(_rows(ranking)))


def _rows(ranking: Ranking) -> Iterator[Row]:
    for one in ranking.runs:
        yield _row(ranking, one)


def _row(ranking: Ranking, one: RankedRun) -> Row:
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
