"""IOPS test (PTS section 7): transaction rate by block size and read/write mix."""

from tkperf.phases import Outcome, Procedure, Purge
from tkperf.procedures.parts import rounds_until_steady, workload_independent_preconditioning
from tkperf.profiles import Profile, tracked_cell
from tkperf.workload import Access, Step

SECTION = "IOPS"


def iops(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Purge, precondition, loop over mix and block size until random 4 KiB writes are steady."""
    yield Purge(section=SECTION)
    yield workload_independent_preconditioning(profile, SECTION)

    steps = tuple(
        Step(
            workload=profile.workload(Access.RANDOM, read_percent, block_size_kib),
            duration_s=profile.iops.step_s,
        )
        for read_percent in profile.iops.read_percents
        for block_size_kib in profile.iops.block_sizes_kib
    )
    tracked = tracked_cell(profile.iops)
    outcome = yield from rounds_until_steady(
        SECTION,
        steps,
        profile.steady_state,
        tracking=f"RND {tracked} IOPS",
        unit="IOPS",
        tracked_value=lambda round_result: round_result[tracked].iops,
    )
    return Outcome(sections=(outcome,))
