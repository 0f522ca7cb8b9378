"""Rows of a run file as records. Strict, as a file may be damaged or edited by hand.

What cannot be is refused here, for the reader and, before it is written, for the writer: so no
reader of a record needs to expect it. A value that may also be unknown is then not known; without
any other its row is none.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec

from tkperf.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.figures import TestPlan
from tkperf.histogram import EMPTY
from tkperf.host_use import HostUse
from tkperf.measurement import CpuUse, IoStats, Measurement, Sample
from tkperf.phases import SectionOutcome
from tkperf.record import (
    PurgeRecord,
    Resumption,
    RunNote,
    RunStatus,
    RunWarning,
    StepKind,
    StepRecord,
    UnfinishedStep,
    VerdictRecord,
)
from tkperf.run_info import RunInfo
from tkperf.runfile.encoding import decode_histogram
from tkperf.runfile.workload_columns import parse_workload
from tkperf.steady_state import SteadyStateVerdict
from tkperf.strict import describe_mistake
from tkperf.telemetry.reading import Reading

T = TypeVar("T")
Columns = Mapping[str, Any]

# msgspec has no "finite".
_MOST = sys.float_info.max
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(ge=1)]
Flag = Annotated[int, msgspec.Meta(ge=0, le=1)]
Moment = Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
Length = Annotated[float, msgspec.Meta(gt=0, le=_MOST)]

# Facts are nested no deeper than profile.own_workload.phases[0].tracked[0].at.io_depth.
_DEEPEST = 7


def _nested(levels: int) -> Any:
    """Plain data, lists and tables in each other so many times."""
    scalar: Any = str | bool | int | float | None
    if not levels:
        return scalar
    inner: Any = _nested(levels - 1)
    return scalar | list.__class_getitem__(inner) | dict.__class_getitem__((str, inner))


_Fact = _nested(_DEEPEST)


class _Drive(msgspec.Struct):
    capacity_bytes: Count | None = None


class _Device(_Drive):
    members: tuple[_Drive, ...] | None = None


class _Facts(msgspec.Struct):
    """The facts that something is computed from."""

    device: _Device
    active_range_offset_bytes: Count | None
    active_range_length_bytes: Number | None


class RunEnd(msgspec.Struct, frozen=True):
    """How the run ended, among its facts."""

    status: RunStatus
    ended_utc: str | None
    ended_because: str | None


# Columns of table resumption that hold a list.
_LISTS = ("repeated", "repeated_ids", "added", "changes", "command_line")
_TABLES = ("profile", "options", "device")
_FACTS = get_type_hints(RunInfo)
_FACT_CHECKS = {
    key: [
        msgspec.defstruct(key, [(key, check)])
        for check in (_Fact, type_, get_type_hints(_Facts, include_extras=True).get(key))
        if check is not None
    ]
    for key, type_ in _FACTS.items()
}
# For what a file does not tell. A run has a device: one without may also be an imported one.
_NOT_KNOWN: dict[str, Any] = {
    "suite": "not known",
    "tkperf_version": "not known",
    "fio_version": None,
    "ioengine": "not known",
    "command_line": (),
    "started_utc": None,
    "profile_name": "not known",
    "profile": {},
    "options": {},
    "device": {},
    "hosts": (),
    "active_range_offset_bytes": None,
    "active_range_length_bytes": None,
}  # fmt: skip


class TestRow(msgspec.Struct, frozen=True):
    """A row of table test; its plan is JSON."""

    __test__ = False

    name: str
    status: RunStatus
    started_s: Moment
    ended_s: Moment | None
    plan: str | None


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


class _StepRow(msgspec.Struct):
    section: str
    kind: StepKind
    number: Number
    position: Count
    planned_s: Amount | None
    started_s: Moment
    gap_s: Moment | None
    foreign_read_bytes: Count | None
    foreign_write_bytes: Count | None
    job_file: str


class _FlagsRow(msgspec.Struct):
    planned_pause: Flag
    watched: Flag | None


class _DisturbanceRow(msgspec.Struct):
    code: DisturbanceCode
    text: str
    started_s: Moment
    duration_s: Amount
    share: Moment | None


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


class _UnderWayRow(msgspec.Struct):
    section: str
    kind: StepKind
    number: Number
    position: Count
    planned_s: Amount | None
    planned_bytes: Count | None
    started_s: Moment


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


def parse_facts(facts: Mapping[str, Any], *, name: str) -> tuple[RunInfo, dict[str, str]]:
    """The facts of a run that can be read, and of each that cannot why not.

    Args:
        name: of the run, where that is not known.
    """
    readable: dict[str, Any] = dict(_NOT_KNOWN, name=name)
    unread: dict[str, str] = {}
    for key, type_ in _FACTS.items():
        if key not in facts:
            if key in readable:
                unread[key] = "it is missing"
            continue
        value, reasons = mend_fact(key, facts[key])
        unread.update(reasons)
        if key in reasons:
            continue
        readable[key] = msgspec.convert(value, type_)
    return RunInfo(**readable), unread


def mend_fact(key: str, value: object) -> tuple[Any, dict[str, str]]:
    """A fact of RunInfo without what is impossible in it, and why that is."""
    reasons: dict[str, str] = {}
    # A bad entry of a device, host or profile does not take the others with it.
    if isinstance(value, dict) and key in _TABLES:
        return _mend_table(key, value, lambda entry: _why_not(key, entry))
    if key == "hosts" and isinstance(value, list) and all(isinstance(one, dict) for one in value):
        mended = [
            _mend_table(f"{key}[{index}]", one, lambda entry: _why_not(key, [entry]))
            for index, one in enumerate(value)
        ]
        for _, why in mended:
            reasons.update(why)
        value = [one for one, _ in mended]
    elif reason := _why_not(key, value):
        reasons[key] = reason
    return value, reasons


def _mend_table(
    name: str, table: dict[str, Any], why_not: Callable[[dict[str, Any]], str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """A table without its impossible entries, and why these are."""
    reasons = {key: why_not({key: value}) for key, value in table.items()}
    return (
        {key: value for key, value in table.items() if not reasons[key]},
        {f"{name}.{key}": reason for key, reason in reasons.items() if reason},
    )


def _why_not(key: str, value: object) -> str:
    for type_ in _FACT_CHECKS[key]:
        try:
            convert("run", {key: value}, type_)
        except (ValueError, RecursionError) as error:
            return str(error)
    return ""


def parse_test(columns: Columns) -> tuple[TestRow, dict[str, str]]:
    """A test of what can be read of it, and why the rest cannot be.

    Raises:
        ValueError: not even its name.
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
            type_ = get_type_hints(TestRow, include_extras=True)[key]
            convert("test", {key: mended[key]}, msgspec.defstruct(key, [(key, type_)]))
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
    """NaN again where JSON says null and the verdict must have a number."""
    numbers = ("average", "data_excursion", "allowed_data_excursion", "allowed_slope_excursion")
    for holder, keys in ((verdict, numbers), (verdict["fit"] or {}, ("slope", "intercept"))):
        for key in keys:
            if key in holder and holder[key] is None:
                holder[key] = math.nan
    verdict["values"] = [math.nan if value is None else value for value in verdict["values"]]
    return verdict


