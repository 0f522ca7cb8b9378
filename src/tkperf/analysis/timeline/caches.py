"""The cache of a drive, found in the rate of its writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tkperf.analysis.timeline.levels import LevelKind
from tkperf.analysis.timeline.timelines import Timeline
from tkperf.model.quantity import IOPS
from tkperf.model.workload import Workload

MOST_CACHED = 0.5
"""Largest share of a drive that can be its cache.

Flash with two bits a cell holds half of its capacity when it is written with one bit a cell, with three bits a third.
The free blocks of a purged drive last for at least its capacity. A fall in between has no certain cause.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The first level of a stream of writes that is too short to be the free blocks of a purged drive.

    Attributes:
        start_s, end_s: the time from the start of the stream in which the rate fell to the level after the cache.
        value, value_after: IOPS until the cache was full, and at the next level.
    """

    workload: Workload
    size_bytes: float
    start_s: float
    end_s: float
    value: float
    value_after: float


def find_cache(timelines: Iterable[Timeline], capacity_bytes: float) -> Cache | None:
    """Return the cache that a stream of writes filled; None: there is no certain one."""
    for timeline in timelines:
        work = timeline.workload
        levels = [level for level in timeline.levels if level.kind is not LevelKind.TRANSITION]
        if timeline.quantity != IOPS.key or len(levels) < 2:
            continue
        # The block size of a combination is only a bound, so its IOPS say nothing about the bytes.
        if not work.writes or work.reads or work.flushes or work.is_combination:
            continue
        first, then = levels[:2]
        is_fresh = first.kind is LevelKind.FRESH and first.end_bytes is not None
        if (
            is_fresh
            and first.end_bytes
            and first.end_bytes <= MOST_CACHED * capacity_bytes
            and then.value < first.value
        ):
            return Cache(
                workload=timeline.workload,
                size_bytes=first.end_bytes,
                start_s=first.end,
                end_s=then.start,
                value=first.value,
                value_after=then.value,
            )
    return None
