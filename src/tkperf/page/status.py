"""Build the page that ``tkperf status`` shows for several runs. The page has a row for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tkperf.analysis.run_overview import RunOverview, StatusCode, judge_runs
from tkperf.analysis.verdict import VerdictCode, VerdictState
from tkperf.model.batch_state import BatchState, DriveStage
from tkperf.model.record import RunStatus
from tkperf.model.units import NOT_MEASURED, drop_controls, format_count, format_duration, format_durations
from tkperf.page.batch.batch_progress import describe_stages
from tkperf.page.page import Cell, Column, ReportView, build_table
from tkperf.page.verdict_texts import NoteLevel, Verdict, find_gravest, level_of, name_verdict, word_verdict


def build_status(
    runs: Sequence[RunOverview], *, not_read: Sequence[str] = (), batches: Sequence[BatchState] = ()
) -> ReportView:
    """Build the page of runs. The rows of the batches are first, followed by a row for each run.

    Args:
        not_read: files that tkperf could not read.
    """
    judged = all(run.verdict is not None for run in runs)
    return ReportView(
        title="Runs",
        verdict=_add_batches(describe_runs_verdict(runs, not_read), runs, batches),
        overview=(
            build_table(
                "",
                [*map(_describe_batch, batches), *map(_describe_run, runs)],
                [Column(title, partial(_find_cell, title), rank) for title, _, rank in _COLUMNS],
                notes=() if judged else ("too many runs to judge all: name those to judge",),
            ),
        ),
    )


def _add_batches(verdict: Verdict, runs: Sequence[RunOverview], batches: Sequence[BatchState]) -> Verdict:
    """Return the verdict with the numbers of drives in each batch."""
    if not batches:
        return verdict
    if not runs and len(batches) == 1:
        return describe_stages(batches[0])
    stages = [(batch.name, describe_stages(batch)) for batch in batches]
    said = tuple(f"{drop_controls(name)}: {one.text}" for name, one in stages)
    count = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
    return replace(
        verdict,
        level=find_gravest((verdict.level, *(one.level for _, one in stages))),
        title=f"{count}, {verdict.title}" if runs else count,
        reasons=(*said, *(verdict.reasons if runs else ())),
    )


def _find_cell(title: str, row: Mapping[str, str | Cell]) -> str | Cell:
    return row.get(title, NOT_MEASURED)


def _describe_run(run: RunOverview) -> dict[str, str | Cell]:
    """Return the cells of a run, with the titles of the columns as the keys. The state and the result have the colour
    of the verdict.
    """
    level = _shown_level(level_of(judge_runs((run,)).state))
    cells = {title: cell(run) for title, cell, _ in _COLUMNS}
    return {**cells, "state": (cells["state"], level), "result": (cells["result"], level)}


def _describe_batch(batch: BatchState) -> dict[str, str | Cell]:
    """Return the cells of a batch, with the titles of the columns as the keys. The column for the tests contains the
    number of finished drives.
    """
    stages = describe_stages(batch)
    done = sum(drive.stage is DriveStage.DONE for drive in batch.drives)
    models = {drive.shown.model for drive in batch.drives}
    count = format_count(len(batch.drives), "drive")
    state = "running" if batch.is_under_way else "done" if done == len(batch.drives) else "ended"
    return {
        "run": batch.path,
        "state": (state, _shown_level(stages.level)),
        "tests": f"{done} of {count}",
        "at": "; ".join(stages.reasons),
        "device": " of ".join(filter(None, (count, models.pop() if len(models) == 1 else None))),
        "process": str(batch.supervisor) if batch.supervisor else NOT_MEASURED,
    }


def _shown_level(level: NoteLevel) -> NoteLevel | None:
    return None if level is NoteLevel.INFORMATION else level


def describe_runs_verdict(runs: Sequence[RunOverview], not_read: Sequence[str] = ()) -> Verdict:
    """Return the verdict on several runs in words: ``3 runs: 1 running, 2 ended, 1 of them not valid``."""
    judged = judge_runs(runs, not_read)
    counts = {reason.code: len(reason.names) for reason in judged.reasons}
    running = counts.get(StatusCode.RUNNING, 0)
    verdict = word_verdict(
        judged,
        (f"{count} {_WORDS[code]}" for code, count in counts.items()),
        title=format_count(len(runs), "run"),
        reasons=(", ".join(_count(counts, running, len(runs) - running)),),
    )
    # The level is that of the run with the gravest verdict, even if another run is still running.
    levels = (level_of(reason.code.severity) for reason in judged.reasons)
    return replace(verdict, level=find_gravest(levels))


_WORDS: dict[VerdictCode, str] = {
    StatusCode.NOT_VALID: "not valid",
    StatusCode.RUNNING: "running",
    StatusCode.INTERRUPTED: "interrupted",
    StatusCode.NOT_JUDGED: "not judged",
    StatusCode.CAUTIONS: "valid with cautions",
    StatusCode.NOT_READ: "cannot be read",
}


def _count(counts: Mapping[VerdictCode, int], running: int, ended: int) -> Iterator[str]:
    """Yield the parts of the verdict: ``1 running``, ``6 ended``, ``1 of them not valid``, ``2 interrupted``."""
    if running:
        yield f"{running} running"
    if ended:
        yield f"{ended} ended"
    of_them = " of them"
    for code in (StatusCode.NOT_VALID, StatusCode.INTERRUPTED, StatusCode.CAUTIONS):
        if count := counts.get(code):
            yield _WORDS[code] if count == ended else f"{count}{of_them} {_WORDS[code]}"
            of_them = ""
    if not_read := counts.get(StatusCode.NOT_READ):
        yield f"{format_count(not_read, 'more file')} cannot be read"


def _result(run: RunOverview) -> str:
    """Return the verdict on a run. For a run without a final verdict, return ``NOT_MEASURED``, because the column for
    the state already describes this run.
    """
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


# The title, the function that returns the cell, and the rank of each column.
_COLUMNS: tuple[tuple[str, Callable[[RunOverview], str], int], ...] = (
    ("run", lambda run: run.run_file, 0),
    ("state", lambda run: run.state, 1),
    ("result", _result, 2),
    ("tests", lambda run: f"{run.tests_done} of {run.tests}", 4),
    ("remaining", lambda run: format_durations(*run.remaining_s) if run.remaining_s else "-", 3),
    ("elapsed", lambda run: "-" if run.elapsed_s is None else format_duration(run.elapsed_s), 6),
    ("at", _place, 5),
    ("ended because", lambda run: run.because or NOT_MEASURED, 7),
    ("device", lambda run: run.device or "not known", 8),
    ("process", _process, 9),
    ("warnings", lambda run: str(run.warnings), 10),
    ("disturbed steps", lambda run: "-" if run.disturbed_steps is None else str(run.disturbed_steps), 11),
)
