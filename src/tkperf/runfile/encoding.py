"""Histograms and samples as small byte strings. Format described in docs/run-file.md.

Numbers are unsigned LEB128 varints, tables of counts are byte planes; a blob is one raw LZMA2
stream of them.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tkperf.errors import RunFileError
from tkperf.histogram import (
    BUCKET_LOWER_NS,
    BUCKET_UPPER_NS,
    BUCKETS,
    Histogram,
    IntArray,
    bucket_of_ns,
)
from tkperf.measurement import NO_IO, IoStats, Sample
from tkperf.seconds import Seconds

# Measured on per-second histograms: LZMA with these settings beats zlib and bz2.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0, "dict_size": 1 << 20}]


# A group of buckets in a sample's histogram is at most this fraction of its lower edge wide.
COARSE_WIDTH = 1 / 16


def _build_coarse_buckets() -> IntArray:
    """For each bucket the one that stands for its group: the bucket at the group's middle."""
    middles = np.arange(BUCKETS, dtype=np.int64)
    first = 0
    while first < BUCKETS:
        lower = int(BUCKET_LOWER_NS[first])
        widest = lower + max(1, int(lower * COARSE_WIDTH))
        end = int(np.searchsorted(BUCKET_UPPER_NS, widest, side="left"))
        end = max(end, first + 1)
        middle_ns = (lower + int(BUCKET_UPPER_NS[end - 1]) + 1) // 2
        middles[first:end] = bucket_of_ns(middle_ns)
        first = end
    return middles


_COARSE_BUCKETS = _build_coarse_buckets()


def coarsen(histogram: Histogram) -> Histogram:
    """The same I/Os in buckets of at most 1/16 of their value, as samples are kept."""
    dense = np.zeros(BUCKETS, dtype=np.int64)
    np.add.at(dense, _COARSE_BUCKETS[histogram.indices], histogram.counts)
    return Histogram.from_dense(dense)


_NO_DETAILS = "the run file lacks the details of samples it holds"
_ENDS_EARLY = "the run file holds a histogram that ends early"
_LONGEST_NUMBER_BYTES = 9  # 63 bits


class _Numbers:
    """Takes numbers and tables from an unpacked blob, in the order in which they were put in."""

    def __init__(self, blob: bytes) -> None:
        try:
            self._data = lzma.decompress(blob, format=lzma.FORMAT_RAW, filters=_FILTERS)
        except (lzma.LZMAError, EOFError) as error:
            raise RunFileError(f"the run file holds a damaged histogram: {error}") from error
        self._at = 0

    def one(self) -> int:
        number = shift = 0
        while True:
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def many(self, count: int) -> IntArray:
        """Numbers one after the other, all at once: there are many in a day's samples."""
        if not count:
            return np.empty(0, dtype=np.int64)
        piece = np.frombuffer(self._data, dtype=np.uint8)[self._at : self._at + 10 * count]
        ends = np.flatnonzero(piece < 0x80)[:count]
        if ends.size < count:
            raise RunFileError(_ENDS_EARLY)
        piece = piece[: ends[-1] + 1]
        starts = np.concatenate(([0], ends[:-1] + 1))
        place = np.arange(piece.size) - np.repeat(starts, np.diff(ends, prepend=-1))
        if place.max() > _LONGEST_NUMBER_BYTES - 1:
            raise RunFileError("the run file holds a number that is too large")
        self._at += piece.size
        bits = (piece & 0x7F).astype(np.int64) << (7 * place)
        return np.add.reduceat(bits, starts)

    def table(self, rows: int, columns: int) -> IntArray:
        """Byte planes, the lowest first: rows x columns numbers."""
        table = np.zeros(rows * columns, dtype=np.int64)
        for plane in range(self.one()):
            piece = np.frombuffer(self._take(rows * columns), dtype=np.uint8)
            table |= piece.astype(np.int64) << (8 * plane)
        return table.reshape(rows, columns)

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise RunFileError(_ENDS_EARLY)
        self._at += size
        return piece

    def skip_table(self, rows: int, columns: int) -> None:
        self._take(self.one() * rows * columns)


def encode_histogram(histogram: Histogram) -> bytes | None:
    """Bucket count, distances between bucket indices, steps between counts. None when empty."""
    if not histogram.total:
        return None
    steps = np.diff(histogram.counts, prepend=0)
    return _pack(_indices(histogram.indices) + _planes(_zigzag(steps).reshape(1, -1)))


