"""Result of an importer: another tool's results in tkperf's records."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from tkperf.model.errors import InputFileError
from tkperf.model.figures import TestPlan
from tkperf.model.measurement import IoStats
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import RunStatus, RunWarning, StepRecord, TestRecord, VerdictRecord
from tkperf.model.steady_state import SteadyStateVerdict

# Largest number of threads, and queue depth: a file with more is damaged or invented.
LARGEST_DEMAND = 65_536
# Largest integer of a run file.
LARGEST_COUNT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """Records of an imported run; facts that the other tool did not keep are None.

    Attributes:
        date: the day, as the file has it.
        written_s: time at which the first file was written, after its steps, in seconds since 1970.
        profile: tables of a profile, as far as the file has their numbers.
        notices: notices of the file itself.
    """

    name: str
    date: str | None
    written_s: float | None
    tool: str
    profile_name: str
    profile: dict[str, object]
    fio_version: str | None
    command_line: str | None
    description: str | None
    feature_matrix: str | None
    host: dict[str, object]
    notices: tuple[str, ...]
    tests: tuple[TestRecord, ...]
    warnings: tuple[RunWarning, ...]


def imported_test(
    name: str,
    steps: Sequence[StepRecord],
    verdicts: Sequence[VerdictRecord],
    sections: Sequence[SectionOutcome],
    plan: TestPlan | None = None,
) -> TestRecord:
    """Return a complete test from elsewhere; without ``plan`` it is shown like a test of tkperf."""
    return TestRecord(
        name=name,
        status=RunStatus.COMPLETE,
        started_s=0.0,
        ended_s=None,
        outcomes=tuple(sections),
        purges=(),
        steps=tuple(steps),
        verdicts=tuple(verdicts),
        plan=plan,
    )


def describe_rounds(rounds: int, files: str, verdict: SteadyStateVerdict) -> str:
    """Return the reason why a section ended; views themselves explain missing verdicts."""
    counted = f"{rounds} round{'s' * (rounds > 1)} in the imported {files}"
    if not verdict.judged:
        return counted
    reached = "reached" if verdict.reached else f"not reached: {verdict.reason}"
    return f"{counted}, steady state {reached}"


def require_room(steps: Sequence[StepRecord], *, place: str) -> None:
    """Refuse amounts that a run file, or a sum over its rounds, cannot hold.

    Raises:
        InputFileError: an amount is too large; names ``place``, the file and its part.
    """
    for quantity, largest in (
        ("I/Os", sum(step.measurement.ios for step in steps)),
        ("bytes", sum(step.measurement.bytes for step in steps)),
        (
            "I/Os in latency bins",
            sum(side.histogram.total for step in steps for side in _sides(step)),
        ),
        (
            "ns of latency",
            max((side.latency_sum_ns for step in steps for side in _sides(step)), default=0),
        ),
    ):
        if largest > LARGEST_COUNT:
            raise InputFileError(
                f"{place}: {largest:.3g} {quantity} are more than a run file can hold"
            )


def _sides(step: StepRecord) -> tuple[IoStats, IoStats]:
    return step.measurement.read, step.measurement.write


def readable(text: str) -> str:
    """Return text from a file for storage and display: control characters and surrogates become U+FFFD."""
    if text.replace("\n", "").isprintable():  # nearly all text
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"
        else character
        for character in text.replace("\r\n", "\n")
    )


def one_line(text: str) -> str:
    """Return readable text on one line, for a name, a version or a date within a sentence."""
    return " ".join(readable(text).split())
