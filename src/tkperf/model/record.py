"""What a run leaves behind: the records that the runner emits and the run file keeps.

Every time ``*_s`` counts from the start of the run on the monotonic clock; ``*_utc`` is ISO 8601.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from tkperf.model.disturbance.codes import Disturbance
from tkperf.model.figures import TestPlan
from tkperf.model.host_use import HostUse
from tkperf.model.measurement import Measurement, as_answer
from tkperf.model.phases import Continuous, Fill, Round, SectionOutcome
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.telemetry.reading import Reading
from tkperf.model.workload import Workload

# The method of a purge that was left out.
NO_PURGE = "none"


class StepKind(StrEnum):
    FILL = "fill"
    ROUND = "round"
    AREA = "area"
    CONTINUOUS = "continuous"
    # Measured and kept, and part of no result.
    WARM_UP = "warm-up"


def kind_of(phase: Fill | Round | Continuous) -> StepKind:
    """Of a phase's steps."""
    match phase:
        case Fill():
            return StepKind.FILL
        case Round(warm_up=True) | Continuous(warm_up=True):
            return StepKind.WARM_UP
        case Continuous():
            return StepKind.CONTINUOUS
        case Round():
            return StepKind.ROUND if phase.areas is None else StepKind.AREA


class RunStatus(StrEnum):
    """``running`` in a file nobody writes to means that tkperf was killed."""

    RUNNING = "running"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One executed step: a fill, a step of a round or area, or a slice of a continuous stream.

    ``number`` is the round's, area's or slice's number (1 for a fill), ``position`` the place in the
    round from 0. ``gap_s`` is the time from the end of what came before to this one's release by
    tkperf's clock: of a step, or with ``planned_pause`` of a purge or of getting a set ready; None
    where nothing came before. ``foreign_*`` is what others moved meanwhile by the device's own
    counters, None where those could not be compared. ``disturbances`` is None where nobody watched, as in
    an imported run or one of a tkperf that did not look. ``host`` is what the host did meanwhile, None where
    it was not looked at. ``job_file`` is the fio job as
    it can be run again; ``engine_output`` fio's last JSON document (empty if none).
    """

    section: str
    kind: StepKind
    number: int
    position: int
    workload: Workload
    planned_s: float | None
    started_s: float
    gap_s: float | None
    measurement: Measurement
    job_file: str
    engine_output: bytes = field(default=b"", repr=False)
    planned_pause: bool = False
    foreign_read_bytes: int | None = None
    foreign_write_bytes: int | None = None
    disturbances: tuple[Disturbance, ...] | None = None
    host: HostUse | None = None

    @property
    def answer(self) -> Measurement:
        """What the step's procedure was answered."""
        return as_answer(self.measurement, self.disturbances)


def key_of(kind: StepKind, workload: Workload) -> Workload:
    """What a step's result is found by: in all areas of a disk the same workload."""
    return replace(workload, region=None) if kind is StepKind.AREA else workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRecord:
    section: str
    started_s: float
    duration_s: float
    method: str
    note: str | None = None


def is_purged(purge: PurgeRecord | None) -> bool:
    """Whether a purge was done: a record tells of those that were left out, too."""
    return purge is not None and purge.method != NO_PURGE


