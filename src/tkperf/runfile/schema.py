"""The schema of a run file, and how an older one is brought up to date.

A migration is a named function, recorded in the transaction that applies it. docs/run-file.md
explains the tables to readers.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tkperf.errors import RunFileError
from tkperf.runfile.limits import MOST_TESTS

# "TKPF": lets file(1) and us tell a run file from any other database.
APPLICATION_ID = 0x544B5046
# A row with histograms fills its last page only in part, so small pages waste less.
PAGE_BYTES = 1024


def m001_initial(connection: sqlite3.Connection) -> None:
    """Runs with the four SSD tests."""
    stats = ", ".join(
        f"{side}_ios INTEGER NOT NULL, {side}_bytes INTEGER NOT NULL, "
        f"{side}_latency_ios INTEGER NOT NULL, {side}_latency_sum_ns INTEGER NOT NULL, "
        f"{side}_latency_min_ns INTEGER, {side}_latency_max_ns INTEGER, {side}_histogram BLOB"
        for side in ("read", "write")
    )
    statements = (
        # One row for each fact of a run, its value as JSON.
        "CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE test (id INTEGER PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, "
        "started_s REAL NOT NULL, ended_s REAL, outcome TEXT)",
        # sequence ascends over purge, step and verdict together: it is the log's order.
        "CREATE TABLE purge (sequence INTEGER PRIMARY KEY, test_id INTEGER NOT NULL "
        "REFERENCES test, section TEXT NOT NULL, started_s REAL NOT NULL, "
        "duration_s REAL NOT NULL, method TEXT NOT NULL, note TEXT)",
        "CREATE TABLE job (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
        "CREATE TABLE step (sequence INTEGER PRIMARY KEY, test_id INTEGER NOT NULL "
        "REFERENCES test, section TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, "
        "position INTEGER NOT NULL, access TEXT NOT NULL, read_percent INTEGER NOT NULL, "
        "block_size_bytes INTEGER NOT NULL, jobs INTEGER NOT NULL, io_depth INTEGER NOT NULL, "
        "planned_s REAL, started_s REAL NOT NULL, gap_s REAL, duration_s REAL NOT NULL, "
        f"{stats}, cpu_busiest_thread_percent REAL, cpu_all_threads_percent REAL, "
        "host_limited INTEGER NOT NULL, job_id INTEGER NOT NULL REFERENCES job, "
        "fio_json BLOB, sample_details BLOB)",
        "CREATE INDEX step_by_test ON step (test_id, section, number)",
        "CREATE TABLE sample (step_sequence INTEGER NOT NULL REFERENCES step, "
        "number INTEGER NOT NULL, start_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, "
        "read_ios INTEGER, read_bytes INTEGER, read_latency_sum_ns INTEGER, "
        "write_ios INTEGER, write_bytes INTEGER, write_latency_sum_ns INTEGER, "
        "PRIMARY KEY (step_sequence, number)) WITHOUT ROWID",
        "CREATE TABLE verdict (sequence INTEGER PRIMARY KEY, test_id INTEGER NOT NULL "
        "REFERENCES test, section TEXT NOT NULL, number INTEGER NOT NULL, "
        "reached INTEGER NOT NULL, verdict TEXT NOT NULL)",
        "CREATE TABLE warning (id INTEGER PRIMARY KEY, code TEXT NOT NULL, text TEXT NOT NULL, "
        "test TEXT, at_s REAL)",
    )
    for statement in statements:
        connection.execute(statement)


def m002_notes(connection: sqlite3.Connection) -> None:
    """What must be on record before it is done, such as a password set on a drive."""
    connection.execute(
        "CREATE TABLE note (id INTEGER PRIMARY KEY, code TEXT NOT NULL, text TEXT NOT NULL, "
        "test TEXT, at_s REAL)"
    )


def m003_imported(connection: sqlite3.Connection) -> None:
    """Results of other tools, which may not know how many I/Os there were."""
    connection.execute("ALTER TABLE step ADD COLUMN rates_known INTEGER NOT NULL DEFAULT 1")


def m004_disturbances(connection: sqlite3.Connection) -> None:
    """What others did to the device during a step, and idle time before and within it."""
    for column in (
        "planned_pause INTEGER NOT NULL DEFAULT 0",
        "foreign_read_bytes INTEGER",
        "foreign_write_bytes INTEGER",
        # 1: somebody looked for disturbances; in the steps of older files nobody did.
        "watched INTEGER",
    ):
        connection.execute(f"ALTER TABLE step ADD COLUMN {column}")
    connection.execute(
        "CREATE TABLE disturbance (step_sequence INTEGER NOT NULL REFERENCES step, "
        "number INTEGER NOT NULL, code TEXT NOT NULL, text TEXT NOT NULL, "
        "started_s REAL NOT NULL, duration_s REAL NOT NULL, share REAL, "
        "PRIMARY KEY (step_sequence, number)) WITHOUT ROWID"
    )


def m005_under_way(connection: sqlite3.Connection) -> None:
    """What was measured so far of the step under way, a fill of hours above all."""
    statements = (
        # At most one row: the step that has begun and not ended.
        "CREATE TABLE under_way (id INTEGER PRIMARY KEY CHECK (id = 1), test_id INTEGER NOT NULL "
        "REFERENCES test, section TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, "
        "position INTEGER NOT NULL, access TEXT NOT NULL, read_percent INTEGER NOT NULL, "
        "block_size_bytes INTEGER NOT NULL, jobs INTEGER NOT NULL, io_depth INTEGER NOT NULL, "
        "planned_s REAL, planned_bytes INTEGER, started_s REAL NOT NULL)",
        # Its samples, about a minute of them at a time.
        "CREATE TABLE under_way_part (number INTEGER PRIMARY KEY, sample_details BLOB)",
        "CREATE TABLE under_way_sample (part INTEGER NOT NULL REFERENCES under_way_part, "
        "number INTEGER NOT NULL, start_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, "
        "read_ios INTEGER, read_bytes INTEGER, read_latency_sum_ns INTEGER, "
        "write_ios INTEGER, write_bytes INTEGER, write_latency_sum_ns INTEGER, "
        "PRIMARY KEY (part, number)) WITHOUT ROWID",
    )
    for statement in statements:
        connection.execute(statement)


def m006_workloads(connection: sqlite3.Connection) -> None:
    """The whole workload of a step, which is the key of its result; how each test is shown."""
    for table in ("step", "under_way"):
        for column in (
            # [[bytes, percent], ...]
            "block_mix TEXT",
            # [[percent of accesses, percent of the range], ...]
            "zones TEXT",
            "offered_iops REAL",
            "arrival TEXT",
            "compressible_percent INTEGER",
            "region_offset_bytes INTEGER",
            "region_length_bytes INTEGER",
        ):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    connection.execute("UPDATE run SET key = 'ioengine' WHERE key = 'engine'")
    # A run may have several.
    connection.execute(
        "UPDATE run SET key = 'hosts', value = '[' || value || ']' WHERE key = 'host'"
    )
    # Title, sections and figures, as JSON.
    connection.execute("ALTER TABLE test ADD COLUMN plan TEXT")


def m007_resumptions(connection: sqlite3.Connection) -> None:
    """Runs that were interrupted and went on, or had tests repeated or added."""
    connection.execute(
        "CREATE TABLE resumption (number INTEGER PRIMARY KEY, resumed_utc TEXT NOT NULL, "
        "stopped_s REAL NOT NULL, resumed_s REAL NOT NULL, status TEXT NOT NULL, because TEXT, "
        "goes_on TEXT NOT NULL, test TEXT, test_id INTEGER REFERENCES test, section TEXT, "
        "round_number INTEGER, set_aside_from INTEGER, set_aside_to INTEGER, again TEXT NOT NULL, "
        "cut_off TEXT, cut_off_written_bytes INTEGER NOT NULL, "
        # Each a list, as JSON.
        "repeated TEXT NOT NULL, repeated_ids TEXT NOT NULL, added TEXT NOT NULL, "
        "changes TEXT NOT NULL, command_line TEXT NOT NULL)"
    )


def m008_outcomes(connection: sqlite3.Connection) -> None:
    """How each section ended, kept as soon as it did; before, all of a test's once that had ended."""
    connection.execute(
        # sequence as in purge, step and verdict; what came from an older file has none of them.
        "CREATE TABLE outcome (sequence INTEGER PRIMARY KEY, test_id INTEGER NOT NULL "
        "REFERENCES test, section TEXT NOT NULL, outcome TEXT NOT NULL)"
    )
    tests = connection.execute(
        f"SELECT id, outcome FROM test WHERE outcome IS NOT NULL LIMIT {MOST_TESTS + 1}"  # noqa: S608 - a number
    ).fetchall()
    rows = [(test_id, *row) for test_id, text in tests for row in _sections_of(text)]
    connection.executemany(
        "INSERT INTO outcome VALUES (?, ?, ?, ?)",
        ((number, *row) for number, row in enumerate(rows, start=-len(rows))),
    )
    connection.execute("ALTER TABLE test DROP COLUMN outcome")


