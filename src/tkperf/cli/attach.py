"""tkperf attach: watch a run from another terminal, by its run file alone."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from tkperf.cli.background import View
from tkperf.cli.following import describe_end, find_clock_s, look, look_first
from tkperf.cli.live import LiveView
from tkperf.cli.plain import PlainLines
from tkperf.cli.progress import JsonLines
from tkperf.cli.signals import ended_by_signals
from tkperf.model.errors import RunFileError, reason_of
from tkperf.model.record import RunRecord, RunStatus
from tkperf.model.units import format_duration
from tkperf.render.terminal.console import choose_progress, plain, tell
from tkperf.runfile.writers import is_being_written
from tkperf.runner.delta import Growth
from tkperf.runner.events import (
    Event,
    PhaseStarted,
    RunEnded,
    RunResumed,
    RunStarted,
    SampleSeen,
    StepEnded,
    StepStarted,
    TestStarted,
)
from tkperf.runner.follow import Follower

LOOK_EVERY_S = 0.5


def attach(run_file: Path, progress: str, verbose: bool) -> None:
    """Show a run until it ends, or until Ctrl-C."""
    growth = look_first(run_file)
    if growth.record.status is not RunStatus.RUNNING:
        tell(*describe_end(run_file, growth.record))
        return
    name = run_file.stem
    try:
        with ended_by_signals(once=False):
            record = _watch(run_file, growth, progress, verbose=verbose)
    except KeyboardInterrupt:
        tell(f"no longer watched: {plain(name)} goes on; 'tkperf stop {plain(run_file)}' ends it")
        return
    tell(*describe_end(run_file, record))


def _watch(run_file: Path, growth: Growth, progress: str, *, verbose: bool) -> RunRecord:
    """Show a run until it ends. Return its last record, without its steps."""
    follower = Follower()
    with ExitStack() as stack:
        view = _open_view(progress, stack, verbose=verbose)
        view.catch_up(list(follower.take(growth)))
        seen = _state(run_file)
        while growth.record.status is RunStatus.RUNNING:
            time.sleep(LOOK_EVERY_S)
            now = _state(run_file)
            if now == seen:
                view.wait(growth.record)
                continue
            seen = now
            growth = look(run_file, growth)
            for event in follower.take(growth):
                view.show(event)
            view.wait(growth.record)
    return growth.record


def _state(run_file: Path) -> tuple[int, int, int, bool]:
    """Return values that change when the writer writes or ends. It does not read the file's content.

    Raises:
        RunFileError: the file cannot be read any more.
    """
    try:
        status = run_file.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns, is_being_written(run_file)
    except OSError as error:
        raise RunFileError(
            f"{run_file} cannot be read any more: {reason_of(error)}; the run may go on without it"
        ) from error


class _Attached(Protocol):
    def catch_up(self, events: list[Event]) -> None:
        """Take the events from before this view was opened."""
        ...

    def show(self, event: Event) -> None: ...

    def wait(self, record: RunRecord) -> None:
        """Note that time has passed, with the latest record."""
        ...


def _open_view(progress: str, stack: ExitStack, *, verbose: bool) -> _Attached:
    progress = choose_progress(progress)
    if progress == "live":
        return _Drawn(stack.enter_context(LiveView()))
    if progress == "json":
        return _Written(JsonLines(sys.stdout))
    return _Written(PlainLines(sys.stderr, every_s=0.0 if verbose else None))


class _Written:
    """View as lines or JSON. From earlier events it shows only the current place of the run."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._record: RunRecord | None = None

    def catch_up(self, events: list[Event]) -> None:
        for kind in (RunStarted, RunResumed, TestStarted, PhaseStarted, StepStarted):
            latest = [event for event in events if isinstance(event, kind)]
            if latest:
                self._view(latest[-1], datetime.now(UTC))

    def show(self, event: Event) -> None:
        self._view(event, self._time_of(event))

    def wait(self, record: RunRecord) -> None:
        self._record = record

    def _time_of(self, event: Event) -> datetime:
        """Return the time of an event if the file gives it, else now. Seconds of some minutes arrive at once."""
        now = datetime.now(UTC)
        clock_s = None if self._record is None else find_clock_s(self._record, now)
        at_s = event.at_s if isinstance(event, SampleSeen) else None
        if isinstance(event, StepEnded):
            at_s = event.record.started_s + event.record.measurement.duration_s
        if clock_s is None or at_s is None:
            return now
        return now - timedelta(seconds=max(0.0, clock_s - at_s))


class _Drawn:
    """Live view with the age of its figures."""

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._last_s: float | None = None

    def catch_up(self, events: list[Event]) -> None:
        for event in events:
            self._take(event)
        self._view.draw()

    def show(self, event: Event) -> None:
        self._take(event)
        if isinstance(event, RunEnded):
            self._view.draw()

    def _take(self, event: Event) -> None:
        self._view.take(event)
        if isinstance(event, SampleSeen):
            self._last_s = event.at_s

    def wait(self, record: RunRecord) -> None:
        now_s = find_clock_s(record)
        age = ""
        if now_s is not None:
            self._view.pass_time(now_s)
            if self._last_s is not None:
                age = f"; figures of {format_duration(max(0.0, now_s - self._last_s))} ago"
        self._view.footer = f"attached, read-only: Ctrl-C ends this view, the run goes on{age}"
        self._view.draw()
