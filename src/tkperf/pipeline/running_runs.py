"""The runs of other processes. To follow and list these runs, tkperf reads only their run files. tkperf can also ask
these runs to end.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from tkperf.analysis.run_overview import RunOverview, build_ended_overview, build_overview, find_verdict
from tkperf.device.identity import TargetKind
from tkperf.device.sysfs import process_fields
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import LockedRunFileError, RunFileError, UsageError, reason_of
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.pipeline.result_cache import find_overview, keep_overview
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writers import Writer, find_running, find_writer, is_being_written
from tkperf.runner.events import Delta, Event, Outline
from tkperf.runner.run_log import Follower
from tkperf.system.host import parse_utc

# If a new file contains no tables yet, tkperf tries for this time in s to read the file.
CREATED_WITHIN_S = 5.0

Seen = TypeVar("Seen")


def look(path: Path, since: Delta | None = None) -> Delta:
    """Return the new rows of a run file. The writer waits only while the bytes of the file are copied.

    Raises:
        RunFileError: the same errors as in ``RunFile``.
    """
    with RunFile(path, briefly=True) as run_file:
        return run_file.delta(since)


def look_first(path: Path) -> Delta:
    """Return the whole content of a run file that may have just been created."""
    return _once_made(path, look)


def outline_first(path: Path) -> Outline:
    """Return the outline of the run in a run file that may have just been created. Reading the outline takes less time
    than reading the log.
    """

    def outline(path: Path) -> Outline:
        with RunFile(path) as run_file:
            return run_file.outline()

    return _once_made(path, outline)


def _once_made(path: Path, read: Callable[[Path], Seen]) -> Seen:
    until_s = time.monotonic() + CREATED_WITHIN_S
    while True:
        try:
            return read(path)
        except RunFileError:
            is_in_the_making = False
            with suppress(OSError):
                is_in_the_making = is_being_written(path)
            if time.monotonic() > until_s or not is_in_the_making:
                raise
        time.sleep(0.1)


def find_clock_s(record: RunRecord, now: datetime | None = None) -> float | None:
    """Return the present time of the run's clock in s, according to the calendar clock of the host. None means that the
    file does not contain the start of the run, or that the run is simulated.

    The clock of a run continues during an interruption. A simulated run has a simulated clock.
    """
    if record.info.device.get("kind") == TargetKind.SIMULATED:
        return None
    origin_s, utc = 0.0, record.info.started_utc
    if record.resumptions:
        origin_s, utc = record.resumptions[-1].resumed_s, record.resumptions[-1].resumed_utc
    began = parse_utc(utc)
    if began is None:
        return None
    return origin_s + max(0.0, ((now or datetime.now(UTC)) - began).total_seconds())


class FileStamp(NamedTuple):
    """Values that change when a writer writes to the file, and when the writer ends."""

    inode: int
    size_bytes: int
    changed_ns: int
    is_held: bool


class FollowedFile:
    """A run file that tkperf reads from time to time. The content is read only if the file has changed.

    Raises:
        RunFileError: the same errors as in ``RunFile``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._delta = look_first(path)
        self._state: FileStamp | None = None
        self._follower = Follower()
        self._rests_until_s = 0.0

    @property
    def record(self) -> RunRecord:
        """The run at the time of the last reading, with only its new steps."""
        return self._delta.record

    @property
    def is_running(self) -> bool:
        return self.record.status is RunStatus.RUNNING

    @property
    def is_held(self) -> bool:
        """Whether a process held the file at the last reading. This process executes the run, or a resumption that has
        not begun yet.
        """
        return (self._state or self._find_state()).is_held

    @property
    def has_changed(self) -> bool:
        """Whether the file may contain new events.

        Raises:
            RunFileError: the file can no longer be read.
        """
        return self._is_due(self._find_state())

    def first_events(self) -> list[Event]:
        """Return all events up to the moment at which the file was opened."""
        return list(self._follower.take(self._delta))

    def new_events(self) -> list[Event]:
        """Read the file, and return the events since the previous reading. If a process still writes the file and the
        file stays locked for longer than ``LOCKED_S``, for example because a busy disk delays a commit of the run,
        return no events.

        Raises:
            RunFileError: the file can no longer be read.
        """
        state, began_s = self._find_state(), time.monotonic()
        if not self._is_due(state):
            return []
        try:
            self._delta = look(self._path, self._delta)
        except LockedRunFileError:
            if not state.is_held:
                raise
            return []
        self._state = state
        events = list(self._follower.take(self._delta))
        ended_s = time.monotonic()
        self._rests_until_s = ended_s + (ended_s - began_s)
        return events

    def _is_due(self, state: FileStamp) -> bool:
        """Return whether the file, whose present state is given, should be read now.

        After each reading, the function pauses for as long as the reading took. A file that changes all the time
        therefore uses at most half of a CPU. The end of the run is detected immediately.
        """
        if self._state is None or state.is_held != self._state.is_held:
            return True
        return state != self._state and time.monotonic() >= self._rests_until_s

    def _find_state(self) -> FileStamp:
        """Return values that change when the writer writes to the file or ends."""
        try:
            status = self._path.stat()
            is_held = is_being_written(self._path)
            return FileStamp(status.st_ino, status.st_size, status.st_mtime_ns, is_held)
        except OSError as error:
            raise RunFileError(
                f"{self._path} can no longer be read: {reason_of(error)}. The run itself may continue"
            ) from error


