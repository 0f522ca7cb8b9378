"""Objections to erasing a device. tkperf derives the objections from facts of the kernel, never from a comparison of
names.

tkperf identifies each device or file by major:minor or inode, so links and other names of the same device make no
difference.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tkperf.device.content import Signature, find_signatures
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.survey import Survey, describe_container, make_survey, sees_all_processes
from tkperf.device.sysfs import (
    HOST_MANAGED,
    PROC_ROOT,
    SYS_ROOT,
    find_disk,
    find_node,
    find_parts,
    find_zone_model,
    major_minor_of,
    number,
    text,
)
from tkperf.device.usage.kernel import stat_named
from tkperf.device.usage.mounts import find_btrfs_members, find_system_disks, read_mounts
from tkperf.device.usage.processes import How, describe_process, is_ours
from tkperf.model.errors import DeviceError, reason_of
from tkperf.model.input_files import is_there
from tkperf.model.units import on_one_line

# The programs that create device-mapper devices. The key is the beginning of dm/uuid.
DM_OWNERS = {
    "LVM-": "LVM volume",
    "CRYPT-": "encryption",
    "mpath-": "multipath",
    "part": "partition",
    "DMRAID-": "firmware RAID",
    "stratis-": "Stratis",
    "TKPERF-": "segments that a tkperf measures, or has been killed at:",
}


class Reason(StrEnum):
    """Codes of objections. The codes do not change between versions of tkperf."""

    MOUNTED = "mounted"
    SWAP = "swap"
    HOLDER = "holder"
    MEMBER = "member"
    SYSTEM_DISK = "system-disk"
    READ_ONLY = "read-only"
    BUSY = "busy"
    OPEN = "open"
    RUNNING = "running"
    MAPPED = "mapped"
    LOCKED = "locked"
    LOOP_BACKING = "loop-backing"
    EXPORTED = "exported"
    OVERLAY = "overlay"
    HARD_LINKS = "hard-links"
    BACKING_FILE = "backing-file"
    ZONED = "zoned"
    UNREADABLE = "unreadable"
    ERASING = "erasing"
    NARROW_VIEW = "narrow-view"


@dataclass(frozen=True, slots=True)
class Objection:
    """An objection to erasing a device, with a sentence for users."""

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
    ask_processes: bool = False,
) -> tuple[Objection, ...]:
    """Return the objections to erasing a device. The result is empty if there are no objections.

    Args:
        held: the descriptor with which tkperf itself holds the device exclusively. In this case, tkperf's own claim
            does not count, and tkperf already searched for data when the hold began.
        use_only: whether to ignore the data on the device. This is necessary if the data cannot be read, or if tkperf
            created the device (a RAID set).
        used_by_us: the name of the RAID set or mapping that tkperf created from the device. This use of the device is
            not an objection.
        ask_processes: whether to search also for processes that write to a held block device.
    """
    quick = held is not None or use_only
    files_only = quick and not ask_processes
    survey = make_survey(identity, sys_root=sys_root, proc_root=proc_root, held=held, files_only=files_only)
    if identity.kind is TargetKind.FILE:
        return tuple(_file_objections(identity, survey, held))
    objections = [
        *find_view_objections(survey.proc_root),
        *_device_objections(survey, used_by_us),
        *_hidden_objections(survey),
        *_hard_link_objections(survey),
        *_backing_file_objections(survey),
        *_lock_objections(survey),
        *_overlay_objections(survey),
    ]
    if quick:
        objections += _process_objections(survey)
    else:
        objections += _member_objections(identity)
        objections += _busy_objections(identity, survey)
    return tuple(objections)


def find_data(identity: DeviceIdentity) -> tuple[Signature, ...]:
    """Return file systems and partition tables that are not in use. The user must see this data and confirm its loss.

    Raises:
        DeviceError: the device cannot be read.
    """
    if identity.kind is not TargetKind.BLOCK:
        return ()
    node = find_node(identity.major_minor or "")
    partitions = (Path("/dev") / partition.name for partition in find_parts(node)[1:])
    paths = [identity.path, *(str(partition) for partition in partitions if is_there(partition))]
    return find_signatures({path: path for path in paths})


def find_view_objections(proc_root: Path = PROC_ROOT, root: Path = Path("/")) -> Iterator[Objection]:
    """Yield an objection to every block device if tkperf cannot see the processes and mounts of the whole machine.

    Only the first PID namespace shows all processes. Process 1 of this namespace has the mounts of the machine. A file
    is not refused for this reason, because the kernel grants a lease on a file only if no other process has the file
    open.

    Args:
        root: the folder in which container managers create their marks.
    """
    if not sees_all_processes(proc_root):
        sentence = (
            f"from {describe_container(proc_root, root)}, tkperf sees only the processes and mounts in it, so a use of "
            "the device by the host would not be noticed: run tkperf on the host"
        )
        yield Objection(Reason.NARROW_VIEW, sentence)
    elif next(read_mounts(proc_root / "1", None), None) is None:
        sentence = (
            "the mounts of process 1 cannot be read, so a mount of the device by the host would not be noticed: "
            "run tkperf on the host, as root"
        )
        yield Objection(Reason.NARROW_VIEW, sentence)


def _device_objections(survey: Survey, used_by_us: str | None) -> Iterator[Objection]:
    """Yield objections if a block device or a layer below it is in use. Uses by processes are not included."""
    nodes = survey.target_nodes
    names = {major_minor_of(device): node.name for device, node in nodes.nodes.items()}
    for mount in survey.mounts:
        if (name := names.get(mount.major_minor)) is not None:
            yield Objection(Reason.MOUNTED, f"{name} is mounted at {on_one_line(mount.point)}{mount.where}")
    for file_system, major_minor in find_btrfs_members(survey.sys_root):
        if (name := names.get(major_minor)) is not None:
            yield Objection(Reason.MOUNTED, f"{name} belongs to the mounted btrfs file system {file_system}")
    for node in nodes.nodes.values():
        for holder in sorted((node / "holders").glob("*")):
            if holder.name != used_by_us:
                yield Objection(Reason.HOLDER, _describe_holder(node, holder))
    disks = [find_disk(nodes.nodes[device]) for device in nodes.exact]
    for system_disk, why in find_system_disks(survey.sys_root, survey.mounts).items():
        if system_disk in disks:
            below = "" if system_disk == disks[0] else f"it uses {system_disk.name}, and "
            yield Objection(Reason.SYSTEM_DISK, below + why)
    target = [nodes.nodes[device] for device in nodes.exact[:1]]
    if any(number(folder / "ro") == 1 for folder in [*target, *disks[:1]]):
        yield Objection(Reason.READ_ONLY, "it is read-only")
    for disk in disks:
        if find_zone_model(disk) == HOST_MANAGED:
            what = "it" if disk == disks[0] else f"{disk.name}, which this device uses,"
            sentence = (
                f"{what} is zoned and host-managed: each zone can be written only from its start to its end, "
                "and tkperf also writes at random places"
            )
            yield Objection(Reason.ZONED, sentence)


def _hidden_objections(survey: Survey) -> Iterator[Objection]:
    """Yield objections for uses that belong to no process: swap space, loop devices and the kernel's exports."""
    nodes = survey.target_nodes
    for swap in survey.swaps:
        if swap.stat is not None and (what := nodes.name_of(swap.stat)):
            yield Objection(Reason.SWAP, f"{_it(what, survey)} is in use as swap space")
    for loop in survey.loops:
        if not nodes.is_part(loop) and (what := nodes.name_behind(loop)):
            yield Objection(Reason.LOOP_BACKING, f"{what} is behind loop device {loop.name}")
    reported = set()
    for export in survey.exports:
        what = survey.name_of_export(export)
        if what is not None and (export.user, what) not in reported:
            reported.add((export.user, what))
            yield Objection(Reason.EXPORTED, f"{what} is used by {on_one_line(str(export))}")
    for what, export in survey.find_possible_mounts():
        if (export.user, what) not in reported:
            reported.add((export.user, what))
            sentence = (
                f"{what} contains an erofs and may be the file that {on_one_line(str(export))} uses: "
                "the file that has this name now may be another file, so unmount it first"
            )
            yield Objection(Reason.EXPORTED, sentence)


