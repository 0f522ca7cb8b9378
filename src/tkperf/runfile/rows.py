"""Rows of a run file as records. Strict, as a file may be damaged or edited by hand.

What tkperf never writes is refused here, so that no reader of a record needs to expect it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from tkperf.measurement import CpuUse, IoStats, Measurement
from tkperf.phases import Outcome
from tkperf.record import (
    PurgeRecord,
    RunInfo,
    RunStatus,
    StepKind,
    StepRecord,
    VerdictRecord,
)
from tkperf.runfile.encoding import decode_histogram
from tkperf.steady_state import SteadyStateVerdict
from tkperf.strict import describe_mistake
from tkperf.workload import Workload

T = TypeVar("T")
Columns = Mapping[str, Any]

# msgspec has no "finite".
_MOST = sys.float_info.max
Count = Annotated[int, msgspec.Meta(ge=0)]
Number = Annotated[int, msgspec.Meta(ge=1)]
Flag = Annotated[int, msgspec.Meta(ge=0, le=1)]
Moment = Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
Length = Annotated[float, msgspec.Meta(gt=0, le=_MOST)]

# Facts are nested no deeper than device.members[0].sources.model.
_Scalar = str | bool | int | float | None
_Values = _Scalar | list[_Scalar] | dict[str, _Scalar]
_Record = _Scalar | list[_Values] | dict[str, _Values]
_Records = _Scalar | list[_Record] | dict[str, _Record]
_Fact = _Scalar | list[_Records] | dict[str, _Records]


class _Drive(msgspec.Struct):
    capacity_bytes: Count | None = None


class _Device(_Drive):
    members: tuple[_Drive, ...] | None = None


class _HardDisk(msgspec.Struct):
    areas: Number | None = None


class _Profile(msgspec.Struct):
    hard_disk: _HardDisk | None = None


class _Facts(msgspec.Struct):
    """The facts that something is computed from."""

    device: _Device
    profile: _Profile
    active_range_offset_bytes: Count | None
    active_range_length_bytes: Number | None


class RunEnd(msgspec.Struct, frozen=True):
    """How the run ended, among its facts."""

    status: RunStatus
    ended_utc: str | None
    ended_because: str | None


class TestRow(msgspec.Struct, frozen=True):
    """A row of table test; its outcome is JSON."""

    __test__ = False

    name: str
    status: RunStatus
    started_s: Moment
    ended_s: Moment | None
    outcome: str | None


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


class _StepRow(msgspec.Struct):
    section: str
    kind: StepKind
    number: Number
    position: Count
    planned_s: Amount | None
    started_s: Moment
    gap_s: Moment | None
    job_file: str


class _SeenRow(msgspec.Struct):
    duration_s: Length
    cpu_busiest_thread_percent: Amount | None
    cpu_all_threads_percent: Amount | None
    host_limited: Flag
    rates_known: Flag


class _SideRow(msgspec.Struct):
    ios: Count
    bytes: Count
    latency_ios: Count
    latency_sum_ns: Count
    latency_min_ns: Count | None
    latency_max_ns: Count | None


def convert(table: str, value: object, type_: type[T]) -> T:
    """A row, or what its JSON holds, as a record.

    Raises:
        ValueError: not of that type; names the table and the key.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ValueError(f"table {table}{describe_mistake(error)}") from error


def parse_facts(facts: dict[str, Any]) -> RunInfo:
    """Raises ValueError, as all functions here, when they cannot be those of a run."""
    convert("run", facts, dict[str, _Fact])
    convert("run", facts, _Facts)
    return convert("run", facts, RunInfo)


def parse_test(columns: Columns) -> TestRow:
    test = convert("test", columns, TestRow)
    if test.ended_s is not None and test.ended_s < test.started_s:
        raise ValueError(f"test {test.name} ends before it starts")
    return test


def parse_purge(columns: Columns) -> PurgeRecord:
    return PurgeRecord(**msgspec.structs.asdict(convert("purge", columns, _PurgeRow)))


def parse_outcome(text: str) -> Outcome:
    data = json.loads(text)
    for section in data["sections"]:
        if section["verdict"] is not None:
            section["verdict"] = _with_nan(section["verdict"])
    return convert("test", data, Outcome)


def parse_verdict(columns: Columns) -> VerdictRecord:
    row = convert("verdict", columns, _VerdictRow)
    verdict = convert("verdict", _with_nan(json.loads(row.verdict)), SteadyStateVerdict)
    return VerdictRecord(section=row.section, number=row.number, verdict=verdict)


def _with_nan(verdict: dict[str, Any]) -> dict[str, Any]:
    """NaN again where JSON says null and the verdict must have a number."""
    numbers = ("average", "data_excursion", "allowed_data_excursion", "allowed_slope_excursion")
    for holder, keys in ((verdict, numbers), (verdict["fit"] or {}, ("slope", "intercept"))):
        for key in keys:
            if key in holder and holder[key] is None:
                holder[key] = math.nan
    verdict["values"] = [math.nan if value is None else value for value in verdict["values"]]
    return verdict


def parse_step(columns: Columns) -> StepRecord:
    """A step from its row and the text of its job."""
    return StepRecord(
        **msgspec.structs.asdict(convert("step", columns, _StepRow)),
        workload=convert("step", columns, Workload),
        measurement=_measurement(columns),
    )


def _measurement(columns: Columns) -> Measurement:
    row = convert("step", columns, _SeenRow)
    busiest, all_ = row.cpu_busiest_thread_percent, row.cpu_all_threads_percent
    cpu = None
    if busiest is not None and all_ is not None:
        cpu = CpuUse(busiest_thread_percent=busiest, all_threads_percent=all_)
    return Measurement(
        duration_s=row.duration_s,
        read=_stats(columns, "read"),
        write=_stats(columns, "write"),
        cpu=cpu,
        host_limited=bool(row.host_limited),
        rates_known=bool(row.rates_known),
    )


def _stats(columns: Columns, side: str) -> IoStats:
    own = {name: columns[f"{side}_{name}"] for name in _SideRow.__struct_fields__}
    row = convert(f"step, {side}", own, _SideRow)
    histogram = decode_histogram(columns[f"{side}_histogram"])
    return IoStats(**msgspec.structs.asdict(row), histogram=histogram)
