"""The plan to resume an interrupted run, or to repeat or add tests in a finished run.

    run file -> same device -> plan from the stored data -> replay -> consent -> permit -> execute

Only the data in the run file determines how the run continues. The options and profiles of the current installation do
not change the plan. tkperf reports every fault before it writes the first byte.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tkperf.analysis.host_conditions import found_settings
from tkperf.device.inspection import inspect_device
from tkperf.engine.registry import find_engine
from tkperf.model.batch_state import find_snapshot
from tkperf.model.choices import SIMULATED, built_in_profiles
from tkperf.model.errors import EngineError, RefusedError, RunFileError, UsageError, not_known
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import (
    GoesOn,
    LogEntry,
    PurgeRecord,
    Resumption,
    RunNote,
    RunRecord,
    RunStatus,
    StepRecord,
    TestRecord,
)
from tkperf.model.run_info import RunInfo
from tkperf.model.same_device import require_same_device
from tkperf.model.version import __version__
from tkperf.pipeline.device_under_test import Equipment
from tkperf.pipeline.drive import measurable
from tkperf.pipeline.host_check import HostState
from tkperf.pipeline.run_disclosure import describe_alterations, find_changes
from tkperf.pipeline.run_plan import RunPlan, plan_run
from tkperf.pipeline.run_request import NO_OPTIONS, RunRequest, find_type_fault, profile_option_names
from tkperf.procedures import SUITES, Test, find_test, load_profile, read_stored_profile
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writer import require_resumable
from tkperf.runfile.writers import FileStamp, state_of, still_written
from tkperf.runner.replay import NOTHING, Replay, Resumed, at_found_demand, replay
from tkperf.runner.run_log import describe_under_way
from tkperf.system.host import now_utc, parse_utc, read_host

# Facts about the host that influence results.
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
    """Return the resumed run at the moment when it continues."""
    stopped_s, resumed_s = _times(plan, equipment)
    record, replayed, under_way = plan.record, plan.replayed, plan.under_way
    # A simulated drive has no unfinished step, because a step without an end counts as not begun.
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
    """Return the time at which the run stopped, according to the run file, and the present time, in seconds since the
    start of the run.

    For a simulated drive, both times are equal, because simulated time does not pass during an interruption.
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
    """Yield the differences between the present state and the state at the beginning of the run."""
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
        yield f"clock of {equipment.engine.name} {clock} -> {equipment.engine.io_clock}"
    started = parse_utc(info.started_utc)
    if started is not None and datetime.now(UTC) < started:
        yield "the host's clock was set back: how long the run was interrupted is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """A request to resume a run, with its options.

    Attributes:
        path: the run file.
        device: the present path of the device, if it changed.
        accept: whether to continue exactly where the run stopped, and to mark all results that span the interruption.
        repeat: tests to measure again.
        add: additional tests to measure.
        strict: whether to apply the option --strict from now on, even if the run began without it.
        purge_command: the purge command of the run, if there was one. tkperf never executes a command from a run file.
    """

    path: Path
    device: str | None = None
    accept: bool = False
    repeat: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    strict: bool = False
    purge_command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePlan:
    """A run that could continue. tkperf has examined and checked the run file, the device and the host, but has not
    asked a question or written any data yet.

    Attributes:
        plan: plan of the whole run.
        info: facts about the run that the results of the run contain from now on.
        done: outcomes of the sections of each finished test that is not repeated.
        replayed: replay of the test that was running when the run stopped.
        under_way: the test that was running when the run stopped. None means that no test was running.
        file_state: state of the run file when it was read.
    """

    request: ResumeRequest
    plan: RunPlan
    record: RunRecord
    log: tuple[LogEntry, ...]
    info: RunInfo
    done: Mapping[str, tuple[SectionOutcome, ...]]
    replayed: Replay
    under_way: TestRecord | None
    repeated: tuple[TestRecord, ...]
    file_state: FileStamp

    @property
    def tests(self) -> tuple[Test, ...]:
        return tuple(test.test for test in self.plan.tests)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the tests that must begin or continue."""
        return tuple(test.name for test in self.tests if test.name not in self.done)

    @property
    def is_simulated(self) -> bool:
        return self.plan.request.device.startswith(SIMULATED)

    @property
    def warnings(self) -> tuple[RunNote, ...]:
        """The warnings that the run file does not contain."""
        known = {(warning.code, warning.text) for warning in self.record.warnings}
        return tuple(warning for warning in self.plan.warnings if (warning.code, warning.text) not in known)

    def require_unchanged(self) -> None:
        """Raise RunFileError if another process wrote to the run file after it was read."""
        if self.file_state != state_of(self.request.path.stat()):
            raise RunFileError(
                f"{self.request.path} was changed after tkperf had read it, so tkperf did not resume the run. Try again"
            )


