"""Judge a batch of drives according to the stage, the run, the claims and the outliers of each drive. This module also
computes the exit code and the remaining time of the batch.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tkperf.analysis.claim_results import Checked, CheckedFile, ClaimKind
from tkperf.analysis.comparing.arrangements import CohortValue, Outlier
from tkperf.analysis.comparing.comparison import FEWEST_TOGETHER, Arrangement, Comparison, compare
from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.results import RunResult
from tkperf.analysis.verdict import (
    Judgement,
    NamedReason,
    VerdictCode,
    VerdictState,
    count_damages,
    judge_by_gravest,
    judge_run,
)
from tkperf.model.batch_state import IN_TROUBLE, BatchState, DriveStage, DriveState
from tkperf.model.errors import ExitCode, UsageError


class BatchCode(VerdictCode):
    """Reasons for the verdict on a batch."""

    DRIVE_FAILED = "drive-failed", VerdictState.NOT_VALID
    RUN_NOT_VALID = "run-not-valid", VerdictState.NOT_VALID
    CLAIM_FAILED = "claim-failed", VerdictState.FAIL
    UNDER_WAY = "drive-under-way", VerdictState.RUNNING
    NOT_ENDED = "drive-not-measured-to-its-end", VerdictState.INTERRUPTED
    CLAIM_NOT_JUDGED = "claim-not-judged", VerdictState.NOT_JUDGED
    NOT_CHECKED = "not-checked", VerdictState.NOT_JUDGED
    RUN_NOT_JUDGED = "run-not-judged", VerdictState.NOT_JUDGED
    OUTLIER = "drive-unlike-the-others", VerdictState.CAUTIONS
    RUN_WITH_CAUTIONS = "run-with-cautions", VerdictState.CAUTIONS


_STAGES = {
    DriveStage.FAILED: BatchCode.DRIVE_FAILED,
    DriveStage.RUNNING: BatchCode.UNDER_WAY,
    DriveStage.WAITING: BatchCode.UNDER_WAY,
    DriveStage.KILLED: BatchCode.NOT_ENDED,
    DriveStage.STOPPED: BatchCode.NOT_ENDED,
    DriveStage.CONSENT_ENDED: BatchCode.NOT_ENDED,
}
_RUNS = {
    VerdictState.NOT_VALID: BatchCode.RUN_NOT_VALID,
    VerdictState.NOT_JUDGED: BatchCode.RUN_NOT_JUDGED,
    VerdictState.CAUTIONS: BatchCode.RUN_WITH_CAUTIONS,
}
_CLAIMS = {ClaimKind.FAILED: BatchCode.CLAIM_FAILED, ClaimKind.NOT_JUDGED: BatchCode.CLAIM_NOT_JUDGED}
# Exit codes that the run of a drive can have, the gravest first. A code outside this list is graver than every code in
# the list, because tkperf does not use such a code.
_GRAVITY = (
    ExitCode.DEFECT,
    ExitCode.REFUSED,
    ExitCode.DEVICE,
    ExitCode.FIO,
    ExitCode.RUN_FILE,
    ExitCode.WRONG_USE,
    ExitCode.STOPPED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDriveResult:
    """A drive of a batch with its results.

    Attributes:
        result: the results of the run. None means that no run file exists yet, or that the run file cannot be read. If
            the file cannot be read, ``error`` contains the reason.
        checked: the result of the claims of the batch. None means that the batch has no claims, or that the claims
            could not be checked. If they could not be checked, ``not_checked`` contains the reason.
        report: the name of the drive's report, a file in the folder that also contains the page of the batch; empty if
            no report exists.
    """

    state: DriveState
    result: RunResult | None = None
    checked: Checked | None = None
    error: str = ""
    not_checked: str = ""
    report: str = ""

    @property
    def hottest_c(self) -> float | None:
        """The highest temperature in all tests, or None if unknown."""
        return max(
            (one.temperature_most_c for one in self._telemetry() if one.temperature_most_c is not None), default=None
        )

    @property
    def throttled_s(self) -> float | None:
        """The time for which the drive slowed down because of heat, or None if unknown."""
        known = [one.throttled_s for one in self._telemetry() if one.throttled_s is not None]
        return sum(known) if known else None

    def _telemetry(self) -> Iterator[DriveTelemetry]:
        for test in () if self.result is None else self.result.tests:
            yield from test.telemetry

    @property
    def file(self) -> CheckedFile:
        """Return the results of the drive in the form that a check of several run files uses."""
        error = self.error or self.not_checked
        if self.checked is None and not error:
            error = self.state.outcome
        return CheckedFile(file=self.state.shown.label, checked=self.checked, error=error)

    @property
    def number(self) -> int:
        return self.state.shown.number

    @property
    def label(self) -> str:
        return self.state.shown.label

    @property
    def misses(self) -> bool:
        """Return whether the drive misses a claim."""
        return self.checked is not None and self.checked.count(ClaimKind.FAILED) > 0

    @property
    def is_done(self) -> bool:
        """Return whether the run of the drive is complete, and whether the results of the run can be read."""
        return self.state.stage is DriveStage.DONE and self.result is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGroup:
    """All drives of one model and one capacity whose runs are complete, as a cohort.

    Attributes:
        drives: the drives, in the order in which the cohort lists their runs.
    """

    compared: Comparison
    drives: tuple[BatchDriveResult, ...]

    @property
    def figures(self) -> tuple[CohortValue, ...]:
        return () if self.compared.cohort is None else self.compared.cohort.figures


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """A batch with its results.

    Attributes:
        drives: the drives in the order of the batch.
        groups: the cohorts, the largest first; empty if no model has enough drives, or if the drives have no results in
            common.
        not_compared: the reason why the drives are not compared; empty if the drives are compared.
    """

    state: BatchState
    drives: tuple[BatchDriveResult, ...]
    has_claims: bool = False
    groups: tuple[ModelGroup, ...] = ()
    not_compared: str = ""

    @property
    def done(self) -> tuple[BatchDriveResult, ...]:
        return tuple(one for one in self.drives if one.is_done)

    @property
    def passing(self) -> tuple[BatchDriveResult, ...]:
        """The drives that meet all claims."""
        return tuple(one for one in self.done if one.checked is not None and not one.checked.not_passed)

    @property
    def passes(self) -> bool | None:
        """Whether every drive meets all claims, or None if the batch has no claims."""
        return len(self.passing) == len(self.drives) if self.has_claims else None

    @property
    def damaged(self) -> tuple[BatchDriveResult, ...]:
        """The drives whose run is complete but whose run file is damaged. No group contains these drives."""
        return tuple(one for one in self.done if one.result and count_damages(one.result))

    @property
    def without_group(self) -> tuple[BatchDriveResult, ...]:
        """The drives whose run is complete but that belong to no group."""
        numbers = {one.number for group in self.groups for one in group.drives}
        return tuple(one for one in self.done if one.number not in numbers)

    @property
    def outliers(self) -> Mapping[int, tuple[tuple[Outlier, CohortValue], ...]]:
        """The outliers of each drive with their figures. The keys are the numbers of the drives, in ascending order.
        The farthest outlier of each drive is listed first.
        """
        found: dict[int, list[tuple[Outlier, CohortValue]]] = {}
        for group in self.groups:
            names = group.compared.names
            numbers = dict(zip(names, (one.number for one in group.drives), strict=True))
            for figure in group.figures:
                for one in figure.outliers:
                    found.setdefault(numbers[one.name], []).append((one, figure))
        return {number: tuple(sorted(found[number], key=lambda pair: -abs(pair[0].score))) for number in sorted(found)}


def compare_drives(drives: Sequence[BatchDriveResult], names: Mapping[int, str]) -> tuple[tuple[ModelGroup, ...], str]:
    """Return the cohorts of all models that have enough drives with complete runs, and the reason if no such cohort
    exists. The largest cohort is first.

    If the run file of a drive is damaged, the drive is not part of a cohort, because any figure that this drive lacks
    would be missing from the results of the whole cohort. If at least one cohort exists, the reason is empty.

    Args:
        names: the names of the drives, with the numbers of the drives as the keys.
    """
    by_model: dict[object, list[tuple[BatchDriveResult, RunResult]]] = {}
    for one in drives:
        if one.is_done and one.result is not None and not count_damages(one.result):
            facts = one.result.info.device
            kind = (facts.get("kind"), facts.get("model"), facts.get("capacity_bytes"))
            by_model.setdefault(kind, []).append((one, one.result))
    groups: list[ModelGroup] = []
    because = f"fewer than {FEWEST_TOGETHER} drives of one model were measured to their end"
    for chosen in sorted(by_model.values(), key=len, reverse=True):
        if len(chosen) < FEWEST_TOGETHER:
            break
        results = [replace(result, info=replace(result.info, name=names[one.number])) for one, result in chosen]
        try:
            compared = compare(results, Arrangement.COHORT)
        except UsageError as error:
            because = str(error)
        else:
            of = tuple(one for one, _ in chosen)
            groups.append(ModelGroup(compared=compared, drives=of))
    return tuple(groups), "" if groups else because


def sort_drives(batch_result: BatchResult) -> list[BatchDriveResult]:
    """Return the drives in the order in which the user should look at them.

    The order is: drives that failed, drives that miss a claim, drives whose run ended early, drives with a claim that
    is not judged, all other finished drives, and drives that have not finished yet. Within each group, the drive with
    the smallest margin is first. Without claims, each group begins with the drive that differs most from the other
    drives.
    """
    scores = {number: abs(found[0][0].score) for number, found in batch_result.outliers.items()}

    def rank(one: BatchDriveResult) -> tuple[int, float, float, int]:
        margin = math.inf
        group, stage = 4, one.state.stage
        if batch_result.has_claims and one.checked is not None:
            of_claims, margin = one.file.order
            group = 3 if of_claims < 2 else 4
        if stage is DriveStage.FAILED or one.error:
            group = 0
        elif one.misses:
            group = 1
        elif stage in IN_TROUBLE:
            group = 2
        elif stage is not DriveStage.DONE:
            group = 5
        elif one.not_checked:
            group = 3
        return group, margin, -scores.get(one.number, 0.0), one.number

    return sorted(batch_result.drives, key=rank)


def is_simulated(state: BatchState) -> bool:
    """Return whether any drive of the batch is simulated."""
    return any(drive.shown.is_simulated for drive in state.drives)


def judge_stages(state: BatchState) -> Judgement[NamedReason]:
    """Return the verdict on a batch. The function considers only the stages of the drives. Each reason names the drives
    by their numbers.
    """
    found: dict[VerdictCode, list[str]] = {}
    for drive in state.drives:
        if (code := _STAGES.get(drive.stage)) is not None:
            found.setdefault(code, []).append(str(drive.shown.number))
    return _judge(found, state)


def judge_batch(batch_result: BatchResult) -> Judgement[NamedReason]:
    """Return the verdict on a batch. The function considers all results. Each reason names the drives by their
    numbers.
    """
    found: dict[VerdictCode, list[str]] = {}
    for one in batch_result.drives:
        for code in dict.fromkeys(_codes_of(one)):
            found.setdefault(code, []).append(str(one.number))
    if batch_result.outliers:
        found[BatchCode.OUTLIER] = list(map(str, batch_result.outliers))
    best = VerdictState.PASS if batch_result.has_claims else VerdictState.VALID
    return _judge(found, batch_result.state, best)


def _judge(
    found: dict[VerdictCode, list[str]], state: BatchState, best: VerdictState = VerdictState.VALID
) -> Judgement[NamedReason]:
    reasons = [NamedReason(code=code, names=tuple(names)) for code, names in found.items()]
    return judge_by_gravest(reasons, best, simulated=is_simulated(state))


def _codes_of(one: BatchDriveResult) -> Iterator[VerdictCode]:
    if (code := _STAGES.get(one.state.stage)) is not None:
        yield code
        # If the run of a drive ended early, the results before the end can still show that the drive misses a claim.
        if one.misses:
            yield BatchCode.CLAIM_FAILED
        return
    if one.result is None:
        yield BatchCode.NOT_CHECKED
        return
    if (code := _RUNS.get(judge_run(one.result).state)) is not None:
        yield code
    if one.not_checked:
        yield BatchCode.NOT_CHECKED
    if one.checked is not None:
        checked = one.checked
        yield from (_CLAIMS[checked.judge(finding)] for finding in checked.not_passed)


def exit_code_of(state: BatchState, *, claims_pass: bool | None = None) -> int:
    """Return the exit code of a batch.

    If all drives are done, the exit code is 0, or 1 if a claim is not met or not judged. Otherwise, the exit code is
    the gravest code of the drives that are not done. A number that tkperf does not use is the gravest code. The next
    codes, in descending order of gravity, are 70, 3, 4, 5, 6, 2 and 130. A drive counts as stopped (code 130) if its
    process was killed or stopped, if its consent has ended, or if its run has not ended. ``tkperf resume`` continues
    with such drives.

    Args:
        claims_pass: whether every drive meets all claims, or None if the batch has no claims.
    """
    codes = [_code_of(drive) for drive in state.drives if drive.stage is not DriveStage.DONE]
    if codes:
        return min(codes, key=find_gravity)
    return ExitCode.CLAIMS_NOT_MET if claims_pass is False else ExitCode.DONE


def _code_of(drive: DriveState) -> int:
    if drive.stage is DriveStage.FAILED:
        return drive.exit_code or ExitCode.DEFECT
    return ExitCode.STOPPED


def find_gravity(code: int) -> int:
    """Return the rank of an exit code. The gravest code has the lowest rank."""
    return _GRAVITY.index(ExitCode(code)) if code in _GRAVITY else -1


def find_batch_remaining_s(
    running: Sequence[tuple[float, float] | None], waiting: int, whole: Iterable[tuple[float, float]]
) -> tuple[float, float] | None:
    """Return the shortest and the longest time until all drives are done, or None if unknown.

    The function assumes that the run of a waiting drive begins when the run of another drive has ended, and that the
    run of a waiting drive takes as long as the longest known run in ``whole``.

    Args:
        running: the shortest and the longest remaining time of each running drive, in s, or None if not known.
        waiting: the number of drives that wait for their turn.
        whole: the shortest and the longest time of a whole run, in s, for each run with a known time.
    """
    known = [each for each in running if each is not None]
    wholes = list(whole)
    if len(known) < len(running) or (waiting and not (wholes and known)):
        return None
    if not known:
        return 0.0, 0.0
    ends = []
    for place in (0, 1):
        turns = [each[place] for each in known]
        heapq.heapify(turns)
        for _ in range(waiting):
            heapq.heapreplace(turns, turns[0] + max(each[place] for each in wholes))
        ends.append(max(turns))
    return ends[0], max(ends)
