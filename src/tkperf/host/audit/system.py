"""The audit of the system: a virtual machine, io_uring, services, and the limits of tkperf's control groups and
process.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tkperf.device.sysfs import find_selected, number, text
from tkperf.host.audit.audited_host import AuditedDrive, AuditedHost, AuditLevel, AuditResult, Topic
from tkperf.model.units import format_capacity
from tkperf.system.host import ControlGroups, find_control_groups

# If the hypervisor has taken more than this share of the time since boot, in percent, the value is not only an effect
# of rounding.
STOLEN_PCT = 0.1
# The number of processes and threads of fio, of tkperf and of their helpers, with a margin.
NEEDED_PIDS = 200
# fio stores job structures and histograms in shared memory, and tkperf stores samples. Together, they need some hundred
# MB.
NEEDED_MEMORY_BYTES = 2_000_000_000
NEEDED_FILES = 1024
# If there is no limit, control groups of version 1 report the largest multiple of the page size, which is greater than
# this number.
_NO_LIMIT_BYTES = 1 << 60
_NO_IO_LIMIT = "rbps=max wbps=max riops=max wiops=max"
_VIRTUAL = Topic(
    "virtual machine",
    "a hypervisor may take CPUs away at any time, and a virtual drive is measured as the host shows it",
)
_URING = "io_uring"
# Remedies for each error of io_uring_setup, if the kernel's switch for io_uring is not the reason.
_URING_REMEDIES = {
    errno.EPERM: "let the seccomp profile of the container or service allow io_uring_setup and io_uring_enter",
    errno.ENOSYS: "use a kernel with io_uring; in a container, let its seccomp profile allow io_uring_setup and "
    "io_uring_enter",
    errno.ENOMEM: "raise the limit of locked memory (ulimit -l unlimited) or of the control group",
}
_LOCKDOWN = Topic("kernel lockdown", "a kernel that is locked down keeps tools from some of what they would read")
_TUNERS = Topic(
    "services that change settings", "they may set the governor or the queue of a drive again while it is measured"
)
# Services that change settings. The keys are the names of their programs, as the kernel reports these names.
_TUNING_SERVICES = {
    "tuned": "tuned",
    "power-profiles-": "power-profiles-daemon",
    "auto-cpufreq": "auto-cpufreq",
    "thermald": "thermald",
    "cpufreqd": "cpufreqd",
    "laptop_mode": "laptop-mode",
}
_SMARTD = Topic(
    "smartd", "smartd asks drives for SMART data, by default every 30 minutes: a SATA drive ends what is queued first"
)
_UDISKSD = Topic("udisksd", "udisksd asks SATA drives for SMART data every 10 minutes: they first complete their queue")
_GROUPS = Topic(
    "limits of control groups", "limits on CPU, memory, I/O or tasks would be measured instead of the drive"
)
_CPU = Topic("limit of CPU time", "a group that has used up its share of CPU time pauses until the next period")
_IO = Topic("limit of I/O", "the result then shows the limit, not the drive")


def audit_system(audited: AuditedHost, drives: Sequence[AuditedDrive]) -> Iterator[AuditResult]:
    yield _virtual_machine(audited)
    if _URING in audited.ioengines:
        yield _io_uring(audited)
    yield _lockdown(audited)
    yield _tuners(audited)
    yield from _services_that_ask(audited, drives)


def _virtual_machine(audited: AuditedHost) -> AuditResult:
    rows = (text(audited.proc / "cpuinfo") or "").splitlines()
    flags = next((row for row in rows if row.startswith(("flags", "Features"))), None)
    kind = text(audited.sys / "hypervisor/type")
    if flags is None and kind is None:
        return _VIRTUAL.not_known("/proc/cpuinfo does not show it")
    if kind is None and "hypervisor" not in (flags or "").split():
        return _VIRTUAL.ok("no")
    dmi = audited.sys / "class/dmi/id"
    names = (kind, text(dmi / "sys_vendor"), text(dmi / "product_name"))
    maker = " ".join(name for name in names if name)
    stolen_pct = _stolen_pct(audited)
    stolen = "steal not known" if stolen_pct is None else f"{stolen_pct:.2g} % of CPU time stolen"
    takes = stolen_pct is not None and stolen_pct >= STOLEN_PCT
    return _VIRTUAL.find(
        AuditLevel.ADVICE if takes else AuditLevel.NOTE,
        f"yes{f' ({maker})' if maker else ''}; {stolen} since boot",
        otherwise="give it CPUs of its own (pinned vCPUs), or measure on the host",
    )


def _stolen_pct(audited: AuditedHost) -> float | None:
    """Return the share of CPU time since boot, in percent, that the hypervisor used for other machines (proc(5), the
    eighth number).
    """
    words = (text(audited.proc / "stat") or "").partition("\n")[0].split()[1:]
    if len(words) < 8 or not all(word.isdecimal() for word in words):
        return None
    times = [int(word) for word in words[:8]]  # the user time already includes the time of guests
    return 100 * times[7] / sum(times) if sum(times) else None


def _io_uring(audited: AuditedHost) -> AuditResult:
    """Return the finding on whether the engine can use io_uring.

    A trial answers this question, because no file shows all limits and seccomp filters.
    """
    other = next((name for name in audited.ioengines if name != _URING), "nothing")
    topic = Topic(_URING, f"without io_uring the I/O is issued by {other}, which costs more CPU time an I/O")
    file = audited.proc / "sys/kernel/io_uring_disabled"
    setting = number(file)
    meaning = {None: "", 0: "open to all", 1: "open to privileged processes", 2: "switched off"}
    switch = f"{meaning.get(setting, 'not known to tkperf')} (io_uring_disabled {setting})"
    if setting is None:
        switch = "its switch cannot be read" if file.exists() else "the kernel has no switch for it"
    is_off = setting == 2 or (setting == 1 and not audited.is_root)
    if audited.ioengine == _URING:
        limit = ""
        if audited.rounding is not None:
            limit = (
                f"; {audited.rounding} rounds a queue depth such as 6 up to a power of two, so runs with "
                f"such a depth use {other}"
            )
        return topic.ok(f"{audited.engine} can use it; {switch}{limit}")
    command = "sudo sysctl kernel.io_uring_disabled=0" if is_off else None
    if audited.ioengine is None:
        if is_off:
            return topic.find(AuditLevel.ADVICE, switch, command=command)
        return topic.not_known(f"{audited.engine} could not try it; {switch}")
    reason = (audited.instead_of or "").removeprefix(f"{_URING}: ")
    others = (text for number, text in _URING_REMEDIES.items() if reason.startswith(os.strerror(number)))
    return topic.find(
        AuditLevel.ADVICE,
        f"io_uring cannot be used, so {audited.ioengine} will be used: {switch if is_off else reason}",
        command=command,
        otherwise=None if is_off else next(others, None),
    )


def _lockdown(audited: AuditedHost) -> AuditResult:
    mode = find_selected(text(audited.sys / "kernel/security/lockdown"))
    if not mode:
        return _LOCKDOWN.not_known("securityfs does not show it")
    return _LOCKDOWN.note(mode)


def _tuners(audited: AuditedHost) -> AuditResult:
    if audited.processes is None:
        return _TUNERS.not_known("/proc shows no processes")
    running = [service for name, service in _TUNING_SERVICES.items() if name in audited.processes]
    return _TUNERS.advise(
        bool(running), ", ".join(running) or "none runs", command=f"sudo systemctl stop {' '.join(running)}"
    )


def _services_that_ask(audited: AuditedHost, drives: Sequence[AuditedDrive]) -> Iterator[AuditResult]:
    """Yield findings on services that query the health of drives during a run. tkperf does not stop such services."""
    running = audited.processes or frozenset()
    if "smartd" in running and drives:
        command = "sudo systemctl stop smartmontools"
        yield _SMARTD.find(AuditLevel.ADVICE, "runs", command=command)
    if "udisksd" in running and not all(drive.is_nvme for drive in drives):
        yield replace(_UDISKSD.note("runs"), command="sudo systemctl stop udisks2")


def audit_limits(audited: AuditedHost, drives: Sequence[AuditedDrive]) -> Iterator[AuditResult]:
    """Yield findings on the limits of control groups, version 1 and 2, and on the limits of the process."""
    groups = find_control_groups(audited.root)
    if groups is None:
        yield _GROUPS.not_known("the kernel shows none here")
    else:
        yield _cpu_limit(groups)
        yield _memory_limit(groups, audited.engine)
        yield _task_limit(groups, audited.engine)
        for drive in drives:
            yield replace(_io_limit(groups, drive), device=drive.name)
    yield _process_limits(audited)


def _cpu_limit(groups: ControlGroups) -> AuditResult:
    limits = []
    for folder in groups.folders_of("cpu"):
        quota, _, period = (text(folder / "cpu.max") or "max").partition(" ")
        if not (folder / "cpu.max").exists():
            quota = text(folder / "cpu.cfs_quota_us") or "-1"
            period = text(folder / "cpu.cfs_period_us") or "100000"
        if quota.isdecimal() and period.isdecimal() and int(period):
            limits.append((int(quota) / int(period), folder))
    if not limits:
        return _CPU.ok("none")
    cpus, folder = min(limits)
    none, name = ("max", "cpu.max") if (folder / "cpu.max").exists() else (-1, "cpu.cfs_quota_us")
    return _CPU.find(
        AuditLevel.DISTURBS, f"{cpus:g} CPUs (group {folder.name})", command=f"echo {none} | sudo tee {folder / name}"
    )


def _memory_limit(groups: ControlGroups, engine: str) -> AuditResult:
    topic = Topic("limit of memory", f"where memory runs out, the kernel ends tkperf or {engine}, or pauses them")
    limits = []
    for folder in groups.folders_of("memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            limit = number(folder / name)
            if limit is not None and 0 <= limit < _NO_LIMIT_BYTES:
                limits.append((limit, folder / name))
    if not limits:
        return topic.ok("none")
    limit, file = min(limits)
    raised = "-1" if file.name.endswith("in_bytes") else "max"
    return topic.find(
        AuditLevel.ADVICE if limit < NEEDED_MEMORY_BYTES else AuditLevel.NOTE,
        f"{format_capacity(limit)} ({file.name} of group {file.parent.name})",
        command=f"echo {raised} | sudo tee {file}",
    )


def _task_limit(groups: ControlGroups, engine: str) -> AuditResult:
    topic = Topic("limit of tasks", f"{engine} could not start its threads")
    rooms = []
    for folder in groups.folders_of("pids"):
        most, now = number(folder / "pids.max"), number(folder / "pids.current")
        if most is not None:
            rooms.append((most - (now or 0), most, folder))
    if not rooms:
        return topic.ok("none")
    room, most, folder = min(rooms)
    return topic.advise(
        room < NEEDED_PIDS,
        f"{most}, {room} of them free (group {folder.name})",
        command=f"echo max | sudo tee {folder / 'pids.max'}",
    )


def _io_limit(groups: ControlGroups, drive: AuditedDrive) -> AuditResult:
    major_minor = drive.major_minor
    if major_minor is None:
        return _IO.not_known("the kernel does not show the drive's number")
    for folder in (*groups.folders_of("io"), *groups.folders_of("blkio")):
        for file in (folder / "io.max", *sorted(folder.glob("blkio.throttle.*_device"))):
            for row in (text(file) or "").splitlines():
                numbers, _, limits = row.partition(" ")
                is_v2 = file.name == "io.max"
                if numbers != major_minor or (is_v2 and all(word.endswith("=max") for word in limits.split())):
                    continue
                return _IO.find(
                    AuditLevel.DISTURBS,
                    f"{limits if is_v2 else f'{file.name} {limits}'} (group {folder.name})",
                    command=f'echo "{major_minor} {_NO_IO_LIMIT if is_v2 else 0}" | sudo tee {file}',
                )
    return _IO.ok("none")


def _process_limits(audited: AuditedHost) -> AuditResult:
    """Return the finding on the limits that ``ulimit`` shows. The soft limits are checked, because they are the limits
    that apply.
    """
    topic = Topic("limits of the process", f"{audited.engine} could not open files, lock memory or start threads")
    rows = (text(audited.proc / "self/limits") or "").splitlines()
    limits = {
        name: row[len(name) :].split()[0]
        for name in ("Max open files", "Max locked memory", "Max processes")
        for row in rows
        if row.startswith(name)
    }
    if not limits:
        return topic.not_known("/proc/self/limits cannot be read")
    files = limits.get("Max open files", "unlimited")
    tasks = limits.get("Max processes", "unlimited")
    locked = limits.get("Max locked memory", "not known")
    commands = []
    if files.isdecimal() and int(files) < NEEDED_FILES:
        commands.append(f"ulimit -n {NEEDED_FILES}")
    if tasks.isdecimal() and int(tasks) < NEEDED_PIDS and not audited.is_root:
        commands.append(f"ulimit -u {10 * NEEDED_PIDS}")
    return topic.advise(
        bool(commands),
        f"open files {files}, locked memory {locked}{' bytes' * locked.isdecimal()}, processes {tasks}",
        command="; ".join(commands),
    )
