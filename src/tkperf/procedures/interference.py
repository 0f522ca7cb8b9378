"""Random reads and random writes at the same time, at a grid of offered rates. The PTS has no such test.

ScyllaDB's diskplorer measures the same grid, but without a purge and without steady state.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from typing import Annotated, ClassVar, Self

import msgspec

from tkperf.model.figures import LATENCIES, TAIL, FigureKind, SectionPlan, asking, drawn
from tkperf.model.measurement import Measurement
from tkperf.model.phases import PhaseSequence, Procedure, Purge, Reply, Round, SectionOutcome, Yielded
from tkperf.model.units import format_count
from tkperf.model.workload import Access, Arrival, Stream, Workload, combine
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    after_lead_in,
    find_rate_alone,
    place_by_seed,
    unjudged,
    write_until_steady,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.own_workloads.parts import MOST_THREADS_TOGETHER
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    ARRIVAL,
    QUEUE_DEPTH,
    THREAD_COUNT,
    BlockSizeKib,
    Depth,
    Jobs,
    Seconds,
    Slices,
    TestTable,
    means,
)

WRITES_ALONE = "Random writes alone"
READS_ALONE = "Random reads alone"
GRID = "Reads during writes"
FIRST_CELL_AGAIN = "First cell again"
READER, WRITER = "reader", "writer"
# The random arrivals of fio are accurate if each thread offers a rate within these limits, in IOPS
# (docs/explanation/method.md).
LEAST_IOPS_OF_THREAD, MOST_IOPS_OF_THREAD = 50, 20_000
MOST_THREADS = MOST_THREADS_TOGETHER // 2
HOW_SLOW = "How slow are reads during writes?"
HOW_MANY = "How many reads stay below the limit during writes?"


class InterferenceTable(TestTable, frozen=True, kw_only=True):
    """A grid of offered rates. The grid has ``levels`` rates of reads and ``levels`` rates of writes. The rates range
    from 0 to the rates that the drive reaches with reads alone and with writes alone.
    """

    key: ClassVar[str] = "interference"

    read_block_size_kib: Annotated[BlockSizeKib, means("block size of the reads, in KiB")]
    write_block_size_kib: Annotated[BlockSizeKib, means("block size of the writes, in KiB")]
    jobs: Annotated[Jobs, THREAD_COUNT]
    io_depth: Annotated[Depth, QUEUE_DEPTH]
    arrival: Annotated[Arrival, ARRIVAL]
    slice_s: Annotated[Seconds, means("length of each slice of the writes alone, in s")]
    round_every_slices: Annotated[
        Slices,
        means(
            "number n: tkperf judges the steady state of the writes alone from every n-th slice, starting "
            "with the first"
        ),
    ]
    alone_s: Annotated[Seconds, means("length of the measurement with reads alone, in s")]
    levels: Annotated[
        int,
        msgspec.Meta(ge=3, le=32),
        means(
            "number of offered rates of reads and of writes, evenly spaced from 0 to the rate that the drive "
            "reaches with reads or writes alone"
        ),
    ]
    lead_in_s: Annotated[Seconds, means("time for which the load of a cell runs before tkperf measures the cell, in s")]
    cell_s: Annotated[Seconds, means("length of the measurement of each cell, in s")]
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1), means("seed of the random order of the cells")]
    kept_up_percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=100),
        means("share of the offered rate that both reads and writes must reach so that tkperf uses the cell, in %"),
    ]
    max_drift_percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=1e6),
        means(
            "largest change of the mean read latency between the first and the last measurement of the first cell, "
            "in %. A larger change causes a caution"
        ),
    ]
    latency_limit_ms: Annotated[
        float, msgspec.Meta(gt=0, le=1e6), means("limit of the 99th percentile of the read latency, in ms")
    ]

    def scaled(self, step_s: float) -> Self:
        """Return the table with a different duration for each cell."""
        return msgspec.structs.replace(self, cell_s=step_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """A place in the grid: the level of reads and the level of writes. At level 0, no I/Os are offered."""

    read_level: int
    write_level: int


def order_cells(table: InterferenceTable) -> tuple[GridCell, ...]:
    """Return all cells with a load in the order of measurement.

    The first cell offers about a third of each rate, which most drives can reach. The order of the other cells depends
    only on the seed, so that slow changes of the drive do not look like an effect of the load.
    """
    third = max(1, (table.levels - 1) // 3)
    cells = [GridCell(read_level=reads, write_level=writes) for reads, writes in product(range(table.levels), repeat=2)]

    first = GridCell(read_level=third, write_level=third)
    others = (cell for cell in cells if cell != first and (cell.read_level or cell.write_level))
    return (first, *sorted(others, key=lambda cell: place_by_seed(table.seed, cell.read_level, cell.write_level)))


def find_jobs(offered_iops: float, jobs: int) -> int:
    """Return the number of threads that is nearest to ``jobs`` and with which each thread can offer its share of the
    rate accurately.
    """
    least = ceil(offered_iops / MOST_IOPS_OF_THREAD)
    most = max(1, int(offered_iops / LEAST_IOPS_OF_THREAD))
    return min(MOST_THREADS, max(least, min(jobs, most)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """The random reads and the random writes of the grid, each alone and without an offered rate, and the IOPS that the
    drive reaches with each of these loads.
    """

    reads: Workload
    writes: Workload
    read_iops: float
    write_iops: float


def interference(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge and precondition the drive, write at random until steady state, measure the rate of reads alone, and then
    measure the grid.
    """
    table = profile.table(InterferenceTable)
    reads = profile.workload(Access.RANDOM, 100, table.read_block_size_kib, table.jobs, table.io_depth)
    writes = profile.workload(Access.RANDOM, 0, table.write_block_size_kib, table.jobs, table.io_depth)
    yield Purge(section=WRITES_ALONE)
    yield building_blocks.workload_independent_preconditioning(profile, WRITES_ALONE)
    slices: list[Measurement] = []
    written = yield from write_until_steady(
        profile,
        WRITES_ALONE,
        writes,
        "random writes",
        slice_s=table.slice_s,
        every=table.round_every_slices,
        results=slices,
    )
    yield written
    read_iops = yield from find_rate_alone(READS_ALONE, reads, lead_in_s=table.lead_in_s, duration_s=table.alone_s)
    # If steady state was not reached, the last slices are closest to steady state.
    window = [slices[number - 1] for number in written.window] or slices[-profile.steady_state.window_rounds :]
    alone = Alone(
        reads=reads,
        writes=writes,
        read_iops=max(1.0, read_iops),
        write_iops=max(1.0, sum(measured.iops for measured in window) / len(window)),
    )
    yield (yield from measure_grid(table, alone))
    yield (yield from measure_first_again(table, alone))


