"""Histograms and samples as small byte strings. Format described in docs/run-file.md."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tkperf.histogram import (
    Histogram,
    IntArray,
    coarsen,
)
from tkperf.measurement import NO_IO, IoStats, Sample
from tkperf.runfile.packed import (
    DO_NOT_FIT,
    Numbers,
    most_bytes,
    most_unpacked_bytes,
    pack,
    put_indices,
    put_numbers,
    put_planes,
    take_indices,
    unpack,
    unzigzag,
    zigzag,
)
from tkperf.seconds import FloatArray, Seconds

_NO_DETAILS = "samples lack their details"
# fio's last document, of a thousand threads with every bucket filled: about a third of it.
_MOST_OUTPUT_BYTES = 256 << 20
# Counts of a step's samples, sixteen bytes each: real ones take about a byte packed, equal ones less.
_ALWAYS_COUNTS, _COUNTS_PER_BYTE = 8 << 20, 8
# fio takes its counts one after the other while threads go on, and so does a histogram's total
# differ from the count beside it: by little, but by more where fio itself was held up.
_MOST_TRAILING_IOS, _MOST_TRAILING_SHARE = 1024, 0.5


def encode_histogram(histogram: Histogram) -> bytes | None:
    """Bucket count, distances between bucket indices, steps between counts. None when empty."""
    if not histogram.total:
        return None
    steps = np.diff(histogram.counts, prepend=0)
    return pack(put_indices(histogram.indices) + put_planes(zigzag(steps).reshape(1, -1)))


def decode_histogram(blob: bytes | None) -> Histogram:
    """Raises ValueError when the blob is damaged."""
    if blob is None:
        return Histogram()
    numbers = Numbers(blob, most_bytes(1, 0))
    indices = take_indices(numbers)
    steps = unzigzag(next(numbers.table(1, indices.size))[0])
    numbers.end()
    return Histogram(indices, np.cumsum(steps))


def encode_sample_details(samples: Sequence[Sample]) -> bytes | None:
    """What the sample rows leave out: extremes and histograms (coarsened), read then write."""
    if not samples:
        return None
    data = bytearray()
    for side in ([sample.read for sample in samples], [sample.write for sample in samples]):
        histograms = [coarsen(stats.histogram) for stats in side]
        filled = np.unique(np.concatenate([histogram.indices for histogram in histograms]))
        table = np.zeros((len(side), filled.size), dtype=np.int64)
        for row, histogram in enumerate(histograms):
            table[row, np.searchsorted(filled, histogram.indices)] = histogram.counts
        data += put_indices(filled) + put_planes(table)
        # fio's latency count trails its I/O count by little, so the difference is mostly 0.
        trailing = np.array([stats.ios - stats.latency_ios for stats in side], dtype=np.int64)
        data += put_numbers(zigzag(trailing).tolist())
        # 0 stands for "not measured", so values are stored plus one.
        for extremes in (
            [stats.latency_min_ns for stats in side],
            [stats.latency_max_ns for stats in side],
        ):
            data += put_numbers(0 if value is None else value + 1 for value in extremes)
    return pack(bytes(data))


SampleRow = tuple[int, int, int | None, int | None, int | None, int | None, int | None, int | None]


def sample_rows(samples: Sequence[Sample]) -> Iterator[SampleRow]:
    """Columns start_us ... write_latency_sum_ns of table sample; NULL for a side without I/O."""
    for sample in samples:
        yield (
            round(sample.start_s * 1e6),
            max(1, round(sample.duration_s * 1e6)),  # the rest of a step may be shorter
            *_side_columns(sample.read),
            *_side_columns(sample.write),
        )


def _side_columns(stats: IoStats) -> tuple[int | None, int | None, int | None]:
    if stats == NO_IO:
        return (None, None, None)
    return (stats.ios, stats.bytes, stats.latency_sum_ns)


def decode_samples(rows: Sequence[SampleRow], details: bytes | None) -> tuple[Sample, ...]:
    """The samples of a step, from its rows in order and its details.

    Raises:
        ValueError: the details are damaged or do not fit the rows.
    """
    numbers = _open_details(rows, details)
    if numbers is None:
        return ()
    _as_table(rows)
    most_counts = _ALWAYS_COUNTS + _COUNTS_PER_BYTE * len(details or b"")
    sides = [
        _decode_side([row[2 + 3 * side : 5 + 3 * side] for row in rows], numbers, most_counts)
        for side in (0, 1)
    ]
    numbers.end()
    return tuple(
        Sample(start_s=row[0] / 1e6, duration_s=row[1] / 1e6, read=read, write=write)
        for row, read, write in zip(rows, *sides, strict=True)
    )


def _open_details(rows: Sequence[SampleRow], details: bytes | None) -> Numbers | None:
    """None for a step that has neither samples nor details."""
    if details is None and rows:
        raise ValueError(_NO_DETAILS)
    if details is None:
        return None
    if not rows:
        raise ValueError(DO_NOT_FIT)
    return Numbers(details, 2 * most_bytes(len(rows), 3))


def _as_table(rows: Sequence[SampleRow]) -> FloatArray:
    """Rows as numbers; NULL, as a direction without I/O has, becomes NaN.

    Raises:
        ValueError: not whole numbers from 0 on, or a sample that took no time.
    """
    if any(type(value) is not int and value is not None for row in rows for value in row):
        raise ValueError("a sample has an impossible time or count")  # numpy reads 'NaN', too
    table = np.array(rows, dtype=np.float64)
    amounts = table[:, 2:]
    present = np.concatenate((table[:, :2].ravel(), amounts[~np.isnan(amounts)]))
    whole = (present >= 0) & (present < np.inf) & (present == np.trunc(present))
    if not (whole.all() and (table[:, 1] > 0).all()):
        raise ValueError("a sample has an impossible time or count")
    return table


def _decode_side(
    columns: Sequence[Sequence[int | None]], numbers: Numbers, most_counts: int
) -> list[IoStats]:
    size = len(columns)
    histograms = _decode_histograms(size, numbers, most_counts)
    trailing = unzigzag(numbers.many(size))
    minima, maxima = numbers.many(size).tolist(), numbers.many(size).tolist()
    latency_ios = np.array([ios or 0 for ios, _, _ in columns], dtype=np.int64) - trailing
    _require_fit(np.array([histogram.total for histogram in histograms]), latency_ios)
    side = []
    for row, (ios, bytes_, latency_sum_ns) in enumerate(columns):
        side.append(
            IoStats(
                ios=ios or 0,
                bytes=bytes_ or 0,
                latency_ios=int(latency_ios[row]),
                latency_sum_ns=latency_sum_ns or 0,
                latency_min_ns=minima[row] - 1 if minima[row] else None,
                latency_max_ns=maxima[row] - 1 if maxima[row] else None,
                histogram=histograms[row],
            )
        )
    return side


def _decode_histograms(size: int, numbers: Numbers, most_counts: int) -> list[Histogram]:
    filled = take_indices(numbers)
    histograms: list[Histogram] = []
    for table in numbers.table(size, filled.size):
        most_counts -= int(np.count_nonzero(table))
        if most_counts < 0:
            raise ValueError("its samples are more than its size can hold")
        for counts in table:
            kept = np.flatnonzero(counts)
            histograms.append(Histogram(filled[kept], counts[kept]))
    return histograms


def misfits(totals: IntArray, latency_ios: IntArray) -> NDArray[np.bool_]:
    """Which histograms hold other I/Os than those of their rows, if any hold some."""
    apart = np.abs(totals - latency_ios)
    allowed = _MOST_TRAILING_IOS + _MOST_TRAILING_SHARE * np.maximum(totals, latency_ios)
    odd: NDArray[np.bool_] = (latency_ios < 0) | (apart > allowed if totals.any() else False)
    return odd


def _require_fit(totals: IntArray, latency_ios: IntArray) -> None:
    if misfits(totals, latency_ios).any():
        raise ValueError(DO_NOT_FIT)


def decode_seconds(rows: Sequence[SampleRow], details: bytes | None) -> Seconds:
    """The samples of a step as columns, from its rows in order and its details.

    Raises:
        ValueError: the details are damaged or do not fit the rows.
    """
    numbers = _open_details(rows, details)
    if numbers is None:
        return Seconds()
    table = _as_table(rows)
    start_s, duration_s = table[:, 0] / 1e6, table[:, 1] / 1e6
    ios, bytes_, sum_ns = (
        np.nan_to_num(table[:, n]) + np.nan_to_num(table[:, n + 3]) for n in (2, 3, 4)
    )
    latency_ios, highest = ios, np.zeros(len(rows), dtype=np.int64)
    for _ in ("read", "write"):
        filled = take_indices(numbers)
        numbers.skip_table(len(rows), filled.size)
        latency_ios = latency_ios - unzigzag(numbers.many(len(rows)))
        numbers.many(len(rows))  # minima
        highest = np.maximum(highest, numbers.many(len(rows)))
    numbers.end()
    if (latency_ios < 0).any():
        raise ValueError(DO_NOT_FIT)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Seconds(
            start_s=start_s,
            duration_s=duration_s,
            iops=ios / duration_s,
            megabytes_per_s=bytes_ / duration_s / 1e6,
            latency_mean_us=np.where(latency_ios > 0, sum_ns / latency_ios / 1000, np.nan),
            latency_max_us=np.where(highest > 0, (highest - 1) / 1000, np.nan),
        )


def compress(data: bytes) -> bytes | None:
    """Raw fio output, as a standard .xz stream that any tool opens. None when empty."""
    return lzma.compress(data, preset=6) if data else None


def decompress(blob: bytes | None) -> bytes:
    """Raises ValueError when the blob is damaged."""
    if not blob:
        return b""
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MOST_OUTPUT_BYTES)
    try:
        return unpack(unpacker, blob, min(_MOST_OUTPUT_BYTES, most_unpacked_bytes(blob)))
    except (lzma.LZMAError, EOFError) as error:
        raise ValueError(f"output of fio: {error}") from error
