"""The state of a run according to the events so far. The events may be from any source. Views of the whole run use this
state.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from math import inf
from typing import Annotated

import msgspec

from tkperf.analysis.loads_together import READ_P99, CellState, find_grid_rules, judge_cell
from tkperf.analysis.results import GridRules
from tkperf.model.disturbance.io import find_doubtful
from tkperf.model.figures import FigureKind, TestPlan
from tkperf.model.measurement import Measurement, Sample
from tkperf.model.phases import Round
from tkperf.model.quantity import IOPS, Quantity, Window, find_quantities
from tkperf.model.record import StepRecord, key_of, kind_of
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.telemetry.drive_reading import Reading
from tkperf.model.throttling import find_throttling
from tkperf.model.units import drop_controls
from tkperf.model.workload import Workload, list_loads
from tkperf.procedures import read_stored_profile
from tkperf.procedures.building_blocks import KEPT_UP_PERCENT, did_offered
from tkperf.procedures.interference import InterferenceTable
from tkperf.runner.events import (
    Event,
    Judged,
    PhaseStarted,
    RunEnded,
    RunResumed,
    RunStarted,
    SampleSeen,
    StepEnded,
    StepStarted,
    TargetBusy,
    TelemetrySeen,
    TestStarted,
    Warned,
)
from tkperf.runner.run_log import Progress

# The greatest number of seconds that are kept for a view. No terminal has more columns.
_MOST_SECONDS = 500
MOST_VALUES = 500


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest value of the main quantity of a section."""

    workload: Workload
    quantity: Quantity
    value: float


@dataclass(frozen=True, slots=True)
class LeftSection:
    """The last state of a section that the run has left: its verdict, if it has a rule, and its newest value."""

    test: str
    section: str
    verdict: SteadyStateVerdict | None
    newest: Newest | None


