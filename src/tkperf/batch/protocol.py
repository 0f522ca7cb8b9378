"""Messages between a batch and the processes of its drives, over a pair of sockets that ends with either side."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import ClassVar, TypeAlias

import msgspec

from tkperf.model.batch_state import BatchPlace, DriveShown
from tkperf.model.drive_path import DrivePath

# Less than what a socket takes at once; a message with more is cut by its sender.
MOST_BYTES = 150_000


class Held(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A drive's process has looked at its drive and holds it: what it found, before consent.

    Attributes:
        resumed: how its run goes on; empty for a new run.
        shortest_s, longest_s: bounds of the run's length.
        jobs: most threads of fio in a step.
        way: the drive's links up to the CPU, under the run's name.
        warnings: warnings that the user sees before consent.
    """

    shown: DriveShown
    shortest_s: float
    longest_s: float
    jobs: int
    way: DrivePath
    resumed: str = ""
    warnings: tuple[str, ...] = ()


class Begun(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The drive's run is in its run file: it needs the batch no more."""


class Repeatable(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The drive's run is done; its process still holds it, to measure it once more alone on the next word to begin."""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The drive's process ends, with this exit code and reason; empty: its run is done."""

    exit_code: int
    text: str = ""


class ReadsDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Bytes per second of reads, second by second; ``text``: why there are none."""

    bytes_per_s: tuple[float, ...] = ()
    text: str = ""


class Read(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Read the held drive for some seconds."""

    seconds: int


class Go(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The user's consent for one drive, and the word to begin.

    Attributes:
        digest: digest of what the user was shown of this drive.
        answer: the text that confirms its erasure; None: nothing is lost.
        place: the drive's place in its batch, for the result.
        siblings: processes of the batch's other drives.
        repeatable: hold the drive after its run, for another one alone.
    """

    digest: str
    answer: str | None
    place: BatchPlace
    siblings: tuple[int, ...] = ()
    repeatable: bool = False


FromDrive: TypeAlias = Held | Begun | Repeatable | Ended | ReadsDone
ToDrive: TypeAlias = Read | Go


class Channel:
    """One end of the pair of sockets between a batch and a drive's process."""

    _from_drive: ClassVar = msgspec.json.Decoder(FromDrive)
    _to_drive: ClassVar = msgspec.json.Decoder(ToDrive)

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: FromDrive | ToDrive) -> bool:
        """Send a message; return False if the other side has gone."""
        try:
            self._end.send(msgspec.json.encode(message))
        except OSError:
            return False
        return True

    def receive_from_drive(self) -> FromDrive | None:
        """Wait for the next message of a drive's process; None: it has gone."""
        content = self._receive()
        return None if content is None else self._from_drive.decode(content)

    def receive_from_batch(self) -> ToDrive | None:
        """Wait for the next message of the batch; None: it has gone."""
        content = self._receive()
        return None if content is None else self._to_drive.decode(content)

    def finish(self) -> None:
        """Send no more: the other side finds an end, as if this one had gone."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._end.close()

    def _receive(self) -> bytes | None:
        try:
            return self._end.recv(MOST_BYTES) or None
        except ConnectionError:
            return None


def make_channels() -> tuple[Channel, Channel]:
    """Return the batch's end and the drive's end of a new pair; programs inherit neither."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    return Channel(ours), Channel(theirs)
