"""Disclosure of a run: everything that is known before its first I/O, with the notices for every page of the result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import uuid4

import msgspec

from tkperf.device.identity import TargetKind
from tkperf.device.sysfs import find_node, takes_flushes
from tkperf.engine.registry import find_engine
from tkperf.model.batch_state import BatchPlace
from tkperf.model.run_info import SIMULATED_NOTICE, RunInfo
from tkperf.model.version import __version__
from tkperf.pipeline.alterations import find_changes
from tkperf.pipeline.device_under_test import Equipment
from tkperf.pipeline.fitted_profile import FittedProfile
from tkperf.pipeline.host_check import HostState
from tkperf.pipeline.run_request import RunRequest
from tkperf.procedures import Test
from tkperf.system.host import now_utc, read_host

FILE_NOTICE = "FILE TARGET: measured through a file system on a scratch file, not on a device of its own"


# For each kind of target: whether tkperf can distinguish other I/O from the I/O of the test.
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
    """Title of a result: its name, the texts of the user, the command line, and facts about the batch of the run."""

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
    """Return whether a load flushes a device to which the kernel sends no flushes, now that its cache is set."""
    if not any(load.flush_every is not None for load in fitted.workloads):
        return False
    number = fitted.identity.major_minor
    return number is not None and not takes_flushes(find_node(number))


def describe_own(test: Test) -> str:
    """Return the notice about a test that the user defined, for every page of the result."""
    return f"OWN WORKLOAD: {test.title} is a test of a workload file, not of a specification"


def describe_alterations(specification: str, alterations: tuple[str, ...]) -> str:
    """Return the notice about altered numbers, for every page; empty if no number is altered."""
    if not alterations:
        return ""
    return f"ALTERED: not by the numbers of {specification}: {', '.join(alterations)}"
