"""Runs for the tests of the run file."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from tests.builders import io_stats, run_info
from tkperf.model.measurement import NO_IO, Measurement, Sample
from tkperf.model.record import StepKind, StepRecord
from tkperf.model.workload import Access, Workload
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Observer, RunStarted, StepEnded, TestStarted


def a_step(number: int = 1, **changes: object) -> StepRecord:
    step = StepRecord(
        section="IOPS",
        kind=StepKind.ROUND,
        number=number,
        position=0,
        workload=Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=1, io_depth=1),
        planned_s=1.0,
        started_s=0.5,
        gap_s=None,
        measurement=Measurement(
            duration_s=1.0,
            read=NO_IO,
            write=io_stats([1000, 2000]),
            samples=(Sample(start_s=0, duration_s=1, read=NO_IO, write=io_stats([1000, 2000])),),
        ),
        job_file="[global]\n",
        engine_output=b"{}",
    )
    return replace(step, **changes)  # type: ignore[arg-type]


def a_run(folder: Path, steps: int = 0, observer: Observer = lambda _: None) -> tuple[Path, RunFileWriter]:
    """Return the path and the writer of a run under way with this many steps."""
    path = folder / "a.tkperf"
    writer = RunFileWriter(path, observer=observer)
    writer(RunStarted(info=run_info(), tests=("iops",)))
    writer(TestStarted(test="iops", at_s=0))
    for number in range(1, steps + 1):
        writer(StepEnded(test="iops", record=a_step(number)))
    return path, writer


def sqlite_error(code: int) -> sqlite3.OperationalError:
    """Return an error with this result code of SQLite. The text never names the cause."""
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = code
    return error
