"""A view runs in its own thread. The caller never waits for the view, events keep their order, and dropped events are
counted.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from types import SimpleNamespace
from typing import TextIO, cast

import pytest

from tests.builders import io_stats
from tests.runfile.runs import a_step
from tkperf.cli import run_views
from tkperf.cli.lines import JsonLines
from tkperf.cli.run_options import RunOptions
from tkperf.cli.run_views import Abandoned, DirectText, InBackground, View, _open_log
from tkperf.model.measurement import NO_IO, Sample
from tkperf.model.record import RunStatus
from tkperf.runner.events import Event, EventsDropped, Noted, RunEnded, SampleSeen, StepEnded, TestEnded, TestStarted

ENDED = TestEnded(test="iops", status=RunStatus.COMPLETE, at_s=1.0)


def sample(at_s: float) -> SampleSeen:
    seen = Sample(start_s=at_s, duration_s=1, read=NO_IO, write=io_stats([1000]))
    return SampleSeen(test="iops", sample=seen, at_s=at_s)


def step(number: int) -> StepEnded:
    return StepEnded(test="iops", record=a_step(number))


class Stuck:
    """A view that blocks at its first event until the test sets the event ``go``."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.entered, self.go = threading.Event(), threading.Event()
        self.left_by: type[BaseException] | None = None

    def __call__(self, event: Event, at: datetime) -> None:
        self.entered.set()
        self.go.wait()
        self.seen.append(event)

    @contextmanager
    def open(self) -> Iterator[View]:
        try:
            yield self
        except BaseException as error:
            self.left_by = type(error)
            raise


def test_order_is_kept_and_nothing_is_lost_while_there_is_room() -> None:
    view = Stuck()
    view.go.set()
    observer = InBackground(view.open, name="view")
    given: list[Event] = [TestStarted(test="iops", at_s=0), sample(1), sample(2), ENDED]
    for event in given:
        observer(event)
    observer.close(grace_s=60)
    assert view.seen == given


def test_samples_give_way_to_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a view is too slow, it receives the first samples and every step. In place of the dropped events, the view
    receives the number of these events.
    """
    monkeypatch.setattr(run_views, "MOST_SAMPLES", 3)
    view, notes = Stuck(), list[Event]()
    observer = InBackground(view.open, name="progress", on_note=notes.append)
    observer(TestStarted(test="iops", at_s=0))
    view.entered.wait()
    for number in range(1, 101):
        observer(sample(number))
        if number % 50 == 0:
            observer(step(number))
    observer(ENDED)
    assert [type(note) for note in notes] == [Noted, Noted]
    assert "97 events" in str(notes[1])
    view.go.set()
    observer.close(grace_s=60)
    dropped = [event for event in view.seen if isinstance(event, EventsDropped)]
    assert dropped == [EventsDropped(samples=47, others=0), EventsDropped(samples=50, others=0)]
    kinds = [type(event) for event in view.seen]
    assert kinds.count(StepEnded) == 2
    left = [event.at_s for event in view.seen if isinstance(event, SampleSeen)]
    assert left == [1, 2, 3]
    assert kinds == [TestStarted, *[SampleSeen] * 3, EventsDropped, StepEnded, EventsDropped, StepEnded, TestEnded]


def test_even_what_matters_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue of a view is bounded. A terminal that is stopped for weeks therefore does not fill the memory. The
    steps in the queue are kept without their samples, and the view still shows the end of the run.
    """
    monkeypatch.setattr(run_views, "MOST_EVENTS", 5)
    view = Stuck()
    observer = InBackground(view.open, name="progress")
    observer(ENDED)
    view.entered.wait()
    for number in range(1, 101):
        observer(step(number))
    end = RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=None)
    observer(end)
    view.go.set()
    observer.close(grace_s=60)
    assert view.seen[-2:] == [EventsDropped(samples=0, others=95), end]
    steps = [event.record for event in view.seen if isinstance(event, StepEnded)]
    assert [each.number for each in steps] == [1, 2, 3, 4, 5]
    assert all(not each.measurement.samples and not each.engine_output for each in steps)
    assert steps[0].measurement.iops == a_step(1).measurement.iops


def test_a_view_that_hangs_is_left_to_itself() -> None:
    """The observer can be closed even if the view is blocked. When the view continues later, an Abandoned exception
    ends the view.
    """
    view = Stuck()
    observer = InBackground(view.open, name="view")
    observer(ENDED)
    observer(ENDED)
    view.entered.wait()
    observer.close(grace_s=0.05)
    assert view.seen == []
    view.go.set()
    observer._thread.join(60)
    assert view.left_by is Abandoned
    assert view.seen == [ENDED]


def test_json_lines_say_how_many_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the reader of a pipe is slow, each JSON line is still complete. The number of lines plus the number of dropped
    events equals the number of all events.
    """
    monkeypatch.setattr(run_views, "MOST_SAMPLES", 10)
    reader, writer = os.pipe()
    lines = JsonLines(cast(TextIO, DirectText(writer)))
    observer = InBackground(lambda: nullcontext(lines), name="progress")
    for number in range(5_000):
        observer(sample(number))
    observer(ENDED)
    received = b""
    while b"TestEnded" not in received:
        received += os.read(reader, 65536)
    observer.close(grace_s=60)
    os.close(writer)
    os.close(reader)
    events = [json.loads(line) for line in received.splitlines()]
    dropped = sum(event["samples"] for event in events if event["event"] == "EventsDropped")
    assert dropped > 0
    assert dropped + sum(event["event"] == "SampleSeen" for event in events) == 5_000
    times = [event["at_s"] for event in events if event["event"] == "SampleSeen"]
    assert times == sorted(times)


def test_a_log_that_hangs_is_not_waited_for() -> None:
    """tkperf stops waiting for a log that blocks, for example on a network file system whose server is not reachable.
    The test uses a pipe that no process reads.
    """
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    log = _open_log(writer, cast(RunOptions, SimpleNamespace(debug=True)))
    observer = InBackground(log, name="the log")
    for number in range(1_000):
        observer(step(number + 1))
    observer.close(grace_s=0.2)
    assert observer._thread.is_alive()
    os.close(reader)  # After the reader has closed the pipe, the thread of the log can end.
    observer._thread.join(60)
    assert not observer._thread.is_alive()
