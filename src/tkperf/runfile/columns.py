"""Seconds and histograms as columns of integers. Each column or group of columns is a blob, compressed with zlib.

A blob is an array of little-endian 64-bit integers whose bytes are regrouped: all lowest bytes, then all second bytes,
and so on. Similar bytes are then neighbours, which halves the size after compression. docs/reference/run-file.md shows
how to read the blobs with numpy. Reading is strict and limited, because a file may be damaged or malicious.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tkperf.model.histogram import BUCKETS, EMPTY, Histogram, IntArray, coarsen
from tkperf.model.measurement import IoStats, NewestSamples, Sample, Seconds, StreamPart
from tkperf.model.workload import PartKey

DIRECTIONS = ("read", "write")
STREAM_SIDES = ("read", "write", "trim", "flush")
"""The kinds of I/O of a stream, in the order of its columns."""
SIDE_COLUMNS = ("ios", "bytes", "latency_ios", "latency_sum_ns", "latency_min_ns", "latency_max_ns")
SECOND_COLUMNS = ("start_us", "duration_us", *(f"{side}_{column}" for side in DIRECTIONS for column in SIDE_COLUMNS))
NO_EXTREME = -1
"""This number stands for an extreme latency that is not known. Any other negative number means that the file is
damaged.
"""
SECOND_BYTES = 8 * len(SECOND_COLUMNS)

_INTEGER_BYTES = 8
_LEAST = np.array([NO_EXTREME if name.endswith(("_min_ns", "_max_ns")) else 0 for name in SECOND_COLUMNS])
# The two columns of times come before the columns of reads and writes. A stream has no columns of times.
_LEAST_OF_STREAM = np.tile(_LEAST[2 : 2 + len(SIDE_COLUMNS)], len(STREAM_SIDES))
_MOST = 2**63 - 1
# The limit for the number of seconds of one step. The limit is a day and a half for a small blob, and up to ten days
# for larger blobs.
_ALWAYS_SECONDS, _MOST_SECONDS = 1 << 17, 10 * 86_400
# The limit for the number of filled buckets in all seconds of a step. A bucket consists of two integers, which usually
# need about a byte in a blob.
_ALWAYS_FILLED, _FILLED_PER_BYTE, _MOST_FILLED = 4 << 20, 8, 32 << 20
# The limit for the number of filled buckets in a view of a running run. Such a view reads the file repeatedly. An hour
# of reads and writes contains less than a million filled buckets.
_MOST_FILLED_IN_PASSING = 2 << 20
# fio reads its counts one after the other while its threads continue. The total of a histogram therefore differs
# slightly from the count of I/Os. If fio itself was delayed, the difference is larger.
_MOST_TRAILING_IOS, _MOST_TRAILING_SHARE = 1024, 0.5
# The last document of fio reaches about a third of this size if a thousand threads fill every bucket.
_MOST_OUTPUT_BYTES, _ALWAYS_OUTPUT_BYTES, _OUTPUT_PER_BYTE = 256 << 20, 16 << 20, 100

_ENDS_ELSEWHERE = "it does not end where it should"
_DO_NOT_FIT = "histograms do not fit their seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsTotal:
    """The sums of several seconds, without histograms. ``end_s`` is the end of the last second."""

    count: int
    end_s: float
    read: IoStats
    write: IoStats


def pack_integers(numbers: IntArray) -> bytes:
    """Return a blob that contains the integers."""
    columns = np.ascontiguousarray(numbers, dtype="<i8").reshape(-1, 1)
    return zlib.compress(columns.view(np.uint8).T.tobytes(), 9)


def unpack_integers(blob: bytes, most: int) -> IntArray:
    """Return the integers of a blob.

    Raises:
        ValueError: the blob is damaged, or it contains more than ``most`` integers.
    """
    try:
        data = _unpack_with(zlib.decompressobj(), blob, _INTEGER_BYTES * most)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(data) % _INTEGER_BYTES:
        raise ValueError(_ENDS_ELSEWHERE)
    planes = np.frombuffer(data, dtype=np.uint8).reshape(_INTEGER_BYTES, -1)
    return planes.T.copy().view("<i8").ravel().astype(np.int64, copy=False)


def _unpack_with(unpacker: zlib._Decompress | lzma.LZMADecompressor, blob: bytes, most_bytes: int) -> bytes:
    """Return the uncompressed data. The size is limited, because the data of a small blob can be larger than the
    memory.
    """
    data = unpacker.decompress(blob, most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError("the unpacked data are larger than the limit for this column")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError(_ENDS_ELSEWHERE)
    return data


def encode_histogram(histogram: Histogram) -> bytes | None:
    """Return a blob with the number of I/Os in each of fio's buckets. None means that there are no I/Os."""
    return pack_integers(histogram.dense()) if histogram.total else None


