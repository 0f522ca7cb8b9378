"""Snapshots of run files. A snapshot is a copy that SQLite's backup function makes during a run or after the run. The
snapshot contains a mark with the time and the place of the copy.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec

from tkperf.model.batch_state import SnapshotMark
from tkperf.model.errors import RunFileError, reason_of
from tkperf.runfile.limits import open_metered
from tkperf.runfile.schema import HOST_ID, require_schema
from tkperf.runfile.writers import is_being_written

# The number of pages in one copy step. The step locks the file only for the time that is needed to read these pages, so
# a writer waits no longer than this time. tkperf creates files with pages of 1 KiB.
_PAGES_A_STEP = 64
_PAUSE_S = 0.005
# If a commit occurs during the copy, the copy starts again. After _HURRY_AFTER restarts, the copy continues without
# pauses. After _MOST_RESTARTS restarts, the copy is abandoned.
_HURRY_AFTER, _MOST_RESTARTS = 3, 50


def take_snapshot(path: Path, copy: Path, *, host: str, utc: str, ahead_s: float) -> None:
    """Copy a run file in short steps that do not delay the commits of its run, and mark the copy.

    Raises:
        RunFileError: the file cannot be read, or the copy cannot be written.
    """
    try:
        # This check precedes the copy. If the run ends during the copy, the next snapshot contains the end.
        running = is_being_written(path)
        source, _ = open_metered(path)
        with closing(source), closing(sqlite3.connect(copy)) as target:
            require_schema(source, path)
            # If a copy is lost, it can be made again, so no sync to the disk is necessary.
            target.execute("PRAGMA journal_mode = OFF")
            target.execute("PRAGMA synchronous = OFF")
            source.backup(target, pages=_PAGES_A_STEP, progress=_Pace())
            mark = SnapshotMark(host=host, utc=utc, ahead_s=ahead_s, running=running)
            target.execute(
                "UPDATE host SET facts = json_set(facts, '$.snapshot', json(?)) WHERE id = ? AND facts IS NOT NULL",
                (msgspec.json.encode(mark).decode(), HOST_ID),
            )
            target.commit()
    except (OSError, sqlite3.Error) as error:
        raise RunFileError(f"no snapshot of {path}: {reason_of(error)}") from error


class _Pace:
    """The pauses between the steps of a copy. During a pause, the writer of the run can use the file."""

    def __init__(self) -> None:
        self._left = 1 << 62
        self._restarts = 0

    def __call__(self, _status: int, left: int, _of: int) -> None:
        if left >= self._left > 0:
            self._restarts += 1
        self._left = left
        if self._restarts > _MOST_RESTARTS:
            raise sqlite3.OperationalError(
                "the run writes to the file without a pause, so the copy cannot be completed"
            )
        if self._restarts <= _HURRY_AFTER:
            time.sleep(_PAUSE_S)
