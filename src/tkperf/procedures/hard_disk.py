"""Hard disk tests of TKperf (not in the PTS): speed by the area of the disk.

Outer tracks are faster than inner ones. The disk is cut into equal areas from its start to its end, and each
is measured on its own. There is no purge or preconditioning: a hard disk has no state that would need it.
TKperf 2.2, perfTest/DeviceTests.py.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, ClassVar, Self

import msgspec

from tkperf.model.figures import SectionPlan, matrices, over_areas
from tkperf.model.phases import Interruption, Reply, Round, SectionOutcome, Yielded
from tkperf.model.units import KIB, format_count
from tkperf.model.workload import ActiveRange, Step
from tkperf.procedures.profiles.tables import (
    MOST_AREAS,
    BlockSizeKib,
    BlockSizesKib,
    Percents,
    SteppedTable,
    addressable,
    means,
)


class HardDiskTable(SteppedTable, frozen=True, kw_only=True):
    """Numbers of ``tkperf hdd``: the disk cut into ``areas`` of equal size."""

    key: ClassVar[str] = "hard_disk"

    areas: Annotated[
        int, msgspec.Meta(ge=1, le=MOST_AREAS), means("equal areas that the disk is cut into")
    ]
    area_alignment_kib: Annotated[BlockSizeKib, means("areas begin at multiples of this")]
    iops_read_percents: Annotated[Percents, means("R/W mixes of random steps, in % of reads")]
    iops_block_sizes_kib: Annotated[BlockSizesKib, means("block sizes of random steps")]
    throughput_block_sizes_kib: Annotated[BlockSizesKib, means("block sizes of sequential steps")]

    def fitted(self, logical_block_bytes: int) -> Self:
        return msgspec.structs.replace(
            self,
            iops_block_sizes_kib=addressable(self.iops_block_sizes_kib, logical_block_bytes),
            throughput_block_sizes_kib=addressable(
                self.throughput_block_sizes_kib, logical_block_bytes
            ),
        )


def area_plan(name: str, quantity: str) -> SectionPlan:
    """Plan the display of a quantity over the areas."""
    return SectionPlan(
        name=name,
        quantities=(quantity,),
        figures=(*matrices(quantity), *over_areas(quantity)),
    )


def each_area(
    section: str,
    table: HardDiskTable,
    active_range_bytes: int,
    steps: tuple[Step, ...],
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run the steps in one area after the other."""
    areas = _steps_within(cut_into_areas(table, active_range_bytes), steps)
    for number, within in enumerate(areas, start=1):
        # The areas do not depend on each other.
        measured = Round(
            section=section,
            number=number,
            steps=within,
            areas=len(areas),
            repeatable=True,
        )
        while isinstance((yield measured), Interruption):
            pass
    return SectionOutcome(
        section=section,
        window=tuple(range(1, len(areas) + 1)),
        verdict=None,
        ended_because=f"all {format_count(len(areas), 'area')} measured",
    )


@lru_cache(maxsize=16)
def _steps_within(
    areas: tuple[ActiveRange, ...], steps: tuple[Step, ...]
) -> tuple[tuple[Step, ...], ...]:
    """Return the steps in each area. Cached: the procedure is walked again from each of a hundred areas."""
    return tuple(
        tuple(replace(step, workload=replace(step.workload, region=area)) for step in steps)
        for area in areas
    )


def cut_into_areas(table: HardDiskTable, active_range_bytes: int) -> tuple[ActiveRange, ...]:
    """Return equal areas of whole alignment units from the start; up to a unit per area is left at the end.

    Raises:
        ValueError: the range is too small to be cut.
    """
    alignment_bytes = round(table.area_alignment_kib * KIB)
    length_bytes = active_range_bytes // table.areas // alignment_bytes * alignment_bytes
    if not length_bytes:
        raise ValueError(f"{active_range_bytes} bytes cannot be cut into {table.areas} areas")
    return tuple(
        ActiveRange(offset_bytes=index * length_bytes, length_bytes=length_bytes)
        for index in range(table.areas)
    )
