"""The hard disk tests of TKperf, which measure the rate in each area of the disk. The PTS does not contain
these tests.

Outer tracks of a disk are faster than inner tracks. The disk is divided into equal areas from its start to its end, and
each area is measured separately. A hard disk needs no purge and no preconditioning, because its rate does not depend on
earlier writes. The source is perfTest/DeviceTests.py of TKperf 2.2.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar

import msgspec

from tkperf.model.figures import WHOLE_TEST, SectionPlan, matrices, over_areas
from tkperf.model.phases import Interruption, Procedure, Reply, Round, SectionOutcome, Yielded
from tkperf.model.units import KIB, format_block_size, format_count
from tkperf.model.workload import Access, ActiveRange, Step
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import at_each_mix_and_size, unjudged
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    MOST_AREAS,
    BlockSizeKib,
    BlockSizesKib,
    Percents,
    SteppedTable,
    means,
)


class HardDiskTable(SteppedTable, frozen=True, kw_only=True):
    """The numbers of ``tkperf hdd``. The disk is divided into ``areas`` of equal size."""

    key: ClassVar[str] = "hard_disk"

    areas: Annotated[
        int, msgspec.Meta(ge=1, le=MOST_AREAS), means("number of equal areas into which the disk is divided")
    ]
    area_alignment_kib: Annotated[BlockSizeKib, means("alignment of the start of each area, in KiB")]
    iops_read_percents: Annotated[Percents, means("R/W mixes of the random steps (shares of reads, in %)")]
    iops_block_sizes_kib: Annotated[BlockSizesKib, means("block sizes of the random steps, in KiB")]
    throughput_block_sizes_kib: Annotated[BlockSizesKib, means("block sizes of the sequential steps, in KiB")]


def area_plan(quantity: str, name: str) -> SectionPlan:
    """Return the display plan of a quantity over the areas."""
    return SectionPlan(name=name, quantities=(quantity,), figures=(*matrices(quantity), *over_areas(quantity)))


def each_area(
    section: str, table: HardDiskTable, active_range_bytes: int, steps: tuple[Step, ...]
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run the steps in one area after the other."""
    areas = _steps_within(cut_into_areas(table, active_range_bytes), steps)
    for number, within in enumerate(areas, start=1):
        # Only the interrupted area is measured again, because the areas do not depend on each other.
        measured = Round(section=section, number=number, steps=within, areas=len(areas), repeatable=True)
        while isinstance((yield measured), Interruption):
            pass
    because = f"all {format_count(len(areas), 'area')} measured"
    return unjudged(section, because, range(1, len(areas) + 1))


@lru_cache(maxsize=16)
def _steps_within(areas: tuple[ActiveRange, ...], steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], ...]:
    """Return the steps for each area. The result is cached, because tkperf runs the procedure again after each of about
    a hundred areas.
    """
    return tuple(tuple(replace(step, workload=replace(step.workload, region=area)) for step in steps) for area in areas)


def cut_into_areas(table: HardDiskTable, active_range_bytes: int) -> tuple[ActiveRange, ...]:
    """Return equal areas that consist of whole alignment units. The areas follow each other from the start of the
    range. At the end of the range, up to one unit for each area remains unused.
    """
    alignment_bytes = round(table.area_alignment_kib * KIB)
    length_bytes = active_range_bytes // table.areas // alignment_bytes * alignment_bytes
    if not length_bytes:
        raise ValueError(f"{active_range_bytes} bytes cannot be divided into {table.areas} areas")
    return tuple(
        ActiveRange(offset_bytes=index * length_bytes, length_bytes=length_bytes) for index in range(table.areas)
    )


def hard_disk_iops(profile: Profile, active_range_bytes: int) -> Procedure:
    """Run random reads and writes of small blocks in each area."""
    table = profile.table(HardDiskTable)
    steps = at_each_mix_and_size(
        profile, Access.RANDOM, table.iops_read_percents, table.iops_block_sizes_kib, table.step_s
    )
    yield (yield from each_area("IOPS by area", table, active_range_bytes, steps))


def describe_iops(profile: Profile, _circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(HardDiskTable)
    return (
        f"For each of {table.areas} equal areas of the disk, from its start:",
        f"    For R/W mix {building_blocks.mixes(table.iops_read_percents)}:",
        f"        For block size {building_blocks.numbers(table.iops_block_sizes_kib)} KiB:",
        f"            RND within the area, {building_blocks.demand(profile)}, {table.step_s:g} s",
    )


def hard_disk_throughput(profile: Profile, active_range_bytes: int) -> Procedure:
    """Run sequential reads, then sequential writes, in each area and for each block size."""
    table = profile.table(HardDiskTable)
    for block_size_kib in table.throughput_block_sizes_kib:
        steps = at_each_mix_and_size(profile, Access.SEQUENTIAL, (100, 0), (block_size_kib,), table.step_s)
        section = f"Throughput by area {format_block_size(round(block_size_kib * KIB))}"
        yield (yield from each_area(section, table, active_range_bytes, steps))


def describe_throughput(profile: Profile, _circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(HardDiskTable)
    return (
        f"For block size {building_blocks.numbers(table.throughput_block_sizes_kib)} KiB:",
        f"    For each of {table.areas} equal areas of the disk, from its start:",
        f"        SEQ read, then SEQ write within the area, {building_blocks.demand(profile)}, {table.step_s:g} s each",
    )


def _test(**own: Any) -> Test:
    return Test(
        source="TKperf 2.2, perfTest/DeviceTests.py",
        suites=("hdd",),
        table=HardDiskTable,
        whole_test=lambda _: WHOLE_TEST[:1],  # the figure of preconditioning is omitted
        shared=(),
        **own,
    )


HDD_IOPS = _test(
    name="iops",
    title="IOPS",
    not_used=("throughput_block_sizes_kib",),
    procedure=hard_disk_iops,
    describe=describe_iops,
    section_plan=partial(area_plan, "iops"),
)
HDD_THROUGHPUT = _test(
    name="tp",
    title="Throughput",
    not_used=("iops_read_percents", "iops_block_sizes_kib"),
    procedure=hard_disk_throughput,
    describe=describe_throughput,
    section_plan=partial(area_plan, "megabytes_per_s"),
)
