"""Execute tkperf on a host of a batch that another machine conducts. The process reads orders from stdin, and answers
on stdout.

Only this process receives the consent. If the connection ends before the consent, the process releases its drives.
"""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
import msgspec

from tkperf.analysis.batch_verdict import exit_code_of
from tkperf.batch.batch_watch import WatchedBatch
from tkperf.batch.draft import BatchDraft, DraftedDrive, DriveSelection
from tkperf.batch.drive_finder import DriveFinder
from tkperf.batch.drive_processes import DriveProcesses
from tkperf.batch.hosts.messages import (
    MOST_BYTES_OF_ORDER,
    PROTOCOL,
    SILENCE_LIMIT_S,
    BatchEnded,
    Begin,
    Clock,
    Consent,
    DriveReport,
    EventReport,
    Fetch,
    Follow,
    FromHost,
    HeldDrive,
    Hello,
    HostSilentError,
    Lines,
    Options,
    Outlined,
    PlanBatch,
    Planned,
    Refused,
    Snapshot,
    Stop,
    ToHost,
    UnderWay,
    send,
    write_whole,
)
from tkperf.batch.hosts.order_rights import (
    claim_folder,
    drop_caller_environment,
    require_no_commands,
    require_own_batch,
    require_sent_inputs,
)
from tkperf.batch.hosts.ssh import HOSTS_FOLDER
from tkperf.batch.ledger import ask_batch_to_end, read_batch
from tkperf.batch.neighbours import Neighbours
from tkperf.batch.question import short
from tkperf.batch.request import BatchRequest, BatchSettings
from tkperf.cli.batch_session import print_plan_of_batch, resume_batch, run_batch
from tkperf.cli.lines import JsonLines
from tkperf.cli.run_options import BatchOptions
from tkperf.cli.run_views import time_of
from tkperf.engine.registry import find_engine
from tkperf.model.batch_state import BatchState, DriveStage, DriveState
from tkperf.model.choices import BATCH_SUFFIX, RUN_FILE_SUFFIX
from tkperf.model.decoding import decode_json
from tkperf.model.errors import EngineError, RefusedError, RunFileError, TkperfError, reason_of
from tkperf.model.input_files import is_there
from tkperf.model.units import drop_controls
from tkperf.model.version import __version__
from tkperf.page.batch.batch_plan_page import describe_groups, describe_neighbours
from tkperf.page.batch.batch_progress import brief_of
from tkperf.pipeline.run_request import require_name
from tkperf.pipeline.run_state import Brief
from tkperf.runfile.snapshot import take_snapshot
from tkperf.system.work_folder import private_folder

LOOK_EVERY_S = 0.3
# The greatest number of run files that are read each second. This number can be high, because reading a run file that
# has not changed takes almost no time.
_LOOKS_A_SECOND = 20.0
# The interval at which figures that change continuously are sent.
_BRIEF_EVERY_S = 10.0
_MEMORY = Path("/dev/shm")  # noqa: S108 - tkperf creates a private folder in this folder
_PLAN_PIECE = 20_000


def serve() -> None:
    """Execute the order in the first line on stdin. Errors are sent as a message on stdout."""
    os.umask(0o077)
    caller_uid = drop_caller_environment()
    _say(_greeting())
    lines: Lines[ToHost] = Lines(0, ToHost, MOST_BYTES_OF_ORDER)
    try:
        order = lines.receive(SILENCE_LIMIT_S)
        _say(Clock(utc_s=time.time()))
        match order:
            case Begin():
                _begin(order, lines, caller_uid)
            case PlanBatch():
                _plan(order, caller_uid)
            case Follow():
                _follow(order, lines, caller_uid)
            case _:
                raise RefusedError("the other machine sent a message that is not a request")
    except HostSilentError:
        raise  # the other side has ended, so no message can be delivered
    except TkperfError as error:
        with suppress(HostSilentError):
            _say(Refused(exit_code=error.exit_code, text=short(str(error))))
        raise click.exceptions.Exit(error.exit_code) from None


def _say(message: FromHost) -> None:
    send(1, message)


def _greeting() -> Hello:
    try:
        fio_version = find_engine().find_version()
    except EngineError:
        fio_version = None
    return Hello(
        protocol=PROTOCOL,
        tkperf_version=__version__,
        fio_version=fio_version,
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    )


def _folder_of(name: str) -> Path:
    require_name(name)
    return HOSTS_FOLDER / name


def _ledger_of(name: str) -> Path:
    return _folder_of(name) / f"{name}{BATCH_SUFFIX}"


