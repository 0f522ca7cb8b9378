"""Judge the measurement of a run: whether its figures can be used, with which cautions, or not at all.

The verdict is about the measurement, not about the drive: a slow drive can be measured validly. Only a check of claims
lets a drive pass or fail. docs/method.md has the table of severities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from tkperf.analysis.claim_findings import CheckedFile, ClaimFinding, ClaimKind, Doubt
from tkperf.analysis.results import END_LOST, CellResult, RunResult, SectionResult, TestResult
from tkperf.model.disturbance.codes import find_doubtful
from tkperf.model.record import RunStatus, is_purged


class VerdictState(StrEnum):
    """States of a verdict, from the best to the gravest."""

    COMPARABLE = "comparable"
    COMPARABLE_WITH_CAUTIONS = "comparable with cautions"
    NOT_COMPARABLE = "not comparable"
    PASS = "pass"  # noqa: S105
    PASS_WITH_CAUTIONS = "pass with cautions"  # noqa: S105
    VALID = "valid"
    CAUTIONS = "valid with cautions"
    NOT_JUDGED = "not judged"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    FAIL = "fail"
    NOT_VALID = "not valid"


class ReasonCode(StrEnum):
    """Reasons for a verdict, the gravest first."""

    FAILED = "failed"
    NOTHING_MEASURED = "nothing-measured"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    SPANS_INTERRUPTION = "spans-interruption"
    IMPORTED = "imported"
    SHORT_PROFILE = "short-profile"
    NOT_STEADY = "not-steady"
    STEADY_STATE_NOT_JUDGED = "steady-state-not-judged"
    DISTURBED = "disturbed"
    HOST_LIMITED = "host-limited"
    THROTTLED = "throttled"
    MEDIA_ERRORS = "media-errors"
    NOT_PURGED = "not-purged"
    ALTERED = "altered"
    FILE_TARGET = "file-target"
    DAMAGED = "damaged"


SEVERITIES: dict[ReasonCode, VerdictState] = dict.fromkeys(ReasonCode, VerdictState.CAUTIONS) | {
    ReasonCode.FAILED: VerdictState.NOT_VALID,
    ReasonCode.NOTHING_MEASURED: VerdictState.NOT_VALID,
    ReasonCode.RUNNING: VerdictState.RUNNING,
    ReasonCode.INTERRUPTED: VerdictState.INTERRUPTED,
    ReasonCode.IMPORTED: VerdictState.NOT_JUDGED,
    ReasonCode.SHORT_PROFILE: VerdictState.NOT_JUDGED,
}
"""The state that each reason alone leads to."""


class CheckCode(StrEnum):
    """Reasons for the verdict of a check, the gravest first."""

    CLAIM_FAILED = "claim-failed"
    CLAIM_NOT_JUDGED = "claim-not-judged"
    NOT_CHECKED = "not-checked"
    CLAIM_DOUBTFUL = "claim-doubtful"


CHECK_SEVERITIES: dict[CheckCode, VerdictState] = {
    CheckCode.CLAIM_FAILED: VerdictState.FAIL,
    CheckCode.CLAIM_NOT_JUDGED: VerdictState.NOT_JUDGED,
    CheckCode.NOT_CHECKED: VerdictState.NOT_JUDGED,
    CheckCode.CLAIM_DOUBTFUL: VerdictState.PASS_WITH_CAUTIONS,
}

QUICK = "quick"
"""The shipped profile that is too short to judge a drive."""

# As purges word it.
NO_PURGE = "purge -> none"
# A run has the first of these that a reason leads to: the gravest.
_ORDER = tuple(reversed(VerdictState))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReason:
    """A reason for a verdict.

    Attributes:
        sections: titles of the tests or sections that it is about; empty: the whole run.
        count: number of steps, figures or parts; None: nothing to count.
    """

    code: ReasonCode
    sections: tuple[str, ...] = ()
    count: int | None = None

    @property
    def severity(self) -> VerdictState:
        """Return the state that the reason alone leads to."""
        return SEVERITIES[self.code]


class _Reason(Protocol):
    @property
    def code(self) -> StrEnum: ...

    @property
    def severity(self) -> VerdictState: ...


Reason = TypeVar("Reason", bound=_Reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement(Generic[Reason]):
    """A verdict with its reasons, the gravest first; ``simulated``: a model was measured, not a drive."""

    state: VerdictState
    reasons: tuple[Reason, ...]
    simulated: bool


def judge_by_gravest(
    reasons: Iterable[Reason], best: VerdictState, *, simulated: bool
) -> Judgement[Reason]:
    """Return the verdict: the gravest state of its reasons; without any the best.

    Reasons of one severity are in the order of their codes.
    """

    def gravity(reason: Reason) -> tuple[int, int]:
        return _ORDER.index(reason.severity), list(type(reason.code)).index(reason.code)

    ordered = tuple(sorted(reasons, key=gravity))
    state = ordered[0].severity if ordered else best
    return Judgement(state=state, reasons=ordered, simulated=simulated)


def judge_run(result: RunResult) -> Judgement[VerdictReason]:
    """Return the verdict on the measurement of a run."""
    return judge_by_gravest(
        _reasons(result), VerdictState.VALID, simulated=result.info.is_simulated
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReason:
    """A reason for the verdict of a check: run files, the titles of the same claims of each, and what is doubtful."""

    code: CheckCode
    files: tuple[str, ...]
    claims: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    @property
    def severity(self) -> VerdictState:
        """Return the state that the reason alone leads to."""
        return CHECK_SEVERITIES[self.code]


def judge_check(files: Sequence[CheckedFile], *, by_value: bool = False) -> Judgement[CheckReason]:
    """Return the verdict of a check.

    Args:
        by_value: the values alone decide, and doubts are cautions; otherwise a doubtful value is not judged.
    """
    found: dict[tuple[CheckCode, tuple[str, ...]], list[CheckReason]] = {}
    for one in files:
        for reason in _of_check(one, by_value=by_value):
            found.setdefault((reason.code, reason.claims), []).append(reason)
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


def _of_check(one: CheckedFile, *, by_value: bool) -> Iterator[CheckReason]:
    checked = one.checked
    if checked is None:
        yield CheckReason(code=CheckCode.NOT_CHECKED, files=(one.file,))
        return
    found: dict[CheckCode, list[ClaimFinding]] = {}
    for finding in checked.findings:
        kind = finding.state.kind if by_value else checked.judge(finding)
        if kind is not ClaimKind.MET:
            found.setdefault(_CODES[kind], []).append(finding)
        elif checked.find_doubts(finding):
            found.setdefault(CheckCode.CLAIM_DOUBTFUL, []).append(finding)
    for code, findings in found.items():
        yield CheckReason(
            code=code,
            files=(one.file,),
            claims=tuple(finding.title for finding in findings),
            doubts=tuple(doubt for one in findings for doubt in checked.find_doubts(one)),
        )


_CODES = {
    ClaimKind.FAILED: CheckCode.CLAIM_FAILED,
    ClaimKind.NOT_JUDGED: CheckCode.CLAIM_NOT_JUDGED,
}


def _reasons(result: RunResult) -> Iterator[VerdictReason]:
    yield from _of_its_end(result)
    if result.info.imported:
        yield VerdictReason(code=ReasonCode.IMPORTED)
    if result.info.profile_name == QUICK:
        yield VerdictReason(code=ReasonCode.SHORT_PROFILE)
    else:
        yield from _of_steady_state(result)
    yield from _of_influences(result)
    yield from _of_conditions(result)
    if damaged := len(result.left_out) or _count_lost_ends(result):
        yield VerdictReason(code=ReasonCode.DAMAGED, count=damaged)


def _count_lost_ends(result: RunResult) -> int:
    """Count the sections of complete tests whose end is not in the run file."""
    sections = (section for test in result.tests for section in test.sections)
    return sum(section.ended_because == END_LOST for section in sections)


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
    """Yield the complete sections without steady state, and those with too few rounds to judge it.

    A stream ends by amount or time, whatever its rounds; the rule is then one observation among others.
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
    """Yield influences of anything but the device on measured steps."""
    disturbed = {
        test.title: sum(bool(find_doubtful(step.disturbances or ())) for step in test.steps)
        for test in result.tests
    }
    if any(disturbed.values()):
        titles = tuple(title for title, count in disturbed.items() if count)
        yield VerdictReason(
            code=ReasonCode.DISTURBED, sections=titles, count=sum(disturbed.values())
        )
    limited = {test.title: _count_limited(_cells((test,))) for test in result.tests}
    if any(limited.values()):
        titles = tuple(title for title, count in limited.items() if count)
        yield VerdictReason(
            code=ReasonCode.HOST_LIMITED, sections=titles, count=sum(limited.values())
        )
    hot = [
        test.title for test in result.tests if any(drive.throttled_s for drive in test.telemetry)
    ]
    if hot:
        yield VerdictReason(code=ReasonCode.THROTTLED, sections=tuple(hot))
    if result.media_errors:
        yield VerdictReason(code=ReasonCode.MEDIA_ERRORS, count=result.media_errors)


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
