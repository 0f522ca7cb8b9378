"""The entries that must be written to a run file, in their order. Entries that cannot be written yet stay in memory.

A disk may be full for a moment, a network file system may not answer, or a reader may lock the file. These conditions
must not end or delay the run, which may already have lasted for days.
"""

from __future__ import annotations

import math
import shutil
import sqlite3
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tkperf.model.errors import RunFileError, reason_of
from tkperf.model.units import format_capacity, format_duration
from tkperf.runfile.salvage import find_write_cause, is_busy, may_pass
from tkperf.runfile.schema import create_tables
from tkperf.runfile.writers import delete_run_file
from tkperf.runner.events import Event

# A reader usually needs much less than a second. A reader that locks the file for longer must not delay the run.
READER_WAIT_S = 1.0
# The interval between attempts to write while the measurement continues, and the duration of each attempt.
REWRITE_EVERY_S = 5.0
REWRITE_TAKES_S = 0.5
# For comparison, the samples of a day and a half use about 20 MB of memory while they wait as entries.
MOST_WAITING_BYTES = 256 << 20
LONGEST_BACKLOG_S = 24 * 3600.0
# At the end of the run no measurement is running, so tkperf waits until a user has freed space.
LAST_WAIT_S = 600.0
# If the user stopped the run, tkperf waits for less time. No data is lost, because the entries are saved in another
# file.
STOPPED_WAIT_S = 30.0
# At the end of a run, tkperf first waits this long, because a reader may release its lock or a short delay may pass.
# tkperf then saves all entries that can be saved.
RESCUE_AFTER_S = 5.0
# The interval between reports about the same trouble.
REPORT_EVERY_S = 600.0
REPORT_AT_END_EVERY_S = 60.0
# Folders in which a run is saved if neither its file nor the usual folder can be written. The last folder is in memory.
# The files in the last folder survive the end of tkperf, but not a reboot.
_FURTHER_FOLDERS = ("/var/tmp", "/dev/shm")  # noqa: S108 - mkdtemp makes a private folder in them

SqlStatement = tuple[str, Sequence[Sequence[object]]]
"""An SQL statement, and the values of each row for which it is executed."""
Report = Callable[[str], None]
Build = Callable[[Event], tuple[SqlStatement, ...]]


@dataclass(slots=True, eq=False)
class BacklogEntry:
    """An event, and the statements of the transaction that stores the event. The statements are missing until they are
    built.

    ``is_part`` is true if the entry belongs to a running step. Such an entry is not needed after the end of the step.
    ``is_frame`` is true if the entry belongs to the minimum without which no reader can read the other entries.
    """

    event: Event | None = None
    statements: tuple[SqlStatement, ...] = ()
    is_part: bool = False
    is_frame: bool = False

    @property
    def bytes(self) -> int:
        """Return the approximate size of the entry in memory, in bytes."""
        return sum(
            64 + sum(len(value) if isinstance(value, str | bytes) else 32 for value in row)
            for _, rows in self.statements
            for row in rows
        )


@dataclass(slots=True)
class _Trouble:
    since_s: float
    tried_s: float
    reported_s: float
    error: Exception