def _it(what: str, survey: Survey) -> str:
    """Return ``it`` if ``what`` is the target itself. Otherwise return the name of the layer or part of the target."""
    exact = survey.target_nodes.exact
    return "it" if exact and survey.target_nodes.nodes[exact[0]].name == what else what


def _process_objections(survey: Survey) -> Iterator[Objection]:
    """Yield objections for processes that have opened, mapped or executed a file of the target, or write to a
    device.
    """
    ways = {
        How.RUNNING: (Reason.RUNNING, "is running as"),
        How.OPEN: (Reason.OPEN, "is open in"),
        How.REGISTERED: (Reason.MAPPED, "is registered with io_uring in"),
        How.MAPPED: (Reason.MAPPED, "is mapped into memory by"),
    }
    for how, (reason, way) in ways.items():
        users: dict[str, list[str]] = {}
        for use in survey.processes.uses:
            if use.how is how and (use.writes or survey.target_nodes.is_name_of_file(use.what)):
                users.setdefault(use.what, []).append(use.process)
        for what, processes in users.items():
            only_writers = how is How.OPEN and not survey.target_nodes.is_name_of_file(what)
            used = "is open for writing in" if only_writers else way
            yield Objection(reason, f"{_it(what, survey)} {used} {', '.join(processes)}")


