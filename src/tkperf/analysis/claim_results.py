"""Judge a claim: the state, the margin, the certainty, and the reason for a missing value.

The state of a claim depends only on the value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tkperf.analysis.characteristics import CHARACTERISTICS
from tkperf.analysis.claims_file import Claim
from tkperf.analysis.results import RunResult, count_steps, group_by_run, is_same_run
from tkperf.analysis.uncertainty.estimate import NOT_KNOWN, Uncertainty, build_difference, build_exact
from tkperf.analysis.uncertainty.spread import COVERED
from tkperf.analysis.workload_axes import name_stream
from tkperf.model.figures import LoadCaution
from tkperf.model.measurement import TOO_FEW_IOS
from tkperf.model.quantity import QUANTITIES, Better, Measure
from tkperf.model.record import RunStatus
from tkperf.model.units import NOT_FOUND, format_count
from tkperf.model.workload import Workload

LOWER_LIMIT = "only a lower limit of the uncertainty is known"


class ClaimKind(StrEnum):
    """Outcome of a claim. A claim passes only if the claim is met. A claim that is not judged does not pass, but does
    not count against the drive.
    """

    MET = "met"
    FAILED = "failed"
    NOT_JUDGED = "not judged"


class ClaimState(StrEnum):
    MET = "met"
    NOT_MET = "not met"
    NOT_MEASURED = "not measured"
    INCONCLUSIVE = "inconclusive"

    @property
    def kind(self) -> ClaimKind:
        """Return the outcome for a state. Only the state of the claim is considered."""
        return _KINDS.get(self, ClaimKind.NOT_JUDGED)


_KINDS = {ClaimState.MET: ClaimKind.MET, ClaimState.NOT_MET: ClaimKind.FAILED}
# Outcomes in the order in which a page shows the claims.
_ORDER_OF_KINDS = (ClaimKind.FAILED, ClaimKind.NOT_JUDGED, ClaimKind.MET)


class Doubt(StrEnum):
    """Reasons why a measured value cannot be used to judge a drive."""

    UNDER_WAY = "under way"
    DAMAGED = "damaged"
    NOT_STEADY = "not steady"
    NO_DEVICE = "no device measured"
    BUFFERED = "buffered I/O"
    RATE_LIMITED = "limited rate"
    SHARED_LOAD = "other loads at the same time"
    ENDED_EARLY = "ended early"
    NOT_MEASURED = ClaimState.NOT_MEASURED.value
    INCONCLUSIVE = ClaimState.INCONCLUSIVE.value


DOUBTS_OF_LOADS = {
    LoadCaution.NO_DEVICE: Doubt.NO_DEVICE,
    LoadCaution.BUFFERED: Doubt.BUFFERED,
    LoadCaution.RATE_LIMITED: Doubt.RATE_LIMITED,
    LoadCaution.SHARED_LOAD: Doubt.SHARED_LOAD,
    LoadCaution.ENDED_EARLY: Doubt.ENDED_EARLY,
}

_JUDGED = (ClaimState.MET, ClaimState.NOT_MET)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """The result of a claim.

    Attributes:
        margin_percent: distance between the value and the limit, in percent of the limit. A negative margin means that
            the value is on the wrong side of the limit.
        margin_sigmas: the same distance in standard uncertainties, or None if the standard uncertainty is not known, or
            the interval is not symmetrical.
        certain: whether the limit lies outside the 95 % interval of the value. If the claim is from a baseline, the
            interval of the difference between the two values decides instead. None means that the uncertainty is not
            known, or that the uncertainty cannot decide.
        note: facts that a reader must know, such as that steady state was not reached.
        is_steady: whether the value was measured in steady state, or None if steady state was not judged.
        load_cautions: properties of the load. Because of these properties, the value does not show the performance of
            the device alone.
        about: the claim in the form of the claims file.
        workload: the workload that the claim means; None if the run contains no such workload, or several such
            workloads.
    """

    claim: str
    source: str | None
    state: ClaimState
    limit: str
    value: float | None
    unit: str
    margin_percent: float | None
    note: str | None
    uncertainty: Uncertainty | None = None
    margin_sigmas: float | None = None
    certain: bool | None = None
    is_steady: bool | None = None
    load_cautions: tuple[LoadCaution, ...] = ()
    about: Claim
    workload: Workload | None = None

    @property
    def title(self) -> str:
        """Return the claim with its limit, in the words of the claims file."""
        return f"{self.claim} {self.limit}"

    @property
    def is_confirmed(self) -> bool:
        """Return whether the value meets the claim by a margin that is greater than the uncertainty of the value."""
        return self.state is ClaimState.MET and self.certain is True


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Results of all claims for one run.

    Attributes:
        baseline: the earlier run with which this run was compared, or None if the claims file has no baseline.
        not_checked: results of the baseline for which this run has no value.
    """

    claim_results: tuple[ClaimResult, ...]
    result: RunResult
    baseline: RunResult | None = None
    not_checked: int = 0

    @property
    def not_passed(self) -> tuple[ClaimResult, ...]:
        """The claims that do not pass. These claims are not met or not judged."""
        return tuple(one for one in self.claim_results if self.judge(one) is not ClaimKind.MET)

    @property
    def unconfirmed(self) -> tuple[ClaimResult, ...]:
        """The claims that pass, but whose margin is smaller than the uncertainty of the value."""
        return tuple(one for one in self.claim_results if self.judge(one) is ClaimKind.MET and not one.is_confirmed)

    @property
    def worst(self) -> ClaimResult | None:
        """The judged claim with the smallest margin, or None if no claim has a margin."""
        judged = [
            one
            for one in self.claim_results
            if one.margin_percent is not None and self.judge(one) is not ClaimKind.NOT_JUDGED
        ]
        return min(judged, key=lambda one: one.margin_percent or 0.0, default=None)

    @property
    def by_title(self) -> dict[str, ClaimResult]:
        """The claims, with their titles as keys. If several claims have the same title, the last of these claims is
        used.
        """
        return {one.title: one for one in self.claim_results}

    def count(self, kind: ClaimKind) -> int:
        """Return the number of claims with this outcome. Identical claims count once."""
        return sum(self.judge(one) is kind for one in self.by_title.values())

    def rank(self, finding: ClaimResult) -> tuple[int, float]:
        """Return a key that sorts claims in this order: claims that are missed, claims that are not judged, all other
        claims. Within each group, the claim with the smallest margin is first.

        A claim without a margin in percent, such as a claim with a limit of 0, is first among the missed claims, and
        last in the other groups.
        """
        kind, margin = self.judge(finding), finding.margin_percent
        if margin is None:
            margin = -math.inf if kind is ClaimKind.FAILED else math.inf
        return _ORDER_OF_KINDS.index(kind), margin

    def find_doubts(self, finding: ClaimResult) -> tuple[Doubt, ...]:
        """Return the reasons why the value of a claim cannot be used to judge the drive."""
        doubts = {
            Doubt.UNDER_WAY: self.result.status is RunStatus.RUNNING,
            Doubt.DAMAGED: bool(self.result.left_out),
            Doubt.NOT_STEADY: finding.is_steady is False,
            **{DOUBTS_OF_LOADS[caution]: True for caution in _find_doubtful(finding)},
            Doubt.NOT_MEASURED: finding.state is ClaimState.NOT_MEASURED,
            Doubt.INCONCLUSIVE: finding.state is ClaimState.INCONCLUSIVE,
        }
        return tuple(doubt for doubt, holds in doubts.items() if holds)

    def judge(self, finding: ClaimResult) -> ClaimKind:
        """Return the outcome of a claim for the drive. If the value is doubtful, the claim is not judged."""
        return ClaimKind.NOT_JUDGED if self.find_doubts(finding) else finding.state.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A run file that was checked together with other run files.

    Attributes:
        file: the name of the file as the user wrote it.
        checked: the result. None means that the file could not be checked. In this case, ``error`` contains the reason.
        copies: other files that contain the same run.
    """

    file: str
    checked: Checked | None = None
    error: str = ""
    copies: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Return whether the drive meets every claim."""
        checked = self.checked
        return checked is not None and not checked.not_passed

    @property
    def order(self) -> tuple[int, float]:
        """Return a key that sorts runs in this order: runs that miss a claim, runs with a claim that is not judged, all
        other runs. Within each group, the run with the smallest margin is first.
        """
        checked = self.checked
        if checked is None:
            return 1, -math.inf
        judged = [one for one in checked.claim_results if checked.judge(one) is not ClaimKind.NOT_JUDGED]
        met, not_judged = map(_ORDER_OF_KINDS.index, (ClaimKind.MET, ClaimKind.NOT_JUDGED))
        group, margin = min(map(checked.rank, judged), default=(met, math.inf))
        return (not_judged if group == met and checked.not_passed else group), margin


