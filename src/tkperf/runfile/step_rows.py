"""The conversion of steps, workloads and streams to the rows of a run file and back. Impossible values are read as not
measured.

A row of a stream contains the load of the stream, its I/Os, flushes and trims, and its seconds. If a step has a single
load that only reads and writes, the step has no such row, because the row of the step then describes the whole load.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any, get_args

import msgspec

from tkperf.model.decoding import decode_json
from tkperf.model.disturbance.io import Disturbance
from tkperf.model.histogram import EMPTY, IntArray
from tkperf.model.host_use import HostUse
from tkperf.model.measurement import (
    NO_IO,
    CpuUse,
    IoStats,
    Measurement,
    Sample,
    Seconds,
    StreamPart,
    add_all,
    add_parts,
)
from tkperf.model.record import StepRecord, UnfinishedStep
from tkperf.model.units import on_one_line
from tkperf.model.workload import (
    Access,
    ActiveRange,
    Arrival,
    BlockShare,
    Burst,
    PartKey,
    Stream,
    Workload,
    Zone,
    combine,
    name_section,
)
from tkperf.runfile.columns import (
    DIRECTIONS,
    STREAM_SIDES,
    SecondsTotal,
    as_seconds,
    decode_histogram,
    decode_stream_seconds,
    decode_stream_sides,
    encode_histogram,
    encode_stream_seconds,
)
from tkperf.runfile.row_records import (
    BAD_ROW,
    Columns,
    Count,
    Flag,
    NonNegative,
    PlainFields,
    Positive,
    PositiveCount,
    convert,
    mend,
)
from tkperf.runner.events import StepStarted

_MOST_SHARES = 64
_SharesText = Annotated[str, msgspec.Meta(max_length=4096)]

_DISTURBANCE = PlainFields("disturbance", Disturbance, duration_s=NonNegative)
_PLACE: dict[str, Any] = {"number": Count, "planned_s": NonNegative | None}
_STEP = PlainFields(
    "step",
    StepRecord,
    but=("workload", "measurement", "engine_output", "disturbances", "host"),
    watched=Flag | None,
    **_PLACE,
)
_UNDER_WAY = PlainFields("under_way", UnfinishedStep, but=("workload", "measured_so_far"), **_PLACE)
_MEASURED = PlainFields(
    "step",
    Measurement,
    but=("read", "write", "trim", "flush", "streams", "samples", "cpu", "disturbed_by"),
    duration_s=Positive,
    cpu_busiest_thread_percent=NonNegative | None,
    cpu_all_threads_percent=NonNegative | None,
)
_SIDES = {side: PlainFields(f"step, {side}", IoStats, but=("histogram",), prefix=f"{side}_") for side in DIRECTIONS}


class _WorkloadRow(msgspec.Struct, kw_only=True):
    """The columns of a workload. ``block_mix`` and ``zones`` contain JSON, and are usually null."""

    access: Access
    read_percent: int
    block_size_bytes: int
    jobs: int
    io_depth: int
    block_mix: _SharesText | None = None
    zones: _SharesText | None = None
    offered_iops: Positive | None = None
    arrival: Arrival | None = None
    compressible_percent: int | None = None
    region_offset_bytes: Count | None = None
    region_length_bytes: PositiveCount | None = None


WORKLOAD_COLUMNS = _WorkloadRow.__struct_fields__
HISTOGRAM_COLUMNS = tuple(f"{side}_histogram" for side in DIRECTIONS)
# The columns of table step that ``parse_step`` reads. They do not include the seconds, which are the largest part of a
# file.
STEP_COLUMNS = (
    "sequence",
    "test_id",
    "job_id",
    *(name for name in _STEP.types if name != "job_file"),
    *WORKLOAD_COLUMNS,
    "streams",
    *_MEASURED.types,
    *(name for side in _SIDES.values() for name in side.types),
    *HISTOGRAM_COLUMNS,
    "host_use",
)
# The columns that may be NULL, with their types.
_OPTIONAL = {
    name: type_
    for fields in (_STEP, _MEASURED, *_SIDES.values())
    for name, type_ in fields.types.items()
    if type(None) in get_args(type_)
}


def parse_disturbance(columns: Columns) -> Disturbance:
    return Disturbance(**_DISTURBANCE.parse(columns))


def workload_columns(workload: Workload) -> Columns:
    """Return the columns of a workload. Columns that the workload does not use are null."""
    region, offered = workload.region, workload.offered_iops
    return {
        **{name: getattr(workload, name, None) for name in _WorkloadRow.__struct_fields__},
        "block_mix": json.dumps(workload.block_mix) if workload.block_mix else None,
        "zones": json.dumps(workload.zones) if workload.zones else None,
        "arrival": None if offered is None else workload.arrival,
        "region_offset_bytes": region and region.offset_bytes,
        "region_length_bytes": region and region.length_bytes,
    }


def parse_workload(table: str, columns: Columns) -> Workload:
    """Return the workload that a row contains."""
    return _parse_workload(table, *map(columns.get, _WorkloadRow.__struct_fields__))


# A run repeats a few workloads thousands of times, so the results are cached. The cache distinguishes types, because
# 1.0 equals 1 but is not a valid queue depth.
@lru_cache(maxsize=1024, typed=True)
def _parse_workload(table: str, *values: object) -> Workload:
    columns = dict(zip(_WorkloadRow.__struct_fields__, values, strict=True))
    row = msgspec.structs.asdict(convert(table, columns, _WorkloadRow))
    offset_bytes, length_bytes = row.pop("region_offset_bytes"), row.pop("region_length_bytes")
    row["block_mix"] = _parse_shares(row["block_mix"], BlockShare)
    row["zones"] = _parse_shares(row["zones"], Zone)
    row["arrival"] = row["arrival"] or Arrival.LINEAR
    if length_bytes is not None:
        row["region"] = ActiveRange(offset_bytes=offset_bytes or 0, length_bytes=length_bytes)
    return Workload(**row)


def _parse_shares(text: str | None, type_: type[BlockShare | Zone]) -> tuple[Any, ...]:
    if text is None:
        return ()
    shares = decode_json(text, list[tuple[Count, Count]])
    if not 0 < len(shares) <= _MOST_SHARES:
        raise ValueError(f"{len(shares)} shares")
    return tuple(type_(*share) for share in shares)


def step_name(test: str, step: StepRecord) -> str:
    return (
        f"step {step.position + 1} of {step.kind.value} {step.number} of {test}, {step.section} "
        f"({step.workload.mix_and_size})"
    )


def step_columns(step: StepRecord) -> Columns:
    """Return a step as a row, with the text of its job in ``job_file``. The row contains neither the seconds nor the
    disturbances nor the output of fio.
    """
    measured, cpu = step.measurement, step.measurement.cpu
    row = {
        **_STEP.columns(step),
        **workload_columns(step.workload),
        **_MEASURED.columns(measured),
        "watched": None if step.disturbances is None else 1,
        "cpu_busiest_thread_percent": cpu and cpu.busiest_thread_percent,
        "cpu_all_threads_percent": cpu and cpu.all_threads_percent,
        "host_use": None if step.host is None else render_host_use(step.host),
        "streams": count_streams(step.workload),
    }
    for side, stats in zip(DIRECTIONS, (measured.read, measured.write), strict=True):
        row |= _SIDES[side].columns(stats)
        row[f"{side}_histogram"] = encode_histogram(stats.histogram)
    return row


def count_streams(workload: Workload) -> int | None:
    """Return how many rows of table stream a step has. None means that the row of the step describes the whole load."""
    return None if workload.is_plain else len(workload.streams)


def parse_step(columns: Columns) -> tuple[StepRecord, dict[str, str]]:
    """Return the step that a row and the text of its job describe. Also return the columns that count as not
    measured.

    The second result contains each column that may be NULL and has an impossible value, with the reason.
    """
    unread: dict[str, str] = {}
    try:
        return _parse_step(columns, unread), unread
    except ValueError:
        mended, reasons = mend(columns, _OPTIONAL, {})
        unread = {name: reason.removeprefix(": ") for name, reason in reasons.items()}
        return _parse_step(mended, unread), unread


def _parse_step(columns: Columns, unread: dict[str, str]) -> StepRecord:
    step, measured = _STEP.parse(columns), _MEASURED.parse(columns)
    watched = step.pop("watched")
    busiest = measured.pop("cpu_busiest_thread_percent")
    all_ = measured.pop("cpu_all_threads_percent")
    cpu = None
    if busiest is not None and all_ is not None:
        cpu = CpuUse(busiest_thread_percent=busiest, all_threads_percent=all_)
    return StepRecord(
        **step,
        disturbances=() if watched else None,
        workload=parse_workload("step", columns),
        measurement=Measurement(
            **measured,
            read=_parse_stats(columns, "read", unread),
            write=_parse_stats(columns, "write", unread),
            cpu=cpu,
        ),
        host=_parse_host_use(columns["host_use"], unread),
    )


def _parse_stats(columns: Columns, side: str, unread: dict[str, str]) -> IoStats:
    values = _SIDES[side].parse(columns)
    name = f"{side}_histogram"
    try:
        histogram = decode_histogram(columns[name])
    except BAD_ROW as error:
        histogram, unread[name] = EMPTY, str(error)
    return IoStats(**values, histogram=histogram)


def render_host_use(use: HostUse) -> str:
    """Return the known values of the host's activity as JSON."""
    facts = msgspec.to_builtins(use)
    known = {name: value for name, value in facts.items() if value is not None}
    return msgspec.json.encode(known).decode()


