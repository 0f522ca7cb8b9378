"""Runs of other processes, by their run files alone: followed, listed, and asked to end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tkperf.device.identity import TargetKind
from tkperf.device.sysfs import text
from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.runfile.reader import RunFile
from tkperf.runfile.run_rows import ENDED_BY_KILL
from tkperf.runfile.writers import Writer, find_running, find_writer, is_being_written
from tkperf.runner.events import Delta, Event, Outline
from tkperf.runner.follow import Follower
from tkperf.runner.progress import Progress, describe_place, find_progress

# The state of a run whose process was killed, so that its file says nothing of an end.
KILLED_STATE = "killed"

# A new file has no tables yet.
CREATED_WITHIN_S = 5.0

Seen = TypeVar("Seen")


def look(path: Path, since: Delta | None = None) -> Delta:
    """Return what a run file gained. The file is open only for this read, as its writer waits meanwhile.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path, briefly=since is None) as run_file:
        return run_file.delta(since)


def look_first(path: Path) -> Delta:
    """Return the whole content of a run file that may be just created."""
    return _once_made(path, look)


def outline_first(path: Path) -> Outline:
    """Return the outline of the run in such a file, which takes less time than a look at its log."""

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
    """Return the run's own time now, by the host's calendar clock; None if the file does not give it.

    A run's clock goes on during an interruption. A simulated run has a clock of its own.
    """
    if record.info.device.get("kind") == TargetKind.SIMULATED:
        return None
    origin_s, utc = 0.0, record.info.started_utc
    if record.resumptions:
        origin_s, utc = record.resumptions[-1].resumed_s, record.resumptions[-1].resumed_utc
    try:
        began = datetime.fromisoformat(utc or "")
    except ValueError:
        return None
    if began.tzinfo is None:
        began = began.replace(tzinfo=UTC)
    return origin_s + max(0.0, ((now or datetime.now(UTC)) - began).total_seconds())