def _find_doubtful(finding: ClaimResult) -> Iterator[LoadCaution]:
    """Yield the cautions about the load that make the value of a claim doubtful.

    If a claim with a lower limit for a rate is met although the load limited the rate, the caution about the limited
    rate is omitted, because the device would not be slower without a limited rate.
    """
    measure = QUANTITIES.get(finding.about.metric)
    is_rate = measure is not None and measure.better is Better.HIGHER
    reaches = is_rate and finding.about.at_least is not None and finding.state is ClaimState.MET
    for caution in finding.load_cautions:
        if caution is not LoadCaution.RATE_LIMITED or not reaches:
            yield caution


def fold_copies(files: Iterable[CheckedFile]) -> tuple[CheckedFile, ...]:
    """Return one entry for each run. If several files belong to the same run, the file with the greatest number of
    steps is used.
    """
    return tuple(map(_fold, group_by_run(files, _is_same_run)))


def _fold(run: Sequence[CheckedFile]) -> CheckedFile:
    fullest = max(run, key=_count_steps)
    return replace(fullest, copies=tuple(one.file for one in run if one is not fullest))


def _is_same_run(one: CheckedFile, other: CheckedFile) -> bool:
    if one.checked is None or other.checked is None:
        return one.file == other.file
    return is_same_run(one.checked.result, other.checked.result)


