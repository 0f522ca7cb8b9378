"""The drives and files that a loop device, RAID set or mapping uses, described by properties that a
boot does not change.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from tkperf.device.drive_numbers import read_serial, read_unit, read_wwn
from tkperf.device.sysfs import (
    SECTOR_BYTES,
    SYS_ROOT,
    device_number,
    exact_text,
    find_disk,
    find_node,
    major_minor_of,
    number,
    text,
    udev_properties,
)
from tkperf.device.usage.kernel import DEV_ROOT, LoopBacking, ask_loop

_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX_BYTES = 256
# struct statx of linux/stat.h: stx_mask is its first field; stx_btime follows 80 bytes later, in s (64 bits) and ns (32
# bits).
_MASK, _BIRTH, _BIRTH_AT = struct.Struct("=I"), struct.Struct("=qI"), 80
_NS_A_SECOND = 1_000_000_000


def read_birth_time_ns(descriptor: int) -> int | None:
    """Return when an open file was made, in ns since 1970; None if the file system or this C
    library does not report the time.

    File systems with 32-bit inodes reuse a number as soon as it is free, so the inode alone does not identify a file.
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
    """Return when the file of this path was made; None if the time is not known, or if the path
    leads to another file.

    Args:
        file: device and inode that the file must have.
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


# Largest number of devices on top of each other, such as a mapping on a mapping on a set. No host
# has this many.
_MOST_LAYERS = 16


def describe_underlying(
    disk: Path, backing: LoopBacking | None = None, *, sys_root: Path = SYS_ROOT
) -> tuple[str, ...]:
    """Return a text for each drive or file that a whole device uses, in alphabetical order.

    The texts contain no device numbers, and no names that the kernel assigns in the order of
    discovery, unless a device reports nothing else.

    Args:
        disk: the sysfs folder of the device.
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
    """Describe a drive or partition by its numbers. Describe a RAID set, mapping or loop device by
    the devices that it uses.
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
