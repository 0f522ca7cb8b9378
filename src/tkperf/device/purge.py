"""Purge: put a target in "as new" state (PTS User Guide, section 6).

So far by discarding: TRIM/UNMAP for block devices that take it, hole punching for files, whose
blocks are then allocated anew by the first write, as flash is.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from pathlib import Path

from tkperf.device.identity import TargetKind, disk_node
from tkperf.device.permit import ErasePermit
from tkperf.errors import DeviceError

BLKDISCARD = 0x1277
FALLOC_FL_KEEP_SIZE = 0x01
FALLOC_FL_PUNCH_HOLE = 0x02


def purge(permit: ErasePermit) -> str:
    """Erase the whole permitted target; returns the method for the report.

    Raises:
        DeviceError: the target has no method tkperf knows, or the method failed.
        RefusedError, DeviceError: the permit no longer holds.
    """
    permit.recheck()
    if permit.identity.kind is TargetKind.FILE:
        return _punch_hole(permit)
    return _discard(permit)


def _punch_hole(permit: ErasePermit) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
    size = ctypes.c_int64(permit.identity.capacity_bytes)
    if libc.fallocate(permit.hold, mode, ctypes.c_int64(0), size) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise DeviceError(
            f"{permit.identity.path} cannot be purged by punching a hole ({reason}): use another "
            "file system, or --no-purge, which every result will disclose"
        )
    return "hole punched in the scratch file"


def _discard(permit: ErasePermit) -> str:
    identity = permit.identity
    node = disk_node(Path("/sys/dev/block") / (identity.major_minor or ""))
    try:
        supported = int((node / "queue/discard_max_bytes").read_text()) > 0
    except (OSError, ValueError):
        supported = False
    advice = "use --no-purge after purging it yourself, which every result will disclose"
    if not supported:
        raise DeviceError(f"{identity.path} takes no discard (TRIM/UNMAP): {advice}")
    try:
        fcntl.ioctl(permit.hold, BLKDISCARD, struct.pack("QQ", 0, identity.capacity_bytes))
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "")
        raise DeviceError(
            f"discarding {identity.path} failed: {error.strerror} {name}; {advice}"
        ) from error
    return "block discard (TRIM/UNMAP) of the whole device"