def _parse_host_use(text: object, unread: dict[str, str]) -> HostUse | None:
    """Return the activity of the host. None means that it is not known or cannot be read. The step is valid even
    without this activity.
    """
    if text is None:
        return None
    try:
        return decode_json(str(text), HostUse)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        unread["host_use"] = f"{str(text)[:30]}: {error}"
        return None


def under_way_columns(step: StepStarted) -> Columns:
    """Return a step that has begun as a row of table under_way."""
    count = count_streams(step.workload)
    return _UNDER_WAY.columns(step) | workload_columns(step.workload) | {"started_s": step.at_s, "streams": count}


def parse_under_way_place(columns: Columns) -> dict[str, Any]:
    """Return the values of the plain fields in the row of the running step."""
    return _UNDER_WAY.parse(columns)


def parse_under_way(columns: Columns, totals: Sequence[SecondsTotal]) -> UnfinishedStep:
    """Return the running step, which is built from its row and from the sums of its stored seconds."""
    place = parse_under_way_place(columns)
    return UnfinishedStep(
        **place,
        workload=parse_workload("under_way", columns),
        measured_so_far=Measurement(
            duration_s=totals[-1].end_s,
            read=add_all(total.read for total in totals),
            write=add_all(total.write for total in totals),
        ),
    )


