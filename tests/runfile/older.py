"""A run file with its seconds as versions before 11 kept them: rows, and details beside them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from tkperf.histogram import coarsen
from tkperf.measurement import NO_IO, IoStats, Sample
from tkperf.runfile.kept_seconds import find_of_step, read_samples
from tkperf.runfile.packed import pack, put_indices, put_numbers, put_planes, zigzag


def as_older(path: Path) -> None:
    """The same run, as version 10 would have written it."""
    with closing(sqlite3.connect(path)) as db, db:
        for (sequence,) in db.execute("SELECT sequence FROM step").fetchall():
            samples = read_samples(find_of_step(db, sequence, histograms=True))
            db.execute(
                "UPDATE step SET sample_details = ?, seconds = NULL, second_histograms = NULL "
                "WHERE sequence = ?",
                (encode_details(samples) if samples else None, sequence),
            )
            db.executemany(
                "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                ((sequence, number, *row) for number, row in enumerate(as_rows(samples))),
            )


def as_rows(samples: Sequence[Sample]) -> Iterator[tuple[int | None, ...]]:
    for sample in samples:
        yield (
            round(sample.start_s * 1e6),
            max(1, round(sample.duration_s * 1e6)),
            *_side_of_row(sample.read),
            *_side_of_row(sample.write),
        )


def _side_of_row(stats: IoStats) -> tuple[int | None, int | None, int | None]:
    if stats == NO_IO:
        return (None, None, None)
    return (stats.ios, stats.bytes, stats.latency_sum_ns)


def encode_details(samples: Sequence[Sample]) -> bytes:
    data = bytearray()
    for side in ([sample.read for sample in samples], [sample.write for sample in samples]):
        histograms = [coarsen(stats.histogram) for stats in side]
        filled = np.unique(np.concatenate([histogram.indices for histogram in histograms]))
        table = np.zeros((len(side), filled.size), dtype=np.int64)
        for row, histogram in enumerate(histograms):
            table[row, np.searchsorted(filled, histogram.indices)] = histogram.counts
        data += put_indices(filled) + put_planes(table)
        trailing = np.array([stats.ios - stats.latency_ios for stats in side], dtype=np.int64)
        data += put_numbers(zigzag(trailing).tolist())
        for extremes in (
            [stats.latency_min_ns for stats in side],
            [stats.latency_max_ns for stats in side],
        ):
            data += put_numbers(0 if value is None else value + 1 for value in extremes)
    return pack(bytes(data))
