"""The latency tests of Myce/OakGate: the offered IOPS increase until the drive no longer keeps up."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import count
from typing import Annotated, ClassVar, Self

import msgspec

from tkperf.model.figures import LATENCIES, TAIL, TAIL_WORDS, FigureKind, SectionPlan, asking, drawn, percentile_keys
from tkperf.model.measurement import Measurement
from tkperf.model.phases import Procedure, Reply, Round, SectionOutcome, Yielded
from tkperf.model.reported_percentiles import PercentileUse
from tkperf.model.units import format_count, format_mix
from tkperf.model.workload import Access, Arrival, Step, Workload
from tkperf.procedures import building_blocks, random_write_state
from tkperf.procedures.building_blocks import describe_missed, expect_round, keeps_up, unjudged
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    ARRIVAL,
    BlockSizeKib,
    Depth,
    Jobs,
    Percents,
    PreconditioningTable,
    Seconds,
    means,
)
from tkperf.procedures.random_write_state import RandomWriteStateTable, write_randomly

STATE_SECTION = "Random writes before demand"
_RAISED_FOR_HEADROOM = 1.2  # the levels reach at least this multiple of the fastest rate of the drive


class LatencyOverDemandTable(RandomWriteStateTable, frozen=True, kw_only=True):
    """The offered rates of the test. Each mix in ``read_percents`` is a section. The distance between its levels is
    ``increment_iops``, or a multiple of ``increment_iops``.
    """

    key: ClassVar[str] = "latency_over_demand"

    read_percents: Annotated[Percents, means("R/W mixes (shares of reads, in %), in this order; each mix is a section")]
    block_size_kib: Annotated[BlockSizeKib, means("block size of all levels, in KiB")]
    jobs: Annotated[Jobs, means("thread count (TC) of all levels")]
    io_depth: Annotated[Depth, means("queue depth of each thread (QD). At most jobs x io_depth I/Os are outstanding")]
    arrival: Annotated[Arrival, ARRIVAL]
    increment_iops: Annotated[
        int,
        msgspec.Meta(ge=1, le=1_000_000),
        means(
            "increment of the offered IOPS from level to level. If a drive would need too many levels, tkperf "
            "multiplies the increment by 2, 5, 10 ..."
        ),
    ]
    most_levels: Annotated[int, msgspec.Meta(ge=2, le=1000), means("maximum number of levels of a mix")]
    saturate_s: Annotated[
        Seconds,
        means(
            "length of a load without an offered rate, in s. From the rate of this load, tkperf chooses the increment"
        ),
    ]
    warm_up_s: Annotated[Seconds, means("length of the warm-up at each level, in s")]
    level_s: Annotated[Seconds, means("length of the measured part of each level, in s")]
    kept_up_percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=100),
        means(
            "share of the offered IOPS that a level must reach, in %. A level that does not reach this share "
            "counts as missed"
        ),
    ]
    missed_levels: Annotated[
        int, msgspec.Meta(ge=1, le=100), means("number of consecutive missed levels after which a mix ends")
    ]

    def fault(self, profile: Profile) -> str | None:
        shares = (share / 100 for mix in self.read_percents for share in (mix, 100 - mix) if share)
        least = min(shares) * self.increment_iops / self.jobs
        if least < 1:
            return (
                "increment_iops: the first level would be less than one I/O a second for each of "
                f"{format_count(self.jobs, 'job')} and direction"
            )
        return super().fault(profile)

    def scaled(self, step_s: float) -> Self:
        """Return the table with a different duration of the levels. The warm-ups keep their duration."""
        return msgspec.structs.replace(self, level_s=step_s)


def section_name(read_percent: int) -> str:
    return f"Demand {format_mix(read_percent)}"


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section: the preceding random writes, or the levels of a mix."""
    if name == STATE_SECTION:
        return random_write_state.section_plan(name)
    return SectionPlan(
        name=name,
        quantities=("iops", *LATENCIES),
        figures=(
            drawn(
                FigureKind.LISTING,
                "iops",
                "backlog_ios",
                "behind_us",
                "latency_with_wait_us",
                "latency_mean_us",
                *percentile_keys(PercentileUse.LEVELS),
                "latency_max_us",
                title="Every level",
            ),
            *asking(
                "How much of the offered load is completed?",
                drawn(FigureKind.OVER_AXIS, "iops", title="Achieved versus offered IOPS", view=("IOPS",)),
                drawn(FigureKind.OVER_AXIS, "backlog_ios", view=("backlog",)),
                drawn(FigureKind.OVER_AXIS, "behind_us", view=("time behind",)),
            ),
            *asking(
                "How long does an I/O take at each offered rate?",
                *(
                    drawn(FigureKind.OVER_AXIS, *keys, log=True, view=(name,), printed=True)
                    for keys, name in (
                        (("latency_mean_us", "latency_with_wait_us"), "mean"),
                        ((TAIL,), TAIL_WORDS),
                        (("latency_max_us",), "maximum"),
                    )
                ),
            ),
        ),
    )


