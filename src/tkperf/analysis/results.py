"""What a run found, as plain data: the one source of every table, chart and export.

A cell is what was measured of one workload over the rounds of a window (``quantity.py`` has the
rules); a stream without a window is one single measurement. None is "not measured".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tkperf.analysis.characteristics import Characteristic
from tkperf.analysis.findings.data import Finding, Headline
from tkperf.analysis.telemetry import DriveTelemetry
from tkperf.analysis.timeline.findings import Timeline
from tkperf.analysis.uncertainty.estimate import Uncertainties, Uncertainty
from tkperf.model.disturbance.codes import Disturbance, DisturbanceCode
from tkperf.model.figures import Figure, SectionPlan
from tkperf.model.host_use import HostUse
from tkperf.model.quantity import Direction, Figures, Quantity
from tkperf.model.record import PurgeRecord, RunStatus, RunWarning, StepKind
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import format_capacity, format_count, format_duration
from tkperf.model.workload import Workload

SCHEMA = "tkperf-results/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellUncertainty:
    """Of the figures of a cell by their keys; ``read`` and ``write`` are None but of a mix."""

    all: Uncertainties
    read: Uncertainties | None = None
    write: Uncertainties | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What was measured of one workload of a section: a cell of its tables.

    ``all`` has every quantity by its key, None where it was not measured; ``read`` and ``write`` the
    same of one direction, None where the workload has none of it. ``rounds`` says how many rounds the
    values are of. ``host_limited`` and ``disturbances``, the kinds of what disturbed any of its steps,
    are None where nobody watched, as in an imported run; ``foreign_bytes``, what others moved
    meanwhile, where it was not compared.
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
    """Of an offered rate: I/Os due and not done, the median over the second half of the level's seconds."""
    uncertainty: CellUncertainty | None = None
    """Of each figure that was measured; None: not worked out, as of single rounds."""

    def value(self, quantity: Quantity, direction: Direction = Direction.ALL) -> float | None:
        """A quantity's value; None: not measured."""
        figures: Figures | None = getattr(self, direction)
        return None if figures is None else figures[quantity.key]

    def uncertainty_of(
        self, quantity: Quantity, direction: Direction = Direction.ALL
    ) -> Uncertainty | None:
        """A quantity's uncertainty; None: not measured, or not worked out."""
        if self.uncertainty is None:
            return None
        mixed = 0 < self.workload.read_percent < 100
        of: Uncertainties | None = getattr(self.uncertainty, direction if mixed else Direction.ALL)
        return (
            None if of is None or self.value(quantity, direction) is None else of.get(quantity.key)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """One round of a section; ``complete`` unless the run ended within it or a step is lost."""

    number: int
    complete: bool
    cells: tuple[CellResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """One slice of a continuous stream. Times and amounts count from the stream's start.

    ``total_written_bytes`` is None in an imported run, which has rates only.
    """

    number: int
    start_s: float
    duration_s: float
    total_written_bytes: int | None
    values: CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionResult:
    """A part of a test with its own purge and verdict.

    ``plan`` is how it is shown.
    ``cells`` are the results: means over ``window``. ``verdict`` is the last one given, None if
    the section has no steady-state rule. ``workload`` describes a stream's workload. With
    ``areas``, ``rounds`` are the areas of a hard disk from its start, not rounds in time.
    ``disturbed_in_window`` counts the window's steps that were disturbed, None where nobody watched.
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
    """Of a stream: (lower edge, upper edge, I/Os) of each bucket with I/Os, in us."""
    disturbed_in_window: int | None = 0
    fill_workload: Workload | None = None
    """What preconditioning wrote with."""
    window_verdicts: tuple[SteadyStateVerdict, ...] = ()
    """``verdict``, or with several tracking variables those of all in the same rounds, in their order."""
    timelines: tuple[Timeline, ...] = ()
    """What each series of enough values shows over time, whether anything was found in it or not."""
    latency_ceiling_us: float | None = None
    """Mean latency that the maximum of a grid of demands stays below; None: its test has no such ceiling."""
    complete: bool = True
    """It came to its end, whatever became of its test; else its figures are those so far."""
    characteristics: tuple[Characteristic, ...] = ()
    """What its course shows as single numbers; of what was not looked for there is none."""

    def cell(self, workload: Workload) -> CellResult | None:
        return next((cell for cell in self.cells if cell.workload == workload), None)

    def steady_of(self, workload: Workload) -> bool | None:
        """Whether a cell was steady by its own rounds, where it was judged by them; else the section.

        None: nothing was judged.
        """
        own = [
            verdict
            for verdict in self.verdicts
            if verdict.tracking.startswith(f"{workload.mix_and_size} ")
        ]
        if not own:
            return self.steady
        return own[-1].reached if own[-1].judged else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHost:
    """A step and what was beside it: what disturbed it, and what the host did; None is not known."""

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
    """``longest_gap_s`` lies between two steps; ``disturbed_steps`` counts steps for each kind.

    ``not_compared_steps`` are those in which I/O of others could not be told. Both are None where
    nobody watched.
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
    under_way: str | None = None
    """The step that did not end, in words: it is no result."""
    not_measured: tuple[str, ...] = ()
    """Of a test that did not end, sections that it may come to and of which nothing was measured."""
    progress: str | None = None
    """Of a test that did not end, which of its sections are complete and which are not, in words."""
    figures: tuple[Figure, ...] = ()
    """Of the whole test, as its plan has them."""
    demands: tuple[tuple[int, int], ...] = ()
    """(Threads, queue depth) of what was measured, in order; empty: not known."""
    written_again_bytes: int = 0
    """Of ``written_bytes``, in steps that were measured again and are in no result."""
    steps: tuple[StepHost, ...] = ()
    """What was beside each step, fills included; none of steps that nobody watched."""
    resumptions: tuple[str, ...] = ()
    """Each interruption, repetition or later addition that concerns it, in words."""
    telemetry: tuple[DriveTelemetry, ...] = ()
    """What each drive told of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumptionResult:
    """A run taken up again.

    Attributes:
        resumed_utc, stopped_s, resumed_s: when; from then to then, in seconds from the start of the
            run, it stood still, at most.
        interrupted: it had not ended by itself; ``because`` says why it had stopped.
        test, section: what was cut off; None: nothing was.
        goes_on: ``round``, ``purge``, ``test``, ``where it stopped`` or ``next``.
        again: what was measured again, in words; empty: nothing.
        accepted: results span the interruption, as the user accepted.
        set_aside_steps, set_aside_written_bytes: what was measured again and is in no result; with
            what is known of the step that was cut off.
        repeated, added: tests that were asked for.
        changes: what was different on the host from then on.
        text: all of it, for people.
    """

    resumed_utc: str
    stopped_s: float
    resumed_s: float
    interrupted: bool
    because: str | None
    test: str | None
    section: str | None
    goes_on: str
    again: str
    accepted: bool
    set_aside_steps: int
    set_aside_written_bytes: int
    repeated: tuple[str, ...]
    added: tuple[str, ...]
    changes: tuple[str, ...]
    text: str

    def concerns(self, test: str) -> bool:
        """Whether it stands on the pages of a test."""
        return test in (self.test, *self.repeated, *self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Everything a report may show. ``schema`` names this layout for programs."""

    schema: str
    info: RunInfo
    status: RunStatus
    ended_utc: str | None
    ended_because: str | None
    warnings: tuple[RunWarning, ...]
    tests: tuple[TestResult, ...]
    resumptions: tuple[ResumptionResult, ...] = ()
    not_begun: tuple[str, ...] = ()
    """Tests that were to be run and have not begun."""
    headlines: tuple[Headline, ...] = ()
    """The figures that are asked for first."""
    findings: tuple[Finding, ...] = ()
    """What was found, in sentences; of each test, in the order of the tests."""


def describe_stream(section: SectionResult) -> str:
    """How long a stream was: ``62 slices, 1 h 02 min, 514.8 GB written``."""
    last = section.slices[-1]
    text = f"{format_count(len(section.slices), 'slice')}, "
    text += format_duration(last.start_s + last.duration_s)
    if last.total_written_bytes is None:
        return text
    return f"{text}, {format_capacity(last.total_written_bytes)} written"
