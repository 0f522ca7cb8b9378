"""IOPS test of the PTS: transaction rate by block size and read/write mix."""

from __future__ import annotations

from typing import ClassVar

from tkperf.figures import FigureKind, SectionPlan, drawn, matrices, over_rounds
from tkperf.phases import Outcome, Procedure, Purge
from tkperf.procedures import wording
from tkperf.procedures.building_blocks import (
    find_tracked,
    rounds_until_steady,
    workload_independent_preconditioning,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.mixes_and_sizes import MixesAndSizes
from tkperf.profiles import Profile
from tkperf.workload import Access, Step

SECTION = "IOPS"


class IopsTable(MixesAndSizes, frozen=True, kw_only=True):
    """The loops of the test, at the profile's demand."""

    key: ClassVar[str] = "iops"


def section_plan(name: str) -> SectionPlan:
    """How the test's section is shown."""
    return SectionPlan(
        name=name,
        quantities=("iops",),
        figures=(
            *matrices("iops"),
            over_rounds("iops", "Steady state convergence: RND writes", 0, log=True),
            drawn(FigureKind.WINDOW),
            drawn(FigureKind.OVER_AXIS, "iops", log=True),
            drawn(FigureKind.BARS_3D, "iops"),
        ),
    )


def iops(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge, precondition, loop over mix and block size until random 4 KiB writes are steady."""
    table = profile.table(IopsTable)
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)

    steps = tuple(
        Step(
            workload=profile.workload(Access.RANDOM, read_percent, block_size_kib),
            duration_s=table.step_s,
        )
        for read_percent in table.read_percents
        for block_size_kib in table.block_sizes_kib
    )
    tracked = find_tracked(steps, table.tracking_read_percent, table.tracking_block_size_kib)
    outcome = yield from rounds_until_steady(
        SECTION,
        steps,
        profile.steady_state,
        tracking=f"RND {tracked.mix_and_size} IOPS",
        unit="IOPS",
        tracked_value=lambda round_result: round_result[tracked].iops,
    )
    return Outcome(sections=(outcome,))


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(IopsTable)
    return (
        *wording.purge(circumstances),
        wording.preconditioning(profile, circumstances),
        wording.at_most_rounds(profile),
        f"    For R/W mix {wording.mixes(table.read_percents)}:",
        f"        For block size {wording.sizes(table.block_sizes_kib)} KiB:",
        f"            RND, {wording.demand(profile)}, {table.step_s:g} s",
        f"Tracking variable: IOPS of RND {table.tracked}",
        wording.steady_state(profile),
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
