"""Limits for the time and memory that may be used to read a run file. The content of a file from an unknown source can
be far larger than the file.

Examples are pages that are listed many times, text that all rows share, compressed zeroes, an endless view in place of
a table, and a million warnings. With such content, the reader of a file of 2 MB could need gigabytes and hours.
docs/reference/run-file.md lists the limits. Each limit, except the limit of tables and indexes, is at least ten times
the amount that the largest run of 24 hours needs (tests/runfile/test_limits.py). If a file is larger than
USUAL_FILE_BYTES, its limits are larger in proportion. A run with 16 simultaneous loads counts as 17 runs. Each of its
steps has rows, seconds and histograms for each load and for their sum. The file of such a run is larger by the same
factor, and so are the limits.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from tkperf.model.errors import RunFileError
from tkperf.model.input_files import only_confined
from tkperf.model.units import GIB, MIB, drop_controls, format_capacity
from tkperf.runfile.schema import CONVERT
from tkperf.runfile.writers import is_being_written, journal_of, may_roll_back, others_can_lay

MOST_FILE_BYTES = 2 * GIB
USUAL_FILE_BYTES = 60_000_000
# If the file of a running run is larger, it is not copied to memory, because a copy needs twice the size of the file.
MOST_COPIED_BYTES = 200 * MIB

MOST_ROWS = {
    "run": 1000,
    "host": 100,
    "test": 200,
    "purge": 5000,
    "job": 61_000,
    "step": 61_000,
    "stream": 200_000,
    "under_way_stream": 64,
    "disturbance": 200_000,
    "verdict": 10_000,
    "outcome": 5000,
    "under_way": 100,
    "under_way_part": 20_000,
    "under_way_stream_part": 200_000,
    "telemetry": 250_000,
    "note": 10_000,
    "warning": 10_000,
    "resumption": 1000,
}
"""The limit for the number of rows in each table, for a file of the usual size."""
MOST_SECTIONS, MOST_DRIVES, MOST_DISTURBANCES_OF_A_STEP, MOST_LEFT_OUT = 1000, 256, 1000, 60_000
# A combination consists of up to 16 streams.
MOST_STREAMS_OF_A_STEP = 64
MOST_SECONDS = 2_000_000
# A view of a running run shows only the newest seconds, because records of all seconds of a long step could need
# gigabytes. A stored part of a running step contains about a minute. If the previous reading was long ago, the view
# shows only the newest steps second by second.
MOST_NEWEST_SECONDS, MOST_NEWEST_STEPS = 1200, 60
# The limit for the number of workloads, counted in each section. Each workload is a row of tables and a line of charts.
# With five rounds of a minute each, 24 hours contain 288 workloads. A sweep may have 1,024 workloads, which take 85
# hours.
MOST_CELLS = 3700
# Two limits: one for the number of steps multiplied by the number of sections, and one for the number of steps
# multiplied by the number of workloads. A run with many sections or workloads has few steps for each of them. The
# busiest day has 6,000 steps in 43 sections. An import may have 1,000 sections with 12 steps each, and a sweep 1,024
# workloads with 29 rounds each.
MOST_STEPS_TIMES_SECTIONS, MOST_STEPS_TIMES_WORKLOADS = 12_000_000, 30_000_000
# The limit for the number of curves and tables in the plans of all tests. Each curve or table is counted once for each
# workload, or step, of its section.
MOST_PLANNED_VALUES, MOST_PLANNED_POINTS = 100_000, 2_000_000
# The limit for the number of tables and indexes in the database. A run file has 18 tables and 6 indexes.
_MOST_TABLES = 100

# Limits of the characters in a value. The first limit is for most texts, and the second limit for texts that contain
# JSON or a fio job.
_TEXT_CHARACTERS = 64 * 1024
_LONG_TEXTS = {
    ("run", "value"): MIB,
    ("host", "facts"): MIB,
    ("test", "plan"): MIB,
    ("job", "text"): MIB,
    ("outcome", "outcome"): 256 * 1024,
}
# The limit for names is smaller, because many sentences, tables and charts repeat them. The longest name is the path of
# a device.
_NAMES, _NAME_CHARACTERS = frozenset({"name", "section", "drive", "source", "code", "test"}), 4096
# The greatest number of bytes in a value that SQLite returns. The largest value in a run file is the last document of
# fio for a thousand threads.
_VALUE_BYTES = 64 * MIB

# The memory for one reading and for the results that are computed from it. bench/hostile_files.py measured the memory
# for a row of each table, for a histogram with its filled buckets, and for each character of JSON. A small row needs
# about 1 KB.
MEMORY_BYTES = 450_000_000
ROW_BYTES = {"step": 5000, "telemetry": 600, "verdict": 5000, "outcome": 8000, "test": 8000, "resumption": 4000}
_SMALL_ROW_BYTES, _BUCKET_BYTES, _JSON_BYTES = 1000, 24, 24
_JSON_COLUMNS = (
    "value",
    "facts",
    "outcome",
    "verdict",
    "plan",
    "host_use",
    "repeated",
    "repeated_ids",
    "added",
    "changes",
    "command_line",
    "block_mix",
    "zones",
)
# Limits for the number of SQLite operations and for the number of unpacked bytes. These limits apply to all readings
# together, because operations and unpacking need time.
WORK, WORK_PER_BYTE = 50_000_000, 100
UNPACKED_BYTES, UNPACKED_PER_BYTE = 256 * MIB, 40

LOCKED_S = 10.0
"""The longest time in seconds that a reader waits for the lock of another program."""

_HEADER = b"SQLite format 3\0"
# Write version and read version of the file format, at byte 18 of the header. 2 means WAL mode.
_HEADER_BYTES, _WAL_AT, _WAL = 20, 18, b"\2"
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_WORK_AT_ONCE = 10_000


class ExcessError(Exception):
    """A file contains more than a run can produce.

    No single row is the cause, so no row is omitted. The text names the kind of content that exceeds its limit, with
    the amount and the limit.
    """


def most_characters(table: str, column: str) -> int:
    """Return the greatest allowed length of a text in a column, in characters."""
    return _LONG_TEXTS.get((table, column), _NAME_CHARACTERS if column in _NAMES else _TEXT_CHARACTERS)


class Meter:
    """A counter of the data that is read from a file, and of the time and memory that the reading needs.

    Raises:
        ExcessError: any method that counts raises this error when a limit is exceeded.
    """

    def __init__(self, file_bytes: int) -> None:
        self._file_bytes = file_bytes
        self._share = max(1.0, file_bytes / USUAL_FILE_BYTES)
        self._work_left = WORK + WORK_PER_BYTE * file_bytes
        self._unpacked_left = UNPACKED_BYTES + UNPACKED_PER_BYTE * file_bytes
        # The types of the values and the positions of the texts in the last row of each table.
        self._types: dict[str, tuple[type, ...]] = {}
        self._texts: dict[str, list[int]] = {}
        self.begin()

    def begin(self) -> None:
        """Begin another reading. The memory of the previous reading then counts as free."""
        self._memory_left = MEMORY_BYTES * self._share
        self._seconds_left = self.most(MOST_SECONDS)

    @property
    def memory_left(self) -> float:
        """Return the memory in bytes that this reading may still use."""
        return self._memory_left

    def count_log(self, log_bytes: float) -> None:
        """Count the memory of the log that earlier readings returned and that the caller still keeps."""
        self._use(log_bytes)

    def most(self, usual: int) -> int:
        """Return the limit for this file. ``usual`` is the limit for a file of the usual size."""
        return int(usual * self._share)

    def watch(self, db: sqlite3.Connection) -> None:
        db.row_factory = sqlite3.Row
        db.set_progress_handler(self._tick, _WORK_AT_ONCE)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)

    @property
    def exhausted(self) -> bool:
        """Return whether the meter stopped SQLite. The error that SQLite raises does not contain this reason."""
        return self._work_left < 0

    def _tick(self) -> bool:
        self._work_left -= _WORK_AT_ONCE
        return self.exhausted

    def count_row(self, table: str, row: Mapping[str, Any]) -> None:
        """Count a row of a table. ``row`` contains the values, keyed by the names of the columns."""
        cost = ROW_BYTES.get(table, _SMALL_ROW_BYTES)
        values = tuple(row.values())
        types = tuple(map(type, values))
        if types != self._types.get(table):  # nearly all rows of a table have the same types
            self._types[table] = types
            self._texts[table] = [at for at, type_ in enumerate(types) if type_ is str]
        names = tuple(row)
        for at in self._texts[table]:
            column, value = names[at], values[at]
            most = most_characters(table, column)
            if len(value) > most:
                raise ExcessError(
                    f"table {table}, column {column} contains a text of {len(value):,} characters, but at most "
                    f"{most:,} are allowed"
                )
            cost += len(value) * (_JSON_BYTES if column in _JSON_COLUMNS else 1)
        self._use(cost)

    def count_step(self, job_characters: int, filled: int) -> None:
        """Count the memory for the job of a step and for the filled buckets of the step's histograms."""
        self._use(job_characters + _BUCKET_BYTES * filled)

    def count_seconds(self, seconds: int) -> None:
        """Count seconds that stay in memory until the next reading of the run."""
        self._seconds_left -= seconds
        if self._seconds_left < 0:
            most = self.most(MOST_SECONDS)
            raise ExcessError(
                f"the steps of the run contain the values of more than {most:,} seconds, which is the limit"
            )

    def unpack(self, bytes_: int) -> None:
        """Count the unpacked bytes of a blob."""
        self._unpacked_left -= bytes_
        if self._unpacked_left < 0:
            raise ExcessError(
                "the values of each second and the histograms of the run exceed the limit of "
                f"{self._of_its_size(UNPACKED_BYTES, UNPACKED_PER_BYTE)} when they are unpacked"
            )

    def _of_its_size(self, fixed: int, per_byte: int) -> str:
        return format_capacity(fixed + per_byte * self._file_bytes)

    def _use(self, memory_bytes: float) -> None:
        self._memory_left -= memory_bytes
        if self._memory_left < 0:
            most = format_capacity(self.most(MEMORY_BYTES))
            raise ExcessError(f"in total, the rows of the run need more memory than the limit of {most}")