def _sections_of(outcome: object) -> list[tuple[str, str]]:
    """The sections of a test's outcome; what cannot be read as it is, for readers to name it."""
    try:
        whole = json.loads(str(outcome))
        sections = whole.pop("sections")
        # What was found for later tests stood beside the one section of its test.
        return [(str(each["section"]), json.dumps(each | whole)) for each in sections]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return [("", str(outcome))]


def m009_host_use(connection: sqlite3.Connection) -> None:
    """What the host did beside each step, as JSON; in the steps of older files nobody looked."""
    connection.execute("ALTER TABLE step ADD COLUMN host_use TEXT")


def m010_telemetry(connection: sqlite3.Connection) -> None:
    """What drives told of themselves: temperature, throttling, wear, what they wrote."""
    connection.execute(
        "CREATE TABLE telemetry (id INTEGER PRIMARY KEY, at_s REAL NOT NULL, drive TEXT NOT NULL, "
        "source TEXT NOT NULL, temperature_c REAL, host_read_bytes INTEGER, "
        "host_written_bytes INTEGER, nand_written_bytes INTEGER, media_errors INTEGER, "
        "percentage_used INTEGER, spare_percent INTEGER, unsafe_shutdowns INTEGER, "
        "power_on_hours INTEGER, critical_warning INTEGER, warning_minutes INTEGER, "
        "critical_minutes INTEGER, thermal_1_count INTEGER, thermal_2_count INTEGER, "
        "thermal_1_s INTEGER, thermal_2_s INTEGER, throttle_events INTEGER, throttling INTEGER, "
        "power_state INTEGER)"
    )


