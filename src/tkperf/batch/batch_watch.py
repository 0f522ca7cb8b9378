"""A view of a batch. The view repeatedly reads the ledger and the run files of the batch, and works even if the process
of the batch no longer exists.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tkperf.analysis.batch_verdict import BatchDriveResult, BatchResult, compare_drives
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import ClaimsFile, parse_claims
from tkperf.analysis.results import RunResult
from tkperf.batch.ledger import read_batch
from tkperf.model.batch_state import BatchState, DriveStage, DriveState
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.record import RunRecord
from tkperf.pipeline.result_cache import read_results
from tkperf.pipeline.run_state import Brief, RunState
from tkperf.pipeline.running_runs import FollowedFile, find_clock_s
from tkperf.runner.events import Event, find_place_events

# The number of readings of run files per second, for all drives together. A reading needs a few milliseconds, even if
# there are many new events.
LOOKS_A_SECOND = 4.0
EACH_EVERY_S = 2.0
# The ledger shows when drives begin and end, but a killed process writes no entry. All drives are therefore examined at
# this interval.
_LOOK_AT_ALL_S = 10.0
# The greatest number of events that are kept for a view. If a view accepts no events, the oldest events are discarded.
_MOST_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class DriveEvent:
    """A new event in the run of a drive. ``record`` is the state of the run when the event was read."""

    number: int
    event: Event
    record: RunRecord


class BatchFollower(Protocol):
    """The state of a batch and its new events, for a view.

    Attributes:
        news: new events in runs of this host, from the last reading of the files.
        passed_on: new events in runs on other hosts, as JSON, each with the number of the drive.
    """

    state: BatchState
    news: list[DriveEvent]
    passed_on: list[tuple[int, dict[str, object]]]

    @property
    def runs(self) -> Mapping[int, RunState] | Mapping[int, Brief]:
        """The latest known state of each running run. The number of the drive is the key."""

    def look(self) -> object:
        """Read the files that may have changed."""


class WatchedHosts:
    """The state of a batch over several hosts. One thread writes the values, and another thread reads them. Each value
    is replaced as a whole.
    """

    def __init__(self, state: BatchState) -> None:
        self.state = state
        self.runs: Mapping[int, Brief] = {}
        self.news: list[DriveEvent] = []
        self.passed_on: list[tuple[int, dict[str, object]]] = []
        self._coming = deque[tuple[int, dict[str, object]]](maxlen=_MOST_EVENTS)

    def pass_on(self, number: int, event: dict[str, object]) -> None:
        self._coming.append((number, event))

    def look(self) -> None:
        self.passed_on = [self._coming.popleft() for _ in range(len(self._coming))]


class WatchedBatch:
    """A batch and the state of each running run.

    Attributes:
        news: the new events from the last reading of the files. If a run was already running at the first reading, the
            first events of this run show only the current position of the run.

    Args:
        path: the path of the ledger, or a function that returns the current path of the ledger.

    Raises:
        RunFileError: the ledger cannot be read.
    """

    def __init__(
        self,
        path: Path | Callable[[], Path],
        looks_a_second: float = LOOKS_A_SECOND,
        each_every_s: float = EACH_EVERY_S,
    ) -> None:
        self._find_path = path if callable(path) else lambda: path
        self.path = self._find_path()
        self.state: BatchState = read_batch(self.path)
        self.news: list[DriveEvent] = []
        self.passed_on: list[tuple[int, dict[str, object]]] = []
        self._looks_a_second, self._each_every_s = looks_a_second, each_every_s
        self._runs: dict[int, RunState] = {}
        self._files: dict[int, FollowedFile] = {}
        self._earlier = {drive.shown.number for drive in self.state.drives if drive.stage is DriveStage.RUNNING}
        self._next = 0
        self._seen = self._stamp()
        self._looked_s = self._followed_s = time.monotonic()
        self._due = 0.0

    @property
    def runs(self) -> Mapping[int, RunState]:
        """The latest known state of each running run. The number of the drive is the key."""
        return dict(self._runs)

    def look(self) -> bool:
        """Read the files that may have changed, and return whether the batch has changed. The function reads each run
        once every ``each_every_s``, and no more than ``looks_a_second`` runs each second.
        """
        self.news = []
        self.path = self._find_path()
        now_s = time.monotonic()
        stamp = self._stamp()
        changed = stamp != self._seen or now_s - self._looked_s > _LOOK_AT_ALL_S
        if changed:
            self._seen, self._looked_s = stamp, now_s
            before, self.state = self.state, read_batch(self.path)
            self._follow_ends(before)
        running = [one for one in self.state.drives if one.stage is DriveStage.RUNNING]
        rate = min(self._looks_a_second, len(running) / self._each_every_s)
        # After a pause, many readings would be due at once. The limit ``max(1.0, rate)`` prevents this.
        self._due = min(self._due + rate * (now_s - self._followed_s), max(1.0, rate))
        self._followed_s = now_s
        while self._due >= 1:
            self._due -= 1
            drive = running[self._next % len(running)]
            self._next += 1
            self._follow(drive.shown.number, Path(drive.run_file))
        return changed

    def look_at_all(self) -> None:
        """Read every running run once, for a view that shows the batch only once."""
        for drive in self.state.drives:
            if drive.stage is DriveStage.RUNNING:
                self._follow(drive.shown.number, Path(drive.run_file))

    def _follow_ends(self, before: BatchState) -> None:
        """Read the last events of the runs that have ended since the batch was last read."""
        for was, drive in zip(before.drives, self.state.drives, strict=True):
            if was.stage is DriveStage.RUNNING and drive.stage is not DriveStage.RUNNING:
                self._follow(drive.shown.number, Path(drive.run_file))

    def _follow(self, number: int, run_file: Path) -> None:
        file = self._files.get(number)
        try:
            if file is None:
                file = self._files[number] = FollowedFile(run_file)
                self._runs[number] = RunState()
                events = file.first_events()
                seen = events if number not in self._earlier else list(find_place_events(events))
            else:
                events = seen = file.new_events()
        except RunFileError:  # the file does not exist yet, or was moved
            return
        run, record = self._runs[number], file.record
        for event in events:
            run.take(event)
        self.news += [DriveEvent(number, event, record) for event in seen]
        clock_s = find_clock_s(record)
        if clock_s is not None and file.is_running:
            run.at_s = max(run.at_s, clock_s)

    def _stamp(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)  # noqa: PTH116
        except OSError as error:
            raise RunFileError(
                f"{self.path} can no longer be read: {error.strerror}. Check whether somebody moved or deleted the file"
            ) from error
        return status.st_size, status.st_mtime_ns


def read_batch_result(
    state: BatchState,
    *,
    claims: ClaimsFile | None = None,
    folder: Path | None = None,
    load: Callable[[Path], RunResult] = read_results,
) -> BatchResult:
    """Read the runs of a batch and return their combined results.

    Args:
        claims: claims that replace the claims of the batch. ``folder`` is the folder of the file with these claims.
        load: a function that reads the baseline of the claims.

    Raises:
        UsageError: the claims of the batch cannot be read.
    """
    if claims is None and state.claims is not None:
        file = state.claims_path or state.path
        claims = parse_claims(state.claims, file=file)
        folder = Path(file).parent
    baselines: dict[Path, RunResult] = {}

    def load_once(path: Path) -> RunResult:
        if path not in baselines:
            baselines[path] = load(path)
        return baselines[path]

    drives = tuple(map(_read, state.drives))
    if claims is not None:
        checks = claims
        drives = tuple(_check(one, checks, folder or Path(), load_once) for one in drives)
    names = {drive.shown.number: drive.shown.label for drive in state.drives}
    groups, why_not = compare_drives(drives, names)
    return BatchResult(state=state, drives=drives, has_claims=claims is not None, groups=groups, not_compared=why_not)


def with_reports(batch_result: BatchResult, folder: Path) -> BatchResult:
    """Return a copy of the result. In the copy, each drive has a link to its report if the folder of the result's page
    contains this report.
    """
    drives = []
    for one in batch_result.drives:
        report = Path(one.state.run_file).with_suffix(".html")
        is_there = (folder / report.name).is_file()
        drives.append(replace(one, report=report.name) if is_there else one)
    return replace(batch_result, drives=tuple(drives))


def _read(drive: DriveState) -> BatchDriveResult:
    if not drive.stage.has_begun or not Path(drive.run_file).exists():
        return BatchDriveResult(state=drive)
    try:
        return BatchDriveResult(state=drive, result=read_results(Path(drive.run_file)))
    except RunFileError as error:
        return BatchDriveResult(state=drive, error=str(error))


def _check(
    one: BatchDriveResult, claims: ClaimsFile, folder: Path, load_baseline: Callable[[Path], RunResult]
) -> BatchDriveResult:
    if one.result is None:
        return one
    try:
        return replace(one, checked=check_claims(claims, one.result, load=load_baseline, folder=folder))
    except (UsageError, RunFileError) as error:
        return replace(one, not_checked=str(error))
