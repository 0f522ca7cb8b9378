"""The events of a run, which are sent to its observers (run file, live view, progress lines), and the result of one
reading of a run file.

The runner emits events in order. An observer is any callable that accepts an event. A process that has access only to
the run file reads the file repeatedly, and ``run_log.py`` converts the new rows into the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tkperf.model.figures import TestPlan
from tkperf.model.measurement import NewestSamples, Sample
from tkperf.model.phases import Continuous, Fill, Idle, Phase, Purge, Round, SectionOutcome
from tkperf.model.record import (
    LogEntry,
    PurgeRecord,
    Resumption,
    RunNote,
    RunRecord,
    RunStatus,
    StepKind,
    StepRecord,
    kind_of,
)
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    info: RunInfo
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """A run that stopped earlier has continued."""

    info: RunInfo
    tests: tuple[str, ...]
    resumption: Resumption


@dataclass(frozen=True, slots=True, kw_only=True)
class TestStarted:
    """A test has started. ``goes_on`` means that the test continues after an interruption."""

    __test__ = False

    test: str
    at_s: float
    plan: TestPlan | None = None
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted:
    """A phase has started. ``shortest_s`` and ``longest_s`` are the remaining times of the whole run from this moment.

    ``at_most`` is the greatest number of rounds, areas or slices in the section. None means that the section has only
    one such phase.
    """

    test: str
    phase: Phase
    at_s: float
    shortest_s: float
    longest_s: float
    at_most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step has started. ``position`` is the step's number in the phase, counted from 0, and ``steps`` is the number
    of steps. ``planned_s`` is None if the step ends after an amount of data.
    """

    test: str
    section: str
    kind: StepKind
    number: int
    position: int
    steps: int
    workload: Workload
    planned_s: float | None
    planned_bytes: int | None
    at_s: float

    @classmethod
    def of_phase(
        cls, test: str, phase: Fill | Round | Continuous, position: int, *, at_s: float, active_range_bytes: int
    ) -> Self:
        """Return the event for the start of the step at this position of a phase."""
        planned_s: float | None = None
        planned_bytes: int | None = None
        match phase:
            case Round():
                step = phase.steps[position]
                workload, planned_s = step.workload, step.duration_s
            case Continuous():
                workload, planned_s = phase.workload, phase.duration_s
            case Fill():
                workload = phase.workload
                planned_bytes = phase.passes * (phase.length_bytes or active_range_bytes)
        return cls(
            test=test,
            section=phase.section,
            kind=kind_of(phase),
            number=getattr(phase, "number", 1),
            position=position,
            steps=len(phase.steps) if isinstance(phase, Round) else 1,
            workload=workload,
            planned_s=planned_s,
            planned_bytes=planned_bytes,
            at_s=at_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSeen:
    test: str
    sample: Sample
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded:
    test: str
    record: StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeEnded:
    test: str
    record: PurgeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBusy:
    """The target is being prepared. ``doing`` describes the activity, such as ``purging``.

    ``done`` is the finished share (0..1). None means that the device does not report progress.
    """

    test: str
    doing: str
    done: float | None
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySeen:
    """A reading of a drive's telemetry. The event is sent some seconds after the reading was made."""

    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    note: RunNote


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    test: str
    section: str
    number: int
    verdict: SteadyStateVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionEnded:
    """A section of a test has ended. Other sections of the test may continue."""

    test: str
    outcome: SectionOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    warning: RunNote


@dataclass(frozen=True, slots=True, kw_only=True)
class TestEnded:
    """A test has ended. ``at_s`` is None if a tool other than tkperf ran the test."""

    __test__ = False

    test: str
    status: RunStatus
    at_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    status: RunStatus
    because: str | None
    ended_utc: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDropped:
    """The number of events that a slow view missed. The missed events occurred before the next event that the view
    receives.

    Only the view that missed the events receives this event.
    """

    samples: int
    others: int

    @property
    def count(self) -> int:
        return self.samples + self.others


Event = (
    RunStarted
    | RunResumed
    | TestStarted
    | PhaseStarted
    | StepStarted
    | SampleSeen
    | StepEnded
    | TargetBusy
    | PurgeEnded
    | TelemetrySeen
    | Noted
    | Judged
    | SectionEnded
    | Warned
    | TestEnded
    | RunEnded
    | EventsDropped
)
Observer = Callable[[Event], None]


def describe_phase(phase: Phase | None, at_most: int | None = None, steps_done: int | None = None) -> str:
    """Return a description of a phase, such as ``IOPS, round 7 of at most 25, step 3 of 56``.

    If ``steps_done`` is None, the text does not contain the step. If there is no phase, the text is empty.
    """
    of = "" if at_most is None else f" of at most {at_most:,}"
    match phase:
        case None:
            return ""
        case Purge(section=section):
            return f"{section}, purging"
        case Fill(section=section):
            return f"{section}, preconditioning"
        case Idle(section=section):
            return f"{section}, idle"
        case Continuous(section=section, number=number):
            what = "warm-up slice" if phase.warm_up else "slice"
            return f"{section}, {what} {number}{of}"
        case Round(section=section, number=number, steps=steps):
            if phase.cells is not None:
                lead_in = "lead-in of " if phase.warm_up else ""
                return f"{section}, {lead_in}cell {number} of {phase.cells:,}"
            what = "warm-up" if phase.warm_up else "area" if phase.areas else "round"
            of = f" of {phase.areas}" if phase.areas else of
            step = ""
            if steps_done is not None and len(steps) > 1:
                step = f", step {steps_done + 1} of {len(steps)}"
            return f"{section}, {what} {number}{of}{step}"


def find_place_events(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the latest start of the run, of a resumption, of a test, of a phase and of a step. Together, these events
    describe the current place of the run.
    """
    for kind in (RunStarted, RunResumed, TestStarted, PhaseStarted, StepStarted):
        latest = [event for event in events if isinstance(event, kind)]
        if latest:
            yield latest[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The data of a run at one reading: the whole run, but only the new rows of the log.

    Attributes:
        record: the whole run, but with only those steps, purges and verdicts that are new.
        log: the new rows in their order.
        sequence, part, begun_s: the position in the log, and in the current step, up to which this reading extends.
        seconds: the newest seconds of the newest steps, keyed by the step's sequence number. The first reading contains
            only the seconds of the last step.
        seconds_under_way: the newest of the new seconds of the current step.
        log_bytes: memory for the log up to this position, counted in the same way as for the limits of a run file.
    """

    record: RunRecord
    log: tuple[LogEntry, ...]
    sequence: int
    part: int
    begun_s: float | None
    seconds: Mapping[int, NewestSamples]
    seconds_under_way: NewestSamples
    log_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The state of a run. tkperf determines the state without reading the steps, because a run may have thousands of
    steps.

    Attributes:
        record: the run without its log. The record contains no steps, purges or verdicts.
        disturbed_steps: the number of disturbed steps in results. None means that the run was not watched.
    """

    record: RunRecord
    disturbed_steps: int | None
