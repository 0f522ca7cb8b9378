"""Results of a run as plain data. They are the only source of every table, chart and export.

A cell contains the measurements of one workload over the rounds of a window (``quantity.py`` contains the rules). A
stream without a window is a single measurement. None is "not measured".
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
"""The reason why a section of a complete test ended, if the run file does not contain it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellUncertainty:
    """Uncertainties of the figures of a cell, by their keys. Only a mix has ``read`` and ``write``."""

    all: Uncertainties
    read: Uncertainties | None = None
    write: Uncertainties | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """Measurements of one workload of a section: a cell of its tables.

    Attributes:
        all: every quantity by its key; None: not measured.
        read, write: quantities of one direction; None: the workload has no I/O in this direction.
        rounds: number of rounds from which the values are computed.
        host_limited: whether the CPUs of the host limited the values; None: not watched, as in an imported run.
        disturbances: the kinds of disturbance of the steps; None: not watched.
        foreign_bytes: I/O of other programs during the steps; None: not compared.
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
    """I/Os that were due and not done at an offered rate: the median over the second half of the seconds of the
    level.
    """
    backlog_noise_ios: float | None = None
    """Standard deviation of the number of I/Os that are due but not done at the end of the level,
    computed from the noise of single seconds.
    """
    uncertainty: CellUncertainty | None = None
    """Uncertainty of each measured figure; None: not calculated, as for single rounds."""

    def value(self, quantity: Quantity, direction: Direction = Direction.ALL) -> float | None:
        """Return the value of a quantity; None: not measured."""
        figures: Figures | None = getattr(self, direction)
        return None if figures is None else figures[quantity.key]

    def uncertainty_of(self, quantity: Quantity, direction: Direction = Direction.ALL) -> Uncertainty | None:
        """Return the uncertainty of a quantity; None: not measured, or not computed."""
        if self.uncertainty is None:
            return None
        mixed = self.workload.is_mixed
        of: Uncertainties | None = getattr(self.uncertainty, direction if mixed else Direction.ALL)
        return None if of is None or self.value(quantity, direction) is None else of.get(quantity.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """One round of a section. It is ``complete`` unless the run ended during the round or a step of the round is
    lost.
    """

    number: int
    complete: bool
    cells: tuple[CellResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """One slice of a stream. Times and amounts count from the start of the stream.

    ``total_written_bytes`` is None in an imported run, which contains only rates, and if steps are lost. ``parts`` are
    the results of each stream of a combination, and of the flushes of each load.
    """

    number: int
    start_s: float
    duration_s: float
    total_written_bytes: int | None
    values: CellResult
    parts: tuple[CellResult, ...] = ()

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """Return the result of the whole load, followed by those of its streams and flushes."""
        return self.values, *self.parts

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRules:
    """Rules of a grid of reads next to writes, from the profile of the run.

    Attributes:
        latency_limit_us: limit of the 99th percentile of the read latency.
        kept_up_percent: share of the offered rates that a cell must reach to count.
        levels: number of rates of reads and of writes.
        max_drift_percent: largest change of the first cell's read latency until the end of the test.
    """

    latency_limit_us: float
    kept_up_percent: float
    levels: int
    max_drift_percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionResult:
    """A part of a test with a separate purge and verdict.

    Attributes:
        plan: how outputs show the section.
        window: the rounds over which the results are averaged.
        verdict: the last verdict; None: the section has no steady-state rule.
        cells: the results, which are means over ``window``.
        rounds: the rounds. With ``areas``, these are areas of a hard disk from its start, and not rounds in time.
        areas: number of areas of a hard disk; None: the section has rounds or slices.
        workload: description of a stream's workload.
        disturbed_in_window: number of disturbed steps in the window; None: not watched.
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
    """Latency histogram of a stream: lower edge and upper edge in us, and the number of I/Os, for each bucket with
    I/Os.
    """
    disturbed_in_window: int | None = 0
    fill_workload: Workload | None = None
    """Workload of preconditioning."""
    window_verdicts: tuple[SteadyStateVerdict, ...] = ()
    """Verdicts on all tracking variables in the same rounds, in their order; with one variable ``verdict``."""
    timelines: tuple[Timeline, ...] = ()
    """Findings over time in each series with enough values, including series without findings."""
    latency_ceiling_us: float | None = None
    """Ceiling of the mean latency for the maximum of a grid of demands; None: the test has no ceiling."""
    grid_rules: GridRules | None = None
    """Rules of the grid of reads next to writes; None: the section has no such grid."""
    complete: bool = True
    """Whether the section ended, even if its test did not. Otherwise its figures are those so far."""
    characteristics: tuple[Characteristic, ...] = ()
    """Characteristics of the course of the section. A characteristic that the analysis did not look for is absent."""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return the quantities in the plan of the section, the main quantity first."""
        return find_quantities(self.plan.quantities)

    @property
    def rate(self) -> Quantity:
        """Return IOPS, or throughput if the plan of the section names throughput first."""
        rates = [quantity for quantity in self.quantities if quantity in (IOPS, THROUGHPUT)]
        return rates[0] if rates else IOPS

    @property
    def part_name(self) -> str:
        """Return the name of the parts in which the cells were measured: ``slice``, ``area`` or ``round``."""
        return "slice" if self.slices else "area" if self.areas else "round"

    @property
    def is_as_new(self) -> bool:
        """Return whether the section measures a device to which nothing was written since its purge."""
        return is_as_new(self.purge, self.filled_bytes)

    @property
    def loads(self) -> tuple[Workload, ...]:
        """Return the measured loads; of a combination its streams, because its own fields are only bounds."""
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
        """Return the rounds, or areas, of each workload, each with the cells of the workload. One
        pass serves all workloads.
        """
        rounds: dict[Workload, list[tuple[RoundResult, CellResult]]] = {}
        for each, cell in self.cells_of_rounds():
            rounds.setdefault(cell.workload, []).append((each, cell))
        return rounds

    def steady_of(self, workload: Workload) -> bool | None:
        """Return whether a cell was steady: according to its own verdict if it has one, otherwise according to that of
        the section.

        None: nothing was judged.
        """
        own = [verdict for verdict in self.verdicts if verdict.tracking.startswith(f"{workload.mix_and_size} ")]
        if not own:
            return self.steady
        return own[-1].reached if own[-1].judged else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHost:
    """A step with its disturbances and the use of the host during the step; None: not known."""

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
    """Results of a test.

    Attributes:
        longest_gap_s: longest time between two steps; 0 if each step began before the previous step
            ended.
        disturbed_steps: number of disturbed steps of each kind; None: not watched.
        not_compared_steps: number of steps in which the I/O of other programs is not known; None:
            not watched.
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
    """The step that did not end. It is not a result."""
    not_measured: tuple[str, ...] = ()
    """Sections of an unfinished test that have no measurement yet."""
    figures: tuple[Figure, ...] = ()
    """Figures of the whole test, from its plan."""
    demands: tuple[tuple[int, int], ...] = ()
    """Threads and queue depth of the measured steps, in order; empty: not known."""
    written_again_bytes: int = 0
    """The part of ``written_bytes`` that steps wrote which were measured again and are in no result."""
    steps: tuple[StepHost, ...] = ()
    """Watched steps with their disturbances and the use of the host, fills included."""
    telemetry: tuple[DriveTelemetry, ...] = ()
    """Telemetry of each drive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedTest:
    """A measurement of a test that was repeated later. The measurement is in no result."""

    name: str
    complete: bool
    outcomes: tuple[SectionOutcome, ...]
    written_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumptionResult(Resumption):
    """A resumption of a run, with the steps that were set aside because of it.

    Attributes:
        set_aside_steps, set_aside_written_bytes: steps that were measured again and are in no result, and
            their written bytes; these include the known bytes of the step that was cut off.
        replaced: earlier measurements of the repeated tests.
    """

    set_aside_steps: int
    set_aside_written_bytes: int
    replaced: tuple[ReplacedTest, ...] = ()

    @property
    def accepted(self) -> bool:
        """Return whether results span the interruption. They do if the user accepted this."""
        return self.goes_on is GoesOn.WHERE_IT_STOPPED

    def concerns(self, test: str) -> bool:
        """Return whether the pages of a test mention the resumption."""
        return test in (self.test, *self.repeated, *self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """All results that a report may show. ``schema`` identifies this layout for programs."""

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
    """Number of times that a drive, according to its log, could not read or keep data during the run."""


def is_same_run(result: RunResult, other: RunResult) -> bool:
    """Return whether two files belong to one run: copies of a file, or its states before and after a resumption."""
    first, second = result.info, other.info
    if first.uuid is not None and second.uuid is not None:
        return first.uuid == second.uuid
    # Without a seed, as in imported files, the facts alone do not identify a run.
    return first == second and (first.seed is not None or result.tests == other.tests)


_File = TypeVar("_File")


def group_by_run(files: Iterable[_File], is_same: Callable[[_File, _File], bool]) -> list[list[_File]]:
    """Return the files of each run together, in the order in which the runs were first given."""
    runs: list[list[_File]] = []
    for one in files:
        same = next((run for run in runs if is_same(run[0], one)), None)
        if same is None:
            runs.append([one])
        else:
            same.append(one)
    return runs


def count_steps(result: RunResult) -> int:
    """Return the number of steps. If several files belong to a run, the one with the most steps is the fullest."""
    return sum(len(test.steps) for test in result.tests)
