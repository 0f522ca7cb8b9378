"""The replay of an interrupted run. A new procedure receives the answers that are in the log, and the run continues
after these answers (docs/adr/0028).

The procedure makes the same requests as before and receives the old measurements, up to the first missing measurement.
Some old measurements must be repeated, because the later measurements would otherwise be invalid. tkperf sets these old
measurements aside. If the procedure accepts an interruption, only the measurements of the interrupted round are
repeated. Otherwise all measurements since the last purge are repeated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tkperf.model.phases import (
    Answer,
    Continuous,
    Fill,
    Idle,
    Interruption,
    Phase,
    Procedure,
    Purge,
    Round,
    SectionOutcome,
    Statement,
)
from tkperf.model.record import GoesOn, LogEntry, PurgeRecord, Resumption, StepRecord, VerdictRecord
from tkperf.model.workload import Workload
from tkperf.procedures.forecast import drive
from tkperf.procedures.profiles import Profile
from tkperf.runner.events import describe_phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The answers that the procedure of a test receives before new measurements begin.

    Attributes:
        answers: the answers to the first phases.
        statement_count: the number of verdicts and section outcomes that the log already contains.
        goes_on: the kind of place at which the test continues.
        section, round_number: the place of the interrupted phase. None means that no phase was interrupted.
        set_aside_from: the sequence number of the first row of the log that is measured again. None means that no row
            is measured again.
        again: a description of the part that is measured again.
    """

    answers: tuple[Answer, ...] = ()
    statement_count: int = 0
    goes_on: GoesOn = GoesOn.NEXT
    section: str | None = None
    round_number: int | None = None
    set_aside_from: int | None = None
    again: str = ""