_STREAM_SIDES = {
    side: PlainFields(f"stream, {side}", IoStats, but=("histogram",), prefix=f"{side}_") for side in STREAM_SIDES
}


class _LoadRow(msgspec.Struct, kw_only=True):
    """The columns of a stream's load that a row of table step does not have."""

    name: Annotated[str, msgspec.Meta(max_length=4096)]
    delay_s: NonNegative
    trims: Flag
    random_percent: Annotated[int, msgspec.Meta(ge=0, le=100)] | None
    burst_ios: PositiveCount | None
    burst_pause_s: Positive | None
    flush_every: PositiveCount | None


_LOAD_COLUMNS = (*_LoadRow.__struct_fields__, *WORKLOAD_COLUMNS)
_TAKE_LOAD = itemgetter(*_LOAD_COLUMNS)
# The columns that a reader of the log needs. They do not include the seconds, which are the largest part of a file.
STREAM_COLUMNS = (
    *_LOAD_COLUMNS,
    "host_limited",
    *(name for side in _STREAM_SIDES.values() for name in side.types),
    *(f"{side}_histogram" for side in STREAM_SIDES),
)


def load_rows(workload: Workload) -> Iterator[Columns]:
    """Yield a row for each stream of a load, without I/Os. If the row of the step describes the load, yield no row."""
    for number, stream in enumerate(workload.streams if count_streams(workload) else ()):
        load, burst = stream.workload, stream.workload.burst
        yield {
            "number": number,
            "name": stream.name,
            "delay_s": stream.delay_s,
            **workload_columns(load),
            "trims": load.trims,
            "random_percent": load.random_percent,
            "burst_ios": burst and burst.ios,
            "burst_pause_s": burst and burst.pause_s,
            "flush_every": load.flush_every,
        }


