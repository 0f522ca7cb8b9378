"""Sense data of a SCSI device. In sense data, the device reports that a format or sanitize is running (SPC-6, section
4.4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from tkperf.model.errors import EngineError
from tkperf.system.process import RunTool, run_command

SENSE_LIMIT_S = 30.0
# The denominator of a progress indication.
PROGRESS_PARTS = 65536
# Additional sense codes (ASC) with their qualifiers (ASCQ), for a running format and a running sanitize.
ERASE_IN_PROGRESS = {(0x04, 0x04): "format", (0x04, 0x1B): "sanitize"}
# A device that is not ready reports these codes while it starts, formats, rebuilds, tests or sanitizes itself. Other
# states, such as a missing medium (3Ah) or a start that needs a command (04h/02h), do not end without an action.
_BECOMING_READY = {(0x04, qualifier) for qualifier in (0x01, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x1B)}
# This code means: medium format corrupted, format command failed, sanitize command failed, or a similar failure.
FORMAT_FAILED = 0x31


class SenseKey(IntEnum):
    """The sense keys that tkperf distinguishes."""

    NO_SENSE = 0x0
    RECOVERED_ERROR = 0x1
    NOT_READY = 0x2
    UNIT_ATTENTION = 0x6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sense:
    """The sense key, the additional sense code (ASC) with its qualifier (ASCQ), and the progress
    indication if the device reports one.
    """

    key: int
    code: int
    qualifier: int
    progress: float | None = None

    @property
    def erase_under_way(self) -> str | None:
        """Return ``format`` or ``sanitize`` if the device is executing this operation."""
        if self.key not in (SenseKey.NO_SENSE, SenseKey.NOT_READY):
            return None
        return ERASE_IN_PROGRESS.get((self.code, self.qualifier))

    @property
    def erase_failed(self) -> bool:
        return self.code == FORMAT_FAILED

    @property
    def is_ready(self) -> bool:
        """Return whether the device runs no operation and reports no state in which a command would fail."""
        idle = self.key in (SenseKey.NO_SENSE, SenseKey.RECOVERED_ERROR)
        return idle and not self.erase_failed and self.erase_under_way is None

    @property
    def is_passing(self) -> bool:
        """Return whether the state is temporary. The state is temporary if the device becomes ready after some time, or
        if the device reports an event only once.
        """
        if self.key == SenseKey.NOT_READY:
            return (self.code, self.qualifier) in _BECOMING_READY
        return self.key == SenseKey.UNIT_ATTENTION and not self.erase_failed

    def __str__(self) -> str:
        return f"sense key {self.key:x}h, additional sense {self.code:02x}h/{self.qualifier:02x}h"


def read_sense(path: str, *, run: RunTool = run_command) -> Sense:
    """Return the sense data of a device. A device reports sense data even while it erases itself.

    ``sg_requests --progress`` does not show whether an erase succeeded. After a failed erase, this command prints
    nothing and exits with 0, as it does after a successful erase.

    Raises:
        EngineError: sg_requests is missing or does not end, or the device returns no sense data.
    """
    argv = ["sg_requests", "--hex", path]
    done = run(argv, timeout_s=SENSE_LIMIT_S)
    sense = parse_sense(done.stdout)
    if done.exit_status != 0 or sense is None:
        raise EngineError(
            f"'{' '.join(argv)}' printed no sense data (exit status {done.exit_status}): {done.words[:200]}"
        )
    return sense


def parse_sense(printed: str) -> Sense | None:
    """Parse a dump of sense data in fixed or descriptor format. Return None for any other text.

    Each line of the dump contains an address and up to 16 bytes, all in hexadecimal digits.
    """
    data = bytearray()
    for line in printed.splitlines():
        match = re.fullmatch(r"\s*[0-9a-f]+((?:\s+[0-9a-f]{2}){1,16})\s*", line)
        if match is None:
            return None
        data += bytes.fromhex(match[1])
    response = data[0] & 0x7F if data else 0
    if response in (0x70, 0x71) and len(data) >= 14:
        known = len(data) >= 18 and bool(data[15] & 0x80)
        parts = int.from_bytes(data[16:18]) if known else None
        return _sense(data[2] & 0xF, data[12], data[13], parts)
    if response in (0x72, 0x73) and len(data) >= 8:
        return _sense(data[1] & 0xF, data[2], data[3], _find_progress(bytes(data[8 : 8 + data[7]])))
    return None


def _sense(key: int, code: int, qualifier: int, parts: int | None) -> Sense:
    # With other sense keys, the same bytes have another meaning.
    if key not in (SenseKey.NO_SENSE, SenseKey.NOT_READY):
        parts = None
    progress = None if parts is None else parts / PROGRESS_PARTS
    return Sense(key=key, code=code, qualifier=qualifier, progress=progress)


def _find_progress(descriptors: bytes) -> int | None:
    """Return the progress indication from descriptor type 2 (sense key specific) or Ah (another progress
    indication).
    """
    at = 0
    while at + 8 <= len(descriptors):
        kind, length = descriptors[at], descriptors[at + 1]
        if kind == 0x2 and descriptors[at + 4] & 0x80:
            return int.from_bytes(descriptors[at + 5 : at + 7])
        if kind == 0xA:
            return int.from_bytes(descriptors[at + 6 : at + 8])
        at += 2 + length
    return None
