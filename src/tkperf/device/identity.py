"""The identity of a device according to the kernel (stat, sysfs and udev's database). The identity contains the
kernel's numbers of the device, a text that distinguishes the device from other disks of this host with the same serial
number, and the drives and files that the device uses.

The drives and files that a loop device, RAID set or mapping uses are identified by properties that stay the same after
a reboot.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from tkperf.device.sysfs import (
    PROC_ROOT,
    SECTOR_BYTES,
    SYS_ROOT,
    binary,
    device_number,
    exact_text,
    find_disk,
    find_node,
    find_nvme_controller,
    find_selected,
    is_scsi,
    major_minor_of,
    number,
    text,
    udev_properties,
)
from tkperf.device.usage.kernel import DEV_ROOT, LoopBacking, ask_backing, ask_loop
from tkperf.device.usage.mounts import find_mounted_path, read_mounts
from tkperf.model.errors import DeviceError, reason_of
from tkperf.model.input_files import is_there
from tkperf.model.same_device import When, find_differences, is_unique_name


def read_serial(disk: Path, properties: dict[str, str]) -> str | None:
    """Return the serial number of a disk. The function asks these sources in this order: NVMe, virtio, the SCSI page
    with the unit serial number, udev, and the UUID of an MD set.
    """
    page = binary(disk / "device/vpd_pg80")[4:]
    return (
        text(disk / "device/serial")
        or text(disk / "serial")
        or page.decode("ascii", errors="replace").strip(" \0")
        or properties.get("ID_SERIAL_SHORT")
        or (text(disk / "md/uuid") if disk.name.startswith("md") else None)
        or None
    )


def read_wwn(disk: Path, properties: dict[str, str]) -> str | None:
    """Return the world-wide name of a disk. The sources are NVMe, SCSI and udev, in this order."""
    return text(disk / "wwid") or text(disk / "device/wwid") or properties.get("ID_WWN")


def read_unit(disk: Path) -> str | None:
    """Return the part of a drive that the kernel shows as this disk: a namespace, a LUN, or a boot area of eMMC.

    Several such parts may have the same serial number, for example the two bays of a USB dock.
    """
    if (namespace := number(disk / "nsid")) is not None:
        return f"namespace {namespace}"
    _, boot, area = disk.name.partition("boot")
    if disk.name.startswith("mmcblk") and boot:
        return f"boot area {area}"
    if is_scsi(disk):
        address = os.path.realpath(disk / "device").rpartition("/")[2].split(":")
        if len(address) == 4 and address[-1].isdecimal():  # host:channel:target:LUN
            return f"LUN {address[-1]}"
    return None


def find_distinction(disk: Path, *, sys_root: Path = SYS_ROOT) -> str | None:
    """Return the text that the user's confirmation must contain in addition to the serial number of a disk. With this
    text, the confirmation matches no other disk of this host.

    If no other disk with this serial number has the same unit, the result is the unit. Otherwise the result is the
    world-wide name or, if the world-wide name is not unique, the kernel's name of the disk. None means that the serial
    number is not known or is sufficient. The serial number is sufficient if no other disk reports the same number. It
    is also sufficient if this disk is the only one without a unit, because the units then distinguish the other disks
    from this disk.
    """
    own = udev_properties(text(disk / "dev") or "")
    serial, unit, wwn = read_serial(disk, own), read_unit(disk), read_wwn(disk, own)
    if serial is None:
        return None
    others = []
    for entry in sorted((sys_root / "block").glob("*")):
        other = entry.resolve()
        device = text(other / "dev")
        # A disk without a node in /dev is a path of a multipath drive.
        if other == disk.resolve() or device is None:
            continue
        properties = udev_properties(device)
        if read_serial(other, properties) == serial:
            others.append((read_unit(other), read_wwn(other, properties)))
    # If another path leads to the same unit of the drive, both disks contain the same data.
    others = [pair for pair in others if pair != (unit, wwn) or not is_unique_name(wwn)]
    if not others:
        return None
    if all(other_unit != unit for other_unit, _ in others):
        return None if unit is None else unit.replace(" ", "-")
    if wwn is not None and all(other_wwn != wwn for _, other_wwn in others):
        return wwn.replace(" ", "-")
    return disk.name


_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX_BYTES = 256
# struct statx in linux/stat.h: stx_mask is the first field. stx_btime begins 80 bytes later and consists of s (64 bits)
# and ns (32 bits).
_MASK, _BIRTH, _BIRTH_AT = struct.Struct("=I"), struct.Struct("=qI"), 80
_NS_A_SECOND = 1_000_000_000


def read_birth_time_ns(descriptor: int) -> int | None:
    """Return when an open file was created, in ns since 1970. None means that the file system or this C library does
    not report the time.

    File systems with 32-bit inodes reuse an inode number as soon as it is free. The inode number alone therefore does
    not identify a file.
    """
    statx = getattr(_LIBC, "statx", None)  # glibc 2.28 or newer
    if statx is None:
        return None
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    failed = statx(ctypes.c_int(descriptor), b"", ctypes.c_int(_AT_EMPTY_PATH), ctypes.c_uint(_STATX_BTIME), buffer)
    if failed or not _MASK.unpack_from(buffer, 0)[0] & _STATX_BTIME:
        return None
    seconds, nanoseconds = _BIRTH.unpack_from(buffer, _BIRTH_AT)
    birth_time_ns: int = seconds * _NS_A_SECOND + nanoseconds
    return birth_time_ns


def find_birth_time_ns(path: Path, file: tuple[int, int]) -> int | None:
    """Return when the file at this path was created, in ns since 1970. None means that the time is not known, or that
    the path leads to another file.

    Args:
        file: the device and the inode that the file must have.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        same = (status.st_dev, status.st_ino) == file
        return read_birth_time_ns(descriptor) if same else None
    finally:
        os.close(descriptor)


