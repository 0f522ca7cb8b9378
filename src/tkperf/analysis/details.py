"""Details about each cell, such as the one-second samples and the latency histogram. This module also lists every load
of a test in the order of the start times, and counts the I/Os of a stream by time and response time for heat maps.

The columns of a heat map are groups of neighbouring seconds or slices. The rows are bands of response time. Each I/O
counts in one column and one band: the column of its second or slice, and the band of its latency bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

import numpy as np

from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.section_results import starts_of_slices, starts_without_gaps
from tkperf.model.disturbance.host_activity import COLD_START_LIMIT_S
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.figures import FigureKind
from tkperf.model.histogram import BUCKETS, Histogram, IntArray, bands_of_buckets
from tkperf.model.measurement import NO_IO, IoStats, Measurement, Sample, Seconds, add_all, join
from tkperf.model.quantity import Direction, Quantity, Window
from tkperf.model.record import RunRecord, StepKind, StepRecord
from tkperf.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStep:
    """A step with its start time within the cell or the test.

    Attributes:
        start_s: start of the step, counted from the first I/O of the cell or of the test.
        seconds: the one-second samples of the step, counted from the first I/O of the step.
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
        """Return the kinds of disturbance, or None if the step was not observed."""
        return self.step.disturbance_codes

    @property
    def is_fill(self) -> bool:
        return self.step.kind is StepKind.FILL

    def value(self, quantity: Quantity) -> float | None:
        """Return the value of a quantity for the whole step, or None if not measured."""
        return quantity.combine(Window(rounds=(self.measurement,), workload=self.step.workload))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDetail:
    """The details of a cell of a section, or of the stream of a section.

    Attributes:
        seconds: the one-second samples of all steps in one series. The time between two rounds, during which other
            cells were measured, is omitted. The samples of a stream keep their recorded times, but warm-ups are
            omitted.
        read, write, trim: statistics of all I/Os in the steps that ``counted`` contains.
        job_file: the first fio job, in a form that the user can run again; empty if there is no job.
        counted: the steps from which results are computed: the rounds of the window, or all parts of a stream or of a
            cell without a window.
        bands: the number of I/Os of a long stream in each interval of time and of response time, for each direction;
            empty if the I/Os were not counted.
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
        """Return the statistics of reads and writes together. For a load that only trims, return the statistics of the
        trims.
        """
        return self.trim if self.workload.trims else self.read + self.write

    def stats_of(self, direction: Direction) -> IoStats:
        """Return the statistics of the I/Os of one direction, or of all I/Os."""
        return {Direction.READ: self.read, Direction.WRITE: self.write}.get(direction, self.whole)


def build_details(
    result: RunResult, record: RunRecord, seconds: Mapping[str, Sequence[Seconds]]
) -> tuple[CellDetail, ...]:
    """Return the details of every measured cell.

    Args:
        result: the results computed from ``record``.
        seconds: for each test, the samples of each step in the order of the steps. The samples are empty if they were
            not stored, as in an imported test.
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
    # The many steps of a run that takes a day share a few workload objects. A search by the identity of such an object
    # is much faster than a search by the hash of a combination.
    found: dict[tuple[str, StepKind, int], list[tuple[StepRecord, Seconds]]] = {}
    for step, samples in zip(steps, seconds, strict=True):
        for part in step.parts if step.is_in_results else ():
            place = part.section, part.kind, id(part.workload)
            members = found.get(place)
            if members is None:
                members = found[place] = by_cell.setdefault((part.section, part.key), [])
            members.append((part, samples.of(part.workload)))
    windows = {
        section.name: (frozenset(section.window), _judged_rounds(section))
        for (of_test, _), section in sections.items()
        if of_test == test
    }
    for (name, workload), members in by_cell.items():
        window, judged = windows[name]
        # All I/Os of a stream count, including the I/Os in slices outside the window.
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
# If the number of slices of a stream is less than this share of the number of columns, tkperf counts the I/Os of each
# second instead of each slice.
_LEAST_FILLED = 1 / 3


