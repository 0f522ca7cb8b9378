"""The host idle recovery test of the PTS: the effect of pauses between bursts of writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar

import msgspec

from tkperf.model.figures import DONE, HEAT_MAP, WINDOW, Figure, FigureKind, SectionPlan, asking, drawn
from tkperf.model.phases import Continuous, Idle, Phase, PhaseSequence, Procedure, Purge
from tkperf.model.units import format_count
from tkperf.model.workload import Access, Workload
from tkperf.procedures import building_blocks
from tkperf.procedures.building_blocks import slices_of, unjudged, write_until_steady
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    MOST_SLICES,
    MOST_VALUES,
    BlockSizeKib,
    Percent,
    Seconds,
    Slices,
    SteadyStateTable,
    TestTable,
    means,
)

PRECONDITIONING = "Steady-state preconditioning"
_WAIT = "Wait state "
_BASELINE = "Baseline after "


class HostIdleRecoveryTable(TestTable, frozen=True, kw_only=True):
    """The stream of preconditioning, and the wait states. A wait state consists of bursts with pauses, followed by a
    baseline.

    During preconditioning, one slice of ``slice_s`` in ``round_every_slices`` is judged. ``idle_s`` contains the length
    of the pause in each wait state. A wait state consists of ``bursts`` writes of ``burst_s`` with a pause after each,
    and then of ``baseline_slices`` slices of ``burst_s`` without pauses.
    """

    key: ClassVar[str] = "host_idle_recovery"

    block_size_kib: Annotated[BlockSizeKib, means("block size of all writes, in KiB")]
    read_percent: Annotated[Percent, means("R/W mix of all writes (share of reads, in %)")]
    slice_s: Annotated[Seconds, means("length of each slice of the preconditioning stream, in s")]
    round_every_slices: Annotated[
        Slices,
        means(
            "number n: tkperf judges the steady state of the preconditioning stream from every n-th slice, starting "
            "with the first"
        ),
    ]
    burst_s: Annotated[Seconds, means("length of a burst, and of each slice of a baseline, in s")]
    bursts: Annotated[Slices, means("number of bursts in each wait state")]
    idle_s: Annotated[
        tuple[Seconds, ...],
        msgspec.Meta(min_length=1, max_length=MOST_VALUES),
        means("idle times after each burst, in s; each value defines a wait state"),
    ]
    baseline_slices: Annotated[Slices, means("number of slices in the baseline after each wait state")]

    def fault(self, profile: Profile) -> str | None:
        if len(self.idle_s) * (self.bursts + self.baseline_slices) > MOST_SLICES:
            return f"bursts: with the baselines of all wait states more than {MOST_SLICES:,}"
        return None


def wait_state(idle_s: float) -> str:
    """Return the name of the section for the bursts with this pause."""
    return f"{_WAIT}{idle_s:g} s"


def baseline(idle_s: float) -> str:
    """Return the name of the section for the writes without pauses that follow the bursts with this pause."""
    return f"{_BASELINE}{idle_s:g} s"


def host_idle_recovery(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge the drive, write until steady state, and then run each wait state with its baseline, one after the
    other.
    """
    table = profile.table(HostIdleRecoveryTable)
    workload = profile.workload(Access.RANDOM, table.read_percent, table.block_size_kib)
    yield Purge(section=PRECONDITIONING)
    steady = yield from write_until_steady(
        profile, PRECONDITIONING, workload, str(workload), slice_s=table.slice_s, every=table.round_every_slices
    )
    yield steady
    bursts = f"{format_count(table.bursts, 'burst')} of {table.burst_s:g} s"
    writes = f"{table.baseline_slices * table.burst_s:g} s without pauses"
    # According to PTS-E 1.1 (HIR, wait states), writes and idle times alternate. Afterwards, writes without a pause
    # follow.
    for idle_s in table.idle_s:
        yield PhaseSequence(phases=tuple(_bursts(table, workload, idle_s)))
        yield unjudged(wait_state(idle_s), f"{bursts}, {idle_s:g} s idle after each")
        without = slices_of(baseline(idle_s), workload, table.burst_s, table.baseline_slices)
        yield PhaseSequence(phases=tuple(without))
        yield unjudged(baseline(idle_s), writes)


