"""Latency test (PTS section 9): response time with one outstanding I/O."""

from dataclasses import replace

from tkperf.phases import Continuous, Outcome, Procedure, Purge, SectionOutcome
from tkperf.procedures.parts import (
    mean_latency_us,
    rounds_until_steady,
    workload_independent_preconditioning,
)
from tkperf.profiles import Profile, tracked_cell
from tkperf.workload import Access, Step

SECTION = "Latency"
HISTOGRAM_SECTION = "Response time histogram"


def latency(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge, precondition, loop until the mean of random 4 KiB writes is steady, histogram run."""
    table = profile.latency
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)

    steps = tuple(
        Step(
            workload=replace(
                profile.workload(Access.RANDOM, read_percent, block_size_kib),
                jobs=table.jobs,
                io_depth=table.io_depth,
            ),
            duration_s=table.step_s,
        )
        for read_percent in table.read_percents
        for block_size_kib in table.block_sizes_kib
    )
    tracked = tracked_cell(table)
    outcome = yield from rounds_until_steady(
        SECTION,
        steps,
        profile.steady_state,
        tracking=f"RND {tracked} mean latency",
        unit="us",
        tracked_value=lambda round_result: mean_latency_us(round_result[tracked]),
    )
    if not table.histogram_s:
        return Outcome(sections=(outcome,))

    # PTS-E 1.1: after steady state, the tracked workload again, every completion time kept.
    yield Continuous(
        section=HISTOGRAM_SECTION,
        number=1,
        workload=next(step.workload for step in steps if step.workload.cell == tracked),
        duration_s=table.histogram_s,
        longest_s=table.histogram_s,
    )
    histogram_outcome = SectionOutcome(
        section=HISTOGRAM_SECTION, window=(1,), verdict=None, ended_because="ran its full time"
    )
    return Outcome(sections=(outcome, histogram_outcome))