def measure_grid(table: InterferenceTable, alone: Alone) -> Generator[Yielded, Reply, SectionOutcome]:
    """Measure every cell once, after a warm-up with the same load. The order of the cells does not depend on
    measurements.
    """
    cells = order_cells(table)
    phases = tuple(
        phase
        for number, cell in enumerate(cells, 1)
        for phase in _lead_in_and_cell(GRID, number, load_of(cell, table, alone), table, cells=len(cells))
    )
    yield PhaseSequence(phases=phases)
    counted = format_count(len(cells), "cell")
    return unjudged(GRID, f"measured {counted} in an order made from seed {table.seed}", range(1, len(cells) + 1))


def measure_first_again(table: InterferenceTable, alone: Alone) -> Generator[Yielded, Reply, SectionOutcome]:
    """Measure the first cell once more, to determine how much this cell changed during the test."""
    load = load_of(order_cells(table)[0], table, alone)
    yield PhaseSequence(phases=_lead_in_and_cell(FIRST_CELL_AGAIN, 1, load, table))
    return unjudged(FIRST_CELL_AGAIN, "measured the first cell of the grid once more", (1,))


def _lead_in_and_cell(
    section: str, number: int, load: Workload, table: InterferenceTable, *, cells: int | None = None
) -> tuple[Round, Round]:
    return after_lead_in(section, number, load, lead_in_s=table.lead_in_s, duration_s=table.cell_s, cells=cells)


