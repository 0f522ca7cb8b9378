"""Reasons not to erase a device, by kernel facts, never by matching names.

Everything is looked up by major:minor or inode, so links and aliases make no difference.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.signatures import Signature, find_signatures
from tkperf.device.sysfs import SYS_ROOT, find_disk, find_node, find_parts, number, text
from tkperf.device.usage import (
    find_btrfs_members,
    find_mounts,
    find_openers,
    find_swaps,
    find_system_disks,
)
from tkperf.errors import DeviceError

PROC_ROOT = Path("/proc")
# What the names of device-mapper devices begin with, by who made them (dm/uuid).
DM_OWNERS = {
    "LVM-": "LVM volume", "CRYPT-": "encryption", "mpath-": "multipath", "part": "partition",
    "DMRAID-": "firmware RAID", "stratis-": "Stratis",
}  # fmt: skip


class Reason(StrEnum):
    """Stable codes of objections."""

    MOUNTED = "mounted"
    SWAP = "swap"
    HOLDER = "holder"
    MEMBER = "member"
    SYSTEM_DISK = "system-disk"
    READ_ONLY = "read-only"
    BUSY = "busy"
    OPEN = "open"
    LOOP_BACKING = "loop-backing"
    HARD_LINKS = "hard-links"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    reason: Reason
    text: str


def find_objections(
    identity: DeviceIdentity,
    *,
    sys_root: Path = SYS_ROOT,
    proc_root: Path = PROC_ROOT,
    held: int | None = None,
    use_only: bool = False,
    used_by_us: str | None = None,
) -> tuple[Objection, ...]:
    """Why a device must not be erased; empty if nothing speaks against it.

    Args:
        held: descriptor by which tkperf itself holds the device exclusively, if it does: so that
            cannot count, and what lies on it was looked at when it was held.
        use_only: leave out what lies on it: it cannot be read, or tkperf made it, a RAID set.
        used_by_us: name of the RAID set that tkperf made of it, the one holder that is no reason.
    """
    if identity.kind is TargetKind.FILE:
        return tuple(_file_objections(identity, held, sys_root, proc_root))
    assert identity.major_minor is not None
    node = find_node(identity.major_minor, sys_root)
    objections = list(_use_objections(node, sys_root, proc_root, used_by_us))
    if held is None and not use_only:
        objections += _member_objections(identity)
        objections += _busy_objections(identity, node, proc_root)
    return tuple(objections)


def find_data(identity: DeviceIdentity) -> tuple[Signature, ...]:
    """File systems and partition tables that nobody uses: the user must know and confirm them.

    Raises:
        DeviceError: the device cannot be looked at.
    """
    if identity.kind is not TargetKind.BLOCK:
        return ()
    return find_signatures({path: path for path in _paths(identity)})


def _paths(identity: DeviceIdentity) -> tuple[str, ...]:
    """The device by the path it was found at, its partitions by the kernel's names."""
    node = find_node(identity.major_minor or "")
    parts = (Path("/dev") / part.name for part in find_parts(node)[1:])
    return (identity.path, *(str(part) for part in parts if part.exists()))


def _use_objections(
    node: Path, sys_root: Path, proc_root: Path, used_by_us: str | None
) -> Iterator[Objection]:
    disk = find_disk(node)
    # A whole disk includes its partitions. A path of a multipath drive includes the other paths.
    parts = [*find_parts(node)]
    for alias in _other_paths(disk, sys_root):
        parts += find_parts(alias)
    numbers = {text(part / "dev"): part.name for part in parts}

    for mount in find_mounts(proc_root):
        if mount.major_minor in numbers:
            where = f" in the mount namespace of {mount.seen_by}" if mount.seen_by else ""
            what = numbers[mount.major_minor]
            said = f"{what} is mounted at {mount.point}{where}"
            yield Objection(reason=Reason.MOUNTED, text=said)
    for name, major_minor in find_btrfs_members(sys_root):
        if major_minor in numbers:
            said = f"{numbers[major_minor]} belongs to the mounted btrfs {name}"
            yield Objection(reason=Reason.MOUNTED, text=said)
    for swap in find_swaps(proc_root):
        if f"{os.major(swap.st_rdev)}:{os.minor(swap.st_rdev)}" in numbers:
            yield Objection(reason=Reason.SWAP, text="it is in use as swap space")
    # A partition is used, too, if its whole disk is.
    for part in {*parts, disk}:
        for holder in sorted((part / "holders").glob("*")):
            if holder.name != used_by_us:
                yield Objection(reason=Reason.HOLDER, text=_describe_holder(part, holder))
    for system_disk, why in find_system_disks(sys_root, proc_root).items():
        if system_disk == disk:
            yield Objection(reason=Reason.SYSTEM_DISK, text=why)
    if number(node / "ro") == 1 or number(disk / "ro") == 1:
        yield Objection(reason=Reason.READ_ONLY, text="it is read-only")


