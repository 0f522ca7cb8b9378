"""Files and devices behind loop devices, which hold neither a claim nor a descriptor: tkperf asks them."""

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
# struct loop_info64 of linux/loop.h: begins with lo_device, lo_inode, lo_rdevice, lo_offset, lo_sizelimit.
_INFO = struct.Struct("=3Q 2Q 4I 64s 64s 32s 2Q")
DELETED = " (deleted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBacking:
    """The file or device that a loop device reads and writes, as the driver reports it.

    Attributes:
        file: device and inode of the file behind it; None if that is a block device.
        device: number of the block device behind it; None if that is a file.
        offset_bytes: the loop device's beginning in it.
        size_limit_bytes: the loop device's size in it; 0: all.
    """

    file: FileId | None
    device: int | None
    offset_bytes: int
    size_limit_bytes: int

    def __str__(self) -> str:
        if self.file is not None:
            what = f"inode {self.file[1]} on {_numbers(self.file[0])}"
        else:
            what = f"block device {_numbers(self.device or 0)}"
        limit = f", {self.size_limit_bytes} bytes of it" if self.size_limit_bytes else ""
        return f"{what} from byte {self.offset_bytes}{limit}"


def _numbers(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop device in use.

    Attributes:
        number: its own device number.
        backing: device and inode of the file behind it; None if not known, or if the driver reports a device.
        backing_device: device number if a block device is behind it.
        says: the name of the file or device behind it, as the kernel remembers it; for people.
        asked: whether the driver itself answered; otherwise the name was looked up.
    """

    name: str
    number: int
    backing: FileId | None
    backing_device: int | None
    says: str
    asked: bool


def find_loops(sys_root: Path, dev_root: Path = DEV_ROOT) -> tuple[Loop, ...]:
    """Return all loop devices that have a file or device behind them."""
    loops = []
    for entry in sorted(sys_root.glob("block/loop*/loop/backing_file")):
        folder = entry.parent.parent
        number = device_number(folder)
        if number is not None:
            loops.append(_describe(folder.name, number, exact_text(entry) or "", dev_root))
    return tuple(loops)


def _describe(name: str, number: int, says: str, dev_root: Path) -> Loop:
    asked = _ask(dev_root / name, number)
    backing, device = _look_up(says) if asked is None else (asked.file, asked.device)
    return Loop(
        name=name,
        number=number,
        backing=backing,
        backing_device=device,
        says=says,
        asked=asked is not None,
    )


def _ask(node: Path, number: int) -> LoopBacking | None:
    """Ask the driver about the loop device of that number; None if it cannot be asked."""
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISBLK(status.st_mode) or status.st_rdev != number:
            return None
        return ask_backing(descriptor)
    finally:
        os.close(descriptor)


def ask_backing(descriptor: int) -> LoopBacking | None:
    """Ask an open loop device or its partition for its backing; None if it is none, or does not answer.

    The kernel encodes device numbers in this struct (huge_encode_dev) as it does for stat.
    """
    try:
        answer = fcntl.ioctl(descriptor, LOOP_GET_STATUS64, bytes(_INFO.size))
    except OSError:
        return None
    device, inode, block_device, offset_bytes, size_limit_bytes = _INFO.unpack(answer)[:5]
    return LoopBacking(
        file=None if block_device else (device, inode),
        device=block_device or None,
        offset_bytes=offset_bytes,
        size_limit_bytes=size_limit_bytes,
    )


def _look_up(says: str) -> tuple[FileId | None, int | None]:
    """Look up the backing by the name that sysfs shows, which may be a deleted file's."""
    for name in (says, says.removesuffix(DELETED)):
        try:
            status = os.stat(name)
        except (OSError, ValueError):
            continue
        device = status.st_rdev if stat.S_ISBLK(status.st_mode) else None
        return (status.st_dev, status.st_ino), device
    return None, None
