"""The quality of service test of Myce/OakGate: the latency of single I/Os in each minute, over two hours."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import msgspec

from tkperf.model.figures import (
    HEAT_MAP,
    LATENCIES,
    FigureKind,
    SectionPlan,
    asking,
    distributed,
    drawn,
    percentile_keys,
)
from tkperf.model.phases import Continuous, PhaseSequence, Procedure, Purge, Reply, SectionOutcome, Yielded
from tkperf.model.quantity import PERCENTILES
from tkperf.model.reported_percentiles import PercentileUse, find_percentiles
from tkperf.model.units import format_count, format_mix
from tkperf.model.workload import Access
from tkperf.procedures import building_blocks, random_write_state
from tkperf.procedures.building_blocks import unjudged, workload_independent_preconditioning
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    MOST_SLICES,
    QUEUE_DEPTH,
    BlockSizeKib,
    Depth,
    Jobs,
    PreconditioningTable,
    Seconds,
    means,
)
from tkperf.procedures.random_write_state import RandomWriteStateTable, write_randomly

_NAME = "QoS"
_STATE = "Random writes before"
_PERCENTS = " and ".join(f"p{percent:g}" for percent in find_percentiles(PercentileUse.STREAMS))


class QualityOfServiceTable(RandomWriteStateTable, frozen=True, kw_only=True):
    """The numbers of the test. Every workload runs ``rounds`` rounds without interruption. Each round consists of a
    warm-up and a measured part.
    """

    key: ClassVar[str] = "quality_of_service"

    block_size_kib: Annotated[BlockSizeKib, means("block size of all streams, in KiB")]
    jobs: Annotated[Jobs, means("thread count (TC) of all streams")]
    io_depth: Annotated[Depth, QUEUE_DEPTH]
    rounds: Annotated[
        int,
        msgspec.Meta(ge=1, le=MOST_SLICES // 2),
        means("number of rounds of each stream. Each round has a warm-up and a measured part"),
    ]
    warm_up_s: Annotated[Seconds, means("length of the warm-up of each round, in s")]
    measured_s: Annotated[Seconds, means("length of the measured part of each round, in s")]

    def scaled(self, step_s: float) -> Self:
        """Return the table with a different duration of the measured parts. The warm-ups keep their duration."""
        return msgspec.structs.replace(self, measured_s=step_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """A workload of the test. ``written_first`` means that hours of random writes precede the workload."""

    access: Access
    read_percent: int
    written_first: bool

    @property
    def section(self) -> str:
        return f"{_NAME} {self.access.value} {format_mix(self.read_percent)}"

    @property
    def state_section(self) -> str:
        return f"{_STATE} {self.section}"


# The order is that of Myce's review (see the source in docs/explanation/method.md). The pure reads follow the pure
# writes directly, and therefore measure the drive in the same state.
_SEQUENTIAL = _Stream(access=Access.SEQUENTIAL, read_percent=100, written_first=False)
_STREAMS = (
    _Stream(access=Access.RANDOM, read_percent=50, written_first=True),
    _Stream(access=Access.RANDOM, read_percent=0, written_first=True),
    _Stream(access=Access.RANDOM, read_percent=100, written_first=False),
)


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section: a stream, or the preceding random writes."""
    if name.startswith(_STATE):
        return random_write_state.section_plan(name)
    return SectionPlan(
        name=name,
        quantities=LATENCIES,
        figures=(
            drawn(
                FigureKind.LISTING,
                *(quantity.key for quantity in PERCENTILES),
                "latency_max_us",
                title="Latency quantiles",
                apart=True,
            ),
            *distributed(apart=True),
            *asking(
                "How does latency change over time?",
                drawn(FigureKind.OVER_TIME, "latency_mean_us", apart=True, view=("mean",), printed=True),
                drawn(
                    FigureKind.OVER_TIME,
                    *percentile_keys(PercentileUse.STREAMS),
                    log=True,
                    apart=True,
                    view=(_PERCENTS,),
                    printed=True,
                ),
                drawn(FigureKind.OVER_TIME, "latency_max_us", log=True, apart=True, view=("maximum",), printed=True),
                drawn(FigureKind.SECONDS, "latency_mean_us", "latency_max_us", view=("every second",)),
            ),
            *HEAT_MAP,
        ),
    )


def quality_of_service(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Read a filled drive sequentially. Then run a mix, writes, and reads. Random writes bring the drive into the same
    state before the mix and before the writes.
    """
    table = profile.table(QualityOfServiceTable)
    yield Purge(section=_SEQUENTIAL.section)
    yield workload_independent_preconditioning(profile, _SEQUENTIAL.section)
    yield (yield from rounds_in_one_stream(_SEQUENTIAL, profile, table))
    for stream in _STREAMS:
        if stream.written_first:
            yield (yield from write_randomly(stream.state_section, profile, table))
        yield (yield from rounds_in_one_stream(stream, profile, table))


def rounds_in_one_stream(
    stream: _Stream, profile: Profile, table: QualityOfServiceTable
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run rounds that consist of a warm-up and a measured slice. The stream runs without a pause."""
    workload = profile.workload(stream.access, stream.read_percent, table.block_size_kib, table.jobs, table.io_depth)
    longest_s = table.rounds * (table.warm_up_s + table.measured_s)
    yield PhaseSequence(
        phases=tuple(
            Continuous(
                section=stream.section,
                number=number,
                workload=workload,
                duration_s=duration_s,
                longest_s=longest_s,
                warm_up=warm_up,
            )
            for number in range(1, table.rounds + 1)
            for duration_s, warm_up in ((table.warm_up_s, True), (table.measured_s, False))
        )
    )
    because = f"all {format_count(table.rounds, 'round')} were run"
    return unjudged(stream.section, because, range(1, table.rounds + 1))


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(QualityOfServiceTable)
    state = random_write_state.describe(profile, table, circumstances)
    lines = [
        *building_blocks.purge(circumstances),
        building_blocks.preconditioning(profile, circumstances),
        _describe_stream(_SEQUENTIAL, table),
    ]
    for stream in _STREAMS:
        lines += [*(state if stream.written_first else ()), _describe_stream(stream, table)]
    return (*lines, "Each of these is one unbroken stream. Warm-ups are measured, but no result contains them")


def _describe_stream(stream: _Stream, table: QualityOfServiceTable) -> str:
    return (
        f"{stream.access.order} {table.block_size_kib:g} KiB R/W {format_mix(stream.read_percent)}, "
        f"TC {table.jobs} / QD {table.io_depth}: {format_count(table.rounds, 'round')} of "
        f"{table.warm_up_s:g} s warm-up "
        f"and {table.measured_s:g} s measured"
    )


TEST = Test(
    name="qos",
    title="Quality of service",
    source="Myce/OakGate, 4K latency tests",
    suites=("ssd", "raid"),
    by_default=False,
    table=QualityOfServiceTable,
    procedure=quality_of_service,
    describe=describe,
    section_plan=section_plan,
    shared=(PreconditioningTable,),
)
