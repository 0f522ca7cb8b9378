"""Steps and their workloads as rows of a run file and back; impossible values count as not measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import msgspec

from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.model.histogram import EMPTY
from tkperf.model.host_use import HostUse
from tkperf.model.measurement import CpuUse, IoStats, Measurement, Sample, add_all
from tkperf.model.record import StepKind, StepRecord, UnfinishedStep
from tkperf.model.strict import describe_mistake
from tkperf.model.workload import Access, ActiveRange, Arrival, BlockShare, Workload, Zone
from tkperf.runfile.columns import SIDES, decode_histogram
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

_MOST_SHARES = 64
_MOST_CHARACTERS = 4096


class _WorkloadRow(msgspec.Struct, kw_only=True):
    """A workload's columns; ``block_mix`` and ``zones`` are JSON, usually null."""

    access: Access
    read_percent: int
    block_size_bytes: int
    jobs: int
    io_depth: int
    block_mix: Annotated[str, msgspec.Meta(max_length=_MOST_CHARACTERS)] | None = None
    zones: Annotated[str, msgspec.Meta(max_length=_MOST_CHARACTERS)] | None = None
    offered_iops: Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)] | None = None
    arrival: Arrival | None = None
    compressible_percent: int | None = None
    region_offset_bytes: Count | None = None
    region_length_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None


WORKLOAD_COLUMNS = _WorkloadRow.__struct_fields__


def workload_columns(workload: Workload) -> dict[str, object]:
    """Return the values of ``WORKLOAD_COLUMNS``; null if the workload has nothing unusual."""
    region, offered = workload.region, workload.offered_iops
    return {
        "access": workload.access,
        "read_percent": workload.read_percent,
        "block_size_bytes": workload.block_size_bytes,
        "jobs": workload.jobs,
        "io_depth": workload.io_depth,
        "block_mix": json.dumps(workload.block_mix) if workload.block_mix else None,
        "zones": json.dumps(workload.zones) if workload.zones else None,
        "offered_iops": offered,
        "arrival": None if offered is None else workload.arrival,
        "compressible_percent": workload.compressible_percent,
        "region_offset_bytes": region and region.offset_bytes,
        "region_length_bytes": region and region.length_bytes,
    }


def parse_workload(table: str, columns: Mapping[str, Any]) -> Workload:
    """Return the workload of a row.

    Raises:
        ValueError: a column has an impossible value; the text names the table and the column.
    """
    try:
        row = msgspec.convert(columns, _WorkloadRow)
        return Workload(
            access=row.access,
            read_percent=row.read_percent,
            block_size_bytes=row.block_size_bytes,
            jobs=row.jobs,
            io_depth=row.io_depth,
            block_mix=_shares(row.block_mix, BlockShare),
            zones=_shares(row.zones, Zone),
            offered_iops=row.offered_iops,
            arrival=row.arrival or Arrival.LINEAR,
            compressible_percent=row.compressible_percent,
            region=_region(row),
        )
    except msgspec.ValidationError as error:
        raise ValueError(
            f"table {table}{describe_mistake(error, _WorkloadRow, columns)}"
        ) from error


def _shares(text: str | None, type_: type[BlockShare | Zone]) -> tuple[Any, ...]:
    if text is None:
        return ()
    shares = msgspec.json.decode(text, type=list[tuple[Count, Count]])
    if not 0 < len(shares) <= _MOST_SHARES:
        raise ValueError(f"{len(shares)} shares")
    return tuple(type_(*share) for share in shares)


def _region(row: _WorkloadRow) -> ActiveRange | None:
    if row.region_length_bytes is None:
        return None
    return ActiveRange(
        offset_bytes=row.region_offset_bytes or 0, length_bytes=row.region_length_bytes
    )


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
    """A row for the step that has not ended."""

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
    """Return the columns of table step that may be NULL, with their types."""
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
# The columns of table step that ``parse_step`` reads: not its seconds, which are most of a file.
STEP_COLUMNS = (
    "sequence",
    "test_id",
    "job_id",
    *(name for name in _StepRow.__struct_fields__ if name != "job_file"),
    *WORKLOAD_COLUMNS,
    *_FlagsRow.__struct_fields__,
    *_SeenRow.__struct_fields__,
    *(f"{side}_{name}" for side in SIDES for name in (*_SideRow.__struct_fields__, "histogram")),
    "host_use",
)


def parse_step(columns: Columns) -> tuple[StepRecord, dict[str, str]]:
    """Return a step from its row and the text of its job, and the columns that count as not measured.

    These columns may be NULL and have an impossible value; each has the reason.

    Raises:
        ValueError: a column that must not be NULL has an impossible value.
    """
    unread: dict[str, str] = {}
    try:
        return _parse_step(columns, unread), unread
    except ValueError:
        mended, unread = _mend(columns)
        return _parse_step(mended, unread), unread


def _mend(columns: Columns) -> tuple[Columns, dict[str, str]]:
    """Return the row without impossible values in columns that may be NULL, and the reason for each."""
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
    """Return the known values as JSON."""
    facts = msgspec.to_builtins(use)
    known = {name: value for name, value in facts.items() if value is not None}
    return msgspec.json.encode(known).decode()


def _host_use(text: object, unread: dict[str, str]) -> HostUse | None:
    """Return the host's activity; None also if it cannot be read: the step is valid without it."""
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
    """Return the step under way from its row and its kept seconds."""
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
