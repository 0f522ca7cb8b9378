"""Export the results of a batch for programs: JSON, CSV, and JUnit XML for CI systems.

docs/how-to/batches.md describes the layouts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, ModelGroup
from tkperf.analysis.claim_results import ClaimKind
from tkperf.analysis.comparing.arrangements import CohortValue
from tkperf.analysis.verdict import judge_run
from tkperf.model.batch_state import DriveStage
from tkperf.model.units import drop_controls
from tkperf.page.batch.batch_verdict_texts import describe_batch_title, describe_batch_verdict
from tkperf.page.claim_texts import describe_cells
from tkperf.page.comparison.ratio_texts import name_headlines
from tkperf.render.export_check import count_cases, render_matrix_junit, write_junit
from tkperf.render.export_json import build_verdict, finite
from tkperf.render.export_tables import DataTable

BATCH_SCHEMA = "tkperf-batch/1"
_SKIPPED = (DriveStage.WAITING, DriveStage.RUNNING)


def render_batch_json(batch_result: BatchResult) -> str:
    """Return the verdict, the drives with their claims and headline figures, and the distributions. The value null
    means that a value was not measured.
    """
    state = batch_result.state
    document = {
        "schema": BATCH_SCHEMA,
        "name": state.name,
        "began_utc": state.began_utc,
        "title": describe_batch_title(batch_result),
        "verdict": build_verdict(describe_batch_verdict(batch_result)),
        "passes": batch_result.passes,
        "notes": state.notes,
        "drives": [_drive(one, batch_result) for one in batch_result.drives],
        "figures": [
            {"model": group.compared.cohort and group.compared.cohort.model, **dict(_figure(name, figure))}
            for group in batch_result.groups
            for name, figure in _figures(group)
        ],
        "not_compared": batch_result.not_compared or None,
    }
    return json.dumps(finite(document), indent=2, allow_nan=False)


def build_batch_tables(batch_result: BatchResult) -> Iterator[DataTable]:
    """Yield the tables of a batch: its drives, their headline figures, and their claims."""
    rows = [_facts(one, batch_result) for one in batch_result.drives]
    yield DataTable(
        name="drives", types=dict.fromkeys(rows[0], object), rows=tuple(tuple(row.values()) for row in rows)
    )
    drive = {"number": int, "slot": str, "serial": str}
    of_figure = {"figure": str, "unit": str, "value": float, "from_median_percent": float, "outlier": bool}
    yield DataTable(name="figures", types={**drive, **of_figure}, rows=tuple(_figure_rows(batch_result)))
    if batch_result.has_claims:
        of_claim = {
            "claim": str,
            "state": str,
            "kind": str,
            "value": float,
            "unit": str,
            "margin_percent": float,
            "limit": str,
        }
        yield DataTable(name="claims", types={**drive, **of_claim}, rows=tuple(_claim_rows(batch_result)))


def render_batch_junit(batch_result: BatchResult) -> str:
    """Return a test suite for each drive. The suite contains a test case for each claim. If there are no claims, return
    a single test suite that contains a test case for each drive.
    """
    if batch_result.has_claims:
        return render_matrix_junit([one.file for one in batch_result.drives])
    suite = ET.Element("testsuite", name=f"tkperf batch {drop_controls(batch_result.state.name)}")
    for one in batch_result.drives:
        case = ET.SubElement(
            suite, "testcase", classname=drop_controls(batch_result.state.name), name=one.state.shown.label
        )
        if one.is_done:
            continue
        stage = one.state.stage
        kind = "skipped" if stage in _SKIPPED else "failure" if stage is DriveStage.FAILED else "error"
        message = ": ".join(filter(None, (stage, one.state.text or one.error)))
        ET.SubElement(case, kind, message=drop_controls(message))
    count_cases(suite)
    return write_junit(suite)


def _facts(one: BatchDriveResult, batch_result: BatchResult) -> dict[str, str | int | float | bool | None]:
    """Return the known facts about a drive, with the names of the columns as the keys."""
    drive, shown = one.state, one.state.shown
    device = {} if one.result is None else one.result.info.device
    checked = one.checked
    worst = None if checked is None else checked.worst
    return {
        "number": shown.number,
        "host": shown.host,
        "slot": shown.slot,
        "model": _text(device.get("model") or shown.model),
        "serial": _text(device.get("serial") or shown.serial),
        "firmware": _text(device.get("firmware") or shown.firmware),
        "link": _text(device.get("link") or shown.link),
        "run": shown.name,
        "run_file": drive.run_file,
        "stage": drive.stage.value,
        "exit_code": drive.exit_code,
        "because": drive.text or one.error or None,
        "verdict": None if one.result is None else judge_run(one.result).state.value,
        "passes": None if not batch_result.has_claims else one in batch_result.passing,
        "claims_passed": None if checked is None else len(checked.claim_results) - len(checked.not_passed),
        "claims": None if checked is None else len(checked.claim_results),
        "unlike_the_others": len(batch_result.outliers.get(one.number, ())),
        "hottest_c": one.hottest_c,
        "throttled_s": one.throttled_s,
        "others_at_once": None if drive.place is None else drive.place.others,
        "sharing": None if drive.place is None else drive.place.sharing.value,
        "claims_missed": None if checked is None else checked.count(ClaimKind.FAILED),
        "worst_claim": None if worst is None else worst.title,
        "worst_margin_percent": None if worst is None else worst.margin_percent,
    }


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def _drive(one: BatchDriveResult, batch_result: BatchResult) -> dict[str, object]:
    figures: dict[str, float | None] = {}
    for group in batch_result.groups:
        places = {each.number: place for place, each in enumerate(group.drives)}
        place = places.get(one.number)
        for name, figure in _figures(group):
            value = None if place is None else figure.row.entries[place].value
            figures[name] = figures.get(name) if value is None else value
    findings = () if one.checked is None else one.checked.by_title.values()
    cells = [
        {
            "text": text,
            "kind": kind,
            "claim": finding.title,
            "value": finding.value,
            "unit": finding.unit,
            "margin_percent": finding.margin_percent,
        }
        for (text, kind), finding in zip(describe_cells(one.checked), findings, strict=True)
    ]
    return {**_facts(one, batch_result), "figures": figures, "cells": cells}


def _figures(group: ModelGroup) -> list[tuple[str, CohortValue]]:
    """Return the headline figures of all drives in a group, each with its name."""
    names = name_headlines(group.compared)
    return [(names[figure.row.place], figure) for figure in group.figures]


def _figure(name: str, figure: CohortValue) -> Iterator[tuple[str, object]]:
    found = figure.distribution
    yield "figure", name
    yield "unit", figure.row.quantity.unit
    for key in (
        "count",
        "median",
        "median_low",
        "median_high",
        "spread",
        "lowest",
        "lower_quartile",
        "upper_quartile",
        "highest",
        "outlier_low",
        "outlier_high",
    ):
        yield key, getattr(found, key)
    yield (
        "outliers",
        [
            {"drive": one.name, "value": one.value, "score": one.score, "from_median_percent": one.from_median_percent}
            for one in figure.outliers
        ],
    )


def _figure_rows(batch_result: BatchResult) -> Iterator[tuple[str | int | float | None, ...]]:
    for group in batch_result.groups:
        for name, figure in _figures(group):
            outliers = {outlier.name for outlier in figure.outliers}
            middle = figure.distribution.median
            for one, entry in zip(group.drives, figure.row.entries, strict=True):
                shown, value = one.state.shown, entry.value
                percent = None if value is None else 100 * (value / middle - 1)
                yield (
                    shown.number,
                    shown.slot,
                    shown.serial,
                    name,
                    figure.row.quantity.unit,
                    value,
                    percent,
                    shown.label in outliers,
                )


def _claim_rows(batch_result: BatchResult) -> Iterator[tuple[str | int | float | None, ...]]:
    for one in batch_result.drives:
        shown, checked = one.state.shown, one.checked
        for finding in () if checked is None else checked.claim_results:
            assert checked is not None
            yield (
                shown.number,
                shown.slot,
                shown.serial,
                finding.claim,
                finding.state.value,
                checked.judge(finding).value,
                finding.value,
                finding.unit,
                finding.margin_percent,
                finding.limit,
            )