def m011_packed_seconds(connection: sqlite3.Connection) -> None:
    """Seconds as two blobs of their step; before, a row of table sample each, which took half of a file.

    The rows of an older file stay as they are, and are read as they are.
    """
    for table in ("step", "under_way_part"):
        for column in ("seconds", "second_histograms"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} BLOB")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    m001_initial,
    m002_notes,
    m003_imported,
    m004_disturbances,
    m005_under_way,
    m006_workloads,
    m007_resumptions,
    m008_outcomes,
    m009_host_use,
    m010_telemetry,
    m011_packed_seconds,
)
VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a new or older database to the current version, each step in its transaction.

    A process killed in between leaves a database of the version it had reached.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migration "
                "(number INTEGER PRIMARY KEY, name TEXT NOT NULL)"
            )
            migration(connection)
            connection.execute("INSERT INTO migration VALUES (?, ?)", (number, migration.__name__))
            connection.execute(f"PRAGMA user_version = {number}")


def open_new(path: Path, *, wait_s: float) -> sqlite3.Connection:
    """An empty file as a database of the current schema, whose readers are waited for that long.

    isolation_level None: transactions begin and end where the writer says. A rollback journal,
    so that a finished run is one file. EXTRA syncs the folder, too, after each commit: with FULL
    a power cut just after it could bring the journal back and so lose the step.
    """
    db = sqlite3.connect(path, isolation_level=None, timeout=wait_s)
    try:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _make_durable(db)
        migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def open_again(path: Path, *, wait_s: float) -> sqlite3.Connection:
    """A database of the current schema, to be written to as in ``open_new``.

    Raises:
        RunFileError: its schema is another.
    """
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=wait_s
    )
    try:
        _make_durable(db)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise RunFileError(
                f"{path} was begun by another tkperf (format {version}, this one writes {VERSION}): "
                "resume it with that one, or run anew"
            )
    except BaseException:
        db.close()
        raise
    return db


def _make_durable(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA synchronous = EXTRA")
    db.execute("PRAGMA foreign_keys = ON")
