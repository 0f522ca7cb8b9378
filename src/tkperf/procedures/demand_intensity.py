"""The demand intensity and response time histogram (DIRTH) test of the PTS. The tests CBW and ECW of the PTS have the
same steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, ClassVar

import msgspec

from tkperf.model.figures import (
    CONVERGENCE,
    COST_IN_LATENCY,
    MORE_DEMAND,
    PERCENTILE_KEYS,
    SETTLED,
    WINDOW,
    Figure,
    FigureKind,
    SectionPlan,
    asking,
    drawn,
    matrices,
    over_rounds,
    plan_histogram_run,
)
from tkperf.model.phases import Procedure, Purge, Round, RoundAnswer
from tkperf.model.units import format_count, format_mix
from tkperf.model.workload import Access, Step, Workload
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    at_each_demand,
    response_time_histogram,
    rounds_until_steady,
    slices_of,
    track_iops,
    unjudged,
    write_until_steady,
)
from tkperf.procedures.demand_search import CellMeans, DemandPoint, choose_points, window_means
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    INNER_LOOP,
    LONGEST_S,
    OUTER_LOOP,
    BlockSizeKib,
    Depth,
    Depths,
    Jobs,
    Percent,
    Seconds,
    Slices,
    SteadyStateTable,
    SteppedTable,
    ThreadCounts,
    means,
)

PRECONDITIONING = "Preconditioning by the workload's writes"
WRITES_BETWEEN = "Writes before each round"
GRID = "Demand grid"
Length = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_S)]


class DemandGridTable(SteppedTable, frozen=True, kw_only=True):
    """The grid of ``jobs`` (outer loop) and ``io_depths``, and the phases before and after the grid.

    ``tracking_jobs`` and ``tracking_io_depth`` are the demand at which steady state is judged. Preconditioning and the
    writes before each round use the same demand. The maximum and the middle are chosen among the demands whose mean
    latency is below ``latency_ceiling_ms``.
    """

    read_percent: Annotated[Percent, means("R/W mix of the grid (share of reads, in %)")]
    jobs: Annotated[ThreadCounts, OUTER_LOOP]
    io_depths: Annotated[Depths, INNER_LOOP]
    tracking_jobs: Annotated[
        Jobs,
        means(
            "thread count of the tracking variable, of the writes before the grid and of the writes before each round"
        ),
    ]
    tracking_io_depth: Annotated[
        Depth,
        means(
            "queue depth of the tracking variable, of the writes before the grid and of the writes before each round"
        ),
    ]
    slice_s: Annotated[Seconds, means("length of each slice of a stream of writes, in s")]
    round_every_slices: Annotated[
        Slices,
        means(
            "number n: tkperf judges the steady state of the writes before the grid from every n-th slice, starting "
            "with the first"
        ),
    ]
    writes_before_round_s: Annotated[Seconds, means("length of the writes before each round, in s")]
    latency_ceiling_ms: Annotated[
        float, msgspec.Meta(gt=0, le=1e6), means("upper limit of the mean latency at the points Max and Mid, in ms")
    ]
    writes_before_histogram_slices: Annotated[
        Slices, means("number of slices of writes before the histogram run of each point")
    ]
    histogram_s: Annotated[Length, means("length of the histogram run of each point, in s")]

    def fault(self, profile: Profile) -> str | None:
        if self.tracking_jobs not in self.jobs:
            return f"tracking_jobs: not one of {self.key}.jobs"
        if self.tracking_io_depth not in self.io_depths:
            return f"tracking_io_depth: not one of {self.key}.io_depths"
        return None


def writes_section(point: DemandPoint) -> str:
    return f"{point}: writes before the histogram"


def histogram_section(point: DemandPoint) -> str:
    return f"{point}: response times"


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section. P1 to P15 are the report pages that the PTS requires."""
    if name == GRID:
        return _grid_plan()
    if name == WRITES_BETWEEN:
        return SectionPlan(
            name=name,
            quantities=("iops",),
            figures=(
                *matrices("iops"),
                # P3
                *asking(SETTLED, over_rounds("iops", "Writes before each round")),
            ),
            prepares=True,
        )
    if name in map(histogram_section, DemandPoint):
        return plan_histogram_run(name)  # P10, P12, P14
    # The other sections are the writes until steady state (P1 and P2), and the writes before each histogram (P9, P11
    # and P13), which have no window.
    return SectionPlan(
        name=name,
        quantities=("iops", "latency_mean_us"),
        figures=(*asking("How do the writes change?", drawn(FigureKind.OVER_TIME, "iops")), *WINDOW),
        prepares=True,
    )


