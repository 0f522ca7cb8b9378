"""A whole run as a record, read from all readable rows of its file. Unreadable rows are omitted and reported."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from tkperf.model.batch_state import find_snapshot
from tkperf.model.figures import Figure
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import (
    LeftOut,
    LogEntry,
    PurgeRecord,
    Resumption,
    RunRecord,
    RunStatus,
    StepRecord,
    TestRecord,
    VerdictRecord,
)
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.throttling import count_throttled_steps, with_throttled_steps
from tkperf.runfile.limits import (
    MOST_CELLS,
    MOST_DRIVES,
    MOST_PLANNED_POINTS,
    MOST_PLANNED_VALUES,
    MOST_ROWS,
    MOST_SECTIONS,
    MOST_STEPS_TIMES_SECTIONS,
    MOST_STEPS_TIMES_WORKLOADS,
    Meter,
    require_few,
    require_few_steps,
)
from tkperf.runfile.log_rows import LogRows
from tkperf.runfile.row_records import (
    BAD_ROW,
    Columns,
    RunEnd,
    TestRow,
    convert,
    parse_json,
    parse_note,
    parse_plan,
    parse_reading,
    parse_resumption,
    parse_run_facts,
    parse_test,
    parse_warning,
    stand_in_test,
)
from tkperf.runfile.salvage import Salvage

ENDED_BY_KILL = "tkperf was killed before it could end the run"
NOT_BEGUN = "tkperf was stopped before it began; nothing was measured"
END_UNREAD = "how the run ended cannot be read"

T = TypeVar("T")


class RunRows:
    """The rows of an open database. They are read once, in one transaction.

    Attributes:
        log: the rows of the log: steps, purges, verdicts and outcomes.
    """

    def __init__(self, db: sqlite3.Connection, meter: Meter, *, after: int = 0, histograms: bool = True) -> None:
        """Prepare to read. Only the rows of the log that follow row ``after`` are read, because the caller already has
        the earlier rows.
        """
        self._meter = meter
        self._salvage = Salvage(db, meter)
        self.log = LogRows(self._salvage, meter, after=after, histograms=histograms)
        self.leave_out = self._salvage.leave_out

    @property
    def left_out(self) -> list[LeftOut]:
        """Return the parts of the file that could not be read."""
        return self._salvage.left_out

    def record(self, *, name: str, written: bool) -> RunRecord:
        """Return the whole run.

        Args:
            name: the name to use if the file does not contain the name of the run.
            written: whether a writer holds the lock of the file. In this case, a part without an end is still running.
        """
        facts = self._facts()
        info, unread = parse_run_facts(facts, name=name)
        end = self._end(facts, written)
        if (mark := find_snapshot(info.host)) is not None and mark.running:
            because = f"{mark.words}, where its run went on"
            end = RunEnd(status=RunStatus.INTERRUPTED, ended_utc=mark.utc, ended_because=because)
        if facts:
            for key, reason in unread.items():
                self.leave_out(f"fact {key} of the run", reason)
        resumptions = self._resumptions()
        planned = _names(facts.get("tests"))
        tests = self._tests(written, resumptions, planned)
        earlier_ids = _earlier_ids(resumptions)
        places = {name: place for place, name in enumerate(planned)}
        record = RunRecord(
            info=info,
            status=end.status,
            ended_utc=end.ended_utc,
            ended_because=end.ended_because,
            # Tests are in the order of the plan, so a repeated or added test keeps its place.
            tests=tuple(
                sorted(
                    (test for test in tests if test.id not in earlier_ids),
                    key=lambda test: places.get(test.name, len(places)),
                )
            ),
            resumptions=resumptions,
            earlier=tuple(test for test in tests if test.id in earlier_ids),
            planned=planned,
            warnings=tuple(self._salvage.records("warning", parse_warning)),
            notes=tuple(self._salvage.records("note", parse_note)),
            telemetry=self._telemetry(),
            left_out=tuple(self.left_out),
        )
        most = self._meter.most(MOST_ROWS["disturbance"])
        throttled = count_throttled_steps(record, most=most)
        require_few(throttled, most, "times that steps were throttled")
        return with_throttled_steps(record) if throttled else record

    def _telemetry(self) -> tuple[Reading, ...]:
        """Return the readings of all drives in the order of their times."""
        readings = sorted(self._salvage.records("telemetry", parse_reading), key=lambda reading: reading.at_s)
        require_few(len({one.drive for one in readings}), MOST_DRIVES, "drives in table telemetry")
        return tuple(readings)

    def _facts(self) -> dict[str, Any]:
        def parse(row: Columns) -> tuple[str, Any]:
            return row["key"], parse_json(row["value"])

        facts = dict(
            self._salvage.parse(self._salvage.rows("run"), parse, lambda row: f"fact {str(row['key'])[:40]} of the run")
        )
        if facts:
            facts["hosts"] = list(
                self._salvage.parse(
                    (row for row in self._salvage.rows("host") if row["facts"] is not None),
                    lambda row: parse_json(row["facts"]),
                    lambda row: f"facts of host {row['id']}",
                )
            )
        return facts

    def _end(self, facts: dict[str, Any], written: bool) -> RunEnd:
        """Return the end of the run, as far as the file contains it."""
        going_on = RunStatus.RUNNING if written else RunStatus.INTERRUPTED
        if not facts and not self.left_out:
            because = "the run is about to begin" if written else NOT_BEGUN
            return RunEnd(status=going_on, ended_utc=None, ended_because=because)
        try:
            end = convert("run", facts, RunEnd)
        except BAD_ROW as error:
            self.leave_out("how the run ended", error)
            return RunEnd(status=going_on, ended_utc=None, ended_because=END_UNREAD)
        if end.status is RunStatus.RUNNING and not written:
            return msgspec.structs.replace(end, status=going_on, ended_because=ENDED_BY_KILL)
        return end

    def _resumptions(self) -> tuple[Resumption, ...]:
        rows = self._salvage.rows("resumption")
        return tuple(self._salvage.parse(rows, parse_resumption, lambda row: f"resumption {row['number']}"))

    def _tests(self, written: bool, resumptions: Sequence[Resumption], planned: Sequence[str]) -> list[TestRecord]:
        """Return all tests, including tests that were repeated."""
        rows: dict[int, TestRow] = {}
        names: set[str] = set()
        for test_id, (row, unread) in self._salvage.parse(
            self._test_rows(planned, resumptions),
            lambda columns: (columns["id"], parse_test(columns)),
            lambda columns: f"test {columns['id']}",
        ):
            if row.name in names:  # steps contain the name of their test, so the name must be unique
                self.leave_out(f"test {test_id}", f"table test: two tests of one name, {row.name}")
                continue
            rows[test_id] = row
            if test_id not in _earlier_ids(resumptions):
                names.add(row.name)
            for key, reason in unread.items():
                self.leave_out(f"{key} of test {row.name}", reason, test=row.name)
        self.log.read({test_id: row.name for test_id, row in rows.items()}, resumptions)
        logs: dict[int, list[LogEntry]] = {test_id: [] for test_id in rows}
        for entry in self.log.entries:
            logs[entry.test_id].append(entry)
        tests = [self._test(test_id, row, logs[test_id], written) for test_id, row in rows.items()]
        sections = {(test.name, step.section) for test in tests for step in test.steps}
        require_few(len(sections), MOST_SECTIONS, "sections")
        cells = {(test.name, step.section, step.key) for test in tests for step in test.steps}
        require_few(len(cells), MOST_CELLS, "different workloads in its sections")
        steps, most = sum(len(test.steps) for test in tests), self._meter.most
        require_few_steps(steps, len(sections), most(MOST_STEPS_TIMES_SECTIONS), "sections")
        require_few_steps(steps, len(cells), most(MOST_STEPS_TIMES_WORKLOADS), "different workloads")
        require_few(
            sum(
                count_planned(test, Counter(section for name, section, _ in cells if name == test.name))
                for test in tests
            ),
            MOST_PLANNED_VALUES,
            "values of workloads in the figures of its plans",
        )
        require_few(
            sum(count_planned(test, Counter(step.section for step in test.steps)) for test in tests),
            self._meter.most(MOST_PLANNED_POINTS),
            "values of steps in the figures of its plans",
        )
        return tests

    def _test_rows(self, planned: Sequence[str], resumptions: Sequence[Resumption]) -> list[Columns]:
        """Return the rows of table test. If a row is lost, the result contains a row with its known values instead."""
        lost_before = len(self.left_out)
        found = {row["id"]: row for row in self._salvage.rows("test")}
        if len(self.left_out) > lost_before and not resumptions:
            # Tests start in the order of the plan, so the number of a lost row follows from the plan.
            for test_id, name in enumerate(planned, start=1):
                found.setdefault(test_id, stand_in_test(test_id, name))
        return [found[test_id] for test_id in sorted(found)]

    def _test(self, test_id: int, row: TestRow, log: Sequence[LogEntry], written: bool) -> TestRecord:
        killed = row.status is RunStatus.RUNNING and not written
        plans = self._salvage.parse(
            [{"plan": row.plan}] if row.plan is not None else [],
            lambda columns: parse_plan(columns["plan"]),
            lambda _: f"how test {row.name} is shown",
            test=row.name,
        )
        return TestRecord(
            name=row.name,
            status=RunStatus.INTERRUPTED if killed else row.status,
            started_s=row.started_s,
            ended_s=row.ended_s,
            outcomes=_of_kind(SectionOutcome, log),
            purges=_of_kind(PurgeRecord, log),
            steps=_of_kind(StepRecord, log),
            set_aside=tuple(
                (entry.sequence, entry.record)
                for entry in log
                if entry.set_aside and isinstance(entry.record, StepRecord)
            ),
            id=test_id,
            verdicts=_of_kind(VerdictRecord, log),
            under_way=self.log.under_way(row.name, test_id),
            plan=next(plans, None),
        )


def _of_kind(kind: type[T], log: Sequence[LogEntry]) -> tuple[T, ...]:
    """Return the records of one type, except records that were set aside."""
    return tuple(entry.record for entry in log if isinstance(entry.record, kind) and not entry.set_aside)


def count_planned(test: TestRecord, places: Counter[str]) -> int:
    """Return the number of values in the figures that a test plans. Each curve has one value at each place of its
    section.
    """
    if test.plan is None:
        return 0
    in_sections = (
        places[section.name] * (len(section.quantities) + sum(map(_count_curves, section.figures)))
        for section in test.plan.sections
    )
    return places.total() * sum(map(_count_curves, test.plan.figures)) + sum(in_sections)


def _count_curves(figure: Figure) -> int:
    return max(1, len(figure.quantities)) * max(1, sum(map(len, figure.groups)))


def _earlier_ids(resumptions: Sequence[Resumption]) -> set[int]:
    """Return the row numbers of tests that were measured again."""
    return {test_id for resumption in resumptions for test_id in resumption.repeated_ids}


def _names(value: object) -> tuple[str, ...]:
    names = value if isinstance(value, list) else []
    return tuple(name for name in names if isinstance(name, str))
