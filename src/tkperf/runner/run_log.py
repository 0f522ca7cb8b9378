"""The interpretation of a run's log: the events that the run sent, the current phase, and the remaining time.

The file does not contain the current phase and the current step. tkperf therefore replays the log with new procedures,
as it does when a run is resumed (docs/adr/0007). The current phase is the phase that the procedures request next. The
rows of this phase show the current step.

Another process can follow a run with only the run file. The new rows of the file are converted into the events that the
run itself sent. The seconds of a step arrive together with the step. For a long step, they arrive in parts of about a
minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tkperf.model.errors import UsageError
from tkperf.model.measurement import IoStats, NewestSamples, Sample
from tkperf.model.phases import Idle, Phase, Purge, Round, SectionOutcome
from tkperf.model.record import (
    LogEntry,
    PurgeRecord,
    RunRecord,
    RunStatus,
    StepKind,
    StepRecord,
    TestRecord,
    UnfinishedStep,
)
from tkperf.model.run_info import RunInfo
from tkperf.model.units import format_capacity, format_duration
from tkperf.procedures import Test, find_test, read_stored_profile
from tkperf.procedures.forecast import Case
from tkperf.procedures.profiles import Profile
from tkperf.runner.ahead import Ahead
from tkperf.runner.events import (
    Delta,
    Event,
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
    TelemetrySeen,
    TestEnded,
    TestStarted,
    Warned,
    describe_phase,
)
from tkperf.runner.replay import at_found_demand, find_reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The place that a run has reached now, or that the run had reached when it ended.

    Attributes:
        test: the current test. It is None between tests and before the first test.
        number, tests: the number of the test in the run, counted from 1, and the number of all tests.
        phase: the last phase that the test requested. None means that the log does not show the phase.
        steps_done: the number of finished steps of the phase.
        at_most: the greatest number of such phases in the section, if the section may contain several.
        began_s: the beginning of the phase, as far as the log shows it.
        shortest_s, longest_s: the remaining time of the run after the beginning of the phase, without purges. None
            means that the time is not known.
    """

    test: str | None = None
    number: int = 0
    tests: int = 0
    phase: Phase | None = None
    steps_done: int = 0
    at_most: int | None = None
    began_s: float = 0.0
    shortest_s: float | None = None
    longest_s: float | None = None

    def remaining_s(self, now_s: float) -> tuple[float, float] | None:
        """Return the shortest and the longest remaining time, counted from ``now_s``. None means that these times are
        not known.
        """
        if self.shortest_s is None or self.longest_s is None:
            return None
        passed_s = now_s - self.began_s
        shortest_s = max(0.0, self.shortest_s - passed_s)
        return shortest_s, max(shortest_s, self.longest_s - passed_s)


def find_progress(record: RunRecord, log: Sequence[LogEntry]) -> Progress:
    """Return the place that a run has reached. Values that cannot be determined keep their defaults.

    Args:
        log: the whole log of the run file.
    """
    done = {test.name: _outcomes(log, test) for test in record.tests if test.status is RunStatus.COMPLETE}
    under_way = next((test for test in record.tests if test.name not in done), None)
    names = [name for name in record.planned if name not in done]
    number = len(record.planned) - len(names) + bool(names)
    progress = Progress(test=None if under_way is None else under_way.name, number=number, tests=len(record.planned))
    if under_way is None:
        return progress
    entries = [entry for entry in log if entry.test_id == under_way.id and not entry.set_aside]
    try:
        return _place(record, progress, under_way, entries, done)
    except (ValueError, TypeError, LookupError, AttributeError, UsageError):
        # The log is damaged, or it was written by a version of tkperf whose tests had other phases.
        return progress


