"""A summary of a run for a list of runs. The summary contains the state, the position in the test, the remaining time
and the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tkperf.analysis.run_results import analyse
from tkperf.analysis.verdict import Judgement, NamedReason, VerdictCode, VerdictState, judge_by_gravest, judge_run
from tkperf.model.disturbance.io import find_doubtful
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.runner.run_log import Progress, describe_place, find_progress

KILLED_STATE, IMPORTED_STATE = "killed", "imported"
"""States that a run file does not contain. The process of the run was killed, or another tool made the measurement."""


class StatusCode(VerdictCode):
    """Reasons for the verdict on a list of runs."""

    NOT_VALID = "run-not-valid", VerdictState.NOT_VALID
    RUNNING = "run-under-way", VerdictState.RUNNING
    INTERRUPTED = "run-interrupted", VerdictState.INTERRUPTED
    NOT_JUDGED = "run-not-judged", VerdictState.NOT_JUDGED
    CAUTIONS = "run-with-cautions", VerdictState.CAUTIONS
    NOT_READ = "file-not-read", VerdictState.CAUTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """Progress of one run. The names of the fields are the keys of ``status --json``. None (null in JSON) means "not
    known" or "does not apply".
    """

    run_file: str
    name: str
    device: str | None
    simulated: bool
    state: str
    because: str | None
    pid: int | None
    user: str | None
    test: str | None
    test_number: int | None
    tests: int
    tests_done: int
    place: str | None
    fill_done: float | None
    elapsed_s: float | None
    remaining_shortest_s: float | None
    remaining_longest_s: float | None
    warnings: int
    disturbed_steps: int | None
    verdict: VerdictState | None

    @property
    def remaining_s(self) -> tuple[float, float] | None:
        """The shortest and the longest remaining time in s, or None if not known."""
        if self.remaining_shortest_s is None or self.remaining_longest_s is None:
            return None
        return self.remaining_shortest_s, self.remaining_longest_s


def build_overview(
    record: RunRecord,
    log: Sequence[LogEntry],
    *,
    run_file: str,
    now_s: float | None,
    pid: int | None,
    user: str | None,
    disturbed_steps: int | None,
    verdict: VerdictState | None = None,
) -> RunOverview:
    """Return the overview of a run.

    Args:
        log: the whole log of the run. The log may be empty for a complete run.
        now_s: the present time on the clock of the run. None means that the run has ended, or that the clock is not
            known.
        pid, user: ID and user of the process that executes the run.
        disturbed_steps: number of disturbed steps, or None if the run was not observed.
        verdict: the verdict, or None if the run was not judged.
    """
    running = record.status is RunStatus.RUNNING
    progress = find_progress(record, log)
    remaining = None if now_s is None else progress.remaining_s(now_s)
    done = {test.name for test in record.tests if test.status is RunStatus.COMPLETE}
    return RunOverview(
        run_file=run_file,
        name=record.info.name,
        device=_device_of(record),
        simulated=record.info.is_simulated,
        state=_state_of(record),
        because=record.ended_because,
        pid=pid,
        user=user,
        test=progress.test,
        test_number=progress.number or None,
        tests=progress.tests,
        tests_done=len(done.intersection(record.planned)),
        place=describe_place(progress) or None,
        fill_done=_fill_done(record, progress),
        elapsed_s=now_s if running else _ended_s(record),
        remaining_shortest_s=None if remaining is None else remaining[0],
        remaining_longest_s=None if remaining is None else remaining[1],
        warnings=len(record.warnings),
        disturbed_steps=disturbed_steps,
        verdict=verdict,
    )


def judge_runs(runs: Sequence[RunOverview], not_read: Sequence[str] = ()) -> Judgement[NamedReason]:
    """Return the verdict on a list of runs, which is the gravest verdict on a single run. ``not_read`` contains the
    names of files that cannot be read.
    """
    found: dict[StatusCode, list[str]] = {StatusCode.NOT_READ: list(not_read)}
    for run in runs:
        code = _CODES.get(_STATES.get(run.state, run.verdict))
        if code is not None:
            found.setdefault(code, []).append(run.run_file)
    reasons = [NamedReason(code=code, names=tuple(names)) for code, names in found.items() if names]
    simulated = any(run.simulated for run in runs)
    return judge_by_gravest(reasons, VerdictState.VALID, simulated=simulated)


# The verdicts of runs that were not judged. The status of the run is the key.
_STATES: dict[str, VerdictState | None] = {
    RunStatus.FAILED: VerdictState.NOT_VALID,
    RunStatus.RUNNING: VerdictState.RUNNING,
}
_CODES: dict[VerdictState | None, StatusCode] = {
    VerdictState.NOT_VALID: StatusCode.NOT_VALID,
    VerdictState.RUNNING: StatusCode.RUNNING,
    VerdictState.INTERRUPTED: StatusCode.INTERRUPTED,
    VerdictState.NOT_JUDGED: StatusCode.NOT_JUDGED,
    VerdictState.CAUTIONS: StatusCode.CAUTIONS,
    None: StatusCode.NOT_JUDGED,
}


def build_ended_overview(record: RunRecord, log: Sequence[LogEntry], verdict: VerdictState) -> RunOverview:
    """Return the overview of a finished run, without the name of its file. The record must contain the steps."""
    return build_overview(
        record,
        log,
        run_file="",
        now_s=None,
        pid=None,
        user=None,
        disturbed_steps=_count_disturbed_steps(record),
        verdict=verdict,
    )


def find_verdict(record: RunRecord) -> VerdictState:
    """Return the verdict on a run. The record must contain the steps, but the histograms of the steps may be empty."""
    # The steps of an unfinished run are not examined, because no other verdict would replace "running".
    if record.status is RunStatus.RUNNING:
        return VerdictState.RUNNING
    return judge_run(analyse(record, figures=False)).state


def _count_disturbed_steps(record: RunRecord) -> int | None:
    """Return the number of disturbed steps, including fills. None means that the run was not observed, which is the
    case for a simulated drive.
    """
    steps = [step for test in record.tests for step in test.steps]
    disturbed = sum(bool(find_doubtful(step.disturbances or ())) for step in steps)
    looked = any(
        step.disturbances is not None
        and (step.foreign_read_bytes is not None or step.foreign_write_bytes is not None or step.host is not None)
        for step in steps
    )
    return disturbed if looked or disturbed else None


def _state_of(record: RunRecord) -> str:
    if record.info.imported:
        return IMPORTED_STATE
    if record.status is RunStatus.INTERRUPTED and record.ended_utc is None:
        return KILLED_STATE
    return record.status.value


def _device_of(record: RunRecord) -> str | None:
    facts = record.info.device
    words = [facts.get("model"), facts.get("serial"), facts.get("path")]
    return ", ".join(str(word) for word in words if word) or None


def _fill_done(record: RunRecord, progress: Progress) -> float | None:
    """Return the share of a fill in progress that is already written, according to the last stored minute of the
    fill.
    """
    for test in record.tests:
        step = test.under_way
        if step is not None and test.name == progress.test and step.planned_bytes:
            return min(1.0, step.measured_so_far.write.bytes / step.planned_bytes)
    return None


def _ended_s(record: RunRecord) -> float | None:
    return max((test.ended_s for test in record.tests if test.ended_s is not None), default=None)
