"""What attach, status and stop share: a run file looked at while its run goes on."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from tkperf.cli.output import plain
from tkperf.errors import RunFileError
from tkperf.growth import Growth
from tkperf.record import RunRecord, RunStatus
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writers import is_being_written

# A file that was created just now has no tables yet.
CREATED_WITHIN_S = 5.0


def look(path: Path, since: Growth | None = None) -> Growth:
    """What a run file has gained. It is open for as long as that takes: its writer waits meanwhile.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path, briefly=since is None) as run_file:
        return run_file.growth(since)


def look_first(path: Path) -> Growth:
    """The same of a file that may be in the making."""
    until_s = time.monotonic() + CREATED_WITHIN_S
    while True:
        try:
            return look(path)
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
    """The run's own time now, by the host's calendar clock; None where the file does not tell.

    A run's clock does not stand still while it is interrupted.
    """
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


def describe_end(path: Path, record: RunRecord) -> tuple[str, ...]:
    """How a run ended that nobody writes to any more, and what to do with it: lines with markup."""
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
