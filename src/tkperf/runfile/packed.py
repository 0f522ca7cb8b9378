"""The pieces that a blob of a run file is made of, put together and taken apart.

Numbers are unsigned LEB128 varints, tables of counts are byte planes; a blob is one raw LZMA2
stream of them. Taking apart is strict and bounded: a file may be damaged or made to do harm.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tkperf.histogram import BUCKETS, IntArray

# Measured on per-second histograms: LZMA with these settings beats zlib and bz2.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0, "dict_size": 1 << 20}]

DO_NOT_FIT = "histograms do not fit their rows"
ENDS_ELSEWHERE = "it does not end where it should"
ENDS_EARLY = "a histogram ends early"
TOO_LARGE = "a number is too large"
_LONGEST_NUMBER_BYTES = 9  # 63 bits
_MOST_PLANES = 8  # 64 bits
_ALWAYS_UNPACKED_BYTES, _MOST_RATIO = 16 << 20, 100
_NUMBERS_AT_ONCE = 1 << 20
_FEW_NUMBERS = 10  # one by one is faster


def most_bytes(rows: int, numbers: int) -> int:
    """What a table of histograms with as many numbers beside each row can take, unpacked."""
    row_bytes = BUCKETS * _MOST_PLANES + numbers * _LONGEST_NUMBER_BYTES
    return (2 + BUCKETS) * _LONGEST_NUMBER_BYTES + rows * row_bytes


def most_unpacked_bytes(blob: bytes) -> int:
    """What a blob may unpack to. Real counts pack to a tenth or so; equal ones to far less."""
    return _ALWAYS_UNPACKED_BYTES + _MOST_RATIO * len(blob)


def unpack(unpacker: lzma.LZMADecompressor, blob: bytes, limit_bytes: int) -> tuple[bytes, bytes]:
    """The whole of a stream, and what follows. A small one can unpack to more than memory holds.

    Raises:
        LZMAError, EOFError: damaged, or more than ``limit_bytes``.
    """
    data = unpacker.decompress(blob, max_length=limit_bytes + 1)
    if len(data) > limit_bytes:
        raise lzma.LZMAError("it is larger than it can be")
    if not unpacker.eof:
        raise lzma.LZMAError(ENDS_ELSEWHERE)
    return data, unpacker.unused_data


class Numbers:
    """Takes numbers and tables from an unpacked blob, in the order in which they were put in."""

    def __init__(self, blob: bytes, limit_bytes: int) -> None:
        unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=_FILTERS)
        limit_bytes = min(limit_bytes, most_unpacked_bytes(blob))
        try:
            self._data, self._behind = unpack(unpacker, blob, limit_bytes)
        except (lzma.LZMAError, EOFError) as error:
            raise ValueError(f"a histogram: {error}") from error
        self._at = 0

    def one(self) -> int:
        number, data, at = 0, self._data, self._at
        for place in range(_LONGEST_NUMBER_BYTES):
            if at >= len(data):
                raise ValueError(ENDS_EARLY)
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                self._at = at
                return number
        raise ValueError(TOO_LARGE)

    def many(self, count: int) -> IntArray:
        """Numbers one after the other, all at once: there are many in a day's samples."""
        if count < _FEW_NUMBERS:
            return np.array([self.one() for _ in range(count)], dtype=np.int64)
        piece = np.frombuffer(self._data, dtype=np.uint8)[self._at : self._at + 10 * count]
        if piece.size >= count and piece[:count].max(initial=0) < 0x80:  # distances mostly are
            self._at += count
            return piece[:count].astype(np.int64)
        ends = np.flatnonzero(piece < 0x80)[:count]
        if ends.size < count:
            raise ValueError(ENDS_EARLY)
        piece = piece[: ends[-1] + 1]
        starts = np.concatenate(([0], ends[:-1] + 1))
        place = np.arange(piece.size) - np.repeat(starts, np.diff(ends, prepend=-1))
        if place.max() > _LONGEST_NUMBER_BYTES - 1:
            raise ValueError(TOO_LARGE)
        self._at += piece.size
        bits = (piece & 0x7F).astype(np.int64) << (7 * place)
        return np.add.reduceat(bits, starts)

    def table(self, rows: int, columns: int) -> Iterator[IntArray]:
        """Byte planes, the lowest first: rows x columns numbers, some rows at a time.

        As a whole they would take eight times what they do in the blob. They are passed over at
        once, and put together when they are asked for.
        """
        planes = self.one()
        if planes > _MOST_PLANES:
            raise ValueError(TOO_LARGE)
        data = np.frombuffer(self._take(planes * rows * columns), dtype=np.uint8)
        return _pieces(data.reshape(planes, rows, columns))

    def end(self) -> None:
        """Nothing may be left: what is read for other rows than were written ends elsewhere."""
        if self._at != len(self._data):
            raise ValueError(DO_NOT_FIT)
        if self._behind:
            raise ValueError(f"a histogram: {ENDS_ELSEWHERE}")

    def _take(self, size: int) -> memoryview:
        piece = memoryview(self._data)[self._at : self._at + size]
        self._at += size
        if self._at > len(self._data):
            raise ValueError(ENDS_EARLY)
        return piece


def _pieces(data: NDArray[np.uint8]) -> Iterator[IntArray]:
    """Planes of rows of columns as numbers, some rows at a time."""
    planes, rows, columns = data.shape
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, columns))
    for first in range(0, rows, at_once):
        piece = data[:, first : first + at_once]
        table = np.zeros(piece.shape[1:], dtype=np.int64)
        for plane in range(planes):
            table |= piece[plane].astype(np.int64) << (8 * plane)
        yield table


def put_indices(indices: IntArray) -> bytes:
    """How many, then the distance of each from the one before, the first from 0."""
    return put_numbers([indices.size, *np.diff(indices, prepend=0).tolist()])


def take_indices(numbers: Numbers) -> IntArray:
    count = numbers.one()
    if count > BUCKETS:
        raise ValueError("a histogram has more buckets than there are")
    if not count:
        return np.empty(0, dtype=np.int64)
    first = numbers.one()  # alone, as those after it are small
    return np.cumsum(np.concatenate(([first], numbers.many(count - 1))), dtype=np.int64)


def put_planes(table: NDArray[np.int64]) -> bytes:
    """How many byte planes, then each, the lowest first, row after row."""
    highest = int(table.max(initial=0))
    planes = (highest.bit_length() + 7) // 8
    return bytes([planes]) + b"".join(
        ((table >> (8 * plane)) & 0xFF).astype(np.uint8).tobytes() for plane in range(planes)
    )


def zigzag(numbers: IntArray) -> IntArray:
    """0, -1, 1, -2 ... as 0, 1, 2, 3 ..."""
    return np.where(numbers >= 0, 2 * numbers, -2 * numbers - 1)


def unzigzag(numbers: IntArray) -> IntArray:
    return (numbers >> 1) ^ -(numbers & 1)


def put_numbers(numbers: Iterable[int]) -> bytes:
    out = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def pack(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=_FILTERS)
