"""IOPS test (PTS section 7): transaction rate by block size and read/write mix."""

from tkperf.figures import FigureKind, SectionPlan, drawn, matrices, over_rounds
from tkperf.phases import Outcome, Procedure, Purge
from tkperf.procedures.parts import (
    find_tracked,
    rounds_until_steady,
    workload_independent_preconditioning,
)
from tkperf.profiles import Profile
from tkperf.workload import Access, Step

SECTION = "IOPS"


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
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)

    steps = tuple(
        Step(
            workload=profile.workload(Access.RANDOM, read_percent, block_size_kib),
            duration_s=profile.iops.step_s,
        )
        for read_percent in profile.iops.read_percents
        for block_size_kib in profile.iops.block_sizes_kib
    )
    tracked = find_tracked(
        steps, profile.iops.tracking_read_percent, profile.iops.tracking_block_size_kib
    )
    outcome = yield from rounds_until_steady(
        SECTION,
        steps,
        profile.steady_state,
        tracking=f"RND {tracked.mix_and_size} IOPS",
        unit="IOPS",
        tracked_value=lambda round_result: round_result[tracked].iops,
    )
    return Outcome(sections=(outcome,))