def second_columns(name: str, samples: Sequence[Sample]) -> Columns:
    """Return the columns of the seconds of a stream. ``name`` is empty for a single load."""
    own = [_whole(sample) if not name else _part(sample.streams, name) for sample in samples]
    seconds, histograms = encode_stream_seconds(own)
    return {"seconds": seconds, "second_histograms": histograms}


def stream_rows(step: StepRecord, samples: Sequence[Sample]) -> Iterator[Columns]:
    """Yield a row for each stream of a step, with the stream's I/Os and seconds."""
    measured = step.measurement
    for load_row in load_rows(step.workload):
        name = load_row["name"]
        part = _whole(measured) if not name else _part(measured.streams, name)
        columns = {"host_limited": part.host_limited, **second_columns(name, samples)}
        for side in STREAM_SIDES:
            stats = getattr(part, side)
            columns |= _STREAM_SIDES[side].columns(stats) | {f"{side}_histogram": encode_histogram(stats.histogram)}
        yield load_row | columns


def _whole(parts: Measurement | Sample) -> StreamPart:
    """Return the I/Os of a single load as the I/Os of its only stream."""
    return StreamPart(name="", read=parts.read, write=parts.write, trim=parts.trim, flush=parts.flush)


def _part(parts: Sequence[StreamPart], name: str) -> StreamPart:
    return next((part for part in parts if part.name == name), StreamPart(name=name))


def parse_load(rows: Sequence[Columns]) -> Workload:
    """Return the load of a step from the rows of its streams.

    Raises:
        ValueError: a row has an impossible value.
    """
    return _parse_load(*chain.from_iterable(map(_TAKE_LOAD, rows)))


# The steps of a combination repeat the same load, so the results are cached like those of ``_parse_workload``.
@lru_cache(maxsize=256, typed=True)
def _parse_load(*values: object) -> Workload:
    width = len(_LOAD_COLUMNS)
    rows = [values[first : first + width] for first in range(0, len(values), width)]
    streams = [_parse_stream(dict(zip(_LOAD_COLUMNS, row, strict=True))) for row in rows]
    if len(streams) == 1 and not streams[0].name:
        return streams[0].workload
    return combine(streams)


def _parse_stream(columns: Columns) -> Stream:
    row = convert("stream", {name: columns[name] for name in _LoadRow.__struct_fields__}, _LoadRow)
    burst = None
    if row.burst_ios is not None and row.burst_pause_s is not None:
        burst = Burst(row.burst_ios, row.burst_pause_s)
    load = replace(
        parse_workload("stream", columns),
        trims=bool(row.trims),
        random_percent=row.random_percent,
        burst=burst,
        flush_every=row.flush_every,
    )
    return Stream(name=row.name, workload=load, delay_s=row.delay_s)


# The columns of each kind of I/O of a stream, and their values if the stream has no I/O of this kind.
_TAKE_SIDE = {side: itemgetter(*fields.types, f"{side}_histogram") for side, fields in _STREAM_SIDES.items()}
_NO_SIDE = (*_STREAM_SIDES["read"].columns(NO_IO).values(), None)


def with_streams(step: StepRecord, rows: Sequence[Columns]) -> StepRecord:
    """Return a step together with its streams, which are read from ``rows``.

    Raises:
        ValueError: a row has an impossible value, or the job of the step has no stream with the name in a row.
    """
    load = parse_load(rows)
    _require_names_of_job(load, step.job_file)
    parts = tuple(_parse_part(row) for row in rows)
    total = add_parts("", parts)
    streams = parts if load.is_combination else ()
    measured = replace(step.measurement, trim=total.trim, flush=total.flush, streams=streams)
    return replace(step, workload=load, measurement=measured)


# The first line of each job that tkperf writes for fio, and the head of a section. A job of a simulated drive is one
# line that contains the names.
_JOB_OF_FIO = "[global]\n"
_SECTION_HEAD = re.compile(r"^\[(.+)\]$", re.MULTILINE)
_JOB_OF_SIMULATION = "; SIMULATED step: "


