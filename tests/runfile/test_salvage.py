"""An unreadable page of a run file makes only its own rows unreadable. All other rows are shown, and the lost rows are
named.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.builders import run_info
from tests.runfile.runs import a_step, sqlite_error
from tkperf.cli.main import cli
from tkperf.model.errors import RunFileError
from tkperf.model.record import RunNote, RunRecord, RunStatus, StepRecord
from tkperf.runfile.limits import Meter
from tkperf.runfile.reader import RunFile
from tkperf.runfile.salvage import read_rows, require_damage
from tkperf.runfile.writer import PAGE_BYTES, RunFileWriter
from tkperf.runner.events import RunEnded, RunStarted, StepEnded, TestEnded, TestStarted, Warned

# The first byte of each kind of page in SQLite (fileformat2.html, 1.6). An overflow page begins with a page number and
# not with such a byte.
INNER, LEAF, OVERFLOW, INDEX = 5, 13, 0, (2, 10)
TESTS = ("iops", "lat")
EVERY = 10


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with two tests of 100 steps each. The table of steps has several inner pages."""
    path = tmp_path_factory.mktemp("whole") / "run.tkperf"
    writer = RunFileWriter(path)
    writer(RunStarted(info=run_info(), tests=TESTS))
    for number in range(100):
        writer(Warned(warning=RunNote(code="preparation", text=f"{number} " * 20)))
    for at_s, test in enumerate(TESTS):
        writer(TestStarted(test=test, at_s=at_s))
        for number in range(1, 101):
            output = random.Random(number).randbytes(100 * (number % 20))
            record = a_step(number, engine_output=output, job_file=f"[job]\n# {number}" * 9)
            writer(StepEnded(test=test, record=record))
        writer(TestEnded(test=test, status=RunStatus.COMPLETE, at_s=at_s + 1))
    writer(RunEnded(status=RunStatus.COMPLETE, because=None, ended_utc="u"))
    writer.close()
    return path


