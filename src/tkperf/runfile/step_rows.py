"""Steps from the rows of a run file, and what of each was not measured because it cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from tkperf.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.histogram import EMPTY
from tkperf.host_use import HostUse
from tkperf.measurement import CpuUse, IoStats, Measurement, Sample, add_all
from tkperf.record import StepKind, StepRecord, UnfinishedStep
from tkperf.runfile.encoding import decode_histogram
from tkperf.runfile.values import (
    BAD_ROW,
    Amount,
    Columns,
    Count,
    Flag,
    Length,
    Moment,
    Number,
    convert,
)
from tkperf.runfile.workload_columns import WORKLOAD_COLUMNS, parse_workload
from tkperf.strict import describe_mistake


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


class UnderWayRow(msgspec.Struct):
    """The step that has not ended."""

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
_SIDES = ("read", "write")
# Of table step what ``parse_step`` looks at: not its seconds, which are most of a file.
STEP_COLUMNS = (
    "sequence",
    "test_id",
    *(name for name in _StepRow.__struct_fields__ if name != "job_file"),
    *WORKLOAD_COLUMNS,
    *_FlagsRow.__struct_fields__,
    *_SeenRow.__struct_fields__,
    *(f"{side}_{name}" for side in _SIDES for name in (*_SideRow.__struct_fields__, "histogram")),
    "host_use",
)


def parse_step(columns: Columns) -> tuple[StepRecord, dict[str, str]]:
    """A step from its row and the text of its job, and what of it was not measured then.

    That are columns that may be NULL and hold what cannot be, with what is wrong with them.

    Raises:
        ValueError: a column that must not be NULL holds what cannot be.
    """
    unread: dict[str, str] = {}
    try:
        return _parse_step(columns, unread), unread
    except ValueError:
        mended, unread = _mend(columns)
        return _parse_step(mended, unread), unread


def _mend(columns: Columns) -> tuple[Columns, dict[str, str]]:
    """The row without what cannot be in columns that may be NULL, and what was wrong with each of these."""
    mended, unread = dict(columns), dict[str, str]()
    for name, type_ in _OPTIONAL.items():
        try:
            msgspec.convert(mended[name], type_)
        except msgspec.ValidationError as error:
            mended[name], unread[name] = (
                None,
                describe_mistake(error, type_, columns[name]).removeprefix(": "),
            )
    return mended, unread


def _parse_step(columns: Columns, unread: dict[str, str]) -> StepRecord:
    flags = convert("step", columns, _FlagsRow)
    return StepRecord(
        **msgspec.structs.asdict(convert("step", columns, _StepRow)),
        planned_pause=bool(flags.planned_pause),
        disturbances=() if flags.watched else None,
        workload=parse_workload("step", columns),
        measurement=_measurement(columns, unread),
        host=_host_use(columns["host_use"], unread),
    )


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


def parse_under_way(columns: Columns, samples: Sequence[Sample]) -> UnfinishedStep:
    """The step under way from its row and the seconds that were kept of it."""
    row = convert("under_way", columns, UnderWayRow)
    last = samples[-1]
    return UnfinishedStep(
        **msgspec.structs.asdict(row),
        workload=parse_workload("under_way", columns),
        measured_so_far=Measurement(
            duration_s=last.start_s + last.duration_s,
            read=add_all(sample.read for sample in samples),
            write=add_all(sample.write for sample in samples),
        ),
    )
