"""The cross stimulus recovery test of the PTS. The drive receives one kind of writes, then another kind, and then the
first kind again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from tkperf.model.figures import HEAT_MAP, Figure, FigureKind, SectionPlan, asking, distributed, drawn
from tkperf.model.phases import PhaseSequence, Procedure, Purge
from tkperf.model.units import format_duration
from tkperf.model.workload import Access, Workload
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import slices_of, unjudged
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    MOST_SLICES,
    MOST_VALUES,
    QUEUE_DEPTH,
    SLICE_LENGTH,
    THREAD_COUNT,
    BlockSizeKib,
    Depth,
    Jobs,
    Percent,
    Seconds,
    Slices,
    TestTable,
    means,
)

RATE = "megabytes_per_s"
LATENCIES = ("latency_mean_us", "p99.999_us", "latency_max_us")


class AccessGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A load of the test, with its duration in slices."""

    access: Access
    block_size_kib: BlockSizeKib
    read_percent: Percent
    slices: Slices


class CrossStimulusRecoveryTable(TestTable, frozen=True, kw_only=True):
    """The access groups in the order of the test, with the demand of the test."""

    key: ClassVar[str] = "cross_stimulus_recovery"

    slice_s: Annotated[Seconds, SLICE_LENGTH]
    jobs: Annotated[Jobs, THREAD_COUNT]
    io_depth: Annotated[Depth, QUEUE_DEPTH]
    groups: Annotated[
        tuple[AccessGroup, ...],
        msgspec.Meta(min_length=2, max_length=MOST_VALUES),
        means("loads, in the order in which they run, each with its number of slices; access is random or sequential"),
    ]

    def fault(self, profile: Profile) -> str | None:
        if sum(group.slices for group in self.groups) > MOST_SLICES:
            return f"groups: more than {MOST_SLICES:,} slices in all"
        return None


def cross_stimulus_recovery(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge the drive, then run the access groups directly after each other. Each group is one uninterrupted stream."""
    table = profile.table(CrossStimulusRecoveryTable)
    workloads = [_workload(profile, table, group) for group in table.groups]
    names = [
        f"AG{number} {workload.access.order} {workload.blocks_name}"
        for number, workload in enumerate(workloads, start=1)
    ]
    yield Purge(section=names[0])
    for name, workload, group in zip(names, workloads, table.groups, strict=True):
        yield PhaseSequence(phases=tuple(slices_of(name, workload, table.slice_s, group.slices)))
        yield unjudged(name, f"ran its full time of {_length(table, group)}")


def _workload(profile: Profile, table: CrossStimulusRecoveryTable, group: AccessGroup) -> Workload:
    size_kib = group.block_size_kib
    return profile.workload(group.access, group.read_percent, size_kib, table.jobs, table.io_depth)


def _length(table: CrossStimulusRecoveryTable, group: AccessGroup) -> str:
    return format_duration(group.slices * table.slice_s)


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(CrossStimulusRecoveryTable)
    return (
        *building_blocks.purge(circumstances),
        f"One directly after the other, recorded in slices of {table.slice_s:g} s:",
        *(
            f"    AG{number}: {_workload(profile, table, group)}, {_length(table, group)}"
            for number, group in enumerate(table.groups, start=1)
        ),
        "Recovery time: the time until the MB/s are at most 5 % below the earlier median of the same load",
    )


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of one access group."""
    return SectionPlan(
        name=name, quantities=(RATE, "latency_mean_us", "latency_max_us"), figures=(*distributed(), *HEAT_MAP)
    )


def whole_test(_sections: Sequence[str]) -> tuple[Figure, ...]:
    """Return the figures of the whole test: one series over all access groups, and a view of each change from one group
    to the next.
    """
    return (
        drawn(FigureKind.SECTIONS, RATE),
        *asking(
            "How did the device respond to the loads over the whole test?",
            drawn(FigureKind.TIMELINE, RATE, view=("throughput",), printed=True),
            drawn(
                FigureKind.TIMELINE,
                *LATENCIES,
                title="Latency over the whole test",
                log=True,
                view=("latency",),
                printed=True,
            ),
        ),
        *asking(
            "What happens when the load changes?",
            drawn(FigureKind.CHANGES, RATE, view=("throughput",), printed=True),
            drawn(FigureKind.CHANGES, "latency_mean_us", "latency_max_us", log=True, view=("latency",), printed=True),
        ),
    )


TEST = Test(
    name="xsr",
    title="Cross Stimulus Recovery",
    source="PTS-E 1.1, cross stimulus recovery test",
    suites=("ssd", "raid"),
    by_default=False,
    table=CrossStimulusRecoveryTable,
    procedure=cross_stimulus_recovery,
    describe=describe,
    section_plan=section_plan,
    whole_test=whole_test,
    shared=(),
)
