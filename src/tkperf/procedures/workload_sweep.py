"""A sweep over all properties of a workload. The PTS has no such test, but the sweep uses the steady-state rule of the
PTS.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Annotated, ClassVar

from tkperf.model.figures import (
    CONVERGENCE,
    COST_IN_LATENCY,
    SETTLED,
    TAIL,
    TAIL_WORDS,
    WINDOW,
    Figure,
    FigureKind,
    SectionPlan,
    asking,
    drawn,
    matrices,
    over_rounds,
)
from tkperf.model.phases import Procedure, Purge
from tkperf.model.units import KIB
from tkperf.model.workload import Access, Step, Workload
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import rounds_until_steady, track_iops, workload_independent_preconditioning
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import BlockSizesKib, Depths, Percents, SteppedTable, ThreadCounts, means

SECTION = "Sweep"
# The number of combinations is limited, because each combination is a line in the tables of the report. If each
# combination takes a minute, five rounds take more than 85 hours.
MOST_COMBINATIONS = 1024
# A chart is drawn over each field that has different values. The text is the name of the view in the switch of a chart.
_AXES = {
    "io_depth": "over queue depth",
    "jobs": "over thread count",
    "block_size": "over block size",
    "read_percent": "over R/W mix",
    "compressible_percent": "over compressibility",
}


class SweepTable(SteppedTable, frozen=True, kw_only=True):
    """The lists of values in the sweep. Every combination of values is a step of a round. The first list is the
    outermost loop.
    """

    key: ClassVar[str] = "sweep"

    access: Annotated[Access, means("order of the addresses")]
    read_percents: Annotated[Percents, means("R/W mixes (shares of reads, in %), as the outermost loop")]
    block_sizes_kib: Annotated[BlockSizesKib, means("block sizes, in KiB")]
    compressible_percents: Annotated[
        Percents, means("shares of the data that compression in the drive could save, in %")
    ]
    jobs: Annotated[ThreadCounts, means("thread counts (TC)")]
    io_depths: Annotated[Depths, means("queue depths of each thread (QD), as the innermost loop")]

    def fault(self, profile: Profile) -> str | None:
        # The combinations are counted but not built, because the longest lists have billions of combinations.
        combinations = prod(map(len, self.loops))
        if combinations > MOST_COMBINATIONS:
            return f"jobs: {combinations:,} combinations of all lists are more than {MOST_COMBINATIONS:,}"
        return None

    @property
    def loops(self) -> tuple[Percents, BlockSizesKib, Percents, ThreadCounts, Depths]:
        """The lists of values, with the outermost loop first."""
        return (self.read_percents, self.block_sizes_kib, self.compressible_percents, self.jobs, self.io_depths)


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of the sweep: tables, and curves over every field with different values."""
    return SectionPlan(
        name=name,
        quantities=("iops", "latency_mean_us", TAIL),
        figures=(
            *matrices("iops", "megabytes_per_s", "latency_mean_us", TAIL, "cpu_percent"),
            *asking(
                COST_IN_LATENCY,
                drawn(
                    FigureKind.AGAINST,
                    "latency_mean_us",
                    "iops",
                    title="Mean latency against IOPS",
                    log=True,
                    view=("mean",),
                    printed=True,
                ),
                drawn(
                    FigureKind.AGAINST,
                    TAIL,
                    "iops",
                    title=f"{TAIL_WORDS} latency against IOPS",
                    log=True,
                    view=(TAIL_WORDS,),
                    printed=True,
                ),
            ),
            *asking(
                "What is the effect of each setting?",
                *_over_each("iops", "IOPS"),
                *_over_each("latency_mean_us", "latency"),
            ),
            *asking(SETTLED, over_rounds("iops", CONVERGENCE, most_threads=True, log=True)),
            *WINDOW,
        ),
    )


def _over_each(quantity: str, name: str) -> tuple[Figure, ...]:
    """Return a view of a quantity over each field, and a view over the total number of outstanding I/Os. For IOPS, all
    views are printed.
    """
    log, printed = name != "IOPS", name == "IOPS"
    return (
        *(
            drawn(FigureKind.OVER_AXIS, quantity, axis=axis, log=log, view=(name, over), printed=printed)
            for axis, over in _AXES.items()
        ),
        drawn(FigureKind.OVER_DEMAND, quantity, log=log, view=(name, "over outstanding I/Os"), printed=printed),
    )


def sweep(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge and precondition the drive, then run rounds of all combinations until the tracked combination is steady.

    The tracked combination is the hardest for the drive: the combination with the fewest reads. If several combinations
    have the fewest reads, the most outstanding I/Os decide, then the smallest blocks, and then the least compressible
    data.
    """
    table = profile.table(SweepTable)
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)
    steps = combine_steps(table)
    tracked = find_hardest(steps)
    outcome = yield from rounds_until_steady(SECTION, steps, profile.steady_state, (track_iops(tracked, str(tracked)),))
    yield outcome


def combine_steps(table: SweepTable) -> tuple[Step, ...]:
    """Return the steps of a round with all combinations, in the order of the lists."""
    return tuple(
        Step(
            workload=Workload(
                access=table.access,
                read_percent=read_percent,
                block_size_bytes=round(size_kib * KIB),
                jobs=jobs,
                io_depth=depth,
                # 0 % means new random data, which is the default.
                compressible_percent=compressible or None,
            ),
            duration_s=table.step_s,
        )
        for read_percent, size_kib, compressible, jobs, depth in product(*table.loops)
    )


def find_hardest(steps: tuple[Step, ...]) -> Workload:
    """Return the workload that is hardest for the drive. The tracking variable is the IOPS of this workload."""

    def ease(workload: Workload) -> tuple[int, int, int, int]:
        return (
            workload.read_percent,
            -workload.total_outstanding_ios,
            workload.block_size_bytes,
            workload.compressible_percent or 0,
        )

    return min((step.workload for step in steps), key=ease)


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(SweepTable)
    loops = (
        *building_blocks.mixes_and_sizes(table.read_percents, table.block_sizes_kib),
        ("compressible share of the data", f"{building_blocks.numbers(table.compressible_percents)} %"),
        ("TC", building_blocks.numbers(table.jobs)),
        ("QD", building_blocks.numbers(table.io_depths)),
    )
    step = f"{table.access.order}, {table.step_s:g} s"
    tracking = f"Tracking variable: IOPS of {find_hardest(combine_steps(table))}"
    return (building_blocks.NOT_OF_PTS, *building_blocks.until_steady(profile, circumstances, loops, step, tracking))


TEST = Test(
    name="sweep",
    title="Sweep",
    source="tkperf itself, not the PTS",
    suites=("ssd", "raid"),
    by_default=False,
    table=SweepTable,
    procedure=sweep,
    describe=describe,
    section_plan=section_plan,
    tracked=("iops",),
)