# The greatest number of layered devices, such as a mapping on a mapping on a set. No host has this many layers.
_MOST_LAYERS = 16


def describe_underlying(
    disk: Path, backing: LoopBacking | None = None, *, sys_root: Path = SYS_ROOT
) -> tuple[str, ...]:
    """Return one text for each drive or file that a device uses, in alphabetical order.

    The texts contain no device numbers. If a device reports no other property, its text contains the name that the
    kernel assigned to it in the order of discovery.

    Args:
        disk: the folder of the device in sysfs.
        backing: the file or device behind a loop device, as the loop driver reported it.
    """
    return tuple(sorted(set(_describe(disk, backing, sys_root, _MOST_LAYERS))))


def _describe(disk: Path, backing: LoopBacking | None, sys_root: Path, layers_left: int) -> Iterator[str]:
    if not layers_left:
        return
    if backing is not None:
        yield from _describe_backing(disk, backing, sys_root, layers_left)
        return
    for lower in sorted(disk.glob("slaves/*")):
        yield from _describe_node(lower.resolve(), sys_root, layers_left - 1)


def _describe_backing(disk: Path, backing: LoopBacking, sys_root: Path, layers_left: int) -> Iterator[str]:
    limit = f", {backing.size_limit_bytes} bytes of it" if backing.size_limit_bytes else ""
    place = f" from byte {backing.offset_bytes}{limit}"
    if backing.file is not None:
        name = exact_text(disk / "loop/backing_file")
        born_ns = None if name is None else find_birth_time_ns(Path(name), backing.file)
        born = "" if born_ns is None else f" made at {born_ns} ns"
        yield f"inode {backing.file[1]}{born}{place}"
    elif backing.device is not None:
        node = find_node(major_minor_of(backing.device), sys_root)
        for one in _describe_node(node, sys_root, layers_left - 1):
            yield f"{one}{place}"


