"""Limits for the cost of reading a run file, by its size: a stranger's file can expand far beyond it.

Pages listed many times, text shared by all rows, zeroes packed to nothing, an endless view in place of
a table: a file of 2 MB could take gigabytes and hours. The files of tkperf stay far
below these limits; docs/run-file.md lists them.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from tkperf.model.errors import RunFileError
from tkperf.model.units import GIB, MIB, format_capacity
from tkperf.runfile.writers import is_being_written, journal_of, may_roll_back, others_can_lay

MOST_FILE_BYTES = 2 * GIB
# For one reading, in memory at once: values, text and blobs, JSON; unpacked histograms with
# the texts of jobs, which steps share.
VALUES, VALUES_PER_BYTE = 1 << 20, 2
TEXT_BYTES, TEXT_PER_BYTE = 16 * MIB, 8
JSON_BYTES, JSON_PER_BYTE = 4 * MIB, 1.25
STEP_BYTES, STEPS_PER_BYTE = 16 * MIB, 16
# For all readings together, because they take time: operations of SQLite, seconds unpacked.
WORK, WORK_PER_BYTE = 50_000_000, 100
UNPACKED_BYTES, UNPACKED_PER_BYTE = 256 * MIB, 200
MOST_TESTS, MOST_SECTIONS, MOST_RESUMPTIONS = 100, 1000, 1000

_HEADER = b"SQLite format 3\0"
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_JSON_COLUMNS = ("value", "facts", "outcome", "verdict")
_WORK_AT_ONCE = 10_000
_SIZED = (str, bytes)  # str | bytes would create a new object for each value


class ExcessError(Exception):
    """A file contains more than its size allows: no single row is the cause, so none is left out."""


class Meter:
    """Counts the data read from one file, and its cost.

    Raises:
        ExcessError: from any reading, once the cost is too high.
    """

    def __init__(self, file_bytes: int) -> None:
        self._file_bytes = file_bytes
        self._work_left = WORK + WORK_PER_BYTE * file_bytes
        self._unpacked_left = UNPACKED_BYTES + UNPACKED_PER_BYTE * file_bytes
        self.begin()

    def begin(self) -> None:
        """Begin another reading; memory of the one before counts as free."""
        self._values_left = VALUES + VALUES_PER_BYTE * self._file_bytes
        self._text_left = TEXT_BYTES + TEXT_PER_BYTE * self._file_bytes
        self._json_left = JSON_BYTES + JSON_PER_BYTE * self._file_bytes
        self._steps_left = STEP_BYTES + STEPS_PER_BYTE * self._file_bytes

    def watch(self, db: sqlite3.Connection) -> None:
        db.row_factory = self._row
        db.set_progress_handler(self._tick, _WORK_AT_ONCE)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(MIB, min(self._file_bytes * 4, GIB)))

    @property
    def exhausted(self) -> bool:
        """Return whether the meter stopped SQLite: SQLite's own error does not give the reason."""
        return self._work_left < 0

    def _tick(self) -> bool:
        self._work_left -= _WORK_AT_ONCE
        return self.exhausted

    def count_step(self, step_bytes: int) -> None:
        """Count a step's histograms and the text of its job."""
        self._steps_left -= step_bytes
        self._require_budgets()

    def unpack(self, values: int, bytes_: int) -> None:
        """Count the seconds of a blob: values to keep, and the unpacked bytes."""
        self._values_left -= values
        self._unpacked_left -= bytes_
        self._require_budgets()

    def _row(self, cursor: sqlite3.Cursor, values: tuple[object, ...]) -> sqlite3.Row:
        self._values_left -= len(values)
        for index, value in enumerate(values):
            if isinstance(value, _SIZED):
                self._account(cursor.description[index][0], value)
        self._require_budgets()
        return sqlite3.Row(cursor, values)

    def _require_budgets(self) -> None:
        budgets = (
            self._values_left,
            self._text_left,
            self._json_left,
            self._steps_left,
            self._unpacked_left,
        )
        if min(budgets) < 0:
            raise ExcessError(f"it says more than {format_capacity(self._file_bytes)} can hold")

    def _account(self, column: str, value: str | bytes) -> None:
        self._text_left -= len(value)
        if isinstance(value, str) and column in _JSON_COLUMNS:
            self._json_left -= len(value)


