"""The preparation of the drive for the Myce/OakGate tests: hours of random writes after a purge. Results also show
these writes.
"""

from __future__ import annotations

from collections.abc import Generator
from math import ceil
from typing import Annotated

from tkperf.model.figures import LATENCIES, FigureKind, SectionPlan, asking, drawn
from tkperf.model.phases import PhaseSequence, Purge, Reply, SectionOutcome, Yielded
from tkperf.model.units import format_duration
from tkperf.model.workload import Access
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import slices_of, unjudged, workload_independent_preconditioning
from tkperf.procedures.descriptor import Circumstances
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import MOST_SLICES, BlockSizeKib, Seconds, TestTable, means


class RandomWriteStateTable(TestTable, frozen=True, kw_only=True):
    """The numbers of the writes that precede the measurements of a test, at the demand of the profile. Results show
    these writes in slices.
    """

    precondition_block_size_kib: Annotated[
        BlockSizeKib, means("block size of the preconditioning random writes, in KiB")
    ]
    precondition_s: Annotated[Seconds, means("length of the preconditioning random writes, in s")]
    precondition_slice_s: Annotated[
        Seconds, means("length of the slices in which tkperf shows the preconditioning random writes, in s")
    ]

    def fault(self, profile: Profile) -> str | None:
        if self.precondition_slice_s > self.precondition_s:
            return "precondition_slice_s: longer than precondition_s"
        if self.precondition_slices > MOST_SLICES:
            return f"precondition_slice_s: more than {MOST_SLICES:,} slices, which is the most"
        return None

    @property
    def precondition_slices(self) -> int:
        return ceil(self.precondition_s / self.precondition_slice_s)


def write_randomly(
    section: str, profile: Profile, table: RandomWriteStateTable
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Purge the drive, write every address sequentially at least once, and then write at random for hours."""
    yield Purge(section=section)
    # Every address must be written once, because a drive answers reads of unwritten addresses without reading the
    # flash.
    yield workload_independent_preconditioning(profile, section)
    workload = profile.workload(Access.RANDOM, 0, table.precondition_block_size_kib)
    count, slice_s = table.precondition_slices, table.precondition_slice_s
    yield PhaseSequence(phases=tuple(slices_of(section, workload, slice_s, count)))
    return unjudged(section, f"ran its full time of {format_duration(count * slice_s)}")


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of the random writes."""
    return SectionPlan(
        name=name,
        quantities=("iops", "latency_mean_us"),
        figures=(
            *asking(
                "How do rate and latency change?",
                drawn(FigureKind.OVER_TIME, "iops", view=("IOPS",), printed=True),
                drawn(
                    FigureKind.OVER_TIME,
                    *LATENCIES,
                    title="Latency over time",
                    log=True,
                    view=("latency",),
                    printed=True,
                ),
            ),
        ),
        prepares=True,
    )


def describe(profile: Profile, table: RandomWriteStateTable, circumstances: Circumstances) -> tuple[str, ...]:
    """Return a description of the preparation, line by line."""
    return (
        *building_blocks.purge(circumstances),
        building_blocks.preconditioning(profile, circumstances),
        f"RND {table.precondition_block_size_kib:g} KiB writes, {building_blocks.demand(profile)}, for "
        f"{format_duration(table.precondition_s)}",
    )