def _describe_node(node: Path, sys_root: Path, layers_left: int) -> Iterator[str]:
    """Yield a text that identifies a drive or partition by its numbers. For a RAID set, mapping or loop device, yield
    such texts for the devices that it uses.
    """
    disk = find_disk(node)
    part = ""
    if (partition := number(node / "partition")) is not None:
        start_bytes = (number(node / "start") or 0) * SECTOR_BYTES
        part = f" partition {partition} at byte {start_bytes}"
    size = f" of {(number(node / 'size') or 0) * SECTOR_BYTES} bytes"
    backing = None
    if disk.name.startswith("loop") and (device := device_number(disk)) is not None:
        backing = ask_loop(DEV_ROOT / disk.name, device)
    lower = tuple(_describe(disk, backing, sys_root, layers_left))
    if lower:
        for one in lower:
            yield f"{one}{part}"
        return
    properties = udev_properties(text(disk / "dev") or "")
    ids = {"serial number": read_serial(disk, properties), "world-wide name": read_wwn(disk, properties)}
    known = ", ".join(f"{what} {one}" for what, one in ids.items() if one)
    unit = read_unit(disk)
    yield f"{known or f'/dev/{disk.name}'}{f', {unit}' if unit else ''}{part}{size}"


BLKGETSIZE64 = 0x80081272
BLKSSZGET = 0x1268
FILE_BLOCK_BYTES = 512


class TargetKind(StrEnum):
    """The kind of a target. If the target is a file, every result states this."""

    BLOCK = "block device"
    FILE = "file"
    SIMULATED = "simulated drive"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    """Facts about a device. None means that a fact is not known.

    ``path`` is the path after all links are resolved. ``major_minor`` identifies a block device, and ``inode`` (device,
    inode) identifies a file. ``birth_time_ns`` is the time at which a file was created, in ns since 1970. ``unit`` is
    the namespace, LUN or boot area of a drive. ``distinction`` distinguishes a disk from other disks of this host that
    report the same serial number. For a loop device, ``backing`` is the name of the file behind the loop device. For a
    file, ``backing`` is the file system that contains the file. ``loop_backing`` identifies the file behind a loop
    device, and the used part of this file, by the kernel's numbers. ``beneath`` identifies the drives and files that a
    RAID set, mapping or loop device uses, by properties that stay the same after a reboot.
    """

    path: str
    kind: TargetKind
    capacity_bytes: int
    logical_block_bytes: int
    physical_block_bytes: int | None = None
    model: str | None = None
    serial: str | None = None
    wwn: str | None = None
    firmware: str | None = None
    interface: str | None = None
    rotational: bool | None = None
    write_cache: str | None = None
    scheduler: str | None = None
    major_minor: str | None = None
    partition: int | None = None
    partition_start_bytes: int | None = None
    unit: str | None = None
    distinction: str | None = None
    mapping_uuid: str | None = None
    mapping_name: str | None = None
    disk_sequence: int | None = None
    inode: tuple[int, int] | None = None
    birth_time_ns: int | None = None
    backing: str | None = None
    loop_backing: str | None = None
    beneath: tuple[str, ...] = ()

    @property
    def confirm_id(self) -> str:
        """The text that the user types as consent to erase the device: the serial number or the path.

        For a whole drive, the text is the serial number. For a partition, the text is the path, because a
        serial number would not identify the partition. For a device without a serial number, the text is also
        the path. If several disks of this host report the serial number, the text also contains the namespace,
        the LUN or the world-wide name.
        """
        if self.partition or not self.serial:
            return self.path
        return f"{self.serial}/{self.distinction}" if self.distinction else self.serial

    def facts(self) -> dict[str, object]:
        """Return the facts as plain data for the run file."""
        return asdict(self)


def is_same_device(a: DeviceIdentity, b: DeviceIdentity) -> bool:
    """Return whether two readings during a run belong to the same device. The device numbers of the kernel must also be
    equal.
    """
    return not any(find_differences(a.facts(), b.facts(), When.WITHIN_RUN))


