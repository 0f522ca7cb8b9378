"""A small run file that claims to be large is either read, or refused with one clear error. The required time and
memory are proportional to the real size of the file.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tkperf
from tests.fuzz.run import run_limited
from tests.runfile.runs import a_run
from tkperf.analysis.run_results import analyse
from tkperf.interop.fio_json import MOST_RESULTS
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.errors import RunFileError
from tkperf.model.histogram import BUCKETS
from tkperf.model.phases import Round
from tkperf.model.workload import Workload
from tkperf.procedures import TESTS, load_profile
from tkperf.procedures.forecast import Case, _Imagination, phases_of
from tkperf.runfile.columns import SECOND_COLUMNS, pack_integers
from tkperf.runfile.limits import (
    MEMORY_BYTES,
    MOST_CELLS,
    MOST_FILE_BYTES,
    MOST_PLANNED_POINTS,
    MOST_PLANNED_VALUES,
    MOST_ROWS,
    MOST_SECONDS,
    MOST_SECTIONS,
    MOST_STEPS_TIMES_SECTIONS,
    MOST_STEPS_TIMES_WORKLOADS,
    ROW_BYTES,
    WORK,
    WORK_PER_BYTE,
    ExcessError,
    Meter,
    most_characters,
)
from tkperf.runfile.reader import RunFile
from tkperf.runfile.run_rows import count_planned

PROFILES = ("myce", "pts-2.0", "pts-2.0-client", "pts-c-1.2", "pts-e-1.1", "quick", "tkperf-2.2")
READINGS_OF_A_DAY = 24 * 60 * 16
NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {})"
Change = Callable[[sqlite3.Connection], None]


def many_steps(db: sqlite3.Connection, count: int, **changes: str) -> None:
    """Add copies of the only step. ``changes`` are SQL expressions that may contain ``n``, the number of the copy."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(step)")]
    values = {name: name for name in columns} | {"sequence": "n + 1"}
    chosen = ", ".join((values | changes)[name] for name in columns)
    db.execute("UPDATE step SET seconds = NULL, second_histograms = NULL")
    db.execute(
        f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count}) "
        f"INSERT INTO step SELECT {chosen} FROM step, c WHERE sequence = 1"
    )


def full_seconds(db: sqlite3.Connection) -> None:
    """Add steps with seconds in which every bucket contains one I/O. Each step needs 60 MB of memory when it is read,
    but only a few hundred kB in the file.
    """
    seconds = 1000
    table = np.zeros((len(SECOND_COLUMNS), seconds), dtype=np.int64)
    table[1], table[[2, 4, 8, 10]] = 1, BUCKETS
    buckets = np.tile(np.arange(BUCKETS), 2 * seconds)
    filled = np.full(2 * seconds, BUCKETS)
    histograms = pack_integers(np.concatenate((filled, buckets, np.ones_like(buckets))))
    many_steps(db, 20, number="n")
    db.execute("UPDATE step SET seconds = ?, second_histograms = ?", (pack_integers(table), histograms))


def shared_text(db: sqlite3.Connection) -> None:
    many_steps(db, 3000)
    db.execute("UPDATE job SET text = ?", ("x" * 1_000_000,))


def full_histograms(db: sqlite3.Connection) -> None:
    blob = pack_integers(np.ones(BUCKETS, dtype=np.int64))
    many_steps(db, 20_000)
    db.execute("UPDATE step SET read_histogram = ?, write_histogram = ?", (blob, blob))


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


def many_workloads(db: sqlite3.Connection) -> None:
    many_steps(db, 3701, number="n", block_size_bytes="512 * n")


def steps_in_many_sections(db: sqlite3.Connection) -> None:
    many_steps(db, 12_500, number="n / 990", section="'s' || (n % 990)")


def steps_of_many_workloads(db: sqlite3.Connection) -> None:
    many_steps(db, 10_200, number="n / 2990", position="n % 2990", block_size_bytes="512 * (1 + n % 2990)")


