"""Going on with a run: the interruption, and what differs since the run began."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tkperf.analysis.host_results import found_settings
from tkperf.model.record import GoesOn, PurgeRecord, Resumption, StepRecord
from tkperf.pipeline.device_under_test import Equipment
from tkperf.pipeline.host_check import HostState
from tkperf.runner.log_progress import describe_under_way
from tkperf.runner.replay import Resumed
from tkperf.system.host import now_utc, parse_utc, read_host

if TYPE_CHECKING:
    from tkperf.pipeline.resume_plan import ResumePlan

# Facts of the host that results depend on.
_HOST = (
    "hostname",
    "kernel",
    "kernel_command_line",
    "cpu_model",
    "cpu_governor",
    "memory_bytes",
    "operating_system",
    "bios",
)


def build_resumed(
    plan: ResumePlan, equipment: Equipment, host: HostState, command_line: tuple[str, ...] = ()
) -> Resumed:
    """Return the resumed run at the moment at which it goes on."""
    stopped_s, resumed_s = _times(plan, equipment)
    record, replayed, under_way = plan.record, plan.replayed, plan.under_way
    # A simulated drive has no unfinished step: without an end the step never began.
    cut_off = None if under_way is None or plan.is_simulated else under_way.under_way
    resumption = Resumption(
        resumed_utc=now_utc(),
        stopped_s=stopped_s,
        resumed_s=resumed_s,
        status=record.status,
        because=record.ended_because,
        goes_on=replayed.goes_on if under_way is not None else GoesOn.NEXT,
        test=None if under_way is None else under_way.name,
        test_id=None if under_way is None else under_way.id,
        section=replayed.section,
        round_number=replayed.round_number,
        set_aside_from=replayed.set_aside_from,
        set_aside_to=max((entry.sequence for entry in plan.log), default=None),
        again=replayed.again,
        cut_off=None if cut_off is None else describe_under_way(cut_off, record.status),
        cut_off_written_bytes=0 if cut_off is None else cut_off.measured_so_far.write.bytes,
        repeated=tuple(test.name for test in plan.repeated),
        repeated_ids=tuple(test.id for test in plan.repeated),
        added=plan.request.add,
        changes=() if plan.is_simulated else tuple(_changes(plan, equipment, host)),
        command_line=command_line,
    )
    return Resumed(resumption=resumption, done=plan.done, replayed=replayed)


def _times(plan: ResumePlan, equipment: Equipment) -> tuple[float, float]:
    """Return when the run stopped, as far as its file shows, and now, in seconds since its start.

    The time of a simulated drive does not pass meanwhile.
    """
    if plan.is_simulated:
        now_s = equipment.clock()
        return now_s, now_s
    stopped_s = max(_known_moments(plan), default=0.0)
    started = parse_utc(plan.info.started_utc)
    if started is None:
        return stopped_s, stopped_s
    if (ended := parse_utc(plan.record.ended_utc)) is not None:
        stopped_s = max(stopped_s, (ended - started).total_seconds())
    elapsed_s = (datetime.now(UTC) - started).total_seconds()
    return stopped_s, max(stopped_s, elapsed_s)


def _known_moments(plan: ResumePlan) -> Iterator[float]:
    for entry in plan.log:
        done = entry.record
        if isinstance(done, StepRecord):
            yield done.started_s + done.measurement.duration_s
        elif isinstance(done, PurgeRecord):
            yield done.started_s + done.duration_s
    for test in plan.record.tests:
        yield test.ended_s if test.ended_s is not None else test.started_s
        if test.under_way is not None:
            yield test.under_way.started_s + test.under_way.measured_so_far.duration_s
    yield from (resumption.resumed_s for resumption in plan.record.resumptions)
    yield from (warning.at_s for warning in plan.record.warnings if warning.at_s is not None)
    yield from (note.at_s for note in plan.record.notes if note.at_s is not None)


def _changes(plan: ResumePlan, equipment: Equipment, state: HostState) -> Iterator[str]:
    """Yield the differences between now and the beginning of the run."""
    info, host = plan.info, read_host()
    for key in _HOST:
        if info.host.get(key) != host.get(key):
            yield f"{key.replace('_', ' ')} {info.host.get(key)} -> {host.get(key)}"
    before = found_settings(info.host)
    for title, found in found_settings(state.facts()).items():
        if title in before and before[title] != found:
            yield f"{title} {before[title]} -> {found}"
    facts = {**equipment.facts.values, **state.device_facts()}
    for key in ("path", "link", "scheduler"):
        if info.device.get(key) != facts.get(key):
            yield f"{key} of the device {info.device.get(key)} -> {facts.get(key)}"
    if info.device.get("write_cache_in_run") != equipment.write_cache:
        yield f"write cache {info.device.get('write_cache_in_run')} -> {equipment.write_cache}"
    if (clock := info.host.get("fio_clock")) not in (None, equipment.engine.io_clock):
        yield f"clock of fio {clock} -> {equipment.engine.io_clock}"
    started = parse_utc(info.started_utc)
    if started is not None and datetime.now(UTC) < started:
        yield "the host's clock was set back: how long the run was interrupted is not known"
