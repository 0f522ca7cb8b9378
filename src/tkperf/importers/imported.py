"""What an importer yields: another tool's results in our records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tkperf.phases import Outcome, SectionOutcome
from tkperf.record import RunStatus, RunWarning, StepRecord, TestRecord, VerdictRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """Facts that the other tool did not keep are None. ``step_s`` is the length of a step."""

    name: str
    date: str | None
    tool: str
    profile_name: str
    fio_version: str | None
    command_line: str | None
    description: str | None
    feature_matrix: str | None
    host: dict[str, object]
    demand: dict[str, object]
    step_s: float
    tests: tuple[TestRecord, ...]
    warnings: tuple[RunWarning, ...]


def imported_test(
    name: str,
    steps: Sequence[StepRecord],
    verdicts: Sequence[VerdictRecord],
    sections: Sequence[SectionOutcome],
) -> TestRecord:
    """A test that was run elsewhere, to its end."""
    return TestRecord(
        name=name,
        status=RunStatus.COMPLETE,
        started_s=0.0,
        ended_s=None,
        outcome=Outcome(sections=tuple(sections)),
        purges=(),
        steps=tuple(steps),
        verdicts=tuple(verdicts),
    )
