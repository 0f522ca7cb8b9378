"""Limits on tkperf: on its control groups, version 1 and 2, and on its process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.device.sysfs import number, text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Drive, Site
from tkperf.model.units import format_capacity
from tkperf.system.control_groups import ControlGroups, find_control_groups

# fio's threads, tkperf's own and their helpers, with room to spare.
NEEDED_PIDS = 200
# fio keeps job structures and histograms in shared memory, tkperf its samples: some hundred MB.
NEEDED_MEMORY_BYTES = 2_000_000_000
NEEDED_FILES = 1024
# Version 1 writes "none" as the largest number of whole pages.
_NO_LIMIT_BYTES = 1 << 60
_CPU = "a group that has used up its share of CPU time stands still until the next period"
_IO = "what is measured is then the limit, not the drive"
_MEMORY = "where memory runs out, tkperf or fio is ended or stands still"
_TASKS = "fio could not start its threads"


def audit_limits(site: Site, drives: Sequence[Drive]) -> Iterator[Finding]:
    groups = find_control_groups(site.root)
    if groups is None:
        why = "limits on CPU, memory, I/O or tasks would be measured instead of the drive"
        yield not_known("limits of control groups", "the kernel shows none here", why)
    else:
        yield _cpu_limit(groups)
        yield _memory_limit(groups)
        yield _task_limit(groups)
        for drive in drives:
            yield _io_limit(groups, drive)
    yield _process_limits(site)


def _cpu_limit(groups: ControlGroups) -> Finding:
    limits = []
    for folder in groups.of("cpu"):
        quota, _, period = (text(folder / "cpu.max") or "max").partition(" ")
        if not (folder / "cpu.max").exists():
            quota = text(folder / "cpu.cfs_quota_us") or "-1"
            period = text(folder / "cpu.cfs_period_us") or "100000"
        if quota.isdecimal() and period.isdecimal() and int(period):
            limits.append((int(quota) / int(period), folder))
    if not limits:
        return Finding(subject="limit of CPU time", level=Level.OK, found="none", why=_CPU)
    cpus, folder = min(limits)
    is_v2 = (folder / "cpu.max").exists()
    return Finding(
        subject="limit of CPU time",
        level=Level.DISTURBS,
        found=f"{cpus:g} CPUs (group {folder.name})",
        why=_CPU,
        command=f"echo {'max' if is_v2 else -1} | sudo tee "
        f"{folder / ('cpu.max' if is_v2 else 'cpu.cfs_quota_us')}",
    )


def _memory_limit(groups: ControlGroups) -> Finding:
    limits = []
    for folder in groups.of("memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            limit = number(folder / name)
            if limit is not None and 0 <= limit < _NO_LIMIT_BYTES:
                limits.append((limit, folder / name))
    if not limits:
        return Finding(subject="limit of memory", level=Level.OK, found="none", why=_MEMORY)
    limit, file = min(limits)
    few = limit < NEEDED_MEMORY_BYTES
    raised = "-1" if file.name.endswith("in_bytes") else "max"
    return Finding(
        subject="limit of memory",
        level=Level.ADVICE if few else Level.NOTE,
        found=f"{format_capacity(limit)} ({file.name} of group {file.parent.name})",
        why=_MEMORY,
        command=f"echo {raised} | sudo tee {file}" if few else None,
    )


def _task_limit(groups: ControlGroups) -> Finding:
    rooms = []
    for folder in groups.of("pids"):
        most, now = number(folder / "pids.max"), number(folder / "pids.current")
        if most is not None:
            rooms.append((most - (now or 0), most, folder))
    if not rooms:
        return Finding(subject="limit of tasks", level=Level.OK, found="none", why=_TASKS)
    room, most, folder = min(rooms)
    few = room < NEEDED_PIDS
    return Finding(
        subject="limit of tasks",
        level=Level.ADVICE if few else Level.OK,
        found=f"{most}, {room} of them free (group {folder.name})",
        why=_TASKS,
        command=f"echo max | sudo tee {folder / 'pids.max'}" if few else None,
    )


def _io_limit(groups: ControlGroups, drive: Drive) -> Finding:
    subject, major_minor = "limit of I/O", drive.major_minor
    if major_minor is None:
        return not_known(subject, "the kernel does not tell the drive's number", _IO)
    for folder in (*groups.of("io"), *groups.of("blkio")):
        for row in (text(folder / "io.max") or "").splitlines():
            numbers, _, limits = row.partition(" ")
            if numbers == major_minor and any(not word.endswith("=max") for word in limits.split()):
                nothing = "rbps=max wbps=max riops=max wiops=max"
                return Finding(
                    subject=subject,
                    level=Level.DISTURBS,
                    found=f"{limits} (group {folder.name})",
                    why=_IO,
                    command=f'echo "{major_minor} {nothing}" | sudo tee {folder / "io.max"}',
                    device=drive.name,
                )
        for file in sorted(folder.glob("blkio.throttle.*_device")):
            for row in (text(file) or "").splitlines():
                numbers, _, limit = row.partition(" ")
                if numbers == major_minor:
                    return Finding(
                        subject=subject,
                        level=Level.DISTURBS,
                        found=f"{file.name} {limit} (group {folder.name})",
                        why=_IO,
                        command=f'echo "{major_minor} 0" | sudo tee {file}',
                        device=drive.name,
                    )
    return Finding(subject=subject, level=Level.OK, found="none", why=_IO, device=drive.name)


def _process_limits(site: Site) -> Finding:
    """Check the limits that ``ulimit`` shows: the soft ones, since they are the ones that fail."""
    subject, why = "limits of the process", "fio could not open files, lock memory or start threads"
    rows = (text(site.proc / "self/limits") or "").splitlines()
    limits = {}
    for name in ("Max open files", "Max locked memory", "Max processes"):
        for row in rows:
            if row.startswith(name):
                limits[name] = row[len(name) :].split()[0]
    if not limits:
        return not_known(subject, "/proc/self/limits cannot be read", why)
    files = limits.get("Max open files", "unlimited")
    tasks = limits.get("Max processes", "unlimited")
    few_files = files.isdecimal() and int(files) < NEEDED_FILES
    few_tasks = tasks.isdecimal() and int(tasks) < NEEDED_PIDS and not site.is_root
    locked = limits.get("Max locked memory", "not known")
    in_bytes = f"{locked} bytes" if locked.isdecimal() else locked
    raise_files, raise_tasks = f"ulimit -n {NEEDED_FILES}", f"ulimit -u {10 * NEEDED_PIDS}"
    commands = [raise_files] * few_files + [raise_tasks] * few_tasks
    return Finding(
        subject=subject,
        level=Level.ADVICE if commands else Level.OK,
        found=f"open files {files}, locked memory {in_bytes}, processes {tasks}",
        why=why,
        command="; ".join(commands) or None,
    )
