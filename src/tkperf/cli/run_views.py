"""Views of a run: the log file always, the view that the user chose, and those of a run that another
process measures.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import TextIO, cast

from tkperf.cli.background import DirectText, InBackground, OpenView, View, direct
from tkperf.cli.lines import JsonLines, PlainLines
from tkperf.cli.live_view import LiveView
from tkperf.cli.output import open_log
from tkperf.cli.run_options import RunOptions
from tkperf.model.errors import RunFileError, reason_of
from tkperf.model.record import RunNote, RunRecord
from tkperf.model.units import format_duration
from tkperf.pipeline.running_runs import FollowedFile, find_clock_s
from tkperf.render.terminal.console import OutputConsole, choose_progress
from tkperf.runner.events import Event, Noted, Observer, SampleSeen, StepEnded, find_place_events

# Longest wait for a thread that runs Python; Python's default is 5 ms. The start of the next step must not
# wait for a view that is drawing.
SWITCH_INTERVAL_S = 0.0005
# Time between two looks at the file of a run that another process measures.
LOOK_EVERY_S = 0.5


@contextmanager
def open_observers(
    options: RunOptions, *, on_note: Observer = lambda _: None, simulated: bool = False
) -> Iterator[tuple[Observer, ...]]:
    """Open the log, then the chosen view if any, and close them however the run ends.

    None of them can end a run or hold it up: a run of days is worth more than its view. ``on_note``
    gets a note of events that were not shown.

    Raises:
        RunFileError: the log cannot be opened.
    """
    try:
        log = open_log(options.log_path)
    except OSError as error:
        raise RunFileError(f"cannot write the log {options.log_path}: {reason_of(error)}") from error
    opened = _simulation if simulated else _in_background
    with opened(_open_log(log, options), f"the log {options.log_path}", on_note) as lines:

        def log_and_note(event: Event) -> None:
            lines(event)
            on_note(event)

        open_view = _choose_view(options)
        if open_view is None:
            yield (lines,)
            return
        with opened(until_lost(open_view, lines), "progress", log_and_note) as view:
            yield lines, view


@contextmanager
def _in_background(open_view: OpenView, name: str, on_note: Observer) -> Iterator[Observer]:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    observer = InBackground(open_view, name=name, on_note=on_note)
    try:
        yield observer
    finally:
        observer.close()
        sys.setswitchinterval(before_s)


@contextmanager
def _simulation(open_view: OpenView, *_: object) -> Iterator[Observer]:
    """Call the view directly: no device waits for it, and time is faster than any view could show."""
    with open_view() as view:
        yield lambda event: view(event, datetime.now(UTC))


def _open_log(descriptor: int, options: RunOptions) -> OpenView:
    @contextmanager
    def opened() -> Iterator[View]:
        try:
            log = cast(TextIO, DirectText(descriptor))
            yield PlainLines(log, every_s=60.0, jobs=options.debug)
        finally:
            with suppress(OSError):
                os.close(descriptor)

    return until_lost(opened)


def _choose_view(options: RunOptions) -> OpenView | None:
    progress = choose_progress(options.progress)
    if progress == "json":
        return _always(JsonLines(direct(sys.stdout)))
    if options.quiet or options.detach:
        return None
    if progress == "live":
        return partial(LiveView, OutputConsole(file=direct(sys.stderr)))
    return _always(PlainLines(direct(sys.stderr), every_s=0.0 if options.verbose else None, steps=options.verbose))


def _always(view: View) -> OpenView:
    return lambda: nullcontext(view)


def until_lost(open_view: OpenView, on_note: Observer = lambda _: None) -> OpenView:
    """Wrap a view that is given up when it fails: its reader has gone, its disk is full, its terminal was closed.

    Opening it may fail, too. ``on_note`` then gets a note, once.
    """

    @contextmanager
    def opened() -> Iterator[View]:
        view: View | None = None

        def give_up(error: Exception) -> None:
            nonlocal view
            view = None
            text = f"progress is no longer shown: {reason_of(error)}"
            on_note(Noted(note=RunNote(code="progress-lost", text=text)))

        def show(event: Event, at: datetime) -> None:
            if view is not None:
                try:
                    view(event, at)
                except Exception as error:  # of any kind: the measurement can go on
                    give_up(error)

        with ExitStack() as stack:
            try:
                view = stack.enter_context(open_view())
            except Exception as error:  # a terminal that cannot be drawn on
                give_up(error)
            yield show

    return opened


def follow(followed: FollowedFile, progress: str, *, verbose: bool) -> None:
    """Show a run that another process measures, by its file, until it ends."""
    progress = choose_progress(progress)
    if progress == "live":
        with LiveView() as view:
            _draw(followed, view)
    elif progress == "json":
        _write(followed, JsonLines(sys.stdout))
    else:
        _write(followed, PlainLines(sys.stderr, every_s=0.0 if verbose else None, steps=verbose))


def _new_events(followed: FollowedFile) -> Iterator[list[Event]]:
    while followed.is_running:
        time.sleep(LOOK_EVERY_S)
        yield list(followed.new_events())


def _write(followed: FollowedFile, view: View) -> None:
    """Show lines or JSON. From earlier events they show only the current place of the run."""
    for event in find_place_events(followed.first_events()):
        view(event, datetime.now(UTC))
    for events in _new_events(followed):
        for event in events:
            view(event, time_of(event, followed.record))


def time_of(event: Event, record: RunRecord) -> datetime:
    """Return the time of an event if the file gives it, else now. Seconds of some minutes arrive at once."""
    now = datetime.now(UTC)
    clock_s = find_clock_s(record, now)
    at_s = event.at_s if isinstance(event, SampleSeen) else None
    if isinstance(event, StepEnded):
        at_s = event.record.started_s + event.record.measurement.duration_s
    if clock_s is None or at_s is None:
        return now
    return now - timedelta(seconds=max(0.0, clock_s - at_s))


def _draw(followed: FollowedFile, view: LiveView) -> None:
    """Draw the live view with the age of its figures."""
    last_s: float | None = None
    for events in chain((followed.first_events(),), _new_events(followed)):
        for event in events:
            view.take(event)
            last_s = event.at_s if isinstance(event, SampleSeen) else last_s
        now_s = find_clock_s(followed.record)
        age = ""
        if now_s is not None:
            view.pass_time(now_s)
            if last_s is not None:
                age = f"; figures of {format_duration(max(0.0, now_s - last_s))} ago"
        view.footer = f"attached, read-only: Ctrl-C ends this view, the run continues{age}"
        view.draw()
