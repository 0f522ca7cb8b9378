"""A small run file that says it is large: one clear error, or what it holds, at the cost of its size."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.run import run_limited
from tests.runfile.runs import a_run
from tkperf.analysis.run_results import analyse
from tkperf.model.errors import RunFileError
from tkperf.model.histogram import BUCKETS
from tkperf.runfile.columns import SECOND_COLUMNS, pack_integers
from tkperf.runfile.reader import RunFile

Change = Callable[[sqlite3.Connection], None]


def many_steps(db: sqlite3.Connection, count: int, **changes: str) -> None:
    """Copies of the only step; ``changes`` are SQL with ``n``, the number of the copy."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(step)")]
    values = {name: name for name in columns} | {"sequence": "n + 1"}
    chosen = ", ".join((values | changes)[name] for name in columns)
    db.execute("UPDATE step SET seconds = NULL, second_histograms = NULL")
    db.execute(
        f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}) "
        f"INSERT INTO step SELECT {chosen} FROM step, c WHERE sequence = 1"
    )


def full_seconds(db: sqlite3.Connection) -> None:
    """Steps of seconds in which every bucket is filled once: 60 MB each of a few hundred kB."""
    seconds = 1000
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[1], table[[2, 4, 8, 10]] = 1, BUCKETS
    buckets = np.tile(np.arange(BUCKETS), 2 * seconds)
    filled = np.full(2 * seconds, BUCKETS)
    histograms = pack_integers(np.concatenate((filled, buckets, np.ones_like(buckets))))
    many_steps(db, 20, number="n")
    db.execute(
        "UPDATE step SET seconds = ?, second_histograms = ?", (pack_integers(table), histograms)
    )


def shared_text(db: sqlite3.Connection) -> None:
    many_steps(db, 3000)
    db.execute("UPDATE job SET text = ?", ("x" * 1_000_000,))


def full_histograms(db: sqlite3.Connection) -> None:
    blob = pack_integers(np.ones(BUCKETS, dtype=np.int64))
    many_steps(db, 20_000)
    db.execute("UPDATE step SET read_histogram = ?1, write_histogram = ?1", (blob,))


def endless_view(db: sqlite3.Connection) -> None:
    columns = [row[1] for row in db.execute("PRAGMA table_info(step)")]
    chosen = ", ".join("n AS sequence" if name == "sequence" else name for name in columns)
    db.execute("PRAGMA legacy_alter_table = ON")
    db.execute("ALTER TABLE step RENAME TO real_step")
    db.execute(
        "CREATE VIEW step AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
        f"SELECT {chosen} FROM real_step, c"
    )


def computed_column(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE purge ADD COLUMN x GENERATED ALWAYS AS (zeroblob(900000000))")
    db.execute("INSERT INTO purge VALUES (9, 1, 'IOPS', 0, 0, 'm', NULL)")


def virtual_table(db: sqlite3.Connection) -> None:
    db.execute("DROP TABLE note")
    db.execute("CREATE VIRTUAL TABLE note USING fts5(id, code, text, test, at_s)")


def trigger(db: sqlite3.Connection) -> None:
    db.execute("CREATE TRIGGER t AFTER UPDATE ON step BEGIN SELECT 1; END")


def many_sections(db: sqlite3.Connection) -> None:
    many_steps(db, 5000, section="'s' || n")


def many_tests(db: sqlite3.Connection) -> None:
    db.execute(
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) "
        "INSERT INTO test (name, status, started_s) SELECT n, 'running', 0 FROM c"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (full_seconds, "it says more than"),
        (shared_text, "it says more than"),
        (full_histograms, "it says more than"),
        (endless_view, "step is not a plain table"),
        (computed_column, "has columns that are computed"),
        (virtual_table, "note is not a plain table"),
        (trigger, "t is not a plain table"),
        (many_sections, "sections, a run has 1,000 at most"),
        (many_tests, "tests, a run has 100 at most"),
    ],
)
def test_more_than_a_file_can_hold_is_refused(tmp_path: Path, change: Change, says: str) -> None:
    """In a child process whose memory is limited, so that the old way would fail here, too."""
    path = made(tmp_path, change)
    assert path.stat().st_size < 8e6
    said = run_limited(lambda: read_all(path))
    assert says in said, said


def made(folder: Path, change: Change) -> Path:
    path, writer = a_run(folder, 1)
    writer.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        change(db)
        db.execute("COMMIT")
        db.execute("VACUUM")
    return path


def read_all(path: Path) -> str:
    """All that there is to read, and what the error said."""
    try:
        with RunFile(path) as run_file:
            record = run_file.record()
            analyse(record)
            for test in record.tests:
                run_file.seconds(test)
                for step in test.steps:
                    run_file.samples(test.name, step)
                    run_file.engine_output(test.name, step)
    except RunFileError as error:
        return str(error)
    return "read"


def test_a_page_that_is_listed_many_times_is_noticed(tmp_path: Path) -> None:
    """An inner page whose children are all one page has more rows than the file has bytes."""
    path = made(tmp_path, lambda db: many_steps(db, 3000))
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'step'").fetchone()
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    while data[(root - 1) * size] == 5:
        at = (root - 1) * size
        count = int.from_bytes(data[at + 3 : at + 5], "big")
        cells = [
            at + int.from_bytes(data[at + 12 + 2 * n : at + 14 + 2 * n], "big")
            for n in range(count)
        ]
        child = data[cells[0] : cells[0] + 4]
        for cell in cells:
            data[cell : cell + 4] = child
        data[at + 8 : at + 12] = child
        root = int.from_bytes(child, "big")
    path.write_bytes(data)
    assert run_limited(lambda: read_all(path)) != ""


def test_a_journal_that_names_another_file_is_not_played_back(tmp_path: Path) -> None:
    """SQLite would remove that file, as root any at all."""
    path, writer = a_run(tmp_path, 1)
    writer.close()
    journal = path.with_name("a.tkperf-journal")
    journal.write_bytes(bytes(512) + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(RunFileError, match="is no journal of tkperf"):
        RunFile(path)


def test_what_tkperf_writes_is_far_below_the_limits(tmp_path: Path) -> None:
    """Steps that all say the same pack best of all, and are read."""
    path = made(tmp_path, lambda db: many_steps(db, 2000, number="n"))
    assert run_limited(lambda: read_all(path)) == "read"
