"""Who a device is, by the kernel's word: stat, sysfs and udev's database."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from tkperf.errors import DeviceError

BLKGETSIZE64 = 0x80081272
BLKSSZGET = 0x1268
FILE_BLOCK_BYTES = 512


class TargetKind(StrEnum):
    """What a run is made on; a file target is labelled as such in every result."""

    BLOCK = "block device"
    FILE = "file"
    SIMULATED = "simulated drive"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    """Facts of a device; None is not known.

    ``path`` has all links resolved. ``major_minor`` names a block device, ``inode`` (device,
    inode) a file. ``backing`` is the file behind a loop device, or the file system of a file.
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
    inode: tuple[int, int] | None = None
    backing: str | None = None

    @property
    def confirm_id(self) -> str:
        """What the user types to have it erased: the serial number, or the path without one."""
        return self.serial or self.path

    def facts(self) -> dict[str, object]:
        """Plain data for the run file."""
        return asdict(self)


def is_same_device(a: DeviceIdentity, b: DeviceIdentity) -> bool:
    """Whether two readings are of one device: the same node, serial, WWN and size."""

    def key(identity: DeviceIdentity) -> tuple[object, ...]:
        return (
            identity.kind,
            identity.major_minor,
            identity.inode,
            identity.serial,
            identity.wwn,
            identity.capacity_bytes,
        )

    return key(a) == key(b)


def read_identity(path: str | Path, *, sys_root: Path = Path("/sys")) -> DeviceIdentity:
    """Identify a block device or a regular file, through any links.

    Raises:
        DeviceError: it does not exist, is neither, is empty, or cannot be opened.
    """
    real = Path(os.path.realpath(path))
    try:
        status = real.stat()
    except FileNotFoundError:
        raise DeviceError(f"there is no device or file {path}; see 'lsblk' for devices") from None
    except OSError as error:
        raise DeviceError(f"cannot look at {path}: {error.strerror}") from error
    if stat.S_ISBLK(status.st_mode):
        return _read_block_device(real, status, sys_root)
    if stat.S_ISREG(status.st_mode):
        return _read_file(real, status)
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFCHR: "a character device"}
    kind = kinds.get(stat.S_IFMT(status.st_mode), "neither")
    hint = ""
    if stat.S_ISCHR(status.st_mode) and real.name.startswith("nvme"):
        hint = f"; the disk of this controller is probably {real}n1"
    raise DeviceError(f"{path} is {kind}: tkperf measures block devices and regular files{hint}")


def _read_file(real: Path, status: os.stat_result) -> DeviceIdentity:
    if status.st_size < FILE_BLOCK_BYTES:
        raise DeviceError(f"{real} is an empty file: give --size for a new file of another name")
    return DeviceIdentity(
        path=str(real),
        kind=TargetKind.FILE,
        capacity_bytes=status.st_size,
        logical_block_bytes=FILE_BLOCK_BYTES,
        inode=(status.st_dev, status.st_ino),
        backing=file_system_of(real),
    )


def _read_block_device(real: Path, status: os.stat_result, sys_root: Path) -> DeviceIdentity:
    major_minor = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        advice = "run tkperf as root" if os.geteuid() else "something forbids it even to root"
        raise DeviceError(f"{real} cannot be opened: not permitted; {advice}") from None
    except OSError as error:
        raise DeviceError(f"{real} cannot be opened: {error.strerror}") from error
    try:
        (capacity_bytes,) = struct.unpack("Q", fcntl.ioctl(descriptor, BLKGETSIZE64, b"\0" * 8))
        (logical_bytes,) = struct.unpack("I", fcntl.ioctl(descriptor, BLKSSZGET, b"\0" * 4))
    except OSError as error:
        raise DeviceError(f"{real} does not tell its size: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if not capacity_bytes:
        raise DeviceError(f"{real} has no capacity: no medium, or an unused loop device")
    node = sys_root / "dev/block" / major_minor
    disk = disk_node(node)
    properties = _udev_properties(_text(disk / "dev") or major_minor)
    physical = _text(disk / "queue/physical_block_size")
    return DeviceIdentity(
        path=str(real),
        kind=TargetKind.BLOCK,
        capacity_bytes=capacity_bytes,
        logical_block_bytes=logical_bytes,
        physical_block_bytes=int(physical) if physical else None,
        model=_text(disk / "device/model") or properties.get("ID_MODEL"),
        serial=_text(disk / "device/serial")
        or properties.get("ID_SERIAL_SHORT")
        or _text(disk / "serial"),
        wwn=_text(disk / "wwid") or _text(disk / "device/wwid") or properties.get("ID_WWN"),
        firmware=_text(disk / "device/firmware_rev")
        or _text(disk / "device/rev")
        or properties.get("ID_REVISION"),
        interface=_interface(disk, properties),
        rotational={"0": False, "1": True}.get(_text(disk / "queue/rotational") or ""),
        write_cache=_text(disk / "queue/write_cache"),
        scheduler=_chosen(_text(disk / "queue/scheduler")),
        major_minor=major_minor,
        backing=_text(disk / "loop/backing_file"),
    )


def disk_node(node: Path) -> Path:
    """The sysfs folder of the whole disk that a node (maybe a partition) belongs to."""
    resolved = node.resolve()
    return resolved.parent if (resolved / "partition").exists() else resolved


def file_system_of(path: Path) -> str | None:
    """Type of the file system that holds a path, e.g. ``ext4``."""
    best, kind = -1, None
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        mount_point = before.split()[4].replace("\\040", " ")
        inside = mount_point == "/" or str(path).startswith(mount_point + "/")
        if inside and len(mount_point) >= best:
            best, kind = len(mount_point), after.split()[0]
    return kind


def _interface(disk: Path, properties: dict[str, str]) -> str | None:
    name = disk.name
    for prefix, interface in (("nvme", "NVMe"), ("loop", "loop"), ("md", "MD RAID")):
        if name.startswith(prefix):
            return interface
    bus = properties.get("ID_BUS")
    return {"ata": "ATA", "scsi": "SCSI", "usb": "USB"}.get(bus or "", bus)


def _chosen(text: str | None) -> str | None:
    """``none`` out of ``mq-deadline [none]``."""
    if text and "[" in text:
        return text.partition("[")[2].partition("]")[0]
    return text


def _udev_properties(major_minor: str) -> dict[str, str]:
    try:
        text = Path(f"/run/udev/data/b{major_minor}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line[2:].partition("=") for line in text.splitlines() if line.startswith("E:"))
    return {key: value for key, _, value in pairs}


def _text(path: Path) -> str | None:
    """A sysfs attribute without white space around it; None if absent or empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip(" \n\0") or None
    except OSError:
        return None
