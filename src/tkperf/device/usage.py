"""Who uses a block device, by the kernel's word: mounts, swap, boot disks, open files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import find_disk, find_node, text, udev_properties

# Mount points that the running system cannot be without.
SYSTEM_MOUNT_POINTS = ("/", "/usr", "/var", "/boot", "/boot/efi", "/efi")
EFI_GLOBAL_VARIABLES = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
_DEVICE_PATH_HARD_DRIVE = (4, 1)
_SIGNATURE_IS_GUID = 2


@dataclass(frozen=True, slots=True)
class Mount:
    """``seen_by`` names a process where the mount is in a namespace other than ours."""

    point: str
    major_minor: str
    seen_by: str | None


def find_mounts(proc_root: Path) -> Iterator[Mount]:
    """Every mount of every mount namespace that can be seen, each namespace once."""
    ours = _namespace(proc_root / "self")
    seen = {ours}
    yield from _mounts_of(proc_root / "self", seen_by=None)
    for process in sorted(proc_root.glob("[0-9]*"), key=lambda entry: int(entry.name)):
        namespace = _namespace(process)
        if namespace and namespace not in seen:
            seen.add(namespace)
            yield from _mounts_of(process, seen_by=describe_process(process))


def _namespace(process: Path) -> str | None:
    try:
        return str((process / "ns/mnt").readlink())
    except OSError:
        return None


def _mounts_of(process: Path, *, seen_by: str | None) -> Iterator[Mount]:
    try:
        lines = (process / "mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        yield Mount(fields[4].replace("\\040", " "), fields[2], seen_by)


def find_btrfs_members(sys_root: Path) -> Iterator[tuple[str, str]]:
    """Name of each mounted btrfs and major:minor of each of its devices.

    Its mounts have device numbers of their own, so that mountinfo does not tell.
    """
    for node in sorted(sys_root.glob("fs/btrfs/*/devices/*")):
        major_minor = text(node.resolve() / "dev")
        if major_minor:
            yield node.parent.parent.name, major_minor


def find_swaps(proc_root: Path) -> Iterator[os.stat_result]:
    """What is in use as swap space, devices and files."""
    for line in (text(proc_root / "swaps") or "").splitlines()[1:]:
        path = Path(line.split()[0].replace("\\040", " "))
        if path.exists():
            yield path.stat()


def find_system_disks(sys_root: Path, proc_root: Path) -> dict[Path, str]:
    """sysfs folders of the whole disks that the system runs or was booted from, and why."""
    disks: dict[Path, str] = {}
    for mount in _mounts_of(proc_root / "self", seen_by=None):
        if mount.point in SYSTEM_MOUNT_POINTS:
            for disk in _disks_below(find_node(mount.major_minor, sys_root)):
                disks.setdefault(disk, f"the running system has {mount.point} on it")
    booted = _booted_partition(sys_root)
    if booted is not None:
        for partition in sorted(sys_root.glob("class/block/*/partition")):
            node = partition.parent.resolve()
            entry = udev_properties(text(node / "dev") or "").get("ID_PART_ENTRY_UUID")
            if entry is not None and entry.lower() == booted:
                disks.setdefault(find_disk(node), "the system was booted from it (UEFI)")
    return disks


def _disks_below(node: Path) -> Iterator[Path]:
    """The physical disks under a node: through RAID, LVM and encryption, to any depth."""
    if not node.exists():
        return
    disk = find_disk(node)
    slaves = [*(node / "slaves").glob("*"), *(disk / "slaves").glob("*")]
    if not slaves:
        yield disk
    for slave in slaves:
        yield from _disks_below(slave.resolve())


def _booted_partition(sys_root: Path) -> str | None:
    """GUID of the partition that the firmware started from (UEFI 2.10, 3.1.3 and 10.3.5.1)."""
    variables = sys_root / "firmware/efi/efivars"
    try:
        # The first four bytes of an efivars file are attributes.
        number = (variables / f"BootCurrent-{EFI_GLOBAL_VARIABLES}").read_bytes()[4:6]
        name = f"Boot{int.from_bytes(number, 'little'):04X}-{EFI_GLOBAL_VARIABLES}"
        option = (variables / name).read_bytes()[4:]
    except OSError:
        return None
    position = 6
    while option[position : position + 2] not in (b"\0\0", b""):
        position += 2
    position += 2
    while position + 4 <= len(option):
        length = int.from_bytes(option[position + 2 : position + 4], "little")
        if (option[position], option[position + 1]) == _DEVICE_PATH_HARD_DRIVE and length >= 42:
            node = option[position : position + length]
            return _guid(node[24:40]) if node[41] == _SIGNATURE_IS_GUID else None
        if length < 4:
            return None
        position += length
    return None


def _guid(mixed_endian: bytes) -> str:
    parts = (
        mixed_endian[3::-1],
        mixed_endian[5:3:-1],
        mixed_endian[7:5:-1],
        mixed_endian[8:10],
        mixed_endian[10:],
    )
    return "-".join(part.hex() for part in parts)


@dataclass(frozen=True, slots=True)
class Opener:
    """A process that has a device or file open."""

    process: str
    writes: bool


def find_openers(
    proc_root: Path, *, devices: Collection[int] = (), inode: tuple[int, int] | None = None
) -> Iterator[Opener]:
    """Processes, other than tkperf and what it started, that have a device or file open.

    Args:
        devices: device numbers of block devices.
        inode: device and inode of a file.
    """
    for process in sorted(proc_root.glob("[0-9]*"), key=lambda entry: int(entry.name)):
        try:
            modes = [
                _is_open_for_writing(process, descriptor.name)
                for descriptor in (process / "fd").iterdir()
                if _refers_to(descriptor, devices, inode)
            ]
            if modes and not _is_ours(process):
                yield Opener(describe_process(process), any(modes))
        except OSError:
            continue


def _refers_to(descriptor: Path, devices: Collection[int], inode: tuple[int, int] | None) -> bool:
    try:
        status = descriptor.stat()
    except OSError:
        return False
    if inode is not None:
        return (status.st_dev, status.st_ino) == inode
    # The block bit of the mode: character devices have numbers of their own.
    return (status.st_mode & 0o170000) == 0o060000 and status.st_rdev in devices


def _is_open_for_writing(process: Path, descriptor: str) -> bool:
    for line in (text(process / "fdinfo" / descriptor) or "").splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def describe_process(process: Path) -> str:
    """``process 4711 (qemu)``."""
    return f"process {process.name} ({text(process / 'comm') or 'name not known'})"


def _is_ours(process: Path) -> bool:
    """Whether a process is tkperf or was started by it, such as a fio under way."""
    while process.name not in ("0", "1"):
        if process.name == str(os.getpid()):
            return True
        # The command in parentheses may itself hold spaces and parentheses.
        after_command = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2]
        process = process.parent / after_command.split()[1]
    return False