def load_of(cell: GridCell, table: InterferenceTable, alone: Alone) -> Workload:
    """Return the load of a cell. The load consists of reads and writes, of reads only, or of writes only."""
    reads = _offered(alone.reads, alone.read_iops, cell.read_level, table)
    writes = _offered(alone.writes, alone.write_iops, cell.write_level, table)
    if reads is None or writes is None:
        load = reads or writes
        assert load is not None, "a cell has a load"
        return load
    return combine((Stream(name=READER, workload=reads), Stream(name=WRITER, workload=writes)))


def _offered(load: Workload, alone_iops: float, level: int, table: InterferenceTable) -> Workload | None:
    if not level:
        return None
    # The rate is rounded to a whole number of I/Os per second, because such a rate is easy to read and fio can offer it
    # exactly.
    offered_iops = float(max(1, round(alone_iops * level / (table.levels - 1))))
    return replace(load, offered_iops=offered_iops, arrival=table.arrival, jobs=find_jobs(offered_iops, table.jobs))


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section. A section contains the loads alone, the grid, or the cell that is measured
    twice.
    """
    if name == WRITES_ALONE:
        return SectionPlan(
            name=name,
            quantities=("iops", "megabytes_per_s", "latency_mean_us"),
            figures=(*asking("How do the writes change?", drawn(FigureKind.OVER_TIME, "iops")),),
            prepares=True,
        )
    if name == GRID:
        return SectionPlan(
            name=name,
            quantities=(TAIL, "iops", "latency_mean_us"),
            figures=(
                *asking(
                    HOW_SLOW,
                    drawn(FigureKind.INTERFERENCE, "p99_us", view=("99 %",), printed=True),
                    drawn(FigureKind.INTERFERENCE, "p50_us", view=("median",)),
                    drawn(FigureKind.INTERFERENCE, "p99.9_us", view=("99.9 %",)),
                ),
                *asking(HOW_MANY, drawn(FigureKind.FRONTIER, "p99_us", printed=True)),
            ),
        )
    return SectionPlan(
        name=name,
        quantities=("iops", *LATENCIES),
        figures=(drawn(FigureKind.LISTING, "iops", *LATENCIES),),
        prepares=True,
    )


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(InterferenceTable)
    demand = f"TC {table.jobs} / QD {table.io_depth}"
    judged = building_blocks.judged_slices(table.slice_s, table.round_every_slices, f"{table.slice_s:g}-second slices")
    share = 100 / (table.levels - 1)
    arrival, cells = building_blocks.describe_arrival(table.arrival), table.levels**2 - 1
    return (
        building_blocks.NOT_OF_PTS,
        *building_blocks.purge(circumstances),
        building_blocks.preconditioning(profile, circumstances),
        f"RND {table.write_block_size_kib:g} KiB writes, {demand}, one unbroken stream until steady state of "
        f"{judged}, at most {profile.steady_state.max_rounds} of them: the rate W of the writes alone",
        f"RND {table.read_block_size_kib:g} KiB reads, {demand}, {table.alone_s:g} s: the rate R of the reads alone",
        f"For each of {cells} cells, in an order made from seed {table.seed}:",
        f"    Reads at 0 to 100 % of R and writes at 0 to 100 % of W at the same time, in steps of {share:.3g} %, "
        f"offered {arrival}: {table.lead_in_s:g} s lead-in, then {table.cell_s:g} s measured",
        f"    The number of threads is chosen so that each thread offers {LEAST_IOPS_OF_THREAD} to "
        f"{MOST_IOPS_OF_THREAD:,} IOPS",
        "The first cell once more",
        f"A cell counts if reads and writes both reach {table.kept_up_percent:g} % of their offered rates",
        "Result: for each rate of writes, the highest rate of reads whose 99th percentile is at most "
        f"{table.latency_limit_ms:g} ms",
        building_blocks.steady_state(profile),
    )


TEST = Test(
    name="interference",
    title="Reads during writes",
    source="ScyllaDB's diskplorer, not the PTS",
    suites=("ssd", "raid"),
    by_default=False,
    table=InterferenceTable,
    procedure=interference,
    describe=describe,
    section_plan=section_plan,
    tracked=("iops",),
)
