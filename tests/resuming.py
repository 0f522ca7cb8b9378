"""Rules for runs that were interrupted at any moment and then continued. The rules are checked only with SQL."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tkperf.runner.events import Event

# A row of the log counts, unless a resumption of its test set the row aside, or the test was repeated.
COUNTED = """
    NOT EXISTS (SELECT 1 FROM resumption r WHERE r.test_id = {t}.test_id
                AND {t}.sequence BETWEEN r.set_aside_from AND r.set_aside_to)
    AND {t}.test_id NOT IN (SELECT value FROM resumption, json_each(repeated_ids))
"""


def cuts(path: Path, folder: Path) -> Callable[[Event], None]:
    """Return an observer that is called after the writer. After each event, the observer copies the run file in the
    state that ``kill -9`` would leave.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before: list[int] = []

    def cut(event: Event) -> None:
        state = path.stat().st_mtime_ns
        if before[-1:] != [state]:
            before.append(state)
            shutil.copy(path, folder / f"{len(before):03}-{type(event).__name__}.tkperf")

    return cut


def find_faults(path: Path, before: Path | None = None, *, passes: int | None = None) -> list[str]:
    """Return the faults of a run that has ended.

    Args:
        before: the file at the time of the interruption.
        passes: number of passes of preconditioning, if this number differs from the number in the profile.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        faults = [*_of_the_run(db), *_of_rounds(db), *_of_windows(db), *_of_fills(db, passes)]
        if before is not None:
            faults += _of_what_was_there(db, before)
    return faults


def _fact(db: sqlite3.Connection, key: str) -> Any:
    (value,) = db.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
    return json.loads(value)


def _of_the_run(db: sqlite3.Connection) -> Iterator[str]:
    (integrity,) = db.execute("PRAGMA integrity_check").fetchone()
    if integrity != "ok":
        yield f"integrity: {integrity}"
    if _fact(db, "status") != "complete":
        yield f"the run is {_fact(db, 'status')}: {_fact(db, 'ended_because')}"
    if db.execute("SELECT count(*) FROM under_way").fetchone() != (0,):
        yield "a step is still under way"
    counted = db.execute(
        "SELECT name, status, EXISTS (SELECT 1 FROM outcome WHERE test_id = test.id "
        f"AND {COUNTED.format(t='outcome')}) FROM test WHERE id NOT IN "
        "(SELECT value FROM resumption, json_each(repeated_ids))"
    ).fetchall()
    if sorted(counted) != sorted((name, "complete", 1) for name in _fact(db, "tests")):
        yield f"tests {counted}"
    last = 0.0
    for sequence, started_s in db.execute(
        "SELECT sequence, started_s FROM step UNION SELECT sequence, started_s FROM purge ORDER BY 1"
    ):
        if started_s < last - 0.001:
            yield f"row {sequence} begins at {started_s}, before the one before it"
        last = started_s


def _of_rounds(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the faults of rounds. Each step must count once, and each round must be complete."""
    counted = COUNTED.format(t="step")
    for row in db.execute(
        f"SELECT test_id, section, kind, number, position, count(*) FROM step WHERE {counted} "
        "GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1"
    ):
        yield f"counted twice: {row}"
    for test_id, section, kind, least, most, numbers, steps, positions in db.execute(
        "SELECT test_id, section, kind, min(number), max(number), count(DISTINCT number), count(*), "
        f"max(position) + 1 FROM step WHERE {counted} AND kind <> 'warm-up' GROUP BY 1, 2, 3"
    ):
        place = f"test {test_id}, {section}, {kind}"
        if (least, most) != (1, numbers):
            yield f"{place}: {numbers} numbers from {least} to {most}"
        if steps != numbers * positions:
            yield f"{place}: {steps} steps in {numbers} rounds of {positions}"