def open_metered(
    path: Path, *, content: bytes | None = None, locked_s: float | None = None
) -> tuple[sqlite3.Connection, Meter]:
    """Open the database of a run file, and check the database before its content is used.

    Args:
        content: all bytes of the file, for a caller that must not open the file or its journal again.
        locked_s: how long to wait for the lock of another program, in seconds. None means ``LOCKED_S``.
    """
    status = _require_database(path)
    # The file may have become larger after it was read.
    meter = Meter(status.st_size if content is None else len(content))
    with ExitStack() as on_refusal:
        if content is None:
            with only_confined():
                db = on_refusal.enter_context(closing(_open(path, status, LOCKED_S if locked_s is None else locked_s)))
        else:
            db = on_refusal.enter_context(closing(sqlite3.connect(":memory:", isolation_level=None)))
            if content:
                db.deserialize(content)
        db.text_factory = text_or_bytes
        meter.watch(db)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        db.execute("PRAGMA mmap_size = 0")
        _require_plain_tables(db, path)
        on_refusal.pop_all()  # the database is not refused, so it remains open
    return db, meter


def _open(path: Path, status: os.stat_result, locked_s: float) -> sqlite3.Connection:
    """Open a database by the name of its file.

    SQLite must not receive a journal that another user created. As root, SQLite would give this journal to the owner of
    the database, even if SQLite only reads the database. SQLite would later roll the journal back like a journal of its
    own.
    """
    real = path.resolve()
    found = os.path.lexists(journal_of(real))
    if found and not may_roll_back(real, status):
        raise RunFileError(
            f"a tkperf process was killed while it wrote {path}, and another user may have written "
            "the journal of this file. If you know who wrote both files, copy them to a folder that "
            "only you can write to"
        )
    # If possible, the database is opened for writing, because SQLite must roll the journal back after a writer was
    # killed.
    writable = found and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    options = "mode=rw" if writable else "mode=ro"
    if not found and others_can_lay(real) and not is_being_written(path):
        # No process is writing the file, so the content cannot change. With immutable, SQLite ignores a journal that
        # another user creates after this check.
        options += "&immutable=1"
    return sqlite3.connect(f"{real.as_uri()}?{options}", uri=True, timeout=locked_s, isolation_level=None)


