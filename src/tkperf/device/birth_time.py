"""The time when a file was made (statx(2), ``stx_btime``), which Python 3.11 does not read."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

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
