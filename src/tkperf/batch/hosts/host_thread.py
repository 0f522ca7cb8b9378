"""A thread for each host of a batch. The thread reports the drives of the host, waits for the user's answer, follows
the runs, and fetches the run files.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from queue import Empty, Queue, SimpleQueue

from msgspec.structs import replace

from tkperf.batch.drive_processes import LOOK_LIMIT_S, Held
from tkperf.batch.hosts.messages import (
    HEARTBEAT_S,
    SILENCE_LIMIT_S,
    BatchEnded,
    Begin,
    Consent,
    DriveReport,
    EventReport,
    Fetch,
    Follow,
    FromHost,
    HeldDrive,
    HostSilentError,
    Outlined,
    Refused,
    Snapshot,
    StillHere,
    Stop,
    UnderWay,
)
from tkperf.batch.hosts.ssh import HostRefusedError, RemoteHost, SshConnection
from tkperf.batch.ledger import RemoteDriveLine, again_path
from tkperf.model.batch_state import ConnectedHost, DriveStage, find_snapshot
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import RunFileError, TkperfError, reason_of
from tkperf.pipeline.run_state import Brief
from tkperf.runfile.reader import RunFile
from tkperf.system.host import now_utc

SNAPSHOT_EVERY_S = 1800.0
# A host may read the held drives for some time before its batch begins.
BEGIN_LIMIT_S = 120.0
SNAPSHOT_LIMIT_S = 600.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_PIECE_BYTES, _PIECE_LIMIT_S = 1 << 20, 60.0
_MOST_EARLY_BYTES = 16 << 20
# The stages in which a run no longer writes its file.
_OVER = (DriveStage.DONE, DriveStage.FAILED, DriveStage.STOPPED, DriveStage.KILLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReady:
    """A report which states that a host holds its drives. ``outlined`` is None if the host needs no consent."""

    host: str
    connected: ConnectedHost
    held: tuple[Held, ...] = ()
    outlined: Outlined | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnded:
    """A report which states that a host sends no more messages. ``error`` is the reason why the host cannot take part
    in the batch, and why its drives were released.
    """

    host: str
    error: TkperfError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveNews:
    """A new report about a drive. ``brief`` describes the run on the drive. None means that no run is running."""

    line: RemoteDriveLine
    brief: Brief | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLost:
    """A report which states that the connection to a host has failed. tkperf tries to connect again."""

    host: str
    text: str


HostNews = HostReady | HostEnded | DriveNews | EventReport | ConnectedHost | HostLost
"""The reports of a host's thread. Each drive is identified by its number in the whole batch.