def latency_over_demand(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge the drive, precondition it with random writes, and then raise the offered rate level by level for
    each mix.
    """
    table = profile.table(LatencyOverDemandTable)
    yield (yield from write_randomly(STATE_SECTION, profile, table))
    for read_percent in table.read_percents:
        unbounded = profile.workload(Access.RANDOM, read_percent, table.block_size_kib, table.jobs, table.io_depth)
        yield (yield from raise_demand(section_name(read_percent), unbounded, table))


def raise_demand(
    section: str, unbounded: Workload, table: LatencyOverDemandTable
) -> Generator[Yielded, Reply, SectionOutcome]:
    """Run levels with increasing offered rates, until the drive has missed the rates of ``missed_levels`` levels in a
    row. Each level follows a warm-up at the same rate.
    """
    saturating = Step(workload=unbounded, duration_s=table.saturate_s)
    answer = yield Round(section=section, number=1, steps=(saturating,), warm_up=True)
    increment_iops = choose_increment(expect_round(answer)[unbounded].iops, table)

    levels = 0
    missed: list[tuple[Workload, Measurement]] = []
    while levels < table.most_levels and len(missed) < table.missed_levels:
        levels += 1
        offered = replace(unbounded, offered_iops=float(levels * increment_iops), arrival=table.arrival)
        warm_up = Step(workload=offered, duration_s=table.warm_up_s)
        yield Round(section=section, number=levels + 1, steps=(warm_up,), warm_up=True)
        step = Step(workload=offered, duration_s=table.level_s)
        answer = yield Round(section=section, number=levels, steps=(step,))
        measured = expect_round(answer)[offered]
        kept_up = keeps_up(offered, (measured,), table.kept_up_percent)
        missed = [] if kept_up else [*missed, (offered, measured)]
    if len(missed) < table.missed_levels:
        counted = format_count(levels, "level")
        because = f"the last of {counted}, {levels * increment_iops:,.0f} IOPS offered"
    else:
        first, measured = missed[0]
        in_a_row = f"missed {format_count(len(missed), 'level')} in a row"
        because = f"{in_a_row}: {describe_missed(first, (measured,))}"
    return unjudged(section, because, range(1, levels + 1))


def choose_increment(saturated_iops: float, table: LatencyOverDemandTable) -> int:
    """Return the distance between two levels in IOPS. The result is the first of 1, 2, 5, 10 ... times
    ``increment_iops`` with which the levels sufficiently exceed the fastest rate of the drive.
    """
    reach_iops = saturated_iops * _RAISED_FOR_HEADROOM
    steps: Iterator[int] = (step * 10**power for power in count() for step in (1, 2, 5))
    return next(
        increment for step in steps if (increment := table.increment_iops * step) * table.most_levels >= reach_iops
    )


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(LatencyOverDemandTable)
    arrivals = building_blocks.describe_arrival(table.arrival)
    outstanding = f"TC {table.jobs} / QD {table.io_depth}"
    return (
        *random_write_state.describe(profile, table, circumstances),
        f"For R/W mix {building_blocks.mixes(table.read_percents)}:",
        f"    RND {table.block_size_kib:g} KiB, {outstanding}, as fast as the drive answers, for "
        f"{table.saturate_s:g} s",
        f"    The levels are {table.increment_iops:,} IOPS apart, or 2, 5, 10 ... times as far, so that at most "
        f"{table.most_levels} levels reach {_RAISED_FOR_HEADROOM:g} × the rate of the drive",
        f"    For each level until {format_count(table.missed_levels, 'level')} in a row were missed:",
        f"        RND {table.block_size_kib:g} KiB offered {arrivals}, at most "
        f"{table.jobs * table.io_depth} outstanding: {table.warm_up_s:g} s warm-up, then "
        f"{table.level_s:g} s measured",
        f"A level is missed if the drive completes less than {table.kept_up_percent:g} % of the offered IOPS",
        "Latency counts from the submission of an I/O. If too many I/Os are outstanding when an I/O is due, the I/O "
        "waits. The latency with wait counts from the time at which the I/O was due",
    )


TEST = Test(
    name="demand",
    title="Latency versus demand",
    source="Myce/OakGate, 4K latency tests",
    suites=("ssd", "raid"),
    by_default=False,
    table=LatencyOverDemandTable,
    procedure=latency_over_demand,
    describe=describe,
    section_plan=section_plan,
    shared=(PreconditioningTable,),
)