def is_as_new(purge: PurgeRecord | None, filled_bytes: int | None) -> bool:
    """Whether a section measures a device that nothing was written to since its purge."""
    return is_purged(purge) and filled_bytes is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult:
    """What a target answers to a purge: how it was done, and what was found afterwards."""

    method: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNote:
    """Something that must be on record before it is done, or that explains a result later.

    ``code`` is stable: ``ata-password-set``, ``run-file-waited`` ...
    """

    code: str
    text: str
    test: str | None = None
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord:
    """A steady-state verdict as it was given during the run, after round ``number``."""

    section: str
    number: int
    verdict: SteadyStateVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWarning:
    """A circumstance that a reader of the result must know. ``code`` is stable."""

    code: str
    text: str
    test: str | None = None
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedStep:
    """What was measured of a step that has not ended, or was cut off. It is no result.

    ``measured_so_far`` is of the seconds up to its newest that was kept, its samples left out.
    """

    section: str
    kind: StepKind
    number: int
    position: int
    workload: Workload
    planned_s: float | None
    planned_bytes: int | None
    started_s: float
    measured_so_far: Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something in a run file that no reader can take: what, why, and where it belongs if known.

    ``step``: a whole step, so that its round, or its stream, is not complete.
    """

    what: str
    reason: str
    test: str | None = None
    section: str | None = None
    number: int | None = None
    step: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


class GoesOn(StrEnum):
    """Where a test went on after an interruption."""

    # The round that was cut off, again; what was judged before decides nothing any more.
    ROUND = "round"
    # The purge before what was cut off, and all that followed it, again.
    PURGE = "purge"
    # The test from its beginning, which has no purge.
    TEST = "test"
    # Where it stopped, as the user accepted: what was cut off is measured again, nothing else.
    WHERE_IT_STOPPED = "where it stopped"
    # Nothing was cut off.
    NEXT = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """A run taken up again: after an interruption, to repeat tests, or to add some.

    Attributes:
        test, test_id: the test under way, with its row; None between tests.
        section: of what was cut off; None where nothing was.
        round_number: of the round that was asked for again, with ``GoesOn.ROUND``.
        set_aside_from: the first of the test's rows of the log, by their sequence, that were
            measured again and are in no result; None: none was.
        set_aside_to: the last row of the log at that time.
        again: in words what was measured again, empty where nothing was.
        cut_off: in words the step that was under way, as far as it is known.
        cut_off_written_bytes: what is known to be written in it.
        stopped_s: the last moment before it that the run file knows of.
        resumed_s: when the run went on, by the host's clock.
        because: why it had stopped.
        repeated, repeated_ids: tests that were to be measured again, and the rows of what was
            measured of them before.
        added: tests that were to be measured, too.
        changes: what was different on the host from then on.
        command_line: what resumed it.
    """

    resumed_utc: str
    stopped_s: float
    resumed_s: float
    status: RunStatus
    because: str | None
    goes_on: GoesOn
    test: str | None = None
    test_id: int | None = None
    section: str | None = None
    round_number: int | None = None
    set_aside_from: int | None = None
    set_aside_to: int | None = None
    again: str = ""
    cut_off: str | None = None
    cut_off_written_bytes: int = 0
    repeated: tuple[str, ...] = ()
    repeated_ids: tuple[int, ...] = ()
    added: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    command_line: tuple[str, ...] = ()

    @property
    def was_interrupted(self) -> bool:
        """Whether the run had not ended by itself."""
        return self.status is not RunStatus.COMPLETE

    @property
    def pause_s(self) -> float:
        """At most so long the device was left alone."""
        return self.resumed_s - self.stopped_s

    def sets_aside(self, sequence: int) -> bool:
        """Whether a row of the test's log was measured again."""
        first, last = self.set_aside_from, self.set_aside_to
        return first is not None and last is not None and first <= sequence <= last


Logged = PurgeRecord | StepRecord | VerdictRecord | SectionOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A row of a run's log: what was done, judged or ended. ``set_aside``: it was measured again later.

    ``test_id`` tells a test that was repeated from its earlier measurement.
    """

    sequence: int
    test_id: int
    record: Logged
    set_aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRecord:
    """One test of a run as far as it got. ``outcomes`` are of the sections that ended, in order.

    ``plan`` is how it is shown, None where its file does not say. ``set_aside`` are steps that were
    measured again after an interruption, by their sequence: they count in what was written alone.
    """

    __test__ = False  # not a test case, whatever pytest thinks of the name

    name: str
    status: RunStatus
    started_s: float
    ended_s: float | None
    outcomes: tuple[SectionOutcome, ...]
    purges: tuple[PurgeRecord, ...]
    steps: tuple[StepRecord, ...]
    verdicts: tuple[VerdictRecord, ...]
    under_way: UnfinishedStep | None = None
    plan: TestPlan | None = None
    set_aside: tuple[tuple[int, StepRecord], ...] = ()
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A whole run as read back from its file. ``ended_because`` is for people.

    ``left_out`` is what its file holds and nobody can read: everything else is there. ``earlier``
    are measurements of tests that were then repeated, ``planned`` the names of all that was to run;
    ``telemetry`` what its drives told of themselves, in the order of time.
    """

    info: RunInfo
    status: RunStatus
    ended_utc: str | None
    ended_because: str | None
    tests: tuple[TestRecord, ...]
    warnings: tuple[RunWarning, ...]
    notes: tuple[RunNote, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    resumptions: tuple[Resumption, ...] = ()
    earlier: tuple[TestRecord, ...] = ()
    planned: tuple[str, ...] = ()
    telemetry: tuple[Reading, ...] = ()
