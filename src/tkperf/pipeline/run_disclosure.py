"""The disclosure of a run: all facts that are known before its first I/O, with the notices for every page of the
result.

The module also finds the changes that the user's options cause. A change is either a choice that a specification leaves
to the operator, or a departure from the specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from uuid import uuid4

import msgspec

from tkperf.device.identity import TargetKind
from tkperf.device.sysfs import find_node, takes_flushes
from tkperf.engine.registry import find_engine
from tkperf.model.batch_state import BatchPlace
from tkperf.model.errors import UsageError
from tkperf.model.phases import Continuous, Phase, Purge, Round
from tkperf.model.run_info import SIMULATED_NOTICE, RunInfo
from tkperf.model.units import format_duration
from tkperf.model.version import __version__
from tkperf.model.workload import Workload
from tkperf.pipeline.device_under_test import Equipment
from tkperf.pipeline.fitted_profile import FittedProfile, TestPhases, look_ahead
from tkperf.pipeline.host_check import HostState
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures import Test, find_shipped_namesake, fit_to_sector
from tkperf.procedures.profiles import resolve_active_range
from tkperf.procedures.profiles.profile_tables import TestTable
from tkperf.system.host import now_utc, read_host

FILE_NOTICE = "FILE TARGET: measured through a file system on a scratch file, not on a device of its own"


# For each kind of target, the text states whether tkperf can distinguish other I/O from the I/O of the test.
_OTHER_IO = {
    TargetKind.BLOCK: "watched: {}'s bytes are compared with the device's own counters",
    TargetKind.FILE: "not comparable: a file has no counters of its own",
    TargetKind.SIMULATED: "not comparable: a simulated drive has no counters",
}


NO_PURGE_NOTICE = "NOT PURGED: the device was not put in as-new state before each test (--no-purge)"
NO_FLUSHES_NOTICE = (
    "NO FLUSHES SENT: the device has no write cache, or its cache is off, so the kernel sends no flush to the device; "
    "the latency of flushes is the time of a call of the kernel alone"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTitle:
    """The title of a result: its name, the texts of the user, the command line, and facts about the batch of
    the run.
    """

    name: str
    command_line: tuple[str, ...] = ()
    description: str | None = None
    feature_matrix: str | None = None
    batch: BatchPlace | None = None


def build_run_info(request: RunRequest, title: RunTitle, equipment: Equipment, host: HostState) -> RunInfo:
    """Return the disclosure of a run that will begin now."""
    fitted = equipment.fitted
    kind = fitted.identity.kind
    changes = find_changes(request, fitted)
    named = None if kind is TargetKind.SIMULATED else find_engine(request.ioengine).find_named_program()
    notices = (
        SIMULATED_NOTICE if kind is TargetKind.SIMULATED else "",
        FILE_NOTICE if kind is TargetKind.FILE else "",
        fitted.profile.notice,
        *(describe_own(test.test) for test in fitted.tests if test.test.own),
        describe_alterations(fitted.profile.title, changes.alterations),
        NO_PURGE_NOTICE if request.no_purge else "",
        NO_FLUSHES_NOTICE if _are_flushes_omitted(fitted) else "",
    )
    return RunInfo(
        name=title.name,
        suite=request.suite,
        tkperf_version=__version__,
        fio_version=equipment.engine.version,
        ioengine=equipment.ioengine,
        command_line=title.command_line,
        started_utc=now_utc(),
        profile_name=fitted.profile.name,
        profile=fitted.profile.as_plain_data(),
        options=request.options,
        device={
            **equipment.facts.as_plain_data(),
            **host.device_facts(),
            "write_cache_in_run": equipment.write_cache,
            "other_io": _OTHER_IO[kind].format(equipment.engine.name),
            "telemetry": [asdict(drive) for drive in equipment.drives],
        },
        hosts=(
            {
                **read_host(),
                **host.facts(),
                "fio_clock": equipment.engine.io_clock,
                **({"fio_program": named} if named is not None else {}),
                **({} if title.batch is None else {"batch": msgspec.to_builtins(title.batch)}),
            },
        ),
        active_range_offset_bytes=fitted.active_range.offset_bytes,
        active_range_length_bytes=fitted.active_range.length_bytes,
        seed=equipment.seed,
        uuid=str(uuid4()),
        device_description=title.description,
        feature_matrix=title.feature_matrix,
        notices=tuple(notice for notice in notices if notice),
        choices=changes.choices,
        alterations=changes.alterations,
    )


def _are_flushes_omitted(fitted: FittedProfile) -> bool:
    """Return whether a load contains flushes but the kernel sends no flushes to the device. The write cache must
    already have its setting for the run.
    """
    if not any(load.flush_every is not None for load in fitted.workloads):
        return False
    number = fitted.identity.major_minor
    return number is not None and not takes_flushes(find_node(number))


def describe_own(test: Test) -> str:
    """Return the notice about a test that the user defined, for every page of the result."""
    return f"OWN WORKLOAD: {test.title} is a test of a workload file, not of a specification"


def describe_alterations(specification: str, alterations: tuple[str, ...]) -> str:
    """Return the notice about altered numbers, for every page of the result. It is empty if no number is altered."""
    if not alterations:
        return ""
    return f"ALTERED: not by the numbers of {specification}: {', '.join(alterations)}"


# The suite of TKperf is not a specification.
_NO_SPECIFICATION = ("tkperf-2.2",)
# The first words of changes that always count as choices. Options change the thread count and the queue depth of a test
# only if the specification does not define them.
_DEMAND = ("threads ", "queue depth ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes that the options cause, each listed once, such as ``runtime 60 s -> 1 s``.

    Attributes:
        choices: numbers that the operator may choose. These numbers are the number of threads and the queue depth if
            the specification does not define them, and every number of a profile that follows no specification.
        alterations: departures from the specification.
    """

    choices: tuple[str, ...]
    alterations: tuple[str, ...]


