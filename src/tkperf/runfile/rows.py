"""Rows of a run file as records. The checks are strict, because a file may be damaged or edited by hand.

Impossible values are refused here, for the reader and, before writing, for the writer: so no
reader of a record needs to expect them. If the value may also be unknown, it is then unknown; otherwise
the row is refused. Steps are in ``step_rows.py``, the facts of a run in ``facts.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from tkperf.model.figures import TestPlan
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import (
    PurgeRecord,
    Resumption,
    RunNote,
    RunStatus,
    RunWarning,
    VerdictRecord,
)
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.telemetry.reading import Reading
from tkperf.runfile.step_rows import UnderWayRow, parse_step
from tkperf.runfile.values import Amount, Columns, Count, Flag, Moment, Number, convert

# Columns of table resumption that hold a list.
_LISTS = ("repeated", "repeated_ids", "added", "changes", "command_line")


class TestRow(msgspec.Struct, frozen=True):
    """A row of table test; its plan is JSON."""

    __test__ = False

    name: str
    status: RunStatus
    started_s: Moment
    ended_s: Moment | None
    plan: str | None


# Each column alone.
_TEST_COLUMNS = {
    key: msgspec.defstruct(key, [(key, type_)])
    for key, type_ in get_type_hints(TestRow, include_extras=True).items()
}


class _PurgeRow(msgspec.Struct):
    section: str
    started_s: Moment
    duration_s: Amount
    method: str
    note: str | None


class _VerdictRow(msgspec.Struct):
    section: str
    number: Number
    verdict: str


class _OutcomeRow(msgspec.Struct):
    section: str
    outcome: str


class _TelemetryRow(msgspec.Struct):
    at_s: Moment
    drive: str
    source: str
    temperature_c: Moment | None
    host_read_bytes: Count | None
    host_written_bytes: Count | None
    nand_written_bytes: Count | None
    media_errors: Count | None
    percentage_used: Count | None
    spare_percent: Count | None
    unsafe_shutdowns: Count | None
    power_on_hours: Count | None
    critical_warning: Count | None
    warning_minutes: Count | None
    critical_minutes: Count | None
    thermal_1_count: Count | None
    thermal_2_count: Count | None
    thermal_1_s: Count | None
    thermal_2_s: Count | None
    throttle_events: Count | None
    throttling: Flag | None
    power_state: Count | None


def parse_test(columns: Columns) -> tuple[TestRow, dict[str, str]]:
    """Return a test with all readable values, and the reasons for the others.

    Raises:
        ValueError: not even its name is readable.
    """
    mended, unread = dict(columns), dict[str, str]()
    stand_ins = {
        "status": RunStatus.INTERRUPTED,
        "started_s": 0.0,
        "ended_s": None,
        "plan": None,
    }
    for key, stand_in in stand_ins.items():
        try:
            convert("test", {key: mended[key]}, _TEST_COLUMNS[key])
        except ValueError as error:
            mended[key], unread[key] = stand_in, str(error)
    test = convert("test", mended, TestRow)
    if test.ended_s is not None and test.ended_s < test.started_s:
        unread["ended_s"] = f"test {test.name} ends before it starts"
        test = msgspec.structs.replace(test, ended_s=None)
    return test, unread


def parse_purge(columns: Columns) -> PurgeRecord:
    return PurgeRecord(**msgspec.structs.asdict(convert("purge", columns, _PurgeRow)))


def parse_outcome(columns: Columns) -> SectionOutcome:
    row = convert("outcome", columns, _OutcomeRow)
    data = json.loads(row.outcome)
    for verdict in (data["verdict"], *data.get("verdicts", ())):
        if verdict is not None:
            _with_nan(verdict)
    outcome = convert("outcome", data, SectionOutcome)
    if outcome.section != row.section:
        raise ValueError(f"table outcome: it is of {outcome.section}")
    return outcome


def parse_plan(text: str) -> TestPlan:
    return convert("test", json.loads(text), TestPlan)


def parse_verdict(columns: Columns) -> VerdictRecord:
    row = convert("verdict", columns, _VerdictRow)
    verdict = convert("verdict", _with_nan(json.loads(row.verdict)), SteadyStateVerdict)
    return VerdictRecord(section=row.section, number=row.number, verdict=verdict)


def _with_nan(verdict: dict[str, Any]) -> dict[str, Any]:
    """Restore NaN for each null in JSON if the verdict must have a number."""
    numbers = ("average", "data_excursion", "allowed_data_excursion", "allowed_slope_excursion")
    for holder, keys in ((verdict, numbers), (verdict["fit"] or {}, ("slope", "intercept"))):
        for key in keys:
            if key in holder and holder[key] is None:
                holder[key] = math.nan
    verdict["values"] = [math.nan if value is None else value for value in verdict["values"]]
    return verdict


def parse_resumption(columns: Columns) -> Resumption:
    lists = {key: json.loads(columns[key]) for key in _LISTS}
    resumption = convert("resumption", {**columns, **lists}, Resumption)
    for name in ("stopped_s", "resumed_s"):
        if not math.isfinite(getattr(resumption, name)):
            raise ValueError(f"table resumption, {name}: it is no time")
    return resumption


def parse_reading(columns: Columns) -> Reading:
    row = msgspec.structs.asdict(convert("telemetry", columns, _TelemetryRow))
    throttling = row.pop("throttling")
    return Reading(**row, throttling=None if throttling is None else bool(throttling))


# For the writer: each raises if no reader would accept the row, and returns the columns to set to NULL.
CHECKS: dict[str, Callable[[Columns], dict[str, str]]] = {
    "step": lambda row: parse_step(row)[1],
    "purge": lambda row: _no_more(parse_purge(row)),
    "verdict": lambda row: _no_more(parse_verdict(row)),
    "outcome": lambda row: _no_more(parse_outcome(row)),
    "warning": lambda row: _no_more(convert("warning", row, RunWarning)),
    "resumption": lambda row: _no_more(parse_resumption(row)),
    "telemetry": lambda row: _no_more(parse_reading(row)),
    "note": lambda row: _no_more(convert("note", row, RunNote)),
    "under_way": lambda row: _no_more(convert("under_way", row, UnderWayRow)),
}


def _no_more(_: object) -> dict[str, str]:
    return {}
