"""Messages between a batch on this machine and tkperf on a host. Each message is one line of JSON, sent through the
pipe of SSH.

A line from a host is not trusted until it is decoded. Its length is limited. It must not contain unknown fields or
control characters, and each of its texts must be one line.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from typing import Annotated, Generic, TypeAlias, TypeVar

import msgspec

from tkperf.batch.drive_finder import MOST_DRIVES
from tkperf.batch.drive_processes import MOST_BYTES, Held
from tkperf.batch.request import BatchRequest
from tkperf.model.batch_state import BatchPlace, DriveStage
from tkperf.model.decoding import decode_json, make_json_decoder
from tkperf.model.errors import DeviceError
from tkperf.model.units import drop_controls
from tkperf.pipeline.run_state import Brief

PROTOCOL = 1
# One line contains the input files of up to 256 drives. A host sends one drive per line.
MOST_BYTES_OF_ORDER = 64 << 20
# The interval of messages, and the longest time without a message, in s. After this time without a message, a host
# releases its drives, because tkperf on the host has no other way to detect that the connection is broken.
HEARTBEAT_S, SILENCE_LIMIT_S = 5.0, 30.0
_PIECE_BYTES = 1 << 16
_LONGEST_TEXT = 4000

Number = Annotated[int, msgspec.Meta(ge=1, le=MOST_DRIVES)]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
FileBytes = Annotated[int, msgspec.Meta(ge=0, le=2 << 30)]


class _FromHost(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    pass


class Hello(_FromHost, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """The first line from a host. The host may have a different version of tkperf, so unknown fields are accepted.

    Attributes:
        fio_version: the version of fio. None means that there is no usable fio.
        boot_id: an id that changes whenever the host is booted.
    """

    protocol: int
    tkperf_version: str
    fio_version: str | None
    boot_id: str


class Clock(_FromHost, frozen=True, kw_only=True):
    """The time on the clock of the host when the host received the order."""

    utc_s: Annotated[float, msgspec.Meta(ge=0, le=1e11)]


class HeldDrive(_FromHost, frozen=True, kw_only=True):
    """A message about a drive that the host has now opened and locked."""

    held: Held


class Outlined(_FromHost, frozen=True, kw_only=True):
    """A message which states that the host holds all drives. The message contains the shortest and the longest time
    that the runs may take, and describes which drives are measured at the same time.
    """

    shortest_s: float
    longest_s: float
    groups: str
    notes: tuple[str, ...] = ()


class Planned(_FromHost, frozen=True, kw_only=True):
    """A part of the text that describes the plan for a host's drives."""

    text: Annotated[str, msgspec.Meta(max_length=20_000)]


class UnderWay(_FromHost, frozen=True, kw_only=True):
    """A message which states that the host needs no consent, because its batch is running or all its drives are
    finished.
    """


class Refused(_FromHost, frozen=True, kw_only=True):
    """The refusal of a host, with a reason and an exit code. It is the last message of the host."""

    exit_code: Annotated[int, msgspec.Meta(ge=1, le=255)]
    text: str


class DriveReport(_FromHost, frozen=True, kw_only=True):
    """The state of a drive, according to the ledger and the run file on its host.

    Attributes:
        started_s, ended_s: times on the clock of the host.
        again: whether the drive was measured once more and alone.
        brief: the state of the run that is in progress.
    """

    number: Number
    stage: DriveStage
    exit_code: int | None = None
    text: str = ""
    started_s: float | None = None
    ended_s: float | None = None
    place: BatchPlace | None = None
    again: bool = False
    brief: Brief | None = None


class EventReport(_FromHost, frozen=True, kw_only=True):
    """An event of a run, in the form of ``--progress json``."""

    number: Number
    event: dict[str, object]


class BatchEnded(_FromHost, frozen=True, kw_only=True):
    """A message which states that the batch is no longer running on the host."""


class Snapshot(_FromHost, frozen=True, kw_only=True):
    """A snapshot of a run file. ``size_bytes`` bytes follow this line."""

    size_bytes: FileBytes
    sha256: Digest


FromHost: TypeAlias = (
    Hello
    | Clock
    | HeldDrive
    | Outlined
    | Planned
    | UnderWay
    | Refused
    | DriveReport
    | EventReport
    | BatchEnded
    | Snapshot
)


