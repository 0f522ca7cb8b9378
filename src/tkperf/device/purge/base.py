"""The types of purge methods, the functions that execute and monitor tools, and the verification that the data is
erased.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tkperf.device.content import SAMPLE_BYTES, read_samples
from tkperf.device.hold import Handle
from tkperf.device.permit import ErasePermit
from tkperf.device.sysfs import wait_until
from tkperf.model.errors import DeviceError, EngineError, reason_of
from tkperf.model.record import OnNote, OnProgress
from tkperf.system.process import Completed, run_command

# An idle drive answers a query about its state immediately, and a busy drive answers within seconds.
QUERY_LIMIT_S = 30.0
SANITIZE_LIMIT_S = 24 * 3600.0
_POLL_S = 2.0
SAMPLES = 128
_ZEROS = hashlib.blake2b(bytes(SAMPLE_BYTES)).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeWatch:
    """The functions that a purge calls to report its progress.

    ``progress`` is called about once a second with the finished share (0..1), or with None if the device does not
    report the share. ``note`` is called with a stable code and a text that must be recorded *before* the purge
    continues. ``note`` returns when the record is durable.
    """

    progress: OnProgress = lambda _share: None
    note: OnNote = lambda _code, _text: None


NO_WATCH = PurgeWatch()


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMethod:
    """A method to erase a device. ``act`` returns when the purge is complete, or raises an error.

    ``reads_zero`` is true if the device guarantees that it reads as zeros afterwards. ``automatic`` is true if tkperf
    may choose the method without a request by the user.
    """

    name: str
    title: str
    reads_zero: bool
    act: Callable[[ErasePermit, PurgeWatch], None]
    automatic: bool = True

    @property
    def overwrites(self) -> bool:
        """Return whether this purge leaves the device overwritten instead of in the "as new" state. tkperf then does
        not expect the device to be fast at the beginning.
        """
        return self.name == "write-zeroes" or self.name.endswith("-overwrite")


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRefusal:
    """A method that a device does not support or that tkperf must not use, with the reason."""

    name: str
    because: str


Offer = PurgeMethod | PurgeRefusal


def run_tool(
    device: Handle,
    argv: list[str],
    *,
    limit_s: float,
    on_tick: Callable[[], None] = lambda: None,
    must_finish: bool = False,
) -> Completed:
    """Execute a tool that erases the device. The tool inherits the lock on the device and must exit with status 0.

    Raises:
        DeviceError: the tool is missing, has failed, or took too long.
    """
    try:
        done = run_command(
            argv, timeout_s=limit_s, on_tick=on_tick, must_finish=must_finish, inherit=device.descriptors
        )
    except EngineError as error:
        raise DeviceError(f"purging {device.name} failed: {error}") from error
    if done.exit_status != 0:
        output = done.words.replace(device.path, device.name)
        called = " ".join(argv).replace(device.path, device.name)
        raise DeviceError(
            f"purging {device.name} failed: '{called}' ended with status {done.exit_status}"
            + (f": {output[:300]}" if output else "")
        )
    return done


def wait_for_end(device: Handle, what: str, is_done: Callable[[], bool], *, limit_s: float) -> None:
    """Wait until a purge that the drive itself executes has ended. The drive continues this purge even if tkperf ends.

    Raises:
        DeviceError: the purge takes too long, or the drive cannot be queried.
    """
    try:
        ended = wait_until(is_done, limit_s=limit_s, every_s=_POLL_S)
    except EngineError as error:
        raise DeviceError(f"purging {device.name}: {error}") from error
    if not ended:
        raise DeviceError(f"{what} {device.name} did not end within {limit_s / 3600:g} h")


@dataclass(frozen=True, slots=True)
class SampledContent:
    """Digests of samples at equal distances over the whole device. The offset of the sample is the key. None means that
    the sample could not be read.
    """

    path: str
    digests: dict[int, bytes | None]

    def compare(self, after: Self, *, method: str, reads_zero: bool) -> str:
        """Compare the samples before and after a purge. Return the result as a text for the report.

        A sample that cannot be read is no evidence. In this case, the purge counts as not verified.

        Raises:
            DeviceError: the device still contains its former data, or does not read as zeros although it guarantees
                zeros.
        """
        had_data = {at for at, digest in self.digests.items() if digest not in (None, _ZEROS)}
        kept = [at for at in had_data if after.digests[at] == self.digests[at]]
        if kept:
            raise DeviceError(
                f"{self.path} still contains its data after {method}, although the purge reported success: "
                f"{len(kept)} of {len(had_data)} samples are unchanged, the first at byte {min(kept)}. Choose another "
                "method with --purge"
            )
        zeros = sum(digest == _ZEROS for digest in after.digests.values())
        if reads_zero and zeros < len(self.digests):
            raise DeviceError(
                f"{self.path} reports that it returns zeros after {method}, but {len(self.digests) - zeros} of "
                f"{len(self.digests)} samples are not zero. Choose another method with --purge"
            )
        unread = [
            at
            for at, digest in after.digests.items()
            if digest is None or (self.digests[at] is None and digest != _ZEROS)
        ]
        if unread:
            return f"not verified: {len(unread)} of {len(self.digests)} samples could not be read"
        if zeros == len(self.digests):
            return f"verified: all {zeros} samples read as zeros"
        if had_data:
            return f"verified: none of {len(had_data)} samples holds its former data"
        return "not verifiable: there was nothing but zeros before"


def sample_content(permit: ErasePermit) -> SampledContent:
    """Return samples from the whole device, including the first and the last block. The reads bypass the page cache.

    Raises:
        DeviceError: the device cannot be opened.
    """
    identity = permit.identity
    last = identity.capacity_bytes - SAMPLE_BYTES
    evenly = (last * index // (SAMPLES - 1) for index in range(SAMPLES))
    offsets = sorted({offset - offset % identity.logical_block_bytes for offset in evenly})
    digests: dict[int, bytes | None] = {}
    try:
        descriptor = os.open(permit.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise DeviceError(f"{identity.path} cannot be read: {reason_of(error)}") from error
    try:
        for offset, data in read_samples(descriptor, ((each, SAMPLE_BYTES) for each in offsets)):
            digests[offset] = None
            if isinstance(data, bytes) and len(data) == SAMPLE_BYTES:
                digests[offset] = hashlib.blake2b(data).digest()
    finally:
        os.close(descriptor)
    return SampledContent(identity.path, digests)