def make_resume_plan(request: ResumeRequest) -> ResumePlan:
    """Read a run file, examine its device, and find the point at which the run continues. The function writes nothing
    and asks no question.

    Raises:
        RunFileError: the file is damaged, was written by a different version of tkperf, or cannot be written to. The
            same error is raised if its run is still running, or if its log does not match its tests.
        UsageError: the run has ended, or a run of this kind cannot continue.
        DeviceError: the device is missing, or is another device.
        EngineError: fio has another version.
        RefusedError: another user may have written the run file, its purge command was not given again, or the device
            is in use.
    """
    path = request.path
    with RunFile(path, own=True) as run_file:
        record, log = run_file.record(), run_file.log()
        file_state = run_file.state  # a comparison with this state detects any later write
    _require_possible(path, record)
    require_resumable(path)
    _require_purge_command(request, record.info)
    names = _names(request, record)
    run_request = _request_of(request, record.info, names)
    _require_device(record.info, run_request)
    plan = plan_run(run_request)
    _require_same_plan(path, record.info, plan)
    repeated = tuple(test for test in record.tests if test.name in request.repeat)
    done = {
        test.name: test.outcomes for test in record.tests if test.status is RunStatus.COMPLETE and test not in repeated
    }
    under_way = next((test for test in record.tests if test.name not in done and test not in repeated), None)
    return ResumePlan(
        request=request,
        plan=plan,
        record=record,
        log=log,
        info=_info_of(record, plan, request.add),
        done=done,
        replayed=NOTHING if under_way is None else _replay(request, plan, record, log, done, under_way),
        under_way=under_way,
        repeated=repeated,
        file_state=file_state,
    )


def _require_possible(path: Path, record: RunRecord) -> None:
    """Refuse a run that cannot continue with any device."""
    info = record.info
    if info.imported:
        raise UsageError(f"{path} is an imported result. Another tool measured it, so tkperf cannot resume it")
    if (mark := find_snapshot(info.host)) is not None:
        raise UsageError(
            f"{path} is a snapshot, {mark.words}. Its drive is on that host, so the run cannot be resumed on this "
            "machine. Continue the run with 'tkperf resume' and the batch file"
        )
    if record.status is RunStatus.RUNNING:
        raise still_written(path)
    if not record.planned or info.started_utc is None or info.active_range_length_bytes is None:
        raise RunFileError(f"{path} contains no measurement yet. Delete the file, and start a new run")
    if record.left_out:
        raise RunFileError(
            f"{path} is damaged, so the run cannot be resumed: {record.left_out[0]}. Show the readable part with "
            f"'tkperf show {path}'"
        )
    if info.tkperf_version != __version__:
        raise RunFileError(
            f"{path} was measured by tkperf {info.tkperf_version}, but this is tkperf {__version__}. Resume the run "
            f"with tkperf {info.tkperf_version}, or start a new run"
        )
    if info.suite not in SUITES:
        raise RunFileError(
            f"tkperf {__version__} does not contain the suite of {path}, so the run cannot be resumed. Start a new run"
        )
    if info.suite == "raid":
        raise UsageError(
            f"{path}: each run of the suite raid creates its RAID set again, so such a run cannot be resumed. Start a "
            "new run"
        )
    if info.table("active_range").get("segments", 1) != 1:
        raise UsageError(
            f"{path}: the places of the segments were chosen for this run only, so the run cannot be resumed. Start a "
            "new run"
        )


def _names(request: ResumeRequest, record: RunRecord) -> tuple[str, ...]:
    """Return the names of all tests of the run, including the added tests."""
    planned = record.planned
    suite = SUITES[record.info.suite]
    for name in request.repeat:
        if name not in planned:
            raise not_known("--repeat", name, planned)
        if name in suite and suite[name].finds_demand:
            raise UsageError(
                f"--repeat {name}: the other tests used the demand that this test found, so this test "
                "cannot be repeated alone. Start a new run"
            )
    for name in request.add:
        if name not in suite:
            raise not_known("--test", name, suite)
        if name in planned:
            raise UsageError(
                f"--test {name}: the run already contains this test. Pass --repeat {name} to measure the test again"
            )
        if suite[name].finds_demand:
            raise UsageError(
                f"--test {name}: this test would find a demand, but the other tests ran without this "
                "demand. Start a new run"
            )
    if record.status is RunStatus.COMPLETE and not request.repeat and not request.add:
        raise UsageError(
            f"{request.path} has ended, and no result is missing. Measure a test again with --repeat TEST, or add a "
            "test with --test TEST"
        )
    return (*planned, *request.add)


def _require_purge_command(request: ResumeRequest, info: RunInfo) -> None:
    """Check that the purge command equals the purge command in the run file.

    The user must give the command. The file only confirms the command.
    """
    begun_with = info.options.get("purge_command")
    if request.purge_command == begun_with:
        return
    if begun_with is None:
        raise RefusedError(
            f"{request.path}: the run was begun without --purge-command. Omit this option. Nothing was touched"
        )
    raise RefusedError(
        f"{request.path}: the run was begun with --purge-command {shlex.quote(str(begun_with))}. tkperf executes no "
        "command from a run file. Pass the same option again if the command is yours. Nothing was touched"
    )