@dataclass(slots=True)
class RunState:
    """The state of a run according to the events so far. ``at_s`` is the time on the run's clock, and ``progress`` is
    the current phase.

    Attributes:
        left: the measured sections that the run has left, by test and section, in their order.
        cell_states: in a section that compares reads, the newest state of each load.
        grid_rules: the rules of a grid of reads and writes. None means that the running test has no such grid.
        throttled: the drives that slowed down because of heat, according to their logs.
    """

    name: str = ""
    simulated: bool = False
    tests: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    progress: Progress = field(default_factory=Progress)
    section: str = ""
    busy: TargetBusy | None = None
    step: StepStarted | None = None
    sample: Sample | None = None
    verdict: SteadyStateVerdict | None = None
    warnings: list[str] = field(default_factory=list)
    temperatures_c: dict[str, float] = field(default_factory=dict)
    throttled: set[str] = field(default_factory=set)
    disturbed_steps: int = 0
    last_disturbed: StepRecord | None = None
    quantity: Quantity = IOPS
    histories: dict[Workload, list[float | None]] = field(default_factory=dict)
    cell_states: dict[Workload, CellState] = field(default_factory=dict)
    grid_rules: GridRules | None = None
    newest: Newest | None = None
    left: dict[tuple[str, str], LeftSection] = field(default_factory=dict)
    seconds_iops: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_SECONDS))
    kept_bytes: int = 0
    step_bytes: int = 0
    at_s: float = 0.0
    stood_still_s: float = 0.0
    plan: TestPlan | None = None
    ended: str = ""
    _readings: dict[str, Reading] = field(default_factory=dict)
    _info: RunInfo | None = None

    def take(self, event: Event) -> None:
        match event:
            case RunStarted() | RunResumed():
                self._begin(event)
            case TestStarted():
                self._enter("")
                self.plan = event.plan
                self.grid_rules = self._find_grid_rules()
                self.progress = replace(self.progress, test=event.test, number=self._number_of(event.test), phase=None)
                self.step = self.sample = None
            case PhaseStarted():
                self._begin_phase(event)
            case TargetBusy():
                self.busy, self.at_s = event, event.at_s
            case StepStarted():
                self.step, self.step_bytes, self.at_s = event, 0, event.at_s
                self.busy = None
                self.progress = replace(self.progress, steps_done=event.position)
            case SampleSeen():
                self.sample, self.at_s = event.sample, event.at_s
                self.step_bytes += event.sample.write.bytes
                self.seconds_iops.append(event.sample.iops)
            case StepEnded():
                self._end_step(event.record)
            case TelemetrySeen():
                self._take_reading(event.reading)
            case Judged():
                self._enter(event.section)
                self.verdict = event.verdict
            case Warned():
                self.warnings.append(drop_controls(event.warning.text))
            case RunEnded():
                self.progress = replace(self.progress, phase=None)
                self.step = None
                self.ended = event.status.value

    def _begin(self, event: RunStarted | RunResumed) -> None:
        info = self._info = event.info
        self.name, self.tests = info.name, event.tests
        self.progress = replace(self.progress, tests=len(event.tests))
        self.simulated = info.is_simulated
        self.notices = tuple(map(drop_controls, info.notices))
        if isinstance(event, RunResumed):
            resumption = event.resumption
            self.stood_still_s += max(0.0, resumption.resumed_s - resumption.stopped_s)

    def _begin_phase(self, event: PhaseStarted) -> None:
        self._enter(event.phase.section)
        self.busy = None
        self.at_s = event.at_s
        is_known = event.longest_s > 0
        self.progress = Progress(
            test=event.test,
            number=self._number_of(event.test),
            tests=len(self.tests),
            phase=event.phase,
            at_most=event.at_most,
            began_s=event.at_s,
            shortest_s=event.shortest_s if is_known else None,
            longest_s=event.longest_s if is_known else None,
        )
        if isinstance(event.phase, Round):
            # The view shows a place for each cell of a round from the beginning of the round.
            for step in event.phase.steps:
                for load in list_loads(step.workload):
                    self.histories.setdefault(key_of(kind_of(event.phase), load), [])

    def _number_of(self, test: str) -> int:
        return self.tests.index(test) + 1 if test in self.tests else 0

    def _enter(self, section: str) -> None:
        """Enter the section of an event. A view that attaches later may receive the steps of a section before the event
        of its phase.
        """
        if section != self.section:
            test = self.progress.test or ""
            if any(self.histories.values()):
                left = LeftSection(test, self.section, self.verdict, self.newest)
                self.left[test, self.section] = left
            self.left.pop((test, section), None)
            self.section, self.verdict, self.histories, self.cell_states = section, None, {}, {}
            self.quantity = self._first_quantity(section)

    def _first_quantity(self, section: str) -> Quantity:
        """Return the main quantity of a section. If the section measures the latency of reads at offered rates while
        other loads run, the result is the 99th percentile of the reads. In all other sections, the quantity needs no
        histogram, because views receive only steps with offered rates together with their histograms.
        """
        plan = None if self.plan is None else self.plan.section(section)
        if self.compares_reads:
            return READ_P99
        keys = () if plan is None else plan.quantities
        asked = find_quantities(keys)
        return next((quantity for quantity in asked if quantity.of_rounds), IOPS)

    def _end_step(self, step: StepRecord) -> None:
        self._enter(step.section)
        self.kept_bytes += step.measurement.write.bytes
        self.step_bytes = 0
        if find_doubtful(step.disturbances or ()):
            self.disturbed_steps += 1
            self.last_disturbed = step
        for part in step.parts if step.is_in_results else ():
            values = self.histories.setdefault(part.key, [])
            value = value_of(self.quantity, part.workload, part.measurement)
            values.append(value)
            del values[:-MOST_VALUES]
            # The latency of all streams together does not describe the latency of the reads.
            quantity = IOPS if self.compares_reads else self.quantity
            newest = value_of(quantity, part.workload, part.measurement)
            if newest is not None and part.workload == step.workload:
                self.newest = Newest(step.workload, quantity, newest)

        if self.compares_reads and step.is_in_results:
            self.cell_states[key_of(step.kind, step.workload)] = self._judge_cell(step)

    def _judge_cell(self, step: StepRecord) -> CellState:
        """Return the state of a cell, according to the rules of the grid. If the section has no grid, the cell contains
        a reader and a neighbour. In this case, only the reader has an offered rate, and its latency has no limit.
        """
        rules = self.grid_rules
        kept_up_percent = KEPT_UP_PERCENT if rules is None else rules.kept_up_percent
        kept: dict[bool, bool] = {}
        p99_us = None
        for part in step.parts:
            load, measured = part.workload, part.measurement
            if load.offered_iops is None or load.flushes:
                continue
            reads = load.read_percent == 100
            kept[reads] = did_offered(load, measured.ios, load.offered_iops * measured.duration_s, kept_up_percent)
            if reads:
                p99_us = value_of(READ_P99, load, measured)
        return judge_cell(
            reads_kept=kept.get(True),
            writes_kept=kept.get(False),
            read_p99_us=p99_us,
            limit_us=inf if rules is None else rules.latency_limit_us,
        )

    def _find_grid_rules(self) -> GridRules | None:
        plan = self.plan
        if plan is None or self._info is None or not any(one.draws(FigureKind.INTERFERENCE) for one in plan.sections):
            return None
        return find_grid_rules(read_stored_profile(self._info.profile).tables.get(InterferenceTable.key))

    def _take_reading(self, reading: Reading) -> None:
        if reading.temperature_c is not None:
            self.temperatures_c[reading.drive] = reading.temperature_c
        if reading.is_full:
            before = self._readings.get(reading.drive, reading)
            self._readings[reading.drive] = reading
            if any(find_throttling((before, reading))):
                self.throttled.add(reading.drive)

    @property
    def compares_reads(self) -> bool:
        """Return whether the section measures the read latency while other loads run."""
        plan = None if self.plan is None else self.plan.section(self.section)
        kinds = FigureKind.INTERFERENCE, FigureKind.NEIGHBOURS
        return plan is not None and any(map(plan.draws, kinds))

    @property
    def current_cell(self) -> Workload | None:
        """The current cell. None means that no cell is current."""
        return None if self.step is None else key_of(self.step.kind, self.step.workload)

    @property
    def written_bytes(self) -> int:
        return self.kept_bytes + self.step_bytes

    @property
    def step_done(self) -> float | None:
        """The finished share of the current step, from 0 to 1. None means that the share is not known."""
        step = self.step
        if step is None:
            return None
        if step.planned_bytes:
            return min(1.0, self.step_bytes / step.planned_bytes)
        if step.planned_s:
            return min(1.0, max(0.0, self.at_s - step.at_s) / step.planned_s)
        return None

    @property
    def remaining_s(self) -> tuple[float, float] | None:
        """The shortest and the longest remaining time of the run. None means that these times are not known."""
        return self.progress.remaining_s(self.at_s)

    @property
    def run_done(self) -> tuple[float, float] | None:
        """The finished share of the whole run, from 0 to 1. The first value assumes the longest possible run, and the
        second value the shortest.
        """
        remaining_s = self.remaining_s
        passed_s = self.at_s - self.stood_still_s
        if remaining_s is None or passed_s + remaining_s[0] <= 0:
            return None
        shortest_s, longest_s = remaining_s
        return passed_s / (passed_s + longest_s), passed_s / (passed_s + shortest_s)


# Another host may send any number. The limits ensure that a calendar can represent the times.
_Seconds = Annotated[float, msgspec.Meta(ge=-1e10, le=1e10)]


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of a run in one line, for a view of many runs. A text is empty if there is nothing to show.

    Attributes:
        round: the place in a section, such as ``3 of 25`` or ``fill 41 %``.
        load, newest: workload and value of the newest step.
        left_s: the shortest and the longest remaining time in s.
        passed_s: the time of the run so far in s, without interruptions.
    """

    test: str = ""
    round: str = ""
    load: str = ""
    newest: str = ""
    hottest_c: float | None = None
    throttled: bool = False
    disturbed_steps: int = 0
    left_s: tuple[_Seconds, _Seconds] | None = None
    passed_s: _Seconds = 0.0


def value_of(quantity: Quantity, workload: Workload, measurement: Measurement) -> float | None:
    """Return the value of a quantity in one step. None means that the step did not measure the quantity."""
    return quantity.combine(Window(rounds=[measurement], workload=workload))