def read_identity(path: str | Path) -> DeviceIdentity:
    """Return the identity of a block device or a regular file. Links are followed.

    Raises:
        DeviceError: the path does not exist, is neither a block device nor a regular file, is empty, or cannot be
            opened. The error is also raised if the resolved path leads to another device or file.
    """
    try:
        real = Path(os.path.realpath(path))
        status = os.stat(path)  # noqa: PTH116 - the path exactly as the user gave it
    except FileNotFoundError:
        raise DeviceError(f"there is no device or file {path}. List the devices with 'lsblk'") from None
    except OSError as error:
        raise DeviceError(f"cannot look at {path}: {reason_of(error)}") from error
    if not (stat.S_ISBLK(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise DeviceError(_neither(path, real, status))
    require_named(path, real, status)
    descriptor = open_target(real, os.O_RDONLY)
    try:
        require_named(path, real, os.fstat(descriptor))
        return identify(descriptor, real)
    finally:
        os.close(descriptor)


def require_named(path: str | Path, real: Path, status: os.stat_result) -> None:
    """Check that the resolved path leads to the device, file or folder that ``status`` describes.

    The links in /proc/PID (root, cwd, fd) may lead to files of other mount namespaces and to files without a name. The
    text of such a link is a path that may belong to another file in tkperf's own mount namespace.

    Raises:
        DeviceError: the resolved path does not exist, or leads to another device, file or folder.
    """
    try:
        named = real.stat()
    except OSError:
        same = False
    else:
        # Every node with the device number of a block device is a name of this device.
        same_device = stat.S_ISBLK(status.st_mode) and named.st_rdev == status.st_rdev
        same = same_device or os.path.samestat(named, status)
    if not same:
        raise DeviceError(
            f"{path} is not the same file as {real}, although the links of this path lead there. The "
            "file is in another mount namespace, or its name was removed. Pass a path that contains "
            "no link in /proc. Nothing was touched"
        )


def open_target(real: Path, flags: int) -> int:
    """Open the resolved path ``real``. If a link has replaced the file in the meantime, the link is not followed."""
    try:
        return os.open(real, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        advice = "Run tkperf as root" if os.geteuid() else "Even root is denied access"
        raise DeviceError(f"{real} cannot be opened, because access is denied. {advice}") from None
    except OSError as error:
        reason = "it became a link" if error.errno == errno.ELOOP else reason_of(error)
        raise DeviceError(f"{real} cannot be opened: {reason}") from error


def identify(descriptor: int, path: Path, *, again: bool = False) -> DeviceIdentity:
    """Return the identity of an open device or file, even if its path now leads to another device or file.

    Args:
        path: the name of the device or file, with all links resolved.
        again: whether this descriptor was identified before. In this case, a capacity of 0 means that the device was
            removed.

    Raises:
        DeviceError: the target is neither a block device nor a regular file, is empty, or was removed.
    """
    status = os.fstat(descriptor)
    if stat.S_ISBLK(status.st_mode):
        return _identify_block_device(descriptor, path, status, again=again)
    if stat.S_ISREG(status.st_mode):
        return _identify_file(descriptor, path, status)
    raise DeviceError(_neither(path, path, status))


def _neither(path: str | Path, real: Path, status: os.stat_result) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFCHR: "a character device"}
    kind = kinds.get(stat.S_IFMT(status.st_mode), "neither")
    hint = ""
    if stat.S_ISCHR(status.st_mode) and real.name.startswith("nvme"):
        hint = f"; the disk of this controller is probably {real}n1"
    return f"{path} is {kind}: tkperf measures block devices and regular files{hint}"


def _identify_file(descriptor: int, real: Path, status: os.stat_result) -> DeviceIdentity:
    if status.st_nlink == 0:
        raise DeviceError(f"{real} was deleted")
    if status.st_size < FILE_BLOCK_BYTES:
        what = "smaller than a sector" if status.st_size else "an empty file"
        raise DeviceError(
            f"{real} is {what}, so it cannot be measured. Choose another name, and pass --size to create a new file"
        )
    return DeviceIdentity(
        path=str(real),
        kind=TargetKind.FILE,
        capacity_bytes=status.st_size,
        logical_block_bytes=FILE_BLOCK_BYTES,
        inode=(status.st_dev, status.st_ino),
        birth_time_ns=read_birth_time_ns(descriptor),
        backing=file_system_of(real),
    )


def _identify_block_device(descriptor: int, real: Path, status: os.stat_result, *, again: bool) -> DeviceIdentity:
    major_minor = major_minor_of(status.st_rdev)
    gone = DeviceError(
        f"{real} no longer exists: the drive was removed, or its connection failed. See the kernel log (dmesg)"
    )
    try:
        (capacity_bytes,) = struct.unpack("Q", fcntl.ioctl(descriptor, BLKGETSIZE64, b"\0" * 8))
        (logical_bytes,) = struct.unpack("I", fcntl.ioctl(descriptor, BLKSSZGET, b"\0" * 4))
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            raise gone from error
        raise DeviceError(f"{real} does not report its size, so it cannot be measured: {reason_of(error)}") from error
    node = find_node(major_minor)
    if not is_there(node) or (again and not capacity_bytes):
        raise gone
    if not capacity_bytes:
        raise DeviceError(f"{real} has no capacity. It contains no medium, is an unused loop device, or was removed")
    disk = find_disk(node)
    properties = udev_properties(text(disk / "dev") or major_minor)
    backing = ask_backing(descriptor) if disk.name.startswith("loop") else None
    partition = number(node / "partition")
    start = None if partition is None else number(node / "start")
    return DeviceIdentity(
        path=str(real),
        kind=TargetKind.BLOCK,
        capacity_bytes=capacity_bytes,
        logical_block_bytes=logical_bytes,
        physical_block_bytes=number(disk / "queue/physical_block_size"),
        model=text(disk / "device/model") or properties.get("ID_MODEL"),
        serial=read_serial(disk, properties),
        wwn=read_wwn(disk, properties),
        firmware=text(disk / "device/firmware_rev") or text(disk / "device/rev") or properties.get("ID_REVISION"),
        interface=find_interface(disk, properties),
        rotational={0: False, 1: True, None: None}[number(disk / "queue/rotational")],
        write_cache=text(disk / "queue/write_cache"),
        scheduler=find_selected(text(disk / "queue/scheduler")),
        major_minor=major_minor,
        partition=partition,
        partition_start_bytes=None if start is None else start * SECTOR_BYTES,
        unit=read_unit(disk),
        # The user's answer was compared with the first reading. Later readings therefore need not distinguish the disk
        # from other disks with the same serial number.
        distinction=None if again or partition else find_distinction(disk),
        mapping_uuid=text(disk / "dm/uuid"),
        mapping_name=text(disk / "dm/name"),
        disk_sequence=number(disk / "diskseq"),
        backing=text(disk / "loop/backing_file"),
        loop_backing=None if backing is None else str(backing),
        beneath=describe_underlying(disk, backing),
    )


def file_system_of(path: Path) -> str | None:
    """Return the type of the file system that contains a path, such as ``ext4``. None means that the mount of this file
    system is not visible.
    """
    place = find_mounted_path(path, [*read_mounts(PROC_ROOT / "self", None)], PROC_ROOT)
    return None if place is None else place.mount.kind


def find_interface(disk: Path, properties: dict[str, str] | None = None) -> str | None:
    """Return the bus of a disk according to the kernel's device tree. A SATA drive on a SAS adapter counts as SATA.

    Args:
        properties: udev's properties of the disk. None means that the function reads the properties.
    """
    if properties is None:
        properties = udev_properties(text(disk / "dev") or "")
    name, above = disk.name, disk.resolve().parts
    controller = find_nvme_controller(disk)
    if controller is not None:
        transport = text(controller / "transport")
        return "NVMe" if transport == "pcie" else f"NVMe over {transport}"
    for prefix, interface in (("loop", "loop"), ("md", "MD RAID"), ("dm-", "device mapper")):
        if name.startswith(prefix):
            return interface
    if text(disk / "device/vendor") == "ATA" or properties.get("ID_BUS") == "ata":
        return "SATA"
    if any(component.startswith("end_device-") for component in above):
        return "SAS"
    if any(component.startswith("usb") for component in above):
        return "USB"
    if is_scsi(disk):
        return "SCSI"
    return "virtio" if any(component.startswith("virtio") for component in above) else None
