"""The activity of the host: its current load, work on drives that is already running, and work that will start soon."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from tkperf.device.sysfs import find_disk, text
from tkperf.host.audit.audited_host import ADVICE_LIMIT_S, AuditedHost, AuditLevel, AuditResult, Topic
from tkperf.model.errors import EngineError
from tkperf.model.units import format_capacity, format_duration
from tkperf.system.host import read_memory

_CPU = Topic("CPU pressure", "a task that waits for a CPU issues no I/O meanwhile", False)
_MEMORY = Topic("memory pressure", "a task that waits for memory pauses, also during a step", False)
_IO = Topic("I/O pressure", "other I/O keeps drives busy, and CPUs and links with them", False)
# For each resource, the values are its topic and two limits. The limits are in percent, and apply to the share of the
# last ten seconds in which a task had to wait. If the share reaches the first limit, the finding is advice. If the
# share reaches the second limit, the finding is "would disturb". An idle desktop stays below 1 %.
_PRESSURES = {"cpu": (_CPU, 2.0, 10.0), "memory": (_MEMORY, 0.1, 1.0), "io": (_IO, 5.0, 20.0)}
_SWAP = Topic("swap", "a program whose memory was swapped out pauses until a drive has read it back", is_setting=False)
# If less than this share of the memory is free, the kernel begins to reclaim memory and to swap.
_LITTLE_MEMORY = 0.05
_RUNS = "it reads or writes drives for hours, and takes CPUs, links and controllers"
_MD_WORK = ("check", "repair", "resync", "recover", "reshape")
_PROGRAMS = Topic("work on drives under way", _RUNS, is_setting=False)
# Programs that work on whole drives or file systems, by the program names that the kernel reports.
_PROGRAM_NAMES = (
    "fstrim",
    "e2scrub",
    "e2scrub_all",
    "xfs_scrub",
    "checkarray",
    "updatedb.mlocat",
    "updatedb.plocat",
    "updatedb",
    "badblocks",
    "fio",
    "dd",
)
_DUE = "scrubs, checks, trims and indexing read or write drives, and take CPUs, links and controllers"
_TIMERS = Topic("timers due within the run", _DUE, is_setting=False)
_CRON = Topic("cron jobs that work on drives", _DUE, is_setting=False)
# The pattern for work on drives in the name of a timer, a command or a script.
_HEAVY = re.compile(
    r"fstrim|mdcheck|mdadm-?scrub|mdmonitor-oneshot|raid-check|checkarray|e2scrub|xfs_scrub|scrub|"
    r"btrfs-(balance|defrag|trim)|updatedb|mlocate|plocate|apt-daily|unattended-upgrade|dnf-makecache|"
    r"dnf-automatic|snapper|restic|borg|backup|rsnapshot|smartctl|fwupd"
)
# If the name of a script does not show its purpose, only the commands in the script are examined.
_HEAVY_COMMAND = re.compile(r"\bfstrim\b|checkarray|raid-check|mdcheck|e2scrub|\bscrub\b|updatedb|smartctl|sync_action")
_LONGEST_CRON_BYTES = 1 << 20
# The folders with cron's tables of the system and of users, and the folders with cron's scripts. The value is the
# interval at which the scripts of a folder run. The value is empty for tables, which contain their own times.
_CRON_FOLDERS = {
    "etc/cron.d": "",
    "var/spool/cron/crontabs": "",
    "var/spool/cron": "",
    **{f"etc/cron.{period}": period for period in ("hourly", "daily", "weekly", "monthly")},
}
_CRON_SERVICES = ("cron", "crond", "cronie", "fcron", "anacron")


def audit_load(audited: AuditedHost) -> Iterator[AuditResult]:
    """Yield findings on the pressure on CPUs, memory and I/O, and on memory that is swapped out."""
    for resource, limits in _PRESSURES.items():
        yield _pressure(audited, resource, *limits)
    yield _swap(audited)


def _pressure(audited: AuditedHost, resource: str, topic: Topic, advice_pct: float, disturbs_pct: float) -> AuditResult:
    words = (text(audited.proc / "pressure" / resource) or "").split()
    shares = [word.partition("=")[2] for word in words if word.startswith("avg10=")]
    try:
        share_pct = float(shares[0])
    except (IndexError, ValueError):
        if resource == "cpu":
            return _load_average(audited, topic)
        return topic.not_known("the kernel does not measure it (the boot option psi=1 turns it on)")
    level = AuditLevel.OK
    if share_pct >= advice_pct:
        level = AuditLevel.DISTURBS if share_pct >= disturbs_pct else AuditLevel.ADVICE
    return topic.find(
        level,
        f"tasks waited for {share_pct:g} % of the last 10 s",
        otherwise="find the program with top or pidstat, end it, and wait half a minute",
    )


def _load_average(audited: AuditedHost, topic: Topic) -> AuditResult:
    """Return the finding on the load average, for a kernel that measures no pressure. The load average is less
    informative than pressure.
    """
    words = (text(audited.proc / "loadavg") or "").split()
    try:
        load = float(words[0])
    except (IndexError, ValueError):
        return topic.not_known()
    busy = load / max(len(audited.cpus), 1)
    return topic.find(
        AuditLevel.ADVICE if busy >= 0.5 else AuditLevel.NOTE,
        f"load average {load:g} on {len(audited.cpus)} CPUs (the kernel measures no pressure)",
        otherwise="find the program with top or pidstat, and end or move it",
    )


def _swap(audited: AuditedHost) -> AuditResult:
    facts = read_memory(audited.proc)
    total, free = facts.get("SwapTotal"), facts.get("SwapFree")
    memory, available = facts.get("MemTotal"), facts.get("MemAvailable")
    if total is None or free is None or memory is None or available is None:
        return _SWAP.not_known("/proc/meminfo does not show it")
    used = total - free
    short = available < _LITTLE_MEMORY * memory
    spaces = [row.split()[0] for row in (text(audited.proc / "swaps") or "").splitlines()[1:] if row]
    found = "none"
    if total:
        found = f"{format_capacity(used)} of {format_capacity(total)} in use on {', '.join(spaces)}"
    if short:
        found += f"; only {format_capacity(available)} of memory available"
    matters = short or (used > 0 and any("zram" not in space for space in spaces))
    fits = used < available - _LITTLE_MEMORY * memory
    return _SWAP.find(
        AuditLevel.ADVICE if matters else AuditLevel.NOTE if used else AuditLevel.OK,
        found,
        command="sudo swapoff --all" if used and fits else None,
        otherwise="end programs that take memory",
    )


def audit_work(audited: AuditedHost, neighbours: Collection[str]) -> Iterator[AuditResult]:
    """Yield findings on work on drives that is running now. ``neighbours`` are the other drives on the tested drive's
    link.
    """
    yield from _audit_md(audited, neighbours)
    yield from _audit_zfs(audited)
    yield _audit_programs(audited)


def _audit_md(audited: AuditedHost, neighbours: Collection[str]) -> Iterator[AuditResult]:
    for folder in sorted((audited.sys / "block").glob("md*/md")):
        action = text(folder / "sync_action")
        if action not in _MD_WORK:
            continue
        name = folder.parent.name
        members = {find_disk(member).name for member in (folder.parent / "slaves").glob("*")}
        done = text(folder / "sync_completed") or "an unknown number of"
        stops = action in ("check", "repair")
        yield Topic(f"{action} of {name}", _RUNS, is_setting=False).find(
            AuditLevel.DISTURBS if members & set(neighbours) else AuditLevel.ADVICE,
            f"runs on {', '.join(sorted(members)) or 'drives not known'} ({done} sectors done)",
            command=f"echo idle | sudo tee /sys/block/{name}/md/sync_action" if stops else None,
            otherwise=None if stops else "wait until it has ended: cat /proc/mdstat",
        )


def _audit_zfs(audited: AuditedHost) -> Iterator[AuditResult]:
    if not (audited.proc / "spl/kstat/zfs").is_dir():
        return
    try:
        done = audited.run(["zpool", "status"], timeout_s=ADVICE_LIMIT_S)
    except EngineError as error:
        yield Topic("scrub of ZFS", _RUNS).not_known(str(error))
        return
    pool = "a pool"
    for row in done.stdout.splitlines():
        label, _, value = row.strip().partition(":")
        if label == "pool":
            pool = value.strip()
        if label == "scan" and "in progress" in value:
            yield Topic(f"scrub of {pool}", _RUNS, is_setting=False).find(
                AuditLevel.ADVICE,
                value.strip(),
                command=f"sudo zpool scrub -p {pool}" if "scrub" in value else None,
                otherwise="wait until it has ended: zpool status",
            )


def _audit_programs(audited: AuditedHost) -> AuditResult:
    if audited.processes is None:
        return _PROGRAMS.not_known("/proc shows no processes")
    running = sorted(set(_PROGRAM_NAMES) & audited.processes)
    if "btrfs" in audited.processes:
        running.append("btrfs (a scrub or balance)")
    return _PROGRAMS.advise(
        bool(running),
        f"{', '.join(running)} run{'s' * (len(running) == 1)}" if running else "none is seen",
        otherwise="wait until it has ended",
    )


def audit_timers(audited: AuditedHost, *, shares: bool) -> Iterator[AuditResult]:
    """Yield systemd's timers that are due during the run, and all cron jobs, regardless of when they are due.

    Args:
        shares: whether drives that are not tested share a controller or link with a tested drive.
    """
    yield _audit_systemd(audited, AuditLevel.DISTURBS if shares else AuditLevel.ADVICE)
    yield _audit_cron(audited)


def _audit_systemd(audited: AuditedHost, level: AuditLevel) -> AuditResult:
    try:
        done = audited.run(
            ["systemctl", "list-timers", "--all", "--no-pager", "--output=json"], timeout_s=ADVICE_LIMIT_S
        )
        timers = _parse_timers(done.stdout)
    except EngineError as error:
        return _TIMERS.not_known("there is no systemctl" if "not installed" in str(error) else str(error))
    except (ValueError, RecursionError):
        words = " ".join(done.stderr.split()) or "it printed no list of timers"
        return _TIMERS.not_known(f"systemctl: {words[:120]}")
    left_s = {unit: at_s - audited.now_s for unit, at_s in timers.items()}
    due = sorted((max(left, 0.0), unit) for unit, left in left_s.items() if left <= audited.lasts_s)
    heavy = [(left, unit) for left, unit in due if _HEAVY.search(unit)]
    if not heavy:
        others = f"; {len(due)} of other kinds" if due else ""
        within = format_duration(audited.lasts_s)
        return _TIMERS.ok(f"none that works on drives within {within}{others}")
    return _TIMERS.find(
        level,
        ", ".join(f"{unit} in {format_duration(left)}" for left, unit in heavy),
        command=f"sudo systemctl stop {' '.join(unit for _, unit in heavy)}",
    )


def _parse_timers(printed: str) -> dict[str, float]:
    """Return the time at which each planned timer is due next, in seconds since 1970."""
    rows = json.loads(printed)
    if not isinstance(rows, list):
        raise ValueError("not a list")  # noqa: TRY004  # the same error as for text that is not JSON
    timers = {}
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("unit"), str):
            raise ValueError("not a timer")  # noqa: TRY004  # the same error as for text that is not JSON
        next_us = row.get("next")
        if isinstance(next_us, int) and 0 < next_us < 2**63:
            timers[row["unit"]] = next_us / 1e6
    return timers


def _audit_cron(audited: AuditedHost) -> AuditResult:
    if audited.processes is None:
        return _CRON.not_known("/proc shows no processes, such as cron")
    service = next((name for name in _CRON_SERVICES if name in audited.processes), None)
    if service is None:
        return _CRON.ok("no cron runs")
    due, closed = _find_cron_work(audited.root)
    if closed and not due:
        return _CRON.not_known(f"{', '.join(closed)} cannot be read")
    return _CRON.advise(
        bool(due),
        f"work on drives in {', '.join(due)}; the times were not checked" if due else "none that works on drives",
        command=f"sudo systemctl stop {service}",
    )


def _find_cron_work(root: Path) -> tuple[list[str], list[str]]:
    """Return cron's tables and scripts that work on drives, and the folders and files that cannot be read."""
    due: list[str] = []
    closed: list[str] = []
    files = [(root / "etc/crontab", "")]
    for folder, period in _CRON_FOLDERS.items():
        try:
            files += [(path, period) for path in sorted((root / folder).iterdir())]
        except FileNotFoundError:
            continue
        except OSError:
            closed.append(f"/{folder}")
    for path, period in files:
        if path.name.startswith(".") or not path.is_file():  # a read from a pipe would never end
            continue
        # The name of a cron table may be the name of a user, so only the commands in the table are examined.
        is_due = period and _HEAVY.search(path.name)
        try:
            with path.open("rb") as file:
                rows = file.read(_LONGEST_CRON_BYTES).decode(errors="replace").splitlines()
        except OSError:
            closed.append(path.name)
            rows = []
        commands = (row for row in rows if not row.lstrip().startswith("#"))
        if is_due or any(_HEAVY_COMMAND.search(row) for row in commands):
            due.append(f"{path.name} ({period})" if period else path.name)
    return due, closed