def decode_histogram(blob: bytes | None) -> Histogram:
    """Return the histogram that a blob contains.

    Raises:
        ValueError: the blob is damaged.
    """
    if blob is None:
        return EMPTY
    counts = unpack_integers(blob, BUCKETS)
    if counts.size != BUCKETS:
        raise ValueError("the number of buckets of a histogram differs from fio's number")
    return Histogram.from_dense(counts)


def encode_seconds(samples: Sequence[Sample]) -> bytes | None:
    """Return a blob that contains all ``SECOND_COLUMNS``, one after the other. None means that there are no samples."""
    if not samples:
        return None
    # The last second of a step may be shorter than a microsecond.
    rows = [
        (
            round(sample.start_s * 1e6),
            max(1, round(sample.duration_s * 1e6)),
            *_side_of(sample.read),
            *_side_of(sample.write),
        )
        for sample in samples
    ]
    return pack_integers(np.array(rows, dtype=np.int64).T)


def _side_of(stats: IoStats) -> Iterator[int]:
    for name in SIDE_COLUMNS:
        value: int | None = getattr(stats, name)
        yield NO_EXTREME if value is None else value


def encode_second_histograms(samples: Sequence[Sample]) -> bytes | None:
    """Return a blob with coarse histograms: the number of filled buckets of each second, then the buckets, then the
    I/Os.

    The histograms of the reads are first. None means that there are no samples.
    """
    return _encode_histograms(samples, DIRECTIONS) if samples else None


def _encode_histograms(parts: Sequence[Sample | StreamPart], sides: Sequence[str]) -> bytes:
    histograms = [coarsen(getattr(part, side).histogram) for side in sides for part in parts]
    return pack_integers(
        np.concatenate(
            [
                np.array([each.indices.size for each in histograms], dtype=np.int64),
                *(each.indices for each in histograms),
                *(each.counts for each in histograms),
            ]
        )
    )


def encode_stream_seconds(parts: Sequence[StreamPart]) -> tuple[bytes | None, bytes | None]:
    """Return two blobs for the seconds of a stream, without their times. The first blob contains ``SIDE_COLUMNS`` of
    each of ``STREAM_SIDES`` one after the other. The second blob contains the coarse histograms in the same order. None
    means that there are no seconds.
    """
    if not parts:
        return None, None
    rows = [[value for side in STREAM_SIDES for value in _side_of(getattr(part, side))] for part in parts]
    return pack_integers(np.array(rows, dtype=np.int64).T), _encode_histograms(parts, STREAM_SIDES)


def decode_stream_seconds(
    name: str, seconds: bytes | None, histograms: bytes | None, count: int, *, first: int = 0
) -> tuple[StreamPart, ...]:
    """Return the part of a stream in each of ``count`` seconds, beginning with second ``first``. The result is empty if
    the file does not contain the seconds of the stream.

    Raises:
        ValueError: a blob is damaged, or the blobs do not belong together.
    """
    if seconds is None or histograms is None:
        return ()
    own = iter(_decode_histograms(histograms, count, first, _MOST_FILLED, sides=len(STREAM_SIDES)))
    sides = [_as_stats(side[:, first:], own) for side in decode_stream_sides(seconds, count)]
    return tuple(
        StreamPart(name=name, read=read, write=write, trim=trim, flush=flush)
        for read, write, trim, flush in zip(*sides, strict=True)
    )