def _place(
    record: RunRecord,
    progress: Progress,
    under_way: TestRecord,
    entries: Sequence[LogEntry],
    done: Mapping[str, Sequence[SectionOutcome]],
) -> Progress:
    info = record.info
    if info.active_range_length_bytes is None:
        raise ValueError("the size of the active range is not known")
    profile = _profile_of(record, done)
    test = _test_of(info, under_way.name)
    later = [_test_of(info, name) for name in record.planned if name not in done and name != under_way.name]
    ahead = Ahead(test, later, profile, info.active_range_length_bytes)
    earlier = [resumption for resumption in record.resumptions if resumption.test_id == under_way.id]
    phase, answers, steps_done = find_reached(ahead.procedure(), entries, earlier)
    ahead.answers = list(answers)
    if phase is None:
        return progress
    return replace(
        progress,
        phase=phase,
        steps_done=steps_done,
        at_most=ahead.at_most(phase),
        began_s=_beginning(record, under_way, entries, steps_done),
        shortest_s=ahead.left_s(Case.BEST),
        longest_s=ahead.left_s(Case.WORST),
    )


def _outcomes(log: Sequence[LogEntry], test: TestRecord) -> tuple[SectionOutcome, ...]:
    """Return the outcomes of a test's sections that the log contains."""
    return tuple(
        entry.record
        for entry in log
        if entry.test_id == test.id and not entry.set_aside and isinstance(entry.record, SectionOutcome)
    )


def _profile_of(record: RunRecord, done: Mapping[str, Sequence[SectionOutcome]]) -> Profile:
    """Return the profile of the run. If an earlier test found a demand, the profile contains this demand."""
    profile = read_stored_profile(record.info.profile)
    for name in record.planned:
        profile = at_found_demand(profile, done.get(name, ()))
    return profile


def _test_of(info: RunInfo, name: str) -> Test:
    test = find_test(info.suite, name, info.profile)
    if test is None:
        raise ValueError(f"this version of tkperf does not contain the test {name}")
    return test


def _beginning(record: RunRecord, under_way: TestRecord, entries: Sequence[LogEntry], steps_done: int) -> float:
    """Return the beginning of the current phase, which is the end of the preceding record in the log."""
    done = [entry for entry in entries if isinstance(entry.record, StepRecord | PurgeRecord)]
    before = done[: len(done) - steps_done]
    began_s = end_s(before[-1].record) if before else under_way.started_s
    # After an interruption, the phase cannot have begun before the run was resumed.
    resumed_s = (resumption.resumed_s for resumption in record.resumptions)
    return max(began_s, *resumed_s) if record.resumptions else began_s


def end_s(record: object) -> float:
    """Return the end of a step or a purge."""
    if isinstance(record, StepRecord):
        return record.started_s + record.measurement.duration_s
    assert isinstance(record, PurgeRecord)
    return record.started_s + record.duration_s


def describe_place(progress: Progress) -> str:
    """Return a text such as ``IOPS, round 7 of at most 25, step 3 of 56``. The text is empty if the phase is
    not known.
    """
    return describe_phase(progress.phase, progress.at_most, progress.steps_done)


def describe_under_way(step: UnfinishedStep, status: RunStatus) -> str:
    """Return a text about the running step, such as ``IOPS, preconditioning: 512.0 GB of 960.2 GB written in 20 min,
    still going on``.
    """
    state = "still going on" if status is RunStatus.RUNNING else "cut off; it counts in no result"
    within = format_duration(step.measured_so_far.duration_s)
    if step.kind is StepKind.FILL:
        written = format_capacity(step.measured_so_far.write.bytes)
        whole = "" if step.planned_bytes is None else f" of {format_capacity(step.planned_bytes)}"
        return f"{step.section}, preconditioning: {written}{whole} written in {within}, {state}"
    what = "slice" if step.kind is StepKind.CONTINUOUS else step.kind.value
    planned = "" if step.planned_s is None else f" of {format_duration(step.planned_s)}"
    return f"{step.section}, {what} {step.number}, {step.workload}: {within}{planned}, {state}"


