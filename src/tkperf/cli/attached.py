"""Views of a run that another process measures."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Protocol

from tkperf.cli.background import View
from tkperf.cli.live import LiveView
from tkperf.cli.plain import PlainLines
from tkperf.cli.progress import JsonLines
from tkperf.model.record import RunRecord
from tkperf.model.units import format_duration
from tkperf.pipeline.following import find_clock_s
from tkperf.render.terminal.console import choose_progress
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


class Attached(Protocol):
    def catch_up(self, events: list[Event]) -> None:
        """Take the events from before this view was opened."""
        ...

    def show(self, event: Event) -> None: ...

    def wait(self, record: RunRecord) -> None:
        """Note that time has passed, with the latest record."""
        ...


def open_attached(progress: str, stack: ExitStack, *, verbose: bool) -> Attached:
    """Open the chosen view; ``stack`` closes it."""
    progress = choose_progress(progress)
    if progress == "live":
        return _Drawn(stack.enter_context(LiveView()))
    if progress == "json":
        return _Written(JsonLines(sys.stdout))
    return _Written(PlainLines(sys.stderr, every_s=0.0 if verbose else None, steps=verbose))


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