def decode_stream_sides(seconds: bytes, count: int) -> tuple[IntArray, ...]:
    """Return ``SIDE_COLUMNS`` of each of ``STREAM_SIDES`` in ``count`` seconds of a stream. Each column is a row of a
    table.

    Raises:
        ValueError: the blob is damaged, or its values are impossible for seconds.
    """
    sides, width = len(STREAM_SIDES), len(SIDE_COLUMNS)
    table = unpack_integers(seconds, sides * width * count).reshape(sides * width, -1)
    lowest = table.min(axis=1, initial=_MOST)
    if table.shape[1] != count or (lowest < _LEAST_OF_STREAM).any():
        raise ValueError("the record of one second of a stream contains an impossible count")
    return tuple(table[first : first + width] for first in range(0, sides * width, width))


def decode_seconds(blob: bytes | None) -> IntArray:
    """Return a table in which each of ``SECOND_COLUMNS`` is a row.

    Raises:
        ValueError: the blob is damaged, or its values are impossible for seconds.
    """
    if blob is None:
        return np.zeros((len(SECOND_COLUMNS), 0), dtype=np.int64)
    numbers = unpack_integers(blob, len(SECOND_COLUMNS) * min(_ALWAYS_SECONDS + len(blob), _MOST_SECONDS))
    table = numbers.reshape(len(SECOND_COLUMNS), -1)
    lowest = table.min(axis=1, initial=_MOST)
    if (lowest < _LEAST).any() or table[1].min(initial=1) < 1:
        raise ValueError("the record of one second contains an impossible time or count")
    return table


def decode_samples(seconds: bytes | None, histograms: bytes | None) -> tuple[Sample, ...]:
    """Return the seconds of a step as records. The width of a bucket in a histogram is at most 1/16 of the latency of
    the bucket.

    Raises:
        ValueError: a blob is damaged, or the two blobs do not belong together.
    """
    return _decode_samples(seconds, histograms, decode_seconds(seconds), 0, _MOST_FILLED)


def decode_newest_samples(seconds: bytes | None, histograms: bytes | None, most: int) -> NewestSamples:
    """Return the last seconds of a step as records, limited to ``most`` records. Records of all seconds, as
    ``decode_samples`` returns them, could need gigabytes.

    Raises:
        ValueError: a blob is damaged, contains too many buckets for a quick look, or does not belong to the other blob.
    """
    table = decode_seconds(seconds)
    left_out = max(0, table.shape[1] - most)
    samples = _decode_samples(seconds, histograms, table, left_out, _MOST_FILLED_IN_PASSING)
    return NewestSamples(left_out=left_out, samples=samples)


def _decode_samples(
    seconds: bytes | None, histograms: bytes | None, table: IntArray, first: int, most_filled: int
) -> tuple[Sample, ...]:
    """Return the seconds of a step, beginning with second ``first``.

    Args:
        table: the decoded content of the blob ``seconds``.
    """
    if (seconds is None) != (histograms is None):
        raise ValueError("seconds lack their histograms")
    if histograms is None:
        return ()
    own = iter(_decode_histograms(histograms, table.shape[1], first, most_filled))
    table = table[:, first:]
    read_column, width = 2, len(SIDE_COLUMNS)
    read = _as_stats(table[read_column : read_column + width], own)
    write = _as_stats(table[read_column + width :], own)
    return tuple(
        Sample(start_s=start_us / 1e6, duration_s=duration_us / 1e6, read=r, write=w)
        for start_us, duration_us, r, w in zip(*table[:2].tolist(), read, write, strict=True)
    )


