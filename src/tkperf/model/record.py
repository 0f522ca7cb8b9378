"""The records of a run. The runner creates the records, and the run file stores them.

Every time ``*_s`` counts from the start of the run on the monotonic clock, in seconds. A time ``*_utc`` is a text in
the format ISO 8601.
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

# This method is recorded if a run omitted the purge.
NO_PURGE = "none"


class StepKind(StrEnum):
    FILL = "fill"
    ROUND = "round"
    AREA = "area"
    CONTINUOUS = "continuous"
    # Kinds of steps that are measured and stored, but that are not part of any result.
    WARM_UP = "warm-up"


# The section, kind, number, position and start of a step. No two steps of a test have the same values.
StepPlace = tuple[str, StepKind, int, int, float]


def kind_of(phase: Fill | Round | Continuous) -> StepKind:
    """Return the kind of the steps of a phase."""
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
    """The status of a run or test. If the status is ``running`` but no process writes the run file, tkperf was
    killed.
    """

    RUNNING = "running"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One executed step: a fill, a step of a round or area, or a slice of a continuous stream.

    ``number`` is the number of the round, area or slice (1 for a fill). ``position`` is the place in the round, counted
    from 0. ``gap_s`` is the time from the end of the previous activity to the release of this step, according to the
    clock of tkperf. The previous activity is a step, or with ``planned_pause`` also a purge or the preparation of a
    RAID set. None means that no activity came before. ``foreign_*`` are the bytes that other programs moved during the
    step, according to the counters of the device. None means that the bytes could not be compared. ``disturbances`` is
    None if nothing observed the step, as in an imported run or in the run of an old version. ``host`` is the activity
    of the host during the step. None means that the host was not observed. ``job_file`` is the fio job in a form that a
    user can run again. ``engine_output`` is the last JSON document of fio. An empty value means that no document
    exists.
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
    """The other parts of the step. The parts are stored when they are first requested, because an analysis requests
    them several times.
    """

    @property
    def answer(self) -> Measurement:
        """Return the answer that the procedure received for this step."""
        return as_answer(self.measurement, self.disturbances)

    @property
    def key(self) -> Workload:
        """Return the workload under which the result of this step is listed."""
        return key_of(self.kind, self.workload)

    @property
    def place(self) -> StepPlace:
        """Return the place of the step in its test. All streams of a step have this same place."""
        return self.section, self.kind, self.number, self.position, self.started_s

    @property
    def is_in_results(self) -> bool:
        return self.kind not in (StepKind.FILL, StepKind.WARM_UP)

    @property
    def parts(self) -> tuple[StepRecord, ...]:
        """Return the step, followed by each stream of a combination and by the flushes of each load, as separate
        steps.
        """
        if not self._parts:
            loads = [self]
            for work in list_streams(self.workload):
                assert work.stream is not None
                loads.append(replace(self, workload=work, measurement=self.measurement.of_stream(work.stream)))
            # The first part is the step itself. This part is not stored, because a step must not refer to itself.
            self._parts.extend([part for one in loads for part in _with_flushes(one)][1:])
        return (self, *self._parts)

    @property
    def foreign_bytes(self) -> int | None:
        """Return the bytes that other programs moved during the step. None means that the bytes could not be
        compared.
        """
        if self.foreign_read_bytes is None or self.foreign_write_bytes is None:
            return None
        return self.foreign_read_bytes + self.foreign_write_bytes

    @property
    def disturbance_codes(self) -> tuple[DisturbanceCode, ...] | None:
        """Return the kinds of disturbance of the step. None means that the step was not observed."""
        found = self.disturbances
        return None if found is None else find_codes(disturbance.code for disturbance in found)


def _with_flushes(step: StepRecord) -> tuple[StepRecord, ...]:
    if step.workload.flush_every is None:
        return (step,)
    flushes = replace(step, workload=key_of_flushes(step.workload), measurement=step.measurement.of_flushes())
    return (step, flushes)


def key_of(kind: StepKind, workload: Workload) -> Workload:
    """Return the workload under which the result of a step is listed. Steps in all areas of a disk have the same key,
    without the region.
    """
    return replace(workload, region=None) if kind is StepKind.AREA else workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRecord:
    section: str
    started_s: float
    duration_s: float
    method: str
    note: str | None = None


def is_purged(purge: PurgeRecord | None) -> bool:
    """Return whether a purge was done. An omitted purge also has a record, with the method ``none``."""
    return purge is not None and purge.method != NO_PURGE


def is_as_new(purge: PurgeRecord | None, filled_bytes: int | None) -> bool:
    """Return whether the section measures a device to which nothing was written after the purge."""
    return is_purged(purge) and filled_bytes is None


# A function that receives the finished share (0 to 1) of a purge, or of the preparation of a RAID set. None means that
# the share is not known.
OnProgress = Callable[[float | None], None]
# A function that receives the code and the text of a note that must be recorded before a purge.
OnNote = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult:
    """The result of a purge: the method, and the result of the check after the purge."""

    method: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord:
    """The steady-state verdict that the run recorded after round ``number``."""

    section: str
    number: int
    verdict: SteadyStateVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNote:
    """A warning or a note of a run. ``code`` is a name that does not change between versions, such as
    ``ata-password-set`` or ``run-file-waited``.

    Every reader of the result must see a warning. A note records a fact before an action, or explains a result later.
    """

    code: str
    text: str
    test: str | None = None
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedStep:
    """The measurement so far of a step that has not ended or that was interrupted. Such a measurement is not a
    result.

    ``measured_so_far`` contains the totals up to the newest stored second, without samples.
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
    """A damaged part of a run file: its name, the reason why it cannot be read, and its place if the place is known.

    ``is_step`` means that the part is a whole step. In this case, the round or the stream to which the step belongs is
    not complete.
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

    # The interrupted round is repeated. Earlier verdicts are no longer used for decisions.
    ROUND = "round"
    # The last purge before the interruption is repeated, together with all later steps.
    PURGE = "purge"
    # The test is repeated from its beginning, because the test has no purge.
    TEST = "test"
    # The user chose to continue at the point at which the test stopped. Only the interrupted part is measured again.
    WHERE_IT_STOPPED = "where it stopped"
    # Nothing was interrupted.
    NEXT = "next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """A continuation of a run. The run was interrupted, or the user repeats or adds tests.

    Attributes:
        test, test_id: the test that was running, and the row of the test in the run file. None means that no test was
            running.
        section: section of the interrupted part. None means that no part was interrupted.
        round_number: number of the repeated round. The number is set only with ``GoesOn.ROUND``.
        set_aside_from: number of the first row, in the log of the test, whose measurement was repeated. No result is
            computed from the rows from ``set_aside_from`` to ``set_aside_to``. None means that no measurement was
            repeated.
        set_aside_to: number of the last log row at the time of the resumption.
        again: the parts that were measured again, in words. An empty text means that no part was measured again.
        cut_off: the step that was running at the interruption, in words. None means that this step is not known.
        cut_off_written_bytes: bytes that the interrupted step wrote, as far as the number is known.
        stopped_s: the last time before the stop that the run file contains.
        resumed_s: the time at which the run continued, according to the clock of the host.
        because: the reason for the stop.
        repeated, repeated_ids: tests to measure again, and the rows of their earlier measurements.
        added: additional tests to measure.
        changes: the differences between the host before the stop and the host at the resumption.
        command_line: the command line that resumed the run.
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
        """Return whether the run had stopped early. If not, all tests of the run were complete."""
        return self.status is not RunStatus.COMPLETE

    @property
    def pause_s(self) -> float:
        """Return the longest time, in s, for which the device may have been without I/O."""
        return self.resumed_s - self.stopped_s

    def sets_aside(self, sequence: int) -> bool:
        """Return whether the measurement in a row was repeated. ``sequence`` is the number of the row in the log of the
        test.
        """
        first, last = self.set_aside_from, self.set_aside_to
        return first is not None and last is not None and first <= sequence <= last


Logged = PurgeRecord | StepRecord | VerdictRecord | SectionOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A row in the log of a run: a step, a purge, a verdict or the outcome of a section. ``set_aside`` means that the
    measurement in the row was repeated later.

    ``test_id`` distinguishes a repeated test from its earlier measurement.
    """

    sequence: int
    test_id: int
    record: Logged
    set_aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRecord:
    """The recorded part of one test of a run. ``outcomes`` are the outcomes of the finished sections, in order.

    ``plan`` is the presentation of the test. None means that the file contains no plan. ``set_aside`` contains the
    steps that were measured again after an interruption, keyed by their row numbers. These steps count only towards the
    amount written.
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
    """A whole run, as the run file contains it. ``ended_because`` is the reason for the end of the run, as text for
    people to read.

    ``left_out`` lists the parts of the file that cannot be read. The record contains everything else. ``earlier``
    contains the measurements of tests that were repeated later. ``planned`` are the names of all planned tests.
    ``telemetry`` are the readings of the drives in the order of time.
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
