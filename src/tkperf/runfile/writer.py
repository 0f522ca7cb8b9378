"""Writers of run files: an observer that commits each finished step durably, and a writer for imported results."""

from __future__ import annotations

import fcntl
import glob
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.model.measurement import Sample
from tkperf.model.record import RunNote, RunStatus
from tkperf.runfile import backlog
from tkperf.runfile.backlog import Backlog, BacklogEntry, SqlStatement
from tkperf.runfile.salvage import find_write_cause
from tkperf.runfile.schema import create_tables, require_schema
from tkperf.runfile.statements import Statements
from tkperf.runfile.writers import require_own
from tkperf.runner.events import (
    Event,
    Judged,
    Noted,
    Observer,
    PhaseStarted,
    PurgeEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    SampleSeen,
    SectionEnded,
    StepEnded,
    StepStarted,
    TelemetrySeen,
    TestEnded,
    TestStarted,
    Warned,
)
from tkperf.system.output_files import make_folder

PART_S = 60.0
# The fio process of the next step starts a few seconds before the end of the current step. In this period, the writer
# must not write.
BEFORE_HANDOVER_S = 8.0
_KEPT = (
    RunStarted,
    RunResumed,
    TestStarted,
    PurgeEnded,
    StepEnded,
    Judged,
    SectionEnded,
    Warned,
    Noted,
    TestEnded,
    RunEnded,
)
# A verdict is written together with the next entry, no more than a few seconds later. If a verdict is lost, it can be
# computed again from its steps.
_CAN_WAIT = (Judged, PhaseStarted, StepStarted)

# A row with histograms fills its last page only partly, so small pages waste less space.
PAGE_BYTES = 1024
# With the setting EXTRA, SQLite also syncs the folder of the file after each commit. If the setting were FULL, a power
# failure just after a commit could restore the journal, and the step would be lost.
SYNCHRONOUS = "EXTRA"
# ``tkperf status`` and ``tkperf attach`` briefly try to acquire the lock to find out whether a process writes the file
# (writers.py).
LOOKERS_WAIT_S = 0.3

LockedDatabase = tuple[int, sqlite3.Connection]
"""The locked file descriptor of a run file, and the connection to the database in this file."""


def create_run_file(path: Path) -> LockedDatabase:
    """Create a new, empty run file.

    Raises:
        RunFileError: the file exists (nothing is overwritten) or cannot be created.
    """
    try:
        lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        raise RunFileError(describe_existing(path)) from None
    except OSError as error:
        raise RunFileError(
            f"{path} cannot be created: {reason_of(error)}. Choose a folder that you can write to with --output"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock, connect_to_write(path, create_tables)
    except BaseException as error:
        os.close(lock)
        # tkperf created this file. If the file remained, the next attempt would fail.
        path.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error | OSError):
            cause = find_write_cause(error, path)
            raise RunFileError(f"cannot create {path}: {reason_of(cause)}") from error
        raise


