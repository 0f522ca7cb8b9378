"""Throughput of a hard disk by area (TKperf): sequential reads and writes."""

from __future__ import annotations

from tkperf.model.figures import WHOLE_TEST, SectionPlan
from tkperf.model.phases import Procedure
from tkperf.model.units import KIB, format_block_size
from tkperf.model.workload import Access, Step
from tkperf.procedures import wording
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.hard_disk import HardDiskTable, area_plan, each_area
from tkperf.procedures.profiles import Profile


def section_plan(name: str) -> SectionPlan:
    """Plan the display of throughput over the areas."""
    return area_plan(name, "megabytes_per_s")


def hard_disk_throughput(profile: Profile, active_range_bytes: int) -> Procedure:
    """Run sequential reads, then writes in each area, for each block size."""
    table = profile.table(HardDiskTable)
    for block_size_kib in table.throughput_block_sizes_kib:
        steps = tuple(
            Step(
                workload=profile.workload(Access.SEQUENTIAL, read_percent, block_size_kib),
                duration_s=table.step_s,
            )
            for read_percent in (100, 0)
        )
        section = f"Throughput by area {format_block_size(round(block_size_kib * KIB))}"
        yield (yield from each_area(section, table, active_range_bytes, steps))


def describe(profile: Profile, _circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(HardDiskTable)
    return (
        f"For block size {wording.numbers(table.throughput_block_sizes_kib)} KiB:",
        f"    For each of {table.areas} equal areas of the disk, from its start:",
        f"        SEQ read, then SEQ write within the area, {wording.demand(profile)}, "
        f"{table.step_s:g} s each",
    )


TEST = Test(
    name="tp",
    title="Throughput",
    source="TKperf 2.2, perfTest/DeviceTests.py",
    suites=("hdd",),
    table=HardDiskTable,
    not_used=("iops_read_percents", "iops_block_sizes_kib"),
    procedure=hard_disk_throughput,
    describe=describe,
    section_plan=section_plan,
    whole_test=lambda _: WHOLE_TEST[:1],  # nothing is preconditioned
    shared=(),
)