def _other_paths(disk: Path, sys_root: Path) -> list[Path]:
    """Other disks of the kernel with the same world-wide name: the same drive by another path."""

    def name_of(folder: Path) -> str | None:
        return text(folder / "wwid") or text(folder / "device/wwid")

    own = name_of(disk)
    if own is None:
        return []
    others = (entry.resolve() for entry in sorted((sys_root / "block").glob("*")))
    return [other for other in others if other != disk and name_of(other) == own]


def _describe_holder(part: Path, holder: Path) -> str:
    resolved = holder.resolve()
    kind = "a layer above it"
    if (resolved / "md").exists():
        kind = f"MD RAID, {text(resolved / 'md/level') or 'level not known'}"
    elif (resolved / "bcache").exists():
        kind = "bcache"
    uuid = text(resolved / "dm/uuid") or ""
    for prefix, owner in DM_OWNERS.items():
        if uuid.startswith(prefix):
            kind = f"{owner} {text(resolved / 'dm/name') or ''}".strip()
    return f"{part.name} is used by {holder.name} ({kind})"


def _member_objections(identity: DeviceIdentity) -> Iterator[Objection]:
    try:
        signatures = find_signatures({path: path for path in _paths(identity)})
    except DeviceError as error:
        yield Objection(reason=Reason.UNREADABLE, text=str(error))
        return
    for signature in signatures:
        if signature.member:
            yield Objection(
                reason=Reason.MEMBER,
                text=f"it holds a {signature}; if nobody needs that set any more: "
                f"wipefs --all {signature.device}",
            )


def _busy_objections(identity: DeviceIdentity, node: Path, proc_root: Path) -> Iterator[Objection]:
    devices = {
        os.makedev(*map(int, found.split(":")))
        for part in find_parts(node)
        if (found := text(part / "dev"))
    }
    openers = list(find_openers(proc_root, devices=devices))
    names = ", ".join(opener.process for opener in openers)
    writers = ", ".join(opener.process for opener in openers if opener.writes)
    if not os.access(identity.path, os.W_OK):
        yield Objection(reason=Reason.READ_ONLY, text="you may not write to it")
        return
    try:
        # Read-only: closing what was open for writing would make udev probe the device.
        os.close(os.open(identity.path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            who = names or "the kernel, or a process that you may not see,"
            said = f"it is in use: {who} has it open exclusively"
        else:
            said = f"it cannot be opened: {error.strerror}"
        yield Objection(reason=Reason.BUSY, text=said)
    else:
        if writers:
            yield Objection(reason=Reason.OPEN, text=f"it is open for writing in {writers}")


def _file_objections(
    identity: DeviceIdentity, held: int | None, sys_root: Path, proc_root: Path
) -> Iterator[Objection]:
    # By the descriptor once there is one: the name may stand for another file by now.
    path = identity.path if held is None else f"/proc/self/fd/{held}"
    if not os.access(path, os.W_OK):
        yield Objection(reason=Reason.READ_ONLY, text="the file is read-only for you")
    if Path(path).stat().st_nlink > 1:
        yield Objection(reason=Reason.HARD_LINKS, text="the file has other names too (hard links)")
    for backing in sorted(sys_root.glob("block/loop*/loop/backing_file")):
        behind = Path(text(backing) or "")
        if behind.exists() and _inode(behind.stat()) == identity.inode:
            said = f"the file is behind loop device {backing.parent.parent.name}"
            yield Objection(reason=Reason.LOOP_BACKING, text=said)
    for swap in find_swaps(proc_root):
        if _inode(swap) == identity.inode:
            yield Objection(reason=Reason.SWAP, text="the file is in use as swap space")
    for opener in find_openers(proc_root, inode=identity.inode):
        yield Objection(reason=Reason.OPEN, text=f"the file is open in {opener.process}")


def _inode(status: os.stat_result) -> tuple[int, int]:
    return (status.st_dev, status.st_ino)
