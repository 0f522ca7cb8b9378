"""The IOPS test of the PTS: I/Os per second by block size and read/write mix."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from tkperf.model.figures import (
    CONVERGENCE,
    SETTLED,
    WINDOW,
    FigureKind,
    SectionPlan,
    asking,
    drawn,
    matrices,
    over_rounds,
)
from tkperf.model.phases import Procedure, Purge
from tkperf.model.workload import Access
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    at_each_mix_and_size,
    find_tracked,
    rounds_until_steady,
    track_iops,
    workload_independent_preconditioning,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.mixes_and_sizes import MixAndSize, MixesAndSizes
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import means

SECTION = "IOPS"


class IopsTable(MixesAndSizes, frozen=True, kw_only=True):
    """The loops of the test, at the demand of the profile."""

    key: ClassVar[str] = "iops"

    also_tracked: Annotated[
        tuple[MixAndSize, ...],
        msgspec.Meta(max_length=8),
        means("further tracking variables, which must also be steady in the same window; default: none"),
    ] = ()

    def fault(self, profile: Profile) -> str | None:
        cells = {(percent, size) for percent in self.read_percents for size in self.block_sizes_kib}
        tracked = [(self.tracking_read_percent, self.tracking_block_size_kib)]
        for other in self.also_tracked:
            cell = (other.read_percent, other.block_size_kib)
            if cell not in cells:
                return f"also_tracked: {other.text} is no cell of the test"
            if cell in tracked:
                return f"also_tracked: {other.text} is tracked twice"
            tracked.append(cell)
        return super().fault(profile)


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of the section of this test."""
    return SectionPlan(
        name=name,
        quantities=("iops",),
        figures=(
            *matrices("iops"),
            *asking(
                "How many IOPS does each block size and R/W mix reach?",
                drawn(FigureKind.OVER_AXIS, "iops", log=True, view=("curves",), printed=True),
                drawn(FigureKind.BARS_3D, "iops", view=("3-D bars",), printed=True),
            ),
            *asking(SETTLED, over_rounds("iops", f"{CONVERGENCE}: RND writes", 0, log=True)),
            *WINDOW,
        ),
    )


def iops(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge and precondition the drive, and then loop over mixes and block sizes until the tracked cells are steady.

    PTS 1.x tracks the IOPS of random 4 KiB writes. PTS 2.0 tracks three cells in the same window.
    """
    table = profile.table(IopsTable)
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)

    steps = at_each_mix_and_size(profile, Access.RANDOM, table.read_percents, table.block_sizes_kib, table.step_s)
    cells = (
        (table.tracking_read_percent, table.tracking_block_size_kib),
        *((other.read_percent, other.block_size_kib) for other in table.also_tracked),
    )
    loads = [find_tracked(steps, *cell) for cell in cells]
    tracked = [track_iops(load, f"RND {load.mix_and_size}") for load in loads]
    yield (yield from rounds_until_steady(SECTION, steps, profile.steady_state, tracked))


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(IopsTable)
    tracking = "Tracking variable"
    if table.also_tracked:
        tracking = "Tracking variables, all steady in one window"
    tracked = ", ".join((table.tracked, *(other.text for other in table.also_tracked)))
    return building_blocks.until_steady(
        profile,
        circumstances,
        building_blocks.mixes_and_sizes(table.read_percents, table.block_sizes_kib),
        f"RND, {building_blocks.demand(profile)}, {table.step_s:g} s",
        f"{tracking}: IOPS of RND {tracked}",
    )


TEST = Test(
    name="iops",
    title="IOPS",
    source="PTS-E 1.1, IOPS test",
    suites=("ssd", "raid"),
    table=IopsTable,
    procedure=iops,
    describe=describe,
    section_plan=section_plan,
    tracked=("iops",),
)