@pytest.fixture(scope="module")
def schema_pages(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return the number of pages of a file without rows."""
    path = tmp_path_factory.mktemp("empty") / "run.tkperf"
    RunFileWriter(path).close()
    return path.stat().st_size // PAGE_BYTES


def damaged(whole: Path, folder: Path, fill: bytes, first: int = 0) -> Iterator[tuple[int, bytes, Path]]:
    """Yield the file with one page replaced, once for every tenth page from the page ``first`` on. Each item contains
    the page number counted from 0, the old content of the page, and the path.
    """
    data, path = whole.read_bytes(), folder / "run.tkperf"
    for page in range(first, len(data) // PAGE_BYTES, EVERY):
        at = page * PAGE_BYTES
        path.write_bytes(data[:at] + fill + data[at + PAGE_BYTES :])
        yield page, data[at : at + PAGE_BYTES], path


def steps_of(record: RunRecord) -> dict[tuple[str, int], StepRecord]:
    return {(test.name, step.number): step for test in record.tests for step in test.steps}


@pytest.mark.parametrize(
    ("fill", "first"),
    [(bytes(PAGE_BYTES), 0), (b"\xff" * PAGE_BYTES, 3), (random.Random(1).randbytes(PAGE_BYTES), 6)],
    ids=["zeroes", "ones", "noise"],
)
def test_a_page_costs_the_rows_on_it(whole: Path, schema_pages: int, fill: bytes, first: int, tmp_path: Path) -> None:
    """A damaged page makes only its own rows unreadable. All other rows are unchanged, and every lost step is named
    with its test and round.
    """
    with RunFile(whole) as run_file:
        before = steps_of(run_file.record())
    assert len(before) == 200
    kinds = set()
    for page, was, path in damaged(whole, tmp_path, fill, first):
        try:
            with RunFile(path) as run_file:
                record = run_file.record()
                for test in record.tests:
                    run_file.seconds(test)
                left_out = run_file.left_out
        except RunFileError:
            assert page < schema_pages, f"page {page} made the file unreadable"
            continue
        kinds.add(was[0])
        after = steps_of(record)
        assert sum(len(test.steps) for test in record.tests) == len(after), "a step was read twice"
        lost = before.keys() - after.keys()
        assert {(row.test, row.number) for row in left_out if row.is_step} >= lost
        if was[0] == LEAF:
            assert len(lost) <= int.from_bytes(was[3:5], "big")
        elif was[0] == OVERFLOW:
            assert len(lost) <= 1
        elif was[0] in INDEX:
            assert not lost
        changed = [
            key
            for key, step in after.items()
            if replace(step, job_file=before[key].job_file) != before[key]
            and not any(row.number == step.number for row in left_out)
        ]
        # SQLite has no checksums. If random bytes overwrite the pointer from a long row to its overflow page, SQLite
        # may read other content.
        assert len(changed) <= (was[0] == OVERFLOW)
        if any(step.job_file != before[key].job_file for key, step in after.items()):
            assert was[0] == OVERFLOW or any("fio job " in row.what for row in left_out)
    assert {LEAF, OVERFLOW} < kinds


def test_what_is_lost_is_disclosed(whole: Path, schema_pages: int, tmp_path: Path) -> None:
    """Lost steps are disclosed with a notice and warnings, and ``tkperf show`` ends with exit code 0. The test damages
    every leaf page of the steps.
    """
    for page, was, path in damaged(whole, tmp_path, bytes(PAGE_BYTES)):
        if was[0] != LEAF or page < schema_pages:
            continue
        with RunFile(path) as run_file:
            lost = [row for row in run_file.record().left_out if row.is_step]
        if lost:
            done = CliRunner().invoke(cli, ["show", "--full", str(path)], env={"COLUMNS": "400"})
            assert done.exit_code == 0
            opening = " ".join(done.output.split("\n\n")[0].split())
            assert f"{len(lost)} part of the run file cannot be read" in opening
            assert f"left out: {lost[0].what}" in done.output
            return
    pytest.fail("no page has a step")


def test_tests_whose_rows_are_lost_are_found_by_their_order(whole: Path, tmp_path: Path) -> None:
    """If the page with the rows of the tests is lost, the tests are found by their order. The small table of the tests
    has only one page. Without this rule, no step would belong to a test.
    """
    data = whole.read_bytes()
    at = next(
        at
        for at in range(0, len(data), PAGE_BYTES)
        if data[at] == LEAF and b"iopscomplete" in data[at : at + PAGE_BYTES]
    )
    path = tmp_path / "run.tkperf"
    path.write_bytes(data[:at] + bytes(PAGE_BYTES) + data[at + PAGE_BYTES :])
    with RunFile(path) as run_file:
        record = run_file.record()
    assert [(test.name, len(test.steps)) for test in record.tests] == [("iops", 100), ("lat", 100)]
    assert "of table test" in record.left_out[0].what


SQLITE_IOERR_READ = sqlite3.SQLITE_IOERR | 1 << 8
"""The result of SQLite if the disk below the file cannot read a page (rescode.html of SQLite, 266)."""
BAD = range(7, 10)


class BadDiskCursor(sqlite3.Cursor):
    """A cursor on a table of which the disk cannot read some rows."""

    def __next__(self) -> Any:
        row = super().__next__()
        if row[0] in BAD:
            raise sqlite_error(SQLITE_IOERR_READ)
        return row


class BadDisk(sqlite3.Connection):
    def cursor(self) -> sqlite3.Cursor:  # type: ignore[override]
        return super().cursor(BadDiskCursor)


def test_rows_that_the_disk_cannot_read_are_left_out() -> None:
    """If the disk cannot read a part of the file, the other rows are read, each of them once."""
    lost: list[tuple[int, int | None, sqlite3.DatabaseError]] = []
    with closing(sqlite3.connect(":memory:", factory=BadDisk)) as db:
        db.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
        db.executemany("INSERT INTO note (text) VALUES (?)", [(f"note {number}",) for number in range(1, 21)])
        rows = read_rows(db, "note", "text", Meter(0), lost=lambda *what: lost.append(what))
        found = [row["text"] for row in rows]
    assert found == [f"note {number}" for number in range(1, 21) if number not in BAD]
    assert sorted(number for first, last, _ in lost for number in range(first, (last or first) + 1)) == [*BAD]
    assert {error.sqlite_errorcode for *_, error in lost} == {SQLITE_IOERR_READ}


def test_a_lock_is_not_damage() -> None:
    """A lock makes every row unreadable, so it ends the reading. Damage of the file or of its disk does not."""
    for code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, SQLITE_IOERR_READ):
        require_damage(sqlite_error(code))
    for code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM):
        with pytest.raises(sqlite3.OperationalError):
            require_damage(sqlite_error(code))
