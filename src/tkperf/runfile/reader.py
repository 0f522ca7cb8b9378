"""The reader of a run file. The reader returns the records as they were written, and returns samples on request."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from tkperf.model.choices import RUN_FILE_SUFFIX
from tkperf.model.errors import LockedRunFileError, RunFileError, closest, reason_of
from tkperf.model.input_files import require_confined
from tkperf.model.measurement import NewestSamples, Sample, Seconds, samples_of
from tkperf.model.record import LeftOut, LogEntry, RunRecord, StepRecord, TestRecord
from tkperf.model.units import format_capacity
from tkperf.runfile.columns import (
    SECOND_BYTES,
    decode_newest_samples,
    decode_samples,
    decode_seconds,
    decompress_output,
)
from tkperf.runfile.limits import (
    MOST_COPIED_BYTES,
    MOST_NEWEST_SECONDS,
    MOST_NEWEST_STEPS,
    MOST_SECONDS,
    MOST_STREAMS_OF_A_STEP,
    ExcessError,
    Meter,
    open_metered,
    require_few,
)
from tkperf.runfile.log_rows import count_samples
from tkperf.runfile.row_records import BAD_ROW
from tkperf.runfile.run_rows import RunRows
from tkperf.runfile.salvage import find_read_cause, is_busy, require_damage
from tkperf.runfile.schema import require_schema
from tkperf.runfile.step_rows import step_name, with_seconds_of_parts, with_stream_seconds
from tkperf.runfile.writers import FileStamp, is_being_written, journal_of, read_own, require_own, state_of
from tkperf.runner.events import Delta, Outline

# No row of a log has a greater number, because this is the greatest number that SQLite allows.
_AFTER_ALL = 2**63 - 1


class RunFile:
    """A run file opened for reading. Another process may still write the file, or its writer may have been killed.

    With ``briefly``, a file that is being written is copied to memory, so that its writer waits only for the copy, and
    not until a long run has been read. A very large file is not copied. With ``own``, the caller will act on the
    content of the file. The content is then read once, together with ``state``, and only if no other user can have
    written the file. ``locked_s`` is the time to wait for another program's lock. None means ten seconds.

    Raises:
        RefusedError: another user may have written the file (only with ``own``).
        RunFileError: the file is missing, unreadable, damaged as a whole, not a run file, or of another format.
    """

    def __init__(self, path: Path, *, briefly: bool = False, own: bool = False, locked_s: float | None = None) -> None:
        self._path = path
        self._meter = Meter(0)
        self._written_when_copied: bool | None = None
        with self._guard():
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null character
                raise RunFileError(f"there is no run file {path}{_hint(path)}") from None
            if stat.S_ISDIR(status.st_mode):
                raise RunFileError(f"{path} is a folder: name a run file in it")
            content: bytes | None = None
            self.state = state_of(status)
            if own:
                content, self.state = _take_own(path, status)
            self._db, self._meter = open_metered(path, content=content, locked_s=locked_s)
            try:
                require_schema(self._db, path)
                if briefly and path.stat().st_size <= MOST_COPIED_BYTES and is_being_written(path):
                    self._written_when_copied = True
                    content = _read_at_once(self._db, path)
                    self._db.close()
                    self._db, self._meter = open_metered(path, content=content)
                self._db.execute("PRAGMA query_only = ON")
            except BaseException:
                # Without this call, the file would remain open, and locked for its writer, as long as the exception
                # exists.
                self._db.close()
                raise
        self._rows = RunRows(self._db, self._meter)
        # the seconds are stored, because both results and pages request them
        self._seconds_read: dict[str, tuple[Seconds, ...]] = {}
        self._kept_seconds = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def record(self, *, histograms: bool = True) -> RunRecord:
        """Return the whole run. The steps contain neither samples nor the output of fio.

        An unreadable row is omitted and reported in ``left_out``. All other rows are returned. If ``histograms`` is
        False, the histograms of all steps are empty. This saves most of the time, because histograms are slow to
        unpack.
        """
        self._seconds_read.clear()
        self._kept_seconds = 0
        with self._reading(histograms=histograms) as (self._rows, record):
            return record

    def delta(self, since: Delta | None = None) -> Delta:
        """Return the rows and seconds that were added to the file after an earlier reading. Another reader may have
        made this earlier reading.

        The limits apply to the logs of all readings together, because the caller keeps the logs of the earlier
        readings.
        """
        after, after_part = (0, 0) if since is None else (since.sequence, since.part)
        log_bytes = 0.0 if since is None else since.log_bytes
        with self._reading(after, log_bytes=log_bytes) as (rows, record):
            # The parts of each step are numbered from 1, so all parts of a new step must be read.
            begun = _under_way_since(record)
            if since is not None and begun != since.begun_s:
                after_part = 0
            part, under_way = rows.log.newest_under_way(after_part)
            new = rows.log.entries if since is not None else rows.log.entries[-1:]
            seconds = self._newest_seconds(
                [(entry.sequence, entry.record) for entry in new if isinstance(entry.record, StepRecord)]
            )
        return Delta(
            record=record,
            log=tuple(rows.log.entries),
            sequence=max((entry.sequence for entry in rows.log.entries), default=after),
            part=part,
            begun_s=begun,
            seconds=seconds,
            seconds_under_way=under_way,
            log_bytes=log_bytes + rows.log.counted_bytes,
        )

    def outline(self) -> Outline:
        """Return the state of the run without reading its log."""
        with self._reading(_AFTER_ALL) as (rows, record):
            return Outline(record=record, disturbed_steps=rows.log.count_disturbed(record))

    @contextmanager
    def _reading(
        self, after: int = 0, *, histograms: bool = True, log_bytes: float = 0.0
    ) -> Iterator[tuple[RunRows, RunRecord]]:
        """Read the run, with the rows of its log that follow row ``after``. The transaction lasts until the end of the
        ``with`` block.

        Args:
            log_bytes: memory that the rows up to ``after`` use.
        """
        with self._guard():
            # This check precedes the reading: if the writer ends later, the status that is read already shows the end.
            # The check also precedes SQLite's lock on the file, because SQLite loses its locks when any descriptor of
            # the file is closed.
            written = self._is_being_written()
        with self._guard(), self._snapshot():
            self._meter.count_log(log_bytes)
            rows = RunRows(self._db, self._meter, after=after, histograms=histograms)
            yield rows, rows.record(name=self._path.stem, written=written)

    def _is_being_written(self) -> bool:
        """Return whether a writer holds the lock of the file. For a copy, return whether a writer held the lock when
        the copy was made.
        """
        if self._written_when_copied is not None:
            return self._written_when_copied
        return is_being_written(self._path)

    def _newest_seconds(self, steps: Sequence[tuple[int, StepRecord]]) -> dict[int, NewestSamples]:
        """Return the newest seconds of the newest steps, keyed by the sequence number of the step. A step whose seconds
        cannot be read is omitted.
        """
        found, left = dict[int, NewestSamples](), MOST_NEWEST_SECONDS
        for sequence, step in reversed(steps[-MOST_NEWEST_STEPS:]):
            try:
                packed, histograms = self._blobs(sequence, "seconds", "second_histograms")
                newest = decode_newest_samples(packed, histograms, left)
                if not step.workload.is_plain:
                    blobs = self._stream_blobs(sequence, "name, seconds, second_histograms")
                    samples = with_stream_seconds(newest.samples, blobs, left_out=newest.left_out)
                    newest = replace(newest, samples=samples)
            except _DAMAGED_ROW as error:
                require_damage(error)
                continue
            count_samples(self._meter, newest.samples)
            found[sequence] = newest
            left -= len(newest.samples)
            if not left:
                break
        return found

    def _samples(self, sequence: int, *, has_streams: bool) -> tuple[Sample, ...]:
        samples = decode_samples(*self._blobs(sequence, "seconds", "second_histograms"))
        if has_streams:
            samples = with_stream_seconds(samples, self._stream_blobs(sequence, "name, seconds, second_histograms"))
        count_samples(self._meter, samples)
        return samples

    def _blobs(self, sequence: int, *columns: str) -> Sequence[bytes | None]:
        query = f"SELECT {', '.join(columns)} FROM step WHERE sequence = ?"  # noqa: S608 - own names only
        return tuple(self._db.execute(query, (sequence,)).fetchone())

    def _stream_blobs(self, sequence: int, columns: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM stream WHERE step_sequence = ? ORDER BY number LIMIT ?"  # noqa: S608 - own names only
        return [tuple(row) for row in self._db.execute(query, (sequence, MOST_STREAMS_OF_A_STEP))]

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of the file that ``record`` could not read, and the parts that ``seconds`` could not read
        later.
        """
        return tuple(self._rows.left_out)

    def log(self) -> tuple[LogEntry, ...]:
        """Return the log in the order in which ``record`` read the rows."""
        return tuple(self._rows.log.entries)

    def samples(self, test: str, step: StepRecord) -> tuple[Sample, ...]:
        """Return the seconds of a step, or of a part of a step. The width of a bucket in a histogram is at most 1/16 of
        the latency of the bucket.
        """
        sequence = self._find(test, step)
        with self._guard(), self._snapshot():
            samples = self._samples(sequence, has_streams=not step.workload.is_plain)
        return samples_of(samples, step.workload)

    def samples_left(self, test: str, step: StepRecord) -> tuple[Sample, ...]:
        """Return the seconds of a step. If the seconds cannot be read, return no seconds and report this in
        ``left_out``.
        """
        try:
            return self.samples(test, step)
        except RunFileError as error:
            self._rows.leave_out(f"the seconds of {step_name(test, step)}", error, test=test)
            return ()

    def seconds(self, test: TestRecord) -> tuple[Seconds, ...]:
        """Return the samples of every step of a test as columns, in the order of the steps in the record.

        If the samples of a step cannot be read, the step's columns are empty, and ``left_out`` reports them.
        """
        if test.name not in self._seconds_read:
            sequences = [self._find(test.name, step) for step in test.steps]
            with self._guard(), self._snapshot():
                self._seconds_read[test.name] = tuple(self._seconds(test, sequences))
        return self._seconds_read[test.name]

    def _seconds(self, test: TestRecord, sequences: Sequence[int]) -> Iterator[Seconds]:
        for step, sequence in zip(test.steps, sequences, strict=True):
            try:
                table = decode_seconds(*self._blobs(sequence, "seconds"))
                blobs = [] if step.workload.is_plain else self._stream_blobs(sequence, "name, seconds")
                seconds = with_seconds_of_parts(step.workload, table, blobs)
            except _DAMAGED_ROW as error:
                require_damage(error)
                what = f"the seconds of {step_name(test.name, step)}"
                self._rows.leave_out(what, error, test=test.name)
                seconds = Seconds()
            count = len(seconds) * (1 + len(seconds.parts))
            self._meter.unpack(count * SECOND_BYTES)
            self._kept_seconds += count
            require_few(self._kept_seconds, self._meter.most(MOST_SECONDS), "seconds of all steps")
            yield seconds

    def content(self) -> bytes:
        """Return the bytes of the whole file as they were at one moment."""
        with self._guard():
            return self._db.serialize()

    def digest(self) -> bytes:
        """Return a digest of all rows. Two files have the same digest only if their contents are equal.

        If rows of a damaged file are unreadable, the digest covers all bytes of the file instead.
        """
        with self._guard():
            try:
                with self._snapshot():
                    return self._digest_of_rows()
            except sqlite3.DatabaseError as error:
                require_damage(error)
                with self._path.open("rb") as file:
                    return hashlib.file_digest(file, hashlib.sha256).digest()

    def _digest_of_rows(self) -> bytes:
        digest = hashlib.sha256()
        tables = self._db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for name, sql in tables:
            digest.update(repr((name, sql)).encode())
            quoted = str(name).replace('"', '""')
            # The rows are read in the order of the table, without an index.
            for row in self._db.execute(f'SELECT * FROM "{quoted}" NOT INDEXED'):  # noqa: S608 - quoted
                # Blobs are hashed unchanged. Their lengths are in brackets, because no other value in a row can
                # have this form.
                blobs = [value for value in row if isinstance(value, bytes)]
                values = [(len(value),) if isinstance(value, bytes) else value for value in row]
                digest.update(repr(values).encode())
                for blob in blobs:
                    digest.update(blob)
        return digest.digest()

    def engine_output(self, test: str, step: StepRecord) -> bytes:
        """Return fio's last JSON document of the step. In a stream, only the newest slice has a document."""
        sequence = self._find(test, step)
        with self._guard(), self._snapshot():
            return decompress_output(*self._blobs(sequence, "fio_json"))

    def _find(self, test: str, step: StepRecord) -> int:
        """Return the sequence number of a step."""
        if not self._rows.log.places:
            self.record()
        place = (test, *step.place)
        if place not in self._rows.log.places:
            raise RunFileError(f"{self._path} has no such step: {test}, {step.section}")
        return self._rows.log.places[place]

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Read in one transaction, so that all data belongs to the same moment, even if a writer adds rows during the
        reading.
        """
        self._meter.begin()
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as error:
            kind = LockedRunFileError if is_busy(error) else RunFileError
            raise kind(f"cannot read {self._path}: {self._explain(error)}") from error

    def _explain(self, error: Exception) -> str:
        error = find_read_cause(error, self._path)
        journal = journal_of(self._path)
        if isinstance(error, sqlite3.OperationalError) and journal.exists():
            return (
                f"{error}; {journal.name} next to it belongs to it: copy both to a folder that you alone "
                "may write to, and read it there"
            )
        if isinstance(error, OSError):
            return reason_of(error)
        if isinstance(error, ExcessError):
            return f"it is too large: {error}"
        if self._meter.exhausted:
            return "it is too large: reading it takes more work than its size allows"
        if isinstance(error, MemoryError):
            return "there is not enough memory"
        if type(error) is sqlite3.DatabaseError:  # errors about locks or free space have subclasses
            return f"it is damaged ({error}); sqlite3 {self._path} .recover may save some of it"
        if isinstance(error, sqlite3.Error):
            return str(error)
        return f"it is damaged ({reason_of(error)})"


# Exceptions that damaged bytes can cause before any check detects the damage.
_DAMAGED = (sqlite3.Error, OSError, ExcessError, *BAD_ROW)
_DAMAGED_ROW = (sqlite3.DatabaseError, *BAD_ROW)


def _take_own(path: Path, status: os.stat_result) -> tuple[bytes, FileStamp]:
    """Return the content of a file that no other user except root can have written. If a killed tkperf left a journal,
    SQLite rolls the journal back first.
    """
    require_own(path, status)
    db, _ = open_metered(path)
    db.close()
    return read_own(path)


def _under_way_since(record: RunRecord) -> float | None:
    return next((test.under_way.started_s for test in record.tests if test.under_way), None)


def _read_at_once(db: sqlite3.Connection, path: Path) -> bytes:
    """Return the bytes of an open database as they were at one moment. The writer waits only during this function,
    which needs half a millisecond for a megabyte.
    """
    # This descriptor is closed only at the end, because SQLite's lock ends when any descriptor of the file is closed.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        require_confined(file.fileno())
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        # The number of bytes is limited, because a file from an unknown source may grow without end while it is read.
        size = os.fstat(file.fileno()).st_size
        if size > MOST_COPIED_BYTES:
            raise RunFileError(
                f"while tkperf was reading {path}, the file grew to {format_capacity(size)}, which is "
                "more than the limit"
            )
        content = file.read(size)
        db.execute("ROLLBACK")
    return content


def read_run(path: Path) -> RunRecord:
    """Return the whole run in a file, without samples.

    Raises:
        RunFileError: the same errors as in ``RunFile``.
    """
    with RunFile(path) as run_file:
        return run_file.record()


def _hint(path: Path) -> str:
    """Return a text that helps the user find the run file. The text contains the run file with the given NAME, the
    closest name in the folder, or a command that lists the run files.
    """
    named = f"{path}{RUN_FILE_SUFFIX}"
    if os.path.isfile(named):  # noqa: PTH113 # returns False even if the name is too long
        return f"; {named} is one"
    with suppress(OSError):
        # Compare only the names. The common folder and suffix would make any two paths look similar.
        found = {one.name.removesuffix(RUN_FILE_SUFFIX): one for one in path.parent.glob(f"*{RUN_FILE_SUFFIX}")}
        meant = closest(path.name.removesuffix(RUN_FILE_SUFFIX), found)
        if meant:
            return f"; did you mean {found[meant]}?"
    return f"; 'tkperf status' lists the run files (NAME{RUN_FILE_SUFFIX}) of the current folder"