def text_or_bytes(raw: bytes) -> str | bytes:
    """Return the text, or the bytes if they are not text. Such bytes make only their own row unreadable, while sqlite3
    itself would reject the whole file.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _require_database(path: Path) -> os.stat_result:
    """Return the status of the file. Without this check, SQLite would wait forever if the path leads to a pipe, or to
    certain files under /proc.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # opening a device can have a side effect, such as rewinding a tape
        raise RunFileError(f"{path} is not a run file of tkperf, because it is not a regular file")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_size > MOST_FILE_BYTES:
            raise RunFileError(
                f"{path} is not a run file of tkperf, because no run file is larger than "
                f"{format_capacity(MOST_FILE_BYTES)}"
            )
        try:
            header = os.read(descriptor, _HEADER_BYTES)
        except BlockingIOError:
            header = b"?"
    finally:
        os.close(descriptor)
    if header and not header.startswith(_HEADER):
        raise RunFileError(f"{path} is not a run file of tkperf{CONVERT}")
    # SQLite would create two additional files in the folder of the database, even if SQLite only reads the database
    if _WAL in header[_WAL_AT:]:
        raise RunFileError(
            f"{path} is a database in WAL mode, which tkperf never uses. Make the file readable with: sqlite3 {path} "
            "'PRAGMA journal_mode=DELETE'"
        )
    real = path.resolve()
    _require_own_journal(journal_of(real))
    for log in (real.with_name(real.name + ending) for ending in ("-wal", "-shm")):
        if os.path.lexists(log):  # SQLite would use the content of this file as part of the database
            raise RunFileError(f"{log} does not belong to tkperf. Move this file away to read the run file")
    return status


