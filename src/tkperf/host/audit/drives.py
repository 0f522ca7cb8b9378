"""The audit of a drive's queue in the kernel, of the drive's link, and of other drives on that link."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tkperf.device.kernel_watch import parse_stat
from tkperf.device.links import find_narrower_bridge, read_link
from tkperf.device.sysfs import SECTOR_BYTES, binary, find_selected, number, text
from tkperf.host.audit.audited_host import (
    MATTERS,
    USB_HUB_CLASS,
    AuditedDrive,
    AuditedHost,
    AuditLevel,
    AuditResult,
    Topic,
    find_place_on_bus,
)

# The I/O size of throughput tests, in KiB (PTS-E 1.1: 1024 KiB).
LARGEST_IO_KIB = 1024
# Drivers that do not limit the size of an I/O report a number that is greater than this number.
_NO_LIMIT_KIB = 1 << 24
# At these or higher rates, the I/O of neighbours uses so much of the controller or link that results change.
BUSY_MB_S, BUSY_IOPS = 1.0, 100.0
_SCHEDULER = Topic("I/O scheduler", "a scheduler may reorder, merge and delay what the drive is to be measured with")
_REQUESTS = Topic("requests of the queue", "I/Os beyond the requests of the queue wait in the host, not in the drive")
_LARGEST = Topic("largest request", "a larger I/O is split by the kernel, so that the drive gets several")
_OTHERS = Topic("other queue settings", "disclosed: neither acts on direct I/O that is not polled")
_STATISTICS = Topic("I/O statistics", "without the device's counters tkperf cannot separate I/O of others from its own")
_SLOWEST = "the slowest link between drive and CPU limits what can be measured"
_LINK, _UPSTREAM = Topic("link", _SLOWEST), Topic("link upstream", _SLOWEST)
_POWER = Topic("link power management", "a link that sleeps between I/Os takes time to wake up at each of them")
_NEIGHBOURS = Topic(
    "other users of its link",
    "drives behind one controller or link share its bandwidth, its queue and its interrupts",
    is_setting=False,
)


_AFFINITY = Topic(
    "completion affinity", "where completions run: with 2 on the CPU that issued the I/O, so that none does all of them"
)
_MERGING = Topic("merging", "neighbouring I/Os that are merged reach the drive as fewer and larger ones")
_THROTTLING = Topic(
    "writeback throttling",
    "direct writes, which tkperf makes, are exempt from it; timing every I/O for it takes a "
    "little of the CPU, and discards are held back",
)
_AFFINITIES = {0: "any CPU", 1: "a CPU near the issuing one", 2: "the issuing CPU"}
_MERGINGS = {0: "on", 1: "simple merges only", 2: "off"}
_STRANGE = "not known to tkperf"
# The settings that are only reported: the topic, the file, and the function that describes the number.
_DISCLOSED: tuple[tuple[Topic, str, Callable[[int], str]], ...] = (
    (_AFFINITY, "rq_affinity", lambda now: f"rq_affinity {now}: {_AFFINITIES.get(now, _STRANGE)}"),
    (_MERGING, "nomerges", lambda now: f"{_MERGINGS.get(now, _STRANGE)} (nomerges {now})"),
    (_THROTTLING, "wbt_lat_usec", lambda now: f"target {now} µs" if now else "off"),
)


def choose_scheduler(drive: AuditedDrive, now: str) -> str:
    """Return the scheduler that should be used for a measurement. This scheduler is "none", but a hard disk may keep
    mq-deadline, its usual scheduler.

    The scheduler "none" does not change the order of the I/Os, and needs the least CPU time.
    """
    return now if drive.rotates and now == "mq-deadline" else "none"


def audit_queue(audited: AuditedHost, drive: AuditedDrive) -> Iterator[AuditResult]:
    queue = drive.disk / "queue"
    if not queue.is_dir():
        yield Topic("queue settings", _SCHEDULER.why).not_known("the kernel shows none")
        return
    yield _scheduler(drive, queue)
    yield _requests(audited, drive, queue)
    for topic, name, describe_number in _DISCLOSED:
        setting = number(queue / name)
        may_lack = " (or has none)" * (name == "wbt_lat_usec")
        yield (
            topic.not_known(f"the kernel does not show it{may_lack}")
            if setting is None
            else topic.note(describe_number(setting))
        )
    yield _largest(queue)
    yield _statistics(drive, queue)
    yield _other_settings(queue)


def _scheduler(drive: AuditedDrive, queue: Path) -> AuditResult:
    now = find_selected(text(queue / "scheduler"))
    if now is None:
        return _SCHEDULER.not_known()
    wanted = choose_scheduler(drive, now)
    return _SCHEDULER.advise(now != wanted, now, command=_echo(drive, "scheduler", wanted))


def _requests(audited: AuditedHost, drive: AuditedDrive, queue: Path) -> AuditResult:
    """Return the finding on the number of requests. Each hardware queue of the device has this number of requests."""
    requests = number(queue / "nr_requests")
    if requests is None:
        return _REQUESTS.not_known()
    queues = drive.hardware_queues or 1
    asked = f", {audited.outstanding} I/Os will be outstanding" if audited.outstanding else ""
    return _REQUESTS.advise(
        audited.outstanding is not None and requests * queues < audited.outstanding,
        f"{requests} in each of {queues} hardware queue{'s' * (queues > 1)}{asked}",
        command=_echo(drive, "nr_requests", audited.outstanding),
    )


def _largest(queue: Path) -> AuditResult:
    now, possible = number(queue / "max_sectors_kb"), number(queue / "max_hw_sectors_kb")
    if now is None:
        return _LARGEST.not_known()
    limited = possible is not None and possible < _NO_LIMIT_KIB
    found = f"{now} KiB" + (f", the hardware takes {possible} KiB" if limited else "")
    return _LARGEST.ok(found) if now >= LARGEST_IO_KIB else _LARGEST.note(found)


def _statistics(drive: AuditedDrive, queue: Path) -> AuditResult:
    setting = number(queue / "iostats")
    if setting is None:
        return _STATISTICS.not_known()
    command = _echo(drive, "iostats", 1)
    return _STATISTICS.advise(not setting, "on" if setting else "off", command=command)


def _other_settings(queue: Path) -> AuditResult:
    polls, ahead_kib = number(queue / "io_poll"), number(queue / "read_ahead_kb")
    polling = "not known" if polls is None else "on" if polls else "off"
    ahead = "not known" if ahead_kib is None else f"{ahead_kib} KiB"
    return _OTHERS.note(f"polling {polling}, read-ahead {ahead}")


def _echo(drive: AuditedDrive, name: str, value: object) -> str:
    return f"echo {value} | sudo tee /sys/block/{drive.disk.name}/queue/{name}"


def audit_links(audited: AuditedHost, drive: AuditedDrive) -> Iterator[AuditResult]:
    """Yield findings on the drive's link, on slower links between the drive and the CPU, and on power management."""
    link = read_link(drive.disk)
    if link is None:
        yield _LINK.not_known("the kernel shows none")
    elif link.downgraded is None:
        unknown = "fastest rate" if link.fastest is None else "current speed or width"
        yield _LINK.note(f"{link.negotiated}, its {unknown} is not known")
    else:
        able = f"the drive could do {link.fastest}" if link.downgraded else "its fastest"
        yield _LINK.advise(
            link.downgraded,
            f"{link.negotiated}, {able}",
            otherwise="move the drive to a faster slot or port, or check cable and contacts",
        )
    narrower = find_narrower_bridge(drive.disk)
    if narrower is not None:
        yield _UPSTREAM.find(
            AuditLevel.ADVICE,
            f"{narrower.negotiated} at {narrower.source}, less than the drive's own link",
            otherwise="move the drive to a slot with a faster link to the CPU",
        )
    yield from _power(audited, drive)


