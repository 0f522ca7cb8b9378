"""Which observers watch a run: the log file always, and what the user chose to see."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import msgspec

from tkperf.cli.live import LiveView
from tkperf.cli.options import RunOptions
from tkperf.cli.plain import PlainLines
from tkperf.errors import RunFileError
from tkperf.events import Event, Noted, Observer, SampleSeen, StepEnded
from tkperf.measurement import IoStats, Sample
from tkperf.record import RunNote


@contextmanager
def open_observers(options: RunOptions) -> Iterator[tuple[Observer, ...]]:
    """The log and the chosen view, closed however the run ends.

    Neither can end it: a run of days is worth more than somebody to watch it.
    """
    try:
        log = options.log_path.open("a", encoding="utf-8")
    except OSError as error:
        raise RunFileError(f"cannot write the log {options.log_path}: {error.strerror}") from error
    try:
        lines = UntilLost(PlainLines(log, every_s=60.0, jobs=options.debug))
        with _open_view(options) as view:
            yield (lines,) if view is None else (lines, UntilLost(view, told=lines))
    finally:
        with suppress(OSError):  # what a full disk did not take is tried once more here
            log.close()


@contextmanager
def _open_view(options: RunOptions) -> Iterator[Observer | None]:
    progress = options.progress
    if progress == "auto":
        progress = "live" if sys.stderr.isatty() else "plain"
    if progress == "json":
        yield JsonLines(sys.stdout)
    elif options.quiet:
        yield None
    elif progress == "live":
        with LiveView() as live:
            yield live
    else:
        yield PlainLines(sys.stderr, every_s=10.0)


class UntilLost:
    """A view until it fails: its reader has gone, its disk is full, its terminal was closed.

    Then it is given up, and ``told`` gets a note, once.
    """

    def __init__(self, view: Observer, *, told: Observer | None = None) -> None:
        self._view: Observer | None = view
        self._told = told

    def __call__(self, event: Event) -> None:
        if self._view is None:
            return
        try:
            self._view(event)
        except Exception as error:  # whatever it is, the measurement can go on
            self._view = None
            if self._told is not None:
                text = f"progress is no longer shown: {error}"
                self._told(Noted(note=RunNote(code="progress-lost", text=text)))


class JsonLines:
    """One JSON object a line for each event; its ``event`` key names the kind."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        fields: dict[str, object]
        if isinstance(event, SampleSeen):
            fields = {"test": event.test, "at_s": event.at_s, **_sample_fields(event.sample)}
        elif isinstance(event, StepEnded):
            seen, step = event.record.measurement, event.record
            fields = {
                "test": event.test,
                "section": step.section,
                "kind": step.kind,
                "number": step.number,
                "position": step.position,
                "workload": msgspec.to_builtins(step.workload),
                "duration_s": seen.duration_s,
                "gap_s": step.gap_s,
                "iops": seen.iops,
                "megabytes_per_s": seen.megabytes_per_s,
                "latency_mean_us": seen.latency_mean_us,
                "host_limited": seen.host_limited,
            }
        else:
            fields = msgspec.to_builtins(event)
        line = {"event": type(event).__name__, **fields}
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


def _sample_fields(sample: Sample) -> dict[str, object]:
    both: IoStats = sample.both
    mean_ns, p99_ns = both.latency_mean_ns, both.percentile_ns(99)
    return {
        "start_s": sample.start_s,
        "duration_s": sample.duration_s,
        "iops": sample.iops,
        "megabytes_per_s": sample.bytes_per_s / 1e6,
        "latency_mean_us": None if mean_ns is None else mean_ns / 1000,
        "latency_p99_us": None if p99_ns is None else p99_ns / 1000,
    }
