"""Describe the resumptions of a run that was interrupted, repeated or extended, for every output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tkperf.analysis.results import ResumptionResult, TestResult
from tkperf.model.record import (
    GoesOn,
    Resumption,
    RunRecord,
    RunStatus,
    RunWarning,
    StepRecord,
    TestRecord,
)
from tkperf.model.units import (
    format_capacity,
    format_count,
    format_duration,
    format_number,
    format_window,
    unit_for_people,
)

INTERRUPTED = "INTERRUPTED"


def find_resumptions(record: RunRecord) -> tuple[ResumptionResult, ...]:
    """Return each resumption of a run, in order."""
    return tuple(_result(record, resumption) for resumption in record.resumptions)


def find_notices(found: Sequence[ResumptionResult]) -> Iterator[str]:
    """Yield the notices for every page about interruptions, repetitions and additions."""
    cuts = [resumption for resumption in found if resumption.interrupted]
    if cuts:
        stopped_s = sum(resumption.resumed_s - resumption.stopped_s for resumption in cuts)
        often, together = ("once", "") if len(cuts) == 1 else (f"{len(cuts)} times", " together")
        paused = f", for up to {format_duration(stopped_s)}{together}," if stopped_s > 0 else ""
        spans = " RESULTS SPAN IT where marked;" if any(cut.accepted for cut in cuts) else ""
        yield (
            f"{INTERRUPTED}: the run stopped {often}{paused} and went on;"
            f"{spans} what was measured again is named with its test"
        )
    for names, what in (
        ([name for each in found for name in each.repeated], "REPEATED: measured again on request"),
        (
            [name for each in found for name in each.added],
            "ADDED: measured after the run had ended",
        ),
    ):
        if names:
            yield f"{what}: {', '.join(dict.fromkeys(names))}"


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
        resumptions=tuple(each.text for each in found if each.concerns(test.name)),
    )


def warn_of_resumptions(
    found: Sequence[ResumptionResult], tests: Sequence[TestResult]
) -> Iterator[RunWarning]:
    """Yield a warning for each resumption, with the title of its test."""
    titles: dict[str | None, str] = {test.name: test.title for test in tests}
    for each in found:
        text = f"{titles.get(each.test, 'the run')}: {each.text}"
        yield RunWarning(code="resumed", text=text, test=each.test, at_s=each.resumed_s)


def _result(record: RunRecord, resumption: Resumption) -> ResumptionResult:
    aside = _set_aside(record, resumption)
    earlier = [test for test in record.earlier if test.id in resumption.repeated_ids]
    written_bytes = resumption.cut_off_written_bytes + sum(
        step.measurement.write.bytes for step in aside
    )
    sentences = (
        *(_of_interruption(resumption, aside, written_bytes) if resumption.was_interrupted else ()),
        *(_of_repetition(test, resumption) for test in earlier),
        *((f"{', '.join(resumption.added)} added {resumption.resumed_utc}",) if resumption.added else ()),
        *((f"different since then: {', '.join(resumption.changes)}",) if resumption.changes else ()),
    )  # fmt: skip
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
        text="; ".join(sentences),
    )


def _set_aside(record: RunRecord, resumption: Resumption) -> tuple[StepRecord, ...]:
    """Return the steps that this interruption set aside; steps of earlier interruptions are left out."""
    for test in (*record.tests, *record.earlier):
        if test.id == resumption.test_id:
            return tuple(
                step for sequence, step in test.set_aside if resumption.sets_aside(sequence)
            )
    return ()


def _of_interruption(
    resumption: Resumption, aside: Sequence[StepRecord], written_bytes: int
) -> Iterator[str]:
    stopped = (resumption.because or "not known why").rstrip(".")
    paused = (
        "" if resumption.pause_s <= 0 else f" after up to {format_duration(resumption.pause_s)}"
    )
    yield f"stopped ({stopped}) and went on {resumption.resumed_utc}{paused}"
    if resumption.cut_off is not None:
        yield resumption.cut_off
    if not resumption.again:
        yield "nothing had to be measured again"
        return
    kept = ""
    if aside or written_bytes:
        kept = (
            f" ({format_count(len(aside), 'step')} set aside, "
            f"{format_capacity(written_bytes)} written in what is in no result)"
        )
    yield f"measured again: {resumption.again}{kept}"
    if resumption.goes_on is GoesOn.ROUND:
        yield "no steady-state window spans it"
    if resumption.goes_on is GoesOn.WHERE_IT_STOPPED:
        yield "results go on across it, as the user accepted"


def _of_repetition(test: TestRecord, resumption: Resumption) -> str:
    before = [f"it had {'ended' if test.status is RunStatus.COMPLETE else 'not ended'}"]
    for section in test.outcomes:
        text = f"{section.section}: {section.ended_because}"
        if (verdict := section.verdict) is not None:
            rounds = format_window(verdict.rounds)
            text += f", {verdict.tracking} {format_number(verdict.average)} {unit_for_people(verdict.unit)} in {rounds}"
        before.append(text)
    written = sum(step.measurement.write.bytes for step in test.steps)
    return (
        f"{test.name} measured again {resumption.resumed_utc} on request; before, kept and in no "
        f"result: {'; '.join(before)}; {format_capacity(written)} written"
    )
