"""The records of a run that the runner emits and the run file keeps.

Every time ``*_s`` counts from the start of the run on the monotonic clock; ``*_utc`` is ISO 8601.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tkperf.model.disturbance.io import Disturbance, DisturbanceCode, find_codes
from tkperf.model.figures import TestPlan
from tkperf.model.host_use import HostUse
from tkperf.model.measurement import Measurement, as_answer
from tkperf.model.phases import Continuous, Fill, Round, SectionOutcome
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.workload import Workload, key_of_flushes, list_streams

# The purge method of a run that omitted the purge.
NO_PURGE = "none"


class StepKind(StrEnum):
    FILL = "fill"
    ROUND = "round"
    AREA = "area"
    CONTINUOUS = "continuous"
    # Kinds of steps that are measured and stored, but are not part of any result.
    WARM_UP = "warm-up"


# Section, kind, number, position and start of a step, which no other step of the test has.
StepPlace = tuple[str, StepKind, int, int, float]


def kind_of(phase: Fill | Round | Continuous) -> StepKind:
    """Return the kind of a phase's steps."""
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
    """Status of a run or test. ``running`` in a file that no process writes means that tkperf was killed."""

    RUNNING = "running"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One executed step: a fill, a step of a round or area, or a slice of a continuous stream.

    ``number`` is the round's, area's or slice's number (1 for a fill), ``position`` the place in the
    round from 0. ``gap_s`` is the time by tkperf's clock from the end of the activity before to the release of this
    step: the end of a step, or with ``planned_pause`` of a purge or of the preparation of a set; None
    if there was none before. ``foreign_*`` are the bytes that others moved meanwhile by the device's own
    counters, None if they could not be compared. ``disturbances`` is None if nothing watched the step, as in
    an imported run or a run of a tkperf that did not look. ``host`` is the host's activity meanwhile, None if
    not observed. ``job_file`` is the fio job as a user can run it again; ``engine_output`` is fio's last JSON
    document (empty if none).
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
    _parts: list[StepRecord] = field(default_factory=list, init=False, repr=False, compare=False)
    """The other parts of a step, as soon as they were asked for: an analysis asks several times."""

    @property
    def answer(self) -> Measurement:
        """Return the answer that the procedure received for this step."""
        return as_answer(self.measurement, self.disturbances)

    @property
    def key(self) -> Workload:
        """Return the key of the result of this step."""
        return key_of(self.kind, self.workload)

    @property
    def place(self) -> StepPlace:
        """Return the place of the step in its test. The streams of a step have the place of the step."""
        return self.section, self.kind, self.number, self.position, self.started_s

    @property
    def is_in_results(self) -> bool:
        return self.kind not in (StepKind.FILL, StepKind.WARM_UP)

    @property
    def parts(self) -> tuple[StepRecord, ...]:
        """Return the step, then each stream of a combination, and the flushes of each load, as steps of their own."""
        if not self._parts:
            loads = [self]
            for work in list_streams(self.workload):
                assert work.stream is not None
                loads.append(replace(self, workload=work, measurement=self.measurement.of_stream(work.stream)))
            # The first part is the step itself, which must not refer to itself.
            self._parts.extend([part for one in loads for part in _with_flushes(one)][1:])
        return (self, *self._parts)

    @property
    def foreign_bytes(self) -> int | None:
        """Return the bytes that other programs moved during the step; None: they could not be compared."""
        if self.foreign_read_bytes is None or self.foreign_write_bytes is None:
            return None
        return self.foreign_read_bytes + self.foreign_write_bytes

    @property
    def disturbance_codes(self) -> tuple[DisturbanceCode, ...] | None:
        """Return the kinds of disturbance; None: the step was not watched."""
        found = self.disturbances
        return None if found is None else find_codes(disturbance.code for disturbance in found)


def _with_flushes(step: StepRecord) -> tuple[StepRecord, ...]:
    if step.workload.flush_every is None:
        return (step,)
    flushes = replace(step, workload=key_of_flushes(step.workload), measurement=step.measurement.of_flushes())
    return (step, flushes)


def key_of(kind: StepKind, workload: Workload) -> Workload:
    """Return the key of the result of a step. In all areas of a disk, the workload is the same."""
    return replace(workload, region=None) if kind is StepKind.AREA else workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRecord:
    section: str
    started_s: float
    duration_s: float
    method: str
    note: str | None = None


def is_purged(purge: PurgeRecord | None) -> bool:
    """Return whether a purge was done. Omitted purges have a record, too."""
    return purge is not None and purge.method != NO_PURGE


def is_as_new(purge: PurgeRecord | None, filled_bytes: int | None) -> bool:
    """Return whether a section measures a device to which nothing was written since the purge."""
    return is_purged(purge) and filled_bytes is None


