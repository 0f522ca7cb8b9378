"""Throughput test (PTS section 8): sequential reads and writes of large blocks."""

from __future__ import annotations

from collections.abc import Generator

from tkperf.figures import FigureKind, SectionPlan, drawn, matrices, over_rounds
from tkperf.phases import Answer, Outcome, Procedure, Purge, SectionOutcome
from tkperf.procedures.parts import (
    Part,
    rounds_until_steady,
    workload_independent_preconditioning,
)
from tkperf.profiles import Profile
from tkperf.units import KIB, format_block_size
from tkperf.workload import Access, Step


def section_plan(name: str) -> SectionPlan:
    """How the section of a block size is shown."""
    return SectionPlan(
        name=name,
        quantities=("megabytes_per_s",),
        figures=(
            *matrices("megabytes_per_s"),
            over_rounds("megabytes_per_s", "Steady state convergence: SEQ writes", 0),
            over_rounds("megabytes_per_s", "Steady state convergence: SEQ reads", 100),
            drawn(FigureKind.WINDOW),
        ),
    )


def throughput(profile: Profile, _active_range_bytes: int) -> Procedure:
    """For each block size: purge, precondition, read and write in turn until writes are steady."""
    table = profile.throughput
    outcomes: list[SectionOutcome] = []
    for block_size_kib in table.block_sizes_kib:
        copies_first = table.steady_state == "first" and outcomes
        exactly_rounds = outcomes[0].window[-1] if copies_first else None
        outcomes.append((yield from _one_block_size(profile, block_size_kib, exactly_rounds)))
    return Outcome(sections=tuple(outcomes))


def _one_block_size(
    profile: Profile, block_size_kib: float, exactly_rounds: int | None
) -> Generator[Part, Answer, SectionOutcome]:
    section = f"Throughput {format_block_size(round(block_size_kib * KIB))}"
    yield Purge(section=section)
    if profile.throughput.precondition:
        yield workload_independent_preconditioning(profile, section)

    steps = tuple(
        Step(
            workload=profile.workload(Access.SEQUENTIAL, read_percent, block_size_kib),
            duration_s=profile.throughput.step_s,
        )
        for read_percent in (100, 0)
    )
    written = steps[1].workload
    return (
        yield from rounds_until_steady(
            section,
            steps,
            profile.steady_state,
            tracking=f"SEQ {written.mix_and_size} MB/s",
            unit="MB/s",
            tracked_value=lambda round_result: round_result[written].megabytes_per_s,
            exactly_rounds=exactly_rounds,
        )
    )
