"""The conversion of events to rows of a run file that a reader accepts. The writer decides when the rows are
written.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tkperf.model.errors import RunFileError, reason_of
from tkperf.model.figures import Figure, FigureKind, TestPlan
from tkperf.model.measurement import Sample
from tkperf.model.record import RunNote, RunStatus, StepKind
from tkperf.runfile.backlog import SqlStatement
from tkperf.runfile.columns import compress_output, encode_second_histograms, encode_seconds, possible_samples
from tkperf.runfile.row_records import (
    BAD_ROW,
    Columns,
    mend_fact,
    parse_note,
    parse_outcome,
    parse_purge,
    parse_reading,
    parse_resumption,
    parse_verdict,
    parse_warning,
    purge_columns,
    resumption_columns,
)
from tkperf.runfile.schema import HOST_ID
from tkperf.runfile.step_rows import (
    load_rows,
    parse_step,
    parse_under_way_place,
    second_columns,
    step_columns,
    step_name,
    stream_rows,
    under_way_columns,
)
from tkperf.runner.events import (
    Event,
    Judged,
    Noted,
    Observer,
    PurgeEnded,
    RunEnded,
    RunResumed,
    RunStarted,
    SectionEnded,
    StepEnded,
    StepStarted,
    TelemetrySeen,
    TestEnded,
    TestStarted,
    Warned,
)

# Each job text is stored only once, and steps refer to this text.
_JOB_ID = "(SELECT id FROM job WHERE text = ?)"


class Statements:
    """A builder of the SQL statements for each event, in the order of writing.

    Impossible values are stored as not measured, with a warning. ``observer`` also receives the warning.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, observer: Observer) -> None:
        """Prepare to write. The numbers of new rows continue after the numbers in ``db``."""
        self._path = path
        self._observer = observer
        self._parts_kept = 0
        self._begun: StepStarted | None = None
        self._test_name: str | None = None
        self._tests = _newest(db, "SELECT max(id) FROM test")
        self._test_id = self._tests
        self._sequence = _newest(
            db,
            "SELECT max(sequence) FROM (SELECT sequence FROM purge UNION ALL "
            "SELECT sequence FROM step UNION ALL SELECT sequence FROM verdict UNION ALL "
            "SELECT sequence FROM outcome)",
        )
        self._mended: set[tuple[str, ...]] = set()
        self._statements: list[SqlStatement] = []

    def of_event(self, event: Event) -> tuple[SqlStatement, ...]:
        """Return the statements that store an event. If no reader would accept the event, store a warning instead."""
        self._statements = []
        try:
            self._write(event)
        except BAD_ROW as error:
            if isinstance(event, RunResumed):  # without this event, the log would be wrong
                raise RunFileError(f"cannot write {self._path}: {reason_of(error)}") from error
            self._statements = []
            self._warn("not-kept", f"{_describe(event)} is not kept: {reason_of(error)}")
        return tuple(self._statements)

    def _warn(self, code: str, text: str) -> None:
        """Store a warning about the writer's own work, and send the warning to the observer."""
        warning = RunNote(code=code, text=text, test=self._test_name)
        self._insert("warning", **msgspec.to_builtins(warning))
        self._observer(Warned(warning=warning))

    def _write(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._run_started(event)
            case RunResumed():
                self._run_resumed(event)
            case TestStarted():
                self._test_started(event)
            case StepEnded():
                self._step_ended(event)
            case PurgeEnded():
                self._insert_logged("purge", **purge_columns(event.record))
            case Judged():
                self._insert_logged(
                    "verdict",
                    section=event.section,
                    number=event.number,
                    reached=event.verdict.reached,
                    verdict=_json(event.verdict),
                )
            case SectionEnded():
                self._insert_logged("outcome", section=event.outcome.section, outcome=_json(event.outcome))
            case Warned():
                self._insert("warning", **msgspec.to_builtins(event.warning))
            case Noted():
                self._insert("note", **msgspec.to_builtins(event.note))
            case TelemetrySeen():
                self._insert("telemetry", host_id=HOST_ID, **msgspec.to_builtins(event.reading))
            case TestEnded():
                self._do(
                    "UPDATE test SET status = ?, ended_s = ? WHERE id = ?", (event.status, event.at_s, self._test_id)
                )
            case RunEnded():
                self._replace_facts(status=event.status, ended_utc=event.ended_utc, ended_because=event.because)

    def _do(self, sql: str, *rows: Sequence[object]) -> None:
        self._statements.append((sql, rows))

    def _insert(self, table: str, **columns: object) -> None:
        """Add a statement that inserts a row. The row has a form that a reader accepts."""
        row = {name: _storable(value) for name, value in columns.items()}
        mended = _find_impossible(table, row)
        for name in mended:
            row[name] = None
        key = (str(self._test_id), *mended)
        if mended and key not in self._mended:
            self._mended.add(key)
            reasons = ", ".join(f"{name} {reason}" for name, reason in mended.items())
            self._warn("not-measured", f"impossible values are kept as not measured, from {_place(row)} on: {reasons}")
        marks = ", ".join(_JOB_ID if name == "job_file" else "?" for name in row)
        names = ", ".join("job_id" if name == "job_file" else name for name in row)
        self._do(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))  # noqa: S608 - own names only

    def _insert_logged(self, table: str, **columns: object) -> int:
        """Add a statement that inserts a row into the log of the test. Return the sequence number of the row."""
        self._sequence += 1
        sequence = self._sequence
        self._insert(table, sequence=sequence, test_id=self._test_id, **columns)
        return sequence

    def _run_started(self, event: RunStarted) -> None:
        info = msgspec.to_builtins(event.info)
        for key in list(info):
            # The value is converted to JSON and back, so that it has the form that a reader receives. For example, JSON
            # has no tuples.
            info[key], impossible = mend_fact(key, json.loads(json.dumps(info[key])))
            if impossible:
                reasons = ", ".join(f"{name}: {reason}" for name, reason in impossible.items())
                self._warn("not-kept", f"facts of the run that no reader accepts are not kept: {reasons}")
            if key in impossible:
                del info[key]
        facts = info | {"tests": event.tests, "status": RunStatus.RUNNING, "ended_utc": None, "ended_because": None}
        hosts = facts.pop("hosts", ()) or (None,)
        for host_id, host in enumerate(hosts, start=HOST_ID):
            self._insert("host", id=host_id, facts=None if host is None else json.dumps(host))
        for key, value in facts.items():
            self._insert("run", key=key, value=json.dumps(value))

    def _run_resumed(self, event: RunResumed) -> None:
        """Record in one transaction that the run continues."""
        self._insert("resumption", **resumption_columns(event.resumption))
        self._forget_parts()
        self._replace_facts(
            tests=event.tests,
            status=RunStatus.RUNNING,
            ended_utc=None,
            ended_because=None,
            notices=event.info.notices,
            choices=event.info.choices,
            alterations=event.info.alterations,
        )

    def _replace_facts(self, **facts: object) -> None:
        for key, value in facts.items():
            self._do("INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)", (key, json.dumps(value)))

    def _test_started(self, event: TestStarted) -> None:
        self._test_name = event.test
        if event.goes_on:
            self._test_id = self._tests
            again = "UPDATE test SET status = ?, ended_s = NULL WHERE id = ?"
            self._do(again, (RunStatus.RUNNING, self._test_id))
            return
        self._tests += 1
        self._test_id = self._tests
        self._insert(
            "test",
            id=self._test_id,
            name=event.test,
            status=RunStatus.RUNNING,
            started_s=event.at_s,
            plan=None if event.plan is None else _plan_json(event.plan),
        )

    def _step_ended(self, event: StepEnded) -> None:
        step, measurement = event.record, event.record.measurement
        samples, odd = possible_samples(measurement.samples)
        if odd is not None:
            self._warn("not-measured", f"impossible in a step of {step.section}, not kept: {odd}")
        if step.kind is StepKind.CONTINUOUS:
            # fio's status document of a stream is cumulative, so the newest document contains the counts of all earlier
            # documents.
            self._do(
                "UPDATE step SET fio_json = NULL WHERE test_id = ? AND section = ? "
                "AND kind = ? AND fio_json IS NOT NULL",
                (self._test_id, step.section, step.kind),
            )
        elif step.workload.is_combination and step.engine_output:
            # The size of a document of 16 threads is half a megabyte, so only the newest step with these streams keeps
            # its document. Imported steps have no document, and a search through 60,000 such steps would take too long.
            self._do(
                "UPDATE step SET fio_json = NULL WHERE test_id = ? AND section = ? AND kind = ? AND position = ? "
                "AND fio_json IS NOT NULL",
                (self._test_id, step.section, step.kind, step.position),
            )
        self._do("INSERT OR IGNORE INTO job (text) VALUES (?)", (_storable(step.job_file),))
        sequence = self._insert_logged(
            "step",
            host_id=HOST_ID,
            **step_columns(step),
            fio_json=compress_output(step.engine_output),
            seconds=encode_seconds(samples),
            second_histograms=encode_second_histograms(samples),
        )
        for row in stream_rows(step, samples):
            self._insert("stream", step_sequence=sequence, **row)
        for number, disturbance in enumerate(step.disturbances or ()):
            self._insert("disturbance", step_sequence=sequence, number=number, **msgspec.to_builtins(disturbance))
        if self._parts_kept:
            self._forget_parts()

    def of_part(self, begun: StepStarted, samples: Sequence[Sample]) -> tuple[SqlStatement, ...]:
        """Return statements that store further seconds of the running step. The first part also stores the step
        itself.
        """
        samples, _ = possible_samples(samples)
        self._statements = []
        if begun is not self._begun:
            self._forget_parts()
            self._begun = begun
            self._insert("under_way", host_id=HOST_ID, test_id=self._test_id, **under_way_columns(begun))
            for row in load_rows(begun.workload):
                self._insert("under_way_stream", **row)
        self._parts_kept += 1
        self._insert(
            "under_way_part",
            number=self._parts_kept,
            host_id=HOST_ID,
            seconds=encode_seconds(samples),
            second_histograms=encode_second_histograms(samples),
        )
        for row in load_rows(begun.workload):
            seconds = second_columns(row["name"], samples)
            self._insert("under_way_stream_part", part_number=self._parts_kept, name=row["name"], **seconds)
        return tuple(self._statements)

    def _forget_parts(self) -> None:
        for table in ("under_way_stream_part", "under_way_part", "under_way_stream", "under_way"):
            self._do(f"DELETE FROM {table}", ())  # noqa: S608 - own names only
        self._parts_kept = 0


