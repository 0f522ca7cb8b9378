"""The positions of sequential jobs: each stream continues over its steps instead of restarting.

fio can start a job anywhere in its region, but at the end it wraps to its start, not
to the region's beginning (tried with fio 3.33; zonemode and several files do not change that). So a
step goes on where the stream stopped if the rest of the region lasts for it, at the speed last seen.
Otherwise it starts at the region's beginning, and the rest of the region is passed over. A
stream that takes more than about half of its region a step therefore begins each step at the
region's beginning: only from there does fio's own wrap go round the whole region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tkperf.engine.fio_job import Region, split_regions
from tkperf.model.workload import Access, ActiveRange, Step, Workload

# A step may run faster than the one before it. Should it run faster still, it goes over the rest of the
# region a second time, which is harmless.
SPEED_MARGIN = 1.1


@dataclass(slots=True)
class _Cursor:
    next_bytes: tuple[int, ...]
    bytes_per_s: float


class SequentialCursors:
    """Positions of all sequential streams of a device; the workload identifies each stream.

    Streams within an area begin at its start; each area is seen once.
    """

    def __init__(self, active_range: ActiveRange) -> None:
        self._active_range = active_range
        self._cursors: dict[Workload, _Cursor] = {}

    def starts_bytes(self, step: Step) -> tuple[int, ...]:
        """Return the start of each job within its region; empty for random workloads."""
        workload = step.workload
        if workload.access is not Access.SEQUENTIAL:
            return ()
        cursor = None if step.workload.region else self._cursors.get(workload)
        if cursor is None:
            return (0,) * workload.jobs
        regions = self._regions(workload)
        needed_bytes = SPEED_MARGIN * cursor.bytes_per_s * step.duration_s / workload.jobs
        return tuple(
            position if region.length_bytes - position >= needed_bytes else 0
            for region, position in zip(regions, cursor.next_bytes, strict=True)
        )

    def advance(self, step: Step, starts_bytes: Sequence[int], job_bytes: Sequence[int]) -> None:
        """Note what each job moved in a step that began at ``starts_bytes``."""
        workload = step.workload
        if step.workload.region:
            return
        positions = []
        for region, start, moved in zip(
            self._regions(workload), starts_bytes, job_bytes, strict=True
        ):
            # After a wrap the position is the one of fio's own wrap.
            position = start + moved % (region.length_bytes - start)
            positions.append(position if position < region.length_bytes else 0)
        self._cursors[workload] = _Cursor(
            next_bytes=tuple(positions), bytes_per_s=sum(job_bytes) / step.duration_s
        )

    def _regions(self, workload: Workload) -> tuple[Region, ...]:
        return split_regions(self._active_range, workload.jobs, workload.block_size_bytes)
