"""Identity of a device from the kernel's facts: stat, sysfs and udev's database."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from tkperf.device.drive_numbers import find_distinction, read_serial, read_unit, read_wwn
from tkperf.device.sysfs import (
    PROC_ROOT,
    SECTOR_BYTES,
    find_disk,
    find_node,
    find_nvme_controller,
    find_selected,
    major_minor_of,
    number,
    text,
    udev_properties,
)
from tkperf.device.underlying_devices import describe_underlying, read_birth_time_ns
from tkperf.device.usage.kernel import ask_backing
from tkperf.device.usage.mounts import find_mounted_path, read_mounts
from tkperf.model.errors import DeviceError, reason_of
from tkperf.model.same_device import When, find_differences

BLKGETSIZE64 = 0x80081272
BLKSSZGET = 0x1268
FILE_BLOCK_BYTES = 512


class TargetKind(StrEnum):
    """Kind of a target. Every result says so if the target is a file."""

    BLOCK = "block device"
    FILE = "file"
    SIMULATED = "simulated drive"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    """Facts of a device; None means not known.

    ``path`` is the path after all links are resolved. ``major_minor`` identifies a block device,
    ``inode`` (device, inode) a file. ``birth_time_ns`` is when a file was made, in ns since 1970.
    ``unit`` is the namespace, LUN or boot area of a drive. ``distinction`` distinguishes a disk
    from other disks of this host that report the same serial number. ``backing`` is the name of the
    file behind a loop device, or the file system of a file. ``loop_backing`` identifies the file
    behind a loop device, and the part of the file that is used, by the kernel's numbers.
    ``beneath`` identifies the drives and files that a RAID set, mapping or loop device uses, by
    properties that a boot does not change.
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
        """The text that the user types as consent to erase: the serial number or the path.

        For a whole drive, the text is the serial number. For a partition, the text is the path, because a
        serial number would not identify the partition. A device without a serial number is also identified
        by its path. If several disks of this host report the
        serial number, the text names the namespace, LUN or world-wide name, too.
        """
        if self.partition or not self.serial:
            return self.path
        return f"{self.serial}/{self.distinction}" if self.distinction else self.serial

    def facts(self) -> dict[str, object]:
        """Return the facts as plain data for the run file."""
        return asdict(self)


def is_same_device(a: DeviceIdentity, b: DeviceIdentity) -> bool:
    """Return whether two readings within a run are of the same device, including the kernel's
    numbers.
    """
    return not any(find_differences(a.facts(), b.facts(), When.WITHIN_RUN))


def read_identity(path: str | Path) -> DeviceIdentity:
    """Identify a block device or a regular file, through any links.

    Raises:
        DeviceError: the path does not exist, is neither a block device nor a regular file, is
            empty, or cannot be opened; or the resolved path leads elsewhere.
    """
    try:
        real = Path(os.path.realpath(path))
        status = os.stat(path)  # noqa: PTH116 - as the user gave it
    except FileNotFoundError:
        raise DeviceError(f"there is no device or file {path}; see 'lsblk' for devices") from None
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

    The links in /proc/PID (root, cwd, fd) lead to files of other mount namespaces and to files
    without a name. The text of such a link is a path that may belong to another file in tkperf's
    own mount namespace.

    Raises:
        DeviceError: the resolved path leads elsewhere, or nowhere.
    """
    try:
        named = real.stat()
    except OSError:
        same = False
    else:
        # Every node with the device number of a block device is a name of that device.
        same_device = stat.S_ISBLK(status.st_mode) and named.st_rdev == status.st_rdev
        same = same_device or os.path.samestat(named, status)
    if not same:
        raise DeviceError(
            f"{path} is not the same as {real}, to which its links resolve: the file is in another mount namespace, "
            f"or its name was removed. Nothing was touched. Pass a path that contains no link of /proc"
        )


def open_target(real: Path, flags: int) -> int:
    """Open the resolved path ``real``. If a link has taken its place in the meantime, the link is not followed."""
    try:
        return os.open(real, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        advice = "run tkperf as root" if os.geteuid() else "even root is denied access"
        raise DeviceError(f"{real} cannot be opened: not permitted; {advice}") from None
    except OSError as error:
        reason = "it became a link" if error.errno == errno.ELOOP else reason_of(error)
        raise DeviceError(f"{real} cannot be opened: {reason}") from error


def identify(descriptor: int, path: Path, *, again: bool = False) -> DeviceIdentity:
    """Identify an open device or file, even if its path now leads elsewhere.

    Args:
        path: the name of the device or file, with all links resolved.
        again: whether this descriptor was identified before, so that the device had a capacity at that time.

    Raises:
        DeviceError: it is neither a block device nor a regular file, is empty, or was removed.
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
        raise DeviceError(f"{real} is {what}: pass --size to create a new file of another name")
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
    gone = DeviceError(f"{real} no longer exists: the drive was removed, or its link failed")
    try:
        (capacity_bytes,) = struct.unpack("Q", fcntl.ioctl(descriptor, BLKGETSIZE64, b"\0" * 8))
        (logical_bytes,) = struct.unpack("I", fcntl.ioctl(descriptor, BLKSSZGET, b"\0" * 4))
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            raise gone from error
        raise DeviceError(f"{real} does not report its size: {reason_of(error)}") from error
    node = find_node(major_minor)
    if not node.exists() or (again and not capacity_bytes):
        raise gone
    if not capacity_bytes:
        raise DeviceError(
            f"{real} has no capacity: it has no medium, is an unused loop device, or the drive was removed"
        )
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
        # The answer was compared with the first reading, and later readings need no answer.
        distinction=None if again or partition else find_distinction(disk),
        mapping_uuid=text(disk / "dm/uuid"),
        mapping_name=text(disk / "dm/name"),
        disk_sequence=number(disk / "diskseq"),
        backing=text(disk / "loop/backing_file"),
        loop_backing=None if backing is None else str(backing),
        beneath=describe_underlying(disk, backing),
    )


def file_system_of(path: Path) -> str | None:
    """Return the type of the file system that contains a path, such as ``ext4``; None if its mount is not visible."""
    place = find_mounted_path(path, [*read_mounts(PROC_ROOT / "self", None)], PROC_ROOT)
    return None if place is None else place.mount.kind


def find_interface(disk: Path, properties: dict[str, str] | None = None) -> str | None:
    """Return the bus according to the kernel's device tree. A SATA drive on a SAS adapter is still SATA.

    Args:
        properties: the properties of udev; None: the function reads them.
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
    if (disk / "device/scsi_level").exists():
        return "SCSI"
    return "virtio" if any(component.startswith("virtio") for component in above) else None
