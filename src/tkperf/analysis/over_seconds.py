"""Add results of the seconds to the results of rounds and slices: findings over time, and uncertainties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from tkperf.analysis.courses import with_characteristics
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.run_results import analyse
from tkperf.analysis.timeline.findings import Recorded, Timeline
from tkperf.analysis.timeline.search import find_in_seconds
from tkperf.analysis.timeline.series import has_idle
from tkperf.analysis.uncertainty.cells import needs_seconds, with_uncertainty
from tkperf.analysis.waits import with_waits
from tkperf.model.record import (
    LeftOut,
    RunRecord,
    StepKind,
    StepRecord,
    TestRecord,
    is_as_new,
    key_of,
)
from tkperf.model.seconds import Seconds, join

# Slices shorter than this are as fine as seconds; a step with fewer seconds is not long.
SHORTEST_SLICE_S = 2.0
LEAST_SECONDS = 120

Read = Callable[[TestRecord], Sequence[Seconds]]


class Opened(Protocol):
    """An open run file."""

    @property
    def left_out(self) -> Sequence[LeftOut]: ...

    def seconds(self, test: TestRecord, /) -> Sequence[Seconds]: ...


def analyse_opened(opened: Opened, record: RunRecord) -> RunResult:
    """Return the results of a record with the findings from its seconds; warnings name unreadable seconds, too."""
    result = with_seconds(analyse(record), record, opened.seconds)
    return replace(result, left_out=tuple(opened.left_out))


def with_seconds(result: RunResult, record: RunRecord, read: Read) -> RunResult:
    """Return the result with the uncertainty of its figures, and findings in the seconds of unbroken workloads.

    Args:
        result: the analysis of ``record``.
        read: returns the seconds of each step of a test, in their order.
    """
    tests = {test.name: test for test in record.tests}
    found = tuple(
        with_characteristics(
            replace(test, sections=_sections(test.sections, tests[test.name], read))
        )
        if test.name in tests
        else test
        for test in result.tests
    )
    return replace(result, tests=found)


def _sections(
    sections: Sequence[SectionResult], test: TestRecord, read: Read
) -> tuple[SectionResult, ...]:
    asked = any(
        _unbroken_steps(section.name, test) or needs_seconds(section, _steps(section, test))
        for section in sections
    )
    kept = read(test) if asked else ()  # the slowest part
    by_step = dict(zip(map(id, test.steps), kept, strict=False))
    return tuple(_section(section, test, by_step) for section in sections)


def _section(
    section: SectionResult, test: TestRecord, by_step: dict[int, Seconds]
) -> SectionResult:
    if steps := _unbroken_steps(section.name, test):
        timelines = (*section.timelines, *_find(section, steps, by_step))
        section = replace(section, timelines=timelines)
    steps_of_section = _steps(section, test)
    section = with_waits(section, steps_of_section, by_step)
    return with_uncertainty(section, steps_of_section, by_step)


def _steps(section: SectionResult, test: TestRecord) -> list[StepRecord]:
    return [step for step in test.steps if step.section == section.name]


def _unbroken_steps(section: str, test: TestRecord) -> tuple[StepRecord, ...]:
    """Return the steps of a section with a single workload, back to back and long enough for a search; else none."""
    steps = [
        step
        for step in test.steps
        if step.section == section and step.kind not in (StepKind.FILL, StepKind.WARM_UP)
    ]
    whole_s = sum(step.measurement.duration_s for step in steps)
    if not steps or whole_s < LEAST_SECONDS or steps[0].kind is StepKind.AREA:
        return ()
    if len({key_of(step.kind, step.workload) for step in steps}) > 1:
        return ()
    durations_s = [step.measurement.duration_s for step in steps]
    apart = has_idle([step.started_s for step in steps], durations_s)
    return () if apart or durations_s[0] < SHORTEST_SLICE_S else tuple(steps)


def _find(
    section: SectionResult, steps: Sequence[StepRecord], by_step: dict[int, Seconds]
) -> tuple[Timeline, ...]:
    kept = [(step, by_step[id(step)]) for step in steps if id(step) in by_step]
    if not kept or sum(len(seconds) for _, seconds in kept) < LEAST_SECONDS:
        return ()
    first_s = kept[0][0].started_s
    seconds = join([seconds for _, seconds in kept], [step.started_s - first_s for step, _ in kept])
    of_slices = any(
        timeline.recorded is not Recorded.SECONDS and timeline.levels
        for timeline in section.timelines
    )
    return find_in_seconds(
        steps[0].workload,
        seconds,
        as_new=is_as_new(section.purge, section.filled_bytes),
        levels=not of_slices,
    )
