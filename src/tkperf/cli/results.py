"""Results of a run file in the terminal: for tkperf show, and at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tkperf.analysis.over_seconds import Read, analyse_opened
from tkperf.analysis.results import TestResult
from tkperf.cli.run_words import describe_going_on
from tkperf.model.record import RunRecord, RunStatus, StepKind
from tkperf.model.seconds import Seconds, join
from tkperf.render.terminal.console import open_console
from tkperf.render.terminal.opening import print_end
from tkperf.render.terminal.results import print_results
from tkperf.runfile.reader import RunFile

FEW_SLICES = 30


def print_run(path: Path) -> None:
    """Print the results of a run file on stdout.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path) as opened:
        record = opened.record()
        result = analyse_opened(opened, record)
        seconds = {
            (test.name, name): joined
            for test in result.tests
            for name, joined in _short_streams(test, record, opened.seconds)
        }
        running = record.status is RunStatus.RUNNING
        going_on = describe_going_on(record, opened.log()) if running else None
    print_results(result, open_console(), going_on=going_on, seconds=seconds)


def print_ended(path: Path) -> None:
    """Print the verdict and the headline figures of an ended run on stdout.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path) as opened:
        result = analyse_opened(opened, opened.record())
    print_end(result, open_console())


def _short_streams(
    test: TestResult, record: RunRecord, read: Read
) -> Iterator[tuple[str, Seconds]]:
    """Yield the seconds of each stream of too few slices to draw; no other seconds, as reading them takes longest."""
    short = [section.name for section in test.sections if 0 < len(section.slices) < FEW_SLICES]
    kept = next((one for one in record.tests if one.name == test.name and short), None)
    if kept is None:
        return
    by_step = list(zip(kept.steps, read(kept), strict=False))
    for name in short:
        stream = [
            (seconds, step.started_s)
            for step, seconds in by_step
            if step.section == name and step.kind is StepKind.CONTINUOUS
        ]
        first_s = min(started_s for _, started_s in stream)
        yield (
            name,
            join(
                [seconds for seconds, _ in stream],
                [started_s - first_s for _, started_s in stream],
            ),
        )
