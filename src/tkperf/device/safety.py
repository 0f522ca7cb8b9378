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

from tkperf.device.identity import DeviceIdentity, TargetKind, disk_node


class Reason(StrEnum):
    """Stable codes of objections."""

    MOUNTED = "mounted"
    SWAP = "swap"
    HOLDER = "holder"
    READ_ONLY = "read-only"
    BUSY = "busy"
    OPEN = "open"
    LOOP_BACKING = "loop-backing"
    HARD_LINKS = "hard-links"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    reason: Reason
    text: str


def find_objections(
    identity: DeviceIdentity,
    *,
    sys_root: Path = Path("/sys"),
    proc_root: Path = Path("/proc"),
    held_by_us: bool = False,
) -> tuple[Objection, ...]:
    """Why a device must not be erased; empty if nothing speaks against it.

    Args:
        held_by_us: tkperf itself holds the device exclusively, so that cannot count.
    """
    if identity.kind is TargetKind.FILE:
        return tuple(_file_objections(identity, sys_root, proc_root))
    return tuple(_block_objections(identity, sys_root, proc_root, held_by_us))


def _block_objections(
    identity: DeviceIdentity, sys_root: Path, proc_root: Path, held_by_us: bool
) -> Iterator[Objection]:
    assert identity.major_minor is not None
    node = (sys_root / "dev/block" / identity.major_minor).resolve()
    # A whole disk includes its partitions; a partition shares its disk's holders only if whole.
    parts = [node, *sorted(entry.parent for entry in node.glob("*/partition"))]
    numbers = {
        (part / "dev").read_text().strip(): part for part in parts if (part / "dev").exists()
    }
    numbers.setdefault(identity.major_minor, node)

    for mount_point, number in _mounts(proc_root):
        if number in numbers:
            what = numbers[number].name
            yield Objection(reason=Reason.MOUNTED, text=f"{what} is mounted at {mount_point}")
    for swap in _swaps(proc_root):
        if f"{os.major(swap.st_rdev)}:{os.minor(swap.st_rdev)}" in numbers:
            yield Objection(reason=Reason.SWAP, text="it is in use as swap space")
    for part in parts:
        for holder in sorted((part / "holders").glob("*")):
            yield Objection(
                reason=Reason.HOLDER,
                text=f"{part.name} is used by {holder.name} (RAID, LVM, encryption or the like)",
            )
    if _is_read_only(node) or _is_read_only(disk_node(node)):
        yield Objection(reason=Reason.READ_ONLY, text="it is read-only")
    elif not held_by_us and (text := _why_not_exclusive(identity.path)):
        yield Objection(reason=Reason.BUSY, text=text)


def _file_objections(
    identity: DeviceIdentity, sys_root: Path, proc_root: Path
) -> Iterator[Objection]:
    path = Path(identity.path)
    if not os.access(path, os.W_OK):
        yield Objection(reason=Reason.READ_ONLY, text="the file is read-only for you")
    if path.stat().st_nlink > 1:
        yield Objection(reason=Reason.HARD_LINKS, text="the file has other names too (hard links)")
    for backing in sorted(sys_root.glob("block/loop*/loop/backing_file")):
        behind = Path(backing.read_text(encoding="utf-8", errors="replace").strip())
        if behind.exists() and _inode(behind.stat()) == identity.inode:
            text = f"the file is behind loop device {backing.parent.parent.name}"
            yield Objection(reason=Reason.LOOP_BACKING, text=text)
    for swap in _swaps(proc_root):
        if _inode(swap) == identity.inode:
            yield Objection(reason=Reason.SWAP, text="the file is in use as swap space")
    for process in _processes_with_open(identity, proc_root):
        yield Objection(reason=Reason.OPEN, text=f"the file is open in {process}")


def _mounts(proc_root: Path) -> Iterator[tuple[str, str]]:
    """Mount point and major:minor of every mount this process can see."""
    for line in (proc_root / "self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        yield fields[4].replace("\\040", " "), fields[2]


def _swaps(proc_root: Path) -> Iterator[os.stat_result]:
    try:
        lines = (proc_root / "swaps").read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        path = Path(line.split()[0].replace("\\040", " "))
        if path.exists():
            yield path.stat()


def _is_read_only(node: Path) -> bool:
    try:
        return (node / "ro").read_text().strip() == "1"
    except OSError:
        return False


def _why_not_exclusive(path: str) -> str | None:
    """Try what mount(2) would: an exclusive open. The kernel knows every other user."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return "the kernel says that it is in use (an exclusive open fails)"
        return f"it cannot be opened for writing: {error.strerror}"
    os.close(descriptor)
    return None


def _processes_with_open(identity: DeviceIdentity, proc_root: Path) -> Iterator[str]:
    """Processes that have the file open, as far as this user may look; not our own ones."""
    for folder in proc_root.glob("[0-9]*/fd"):
        process = folder.parent
        try:
            is_open = any(_inode(link.stat()) == identity.inode for link in folder.iterdir())
            if is_open and not _is_ours(process):
                command = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                yield f"process {process.name} ({command})"
        except OSError:
            continue


def _is_ours(process: Path) -> bool:
    """Whether a process is tkperf or was started by it, such as a fio under way."""
    while process.name not in ("0", "1"):
        if process.name == str(os.getpid()):
            return True
        # The command in parentheses may itself hold spaces and parentheses.
        after_command = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2]
        process = process.parent / after_command.split()[1]
    return False


def _inode(status: os.stat_result) -> tuple[int, int]:
    return (status.st_dev, status.st_ino)
