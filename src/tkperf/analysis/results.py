"""Results of a run as plain data. All tables, charts and exports take their numbers only from these results.

A cell contains the results of one workload, computed from the rounds of a window according to the rules in
``quantity.py``. A stream without a window is a single measurement. None means "not measured".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from tkperf.analysis.characteristics import Characteristic
from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.timeline.timelines import Timeline
from tkperf.analysis.uncertainty.estimate import Uncertainties, Uncertainty
from tkperf.model.disturbance.io import Disturbance, DisturbanceCode
from tkperf.model.figures import Figure, SectionPlan
from tkperf.model.host_use import HostUse
from tkperf.model.phases import SectionOutcome
from tkperf.model.quantity import IOPS, THROUGHPUT, Direction, Figures, Quantity, find_quantities
from tkperf.model.record import (
    GoesOn,
    LeftOut,
    PurgeRecord,
    Resumption,
    RunNote,
    RunStatus,
    StepKind,
    UnfinishedStep,
    is_as_new,
)
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.workload import Workload

RESULTS_SCHEMA = "tkperf-results/2"

END_LOST = "how it ended cannot be read"
"""The text that replaces the reason why a section ended, if the test is complete and the run file does not contain the
reason.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellUncertainty:
    """Uncertainties of the figures of a cell. The keys are those of the quantities. Only a mix has ``read`` and
    ``write``.
    """

    all: Uncertainties
    read: Uncertainties | None = None
    write: Uncertainties | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """The results of one workload of a section. A table shows these results as a cell.

    Attributes:
        all: the values of all quantities. The keys are those of the quantities. A value of None means that the quantity
            was not measured.
        read, write: the same values for one direction, or None if the workload has no I/O in this direction.
        rounds: number of rounds from which the values are computed.
        host_limited: whether the CPUs of the host limited the values; None if not observed, as in an imported run.
        disturbances: the kinds of disturbance of the steps, or None if not observed.
        foreign_bytes: bytes that other programs moved during the steps, or None if not compared.
    """

    workload: Workload
    all: Figures
    read: Figures | None
    write: Figures | None
    rounds: int
    host_limited: bool | None
    disturbances: tuple[DisturbanceCode, ...] | None = None
    foreign_bytes: int | None = None
    backlog_median_ios: float | None = None
    """Backlog at an offered rate. The backlog is the number of I/Os that were due but not complete. The value is the
    median over the second half of the one-second samples of the level.
    """
    backlog_noise_ios: float | None = None
    """Standard deviation that noise causes in the backlog at the end of the level. The value is computed from the noise
    of the one-second samples.
    """
    uncertainty: CellUncertainty | None = None
    """Uncertainty of each measured figure. None means that no uncertainty was computed, as for single rounds."""

    def value(self, quantity: Quantity, direction: Direction = Direction.ALL) -> float | None:
        """Return the value of a quantity, or None if not measured."""
        figures: Figures | None = getattr(self, direction)
        return None if figures is None else figures[quantity.key]

    def uncertainty_of(self, quantity: Quantity, direction: Direction = Direction.ALL) -> Uncertainty | None:
        """Return the uncertainty of a quantity. None means that the quantity was not measured, or that its uncertainty
        was not computed.
        """
        if self.uncertainty is None:
            return None
        mixed = self.workload.is_mixed
        of: Uncertainties | None = getattr(self.uncertainty, direction if mixed else Direction.ALL)
        return None if of is None or self.value(quantity, direction) is None else of.get(quantity.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """One round of a section. ``complete`` is False if the run ended during the round, or if a step of the round cannot
    be read.
    """

    number: int
    complete: bool
    cells: tuple[CellResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """One slice of a stream. Times and amounts are counted from the start of the stream.

    ``total_written_bytes`` is None if steps cannot be read, and in an imported run, which contains only rates.
    ``parts`` contains the results of each stream of a combination, and of the flushes of each load.
    """

    number: int
    start_s: float
    duration_s: float
    total_written_bytes: int | None
    values: CellResult
    parts: tuple[CellResult, ...] = ()

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """Return the result of the whole load, followed by the results of its streams and flushes."""
        return self.values, *self.parts

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRules:
    """Rules for a grid of offered reads and writes, from the profile of the run.

    Attributes:
        latency_limit_us: limit of the 99th percentile of the read latency.
        kept_up_percent: share of the offered rates, in %, that a cell must reach to count.
        levels: number of rates of reads, and also the number of rates of writes. The rate 0 is included.
        max_drift_percent: largest allowed change, in %, of the read latency of the first cell between the start and the
            end of the test.
    """

    latency_limit_us: float
    kept_up_percent: float
    levels: int
    max_drift_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionResult:
    """A part of a test with a separate purge and verdict.

    Attributes:
        plan: the plan that determines how outputs show the section.
        window: the rounds over which the results are averaged.
        verdict: the last verdict, or None if the section has no steady-state rule.
        cells: the results, which are means over ``window``.
        rounds: the rounds. With ``areas``, the entries are areas of a hard disk, in the order from the start of the
            disk, and not rounds in time.
        areas: number of areas of a hard disk, or None if the section has rounds or slices.
        workload: description of the workload of a stream.
        disturbed_in_window: number of disturbed steps in the window, or None if not observed.
    """

    name: str
    plan: SectionPlan
    steady: bool | None
    window: tuple[int, ...]
    ended_because: str
    verdict: SteadyStateVerdict | None
    verdicts: tuple[SteadyStateVerdict, ...]
    cells: tuple[CellResult, ...]
    rounds: tuple[RoundResult, ...]
    areas: int | None
    slices: tuple[SliceResult, ...]
    workload: str | None
    purge: PurgeRecord | None
    filled_bytes: int | None
    filled_s: float | None
    histogram_us: tuple[tuple[float, float, int], ...]
    """The latency histogram of a stream. Each entry contains the lower edge and the upper edge of a bucket in µs, and
    the number of I/Os. Only buckets that contain I/Os are included.
    """
    disturbed_in_window: int | None = 0
    fill_workload: Workload | None = None
    """Workload of preconditioning."""
    window_verdicts: tuple[SteadyStateVerdict, ...] = ()
    """The verdicts on all tracking variables in the same rounds, in the order of the variables. If there is a single
    variable, the only entry is ``verdict``.
    """
    timelines: tuple[Timeline, ...] = ()
    """Findings over time for each series with enough values. Series without findings are included."""
    latency_ceiling_us: float | None = None
    """Highest mean latency, in µs, that is allowed when the test searches for the maximum in a grid of demands. None
    means that the test has no such limit.
    """
    grid_rules: GridRules | None = None
    """Rules for the grid of offered reads and writes, or None if the section has no such grid."""
    complete: bool = True
    """Whether the section ended. The test that contains a complete section may still be incomplete. If the section did
    not end, the figures describe the part that was measured so far.
    """
    characteristics: tuple[Characteristic, ...] = ()
    """The characteristics of the section. If the analysis did not search for a characteristic, the characteristic is
    not included.
    """

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return the quantities in the plan of the section. The main quantity is first."""
        return find_quantities(self.plan.quantities)

    @property
    def rate(self) -> Quantity:
        """Return the main rate of the section: throughput if the plan of the section lists throughput first, otherwise
        IOPS.
        """
        rates = [quantity for quantity in self.quantities if quantity in (IOPS, THROUGHPUT)]
        return rates[0] if rates else IOPS

    @property
    def part_name(self) -> str:
        """Return the name of the parts into which the measurement of the cells is divided: ``slice``, ``area`` or
        ``round``.
        """
        return "slice" if self.slices else "area" if self.areas else "round"

    @property
    def is_as_new(self) -> bool:
        """Return whether the section measures a device to which nothing was written since the purge."""
        return is_as_new(self.purge, self.filled_bytes)

    @property
    def loads(self) -> tuple[Workload, ...]:
        """Return the measured loads. A combination is replaced by its streams, because the fields of a combination are
        only upper limits.
        """
        cells = self.cells or tuple(cell for one in self.slices[:1] for cell in one.cells)
        return tuple(cell.workload for cell in cells if not cell.workload.is_combination)

    def cell(self, workload: Workload) -> CellResult | None:
        return next((cell for cell in self.cells if cell.workload == workload), None)

    def cells_of_rounds(self) -> Iterator[tuple[RoundResult, CellResult]]:
        """Yield each round or area with its cells."""
        for each in self.rounds:
            for cell in each.cells:
                yield each, cell

    def rounds_of_workloads(self) -> dict[Workload, list[tuple[RoundResult, CellResult]]]:
        """Return the rounds, or areas, of each workload with the cells of the workload. The function reads the rounds
        only once for all workloads.
        """
        rounds: dict[Workload, list[tuple[RoundResult, CellResult]]] = {}
        for each, cell in self.cells_of_rounds():
            rounds.setdefault(cell.workload, []).append((each, cell))
        return rounds

    def steady_of(self, workload: Workload) -> bool | None:
        """Return whether a cell was steady. The verdict on this cell decides. If the cell has no verdict, the verdict
        on the section decides.

        None means that steady state was not judged.
        """
        own = [verdict for verdict in self.verdicts if verdict.tracking.startswith(f"{workload.mix_and_size} ")]
        if not own:
            return self.steady
        return own[-1].reached if own[-1].judged else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHost:
    """A step with its disturbances and the load on the host during the step. None means that the disturbances or the
    load are not known.
    """

    section: str
    kind: StepKind
    number: int
    position: int
    workload: Workload
    started_s: float
    duration_s: float
    host_limited: bool | None
    disturbances: tuple[Disturbance, ...] | None
    host: HostUse | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """The results of a test.

    Attributes:
        longest_gap_s: longest time between two steps. The value is 0 if each step began before the previous step ended.
        disturbed_steps: number of steps with each kind of disturbance, or None if not observed.
        not_compared_steps: number of steps in which the I/O of other programs is not known, or None if not observed.
    """

    __test__ = False

    name: str
    title: str
    status: RunStatus
    duration_s: float | None
    written_bytes: int | None
    longest_gap_s: float | None
    sections: tuple[SectionResult, ...]
    disturbed_steps: dict[DisturbanceCode, int] | None = field(default_factory=dict)
    not_compared_steps: int | None = 0
    under_way: UnfinishedStep | None = None
    """The step that did not end. No result is computed from this step."""
    not_measured: tuple[str, ...] = ()
    """Sections of an unfinished test for which no measurement exists yet."""
    figures: tuple[Figure, ...] = ()
    """Figures of the whole test. The plan of the test names these figures."""
    demands: tuple[tuple[int, int], ...] = ()
    """Threads and queue depth of the measured steps, in order; empty if they are not known."""
    written_again_bytes: int = 0
    """The part of ``written_bytes`` that was written by steps that were later measured again. No result is computed
    from these steps.
    """
    steps: tuple[StepHost, ...] = ()
    """The observed steps, including fills. Each entry contains the disturbances of the step and the load on the host.
    """
    telemetry: tuple[DriveTelemetry, ...] = ()
    """Telemetry of each drive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedTest:
    """A measurement of a test that was later repeated. No result is computed from this measurement."""

    name: str
    complete: bool
    outcomes: tuple[SectionOutcome, ...]
    written_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumptionResult(Resumption):
    """The resumption of a run, with the steps that were measured again because of the resumption.

    Attributes:
        set_aside_steps, set_aside_written_bytes: the number of steps that were measured again, and the bytes that the
            replaced steps wrote. The bytes include the known bytes of the interrupted step. No result is computed from
            the replaced steps.
        replaced: earlier measurements of the repeated tests.
    """

    set_aside_steps: int
    set_aside_written_bytes: int
    replaced: tuple[ReplacedTest, ...] = ()

    @property
    def accepted(self) -> bool:
        """Return whether results combine data from before and after the interruption. This is the case if the user
        accepted the interruption.
        """
        return self.goes_on is GoesOn.WHERE_IT_STOPPED

    def concerns(self, test: str) -> bool:
        """Return whether the pages of a test mention the resumption."""
        return test in (self.test, *self.repeated, *self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """All results of a run that a report can show. ``schema`` identifies this layout for programs."""

    schema: str
    info: RunInfo
    status: RunStatus
    ended_utc: str | None
    ended_because: str | None
    warnings: tuple[RunNote, ...]
    tests: tuple[TestResult, ...]
    resumptions: tuple[ResumptionResult, ...] = ()
    not_begun: tuple[str, ...] = ()
    """Planned tests that have not begun."""
    left_out: tuple[LeftOut, ...] = ()
    """Parts of the run file that cannot be read."""
    media_errors: int = 0
    """Number of times that a drive failed to read or keep data during the run, according to the log of the drive."""


def is_same_run(result: RunResult, other: RunResult) -> bool:
    """Return whether two files belong to the same run. The files can be copies, or can contain the states of the run
    before and after a resumption.
    """
    first, second = result.info, other.info
    if first.uuid is not None and second.uuid is not None:
        return first.uuid == second.uuid
    # If a run has no seed, as in imported files, the remaining facts are not enough to identify the run.
    return first == second and (first.seed is not None or result.tests == other.tests)


_File = TypeVar("_File")


def group_by_run(files: Iterable[_File], is_same: Callable[[_File, _File], bool]) -> list[list[_File]]:
    """Return groups of files that belong to the same run, in the order in which the runs were first given."""
    runs: list[list[_File]] = []
    for one in files:
        same = next((run for run in runs if is_same(run[0], one)), None)
        if same is None:
            runs.append([one])
        else:
            same.append(one)
    return runs


def count_steps(result: RunResult) -> int:
    """Return the number of steps in a result. If several files belong to a run, the file with the greatest number of
    steps is the most complete file.
    """
    return sum(len(test.steps) for test in result.tests)
