"""A reader that runs at a constant rate, first alone and then together with one other load at a time. The PTS has no
such test.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import msgspec

from tkperf.model.figures import LATENCIES, FigureKind, SectionPlan, asking, drawn
from tkperf.model.phases import Fill, PhaseSequence, Procedure, Purge, Reply, Round, SectionOutcome, Yielded
from tkperf.model.units import KIB, MIB, format_count
from tkperf.model.workload import Access, ActiveRange, Arrival, Stream, Workload, combine
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    after_lead_in,
    find_rate_alone,
    place_by_seed,
    unjudged,
    workload_independent_preconditioning,
    write_until_steady,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.interference import MOST_THREADS, READER, find_jobs
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    ARRIVAL,
    BlockSizeKib,
    Depth,
    Jobs,
    Percent,
    Rounds,
    Seconds,
    Slices,
    SteppedTable,
    means,
)

WRITES_FIRST = "Random writes before the neighbours"
READS_ALONE = "Reads at full rate"
DURING_OTHERS = "Reader during other loads"
DURING_TRIMS = "Reader during trims"
TRIMMER = "trimmer"
WORST = "Which neighbour slows reads down most?"


class NeighboursTable(SteppedTable, frozen=True, kw_only=True):
    """The numbers of the reader, of its neighbours, and of the rounds. Each neighbour runs once in a round."""

    key: ClassVar[str] = "neighbours"

    read_block_size_kib: Annotated[BlockSizeKib, means("block size of the reader, in KiB")]
    jobs: Annotated[
        Jobs, means("thread count (TC) of the reads at full rate and of the random writes before these reads")
    ]
    io_depth: Annotated[
        Depth,
        means("queue depth (QD) of each thread of the reads at full rate, of the random writes and of the reader"),
    ]
    reader_percent: Annotated[
        int,
        msgspec.Meta(ge=1, le=100),
        means("offered rate of the reader, in % of the rate that the drive reaches with reads alone"),
    ]
    arrival: Annotated[Arrival, ARRIVAL]
    alone_s: Annotated[Seconds, means("length of the reads at full rate, in s")]
    slice_s: Annotated[Seconds, means("length of each slice of the random writes before the reads, in s")]
    round_every_slices: Annotated[
        Slices,
        means(
            "number n: tkperf judges the steady state of the random writes from every n-th slice, starting "
            "with the first"
        ),
    ]
    write_block_size_kib: Annotated[BlockSizeKib, means("block size of the random writer, in KiB")]
    sequential_block_size_kib: Annotated[BlockSizeKib, means("block size of the sequential writer, in KiB")]
    large_block_size_kib: Annotated[BlockSizeKib, means("block size of the reader of large blocks, in KiB")]
    flushed_block_size_kib: Annotated[
        BlockSizeKib,
        means("block size of the writes with a flush after each write, and of the writes without flushes, in KiB"),
    ]
    neighbour_jobs: Annotated[Jobs, means("thread count (TC) of each neighbour")]
    neighbour_io_depth: Annotated[
        Depth,
        means(
            "queue depth (QD) of each thread of a neighbour. The queue depth of writes with flushes and of trims is "
            "always 1"
        ),
    ]
    trimmed_percent: Annotated[
        Percent,
        means(
            "share of the range that only the load with trims (the trimmer) uses, in %, counted from the start of "
            "the range; 0 means that no load with trims runs"
        ),
    ]
    trim_block_size_kib: Annotated[BlockSizeKib, means("block size of the trims, in KiB")]
    rounds: Annotated[Rounds, means("number of rounds; each neighbour runs once in each round")]
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1), means("seed of the random order of the loads in each round")]
    lead_in_s: Annotated[Seconds, means("time for which each load runs before tkperf measures the load, in s")]

    def fault(self, profile: Profile) -> str | None:
        if self.trimmed_percent > 90:
            return "trimmed_percent: at most 90, because the reader and its neighbours use the rest of the range"
        if self.neighbour_jobs > MOST_THREADS:
            return f"neighbour_jobs: at most {MOST_THREADS}, because the reader has up to {MOST_THREADS} threads, too"
        return None

    def without_trims(self) -> Self:
        return msgspec.structs.replace(self, trimmed_percent=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeParts:
    """The two parts of the active range: the part at the start that is trimmed, and the rest. If ``trimmed`` is None,
    no part is trimmed.
    """

    trimmed: ActiveRange | None
    rest: ActiveRange | None


def cut_range(active_range_bytes: int, trimmed_percent: int) -> RangeParts:
    """Return the parts of the active range, divided at a whole MiB. Without a trimmer, ``rest`` is None, which means
    the whole active range.
    """
    trimmed_bytes = active_range_bytes * trimmed_percent // 100 // MIB * MIB
    if not trimmed_bytes:
        return RangeParts(trimmed=None, rest=None)
    return RangeParts(
        trimmed=ActiveRange(offset_bytes=0, length_bytes=trimmed_bytes),
        rest=ActiveRange(offset_bytes=trimmed_bytes, length_bytes=active_range_bytes - trimmed_bytes),
    )


def neighbours_of(table: NeighboursTable, rest: ActiveRange | None) -> tuple[Stream, ...]:
    """Return the neighbours that read or write, in a fixed order."""

    def load(access: Access, read_percent: int, block_size_kib: float, io_depth: int) -> Workload:
        return Workload(
            access=access,
            read_percent=read_percent,
            block_size_bytes=round(block_size_kib * KIB),
            jobs=table.neighbour_jobs,
            io_depth=io_depth,
            region=rest,
        )

    depth = table.neighbour_io_depth
    alternating = load(Access.RANDOM, 0, table.flushed_block_size_kib, 1)
    return (
        Stream(name="sequential writer", workload=load(Access.SEQUENTIAL, 0, table.sequential_block_size_kib, depth)),
        Stream(name="random writer", workload=load(Access.RANDOM, 0, table.write_block_size_kib, depth)),
        Stream(name="large-block reader", workload=load(Access.SEQUENTIAL, 100, table.large_block_size_kib, depth)),
        Stream(name="writer with flushes", workload=replace(alternating, flush_every=1)),
        Stream(name="writer without flushes", workload=alternating),
    )


def trimmer_of(table: NeighboursTable, trimmed: ActiveRange) -> Stream:
    """Return the stream that trims. The queue depth is 1, because fio trims one block at a time."""
    trims = Workload(
        access=Access.RANDOM,
        read_percent=0,
        block_size_bytes=round(table.trim_block_size_kib * KIB),
        jobs=table.neighbour_jobs,
        io_depth=1,
        region=trimmed,
        trims=True,
    )
    return Stream(name=TRIMMER, workload=trims)


def neighbours(profile: Profile, active_range_bytes: int) -> Procedure:
    """Purge and precondition the drive, write at random until steady state, measure the rate of reads alone, and then
    run the reader together with each neighbour.

    The trimmer runs last, because trims empty a drive within a minute. The trimmed blocks are written again before the
    next measurement. No other load uses the trimmed part, because the drive answers reads of trimmed blocks without
    reading the flash.
    """
    table = profile.table(NeighboursTable)
    parts = cut_range(active_range_bytes, table.trimmed_percent)
    writes = profile.workload(Access.RANDOM, 0, table.write_block_size_kib, table.jobs, table.io_depth)
    reads = profile.workload(Access.RANDOM, 100, table.read_block_size_kib, table.jobs, table.io_depth)
    reads = replace(reads, region=parts.rest)
    yield Purge(section=WRITES_FIRST)
    yield workload_independent_preconditioning(profile, WRITES_FIRST)
    yield (
        yield from write_until_steady(
            profile, WRITES_FIRST, writes, "random writes", slice_s=table.slice_s, every=table.round_every_slices
        )
    )
    full_iops = yield from find_rate_alone(READS_ALONE, reads, lead_in_s=table.lead_in_s, duration_s=table.alone_s)
    reader = _reader_of(reads, full_iops, table)
    yield (yield from _during_others(table, reader, parts))
    if parts.trimmed is not None:
        yield (yield from _during_trims(profile, table, reader, parts.trimmed))


def _reader_of(reads: Workload, alone_iops: float, table: NeighboursTable) -> Workload:
    offered_iops = float(max(1, round(alone_iops * table.reader_percent / 100)))
    return replace(reads, offered_iops=offered_iops, arrival=table.arrival, jobs=find_jobs(offered_iops, table.jobs))


def _during_others(
    table: NeighboursTable, reader: Workload, parts: RangeParts
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run the reader alone, and then together with each neighbour. Every round has a different order.

    Because the orders differ, the after-effects of one load do not always influence the same next load.
    """
    loads = (reader, *(_together(reader, neighbour) for neighbour in neighbours_of(table, parts.rest)))
    rounds = [_shuffle(loads, table.seed, turn) for turn in range(table.rounds)]
    return (yield from _measure_in_turn(DURING_OTHERS, rounds, table))


