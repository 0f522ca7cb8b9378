"""Writing a run file: an observer that commits each finished step durably."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tkperf.errors import RunFileError
from tkperf.events import (
    Event,
    Judged,
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


class RunFileWriter:
    """Keeps a run as it happens. One process writes, any may read meanwhile.

    A step is in the file, for good, when its call returns: the journal is synced and a kill or a
    power cut costs at most the step under way. The file is locked (flock) while a writer lives,
    so that readers can tell a running run from one that was killed.
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
            raise RunFileError(
                f"{path} exists already and is not overwritten: choose another NAME or another "
                "--output folder"
            ) from None
        except OSError as error:
            raise RunFileError(f"cannot create {path}: {error.strerror}") from error
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        with self._guard():
            # isolation_level None: transactions begin and end where this module says.
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            migrate(self._db)
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
        with self._guard():
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
                case TestEnded():
                    self._test_ended(event)
                case RunEnded():
                    self._run_ended(event)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise RunFileError(
                f"cannot write {self._path}: {error}; what was measured before is kept in it"
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _insert(self, table: str, **columns: object) -> int:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        cursor = self._db.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608 - own names only
            tuple(columns.values()),
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
        with self._transaction():
            for key, value in facts.items():
                self._insert("run", key=key, value=json.dumps(value))

    def _run_ended(self, event: RunEnded) -> None:
        facts = {
            "status": event.status,
            "ended_utc": event.ended_utc,
            "ended_because": event.because,
        }
        with self._transaction():
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
        outcome = None if event.outcome is None else json.dumps(msgspec.to_builtins(event.outcome))
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
            verdict=json.dumps(msgspec.to_builtins(event.verdict)),
        )

    def _step_ended(self, event: StepEnded) -> None:
        step, seen = event.record, event.record.measurement
        sequence = self._next()
        with self._transaction():
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
                job_id=self._job_id(step.job_file),
                fio_json=compress(step.engine_output),
                sample_details=encode_sample_details(seen.samples),
            )
            self._db.executemany(
                "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(sequence, number, *row) for number, row in enumerate(sample_rows(seen.samples))],
            )

    def _job_id(self, text: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO job (text) VALUES (?)", (text,))
        (job_id,) = self._db.execute("SELECT id FROM job WHERE text = ?", (text,)).fetchone()
        assert isinstance(job_id, int)
        return job_id


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
