"""Views of a run: the log file, the view that the user chose, and views of a run that another process measures."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from math import ceil
from queue import SimpleQueue
from typing import Self, TextIO, cast

from rich.console import Console
from rich.text import Text

from tkperf.cli.lines import JsonLines, PlainLines
from tkperf.cli.output import open_log
from tkperf.cli.run_options import RunOptions
from tkperf.model.errors import RunFileError, reason_of
from tkperf.model.histogram import EMPTY
from tkperf.model.record import RunNote, RunRecord
from tkperf.model.units import format_count, format_duration
from tkperf.model.workload import list_loads
from tkperf.page.progress import build_progress
from tkperf.pipeline.run_state import RunState
from tkperf.pipeline.running_runs import FollowedFile, find_clock_s
from tkperf.render.terminal.console import OutputConsole, choose_progress
from tkperf.render.terminal.progress_lines import render_lines
from tkperf.runner.events import (
    Event,
    EventsDropped,
    Noted,
    Observer,
    RunEnded,
    SampleSeen,
    StepEnded,
    TargetBusy,
    TestEnded,
    find_place_events,
)

# The greatest numbers of events that are kept while a view accepts no events: samples for ten minutes, and more steps
# than a day contains.
MOST_SAMPLES = 600
MOST_EVENTS = 5_600
# The time, in s, that a view has at the end of a run to show the remaining events.
DRAIN_S = 5.0
_NONE_MISSING = EventsDropped(samples=0, others=0)

View = Callable[[Event, datetime], None]
"""A function that takes an event and its time. The function may be slow."""
OpenView = Callable[[], AbstractContextManager[View]]


class Abandoned(Exception):  # noqa: N818 - no error: it ends a view for which the run no longer waits
    pass


class InBackground:
    """An observer that passes events to a view in another thread, and never waits for the view.

    While the view accepts no events, samples beyond ``MOST_SAMPLES`` are dropped. If the view accepts no events for a
    longer time, all other events are dropped too, except the end of the run. When the view accepts events again, it
    receives the number of dropped events instead of these events. ``on_note`` receives a note when the first event is
    dropped. When a test has ended, ``on_note`` receives a note with the number of dropped events.
    """

    def __init__(self, open_view: OpenView, *, name: str, on_note: Observer = lambda _: None) -> None:
        """Start the thread. The thread itself enters, uses and leaves ``open_view``, because each of these steps can
        block.
        """
        self._open_view = open_view
        self._name = name
        self._on_note = on_note
        # A SimpleQueue is used, because its ``put`` method uses no lock of Python. If the user pressed Ctrl-C at the
        # wrong time, such a lock could be held forever.
        self._waiting = SimpleQueue[tuple[Event, datetime] | None]()
        self._missing = _NONE_MISSING
        self._abandoned = False
        self._dropped = self._dropped_reported = 0
        self._owner = threading.get_ident()
        # The thread is a daemon thread, because Python can exit without waiting for a daemon thread that is blocked in
        # a write.
        self._thread = threading.Thread(target=self._show, name=f"tkperf {name}", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        is_sample = isinstance(event, SampleSeen | TargetBusy)
        has_room = self._waiting.qsize() < (MOST_SAMPLES if is_sample else MOST_EVENTS)
        if has_room or isinstance(event, RunEnded):
            self._put_missing()
            self._waiting.put((_without_weight(event), datetime.now(UTC)))
        else:
            self._dropped += 1
            self._missing = EventsDropped(
                samples=self._missing.samples + is_sample, others=self._missing.others + (not is_sample)
            )
        if self._dropped and not self._dropped_reported:
            self._say(f"{self._name} accepts no more output: the run continues without it")
        elif self._dropped > self._dropped_reported and isinstance(event, TestEnded):
            events = format_count(self._dropped, "event")
            self._say(f"{self._name} was too slow for {events}, which were dropped")

    def close(self, *, grace_s: float = DRAIN_S) -> None:
        """Wait up to ``grace_s`` until the view has shown the remaining events. A view that needs more time is
        abandoned.
        """
        self._put_missing()
        self._waiting.put(None)
        self._thread.join(grace_s)
        self._abandoned = True

    def _put_missing(self) -> None:
        if self._missing != _NONE_MISSING:
            self._waiting.put((self._missing, datetime.now(UTC)))
            self._missing = _NONE_MISSING

    def _say(self, text: str) -> None:
        """Report that events were dropped, unless the thread of another view calls this function."""
        if threading.get_ident() == self._owner:
            self._dropped_reported = self._dropped
            self._on_note(Noted(note=RunNote(code="progress-dropped", text=text)))

    def _show(self) -> None:
        with suppress(Abandoned), self._open_view() as view:
            while True:
                taken = self._waiting.get()
                if self._abandoned:
                    raise Abandoned
                if taken is None:
                    return
                view(*taken)


def _without_weight(event: Event) -> Event:
    """Return a finished step without the data that no view shows. Many steps may have to wait in memory, so each step
    must be small.

    Views show a percentile only for steps with an offered rate. Such a step keeps its histograms.
    """
    if not isinstance(event, StepEnded):
        return event
    offers = any(load.offered_iops is not None for load in list_loads(event.record.workload))
    measurement = event.record.measurement.changed(lambda stats: stats if offers else replace(stats, histogram=EMPTY))
    return replace(event, record=replace(event.record, measurement=measurement, engine_output=b""))


class DirectText(io.TextIOBase):
    """A text stream without a buffer, which writes directly to a file descriptor.

    A buffer has a lock. A thread can be blocked while it holds this lock, for example on a stopped terminal. Python
    would then abort when it exits and flushes stdout and stderr.
    """

    def __init__(self, descriptor: int, encoding: str = "utf-8") -> None:
        self._descriptor = descriptor
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def write(self, text: str) -> int:
        rest = memoryview(text.encode(self._encoding, "backslashreplace"))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        return len(text)

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True


def direct(stream: TextIO) -> TextIO:
    """Return a stream without a buffer, for a thread that can block while it writes. If the given stream has no file
    descriptor, return the given stream.
    """
    try:
        stream.flush()
        return cast(TextIO, DirectText(stream.fileno(), stream.encoding))
    except (OSError, ValueError):
        return stream


# The longest time to wait for a thread that executes Python code. The default of Python is 5 ms. The start of the next
# step must not be delayed by a view that is drawing.
SWITCH_INTERVAL_S = 0.0005
# The time, in s, between two readings of the file of a run that another process measures.
LOOK_EVERY_S = 0.5


@contextmanager
def open_observers(
    options: RunOptions, *, on_note: Observer = lambda _: None, simulated: bool = False
) -> Iterator[tuple[Observer, ...]]:
    """Open the log and then the view that the user chose, if any. Close both when the run ends for any reason.

    A view can neither end nor delay a run, because a run may take days and must not depend on its display. ``on_note``
    receives a note about events that were not shown.
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
    """Call the view directly in a simulated run. No device waits for the view, and simulated time passes faster than
    any view can draw.
    """
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
    """Open a view whose failure does not end the run. The failure ends only the view. A view fails, for example, if the
    program that reads its output has ended, the disk is full, or the terminal was closed. Opening the view can also
    fail. ``on_note`` receives one note about a failure.
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
                except Exception as error:  # every error is caught, because the measurement can continue
                    give_up(error)

        with ExitStack() as stack:
            try:
                view = stack.enter_context(open_view())
            except Exception as error:  # a terminal on which tkperf cannot draw
                give_up(error)
            yield show

    return opened


def follow(followed: FollowedFile, progress: str, *, verbose: bool) -> None:
    """Show a run that another process measures, until it ends. The run file is the only source."""
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
    """Write lines or JSON about a run that another process measures. Of the earlier events, only those that describe
    the current position of the run are written.
    """
    for event in find_place_events(followed.first_events()):
        view(event, datetime.now(UTC))
    for events in _new_events(followed):
        for event in events:
            view(event, time_of(event, followed.record))


def time_of(event: Event, record: RunRecord) -> datetime:
    """Return the time of an event. If the file does not contain this time, return the present time. For one-second
    samples, the present time would be wrong, because the samples of several minutes become available together.
    """
    now = datetime.now(UTC)
    clock_s = find_clock_s(record, now)
    at_s = event.at_s if isinstance(event, SampleSeen) else None
    if isinstance(event, StepEnded):
        at_s = event.record.started_s + event.record.measurement.duration_s
    if clock_s is None or at_s is None:
        return now
    return now - timedelta(seconds=max(0.0, clock_s - at_s))


def _draw(followed: FollowedFile, view: LiveView) -> None:
    """Draw the live view together with the age of its figures."""
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


# The interval between drawings in a simulated run, in which a simulated second takes a millisecond.
DRAW_EVERY_S = 0.1


class LiveView:
    """A view that draws on stderr, so that the drawings do not mix with the results on stdout."""

    def __init__(self, console: Console | None = None, *, footer: str = "") -> None:
        """Create the view. ``footer`` is the last line that the view draws."""
        self.footer = footer
        self._frame = RedrawnLines(console or OutputConsole(stderr=True))
        self._state = RunState()
        self._drawn_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is Abandoned:
            return  # other programs write to the terminal from now on, and clearing would erase their text
        # A terminal that was lost cannot be cleared, and does not need to be cleared.
        with suppress(OSError):
            self._frame.clear()

    def __call__(self, event: Event, at: datetime) -> None:
        self.take(event)
        if self._state.simulated and time.monotonic() - self._drawn_s < DRAW_EVERY_S:
            return
        self.draw()

    def take(self, event: Event) -> None:
        """Process an event without drawing."""
        self._state.take(event)

    def draw(self) -> None:
        """Draw the current state. If the output does not go to a terminal, nothing is drawn, because a drawing could
        not replace the previous drawing.
        """
        if not self._frame.console.is_terminal:
            return
        self._drawn_s = time.monotonic()
        console = self._frame.console
        lines = render_lines(
            build_progress(self._state),
            width=console.width - 1,
            height=console.height - 1,
            encoding=console.encoding,
            now=datetime.now(UTC),
            footer=self.footer,
        )
        self._frame.show(lines)

    def pass_time(self, at_s: float) -> None:
        """Advance the time of the view to ``at_s`` without an event."""
        self._state.at_s = max(self._state.at_s, at_s)


class RedrawnLines:
    """The last lines of a terminal. Each drawing replaces the previous one. The cursor is below these lines."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._widths: list[int] = []

    def show(self, lines: Sequence[Text]) -> None:
        """Draw the lines with a single write. Each line ends one column before the right edge of the terminal."""
        with self.console.capture() as captured:
            text = Text("\n").join(lines)
            self.console.print(text, no_wrap=True, crop=False, highlight=False, soft_wrap=True)
        drawn = captured.get().splitlines()
        above = self._to_first_line()
        self._widths = [line.cell_len for line in lines]
        # An escape sequence erases old text up to the end of each line and below the last line.
        self._write(above + "".join(f"{line}\x1b[K\r\n" for line in drawn) + "\x1b[J")

    def clear(self) -> None:
        """Erase all lines that were drawn."""
        if self._widths:
            above, rows = self._to_first_line(), self._rows()
            self._widths = []
            # The rows are erased one by one. If all rows were erased at once from the first row of the screen, tmux
            # would keep them in its history.
            self._write(above + "\x1b[K\r\n" * rows + f"\x1b[K\x1b[{rows}A")

    def _to_first_line(self) -> str:
        return "\r" + (f"\x1b[{self._rows()}A" if self._widths else "")

    def _rows(self) -> int:
        """Return the number of rows that the drawn lines occupy. If the terminal has become narrower, it shows a line
        in several rows.
        """
        width = max(1, self.console.width)
        return sum(max(1, ceil(cells / width)) for cells in self._widths)

    def _write(self, text: str) -> None:
        self.console.file.write(text)
        self.console.file.flush()