A ``ConnectedHost`` reports that the connection exists, for the first time or again.
"""


class _Order(Enum):
    ANSWER = auto()
    DISMISS = auto()
    STOP = auto()


@dataclass(slots=True, kw_only=True, eq=False)
class HostWork:
    """The work with one host. A separate thread does this work, and puts its reports into ``news``.

    Attributes:
        begin: the part of the batch that belongs to the host.
        numbers: the numbers of the host's drives in the whole batch, in the order of the host's part.
        folder: folder for the fetched run files.
        here: run files of finished runs that are already in the folder.
        events: whether to report every event of the runs.
        news: queue of reports. Its length is limited, so that no host can fill the memory.
    """

    remote_host: RemoteHost
    begin: Begin
    numbers: tuple[int, ...]
    folder: Path
    news: Queue[HostNews]
    here: set[str] = field(default_factory=set)
    events: bool = False
    _orders: SimpleQueue[_Order] = field(default_factory=SimpleQueue)
    _stops: bool = False
    _answered_s: float = 0.0
    _thread: threading.Thread | None = None
    _connected: ConnectedHost | None = None
    _boot_id: str | None = None
    _reports: dict[int, RemoteDriveLine] = field(default_factory=dict)
    _copied_s: dict[int, float] = field(default_factory=dict)
    _unfetched: dict[int, tuple[DriveReport, float]] = field(default_factory=dict)

    def start(self, boot_id: str | None = None) -> None:
        """Start the thread. ``boot_id`` is the boot ID of the host at an earlier connection."""
        self._boot_id = boot_id
        # The thread is a daemon thread, so that a host that does not answer cannot prevent the end of tkperf.
        name = f"tkperf {self.remote_host.host}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def answer(self) -> None:
        """Send the user's consent to everything that the host showed, and follow the runs."""
        self._orders.put(_Order.ANSWER)

    def dismiss(self) -> None:
        """Release the drives on the host."""
        self._orders.put(_Order.DISMISS)

    def stop(self) -> None:
        """Ask all runs on the host to end."""
        self._orders.put(_Order.STOP)

    def join(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    @property
    def host(self) -> str:
        return self.remote_host.host

    @property
    def _name(self) -> str:
        return self.begin.request.name

    def _run(self) -> None:
        try:
            begun = self._ask()
        except TkperfError as error:
            self.news.put(HostEnded(host=self.host, error=error))
            return
        if begun:
            self._follow()
        self.news.put(HostEnded(host=self.host))

    def _ask(self) -> bool:
        """Ask the host for its drives, and wait for the user's answer. Return whether the user consented.

        The connection stays open during this time, because the host releases its drives when the connection ends.
        """
        with self.remote_host.connect() as connection:
            self._connected = connection.order(self.begin)
            digests: dict[int, str] = {}
            held: list[Held] = []
            while isinstance(found := self._next(connection), HeldDrive):
                one = found.held
                number = one.shown.number
                if number in digests or not self._is_own(one):
                    raise HostSilentError(
                        f"{self.host}: the host sent a drive that is not part of the request. Install the same version "
                        "of tkperf on the host and on this machine"
                    )
                digests[number] = one.shown.digest
                held.append(self._localise(one))
            outlined = found if isinstance(found, Outlined) else None
            if outlined is None and (held or not isinstance(found, UnderWay)):
                raise HostSilentError(
                    f"{self.host}: tkperf expected the list of drives from the host, but received the message "
                    f"{type(found).__name__}. Install the same version of tkperf on the host and on this machine"
                )
            if outlined is not None and not (self.begin.resumes or len(held) == len(self.numbers)):
                raise HostSilentError(f"{self.host}: it shows {len(held)} of {len(self.numbers)} drives")
            self.news.put(HostReady(host=self.host, connected=self._connected, held=tuple(held), outlined=outlined))
            while (order := self._take_order(HEARTBEAT_S)) is None:
                if outlined is not None:
                    connection.send(StillHere())
                    # The call also detects the end of the connection.
                    if (word := connection.receive(0.0)) is not None:
                        raise _unexpected(self.host, word)
            if order is not _Order.ANSWER:
                return False
            self._answered_s = time.monotonic()
            if outlined is not None:
                connection.send(Consent(digests=digests))
                with suppress(HostSilentError):  # the next connection shows whether the batch has begun
                    if (word := connection.receive(BEGIN_LIMIT_S)) is not None:
                        raise _unexpected(self.host, word)
        return True

    def _next(self, connection: SshConnection) -> object:
        message = connection.receive(LOOK_LIMIT_S + 60)
        if isinstance(message, Refused):
            raise HostRefusedError(self.host, message)
        return message

    def _is_own(self, held: Held) -> bool:
        shown = held.shown
        return 1 <= shown.number <= len(self.numbers) and shown.name == self.begin.request.drives[shown.number - 1].name

    def _localise(self, held: Held) -> Held:
        """Return a drive with its number in the batch and its host. If the user confirms the drive with its path, the
        confirmation must also contain the name of the host.
        """
        shown = held.shown
        confirm_id = shown.confirm_id
        if confirm_id is not None and confirm_id == shown.path:
            confirm_id = f"{self.host}:{confirm_id}"
        number = self.numbers[shown.number - 1]
        return replace(held, shown=replace(shown, number=number, host=self.host, confirm_id=confirm_id))

    def _take_order(self, timeout_s: float) -> _Order | None:
        try:
            return self._orders.get(timeout=timeout_s)
        except Empty:
            return None

    def _follow(self) -> None:
        """Follow the batch on the host until it ends, over any number of connections."""
        pause_s, fault = _FIRST_PAUSE_S, ""
        while True:
            began_s = time.monotonic()
            try:
                with self.remote_host.connect() as connection:
                    self._take_connection(connection.order(Follow(name=self._name, events=self.events)))
                    fault = ""
                    return self._listen(connection)
            except TkperfError as error:
                if isinstance(error, HostRefusedError) and not self._reports:
                    # The host has no batch with this name. Until the host releases its drives, the user's answer may
                    # still arrive there.
                    if time.monotonic() > self._answered_s + SILENCE_LIMIT_S:
                        return None
                elif str(error) != fault:
                    fault = str(error)
                    self.news.put(HostLost(host=self.host, text=fault))
            if time.monotonic() - began_s > _LONGEST_PAUSE_S:
                pause_s = _FIRST_PAUSE_S
            if self._stops:
                time.sleep(_FIRST_PAUSE_S)
            elif self._take_order(pause_s) is _Order.STOP:
                self._stops = True
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _take_connection(self, connected: ConnectedHost) -> None:
        self._boot_id = self._boot_id or connected.boot_id
        self._connected = connected
        self.news.put(connected)

    def _listen(self, connection: SshConnection) -> None:
        """Receive messages until the batch has ended and its files are fetched."""
        sent_s = time.monotonic()
        early = deque[FromHost]()
        is_over = False
        self._unfetched.clear()
        # The order to stop may have been lost with an earlier connection.
        if self._stops:
            connection.send(Stop())
        while not is_over or self._unfetched:
            message = early.popleft() if early else connection.receive(1.0)
            now_s = time.monotonic()
            if now_s - sent_s > HEARTBEAT_S:
                with suppress(HostSilentError):  # the last lines of the host may still arrive
                    connection.send(StillHere())
                sent_s = now_s
            if self._take_order(0.0) is _Order.STOP:
                self._stops = True
                connection.send(Stop())
            match message:
                case DriveReport():
                    self._take(message, connection, early)
                case EventReport() if self.events:
                    self.news.put(replace(message, number=self._number_of(message)))
                case BatchEnded():
                    is_over = True
                case Refused():
                    raise HostRefusedError(self.host, message)
                case None:
                    for seen, tried_s in tuple(self._unfetched.values()):
                        if now_s - tried_s > _LONGEST_PAUSE_S:
                            self._take(seen, connection, early)
                    self._copy_one(now_s, connection, early)
                case _:
                    raise _unexpected(self.host, message)

    def _number_of(self, message: DriveReport | EventReport) -> int:
        if message.number > len(self.numbers):
            raise HostSilentError(
                f"{self.host}: the host reported drive {message.number}, which is not part of the request. Install the "
                "same version of tkperf on the host and on this machine"
            )
        return self.numbers[message.number - 1]

    def _take(self, seen: DriveReport, connection: SshConnection, early: deque[FromHost]) -> None:
        assert self._connected is not None
        text = seen.text
        if seen.stage is DriveStage.KILLED and self._connected.boot_id != self._boot_id:
            text = f"{self.host} was rebooted meanwhile"
        if seen.stage in _OVER:
            text = self._fetch_ended(seen, text, connection, early)
        line = RemoteDriveLine(
            number=self._number_of(seen),
            utc=now_utc(),
            stage=seen.stage,
            exit_code=seen.exit_code,
            text=text,
            started_utc=_utc(seen.started_s, self._connected),
            ended_utc=_utc(seen.ended_s, self._connected),
            place=seen.place,
            again=seen.again,
        )
        self._reports[seen.number] = line
        self.news.put(DriveNews(line=line, brief=seen.brief))

    def _fetch_ended(self, seen: DriveReport, text: str, connection: SshConnection, early: deque[FromHost]) -> str:
        """Fetch the files of a drive that is no longer being measured. If a run file is still on the host, return the
        reason. Otherwise return ``text``, which is the reason for the stage of the drive.
        """
        run = self.begin.request.drives[seen.number - 1].name
        self._unfetched.pop(seen.number, None)
        own = again_path(Path(run + RUN_FILE_SUFFIX)).stem
        for name in (run, own) if seen.again else (run,):
            if name in self.here:
                continue
            try:
                self._fetch(name, connection, early)
                self.here.add(name)
            except HostRefusedError as error:
                if seen.stage is DriveStage.DONE:
                    text = f"its run file is still there: {error.refusal.text}"
            except RunFileError as error:
                self._unfetched[seen.number] = seen, time.monotonic()
                text = f"its run file is still there: {error}; it is tried again"
        return text

    def _copy_one(self, now_s: float, connection: SshConnection, early: deque[FromHost]) -> None:
        """Fetch the snapshot of one run that is in progress, if a snapshot is due."""
        for number, line in self._reports.items():
            began_s = self._copied_s.setdefault(number, now_s)
            if line.stage is DriveStage.RUNNING and now_s - began_s >= SNAPSHOT_EVERY_S:
                self._copied_s[number] = now_s
                with suppress(HostRefusedError, RunFileError):
                    self._fetch(self.begin.request.drives[number - 1].name, connection, early)
                return

    def _fetch(self, run: str, connection: SshConnection, early: deque[FromHost]) -> None:
        """Fetch a run file. Messages that arrive before the file are added to ``early``."""
        assert self._connected is not None
        order = Fetch(run=run, host=self.host, ahead_s=self._connected.ahead_s)
        path = self.folder / f"{run}{RUN_FILE_SUFFIX}"
        # The temporary name is always the same, so that files of killed processes do not accumulate.
        new = path.with_name(f".{path.name}.new")
        try:
            new.unlink(missing_ok=True)
            connection.send(order)
            until_s = time.monotonic() + SNAPSHOT_LIMIT_S
            most_bytes = connection.taken_bytes + _MOST_EARLY_BYTES
            while not isinstance(head := connection.receive(until_s - time.monotonic()), Snapshot):
                if head is None or connection.taken_bytes > most_bytes:
                    raise HostSilentError(f"{self.host}: no snapshot of {run} came")
                if isinstance(head, Refused):
                    raise HostRefusedError(self.host, head)
                early.append(head)
            receive_file(connection, head, new)
            if not _is_snapshot(new, run, self.host):
                raise HostSilentError(
                    f"{self.host}: the host sent data for {run} that are not a snapshot of the run file. Install the "
                    "same version of tkperf on the host and on this machine"
                )
            new.replace(path)
        except OSError as error:
            raise RunFileError(f"cannot write {path}: {reason_of(error)}") from error
        finally:
            new.unlink(missing_ok=True)


def receive_file(connection: SshConnection, head: Snapshot, path: Path) -> None:
    """Write the bytes that follow the message to a new file, and check their hash against the hash in the message."""
    digest = hashlib.sha256()
    left = head.size_bytes

    def read() -> bytes:
        nonlocal left
        piece = connection.read_bytes(min(left, _PIECE_BYTES), _PIECE_LIMIT_S)
        digest.update(piece)
        left -= len(piece)
        return piece

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            while left:
                file.write(read())
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        while left:
            read()
        raise
    if digest.hexdigest() != head.sha256:
        raise HostSilentError(
            f"{connection.remote_host.host}: the snapshot that the host sent is damaged, because its "
            "SHA-256 hash is not the hash that the host announced"
        )


def _is_snapshot(path: Path, run: str, host: str) -> bool:
    try:
        with RunFile(path) as opened:
            info = opened.outline().record.info
    except RunFileError:
        return False
    mark = find_snapshot(info.host)
    return mark is not None and (info.name, mark.host) == (run, host)


def find_same(held: Mapping[str, tuple[Held, ...]]) -> str | None:
    """Return a fault if two hosts report the same drive. ``held`` contains the drives of each host."""
    earlier: dict[tuple[str, ...], Held] = {}
    for one in (each for several in held.values() for each in several):
        shown = one.shown
        keys = [("world-wide name", "", shown.wwn)] if shown.wwn else []
        keys += [("serial number", shown.model or "", shown.serial)] if shown.serial else []
        for key in keys if not shown.path.startswith("sim:") else ():
            other = earlier.setdefault(key, one).shown
            if other.host != shown.host:
                return (
                    f"{shown.host}, {shown.path}, and {other.host}, {other.path}, are one drive: both have the "
                    f"{key[0]} {key[-1]}"
                )
    return None


def _unexpected(host: str, message: object) -> TkperfError:
    if isinstance(message, Refused):
        return HostRefusedError(host, message)
    return HostSilentError(f"{host}: {type(message).__name__} was sent without a request")


def _utc(at_s: float | None, connected: ConnectedHost) -> str | None:
    """Convert a time of a host's clock to the clock of this machine, and return the time as text. Return None if there
    is no time, or if the time is impossible.
    """
    if at_s is None:
        return None
    try:
        return datetime.fromtimestamp(at_s - connected.ahead_s, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None
