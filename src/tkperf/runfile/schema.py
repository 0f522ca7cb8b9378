"""The schema of a run file. docs/reference/run-file.md explains the tables."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tkperf.model.errors import RunFileError
from tkperf.model.units import drop_controls
from tkperf.runfile.writers import journal_of

# With the id "TKPF", file(1) and tkperf can distinguish a run file from any other database.
APPLICATION_ID = 0x544B5046
VERSION = 1
HOST_ID = 1
"""The row number of the host that measures. Several hosts would have several rows, each with its own steps and
readings.
"""

_WORKLOAD = """
    access TEXT NOT NULL, read_percent INTEGER NOT NULL, block_size_bytes INTEGER NOT NULL,
    jobs INTEGER NOT NULL, io_depth INTEGER NOT NULL, block_mix TEXT, zones TEXT, offered_iops REAL,
    arrival TEXT, compressible_percent INTEGER, region_offset_bytes INTEGER, region_length_bytes INTEGER
"""
_PLACE = f"""
    test_id INTEGER NOT NULL REFERENCES test, section TEXT NOT NULL, kind TEXT NOT NULL,
    number INTEGER NOT NULL, position INTEGER NOT NULL, {_WORKLOAD}, planned_s REAL,
    started_s REAL NOT NULL, streams INTEGER
"""


def _stats_of(*sides: str) -> str:
    return ", ".join(
        f"{side}_ios INTEGER NOT NULL, {side}_bytes INTEGER NOT NULL, {side}_latency_ios INTEGER NOT NULL, "
        f"{side}_latency_sum_ns INTEGER NOT NULL, {side}_latency_min_ns INTEGER, "
        f"{side}_latency_max_ns INTEGER, {side}_histogram BLOB"
        for side in sides
    )


# The load of a stream, with the columns of a load that a row of table step does not have.
_STREAM = f"""
    name TEXT NOT NULL, delay_s REAL NOT NULL, {_WORKLOAD}, trims INTEGER NOT NULL,
    random_percent INTEGER, burst_ios INTEGER, burst_pause_s REAL, flush_every INTEGER