def reopen_run_file(path: Path) -> LockedDatabase:
    """Open a run file that no process writes, so that the run can continue in it. The content of the file does not
    change.

    Raises:
        RefusedError: another user may have written the file.
        RunFileError: the file cannot be written to, the run in the file is still running, or the file has another
            schema.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RunFileError(f"tkperf cannot write to {path}: {reason_of(error)}. Each run needs its own file") from error
    try:
        # Another process may have created a journal for the file after the file was read.
        require_own(path, os.fstat(lock))
        _lock(lock)
        return lock, connect_to_write(path, lambda db: require_schema(db, path))
    except BaseException as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise RunFileError(
                f"{path} is being written, because its run has not ended. Wait until the run ends, or watch it with "
                f"'tkperf attach {path}'"
            ) from None
        if isinstance(error, sqlite3.Error | OSError):
            cause = find_write_cause(error, path)
            raise RunFileError(f"cannot write {path}: {reason_of(cause)}") from error
        raise


def connect_to_write(path: Path, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """Open the database in a file, and prepare it.

    The writer itself begins and ends transactions (isolation_level None). The database uses a rollback journal, so that
    a finished run is one file.
    """
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=backlog.READER_WAIT_S
    )
    try:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        db.execute("PRAGMA foreign_keys = ON")
        prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _lock(descriptor: int) -> None:
    """Acquire the lock. If necessary, wait for a moment, because a process that only reads may hold the lock
    briefly.

    Raises:
        BlockingIOError: a writer holds the lock.
    """
    until_s = time.monotonic() + LOOKERS_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.02)
        else:
            return


def require_resumable(path: Path) -> None:
    """Check, before any other action, whether a run can continue in its file.

    Raises:
        RunFileError: the same errors as in ``reopen_run_file``.
    """
    lock, db = reopen_run_file(path)
    db.close()
    os.close(lock)


def describe_existing(path: Path) -> str:
    return f"{path} exists already and is not overwritten: choose another NAME or another --output folder"


class _StepUnderWay:
    """The step that has begun but not ended. The step is stored while the step runs, because a fill takes hours, and
    the data of these hours must not be lost if the process is killed.

    The samples of the step are collected from the events, and written in parts of about a minute. The parts are never
    written shortly before the start of the next step, because a slow disk could delay that start.
    """

    def __init__(self) -> None:
        self.begun: StepStarted | None = None
        self._samples: list[Sample] = []
        self._taken_at_s = 0.0
        self._moved_bytes = 0

    def see(self, event: Event) -> None:
        match event:
            case StepStarted():
                self.begun, self._samples, self._taken_at_s = event, [], event.at_s
                self._moved_bytes = 0
            case SampleSeen() if self.begun is not None:
                self._samples.append(event.sample)
                self._moved_bytes += event.sample.read.bytes + event.sample.write.bytes
            case StepEnded():
                self.begun, self._samples = None, []

    def is_quiet_after(self, event: Event) -> bool:
        """Return whether the writer may write during the next few seconds. The writer must not delay the start of the
        next step.
        """
        if not isinstance(event, SampleSeen):
            return True
        return self._left_s(event.at_s) > BEFORE_HANDOVER_S

    def _left_s(self, now_s: float) -> float:
        """Return the remaining time of the step in seconds. For a fill, the time is estimated from its rate so far."""
        begun = self.begun
        if begun is None:
            return math.inf
        done_s = now_s - begun.at_s
        if begun.planned_s is not None:
            return begun.planned_s - done_s
        if begun.planned_bytes is None or not self._moved_bytes:
            return math.inf
        return (begun.planned_bytes - self._moved_bytes) * done_s / self._moved_bytes

    def take_part(self, event: Event) -> tuple[Sample, ...]:
        """Return the seconds after the previous part if a part must be stored now. Otherwise return no seconds."""
        cut_off = isinstance(event, TestEnded) and event.status is not RunStatus.COMPLETE
        due = isinstance(event, SampleSeen) and event.at_s - self._taken_at_s >= PART_S and self.is_quiet_after(event)
        if self.begun is None or not (cut_off or due):
            return ()
        samples, self._samples = tuple(self._samples), []
        if isinstance(event, SampleSeen):
            self._taken_at_s = event.at_s
        return samples


class RunFileWriter:
    """A writer that stores a run during the measurement. One process writes, and any process may read at the same time.

    When a call with a finished step returns, the file contains the step durably, because the journal is synced. A kill
    or a power failure loses no more than the last minute of the running step. More data can be lost only while the file
    cannot be written, for example on a full disk. In this case, the run continues, and the entries stay in memory. The
    file is locked (flock) as long as its writer exists, so readers can distinguish a running run from a killed run.
    """

    def __init__(self, path: Path, *, observer: Observer = lambda _: None, appends: bool = False) -> None:
        """Create the file. If ``appends`` is True, open an existing file to continue it.

        ``observer`` receives the writer's warnings about entries that cannot be written or could not be stored.

        Raises:
            RunFileError: the file exists (nothing is overwritten), or it cannot be created or continued.
        """
        self._path = path
        self._lock, self._db = (reopen_run_file if appends else create_run_file)(path)
        self._observer = observer
        self._statements = Statements(self._db, path, observer)
        self._backlog = Backlog(self._db, path, build=self._statements.of_event, report=self._report_trouble)
        self._under_way = _StepUnderWay()
        self._backlog.add_frame(_frame_of(self._db))
        self._readings: list[SqlStatement] = []

    def close(self) -> None:
        with suppress(RunFileError):  # after the end of a run, no entries are waiting
            self._backlog.write()
        self._db.close()
        os.close(self._lock)

    @property
    def keeps_up(self) -> bool:
        """Return whether all entries are stored durably in the file."""
        return self._backlog.is_empty

    @property
    def lost(self) -> str | None:
        """Return a sentence about the entries that could not be written, and about the file that contains them instead.
        None means that all entries were written.
        """
        return self._backlog.lost

    def __call__(self, event: Event) -> None:
        """Store the event if the run file contains events of this type.

        Raises:
            RunFileError: the file could not be written for so long that no more entries can wait in memory, or the
                run has ended and the file still cannot be written.
        """
        if samples := self._under_way.take_part(event):
            begun = self._under_way.begun
            assert begun is not None
            self._put(BacklogEntry(statements=self._statements.of_part(begun, samples), is_part=True))
        self._under_way.see(event)
        if isinstance(event, TelemetrySeen):
            # This entry has no separate transaction. The transaction of the next entry, about a minute later, includes
            # it.
            self._readings += self._statements.of_event(event)
            return
        if isinstance(event, StepEnded):
            self._backlog.drop_parts()
        if isinstance(event, _KEPT):
            is_frame = isinstance(event, RunStarted | RunResumed | TestStarted)
            self._put(BacklogEntry(event=event, is_frame=is_frame))
        if isinstance(event, RunEnded):
            self._backlog.finish(stopped=event.status is RunStatus.INTERRUPTED)
            close_gaps(self._db)
        elif (
            not isinstance(event, _CAN_WAIT)
            and self._under_way.is_quiet_after(event)
            and (over := self._backlog.write())
        ):
            self(Noted(note=RunNote(code="run-file-waited", text=over)))

    def _put(self, entry: BacklogEntry) -> None:
        """Add an entry to the backlog. If readings are waiting, first add an entry with these readings. When a step
        ends, the backlog drops the stored parts of the step, but it never drops readings.
        """
        readings, self._readings = self._readings, []
        if readings:
            self._backlog.put(BacklogEntry(statements=tuple(readings)))
        self._backlog.put(entry)

    def _report_trouble(self, text: str) -> None:
        self._observer(Warned(warning=RunNote(code="run-file-waiting", text=text)))


def close_gaps(db: sqlite3.Connection) -> None:
    """Rewrite the finished file without unused space, which makes the file about a twentieth smaller.

    If the disk is full or a reader uses the file, the file does not change.
    """
    with suppress(sqlite3.Error):
        db.execute(f"PRAGMA busy_timeout = {int(backlog.READER_WAIT_S * 1000)}")
        db.execute("VACUUM")


def _frame_of(db: sqlite3.Connection) -> tuple[SqlStatement, ...]:
    """Return the SQL statements that store the facts and the tests of a resumed run again. Without these rows, no
    reader can read the entries that follow.
    """
    return tuple(
        (f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608 - own names only
        for table in ("run", "host", "test", "resumption")
        if (rows := db.execute(f"SELECT * FROM {table}").fetchall())  # noqa: S608
    )


@contextmanager
def write_whole(path: Path) -> Iterator[Observer]:
    """Yield a writer for a whole run that was measured earlier. The writer writes the run in one transaction, because
    the run may have thousands of steps.

    The file receives its name only if the ``with`` block ends without an error.

    Raises:
        RunFileError: the file exists or cannot be written, or the folder cannot be created.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    _remove_dead_parts(path)
    if os.path.lexists(path):
        raise RunFileError(describe_existing(path))
    try:
        make_folder(path.parent)
    except UsageError as error:
        raise RunFileError(str(error)) from error
    except OSError as error:
        raise RunFileError(f"cannot make the folder {path.parent}: {reason_of(error)}") from error
    lock, db = create_run_file(partial)
    try:
        try:
            statements = Statements(db, partial, lambda _: None)
            db.execute("BEGIN IMMEDIATE")
            yield lambda event: backlog.run_statements(db, statements.of_event(event))
            db.execute("COMMIT")
            close_gaps(db)
        except (sqlite3.Error, OSError) as error:
            cause = find_write_cause(error, path)
            raise RunFileError(f"cannot write {path}: {reason_of(cause)}") from error
        finally:
            db.close()
            os.close(lock)
        _move_to(path, partial)
    finally:
        partial.unlink(missing_ok=True)
        partial.with_name(partial.name + "-journal").unlink(missing_ok=True)


def _remove_dead_parts(path: Path) -> None:
    """Remove unfinished files for this name that killed processes left behind.

    The kernel has released the locks of such processes. If a file is still locked, the process that writes the file
    still exists.
    """
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with suppress(OSError):
            descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(
                        descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB
                    )  # this call raises an error while the owner of the file exists
                    part.unlink()
                    part.with_name(f"{part.name}-journal").unlink(missing_ok=True)
            finally:
                os.close(descriptor)


def _move_to(path: Path, partial: Path) -> None:
    """Rename the partial file to its final name. If another file has received this name in the meantime, raise an
    error.
    """
    try:
        try:
            path.hardlink_to(partial)
        except FileExistsError:
            raise RunFileError(describe_existing(path)) from None
        except OSError:
            # The file system has no hard links. Another program can therefore create the file between this check and
            # the rename.
            if os.path.lexists(path):
                raise RunFileError(describe_existing(path)) from None
            partial.rename(path)
    except OSError as error:
        raise RunFileError(f"cannot create {path}: {reason_of(error)}") from error
