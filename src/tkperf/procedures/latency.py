"""The latency test of the PTS: the response time with one outstanding I/O."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from tkperf.model.figures import (
    CONVERGENCE,
    LATENCIES,
    PERCENTILE_KEYS,
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
    plan_histogram_run,
)
from tkperf.model.phases import Procedure, Purge
from tkperf.model.units import format_mix
from tkperf.model.workload import Access
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import (
    HISTOGRAM_SECTION,
    Tracked,
    at_each_mix_and_size,
    find_tracked,
    mean_latency_us,
    response_time_histogram,
    rounds_until_steady,
    workload_independent_preconditioning,
)
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.mixes_and_sizes import MixesAndSizes
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import LONGEST_S, QUEUE_DEPTH, THREAD_COUNT, Depth, Jobs, means

SECTION = "Latency"


class LatencyTable(MixesAndSizes, frozen=True, kw_only=True):
    """The loops of the test, with the demand of the test. If ``histogram_s`` is 0, no run for a histogram follows."""

    key: ClassVar[str] = "latency"

    jobs: Annotated[Jobs, THREAD_COUNT]
    io_depth: Annotated[Depth, QUEUE_DEPTH]
    histogram_s: Annotated[
        float,
        msgspec.Meta(ge=0, le=LONGEST_S),
        means("length of the histogram run after the rounds, in s; 0 means no histogram run"),
    ]


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section: the rounds, or the run for the histogram."""
    if name == HISTOGRAM_SECTION:
        return plan_histogram_run(name)
    return SectionPlan(
        name=name,
        quantities=LATENCIES,
        figures=(
            *matrices("latency_mean_us", "latency_max_us", *PERCENTILE_KEYS),
            *asking(
                "How long does an I/O take at each block size and R/W mix?",
                *_means("latency_mean_us", "mean", printed=True),
                *_means(TAIL, TAIL_WORDS, printed=False),
                *_means("latency_max_us", "maximum", printed=True),
            ),
            *asking(
                SETTLED,
                *(_convergence("latency_mean_us", "mean", mix) for mix in (0, 65, 100)),
                *(_convergence("latency_max_us", "maximum", mix) for mix in (0, 65, 100)),
            ),
            *WINDOW,
        ),
    )


def _means(quantity: str, name: str, *, printed: bool) -> tuple[Figure, Figure]:
    """Return a figure with curves and a figure with bars. The specification requires only bars of the mean and the
    maximum.
    """
    return (
        drawn(FigureKind.OVER_AXIS, quantity, log=True, view=(name, "curves")),
        drawn(FigureKind.BARS_3D, quantity, view=(name, "3-D bars"), printed=printed),
    )


def _convergence(quantity: str, name: str, mix: int) -> Figure:
    """Return a figure of the convergence over rounds. According to the PTS, the mean is printed for each mix, and the
    maximum for writes.
    """
    return over_rounds(
        quantity,
        f"{CONVERGENCE}: {name} latency, R/W {format_mix(mix)}",
        mix,
        log=name == "maximum",
        view=(name, f"R/W {format_mix(mix)}"),
        printed=mix == 0 or name == "mean",
    )


def latency(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge and precondition the drive, run the loops until the mean latency of random 4 KiB writes is steady, and then
    record a histogram.
    """
    table = profile.table(LatencyTable)
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)

    steps = at_each_mix_and_size(
        profile, Access.RANDOM, table.read_percents, table.block_sizes_kib, table.step_s, table.jobs, table.io_depth
    )
    load = find_tracked(steps, table.tracking_read_percent, table.tracking_block_size_kib)
    tracked = Tracked(tracking=f"RND {load.mix_and_size} mean latency", unit="us", workload=load, value=mean_latency_us)
    outcome = yield from rounds_until_steady(SECTION, steps, profile.steady_state, (tracked,))
    yield outcome
    if not table.histogram_s:
        return

    # After steady state, the tracked workload runs again (see the source in docs/explanation/method.md).
    reached = outcome.verdict is not None and outcome.verdict.reached
    yield (yield from response_time_histogram(load, table.histogram_s, steady=reached))


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(LatencyTable)
    lines = building_blocks.until_steady(
        profile,
        circumstances,
        building_blocks.mixes_and_sizes(table.read_percents, table.block_sizes_kib),
        f"RND, TC {table.jobs} / QD {table.io_depth}, {table.step_s:g} s",
        f"Tracking variable: mean latency of RND {table.tracked}",
    )
    if not table.histogram_s:
        return lines
    return (*lines, f"Then RND {table.tracked} for {table.histogram_s:g} s: response time histogram")


TEST = Test(
    name="lat",
    title="Latency",
    source="PTS-E 1.1, latency test",
    suites=("ssd", "raid"),
    table=LatencyTable,
    procedure=latency,
    describe=describe,
    section_plan=section_plan,
    tracked=("latency_mean_us",),
)