# A function that receives the finished share (0 to 1) of a purge or of the preparation of a set; None where the share
# is not known.
OnProgress = Callable[[float | None], None]
# A function that receives the code and the text of a note that must be recorded before a purge.
OnNote = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult:
    """The answer of a target to a purge: the method, and the findings afterwards."""

    method: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord:
    """A steady-state verdict, as the run gave it after round ``number``."""

    section: str
    number: int
    verdict: SteadyStateVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNote:
    """A warning or a note of a run. ``code`` is stable: ``ata-password-set``, ``run-file-waited`` ...

    Every reader of the result must see a warning. A note is a fact that must be recorded before an action, or that
    explains a result later.
    """

    code: str
    text: str
    test: str | None = None
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedStep:
    """The measurement so far of a step that has not ended or was interrupted. It is not a result.

    ``measured_so_far`` covers the seconds up to the newest stored second, without samples.
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
    """A part of a run file that no reader can use: name, reason, and place if the place is known.

    ``is_step``: the part is a whole step, so the round or the stream to which the step belongs is not complete.
    """

    what: str
    reason: str
    test: str | None = None
    section: str | None = None
    number: int | None = None
    is_step: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


class GoesOn(StrEnum):
    """The point at which a test continued after an interruption."""

    # The interrupted round is repeated. Earlier verdicts no longer decide anything.
    ROUND = "round"
    # The last purge before the interruption, and everything after that purge, is repeated.
    PURGE = "purge"
    # The test is repeated from its beginning, because it has no purge.
    TEST = "test"
    # The user accepts the point at which the test stopped. Only the interrupted part is measured again.
    WHERE_IT_STOPPED = "where it stopped"
    # Nothing was interrupted.
    NEXT = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """The continuation of a run: after an interruption, to repeat tests, or to add tests.

    Attributes:
        test, test_id: the test that was running, with its row; None between tests.
        section: section of the interrupted part; None if nothing was interrupted.
        round_number: number of the repeated round, with ``GoesOn.ROUND``.
        set_aside_from: the sequence of the first row of the test that was measured again. This row and the later ones
            are part of no result; None: no row.
        set_aside_to: the last row of the log at that time.
        again: the parts that were measured again, in words; empty if none.
        cut_off: the step that was running, in words, as far as it is known.
        cut_off_written_bytes: bytes that this step wrote, as far as they are known.
        stopped_s: the last moment before the stop in the run file.
        resumed_s: the time at which the run continued, according to the clock of the host.
        because: the reason of the stop.
        repeated, repeated_ids: tests to measure again, and the rows of their earlier measurements.
        added: tests to measure in addition.
        changes: differences on the host from then on.
        command_line: of the call that resumed the run.
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
    def interrupted(self) -> bool:
        """Return whether the run ended because of an interruption."""
        return self.status is not RunStatus.COMPLETE

    @property
    def pause_s(self) -> float:
        """Return the longest time for which the device may have been without I/O."""
        return self.resumed_s - self.stopped_s

    def sets_aside(self, sequence: int) -> bool:
        """Return whether this row of the test's log was measured again."""
        first, last = self.set_aside_from, self.set_aside_to
        return first is not None and last is not None and first <= sequence <= last


Logged = PurgeRecord | StepRecord | VerdictRecord | SectionOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A row of the log of a run: a step, a purge, a verdict or an end. ``set_aside``: the row was measured again later.

    ``test_id`` distinguishes a repeated test from its earlier measurement.
    """

    sequence: int
    test_id: int
    record: Logged
    set_aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRecord:
    """One test of a run, as far as the test was measured. ``outcomes`` are those of the finished sections, in order.

    ``plan`` is the presentation of the test, None if the file contains no plan. ``set_aside`` are steps, by their
    sequence, that were measured again after an interruption: they count only in the amount written.
    """

    __test__ = False  # pytest must not collect this class as a test case.

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
    """A whole run as read from its file. ``ended_because`` is a text for people.

    ``left_out`` are the parts of the file that cannot be read; everything else is in the record. ``earlier`` are
    measurements of tests that were repeated later. ``planned`` are the names of all planned tests. ``telemetry`` are
    the readings of the drives in the order of time.
    """

    info: RunInfo
    status: RunStatus
    ended_utc: str | None
    ended_because: str | None
    tests: tuple[TestRecord, ...]
    warnings: tuple[RunNote, ...]
    notes: tuple[RunNote, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    resumptions: tuple[Resumption, ...] = ()
    earlier: tuple[TestRecord, ...] = ()
    planned: tuple[str, ...] = ()
    telemetry: tuple[Reading, ...] = ()
