"""Describe the missing parts of a run: unreadable rows of its file, and a step, sections and tests that did not end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.model.record import LeftOut, RunStatus, RunWarning, StepKind, StepRecord, UnfinishedStep
from tkperf.model.units import format_capacity, format_count, format_duration

IN_ROUNDS = (StepKind.ROUND, StepKind.AREA)
# Most unreadable rows that get a warning each.
MOST_NAMED = 20
DAMAGED = "DAMAGED: "
"""Prefix of the notice about unreadable parts."""


def count_left_out(left_out: Sequence[LeftOut]) -> str:
    """Return the notice for every page about the number of unreadable parts."""
    count = format_count(len(left_out), "part")
    return (
        f"{DAMAGED}{count} of the run file cannot be read; what is missing is named in the warnings and "
        "is in no figure"
    )


def name_left_out(left_out: Sequence[LeftOut]) -> Iterator[RunWarning]:
    """Yield a warning for each row, up to a limit, then one for the rest."""
    for row in left_out[:MOST_NAMED]:
        yield RunWarning(code="left-out", text=f"left out: {row}")
    more = len(left_out) - MOST_NAMED
    if more > 0:
        text = f"left out: {format_count(more, 'more row')} of the run file"
        yield RunWarning(code="left-out", text=text)


def describe_under_way(step: UnfinishedStep, status: RunStatus) -> str:
    """Describe the unfinished step: ``preconditioning: 512.0 GB of 960.2 GB written in 20 min, cut off``."""
    state = "still going on" if status is RunStatus.RUNNING else "cut off; it counts in no result"
    within = format_duration(step.measured_so_far.duration_s)
    if step.kind is StepKind.FILL:
        written = format_capacity(step.measured_so_far.write.bytes)
        whole = "" if step.planned_bytes is None else f" of {format_capacity(step.planned_bytes)}"
        return f"{step.section}, preconditioning: {written}{whole} written in {within}, {state}"
    what = "slice" if step.kind is StepKind.CONTINUOUS else step.kind.value
    planned = "" if step.planned_s is None else f" of {format_duration(step.planned_s)}"
    return f"{step.section}, {what} {step.number}, {step.workload}: {within}{planned}, {state}"


def describe_rest(status: RunStatus) -> str:
    """Return the state of the test, for a section of it that is complete; empty if the test is complete, too."""
    match status:
        case RunStatus.COMPLETE:
            return ""
        case RunStatus.RUNNING:
            return "; the test goes on, this section is complete"
        case _:
            return f"; test {status.value}, this section is complete"


def describe_progress(
    status: RunStatus,
    complete: Sequence[str],
    incomplete: Sequence[str],
    not_measured: Sequence[str],
) -> str:
    """Describe the state: ``interrupted; complete: Throughput 1024k; cut off, figures so far: Throughput 64k; ...``."""
    going_on = status is RunStatus.RUNNING
    parts = (
        ("complete", complete),
        ("under way, figures so far" if going_on else "cut off, figures so far", incomplete),
        ("not measured yet" if going_on else "not measured", not_measured),
    )
    return "; ".join(
        (status.value, *(f"{what}: {', '.join(names)}" for what, names in parts if names))
    )


def without_holes(
    steps: Sequence[StepRecord], judged: set[int], lost: Sequence[LeftOut]
) -> set[int]:
    """Return the judged rounds that are whole although steps of their section could not be read."""
    ran: dict[int, set[int]] = {}
    for step in steps:
        if step.kind in IN_ROUNDS:
            ran.setdefault(step.number, set()).add(step.position)
    every = set().union(*ran.values())
    named = {row.number for row in lost}
    return {number for number in judged if ran.get(number) == every and number not in named}
