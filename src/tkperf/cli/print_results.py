"""Results of a run file, and the place and the end of a run in words, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tkperf.analysis.details import build_details
from tkperf.analysis.over_seconds import Read
from tkperf.analysis.results import RunResult
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.model.seconds import Seconds
from tkperf.model.units import format_duration, format_durations
from tkperf.page.view import build_view
from tkperf.pipeline.result_cache import find_results
from tkperf.pipeline.running_runs import find_clock_s
from tkperf.render.terminal.console import open_console, plain
from tkperf.render.terminal.page_text import print_end, print_page
from tkperf.render.terminal.progress_lines import format_end
from tkperf.runfile.reader import RunFile
from tkperf.runner.log_progress import describe_place, find_progress

FEW_SLICES = 30


def describe_going_on(record: RunRecord, log: Sequence[LogEntry]) -> str:
    """Describe the place of a run under way: ``test 1 of 4, IOPS, round 3 of at most 25; 1 h gone, ...``."""
    progress = find_progress(record, log)
    place = describe_place(progress) or progress.test or "about to begin"
    text = f"test {progress.number} of {progress.tests}, {place}" if progress.test else place
    now_s = find_clock_s(record)
    if now_s is None:
        return text
    text += f"; {format_duration(now_s)} gone"
    remaining_s = progress.remaining_s(now_s)
    if remaining_s is not None:
        ends = format_end(datetime.now(UTC), *remaining_s)
        text += f", {format_durations(*remaining_s)} left, ends {ends}"
    return text


def describe_ended(path: Path, record: RunRecord) -> tuple[str, ...]:
    """Describe how a run without a writer ended, and which commands to use next: lines with markup."""
    name, file = plain(record.info.name), plain(path)
    results = f"results: tkperf show {file}; as a page: tkperf report {file}"
    if record.info.imported:
        return (f"{name} is an imported result: another tool measured it", results)
    because = f": {plain(record.ended_because)}" if record.ended_because else ""
    if record.status is RunStatus.COMPLETE:
        ended = f" at {record.ended_utc}" if record.ended_utc else ""
        return (f"{name} has ended{ended}: complete, all of its tests were measured", results)
    go_on = f"resume:  tkperf resume {file}"
    return (f"{name} has ended: {record.status.value}{because}", results, go_on)


def print_run(path: Path) -> None:
    """Print the results of a run file on stdout.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path) as opened:
        record = opened.record()
        result = find_results(opened, record)
        details = build_details(result, record, _read_short_streams(result, record, opened.seconds))
        running = record.status is RunStatus.RUNNING
        going_on = describe_going_on(record, opened.log()) if running else None
    print_page(build_view(result, details=details), open_console(), going_on=going_on)


def print_ended(path: Path) -> None:
    """Print the verdict and the headline figures of an ended run on stdout.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path) as opened:
        result = find_results(opened, opened.record())
    print_end(build_view(result), open_console())


def _read_short_streams(result: RunResult, record: RunRecord, read: Read) -> dict[str, Sequence[Seconds]]:
    """Return the seconds of tests with a stream of too few slices to draw; reading those of all takes longest."""
    short = {
        test.name for test in result.tests if any(0 < len(section.slices) < FEW_SLICES for section in test.sections)
    }
    return {test.name: read(test) for test in record.tests if test.name in short}