class _ToHost(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    pass


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Those options of a batch that the hosts need for their plans and results."""

    description: str | None = None
    feature_matrix: str | None = None
    rated: str | None = None
    warranty_years: float | None = None
    rate: str | None = None
    debug: bool = False


class Begin(_ToHost, frozen=True, kw_only=True):
    """An order to examine the drives of a batch, and to hold them until consent.

    Attributes:
        request: the request for the drives of the host, each with the name that the user gave.
        files: contents of the input files that the request names. The key is the name of the file in the batch's
            folder.
        resumes: whether to continue the batch that exists on the host.
        has_begun: whether the batch must already exist on the host.
        without: runs that are omitted.
    """

    request: BatchRequest
    files: dict[str, str]
    options: Options
    resumes: bool = False
    has_begun: bool = False
    without: tuple[str, ...] = ()


class PlanBatch(_ToHost, frozen=True, kw_only=True):
    """An order to plan the batch. The host runs no test and holds no drive."""

    request: BatchRequest
    files: dict[str, str]
    options: Options
    no_probe: bool
    as_json: bool


class StillHere(_ToHost, frozen=True, kw_only=True):
    """A message which states that the user has not answered the question yet."""


class Consent(_ToHost, frozen=True, kw_only=True, tag="Answer"):
    """The user's consent. ``digests`` maps the number of each drive to the digest of everything that the user saw about
    this drive.
    """

    digests: dict[int, str]


class Follow(_ToHost, frozen=True, kw_only=True):
    """An order to report the progress of the batch until it ends. With ``events``, the host also reports every event of
    the runs.
    """

    name: str
    events: bool = False


class Fetch(_ToHost, frozen=True, kw_only=True):
    """An order to send a snapshot of a run file. It can follow ``Follow``.

    The host writes ``host`` and ``ahead_s`` into the snapshot: the name of the host on this machine, and the offset of
    the host's clock.
    """

    run: str
    host: str
    ahead_s: float


class Stop(_ToHost, frozen=True, kw_only=True):
    """An order to ask the runs of the batch to end, as Ctrl-C does. It can follow ``Follow``."""


# The texts of these messages may have several lines, because they are printed unchanged or as JSON.
_LONG = (Planned, EventReport)

ToHost: TypeAlias = Begin | PlanBatch | StillHere | Consent | Follow | Fetch | Stop

Message = TypeVar("Message")


class HostSilentError(DeviceError):
    """The connection to the other side has ended, or the other side sends no data that can be read."""


class InvalidMessageError(HostSilentError):
    """The other side sends data that is not a message."""


class Lines(Generic[Message]):
    """Messages from a pipe. Each message is checked.

    Args:
        type_: the type of the messages.
        most_bytes: the greatest length of a line.

    Attributes:
        taken_bytes: the bytes of all messages so far.
    """

    def __init__(self, descriptor: int, type_: object, most_bytes: int = MOST_BYTES) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._decoder = make_json_decoder(type_)
        self._most_bytes = most_bytes
        self._kept = bytearray()
        self._searched = 0
        self.taken_bytes = 0

    def receive(self, timeout_s: float) -> Message | None:
        """Return the next message, or None if no message arrives in time.

        Raises:
            HostSilentError: the other side has ended.
            InvalidMessageError: the line is not a message.
        """
        until_s = time.monotonic() + timeout_s
        while (end := self._kept.find(b"\n", self._searched)) < 0:
            self._searched = len(self._kept)
            if self._searched > self._most_bytes:
                raise InvalidMessageError(
                    f"the other side of the connection sent a line of more than {self._most_bytes:,} bytes"
                )
            if not self._fill(max(0.0, until_s - time.monotonic())):
                return None
        line = bytes(self._kept[:end])
        del self._kept[: end + 1]
        self._searched = 0
        self.taken_bytes += end
        try:
            if end > self._most_bytes:
                raise InvalidMessageError(
                    f"the other side of the connection sent a line of more than {self._most_bytes:,} bytes"
                )
            message: Message = self._decoder.decode(line)
            is_short = isinstance(message, _FromHost) and not isinstance(message, _LONG)
            for text in _texts(decode_json(line, object)):
                if drop_controls(text) != text or (is_short and "\n" in text):
                    raise InvalidMessageError("the other side of the connection sent a line with control characters")
                if is_short and len(text) > _LONGEST_TEXT:
                    raise InvalidMessageError(
                        f"the host sent a message with a text field longer than {_LONGEST_TEXT:,} characters. Install "
                        "the same version of tkperf on the host and on this machine"
                    )
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            fault = drop_controls(str(error))[:200]
            raise InvalidMessageError(
                f"the other side of the connection sent a line that is not a message of tkperf: {fault}"
            ) from None
        return message

    def read_bytes(self, most: int, timeout_s: float) -> bytes:
        """Return the next bytes, unchanged. The result contains at least one byte.

        Raises:
            HostSilentError: the other side has ended, or sends no data in time.
        """
        if not self._kept and not self._fill(timeout_s):
            raise HostSilentError(f"nothing came for {timeout_s:.0f} s")
        piece = bytes(self._kept[:most])
        del self._kept[:most]
        return piece

    def _fill(self, timeout_s: float) -> bool:
        """Read the bytes that have arrived. Return False if no byte has arrived in time."""
        if not self._poll.poll(timeout_s * 1000):
            return False
        try:
            piece = os.read(self._descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            raise HostSilentError(str(error)) from error
        if not piece:
            raise HostSilentError("the connection has ended")
        self._kept += piece
        return True


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def send(descriptor: int, message: FromHost | ToHost) -> None:
    """Send a complete message.

    Raises:
        HostSilentError: the other side has ended.
    """
    write_whole(descriptor, msgspec.json.encode(message) + b"\n")


def write_whole(descriptor: int, content: bytes) -> None:
    """Write all bytes to a pipe.

    Raises:
        HostSilentError: the other side has ended.
    """
    left = memoryview(content)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        raise HostSilentError(f"the connection has ended: {error.strerror}") from error
