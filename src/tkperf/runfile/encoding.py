"""Histograms of steps and fio's output as small byte strings. Format described in docs/run-file.md."""

from __future__ import annotations

import lzma

import numpy as np

from tkperf.histogram import Histogram
from tkperf.runfile.packed import (
    ENDS_ELSEWHERE,
    Numbers,
    most_bytes,
    most_unpacked_bytes,
    pack,
    put_indices,
    put_planes,
    take_indices,
    unpack,
    unzigzag,
    zigzag,
)

# fio's last document, of a thousand threads with every bucket filled: about a third of it.
_MOST_OUTPUT_BYTES = 256 << 20


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


def compress(data: bytes) -> bytes | None:
    """Raw fio output, as a standard .xz stream that any tool opens. None when empty."""
    return lzma.compress(data, preset=6) if data else None


def decompress(blob: bytes | None) -> bytes:
    """Raises ValueError when the blob is damaged."""
    if not blob:
        return b""
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MOST_OUTPUT_BYTES)
    try:
        data, behind = unpack(unpacker, blob, min(_MOST_OUTPUT_BYTES, most_unpacked_bytes(blob)))
        if behind:
            raise lzma.LZMAError(ENDS_ELSEWHERE)
    except (lzma.LZMAError, EOFError) as error:
        raise ValueError(f"output of fio: {error}") from error
    return data