def with_latency_bands(
    details: Iterable[CellDetail], result: RunResult, read: ReadSamples, size: HeatMapSize
) -> tuple[CellDetail, ...]:
    """Return the details. If the plan of a section contains a heat map, the result also contains the number of I/Os in
    each interval of time and of response time.

    Args:
        read: the function that returns the one-second samples of a step with histograms. The function is called only
            for streams with few slices, because reading all samples of a long stream takes too long.
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
    """Return whether the steps are parts of one continuous load. The rounds of a cell are not continuous, because other
    cells were measured between them.
    """
    first = detail.parts[0].step.kind
    return first is StepKind.CONTINUOUS or (first is StepKind.ROUND and len(detail.parts) == 1)


def _count_directions(detail: CellDetail, read: ReadSamples, size: HeatMapSize) -> dict[Direction, LatencyBands]:
    by_slice = len(detail.parts) >= _LEAST_FILLED * size.columns
    pieces = [piece for part in detail.parts for piece in _find_pieces(detail.test, part, None if by_slice else read)]
    directions = (Direction.READ, Direction.WRITE) if detail.workload.is_mixed else (Direction.ALL,)
    counted = {direction: count_bands(pieces, direction, size) for direction in directions}
    return {direction: bands for direction, bands in counted.items() if bands is not None}


def _find_pieces(test: str, part: TimedStep, read: ReadSamples | None) -> Iterator[Piece]:
    """Yield the one-second samples of a slice. If the samples are not read or were not stored, yield the whole
    slice.
    """
    seconds = () if read is None else read(test, part.step)
    for second in seconds:
        yield _build_piece(second, part.start_s + second.start_s)
    if not seconds:
        yield _build_piece(part.measurement, part.start_s)


def _build_piece(ios: Sample | Measurement, start_s: float) -> Piece:
    # A load that trims has no writes, and a heat map does not separate the directions of such a load. The trims can
    # therefore be stored instead of the writes.
    write = ios.trim if ios.write.is_empty else ios.write
    return Piece(start_s=start_s, duration_s=ios.duration_s, read=ios.read, write=write)


def _judged_rounds(section: SectionResult) -> frozenset[int]:
    verdict = section.verdict
    return frozenset() if verdict is None or not verdict.judged else frozenset(verdict.rounds)


# Two loads follow each other directly if the gap between them does not exceed this time, in s. During a longer gap, the
# device had no load.
BACK_TO_BACK_S = COLD_START_LIMIT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadsOfTest:
    """The loads of a test, in the order in which they began."""

    loads: tuple[TimedStep, ...]

    def of_sections(self, names: Sequence[str]) -> LoadsOfTest:
        """Return only the loads of these sections. Fills are omitted."""
        return LoadsOfTest(loads=tuple(load for load in self.loads if load.step.section in names and not load.is_fill))

    def fills(self) -> LoadsOfTest:
        return LoadsOfTest(loads=tuple(load for load in self.loads if load.is_fill))

    def stretches(self) -> Iterator[tuple[TimedStep, ...]]:
        """Yield groups of loads that follow each other in one section. Fills and the loads that follow the fills belong
        to separate groups.
        """
        return _split(self.loads, lambda before, after: _name(before) != _name(after))

    def without_gaps(self, longest_s: float) -> Iterator[tuple[TimedStep, ...]]:
        """Yield groups of loads that follow each other. A pause of more than ``longest_s`` without a measurement begins
        a new group.
        """
        return _split(self.loads, lambda before, after: after.start_s - before.end_s > longest_s)

    def changes(self) -> Iterator[tuple[tuple[TimedStep, ...], tuple[TimedStep, ...]]]:
        """Yield two groups of loads for each change from one section to another: the group before the change and the
        group after the change. A change is included only if the workload differs, if no fill precedes the change, and
        if there is no gap.
        """
        for before, after in pairwise(self.stretches()):
            loads = before[-1].step.workload, after[0].step.workload
            gap_s = after[0].start_s - before[-1].end_s
            if loads[0] != loads[1] and not before[-1].is_fill and gap_s <= BACK_TO_BACK_S:
                yield before, after


def _split(
    loads: Iterable[TimedStep], parts: Callable[[TimedStep, TimedStep], bool]
) -> Iterator[tuple[TimedStep, ...]]:
    """Yield the loads in order, in groups. A group ends between two neighbouring loads if ``parts`` returns True for
    these two loads.
    """
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
    """Return the loads of each test. The name of the test is the key. Tests without recorded start times are omitted.

    Args:
        seconds: for each test, the one-second samples of each step in the order of the steps.
    """
    loads_of_tests = {}
    for test in record.tests:
        samples = seconds.get(test.name) or [Seconds()] * len(test.steps)
        starts_s = [step.started_s for step in test.steps]
        # In an imported test, all steps begin at 0, so their order in time is not known.
        if starts_s and (len(starts_s) == 1 or starts_s[0] < starts_s[-1]):
            loads_of_tests[test.name] = LoadsOfTest(
                loads=tuple(
                    TimedStep(step=step, start_s=step.started_s - starts_s[0], seconds=of_step)
                    for step, of_step in zip(test.steps, samples, strict=True)
                )
            )
    return loads_of_tests


SHORTEST_S = 20.0
FEWEST_COLUMNS = 8
"""The smallest number of columns of a heat map. A load with fewer columns has no heat map, because the map would not
show a change over time. A load that is shorter than ``SHORTEST_S`` also has no heat map.
"""
# Possible numbers of seconds or slices in one column.
_SIZES = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
# Possible numbers of bands in a decade. tkperf uses the first number that does not result in too many bands. If a
# decade has twelve bands, a band is 21 % wide.
_BANDS_A_DECADE = (12, 10, 8, 6, 5, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMapSize:
    """The greatest number of columns and the greatest number of bands of a heat map. Gaps in the stream can add
    columns.
    """

    columns: int
    bands: int


ON_PAGE = HeatMapSize(columns=120, bands=32)
IN_TERMINAL = HeatMapSize(columns=60, bands=14)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyBands:
    """The number of I/Os in each column (time) and each band (response time).

    If nothing was measured for longer than a column, no column covers this time.

    Attributes:
        starts_s, ends_s: start and end of each column, from the first I/O of the stream.
        column_s: length of most columns.
        edges_us: lower edge of each band in µs, followed by the upper edge of the last band.
        counts: for each column, the number of I/Os in each band. All numbers are 0 if no I/O ended in the column.
    """

    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    column_s: float
    edges_us: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A second or a slice, together with its start time within the stream."""

    start_s: float
    duration_s: float
    read: IoStats
    write: IoStats

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s

    def histogram(self, direction: Direction) -> Histogram:
        """Return the histogram of the response times of one direction or of all I/Os."""
        if direction is Direction.READ:
            return self.read.histogram
        if direction is Direction.WRITE:
            return self.write.histogram
        return self.read.histogram + self.write.histogram


