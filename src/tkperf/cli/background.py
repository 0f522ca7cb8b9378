"""Views in threads of their own, so that no view holds up the device."""

from __future__ import annotations

import io
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TextIO, cast

from tkperf.model.histogram import EMPTY
from tkperf.model.record import RunNote
from tkperf.model.units import format_count
from tkperf.runner.events import (
    Event,
    EventsDropped,
    Noted,
    Observer,
    SampleSeen,
    StepEnded,
    TargetBusy,
    TestEnded,
)

# Events kept for a view that takes none: ten minutes of samples, and more steps than a day has.
MOST_SAMPLES = 600
MOST_OTHERS = 5_000
# Time that the end of a run gives a view to show the rest.
DRAIN_S = 5.0
# The lock is held for microseconds. Ctrl-C at the wrong moment could leave it held for ever. This limit
# then loses the view, not the end of the run.
LOCKED_S = 0.2

View = Callable[[Event, datetime], None]
"""Function that takes an event and its time, and may be slow."""
OpenView = Callable[[], AbstractContextManager[View]]


class Abandoned(Exception):  # noqa: N818 - no error: it ends a view for which the run no longer waits
    pass


class InBackground:
    """Observer that hands events to a view in another thread and never waits for it.

    When the view takes nothing any more, the oldest samples are dropped, and the oldest other events.
    When the view takes events again, it first gets the number of dropped ones. ``on_note`` gets a note
    at the first loss, and one with the number when the test has ended.
    """

    def __init__(
        self,
        open_view: OpenView,
        *,
        name: str,
        on_note: Observer = lambda _: None,
    ) -> None:
        """Start the thread. It enters, uses and leaves ``open_view``, as each of these may block."""
        self._open_view = open_view
        self._name = name
        self._on_note = on_note
        self._waiting = _Waiting()
        self._changed = threading.Condition()
        self._closing = self._abandoned = False
        self._dropped_reported = 0
        self._owner = threading.get_ident()
        # A daemon: Python does not wait at its end for a thread that is stuck in a write.
        self._thread = threading.Thread(target=self._show, name=f"tkperf {name}", daemon=True)
        self._thread.start()

    def __call__(self, event: Event) -> None:
        slim = _without_weight(event)
        if not self._changed.acquire(timeout=LOCKED_S):
            return
        try:
            self._waiting.put(slim)
            dropped = self._waiting.dropped
            self._changed.notify()
        finally:
            self._changed.release()
        if dropped and not self._dropped_reported:
            self._say(dropped, f"{self._name} takes no more output: the run goes on without it")
        elif dropped > self._dropped_reported and isinstance(event, TestEnded):
            events = format_count(dropped, "event")
            self._say(dropped, f"{self._name} did not take {events} in time; they were left out")

    def close(self, *, grace_s: float = DRAIN_S) -> None:
        """Wait up to ``grace_s`` for the view to show the rest. A view that hangs is abandoned."""
        self._closing = True
        if self._changed.acquire(timeout=LOCKED_S):
            self._changed.notify()
            self._changed.release()
        self._thread.join(grace_s)
        self._abandoned = True

    def _say(self, dropped: int, text: str) -> None:
        """Report the loss, unless this is the thread of another view."""
        if threading.get_ident() != self._owner:
            return
        self._dropped_reported = dropped
        self._on_note(Noted(note=RunNote(code="progress-dropped", text=text)))

    def _show(self) -> None:
        with suppress(Abandoned), self._open_view() as view:
            while (taken := self._take()) is not None:
                view(*taken)

    def _take(self) -> tuple[Event, datetime] | None:
        """Return the next event, or None when no more will come.

        Raises:
            Abandoned: the run no longer waits for this view.
        """
        with self._changed:
            while True:
                if self._abandoned:
                    raise Abandoned
                taken = self._waiting.take()
                if taken is not None or self._closing:
                    return taken
                self._changed.wait()


class _Waiting:
    """Queue of events in order. When full it drops the oldest, as the newest samples say most."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, Event, datetime]] = deque()
        self._others: deque[tuple[int, Event, datetime]] = deque()
        self._put = 0
        self._dropped_samples = self._dropped_others = 0
        self.dropped = 0

    def put(self, event: Event) -> None:
        """Add an event that happens now."""
        self._put += 1
        entry = (self._put, event, datetime.now(UTC))
        if isinstance(event, SampleSeen | TargetBusy):
            self._samples.append(entry)
            if len(self._samples) > MOST_SAMPLES:
                self._samples.popleft()
                self._dropped_samples += 1
                self.dropped += 1
        else:
            self._others.append(entry)
            if len(self._others) > MOST_OTHERS:
                self._others.popleft()
                self._dropped_others += 1
                self.dropped += 1

    def take(self) -> tuple[Event, datetime] | None:
        """Return the number of dropped events if there are any, else the oldest event; None if none waits."""
        if not (self._samples or self._others):
            return None
        if self._dropped_samples or self._dropped_others:
            gone = EventsDropped(samples=self._dropped_samples, others=self._dropped_others)
            self._dropped_samples = self._dropped_others = 0
            return gone, datetime.now(UTC)
        queue = min(
            (waiting for waiting in (self._samples, self._others) if waiting), key=lambda q: q[0][0]
        )
        _, event, at = queue.popleft()
        return event, at


def _without_weight(event: Event) -> Event:
    """Remove from a finished step the data that only the run file keeps, as many steps may have to wait."""
    if not isinstance(event, StepEnded):
        return event
    full = event.record.measurement
    measurement = replace(
        full,
        samples=(),
        read=replace(full.read, histogram=EMPTY),
        write=replace(full.write, histogram=EMPTY),
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