def _require_names_of_job(load: Workload, job: str) -> None:
    """Refuse streams whose names differ from the names in the job of the step.

    Tests find their streams by name. With another name, a result would be missing or would belong to another load, but
    the run would still look complete. Imported jobs, and the jobs of other engines, are not compared.
    """
    names = [stream.name for stream in load.together]
    if job.startswith(_JOB_OF_FIO):
        heads = set(_SECTION_HEAD.findall(job)) - {"global"}
        strange = [name for name in names if heads and name_section(name) not in heads]
    elif job.startswith(_JOB_OF_SIMULATION):
        is_same = job.startswith(_JOB_OF_SIMULATION + " + ".join(names))
        strange = [] if is_same else [name for name in names if name not in job] or names
    else:
        strange = []
    if strange:
        raise ValueError(f"the job of the step has no stream named {on_one_line(strange[0])}")


def _parse_part(columns: Columns) -> StreamPart:
    sides = {side: _parse_stream_stats(columns, side) for side in STREAM_SIDES}
    return StreamPart(
        name=columns["name"],
        read=sides["read"],
        write=sides["write"],
        trim=sides["trim"],
        flush=sides["flush"],
        host_limited=bool(columns["host_limited"]),
    )


def _parse_stream_stats(columns: Columns, side: str) -> IoStats:
    # Most streams have only one kind of I/O, and a comparison is faster than the checks of the row.
    if _TAKE_SIDE[side](columns) == _NO_SIDE:
        return NO_IO
    stats = IoStats(**_STREAM_SIDES[side].parse(columns), histogram=decode_histogram(columns[f"{side}_histogram"]))
    return NO_IO if stats.is_empty else stats


def with_seconds_of_parts(load: Workload, table: IntArray, blobs: Sequence[tuple[str, bytes | None]]) -> Seconds:
    """Return the seconds of a step as columns, with the seconds of each stream and of its flushes.

    Args:
        table: the seconds of the step.
        blobs: the name and the seconds of each stream. If the seconds of a stream are missing, no parts are
            returned.

    Raises:
        ValueError: a blob is damaged, or does not belong to these seconds.
    """
    packed = {name: seconds for name, seconds in blobs if seconds is not None}
    if not table.size or set(packed) != {stream.name for stream in load.streams}:
        return as_seconds(table)
    parts: dict[PartKey, Seconds] = {}
    trims = []
    for stream in load.streams:
        read, write, trim, flush = decode_stream_sides(packed[stream.name], table.shape[1])
        name = stream.name or None
        trims.append(trim)
        if name is not None:
            parts[name, False] = as_seconds(table, (trim,) if stream.workload.trims else (read, write))
        if stream.workload.flush_every is not None:
            parts[name, True] = as_seconds(table, (flush,))
    # The seconds of the step itself do not contain trims.
    return as_seconds(table, trims if load.trims else (), parts)


def with_stream_seconds(
    samples: tuple[Sample, ...], blobs: Sequence[tuple[str, bytes | None, bytes | None]], *, left_out: int = 0
) -> tuple[Sample, ...]:
    """Return the seconds of a step, each with the parts of its streams.

    Args:
        blobs: the name, the seconds and the histograms of the seconds of each stream.
        left_out: number of earlier seconds that the blobs contain, but ``samples`` does not.

    Raises:
        ValueError: a blob is damaged, or does not belong to these seconds.
    """
    count = left_out + len(samples)
    streams = [
        decode_stream_seconds(name, seconds, histograms, count, first=left_out) for name, seconds, histograms in blobs
    ]
    if not streams or not all(streams):
        return samples
    return tuple(_with_parts(sample, parts) for sample, parts in zip(samples, zip(*streams, strict=True), strict=True))


def _with_parts(sample: Sample, parts: tuple[StreamPart, ...]) -> Sample:
    is_alone = len(parts) == 1 and not parts[0].name
    total = add_parts("", parts)
    return replace(sample, trim=total.trim, flush=total.flush, streams=() if is_alone else parts)
