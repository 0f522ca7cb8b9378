"""Tables that a data set of many runs has in addition to the tables of a run: the run itself, and its figures."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.comparing.decision import Unranked
from tkperf.analysis.comparing.ranking import freeze_conditions, order_of
from tkperf.analysis.comparing.run_figures import FIXED, MEASURES, FigureValue, RunFigures
from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import judge_run
from tkperf.page.verdict_texts import describe_verdict
from tkperf.render.export_json import DRIVE, WORKLOAD, Row, workload_row
from tkperf.render.export_tables import DataTable

_USES = {fixed.key: fixed.use for fixed in FIXED}
_PLACE = {"run": str, "target": str}
_RUN = {
    "uuid": str,
    "suite": str,
    "profile": str,
    "specification": str,
    "started_utc": str,
    "ended_utc": str,
    "status": str,
    "verdict": str,
    "reasons": str,
    "simulated": bool,
    **DRIVE,
    "write_cache": str,
    "active_range_bytes": int,
    "host": str,
    "kernel": str,
    "cpu": str,
    "fio_version": str,
    "tkperf_version": str,
    "media_errors": int,
    "parts_left_out": int,
}
_FIGURE = {
    "test": str,
    "section": str,
    "figure": str,
    "use": str,
    "part": str,
    **WORKLOAD,
    "key": str,
    "unit": str,
    "better": str,
    "value": float,
    "low_95": float,
    "high_95": float,
    "not_ranked": str,
    "preferred": bool,
    "fills": float,
    "conditions": str,
}


def build_dataset_tables(result: RunResult, figures: RunFigures) -> Iterator[DataTable]:
    """Yield the table of the run with one row, and the table of its figures with a row for each value."""
    yield DataTable(name="runs", types={**_PLACE, **_RUN}, rows=(_build_run(result, figures),))
    yield DataTable(name="figures", types={**_PLACE, **_FIGURE}, rows=tuple(_build_figures(figures)))


def _build_run(result: RunResult, figures: RunFigures) -> Row:
    info, device = result.info, result.info.device
    return (
        info.name,
        _text(device.get("kind")),
        info.uuid,
        info.suite,
        info.profile_name,
        info.specification,
        info.started_utc,
        result.ended_utc,
        result.status.value,
        judge_run(result).state.value,
        "; ".join(describe_verdict(result).reasons),
        info.is_simulated,
        _text(device.get("model")),
        _text(device.get("serial")),
        _text(device.get("firmware")),
        _count(device.get("capacity_bytes")),
        _text(device.get("interface")),
        figures.device.get("form_factor"),
        _text(device.get("write_cache_in_run")),
        info.active_range_length_bytes,
        figures.host,
        _text(info.host.get("kernel")),
        _text(info.host.get("cpu_model")),
        info.fio_version,
        info.tkperf_version,
        result.media_errors,
        len(result.left_out),
    )


def _build_figures(figures: RunFigures) -> Iterator[Row]:
    for key, measure in MEASURES.items():
        values = sorted((value for value in figures.values if value.key == key), key=order_of)
        known = [value for value in values if value.entry.value is not None]
        for value in known:
            level = None if value.entry.uncertainty is None else value.entry.uncertainty.of_level
            yield (
                figures.name,
                _text(figures.device.get("kind")),
                value.test,
                value.section,
                key,
                _USES.get(key),
                value.part or None,
                *workload_row(value.workload),
                measure.key,
                measure.unit_in_data,
                measure.better.value,
                value.entry.value,
                level and level.low,
                level and level.high,
                _find_unranked(figures, value),
                value is known[0],
                value.fills,
                "; ".join(f"{name}={text}" for name, text in freeze_conditions(figures, value)),
            )


def _find_unranked(figures: RunFigures, value: FigureValue) -> Unranked | None:
    return value.unranked if figures.is_valid else Unranked.NOT_COMPARABLE


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _count(value: object) -> int | None:
    """Return a number that fits in the column. A run file from outside may contain any number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None