NOTHING = Replay()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The part of a run that was finished before the interruption.

    Attributes:
        done: the section outcomes of each finished test, keyed by the name of the test.
        replayed: the replay of the interrupted test.
    """

    resumption: Resumption
    done: Mapping[str, tuple[SectionOutcome, ...]]
    replayed: Replay = NOTHING

    def replay_of(self, test: str) -> Replay:
        return self.replayed if test == self.resumption.test else NOTHING


@dataclass(frozen=True, slots=True)
class _Asked:
    """A phase that the log contains, with its answer, its first row if there is such a row, and the number of verdicts
    and outcomes before the phase.
    """

    phase: Phase
    answer: Answer
    sequence: int | None
    statement_count: int


def replay(
    procedure: Procedure, log: Sequence[LogEntry], earlier: Sequence[Resumption] = (), *, accept: bool = False
) -> Replay:
    """Return the replay that determines how a test continues after the rows of its log.

    Args:
        procedure: a new procedure of the test.
        log: the rows of the test in their order, without the rows that were set aside.
        earlier: the earlier interruptions of this test.
        accept: whether the test continues at the place of the interruption, even if its results are then less valid.
            Fills and purges are always repeated completely.

    Raises:
        ValueError: the log does not follow the procedure. The message names the row.
    """
    reader = _Reader(deque(log), deque(_taken(earlier)))
    missing = reader.read(procedure)
    if missing is None:
        return Replay(answers=_answers(reader.asked), statement_count=reader.statement_count)
    return _go_on(reader, missing, accept=accept)


def find_reached(
    procedure: Procedure, log: Sequence[LogEntry], earlier: Sequence[Resumption] = ()
) -> tuple[Phase | None, tuple[Answer, ...], int]:
    """Return the place that a running test has reached. The arguments and errors are the same as for ``replay``.

    The result contains the first phase that is not complete in the log, the answers to the earlier phases, and the
    number of log rows that belong to the incomplete phase. If the procedure has ended, the phase is None.
    """
    reader = _Reader(deque(log), deque(_taken(earlier)))
    phase = reader.read(procedure)
    return phase, _answers(reader.asked), len(reader.log)


def _taken(earlier: Sequence[Resumption]) -> list[Resumption]:
    """Return the interruptions that the procedure received as answers, except interruptions that were set aside."""
    return [
        resumption
        for position, resumption in enumerate(earlier)
        if resumption.goes_on is GoesOn.ROUND
        and not any(
            later.set_aside_from is not None
            and resumption.set_aside_to is not None
            and later.set_aside_from <= resumption.set_aside_to
            for later in earlier[position + 1 :]
        )
    ]


@dataclass(slots=True)
class _Reader:
    """A reader of the log of a test. The reader passes the logged answers to a procedure."""

    log: deque[LogEntry]
    interruptions: deque[Resumption]
    asked: list[_Asked] = field(default_factory=list)
    statement_count: int = 0

    def read(self, procedure: Procedure) -> Phase | None:
        """Return the first phase that is not complete in the log. None means that the procedure has ended."""
        for asked in drive(procedure, lambda *_: self.asked[-1].answer):
            if isinstance(asked, Statement):
                self._find(asked)
            elif not self._answer(asked):
                return asked
        if self.log:
            raise ValueError(f"the test has ended, but the log continues with row {self.log[0].sequence}")
        return None

    def _find(self, statement: Statement) -> None:
        if not self.log:
            return
        entry = self.log.popleft()
        record = entry.record.verdict if isinstance(entry.record, VerdictRecord) else entry.record
        what = "outcome" if isinstance(statement, SectionOutcome) else "verdict"
        if not isinstance(record, type(statement)) or _key(record) != _key(statement):
            raise ValueError(
                f"row {entry.sequence} of the log is not the {what} that the test produces at this position"
            )
        self.statement_count += 1

    def _answer(self, phase: Phase) -> bool:
        """Read the answer to a phase from the log. Return False if the log does not contain the complete phase."""
        sequence = self.log[0].sequence if self.log else None
        if isinstance(phase, Idle):
            self._keep(phase, None, None)
            return True
        if self._was_interrupted(phase):
            self.interruptions.popleft()
            self._keep(phase, Interruption(), None)
            return True
        if sequence is None:
            return False
        if isinstance(phase, Purge):
            entry = self.log.popleft()
            self._require(isinstance(entry.record, PurgeRecord), entry, phase)
            self._keep(phase, None, sequence)
            return True
        wanted = _workloads(phase)
        # The rows of an interrupted phase contain only the beginning of the phase.
        steps = [
            self._require_step(entry, phase, position, load)
            for position, (entry, load) in enumerate(zip(self.log, wanted, strict=False))
        ]
        if len(steps) < len(wanted):
            return False
        for _ in steps:
            self.log.popleft()
        if isinstance(phase, Round):
            answer: Answer = {step.workload: step.answer for step in steps}
        else:
            answer = steps[0].answer
        self._keep(phase, answer, sequence)
        return True

    def _was_interrupted(self, phase: Phase) -> bool:
        interruption = self.interruptions[0] if self.interruptions else None
        return (
            interruption is not None
            and isinstance(phase, Round)
            and phase.repeatable
            and (phase.section, phase.number) == (interruption.section, interruption.round_number)
        )

    def _require_step(self, entry: LogEntry, phase: Phase, position: int, load: Workload) -> StepRecord:
        step = entry.record
        self._require(isinstance(step, StepRecord), entry, phase)
        assert isinstance(step, StepRecord)
        number = getattr(phase, "number", 1)  # a fill has no number
        found = (step.section, step.number, step.position, step.workload)
        self._require(found == (phase.section, number, position, load), entry, phase)
        return step

    def _require(self, fits: bool, entry: LogEntry, phase: Phase) -> None:
        section = entry.record.section
        if not fits or section != phase.section:
            raise ValueError(
                f"row {entry.sequence} of the log ({section}) is not the phase that the test requires at "
                f"this position ({describe_phase(phase)})"
            )

    def _keep(self, phase: Phase, answer: Answer, sequence: int | None) -> None:
        self.asked.append(_Asked(phase, answer, sequence, self.statement_count))


def _key(statement: Statement) -> tuple[object, ...]:
    """Return the parts that do not change when a procedure repeats a statement. Numbers may differ in their
    last digit.
    """
    if isinstance(statement, SectionOutcome):
        return statement.section, statement.window, statement.demand
    return statement.tracking, statement.rounds, statement.reached


def _go_on(reader: _Reader, missing: Phase, *, accept: bool) -> Replay:
    """Return the replay that determines where the test continues. ``missing`` is the interrupted phase. All earlier
    phases are complete.
    """
    asked = list(reader.asked)
    # The log may contain some rows of the interrupted phase.
    part = reader.log[0].sequence if reader.log else None
    statement_count = reader.statement_count
    repeatable = isinstance(missing, Round) and missing.repeatable and not accept
    # An idle time has no row in the log, so it may have been interrupted as well. Before a repeatable round, the idle
    # time need not be repeated here, because the procedure requests it again, together with the round.
    while asked and isinstance(asked[-1].phase, Idle) and not repeatable:
        missing = asked.pop().phase
    if not asked and part is None:
        return NOTHING
    if isinstance(missing, Purge):
        return Replay(answers=_answers(asked), statement_count=statement_count)
    if accept and not isinstance(missing, Fill):
        return Replay(
            answers=_answers(asked),
            statement_count=statement_count,
            goes_on=GoesOn.WHERE_IT_STOPPED,
            section=missing.section,
            set_aside_from=part,
            again=describe_phase(missing),
        )
    if isinstance(missing, Round) and missing.repeatable:
        return _from_round(asked, missing, part, statement_count)
    return _from_purge(asked, missing, part)


def _from_round(asked: list[_Asked], missing: Round, part: int | None, statement_count: int) -> Replay:
    """Return a replay that continues with the interrupted round. If the rounds directly before the interrupted round
    have the same number, they are repeated as well.
    """
    section = missing.section
    while asked and _is_one_round(asked[-1], missing, statement_count):
        before = asked.pop()
        assert isinstance(before.phase, Round)
        missing, part = before.phase, before.sequence
    return Replay(
        answers=(*_answers(asked), Interruption()),
        statement_count=statement_count,
        goes_on=GoesOn.ROUND,
        section=missing.section,
        round_number=missing.number,
        set_aside_from=part,
        again=f"{section}, {'area' if missing.areas else 'round'} {missing.number}",
    )


def _is_one_round(before: _Asked, missing: Round, statement_count: int) -> bool:
    phase = before.phase
    return (
        isinstance(phase, Round)
        and phase.repeatable
        and phase.number == missing.number
        and before.statement_count == statement_count
        and before.sequence is not None
    )


def _from_purge(asked: list[_Asked], missing: Phase, part: int | None) -> Replay:
    """Return a replay that continues from the last purge. If the test has no purge, the replay continues from the
    beginning of the test.
    """
    purges = [place for place, before in enumerate(asked) if isinstance(before.phase, Purge)]
    place = purges[-1] if purges else 0
    redone = asked[place:]
    rows = [before.sequence for before in redone if before.sequence is not None]
    names = dict.fromkeys([*(before.phase.section for before in redone), missing.section])
    return Replay(
        answers=_answers(asked[:place]),
        statement_count=redone[0].statement_count if redone else 0,
        goes_on=GoesOn.PURGE if purges else GoesOn.TEST,
        section=missing.section,
        set_aside_from=rows[0] if rows else part,
        again=f"{', '.join(names)}: all from {'its purge' if purges else 'the beginning'} on",
    )


def _answers(asked: Sequence[_Asked]) -> tuple[Answer, ...]:
    return tuple(before.answer for before in asked)


def _workloads(phase: Phase) -> tuple[Workload, ...]:
    match phase:
        case Round():
            return tuple(step.workload for step in phase.steps)
        case Fill() | Continuous():
            return (phase.workload,)
        case Purge() | Idle():
            return ()


def at_found_demand(profile: Profile, outcomes: Iterable[SectionOutcome]) -> Profile:
    """Return the profile for the following tests. If a test found a demand, the returned profile contains this
    demand.
    """
    for demand in (outcome.demand for outcome in outcomes):
        if demand is not None:
            profile = profile.at_demand(demand.jobs, demand.io_depth)
    return profile
