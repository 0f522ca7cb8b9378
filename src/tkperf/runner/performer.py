"""The execution of phases: the engine or the target executes each phase, observers receive events, and the procedure
receives an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

from tkperf.engine import Engine, Execution, Next, OnSample
from tkperf.model.disturbance.io import Counters
from tkperf.model.errors import RefusedError, StepDisturbedError, StepFailedError
from tkperf.model.host_use import HostLooks
from tkperf.model.measurement import Measurement, Sample, as_answer
from tkperf.model.phases import Answer, Continuous, Fill, Idle, Phase, Purge, Round
from tkperf.model.plausibility import RequestedLoad, require_plausible
from tkperf.model.record import OnNote, OnProgress, PurgeRecord, PurgeResult, RunNote, StepRecord
from tkperf.model.run_info import RunInfo
from tkperf.model.telemetry.drive_reading import Telemetry
from tkperf.model.workload import Workload
from tkperf.procedures import Test
from tkperf.procedures.forecast import Case
from tkperf.procedures.profiles import Profile
from tkperf.runner.ahead import Ahead
from tkperf.runner.events import (
    Event,
    Noted,
    Observer,
    PhaseStarted,
    PurgeEnded,
    SampleSeen,
    StepEnded,
    StepStarted,
    TargetBusy,
    Warned,
)
from tkperf.runner.replay import Resumed
from tkperf.runner.run_watch import Observations, RunTelemetry, RunWatch

# A step that has failed twice will fail again. A short disturbance, such as a timer's job or a user who opens a file,
# is over after one or two attempts. Any other disturbance lasts for hours.
_MOST_ATTEMPTS, _MOST_DISTURBED_ATTEMPTS = 2, 3
_TIMES = {
    _MOST_ATTEMPTS: "measured twice, and failed twice",
    _MOST_DISTURBED_ATTEMPTS: "measured three times, and refused each time",
}

Measured = Fill | Round | Continuous


class RunTarget(Protocol):
    """The device under test, held with a permit to erase the device."""

    def recheck(self) -> None:
        """Raise an error unless the target is still the same device and tkperf may still erase it."""
        ...

    def make_ready_to_fill(self) -> None:
        """Prepare the target for preconditioning. This method is called just before the preconditioning."""
        ...

    def make_ready(self, *, on_progress: OnProgress) -> None:
        """Prepare the target for measuring. This method is called just before the measurement."""
        ...

    def purge(self, *, on_progress: OnProgress, on_note: OnNote) -> PurgeResult:
        """Put the target in "as new" state.

        Args:
            on_progress: a function that is called with the finished share (0..1) from time to time, or with None if the
                share is not known.
            on_note: a function that is called with the code and the text of a note that must be recorded before the
                purge.

        Raises:
            TkperfError: the target cannot be purged.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """The parts of a run.

    Attributes:
        info: facts about the run. ``profile`` replaces the profile's name and data in these facts.
        profile: the profile that the tests follow.
        counters: the function that reads the counters of the measured device.
        fill_counters: the function that reads the counters of the preconditioned device, if this is not the measured
            device.
        host: the reader of the activity of the host.
        strict: whether a disturbed step is measured again, or ends the run.
        resumed: the part of the run that was done before the interruption.
        telemetry: the reader of the drives' logs.
    """

    info: RunInfo
    tests: Sequence[Test]
    profile: Profile
    engine: Engine
    target: RunTarget
    observers: Sequence[Observer]
    clock: Callable[[], float]
    warnings: Sequence[RunNote] = ()
    counters: Counters | None = None
    fill_counters: Counters | None = None
    host: HostLooks | None = None
    strict: bool = False
    resumed: Resumed | None = None
    telemetry: Telemetry | None = None

    def __post_init__(self) -> None:
        followed = replace(self.info, profile_name=self.profile.name, profile=self.profile.as_plain_data())
        object.__setattr__(self, "info", followed)

    @property
    def active_range_bytes(self) -> int:
        length_bytes = self.info.active_range_length_bytes
        assert length_bytes is not None, "only imported runs do not know it"
        return length_bytes

    def emit(self, event: Event) -> None:
        for observer in self.observers:
            observer(event)