def _newest(db: sqlite3.Connection, query: str) -> int:
    (newest,) = db.execute(query).fetchone()
    return newest or 0


def _plan_json(plan: TestPlan) -> str:
    """Return the JSON of a plan. Fields of figures that have their default are omitted, because an import has a
    thousand sections.
    """
    plain = msgspec.to_builtins(plan)
    defaults = msgspec.to_builtins(Figure(kind=FigureKind.MATRIX))
    del defaults["kind"]
    for planned in (plain, *plain["sections"]):
        planned["figures"] = [
            {key: value for key, value in figure.items() if value != defaults.get(key)} for figure in planned["figures"]
        ]
    return _json(plain)


def _json(value: object) -> str:
    """Return JSON that SQLite can also read, in which NaN ("not measured") becomes null."""
    return msgspec.json.encode(value).decode()


def _storable(value: object) -> object:
    """Return a value in a form that SQLite accepts. If a text, for example a path, contains bytes that are not UTF-8,
    the bytes are replaced with escape sequences.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, bool):
        return int(value)
    # SQLite accepts integers of 63 bits. A larger integer becomes a real number, which a reader may refuse.
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def _describe(event: Event) -> str:
    if isinstance(event, StepEnded):
        return step_name(event.test, event.record)
    if isinstance(event, SectionEnded):
        return f"how {event.outcome.section} of {event.test} ended"
    return f"a {type(event).__name__}"


def _place(row: dict[str, object]) -> str:
    return f"{row.get('kind')} {row.get('number')} of {row.get('section')}"


# The checks that the writer applies. Each check raises an error if no reader would accept the row. Only columns of a
# step can be corrected.
_PARSERS: dict[str, Callable[[Columns], object]] = {
    "purge": parse_purge,
    "verdict": parse_verdict,
    "outcome": parse_outcome,
    "warning": parse_warning,
    "resumption": parse_resumption,
    "telemetry": parse_reading,
    "note": parse_note,
    "under_way": parse_under_way_place,
}


def _find_impossible(table: str, row: Columns) -> dict[str, str]:
    """Return each column of a row that contains a value that a reader would not accept, with the reason. A reader
    accepts NULL instead.
    """
    if table == "step":
        return parse_step(row)[1]
    if parse := _PARSERS.get(table):
        parse(row)
    return {}
