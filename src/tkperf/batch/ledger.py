"""The ledger of a batch, NAME.batch. It contains the drives of the batch, the user's consent, and the progress of each
drive. Each line is a JSON document.

Each line is appended with one write, and is durable afterwards. The process of the batch holds the lock of the file
until this process ends, and writes the lines that concern all drives. The process of each drive writes the end of its
own run, so that no end is lost if the process of the batch dies. An incomplete line does not affect the other lines.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import msgspec

from tkperf.batch.request import AGAIN, BatchRequest
from tkperf.device.sysfs import process_fields
from tkperf.model.batch_state import BatchPlace, BatchState, ConnectedHost, DriveShown, DriveStage, DriveState
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.decoding import make_json_decoder
from tkperf.model.errors import BY_SIGNAL, ExitCode, RunFileError, UsageError, reason_of
from tkperf.model.input_files import read_input
from tkperf.model.record import RunStatus
from tkperf.model.version import __version__
from tkperf.pipeline.running_runs import find_writing, interrupt, outline_first
from tkperf.runfile.writers import FileStamp, find_writer, is_being_written, journal_of, require_own, state_of

FORMAT = 1
MOST_BYTES = 64 << 20
_MODE = 0o600
_BEGINNING = b'\n{"type":"batch"'
# The index of the field starttime in /proc/PID/stat (proc(5)), counted after pid and name.
_STARTED = 19
_WAITED = "it waited for its turn when the batch ended; nothing was touched, and 'tkperf resume' asks again"
# A disk with less free space than this counts as full.
_LEAST_ROOM_BYTES = 1 << 20
_KEPT_STATUSES = 1024


class BatchBegun(msgspec.Struct, frozen=True, kw_only=True, tag="batch"):
    """The first line: the batch as the user requested it."""

    format: int
    tkperf_version: str
    command_line: tuple[str, ...]
    request: BatchRequest


class DrivesConfirmed(msgspec.Struct, frozen=True, kw_only=True, tag="confirmed"):
    """The drives that the user has seen and agreed to erase, at the beginning or when the batch was resumed."""

    utc: str
    drives: tuple[DriveShown, ...]


class LedgerNote(msgspec.Struct, frozen=True, kw_only=True, tag="note"):
    """A fact about the whole batch, such as link budgets, or the read rates of drives alone and together."""

    text: str


class DriveBegan(msgspec.Struct, frozen=True, kw_only=True, tag="began"):
    """A record which states that the process of a drive was told to begin. ``pid_started`` distinguishes this process
    from a later process with the same number.
    """

    number: int
    utc: str
    pid: int
    pid_started: str | None
    place: BatchPlace
    again: bool = False


class DriveEnded(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """A record which states that the run of a drive has ended. ``again`` marks the run in which the drive was measured
    once more and alone.
    """

    number: int
    utc: str
    pid: int
    exit_code: int
    text: str = ""
    again: bool = False


class RemoteDriveLine(msgspec.Struct, frozen=True, kw_only=True, tag="heard"):
    """The last report about a drive on another host. Times are those of this machine's clock."""

    number: int
    utc: str
    stage: DriveStage
    exit_code: int | None = None
    text: str = ""
    started_utc: str | None = None
    ended_utc: str | None = None
    place: BatchPlace | None = None
    again: bool = False


Line: TypeAlias = BatchBegun | DrivesConfirmed | LedgerNote | DriveBegan | DriveEnded | RemoteDriveLine | ConnectedHost
_DECODER = make_json_decoder(Line)


