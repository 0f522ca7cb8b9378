"""The progress of a run according to its log alone: the current phase, and the remaining time.

The log is replayed to new procedures, as when a run is resumed (docs/adr/0007). The current phase is the one that the
procedures request next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tkperf.model.errors import UsageError
from tkperf.model.phases import Phase, SectionOutcome
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
from tkperf.runner.events import describe_phase
from tkperf.runner.replay import at_found_demand, find_reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The place that a run has reached now, or had reached when it ended.

    Attributes:
        test: the current test; None between tests and before the first test.
        number, tests: the number of the test in the run, from 1, and the number of tests.
        phase: the last phase that the test requested; None if the log does not show it.
        steps_done: the finished steps of the phase.
        at_most: the greatest number of such phases in the section, if there are several.
        began_s: the beginning of the phase, as far as the log shows it.
        shortest_s, longest_s: the remaining time of the run after the beginning of the phase, without purges; None: not
            known.
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
        """Return the shortest and the longest time from now on; None: not known."""
        if self.shortest_s is None or self.longest_s is None:
            return None
        passed_s = now_s - self.began_s
        shortest_s = max(0.0, self.shortest_s - passed_s)
        return shortest_s, max(shortest_s, self.longest_s - passed_s)


def find_progress(record: RunRecord, log: Sequence[LogEntry]) -> Progress:
    """Return the place that a run has reached. Unknown values stay at their defaults.

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
        # The log is damaged, or it comes from a version of tkperf whose tests had another course.
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
    """Return the outcomes of a test's sections."""
    return tuple(
        entry.record
        for entry in log
        if entry.test_id == test.id and not entry.set_aside and isinstance(entry.record, SectionOutcome)
    )


def _profile_of(record: RunRecord, done: Mapping[str, Sequence[SectionOutcome]]) -> Profile:
    """Return the profile of the run, with the demand that an earlier search found."""
    profile = read_stored_profile(record.info.profile)
    for name in record.planned:
        profile = at_found_demand(profile, done.get(name, ()))
    return profile


def _test_of(info: RunInfo, name: str) -> Test:
    test = find_test(info.suite, name, info.profile)
    if test is None:
        raise ValueError(f"this version of tkperf has no test {name}")
    return test


def _beginning(record: RunRecord, under_way: TestRecord, entries: Sequence[LogEntry], steps_done: int) -> float:
    """Return the beginning of the current phase: the end of the preceding record in the log."""
    done = [entry for entry in entries if isinstance(entry.record, StepRecord | PurgeRecord)]
    before = done[: len(done) - steps_done]
    began_s = end_s(before[-1].record) if before else under_way.started_s
    # After an interruption, the phase began after the run was resumed.
    resumed_s = (resumption.resumed_s for resumption in record.resumptions)
    return max(began_s, *resumed_s) if record.resumptions else began_s


def end_s(record: object) -> float:
    """Return the end of a step or a purge."""
    if isinstance(record, StepRecord):
        return record.started_s + record.measurement.duration_s
    assert isinstance(record, PurgeRecord)
    return record.started_s + record.duration_s


def describe_place(progress: Progress) -> str:
    """Return ``IOPS, round 7 of at most 25, step 3 of 56``; empty if the phase is not known."""
    return describe_phase(progress.phase, progress.at_most, progress.steps_done)


def describe_under_way(step: UnfinishedStep, status: RunStatus) -> str:
    """Describe the unfinished step: ``preconditioning: 512.0 GB of 960.2 GB written in 20 min, cut off``."""
    state = "still going on" if status is RunStatus.RUNNING else "cut off; it counts in no result"
    within = format_duration(step.measured_so_far.duration_s)
    if step.kind is StepKind.FILL:
        written = format_capacity(step.measured_so_far.write.bytes)
        whole = "" if step.planned_bytes is None else f" of {format_capacity(step.planned_bytes)}"
        return f"{step.section}, preconditioning: {written}{whole} written in {within}, {state}"
    what = "slice" if step.kind is StepKind.CONTINUOUS else step.kind.value
    planned = "" if step.planned_s is None else f" of {format_duration(step.planned_s)}"
    return f"{step.section}, {what} {step.number}, {step.workload}: {within}{planned}, {state}"