def many_tests(db: sqlite3.Connection) -> None:
    db.execute(
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) "
        "INSERT INTO test (name, status, started_s) SELECT n, 'running', 0 FROM c"
    )


def disturbances_of_a_step(db: sqlite3.Connection) -> None:
    db.execute(f"{NUMBERS.format(1001)} INSERT INTO disturbance SELECT 1, n, 'foreign-io', 'x', 0, 1, NULL FROM c")


def many_drives(db: sqlite3.Connection) -> None:
    db.execute(
        f"{NUMBERS.format(257)} INSERT INTO telemetry (host_id, at_s, drive, source) "
        "SELECT 1, n, 'd' || n, 'nvme' FROM c"
    )


def heat_of_all_time(db: sqlite3.Connection) -> None:
    """Add 1,001 steps. Each step is longer than the time that 1,000 readings cover, and each of these readings shows
    throttling.
    """
    many_steps(db, 1000, number="n", duration_s="1e6")
    db.execute(
        f"{NUMBERS.format(1000)} INSERT INTO telemetry (host_id, at_s, drive, source, thermal_1_s, "
        "percentage_used) SELECT 1, n, 'd', 'nvme', n, 1 FROM c"
    )


def set_plan(db: sqlite3.Connection, times: int, *, quantities: int = 1, groups: int = 0) -> None:
    """Set the plan of the only test to a plan with a repeated figure."""
    figure = {"kind": "matrix", "quantities": ["iops"] * quantities, "groups": [["IOPS"] * groups]}
    section = {"name": "IOPS", "quantities": ["iops"] * quantities, "figures": [figure] * times}
    db.execute("UPDATE test SET plan = ?", (json.dumps({"title": "IOPS", "sections": [section]}),))


def figures_of_workloads(db: sqlite3.Connection) -> None:
    """Set a plan with 101 figures of 1,000 workloads."""
    many_steps(db, 999, number="1", position="n", block_size_bytes="512 * n")
    set_plan(db, 101)


def figures_of_rounds(db: sqlite3.Connection) -> None:
    """Set a plan with 20 figures, each with 101 curves over 1,000 rounds."""
    many_steps(db, 999, number="1 + n")
    set_plan(db, 20, groups=101)


def long_text(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO warning VALUES (1, 'c', ?, NULL, 0)", ("x" * 100_000,))


def long_json(db: sqlite3.Connection) -> None:
    db.execute("UPDATE run SET value = ? WHERE key = 'name'", (f'"{"x" * 2_000_000}"',))


def many_objects(db: sqlite3.Connection) -> None:
    for number in range(200):
        db.execute(f"CREATE TABLE x{number} (a)")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (full_seconds, "it is too large: the values of each second and the histograms of the run exceed"),
        (shared_text, "it is too large: in total, the rows of the run need more memory than"),
        (full_histograms, "it is too large: in total, the rows of the run need more memory than"),
        (endless_view, "step is not a plain table"),
        (computed_column, "has computed columns"),
        (virtual_table, "note is not a plain table"),
        (trigger, "t is not a plain table"),
        (many_sections, "sections, but at most 1,000 are allowed"),
        (many_workloads, "different workloads in its sections, but at most 3,700 are allowed"),
        (
            steps_in_many_sections,
            "12,501 steps and 991 sections. A run with that number of sections may contain at most 12,108 steps",
        ),
        (
            steps_of_many_workloads,
            "10,201 steps and 2,990 different workloads. A run with that number of different workloads may contain at "
            "most 10,033 steps",
        ),
        (figures_of_workloads, "values of workloads in the figures of its plans, but at most 100,000 are allowed"),
        (figures_of_rounds, "values of steps in the figures of its plans, but at most 2,000,000 are allowed"),
        (many_tests, "table test has 5,001 rows, but a run has at most 200"),
        (disturbances_of_a_step, "1,001 rows of table disturbance of one step, but at most 1,000 are allowed"),
        (many_drives, "257 drives in table telemetry, but at most 256 are allowed"),
        (heat_of_all_time, "times that steps were throttled, but at most 200,000 are allowed"),
        (long_text, "table warning, column text contains a text of 100,000 characters, but at most"),
        (long_json, "table run, column value contains a text of 2,000,002 characters, but at most"),
        (many_objects, "tables and indexes, but at most 100 are allowed"),
    ],
)
def test_more_than_a_file_can_hold_is_refused(tmp_path: Path, change: Change, says: str) -> None:
    """If a file contains more than the limits permit, the file is refused within a limited amount of memory."""
    path = made(tmp_path, change)
    assert path.stat().st_size < 8e6
    said = run_limited(lambda: read_all(path))
    assert says in said, said
    assert "damaged" not in said


