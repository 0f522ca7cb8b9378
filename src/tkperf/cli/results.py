"""Results of a run file, and the place and the end of a run in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tkperf.analysis.over_seconds import Read, analyse_opened
from tkperf.analysis.results import TestResult
from tkperf.model.record import LogEntry, RunRecord, RunStatus, StepKind
from tkperf.model.seconds import Seconds, join
from tkperf.model.units import format_duration, format_durations
from tkperf.pipeline.following import find_clock_s
from tkperf.render.terminal.console import open_console, plain
from tkperf.render.terminal.opening import print_end
from tkperf.render.terminal.results import print_results
from tkperf.runfile.reader import RunFile
from tkperf.runner.progress import describe_place, find_progress

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
    go_on = f"go on:   tkperf resume {file}"
    return (f"{name} has ended: {record.status.value}{because}", results, go_on)


def format_end(now: datetime, shortest_s: float, longest_s: float) -> str:
    """Format the earliest and latest end of a run by the host's clock: ``18:05 to Tue 02:10``."""
    local = now.astimezone()
    return from_to(
        *(_clock(local, local + timedelta(seconds=left_s)) for left_s in (shortest_s, longest_s))
    )


def _clock(now: datetime, then: datetime) -> str:
    """Format a time of day; on another day with the weekday, from a week on with the date."""
    days = (then.date() - now.date()).days
    if days == 0:
        return f"{then:%H:%M}"
    return f"{then:%a %H:%M}" if days < 7 else f"{then:%a %d %b %H:%M}"


def from_to(first: str, last: str) -> str:
    """Join two texts, ``18:05 to 19:00``; return one of them if they are equal."""
    return first if first == last else f"{first} to {last}"


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