def find_changes(request: RunRequest, fitted: FittedProfile) -> Changes:
    """Return the changes that the options cause.

    The function compares the phases of the tests with and without the options. A number that the chosen tests do not
    use does not count as changed.
    """
    choices: list[str] = []
    alterations = list(_of_tables(fitted))
    standard, _ = fit_to_sector(
        fitted.unaltered, fitted.identity.logical_block_bytes, tuple(test.test for test in fitted.tests)
    )
    for walked in fitted.tests:
        plain = look_ahead(walked.test, standard, fitted.active_range.length_bytes)
        for text in _of_test(plain, walked):
            (choices if text.startswith(_DEMAND) else alterations).append(text)
    if fitted.profile.demand.searched and not fitted.unaltered.demand.searched:
        choices.append("threads and queue depth -> found by a search")
    alterations += _of_range(fitted)
    cache, plain_cache = (profile.write_cache.setting for profile in (fitted.profile, fitted.unaltered))
    if cache != plain_cache:
        alterations.append(f"write cache {plain_cache} -> {cache}")
    if fitted.profile.steady_state.accept_disturbed > fitted.unaltered.steady_state.accept_disturbed:
        alterations.append("disturbed rounds in steady state -> accepted")
    purges = any(isinstance(phase, Purge) for test in fitted.tests for phase in test.phases)
    if request.no_purge and purges:
        alterations.append("purge -> none")
    if fitted.unaltered.name in _NO_SPECIFICATION:
        choices, alterations = [*choices, *alterations], []
    return Changes(choices=tuple(dict.fromkeys(choices)), alterations=tuple(dict.fromkeys(alterations)))


def _of_tables(fitted: FittedProfile) -> Iterator[str]:
    """Yield the differences between a profile created in Python and the shipped profile of the same name.

    The table of a test is compared only if the test was chosen. A workload file alters no specification.
    """
    shipped = find_shipped_namesake(fitted.unaltered)
    if shipped is None:
        return
    used = {table.key for test in fitted.tests if not test.test.own for table in test.test.tables}
    for key, table in fitted.unaltered.tables.items():
        if isinstance(table, TestTable) and key not in used:
            continue
        before = shipped.tables.get(key)
        if before is None:
            yield f"{key} none -> added"
            continue
        for name in table.__struct_fields__:
            old, new = getattr(before, name), getattr(table, name)
            if name != "source" and old != new:
                yield f"{key}.{name} {_as_text(old)} -> {_as_text(new)}"


def _as_text(value: object) -> str:
    """Return a value on one line, in the notation of TOML."""
    if isinstance(value, tuple):
        return ", ".join(map(_as_text, value))
    plain = msgspec.to_builtins(value)
    if isinstance(plain, dict):
        return " ".join(f"{name} {_as_text(one)}" for name, one in plain.items())
    return f"{plain:.12g}" if isinstance(plain, int | float) and not isinstance(plain, bool) else str(plain)


def _of_range(fitted: FittedProfile) -> Iterator[str]:
    """Yield the change of the active range, if there is one. Another notation of the same range is no change."""
    before, after = fitted.unaltered.active_range, fitted.profile.active_range
    if before == after:
        return
    device = (fitted.identity.capacity_bytes, fitted.identity.logical_block_bytes)
    try:
        same = before.segments == 1 and (resolve_active_range(fitted.unaltered, *device) == fitted.active_range)
    except UsageError:  # the range of the profile does not fit the device
        same = False
    if not same:
        yield f"active range {before} -> {after}"


def _of_test(plain: TestPhases, run: TestPhases) -> Iterator[str]:
    """Yield the differences between the phases of two plans, compared in their order."""
    last: tuple[Phase, Phase] | None = None
    for before, after in zip(plain.phases, run.phases, strict=False):
        if type(before) is not type(after) or isinstance(before, Purge):
            continue
        if last is None or _is_new(last, (before, after)):
            yield from _of_phase(before, after)
        last = (before, after)


def _is_new(last: tuple[Phase, Phase], now: tuple[Phase, Phase]) -> bool:
    """Return whether these phases begin a new section. All rounds or slices of one section are the same."""
    return type(last[0]) is not type(now[0]) or last[0].section != now[0].section


def _of_phase(before: Phase, after: Phase) -> Iterator[str]:
    if isinstance(before, Round) and isinstance(after, Round):
        for old, new in zip(before.steps, after.steps, strict=False):
            yield from _of_load(old.workload, new.workload)
            if old.duration_s != new.duration_s:
                yield f"runtime {old.duration_s:g} s -> {new.duration_s:g} s"
        return
    if isinstance(before, Continuous) and isinstance(after, Continuous):
        if before.duration_s != after.duration_s:
            yield f"slices of the stream {before.duration_s:g} s -> {after.duration_s:g} s"
        longest = [format_duration(phase.longest_s) for phase in (before, after)]
        if longest[0] != longest[1]:
            yield f"longest stream {longest[0]} -> {longest[1]}"
    loads = [getattr(phase, "workload", None) for phase in (before, after)]
    if isinstance(loads[0], Workload) and isinstance(loads[1], Workload):
        yield from _of_load(loads[0], loads[1])


def _of_load(before: Workload, after: Workload) -> Iterator[str]:
    if before.jobs != after.jobs:
        yield f"threads {before.jobs} -> {after.jobs}"
    if before.io_depth != after.io_depth:
        yield f"queue depth {before.io_depth} -> {after.io_depth}"