@pytest.mark.parametrize("table", ["warning", "note", "run", "host"])
def test_a_table_with_more_rows_than_a_run_has(tmp_path: Path, table: str) -> None:
    """A table with more rows than a run can have is refused, and the error names the table, the number of rows and the
    limit. With one row fewer, the file can be read.
    """
    most = MOST_ROWS[table]
    rows = {
        "warning": "(code, text) SELECT 'c', 't'",
        "note": "(code, text) SELECT 'c', 't'",
        "run": "SELECT 'k' || n, '1'",
        "host": "SELECT n + 1, NULL",
    }[table]

    def fill(db: sqlite3.Connection) -> None:
        (found,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
        db.execute(f"{NUMBERS.format(most - found)} INSERT INTO {table} {rows} FROM c")

    path = made(tmp_path, fill)
    with RunFile(path) as run_file:
        run_file.record()
    another = rows.replace("'k' || n", "'another'").replace("n + 1", "100000")
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"{NUMBERS.format(1)} INSERT INTO {table} {another} FROM c")
        db.commit()
    says = f"it is too large: table {table} has {most + 1:,} rows, but a run has at most {most:,}"
    with RunFile(path) as run_file, pytest.raises(RunFileError, match=says):
        run_file.record()


def test_the_limits_are_ten_times_what_the_longest_day_needs() -> None:
    """The limits for steps, seconds, minutes and memory are ten times the need of the longest day. This day contains
    the tests with the most steps of all shipped profiles.
    """
    for name in PROFILES:
        profile = load_profile(name)
        densities = sorted(
            (steps_of(test.procedure(profile, 10**12)) for test in TESTS if test.is_in(profile)),
            key=lambda each: each[0] / each[1],
            reverse=True,
        )
        hours, day_steps = 24.0, 0.0
        for steps, took_s in densities:
            share = min(1.0, hours * 3600 / took_s)
            day_steps, hours = day_steps + share * steps, hours - share * took_s / 3600
        assert 10 * day_steps <= MOST_ROWS["step"], name
        memory_bytes = day_steps * ROW_BYTES["step"] + READINGS_OF_A_DAY * ROW_BYTES["telemetry"]
        assert 10 * memory_bytes <= MEMORY_BYTES, name
        workloads = {
            workload
            for test in TESTS
            if test.is_in(profile)
            for workload in workloads_of(test.procedure(profile, 10**12))
        }
        assert 10 * len(workloads) <= MOST_CELLS, name
    assert MOST_SECONDS >= 10 * 24 * 3600
    assert MOST_ROWS["under_way_part"] >= 10 * 24 * 60
    # READINGS_OF_A_DAY counts the readings of 16 drives, one each minute. Each verdict belongs to a round of at least
    # two minutes.
    assert MOST_ROWS["telemetry"] >= 10 * READINGS_OF_A_DAY
    assert MOST_ROWS["verdict"] >= 10 * 24 * 30
    # Each kind of disturbance and warning occurs at most once in a test.
    assert 10 * len(DisturbanceCode) * len(TESTS) <= MOST_ROWS["warning"]
    assert MOST_ROWS["step"] == MOST_RESULTS


