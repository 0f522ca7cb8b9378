"""Results of a run, as plain data: the one source of every table, chart and export.

A cell has the measurements of one workload over the rounds of a window (``quantity.py`` has the
rules). A stream without a window is a single measurement. None is "not measured".
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
"""Why a section of a complete test ended, if the run file does not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellUncertainty:
    """Uncertainties of a cell's figures, by their keys; only a mix has ``read`` and ``write``."""

    all: Uncertainties
    read: Uncertainties | None = None
    write: Uncertainties | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """Measurements of one workload of a section: a cell of its tables.

    Attributes:
        all: every quantity by its key, None: not measured.
        read, write: quantities of one direction; None: the workload has no I/O of it.
        rounds: number of rounds behind the values.
        host_limited: None: not watched, as in an imported run.
        disturbances: the kinds of disturbance of its steps; None: not watched.
        foreign_bytes: I/O of other programs during it; None: not compared.
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
    """I/Os due and not done at an offered rate, the median over the second half of the level's seconds."""
    backlog_noise_ios: float | None = None
    """Standard deviation of the number of I/Os that are due but not done at the end of the level,
    computed from the noise of single seconds.
    """
    uncertainty: CellUncertainty | None = None
    """Uncertainty of each measured figure; None: not calculated, as for single rounds."""

    def value(self, quantity: Quantity, direction: Direction = Direction.ALL) -> float | None:
        """Return a quantity's value; None: not measured."""
        figures: Figures | None = getattr(self, direction)
        return None if figures is None else figures[quantity.key]

    def uncertainty_of(self, quantity: Quantity, direction: Direction = Direction.ALL) -> Uncertainty | None:
        """Return a quantity's uncertainty; None: not measured, or not calculated."""
        if self.uncertainty is None:
            return None
        mixed = self.workload.is_mixed
        of: Uncertainties | None = getattr(self.uncertainty, direction if mixed else Direction.ALL)
        return None if of is None or self.value(quantity, direction) is None else of.get(quantity.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """One round of a section; ``complete`` unless the run ended within it or a step is lost."""

    number: int
    complete: bool
    cells: tuple[CellResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """One slice of a continuous stream. Times and amounts count from the stream's start.

    ``total_written_bytes`` is None in an imported run, which has rates only, and where steps are lost.
    """

    number: int
    start_s: float
    duration_s: float
    total_written_bytes: int | None
    values: CellResult

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionResult:
    """A part of a test with its own purge and verdict.

    Attributes:
        plan: how outputs show the section.
        window: rounds that the results are means over.
        verdict: the last verdict; None: the section has no steady-state rule.
        cells: the results: means over ``window``.
        rounds: its rounds; with ``areas`` the areas of a hard disk from its start, not rounds in time.
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
    """Latency histogram of a stream: (lower edge, upper edge, I/Os) of each bucket with I/Os, in us."""
    disturbed_in_window: int | None = 0
    fill_workload: Workload | None = None
    """Workload of preconditioning."""
    window_verdicts: tuple[SteadyStateVerdict, ...] = ()
    """Verdicts on all tracking variables in the same rounds, in their order; with one variable ``verdict``."""
    timelines: tuple[Timeline, ...] = ()
    """Findings over time in each series of enough values; a series without findings is included."""
    latency_ceiling_us: float | None = None
    """Ceiling of the mean latency for the maximum of a grid of demands; None: its test has no ceiling."""
    complete: bool = True
    """The section ended, though its test may not have; else its figures are those so far."""
    characteristics: tuple[Characteristic, ...] = ()
    """Characteristics of its course; one that the analysis did not look for is absent."""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return the quantities of the section's plan, the main one first."""
        return find_quantities(self.plan.quantities)

    @property
    def rate(self) -> Quantity:
        """Return IOPS, or throughput if the section's plan names it first."""
        rates = [quantity for quantity in self.quantities if quantity in (IOPS, THROUGHPUT)]
        return rates[0] if rates else IOPS

    @property
    def part_name(self) -> str:
        """Return the name of what its cells were measured in: ``slice``, ``area`` or ``round``."""
        return "slice" if self.slices else "area" if self.areas else "round"

    @property
    def is_as_new(self) -> bool:
        """Return whether the section measures a device without any write since its purge."""
        return is_as_new(self.purge, self.filled_bytes)

    def cell(self, workload: Workload) -> CellResult | None:
        return next((cell for cell in self.cells if cell.workload == workload), None)

    def cells_of_rounds(self) -> Iterator[tuple[RoundResult, CellResult]]:
        """Yield each round, or area, with its cells."""
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
        """Return whether a cell was steady by its own rounds, if it has its own verdict; else the section's result.

        None: nothing was judged.
        """
        own = [verdict for verdict in self.verdicts if verdict.tracking.startswith(f"{workload.mix_and_size} ")]
        if not own:
            return self.steady
        return own[-1].reached if own[-1].judged else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHost:
    """A step with its disturbances and the use of the host; None: not known."""

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
    """The step that did not end: it is no result."""
    not_measured: tuple[str, ...] = ()
    """Sections, of a test that did not end, without any measurement yet."""
    figures: tuple[Figure, ...] = ()
    """Figures of the whole test, from its plan."""
    demands: tuple[tuple[int, int], ...] = ()
    """(Threads, queue depth) of the measured steps, in order; empty: not known."""
    written_again_bytes: int = 0
    """Part of ``written_bytes`` from steps that were measured again and are in no result."""
    steps: tuple[StepHost, ...] = ()
    """Watched steps with their disturbances and the use of the host, fills included."""
    telemetry: tuple[DriveTelemetry, ...] = ()
    """Telemetry of each drive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedTest:
    """A measurement of a test that was repeated later; it is in no result."""

    name: str
    complete: bool
    outcomes: tuple[SectionOutcome, ...]
    written_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumptionResult(Resumption):
    """A resumption of a run, with what it set aside.

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
        """Return whether results span the interruption, because the user accepted this."""
        return self.goes_on is GoesOn.WHERE_IT_STOPPED

    def concerns(self, test: str) -> bool:
        """Return whether the pages of a test mention the resumption."""
        return test in (self.test, *self.repeated, *self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """All results that a report may show. ``schema`` names this layout for programs."""

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
    """Times that a drive could not read or keep data during the run, by its own log."""


def is_same_run(result: RunResult, other: RunResult) -> bool:
    """Return whether two files are of one run: copies of a file, or its states before and after a resumption."""
    first, second = result.info, other.info
    if first.uuid is not None and second.uuid is not None:
        return first.uuid == second.uuid
    # Without a seed, as of imported files, facts alone do not identify a run.
    return first == second and (first.seed is not None or result.tests == other.tests)


_File = TypeVar("_File")


def group_by_run(files: Iterable[_File], is_same: Callable[[_File, _File], bool]) -> list[list[_File]]:
    """Return the files of each run together, in the order in which the runs are first given."""
    runs: list[list[_File]] = []
    for one in files:
        same = next((run for run in runs if is_same(run[0], one)), None)
        if same is None:
            runs.append([one])
        else:
            same.append(one)
    return runs


def count_steps(result: RunResult) -> int:
    """Return the number of steps; of several files of a run the fullest has the most."""
    return sum(len(test.steps) for test in result.tests)
