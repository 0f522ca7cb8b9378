"""Views in threads of their own, so that no view holds up the device."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TextIO, cast

from tkperf.model.histogram import EMPTY
from tkperf.model.record import RunNote
from tkperf.model.units import format_count
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
)

# Events kept for a view that takes none: ten minutes of samples, and more steps than a day has.
MOST_SAMPLES = 600
MOST_EVENTS = 5_600
# Time that the end of a run gives a view to show the rest.
DRAIN_S = 5.0
_NONE_MISSING = EventsDropped(samples=0, others=0)

View = Callable[[Event, datetime], None]
"""Function that takes an event and its time, and may be slow."""
OpenView = Callable[[], AbstractContextManager[View]]


class Abandoned(Exception):  # noqa: N818 - no error: it ends a view for which the run no longer waits
    pass


class InBackground:
    """Observer that hands events to a view in another thread and never waits for it.

    While the view takes nothing, samples beyond ``MOST_SAMPLES`` are dropped, and later all other events but the
    run's end. When the view takes events again, it gets the number of dropped ones in their place. ``on_note`` gets
    a note at the first loss, and one with the number when the test has ended.
    """

    def __init__(self, open_view: OpenView, *, name: str, on_note: Observer = lambda _: None) -> None:
        """Start the thread. It enters, uses and leaves ``open_view``, as each of these may block."""
        self._open_view = open_view
        self._name = name
        self._on_note = on_note
        # Its put takes no lock of Python's, which Ctrl-C at the wrong moment could leave held for ever.
        self._waiting = SimpleQueue[tuple[Event, datetime] | None]()
        self._missing = _NONE_MISSING
        self._abandoned = False
        self._dropped = self._dropped_reported = 0
        self._owner = threading.get_ident()
        # A daemon: Python does not wait at its end for a thread that is stuck in a write.
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
        """Wait up to ``grace_s`` for the view to show the rest. A view that hangs is abandoned."""
        self._put_missing()
        self._waiting.put(None)
        self._thread.join(grace_s)
        self._abandoned = True

    def _put_missing(self) -> None:
        if self._missing != _NONE_MISSING:
            self._waiting.put((self._missing, datetime.now(UTC)))
            self._missing = _NONE_MISSING

    def _say(self, text: str) -> None:
        """Report the loss, unless this is the thread of another view."""
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
    """Remove from a finished step the data that only the run file keeps, as many steps may have to wait."""
    if not isinstance(event, StepEnded):
        return event
    full = event.record.measurement
    measurement = replace(
        full, samples=(), read=replace(full.read, histogram=EMPTY), write=replace(full.write, histogram=EMPTY)
    )
    return replace(event, record=replace(event.record, measurement=measurement, engine_output=b""))


class DirectText(io.TextIOBase):
    """Text stream that writes straight to a descriptor, without a buffer.

    A buffer has a lock. If a thread hangs in it, as on a stopped terminal, Python aborts when it
    flushes stdout and stderr at its end.
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
    """Return a standard stream for a thread that may hang in it; unchanged if it has no descriptor."""
    try:
        stream.flush()
        return cast(TextIO, DirectText(stream.fileno(), stream.encoding))
    except (OSError, ValueError):
        return stream
