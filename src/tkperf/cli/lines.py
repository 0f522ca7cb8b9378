"""Write progress as lines: plain lines for logs, pipes and terminals without cursor control, or JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TextIO

import msgspec

from tkperf.analysis.workload_axes import name_stream
from tkperf.model.measurement import IoStats, Measurement, Sample
from tkperf.model.phases import Phase, Purge, Round
from tkperf.model.record import StepKind, StepRecord
from tkperf.model.units import (
    drop_controls,
    format_capacity,
    format_count,
    format_duration,
    format_durations,
    format_number,
)
from tkperf.render.export_json import drop_unused, encode_json
from tkperf.runner.events import (
    Event,
    EventsDropped,
    Judged,
    Noted,
    PhaseStarted,
    PurgeEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    SampleSeen,
    SectionEnded,
    StepEnded,
    StepStarted,
    TestEnded,
    TestStarted,
    Warned,
    describe_phase,
)

SLICES_A_LINE = 30


class PlainLines:
    """A view that writes a line for each round and for each other important event.

    Args:
        every_s: interval in which no more than one second of the measurement is shown. 0 means that each second is
            shown. None means that no seconds are shown.
        steps: whether to show each step, slice and verdict. Otherwise only every thirtieth slice and the last verdict
            of a section are shown.
        name: the text with which each line begins.
    """

    def __init__(
        self, stream: TextIO, *, every_s: float | None, steps: bool = True, jobs: bool = False, name: str = ""
    ) -> None:
        self._name = f"{name}: " if name else ""
        self._stream = stream
        self._steps = steps
        self._every_s = every_s
        self._jobs = jobs
        self._next_sample_s = every_s or 0.0

    def __call__(self, event: Event, at: datetime) -> None:
        text = self._describe(event)
        if text:
            # A name can contain a line end. The text that follows the line end is indented.
            lines = drop_controls(f"{self._name}{text}").replace("\n", "\n    ")
            self._stream.write(f"{at.strftime('%Y-%m-%dT%H:%M:%SZ')} {lines}\n")
            self._stream.flush()

    def _describe(self, event: Event) -> str | None:
        match event:
            case RunStarted() | RunResumed():
                return f"run {event.info.name}: {', '.join(event.tests)}"
            case TestStarted():
                return f"test {event.test}"
            case PhaseStarted() if isinstance(event.phase, Round | Purge):
                place = describe_phase(event.phase, event.at_most)
                left = format_durations(event.shortest_s, event.longest_s)
                return f"{event.test}: {place}{_describe_cell(event.phase)}; remaining {left}"
            case StepStarted() if event.kind is StepKind.FILL:
                amount = format_capacity(event.planned_bytes or 0)
                return f"{event.test}: {event.section}, preconditioning with {amount}"
            case SampleSeen():
                return self._sample(event)
            case PurgeEnded():
                purge = event.record
                remark = f"; {purge.note}" if purge.note else ""
                return f"{event.test}: purged in {purge.duration_s:.1f} s: {purge.method}{remark}"
            case Noted():
                return f"note: {event.note.text}"
            case StepEnded() if self._steps or _is_worth_a_line(event.record):
                return self._step(event)
            case Judged() if self._steps or event.verdict.reached:
                state = "steady" if event.verdict.reached else "not steady"
                verdict = event.verdict
                return f"{event.test}: round {event.number} {state}: {verdict.tracking}: {verdict.reason}"
            case SectionEnded():
                outcome = event.outcome
                return f"{event.test}: {outcome.section} ended: {outcome.ended_because}"
            case Warned():
                return f"warning: {event.warning.text}"
            case TestEnded():
                return f"test {event.test} {event.status.value}"
            case RunEnded():
                return f"run {event.status.value}" + (f": {event.because}" if event.because else "")
            case EventsDropped():
                return f"{format_count(event.count, 'event')} not shown: they were not taken in time"
            case _:
                return None

    def _sample(self, event: SampleSeen) -> str | None:
        if self._every_s is None or event.at_s < self._next_sample_s:
            return None
        self._next_sample_s = event.at_s + self._every_s
        sample = event.sample
        return f"{event.test}: {format_number(sample.iops)} IOPS, {format_number(sample.bytes_per_s / 1e6)} MB/s"

    def _step(self, event: StepEnded) -> str | None:
        step, measurement = event.record, event.record.measurement
        if step.kind is StepKind.FILL:
            text = (
                f"{event.test}: preconditioned with {format_capacity(measurement.write.bytes)} in "
                f"{format_duration(measurement.duration_s)}"
            )
        else:
            place = "slice" if step.kind is StepKind.CONTINUOUS else step.kind.value
            text = f"{event.test}: {step.section}, {place} {step.number}, {step.workload}: "
            # A combination runs different loads, so its total has hardly any meaning.
            total = [] if step.workload.is_combination else [_describe_figures(measurement)]
            text += "; ".join((*total, *map(_describe_stream, step.parts[1:])))
        return f"{text}\n{step.job_file}" if self._jobs else text


def _describe_cell(phase: Phase) -> str:
    """Return the offered rates of a grid cell, such as ``: reads at 2,300 IOPS, writes at 400 IOPS``. The text is empty
    if the phase is not a cell of a grid.
    """
    if not isinstance(phase, Round) or phase.cells is None:
        return ""
    loads = [stream.workload for step in phase.steps for stream in step.workload.streams]
    rates = [
        f"{'reads' if load.reads else 'writes'} at {format_number(load.offered_iops)} IOPS"
        for load in loads
        if load.offered_iops is not None
    ]
    return f": {', '.join(rates)}" if rates else ""


def _describe_stream(part: StepRecord) -> str:
    """Return the name of a stream with the figures of the stream, or the word "flushes" with the figures of the
    flushes.
    """
    name = name_stream(part.workload) if part.workload.together else "flushes"
    return f"{name} {_describe_figures(part.measurement, has_bytes=not part.workload.flushes)}"


def _describe_figures(measurement: Measurement, *, has_bytes: bool = True) -> str:
    mean = measurement.latency_mean_us
    words = [f"{format_number(measurement.iops)} IOPS"]
    words += [f"{format_number(measurement.megabytes_per_s)} MB/s"] if has_bytes else []
    words += [] if mean is None else [f"mean {format_number(mean)} µs"]
    return ", ".join(words)


def _is_worth_a_line(step: StepRecord) -> bool:
    """Return whether a view that shows rounds also shows this step. The view shows each fill, and the first slice and
    every thirtieth slice of a stream.
    """
    if step.kind is StepKind.CONTINUOUS:
        return step.number == 1 or step.number % SLICES_A_LINE == 0
    return step.kind is StepKind.FILL


class JsonLines:
    """A view that writes each event as a JSON object on one line. The key ``event`` contains the kind of the event.

    ``about`` contains additional keys for each object.
    """

    def __init__(self, stream: TextIO, about: Mapping[str, object] = MappingProxyType({})) -> None:
        self._stream, self._about = stream, about

    def __call__(self, event: Event, at: datetime) -> None:
        fields: dict[str, object]
        if isinstance(event, SampleSeen):
            fields = {"test": event.test, "at_s": event.at_s, **_sample_fields(event.sample)}
        elif isinstance(event, StepEnded):
            measurement, step = event.record.measurement, event.record
            fields = {
                "test": event.test,
                "section": step.section,
                "kind": step.kind,
                "number": step.number,
                "position": step.position,
                "workload": drop_unused(msgspec.to_builtins(step.workload)),
                "duration_s": measurement.duration_s,
                "gap_s": step.gap_s,
                **_figures_of(measurement),
                "host_limited": measurement.host_limited,
                "disturbances": None
                if step.disturbances is None
                else [disturbance.code.value for disturbance in step.disturbances],
                "foreign_read_bytes": step.foreign_read_bytes,
                "foreign_write_bytes": step.foreign_write_bytes,
            }
            if step.workload.together:
                fields["streams"] = {
                    name_stream(part.workload): _figures_of(part.measurement) for part in step.parts[1:]
                }
        else:
            fields = drop_unused(msgspec.to_builtins(event))
        if isinstance(event, PhaseStarted):
            phase = drop_unused(msgspec.to_builtins(event.phase))
            fields["phase"] = {"kind": type(event.phase).__name__, **phase}
        if isinstance(event, TestStarted):
            del fields["plan"]  # only reports use this value, and the run file contains it
        self.write(type(event).__name__, fields)

    def write(self, event: str, fields: Mapping[str, object]) -> None:
        """Write an event as a JSON object. ``event`` is the kind of the event."""
        line = {"event": event, **self._about, **fields}
        # NaN is written as null, because JSON has no NaN.
        self._stream.write(encode_json(line) + "\n")
        self._stream.flush()


def _figures_of(measurement: Measurement) -> dict[str, object]:
    return {
        "iops": measurement.iops,
        "megabytes_per_s": measurement.megabytes_per_s,
        "latency_mean_us": measurement.latency_mean_us,
    }


def _sample_fields(sample: Sample) -> dict[str, object]:
    """Return the fields for one second of the measurement. If streams run together, the result contains the same fields
    for each stream, with the name of the stream as the key.
    """
    fields = _fields_of(sample)
    if sample.streams:
        fields["streams"] = {part.name: _fields_of(sample.of_stream(part.name)) for part in sample.streams}
    return fields


def _fields_of(sample: Sample) -> dict[str, object]:
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
