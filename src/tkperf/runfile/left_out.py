"""Everything in a run file as records; what no reader can take is left out, by its name.

One bad row, as of an older tkperf or a damaged disk, must not hide days of good ones.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import msgspec

from tkperf.disturbance.codes import Disturbance
from tkperf.errors import reason_of
from tkperf.measurement import Sample
from tkperf.record import (
    LeftOut,
    LogEntry,
    Logged,
    Resumption,
    RunNote,
    RunRecord,
    RunStatus,
    RunWarning,
    StepRecord,
    TestRecord,
    UnfinishedStep,
)
from tkperf.runfile.facts import RunEnd, parse_facts
from tkperf.runfile.kept_seconds import find_of_part, read_samples
from tkperf.runfile.limits import MOST_RESUMPTIONS, MOST_SECTIONS, MOST_TESTS, require_few
from tkperf.runfile.rows import (
    parse_outcome,
    parse_plan,
    parse_purge,
    parse_reading,
    parse_resumption,
    parse_test,
    parse_verdict,
)
from tkperf.runfile.step_rows import (
    STEP_COLUMNS,
    parse_disturbance,
    parse_step,
    parse_under_way,
)
from tkperf.runfile.values import BAD_ROW, convert
from tkperf.telemetry.marking import with_throttled_steps
from tkperf.telemetry.reading import Reading
from tkperf.units import drop_controls

KILLED = "tkperf was stopped without being able to end the run"
NOT_BEGUN = "tkperf was stopped before it began; nothing was measured"
END_UNREAD = "how the run ended cannot be read"

T = TypeVar("T")
Entry = TypeVar("Entry", bound=Logged)
_LONGEST_REASON = 300


class Rows:
    """The rows of an open database, read within one transaction.

    ``sequences`` are those of the steps that could be read, by test: their samples are found by
    them. ``log`` has everything that was done and judged, in its order.
    """

    def __init__(self, db: sqlite3.Connection, *, after: int = 0) -> None:
        """``after``: only rows of the log that come after this one, for who has the others."""
        self._db = db
        self._after = after
        self.left_out: list[LeftOut] = []
        self.sequences: dict[str, list[int]] = {}
        self.log: list[LogEntry] = []
        self._resumptions: tuple[Resumption, ...] = ()

    def record(self, *, name: str, written: bool) -> RunRecord:
        """The whole run.

        Args:
            name: of the run, should its own be lost.
            written: a writer holds the file, so that what has not ended goes on.
        """
        self.log = []
        facts = self._facts()
        info, unread = parse_facts(facts, name=name)
        end = self._end(facts, written)
        if facts:
            for key, reason in unread.items():
                self.leave_out(f"fact {key} of the run", reason)
        self._resumptions = self._read_resumptions()
        planned = _names(facts.get("tests"))
        earlier_ids = {
            test_id for resumption in self._resumptions for test_id in resumption.repeated_ids
        }
        current, earlier = self._tests(written, earlier_ids)
        places = {name: place for place, name in enumerate(planned)}
        self.log.sort(key=lambda entry: entry.sequence)
        record = RunRecord(
            info=info,
            status=end.status,
            ended_utc=end.ended_utc,
            ended_because=end.ended_because,
            # A test that was repeated or added keeps its place.
            tests=tuple(sorted(current, key=lambda test: places.get(test.name, len(places)))),
            resumptions=self._resumptions,
            earlier=earlier,
            planned=planned,
            warnings=self._texts("warning", RunWarning),
            notes=self._texts("note", RunNote),
            telemetry=self._telemetry(),
            left_out=tuple(self.left_out),
        )
        return with_throttled_steps(record)

    def _telemetry(self) -> tuple[Reading, ...]:
        rows = self._all("SELECT * FROM telemetry ORDER BY at_s, id")
        return tuple(self._parse_rows(rows, parse_reading, lambda row: f"telemetry {row['id']}"))

    def _all(self, query: str, *values: object) -> list[dict[str, Any]]:
        cursor = self._db.execute(query, values)
        names = [column[0] for column in cursor.description]
        # dict(row) looks for each name among all of them.
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def leave_out(self, what: str, reason: object, **place: Any) -> None:
        words = reason_of(reason) if isinstance(reason, BaseException) else str(reason)
        self.left_out.append(LeftOut(what=what, reason=words[:_LONGEST_REASON], **place))

    def _parse_rows(
        self,
        rows: list[dict[str, Any]],
        parse: Callable[[dict[str, Any]], T],
        name: Callable[[dict[str, Any]], str],
        **place: Any,
    ) -> Iterator[T]:
        """Rows as records; one that cannot be is left out by its name."""
        for columns in rows:
            try:
                yield parse(columns)
            except BAD_ROW as error:
                self.leave_out(name(columns), error, **place)

    def _facts(self) -> dict[str, Any]:
        def parse(row: dict[str, Any]) -> tuple[str, Any]:
            return row["key"], json.loads(row["value"])

        rows = self._all("SELECT key, value FROM run")
        return dict(
            self._parse_rows(rows, parse, lambda row: f"fact {str(row['key'])[:40]} of the run")
        )

    def _end(self, facts: dict[str, Any], written: bool) -> RunEnd:
        """How the run ended, as far as that can be known."""
        going_on = RunStatus.RUNNING if written else RunStatus.INTERRUPTED
        if not facts:
            because = "the run is about to begin" if written else NOT_BEGUN
            return RunEnd(status=going_on, ended_utc=None, ended_because=because)
        try:
            end = convert("run", facts, RunEnd)
        except BAD_ROW as error:
            self.leave_out("how the run ended", error)
            return RunEnd(status=going_on, ended_utc=None, ended_because=END_UNREAD)
        if end.status is RunStatus.RUNNING and not written:
            return msgspec.structs.replace(end, status=going_on, ended_because=KILLED)
        return end

    def _texts(self, table: str, type_: type[T]) -> tuple[T, ...]:
        rows = self._all(f"SELECT * FROM {table} ORDER BY id")  # noqa: S608 - own names only
        return tuple(
            self._parse_rows(
                rows, lambda row: convert(table, row, type_), lambda row: f"{table} {row['id']}"
            )
        )

    def _read_resumptions(self) -> tuple[Resumption, ...]:
        rows = self._all("SELECT * FROM resumption ORDER BY number")
        require_few(len(rows), MOST_RESUMPTIONS, "resumptions")
        return tuple(
            self._parse_rows(rows, parse_resumption, lambda row: f"resumption {row['number']}")
        )

    def _tests(
        self, written: bool, earlier_ids: set[int]
    ) -> tuple[tuple[TestRecord, ...], tuple[TestRecord, ...]]:
        """The tests, and what was measured of some before they were repeated."""
        tests: list[TestRecord] = []
        earlier: list[TestRecord] = []
        rows = self._all("SELECT * FROM test ORDER BY id")
        require_few(len(rows), MOST_TESTS, "tests")
        for row in rows:
            name = f"test {row['id']}"
            if row["id"] in earlier_ids:
                earlier.extend(
                    self._parse_rows([row], partial(self._test, written), lambda *_: name)  # noqa: B023
                )
                continue
            # Steps and their samples are found by the name of their test.
            if row["name"] in (test.name for test in tests):
                self.leave_out(name, f"table test: two tests of one name, {row['name']}")
                continue
            tests.extend(self._parse_rows([row], partial(self._test, written), lambda *_: name))  # noqa: B023
        sections = {(test.name, step.section) for test in tests for step in test.steps}
        require_few(len(sections), MOST_SECTIONS, "sections")
        return tuple(tests), tuple(earlier)

    def _test(self, written: bool, columns: dict[str, Any]) -> TestRecord:
        def of_test(select: str) -> list[dict[str, Any]]:
            where = "WHERE test_id = ? AND sequence > ? ORDER BY sequence"
            return self._all(f"{select} {where}", columns["id"], self._after)

        row, unread = parse_test(columns)
        for key, reason in unread.items():
            self.leave_out(f"{key} of test {row.name}", reason, test=row.name)
        killed = row.status is RunStatus.RUNNING and not written
        counted, set_aside = self._steps(row.name, columns["id"])
        return TestRecord(
            name=row.name,
            status=RunStatus.INTERRUPTED if killed else row.status,
            started_s=row.started_s,
            ended_s=row.ended_s,
            outcomes=tuple(
                self._parse_rows(
                    self._counted(of_test("SELECT * FROM outcome")),
                    lambda outcome_row: self._logged(outcome_row, parse_outcome(outcome_row)),
                    lambda outcome_row: f"how {outcome_row['section']} of test {row.name} ended",
                    test=row.name,
                )
            ),
            purges=tuple(
                self._parse_rows(
                    self._counted(of_test("SELECT * FROM purge")),
                    lambda purge_row: self._logged(purge_row, parse_purge(purge_row)),
                    lambda purge_row: f"purge {purge_row['sequence']} of {row.name}",
                    test=row.name,
                )
            ),
            steps=counted,
            set_aside=set_aside,
            id=columns["id"],
            verdicts=tuple(
                self._parse_rows(
                    self._counted(of_test("SELECT * FROM verdict")),
                    lambda verdict_row: self._logged(verdict_row, parse_verdict(verdict_row)),
                    lambda verdict_row: f"verdict {verdict_row['sequence']} of {row.name}",
                    test=row.name,
                )
            ),
            under_way=self._under_way(row.name, columns["id"]),
            plan=next(
                self._parse_rows(
                    [{"plan": row.plan}] if row.plan is not None else [],
                    lambda plan_row: parse_plan(plan_row["plan"]),
                    lambda _: f"how test {row.name} is shown",
                    test=row.name,
                ),
                None,
            ),
        )

    def _is_set_aside(self, columns: dict[str, Any]) -> bool:
        return any(
            resumption.test_id == columns["test_id"] and resumption.sets_aside(columns["sequence"])
            for resumption in self._resumptions
        )

    def _counted(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those that were not measured again."""
        counted = []
        for row in rows:
            if self._is_set_aside(row):
                self._log_set_aside(row)
            else:
                counted.append(row)
        return counted

    def _log_set_aside(self, row: dict[str, Any]) -> None:
        def parse(columns: dict[str, Any]) -> Logged:
            if "outcome" in columns:
                return parse_outcome(columns)
            return parse_purge(columns) if "method" in columns else parse_verdict(columns)

        for record in self._parse_rows([row], parse, lambda _: f"row {row['sequence']} of the log"):
            self._logged(row, record, set_aside=True)

    def _logged(self, row: dict[str, Any], record: Entry, *, set_aside: bool = False) -> Entry:
        self.log.append(
            LogEntry(
                sequence=row["sequence"], test_id=row["test_id"], record=record, set_aside=set_aside
            )
        )
        return record

    def _steps(
        self, test: str, test_id: int
    ) -> tuple[tuple[StepRecord, ...], tuple[tuple[int, StepRecord], ...]]:
        """The steps that can be read, and those that were measured again.

        The sequences of the first are kept to find their samples by.
        """
        steps, sequences, set_aside = [], [], []
        disturbed = {
            row["step_sequence"]
            for row in self._all("SELECT DISTINCT step_sequence FROM disturbance")
        }
        for columns in self._all(
            # In the order of the table: sorted by SQLite, all rows would be kept at once.
            f"SELECT {', '.join(STEP_COLUMNS)}, job.text AS job_file FROM step NOT INDEXED "  # noqa: S608 - own names only
            "LEFT JOIN job ON job.id = job_id "
            "WHERE test_id = ? AND sequence > ? ORDER BY sequence",
            test_id,
            self._after,
        ):
            try:
                step, unread = parse_step(columns)
            except BAD_ROW as error:
                section, number = columns["section"], columns["number"]
                self.leave_out(
                    _row_name(test, columns),
                    error,
                    test=test,
                    section=section if isinstance(section, str) else None,
                    number=number if isinstance(number, int) else None,
                    step=True,
                )
                continue
            for column, reason in unread.items():
                what = f"{column} of {_row_name(test, columns)}"
                self.leave_out(what, reason, test=test, section=step.section, number=step.number)
            if columns["sequence"] in disturbed and (found := self._disturbances(test, columns)):
                step = replace(step, disturbances=found)
            if again := self._is_set_aside(columns):
                set_aside.append((columns["sequence"], step))
            else:
                steps.append(step)
                sequences.append(columns["sequence"])
            self._logged(columns, step, set_aside=again)
        self.sequences[test] = sequences
        return tuple(steps), tuple(set_aside)

    def _disturbances(self, test: str, step: dict[str, Any]) -> tuple[Disturbance, ...]:
        rows = self._all(
            "SELECT * FROM disturbance WHERE step_sequence = ? ORDER BY number", step["sequence"]
        )
        name = f"what disturbed {_row_name(test, step)}"
        return tuple(self._parse_rows(rows, parse_disturbance, lambda _: name, test=test))

    def _under_way(self, test: str, test_id: int) -> UnfinishedStep | None:
        rows = self._all("SELECT * FROM under_way WHERE test_id = ?", test_id)
        if not rows:
            return None

        def parse(columns: dict[str, Any]) -> UnfinishedStep:
            return parse_under_way(columns, self.samples_under_way()[1])

        name = f"what was measured of the step of {test} that did not end"
        return next(self._parse_rows(rows, parse, lambda _: name, test=test), None)

    def samples_under_way(self, after_part: int = 0) -> tuple[int, list[Sample]]:
        """The number of the newest part of the step under way, and the seconds of those after one."""
        samples: list[Sample] = []
        newest = 0
        for part_row in self._all(
            "SELECT number FROM under_way_part WHERE number > ? ORDER BY number", after_part
        ):
            newest = part_row["number"]
            samples += read_samples(find_of_part(self._db, newest))
        return max(newest, after_part), samples


def _names(value: object) -> tuple[str, ...]:
    names = value if isinstance(value, list) else []
    return tuple(name for name in names if isinstance(name, str))


def step_name(test: str, step: StepRecord) -> str:
    return (
        f"step {step.position + 1} of {step.kind.value} {step.number} of {test}, {step.section} "
        f"({step.workload.mix_and_size})"
    )


def _row_name(test: str, columns: dict[str, Any]) -> str:
    """A step that cannot be read, by what its row says all the same."""
    shown = {
        key: drop_controls(str(columns[key]))[:40]
        for key in ("section", "kind", "number", "read_percent", "block_size_bytes")
    }
    return (
        f"step {columns['sequence']} of {test} ({shown['section']}, {shown['kind']} "
        f"{shown['number']}, {shown['read_percent']} % reads of {shown['block_size_bytes']} bytes)"
    )
