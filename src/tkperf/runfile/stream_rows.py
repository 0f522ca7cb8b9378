"""The streams of a step as rows of a run file and back: the load of each, its I/Os, flushes and trims, its seconds.

A step of one load that only reads and writes has no such row: the row of the step says all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import msgspec

from tkperf.model.histogram import IntArray
from tkperf.model.measurement import NO_IO, IoStats, Measurement, Sample, Seconds, StreamPart, add_parts
from tkperf.model.record import StepRecord
from tkperf.model.workload import Burst, PartKey, Stream, Workload, combine
from tkperf.runfile.columns import (
    STREAM_SIDES,
    as_seconds,
    decode_histogram,
    decode_stream_seconds,
    decode_stream_sides,
    encode_histogram,
    encode_stream_seconds,
)
from tkperf.runfile.row_records import Columns, Flag, NonNegative, PlainFields, Positive, PositiveCount, convert
from tkperf.runfile.step_rows import WORKLOAD_COLUMNS, count_streams, parse_workload, workload_columns

_SIDES = {side: PlainFields(f"stream, {side}", IoStats, but=("histogram",), prefix=f"{side}_") for side in STREAM_SIDES}


class _LoadRow(msgspec.Struct, kw_only=True):
    """The columns of a stream's load that the row of a step does not have."""

    name: Annotated[str, msgspec.Meta(max_length=4096)]
    delay_s: NonNegative
    trims: Flag
    random_percent: Annotated[int, msgspec.Meta(ge=0, le=100)] | None
    burst_ios: PositiveCount | None
    burst_pause_s: Positive | None
    flush_every: PositiveCount | None


# The columns that a reader of the log takes: not the seconds, which are most of a file.
STREAM_COLUMNS = (
    *_LoadRow.__struct_fields__,
    *WORKLOAD_COLUMNS,
    "host_limited",
    *(name for side in _SIDES.values() for name in side.types),
    *(f"{side}_histogram" for side in STREAM_SIDES),
)


def load_rows(workload: Workload) -> Iterator[Columns]:
    """Yield a row for each stream of a load, without I/Os; none if the row of the step says all of it."""
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
    """Return the columns of the seconds of a stream; ``name`` is empty for a load alone."""
    own = [_whole(sample) if not name else _part(sample.streams, name) for sample in samples]
    seconds, histograms = encode_stream_seconds(own)
    return {"seconds": seconds, "second_histograms": histograms}


def stream_rows(step: StepRecord, samples: Sequence[Sample]) -> Iterator[Columns]:
    """Yield a row for each stream of a step, with its I/Os and its seconds."""
    measured = step.measurement
    for load_row in load_rows(step.workload):
        name = load_row["name"]
        part = _whole(measured) if not name else _part(measured.streams, name)
        columns = {"host_limited": part.host_limited, **second_columns(name, samples)}
        for side in STREAM_SIDES:
            stats = getattr(part, side)
            columns |= _SIDES[side].columns(stats) | {f"{side}_histogram": encode_histogram(stats.histogram)}
        yield load_row | columns


def _whole(parts: Measurement | Sample) -> StreamPart:
    """Return the I/Os of a load alone as those of its only stream."""
    return StreamPart(name="", read=parts.read, write=parts.write, trim=parts.trim, flush=parts.flush)


def _part(parts: Sequence[StreamPart], name: str) -> StreamPart:
    return next((part for part in parts if part.name == name), StreamPart(name=name))


def parse_load(rows: Sequence[Columns]) -> Workload:
    """Return the load of a step from the rows of its streams.

    Raises:
        ValueError: a row has an impossible value.
    """
    streams = [_parse_stream(row) for row in rows]
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


def with_streams(step: StepRecord, rows: Sequence[Columns]) -> StepRecord:
    """Return a step with its streams, from their rows.

    Raises:
        ValueError: a row has an impossible value.
    """
    load = parse_load(rows)
    parts = tuple(_parse_part(row) for row in rows)
    total = add_parts("", parts)
    streams = parts if load.is_combination else ()
    measured = replace(step.measurement, trim=total.trim, flush=total.flush, streams=streams)
    return replace(step, workload=load, measurement=measured)


def _parse_part(columns: Columns) -> StreamPart:
    sides = {side: _parse_stats(columns, side) for side in STREAM_SIDES}
    return StreamPart(
        name=columns["name"],
        read=sides["read"],
        write=sides["write"],
        trim=sides["trim"],
        flush=sides["flush"],
        host_limited=bool(columns["host_limited"]),
    )


def _parse_stats(columns: Columns, side: str) -> IoStats:
    stats = IoStats(**_SIDES[side].parse(columns), histogram=decode_histogram(columns[f"{side}_histogram"]))
    return NO_IO if stats.is_empty else stats


def with_seconds_of_parts(load: Workload, table: IntArray, blobs: Sequence[tuple[str, bytes | None]]) -> Seconds:
    """Return the seconds of a step as columns, with those of each stream and of its flushes.

    Args:
        table: the seconds of the step.
        blobs: of each stream its name and its seconds; without seconds, no part has any.

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
    # The seconds of the step itself contain no trims.
    return replace(as_seconds(table, trims if load.trims else ()), parts=parts)


def with_stream_seconds(
    samples: tuple[Sample, ...], blobs: Sequence[tuple[str, bytes | None, bytes | None]], *, left_out: int = 0
) -> tuple[Sample, ...]:
    """Return the seconds of a step with the parts of its streams.

    Args:
        blobs: of each stream its name, its seconds and their histograms.
        left_out: number of earlier seconds in the blobs, which ``samples`` does not have.

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
