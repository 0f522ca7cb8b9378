"""A search for the thread count and the queue depth that saturate the device. The tests that follow use this demand.
The PTS has no such test.

For the tests IOPS and write saturation, the PTS leaves the demand to the operator, or recommends a demand that may be
too small for a fast drive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from tkperf.model.figures import (
    CONVERGENCE,
    COST_IN_LATENCY,
    MORE_DEMAND,
    SETTLED,
    WINDOW,
    FigureKind,
    SectionPlan,
    asking,
    drawn,
    matrices,
    over_rounds,
)
from tkperf.model.phases import Demand, Procedure, Purge, RoundAnswer
from tkperf.model.quantity import IOPS, LATENCY_MEAN, Window
from tkperf.model.units import format_number
from tkperf.model.workload import Access, Workload
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    at_each_demand,
    rounds_until_steady,
    track_iops,
    workload_independent_preconditioning,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    INNER_LOOP,
    OUTER_LOOP,
    BlockSizeKib,
    Depths,
    Percent,
    SteppedTable,
    ThreadCounts,
    means,
)


class DemandPoint(StrEnum):
    """The demands at which the PTS requires response time histograms, in the order of the PTS."""

    MAXIMUM = "Maximum"
    MIDDLE = "Middle"
    MINIMUM = "Minimum"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMeans:
    """A workload with its mean values over the rounds of the window. A cell of a report shows the same values.

    ``latency_mean_us`` is the mean latency in µs. None means that no I/O completed.
    """

    workload: Workload
    iops: float
    latency_mean_us: float | None

    def __str__(self) -> str:
        """Return the demand with the mean values, such as ``TC 4 / QD 16: 123,456 IOPS, mean 1,036 µs``."""
        work, mean = self.workload, format_number(self.latency_mean_us)
        return f"TC {work.jobs} / QD {work.io_depth}: {format_number(self.iops)} IOPS, mean {mean} µs"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandPoints:
    """The chosen demands. ``all_above_ceiling`` means that no cell had a latency below the ceiling, so the ceiling was
    ignored.
    """

    at: Mapping[DemandPoint, CellMeans]
    all_above_ceiling: bool

    def __str__(self) -> str:
        points = "; ".join(f"{point.lower()} at {cell}" for point, cell in self.at.items())
        return f"{points}{'; every cell above the ceiling' if self.all_above_ceiling else ''}"


def window_means(rounds: Sequence[RoundAnswer]) -> tuple[CellMeans, ...]:
    """Return the mean values of each workload over the rounds of a window, in the order of the steps in a round."""
    if not rounds:
        raise ValueError("no demand can be chosen, because no round was measured")
    return tuple(
        CellMeans(workload=workload, iops=IOPS.combine(window) or 0.0, latency_mean_us=LATENCY_MEAN.combine(window))
        for workload in rounds[0]
        for measured in (tuple(result[workload] for result in rounds),)
        for window in (Window(rounds=measured, workload=workload),)
    )


def choose_points(cells: Sequence[CellMeans], ceiling_us: float) -> DemandPoints:
    """Return the demands at which the tests DIRTH and CBW record histograms.

    Only cells with a mean latency below the ceiling count. If no cell is below the ceiling, all cells count. The
    minimum is the cell with the least demand of all cells. The maximum is the cell with the highest IOPS among the
    cells that count. The middle is the cell, among the cells that count, whose IOPS are nearest to the mean of the IOPS
    of the maximum and of the minimum. Among equal cells, the function chooses the cell with the least demand.

    Raises:
        ValueError: there is no cell.
    """
    if not cells:
        raise ValueError("no points can be chosen, because no cell was measured")
    ordered = sorted(cells, key=_demand)
    below = [cell for cell in ordered if cell.latency_mean_us is not None and cell.latency_mean_us < ceiling_us]
    considered = below or ordered
    minimum = ordered[0]
    maximum = max(considered, key=lambda cell: cell.iops)
    half_way = (maximum.iops + minimum.iops) / 2
    middle = min(considered, key=lambda cell: abs(cell.iops - half_way))
    at = {DemandPoint.MAXIMUM: maximum, DemandPoint.MIDDLE: middle, DemandPoint.MINIMUM: minimum}
    return DemandPoints(at=at, all_above_ceiling=not below)


def choose_saturating(cells: Sequence[CellMeans], within_percent: float) -> tuple[CellMeans, CellMeans]:
    """Return two cells: the least demand with IOPS within ``within_percent`` of the highest IOPS, and the demand with
    the highest IOPS.

    The least demand is the demand with the fewest outstanding I/Os. If several demands have the same number of
    outstanding I/Os, the demand with the fewest threads is chosen.
    """
    if not cells:
        raise ValueError("no demand can be chosen, because no cell was measured")
    ordered = sorted(cells, key=_demand)
    best = max(ordered, key=lambda cell: cell.iops)
    enough = best.iops * (1 - within_percent / 100)
    return next(cell for cell in ordered if cell.iops >= enough), best


def _demand(cell: CellMeans) -> tuple[int, int]:
    return cell.workload.total_outstanding_ios, cell.workload.jobs


SECTION = "Demand search"


class DemandSearchTable(SteppedTable, frozen=True, kw_only=True):
    """The demands that the search tries with one random workload, and the accepted difference from the highest IOPS."""

    key: ClassVar[str] = "demand_search"

    read_percent: Annotated[Percent, means("R/W mix (share of reads, in %)")]
    block_size_kib: Annotated[BlockSizeKib, means("block size, in KiB")]
    jobs: Annotated[ThreadCounts, OUTER_LOOP]
    io_depths: Annotated[Depths, INNER_LOOP]
    within_percent: Annotated[
        float,
        msgspec.Meta(ge=0, lt=100),
        means("largest difference from the best IOPS at which the search still chooses a lower demand, in %"),
    ]


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of the results at each demand."""
    return SectionPlan(
        name=name,
        quantities=("iops", "latency_mean_us"),
        figures=(
            *matrices("iops", "latency_mean_us", "cpu_percent"),
            *asking(MORE_DEMAND, drawn(FigureKind.OVER_DEMAND, "iops")),
            *asking(
                COST_IN_LATENCY,
                drawn(FigureKind.AGAINST, "latency_mean_us", "iops", title="Mean latency against IOPS", log=True),
            ),
            *asking(SETTLED, over_rounds("iops", CONVERGENCE, most_threads=True)),
            *WINDOW,
        ),
    )


def demand_search(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge and precondition the drive, and run short steps at each demand until the greatest demand is steady. Then
    choose the smallest demand that is sufficient.
    """
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
        *building_blocks.until_steady(
            before,
            circumstances,
            (("TC", building_blocks.numbers(table.jobs)), ("QD", building_blocks.numbers(table.io_depths))),
            f"RND {table.block_size_kib:g} KiB, R/W {building_blocks.mixes((table.read_percent,))}, {table.step_s:g} s",
            "Tracking variable: IOPS with the most outstanding I/Os",
        ),
        f"Result: of all demands with IOPS within {table.within_percent:g} % of the best, the demand with the fewest "
        "outstanding I/Os. Of several such demands, the one with the fewest threads",
        "Later tests that do not set TC and QD use this demand",
    )


TEST = Test(
    name="auto-demand",
    title="Demand search",
    source="tkperf itself, not the PTS",
    suites=("ssd", "raid"),
    by_default=False,
    finds_demand=True,
    table=DemandSearchTable,
    procedure=demand_search,
    describe=describe,
    section_plan=section_plan,
    tracked=("iops",),
)
