"""Run files read while their run goes on: for attach, status, stop, and whatever else shows a run's progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tkperf.device.identity import TargetKind
from tkperf.model.errors import RunFileError, reason_of
from tkperf.model.record import RunRecord, RunStatus
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writers import is_being_written
from tkperf.runner.events import Delta, Event, Outline
from tkperf.runner.follow import Follower

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
    """Return the outline of the run in such a file, which takes less time than a look at its log.

    Raises:
        RunFileError: see RunFile.
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
            if time.monotonic() > until_s or not _is_in_the_making(path):
                raise
        time.sleep(0.1)


def _is_in_the_making(path: Path) -> bool:
    try:
        return is_being_written(path)
    except OSError:
        return False


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
