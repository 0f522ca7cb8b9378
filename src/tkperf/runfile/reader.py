"""Reading a run file: records as they were written, samples on demand."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec

from tkperf.errors import RunFileError
from tkperf.measurement import CpuUse, IoStats, Measurement, Sample
from tkperf.phases import Outcome
from tkperf.record import (
    PurgeRecord,
    RunInfo,
    RunRecord,
    RunStatus,
    RunWarning,
    StepKind,
    StepRecord,
    TestRecord,
    VerdictRecord,
)
from tkperf.runfile.encoding import decode_histogram, decode_samples, decompress
from tkperf.runfile.schema import APPLICATION_ID, VERSION
from tkperf.steady_state import SteadyStateVerdict
from tkperf.workload import Access, Workload

KILLED = "tkperf was stopped without being able to end the run"


class RunFile:
    """A run file opened for reading; also while it is written, and after a kill.

    Raises:
        RunFileError: missing, unreadable, damaged, not a run file, or made by a newer tkperf.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise RunFileError(f"there is no run file {path}")
        with self._guard():
            # Plain read-write where allowed: after a kill SQLite must roll the journal back.
            mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
            self._db = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=10
            )
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA query_only = ON")
            (application_id,) = self._db.execute("PRAGMA application_id").fetchone()
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if application_id != APPLICATION_ID:
            raise RunFileError(f"{path} is not a run file of tkperf")
        if version > VERSION:
            raise RunFileError(
                f"{path} was written by a newer tkperf (format {version}, this one reads up to "
                f"{VERSION}): update tkperf"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def record(self) -> RunRecord:
        """The whole run, its steps without samples and without fio's output."""
        with self._guard():
            facts = {
                row["key"]: json.loads(row["value"])
                for row in self._db.execute("SELECT key, value FROM run")
            }
            if not facts:
                raise RunFileError(f"{self._path} holds no run: tkperf was stopped before it began")
            status = RunStatus(facts.pop("status"))
            ended_utc, because = facts.pop("ended_utc"), facts.pop("ended_because")
            facts.pop("tests")
            alive = status is RunStatus.RUNNING and self._is_being_written()
            if status is RunStatus.RUNNING and not alive:
                status, because = RunStatus.INTERRUPTED, KILLED
            return RunRecord(
                info=msgspec.convert(facts, RunInfo),
                status=status,
                ended_utc=ended_utc,
                ended_because=because,
                tests=tuple(self._test(row, alive) for row in self._rows("test", "id")),
                warnings=tuple(
                    RunWarning(
                        code=row["code"], text=row["text"], test=row["test"], at_s=row["at_s"]
                    )
                    for row in self._rows("warning", "id")
                ),
            )

    def samples(self, test: str, step: StepRecord) -> tuple[Sample, ...]:
        """The seconds of a step, histograms in buckets of at most 1/16 of their value."""
        with self._guard():
            row = self._step_row(test, step)
            rows = self._db.execute(
                "SELECT start_us, duration_us, read_ios, read_bytes, read_latency_sum_ns, "
                "write_ios, write_bytes, write_latency_sum_ns FROM sample "
                "WHERE step_sequence = ? ORDER BY number",
                (row["sequence"],),
            ).fetchall()
            return decode_samples([tuple(each) for each in rows], row["sample_details"])

    def with_samples(self, test: str, step: StepRecord) -> StepRecord:
        """The step, its measurement holding the samples."""
        measurement = replace(step.measurement, samples=self.samples(test, step))
        return replace(step, measurement=measurement)

    def engine_output(self, test: str, step: StepRecord) -> bytes:
        """fio's last JSON document of the step; of a stream, only its newest slice has one."""
        with self._guard():
            return decompress(self._step_row(test, step)["fio_json"])

    def _step_row(self, test: str, step: StepRecord) -> sqlite3.Row:
        row: sqlite3.Row | None = self._db.execute(
            "SELECT step.* FROM step JOIN test ON test.id = test_id WHERE test.name = ? "
            "AND section = ? AND kind = ? AND number = ? AND position = ? "
            "ORDER BY sequence DESC LIMIT 1",
            (test, step.section, step.kind, step.number, step.position),
        ).fetchone()
        if row is None:
            raise RunFileError(f"{self._path} has no such step: {test}, {step.section}")
        return row

    def _rows(self, table: str, order: str) -> Iterator[sqlite3.Row]:
        yield from self._db.execute(f"SELECT * FROM {table} ORDER BY {order}")  # noqa: S608

    def _test(self, test: sqlite3.Row, alive: bool) -> TestRecord:
        def rows(query: str) -> list[sqlite3.Row]:
            return self._db.execute(query, (test["id"],)).fetchall()

        status = RunStatus(test["status"])
        if status is RunStatus.RUNNING and not alive:
            status = RunStatus.INTERRUPTED
        outcome = test["outcome"]
        return TestRecord(
            name=test["name"],
            status=status,
            started_s=test["started_s"],
            ended_s=test["ended_s"],
            outcome=None if outcome is None else msgspec.convert(json.loads(outcome), Outcome),
            purges=tuple(
                PurgeRecord(
                    section=row["section"],
                    started_s=row["started_s"],
                    duration_s=row["duration_s"],
                    method=row["method"],
                    note=row["note"],
                )
                for row in rows("SELECT * FROM purge WHERE test_id = ? ORDER BY sequence")
            ),
            steps=tuple(
                _step(row)
                for row in rows(
                    "SELECT step.*, job.text AS job_text FROM step JOIN job ON job.id = job_id "
                    "WHERE test_id = ? ORDER BY sequence"
                )
            ),
            verdicts=tuple(
                VerdictRecord(
                    section=row["section"],
                    number=row["number"],
                    verdict=msgspec.convert(json.loads(row["verdict"]), SteadyStateVerdict),
                )
                for row in rows("SELECT * FROM verdict WHERE test_id = ? ORDER BY sequence")
            ),
        )

    def _is_being_written(self) -> bool:
        """Whether a writer holds the file's lock."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, KeyError, msgspec.ValidationError) as error:
            raise RunFileError(f"cannot read {self._path}: {error}") from error


def read_run(path: Path) -> RunRecord:
    """The whole run in a file, without samples.

    Raises:
        RunFileError: see RunFile.
    """
    with RunFile(path) as run_file:
        return run_file.record()


def _step(row: sqlite3.Row) -> StepRecord:
    cpu = None
    if row["cpu_busiest_thread_percent"] is not None:
        cpu = CpuUse(
            busiest_thread_percent=row["cpu_busiest_thread_percent"],
            all_threads_percent=row["cpu_all_threads_percent"],
        )
    return StepRecord(
        section=row["section"],
        kind=StepKind(row["kind"]),
        number=row["number"],
        position=row["position"],
        workload=Workload(
            access=Access(row["access"]),
            read_percent=row["read_percent"],
            block_size_bytes=row["block_size_bytes"],
            jobs=row["jobs"],
            io_depth=row["io_depth"],
        ),
        planned_s=row["planned_s"],
        started_s=row["started_s"],
        gap_s=row["gap_s"],
        measurement=Measurement(
            duration_s=row["duration_s"],
            read=_stats(row, "read"),
            write=_stats(row, "write"),
            cpu=cpu,
            host_limited=bool(row["host_limited"]),
        ),
        job_file=row["job_text"],
    )


def _stats(row: Any, side: str) -> IoStats:
    return IoStats(
        ios=row[f"{side}_ios"],
        bytes=row[f"{side}_bytes"],
        latency_ios=row[f"{side}_latency_ios"],
        latency_sum_ns=row[f"{side}_latency_sum_ns"],
        latency_min_ns=row[f"{side}_latency_min_ns"],
        latency_max_ns=row[f"{side}_latency_max_ns"],
        histogram=decode_histogram(row[f"{side}_histogram"]),
    )