class Follower:
    """A follower, which converts the deltas of a run file into events in their order."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self._log: list[LogEntry] = []
        self._begun = False
        self._status = RunStatus.RUNNING
        self._state: object = None
        self._resumptions = self._warnings = self._notes = self._readings = 0
        self._tests: set[int] = set()
        self._ended: set[int] = set()
        self._phase: tuple[str, Phase] | None = None
        self._step: StepStarted | None = None
        self._seen = 0  # the number of seconds of the current step that were already reported

    def take(self, delta: Delta) -> Iterator[Event]:
        """Yield the events of a delta. The first delta must contain the run from its beginning."""
        record = delta.record
        if not self._begun and not record.planned:
            return  # the run has not started yet
        yield from self._beginning(record)
        for test in sorted(record.tests, key=lambda test: test.id):
            yield from self._follow(test, delta)
        yield from self._texts(record)
        for reading in record.telemetry[self._readings :]:
            yield TelemetrySeen(reading=reading)
        self._readings = len(record.telemetry)
        self.progress = self._within_phase(delta) or find_progress(record, self._log)
        was, self._status = self._status, record.status
        if record.status is RunStatus.RUNNING:
            yield from self._now(delta)
        elif record.status is not was:
            yield RunEnded(status=record.status, because=record.ended_because, ended_utc=record.ended_utc)

    def _within_phase(self, delta: Delta) -> Progress | None:
        """Return the progress if the phase is the same as at the previous reading. In this case, a replay of the
        whole log is not needed.
        """
        record, progress = delta.record, self.progress
        was, self._state = (
            self._state,
            (record.status, len(record.resumptions), tuple((test.id, test.status) for test in record.tests)),
        )
        if progress is None or progress.phase is None or was != self._state:
            return None
        if not delta.log:
            return progress
        done = progress.steps_done + len(delta.log)
        is_within = isinstance(progress.phase, Round) and done < len(progress.phase.steps)
        if not is_within or not all(isinstance(one.record, StepRecord) for one in delta.log):
            return None
        return replace(progress, steps_done=done)

    def _beginning(self, record: RunRecord) -> Iterator[Event]:
        if not self._begun:
            self._begun = True
            yield RunStarted(info=record.info, tests=record.planned)
        for resumption in record.resumptions[self._resumptions :]:
            yield RunResumed(info=record.info, tests=record.planned, resumption=resumption)
        if len(record.resumptions) > self._resumptions:
            self._resumptions = len(record.resumptions)
            # A resumption may set aside entries that were read before. The entries are marked here, because their rows
            # are not read again.
            self._log = [
                replace(
                    entry,
                    set_aside=entry.set_aside
                    or any(
                        resumption.test_id == entry.test_id and resumption.sets_aside(entry.sequence)
                        for resumption in record.resumptions
                    ),
                )
                for entry in self._log
            ]
            self._phase = self._step = None

    def _follow(self, test: TestRecord, delta: Delta) -> Iterator[Event]:
        if test.id not in self._tests:
            self._tests.add(test.id)
            self._phase = self._step = None
            yield TestStarted(test=test.name, at_s=test.started_s, plan=test.plan)
        for entry in delta.log:
            if entry.test_id == test.id:
                self._log.append(entry)
                if not entry.set_aside:
                    yield from self._entry(test.name, entry, delta.seconds)
        if test.status is not RunStatus.RUNNING and test.id not in self._ended:
            self._ended.add(test.id)
            yield TestEnded(test=test.name, status=test.status, at_s=test.ended_s)

    def _entry(self, test: str, entry: LogEntry, seconds: Mapping[int, NewestSamples]) -> Iterator[Event]:
        record = entry.record
        if isinstance(record, PurgeRecord):
            yield PurgeEnded(test=test, record=record)
        elif isinstance(record, StepRecord):
            newest = seconds.get(entry.sequence, NewestSamples())
            unseen = newest.samples[max(0, self._seen - newest.left_out) :]
            yield from self._seconds(test, record.started_s, unseen)
            self._step, self._seen = None, 0
            yield StepEnded(test=test, record=record)
        elif isinstance(record, SectionOutcome):
            yield SectionEnded(test=test, outcome=record)
        else:
            yield Judged(test=test, section=record.section, number=record.number, verdict=record.verdict)

    def _seconds(self, test: str, began_s: float, samples: Sequence[Sample]) -> Iterator[Event]:
        for sample in samples:
            at_s = began_s + sample.start_s + sample.duration_s
            yield SampleSeen(test=test, sample=sample, at_s=at_s)

    def _texts(self, record: RunRecord) -> Iterator[Event]:
        for warning in record.warnings[self._warnings :]:
            yield Warned(warning=warning)
        for note in record.notes[self._notes :]:
            yield Noted(note=note)
        self._warnings, self._notes = len(record.warnings), len(record.notes)

    def _now(self, delta: Delta) -> Iterator[Event]:
        """Yield the events of the current phase and the current step, if they have changed."""
        progress = self.progress
        if progress is None or progress.test is None or progress.phase is None:
            return
        if self._phase != (progress.test, progress.phase):
            self._phase = (progress.test, progress.phase)
            remaining = progress.remaining_s(progress.began_s) or (0.0, 0.0)
            yield PhaseStarted(
                test=progress.test,
                phase=progress.phase,
                at_s=progress.began_s,
                shortest_s=remaining[0],
                longest_s=remaining[1],
                at_most=progress.at_most,
            )
        kept = next((test.under_way for test in delta.record.tests if test.under_way), None)
        step = self._step_of(progress, delta.record, kept)
        if step is not None and self._step != step:
            if self._step is None or not _is_same_step(self._step, step):
                self._seen = 0
                yield step
            self._step = step
        if step is not None and kept is not None and _is_kept(step, kept):
            newest = delta.seconds_under_way
            is_first = not self._seen
            self._seen += newest.left_out + len(newest.samples)
            if is_first and newest.left_out:
                yield from self._seconds(step.test, kept.started_s, (_sum_before(kept, newest),))
            yield from self._seconds(step.test, kept.started_s, newest.samples)

    def _step_of(self, progress: Progress, record: RunRecord, kept: UnfinishedStep | None) -> StepStarted | None:
        phase, test = progress.phase, progress.test
        if test is None or phase is None or isinstance(phase, Purge | Idle):
            return None
        position = progress.steps_done if isinstance(phase, Round) else 0
        length_bytes = record.info.active_range_length_bytes or 0
        at_s = self._last_s(progress)
        step = StepStarted.of_phase(test, phase, position, at_s=at_s, active_range_bytes=length_bytes)
        if kept is not None and _is_kept(step, kept):
            return replace(step, at_s=kept.started_s)
        return step

    def _last_s(self, progress: Progress) -> float:
        """Return the end of the last record in the log, which is the beginning of the current step."""
        done = [
            entry.record
            for entry in self._log[-2:]
            if isinstance(entry.record, StepRecord | PurgeRecord) and not entry.set_aside
        ]
        return max(progress.began_s, end_s(done[-1])) if done else progress.began_s


def _sum_before(kept: UnfinishedStep, newest: NewestSamples) -> Sample:
    """Return one sample for the part of an unfinished step that precedes the kept seconds."""
    so_far = kept.measured_so_far
    starts_s = newest.samples[0].start_s if newest.samples else so_far.duration_s
    read, write = (
        IoStats(
            ios=max(0, total.ios - sum(part.ios for part in parts)),
            bytes=max(0, total.bytes - sum(part.bytes for part in parts)),
        )
        for total, parts in (
            (so_far.read, [sample.read for sample in newest.samples]),
            (so_far.write, [sample.write for sample in newest.samples]),
        )
    )
    return Sample(start_s=0.0, duration_s=max(starts_s, 1e-6), read=read, write=write)


def _is_same_step(one: StepStarted, other: StepStarted) -> bool:
    """Return whether two events describe the same step. The times of the events are ignored."""
    return replace(one, at_s=0.0) == replace(other, at_s=0.0)


def _is_kept(step: StepStarted, kept: UnfinishedStep) -> bool:
    return (step.section, step.kind, step.number, step.position, step.workload) == (
        kept.section,
        kept.kind,
        kept.number,
        kept.position,
        kept.workload,
    )
