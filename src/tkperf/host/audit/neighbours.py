"""Other drives behind the same controller or link, and their present load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import SECTOR_BYTES, text
from tkperf.host.audit.finding import Finding, Level
from tkperf.host.audit.site import Drive, Site, place_of

# From so much on, the I/O of neighbours takes a part of the controller or link that shows in results.
BUSY_MB_S, BUSY_IOPS = 1.0, 100.0
_WHY = "drives behind one controller or link share its bandwidth, its queue and its interrupts"
_HUB_CLASS = "09"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another whole disk, and the controller or link that it shares with the drive."""

    name: str
    shares: str
    disk: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The kernel's counts of each disk at a moment: I/Os, and bytes."""

    at_s: float
    counts: dict[str, tuple[int, int]]


def find_neighbours(site: Site, drive: Drive) -> tuple[Neighbour, ...]:
    """Return the disks that share a controller, expander, hub or bridge with the drive, tested ones as well."""
    place = place_of(drive.disk)
    found = []
    for disk in sorted((site.sys / "block").glob("*")):
        if disk.resolve() == drive.disk.resolve() or not (disk / "device").exists():
            continue
        shares = _shared(place, place_of(disk))
        if shares is not None:
            found.append(Neighbour(name=disk.name, shares=shares, disk=disk))
    return tuple(found)


def _shared(place: Path, other: Path) -> str | None:
    """Return the nearest part above both whose bandwidth is not the whole host's; None: there is none."""
    mine = (place, *place.parents)
    common = next(folder for folder in (other, *other.parents) if folder in mine)
    for folder in (common, *common.parents):
        if folder.name.startswith("expander-"):
            return f"the SAS expander {folder.name}"
        if (folder / "bDeviceClass").exists():
            is_hub = text(folder / "bDeviceClass") == _HUB_CLASS
            return f"the USB {'hub' if is_hub else 'device'} {folder.name}"
        if (folder / "class").exists() and (folder / "subsystem").resolve().name == "pci":
            is_bridge = (text(folder / "class") or "").startswith("0x0604")
            return f"the {'PCI bridge' if is_bridge else 'controller'} {folder.name}"
    return None


def count_io(neighbours: tuple[Neighbour, ...], at_s: float) -> Counted:
    """Return the I/Os and bytes of each neighbour so far, by the kernel's counters."""
    counts = {}
    for neighbour in neighbours:
        fields = (text(neighbour.disk / "stat") or "").split()
        if len(fields) >= 8 and all(field.isdecimal() for field in fields[:8]):
            done = [int(field) for field in fields[:8]]
            counts[neighbour.name] = (done[0] + done[4], SECTOR_BYTES * (done[2] + done[6]))
    return Counted(at_s=at_s, counts=counts)


def audit_neighbours(
    neighbours: tuple[Neighbour, ...], before: Counted, after: Counted
) -> Iterator[Finding]:
    """Yield the finding on the neighbours: their shared link, and their I/O between two looks."""
    subject = "other users of its link"
    if not neighbours:
        yield Finding(
            subject=subject,
            level=Level.OK,
            found="no other drive behind its controller or link is seen",
            why=_WHY,
        )
        return
    seconds = max(after.at_s - before.at_s, 1e-3)
    level, busy, unknown = Level.NOTE, [], []
    for neighbour in neighbours:
        counts = before.counts.get(neighbour.name), after.counts.get(neighbour.name)
        if counts[0] is None or counts[1] is None:
            unknown.append(neighbour.name)
            continue
        iops = (counts[1][0] - counts[0][0]) / seconds
        mb_s = (counts[1][1] - counts[0][1]) / seconds / 1e6
        if iops > 0:
            busy.append(f"{neighbour.name} {iops:.0f} IOPS, {mb_s:.1f} MB/s")
        if iops >= BUSY_IOPS or mb_s >= BUSY_MB_S:
            level = Level.DISTURBS
        elif iops > 0 and level is Level.NOTE:
            level = Level.ADVICE
    if unknown and level is Level.NOTE:
        level = Level.NOT_KNOWN
    by_share: dict[str, list[str]] = {}
    for neighbour in neighbours:
        by_share.setdefault(neighbour.shares, []).append(neighbour.name)
    shared = "; ".join(f"{', '.join(names)} on {shares}" for shares, names in by_share.items())
    now = f"busy now: {', '.join(busy)}" if busy else "idle for the moment"
    if unknown:
        now += f"; not known of {', '.join(unknown)}"
    yield Finding(
        subject=subject,
        level=level,
        found=f"{now} ({shared})",
        why=_WHY,
        otherwise="keep them idle during the run, or move the drive to a controller of its own"
        if level in (Level.ADVICE, Level.DISTURBS)
        else None,
        is_setting=False,
    )
