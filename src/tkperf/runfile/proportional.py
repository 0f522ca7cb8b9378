"""Columns of whole numbers, each kept as what it differs from its share by.

I/Os follow the time, bytes the I/Os, a bucket's count all I/Os of its second: each value of a column is
expected to have the share in the column's sum that its weight has in all weights. A bucket's count also
goes with its second's mean latency, which moves I/Os from bucket to bucket: the ``trend``. What is left is
noise. Its low bits are kept as they are, as nothing packs them; its high ones, which are mostly 0 to 4, are
left to LZMA. docs/run-file.md#seconds has the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tkperf.histogram import IntArray
from tkperf.runfile.packed import (
    DO_NOT_FIT,
    ENDS_EARLY,
    TOO_LARGE,
    Numbers,
    pack,
    put_numbers,
    unzigzag,
    zigzag,
)
from tkperf.seconds import FloatArray

# High parts are bytes. What LZMA takes for one, in bits, is about this times its logarithm of base 2.
_HIGH_BITS, _HIGH_COST = 8, 1.0
_NUMBER_BITS = 64
# Taken eight bytes at a time, of which up to seven bits are of what is before.
_MOST_LOW_BITS = _NUMBER_BITS - 7
# Exact as a floating-point number: what is beyond it is expected to be it.
_MOST_EXPECTED, _MOST_SLOPE = 2.0**62, 2.0**61

Unsigned = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """What the values of columns are expected to go with: weights, and a trend of -1 to 1."""

    weights: IntArray
    trend: FloatArray | None = None


def build_trend(weights: IntArray, sums: IntArray) -> FloatArray:
    """By how much the mean of a row is above that of all: what its sum is more than its share, the most being 1."""
    whole = float(sum(weights.tolist()))
    mean = float(sum(sums.tolist())) / whole if whole > 0 else 0.0
    more = sums.astype(np.float64) - weights.astype(np.float64) * mean
    most = float(np.abs(more).max(initial=0))
    return more / most if most > 0 else more


class Packing:
    """Numbers and columns put one after the other, to be taken out again by ``Unpacking``."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._bits: list[NDArray[np.uint8]] = []

    def put(self, piece: bytes) -> None:
        """A piece as it is, such as indices."""
        self._data += piece

    def number(self, value: int) -> None:
        self.put(put_numbers((value,)))

    def columns(self, *groups: tuple[IntArray, Rows]) -> None:
        """A block: groups of columns, each with what their rows go with; an array's rows are the columns."""
        totals, slopes, left = [], [], []
        for values, rows in groups:
            of_sums, of_slopes, of_left = _find_best(values, rows)
            totals.append(of_sums)
            slopes.append(of_slopes)
            left.append(of_left)
        folded = _fold(np.concatenate(left))
        low_bits, _ = _find_low_bits(folded)
        high = folded >> low_bits.astype(np.uint64)[:, np.newaxis]
        self.put(put_numbers(np.concatenate(totals).tolist()))
        for of_group in slopes:
            self.put(b"" if of_group is None else put_numbers(zigzag(of_group).tolist()))
        self.put(low_bits.astype(np.uint8).tobytes() + high.astype(np.uint8).tobytes())
        for column, bits in zip(folded, low_bits.tolist(), strict=True):
            places = np.arange(bits - 1, -1, -1, dtype=np.uint64)
            low = (column[:, np.newaxis] >> places) & np.uint64(1)
            self._bits.append(low.astype(np.uint8).ravel())

    def blob(self) -> bytes:
        bits = np.packbits(np.concatenate(self._bits)).tobytes() if self._bits else b""
        return pack(bytes(self._data)) + bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedBlock:
    """A block as it is in a blob, its values not yet looked at.

    Attributes:
        columns, rows: its shape.
        totals, slopes: one of each column; slopes only of blocks with a trend.
        low_bits: how many bits of each column are kept as they are, a byte each.
        high: the other bits, a byte each, column after column.
        low: the bytes that hold the low bits, the first of which is bit ``first_bit`` of them.
    """

    columns: int
    rows: int
    totals: IntArray
    slopes: IntArray | None
    low_bits: bytes
    high: bytes
    low: bytes
    first_bit: int


