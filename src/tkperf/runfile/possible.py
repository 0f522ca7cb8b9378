"""Seconds as a reader would take them: what cannot be is left out before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tkperf.measurement import IoStats, Sample
from tkperf.runfile.second_columns import misfits

_MOST = 2**63 - 2  # what both SQLite and our varints take, and one more


def possible_samples(samples: Sequence[Sample]) -> tuple[tuple[Sample, ...], str | None]:
    """The samples that can be, and how many of what was impossible in others; None if nothing.

    An impossible extreme becomes "not measured", a second that cannot be at all is left out.
    """
    kept = [sample for sample in samples if _is_possible(sample)]
    for side in ("read", "write"):
        stats: list[IoStats] = [getattr(sample, side) for sample in kept]
        odd = misfits(
            np.array([side_stats.histogram.total for side_stats in stats], dtype=np.int64),
            np.array([side_stats.latency_ios for side_stats in stats], dtype=np.int64),
        )
        kept = [sample for sample, is_odd in zip(kept, odd, strict=True) if not is_odd]
    mended = tuple(
        replace(sample, read=_mend_side(sample.read), write=_mend_side(sample.write))
        if _has_odd(sample)
        else sample
        for sample in kept
    )
    clauses = []
    if gone := len(samples) - len(kept):
        clauses.append(f"{gone} of {len(samples)} seconds")
    if changed := sum(new is not old for new, old in zip(mended, kept, strict=True)):
        clauses.append(f"the extreme latencies of {changed} of {len(samples)} seconds")
    return mended, ", ".join(clauses) or None


def _is_possible(sample: Sample) -> bool:
    # Kept in microseconds.
    times = 0 <= sample.start_s * 1e6 <= _MOST and 0 < sample.duration_s * 1e6 <= _MOST
    return times and all(
        0 <= count <= _MOST
        for stats in (sample.read, sample.write)
        for count in (stats.ios, stats.bytes, stats.latency_ios, stats.latency_sum_ns)
    )


def _has_odd(sample: Sample) -> bool:
    extremes = (
        value
        for stats in (sample.read, sample.write)
        for value in (stats.latency_min_ns, stats.latency_max_ns)
    )
    return any(value != _extreme(value) for value in extremes)


def _mend_side(stats: IoStats) -> IoStats:
    return replace(
        stats,
        latency_min_ns=_extreme(stats.latency_min_ns),
        latency_max_ns=_extreme(stats.latency_max_ns),
    )


def _extreme(value: int | None) -> int | None:
    return None if value is None or not 0 <= value <= _MOST else value
