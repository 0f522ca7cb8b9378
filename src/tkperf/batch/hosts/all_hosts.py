"""All hosts of a batch. Before consent, the hosts report their drives. Afterwards, they report the progress of these
drives.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue

from msgspec.structs import replace

from tkperf.analysis.batch_verdict import find_gravity
from tkperf.batch.batch_watch import WatchedHosts
from tkperf.batch.drive_processes import KINDS, Held
from tkperf.batch.hosts.host_thread import DriveNews, HostEnded, HostLost, HostNews, HostReady, HostWork, find_same
from tkperf.batch.hosts.messages import (
    BatchEnded,
    Begin,
    EventReport,
    HostSilentError,
    Options,
    PlanBatch,
    Planned,
    Refused,
)
from tkperf.batch.hosts.order_rights import name_input
from tkperf.batch.hosts.ssh import HostRefusedError, RemoteHost
from tkperf.batch.ledger import BatchLog, DrivesConfirmed, Ledger, LedgerNote, Line, RemoteDriveLine, find_elsewhere
from tkperf.batch.request import BatchRequest
from tkperf.engine.registry import find_engine
from tkperf.model.batch_state import BatchState, ConnectedHost, DriveShown, DriveStage
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import DeviceError, InputFileError, RefusedError, RunFileError, TkperfError, UsageError
from tkperf.model.input_files import SETTINGS_BYTES, is_toml_path, read_text_input
from tkperf.model.units import format_count, format_duration, format_durations
from tkperf.system.host import now_utc

_MOST_NEWS = 2000
# The time limit in s for the plan of a host. The host may read one drive of each model for ten seconds.
PLAN_LIMIT_S = 600.0
_MOST_PIECES = 1000
# The smallest difference between clocks, in s, that tkperf shows.
_CLOCK_S = 2.0


class BatchHosts:
    """The hosts of a batch. Call ``look`` first, then ``confirm`` or ``dismiss``.

    Args:
        folder: the folder for the fetched run files.
        options: the options of the batch, which each host receives.
        events: whether to report every event of the runs.
        log: the lines of the ledger, for a batch that continues.
        without: names of runs whose drives are omitted.
        warn: a function that is called with texts that the user must see. The function does not wait.
    """

    def __init__(
        self,
        request: BatchRequest,
        folder: Path,
        options: Options,
        *,
        events: bool,
        warn: Callable[[str], None],
        log: BatchLog | None = None,
        without: Sequence[str] = (),
    ) -> None:
        self.request, self._folder, self._warn = request, folder, warn
        self._reports = {} if log is None else dict(log.reports)
        self._shown = {} if log is None else dict(log.shown)
        self._connected = {} if log is None else dict(log.hosts)
        self._notes = [] if log is None else list(log.notes)
        self._resumes = log is not None
        self._began_utc = log.confirmed[0].utc if log is not None and log.confirmed else None
        self._ready: dict[str, HostReady] = {}
        self._failed: dict[str, TkperfError] = {}
        self._lost: dict[str, str] = {}
        self._over: set[str] = set()
        self._news: Queue[HostNews] = Queue(_MOST_NEWS)
        self._ledger: Ledger | None = None
        self._works = [
            self._make_work(host, options, without, events=events)
            for host in request.hosts
            # If all drives of a host are finished, the host need not be reachable.
            if any(one.host == host and one.name not in without for one in request.drives)
        ]
        self.watched = WatchedHosts(self._find_state())

    def _make_work(self, host: str, options: Options, without: Sequence[str], *, events: bool) -> HostWork:
        numbers = tuple(n for n, one in enumerate(self.request.drives, 1) if one.host == host)
        request, files = _commission(self.request, numbers, resumes=self._resumes)
        own = {one.name for one in request.drives}
        return HostWork(
            remote_host=RemoteHost(host=host, tkperf=self.request.tkperf),
            begin=Begin(
                request=request,
                files=files,
                options=options,
                resumes=self._resumes,
                has_begun=any(report.stage.has_begun for n in numbers if (report := self._reports.get(n))),
                without=tuple(name for name in without if name in own),
            ),
            numbers=numbers,
            folder=self._folder,
            news=self._news,
            events=events,
            here={
                name
                for number in numbers
                if (report := self._reports.get(number)) and report.stage is DriveStage.DONE
                for name in (self.request.drives[number - 1].name,)
                if self._path_of(name).exists()
            },
        )

    def _path_of(self, run: str) -> Path:
        return self._folder / f"{run}{RUN_FILE_SUFFIX}"

    def look(self) -> tuple[Held, ...]:
        """Order each host to examine its drives and hold them. Return the drives that need consent.

        Raises:
            TkperfError: a host or a drive has a fault. The error lists all faults.
        """
        for work in self._works:
            connected = self._connected.get(work.host)
            work.start(None if connected is None else connected.boot_id)
        while len(self._ready) + len(self._failed) < len(self._works):
            self._wait(1.0)
        self.require_sound()
        if (twins := _find_twins([one.connected for one in self._ready.values()])) is not None:
            raise UsageError(f"no drive was touched: {twins}")
        held = {host: one.held for host, one in self._ready.items()}
        if (same := find_same(held)) is not None:
            raise RefusedError(f"no drive was touched: {same}")
        if faults := tuple(_find_old_fio([one.connected for one in self._ready.values()])):
            raise DeviceError(f"no drive was touched: {'; '.join(faults)}")
        every = (one for several in held.values() for one in several)
        return tuple(sorted(every, key=lambda one: one.shown.number))

    def _wait(self, timeout_s: float) -> None:
        """Wait for the next report before consent."""
        with suppress(Empty):
            match self._news.get(timeout=timeout_s):
                case HostReady() as ready:
                    self._ready[ready.host] = ready
                case HostEnded(host=host, error=TkperfError() as error):
                    self._ready.pop(host, None)
                    self._failed[host] = error

    def require_sound(self) -> None:
        """Refuse the whole batch if a host cannot take part in the batch, or can no longer take part.

        Raises:
            TkperfError: an error of the type of the most serious fault. The error lists all faults.
        """
        while not self._news.empty():
            self._wait(0.0)
        if not self._failed:
            return
        errors = list(self._failed.values())
        codes = [one.refusal.exit_code if isinstance(one, HostRefusedError) else int(one.exit_code) for one in errors]
        kind = KINDS.get(min(codes, key=find_gravity), RefusedError)
        count = format_count(len(self._works), "host")
        hint = "; --without leaves out a host, with the names of all its runs" * self._resumes
        raise kind(
            f"{len(errors)} of {count} cannot take part, so no drive was touched: {'; '.join(map(str, errors))}{hint}"
        )

    def describe(self) -> Iterator[tuple[str, str]]:
        """Yield the lines that are shown below the drives before the question, each with its label."""
        outlined = [(host, one.outlined) for host, one in self._ready.items() if one.outlined is not None]
        bounds_s = [(one.shortest_s, one.longest_s) for _, one in outlined]
        longest = tuple(map(max, zip(*bounds_s, strict=True)))
        yield "time", f"{format_durations(*longest)}, hosts at the same time"
        for host, one in outlined:
            yield host, one.groups
            for note in one.notes:
                yield host, note
        for ready in self._ready.values():
            yield from (("clock", text) for text in _describe_clock(ready.connected))

    def confirm(self, ledger: Ledger) -> None:
        """Write the confirmed drives to the ledger, and send the user's consent to each host. Each host then works
        independently.

        Raises:
            RunFileError: the ledger cannot be written.
        """
        self._ledger = ledger
        shown = tuple(held.shown for one in self._ready.values() for held in one.held)
        for one in self._ready.values():
            if one.host not in self._connected:
                ledger.write(one.connected)
                self._connected[one.host] = one.connected
                for text in _describe_clock(one.connected):
                    self._note(text)
        if shown:
            ledger.write(DrivesConfirmed(utc=now_utc(), drives=shown))
        self._began_utc = self._began_utc or now_utc()
        for drive in shown:
            self._shown[drive.number] = drive
            self._reports.pop(drive.number, None)
        self._show()
        for work in self._works:
            work.answer()

    def dismiss(self) -> None:
        """Close the connections so that the hosts release all drives, and wait until the drives are released."""
        for work in self._works:
            work.dismiss()
        until_s = time.monotonic() + 10
        for work in self._works:
            work.join(max(0.0, until_s - time.monotonic()))

    def stop(self) -> None:
        """Ask the runs on all hosts to end."""
        for work in self._works:
            work.stop()

    @property
    def is_over(self) -> bool:
        """Return whether no host will send any more reports."""
        return len(self._over) == len(self._works)

    def take(self, timeout_s: float) -> None:
        """Process the reports that arrive after consent, for up to ``timeout_s``."""
        until_s = time.monotonic() + timeout_s
        changed = False
        while (left_s := until_s - time.monotonic()) > 0 and not self.is_over:
            try:
                news = self._news.get(timeout=left_s)
            except Empty:
                break
            changed = self._take(news) or changed
        if changed:
            self._show()

    def _take(self, news: HostNews) -> bool:
        """Process a report. Return whether it may change the state of a drive."""
        match news:
            case EventReport(number=number, event=event):
                self.watched.pass_on(number, event)
                return False
            case DriveNews(line=line, brief=brief):
                self._take_report(line)
                self.watched.runs = {
                    **{n: one for n, one in self.watched.runs.items() if n != line.number},
                    **({} if brief is None else {line.number: brief}),
                }
            case ConnectedHost():
                self._take_connection(news)
            case HostLost(host=host, text=text):
                since = self._lost.setdefault(host, now_utc())
                self._warn(f"no word from {host} since {since}: {text}; it is tried again")
            case HostEnded(host=host, error=None):
                self._leave(host, f"{host} never got the answer, so its holds have ended")
            case HostEnded(host=host, error=error):
                self._warn(str(error))
                self._leave(host, str(error))
        return True

    def _take_report(self, line: RemoteDriveLine) -> None:
        before = self._reports.get(line.number)
        self._reports[line.number] = line
        if before is None or replace(line, utc=before.utc) != before:
            self._write(line)

    def _take_connection(self, connected: ConnectedHost) -> None:
        before = self._connected.get(connected.host)
        self._connected[connected.host] = connected
        if self._lost.pop(connected.host, None) is not None:
            self._warn(f"{connected.host} is heard of again")
        if before is None or abs(before.ahead_s - connected.ahead_s) > _CLOCK_S:
            self._write(connected)
        if before is not None and before.boot_id != connected.boot_id:
            self._write(connected)
            self._note(f"{connected.host} was rebooted meanwhile")

    def _leave(self, host: str, why_not: str) -> None:
        self._over.add(host)
        self._lost.pop(host, None)
        for number, drive in enumerate(self.request.drives, 1):
            if drive.host == host and number not in self._reports and number in self._shown:
                ended = DriveStage.CONSENT_ENDED
                self._take_report(RemoteDriveLine(number=number, utc=now_utc(), stage=ended, text=why_not))

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._write(LedgerNote(text=text))

    def _write(self, line: Line) -> None:
        """Write a line to the ledger. A full disk on this machine does not end the batch, because the hosts write their
        own ledgers.
        """
        assert self._ledger is not None
        did = self._ledger.keeps_up
        try:
            self._ledger.write(line)
        except RunFileError as error:
            if did:
                self._warn(str(error))

    def _show(self) -> None:
        self.watched.state = self._find_state()

    def _find_state(self) -> BatchState:
        request = self.request
        followed = {work.host for work in self._works} - self._over
        drives = []
        for number, drive in enumerate(request.drives, 1):
            shown = self._shown.get(number) or DriveShown(
                number=number, name=drive.name, path=drive.given, capacity_bytes=0, slot=drive.slot, host=drive.host
            )
            state = find_elsewhere(
                shown,
                self._reports.get(number),
                self._path_of(drive.name),
                confirmed=number in self._shown,
                followed=drive.host in followed,
            )
            lost = self._lost.get(drive.host or "")
            if lost is not None and state.stage in (DriveStage.RUNNING, DriveStage.WAITING):
                state = replace(state, text=f"no word since {lost}")
            drives.append(state)
        return BatchState(
            name=request.name,
            path=str(self._folder / request.name),
            drives=tuple(drives),
            began_utc=self._began_utc,
            supervisor=os.getpid(),
            claims=request.claims,
            claims_path=request.claims_path,
            notes=tuple(self._notes),
        )


def plan_on(host: str, request: BatchRequest, options: Options, *, no_probe: bool, as_json: bool) -> str:
    """Return the text of the plan for the drives of a host. The host makes the plan.

    Raises:
        TkperfError: the host cannot be reached, or refuses.
    """
    numbers = [n for n, one in enumerate(request.drives, 1) if one.host == host]
    part, files = _commission(request, numbers, resumes=False)
    order = PlanBatch(request=part, files=files, options=options, no_probe=no_probe, as_json=as_json)
    pieces: list[str] = []
    with RemoteHost(host=host, tkperf=request.tkperf).connect() as connection:
        connection.order(order)
        while isinstance(piece := connection.receive(PLAN_LIMIT_S), Planned):
            pieces.append(piece.text)
            if len(pieces) > _MOST_PIECES:
                raise HostSilentError(
                    f"{host}: the plan that the host sent is longer than any possible plan. Install the same "
                    "version of tkperf on the host and on this machine"
                )
        if isinstance(piece, Refused):
            raise HostRefusedError(host, piece)
        if not isinstance(piece, BatchEnded):
            raise HostSilentError(f"{host}: no plan came")
    return "".join(pieces)


def _commission(request: BatchRequest, numbers: Sequence[int], *, resumes: bool) -> tuple[BatchRequest, dict[str, str]]:
    """Return the part of a batch that belongs to a host. In this part, the input files have the names that the host
    uses.
    """
    files: dict[str, str] = {}
    names: dict[str, str] = {}

    def carry(path: str) -> str:
        if not is_toml_path(path):
            return path
        if path not in names:
            try:
                text = read_text_input(Path(path), what="input file", limit_bytes=SETTINGS_BYTES)
            except InputFileError:
                if not resumes:  # the host already has the file
                    raise
                return path
            # The name depends on the content. Therefore, a batch of the same NAME that is refused later cannot replace
            # the file.
            names[path] = name_input(text)
            files[names[path]] = text
        return names[path]

    drives = []
    for number in numbers:
        drive = request.drives[number - 1]
        run = drive.request
        profile = carry(run.profile) if isinstance(run.profile, str) else run.profile
        own = replace(run, profile=profile, tests=tuple(map(carry, run.tests)))
        drives.append(replace(drive, host=None, request=own))
    return replace(request, drives=tuple(drives), claims=None, claims_path=None), files


def _find_twins(hosts: Sequence[ConnectedHost]) -> str | None:
    """Return a fault if two names refer to the same host. Such a host would receive two batches of the same NAME."""
    earlier: dict[str, str] = {}
    for one in hosts:
        if (other := earlier.setdefault(one.boot_id, one.host)) != one.host:
            return f"{other} and {one.host} are one host, by its boot id: give all its drives the same host"
    return None


def _find_old_fio(hosts: Sequence[ConnectedHost]) -> Iterator[str]:
    """Yield the hosts whose version of fio is older than the version on another host. Results of different versions are
    not comparable.
    """
    versions = {one.host: one.fio_version for one in hosts if one.fio_version is not None}
    newest = max(versions.values(), key=_by_number, default="")
    for host, version in versions.items():
        if version != newest:
            has = next(other for other, one in versions.items() if one == newest)
            yield f"{host} has {version}, and {has} has {newest}: update {find_engine().name} on {host}"


def _by_number(version: str) -> tuple[tuple[int, ...], str]:
    return tuple(map(int, re.findall(r"\d{1,6}", version))), version


def _describe_clock(connected: ConnectedHost) -> Iterator[str]:
    if abs(connected.ahead_s) - connected.within_s > _CLOCK_S:
        way = "ahead of" if connected.ahead_s > 0 else "behind"
        yield (
            f"the clock of {connected.host} is {format_duration(abs(connected.ahead_s))} {way} the one here; "
            "times are corrected"
        )