def _optional_columns() -> dict[str, Any]:
    """Columns of table step that may be NULL, with their types."""
    columns = {}
    for prefix, struct in (
        ("", _StepRow),
        ("", _FlagsRow),
        ("", _SeenRow),
        ("read_", _SideRow),
        ("write_", _SideRow),
    ):
        for name, type_ in get_type_hints(struct, include_extras=True).items():
            if NoneType in get_args(type_):
                columns[prefix + name] = type_
    return columns


_OPTIONAL = _optional_columns()


def parse_step(columns: Columns) -> tuple[StepRecord, dict[str, str]]:
    """A step from its row and the text of its job, and what of it was not measured then.

    That are columns that may be NULL and hold what cannot be, with what is wrong with them.

    Raises:
        ValueError: a column that must not be NULL holds what cannot be.
    """
    mended, unread = dict(columns), dict[str, str]()
    for name, type_ in _OPTIONAL.items():
        try:
            msgspec.convert(mended[name], type_)
        except msgspec.ValidationError as error:
            mended[name], unread[name] = None, f"{str(columns[name])[:30]}: {error}"
    flags = convert("step", mended, _FlagsRow)
    record = StepRecord(
        **msgspec.structs.asdict(convert("step", mended, _StepRow)),
        planned_pause=bool(flags.planned_pause),
        disturbances=() if flags.watched else None,
        workload=parse_workload("step", mended),
        measurement=_measurement(mended, unread),
        host=_host_use(columns["host_use"], unread),
    )
    return record, unread