def _decode_histograms(
    blob: bytes, seconds: int, first: int, most_filled: int, *, sides: int = len(DIRECTIONS)
) -> Iterator[Histogram]:
    """Yield the histograms, beginning with second ``first``: the histograms of the reads, then the histograms of the
    writes, and so on.
    """
    count = sides * seconds
    most = min(_ALWAYS_FILLED + _FILLED_PER_BYTE * len(blob), count * BUCKETS, most_filled)
    numbers = unpack_integers(blob, count + 2 * most)
    if numbers.size < count or (numbers[:count] < 0).any():
        raise ValueError(_DO_NOT_FIT)
    buckets, counts = numbers[count:].reshape(2, -1)
    ends = np.concatenate(([0], numbers[:count].cumsum()))
    if ends[-1] != buckets.size:
        raise ValueError(_DO_NOT_FIT)
    for side in range(sides):
        of_side = ends[side * seconds + first : (side + 1) * seconds + 1].tolist()
        for begin, end in pairwise(of_side):
            yield Histogram(buckets[begin:end].copy(), counts[begin:end].copy())


def decode_total(seconds: bytes | None, most: int) -> SecondsTotal:
    """Return the sums of the seconds in a blob.

    Raises:
        ValueError: the blob is damaged, or contains more than ``most`` seconds.
    """
    table = decode_seconds(seconds)
    if table.shape[1] > most:
        raise ValueError(f"{table.shape[1]:,} seconds in one part")
    read_column, width = 2, len(SIDE_COLUMNS)
    last_us = int(table[:2, -1].sum()) if table.size else 0
    return SecondsTotal(
        count=table.shape[1],
        end_s=last_us / 1e6,
        read=_total_of(table[read_column : read_column + width]),
        write=_total_of(table[read_column + width :]),
    )


def _total_of(side: IntArray) -> IoStats:
    """Return the sum of one direction over all seconds."""
    ios, moved, latency_ios, sum_ns = map(_sum_exactly, side[:4])
    least, most = (column[column != NO_EXTREME] for column in side[4:])
    return IoStats(
        ios=ios,
        bytes=moved,
        latency_ios=latency_ios,
        latency_sum_ns=sum_ns,
        latency_min_ns=int(least.min()) if least.size else None,
        latency_max_ns=int(most.max()) if most.size else None,
    )


def _sum_exactly(column: IntArray) -> int:
    """Return a sum that may need more than 63 bits. Python's integers cannot overflow, but are slower than the integers
    of numpy.
    """
    if int(column.max(initial=0)) <= _MOST // max(1, column.size):
        return int(column.sum())
    return sum(column.tolist())


def _as_stats(side: IntArray, histograms: Iterator[Histogram]) -> list[IoStats]:
    stats = [
        IoStats(
            ios=ios,
            bytes=moved,
            latency_ios=latency_ios,
            latency_sum_ns=sum_ns,
            latency_min_ns=None if least == NO_EXTREME else least,
            latency_max_ns=None if most == NO_EXTREME else most,
            histogram=next(histograms),
        )
        for ios, moved, latency_ios, sum_ns, least, most in side.T.tolist()
    ]
    if find_misfits(stats).any():
        raise ValueError(_DO_NOT_FIT)
    return stats


def find_misfits(stats: Sequence[IoStats]) -> NDArray[np.bool_]:
    """Return for each second whether its histogram contradicts its count of I/Os. If all histograms are empty, no
    histogram contradicts a count.
    """
    totals = np.array([each.histogram.total for each in stats], dtype=np.int64)
    latency_ios = np.array([each.latency_ios for each in stats], dtype=np.int64)
    apart = np.abs(totals - latency_ios)
    allowed = _MOST_TRAILING_IOS + _MOST_TRAILING_SHARE * np.maximum(totals, latency_ios)
    odd: NDArray[np.bool_] = (latency_ios < 0) | (apart > allowed if totals.any() else False)
    return odd