def steps_of_a_day() -> float:
    """Return the largest number of steps that the tests of a shipped profile can have in 24 hours. The tests with the
    most steps per hour are counted first.
    """
    most = 0.0
    for name in PROFILES:
        profile = load_profile(name)
        tests = [steps_of(test.procedure(profile, 10**12)) for test in TESTS if test.is_in(profile)]
        hours, day_steps = 24.0, 0.0
        for steps, took_s in sorted(tests, key=lambda each: each[0] / each[1], reverse=True):
            part = min(1.0, hours * 3600 / took_s)
            day_steps, hours = day_steps + part * steps, hours - part * took_s / 3600
        most = max(most, day_steps)
    return most


# A step in which 16 loads run at the same time has rows for each load and for the sum of the loads.
LOADS_AT_ONCE = 16 + 1
# The size of a file with a day of one stream, measured with bench/run_file_size.py (docs/reference/run-file.md).
BYTES_OF_A_DAY = 9_100_000
# The number of rows in these tables grows with the duration of a run. In the other tables, it grows with the number of
# tests and sections.
GROWING = ("step", "job", "verdict", "disturbance", "note", "warning")


def test_a_run_of_all_tests_needs_a_tenth_of_each_limit(tmp_path: Path) -> None:
    """A run of all tests of a suite needs at most a tenth of each limit. Numbers that grow with time are scaled to the
    day with the most steps.
    """
    day_steps = steps_of_a_day()
    for suite, device in (("ssd", "sim:sata-ssd"), ("hdd", "sim:hdd")):
        plan = tkperf.make_plan(suite, device, profile="quick", tests=("all",))
        tkperf.run(plan, suite, folder=tmp_path)
        path = tmp_path / f"{suite}.tkperf"
        with RunFile(path) as run_file:
            meter = run_file._meter
            with run_file._reading(2**63 - 1):  # all tables except the log
                constant_bytes = MEMORY_BYTES - meter._memory_left
            record = run_file.record()
            log_bytes = MEMORY_BYTES - meter._memory_left - constant_bytes
            unpacked_bytes, work = meter._unpacked_left, meter._work_left
            for test in record.tests:
                run_file.seconds(test)
            unpacked_bytes -= meter._unpacked_left
        work = WORK + WORK_PER_BYTE * path.stat().st_size - work
        steps = [(test.name, step) for test in record.tests for step in test.steps]
        times = max(1.0, day_steps / len(steps))
        # The memory limit grows with the size of the file. Ten such days lead to a file of this size. A day has the
        # steps of this run, and 86,400 seconds with their histograms.
        ten_days = Meter(int(10 * (times * path.stat().st_size + BYTES_OF_A_DAY)))
        with closing(sqlite3.connect(path)) as db:
            rows = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in MOST_ROWS}
            longest = longest_texts(db)
        for table, count in rows.items():
            needed = count * (times if table in GROWING else 1)
            assert 10 * needed <= MOST_ROWS[table], table
        sections = len({(test, step.section) for test, step in steps})
        workloads = len({(test, step.section, step.key) for test, step in steps})
        assert 10 * sections <= MOST_SECTIONS
        assert 10 * workloads <= MOST_CELLS
        assert 10 * day_steps * sections <= MOST_STEPS_TIMES_SECTIONS
        assert 10 * day_steps * workloads <= MOST_STEPS_TIMES_WORKLOADS
        cells = {test.name: {(step.section, step.key) for step in test.steps} for test in record.tests}
        values = sum(count_planned(test, Counter(section for section, _ in cells[test.name])) for test in record.tests)
        points = sum(count_planned(test, Counter(step.section for step in test.steps)) for test in record.tests)
        assert 0 < 10 * values <= MOST_PLANNED_VALUES
        assert 0 < 10 * times * points <= MOST_PLANNED_POINTS
        for (table, column), characters in longest.items():
            limit = most_characters(table, column)
            assert 10 * characters <= limit, (table, column)
        assert 10 * (times * log_bytes + constant_bytes) <= ten_days.most(MEMORY_BYTES)
        assert 10 * times * work <= ten_days._work_left
        # A day has 86,400 seconds. The number of its steps does not matter.
        seconds = sum(step.measurement.duration_s for _, step in steps)
        assert 10 * unpacked_bytes * 86_400 / seconds <= ten_days._unpacked_left


