"""The processes of the drives of a batch, as the batch's own process controls them."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, NoReturn, TypeAlias

import msgspec

from tkperf.analysis.batch_verdict import find_gravity
from tkperf.batch.request import BatchRequest
from tkperf.model.batch_state import BatchPlace, DriveShown
from tkperf.model.decoding import make_json_decoder
from tkperf.model.errors import (
    BY_SIGNAL,
    DeviceError,
    EngineError,
    ExitCode,
    Interrupted,
    RefusedError,
    RunFileError,
    TkperfError,
    UsageError,
    reason_of,
)
from tkperf.model.sharing import DrivePath
from tkperf.model.units import format_count
from tkperf.system.process import fork_early

# The greatest length of a message. A socket accepts a message of this length in one piece. The sender shortens longer
# messages.
MOST_BYTES = 150_000


class Held(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A message of a process that has examined its drive and holds it. The message contains the findings of the
    process, before consent.

    Attributes:
        resumed: a text about how the run continues. It is empty for a new run.
        shortest_s, longest_s: the shortest and the longest time that the run may take.
        file_bytes: the size of the run file if the run takes the longest time.
        jobs: the largest number of threads of fio in a step.
        way: the links between the drive and the CPU. In this record, the name of the run identifies the drive.
        warnings: warnings that the user sees before consent.
    """

    shown: DriveShown
    shortest_s: float
    longest_s: float
    file_bytes: int
    jobs: int
    way: DrivePath
    resumed: str = ""
    warnings: tuple[str, ...] = ()