@dataclass(frozen=True, slots=True)
class _RemoteConsent:
    """The consent of the user, who answers on the machine that conducts the batch."""

    lines: Lines[ToHost]

    def show(self, selection: DriveSelection, neighbours: Neighbours) -> None:
        for held in neighbours.held:
            _say(HeldDrive(held=held))
        shortest_s, longest_s = neighbours.bounds_s
        _say(
            Outlined(
                shortest_s=shortest_s,
                longest_s=longest_s,
                groups=describe_groups(neighbours.groups),
                notes=tuple(describe_neighbours(neighbours.groups, neighbours.cpus)),
            )
        )

    def ask(self, processes: DriveProcesses) -> None:
        while not isinstance(message := self.lines.receive(SILENCE_LIMIT_S), Consent):
            if message is None:
                raise RefusedError(
                    f"no consent to erase the drives arrived within {SILENCE_LIMIT_S:.0f} s, so tkperf "
                    "released the drives. Start the batch again. Nothing was touched"
                )
        if message.digests != {one.number: one.shown.digest for one in processes.members}:
            raise RefusedError(
                "the drives of this host are not the drives that were confirmed. Start the batch again. Nothing was "
                "touched"
            )

    def end(self, state: BatchState) -> int:
        return exit_code_of(state)


def _begin(order: Begin, lines: Lines[ToHost], caller_uid: int) -> None:
    name = order.request.name
    require_no_commands(order.request, caller_uid)
    ledger = _ledger_of(name)
    if is_there(ledger.parent):
        require_own_batch(ledger.parent, caller_uid)
    options = _options(order.options, name)
    prompt = _RemoteConsent(lines)
    if order.resumes and is_there(ledger):
        state = read_batch(ledger)
        names = [drive.shown.name for drive in state.drives]
        if names != [drive.name for drive in order.request.drives]:
            raise RefusedError(
                f"{ledger} belongs to another batch with other drives. Give your batch another name. Nothing was "
                "touched"
            )
        rest = [
            drive
            for drive in state.drives
            if drive.stage is not DriveStage.DONE and drive.shown.name not in order.without
        ]
        if state.is_under_way or not rest:
            _say(UnderWay())
            return
        resume_batch(options, without=order.without, prompt=prompt)
        return
    if order.has_begun:
        # If the same run began a second time, it would replace the earlier measurements.
        raise RunFileError(
            f"{ledger} no longer exists, so the runs of this batch cannot be resumed. The last snapshots of these "
            "runs are on the machine that started the batch. Measure these drives in a new batch"
        )
    require_sent_inputs(order.request, order.files)
    claim_folder(ledger.parent, caller_uid)
    _write_inputs(ledger.parent, order.files)
    settled = _draft(order.request, ledger.parent).settle(name, DriveFinder(folder=ledger.parent))
    run_batch(settled.require_sound(), options, prompt=prompt)


