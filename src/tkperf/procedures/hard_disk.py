"""Hard disk tests of TKperf (not in the PTS): speed by the area of the disk.

Outer tracks are faster than inner ones, so the disk is cut into equal areas from its start to its
end and each is measured on its own. Nothing is purged or preconditioned: a hard disk has no state
that would need it. TKperf 2.2, perfTest/DeviceTests.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from tkperf.figures import FigureKind, SectionPlan, drawn, matrices
from tkperf.phases import Answer, Outcome, Procedure, Round, SectionOutcome
from tkperf.procedures.parts import Part
from tkperf.profiles import HardDiskTable, Profile
from tkperf.units import KIB, format_block_size, format_count
from tkperf.workload import Access, ActiveRange, Step

IOPS_SECTION = "IOPS by area"


def iops_section_plan(name: str) -> SectionPlan:
    """How IOPS over the areas are shown."""
    return _section_plan(name, "iops")


def throughput_section_plan(name: str) -> SectionPlan:
    """How throughput over the areas is shown."""
    return _section_plan(name, "megabytes_per_s")


def _section_plan(name: str, quantity: str) -> SectionPlan:
    return SectionPlan(
        name=name,
        quantities=(quantity,),
        figures=(
            *matrices(quantity),
            drawn(FigureKind.OVER_AREAS, quantity),
            drawn(FigureKind.SPREAD, quantity),
        ),
    )


def hard_disk_iops(profile: Profile, active_range_bytes: int) -> Procedure:
    """Random reads and writes of small blocks in each area."""
    table = expect_table(profile)

    def steps(area: ActiveRange) -> tuple[Step, ...]:
        return tuple(
            Step(
                workload=replace(
                    profile.workload(Access.RANDOM, read_percent, block_size_kib), region=area
                ),
                duration_s=table.step_s,
            )
            for read_percent in table.iops_read_percents
            for block_size_kib in table.iops_block_sizes_kib
        )

    outcome = yield from _each_area(IOPS_SECTION, table, active_range_bytes, steps)
    return Outcome(sections=(outcome,))


def hard_disk_throughput(profile: Profile, active_range_bytes: int) -> Procedure:
    """For each block size, sequential read and then write in each area."""
    table = expect_table(profile)
    outcomes = []
    for block_size_kib in table.throughput_block_sizes_kib:

        def steps(area: ActiveRange, block_size_kib: float = block_size_kib) -> tuple[Step, ...]:
            return tuple(
                Step(
                    workload=replace(
                        profile.workload(Access.SEQUENTIAL, read_percent, block_size_kib),
                        region=area,
                    ),
                    duration_s=table.step_s,
                )
                for read_percent in (100, 0)
            )

        section = f"Throughput by area {format_block_size(round(block_size_kib * KIB))}"
        outcomes.append((yield from _each_area(section, table, active_range_bytes, steps)))
    return Outcome(sections=tuple(outcomes))


def _each_area(
    section: str,
    table: HardDiskTable,
    active_range_bytes: int,
    steps: Callable[[ActiveRange], tuple[Step, ...]],
) -> Generator[Part, Answer, SectionOutcome]:
    areas = cut_into_areas(table, active_range_bytes)
    for number, area in enumerate(areas, start=1):
        yield Round(section=section, number=number, steps=steps(area), areas=len(areas))
    return SectionOutcome(
        section=section,
        window=tuple(range(1, len(areas) + 1)),
        verdict=None,
        ended_because=f"all {format_count(len(areas), 'area')} measured",
    )


def cut_into_areas(table: HardDiskTable, active_range_bytes: int) -> tuple[ActiveRange, ...]:
    """Equal areas of whole alignment units from the start; up to a unit each is left at the end.

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


def expect_table(profile: Profile) -> HardDiskTable:
    """The profile's table for hard disks; the command line has seen to it that there is one."""
    if profile.hard_disk is None:
        raise ValueError(f"profile {profile.name} has no table hard_disk")
    return profile.hard_disk