def open_metered(path: Path, *, content: bytes | None = None) -> tuple[sqlite3.Connection, Meter]:
    """Open a run file's database, before anything in it is trusted.

    Args:
        content: all its bytes, for a caller that must not look at its name and its neighbours again.

    Raises:
        RunFileError: it cannot be a run file.
        OSError, sqlite3.Error, ExcessError: it cannot be read, or does not consist of plain tables.
    """
    status = _require_database(path)
    meter = Meter(status.st_size)
    if content is None:
        db = _open(path, status)
    else:
        db = sqlite3.connect(":memory:", isolation_level=None)
        if content:
            db.deserialize(content)
    db.text_factory = text_or_bytes
    try:
        meter.watch(db)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        db.execute("PRAGMA mmap_size = 0")
        _require_plain_tables(db)
    except BaseException:
        db.close()
        raise
    return db, meter


def _open(path: Path, status: os.stat_result) -> sqlite3.Connection:
    """Open a database by its name.

    SQLite must not get a journal of another user: as root it would give the journal to the owner of
    the database, even if it only reads the database, and later roll it back as its own.
    """
    real = path.resolve()
    found = os.path.lexists(journal_of(real))
    if found and not may_roll_back(real, status):
        raise RunFileError(
            f"{path} was left by a kill, and another user can have written the journal next to it: copy both "
            "to a folder that only you may write to, if you know who wrote them"
        )
    # Read-write if allowed: after a kill SQLite must roll the journal back.
    writable = found and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    options = "mode=rw" if writable else "mode=ro"
    if not found and others_can_lay(real) and not is_being_written(path):
        options += (
            "&immutable=1"  # it has no writer, and SQLite must not read a journal that appears now
        )
    return sqlite3.connect(f"{real.as_uri()}?{options}", uri=True, timeout=10, isolation_level=None)


def text_or_bytes(raw: bytes) -> str | bytes:
    """Return text, or bytes that are no text: these cost only their row; sqlite3 itself would give up the file."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _require_database(path: Path) -> os.stat_result:
    """Return the file's status. SQLite itself would wait for the end of a pipe or of a file under /proc."""
    if not stat.S_ISREG(path.stat().st_mode):  # to open a device may set something off
        raise RunFileError(f"{path} is not a run file of tkperf: it is no regular file")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_size > MOST_FILE_BYTES:
            raise RunFileError(
                f"{path} is not a run file of tkperf: none is larger than "
                f"{format_capacity(MOST_FILE_BYTES)}"
            )
        try:
            header = os.read(descriptor, len(_HEADER))
        except BlockingIOError:
            header = b"?"
    finally:
        os.close(descriptor)
    if header not in (b"", _HEADER):
        raise RunFileError(f"{path} is not a run file of tkperf")
    real = path.resolve()
    _require_own_journal(journal_of(real))
    for log in (real.with_name(real.name + ending) for ending in ("-wal", "-shm")):
        if os.path.lexists(log):  # SQLite would use its content as the file's
            raise RunFileError(f"{log} is not of tkperf: move it away to read the run file")
    return status


def _require_own_journal(journal: Path) -> None:
    """Refuse a journal that names another file, which SQLite would remove. tkperf's journals never do."""
    try:
        descriptor = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        status = os.fstat(descriptor)
        size = len(_SUPER_JOURNAL)
        is_odd = not stat.S_ISREG(status.st_mode) or (
            status.st_size >= size
            and os.pread(descriptor, size, status.st_size - size) == _SUPER_JOURNAL
        )
    finally:
        os.close(descriptor)
    if is_odd:
        raise RunFileError(f"{journal} is no journal of tkperf: move it away to read the run file")


def _require_plain_tables(db: sqlite3.Connection) -> None:
    """Refuse views, triggers and computed tables: reading them may never end."""
    tables = []
    for kind, name, root in db.execute("SELECT type, name, rootpage FROM sqlite_master"):
        if kind not in ("table", "index") or not root:
            raise ExcessError(f"{name} is not a plain table")
        if kind == "table":
            tables.append(name)
    for name in tables:
        (hidden,) = db.execute(
            "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden", (name,)
        ).fetchone()
        if hidden:
            raise ExcessError(f"table {name} has columns that are computed")


def require_few(count: int, most: int, what: str) -> None:
    """Refuse too many: each test and section is a chapter with charts in a report.

    Raises:
        ExcessError: no suite has as many.
    """
    if count > most:
        raise ExcessError(f"{count:,} {what}, a run has {most:,} at most")