def as_seconds(
    table: IntArray, sides: Sequence[IntArray] = (), parts: Mapping[PartKey, Seconds] | None = None
) -> Seconds:
    """Return reads and writes together as columns, for drawing and statistics.

    Args:
        table: the result of ``decode_seconds``.
        sides: tables of ``SIDE_COLUMNS`` that are added up instead of reads and writes.
        parts: the same as in ``Seconds``.
    """
    if not table.size:
        return Seconds()
    start_s, duration_s = table[:2] / 1e6
    first, *others = sides or (table[2:8], table[8:])
    # A sum of two numbers may need more than 63 bits.
    sums, highest = first[:4].astype(np.float64), first[5]
    for side in others:
        sums += side[:4]
        highest = np.maximum(highest, side[5])
    ios, moved, latency_ios, sum_ns = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return Seconds(
            start_s=start_s,
            duration_s=duration_s,
            iops=ios / duration_s,
            megabytes_per_s=moved / duration_s / 1e6,
            latency_mean_us=np.where(latency_ios > 0, sum_ns / latency_ios / 1000, np.nan),
            latency_max_us=np.where(highest != NO_EXTREME, highest / 1000, np.nan),
            parts=parts or {},
        )


def possible_samples(samples: Sequence[Sample]) -> tuple[tuple[Sample, ...], str | None]:
    """Return samples that a reader accepts, and a text with the number of changes. None means that no changes were
    necessary.

    An impossible extreme becomes "not measured". An impossible second is omitted.
    """
    kept = [sample for sample in samples if _is_possible(sample)]
    for side in DIRECTIONS:
        odd = find_misfits([getattr(sample, side) for sample in kept])
        kept = [sample for sample, is_odd in zip(kept, odd, strict=True) if not is_odd]
    mended = tuple(_mend(sample) for sample in kept)
    clauses = []
    if gone := len(samples) - len(kept):
        clauses.append(f"{gone} of {len(samples)} seconds")
    if changed := sum(new is not old for new, old in zip(mended, kept, strict=True)):
        clauses.append(f"the extreme latencies of {changed} of {len(samples)} seconds")
    return mended, ", ".join(clauses) or None


def _is_possible(sample: Sample) -> bool:
    # The file stores times in microseconds.
    times = 0 <= sample.start_s * 1e6 <= _MOST and 0 < sample.duration_s * 1e6 <= _MOST
    return times and all(
        0 <= count <= _MOST
        for stats in (sample.read, sample.write)
        for count in (stats.ios, stats.bytes, stats.latency_ios, stats.latency_sum_ns)
    )


def _mend(sample: Sample) -> Sample:
    read, write = _mend_side(sample.read), _mend_side(sample.write)
    same = read is sample.read and write is sample.write
    return sample if same else replace(sample, read=read, write=write)


def _mend_side(stats: IoStats) -> IoStats:
    least, most = (
        None if value is None or not 0 <= value <= _MOST else value
        for value in (stats.latency_min_ns, stats.latency_max_ns)
    )
    if (least, most) == (stats.latency_min_ns, stats.latency_max_ns):
        return stats
    return replace(stats, latency_min_ns=least, latency_max_ns=most)


_LEAST_DICTIONARY_BYTES, _MOST_DICTIONARY_BYTES = 4096, 8 << 20


def compress_output(data: bytes) -> bytes | None:
    """Return raw fio output as a standard .xz stream, which any tool can read. The stream has half the size of the same
    output compressed with zlib. None means that there is no output.
    """
    if not data:
        return None
    # A compressor needs twelve times the memory of its dictionary. A dictionary that is larger than the data does not
    # improve the compression.
    dictionary = min(max(len(data), _LEAST_DICTIONARY_BYTES), _MOST_DICTIONARY_BYTES)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": dictionary}]
    return lzma.compress(data, filters=filters)


def decompress_output(blob: bytes | None) -> bytes:
    """Return the raw fio output that a blob contains.

    Raises:
        ValueError: the blob is damaged.
    """
    if not blob:
        return b""
    most_bytes = min(_MOST_OUTPUT_BYTES, _ALWAYS_OUTPUT_BYTES + _OUTPUT_PER_BYTE * len(blob))
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MOST_OUTPUT_BYTES)
    try:
        return _unpack_with(unpacker, blob, most_bytes)
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise ValueError(f"output of fio: {error}") from error
