"""Purge methods that work on any bus: the kernel's discard, zeroes and hole punching, and a vendor's tool."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shlex
import struct
from pathlib import Path

from tkperf.device.permit import ErasePermit
from tkperf.device.purge.base import Offer, PurgeMethod, PurgeRefusal, PurgeWatch, run_tool
from tkperf.device.sysfs import binary, number
from tkperf.model.errors import DeviceError, UsageError, reason_of
from tkperf.system.process import find_program

BLKDISCARD = 0x1277
BLKZEROOUT = 0x127F
FALLOC_FL_KEEP_SIZE = 0x01
FALLOC_FL_PUNCH_HOLE = 0x02
# A device is erased in chunks of about 1/64 of its capacity, but of at least 1 GiB. A drive can erase such a chunk
# efficiently, and tkperf can show the progress after each chunk.
CHUNKS = 64
LEAST_CHUNK_BYTES = 1 << 30
# Byte 5, bits 2 to 4, of the logical block provisioning VPD page (SBC-4): whether unmapped blocks read as zeros.
LBPRZ_BITS = 0x1C
# A vendor's tool may overwrite a whole large drive. The tools do not report how long they need, so this limit applies
# to all of them.
VENDOR_LIMIT_S = 24 * 3600.0


def offer_discard(disk: Path) -> tuple[Offer, ...]:
    """Return the methods that the kernel offers for a disk. ``disk`` is the disk's folder in sysfs."""
    zeroes = PurgeMethod(
        name="write-zeroes",
        title="zeroes written to the whole device",
        reads_zero=True,
        automatic=False,
        act=lambda permit, watch: _in_chunks(permit, BLKZEROOUT, watch),
    )
    if not number(disk / "queue/discard_max_bytes"):
        return (PurgeRefusal(name="discard", because="it supports no discard (TRIM/UNMAP)"), zeroes)
    discard = PurgeMethod(
        name="discard",
        title="block discard (TRIM/UNMAP) of the whole device",
        reads_zero=_reads_zero(disk),
        act=lambda permit, watch: _in_chunks(permit, BLKDISCARD, watch),
    )
    return (discard, zeroes)


def _reads_zero(disk: Path) -> bool:
    page = binary(disk / "device/vpd_pgb2")
    return len(page) > 5 and bool(page[5] & LBPRZ_BITS)


def _in_chunks(permit: ErasePermit, request: int, watch: PurgeWatch) -> None:
    capacity_bytes = permit.identity.capacity_bytes
    chunk_bytes = max(LEAST_CHUNK_BYTES, capacity_bytes // CHUNKS)
    chunk_bytes -= chunk_bytes % LEAST_CHUNK_BYTES
    for start in range(0, capacity_bytes, chunk_bytes):
        length = min(chunk_bytes, capacity_bytes - start)
        permit.require_in_use()
        try:
            fcntl.ioctl(permit.descriptor, request, struct.pack("QQ", start, length))
        except OSError as error:
            what = "discarding" if request == BLKDISCARD else "writing zeroes to"
            raise DeviceError(
                f"{what} {permit.identity.path} failed at byte {start}: {reason_of(error)}. Choose another method "
                "with --purge, or pass --no-purge. Every result will then state that the device was not purged"
            ) from error
        watch.progress((start + length) / capacity_bytes)


def offer_hole_punching() -> PurgeMethod:
    """Return the purge method for files. After this purge, the first write to an address allocates new blocks, like the
    first write to an address of a purged drive.
    """
    return PurgeMethod(name="hole-punching", title="hole punched in the scratch file", reads_zero=True, act=_punch_hole)


def _punch_hole(permit: ErasePermit, _watch: PurgeWatch) -> None:
    permit.require_in_use()
    libc = ctypes.CDLL(None, use_errno=True)
    mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
    size = ctypes.c_int64(permit.identity.capacity_bytes)
    if libc.fallocate(permit.descriptor, mode, ctypes.c_int64(0), size) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise DeviceError(
            f"{permit.identity.path} cannot be purged by punching a hole ({reason}). Use another file system, or pass "
            "--no-purge. Every result will then state that the device was not purged"
        )


def offer_command(command: str) -> PurgeMethod:
    """Return a vendor's command as a purge method. In the command, tkperf replaces ``{device}`` by the device's
    path.

    Raises:
        UsageError: the command does not contain ``{device}``, is not a command line, or its program is missing.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--purge-command '{command}': {error}") from None
    if not words or not any("{device}" in word for word in words):
        raise UsageError(
            f"--purge-command '{command}' must name the device as {{device}}, for example "
            "'isdct delete -f -intelssd {device}'"
        )
    if find_program(words[0]) is None:
        raise UsageError(f"--purge-command: the program '{words[0]}' is not installed")

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        # Many such tools open the device exclusively, so tkperf releases its own exclusive hold.
        permit.lend()
        try:
            device = permit.named_handle()
            argv = [word.replace("{device}", device.path) for word in words]
            run_tool(device, argv, limit_s=VENDOR_LIMIT_S, on_tick=lambda: watch.progress(None), must_finish=True)
        finally:
            permit.take_back()

    return PurgeMethod(name="command", title=f"command '{command}'", reads_zero=False, act=act)
