"""Device and host of a resumed run, compared with those of its run file, and the interruption between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tkperf.analysis.host import found_settings
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.model.errors import DeviceError
from tkperf.model.record import GoesOn, PurgeRecord, Resumption, StepRecord
from tkperf.model.units import format_capacity
from tkperf.pipeline.host_check import HostState
from tkperf.pipeline.subject import Equipment
from tkperf.runner.progress import describe_under_way
from tkperf.runner.replay import Resumed
from tkperf.system.host import read_host

if TYPE_CHECKING:
    from tkperf.pipeline.resume import ResumePlan

# Facts that distinguish one drive from another. A fact unknown in the run file is not compared.
_OWN = ("serial", "wwn", "model", "firmware")
_WORDS = {"serial": "serial number", "wwn": "world-wide name", "logical_block_bytes": "sector"}

# Facts of the host that results depend on.
_HOST = ("hostname", "kernel", "kernel_command_line", "cpu_model", "cpu_governor", "memory_bytes",
         "operating_system", "bios")  # fmt: skip


def build_resumed(
    plan: ResumePlan,
    equipment: Equipment,
    host: HostState,
    command_line: tuple[str, ...] = (),
) -> Resumed:
    """Return the resumed run at the moment at which it goes on."""
    stopped_s, resumed_s = _times(plan, equipment)
    record, replayed, under_way = plan.record, plan.replayed, plan.under_way
    # A simulated drive has no unfinished step: without an end the step never began.
    cut_off = None if under_way is None or plan.is_simulated else under_way.under_way
    resumption = Resumption(
        resumed_utc=datetime.now(UTC).isoformat(timespec="seconds"),
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
    started = _moment(plan.info.started_utc)
    if started is None:
        return stopped_s, stopped_s
    if (ended := _moment(plan.record.ended_utc)) is not None:
        stopped_s = max(stopped_s, (ended - started).total_seconds())
    elapsed_s = (datetime.now(UTC) - started).total_seconds()
    return stopped_s, max(stopped_s, elapsed_s)


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


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
    started = _moment(info.started_utc)
    if started is not None and datetime.now(UTC) < started:
        yield "the host's clock was set back: how long the run was interrupted is not known"


def require_same_device(
    recorded: Mapping[str, object], identity: DeviceIdentity, facts: Mapping[str, object]
) -> None:
    """Compare a device with the device of a run.

    Args:
        recorded: the facts about the run's device.
        identity, facts: the device as it is now.

    Raises:
        DeviceError: it is another device, or it has changed; the message names the differences.
    """
    differences = tuple(_differences(recorded, identity, facts))
    if differences:
        raise DeviceError(
            f"{identity.path} is not the device of the run as it was then: "
            f"{'; '.join(differences)}. Where it has another name by now: tkperf resume RUN_FILE DEVICE"
        )


def _differences(
    recorded: Mapping[str, object], identity: DeviceIdentity, facts: Mapping[str, object]
) -> Iterator[str]:
    if recorded.get("kind") != identity.kind:
        yield f"a {identity.kind}, not a {recorded.get('kind')}"
        return
    before, now = recorded.get("capacity_bytes"), identity.capacity_bytes
    if isinstance(before, int) and before != now:
        how = "grown" if now > before else "shrunk"
        sizes = [format_capacity(before), format_capacity(now)]
        if sizes[0] == sizes[1]:
            sizes = [f"{before} bytes", f"{now} bytes"]
        yield f"it has {how} from {sizes[0]} to {sizes[1]}"
    for key in (*_OWN, "logical_block_bytes"):
        if recorded.get(key) is not None and recorded[key] != facts.get(key):
            yield f"{_WORDS.get(key, key)} {facts.get(key) or 'not known'}, not {recorded[key]}"
    behind = recorded.get("loop_backing")
    known = behind is not None and behind == identity.loop_backing
    if identity.kind is TargetKind.FILE:
        yield from _other_file(recorded, identity)
    elif not known and not any(recorded.get(key) for key in ("serial", "wwn")):
        # Only its place distinguishes it from another of its kind.
        for key in ("path", "backing"):
            if recorded.get(key) != facts.get(key):
                yield f"{key} {facts.get(key)}, not {recorded.get(key)}"
    # Path and size of a loop device may belong to another image by now.
    if behind is not None and not known:
        yield f"behind it is {identity.loop_backing or 'nothing known'}, not {behind}"


def _other_file(recorded: Mapping[str, object], identity: DeviceIdentity) -> Iterator[str]:
    """Yield the difference between two files by inode only: a boot may renumber the file system."""
    before = recorded.get("inode")
    now = identity.inode
    if isinstance(before, list | tuple) and now is not None and before[-1] != now[-1]:
        yield f"it is another file (inode {now[-1]}, not {before[-1]})"
