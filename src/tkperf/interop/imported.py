"""What an importer yields: another tool's results in our records."""

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

# Threads and queue depth: beyond it a file is damaged or made up.
LARGEST_DEMAND = 65_536
# What the integers of a run file hold.
LARGEST_COUNT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """Facts that the other tool did not keep are None.

    ``date`` is what a file says of its day; ``written_s`` when the first file was written, after
    what it tells had been run, in seconds since 1970.
    ``profile`` has the tables of a profile as far as the file has their numbers. ``notices`` are
    those that the file itself carries.
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
    """A test that was run elsewhere, to its end; ``plan`` None: shown like a test of tkperf."""
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
    """Why a section ended; views say themselves why nothing was judged."""
    counted = f"{rounds} round{'s' * (rounds > 1)} in the imported {files}"
    if not verdict.judged:
        return counted
    reached = "reached" if verdict.reached else f"not reached: {verdict.reason}"
    return f"{counted}, steady state {reached}"


def require_room(steps: Sequence[StepRecord], *, place: str) -> None:
    """Refuse amounts that a run file, or a sum over its rounds, cannot hold.

    Raises:
        InputFileError: names ``place``, the file and what it is of it.
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
    """Text from a file as it can be kept and shown: what is no character becomes U+FFFD."""
    if text.replace("\n", "").isprintable():  # as nearly all is
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"
        else character
        for character in text.replace("\r\n", "\n")
    )


def one_line(text: str) -> str:
    """Readable text for a name, a version or a date, which stand within sentences."""
    return " ".join(readable(text).split())