def _grid_plan() -> SectionPlan:
    return SectionPlan(
        name=GRID,
        quantities=("iops", "latency_mean_us"),
        figures=(
            *matrices("iops", "megabytes_per_s", "latency_mean_us", *PERCENTILE_KEYS, "latency_max_us", "cpu_percent"),
            *asking(
                COST_IN_LATENCY,
                drawn(  # P7
                    FigureKind.AGAINST,
                    "latency_mean_us",
                    "iops",
                    title="Demand intensity: mean latency against IOPS",
                    log=True,
                ),
            ),
            *asking(
                MORE_DEMAND,
                drawn(  # P6
                    FigureKind.OVER_AXIS,
                    "iops",
                    axis="io_depth",
                    log=True,
                    printed=True,
                    view=("IOPS over queue depth",),
                ),
                *_over_demand(),  # P15
            ),
            *asking("Was the host at its limit?", drawn(FigureKind.BARS_3D, "cpu_percent")),  # P8
            *asking(
                SETTLED,
                over_rounds("iops", CONVERGENCE, most_threads=True),  # P4
            ),
            *WINDOW,  # P5
        ),
    )


def _over_demand() -> tuple[Figure, Figure]:
    return (
        drawn(FigureKind.OVER_DEMAND, "iops", printed=True, view=("IOPS over outstanding I/Os",)),
        drawn(
            FigureKind.OVER_DEMAND, "latency_mean_us", log=True, printed=True, view=("latency over outstanding I/Os",)
        ),
    )


def demand_grid(profile: Profile, table: DemandGridTable, workload: Workload) -> Procedure:
    """Purge the drive, write until steady state, run rounds over the grid of demands until steady state, and then
    record histograms at three demands.

    Args:
        workload: the measured workload. Its own demand is not used.
    """
    tracked = replace(workload, jobs=table.tracking_jobs, io_depth=table.tracking_io_depth)
    yield Purge(section=PRECONDITIONING)
    preconditioned = yield from write_until_steady(
        profile,
        PRECONDITIONING,
        writes_of(tracked),
        _name(writes_of(tracked)),
        slice_s=table.slice_s,
        every=table.round_every_slices,
    )
    yield preconditioned

    rounds: list[RoundAnswer] = []
    grid = yield from rounds_until_steady(
        GRID,
        at_each_demand(workload, table.jobs, table.io_depths, table.step_s),
        profile.steady_state,
        (track_iops(tracked, _name(tracked)),),
        before_each=_writes_before(table, writes_of(tracked)),
        results=rounds,
    )
    because = f"{format_count(len(rounds), 'round')}, one stretch of writes before each"
    yield unjudged(WRITES_BETWEEN, because, grid.window)
    in_window = [rounds[number - 1] for number in grid.window]
    points = choose_points(window_means(in_window), table.latency_ceiling_ms * 1000)
    yield replace(grid, ended_because=f"{grid.ended_because}; {points}")
    reached = grid.verdict is not None and grid.verdict.reached
    for point, cell in points.at.items():
        yield from _histogram_at(table, point, cell, steady=reached)


def writes_of(workload: Workload) -> Workload:
    """Return a workload with the same blocks that consists only of writes."""
    return replace(workload, read_percent=0)


def _name(workload: Workload) -> str:
    """Return a short name for a workload. The name contains only the mix and the demand, because the other properties
    do not differ in this test, and a mix of block sizes would have a long name.
    """
    return f"R/W {format_mix(workload.read_percent)} TC{workload.jobs}/QD{workload.io_depth}"


