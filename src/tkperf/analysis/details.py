"""Details about each cell: its seconds and its latency histogram; and every load of a test in the order of its start
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tkperf.analysis.latency_bands import HeatMapSize, LatencyBands, Piece, count_bands
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.section_results import starts_of_slices, starts_without_gaps
from tkperf.model.disturbance.host_activity import COLD_START_LIMIT_S
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.figures import FigureKind
from tkperf.model.measurement import NO_IO, IoStats, Measurement, Sample, Seconds, add_all, join
from tkperf.model.quantity import Direction, Quantity, Window
from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStep:
    """A step at its place in the time of the cell or of the test.

    Attributes:
        start_s: time since the first I/O of the cell or of the test.
        seconds: the samples, from the first I/O of the step.
        judged: whether the step belongs to the window of the verdict.
    """

    step: StepRecord
    start_s: float
    seconds: Seconds
    judged: bool = False

    @property
    def number(self) -> int:
        """Return the number of the round, area or slice."""
        return self.step.number

    @property
    def measurement(self) -> Measurement:
        return self.step.measurement

    @property
    def end_s(self) -> float:
        return self.start_s + self.measurement.duration_s

    @property
    def host_limited(self) -> bool | None:
        return self.measurement.host_limited

    @property
    def disturbances(self) -> tuple[DisturbanceCode, ...] | None:
        """Return the kinds of disturbance; None: the step was not watched."""
        return self.step.disturbance_codes

    @property
    def is_fill(self) -> bool:
        return self.step.kind is StepKind.FILL

    def value(self, quantity: Quantity) -> float | None:
        """Return the value of a quantity for the whole step; None: not measured."""
        return quantity.combine(Window(rounds=(self.measurement,), workload=self.step.workload))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDetail:
    """A cell of a section, or the stream of a section.

    Attributes:
        seconds: the seconds of all steps without gaps: the time between two rounds, in which other cells were measured,
            is omitted. The seconds of a stream keep their recorded places, and its warm-ups are omitted.
        read, write, trim: all I/Os of the parts ``counted``.
        job_file: the first fio job, which can be run again; empty if there is none.
        counted: the rounds of the window, or all parts of a stream or of a cell without a window.
        bands: the I/Os of a long stream by time and response time, for each direction; empty: they were not counted.
    """

    test: str
    section: str
    workload: Workload
    parts: tuple[TimedStep, ...]
    seconds: Seconds
    read: IoStats
    write: IoStats
    job_file: str
    trim: IoStats = NO_IO
    counted: tuple[TimedStep, ...] = ()
    bands: Mapping[Direction, LatencyBands] = field(default_factory=dict)

    @property
    def whole(self) -> IoStats:
        """Return reads and writes together; of a load that only trims, the trims."""
        return self.trim if self.workload.trims else self.read + self.write

    def stats_of(self, direction: Direction) -> IoStats:
        """Return the I/Os of one direction, or all."""
        return {Direction.READ: self.read, Direction.WRITE: self.write}.get(direction, self.whole)


def build_details(
    result: RunResult, record: RunRecord, seconds: Mapping[str, Sequence[Seconds]]
) -> tuple[CellDetail, ...]:
    """Return the details of every measured cell.

    Args:
        result: the analysis of ``record``.
        seconds: the samples of each step of each test, in their order; none for a test without kept samples, such as an
            imported test.
    """
    sections = {(test.name, section.name): section for test in result.tests for section in test.sections}
    return tuple(
        detail
        for test in record.tests
        for detail in _details(test.name, test.steps, seconds.get(test.name) or [Seconds()] * len(test.steps), sections)
    )


def _details(
    test: str,
    steps: Sequence[StepRecord],
    seconds: Sequence[Seconds],
    sections: Mapping[tuple[str, str], SectionResult],
) -> Iterator[CellDetail]:
    by_cell: dict[tuple[str, Workload], list[tuple[StepRecord, Seconds]]] = {}
    for step, samples in zip(steps, seconds, strict=True):
        for part in step.parts if step.is_in_results else ():
            by_cell.setdefault((part.section, part.key), []).append((part, samples.of(part.workload)))
    windows = {
        section.name: (frozenset(section.window), _judged_rounds(section))
        for (of_test, _), section in sections.items()
        if of_test == test
    }
    for (name, workload), members in by_cell.items():
        window, judged = windows[name]
        # All I/Os of a stream count, including its slices outside the window.
        stream = members[0][0].kind is StepKind.CONTINUOUS
        whole = stream or not window
        steps_of_cell = [step for step, _ in members]
        starts_s = (starts_of_slices if stream else starts_without_gaps)(steps_of_cell)
        parts = tuple(
            TimedStep(step=step, start_s=start_s, seconds=samples, judged=step.number in judged)
            for (step, samples), start_s in zip(members, starts_s, strict=True)
        )
        counted = tuple(part for part in parts if whole or part.number in window)
        yield CellDetail(
            test=test,
            section=name,
            workload=workload,
            parts=parts,
            seconds=join([samples for _, samples in members], starts_s),
            read=add_all(part.measurement.read for part in counted),
            write=add_all(part.measurement.write for part in counted),
            trim=add_all(part.measurement.trim for part in counted),
            job_file=members[0][0].job_file,
            counted=counted,
        )


ReadSamples = Callable[[str, StepRecord], Sequence[Sample]]
# If a stream has fewer slices than this share of the columns, the seconds are counted instead of the slices.
_LEAST_FILLED = 1 / 3


def with_latency_bands(
    details: Iterable[CellDetail], result: RunResult, read: ReadSamples, size: HeatMapSize
) -> tuple[CellDetail, ...]:
    """Return the details. If a plan asks for a heat map, the details contain the I/Os by time and response time.

    Args:
        read: returns the seconds of a step with their histograms. The function is called only for streams with few
            slices, because it takes too long to read all seconds of a long stream.
    """
    sections = {
        (test.name, section.name)
        for test in result.tests
        for section in test.sections
        if section.plan.draws(FigureKind.HEAT_MAP)
    }
    return tuple(
        replace(detail, bands=_count_directions(detail, read, size))
        if (detail.test, detail.section) in sections and _is_stream(detail)
        else detail
        for detail in details
    )


def _is_stream(detail: CellDetail) -> bool:
    """Return whether the steps are parts of one load. Between the rounds of a cell, other cells were measured."""
    first = detail.parts[0].step.kind
    return first is StepKind.CONTINUOUS or (first is StepKind.ROUND and len(detail.parts) == 1)


def _count_directions(detail: CellDetail, read: ReadSamples, size: HeatMapSize) -> dict[Direction, LatencyBands]:
    by_slice = len(detail.parts) >= _LEAST_FILLED * size.columns
    pieces = [piece for part in detail.parts for piece in _find_pieces(detail.test, part, None if by_slice else read)]
    directions = (Direction.READ, Direction.WRITE) if detail.workload.is_mixed else (Direction.ALL,)
    counted = {direction: count_bands(pieces, direction, size) for direction in directions}
    return {direction: bands for direction, bands in counted.items() if bands is not None}


def _find_pieces(test: str, part: TimedStep, read: ReadSamples | None) -> Iterator[Piece]:
    """Yield the seconds of a slice. If its seconds are not read or were not stored, yield the slice itself."""
    seconds = () if read is None else read(test, part.step)
    for second in seconds:
        yield _build_piece(second, part.start_s + second.start_s)
    if not seconds:
        yield _build_piece(part.measurement, part.start_s)


def _build_piece(ios: Sample | Measurement, start_s: float) -> Piece:
    # A load that trims has no writes, and a heat map shows no direction of such a load apart.
    write = ios.trim if ios.write.is_empty else ios.write
    return Piece(start_s=start_s, duration_s=ios.duration_s, read=ios.read, write=write)


def _judged_rounds(section: SectionResult) -> frozenset[int]:
    verdict = section.verdict
    return frozenset() if verdict is None or not verdict.judged else frozenset(verdict.rounds)


# Longest gap between two loads that follow each other directly. During a longer gap, the device had no load.
BACK_TO_BACK_S = COLD_START_LIMIT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadsOfTest:
    """Loads of a test, in the order in which they began."""

    loads: tuple[TimedStep, ...]

    def of_sections(self, names: Sequence[str]) -> LoadsOfTest:
        """Return only the loads of these sections, without fills."""
        return LoadsOfTest(loads=tuple(load for load in self.loads if load.step.section in names and not load.is_fill))

    def fills(self) -> LoadsOfTest:
        return LoadsOfTest(loads=tuple(load for load in self.loads if load.is_fill))

    def stretches(self) -> Iterator[tuple[TimedStep, ...]]:
        """Yield the loads that follow each other in one section. A fill is separate from the loads that it prepares."""
        return _split(self.loads, lambda before, after: _name(before) != _name(after))

    def without_gaps(self, longest_s: float) -> Iterator[tuple[TimedStep, ...]]:
        """Yield the loads that follow each other, divided at each time longer than ``longest_s`` in which nothing was
        measured.
        """
        return _split(self.loads, lambda before, after: after.start_s - before.end_s > longest_s)

    def changes(self) -> Iterator[tuple[tuple[TimedStep, ...], tuple[TimedStep, ...]]]:
        """Yield the loads before and after each change from one section to another, if they follow each other
        directly.
        """
        for before, after in pairwise(self.stretches()):
            loads = before[-1].step.workload, after[0].step.workload
            gap_s = after[0].start_s - before[-1].end_s
            if loads[0] != loads[1] and not before[-1].is_fill and gap_s <= BACK_TO_BACK_S:
                yield before, after


def _split(
    loads: Iterable[TimedStep], parts: Callable[[TimedStep, TimedStep], bool]
) -> Iterator[tuple[TimedStep, ...]]:
    """Yield the loads in order, divided between two neighbours wherever ``parts`` says so."""
    stretch: list[TimedStep] = []
    for load in loads:
        if stretch and parts(stretch[-1], load):
            yield tuple(stretch)
            stretch = []
        stretch.append(load)
    if stretch:
        yield tuple(stretch)


def _name(load: TimedStep) -> tuple[str, bool]:
    return load.step.section, load.is_fill


def loads_by_test(record: RunRecord, seconds: Mapping[str, Sequence[Seconds]]) -> dict[str, LoadsOfTest]:
    """Return the loads of each test by its name. A test without recorded start times is omitted.

    Args:
        seconds: the samples of each step of each test, in their order.
    """
    loads_of_tests = {}
    for test in record.tests:
        samples = seconds.get(test.name) or [Seconds()] * len(test.steps)
        starts_s = [step.started_s for step in test.steps]
        # All imported steps begin at 0.
        if starts_s and (len(starts_s) == 1 or starts_s[0] < starts_s[-1]):
            loads_of_tests[test.name] = LoadsOfTest(
                loads=tuple(
                    TimedStep(step=step, start_s=step.started_s - starts_s[0], seconds=of_step)
                    for step, of_step in zip(test.steps, samples, strict=True)
                )
            )
    return loads_of_tests