def _of_windows(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the faults of windows. All rounds of a window must have been measured, without an interruption between
    them.
    """
    for test_id, name, times in db.execute(
        f"SELECT test_id, section, count(*) FROM outcome WHERE {COUNTED.format(t='outcome')} "
        "GROUP BY 1, 2 HAVING count(*) > 1"
    ):
        yield f"test {test_id}, {name} ended {times} times"
    for test_id, outcome in db.execute("SELECT test_id, outcome FROM outcome").fetchall():
        for section in (json.loads(outcome),):
            window = section["window"]
            if not window:
                continue
            marks = ", ".join("?" * len(window))
            numbers, first, last = db.execute(
                f"SELECT count(DISTINCT number), min(sequence), max(sequence) FROM step WHERE "
                f"test_id = ? AND section = ? AND kind IN ('round', 'continuous') "
                f"AND number IN ({marks}) AND NOT EXISTS (SELECT 1 FROM resumption r WHERE "
                "r.test_id = step.test_id AND sequence BETWEEN r.set_aside_from AND r.set_aside_to)",
                (test_id, section["section"], *window),
            ).fetchone()
            # A hard disk test measures areas and has no rounds until steady state, so it has no window to check.
            if not numbers:
                continue
            if numbers != len(window):
                yield f"{section['section']}: {numbers} of the window {window}"
            spanning = db.execute(
                "SELECT count(*) FROM resumption WHERE goes_on <> 'where it stopped' "
                "AND set_aside_to >= ? AND set_aside_to < ?",
                (first, last),
            ).fetchone()
            if spanning != (0,):
                yield f"{section['section']}: the window {window} spans an interruption"


def _of_fills(db: sqlite3.Connection, passes: int | None) -> Iterator[str]:
    """Yield the faults of preconditioning. Preconditioning must be complete and must directly follow its purge. Neither
    the purge nor the preconditioning may have been interrupted.
    """
    passes = passes or _fact(db, "profile")["preconditioning"]["passes"]
    assert passes is not None
    whole_bytes = passes * _fact(db, "active_range_length_bytes")
    for sequence, section, written, purged in db.execute(
        "SELECT sequence, section, write_bytes, (SELECT max(sequence) FROM purge WHERE "
        "purge.sequence < step.sequence AND purge.test_id = step.test_id AND "
        f"purge.section = step.section AND {COUNTED.format(t='purge')}) "
        f"FROM step WHERE kind = 'fill' AND {COUNTED.format(t='step')}"
    ).fetchall():
        if written != whole_bytes:
            yield f"{section}: {written} of {whole_bytes} bytes preconditioned"
        if purged != sequence - 1:
            yield f"{section}: filled in row {sequence}, purged in row {purged}"
        if db.execute("SELECT count(*) FROM resumption WHERE set_aside_to = ?", (purged,)).fetchone() != (0,):
            yield f"{section}: interrupted between its purge and its fill"


def _of_what_was_there(db: sqlite3.Connection, before: Path) -> Iterator[str]:
    """Yield a fault for each row of an earlier measurement that was lost or changed."""
    db.execute("ATTACH ? AS before", (f"{before.as_uri()}?mode=ro",))
    for table in ("purge", "step", "verdict", "outcome", "disturbance", "resumption"):
        columns = ", ".join(
            name
            for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))
            # Only the newest slice of a stream keeps fio's report.
            if name != "fio_json"
        )
        (lost,) = db.execute(
            f"SELECT count(*) FROM (SELECT {columns} FROM before.{table} EXCEPT SELECT {columns} FROM main.{table})"
        ).fetchone()
        if lost:
            yield f"{lost} rows of {table} are lost or changed"


def written_bytes(path: Path) -> int:
    """Return the number of all written bytes, including those that count in no result."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        (steps,) = db.execute("SELECT sum(write_bytes) FROM step").fetchone()
        (cut_off,) = db.execute("SELECT ifnull(sum(cut_off_written_bytes), 0) FROM resumption").fetchone()
    return int(steps + cut_off)