class FollowedFile:
    """A run file that is looked at now and then, without its content if nothing has changed.

    Raises:
        RunFileError: see RunFile.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._delta = look_first(path)
        self._state: tuple[int, int, int, bool] | None = None
        self._follower = Follower()

    @property
    def record(self) -> RunRecord:
        """The run at the last look, with its new steps only."""
        return self._delta.record

    @property
    def goes_on(self) -> bool:
        return self.record.status is RunStatus.RUNNING

    def first_events(self) -> list[Event]:
        """Return all events until the file was opened."""
        return list(self._follower.take(self._delta))

    def new_events(self) -> list[Event]:
        """Look at the file, and return the events since the look before.

        Raises:
            RunFileError: the file cannot be read any more.
        """
        state = self._find_state()
        if state == self._state:
            return []
        self._state = state
        self._delta = look(self._path, self._delta)
        return list(self._follower.take(self._delta))

    def _find_state(self) -> tuple[int, int, int, bool]:
        """Return values that change when the writer writes or ends."""
        try:
            status = self._path.stat()
            return status.st_ino, status.st_size, status.st_mtime_ns, is_being_written(self._path)
        except OSError as error:
            raise RunFileError(
                f"{self._path} cannot be read any more: {reason_of(error)}; the run may go on without it"
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """Progress of one run. Fields are the keys of ``--json``; null means not known, or not so."""

    run_file: str
    name: str
    device: str | None
    state: str
    because: str | None
    pid: int | None
    user: str | None
    test: str | None
    test_number: int | None
    tests: int
    place: str | None
    fill_done: float | None
    elapsed_s: float | None
    remaining_shortest_s: float | None
    remaining_longest_s: float | None
    warnings: int
    disturbed_steps: int | None

    @property
    def remaining_s(self) -> tuple[float, float] | None:
        """The shortest and the longest remaining time; None: not known."""
        if self.remaining_shortest_s is None or self.remaining_longest_s is None:
            return None
        return self.remaining_shortest_s, self.remaining_longest_s

    @property
    def state_in_words(self) -> str:
        if self.state == RunStatus.RUNNING:
            who = "a process not seen from here" if self.pid is None else f"process {self.pid}"
            return f"running, {who}"
        if self.state == KILLED_STATE:
            return f"{KILLED_STATE}: {ENDED_BY_KILL}"
        return f"{self.state}: {self.because}" if self.because else self.state

    @property
    def place_in_words(self) -> str:
        if self.test is None or self.state == RunStatus.COMPLETE:
            return "-" if not self.tests else f"{self.tests} of {self.tests} tests"
        share = "" if self.fill_done is None else f" {self.fill_done:.0%}"
        place = f": {self.place}{share}" if self.place else ""
        return f"test {self.test_number} of {self.tests}, {self.test}{place}"


def read_overview(path: Path) -> RunOverview:
    """Return the progress of the run in a file.

    Raises:
        RunFileError: see RunFile.
    """
    outline = outline_first(path)
    record, log = outline.record, tuple[LogEntry, ...]()
    if record.status is not RunStatus.COMPLETE:
        # The log gives the place of the run, but takes long to read.
        delta = look_first(path)
        record, log = delta.record, delta.log
    running = record.status is RunStatus.RUNNING
    writer = None
    if running:
        with suppress(OSError):
            writer = find_writer(path)
    progress = find_progress(record, log)
    now_s = find_clock_s(record) if running else None
    remaining = None if now_s is None else progress.remaining_s(now_s)
    return RunOverview(
        run_file=str(path),
        name=record.info.name,
        device=_device_of(record),
        state=_state_of(record),
        because=record.ended_because,
        pid=None if writer is None else writer.pid,
        user=None if writer is None else writer.user,
        test=progress.test,
        test_number=progress.number or None,
        tests=progress.tests,
        place=describe_place(progress) or None,
        fill_done=_fill_done(record, progress),
        elapsed_s=now_s if running else _ended_s(record),
        remaining_shortest_s=None if remaining is None else remaining[0],
        remaining_longest_s=None if remaining is None else remaining[1],
        warnings=len(record.warnings),
        disturbed_steps=outline.disturbed_steps,
    )


def find_run_files() -> tuple[list[Path], list[Writer]]:
    """Return the run files under way and in this folder, and the writers whose run file is out of reach."""
    paths, unseen = [], []
    for writer in find_running():
        if writer.path is not None and writer.path.is_file():
            in_here = writer.path.parent == Path.cwd()
            paths.append(Path(writer.path.name) if in_here else writer.path)
        else:
            unseen.append(writer)
    here = sorted(path for path in Path().glob(f"*{RUN_FILE_SUFFIX}") if path.is_file())
    running = {path.resolve() for path in paths}
    return (
        [*sorted(paths), *(path for path in here if path.resolve() not in running)],
        unseen,
    )


def _state_of(record: RunRecord) -> str:
    if record.info.imported:
        return "imported"
    if record.status is RunStatus.INTERRUPTED and record.ended_utc is None:
        return KILLED_STATE
    return record.status.value


def _device_of(record: RunRecord) -> str | None:
    facts = record.info.device
    words = [facts.get("model"), facts.get("serial"), facts.get("path")]
    return ", ".join(str(word) for word in words if word) or None


def _fill_done(record: RunRecord, progress: Progress) -> float | None:
    """Return the share of a fill under way that is written, by its last kept minute."""
    for test in record.tests:
        step = test.under_way
        if step is not None and test.name == progress.test and step.planned_bytes:
            return min(1.0, step.measured_so_far.write.bytes / step.planned_bytes)
    return None


def _ended_s(record: RunRecord) -> float | None:
    return max((test.ended_s for test in record.tests if test.ended_s is not None), default=None)


def find_writing(run_file: Path) -> Writer | None:
    """Return the process that writes a run file, if one does.

    Raises:
        RunFileError: the file cannot be read.
    """
    try:
        return find_writer(run_file)
    except OSError as error:
        raise RunFileError(f"cannot read {run_file}: {reason_of(error)}") from error


def interrupt(run_file: Path, writer: Writer) -> None:
    """Ask a run to end: signal only the process that holds the file's lock, never another one that has its number by then.

    Raises:
        UsageError: the process is not seen from here, is another user's, or is no tkperf.
    """
    pid = writer.pid
    if pid is None:
        raise UsageError(
            f"{run_file} is being written, but not by a process seen from here: stop it in the "
            "container or on the machine where it runs"
        )
    theirs = f"{run_file}: process {pid} of user {writer.user or 'not known'} writes it"
    if writer.is_tkperf is None:
        raise UsageError(f"{theirs}; only that user and root may stop it")
    if not writer.is_tkperf:
        raise UsageError(f"{theirs}; it is {writer.program or 'not known'}, no tkperf")
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return  # it has ended just now
    try:
        # The descriptor holds that very process: while it is alive, no other one gets its number.
        if find_writing(run_file) == writer:
            signal.pidfd_send_signal(process, signal.SIGINT)
    except ProcessLookupError:
        return
    except PermissionError:
        raise UsageError(f"{theirs}; only that user and root may stop it") from None
    finally:
        os.close(process)


def describe_wait(pid: int | None) -> str:
    """Explain a long wait. A process that a signal stopped (T in proc(5)) ends only when it goes on."""
    state = (text(Path(f"/proc/{pid}/stat")) or "").rpartition(")")[2].split()[:1]
    why = (
        f"it stands still by SIGSTOP or Ctrl-Z, and ends once it goes on: kill -CONT {pid}"
        if state == ["T"]
        else "a purge under way is finished first, and a full disk is waited for"
    )
    return f"waiting for process {pid}: {why}; Ctrl-C ends this waiting alone"
