"""The index of the library. The index stores rows of runs and batches in the user's cache, so that the server does not
need to read the run files at its next start.

A row belongs to one state of a file. Jobs of workers build the rows. If the index is damaged, or if another version of
tkperf wrote it, the index is built again. If the index cannot be stored, it is kept only until the server ends.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tkperf.model.decoding import make_msgpack_decoder
from tkperf.model.record import RunStatus
from tkperf.model.version import __version__
from tkperf.runfile.writers import FileStamp
from tkperf.system.output_files import find_cache_folder

FORMAT = 5
"""The version of the row format. Increase the number when the records change, or when the computation of the rows
changes. Rows in another format are built again.
"""

_MONTH = re.compile(r"\d{4}-\d{2}")


class HeadlineFigure(msgspec.Struct, frozen=True, array_like=True):
    """A headline figure. ``alarm`` means that the section of the figure did not reach steady state or did not
    complete.
    """

    label: str
    text: str
    alarm: bool


class Spark(msgspec.Struct, frozen=True, array_like=True):
    """The change of the rate in write saturation over time: the IOPS in equal parts of the duration of the test. None
    means that a part was not measured.
    """

    values: tuple[float | None, ...]
    text: str


class RunRow(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A run in the list of the library. An empty text means that the value is not known.

    Attributes:
        run_id: the ID of the run. Each file has this ID if its content states that it belongs to this run.
        tests: titles of the tests that have begun.
        state: the word for the state in ``tkperf status``. ``place`` is the position of a run that has not ended
            normally.
        level: the severity of the verdict, a ``NoteLevel``.
        entries: number of entries of the log.
        digest: a digest of the whole content. Files with the same digest are copies of each other.
        ranks: shortened and encoded ``RunFigures``, which the library decodes only for a ranking.
    """

    run_id: str
    name: str
    model: str
    serial: str
    firmware: str
    host: str
    tests: tuple[str, ...]
    profile: str
    started_utc: str
    state: str
    place: str
    verdict: str
    level: str
    reasons: tuple[str, ...]
    simulated: bool
    figures: tuple[HeadlineFigure, ...]
    spark: Spark | None
    entries: int
    digest: bytes
    capacity_bytes: int | None = None
    interface: str = ""
    form_factor: str = ""
    ranks: bytes = b""

    @property
    def is_running(self) -> bool:
        return self.state == RunStatus.RUNNING

    @property
    def month(self) -> str:
        found = _MONTH.match(self.started_utc)
        return found[0] if found else ""


class BatchRow(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A batch in the list of the library.

    Attributes:
        verdict, text: the progress of the drives in words.
        runs: names of the run files in the folder of the ledger, in the order of the drives.
        digest: a digest of the whole file.
    """

    batch_id: str
    name: str
    began_utc: str
    verdict: str
    text: str
    level: str
    is_running: bool
    runs: tuple[str, ...]
    digest: bytes


FileKey = tuple[int, int]
"""Device and inode."""


Row = RunRow | BatchRow | str
"""What the list of the library shows about a file: a run, a batch, or the reason why the file cannot be read."""
_DECODER = make_msgpack_decoder(Row)
_DAMAGED = (sqlite3.Error, msgspec.DecodeError, OSError)


def encode_row(row: Row) -> bytes:
    return msgspec.msgpack.encode(row)


def decode_row(content: bytes) -> Row:
    """Return a row that a worker built or that the index stored.

    Raises:
        msgspec.DecodeError: the row is damaged or has another format.
    """
    row: Row = _DECODER.decode(content)
    return row


def find_index_path(folders: Sequence[Path]) -> Path | None:
    """Return the path of the index for these folders, or None if there is no cache."""
    cache = find_cache_folder()
    if cache is None:
        return None
    names = "\0".join(sorted(map(str, folders))).encode(errors="surrogateescape")
    return cache / f"library-{hashlib.sha256(names).hexdigest()[:16]}.sqlite"


class Index:
    """A store of rows. The key of a row is the file from which the row was built.

    Args:
        path: the path of the index. None means that nothing is stored.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: dict[FileKey, tuple[FileStamp, Row]] = {}
        try:
            self._db = self._open()
        except _DAMAGED:
            self._db = self._make_again()

    def close(self) -> None:
        self._db.close()

    def find(self, stamp: FileStamp) -> Row | None:
        """Return the row of a file in this state, or None if there is no such row."""
        found = self.rows.get(stamp[:2])
        return found[1] if found is not None and found[0] == stamp else None

    def find_earlier(self, stamp: FileStamp) -> Row | None:
        """Return the newest row of a file. The row may belong to an earlier state of the file."""
        found = self.rows.get(stamp[:2])
        return None if found is None else found[1]

    def put(self, stamp: FileStamp, row: Row, *, kept: bool = True) -> None:
        """Add a row. ``kept`` means that the row is also stored for the next start, unless another server is writing to
        the index at the same time.
        """
        self.rows[stamp[:2]] = stamp, row
        if kept:
            values = (*map(str, stamp), encode_row(row))
            self._write("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?)", [values])

    def keep_only(self, keys: Iterable[FileKey]) -> None:
        """Remove the rows of all files that are not listed, because these files no longer exist."""
        gone = self.rows.keys() - set(keys)
        for key in gone:
            del self.rows[key]
        if gone:
            self._write("DELETE FROM file WHERE device = ? AND inode = ?", [tuple(map(str, key)) for key in gone])

    def _write(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with suppress(sqlite3.Error):
            self._db.executemany(sql, rows)

    def _open(self) -> sqlite3.Connection:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            isolation_level=None,
            timeout=0.1,  # the event loop has to wait for this call
            check_same_thread=False,  # several threads use the connection, but only one thread at a time
        )
        try:
            db.execute("PRAGMA synchronous = OFF")  # a damaged index is replaced by a new index
            db.execute("PRAGMA journal_mode = MEMORY")
            # The keys are texts, because the number of an inode may be too large for an integer in SQLite.
            db.execute(
                "CREATE TABLE IF NOT EXISTS file (device TEXT, inode TEXT, size TEXT, changed_ns TEXT, row BLOB, "
                "PRIMARY KEY (device, inode)) WITHOUT ROWID"
            )
            db.execute("CREATE TABLE IF NOT EXISTS maker (name TEXT PRIMARY KEY)")
            maker = f"{__version__} {FORMAT}"
            if db.execute("SELECT name FROM maker").fetchall() != [(maker,)]:
                db.executescript("DELETE FROM file; DELETE FROM maker")
                db.execute("INSERT INTO maker VALUES (?)", (maker,))
            self.rows = dict(_decode(db.execute("SELECT * FROM file")))
        except BaseException:
            db.close()
            raise
        return db

    def _make_again(self) -> sqlite3.Connection:
        self.rows = {}
        with suppress(OSError):
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        try:
            return self._open()
        except _DAMAGED:
            self._path = None
            return self._open()


def _decode(rows: Iterable[Sequence[str | bytes]]) -> Iterable[tuple[FileKey, tuple[FileStamp, Row]]]:
    for *numbers, content in rows:
        device, inode, size_bytes, changed_ns = map(int, numbers)
        assert isinstance(content, bytes)
        yield (device, inode), ((device, inode, size_bytes, changed_ns), decode_row(content))