def _describe_holder(node: Path, holder: Path) -> str:
    resolved = holder.resolve()
    kind = "a layer above it"
    if is_there(resolved / "md"):
        kind = f"MD RAID, {text(resolved / 'md/level') or 'level not known'}"
    elif is_there(resolved / "bcache"):
        kind = "bcache"
    uuid = text(resolved / "dm/uuid") or ""
    for prefix, owner in DM_OWNERS.items():
        if uuid.startswith(prefix):
            kind = f"{owner} {text(resolved / 'dm/name') or ''}".strip()
    return f"{node.name} is used by {holder.name} ({kind})"


def _member_objections(identity: DeviceIdentity) -> Iterator[Objection]:
    try:
        signatures = find_data(identity)
    except DeviceError as error:
        yield Objection(Reason.UNREADABLE, str(error))
        return
    for signature in signatures:
        if signature.member:
            sentence = f"it holds a {signature}; if that set is no longer needed: wipefs --all {signature.device}"
            yield Objection(Reason.MEMBER, sentence)


def _busy_objections(identity: DeviceIdentity, survey: Survey) -> Iterator[Objection]:
    if not os.access(identity.path, os.W_OK):
        yield Objection(Reason.READ_ONLY, "you have no permission to write to the device")
        return
    claimed = False
    try:
        # The device is opened read-only, because udev reads a device when a descriptor that was open for writing is
        # closed.
        os.close(os.open(identity.path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        claimed = error.errno == errno.EBUSY
        if claimed:
            names = ", ".join(dict.fromkeys(use.process for use in survey.processes.uses))
            who = names or "the kernel, or a process that you may not see,"
            sentence = f"it is in use: {who} has it open exclusively"
        else:
            sentence = f"it cannot be opened: {reason_of(error)}"
        yield Objection(Reason.BUSY, sentence)
    if not claimed:
        yield from _process_objections(survey)
    for below in survey.target_nodes.exact[1:]:
        name = survey.target_nodes.nodes[below].name
        if _is_claimed(Path("/dev") / name, below):
            sentence = (
                f"{name}, which this device uses, is in use: another program or the kernel has it open exclusively"
            )
            yield Objection(Reason.BUSY, sentence)


def _is_claimed(path: Path, device: int) -> bool:
    try:
        if path.stat().st_rdev == device:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def _file_objections(identity: DeviceIdentity, survey: Survey, held: int | None) -> Iterator[Objection]:
    # If a descriptor exists, it is used, because the name may now lead to another file.
    path = identity.path if held is None else f"/proc/self/fd/{held}"
    if not os.access(path, os.W_OK):
        yield Objection(Reason.READ_ONLY, "you have no permission to write to the file")
    yield from _hard_link_objections(survey)
    objections = [
        *_hidden_objections(survey),
        *_process_objections(survey),
        *_lock_objections(survey),
        *_overlay_objections(survey),
    ]
    yield from objections
    if held is None:
        yield from _state_objections(survey, {objection.reason for objection in objections})


def _hard_link_objections(survey: Survey) -> Iterator[Objection]:
    """Yield objections for files that have additional names (hard links). The files are a file target and files behind
    a loop device.
    """
    for file, path in survey.target_nodes.paths.items():
        status = stat_named(path, file)
        if status is not None and status.st_nlink > 1:
            what = survey.target_nodes.files[file]
            yield Objection(Reason.HARD_LINKS, f"{what} has other names (hard links)")


def _backing_file_objections(survey: Survey) -> Iterator[Objection]:
    """Yield objections for files behind loop devices if the name that the kernel reports does not lead to the file.

    Such a file may have another name. The link count cannot show this: if the name that was used to set up the loop
    device was removed and one other name remains, the count is 1.
    """
    for file, path in survey.target_nodes.paths.items():
        if stat_named(path, file) is None:
            what, name = survey.target_nodes.files[file], on_one_line(str(path))
            sentence = f"{what} cannot be found at {name}, so its other names and its content are not known"
            yield Objection(Reason.BACKING_FILE, sentence)
    for loop in survey.target_nodes.unasked:
        sentence = f"the loop driver does not report the file behind {loop}"
        yield Objection(Reason.BACKING_FILE, sentence)


def _state_objections(survey: Survey, reasons: set[Reason]) -> Iterator[Objection]:
    """Yield objections from the kernel's facts about a whole file, unless another objection already reports the same
    use.
    """
    # If users of the file were found, these users have the file open. A search for other openings of the file would
    # then report the same use again.
    state = survey.ask_file_state(count=not reasons)
    if state.swap and Reason.SWAP not in reasons:
        yield Objection(Reason.SWAP, "the file is in use as swap space")
    elif state.open_elsewhere and not reasons:
        sentence = (
            "the file is in use by something that cannot be seen from here: the kernel, or a "
            "process of another user or container, has it open, mapped or running"
        )
        yield Objection(Reason.OPEN, sentence)


def _lock_objections(survey: Survey) -> Iterator[Objection]:
    for what, lock in survey.find_locks():
        process = survey.proc_root / str(lock.pid)
        if lock.pid is not None and is_ours(process):
            continue
        who = describe_process(process) if lock.pid else "a process that has it open"
        if not any(use.process == who for use in survey.processes.uses):
            yield Objection(Reason.LOCKED, f"{what} is locked ({lock.kind}) by {who}")
    for what in survey.find_files_open_over_nfs():
        sentence = f"a client of this machine's NFS server has {what} open"
        yield Objection(Reason.OPEN, sentence)


def _overlay_objections(survey: Survey) -> Iterator[Objection]:
    for what, overlay, certain in survey.find_overlays():
        if certain:
            point = on_one_line(overlay.point)
            sentence = f"{what} is part of the {overlay.kind} mounted at {point}{overlay.where}"
            yield Objection(Reason.OVERLAY, sentence)
