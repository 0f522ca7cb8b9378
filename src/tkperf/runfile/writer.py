"""Writing a run file: an observer that commits each finished step durably."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tkperf.errors import RunFileError
from tkperf.events import (
    Event,
    Judged,
    Noted,
    PurgeEnded,
    RunEnded,
    RunStarted,
    StepEnded,
    TestEnded,
    TestStarted,
    Warned,
)
from tkperf.measurement import IoStats
from tkperf.record import RunStatus, StepKind
from tkperf.runfile.encoding import compress, encode_histogram, encode_sample_details, sample_rows
from tkperf.runfile.schema import migrate

# A reader takes well below a second. One that keeps the file longer must not hold up the run:
# what is to be written then waits in memory for the next event, and at the end for this long.
READER_WAIT_S = 1.0
LAST_READER_WAIT_S = 60.0
# A row with histograms fills its last page only in part, so small pages waste less.
PAGE_BYTES = 1024

_KEPT = (
    RunStarted, TestStarted, PurgeEnded, StepEnded, Judged, Warned, Noted, TestEnded, RunEnded,
)  # fmt: skip


class RunFileWriter:
    """Keeps a run as it happens. One process writes, any may read meanwhile.

    A step is in the file, for good, when its call returns: the journal is synced and a kill or a
    power cut costs at most the step under way; more only while another program keeps the file
    locked for longer than a second. The file is locked (flock) while a writer lives, so that
    readers can tell a running run from one that was killed.
    """

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            RunFileError: it exists (nothing is overwritten) or cannot be created.
        """
        self._path = path
        try:
            self._lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            raise RunFileError(_exists(path)) from None
        except OSError as error:
            raise RunFileError(
                f"cannot create {path}: {error.strerror}; choose a folder you may write to with "
                "--output"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._db = _open_new(path)
        except (sqlite3.Error, OSError) as error:
            os.close(self._lock)
            # It is ours, and it would stand in the way of the next attempt.
            path.unlink(missing_ok=True)
            raise RunFileError(f"cannot create {path}: {error}") from error
        self._waiting: deque[Event] = deque()
        self._test_id = 0
        self._sequence = 0

    def close(self) -> None:
        self._db.close()
        os.close(self._lock)

    def __call__(self, event: Event) -> None:
        """Keep the event, if it is one to keep.

        Raises:
            RunFileError: the disk is full or failed; what was written before stays readable.
        """
        if not isinstance(event, _KEPT):
            return
        self._waiting.append(event)
        ending = isinstance(event, RunEnded)
        with self._guard():
            if ending:
                self._db.execute(f"PRAGMA busy_timeout = {int(LAST_READER_WAIT_S * 1000)}")
            while self._waiting:
                oldest = self._waiting[0]
                try:
                    self._write_oldest()
                except Exception as error:
                    if _is_busy(error) and not ending:
                        return
                    if self._waiting and self._waiting[0] is oldest:
                        self._waiting.popleft()
                    raise
        if ending:
            self._close_gaps()

    def _write_oldest(self) -> None:
        """One event, one transaction. Ctrl-C in it neither loses the event nor keeps it twice."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._write(self._waiting[0])
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            else:
                self._waiting.popleft()

    def _write(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._run_started(event)
            case TestStarted():
                self._test_started(event)
            case PurgeEnded():
                self._purge_ended(event)
            case StepEnded():
                self._step_ended(event)
            case Judged():
                self._judged(event)
            case Warned():
                self._insert("warning", **msgspec.to_builtins(event.warning))
            case Noted():
                self._insert("note", **msgspec.to_builtins(event.note))
            case TestEnded():
                self._test_ended(event)
            case RunEnded():
                self._run_ended(event)

    def _close_gaps(self) -> None:
        """Rewrite the finished file without unused space: a twentieth smaller to mail.

        It stays as it was where this cannot be done: the disk is full, or somebody reads.
        """
        with suppress(sqlite3.Error):
            self._db.execute(f"PRAGMA busy_timeout = {int(READER_WAIT_S * 1000)}")
            self._db.execute("VACUUM")

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise RunFileError(
                f"cannot write {self._path}: {_explain(error)}; what was measured before is kept "
                "in it"
            ) from error

    def _insert(self, table: str, **columns: object) -> int:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        cursor = self._db.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608 - own names only
            tuple(_storable(value) for value in columns.values()),
        )
        return cursor.lastrowid or 0

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _run_started(self, event: RunStarted) -> None:
        facts = msgspec.to_builtins(event.info) | {
            "tests": event.tests,
            "status": RunStatus.RUNNING,
            "ended_utc": None,
            "ended_because": None,
        }
        for key, value in facts.items():
            self._insert("run", key=key, value=json.dumps(value))

    def _run_ended(self, event: RunEnded) -> None:
        facts = {
            "status": event.status,
            "ended_utc": event.ended_utc,
            "ended_because": event.because,
        }
        for key, value in facts.items():
            self._db.execute(
                "INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)",
                (key, json.dumps(value)),
            )

    def _test_started(self, event: TestStarted) -> None:
        self._test_id = self._insert(
            "test", name=event.test, status=RunStatus.RUNNING, started_s=event.at_s
        )

    def _test_ended(self, event: TestEnded) -> None:
        outcome = None if event.outcome is None else _json(event.outcome)
        self._db.execute(
            "UPDATE test SET status = ?, ended_s = ?, outcome = ? WHERE id = ?",
            (event.status, event.at_s, outcome, self._test_id),
        )

    def _purge_ended(self, event: PurgeEnded) -> None:
        self._insert(
            "purge",
            sequence=self._next(),
            test_id=self._test_id,
            **msgspec.to_builtins(event.record),
        )

    def _judged(self, event: Judged) -> None:
        self._insert(
            "verdict",
            sequence=self._next(),
            test_id=self._test_id,
            section=event.section,
            number=event.number,
            reached=event.verdict.reached,
            verdict=_json(event.verdict),
        )

    def _step_ended(self, event: StepEnded) -> None:
        step, seen = event.record, event.record.measurement
        sequence = self._next()
        if step.kind is StepKind.CONTINUOUS:
            # A stream's document is cumulative: the newest holds all that earlier ones did.
            self._db.execute(
                "UPDATE step SET fio_json = NULL WHERE test_id = ? AND section = ? "
                "AND kind = ? AND fio_json IS NOT NULL",
                (self._test_id, step.section, step.kind),
            )
        self._insert(
            "step",
            sequence=sequence,
            test_id=self._test_id,
            section=step.section,
            kind=step.kind,
            number=step.number,
            position=step.position,
            access=step.workload.access,
            read_percent=step.workload.read_percent,
            block_size_bytes=step.workload.block_size_bytes,
            jobs=step.workload.jobs,
            io_depth=step.workload.io_depth,
            planned_s=step.planned_s,
            started_s=step.started_s,
            gap_s=step.gap_s,
            duration_s=seen.duration_s,
            **_stats_columns("read", seen.read),
            **_stats_columns("write", seen.write),
            cpu_busiest_thread_percent=seen.cpu and seen.cpu.busiest_thread_percent,
            cpu_all_threads_percent=seen.cpu and seen.cpu.all_threads_percent,
            host_limited=seen.host_limited,
            rates_known=seen.rates_known,
            job_id=self._job_id(step.job_file),
            fio_json=compress(step.engine_output),
            sample_details=encode_sample_details(seen.samples),
        )
        self._db.executemany(
            "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(sequence, number, *row) for number, row in enumerate(sample_rows(seen.samples))],
        )

    def _job_id(self, text: str) -> int:
        key = (_storable(text),)
        self._db.execute("INSERT OR IGNORE INTO job (text) VALUES (?)", key)
        (job_id,) = self._db.execute("SELECT id FROM job WHERE text = ?", key).fetchone()
        assert isinstance(job_id, int)
        return job_id


@contextmanager
def write_whole(path: Path) -> Iterator[RunFileWriter]:
    """A writer of a file that appears under its name only when the block has ended well.

    Raises:
        RunFileError: as a writer's; the folder cannot be made.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    if os.path.lexists(path):
        raise RunFileError(_exists(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFileError(f"cannot make the folder {path.parent}: {error.strerror}") from error
    writer = RunFileWriter(partial)
    try:
        try:
            yield writer
        finally:
            writer.close()
        _move_to(path, partial)
    finally:
        partial.unlink(missing_ok=True)
        partial.with_name(partial.name + "-journal").unlink(missing_ok=True)


def _move_to(path: Path, partial: Path) -> None:
    """Give the file its name; whoever took that name meanwhile keeps it."""
    try:
        try:
            path.hardlink_to(partial)
        except FileExistsError:
            raise RunFileError(_exists(path)) from None
        except OSError:
            # A file system without links: then there is a moment between looking and moving.
            if os.path.lexists(path):
                raise RunFileError(_exists(path)) from None
            partial.rename(path)
    except OSError as error:
        raise RunFileError(f"cannot create {path}: {error.strerror}") from error


def _exists(path: Path) -> str:
    return (
        f"{path} exists already and is not overwritten: choose another NAME or another --output "
        "folder"
    )


def _open_new(path: Path) -> sqlite3.Connection:
    """The empty file as a database of the current schema.

    isolation_level None: transactions begin and end where this module says. A rollback journal,
    so that a finished run is one file. EXTRA syncs the folder, too, after each commit: with FULL
    a power cut just after it could bring the journal back and so lose the step.
    """
    db = sqlite3.connect(path, isolation_level=None, timeout=READER_WAIT_S)
    try:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("PRAGMA foreign_keys = ON")
        migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _explain(error: Exception) -> str:
    if _is_busy(error):
        return "another program keeps it locked"
    return str(error)


def _json(value: object) -> str:
    """JSON as SQLite reads it, too: NaN ("not measured") becomes null."""
    return msgspec.json.encode(value).decode()


def _storable(value: object) -> object:
    """Text that is not Unicode (from a path, say) with its odd bytes spelled out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _stats_columns(side: str, stats: IoStats) -> dict[str, object]:
    return {
        f"{side}_ios": stats.ios,
        f"{side}_bytes": stats.bytes,
        f"{side}_latency_ios": stats.latency_ios,
        f"{side}_latency_sum_ns": stats.latency_sum_ns,
        f"{side}_latency_min_ns": stats.latency_min_ns,
        f"{side}_latency_max_ns": stats.latency_max_ns,
        f"{side}_histogram": encode_histogram(stats.histogram),
    }
