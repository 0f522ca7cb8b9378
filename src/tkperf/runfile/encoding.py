"""Histograms and samples as small byte strings. Format described in docs/run-file.md.

All integers are unsigned LEB128 varints; a blob is one raw LZMA2 stream of them.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tkperf.errors import RunFileError
from tkperf.histogram import Histogram
from tkperf.measurement import NO_IO, IoStats, Sample

# Measured on per-second histograms: LZMA with these settings beats zlib and bz2.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0, "dict_size": 1 << 20}]


def encode_histogram(histogram: Histogram) -> bytes | None:
    """Bucket count, distances between bucket indices, counts. None when empty."""
    if not histogram.total:
        return None
    gaps = np.diff(histogram.indices, prepend=0)
    return _pack([histogram.indices.size, *gaps.tolist(), *histogram.counts.tolist()])


def decode_histogram(blob: bytes | None) -> Histogram:
    """Raises RunFileError when the blob is damaged."""
    if blob is None:
        return Histogram()
    numbers = _unpack(blob)
    size = next(numbers)
    indices = np.cumsum([next(numbers) for _ in range(size)])
    return Histogram(indices, [next(numbers) for _ in range(size)])


def encode_sample_details(samples: Sequence[Sample]) -> bytes | None:
    """What the sample rows leave out: extremes and histograms (coarsened), read then write."""
    if not samples:
        return None
    numbers: list[int] = []
    for side in ([sample.read for sample in samples], [sample.write for sample in samples]):
        histograms = [stats.histogram.coarsened() for stats in side]
        filled = sorted({int(index) for histogram in histograms for index in histogram.indices})
        numbers.append(len(filled))
        numbers += [b - a for a, b in zip([0, *filled], filled, strict=False)]
        table = np.zeros((len(filled), len(side)), dtype=np.int64)
        for column, histogram in enumerate(histograms):
            table[np.searchsorted(filled, histogram.indices), column] = histogram.counts
        numbers += table.ravel().tolist()
        for stats in side:
            # 0 stands for "not measured", so values are stored plus one.
            numbers += [
                stats.latency_ios,
                0 if stats.latency_min_ns is None else stats.latency_min_ns + 1,
                0 if stats.latency_max_ns is None else stats.latency_max_ns + 1,
            ]
    return _pack(numbers)


SampleRow = tuple[int, int, int | None, int | None, int | None, int | None, int | None, int | None]


def sample_rows(samples: Sequence[Sample]) -> Iterator[SampleRow]:
    """Columns start_us ... write_latency_sum_ns of table sample; NULL for a side without I/O."""
    for sample in samples:
        yield (
            round(sample.start_s * 1e6),
            round(sample.duration_s * 1e6),
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
        RunFileError: the details are damaged or do not fit the rows.
    """
    if not rows:
        return ()
    if details is None:
        raise RunFileError("the run file lacks the details of samples it holds")
    numbers = _unpack(details)
    sides = [
        _decode_side([row[2 + 3 * side : 5 + 3 * side] for row in rows], numbers) for side in (0, 1)
    ]
    return tuple(
        Sample(start_s=row[0] / 1e6, duration_s=row[1] / 1e6, read=read, write=write)
        for row, read, write in zip(rows, *sides, strict=True)
    )


def _decode_side(columns: Sequence[Sequence[int | None]], numbers: Iterator[int]) -> list[IoStats]:
    size = next(numbers)
    filled = np.cumsum([next(numbers) for _ in range(size)], dtype=np.int64)
    count = size * len(columns)
    table = np.fromiter(numbers, dtype=np.int64, count=count).reshape(size, len(columns))
    side = []
    for column, (ios, bytes_, latency_sum_ns) in enumerate(columns):
        latency_ios, minimum, maximum = next(numbers), next(numbers), next(numbers)
        counts = table[:, column]
        kept = np.flatnonzero(counts)
        side.append(
            IoStats(
                ios=ios or 0,
                bytes=bytes_ or 0,
                latency_ios=latency_ios,
                latency_sum_ns=latency_sum_ns or 0,
                latency_min_ns=minimum - 1 if minimum else None,
                latency_max_ns=maximum - 1 if maximum else None,
                histogram=Histogram(filled[kept], counts[kept]),
            )
        )
    return side


def compress(data: bytes) -> bytes | None:
    """Raw fio output, as a standard .xz stream that any tool opens. None when empty."""
    return lzma.compress(data, preset=6) if data else None


def decompress(blob: bytes | None) -> bytes:
    return lzma.decompress(blob) if blob else b""


def _pack(numbers: Iterable[int]) -> bytes:
    out = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return lzma.compress(bytes(out), format=lzma.FORMAT_RAW, filters=_FILTERS)


def _unpack(blob: bytes) -> Iterator[int]:
    try:
        data = lzma.decompress(blob, format=lzma.FORMAT_RAW, filters=_FILTERS)
    except lzma.LZMAError as error:
        raise RunFileError(f"the run file holds a damaged histogram: {error}") from error

    def numbers() -> Iterator[int]:
        number = shift = 0
        for byte in data:
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                yield number
                number = shift = 0
        raise RunFileError("the run file holds a histogram that ends early")

    return numbers()