def _power(audited: AuditedHost, drive: AuditedDrive) -> Iterator[AuditResult]:
    for folder in drive.disk.resolve().parents:
        if folder.name.startswith("host") and folder.name[4:].isdigit():
            path = f"scsi_host/{folder.name}/link_power_management_policy"
            policy = text(folder / path)
            if policy is not None:
                yield _POWER.advise(
                    policy not in ("max_performance", "keep_firmware_settings"),
                    policy,
                    command=f"echo max_performance | sudo tee /sys/class/{path}",
                )
            return
    policy = text(audited.sys / "module/pcie_aspm/parameters/policy") or ""
    if drive.is_nvme and "[" in policy:
        state = find_selected(policy) or ""
        sleeps = state.startswith(("powersave", "powersupersave"))
        yield _POWER.find(
            AuditLevel.ADVICE if sleeps else AuditLevel.NOTE,
            f"PCIe ASPM policy {state}",
            command="echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy",
        )


def find_neighbours(audited: AuditedHost, drive: AuditedDrive) -> dict[Path, str]:
    """Return the other whole disks that share a controller, expander, hub or bridge with the drive.

    The value for each disk is the name of the part that it shares with the drive. Disks that are tested at the same
    time are included.
    """
    place = find_place_on_bus(drive.disk)
    found = {}
    for disk in sorted((audited.sys / "block").glob("*")):
        if disk.resolve() == drive.disk.resolve() or not (disk / "device").exists():
            continue
        shares = _find_shared(place, find_place_on_bus(disk))
        if shares is not None:
            found[disk] = shares
    return found