def _require_own_journal(journal: Path) -> None:
    """Refuse a journal that names another file, because SQLite would remove that file. Journals of tkperf never name
    another file.
    """
    try:
        descriptor = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        status = os.fstat(descriptor)
        size = len(_SUPER_JOURNAL)
        is_odd = not stat.S_ISREG(status.st_mode) or (
            status.st_size >= size and os.pread(descriptor, size, status.st_size - size) == _SUPER_JOURNAL
        )
    finally:
        os.close(descriptor)
    if is_odd:
        raise RunFileError(f"{journal} is not a journal of tkperf. Move this file away to read the run file")


def _require_plain_tables(db: sqlite3.Connection, path: Path) -> None:
    """Refuse views, triggers and computed tables, because reading them may never end."""
    tables = []
    (count,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    require_few(count, _MOST_TABLES, "tables and indexes")
    for kind, name, root in db.execute("SELECT type, name, rootpage FROM sqlite_master"):
        shown = drop_controls(str(name))[:40]
        if kind not in ("table", "index") or not root:
            raise RunFileError(f"{path} is not a run file of tkperf, because {shown} is not a plain table")
        if kind == "table":
            tables.append(name)
    for name in tables:
        (hidden,) = db.execute("SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden", (name,)).fetchone()
        if hidden:
            shown = drop_controls(str(name))[:40]
            raise RunFileError(f"{path} is not a run file of tkperf, because table {shown} has computed columns")


def require_few(count: int, most: int, what: str) -> None:
    """Raise ExcessError if a number is above its limit."""
    if count > most:
        raise ExcessError(f"the run file has {count:,} {what}, but at most {most:,} are allowed")


def require_few_steps(steps: int, parts: int, most_product: int, what: str) -> None:
    """Raise ExcessError if the run has too many steps for its number of sections or workloads."""
    if steps * parts > most_product:
        raise ExcessError(
            f"the run file contains {steps:,} steps and {parts:,} {what}. A run with that number of {what} may contain "
            f"at most {most_product // parts:,} steps"
        )


def require_rows(db: sqlite3.Connection, table: str, found: int, meter: Meter) -> None:
    """Raise ExcessError if a table contains more rows than a run can have."""
    most = meter.most(MOST_ROWS[table])
    if found <= most:
        return
    count = f"more than {most:,}"
    # In a damaged table, the number of rows is not known. The meter stops a count that needs too much work. Without the
    # WHERE clause, SQLite would count all rows in a single instruction, and would not call the meter meanwhile.
    with suppress(sqlite3.Error):
        (rows,) = db.execute(
            f"SELECT count(*) FROM {table} NOT INDEXED WHERE rowid >= ?",  # noqa: S608 - own names only
            (-(1 << 63),),
        ).fetchone()
        count = f"{rows:,}"
    raise ExcessError(f"table {table} has {count} rows, but a run has at most {most:,}")