def _bursts(table: HostIdleRecoveryTable, workload: Workload, idle_s: float) -> Iterator[Phase]:
    for number in range(1, table.bursts + 1):
        yield Continuous(
            section=wait_state(idle_s),
            number=number,
            workload=workload,
            duration_s=table.burst_s,
            longest_s=table.burst_s,
        )
        yield Idle(section=wait_state(idle_s), duration_s=idle_s)


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(HostIdleRecoveryTable)
    load = f"RND {table.block_size_kib:g} KiB, {table.read_percent} % reads, {building_blocks.demand(profile)}"
    return (
        *building_blocks.purge(circumstances),
        f"{load}, one unbroken stream, until steady state of "
        f"{building_blocks.judged_slices(table.slice_s, table.round_every_slices)}, "
        f"at most {profile.steady_state.max_rounds} of them",
        f"For idle time {building_blocks.numbers(table.idle_s)} s:",
        f"    {table.bursts} times: the same load for {table.burst_s:g} s, then no I/O for the idle time",
        f"    the same load for {table.baseline_slices * table.burst_s:g} s without a pause, "
        f"recorded in slices of {table.burst_s:g} s",
        building_blocks.steady_state(profile),
    )


def section_plan(name: str) -> SectionPlan:
    """Return the display plan of a section. The figures of the whole test show wait states and baselines together."""
    rates = (*asking("How do the writes change?", drawn(FigureKind.OVER_TIME, "iops")), *WINDOW)
    return SectionPlan(
        name=name,
        quantities=("iops", "latency_mean_us", "latency_max_us"),
        figures=(*rates, *HEAT_MAP) if name == PRECONDITIONING else HEAT_MAP,
        prepares=name == PRECONDITIONING,
        state=_name_state(name),
    )


def _name_state(section: str) -> str:
    """Return a text about the state of a section, such as ``bursts after 5 s idle`` or ``baseline after 5 s idle``."""
    if section.startswith(_BASELINE):
        return f"baseline after {section.removeprefix(_BASELINE)} idle"
    return f"bursts after {section.removeprefix(_WAIT)} idle" if section.startswith(_WAIT) else ""


def whole_test(sections: Sequence[str]) -> tuple[Figure, ...]:
    """Return the figures of the whole test: a figure of all wait states, a figure of each wait state with the baselines
    before and after it, and figures of all loads over time.
    """
    pairs = tuple(pair for pair in pairwise(sections[1:]) if pair[1].startswith(_BASELINE))
    around = tuple(
        neighbours for neighbours in zip(sections, sections[1:], sections[2:], strict=False) if neighbours[1:] in pairs
    )
    return (
        drawn(FigureKind.SECTIONS, "iops"),
        *asking(
            "How much faster are writes after idle time?",
            drawn(
                FigureKind.OVERLAID,
                "iops",
                title="IOPS of all wait states and the baseline after each",
                groups=pairs,
                view=("all wait states",),
                printed=True,
            ),
            drawn(FigureKind.TIMELINE, "iops", groups=around, printed=True),
        ),
        *asking(DONE, drawn(FigureKind.TIMELINE, "iops")),
    )


TEST = Test(
    name="hir",
    title="Host Idle Recovery",
    source="PTS-E 1.1, host idle recovery test",
    suites=("ssd", "raid"),
    by_default=False,
    table=HostIdleRecoveryTable,
    procedure=host_idle_recovery,
    describe=describe,
    section_plan=section_plan,
    whole_test=whole_test,
    shared=(SteadyStateTable,),
    tracked=("iops",),
)