def _plan(order: PlanBatch, caller_uid: int) -> None:
    name = order.request.name
    require_no_commands(order.request, caller_uid)
    require_sent_inputs(order.request, order.files)
    text = io.StringIO()
    with _private_folder() as folder, redirect_stdout(text):
        _write_inputs(folder, order.files)
        print_plan_of_batch(
            _draft(order.request, folder).settle(name, DriveFinder(folder=folder)),
            _options(order.options, name).of_run(name),
            no_probe=order.no_probe,
            as_json=order.as_json,
        )
    whole = drop_controls(text.getvalue())
    for start in range(0, len(whole), _PLAN_PIECE):
        _say(Planned(text=whole[start : start + _PLAN_PIECE]))
    _say(BatchEnded())


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Yield a folder for the files of a plan."""
    with ExitStack() as made:
        try:
            folder = made.enter_context(private_folder())
        except OSError as error:
            raise RunFileError(
                f"tkperf cannot create a folder for the files of the plan: {reason_of(error)}"
            ) from error
        yield folder


def _options(given: Options, name: str) -> BatchOptions:
    return BatchOptions(
        **msgspec.structs.asdict(given), name=name, folder=_folder_of(name), quiet=True, detach=True, no_report=True
    )


def _write_inputs(folder: Path, files: dict[str, str]) -> None:
    """Write the input files of a batch into its folder. Only root can read this folder."""
    try:
        for name, text in files.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(folder / name, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise RunFileError(f"cannot write to {folder}: {reason_of(error)}") from error


def _draft(request: BatchRequest, folder: Path) -> BatchDraft:
    """Return a batch that contains the drives of this host. The drives have the names that the user gave."""
    run = request.drives[0].request
    common = {key: getattr(run, key) for key in run.__struct_fields__ if key not in ("device", "size", "facts")}
    drives = tuple(
        DraftedDrive(drive=one.given, slot=one.slot, name=one.name, size=one.request.size, facts=one.request.facts)
        for one in request.drives
    )
    settings = {key: getattr(request, key) for key in BatchSettings.__struct_fields__}
    return BatchDraft(common=common, drives=drives, folder=folder, settings=BatchSettings(**settings))


class _LastEvent:
    """A stream of JSON lines that stores the last line."""

    def __init__(self) -> None:
        self.event: dict[str, object] = {}

    def write(self, text: str) -> int:
        self.event = decode_json(text, dict)
        return len(text)

    def flush(self) -> None:
        pass


def _follow(order: Follow, lines: Lines[ToHost], caller_uid: int) -> None:
    """Report the progress of the batch until the other side has ended. During this time, execute the orders of the
    other side.
    """
    # This process has the lowest priority, because tkperf is measuring a drive of this host.
    os.nice(19)
    ledger = _ledger_of(order.name)
    if not ledger.exists():
        raise RunFileError(f"there is no batch {ledger}")
    require_own_batch(ledger.parent, caller_uid)
    watched = WatchedBatch(ledger, looks_a_second=_LOOKS_A_SECOND, each_every_s=LOOK_EVERY_S)
    watched.look_at_all()
    sent: dict[int, tuple[DriveReport, float]] = {}
    heard_s, is_over = time.monotonic(), False
    caught = _LastEvent()
    as_json = JsonLines(caught, {})  # type: ignore[arg-type]
    while True:
        for new in watched.news if order.events else ():
            as_json(new.event, time_of(new.event, new.record))
            _say(EventReport(number=new.number, event=caught.event))
        now_s = time.monotonic()
        for drive in watched.state.drives:
            number = drive.shown.number
            run = watched.runs.get(number)
            seen = _describe(drive, None if run is None else brief_of(run))
            before, at_s = sent.get(number, (None, 0.0))
            is_due = now_s - at_s > _BRIEF_EVERY_S
            if before is None or (seen if is_due else _still(seen, before)) != before:
                _say(seen)
                sent[number] = seen, now_s
        if not (is_over or watched.state.is_under_way):
            is_over = True
            _say(BatchEnded())
        asked = lines.receive(LOOK_EVERY_S)
        match asked:
            case Fetch():
                _answer(partial(_send_snapshot, ledger.parent, asked))
            case Stop():
                _answer(partial(ask_batch_to_end, ledger))
        if asked is not None:
            heard_s = time.monotonic()
        elif time.monotonic() - heard_s > SILENCE_LIMIT_S:
            raise HostSilentError("nobody listens any more")
        watched.look()


def _answer(act: Callable[[], None]) -> None:
    """Execute an order. If the order fails, send the reason to the other side and continue."""
    try:
        act()
    except HostSilentError:
        raise
    except TkperfError as error:
        _say(Refused(exit_code=error.exit_code, text=short(str(error))))


def _describe(drive: DriveState, brief: Brief | None) -> DriveReport:
    return DriveReport(
        number=drive.shown.number,
        stage=drive.stage,
        exit_code=drive.exit_code,
        text=short(drive.text),
        started_s=_seconds(drive.started_utc),
        ended_s=_seconds(drive.ended_utc),
        place=drive.place,
        again=drive.again_file is not None and Path(drive.again_file).exists(),
        brief=brief if drive.stage is DriveStage.RUNNING else None,
    )


def _still(seen: DriveReport, before: DriveReport) -> DriveReport:
    """Return the new report with the times and temperatures of the previous report. Times and temperatures change
    continuously, so only other differences count as a change.
    """
    if seen.brief is None or before.brief is None:
        return seen
    was = before.brief
    brief = msgspec.structs.replace(seen.brief, left_s=was.left_s, passed_s=was.passed_s, hottest_c=was.hottest_c)
    return msgspec.structs.replace(seen, brief=brief)


def _seconds(utc: str | None) -> float | None:
    return None if utc is None else datetime.fromisoformat(utc).timestamp()


def _send_snapshot(folder: Path, order: Fetch) -> None:
    """Send a snapshot of a run file in its current state."""
    require_name(order.run)
    path = folder / f"{order.run}{RUN_FILE_SUFFIX}"
    if not path.exists():
        raise RunFileError(f"the batch has no run file {path}")
    utc = datetime.fromtimestamp(time.time() - order.ahead_s, UTC).isoformat(timespec="seconds")
    for place in (folder, _MEMORY):
        try:
            with private_folder(place) as temporary:
                copy = temporary / "copy"
                take_snapshot(path, copy, host=order.host, utc=utc, ahead_s=order.ahead_s)
                _send_file(copy)
        except (OSError, RunFileError) as error:  # the disk may be full
            fault = RunFileError(f"no snapshot of {path}: {reason_of(error)}")
        else:
            return
    raise fault


def _send_file(path: Path) -> None:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size_bytes = file.tell()
        _say(Snapshot(size_bytes=size_bytes, sha256=digest))
        file.seek(0)
        while piece := file.read(1 << 20):
            write_whole(1, piece)
