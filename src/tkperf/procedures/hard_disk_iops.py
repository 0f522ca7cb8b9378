"""IOPS of a hard disk by area (TKperf): random reads and writes of small blocks."""

from __future__ import annotations

from tkperf.model.figures import WHOLE_TEST, SectionPlan
from tkperf.model.phases import Procedure
from tkperf.model.workload import Access, Step
from tkperf.procedures import wording
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.hard_disk import HardDiskTable, area_plan, each_area
from tkperf.procedures.profiles import Profile

SECTION = "IOPS by area"


def section_plan(name: str) -> SectionPlan:
    """Plan the display of IOPS over the areas."""
    return area_plan(name, "iops")


def hard_disk_iops(profile: Profile, active_range_bytes: int) -> Procedure:
    """Run random reads and writes of small blocks in each area."""
    table = profile.table(HardDiskTable)

    steps = tuple(
        Step(
            workload=profile.workload(Access.RANDOM, read_percent, block_size_kib),
            duration_s=table.step_s,
        )
        for read_percent in table.iops_read_percents
        for block_size_kib in table.iops_block_sizes_kib
    )
    yield (yield from each_area(SECTION, table, active_range_bytes, steps))


def describe(profile: Profile, _circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(HardDiskTable)
    return (
        f"For each of {table.areas} equal areas of the disk, from its start:",
        f"    For R/W mix {wording.mixes(table.iops_read_percents)}:",
        f"        For block size {wording.numbers(table.iops_block_sizes_kib)} KiB:",
        f"            RND within the area, {wording.demand(profile)}, {table.step_s:g} s",
    )


TEST = Test(
    name="iops",
    title="IOPS",
    source="TKperf 2.2, perfTest/DeviceTests.py",
    suites=("hdd",),
    table=HardDiskTable,
    not_used=("throughput_block_sizes_kib",),
    procedure=hard_disk_iops,
    describe=describe,
    section_plan=section_plan,
    whole_test=lambda _: WHOLE_TEST[:1],  # nothing is preconditioned
    shared=(),
)
