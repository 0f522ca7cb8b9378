"""The log of a run file: its readable rows in their order, which are purges, steps, verdicts and outcomes."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from tkperf.model.disturbance.io import OF_HISTORY, Disturbance
from tkperf.model.measurement import NewestSamples, Sample
from tkperf.model.record import LogEntry, Logged, Resumption, RunRecord, StepRecord, UnfinishedStep
from tkperf.model.throttling import Intervals, find_stretches, is_throttled
from tkperf.model.units import drop_controls
from tkperf.runfile.columns import SECOND_BYTES, STREAM_SIDES, SecondsTotal, decode_newest_samples, decode_total
from tkperf.runfile.limits import (
    MOST_DISTURBANCES_OF_A_STEP,
    MOST_NEWEST_SECONDS,
    MOST_STREAMS_OF_A_STEP,
    Meter,
    require_few,
)
from tkperf.runfile.row_records import BAD_ROW, Columns, convert, parse_outcome, parse_purge, parse_verdict
from tkperf.runfile.salvage import LostRows, Salvage, read_rows, require_damage
from tkperf.runfile.step_rows import (
    HISTOGRAM_COLUMNS,
    STEP_COLUMNS,
    STREAM_COLUMNS,
    parse_disturbance,
    parse_load,
    parse_step,
    parse_under_way,
    with_stream_seconds,
    with_streams,
)

# Parts of the log other than steps: the table, the function that parses a row, and the name for an unreadable row.
_OTHERS: dict[str, tuple[Callable[[Columns], Logged], str]] = {
    "purge": (parse_purge, "purge {sequence} of {test}"),
    "verdict": (parse_verdict, "verdict {sequence} of {test}"),
    "outcome": (parse_outcome, "how {section} of test {test} ended"),
}


def count_samples(meter: Meter, samples: Sequence[Sample]) -> None:
    """Count the unpacked seconds of one blob, with their histograms, in the meter."""
    filled = sum(stats.histogram.indices.size for each in samples for stats in (each.read, each.write))
    meter.count_seconds(len(samples))
    meter.unpack(len(samples) * SECOND_BYTES + 16 * filled)


class LogRows:
    """The rows of the log after a given row.

    Attributes:
        entries: all rows that were read, in their order.
        counted_bytes: memory for these rows, counted in the same way as for the limits.
        places: the sequence number of each step, keyed by test, section, kind, number, position and start. The start is
            needed because a section may have several fills, and a step may have been measured again.
    """

    def __init__(self, salvage: Salvage, meter: Meter, *, after: int, histograms: bool) -> None:
        self._salvage = salvage
        self._db = salvage.db
        self._meter = meter
        self._set_aside: dict[int, Intervals] = {}
        self._after = after
        self._histograms = histograms
        self.entries: list[LogEntry] = []
        self.counted_bytes = 0.0
        self.places: dict[tuple[object, ...], int] = {}
        self._jobs: dict[object, str | Exception] = {}
        # The parts of the running step that were already read, with the number of seconds in each part.
        self._part_seconds: dict[int, int] = {}

    def read(self, tests: Mapping[int, str], resumptions: Sequence[Resumption]) -> None:
        """Read the rows of these tests. The keys of ``tests`` are the row numbers of the tests."""
        by_test: dict[int, list[tuple[float, float]]] = {}
        for one in resumptions:
            if one.test_id is not None and one.set_aside_from is not None and one.set_aside_to is not None:
                by_test.setdefault(one.test_id, []).append((one.set_aside_from, one.set_aside_to))
        self._set_aside = {test_id: Intervals(pairs) for test_id, pairs in by_test.items()}
        left_bytes = self._meter.memory_left
        self._read_steps(tests)
        self._read_others(tests)
        self.counted_bytes = left_bytes - self._meter.memory_left
        self.entries.sort(key=lambda entry: entry.sequence)

    def _read_others(self, tests: Mapping[int, str]) -> None:
        for table, (parse, name) in _OTHERS.items():
            for row in self._salvage.rows(table, after=self._after):
                if row["test_id"] not in tests:
                    continue
                try:
                    record = parse(row)
                except BAD_ROW as error:
                    what = name.format(test=tests[row["test_id"]], **row)
                    self._salvage.leave_out(what, error)
                else:
                    self._add(row, record)

    def _is_set_aside(self, columns: Columns) -> bool:
        rows = self._set_aside.get(columns["test_id"])
        return rows is not None and rows.contain(columns["sequence"])

    def _add(self, row: Columns, record: Logged) -> None:
        entry = LogEntry(
            sequence=row["sequence"], test_id=row["test_id"], record=record, set_aside=self._is_set_aside(row)
        )
        self.entries.append(entry)

    def _read_steps(self, tests: Mapping[int, str]) -> None:
        """Read the steps. An unreadable step is omitted, and its known values are reported."""
        disturbances: dict[object, list[Columns]] | None = None
        found: set[int] = set()
        lost: list[LostRows] = []
        left_unread = {} if self._histograms else dict.fromkeys(HISTOGRAM_COLUMNS)
        # Files from a version of tkperf without streams do not have this column.
        present = {row["name"] for row in self._db.execute("PRAGMA table_info(step)")}
        left_unread |= dict.fromkeys(name for name in STEP_COLUMNS if name not in present)
        names = ", ".join(name for name in STEP_COLUMNS if name not in left_unread)
        for columns in read_rows(
            self._db, "step", names, self._meter, after=self._after, lost=lambda *rows: lost.append(rows)
        ):
            if disturbances is None:
                disturbances = {}
                for row in self._salvage.rows("disturbance"):
                    of_step = disturbances.setdefault(row["step_sequence"], [])
                    of_step.append(row)
                    require_few(len(of_step), MOST_DISTURBANCES_OF_A_STEP, "rows of table disturbance of one step")
            columns.update(left_unread)
            sequence, test_id = columns["sequence"], columns["test_id"]
            found.add(sequence)
            if test_id not in tests:
                continue
            step = self._step(tests[test_id], columns)
            if step is not None and columns["streams"]:
                step = self._with_streams(tests[test_id], columns, step)
            if step is None:
                continue
            by = disturbances.get(sequence, [])
            if others := self._disturbances(tests[test_id], columns, by):
                step = replace(step, disturbances=others)
            place = step.section, step.kind, step.number, step.position, step.started_s
            self.places[tests[test_id], *place] = sequence
            self._add(columns, step)
        if lost or not self._after:
            self._name_lost_steps(tests, found, lost)

    def _step(self, test: str, columns: Columns) -> StepRecord | None:
        """Return the step that a row contains. None means that the step is omitted."""
        job = self._job(columns["job_id"])
        columns["job_file"] = "" if isinstance(job, Exception) else job
        try:
            step, unread = parse_step(columns)
        except BAD_ROW as error:
            section, number = columns["section"], columns["number"]
            self._salvage.leave_out(
                _row_name(test, columns),
                error,
                test=test,
                section=section if isinstance(section, str) else None,
                number=number if isinstance(number, int) else None,
                is_step=True,
            )
            return None
        histograms = step.measurement.read.histogram, step.measurement.write.histogram
        self._meter.count_step(len(step.job_file), sum(each.indices.size for each in histograms))
        for column, reason in unread.items():
            what = f"{column} of {_row_name(test, columns)}"
            self._salvage.leave_out(what, reason, test=test, section=step.section, number=step.number)
        return step

    def _with_streams(self, test: str, columns: Columns, step: StepRecord) -> StepRecord | None:
        """Return a step with its streams. If its streams cannot be read, the load is not known, so the step is
        omitted.
        """
        left_unread = {} if self._histograms else dict.fromkeys(f"{side}_histogram" for side in STREAM_SIDES)
        names = ", ".join(name for name in STREAM_COLUMNS if name not in left_unread)
        query = f"SELECT {names} FROM stream WHERE step_sequence = ? ORDER BY number LIMIT ?"  # noqa: S608 - own names only
        try:
            require_few(columns["streams"], MOST_STREAMS_OF_A_STEP, "rows of table stream of one step")
            # The query requests one row more than expected, to detect whether there are too many rows.
            cursor = self._db.execute(query, (columns["sequence"], columns["streams"] + 1))
            columns_read = [column[0] for column in cursor.description]
            rows = [dict(zip(columns_read, row, strict=True)) | left_unread for row in cursor]
            if len(rows) != columns["streams"]:
                raise ValueError(
                    f"the step has {columns['streams']} streams, but only {len(rows)} of them are in the file"
                )
            step = with_streams(step, rows)
        except (sqlite3.DatabaseError, *BAD_ROW) as error:
            require_damage(error)
            what, place = _row_name(test, columns), {"section": step.section, "number": step.number}
            self._salvage.leave_out(what, error, test=test, is_step=True, **place)
            return None
        filled = sum(
            getattr(part, side).histogram.indices.size for part in step.measurement.streams for side in STREAM_SIDES
        )
        self._meter.count_step(0, filled)
        return step

    def _job(self, job_id: object) -> str | Exception:
        """Return the text of a job, or the error that makes it unreadable. Several steps share a job, and these steps
        stay readable without the text.
        """
        if job_id not in self._jobs:
            try:
                row = self._db.execute("SELECT text FROM job WHERE id = ?", (job_id,)).fetchone()
                self._jobs[job_id] = convert("job", row["text"] if row else None, str)
            except (sqlite3.DatabaseError, *BAD_ROW) as error:
                require_damage(error)
                self._jobs[job_id] = error
                self._salvage.leave_out(f"fio job {job_id}", error)
        return self._jobs[job_id]

    def _name_lost_steps(self, tests: Mapping[int, str], found: Collection[int], lost: Sequence[LostRows]) -> None:
        """Report steps whose rows are lost. The index of the table still lists these steps, so their rounds are known
        to be incomplete.
        """
        reason = lost[0][2] if lost else "its row is lost"
        columns = "sequence, test_id, section, kind, number"
        query = f"SELECT {columns} FROM step INDEXED BY step_by_test WHERE sequence > ?"  # noqa: S608 - own names only
        try:
            for sequence, test_id, section, kind, number in self._db.execute(query, (self._after,)):
                if sequence not in found and test_id in tests:
                    test = tests[test_id]
                    what = f"step {sequence} of {test} ({section}, {kind} {number})"
                    self._salvage.leave_out(what, reason, test=test, section=section, number=number, is_step=True)
        except sqlite3.DatabaseError as error:
            require_damage(error)
            for rows in lost:
                self._salvage.leave_out_rows("step", *rows)
                for test in tests.values():
                    self._salvage.leave_out(f"perhaps steps of {test}", error, test=test, is_step=True)

    def _disturbances(self, test: str, step: Columns, rows: list[Columns]) -> tuple[Disturbance, ...]:
        if not rows:
            return ()
        name = f"what disturbed {_row_name(test, step)}"
        return tuple(self._salvage.parse(rows, parse_disturbance, lambda _: name, test=test))

    def count_disturbed(self, record: RunRecord) -> int | None:
        """Return the number of disturbed steps from which results are computed, including fills. The rows of the steps
        are not parsed.

        None means that the steps were not watched, as on a simulated drive.
        """
        tests = {test.id for test in record.tests}
        stretches = find_stretches(record)
        disturbed_by_others = {
            row["step_sequence"] for row in self._salvage.rows("disturbance") if row["code"] not in OF_HISTORY
        }
        # In a damaged file, a value that cannot be a time is treated as 0.
        columns = (
            "sequence, test_id, CAST(started_s AS REAL) AS began_s, "
            "CAST(started_s + duration_s AS REAL) AS ended_s, watched AND (foreign_read_bytes IS NOT "
            "NULL OR foreign_write_bytes IS NOT NULL OR host_use IS NOT NULL) AS is_watched"
        )
        looked = disturbed = 0
        for row in read_rows(self._db, "step", columns, self._meter, lost=lambda *_: None):
            if row["test_id"] in tests and not self._is_set_aside(row):
                looked += bool(row["is_watched"])
                disturbed += row["sequence"] in disturbed_by_others or is_throttled(
                    stretches, row["began_s"], row["ended_s"]
                )
        return disturbed if looked or disturbed else None

    def under_way(self, test: str, test_id: int) -> UnfinishedStep | None:
        rows = [row for row in self._salvage.rows("under_way") if row["test_id"] == test_id]

        def parse(columns: Columns) -> UnfinishedStep:
            step = parse_under_way(columns, self._totals_under_way())
            if not columns.get("streams"):
                return step
            return replace(step, workload=parse_load(list(self._salvage.rows("under_way_stream", after=-1))))

        name = f"data of the unfinished step of {test}"
        return next(self._salvage.parse(rows, parse, lambda _: name, test=test), None)

    def _totals_under_way(self) -> list[SecondsTotal]:
        """Return the sums of the seconds for each part of the running step."""
        totals = []
        for number, row in self._parts(0, "seconds"):
            total = decode_total(row["seconds"], MOST_NEWEST_SECONDS)
            self._count_part(number, total.count)
            if total.count:
                totals.append(total)
        return totals

    def newest_under_way(self, after_part: int) -> tuple[int, NewestSamples]:
        """Return the number of the newest part of the running step, and the newest seconds in the parts that follow
        ``after_part``.
        """
        newest, total, kept = after_part, 0, 0
        parts: deque[tuple[int, int, bytes | None, bytes | None]] = deque()
        for newest, row in self._parts(after_part, "seconds, second_histograms"):
            if newest not in self._part_seconds:
                self._count_part(newest, decode_total(row["seconds"], MOST_NEWEST_SECONDS).count)
            count = self._part_seconds[newest]
            parts.append((count, newest, row["seconds"], row["second_histograms"]))
            total, kept = total + count, kept + count
            # Discard the first part as long as the other parts contain enough seconds.
            while kept - parts[0][0] >= MOST_NEWEST_SECONDS:
                kept -= parts.popleft()[0]
        samples = [
            sample
            for _, number, seconds, histograms in parts
            for sample in self._add_streams(number, decode_newest_samples(seconds, histograms, MOST_NEWEST_SECONDS))
        ]
        kept_samples = tuple(samples[-MOST_NEWEST_SECONDS:])
        return newest, NewestSamples(left_out=total - len(kept_samples), samples=kept_samples)

    def _add_streams(self, part_number: int, newest: NewestSamples) -> tuple[Sample, ...]:
        """Return the seconds of a part of the running step. If the step has streams, the result includes the seconds of
        its streams.
        """
        columns = "name, seconds, second_histograms"
        query = f"SELECT {columns} FROM under_way_stream_part WHERE part_number = ? ORDER BY rowid LIMIT ?"  # noqa: S608 - own names only
        has_streams = any(row.get("streams") for row in self._salvage.rows("under_way"))
        rows = self._db.execute(query, (part_number, MOST_STREAMS_OF_A_STEP)) if has_streams else ()
        return with_stream_seconds(newest.samples, [tuple(row) for row in rows], left_out=newest.left_out)

    def _count_part(self, number: int, seconds: int) -> None:
        self._meter.count_seconds(seconds)
        self._meter.unpack(SECOND_BYTES * seconds)
        self._part_seconds[number] = seconds

    def _parts(self, after: int, columns: str) -> Iterator[tuple[int, Columns]]:
        """Yield the stored parts of the running step that follow the part ``after``, each with its number."""

        def lost(_first: int, _last: int | None, error: sqlite3.DatabaseError) -> None:
            raise ValueError(str(error)) from error

        for row in read_rows(self._db, "under_way_part", f"number, {columns}", self._meter, after=after, lost=lost):
            yield row["number"], row


def _row_name(test: str, columns: Columns) -> str:
    """Return a name for an unreadable step. The name consists of the values in the step's row."""
    shown = {
        key: drop_controls(str(columns[key]))[:40]
        for key in ("section", "kind", "number", "read_percent", "block_size_bytes")
    }
    return (
        f"step {columns['sequence']} of {test} ({shown['section']}, {shown['kind']} "
        f"{shown['number']}, {shown['read_percent']} % reads of {shown['block_size_bytes']} bytes)"
    )
