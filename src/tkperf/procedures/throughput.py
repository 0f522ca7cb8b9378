"""The throughput test of the PTS: sequential reads and writes of large blocks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Annotated, ClassVar, Literal

from tkperf.model.figures import (
    CONVERGENCE,
    SETTLED,
    WHOLE_TEST,
    WINDOW,
    Figure,
    FigureKind,
    SectionPlan,
    asking,
    drawn,
    matrices,
    over_rounds,
)
from tkperf.model.phases import Procedure, Purge, Reply, SectionOutcome, Yielded
from tkperf.model.units import KIB, format_block_size
from tkperf.model.workload import Access
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    Tracked,
    as_many_rounds_as,
    at_each_mix_and_size,
    rounds_until_steady,
    workload_independent_preconditioning,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import BlockSizesKib, Depth, Jobs, SteppedTable, means


class ThroughputTable(SteppedTable, frozen=True, kw_only=True):
    """The block sizes of the test. Each block size is a section."""

    key: ClassVar[str] = "throughput"

    block_sizes_kib: Annotated[BlockSizesKib, means("block sizes, in KiB, each with its own purge and rounds")]
    precondition: Annotated[bool, means("whether tkperf preconditions the device before the rounds")]
    steady_state: Annotated[
        Literal["each", "first"],
        means(
            "block sizes for which tkperf judges steady state. With first, all other block sizes run the same "
            "number of rounds as the first block size"
        ),
    ]
    fill_block_size: Annotated[
        Literal["shared", "own"],
        means(
            "block size of the preconditioning. The value shared means the block size in [preconditioning], and own "
            "means the block size of the rounds"
        ),
    ] = "shared"
    jobs: Annotated[Jobs | None, means("thread count (TC); default: the value in [demand]")] = None
    io_depth: Annotated[Depth | None, means("queue depth of each thread (QD); default: the value in [demand]")] = None


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of the section of a block size. All block sizes share a table and the charts of
    the test.
    """
    return SectionPlan(name=name, quantities=("megabytes_per_s",))


def whole_test(_sections: Sequence[str]) -> tuple[Figure, ...]:
    """Return tables and charts that show all block sizes together."""
    rate = "megabytes_per_s"
    return (
        *matrices(rate),
        *asking("How fast is each block size read and written?", drawn(FigureKind.OVER_AXIS, rate)),
        *asking(
            SETTLED,
            over_rounds(rate, f"{CONVERGENCE}: SEQ writes", 0, view=("writes",), printed=True),
            over_rounds(rate, f"{CONVERGENCE}: SEQ reads", 100, view=("reads",), printed=True),
        ),
        *WINDOW,
        *WHOLE_TEST,
    )


def throughput(profile: Profile, _active_range_bytes: int) -> Procedure:
    """For each block size, purge and precondition the drive, and then alternate reads and writes until the writes are
    steady.
    """
    table = profile.table(ThroughputTable)
    first: SectionOutcome | None = None
    for block_size_kib in table.block_sizes_kib:
        judged_by = first if table.steady_state == "first" else None
        outcome = yield from _one_block_size(profile, block_size_kib, judged_by)
        yield outcome
        first = first or outcome


def _one_block_size(
    profile: Profile, block_size_kib: float, judged_by: SectionOutcome | None
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run the rounds of one block size.

    Args:
        judged_by: the section that decided the number of rounds. None means that this section decides.
    """
    table = profile.table(ThroughputTable)
    section = f"Throughput {format_block_size(round(block_size_kib * KIB))}"
    yield Purge(section=section)
    if table.precondition:
        own = block_size_kib if table.fill_block_size == "own" else None
        size_kib = own or profile.preconditioning.block_size_kib
        writes = profile.workload(Access.SEQUENTIAL, 0, size_kib, table.jobs, table.io_depth)
        yield workload_independent_preconditioning(profile, section, writes)

    steps = at_each_mix_and_size(
        profile, Access.SEQUENTIAL, (100, 0), (block_size_kib,), table.step_s, table.jobs, table.io_depth
    )
    if judged_by is not None:
        return (yield from as_many_rounds_as(judged_by, section, steps))
    written = steps[1].workload
    tracked = Tracked(
        tracking=f"SEQ {written.mix_and_size} MB/s",
        unit="MB/s",
        workload=written,
        value=lambda measured: measured.megabytes_per_s,
    )
    return (yield from rounds_until_steady(section, steps, profile.steady_state, (tracked,)))


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(ThroughputTable)
    first, *others = table.block_sizes_kib
    judged = "each block size"
    if table.steady_state == "first" and others:
        judged = f"{first:g} KiB; the other block sizes run as many rounds and are not judged"
    demand = building_blocks.demand(profile, table.jobs, table.io_depth)
    before = [*building_blocks.purge(circumstances)]
    if table.precondition:
        shared = f"SEQ {profile.preconditioning.block_size_kib:g} KiB writes"
        load = "SEQ writes of that block size" if table.fill_block_size == "own" else shared
        before.append(building_blocks.preconditioning(profile, circumstances, f"{load}, {demand}"))
    return (
        f"For block size {building_blocks.numbers(table.block_sizes_kib)} KiB:",
        *(f"    {line}" for line in before),
        f"    {building_blocks.at_most_rounds(profile)}",
        f"        SEQ read, then SEQ write, {demand}, {table.step_s:g} s each",
        f"Tracking variable: MB/s of SEQ writes of {judged}",
        building_blocks.steady_state(profile),
    )


TEST = Test(
    name="tp",
    title="Throughput",
    source="PTS-E 1.1, throughput test",
    suites=("ssd", "raid"),
    table=ThroughputTable,
    procedure=throughput,
    describe=describe,
    section_plan=section_plan,
    tracked=("megabytes_per_s",),
    whole_test=whole_test,
)