def _count_steps(one: CheckedFile) -> int:
    return 0 if one.checked is None else count_steps(one.checked.result)


def limit_of(claim: Claim) -> float:
    limit = claim.at_most if claim.at_least is None else claim.at_least
    assert limit is not None
    return limit


def build_finding(
    named: str,
    claim: Claim,
    measure: Measure,
    state: ClaimState,
    value: float | None,
    notes: Iterable[str | None],
    known: Uncertainty | None = None,
    of_limit: Uncertainty | None = None,
    by_round: Sequence[float | None] = (),
    *,
    workload: Workload | None = None,
) -> ClaimResult:
    """Build the result of a claim with a known state.

    Args:
        named: the claim in words, as shown to the user.
        value: the measured value, or None if not measured.
        known: the uncertainty of the value.
        of_limit: the uncertainty of the limit, or None if the limit is exact. If the limit is also a measured value,
            the levels of both values are compared.
        by_round: for a percentile, the value in each round of the window.
    """
    margin, limit = None, NOT_FOUND
    sigmas: float | None = None
    certain: bool | None = None
    doubt: str | None = None
    if not claim.not_found:
        sign = "<=" if claim.at_least is None else ">="
        limit = f"{sign} {limit_of(claim):,.6g} {measure.unit}".rstrip()
        if value is not None:
            gap = value - limit_of(claim)
            margin = _margin_percent(-gap if sign == "<=" else gap, limit_of(claim))
            of_value, laid_down = known, build_exact(limit_of(claim))
            if of_limit is not None:
                of_value, laid_down = known and known.of_level, of_limit.of_level
            difference = build_difference(value, of_value, limit_of(claim), laid_down)
            certain = _is_certain(state, sign, difference)
            if certain is True and difference.at_least:
                doubt = _doubt_of_lower_limit(state, [judge_claim(claim, one) for one in by_round])
                certain = True if doubt is None else None
            if difference.standard and difference.is_even(gap):
                sigmas = (-gap if sign == "<=" else gap) / difference.standard
    return ClaimResult(
        claim=f"{claim.section}: {named}" if claim.section else named,
        source=claim.source,
        state=state,
        limit=limit,
        value=value,
        unit=measure.unit_in_data,
        margin_percent=margin,
        note="; ".join(text for text in (*notes, doubt, *_doubt(certain, known)) if text) or None,
        uncertainty=known,
        margin_sigmas=sigmas,
        certain=certain,
        about=claim,
        workload=workload,
    )


def _is_certain(state: ClaimState, sign: str, difference: Uncertainty) -> bool | None:
    """Return whether the whole interval of the difference (the value minus the limit) lies on the same side of zero as
    the difference.

    None means that the interval is not known, or that the state is neither met nor not met.
    """
    if not difference.known or difference.low is None or state not in _JUDGED:
        return None
    low, high = difference.low, math.inf if difference.high is None else difference.high
    if sign == ">=":
        return low >= 0 if state is ClaimState.MET else high < 0
    return high <= 0 if state is ClaimState.MET else low > 0