"""
_TEXTS = "id INTEGER PRIMARY KEY, code TEXT NOT NULL, text TEXT NOT NULL, test TEXT, at_s REAL"

# Every row of a table has a row number. With these numbers, a reader finds the rows before and after a damaged page.
_TABLES = {
    "run": "key TEXT PRIMARY KEY, value TEXT NOT NULL",
    "host": "id INTEGER PRIMARY KEY, facts TEXT",
    "test": """
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, started_s REAL NOT NULL,
        ended_s REAL, plan TEXT
    """,
    # The column ``sequence`` numbers purges, steps, verdicts and outcomes together, so it defines the order of the log.
    "purge": """
        sequence INTEGER PRIMARY KEY, test_id INTEGER NOT NULL REFERENCES test, section TEXT NOT NULL,
        started_s REAL NOT NULL, duration_s REAL NOT NULL, method TEXT NOT NULL, note TEXT
    """,
    "job": "id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE",
    "step": f"""
        sequence INTEGER PRIMARY KEY, host_id INTEGER NOT NULL REFERENCES host,
        job_id INTEGER NOT NULL REFERENCES job, {_PLACE},
        duration_s REAL NOT NULL, gap_s REAL, planned_pause INTEGER NOT NULL,
        foreign_read_bytes INTEGER, foreign_write_bytes INTEGER, watched INTEGER,
        cpu_busiest_thread_percent REAL, cpu_all_threads_percent REAL, host_limited INTEGER NOT NULL,
        rates_known INTEGER NOT NULL, host_use TEXT, {_stats_of("read", "write")},
        seconds BLOB, second_histograms BLOB, fio_json BLOB
    """,
    # The streams of a step that run together. A single load also has one row if it trims, flushes, pauses or is partly
    # random.
    "stream": f"""
        step_sequence INTEGER NOT NULL REFERENCES step, number INTEGER NOT NULL, {_STREAM},
        host_limited INTEGER NOT NULL, {_stats_of("read", "write", "trim", "flush")},
        seconds BLOB, second_histograms BLOB, PRIMARY KEY (step_sequence, number)
    """,
    "disturbance": """
        step_sequence INTEGER NOT NULL REFERENCES step, number INTEGER NOT NULL, code TEXT NOT NULL,
        text TEXT NOT NULL, started_s REAL NOT NULL, duration_s REAL NOT NULL, share REAL,
        PRIMARY KEY (step_sequence, number)
    """,
    "verdict": """
        sequence INTEGER PRIMARY KEY, test_id INTEGER NOT NULL REFERENCES test, section TEXT NOT NULL,
        number INTEGER NOT NULL, reached INTEGER NOT NULL, verdict TEXT NOT NULL
    """,
    "outcome": """
        sequence INTEGER PRIMARY KEY, test_id INTEGER NOT NULL REFERENCES test, section TEXT NOT NULL,
        outcome TEXT NOT NULL
    """,
    # The step that has begun but not ended, and the seconds of this step so far. Each row contains about a minute.
    "under_way": f"host_id INTEGER PRIMARY KEY REFERENCES host, {_PLACE}, planned_bytes INTEGER",
    "under_way_part": """
        number INTEGER PRIMARY KEY, host_id INTEGER NOT NULL REFERENCES under_way,
        seconds BLOB, second_histograms BLOB
    """,
    # The streams of the running step, and the seconds of each stream in each stored part.
    "under_way_stream": f"number INTEGER PRIMARY KEY, {_STREAM}",
    "under_way_stream_part": """
        part_number INTEGER NOT NULL REFERENCES under_way_part, name TEXT NOT NULL,
        seconds BLOB, second_histograms BLOB, PRIMARY KEY (part_number, name)
    """,
    "telemetry": """
        id INTEGER PRIMARY KEY, host_id INTEGER NOT NULL REFERENCES host, at_s REAL NOT NULL,
        drive TEXT NOT NULL, source TEXT NOT NULL, temperature_c REAL, host_read_bytes INTEGER,
        host_written_bytes INTEGER, nand_written_bytes INTEGER, media_errors INTEGER,
        percentage_used INTEGER, spare_percent INTEGER, unsafe_shutdowns INTEGER,
        power_on_hours INTEGER, critical_warning INTEGER, warning_minutes INTEGER,
        critical_minutes INTEGER, thermal_1_count INTEGER, thermal_2_count INTEGER,
        thermal_1_s INTEGER, thermal_2_s INTEGER, throttle_events INTEGER, throttling INTEGER,
        power_state INTEGER
    """,
    # Facts that must be recorded before an action, such as a password that tkperf sets on a drive
    "note": _TEXTS,
    "warning": _TEXTS,
    "resumption": """
        number INTEGER PRIMARY KEY, resumed_utc TEXT NOT NULL, stopped_s REAL NOT NULL,
        resumed_s REAL NOT NULL, status TEXT NOT NULL, because TEXT, goes_on TEXT NOT NULL, test TEXT,
        test_id INTEGER REFERENCES test, section TEXT, round_number INTEGER, set_aside_from INTEGER,
        set_aside_to INTEGER, again TEXT NOT NULL, cut_off TEXT,
        cut_off_written_bytes INTEGER NOT NULL, repeated TEXT NOT NULL, repeated_ids TEXT NOT NULL,
        added TEXT NOT NULL, changes TEXT NOT NULL, command_line TEXT NOT NULL
    """,
}
# The index also serves as a list of all steps if rows of the table are lost.
_INDEX = "CREATE INDEX step_by_test ON step (test_id, section, kind, number, position)"

_EMPTY = (
    "A tkperf that was killed before its run began leaves such a file. You may delete the file. If a file {journal} "
    "exists, delete it too"
)
CONVERT = "; 'tkperf import' makes run files from the results of fio and of TKperf"
"""The advice that a message contains if a file is not a run file."""


def create_tables(db: sqlite3.Connection) -> None:
    """Turn an empty database into a run file, in one transaction."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for table, columns in _TABLES.items():
            db.execute(f"CREATE TABLE {table} ({' '.join(columns.split())})")
        db.execute(_INDEX)
        db.execute(f"PRAGMA user_version = {VERSION}")


def require_schema(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database that is not a run file, and a run file of another format."""
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        is_empty = path.stat().st_size == 0
        reason = f": it is empty. {_EMPTY.format(journal=journal_of(path.resolve()))}" if is_empty else CONVERT
        raise RunFileError(f"{path} is not a run file of tkperf{reason}")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    # Formats 1 to 11, before the first release, all had a table ``migration``.
    unreleased = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'migration'").fetchone()
    if version == VERSION and not unreleased:
        return
    try:
        (by,) = db.execute("SELECT value FROM run WHERE key = 'tkperf_version'").fetchone()
    except (sqlite3.Error, TypeError):
        by = "of a version that it does not name"
    by = drop_controls(str(by).strip('"'))[:40]
    if unreleased or version < VERSION:
        raise RunFileError(
            f"{path} was written by tkperf {by} in a format that was never released, and this version of "
            f"tkperf reads only format {VERSION}. Use the version that wrote the file, or measure again"
        )
    raise RunFileError(
        f"{path} was written by tkperf {by}, which is newer (format {version}, but this version of tkperf "
        f"reads format {VERSION}). Update tkperf"
    )
