"""List of runs, a line each, as ``tkperf status`` shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tkperf.analysis.overview import RunOverview
from tkperf.analysis.verdict import VerdictState
from tkperf.model.record import RunStatus
from tkperf.model.units import NOT_MEASURED, format_count, format_duration, format_durations
from tkperf.page.verdict import NoteLevel, Verdict, find_gravest, level_of, name_verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusColumn:
    """A column; ``priority`` 0 is always shown, the greatest is the first that a narrow output leaves out."""

    title: str
    cells: tuple[str, ...]
    priority: int
    numeric: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """Runs as columns with a cell for each, in the order of display; ``levels`` has one for each run."""

    verdict: Verdict
    columns: tuple[StatusColumn, ...]
    levels: tuple[NoteLevel, ...]
    notes: tuple[str, ...]


def build_status(runs: Sequence[RunOverview], *, unreadable: int = 0) -> StatusView:
    """Build the list of runs; ``unreadable`` counts files that could not be read."""
    levels = tuple(_level_of(run) for run in runs)
    without = any(run.verdict is None for run in runs)
    return StatusView(
        verdict=Verdict(
            level=find_gravest((*levels, *[NoteLevel.CAUTION] * bool(unreadable))),
            title=format_count(len(runs), "run"),
            reasons=(", ".join(_count(runs, unreadable)),),
        ),
        columns=tuple(
            StatusColumn(
                title=title, cells=tuple(map(cell, runs)), priority=priority, numeric=numeric
            )
            for title, cell, priority, numeric in _COLUMNS
        ),
        levels=levels,
        notes=("with so many runs none is judged: name those to judge",) if without else (),
    )


def _is_not_valid(run: RunOverview) -> bool:
    return run.verdict is VerdictState.NOT_VALID or run.state == RunStatus.FAILED


def _level_of(run: RunOverview) -> NoteLevel:
    return NoteLevel.FAILURE if _is_not_valid(run) else level_of(run.verdict)


def _count(runs: Sequence[RunOverview], unreadable: int) -> Iterator[str]:
    """Yield ``1 running``, ``6 ended``, ``1 of them not valid``, ``2 interrupted``."""
    ended = [run for run in runs if run.state != RunStatus.RUNNING]
    if running := len(runs) - len(ended):
        yield f"{running} running"
    if ended:
        yield f"{len(ended)} ended"
    of_them = " of them"
    for count, words in (
        (sum(map(_is_not_valid, ended)), VerdictState.NOT_VALID),
        (sum(one.verdict is VerdictState.INTERRUPTED for one in ended), VerdictState.INTERRUPTED),
        (sum(one.verdict is VerdictState.CAUTIONS for one in ended), VerdictState.CAUTIONS),
    ):
        if count:
            yield words if count == len(ended) else f"{count}{of_them} {words}"
            of_them = ""
    if unreadable:
        yield f"{format_count(unreadable, 'more file')} cannot be read"


def _result(run: RunOverview) -> str:
    """Return the verdict; a run that has not ended in order has none but its state."""
    if run.verdict in (None, VerdictState.RUNNING, VerdictState.INTERRUPTED):
        return NOT_MEASURED
    return name_verdict(run.verdict, simulated=run.simulated)


def _place(run: RunOverview) -> str:
    if run.test is None or run.state == RunStatus.COMPLETE:
        return NOT_MEASURED
    share = "" if run.fill_done is None else f" {run.fill_done:.0%}"
    return f"{(run.place or run.test).partition(', step ')[0]}{share}"


def _process(run: RunOverview) -> str:
    if run.state != RunStatus.RUNNING:
        return NOT_MEASURED
    return "not seen from here" if run.pid is None else str(run.pid)


# Title, cell, priority, numeric.
_COLUMNS: tuple[tuple[str, Callable[[RunOverview], str], int, bool], ...] = (
    ("run", lambda run: run.run_file, 0, False),
    ("state", lambda run: run.state, 1, False),
    ("result", _result, 2, False),
    ("tests", lambda run: f"{run.tests_done} of {run.tests}", 4, False),
    ("remaining", lambda run: format_durations(*run.remaining_s) if run.remaining_s else "-", 3, False),
    ("elapsed", lambda run: "-" if run.elapsed_s is None else format_duration(run.elapsed_s), 6, False),
    ("at", _place, 5, False),
    ("ended because", lambda run: run.because or NOT_MEASURED, 7, False),
    ("device", lambda run: run.device or "not known", 8, False),
    ("process", _process, 9, False),
    ("warnings", lambda run: str(run.warnings), 10, True),
    ("disturbed steps", lambda run: "-" if run.disturbed_steps is None else str(run.disturbed_steps), 11, True),
)  # fmt: skip