def _doubt_of_lower_limit(state: ClaimState, by_round: Sequence[ClaimState]) -> str | None:
    """Return, in words, the doubt that remains if only a lower limit of the uncertainty is known. The computed interval
    excludes the limit of the claim, but the true interval may be wider.

    None means that no doubt remains, because the value of every single round agrees with the state.
    """
    if not by_round:
        return LOWER_LIMIT
    if len(by_round) == 1:
        return f"{LOWER_LIMIT}, and there is only one round"
    of = format_count(len(by_round), "round")
    if missing := by_round.count(ClaimState.NOT_MEASURED):
        return f"{LOWER_LIMIT}, and {missing} of {of} alone: {TOO_FEW_IOS}"
    if others := len(by_round) - by_round.count(state):
        does = "do not meet the limit" if state is ClaimState.MET else "meet the limit"
        return f"{LOWER_LIMIT}, and {others} of {of} alone {does}"
    return None


def judge_claim(claim: Claim, value: float | None) -> ClaimState:
    """Return the state of a claim for this value. A value of None means that the value was not measured."""
    if value is None:
        return ClaimState.NOT_MEASURED
    good = value >= claim.at_least if claim.at_least is not None else value <= limit_of(claim)
    return ClaimState.MET if good else ClaimState.NOT_MET


def _doubt(certain: bool | None, known: Uncertainty | None) -> Iterator[str]:
    if certain is False:
        yield f"the limit lies within the uncertainty ({COVERED})"
    elif known is not None and known.reason not in (None, NOT_KNOWN):
        yield f"no uncertainty: {known.reason}"


def _margin_percent(gap: float, limit: float) -> float | None:
    margin = 100 * gap / limit if limit else math.inf
    return margin if math.isfinite(margin) else None


_MOST_NAMED = 8
_ENDED = {
    RunStatus.RUNNING: "is under way, it is",
    RunStatus.INTERRUPTED: "was interrupted",
    RunStatus.FAILED: "failed",
    RunStatus.COMPLETE: "ended",
}


def explain_not_measured(claim: Claim, result: RunResult) -> str | None:
    """Return, in words, the first part of the claim that the run lacks. The possible parts are test, section, stream,
    mix and block size. None means that the run contains all parts.
    """
    tests = [test for test in result.tests if test.name == claim.test]
    if claim.test in result.not_begun:
        return f"the run {_ENDED[result.status]} before test {claim.test}"
    if not tests:
        return f"the run has no test {claim.test}; it has {_list(t.name for t in result.tests)}"
    sections = [section for test in tests for section in test.sections]
    meant = [section for section in sections if claim.section in (None, section.name)]
    if not meant and any(claim.section in test.not_measured for test in tests):
        return f"the run {_ENDED[result.status]} before {claim.section}"
    if not meant:
        names = _list(section.name for section in sections)
        return f"no section of {claim.test} has that name; there are {names}"
    works, prepared = (
        [cell.workload for section in meant if section.plan.prepares is prepares for cell in section.cells]
        for prepares in (False, True)
    )
    streams = [name_stream(work) for work in works if work.together]
    if claim.stream is not None and claim.stream not in streams:
        return (
            f"no stream has that name; there are {_list(map(repr, streams))}"
            if streams
            else "each load ran alone there"
        )
    if not _has_alike(claim, works):
        if _has_alike(claim, prepared) or (prepared and not works):
            return "preconditioning, not judged"
        measured = _list(work.mix_and_size for work in works if not work.is_combination)
        return f"that mix and block size was not run there, but {measured}"
    if claim.metric in CHARACTERISTICS:
        return "tkperf did not look for it there"
    return None


def _has_alike(claim: Claim, works: Iterable[Workload]) -> bool:
    size_bytes = claim.size_bytes()
    return any(
        claim.read_percent in (None, work.read_percent) and size_bytes in (None, work.block_size_bytes)
        for work in works
        if claim.stream is not None or not work.is_combination
    )


def _list(names: Iterable[str]) -> str:
    several = list(dict.fromkeys(names))
    more = len(several) - _MOST_NAMED
    return (", ".join(several[:_MOST_NAMED]) or "none") + (f" and {more} more" if more > 0 else "")
