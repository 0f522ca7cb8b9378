"""Find the resumptions of a run that was interrupted, repeated or extended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tkperf.analysis.results import ReplacedTest, ResumptionResult, TestResult
from tkperf.model.record import (
    GoesOn,
    Resumption,
    RunRecord,
    RunStatus,
    StepRecord,
)


def find_resumptions(record: RunRecord) -> tuple[ResumptionResult, ...]:
    """Return each resumption of a run, in order."""
    return tuple(_result(record, resumption) for resumption in record.resumptions)


def with_resumptions(test: TestResult, found: Sequence[ResumptionResult]) -> TestResult:
    """Return the test with its set-aside writes included, and without the time in which nothing ran."""
    of_test = [each for each in found if each.test == test.name]
    again_bytes = sum(each.set_aside_written_bytes for each in of_test)
    paused_s = sum(each.resumed_s - each.stopped_s for each in of_test)
    written_bytes, duration_s = test.written_bytes, test.duration_s
    return replace(
        test,
        written_bytes=None if written_bytes is None else written_bytes + again_bytes,
        written_again_bytes=again_bytes,
        duration_s=None if duration_s is None else duration_s - paused_s,
    )


def _result(record: RunRecord, resumption: Resumption) -> ResumptionResult:
    aside = _set_aside(record, resumption)
    earlier = [test for test in record.earlier if test.id in resumption.repeated_ids]
    written_bytes = resumption.cut_off_written_bytes + sum(
        step.measurement.write.bytes for step in aside
    )
    return ResumptionResult(
        resumed_utc=resumption.resumed_utc,
        stopped_s=resumption.stopped_s,
        resumed_s=resumption.resumed_s,
        interrupted=resumption.was_interrupted,
        because=resumption.because,
        test=resumption.test,
        section=resumption.section,
        goes_on=resumption.goes_on.value,
        again=resumption.again,
        accepted=resumption.goes_on is GoesOn.WHERE_IT_STOPPED,
        set_aside_steps=len(aside),
        set_aside_written_bytes=written_bytes,
        repeated=resumption.repeated,
        added=resumption.added,
        changes=resumption.changes,
        cut_off=resumption.cut_off,
        replaced=tuple(
            ReplacedTest(
                name=test.name,
                complete=test.status is RunStatus.COMPLETE,
                outcomes=test.outcomes,
                written_bytes=sum(step.measurement.write.bytes for step in test.steps),
            )
            for test in earlier
        ),
    )


def _set_aside(record: RunRecord, resumption: Resumption) -> tuple[StepRecord, ...]:
    """Return the steps that this interruption set aside; steps of earlier interruptions are left out."""
    for test in (*record.tests, *record.earlier):
        if test.id == resumption.test_id:
            return tuple(
                step for sequence, step in test.set_aside if resumption.sets_aside(sequence)
            )
    return ()
