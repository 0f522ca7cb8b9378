"""Write saturation test (PTS section 10): how a purged device changes under constant writes."""

from __future__ import annotations

from tkperf.phases import Outcome, Procedure, Purge, SectionOutcome
from tkperf.procedures.parts import Stream, stream_until
from tkperf.profiles import Profile, WriteSaturationTable
from tkperf.units import format_capacity, format_count
from tkperf.workload import Access

SECTION = "Write Saturation"


def write_saturation(profile: Profile, active_range_bytes: int) -> Procedure:
    """Purge, then one uninterrupted stream of random writes, recorded in slices of a minute.

    Ends with the first of: the capacity multiple written, the longest time, steady state of the
    slices sampled every ``round_every_slices`` (PTS-E 1.1: minutes 1, 31, 61 ...).
    """
    table = profile.write_saturation
    workload = profile.workload(Access.RANDOM, table.read_percent, table.block_size_kib)
    yield Purge(section=SECTION)
    stream = yield from stream_until(
        SECTION,
        workload,
        slice_s=table.slice_s,
        max_slices=table.max_slices,
        rules=profile.steady_state,
        tracking=f"{workload} IOPS",
        unit="IOPS",
        tracked_value=lambda slice_: slice_.iops,
        judge_every=table.round_every_slices or None,
        enough_bytes=table.capacity_multiple * active_range_bytes,
    )
    verdict = stream.verdict
    section = SectionOutcome(
        section=SECTION,
        window=verdict.rounds if verdict is not None and verdict.reached else (),
        verdict=verdict,
        ended_because=_why_ended(stream, table, active_range_bytes),
    )
    return Outcome(sections=(section,))


def _why_ended(stream: Stream, table: WriteSaturationTable, active_range_bytes: int) -> str:
    if stream.verdict is not None and stream.verdict.reached:
        sampled = ", ".join(str(number) for number in stream.verdict.rounds)
        return f"steady state in slices {sampled}"
    if stream.written_bytes >= table.capacity_multiple * active_range_bytes:
        written = f"{table.capacity_multiple:g} x the active range"
        return f"{written} written ({format_capacity(stream.written_bytes)})"
    return f"longest time of {format_count(table.max_slices, 'slice')}"
