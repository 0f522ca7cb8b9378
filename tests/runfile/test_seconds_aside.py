"""Seconds that another process took apart are those that this one would have, or nothing."""

from __future__ import annotations

import lzma
import os
import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.builders import io_stats
from tests.runfile.runs import a_run, a_step
from tkperf import process
from tkperf.events import RunEnded, StepEnded, TestEnded, TestStarted
from tkperf.measurement import NO_IO, Measurement, Sample
from tkperf.record import LeftOut, RunStatus
from tkperf.runfile import seconds_aside
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writer import RunFileWriter
from tkperf.seconds import Seconds

GOLDEN = Path(__file__).parents[1] / "golden"
LENGTHS = (5, 1, 130, 0, 60, 60)
DAMAGED = 3


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seconds_aside, "LEAST_FILE_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that were started as processes."""
    modules: list[str] = []
    start_module = process.start_module

    def start(module: str) -> process.Process:
        modules.append(module)
        return start_module(module)

    monkeypatch.setattr("tkperf.aside.start_module", start)
    return modules


def write(path: Path, scale: int = 1) -> Path:
    """Two tests whose steps are of several lengths, one of them damaged."""
    made, writer = a_run(path.parent)
    for test in ("iops", "lat"):
        if test == "lat":
            writer(TestStarted(test=test, at_s=0))
        add_steps(writer, test, scale)
        writer(TestEnded(test=test, status=RunStatus.COMPLETE, at_s=9))
    writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc=None))
    writer.close()
    made.rename(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE step SET seconds = ? WHERE sequence = ?", (b"no LZMA", DAMAGED))
    return path


def add_steps(writer: RunFileWriter, test: str, scale: int) -> None:
    for number, length in enumerate(LENGTHS, start=1):
        stats = io_stats([1000 * number * scale, 90_000])
        samples = tuple(
            Sample(start_s=at, duration_s=1, read=NO_IO, write=stats) for at in range(length)
        )
        seen = Measurement(duration_s=max(1, length), read=NO_IO, write=stats, samples=samples)
        writer(StepEnded(test=test, record=a_step(number, measurement=seen)))


def read(path: Path, *, at_length: bool) -> tuple[list[Seconds], tuple[LeftOut, ...]]:
    with RunFile(path, at_length=at_length) as opened:
        tests = opened.record().tests
        return [each for test in tests for each in opened.seconds(test)], opened.left_out


def assert_alike(found: list[Seconds], expected: list[Seconds]) -> None:
    for one, other in zip(found, expected, strict=True):
        for column in fields(Seconds):
            np.testing.assert_array_equal(getattr(one, column.name), getattr(other, column.name))


def test_they_are_the_same_and_what_is_damaged_is_named(tmp_path: Path, started: list[str]) -> None:
    """Of each test, step by step; one process makes all of them."""
    path = write(tmp_path / "b.tkperf")
    expected, left_out = read(path, at_length=False)
    assert not started
    found, also_left_out = read(path, at_length=True)
    assert started == ["tkperf.runfile.seconds_aside"]
    assert_alike(found, expected)
    assert [len(each) for each in expected] == [5, 1, 0, 0, 60, 60, *LENGTHS]
    assert also_left_out == left_out
    assert [each.what for each in left_out] == [
        "the seconds of step 1 of round 3 of iops, IOPS (0/100 4k)"
    ]


def test_steps_of_one_number_have_the_same_seconds(tmp_path: Path) -> None:
    """Only in what a stranger made: tkperf's own number is a key."""
    path = write(tmp_path / "b.tkperf")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE copied AS SELECT * FROM step")
        database.execute("INSERT INTO copied SELECT * FROM step WHERE sequence IN (1, 2)")
        database.execute("DROP TABLE step")
        database.execute("ALTER TABLE copied RENAME TO step")
    found, left_out = read(path, at_length=True)
    expected, also_left_out = read(path, at_length=False)
    assert_alike(found, expected)
    assert left_out == also_left_out
    assert len(found) == 2 * len(LENGTHS) + 2


def test_the_process_makes_all_that_can_be_read(tmp_path: Path) -> None:
    """Else this one would do the same again, and nobody would notice."""
    path = write(tmp_path / "b.tkperf")
    maker = seconds_aside.SecondsAside(path, path.stat())
    made = maker.take()
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT sequence FROM step ORDER BY sequence").fetchall()
    assert sorted(made) == [sequence for (sequence,) in rows if sequence != DAMAGED]
    assert maker.take() == {}


def test_what_it_does_not_make_is_made_here(tmp_path: Path, failing_asides: None) -> None:
    path = write(tmp_path / "b.tkperf")
    assert_alike(read(path, at_length=True)[0], read(path, at_length=False)[0])


def test_another_file_of_that_name_is_not_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened twice, and between that anybody may have put another in its place."""
    path, other = write(tmp_path / "b.tkperf"), write(tmp_path / "c.tkperf", scale=7)
    expected, _ = read(path, at_length=False)
    start_module = process.start_module

    def start(module: str) -> process.Process:
        other.replace(path)
        return start_module(module)

    monkeypatch.setattr("tkperf.aside.start_module", start)
    assert_alike(read(path, at_length=True)[0], expected)


def test_a_run_that_goes_on_is_read_by_one_process(tmp_path: Path, started: list[str]) -> None:
    """Two would keep its writer waiting for longer."""
    path, writer = a_run(tmp_path, steps=3)
    assert [len(each) for each in read(path, at_length=True)[0]] == [1, 1, 1]
    assert not started
    writer.close()


def test_an_older_file_is_read_by_one_process(tmp_path: Path, started: list[str]) -> None:
    """It is brought up to date in memory, where no other process sees it."""
    path = tmp_path / "older.tkperf"
    path.write_bytes(lzma.decompress((GOLDEN / "schema5.tkperf.xz").read_bytes()))
    assert_alike(read(path, at_length=True)[0], read(path, at_length=False)[0])
    assert not started


@pytest.mark.parametrize(("size", "cpus"), [(1 << 30, {0, 1}), (0, {0})])
def test_it_is_not_begun_where_it_gains_nothing(
    tmp_path: Path, started: list[str], monkeypatch: pytest.MonkeyPatch, size: int, cpus: set[int]
) -> None:
    """Small files, and machines with one CPU."""
    monkeypatch.setattr(seconds_aside, "LEAST_FILE_BYTES", size)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cpus)
    read(write(tmp_path / "b.tkperf"), at_length=True)
    assert not started


def test_nobody_is_left_behind_where_none_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[process.Process] = []
    start_module = process.start_module

    def start(module: str) -> process.Process:
        begun.append(start_module(module))
        return begun[-1]

    monkeypatch.setattr("tkperf.aside.start_module", start)
    with RunFile(write(tmp_path / "b.tkperf"), at_length=True) as opened:
        opened.record()
    assert [each.poll() is not None for each in begun] == [True]
