"""Verification of a purge: tkperf reads the device and trusts no exit status."""

from __future__ import annotations

import hashlib
import mmap
import os
from dataclasses import dataclass
from typing import Self

from tkperf.device.permit import ErasePermit
from tkperf.model.errors import DeviceError, reason_of

SAMPLES = 128
SAMPLE_BYTES = 4096
_ZEROS = hashlib.blake2b(bytes(SAMPLE_BYTES)).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of checking a purge, in words for the report."""

    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """Digests of samples spread evenly over a device, by offset; None if reading failed."""

    path: str
    digests: dict[int, bytes | None]

    def compare(self, after: Self, *, method: str, reads_zero: bool) -> Verification:
        """Judge a purge by the samples before and after it.

        Raises:
            DeviceError: the device still holds its former data, or does not read as the zeros that
                it promises.
        """
        readable = {at: digest for at, digest in after.digests.items() if digest is not None}
        had_data = {
            at for at, digest in self.digests.items() if digest is not None and digest != _ZEROS
        }
        kept = [at for at in had_data if after.digests[at] == self.digests[at]]
        if kept:
            raise DeviceError(
                f"{self.path} still holds its data after {method}, although that reported "
                f"success: {len(kept)} of {len(had_data)} samples are unchanged, the first at "
                f"byte {min(kept)}. Choose another method with --purge"
            )
        zeros = sum(digest == _ZEROS for digest in readable.values())
        if reads_zero and zeros < len(self.digests):
            raise DeviceError(
                f"{self.path} promises to read as zeros after {method}, but "
                f"{len(self.digests) - zeros} of {len(self.digests)} samples do not. Choose "
                "another method with --purge"
            )
        if zeros == len(self.digests):
            return Verification(text=f"verified: all {zeros} samples read as zeros")
        if had_data:
            return Verification(
                text=f"verified: none of {len(had_data)} samples holds its former data"
            )
        return Verification(text="not verifiable: there was nothing but zeros before")


def look_at(permit: ErasePermit) -> Look:
    """Read samples past the page cache, with the first and the last block.

    Raises:
        DeviceError: the device cannot be opened.
    """
    identity = permit.identity
    last = identity.capacity_bytes - SAMPLE_BYTES
    offsets = sorted(
        {
            offset - offset % identity.logical_block_bytes
            for offset in (last * index // (SAMPLES - 1) for index in range(SAMPLES))
        }
    )
    digests: dict[int, bytes | None] = {}
    try:
        descriptor = os.open(permit.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise DeviceError(f"{identity.path} cannot be read: {reason_of(error)}") from error
    with mmap.mmap(-1, SAMPLE_BYTES) as page:
        try:
            for offset in offsets:
                try:
                    got = os.preadv(descriptor, [page], offset)
                    digests[offset] = hashlib.blake2b(page[:got]).digest()
                except OSError:
                    digests[offset] = None
        finally:
            os.close(descriptor)
    return Look(identity.path, digests)