class Begun(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A message which states that the run file contains the run of the drive. From now on, the run does not need the
    batch.
    """


class Repeatable(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A message which states that the run of the drive is complete, while its process still holds the drive. After
    another order to begin, the process measures the drive once more and alone.
    """


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A message which states that the process of the drive is ending, with this exit code and reason. The reason is
    empty if the run is complete.
    """

    exit_code: int
    text: str = ""


class ReadsDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The rate of the reads in bytes per second, for each second. ``text`` is the reason if there are no rates."""

    bytes_per_s: tuple[float, ...] = ()
    text: str = ""


class Read(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A request to read the held drive for a few seconds."""

    seconds: int


class Go(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The user's consent for one drive, and the order to begin.

    Attributes:
        digest: digest of everything that the user saw about this drive.
        answer: the text that confirms the erasure of the drive. None means that no data is lost.
        place: the drive's place in its batch, for the result.
        siblings: processes of the other drives of the batch.
        repeatable: whether to hold the drive after its run, for a second run in which the drive is measured alone.
    """

    digest: str
    answer: str | None
    place: BatchPlace
    siblings: tuple[int, ...] = ()
    repeatable: bool = False


FromDrive: TypeAlias = Held | Begun | Repeatable | Ended | ReadsDone
ToDrive: TypeAlias = Read | Go


class Channel:
    """One end of the pair of sockets between a batch and the process of a drive."""

    _from_drive: ClassVar = make_json_decoder(FromDrive)
    _to_drive: ClassVar = make_json_decoder(ToDrive)

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: FromDrive | ToDrive) -> bool:
        """Send a message. Return False if the other side has ended."""
        try:
            self._end.send(msgspec.json.encode(message))
        except OSError:
            return False
        return True

    def receive_from_drive(self) -> FromDrive | None:
        """Wait for the next message from a drive's process. None means that the process has ended."""
        content = self._receive()
        return None if content is None else self._from_drive.decode(content)

    def receive_from_batch(self) -> ToDrive | None:
        """Wait for the next message from the batch. None means that the process of the batch has ended."""
        content = self._receive()
        return None if content is None else self._to_drive.decode(content)

    def finish(self) -> None:
        """Close this side for sending. The other side sees the end of the connection, as if this process had ended."""
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
    """Return both ends of a new pair of sockets: the end of the batch and the end of the drive. Other programs inherit
    neither of them.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    return Channel(ours), Channel(theirs)


# The longest time, in s, for the examination of a drive before consent. The drive may have to wake up, and the remains
# of a purge may have to be cleared.
LOOK_LIMIT_S = 180.0
# The time, in s, within which a process must end after its channel was closed.
_LAST_MOMENT_S = 10.0
KINDS: Mapping[int, type[TkperfError]] = {
    kind.exit_code: kind for kind in (UsageError, RefusedError, DeviceError, EngineError, RunFileError, Interrupted)
}
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True, kw_only=True)
class DriveProcess:
    """The process of one drive.

    Attributes:
        held: the findings of the process about its drive.
        ended: the message about the end of the process.
        begun: whether the run file contains the run.
        repeats: whether the run is complete and the process holds its drive for a second run.
    """

    number: int
    channel: Channel
    pid: int
    held: Held | None = None
    ended: Ended | None = None
    reads: ReadsDone | None = None
    has_gone: bool = False
    begun: bool = False
    repeats: bool = False

    @property
    def found(self) -> Held:
        """Return the state of the held drive, as its process reported it."""
        assert self.held is not None, "the drive was looked at"
        return self.held

    @property
    def shown(self) -> DriveShown:
        return self.found.shown

    @property
    def waits(self) -> bool:
        """Return whether the process holds its drive and has not received the order to begin."""
        return self.held is not None and not self.has_gone and self.ended is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


class DriveProcesses:
    """The processes of the drives of a batch, one for each drive.

    Args:
        work: the function that each process executes. Its arguments are the number of the drive and the channel of the
            process. The function never returns.
    """

    def __init__(self, numbers: Sequence[int], work: Callable[[int, Channel], NoReturn]) -> None:
        """Fork all processes. Call this method before this process has threads, open files or views that the new
        processes would inherit.

        Raises:
            RefusedError: the limits of this process do not allow enough open files or processes.
        """
        self.members: list[DriveProcess] = []
        self._poll = select.poll()
        self._by_descriptor: dict[int, DriveProcess] = {}
        try:
            for number in numbers:
                self._start(number, work)
        except OSError as error:
            self.dismiss()
            count = format_count(len(numbers), "drive")
            raise RefusedError(
                f"{count} need one process each, but process number {len(self.members) + 1} cannot be started: "
                f"{reason_of(error)}. Check the limits ulimit -n and ulimit -u. Nothing was touched"
            ) from error

    def _start(self, number: int, work: Callable[[int, Channel], NoReturn]) -> None:
        ours, theirs = make_channels()
        # Python loses a signal that arrives while it prepares a new process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            pid = fork_early()
        except BaseException:
            ours.close()
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            raise
        if pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                # If a process had a copy of another process's channel, that channel would stay open, and the other
                # process would not detect the end of the batch.
                ours.close()
                for member in self.members:
                    member.channel.close()
                work(number, theirs)
            finally:
                # The child must never return into the parent's code, even after an exception.
                os._exit(ExitCode.DEFECT)
        theirs.close()
        member = DriveProcess(number=number, channel=ours, pid=pid)
        self.members.append(member)
        self._by_descriptor[ours.fileno()] = member
        self._poll.register(ours.fileno(), select.POLLIN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def gather(self, on_wait: Callable[[Sequence[DriveProcess]], None] = lambda _: None) -> None:
        """Wait until every process holds its drive or has ended. ``on_wait`` is called each second with the processes
        that are not ready yet.
        """
        until_s = time.monotonic() + LOOK_LIMIT_S
        while looking := [one for one in self.members if one.held is None and not one.has_gone]:
            if not self.listen(1.0):
                on_wait(looking)
            if time.monotonic() > until_s:
                for member in looking:
                    self._give_up(member, f"no answer within {LOOK_LIMIT_S:.0f} s")

    def require_sound(self, request: BatchRequest) -> None:
        """Refuse the whole batch if the process of one drive has ended before the order to begin.

        Raises:
            TkperfError: an error of the type of the most serious fault. The error lists all faults.
        """
        while self.listen(0):  # a process may have ended a moment ago
            pass
        faults = [(one, one.ended) for one in self.members if one.ended and not one.begun]
        if not faults:
            return
        gravest = min((ended.exit_code for _, ended in faults), key=find_gravity)
        texts = []
        for one, ended in faults:
            device = request.drives[one.number - 1].request.device
            texts.append(ended.text if device in ended.text else f"{device}: {ended.text}")
        kind = KINDS.get(gravest, RefusedError)
        count = format_count(len(self.members), "drive")
        raise kind(f"{len(faults)} of {count} cannot be measured, so no drive was touched: {'; '.join(texts)}")

    def read(self, members: Iterable[DriveProcess], seconds: int) -> None:
        """Order the processes to read their drives at the same time. Afterwards, ``reads`` of each process contains the
        rates of its drive.
        """
        asked = [one for one in members if one.waits]
        for member in asked:
            member.reads = None
            member.channel.send(Read(seconds=seconds))
        until_s = time.monotonic() + seconds + 60
        while any(one.reads is None and not one.has_gone for one in asked):
            self.listen(1.0)
            if time.monotonic() > until_s:
                break

    def begin(self, member: DriveProcess, go: Go) -> None:
        """Order a process to begin its run. If the process has already ended, ``listen`` detects this."""
        member.repeats = False
        member.channel.send(go)

    def listen(self, timeout_s: float) -> list[DriveProcess]:
        """Wait for messages for up to the given time. Return the processes that sent a message."""
        heard = []
        for descriptor, _ in self._poll.poll(timeout_s * 1000):
            member = self._by_descriptor[descriptor]
            self._take(member)
            heard.append(member)
        return heard

    def _take(self, member: DriveProcess) -> None:
        try:
            message = member.channel.receive_from_drive()
        except msgspec.DecodeError:  # the message is incomplete, or is from a different version
            return
        match message:
            case Held():
                member.held = message
            case Begun():
                member.begun = True
            case Repeatable():
                member.repeats = True
            case ReadsDone():
                member.reads = message
            case Ended():
                member.ended = message
            case None:
                self._see_off(member)

    def _see_off(self, member: DriveProcess) -> None:
        """Record the end of a process after the process has closed its channel."""
        descriptor = member.channel.fileno()
        self._poll.unregister(descriptor)
        del self._by_descriptor[descriptor]
        member.channel.close()
        member.has_gone = True
        status = _wait_for(member.pid)
        if member.ended is None:
            code, how = int(ExitCode.DEFECT), "its process has gone"
            if status is not None and status < 0:
                code, how = BY_SIGNAL - status, f"its process was killed by signal {-status}"
            member.ended = Ended(exit_code=code, text=how)

    def _give_up(self, member: DriveProcess, text: str) -> None:
        member.signal(signal.SIGKILL)
        member.ended = Ended(exit_code=ExitCode.DEVICE, text=text)
        self._see_off(member)

    @property
    def has_gone(self) -> bool:
        """Return whether all processes have ended."""
        return all(one.has_gone for one in self.members)

    def dismiss(self) -> None:
        """End the processes whose runs have not begun, and wait for these processes. When the channel of a process is
        closed, the user's consent for its drive is no longer valid.
        """
        for member in self.members:
            if not member.begun and not member.has_gone:
                member.channel.finish()
                member.signal(signal.SIGINT)
        until_s = time.monotonic() + _LAST_MOMENT_S
        while any(not one.has_gone and not one.begun for one in self.members):
            self.listen(0.2)
            if time.monotonic() > until_s:
                break

    def stop(self) -> None:
        """Ask all processes to shut down cleanly, as Ctrl-C would."""
        for member in self.members:
            if not member.has_gone:
                member.signal(signal.SIGINT)


def _wait_for(pid: int) -> int | None:
    """Return the exit code of a child process that is ending. The code is negative if a signal ended the process. None
    means that the process has not ended in time, or that its exit code is not available.
    """
    until_s = time.monotonic() + _LAST_MOMENT_S
    while time.monotonic() < until_s:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None