@dataclass(slots=True)
class Performer:
    """The performer of the phases of a running test. ``origin_s`` is the start of the run on the clock of the run."""

    run: RunParts
    ahead: Ahead
    origin_s: float
    watch: RunWatch
    telemetry: RunTelemetry

    @property
    def test(self) -> Test:
        return self.ahead.test

    def answer(self, phase: Phase, following: Sequence[Phase]) -> Answer:
        """Perform a phase and return the answer. ``following`` contains the later phases that are already certain."""
        self.ahead.begin(phase, following)
        self.telemetry.look()
        self._announce(phase)
        answer = self._perform(phase)
        self.ahead.answers.append(answer)
        return answer

    def rest(self) -> None:
        """Stop all I/O. The caller uses this method if no prepared load can follow."""
        self.run.engine.rest()
        self.watch.rested()

    def now_s(self) -> float:
        """Return the seconds since the start of the run."""
        return self.run.clock() - self.origin_s

    def warn(self, code: str, text: str) -> None:
        warning = RunNote(code=code, text=text, test=self.test.name, at_s=self.now_s())
        self.run.emit(Warned(warning=warning))

    def recheck(self) -> None:
        """Raise an error unless the target is still the same device and tkperf may still erase it.

        If a waiting fio was killed, its helpers still have the device open for a moment. These helpers are no longer
        descendants of tkperf, so the check would take them for other users of the device. The engine therefore ends
        everything that waits, and the second check decides.
        """
        try:
            self.run.target.recheck()
        except RefusedError:
            self.run.engine.rest()
            self.run.target.recheck()

    def _perform(self, phase: Phase) -> Answer:
        self.recheck()
        match phase:
            case Purge():
                self._purge(phase)
                return None
            case Fill():
                self.run.target.make_ready_to_fill()
                return self._fill(phase)
            case Round():
                self._make_ready()
                return self._round(phase)
            case Continuous():
                self._make_ready()
                return self._slice(phase)
            case Idle():
                self._make_ready()
                self._idle(phase)
                return None

    def _make_ready(self) -> None:
        """Prepare the target. A drive needs no preparation. A RAID set is created, and its progress is reported."""
        busy = self._busy("getting the set ready")

        def on_progress(done: float | None) -> None:
            busy(done)
            self.watch.paused(self.run.clock())

        self.run.target.make_ready(on_progress=on_progress)

    def _purge(self, phase: Purge) -> None:
        self.rest()
        began_s = self.now_s()
        with self.telemetry.paused():
            result = self.run.target.purge(on_progress=self._busy("purging"), on_note=self._note)
        record = PurgeRecord(
            section=phase.section,
            started_s=began_s,
            duration_s=self.now_s() - began_s,
            method=result.method,
            note=result.note,
        )
        self.watch.paused(self.run.clock())
        self.run.emit(PurgeEnded(test=self.test.name, record=record))

    def _busy(self, doing: str) -> OnProgress:
        """Return a callback that reports the progress of the target to the observers."""

        def on_progress(done: float | None) -> None:
            busy = TargetBusy(test=self.test.name, doing=doing, done=done, at_s=self.now_s())
            self.run.emit(busy)

        return on_progress

    def _note(self, code: str, text: str) -> None:
        note = RunNote(code=code, text=text, test=self.test.name, at_s=self.now_s())
        self.run.emit(Noted(note=note))

    def _idle(self, phase: Idle) -> None:
        self._busy("leaving the device idle")(None)
        self.run.engine.idle(phase.duration_s, then=self.ahead.next(phase, lambda _: None))
        self.watch.idled(phase.duration_s)

    def _fill(self, phase: Fill) -> Measurement:
        then = self.ahead.next(phase, lambda measurement: measurement)
        step, on_sample = self._start_step(phase)
        # A failed fill is not repeated. With a third and a fourth pass, the preconditioning would differ from the
        # requested preconditioning, and the additional passes would need as much time as the first two passes.
        execution = self.run.engine.fill(phase, then=then, on_sample=on_sample)
        observed = self._believe(step, execution)
        answer = as_answer(execution.measurement, observed.disturbances)
        self._start_next(phase, then, answer)
        self._keep(step, execution, observed)
        return answer

    def _round(self, phase: Round) -> Answer:
        measurements: dict[Workload, Measurement] = {}
        for position, step in enumerate(phase.steps):
            if position + 1 < len(phase.steps):
                then: Next | None = self.ahead.within(phase, position)
            else:
                then = self.ahead.next(phase, _answer_with(measurements, step.workload), step.duration_s)
            started, execution, observed = self._measure(phase, position, then)
            measurements[step.workload] = as_answer(execution.measurement, observed.disturbances)
            if position + 1 == len(phase.steps):
                self._start_next(phase, then, measurements)
            self._keep(started, execution, observed)
        return measurements

    def _measure(self, phase: Round, position: int, then: Next | None) -> tuple[StepStarted, Execution, Observations]:
        """Measure a step of a round. If the step failed or was refused, immediately measure the step again."""
        for attempt in count(1):
            began_s = self.run.clock()
            execution: Execution | None = None
            try:
                step, on_sample = self._start_step(phase, position)
                execution = self.run.engine.measure(phase.steps[position], then=then, on_sample=on_sample)
                return step, execution, self._believe(step, execution)
            except StepFailedError as error:
                is_disturbed = isinstance(error, StepDisturbedError)
                if attempt >= (_MOST_DISTURBED_ATTEMPTS if is_disturbed else _MOST_ATTEMPTS):
                    raise type(error)(f"{error} ({_TIMES[attempt]})") from error
                # The device is idle after this moment, including the time in which the target is checked.
                ended_s = self.run.clock()
                if execution is not None:
                    began_s = execution.started_s
                    ended_s = min(ended_s, began_s + execution.measurement.duration_s)
                self.run.engine.rest()  # this call also stops the next step if it has already begun
                self.recheck()
                self.watch.gave_up(began_s, ended_s, str(error))
                text = _why_repeated(phase, position, then, error, ended_s - began_s)
                self.warn("step-repeated", text)
        raise AssertionError("the loop over the attempts ended without a result or an error")

    def _believe(self, step: StepStarted, execution: Execution, *, continues: bool = False) -> Observations:
        """Return the observations of a step, which do not include fio's report.

        Raises:
            TkperfError: fio's report cannot be true, or the step was disturbed and the run is strict.
        """
        device = self.run.info.device.get("path") or "the device"
        requested = RequestedLoad(workload=step.workload, duration_s=step.planned_s, running=continues)
        require_plausible(execution.with_lead_in, requested, execution.evidence, device=device)
        return self.watch.step_ended(
            step.kind,
            step.workload,
            execution.with_lead_in,
            started_s=execution.started_s,
            handed_over_s=execution.handed_over_s,
            earliest_s=execution.earliest_s,
            continues=continues,
        )

    def _slice(self, phase: Continuous) -> Measurement:
        then = self.ahead.next(phase, lambda measurement: measurement, phase.duration_s)
        step, on_sample = self._start_step(phase)
        execution = self.run.engine.measure_slice(phase, then=then, on_sample=on_sample)
        observed = self._believe(step, execution, continues=True)
        answer = as_answer(execution.measurement, observed.disturbances)
        self._start_next(phase, then, answer)
        self._keep(step, execution, observed)
        return answer

    def _start_next(self, phase: Phase, then: Next | None, answer: Answer) -> None:
        """Release the next load, which is now certain, before the results are recorded."""
        if then is not None and not then.certain and (load := self.ahead.load_after(phase, answer)):
            self.run.engine.start_next(load)

    def _announce(self, phase: Phase) -> None:
        shortest_s, longest_s = (self.ahead.left_s(case) for case in (Case.BEST, Case.WORST))
        self.run.emit(
            PhaseStarted(
                test=self.test.name,
                phase=phase,
                at_s=self.now_s(),
                shortest_s=shortest_s,
                longest_s=longest_s,
                at_most=self.ahead.at_most(phase),
            )
        )

    def _start_step(self, phase: Measured, position: int = 0) -> tuple[StepStarted, OnSample]:
        step = StepStarted.of_phase(
            self.test.name, phase, position, at_s=self.now_s(), active_range_bytes=self.run.active_range_bytes
        )
        self.run.emit(step)
        self.watch.step_begins(step.kind, self.run.clock(), step.planned_s)

        def on_sample(sample: Sample, arrived_s: float | None) -> None:
            self.watch.sample(sample, self.run.clock() if arrived_s is None else arrived_s)
            self.telemetry.look()
            self.run.emit(SampleSeen(test=self.test.name, sample=sample, at_s=self.now_s()))

        return step, on_sample

    def _keep(self, step: StepStarted, execution: Execution, observed: Observations) -> None:
        """Pass the finished step and its warnings to the observers."""
        record = StepRecord(
            section=step.section,
            kind=step.kind,
            number=step.number,
            position=step.position,
            workload=step.workload,
            planned_s=step.planned_s,
            started_s=execution.started_s + execution.lead_in_s - self.origin_s,
            gap_s=observed.gap_s,
            planned_pause=observed.planned_pause,
            foreign_read_bytes=observed.foreign_read_bytes,
            foreign_write_bytes=observed.foreign_write_bytes,
            disturbances=observed.disturbances,
            host=observed.host,
            measurement=execution.measurement,
            job_file=execution.job_file,
            engine_output=execution.output,
        )
        self.run.emit(StepEnded(test=self.test.name, record=record))
        for warning in self.watch.warnings(self.test.name, record, self.now_s()):
            self.run.emit(Warned(warning=warning))


def _answer_with(
    cells: dict[Workload, Measurement], last: Workload
) -> Callable[[Measurement], dict[Workload, Measurement]]:
    """Return a function that forms the answer to a round. The function adds the measurement of the last workload to
    ``cells``.
    """
    return lambda measurement: {**cells, last: measurement}


def _why_repeated(phase: Round, position: int, then: Next | None, error: StepFailedError, tried_s: float) -> str:
    """Return the text about a repeated step. The text contains the step, the reason, and the load on the device between
    the attempts.
    """
    saw = f"the failed attempt ({tried_s:.0f} s)"
    if then is not None and then.certain:
        saw += f" and perhaps the beginning of the next step, {then.loads[0].workload}"
    return (
        f"{phase.section}, round {phase.number}, step {position + 1} of {len(phase.steps)} was "
        f"measured again, because {error}. In between the device saw {saw}"
    )
