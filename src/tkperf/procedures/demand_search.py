"""Find the threads and queue depth that saturate the device, for the tests after it; not in the PTS.

The PTS leaves the demand of IOPS and write saturation to the operator, or recommends one that may be too
small for a fast drive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import msgspec

from tkperf.model.figures import SETTLED, WINDOW, FigureKind, SectionPlan, asking, drawn, matrices, over_rounds
from tkperf.model.phases import Demand, Procedure, Purge, RoundAnswer
from tkperf.model.workload import Access
from tkperf.procedures import wording
from tkperf.procedures.building_blocks import (
    at_each_demand,
    rounds_until_steady,
    track_iops,
    workload_independent_preconditioning,
)
from tkperf.procedures.demand_points import choose_saturating, window_means
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import BlockSizeKib, Depths, Percent, SteppedTable, ThreadCounts, means

SECTION = "Demand search"


class DemandSearchTable(SteppedTable, frozen=True, kw_only=True):
    """Demands to try with one random workload, and the distance from the best that is enough."""

    key: ClassVar[str] = "demand_search"

    read_percent: Annotated[Percent, means("R/W mix, in % of reads")]
    block_size_kib: Annotated[BlockSizeKib, means("block size, in KiB")]
    jobs: Annotated[ThreadCounts, means("thread counts (TC); the outer loop")]
    io_depths: Annotated[Depths, means("queue depths of each thread (QD); the inner loop")]
    within_percent: Annotated[
        float,
        msgspec.Meta(ge=0, lt=100),
        means("largest distance below the best IOPS at which a lower demand is still chosen, in %"),
    ]


def section_plan(name: str) -> SectionPlan:
    """Plan the display of the results at each demand."""
    return SectionPlan(
        name=name,
        quantities=("iops", "latency_mean_us"),
        figures=(
            *matrices("iops", "latency_mean_us", "cpu_percent"),
            *asking("What does more demand bring?", drawn(FigureKind.OVER_DEMAND, "iops")),
            *asking(
                "What do more IOPS cost in latency?",
                drawn(FigureKind.AGAINST, "latency_mean_us", "iops", title="Mean latency against IOPS", log=True),
            ),
            *asking(SETTLED, over_rounds("iops", "Steady state convergence", most_threads=True)),
            *WINDOW,
        ),
    )


def demand_search(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge, precondition, short steps at each demand until the greatest is steady; find the least sufficient."""
    table = profile.table(DemandSearchTable)
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)
    workload = profile.workload(Access.RANDOM, table.read_percent, table.block_size_kib)
    steps = at_each_demand(workload, table.jobs, table.io_depths, table.step_s)
    greatest = max((step.workload for step in steps), key=lambda load: load.total_outstanding_ios)
    rounds: list[RoundAnswer] = []
    outcome = yield from rounds_until_steady(
        SECTION, steps, profile.steady_state, (track_iops(greatest, str(greatest)),), results=rounds
    )
    reached = window_means([rounds[number - 1] for number in outcome.window])
    enough, best = choose_saturating(reached, table.within_percent)
    because = (
        f"{outcome.ended_because}; found {enough}, the fewest outstanding I/Os within "
        f"{table.within_percent:g} % of the best, {best}"
    )
    demand = Demand(jobs=enough.workload.jobs, io_depth=enough.workload.io_depth)
    yield replace(outcome, ended_because=because, demand=demand)


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(DemandSearchTable)
    before = profile.at_demand(profile.demand.jobs, profile.demand.io_depth)
    return (
        *wording.until_steady(
            before,
            circumstances,
            (("TC", wording.numbers(table.jobs)), ("QD", wording.numbers(table.io_depths))),
            f"RND {table.block_size_kib:g} KiB, R/W {wording.mixes((table.read_percent,))}, {table.step_s:g} s",
            "Tracking variable: IOPS with the most outstanding I/Os",
        ),
        "Found: the fewest outstanding I/Os, of equally many the fewest threads, whose IOPS are "
        f"within {table.within_percent:g} % of the best",
        "Later tests without TC and QD of their own run at the found demand",
    )


TEST = Test(
    name="auto-demand",
    title="Demand search",
    source="tkperf; not in the PTS",
    suites=("ssd", "raid"),
    by_default=False,
    finds_demand=True,
    table=DemandSearchTable,
    procedure=demand_search,
    describe=describe,
    section_plan=section_plan,
    tracked=("iops",),
)
