"""Functions that read a run file while its run goes on, for attach, status and stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tkperf.cli.clock import format_end
from tkperf.device.identity import TargetKind
from tkperf.model.errors import RunFileError
from tkperf.model.record import LogEntry, RunRecord, RunStatus
from tkperf.model.units import format_duration, format_durations
from tkperf.render.terminal.console import plain
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writers import is_being_written
from tkperf.runner.delta import Growth, Outline
from tkperf.runner.progress import describe_place, find_standing

# A new file has no tables yet.
CREATED_WITHIN_S = 5.0

Seen = TypeVar("Seen")


def look(path: Path, since: Growth | None = None) -> Growth:
    """Return the growth of a run file. The file is open only for this read, as its writer waits meanwhile.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path, briefly=since is None) as run_file:
        return run_file.growth(since)


def look_first(path: Path) -> Growth:
    """Return the growth of a run file that may be just created."""
    return _once_made(path, look)


def outline_first(path: Path) -> Outline:
    """Return the outline of the run in such a file, which takes less time than its growth does.

    Raises:
        RunFileError: see RunFile.
    """

    def outline(path: Path) -> Outline:
        with RunFile(path) as run_file:
            return run_file.outline()

    return _once_made(path, outline)


def _once_made(path: Path, read: Callable[[Path], Seen]) -> Seen:
    until_s = time.monotonic() + CREATED_WITHIN_S
    while True:
        try:
            return read(path)
        except RunFileError:
            if time.monotonic() > until_s or not _is_in_the_making(path):
                raise
        time.sleep(0.1)


def _is_in_the_making(path: Path) -> bool:
    try:
        return is_being_written(path)
    except OSError:
        return False


def find_clock_s(record: RunRecord, now: datetime | None = None) -> float | None:
    """Return the run's own time now, by the host's calendar clock; None if the file does not give it.

    A run's clock goes on during an interruption. A simulated run has a clock of its own.
    """
    if record.info.device.get("kind") == TargetKind.SIMULATED:
        return None
    origin_s, utc = 0.0, record.info.started_utc
    if record.resumptions:
        origin_s, utc = record.resumptions[-1].resumed_s, record.resumptions[-1].resumed_utc
    try:
        began = datetime.fromisoformat(utc or "")
    except ValueError:
        return None
    if began.tzinfo is None:
        began = began.replace(tzinfo=UTC)
    return origin_s + max(0.0, ((now or datetime.now(UTC)) - began).total_seconds())


def describe_going_on(record: RunRecord, log: Sequence[LogEntry]) -> str:
    """Describe the place of a run under way: ``test 1 of 4, IOPS, round 3 of at most 25; 1 h gone, ...``."""
    standing = find_standing(record, log)
    place = describe_place(standing) or standing.test or "about to begin"
    text = f"test {standing.number} of {standing.tests}, {place}" if standing.test else place
    now_s = find_clock_s(record)
    if now_s is None:
        return text
    text += f"; {format_duration(now_s)} gone"
    remaining_s = standing.remaining_s(now_s)
    if remaining_s is not None:
        ends = format_end(datetime.now(UTC), *remaining_s)
        text += f", {format_durations(*remaining_s)} left, ends {ends}"
    return text


def describe_end(path: Path, record: RunRecord) -> tuple[str, ...]:
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