def count_bands(pieces: Sequence[Piece], direction: Direction, size: HeatMapSize) -> LatencyBands | None:
    """Return the number of I/Os of a stream in each cell of a heat map.

    None means that the stream is too short, or that it has no histograms, as in imported results.
    """
    ordered = sorted(pieces, key=lambda piece: piece.start_s)
    if not ordered or ordered[-1].end_s < SHORTEST_S:
        return None
    columns = group_pieces(ordered, size.columns)
    if len(columns) < FEWEST_COLUMNS:
        return None
    by_bucket: IntArray = np.zeros((len(columns), BUCKETS), dtype=np.int64)
    for number, column in enumerate(columns):
        for piece in column:
            histogram = piece.histogram(direction)
            by_bucket[number, histogram.indices] += histogram.counts
    filled = np.flatnonzero(by_bucket.any(axis=0))
    if not filled.size:
        return None
    for per_decade in _BANDS_A_DECADE:
        bands, edges_ns = bands_of_buckets(per_decade)
        first, last = int(bands[filled[0]]), int(bands[filled[-1]])
        if last - first < size.bands:
            break
    counts: IntArray = np.zeros((len(columns), edges_ns.size - 1), dtype=np.int64)
    for bucket in filled.tolist():
        counts[:, bands[bucket]] += by_bucket[:, bucket]
    return LatencyBands(
        starts_s=tuple(column[0].start_s for column in columns),
        ends_s=tuple(_find_ends(columns, ordered[-1].end_s / size.columns)),
        column_s=median(column[-1].end_s - column[0].start_s for column in columns),
        edges_us=tuple((edges_ns[first : last + 2] / 1000).tolist()),
        counts=tuple(map(tuple, counts[:, first : last + 1].tolist())),
    )


def group_pieces(ordered: Sequence[Piece], most: int) -> list[list[Piece]]:
    """Return groups of neighbouring seconds or slices. There are about ``most`` groups or fewer. A group ends if
    nothing was measured for longer than the length of a column.
    """
    many = next((size for size in _SIZES if size * most >= len(ordered)), -(-len(ordered) // most))
    longest_gap_s = ordered[-1].end_s / most
    groups = [[ordered[0]]]
    for before, after in pairwise(ordered):
        if len(groups[-1]) == many or after.start_s - before.end_s > longest_gap_s:
            groups.append([])
        groups[-1].append(after)
    return groups


def _find_ends(columns: Sequence[Sequence[Piece]], longest_gap_s: float) -> list[float]:
    """Return the end of each column in s. A column ends at the start of the next column. If nothing was measured
    between the two columns for longer than ``longest_gap_s``, the column ends earlier.
    """
    ends_s = []
    for column, later in pairwise(columns):
        is_gap = later[0].start_s - column[-1].end_s > longest_gap_s
        ends_s.append(column[-1].end_s if is_gap else later[0].start_s)
    return [*ends_s, columns[-1][-1].end_s]