def _request_of(request: ResumeRequest, info: RunInfo, names: Sequence[str]) -> RunRequest:
    """Return the request from which the run was planned. The profile in the run file already contains the changes that
    the options of the run caused.
    """
    stored = {
        name: value
        for name, value in info.options.items()
        if name not in (*profile_option_names(), "ioengine", "purge_command", "size")
    }
    for name, value in stored.items():
        known = name in RunRequest.__struct_fields__ and name not in NO_OPTIONS
        if fault := find_type_fault(name, value) if known else "no run has this option":
            raise RunFileError(f"{request.path} is damaged, so the run cannot be resumed. Option {name[:40]}: {fault}")
    profile = read_stored_profile(info.profile)
    try:
        run_request = RunRequest(
            suite=info.suite,
            device=request.device if request.device is not None else str(info.device.get("path")),
            # The profile contains the tests from workload files as tables.
            tests=tuple(name for name in names if name in SUITES[info.suite]),
            profile=profile,
            ioengine=None if info.is_simulated else info.ioengine,
            purge_command=request.purge_command,
            **stored,  # type: ignore[arg-type]  # their types were checked
        )
    except UsageError as error:
        raise UsageError(f"{request.path}: {error}") from error
    return msgspec.structs.replace(run_request, strict=run_request.strict or request.strict)


def _require_device(info: RunInfo, request: RunRequest) -> None:
    """Check that the run was measured on this device, and with this version of the engine. The check precedes the plan,
    because the plan could fail on another device with a misleading error.
    """
    if request.device.startswith(SIMULATED):
        return
    identity = measurable(Path(request.device))
    require_same_device(info.device, inspect_device(identity).values)
    engine = find_engine(request.ioengine)
    if (version := engine.find_version()) != info.fio_version:
        raise EngineError(
            f"the run was measured with {info.fio_version}, but this host has {version}. A run uses only one version "
            f"of {engine.name}. Install the earlier version, or start a new run"
        )


def _require_same_plan(path: Path, info: RunInfo, plan: RunPlan) -> None:
    """Check that this version of tkperf makes the same plan from the stored data as the version that began the run."""
    if plan.request.device.startswith(SIMULATED):
        require_same_device(info.device, plan.dut.facts.values)
    same_range = plan.active_range.length_bytes == info.active_range_length_bytes
    same_range &= plan.active_range.offset_bytes == info.active_range_offset_bytes
    stored = read_stored_profile(info.profile)
    if (
        not same_range
        or plan.profile.as_plain_data() != stored.as_plain_data()
        or stored.tables.keys() != (info.profile.keys() - {"name", "title", "notice"})
    ):
        raise RunFileError(
            f"{path}: from the profile of the run, this version of tkperf computes a different plan "
            "than the version that began the run. Resume the run with that version, or start a new "
            "run"
        )


def _replay(
    request: ResumeRequest,
    plan: RunPlan,
    record: RunRecord,
    log: Sequence[LogEntry],
    done: Mapping[str, tuple[SectionOutcome, ...]],
    under_way: TestRecord,
) -> Replay:
    """Return the replay of the interrupted test, at the demand that an earlier search found."""
    test = find_test(record.info.suite, under_way.name, record.info.profile)
    if test is None:
        raise RunFileError(
            f"{request.path} is damaged, because its profile has no test {under_way.name[:40]!r}. The run cannot be "
            "resumed"
        )
    profile = plan.profile
    for name in record.planned:
        profile = at_found_demand(profile, done.get(name, ()))
    earlier = [resumption for resumption in record.resumptions if resumption.test_id == under_way.id]
    rows = [entry for entry in log if entry.test_id == under_way.id and not entry.set_aside]
    procedure = test.procedure(profile, plan.active_range.length_bytes)
    try:
        return replay(procedure, rows, earlier, accept=request.accept)
    except (ValueError, TypeError) as error:
        raise RunFileError(
            f"{request.path}: the log of the test {under_way.name} does not fit its procedure: {error}. The run "
            "cannot be resumed"
        ) from error


def _info_of(record: RunRecord, plan: RunPlan, added: Sequence[str]) -> RunInfo:
    """Return the facts about the run, including the numbers that its options alter in the added tests."""
    info = record.info
    if not added or not any(info.options.get(key) for key in profile_option_names()):
        return info
    if info.profile_name not in built_in_profiles():
        raise UsageError(
            f"--test: options of the run changed numbers of {info.profile_name}, which is a profile of your own, so "
            "the original numbers are not known. Measure the test in a new run"
        )
    fitted = replace(plan.fitted, unaltered=load_profile(info.profile_name))
    found = find_changes(plan.request, fitted)
    choices = tuple(dict.fromkeys((*info.choices, *found.choices)))
    alterations = tuple(dict.fromkeys((*info.alterations, *found.alterations)))
    title = fitted.profile.title
    before, after = (describe_alterations(title, each) for each in (info.alterations, alterations))
    others = tuple(notice for notice in info.notices if notice != before)
    notices = (*others, after) if after else others
    return replace(info, choices=choices, alterations=alterations, notices=notices)
