"""The host of a run. tkperf audits the host before the run. If the user requests it, tkperf refuses a host that is not
suitable, or tunes the host during the run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.sysfs import major_minor_of
from tkperf.engine import ChosenEngine, RequiredIo
from tkperf.engine.registry import find_engine
from tkperf.host.audit import Audit, AuditedDrive, AuditLevel, AuditResult, audit_host
from tkperf.host.audit.audited_host import DAY_S, AuditedHost, find_drive
from tkperf.host.settings import find_settings
from tkperf.host.tuning import find_left_behind, tuned
from tkperf.model.errors import DeviceError, EngineError, RefusedError
from tkperf.model.record import RunNote
from tkperf.model.workload import Workload
from tkperf.pipeline.fitted_profile import find_default_workloads, find_heaviest, find_required_io

# The codes of warnings about a run.
HOST_DISTURBS, TUNING_LEFT_BEHIND = "host-disturbs", "tuning-left-behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """The state of the host at the beginning of a run. ``changes`` contains the settings that were changed for the run,
    in the form ``before -> after``.
    """

    audit: Audit
    changes: tuple[str, ...] = ()

    def facts(self) -> dict[str, object]:
        """Return the facts for the run file. The run file stores them together with other facts about the host."""
        facts: dict[str, object] = {"audit": self.audit.as_plain_data()} if self.audit.findings else {}
        return facts | ({"tuned": list(self.changes)} if self.changes else {})

    def device_facts(self) -> dict[str, object]:
        """Return the fact about the device that tuning changed: the I/O scheduler."""
        if not any("/queue/scheduler: " in change for change in self.changes):
            return {}
        subject = "I/O scheduler"
        found = {one.found for one in self.audit.findings if one.subject == subject}
        return {"scheduler": ", ".join(sorted(found))}


def describe_audited_host(
    *,
    lasts_s: float = DAY_S,
    outstanding: int | None = None,
    ioengine: ChosenEngine | None = None,
    rounding: str | None = None,
) -> AuditedHost:
    """Return a description of this host for the audit.

    Args:
        ioengine: the I/O engine that a run would use, if it was tried.
        rounding: see ``AuditedHost``.
    """
    return AuditedHost(
        cpus=frozenset(os.sched_getaffinity(0)),
        lasts_s=lasts_s,
        outstanding=outstanding,
        is_root=os.geteuid() == 0,
        engine=find_engine().name,
        ioengines=find_engine().ioengines,
        ioengine=None if ioengine is None else ioengine.name,
        instead_of=None if ioengine is None else ioengine.instead_of,
        rounding=rounding,
    )


def try_ioengines(identity: DeviceIdentity | None, workloads: Sequence[Workload]) -> ChosenEngine | None:
    """Return the I/O engine that a run with these workloads would use. A run calls the same function.

    The engine reads a few blocks of the device. If there is no device, or if the device cannot be read, the engine
    reads one of its own files. None means that no interface could be tried.
    """
    io = find_required_io(workloads)
    if identity is not None and identity.kind is not TargetKind.SIMULATED:
        block_bytes = identity.logical_block_bytes
        with suppress(EngineError):
            return find_engine().choose_ioengine(identity.path, block_bytes, None, io)
    return _try_ioengines_without_device(io)


@lru_cache(maxsize=8)
def _try_ioengines_without_device(io: RequiredIo) -> ChosenEngine | None:
    """Try each load only once and store the result, because a batch calls this function for every drive."""
    path = find_engine().find_readable_file()
    if path is None:
        return None
    try:
        return find_engine().choose_ioengine(path, 512, None, io, direct=False)
    except EngineError:
        return None


def _find_rounding() -> str | None:
    with suppress(EngineError):
        return find_engine().find_rounding()
    return None


def find_drives(identities: Sequence[DeviceIdentity]) -> tuple[AuditedDrive, ...]:
    """Return the drives of these devices, or the drives below these files, if the kernel reports them."""
    drives = {}
    for identity in identities:
        is_file = identity.kind is TargetKind.FILE
        number = _number_below(identity) if is_file else identity.major_minor
        drive = find_drive(identity.path, number, Path("/sys"), is_file=is_file)
        if drive is not None:
            drives[drive.disk] = drive
    return tuple(drives.values())


def _number_below(identity: DeviceIdentity) -> str | None:
    """Return the device number of the file system that contains a file, or that will contain it."""
    path = Path(identity.path)
    try:
        device = path.stat().st_dev if path.exists() else path.parent.stat().st_dev
    except OSError:
        return None
    return major_minor_of(device)


def audit_for(
    identities: Sequence[DeviceIdentity],
    *,
    lasts_s: float,
    workloads: Sequence[Workload] | None = None,
    read_device: bool = False,
) -> Audit:
    """Return the audit of this host for a run on these devices. The result is empty if all devices are simulated.

    Args:
        workloads: the workloads of the run. None means that the function tries the workloads of a run without options.
        read_device: whether to try the interfaces on the first device instead of a file of the host.
    """
    if identities and all(one.kind is TargetKind.SIMULATED for one in identities):
        return Audit()
    ioengine = try_ioengines(
        identities[0] if identities and read_device else None,
        find_default_workloads() if workloads is None else workloads,
    )
    audited = describe_audited_host(
        lasts_s=lasts_s,
        outstanding=None if workloads is None else find_heaviest(workloads).total_outstanding_ios,
        ioengine=ioengine,
        # If no run follows, the queue depths are not known. A version that rounds queue depths up is then always
        # reported.
        rounding=None if workloads else _find_rounding(),
    )
    return audit_host(audited, find_drives(identities))


def find_disturbing(audit: Audit, *, tune: bool) -> tuple[AuditResult, ...]:
    """Return the findings that disturb a run. With ``tune``, findings that the tuning corrects are omitted."""
    own = {"CPU governor", "energy preference", "I/O scheduler"} if tune else set()
    return tuple(one for one in audit.at_levels(AuditLevel.DISTURBS) if one.subject not in own)


def refuse_unfit(audit: Audit, *, tune: bool) -> None:
    """Raise RefusedError if a finding of the audit would disturb a run. The message names the remedy."""
    disturbing = find_disturbing(audit, tune=tune)
    if disturbing:
        raise RefusedError(
            "with --strict, a run does not begin while something on this host would disturb it: "
            f"{'; '.join(map(str, disturbing))}"
        )


def refuse_untunable() -> None:
    """Raise DeviceError if tkperf cannot change settings of the host. The function is called before the user is
    asked.
    """
    if os.geteuid() != 0:
        raise DeviceError(
            "--tune changes settings of the CPUs and of the device's queue, which requires root. Run tkperf as root"
        )


def warn_of_host(audit: Audit, *, tune: bool) -> Iterator[RunNote]:
    """Yield the warnings about the host for a reader of the result."""
    for finding in find_disturbing(audit, tune=tune):
        # The warning contains no advice, because a reader of the result can no longer follow it. ``doctor`` shows the
        # advice.
        text = f"{finding.title}: {finding.found}; {finding.why}"
        yield RunNote(code=HOST_DISTURBS, text=text)
    left = find_left_behind() if audit.findings else 0
    if left:
        text = f"a run that was killed left {left} settings of this host changed: tkperf tune --restore puts them back"
        yield RunNote(code=TUNING_LEFT_BEHIND, text=text)


@contextmanager
def prepared_host(
    audit: Audit, identities: Sequence[DeviceIdentity], *, tune: bool, lasts_s: float, workloads: Sequence[Workload]
) -> Iterator[HostState]:
    """Tune the host if the run requests it, and yield the state of the host. When the ``with`` block ends, restore the
    settings, even after an error.
    """
    if not tune or not audit.findings:
        yield HostState(audit=audit)
        return
    audited = describe_audited_host(lasts_s=lasts_s)
    with tuned(find_settings(audited, find_drives(identities))) as changes:
        tuned_audit = audit_for(identities, lasts_s=lasts_s, workloads=workloads)
        yield HostState(audit=tuned_audit, changes=changes)


def describe_host(audit: Audit, device: str) -> str | None:
    """Return one line about the host that the user sees before the question. None means that no finding is
    important.
    """
    counts = [
        f"{len(findings)} thing{'s' * (len(findings) > 1)} {verb} disturb this run "
        f"({', '.join(dict.fromkeys(one.subject for one in findings))})"
        for level, verb in ((AuditLevel.DISTURBS, "would"), (AuditLevel.ADVICE, "may"))
        if (findings := audit.at_levels(level))
    ]
    if not counts:
        return None
    return f"{', '.join(counts)}; 'tkperf tune {device}' shows more"
