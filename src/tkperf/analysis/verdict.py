"""Judge the measurement of a run: whether the figures can be used, can be used with cautions, or cannot be used.

The verdict is about the measurement, not about the drive: a slow drive can be measured validly. Only a check of claims
decides whether a drive passes or fails. docs/explanation/method.md contains the table of severities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, Protocol, Self, TypeVar

from tkperf.analysis.claim_results import CheckedFile, ClaimKind, ClaimResult, Doubt
from tkperf.analysis.results import END_LOST, CellResult, RunResult, SectionResult, TestResult
from tkperf.model.disturbance.io import find_doubtful
from tkperf.model.figures import LoadCaution
from tkperf.model.record import RunStatus, is_purged


class VerdictState(StrEnum):
    """States of a verdict. Each kind of verdict uses some of these states. Of two states of the same kind, the state
    that is listed later is graver.
    """

    CAN_RUN = "can run"
    CAN_RUN_WITH_CAUTIONS = "can run with cautions"
    REFUSED = "would be refused"
    CAN_BE_TESTED = "can be tested"
    CAN_BE_TESTED_WITH_CAUTIONS = "can be tested with cautions"
    CANNOT_BE_TESTED = "cannot be tested"
    CAN_MEASURE = "can measure"
    CAN_MEASURE_WITH_CAUTIONS = "can measure with cautions"
    CANNOT_MEASURE = "cannot measure"
    TUNED = "tuned"
    TUNED_IN_PART = "tuned in part"
    PUT_BACK = "put back"
    PUT_BACK_IN_PART = "put back in part"
    NOT_PUT_BACK = "not put back"
    COMPARABLE = "comparable"
    COMPARABLE_WITH_CAUTIONS = "comparable with cautions"
    NOT_COMPARABLE = "not comparable"
    PASS = "pass"  # noqa: S105
    VALID = "valid"
    CAUTIONS = "valid with cautions"
    NOT_JUDGED = "not judged"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    FAIL = "fail"
    NOT_VALID = "not valid"


class VerdictCode(StrEnum):
    """The base class of the enumerations that contain the reasons for a verdict. Reasons with the same severity are
    shown in the order of their enumeration.

    Attributes:
        severity: the state that this reason alone causes.
    """

    severity: VerdictState

    def __new__(cls, value: str, severity: VerdictState) -> Self:
        code = str.__new__(cls, value)
        code._value_ = value
        code.severity = severity
        return code


class ReasonCode(VerdictCode):
    """Reasons for the verdict on a run."""

    FAILED = "failed", VerdictState.NOT_VALID
    NOTHING_MEASURED = "nothing-measured", VerdictState.NOT_VALID
    RUNNING = "running", VerdictState.RUNNING
    INTERRUPTED = "interrupted", VerdictState.INTERRUPTED
    SPANS_INTERRUPTION = "spans-interruption", VerdictState.CAUTIONS
    IMPORTED = "imported", VerdictState.NOT_JUDGED
    SHORT_PROFILE = "short-profile", VerdictState.NOT_JUDGED
    NOT_STEADY = "not-steady", VerdictState.CAUTIONS
    STEADY_STATE_NOT_JUDGED = "steady-state-not-judged", VerdictState.CAUTIONS
    DISTURBED = "disturbed", VerdictState.CAUTIONS
    HOST_LIMITED = "host-limited", VerdictState.CAUTIONS
    THROTTLED = "throttled", VerdictState.CAUTIONS
    MEDIA_ERRORS = "media-errors", VerdictState.CAUTIONS
    NO_DEVICE = "no-device", VerdictState.CAUTIONS
    BUFFERED = "buffered-io", VerdictState.CAUTIONS
    RATE_LIMITED = "rate-limited", VerdictState.CAUTIONS
    SHARED_LOAD = "shared-load", VerdictState.CAUTIONS
    ENDED_EARLY = "ended-early", VerdictState.CAUTIONS
    NOT_PURGED = "not-purged", VerdictState.CAUTIONS
    ALTERED = "altered", VerdictState.CAUTIONS
    FILE_TARGET = "file-target", VerdictState.CAUTIONS
    DAMAGED = "damaged", VerdictState.CAUTIONS


class CheckCode(VerdictCode):
    """Reasons for the verdict of a check."""

    CLAIM_FAILED = "claim-failed", VerdictState.FAIL
    CLAIM_NOT_JUDGED = "claim-not-judged", VerdictState.NOT_JUDGED
    NOT_CHECKED = "not-checked", VerdictState.NOT_JUDGED


QUICK = "quick"
"""The shipped profile whose runs are too short to judge a drive."""

# The alteration that a run records if the user omitted the purge.
NO_PURGE = "purge -> none"
# All states, the gravest state first. A verdict uses the first state in this list that any reason causes.
_ORDER = tuple(reversed(VerdictState))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedReason:
    """A reason for a verdict. ``names`` contains the names that the reason concerns, such as the names of drives, files
    or settings. ``names`` is empty if the reason concerns no named object.
    """

    code: VerdictCode
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReason:
    """A reason for the verdict on a run.

    Attributes:
        sections: titles of the tests or sections that the reason concerns, empty if the reason concerns the whole run.
        count: number of steps, figures or parts that the reason concerns, or None if the reason concerns nothing that
            can be counted.
    """

    code: ReasonCode
    sections: tuple[str, ...] = ()
    count: int | None = None


class _Reason(Protocol):
    @property
    def code(self) -> VerdictCode: ...


Reason = TypeVar("Reason", bound=_Reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement(Generic[Reason]):
    """A verdict with its reasons, the gravest reason first. ``simulated`` means that the drive was simulated."""

    state: VerdictState
    reasons: tuple[Reason, ...]
    simulated: bool


def judge_by_gravest(reasons: Iterable[Reason], best: VerdictState, *, simulated: bool) -> Judgement[Reason]:
    """Return the verdict with the gravest state that any reason causes. If there are no reasons, the state is ``best``.

    Reasons with the same severity are in the order in which the enumeration of their codes lists them.
    """

    def gravity(reason: Reason) -> tuple[int, int]:
        return _ORDER.index(reason.code.severity), list(type(reason.code)).index(reason.code)

    ordered = tuple(sorted(reasons, key=gravity))
    state = ordered[0].code.severity if ordered else best
    return Judgement(state=state, reasons=ordered, simulated=simulated)


def judge_run(result: RunResult) -> Judgement[VerdictReason]:
    """Return the verdict on the measurement of a run."""
    return judge_by_gravest(_reasons(result), VerdictState.VALID, simulated=result.info.is_simulated)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReason:
    """A reason for the verdict of a check of claims. The reason contains the run files, the titles of the claims that
    have the same outcome in each of these files, and the doubtful facts. Claims with the smallest margin in the first
    file are listed first.
    """

    code: CheckCode
    files: tuple[str, ...]
    claims: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def judge_check(files: Sequence[CheckedFile]) -> Judgement[CheckReason]:
    """Return the verdict of a check of one or more runs. A claim with a doubtful value is not judged."""
    found: dict[tuple[CheckCode, frozenset[str]], list[CheckReason]] = {}
    for one in files:
        for reason in _of_check(one):
            found.setdefault((reason.code, frozenset(reason.claims)), []).append(reason)
    reasons = [
        replace(
            alike[0],
            files=tuple(reason.files[0] for reason in alike),
            doubts=tuple(dict.fromkeys(doubt for reason in alike for doubt in reason.doubts)),
        )
        for alike in found.values()
    ]
    simulated = any(one.checked and one.checked.result.info.is_simulated for one in files)
    return judge_by_gravest(reasons, VerdictState.PASS, simulated=simulated)


def _of_check(one: CheckedFile) -> Iterator[CheckReason]:
    checked = one.checked
    if checked is None:
        yield CheckReason(code=CheckCode.NOT_CHECKED, files=(one.file,))
        return
    found: dict[CheckCode, list[ClaimResult]] = {}
    for finding in sorted(checked.not_passed, key=checked.rank):
        found.setdefault(_CODES[checked.judge(finding)], []).append(finding)
    for code, findings in found.items():
        yield CheckReason(
            code=code,
            files=(one.file,),
            claims=tuple(finding.title for finding in findings),
            doubts=tuple(doubt for one in findings for doubt in checked.find_doubts(one)),
        )


_CODES = {ClaimKind.FAILED: CheckCode.CLAIM_FAILED, ClaimKind.NOT_JUDGED: CheckCode.CLAIM_NOT_JUDGED}


def _reasons(result: RunResult) -> Iterator[VerdictReason]:
    yield from _of_its_end(result)
    if result.info.imported:
        yield VerdictReason(code=ReasonCode.IMPORTED)
    if result.info.profile_name == QUICK:
        yield VerdictReason(code=ReasonCode.SHORT_PROFILE)
    else:
        yield from _of_steady_state(result)
    yield from _of_influences(result)
    yield from _of_loads(result)
    yield from _of_conditions(result)
    if damaged := count_damages(result):
        yield VerdictReason(code=ReasonCode.DAMAGED, count=damaged)


def count_damages(result: RunResult) -> int:
    """Return the number of parts of the run file that cannot be read. If all parts can be read, return the number of
    sections that have no recorded end although their test is complete.
    """
    sections = (section for test in result.tests for section in test.sections)
    return len(result.left_out) or sum(section.ended_because == END_LOST for section in sections)


def _of_its_end(result: RunResult) -> Iterator[VerdictReason]:
    match result.status:
        case RunStatus.FAILED:
            yield VerdictReason(code=ReasonCode.FAILED)
        case RunStatus.RUNNING:
            yield VerdictReason(code=ReasonCode.RUNNING)
        case RunStatus.INTERRUPTED:
            yield VerdictReason(code=ReasonCode.INTERRUPTED)
        case RunStatus.COMPLETE if not any(_cells(result.tests)):
            yield VerdictReason(code=ReasonCode.NOTHING_MEASURED)
    spanned = [each.test for each in result.resumptions if each.accepted]
    if spanned:
        titles = (test.title for test in result.tests if test.name in spanned)
        yield VerdictReason(code=ReasonCode.SPANS_INTERRUPTION, sections=tuple(titles))


def _of_steady_state(result: RunResult) -> Iterator[VerdictReason]:
    """Yield a reason for complete sections without steady state, and a reason for sections with too few rounds to judge
    steady state.

    A stream ends after an amount or a time, and not when it reaches steady state. For a stream, the steady-state rule
    therefore provides only additional information.
    """
    complete = [section for section in _sections(result.tests) if section.complete]
    missed = [section.name for section in complete if section.steady is False]
    unjudged = [
        section.name
        for section in complete
        if section.verdict is not None and section.steady is None and not section.slices
    ]
    if missed:
        yield VerdictReason(code=ReasonCode.NOT_STEADY, sections=tuple(missed))
    if unjudged:
        yield VerdictReason(code=ReasonCode.STEADY_STATE_NOT_JUDGED, sections=tuple(unjudged))


def _of_influences(result: RunResult) -> Iterator[VerdictReason]:
    """Yield a reason for each influence on the results: disturbances, the CPUs of the host, throttling, and errors of
    the drive.
    """
    disturbed = {
        test.title: sum(bool(find_doubtful(step.disturbances or ())) for step in test.steps) for test in result.tests
    }
    if any(disturbed.values()):
        titles = tuple(title for title, count in disturbed.items() if count)
        yield VerdictReason(code=ReasonCode.DISTURBED, sections=titles, count=sum(disturbed.values()))
    limited = {test.title: _count_limited(_cells((test,))) for test in result.tests}
    if any(limited.values()):
        titles = tuple(title for title, count in limited.items() if count)
        yield VerdictReason(code=ReasonCode.HOST_LIMITED, sections=titles, count=sum(limited.values()))
    hot = [test.title for test in result.tests if any(drive.throttled_s for drive in test.telemetry)]
    if hot:
        yield VerdictReason(code=ReasonCode.THROTTLED, sections=tuple(hot))
    if result.media_errors:
        yield VerdictReason(code=ReasonCode.MEDIA_ERRORS, count=result.media_errors)


CODES_OF_LOADS = {
    LoadCaution.NO_DEVICE: ReasonCode.NO_DEVICE,
    LoadCaution.BUFFERED: ReasonCode.BUFFERED,
    LoadCaution.RATE_LIMITED: ReasonCode.RATE_LIMITED,
    LoadCaution.SHARED_LOAD: ReasonCode.SHARED_LOAD,
    LoadCaution.ENDED_EARLY: ReasonCode.ENDED_EARLY,
}


def _of_loads(result: RunResult) -> Iterator[VerdictReason]:
    """Yield a reason for each caution about the load, such as buffered I/O, a limited rate, or other loads at the same
    time.
    """
    for caution, code in CODES_OF_LOADS.items():
        names = tuple(
            section.name
            for section in _sections(result.tests)
            if caution in section.plan.cautions and not section.plan.prepares
        )
        if names:
            yield VerdictReason(code=code, sections=names)


def _count_limited(cells: Iterable[CellResult]) -> int:
    return sum(cell.host_limited is True for cell in cells)


def _of_conditions(result: RunResult) -> Iterator[VerdictReason]:
    info = result.info
    unpurged = {
        test.title
        for test in result.tests
        for section in test.sections
        if section.purge is not None and not is_purged(section.purge)
    }
    if unpurged:
        titles = tuple(test.title for test in result.tests if test.title in unpurged)
        yield VerdictReason(code=ReasonCode.NOT_PURGED, sections=titles)
    altered = [text for text in info.alterations if text != NO_PURGE]
    if altered:
        yield VerdictReason(code=ReasonCode.ALTERED, count=len(altered))
    if info.device.get("kind") == "file":
        yield VerdictReason(code=ReasonCode.FILE_TARGET)


def _sections(tests: Iterable[TestResult]) -> Iterator[SectionResult]:
    for test in tests:
        yield from test.sections


def _cells(tests: Iterable[TestResult]) -> Iterator[CellResult]:
    for section in _sections(tests):
        yield from section.cells