def _find_shared(place: Path, other: Path) -> str | None:
    """Return the nearest part above both disks whose bandwidth is limited. None means that the disks share only the
    whole host.
    """
    mine = (place, *place.parents)
    common = next(folder for folder in (other, *other.parents) if folder in mine)
    for folder in (common, *common.parents):
        if folder.name.startswith("expander-"):
            return f"the SAS expander {folder.name}"
        if (folder / "bDeviceClass").exists():
            is_hub = text(folder / "bDeviceClass") == USB_HUB_CLASS
            return f"the USB {'hub' if is_hub else 'device'} {folder.name}"
        if (folder / "class").exists() and (folder / "subsystem").resolve().name == "pci":
            is_bridge = (text(folder / "class") or "").startswith("0x0604")
            return f"the {'PCI bridge' if is_bridge else 'controller'} {folder.name}"
    return None


def count_io(disks: Iterable[Path]) -> dict[str, tuple[int, int]]:
    """Return the I/Os and bytes of each disk so far, according to the kernel's counters."""
    counts = {}
    for disk in disks:
        done = parse_stat(binary(disk / "stat"))
        if len(done) >= 8:
            counts[disk.name] = (done[0] + done[4], SECTOR_BYTES * (done[2] + done[6]))
    return counts


def audit_neighbours(
    neighbours: Mapping[Path, str],
    before: Mapping[str, tuple[int, int]],
    after: Mapping[str, tuple[int, int]],
    seconds: float,
) -> AuditResult:
    """Return the finding on the neighbours: their shared link, and their I/O between the two readings of counters."""
    if not neighbours:
        # The absence of other drives is a permanent state, while the load of other drives is temporary.
        alone = replace(_NEIGHBOURS, is_setting=True)
        return alone.ok("no other drive behind its controller or link is seen")
    level, busy, unknown = AuditLevel.NOTE, [], []
    by_share: dict[str, list[str]] = {}
    for disk, shares in neighbours.items():
        name = disk.name
        by_share.setdefault(shares, []).append(name)
        if name not in before or name not in after:
            unknown.append(name)
            continue
        iops = (after[name][0] - before[name][0]) / seconds
        mb_s = (after[name][1] - before[name][1]) / seconds / 1e6
        if iops > 0:
            busy.append(f"{name} {iops:.0f} IOPS, {mb_s:.1f} MB/s")
        if iops >= BUSY_IOPS or mb_s >= BUSY_MB_S:
            level = AuditLevel.DISTURBS
        elif iops > 0 and level is AuditLevel.NOTE:
            level = AuditLevel.ADVICE
    if unknown and level not in MATTERS:
        level = AuditLevel.NOT_KNOWN
    shared = "; ".join(f"{', '.join(names)} on {shares}" for shares, names in by_share.items())
    now = f"busy now: {', '.join(busy)}" if busy else "idle for the moment"
    if unknown:
        now += f"; not known of {', '.join(unknown)}"
    return _NEIGHBOURS.find(
        level,
        f"{now} ({shared})",
        otherwise="keep them idle during the run, or move the drive to a controller of its own",
    )