class Unpacking(Numbers):
    """Takes numbers and blocks from a blob of ``Packing``.

    Raises:
        ValueError: the blob is damaged, also from each method.
    """

    def __init__(self, blob: bytes, limit_bytes: int) -> None:
        super().__init__(blob, limit_bytes)
        self._bit = 0

    def block(self, columns: int, rows: int, *, trend: bool = False) -> PackedBlock:
        """The next one; ``trend``: whether its columns go with one."""
        totals = self.many(columns)
        slopes = unzigzag(self.many(columns)) if trend else None
        low_bits = bytes(self._take(columns))
        if max(low_bits, default=0) > _MOST_LOW_BITS:
            raise ValueError(TOO_LARGE)
        high = bytes(self._take(columns * rows))
        first, end = self._bit, self._bit + sum(low_bits) * rows
        if end > 8 * len(self._behind):
            raise ValueError(ENDS_EARLY)
        self._bit = end
        return PackedBlock(
            columns=columns,
            rows=rows,
            totals=totals,
            slopes=slopes,
            low_bits=low_bits,
            high=high,
            low=self._behind[first // 8 : -(-end // 8)],
            first_bit=first % 8,
        )

    def end(self) -> None:
        if self._at != len(self._data) or len(self._behind) != -(-self._bit // 8):
            raise ValueError(DO_NOT_FIT)


class Blocks:
    """Blocks of one shape, from any blobs, of which the expected part is still to be added, group by group.

    Many at once take little longer than one: a day has more than a thousand, all of them small.
    """

    def __init__(self, packed: Sequence[PackedBlock]) -> None:
        """``packed``: one or more, all with or all without a trend."""
        columns, rows = packed[0].columns, packed[0].rows
        shape = (len(packed), columns, rows)
        low_bits = _join_bytes(block.low_bits for block in packed).reshape(shape[:2])
        folded = _join_bytes(block.high for block in packed).reshape(shape).astype(np.uint64)
        folded <<= low_bits.astype(np.uint64)[..., np.newaxis]
        folded |= _find_low(packed, low_bits.astype(np.int64), rows)
        self._left = (folded >> np.uint64(1)).view(np.int64)
        self._left ^= -(folded & np.uint64(1)).view(np.int64)
        self._totals = np.array([block.totals for block in packed])
        slopes = [block.slopes for block in packed if block.slopes is not None]
        self._slopes = np.array(slopes) if slopes else None
        self._at = 0

    def group(self, columns: int, rows: Rows) -> IntArray:
        """The next columns of each, which go with this: blocks x columns x rows.

        Args:
            columns: how many.
            rows: with one row of weights, and of trends, for each block.

        Damaged ones may have negative values.
        """
        here = np.s_[:, self._at : self._at + columns]
        self._at += columns
        slopes = None if self._slopes is None else self._slopes[here]
        return self._left[here] + _expected(rows, self._totals[here], slopes)


def _join_bytes(pieces: Iterable[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(pieces), dtype=np.uint8)


def _find_low(packed: Sequence[PackedBlock], low_bits: IntArray, rows: int) -> Unsigned:
    """The low bits of each value: blocks x columns x rows."""
    joined = b"".join(block.low for block in packed)
    # At every byte the eight from there on, as one number.
    words: Unsigned = np.ndarray(
        (len(joined) + 1,), dtype=">u8", buffer=joined + bytes(_NUMBER_BITS // 8), strides=(1,)
    )
    before = np.cumsum([0, *(len(block.low) for block in packed[:-1])])
    firsts = 8 * before + np.array([block.first_bit for block in packed])
    of_columns = np.cumsum(low_bits * rows, axis=1) - low_bits * rows + firsts[:, np.newaxis]
    bits = low_bits[..., np.newaxis]
    at = of_columns[..., np.newaxis] + bits * np.arange(rows)
    found = words[at >> 3].astype(np.uint64) << (at & 7).astype(np.uint64)
    # In two steps: none has 64 bits, and so far nothing can be shifted at once.
    low: Unsigned = (found >> np.uint64(1)) >> (_NUMBER_BITS - 1 - bits).astype(np.uint64)
    return low


def _expected(rows: Rows, totals: IntArray, slopes: IntArray | None) -> IntArray:
    """The share of each weight in each total, and what the trend adds; in IEEE arithmetic, so alike everywhere.

    Shapes: weights and trend [blocks x] rows, totals and slopes [blocks x] columns.
    """
    weights = rows.weights.reshape(-1, rows.weights.shape[-1]).tolist()
    wholes = np.array([float(sum(row)) for row in weights]).reshape(rows.weights.shape[:-1])
    each = np.zeros(totals.shape)
    np.divide(totals, wholes[..., np.newaxis], out=each, where=wholes[..., np.newaxis] > 0)
    shares = each[..., np.newaxis] * rows.weights.astype(np.float64)[..., np.newaxis, :]
    if slopes is not None and rows.trend is not None:
        shares += slopes.astype(np.float64)[..., np.newaxis] * rows.trend[..., np.newaxis, :]
    return np.rint(np.minimum(np.maximum(shares, 0), _MOST_EXPECTED)).astype(np.int64)


def _find_slopes(left: IntArray, rows: Rows) -> IntArray | None:
    """How much each column changes with the trend, by least squares; None without one."""
    if rows.trend is None:
        return None
    found = left @ rows.trend / max(float(rows.trend @ rows.trend), 1.0)
    return np.rint(np.clip(found, -_MOST_SLOPE, _MOST_SLOPE)).astype(np.int64)


def _find_best(values: IntArray, rows: Rows) -> tuple[IntArray, IntArray | None, IntArray]:
    """Of each column the sum and the slope that leave the least, or 0 for either, and what is left."""
    sums = values.sum(axis=1, dtype=np.float64)
    totals = np.clip(sums, 0, _MOST_EXPECTED).astype(np.int64)
    none = np.zeros_like(totals)
    slopes = _find_slopes(values - _expected(rows, totals, None), rows)
    tried = [(totals, none), (none, none)] + ([] if slopes is None else [(totals, slopes)])
    costs = []
    for of_sums, of_slopes in tried:
        left = values - _expected(rows, of_sums, of_slopes)
        # Each number takes a bit for each of its own, too.
        beside = np.log2(1.0 + of_sums) + np.log2(1.0 + np.abs(of_slopes))
        costs.append(_find_low_bits(_fold(left))[1] * values.shape[1] + beside)
    chosen = np.argmin(costs, axis=0)
    best_sums = np.choose(chosen, [of_sums for of_sums, _ in tried])
    best_slopes = np.choose(chosen, [of_slopes for _, of_slopes in tried])
    left = values - _expected(rows, best_sums, best_slopes)
    return best_sums, None if slopes is None else best_slopes, left


def _fold(signed: IntArray) -> Unsigned:
    """0, -1, 1, -2 ... as 0, 1, 2, 3 ..., in 64 bits."""
    return ((signed << 1) ^ (signed >> (_NUMBER_BITS - 1))).view(np.uint64)


def _find_low_bits(folded: Unsigned) -> tuple[IntArray, FloatArray]:
    """How many low bits of each column are kept as they are, and what a value then takes, in bits.

    Mostly about its usual number of bits; none where a few values are large and all others 0.
    """
    largest = folded.max(axis=1).astype(np.float64)
    least = np.clip(np.frexp(largest)[1] - _HIGH_BITS, 0, _MOST_LOW_BITS).astype(np.int64)
    bits, best = least, np.full(least.shape, np.inf)
    for more in range(_HIGH_BITS):
        tried = np.minimum(least + more, _MOST_LOW_BITS)
        high = (folded >> tried.astype(np.uint64)[:, np.newaxis]).astype(np.float64)
        cost = tried + _HIGH_COST * np.log2(1 + high).mean(axis=1)
        bits = np.where(cost < best, tried, bits)
        best = np.minimum(cost, best)
    return bits, best