def _writes_before(table: DemandGridTable, writes: Workload) -> Callable[[int], Round]:
    """Return a function that returns the round of writes before a measured round. The steps of these writes are always
    the same object.
    """
    steps = (Step(workload=writes, duration_s=table.writes_before_round_s),)
    return lambda number: Round(section=WRITES_BETWEEN, number=number, steps=steps, repeatable=True)


def _histogram_at(table: DemandGridTable, point: DemandPoint, cell: CellMeans, *, steady: bool) -> Procedure:
    """Run writes at the demand of the point. Then run the workload of the point to record the histogram of the response
    times.
    """
    section, count = writes_section(point), table.writes_before_histogram_slices
    yield from slices_of(section, writes_of(cell.workload), table.slice_s, count)
    yield unjudged(section, f"ran its full time of {format_count(count, 'slice')}")
    histogram = yield from response_time_histogram(
        cell.workload,
        table.histogram_s,
        steady=steady,
        section=histogram_section(point),
        ran=f"ran its full time at the grid's {point.lower()}, {cell}",
    )
    yield histogram


def describe_grid(
    profile: Profile, circumstances: Circumstances, table: DemandGridTable, blocks: str
) -> tuple[str, ...]:
    """Return a description of the test, line by line.

    Args:
        blocks: access and block size in words, such as ``RND 4 KiB``, without the mix and the demand.
    """
    tracked = f"TC {table.tracking_jobs} / QD {table.tracking_io_depth}"
    slice_s = table.slice_s
    judged = building_blocks.judged_slices(slice_s, table.round_every_slices, f"{slice_s:g}-second slices")
    mix = building_blocks.mixes((table.read_percent,))
    writes_s = table.writes_before_histogram_slices * slice_s
    return (
        *building_blocks.purge(circumstances),
        f"Preconditioning: {blocks}, R/W 0/100, {tracked}, one unbroken stream until steady state of "
        f"{judged}, at most {profile.steady_state.max_rounds} of them",
        building_blocks.at_most_rounds(profile),
        f"    {blocks}, R/W 0/100, {tracked}, {table.writes_before_round_s:g} s",
        f"    For TC {building_blocks.numbers(table.jobs)}:",
        f"        For QD {building_blocks.numbers(table.io_depths)}:",
        f"            {blocks}, R/W {mix}, {table.step_s:g} s",
        f"Tracking variable: IOPS at {tracked}",
        building_blocks.steady_state(profile),
        "Maximum: the demand with the highest IOPS among those with a mean latency below "
        f"{table.latency_ceiling_ms:g} ms",
        "Minimum: the lowest demand",
        f"Middle: of the demands with a mean latency below {table.latency_ceiling_ms:g} ms, the one whose IOPS are "
        "nearest to the middle between maximum and minimum",
        "For maximum, middle and minimum, with the TC and QD of each:",
        f"    {blocks}, R/W 0/100, {writes_s:g} s",
        f"    {blocks}, R/W {mix}, {table.histogram_s:g} s: response time histogram",
    )


class DemandIntensityTable(DemandGridTable, frozen=True, kw_only=True):
    """The grid of demands for blocks of one size. According to the PTS, the operator chooses this size."""

    key: ClassVar[str] = "demand_intensity"

    block_size_kib: Annotated[BlockSizeKib, means("block size that the operator chose, in KiB")]


def demand_intensity(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Run random I/Os with blocks of one size over the whole range, at each demand of the grid."""
    table = profile.table(DemandIntensityTable)
    workload = profile.workload(Access.RANDOM, table.read_percent, table.block_size_kib)
    return demand_grid(profile, table, workload)


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(DemandIntensityTable)
    return describe_grid(profile, circumstances, table, f"RND {table.block_size_kib:g} KiB")


TEST = Test(
    name="dirth",
    title="Demand Intensity (DIRTH)",
    source="PTS-E 1.1, demand intensity / response time histogram test",
    suites=("ssd", "raid"),
    by_default=False,
    table=DemandIntensityTable,
    procedure=demand_intensity,
    describe=describe,
    section_plan=section_plan,
    shared=(SteadyStateTable,),
    tracked=("iops",),
)