def longest_texts(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Return the number of characters of the longest text in each column."""
    longest = {}
    for table in MOST_ROWS:
        for column in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]:
            query = f"SELECT max(length({column})) FROM {table} WHERE typeof({column}) = 'text'"
            longest[table, column] = db.execute(query).fetchone()[0] or 0
    return longest


def test_loads_at_the_same_time_make_a_file_whose_limits_grow() -> None:
    """Ten days with 16 loads at the same time fit into one file. Such runs cannot be measured yet, so the test only
    computes their size.
    """
    file_bytes = 10 * LOADS_AT_ONCE * BYTES_OF_A_DAY
    assert file_bytes <= MOST_FILE_BYTES
    meter, days = Meter(file_bytes), 10 * LOADS_AT_ONCE
    steps = steps_of_a_day()
    assert days * steps <= meter.most(MOST_ROWS["step"])
    assert days * steps <= meter.most(MOST_ROWS["job"])
    assert days * 24 * 60 <= meter.most(MOST_ROWS["under_way_part"])
    assert days * 24 * 3600 <= meter.most(MOST_SECONDS)
    assert days * steps * ROW_BYTES["step"] <= meter.most(MEMORY_BYTES)


def workloads_of(procedure: Generator[Any, Any, None]) -> set[tuple[str, Workload]]:
    """Return the workloads of each section. All areas of a disk have the same workloads."""
    return {
        (phase.section, replace(step.workload, region=None))
        for phase in phases_of(procedure, _Imagination(Case.BEST, 10**12))
        if isinstance(phase, Round)
        for step in phase.steps
    }


def steps_of(procedure: Generator[Any, Any, None]) -> tuple[int, float]:
    """Return the number of steps and the duration in seconds of a test, both in the best case."""
    imagine, steps, took_s = _Imagination(Case.BEST, 10**12), 0, 1.0
    for phase in phases_of(procedure, imagine):
        steps += len(phase.steps) if isinstance(phase, Round) else 1
        took_s += imagine.duration_s(phase)
    return steps, took_s


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
    """Read all parts of the file and return the text of the error."""
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


@pytest.mark.parametrize(("levels", "says"), [(2, r"\d[0-9,]+"), (5, "more than 5,000")])
def test_a_page_that_is_listed_many_times_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: int, says: str
) -> None:
    """A damaged file in which inner pages refer to the same page many times is detected, because the file then seems to
    contain many more rows than were written. If there are too many rows to count them, the count is stopped.
    """
    monkeypatch.setitem(MOST_ROWS, "step", 5000)  # with the usual limit, the test would need ten seconds of CPU time
    path = made(tmp_path, lambda db: many_steps(db, 3000))
    assert run_limited(lambda: read_all(path)) == "read"
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'step'").fetchone()
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")

    def pointers(page: int) -> list[int]:
        """Return the places at which an inner page refers to other pages."""
        at = (page - 1) * size
        assert data[at] == 5
        count = int.from_bytes(data[at + 3 : at + 5], "big")
        return [at + 8, *(at + int.from_bytes(data[at + 12 + 2 * n : at + 14 + 2 * n], "big") for n in range(count))]

    def children(page: int) -> list[int]:
        return [int.from_bytes(data[at : at + 4], "big") for at in pointers(page)]

    # The root refers only to the first inner page, this page only to the second inner page, and so on.
    inner = [root, *children(root)[:levels]]
    leaf = children(inner[-1])[0]
    for page, child in zip(inner, [*inner[1:], leaf], strict=True):
        for at in pointers(page):
            data[at : at + 4] = child.to_bytes(4, "big")
    path.write_bytes(data)
    said = run_limited(lambda: read_all(path))
    found = re.search(f"it is too large: table step has ({says}) rows", said)
    assert found is not None, said
    assert levels > 2 or int(found[1].replace(",", "")) > 100 * 3000


def test_a_journal_that_names_another_file_is_not_played_back(tmp_path: Path) -> None:
    """A journal that names another file is refused, because SQLite would remove that file. With the rights of root,
    SQLite could remove any file.
    """
    path, writer = a_run(tmp_path, 1)
    writer.close()
    journal = path.with_name("a.tkperf-journal")
    journal.write_bytes(bytes(512) + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(RunFileError, match="is not a journal of tkperf"):
        RunFile(path)


def test_what_tkperf_writes_is_far_below_the_limits(tmp_path: Path) -> None:
    """Many equal steps compress better than all other steps. A file with many equal steps is within the limits and can
    be read.
    """
    path = made(tmp_path, lambda db: many_steps(db, 2000, number="n"))
    assert run_limited(lambda: read_all(path)) == "read"


def test_a_long_text_is_found_in_any_row_and_column() -> None:
    """A long text is found in any row and column, even if no earlier row of the table has a text in this column."""
    meter = Meter(0)
    for value in (None, 1, b"x" * 100_000, "short"):
        meter.count_row("note", {"id": 1, "text": value})
        meter.count_row("note", {"id": 1, "text": 2})
    for row in ({"id": 1, "text": "x" * 100_000}, {"id": "x" * 100_000, "text": 1}):
        with pytest.raises(ExcessError, match="contains a text of 100,000 characters"):
            meter.count_row("note", row)


@pytest.mark.parametrize(("length", "name"), [(255, "x" * 255), (256, "a"), (1_000_000, "a")])
def test_a_run_has_the_name_of_its_file_if_no_file_can_have_its_name(tmp_path: Path, length: int, name: str) -> None:
    """If the name of a run is not possible as a file name, the run is shown with the name of its file. Each table of a
    comparison repeats the name, so a name of a million characters would take more than a minute.
    """

    def rename(db: sqlite3.Connection) -> None:
        db.execute("UPDATE run SET value = ? WHERE key = 'name'", (f'"{"x" * length}"',))

    path = made(tmp_path, rename)
    with RunFile(path) as run_file:
        record = run_file.record()
    assert record.info.name == name
    assert [each.what for each in record.left_out] == ["fact name of the run"] * (name == "a")


@pytest.mark.parametrize("name", ["name", "section", "drive", "source", "code", "test"])
def test_names_are_shorter_than_other_texts(name: str) -> None:
    """The limit for names is lower than the limit for other texts, because charts and tables repeat names. With names
    of 64,000 characters, a report of 95 tests needed 3.6 GB.

    The path of a device has at most 4,096 characters.
    """
    meter = Meter(0)
    meter.count_row("t", {name: "x" * 4096, "text": "x" * 4097})
    with pytest.raises(ExcessError, match=f"column {name} contains a text of 4,097 characters, but at most 4,096"):
        meter.count_row("t", {name: "x" * 4097})


def test_a_plan_that_repeats_a_quantity_is_left_out(tmp_path: Path) -> None:
    """If a plan repeats a quantity in a section, the plan is left out. With a list of 60,000 quantities, a report would
    need almost a minute and 1.3 GB.
    """
    for quantities, is_read in ((1, True), (2, False)):
        folder = tmp_path / str(quantities)
        folder.mkdir()

        def repeat(db: sqlite3.Connection, quantities: int = quantities) -> None:
            set_plan(db, 1, quantities=quantities)

        with RunFile(made(folder, repeat)) as run_file:
            record = run_file.record()
        assert (record.tests[0].plan is not None) == is_read
        assert any(each.what == "how test iops is shown" for each in record.left_out) != is_read