def read_overview(path: Path, *, judged: bool = False) -> RunOverview:
    """Return the overview of the run in a file.

    If ``judged`` is true, the overview contains the verdict. For the verdict, all steps are read, but neither seconds
    nor histograms. The overview of a run that has ended is then stored in the user's cache.

    Raises:
        RunFileError: the same errors as in ``RunFile``.
    """
    if judged and (overview := find_overview(path) or _judge_ended(path)) is not None:
        return overview
    outline = outline_first(path)
    record, log = outline.record, tuple[LogEntry, ...]()
    if record.status is not RunStatus.COMPLETE:
        # The log shows the present position of the run, but reading the log is slow. The log is therefore read only for
        # a run that is not complete.
        delta = look_first(path)
        record, log = delta.record, delta.log
    running = record.status is RunStatus.RUNNING
    writer = None
    if running:
        with suppress(OSError):
            writer = find_writer(path)
    return build_overview(
        record,
        log,
        run_file=str(path),
        now_s=find_clock_s(record) if running else None,
        pid=None if writer is None else writer.pid,
        user=None if writer is None else writer.user,
        disturbed_steps=outline.disturbed_steps,
        verdict=find_verdict(record) if judged else None,
    )


def _judge_ended(path: Path) -> RunOverview | None:
    """Return the overview of a finished run with its verdict, and store it. None means that the run has not ended."""
    with suppress(OSError):
        if is_being_written(path):
            return None
    with RunFile(path) as opened:
        record, log = opened.record(histograms=False), opened.log()
        if record.status is RunStatus.RUNNING:
            return None
        overview = build_ended_overview(record, log, find_verdict(record))
        if not record.left_out:
            keep_overview(opened.state, overview)
    return replace(overview, run_file=str(path))


def find_run_files() -> tuple[list[Path], list[Writer]]:
    """Return the run files of running runs and of this folder, and the writers whose run files cannot be reached."""
    paths, unseen = [], []
    for writer in find_running():
        if writer.path is not None and writer.path.is_file():
            in_here = writer.path.parent == Path.cwd()
            paths.append(Path(writer.path.name) if in_here else writer.path)
        else:
            unseen.append(writer)
    here = sorted(path for path in Path().glob(f"*{RUN_FILE_SUFFIX}") if path.is_file())
    running = {path.resolve() for path in paths}
    return ([*sorted(paths), *(path for path in here if path.resolve() not in running)], unseen)


def find_writing(run_file: Path) -> Writer | None:
    """Return the process that writes a run file. None means that no process writes it.

    Raises:
        RunFileError: the file cannot be read.
    """
    try:
        return find_writer(run_file)
    except OSError as error:
        raise RunFileError(f"cannot read {run_file}: {reason_of(error)}") from error


def interrupt(run_file: Path, writer: Writer) -> None:
    """Ask a run to end. The signal reaches only the process that holds the lock of the file, and never a process that
    receives the same process number later.

    Raises:
        UsageError: the process is not visible from here, belongs to another user, or is not a tkperf process.
    """
    pid = writer.pid
    if pid is None:
        raise UsageError(
            f"a process that is not visible here is writing to {run_file}. Stop the run in its container or on its "
            "machine"
        )
    theirs = f"{run_file}: process {pid} of user {writer.user or 'not known'} writes it"
    with_sudo = f"{theirs}; only that user and root may stop it: 'sudo tkperf stop {run_file}'"
    if writer.is_tkperf is None:
        raise UsageError(with_sudo)
    if not writer.is_tkperf:
        raise UsageError(f"{theirs}; it is {writer.program or 'not known'}, no tkperf")
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return  # the process has just ended
    try:
        # The descriptor refers to this process. While the process is alive, no other process can receive its number.
        if find_writing(run_file) == writer:
            signal.pidfd_send_signal(process, signal.SIGINT)
    except ProcessLookupError:
        return
    except PermissionError:
        raise UsageError(with_sudo) from None
    finally:
        os.close(process)


def format_stop_command(path: Path) -> str:
    """Return the command that ends the run or batch of a file. The command uses sudo if a process of another user
    writes the file.
    """
    writer = None
    with suppress(OSError):
        writer = find_writer(path)
    is_theirs = writer is not None and writer.pid is not None and writer.is_tkperf is None
    return f"{'sudo ' if is_theirs else ''}tkperf stop {path}"


def describe_wait(pid: int | None) -> str:
    """Return a text that explains a long wait. A process that a signal has stopped (state T in proc(5)) cannot end
    before it is continued.
    """
    state = process_fields(Path(f"/proc/{pid}"))[:1]
    why = (
        f"it is stopped (SIGSTOP or Ctrl-Z) and ends once it continues: kill -CONT {pid}"
        if state == ["T"]
        else "a purge under way is finished first, and a full disk is waited for"
    )
    return f"waiting for process {pid}: {why}; Ctrl-C ends only this waiting"