def decode_histogram(blob: bytes | None) -> Histogram:
    """Raises RunFileError or ValueError when the blob is damaged."""
    if blob is None:
        return Histogram()
    numbers = _Numbers(blob)
    indices = _take_indices(numbers)
    steps = _unzigzag(numbers.table(1, indices.size)[0])
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
        data += _indices(filled) + _planes(table)
        # fio's latency count trails its I/O count by little, so the difference is mostly 0.
        trailing = np.array([stats.ios - stats.latency_ios for stats in side], dtype=np.int64)
        data += _varints(_zigzag(trailing).tolist())
        # 0 stands for "not measured", so values are stored plus one.
        for extremes in (
            [stats.latency_min_ns for stats in side],
            [stats.latency_max_ns for stats in side],
        ):
            data += _varints(0 if value is None else value + 1 for value in extremes)
    return _pack(bytes(data))


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
        RunFileError, ValueError: the details are damaged or do not fit the rows.
    """
    if not rows:
        return ()
    if details is None:
        raise RunFileError(_NO_DETAILS)
    numbers = _Numbers(details)
    sides = [
        _decode_side([row[2 + 3 * side : 5 + 3 * side] for row in rows], numbers) for side in (0, 1)
    ]
    return tuple(
        Sample(start_s=row[0] / 1e6, duration_s=row[1] / 1e6, read=read, write=write)
        for row, read, write in zip(rows, *sides, strict=True)
    )


def _decode_side(columns: Sequence[Sequence[int | None]], numbers: _Numbers) -> list[IoStats]:
    size = len(columns)
    filled = _take_indices(numbers)
    table = numbers.table(size, filled.size)
    trailing = _unzigzag(numbers.many(size)).tolist()
    minima, maxima = numbers.many(size).tolist(), numbers.many(size).tolist()
    side = []
    for row, (ios, bytes_, latency_sum_ns) in enumerate(columns):
        kept = np.flatnonzero(table[row])
        side.append(
            IoStats(
                ios=ios or 0,
                bytes=bytes_ or 0,
                latency_ios=(ios or 0) - trailing[row],
                latency_sum_ns=latency_sum_ns or 0,
                latency_min_ns=minima[row] - 1 if minima[row] else None,
                latency_max_ns=maxima[row] - 1 if maxima[row] else None,
                histogram=Histogram(filled[kept], table[row, kept]),
            )
        )
    return side


def decode_seconds(rows: Sequence[SampleRow], details: bytes | None) -> Seconds:
    """The samples of a step as columns, from its rows in order and its details.

    Raises:
        RunFileError, ValueError: the details are damaged or do not fit the rows.
    """
    if not rows:
        return Seconds()
    if details is None:
        raise RunFileError(_NO_DETAILS)
    numbers = _Numbers(details)
    # NULL, as a direction without I/O has, becomes NaN.
    table = np.array(rows, dtype=np.float64)
    start_s, duration_s = table[:, 0] / 1e6, table[:, 1] / 1e6
    ios, bytes_, sum_ns = (
        np.nan_to_num(table[:, n]) + np.nan_to_num(table[:, n + 3]) for n in (2, 3, 4)
    )
    latency_ios, highest = ios, np.zeros(len(rows), dtype=np.int64)
    for _ in ("read", "write"):
        filled = _take_indices(numbers)
        numbers.skip_table(len(rows), filled.size)
        latency_ios = latency_ios - _unzigzag(numbers.many(len(rows)))
        numbers.many(len(rows))  # minima
        highest = np.maximum(highest, numbers.many(len(rows)))
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
    """Raises RunFileError when the blob is damaged."""
    try:
        return lzma.decompress(blob) if blob else b""
    except (lzma.LZMAError, EOFError) as error:
        raise RunFileError(f"the run file holds damaged output of fio: {error}") from error


def _indices(indices: IntArray) -> bytes:
    """How many, then the distance of each from the one before, the first from 0."""
    return _varints([indices.size, *np.diff(indices, prepend=0).tolist()])


def _take_indices(numbers: _Numbers) -> IntArray:
    return np.cumsum(numbers.many(numbers.one()), dtype=np.int64)


def _planes(table: NDArray[np.int64]) -> bytes:
    """How many byte planes, then each, the lowest first, row after row."""
    highest = int(table.max(initial=0))
    planes = (highest.bit_length() + 7) // 8
    return bytes([planes]) + b"".join(
        ((table >> (8 * plane)) & 0xFF).astype(np.uint8).tobytes() for plane in range(planes)
    )


def _zigzag(numbers: IntArray) -> IntArray:
    """0, -1, 1, -2 ... as 0, 1, 2, 3 ..."""
    return np.where(numbers >= 0, 2 * numbers, -2 * numbers - 1)


def _unzigzag(numbers: IntArray) -> IntArray:
    return np.where(numbers % 2, -(numbers + 1) // 2, numbers // 2)


def _varints(numbers: Iterable[int]) -> bytes:
    out = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def _pack(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=_FILTERS)