def _shuffle(loads: Sequence[Workload], seed: int, turn: int) -> list[Workload]:
    """Return the loads in an order that depends only on the seed and the number of the round."""

    return [loads[number] for number in sorted(range(len(loads)), key=lambda number: place_by_seed(seed, turn, number))]


def _together(reader: Workload, neighbour: Stream) -> Workload:
    return combine((Stream(name=READER, workload=reader), neighbour))


def _during_trims(
    profile: Profile, table: NeighboursTable, reader: Workload, trimmed: ActiveRange
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run the reader alone and together with the trimmer. Before each round except the first, the trimmed blocks are
    written again.
    """
    loads = (reader, _together(reader, trimmer_of(table, trimmed)))
    once = workload_independent_preconditioning(profile, DURING_TRIMS)
    refill = replace(once, passes=1, length_bytes=trimmed.length_bytes)
    return (yield from _measure_in_turn(DURING_TRIMS, [loads] * table.rounds, table, between=refill))


def _measure_in_turn(
    section: str, rounds: Sequence[Sequence[Workload]], table: NeighboursTable, *, between: Fill | None = None
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Measure the loads of each round one after the other. Each measurement follows a warm-up with the same load. The
    order does not depend on measurements.

    Args:
        between: the fill before each round except the first. None means that there is no fill.
    """
    count = sum(map(len, rounds))
    yield PhaseSequence(phases=tuple(_phases(section, rounds, table, between)))
    ran = f"{format_count(table.rounds, 'round')} of {format_count(len(rounds[0]), 'load')}"
    return unjudged(section, f"measured {ran}", range(1, count + 1))


def _phases(
    section: str, rounds: Sequence[Sequence[Workload]], table: NeighboursTable, between: Fill | None
) -> Iterator[Round | Fill]:
    number = 0
    for turn, loads in enumerate(rounds):
        if turn and between is not None:
            yield between
        for load in loads:
            number += 1
            yield from after_lead_in(section, number, load, lead_in_s=table.lead_in_s, duration_s=table.step_s)


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section: the first writes, the reads at full rate, or the reader together with its
    neighbours.
    """
    if name == WRITES_FIRST:
        return SectionPlan(
            name=name,
            quantities=("iops", "latency_mean_us"),
            figures=asking("How do the writes change?", drawn(FigureKind.OVER_TIME, "iops")),
            prepares=True,
        )
    if name in (DURING_OTHERS, DURING_TRIMS):
        return SectionPlan(
            name=name,
            quantities=("p99_us", "latency_mean_us", "iops"),
            figures=(
                *asking(
                    WORST,
                    drawn(FigureKind.NEIGHBOURS, "p99_us", view=("99 %",), printed=True),
                    drawn(FigureKind.NEIGHBOURS, "latency_mean_us", view=("mean",)),
                ),
                drawn(FigureKind.LISTING, "iops", "megabytes_per_s", "latency_mean_us", "p99_us", "latency_max_us"),
            ),
        )
    return SectionPlan(
        name=name,
        quantities=("iops", *LATENCIES),
        figures=(drawn(FigureKind.LISTING, "iops", *LATENCIES),),
        prepares=True,
    )


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(NeighboursTable)
    demand = f"TC {table.jobs} / QD {table.io_depth}"
    judged = building_blocks.judged_slices(table.slice_s, table.round_every_slices, f"{table.slice_s:g}-second slices")
    own = f"TC {table.neighbour_jobs} / QD {table.neighbour_io_depth}"
    one = f"TC {table.neighbour_jobs} / QD 1"
    measured = f"{table.lead_in_s:g} s lead-in, then {table.step_s:g} s measured"
    trimming = (
        (
            f"{format_count(table.rounds, 'round')} of the reader alone and of the reader with a trimmer: RND "
            f"{table.trim_block_size_kib:g} KiB trims, {one}, within the first {table.trimmed_percent} % of the range, "
            "which no other load uses",
            "    Before each further round, the trimmed part of the range is written again sequentially",
        )
        if table.trimmed_percent
        else ()
    )
    return (
        building_blocks.NOT_OF_PTS,
        *building_blocks.purge(circumstances),
        building_blocks.preconditioning(profile, circumstances),
        f"RND {table.write_block_size_kib:g} KiB writes, {demand}, one unbroken stream until steady state of "
        f"{judged}, at most {profile.steady_state.max_rounds} of them",
        f"RND {table.read_block_size_kib:g} KiB reads, {demand}, {table.alone_s:g} s: the full rate of reads",
        f"Reader: RND {table.read_block_size_kib:g} KiB reads at {table.reader_percent} % of this rate, offered "
        f"{building_blocks.describe_arrival(table.arrival)}",
        f"{format_count(table.rounds, 'round')}. Each round measures the reader alone and the reader with each of the "
        f"following loads, in an order made from seed {table.seed}, {measured}:",
        f"    SEQ {table.sequential_block_size_kib:g} KiB writes, {own}",
        f"    RND {table.write_block_size_kib:g} KiB writes, {own}",
        f"    SEQ {table.large_block_size_kib:g} KiB reads, {own}",
        f"    RND {table.flushed_block_size_kib:g} KiB writes with a flush after each, {one}",
        f"    The same writes without flushes, {one}",
        *trimming,
        "Result: for each neighbour, the 99th percentile of the reader's latency while the neighbour runs, divided by "
        "the 99th percentile of the reader alone",
        building_blocks.steady_state(profile),
    )


TEST = Test(
    name="neighbours",
    title="Reads during other loads",
    source="tkperf itself, not the PTS",
    suites=("ssd", "raid"),
    by_default=False,
    table=NeighboursTable,
    procedure=neighbours,
    describe=describe,
    section_plan=section_plan,
    tracked=("iops",),
)