def render_host_use(use: HostUse) -> str:
    """What is known of it, as JSON."""
    facts = msgspec.to_builtins(use)
    known = {name: value for name, value in facts.items() if value is not None}
    return msgspec.json.encode(known).decode()


def _host_use(text: object, unread: dict[str, str]) -> HostUse | None:
    """None also of what cannot be read: the step is what it is without it."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(str(text), type=HostUse)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        unread["host_use"] = f"{str(text)[:30]}: {error}"
        return None


def parse_disturbance(columns: Columns) -> Disturbance:
    row = convert("disturbance", columns, _DisturbanceRow)
    return Disturbance(**msgspec.structs.asdict(row))


def _measurement(columns: Columns, unread: dict[str, str]) -> Measurement:
    row = convert("step", columns, _SeenRow)
    busiest, all_ = row.cpu_busiest_thread_percent, row.cpu_all_threads_percent
    cpu = None
    if busiest is not None and all_ is not None:
        cpu = CpuUse(busiest_thread_percent=busiest, all_threads_percent=all_)
    return Measurement(
        duration_s=row.duration_s,
        read=_stats(columns, "read", unread),
        write=_stats(columns, "write", unread),
        cpu=cpu,
        host_limited=bool(row.host_limited),
        rates_known=bool(row.rates_known),
    )


def _stats(columns: Columns, side: str, unread: dict[str, str]) -> IoStats:
    own = {name: columns[f"{side}_{name}"] for name in _SideRow.__struct_fields__}
    row = convert(f"step, {side}", own, _SideRow)
    name = f"{side}_histogram"
    try:
        histogram = decode_histogram(columns[name])
    except BAD_ROW as error:
        histogram, unread[name] = EMPTY, str(error)
    return IoStats(**msgspec.structs.asdict(row), histogram=histogram)


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


def parse_under_way(columns: Columns, samples: Sequence[Sample]) -> UnfinishedStep:
    """The step under way from its row and the seconds that were kept of it."""
    row = convert("under_way", columns, _UnderWayRow)
    last = samples[-1]
    return UnfinishedStep(
        **msgspec.structs.asdict(row),
        workload=parse_workload("under_way", columns),
        measured_so_far=Measurement(
            duration_s=last.start_s + last.duration_s,
            read=reduce(add, (sample.read for sample in samples)),
            write=reduce(add, (sample.write for sample in samples)),
        ),
    )


# What damaged bytes lead to before anything notices: wrong types, numbers, names, lengths, depths.
BAD_ROW = (ValueError, LookupError, TypeError, ArithmeticError, MemoryError, RecursionError)

# For the writer: each raises where no reader would take a row, and returns what is to be NULL.
CHECKS: dict[str, Callable[[Columns], dict[str, str]]] = {
    "step": lambda row: parse_step(row)[1],
    "purge": lambda row: _no_more(parse_purge(row)),
    "verdict": lambda row: _no_more(parse_verdict(row)),
    "outcome": lambda row: _no_more(parse_outcome(row)),
    "warning": lambda row: _no_more(convert("warning", row, RunWarning)),
    "resumption": lambda row: _no_more(parse_resumption(row)),
    "telemetry": lambda row: _no_more(parse_reading(row)),
    "note": lambda row: _no_more(convert("note", row, RunNote)),
    "under_way": lambda row: _no_more(convert("under_way", row, _UnderWayRow)),
}


def _no_more(_: object) -> dict[str, str]:
    return {}