class Backlog:
    """The entries that wait to be written to the database, the oldest first.

    All waiting entries are written in one transaction. Each transaction needs several syncs, and a deep queue on the
    same disk delays each sync by tenths of a second. After a failure, each entry is written in a separate transaction.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, *, build: Build, report: Report) -> None:
        """Create an empty backlog. ``report`` is called with a text when the file cannot be written, and when it can be
        written again.
        """
        self._build = build
        self._db = db
        self._path = path
        self._report = report
        self._waiting: deque[BacklogEntry] = deque()
        self._trouble: _Trouble | None = None
        # The facts and the tests of the run are the minimum that makes a new file a run file.
        self._frame: list[BacklogEntry] = []
        self.lost: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self._waiting and self.lost is None

    def put(self, entry: BacklogEntry) -> None:
        """Add an entry at the end of the backlog."""
        self._waiting.append(entry)
        self._build_all()

    def add_frame(self, statements: tuple[SqlStatement, ...]) -> None:
        """Add rows that an earlier part of the run wrote. Without these rows, no reader can read any other entry."""
        self._frame.append(BacklogEntry(statements=statements))

    def _build_all(self) -> None:
        """Convert events into statements. If Ctrl-C interrupts the conversion of an event, the next call converts this
        event again.
        """
        for entry in self._waiting:
            if entry.event is not None:
                entry.statements = self._build(entry.event)
                if entry.is_frame:
                    self._frame.append(entry)
                entry.event = None

    def drop_parts(self) -> None:
        """Drop the parts of a step that has ended, because a separate entry contains the whole finished step."""
        if self._trouble is not None:
            self._waiting = deque(entry for entry in self._waiting if not entry.is_part)

    def write(self) -> str | None:
        """Write the waiting entries if possible. After a failure, write only when the next attempt is due.

        Returns:
            A note if writing works again. Otherwise, the result is None.

        Raises:
            RunFileError: the entries have waited too long, too many bytes wait, or the file cannot be written for a
                reason that is permanent.
        """
        if not self._waiting or self.lost is not None:
            return None
        self._build_all()
        now_s, trouble = time.monotonic(), self._trouble
        if trouble is not None and now_s - trouble.tried_s < REWRITE_EVERY_S:
            return None
        error = self._try(until_s=None if trouble is None else now_s + REWRITE_TAKES_S)
        if error is not None:
            self._wait(error)
            return None
        if trouble is None:
            return None
        if self._waiting:
            trouble.tried_s = -math.inf  # writing works again, so the next call may continue immediately
            return None
        self._trouble = None
        if not trouble.reported_s:
            return None
        waited = format_duration(time.monotonic() - trouble.since_s)
        text = (
            f"the run file could not be written for {waited}: {describe_write_error(trouble.error)}. It is "
            "written again, and nothing is lost"
        )
        self._report(text)
        return text

    def finish(self, *, stopped: bool) -> None:
        """Write all waiting entries. The method waits up to a limit until the file can be written.

        Args:
            stopped: whether the user stopped the run. In this case, the method waits for less time, and another Ctrl-C
                has no effect.

        Raises:
            RunFileError: the entries could not be written. The text names the file that contains the entries instead.
        """
        if self.lost is not None:
            return
        self._build_all()
        longest_s = min(LAST_WAIT_S, STOPPED_WAIT_S) if stopped else LAST_WAIT_S
        began_s = reported_s = time.monotonic()
        rescued: Path | None = None
        try:
            while (error := self._try(until_s=None)) is not None:
                error = find_write_cause(error, self._path)
                if not may_pass(error):
                    break
                now_s = time.monotonic()
                if now_s - began_s >= longest_s:
                    break
                if rescued is None and now_s - began_s >= RESCUE_AFTER_S:
                    rescued = self._rescue()
                if now_s - reported_s >= (RESCUE_AFTER_S if reported_s == began_s else REPORT_AT_END_EVERY_S):
                    reported_s = now_s
                    left = format_duration(longest_s - (now_s - began_s))
                    self._report(
                        f"the run has ended, but its file cannot be written: {describe_write_error(error)}. "
                        f"tkperf tries for another {left}" + ("" if stopped else "; Ctrl-C ends that")
                    )
                time.sleep(min(1.0, REWRITE_EVERY_S))
        except KeyboardInterrupt:
            error = OSError("the user stopped tkperf while it was waiting to write the file")
        if error is not None:
            rescued = rescued or self._rescue()
            self.lost = self._describe_loss(error, rescued)
            self._report(self.lost)
            raise RunFileError(self.lost) from error
        if rescued is not None:
            shutil.rmtree(rescued.parent, ignore_errors=True)

    def _wait(self, error: Exception) -> None:
        """Record that writing failed. Report the failure from time to time, and end the run when a limit is
        exceeded.
        """
        now_s = time.monotonic()
        error = find_write_cause(error, self._path)
        if not may_pass(error):
            raise RunFileError(f"cannot write {self._path}: {describe_write_error(error)}")
        if self._trouble is None:
            self._trouble = _Trouble(now_s, now_s, 0.0, error)
        trouble = self._trouble
        trouble.tried_s = now_s
        # A lock that a reader holds for only a few seconds is not reported.
        is_news = not is_busy(error) or now_s - trouble.since_s >= 60
        if is_news and (not trouble.reported_s or now_s - trouble.reported_s >= REPORT_EVERY_S):
            trouble.reported_s = now_s
            self._report(
                f"the run file cannot be written: {describe_write_error(error)}. The measurement continues, and its "
                f"data wait in memory, for up to {format_duration(LONGEST_BACKLOG_S)} or "
                f"{format_capacity(MOST_WAITING_BYTES)}: make room for {self._path}"
            )
        waited_s = now_s - trouble.since_s
        bytes_ = sum(entry.bytes for entry in self._waiting)
        if waited_s > LONGEST_BACKLOG_S or bytes_ > MOST_WAITING_BYTES:
            raise RunFileError(
                f"tkperf has not been able to write {self._path} for {format_duration(waited_s)}: "
                f"{describe_write_error(error)}. The memory of tkperf holds {format_capacity(bytes_)} of "
                "unwritten data"
            )

    def _try(self, *, until_s: float | None) -> Exception | None:
        """Write the oldest entries one after the other. Return the error that stopped the writing. None means that no
        error occurred.
        """
        while self._waiting:
            try:
                self._write_oldest(1 if self._trouble else len(self._waiting))
            except (sqlite3.DatabaseError, OSError) as error:
                return error
            if until_s is not None and time.monotonic() > until_s:
                return None
        return None

    def _write_oldest(self, count: int) -> None:
        """Write entries in one transaction. If Ctrl-C interrupts the transaction, no entry is lost, and no entry is
        stored twice.
        """
        if self._db.in_transaction:  # in this case, Ctrl-C arrived just after BEGIN
            self._db.execute("ROLLBACK")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for entry in islice(self._waiting, count):
                run_statements(self._db, entry.statements)
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            elif not isinstance(error, Exception):
                self._forget(count)  # in this case, Ctrl-C arrived just after COMMIT
            # After other errors, SQLite itself has already rolled the transaction back.
            raise
        self._forget(count)

    def _forget(self, count: int) -> None:
        """Remove the oldest entries from memory, because the file contains them."""
        for _ in range(count):
            self._waiting.popleft()

    def _rescue(self) -> Path | None:
        written_frame = [entry for entry in self._frame if entry not in self._waiting]
        return write_rescue(self._db, self._path.name, written_frame, self._waiting)

    def _describe_loss(self, error: Exception, rescued: Path | None) -> str:
        count = len(self._waiting)
        saved = (
            "and nowhere else could be written to: they are lost"
            if rescued is None
            else f"the whole run is saved as {rescued}: make room and copy that over it"
        )
        return (
            f"cannot write {self._path}: {describe_write_error(error)}; the last "
            f"{'entry' if count == 1 else f'{count:,} entries'} of the run's log are missing in "
            f"it, {saved}"
        )


def run_statements(db: sqlite3.Connection, statements: Iterable[SqlStatement]) -> None:
    for sql, rows in statements:
        db.executemany(sql, rows)


def describe_write_error(error: Exception) -> str:
    if is_busy(error):
        return "another program keeps it locked"
    return reason_of(error)


def write_rescue(
    db: sqlite3.Connection, name: str, frame: Iterable[BacklogEntry], waiting: Iterable[BacklogEntry]
) -> Path | None:
    """Write a run file with the content of ``db`` and the waiting entries. Return its path. None means that the file
    could not be written in any folder.

    The new file is a complete run file, so the user need not combine two files.

    Args:
        name: the name of the file in a new folder.
        frame: entries that make an empty database a file of this run. They are used if ``db`` cannot be read.
    """
    for folder in _folders():
        try:
            return _write_copy(Path(folder), db, name, frame, waiting)
        except (sqlite3.Error, OSError):
            continue
    return None


def _folders() -> Iterator[str]:
    with suppress(OSError):  # tempfile raises this error if it can write to none of its folders
        yield tempfile.gettempdir()
    yield from _FURTHER_FOLDERS


def _write_copy(
    folder: Path, db: sqlite3.Connection, name: str, frame: Iterable[BacklogEntry], waiting: Iterable[BacklogEntry]
) -> Path:
    path = Path(tempfile.mkdtemp(prefix="tkperf-rescued-", dir=folder)) / name
    try:
        try:
            with closing(sqlite3.connect(path)) as copy:
                db.backup(copy)
        except sqlite3.Error:
            path.unlink(missing_ok=True)
            with closing(sqlite3.connect(path, isolation_level=None)) as copy:
                create_tables(copy)
                for entry in frame:
                    run_statements(copy, entry.statements)
        with closing(sqlite3.connect(path)) as copy, copy:
            for entry in waiting:
                run_statements(copy, entry.statements)
    except BaseException:
        # The cleanup must not need a file descriptor, because the process may have no free descriptor.
        with suppress(OSError):
            delete_run_file(path)
            path.parent.rmdir()
        raise
    return path