class Ledger:
    """The ledger of a batch that this process writes. ``keeps_up`` states whether the last line could be written to the
    ledger.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """Store the open file, and open the file once more for the lock. The lock lets other processes find this
        process.
        """
        self.path = path
        self.keeps_up = True
        self._descriptor = descriptor
        self._locked = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)

    @classmethod
    def create(cls, path: Path, request: BatchRequest, command_line: tuple[str, ...]) -> Ledger:
        """Create the ledger and lock it.

        Raises:
            RunFileError: a file with this name exists, or the ledger cannot be written.
        """
        begun = BatchBegun(format=FORMAT, tkperf_version=__version__, command_line=command_line, request=request)
        return cls._create(path, _encode(begun))

    @classmethod
    def _create(cls, path: Path, content: bytes) -> Ledger:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, _MODE)
        except FileExistsError:
            raise RunFileError(
                f"{path} exists already. Continue this batch with 'tkperf resume {path}', or choose another NAME for "
                "a new batch"
            ) from None
        except OSError as error:
            raise RunFileError(f"cannot write {path}: {reason_of(error)}") from error
        ledger = cls(path, descriptor)
        try:
            ledger._lock()
            ledger._append(content)
        except BaseException:
            ledger.discard()
            raise
        return ledger

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open an existing ledger to continue its batch, and lock it.

        Raises:
            RefusedError: another user may have written the ledger.
            RunFileError: the batch is running, or the ledger cannot be written.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise RunFileError(f"cannot open {path}: {reason_of(error)}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise RunFileError(
                f"{path} is not the file of a batch, because it is not a regular file. Name a file NAME.batch"
            )
        ledger = cls(path, descriptor)
        try:
            require_own(path, os.fstat(descriptor))
            ledger._lock()
        except BaseException:
            ledger.close()
            raise
        return ledger

    def write(self, line: Line) -> None:
        """Append a line durably.

        Raises:
            RunFileError: the ledger cannot be written.
        """
        self._append(_encode(line))

    def _append(self, content: bytes) -> None:
        self.keeps_up = False
        try:
            _write_durably(self._descriptor, content)
        except OSError as error:
            raise RunFileError(f"cannot write {self.path}: {reason_of(error)}") from error
        self.keeps_up = True

    def read(self) -> BatchLog:
        """Return the lines so far, from the open file.

        Raises:
            RunFileError: the file is not a ledger, or was written by a later version of tkperf.
        """
        return _read(self.path, self._content())

    def _content(self) -> bytes:
        size_bytes = min(os.fstat(self._descriptor).st_size, MOST_BYTES)
        return os.pread(self._descriptor, size_bytes, 0)

    def read_state(self) -> BatchState:
        """Return the state of the batch according to this file alone. After the end of this process, another process
        would see this state.

        Raises:
            RunFileError: the file is not a ledger, or was written by a later version of tkperf.
        """
        return _read_twice(lambda: _find_states(self.path, self.read()))

    def keep_name(self) -> bool:
        """Write the file again if its name was removed. If another file now has this name, add ``-kept`` to the name.
        Return whether the file was written again. In this case, ``path`` is the new path.
        """
        path = self.path
        with suppress(OSError):
            if os.path.samestat(path.lstat(), os.fstat(self._descriptor)):
                return False
            path = path.with_stem(f"{path.stem}-kept")
        anew = Ledger._create(path, self._content())
        self.close()
        self.path, self._descriptor, self._locked = path, anew._descriptor, anew._locked
        return True

    def discard(self) -> None:
        """Remove the ledger of a batch in which no run has begun."""
        with suppress(OSError):
            self.path.unlink()
        self.close()

    def close(self) -> None:
        for descriptor in {self._descriptor, self._locked} - {-1}:
            os.close(descriptor)
        self._descriptor = self._locked = -1

    def _lock(self) -> None:
        try:
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFileError(
                f"{self.path}: the batch is still running. Watch it with 'tkperf attach {self.path}'"
            ) from None


def _encode(line: Line) -> bytes:
    """Return a line with its line end. A line end also precedes the line, because the previous line may be
    incomplete.
    """
    return b"\n" + msgspec.json.encode(line) + b"\n"


def _write_durably(descriptor: int, content: bytes) -> None:
    """Append the content with one write."""
    if os.write(descriptor, content) < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def append_end(path: Path, ended: DriveEnded) -> None:
    """Append the end of a drive's run. The drive's own process calls this function. The function raises no error,
    because the run file also records how the run ended. If the ledger's name now belongs to a pipe, to a file with
    several names, or to a file that is not a ledger, nothing is written.
    """
    # The file is opened without blocking. Otherwise, if a pipe had this name, tkperf would wait for another process.
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError):
        descriptor = os.open(path, flags)
        try:
            status = os.fstat(descriptor)
            is_own = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if is_own and os.pread(descriptor, len(_BEGINNING), 0) == _BEGINNING:
                _write_durably(descriptor, _encode(ended))
        finally:
            os.close(descriptor)


@dataclass(slots=True)
class BatchLog:
    """The lines of a ledger."""

    begun: BatchBegun
    confirmed: list[DrivesConfirmed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    began: dict[int, DriveBegan] = field(default_factory=dict)
    ended: dict[int, DriveEnded] = field(default_factory=dict)
    again: set[int] = field(default_factory=set)
    reports: dict[int, RemoteDriveLine] = field(default_factory=dict)
    hosts: dict[str, ConnectedHost] = field(default_factory=dict)

    @property
    def shown(self) -> Mapping[int, DriveShown]:
        """The drives by number, as they were last confirmed."""
        return {drive.number: drive for selection in self.confirmed for drive in selection.drives}


def read_log(path: Path) -> BatchLog:
    """Return the lines of a ledger.

    Raises:
        RunFileError: the file cannot be read, is not a ledger, or was written by a later version of tkperf.
    """
    try:
        content = read_input(path, what="batch", limit_bytes=MOST_BYTES)
    except UsageError as error:
        raise RunFileError(str(error)) from error
    return _read(path, content)


def _read(path: Path, content: bytes) -> BatchLog:
    lines = _parse(content)
    first = next(lines, None)
    if not isinstance(first, BatchBegun):
        raise RunFileError(f"{path} is not the file of a batch, or the first line of the file is damaged")
    if first.format > FORMAT:
        raise RunFileError(
            f"{path} was written by tkperf {first.tkperf_version}, which is newer than the installed version, "
            f"{__version__}. Update tkperf"
        )
    log = BatchLog(begun=first)
    for line in lines:
        match line:
            case DrivesConfirmed():
                log.confirmed.append(line)
            case LedgerNote():
                log.notes.append(line.text)
            case RemoteDriveLine():
                log.reports[line.number] = line
            case ConnectedHost():
                log.hosts[line.host] = line
            case DriveBegan(again=True):
                log.again.add(line.number)
            case DriveEnded(again=True):
                pass  # the run file also contains this end
            case DriveBegan():
                log.began[line.number] = line
                log.ended.pop(line.number, None)
            case DriveEnded():
                log.ended[line.number] = line
    return log


def _parse(content: bytes) -> Iterator[Line]:
    """Yield the lines that can be read. An incomplete line is omitted."""
    for line in content.split(b"\n"):
        if line.strip():
            with suppress(msgspec.DecodeError, UsageError):  # A UsageError means that a value is not valid.
                yield _DECODER.decode(line)


def read_batch(path: Path) -> BatchState:
    """Return the state of a batch, determined from its ledger, its run files and the processes that write them.

    Raises:
        RunFileError: the ledger cannot be read.
    """

    def read() -> BatchState:
        log = read_log(path)
        supervisor = None
        with suppress(OSError):
            writer = find_writer(path)
            supervisor = None if writer is None else (writer.pid or 0)
        return _find_states(path, log, supervisor)

    return _read_twice(read)


def ask_batch_to_end(path: Path) -> None:
    """Ask the process of a batch to end all its runs. If this process does not exist, ask each run to end.

    Raises:
        RunFileError: the ledger cannot be read.
        UsageError: a process belongs to another user.
    """
    if (writer := find_writing(path)) is not None:
        interrupt(path, writer)
        return
    for drive in read_batch(path).drives:
        run_file = Path(drive.run_file)
        if drive.stage is DriveStage.RUNNING and drive.shown.host is None and (one := find_writing(run_file)):
            interrupt(run_file, one)


def _read_twice(read: Callable[[], BatchState]) -> BatchState:
    """Return the state of a batch. If a process seems to have been killed, read the state a second time.

    The process of a drive writes the end of its run into the ledger before the process ends. If the process ends after
    tkperf has read the ledger, but before tkperf examines the process, the process wrongly seems to have been killed.
    """
    state = read()
    if any(drive.stage is DriveStage.KILLED for drive in state.drives):
        return read()
    return state


def _find_states(path: Path, log: BatchLog, supervisor: int | None = None) -> BatchState:
    request, shown = log.begun.request, log.shown
    drives = tuple(
        _find_state(
            log,
            number,
            shown.get(number)
            or DriveShown(
                number=number,
                name=drive.name,
                path=drive.request.device,
                capacity_bytes=0,
                slot=drive.slot,
                host=drive.host,
            ),
            path.parent / f"{drive.name}{RUN_FILE_SUFFIX}",
            waits=supervisor is not None,
        )
        for number, drive in enumerate(request.drives, start=1)
    )
    return BatchState(
        name=request.name,
        path=str(path),
        drives=drives,
        began_utc=log.confirmed[0].utc if log.confirmed else None,
        supervisor=supervisor,
        claims=request.claims,
        claims_path=request.claims_path,
        notes=(*log.notes, *_find_room(path.parent, drives)),
    )


def _find_room(folder: Path, drives: Sequence[DriveState]) -> Iterator[str]:
    """Yield a note if run files cannot be written because the disk is full. The run files themselves do not show this
    state.
    """
    runs_here = any(one.stage is DriveStage.RUNNING and one.shown.host is None for one in drives)
    with suppress(OSError):  # the folder may have been removed
        if not runs_here or shutil.disk_usage(folder).free >= _LEAST_ROOM_BYTES:
            return
        yield f"{folder} is full: new results wait in memory, and views stay as they are; make room there"


def _find_state(log: BatchLog, number: int, shown: DriveShown, run_path: Path, *, waits: bool) -> DriveState:
    if shown.host is not None:
        report, confirmed = log.reports.get(number), number in log.shown
        return find_elsewhere(shown, report, run_path, confirmed=confirmed, followed=waits)
    began, ended = log.began.get(number), log.ended.get(number)
    stage, code, text = _find_stage(began, ended, run_path, waits=waits)
    return DriveState(
        shown=shown,
        run_file=str(run_path),
        stage=stage,
        pid=None if began is None else began.pid,
        exit_code=code,
        text=text,
        started_utc=None if began is None else began.utc,
        ended_utc=None if ended is None else ended.utc,
        place=None if began is None else began.place,
        again_file=str(again_path(run_path)) if number in log.again else None,
    )


def find_elsewhere(
    shown: DriveShown, report: RemoteDriveLine | None, run_path: Path, *, confirmed: bool, followed: bool
) -> DriveState:
    """Return the state of a drive on another host, according to the last report about the drive. ``followed`` means
    that further reports may arrive.
    """
    if report is None:
        if followed:
            stage, text = DriveStage.WAITING, ""
        elif confirmed:  # in this case, the host may have received the consent
            stage, text = DriveStage.WAITING, f"no word from {shown.host} since consent"
        else:
            stage, text = DriveStage.CONSENT_ENDED, _WAITED
        return DriveState(shown=shown, run_file=str(run_path), stage=stage, text=text)
    text = report.text
    if not followed and report.stage in (DriveStage.RUNNING, DriveStage.WAITING):
        text = f"as of {report.utc} from {shown.host}"
    return DriveState(
        shown=shown,
        run_file=str(run_path),
        stage=report.stage,
        exit_code=report.exit_code,
        text=text,
        started_utc=report.started_utc,
        ended_utc=report.ended_utc,
        place=report.place,
        again_file=str(again_path(run_path)) if report.again else None,
    )


def _find_stage(
    began: DriveBegan | None, ended: DriveEnded | None, run_path: Path, *, waits: bool
) -> tuple[DriveStage, int | None, str]:
    """Return the stage, the exit code and the reason. A run that a user continues without the batch also counts as
    running.
    """
    if _is_written(run_path):
        return DriveStage.RUNNING, None, ""
    status = _status_of(run_path)
    if status is RunStatus.COMPLETE:
        return DriveStage.DONE, ExitCode.DONE, ""
    if ended is not None and ended.exit_code == ExitCode.DONE:
        because = f"measured to its end, but {run_path.name} is missing or damaged since; put it back"
        return DriveStage.FAILED, ExitCode.RUN_FILE, because
    if ended is not None:
        stage = DriveStage.KILLED if ended.exit_code > BY_SIGNAL else DriveStage.FAILED
        if ended.exit_code == ExitCode.STOPPED:
            stage = DriveStage.STOPPED
        return stage, ended.exit_code, ended.text
    if began is None:
        if waits:
            return DriveStage.WAITING, None, ""
        return DriveStage.CONSENT_ENDED, None, _WAITED
    # The process counts as running before it has opened its run file, and after it has closed the file.
    if began.pid_started is not None and find_start(began.pid) == began.pid_started:
        return DriveStage.RUNNING, None, ""
    return DriveStage.KILLED, None, "its process ended without a report"


def _is_written(run_path: Path) -> bool:
    try:
        return is_being_written(run_path)
    except OSError:
        return False


def _status_of(run_path: Path) -> RunStatus | None:
    try:
        return _read_status(run_path, (_stamp(run_path), _stamp(journal_of(run_path))))
    except RunFileError:
        return None


@lru_cache(maxsize=_KEPT_STATUSES)
def _read_status(run_path: Path, _stamps: object) -> RunStatus:
    """Return the status of a run. The status is read only once for each state of the files, because tkperf reads a
    batch every few seconds and finished runs do not change.
    """
    return outline_first(run_path).record.status


def _stamp(path: Path) -> FileStamp | None:
    try:
        return state_of(path.stat())
    except OSError:
        return None


def again_path(run_path: Path) -> Path:
    """Return the path of the run file of a second run, in which the drive is measured once more and alone."""
    return run_path.with_name(f"{run_path.stem}{AGAIN}{run_path.suffix}")


def find_start(pid: int) -> str | None:
    """Return when a process started, in clock ticks of the kernel. None means that the process does not exist or has
    ended.
    """
    fields = process_fields(Path(f"/proc/{pid}"))
    # A process that has ended remains as a zombie (Z) until its parent waits for it. The parent may be stopped.
    has_ended = fields[:1] in (["Z"], ["X"])
    return fields[_STARTED] if len(fields) > _STARTED and not has_ended else None
