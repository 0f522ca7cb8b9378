"""Disks that the system runs or was booted from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tkperf.device.sysfs import find_disk, find_node, text, udev_properties
from tkperf.device.usage.mounts import Mount

# Mount points that the running system needs.
SYSTEM_MOUNT_POINTS = ("/", "/usr", "/var", "/boot", "/boot/efi", "/efi")
EFI_GLOBAL_VARIABLES = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
_DEVICE_PATH_HARD_DRIVE = (4, 1)
_SIGNATURE_IS_GUID = 2


def find_system_disks(sys_root: Path, mounts: Iterable[Mount]) -> dict[Path, str]:
    """Return sysfs folders of the whole disks that the system runs or was booted from, with the reason."""
    disks: dict[Path, str] = {}
    for mount in mounts:
        if mount.seen_by is None and mount.point in SYSTEM_MOUNT_POINTS:
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
    """Yield the physical disks under a node: through RAID, LVM and encryption, to any depth."""
    if not node.exists():
        return
    disk = find_disk(node)
    slaves = [*(node / "slaves").glob("*"), *(disk / "slaves").glob("*")]
    if not slaves:
        yield disk
    for slave in slaves:
        yield from _disks_below(slave.resolve())


def _booted_partition(sys_root: Path) -> str | None:
    """Return the GUID of the partition that the firmware started from (UEFI 2.10, 3.1.3 and 10.3.5.1)."""
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
    fields = (
        mixed_endian[3::-1],
        mixed_endian[5:3:-1],
        mixed_endian[7:5:-1],
        mixed_endian[8:10],
        mixed_endian[10:],
    )
    return "-".join(field.hex() for field in fields)
