"""What is behind loop devices: they hold neither a claim nor a descriptor, so they are asked."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from tkperf.device.sysfs import device_number, exact_text

# Device and inode number of a file.
FileId = tuple[int, int]
DEV_ROOT = Path("/dev")
LOOP_GET_STATUS64 = 0x4C05
# struct loop_info64 of linux/loop.h: begins with lo_device, lo_inode and lo_rdevice.
_INFO = struct.Struct("=3Q 2Q 4I 64s 64s 32s 2Q")
DELETED = " (deleted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop device in use.

    Attributes:
        number: its own device number.
        backing: device and inode of the file behind it; None if that could not be found out.
        backing_device: device number if a block device is behind it.
        says: the name of what is behind it, as the kernel remembers it; for people.
        asked: whether the driver itself was asked; else the name had to do.
    """

    name: str
    number: int
    backing: FileId | None
    backing_device: int | None
    says: str
    asked: bool


def find_loops(sys_root: Path, dev_root: Path = DEV_ROOT) -> tuple[Loop, ...]:
    """Every loop device that has something behind it."""
    loops = []
    for entry in sorted(sys_root.glob("block/loop*/loop/backing_file")):
        folder = entry.parent.parent
        number = device_number(folder)
        if number is not None:
            loops.append(_describe(folder.name, number, exact_text(entry) or "", dev_root))
    return tuple(loops)


def _describe(name: str, number: int, says: str, dev_root: Path) -> Loop:
    asked = _ask(dev_root / name, number)
    backing, device = asked or _look_up(says)
    return Loop(
        name=name,
        number=number,
        backing=backing,
        backing_device=device,
        says=says,
        asked=asked is not None,
    )


def _ask(node: Path, number: int) -> tuple[FileId, int | None] | None:
    """Backing inode and device by the driver's word; None if it cannot be asked.

    The kernel encodes device numbers in this struct (huge_encode_dev) as it does for stat.
    """
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISBLK(status.st_mode) or status.st_rdev != number:
            return None
        answer = fcntl.ioctl(descriptor, LOOP_GET_STATUS64, bytes(_INFO.size))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    device, inode, rdevice = _INFO.unpack(answer)[:3]
    return (device, inode), rdevice or None


def _look_up(says: str) -> tuple[FileId | None, int | None]:
    """The same by the name that sysfs shows, which may be that of a deleted file."""
    for name in (says, says.removesuffix(DELETED)):
        try:
            status = os.stat(name)
        except (OSError, ValueError):
            continue
        device = status.st_rdev if stat.S_ISBLK(status.st_mode) else None
        return (status.st_dev, status.st_ino), device
    return None, None
