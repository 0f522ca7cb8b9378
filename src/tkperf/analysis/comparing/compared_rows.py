"""Rows of a comparison. A row contains a cell, a phase of a stream or a characteristic over time for which every run
has a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import log
from statistics import median
from typing import Self

from tkperf.analysis.characteristics import FRESH, READS_WITHIN_LIMIT, SOUGHT_ALWAYS, STEADY, Characteristic
from tkperf.analysis.characteristics_search import CLOCK_S, changes
from tkperf.analysis.loads_together import READ_P99, InterferenceGrid, build_grid, find_neighbours
from tkperf.analysis.results import CellResult, RunResult, SectionResult, SliceResult
from tkperf.analysis.timeline.levels import LevelKind
from tkperf.analysis.timeline.timelines import preferred
from tkperf.analysis.uncertainty.estimate import EXTREME, Basis, Uncertainty, build_between, build_ratio
from tkperf.analysis.uncertainty.means import uncertainty_of_median
from tkperf.analysis.workload_axes import comparable_axes, place_of
from tkperf.model.disturbance.io import DisturbanceCode, find_codes
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MIN, QUANTITIES, Better, Measure, Quantity
from tkperf.model.units import format_number
from tkperf.model.workload import Arrival, Workload


class Span(StrEnum):
    """The parts of a run over which the lowest and the highest value of a row are determined. For the first two kinds
    of parts, the range between these values shows noise.
    """

    WINDOW = "the steady-state window"
    PHASE = "slices of the same phase"
    UNSTEADY = "rounds not found steady"
    STREAM = "a stream's slices, without a window"
    AREAS = "areas of the disk"


_NOISE = (Span.WINDOW, Span.PHASE)


class Change(StrEnum):
    """The change of the value of a run in relation to the value of the first run."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """The values differ, but for this measure neither a higher nor a lower value is better."""
    WITHIN_NOISE = "within noise"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"


MOST_WITHIN_NOISE = 1.10
"""Limit for the ratio of two values. A difference is within noise only if the interval of the ratio contains 1 and lies
between the inverse of this limit and this limit.

A wider interval also contains differences that matter. According to the PTS, a slope of more than 10 % is not steady.
"""
BEYOND_NOISE = (Change.BETTER, Change.WORSE, Change.DIFFERENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The value of one run in a row.

    Attributes:
        low, high, span: range of the value, and the part of the run that the range covers. None means that the value
            was measured only once.
        uncertainty: uncertainty of the value.
        ratio: the value divided by the value of the first run. None means that there is no value, or that the value of
            the first run is 0.
        within_noise: whether the difference from the first run is within noise. None means that neither uncertainties
            nor ranges decide, or that the interval of the ratio contains both 1 and a difference that matters.
        host_limited: whether the CPUs of the host, and not the device, limited the value, or None if not known.
        disturbances: the kinds of disturbance of the steps of this value, or None if the steps were not observed.
        not_found: text for a characteristic that the analysis searched for and did not find. The text is the bound, or
            states that the characteristic was not found. A lower bound is also stored as ``value``, with an interval
            that has no upper end.

    ``ratio``, ``ratio_uncertainty``, ``within_noise`` and ``change`` are None for the first run.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    span: Span | None = None
    uncertainty: Uncertainty | None = None
    ratio: float | None = None
    ratio_uncertainty: Uncertainty | None = None
    within_noise: bool | None = None
    change: Change | None = None
    host_limited: bool | None = None
    disturbances: tuple[DisturbanceCode, ...] | None = None
    not_found: str | None = None
    demand: tuple[int, int] | None = None
    """Threads and queue depth with which the value was measured. None means that the value does not belong to a single
    demand.
    """

    @property
    def is_least(self) -> bool:
        """Return whether the value is only a lower bound. If so, the true value has no known upper limit."""
        known = self.uncertainty
        return known is not None and known.known and known.high is None and known.low == self.value

    @property
    def beyond_noise(self) -> float:
        """Distance between 1 and the nearer end of the interval of the ratio, as a logarithm. If the difference is
        within noise, or may be within noise, the distance is 0.
        """
        if self.change not in BEYOND_NOISE or not self.ratio:
            return 0.0
        known = self.ratio_uncertainty
        near = None if known is None else known.low if self.ratio > 1 else known.high
        # If the ranges decided, the interval of the ratio contains 1 or is not known. In this case, the ratio itself is
        # used.
        certain = near if near and (near > 1) == (self.ratio > 1) else self.ratio
        return abs(log(certain))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """A value that exists for all runs. ``part`` is a phase of a stream with several levels. If ``part`` is empty, the
    value belongs to the whole stream or to a cell.
    """

    test: str
    section: str
    workload: Workload
    quantity: Measure
    entries: tuple[Entry, ...]
    part: str = ""

    @property
    def place(self) -> tuple[object, ...]:
        """Place of the row among all rows of the comparison."""
        return (self.test, self.section, self.workload, self.part, self.quantity.key)

    @property
    def beyond_noise(self) -> float:
        """Greatest difference beyond noise between a run and the first run, as a logarithm."""
        return max(entry.beyond_noise for entry in self.entries)

    @property
    def title(self) -> str:
        """The quantity with its unit. If ``part`` is not empty, the part follows."""
        return f"{self.part}: {self.quantity.title}" if self.part else self.quantity.title


def against_first(first: Entry, entry: Entry, measure: Measure) -> Entry:
    """Return the value of a run with its change and its ratio in relation to the value of the first run."""
    if entry.value is None or not first.value:
        return replace(entry, change=Change.NOT_COMPARABLE)
    of_ratio = build_ratio(entry.value, entry.uncertainty, first.value, first.uncertainty)
    noise = of_ratio.covers(1.0)
    if noise is None or (of_ratio.at_least and not noise):
        # If only a lower limit of the noise is known, a difference counts only if the ranges also show a difference.
        noise = ranges_overlap(first, entry)
    if noise and is_too_wide(of_ratio):
        noise = None
    ratio = entry.value / first.value
    return replace(
        entry,
        ratio=ratio,
        ratio_uncertainty=of_ratio,
        within_noise=noise,
        change=judge_change(ratio, measure, within_noise=noise),
    )


def judge_change(ratio: float, measure: Measure, *, within_noise: bool | None) -> Change:
    """Return whether a ratio shows a better value, a worse value or another kind of change. ``within_noise`` is None if
    the noise is not known.
    """
    if within_noise is None:
        return Change.INCONCLUSIVE
    if within_noise:
        return Change.WITHIN_NOISE
    if measure.better is Better.NEITHER:
        return Change.DIFFERENT
    return Change.BETTER if (ratio > 1) == (measure.better is Better.HIGHER) else Change.WORSE


def is_too_wide(of_ratio: Uncertainty | None) -> bool:
    """Return whether the interval of a ratio contains 1 and also contains a ratio that means a difference of more than
    10 %.
    """
    if of_ratio is None or not of_ratio.covers(1.0):
        return False
    low, high = of_ratio.low, of_ratio.high
    if low is None or high is None:
        return True
    return low < 1 / MOST_WITHIN_NOISE or high > MOST_WITHIN_NOISE


def ranges_overlap(first: Entry, entry: Entry) -> bool | None:
    """Return whether the ranges of two values overlap. None means that an overlap would not decide anything, or that a
    range is not known.

    Separate ranges always show a difference, because every value of one run is greater than every value of the other
    run. Overlapping ranges show noise only if each range covers a steady window or one phase of a stream.
    """
    if first.low is None or first.high is None or entry.low is None or entry.high is None:
        return None
    if entry.low > first.high or first.low > entry.high:
        return False
    return True if first.span in _NOISE and entry.span in _NOISE else None


FRESH_PART = "fresh out of box"
STEADY_PART = "steady"
LAST_PART = "last quarter"
_LEAST_SLICES = 2
# The smallest number of slices from which a range is computed. For two equal runs, the ranges of three slices of each
# run are separate by chance in 1 of 10 cases. The ranges of four slices are separate in 1 of 35 cases.
_FEWEST_RANGED = 4
_KINDS = {LevelKind.FRESH: FRESH_PART, LevelKind.STEADY: STEADY_PART}
LEVELS_OF = {FRESH.key: FRESH_PART, STEADY.key: STEADY_PART}
"""For each characteristic that is the level of a phase, the name of this phase. A comparison that shows the phase omits
the characteristic, because the values are the same. The keys are those of the characteristics.
"""
_EXTREMES = {LATENCY_MAX: max, LATENCY_MIN: min}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The part of one run that belongs to a phase. This part consists of the slices and of the known levels. The keys
    of the levels are those of the quantities.
    """

    slices: tuple[SliceResult, ...]
    levels: Mapping[str, float]


def find_phases(sections: Sequence[SectionResult]) -> dict[str, list[Phase]]:
    """Return the phases that the streams of all runs have in common. The keys are the names of the phases.

    The mean over a stream with several levels depends on the length of the stream, so each phase is compared
    separately. If not every run reached a steady level, the last quarter of each stream is compared. If every run is in
    steady state according to the specification, the window is compared instead. The result is empty if a section is not
    a stream, if every stream stayed at one level, or if several loads ran at the same time. The total of several loads
    has no meaningful phases.
    """
    if not all(is_stream(section) and not section.slices[0].values.workload.together for section in sections):
        return {}
    if not any(changes(section, section.slices[0].values.workload) for section in sections):
        return {}
    by_run = [dict(find_levels(section)) for section in sections]
    judged = are_judged_steady(sections)
    phases = {
        part: [of_run[part] for of_run in by_run]
        for part in ((FRESH_PART,) if judged else tuple(_KINDS.values()))
        if all(part in of_run for of_run in by_run)
    }
    if not judged and STEADY_PART not in phases:
        phases[LAST_PART] = [find_last_quarter(section) for section in sections]
    return phases


def are_judged_steady(sections: Sequence[SectionResult]) -> bool:
    """Return whether the cells of every run are means over a window of steady state."""
    return all(section.window and section.steady for section in sections)


def phase_entry(part: str, phase: Phase, quantity: Quantity) -> Entry:
    """Return the value of a quantity in a phase of one run. The value is the level of the phase, or the median of the
    slices if the level is not known. For a minimum or maximum, the value is the extreme of the slices.
    """
    cells = [one.values for one in phase.slices]
    values = [value for cell in cells if (value := cell.value(quantity)) is not None]
    if len(values) < len(cells):  # Some slices have no value.
        return Entry(value=None)
    if quantity in _EXTREMES:
        value, uncertainty = _EXTREMES[quantity](values), Uncertainty(reason=EXTREME)
    else:
        value = phase.levels.get(quantity.key, median(values))
        uncertainty = uncertainty_of_median(value, values, Basis.SLICES)
    if part == LAST_PART:  # The last quarter of a stream is not a level that the analysis found.
        uncertainty = replace(uncertainty, level=None)
    ranged = len(values) >= _FEWEST_RANGED
    limited = [cell.host_limited for cell in cells if cell.host_limited is not None]
    watched = [cell.disturbances for cell in cells if cell.disturbances is not None]
    return Entry(
        value=value,
        low=min(values) if ranged else None,
        high=max(values) if ranged else None,
        span=Span.PHASE if ranged else None,
        uncertainty=uncertainty,
        demand=_find_demand(cells),
        host_limited=any(limited) if limited else None,
        disturbances=find_codes(code for codes in watched for code in codes) if watched else None,
    )


def _find_demand(cells: Sequence[CellResult]) -> tuple[int, int] | None:
    demands = {(cell.workload.jobs, cell.workload.io_depth) for cell in cells}
    return demands.pop() if len(demands) == 1 else None


def is_stream(section: SectionResult) -> bool:
    """Return whether a section is a stream with enough slices to search for phases."""
    return len(section.slices) >= 4 * _LEAST_SLICES and section.areas is None


def find_levels(section: SectionResult) -> Iterator[tuple[str, Phase]]:
    """For each fresh or steady level of the total load, yield the name of the level, and a phase that contains the
    slices and the value of the level. A level with too few slices is omitted.
    """
    workload = section.slices[0].values.workload
    for timeline in preferred(section.timelines):
        if timeline.settled is None or timeline.quantity not in QUANTITIES or timeline.workload != workload:
            continue
        for level in timeline.levels:
            slices = tuple(
                one for one in section.slices if level.start <= one.start_s and one.end_s <= level.end + CLOCK_S
            )
            if level.kind in _KINDS and len(slices) >= _LEAST_SLICES:
                levels = {timeline.quantity: level.value}
                yield _KINDS[level.kind], Phase(slices=slices, levels=levels)


def find_last_quarter(section: SectionResult) -> Phase:
    """Return the last quarter of the slices of a stream."""
    return Phase(slices=section.slices[-(-3 * len(section.slices) // 4) :], levels={})


def build_rows(results: Sequence[RunResult]) -> Iterator[ComparedRow]:
    """Yield the rows for which every run has values, in the order of the first run."""
    by_name = [
        {(test.name, section.name): section for test in result.tests for section in test.sections} for result in results
    ]
    finding = {test for of_run in by_name for (test, _), one in of_run.items() if one.latency_ceiling_us is not None}
    for test, name in by_name[0]:
        if all((test, name) in of_run for of_run in by_name):
            rows = _of_section(test, [of_run[test, name] for of_run in by_name])
            yield from map(_without_judgement, rows) if test in finding else rows


def _without_judgement(row: ComparedRow) -> ComparedRow:
    """Return a row in which values with different demands are not judged. If the demand of a value differs from the
    demand of the first run, the value is not called better or worse.

    A test that searches for demands finds a different demand for each drive. A drive that needs more outstanding I/Os
    to reach its highest rate has a greater latency at that demand, although the drive is not slower.
    """

    def judge(entry: Entry) -> Entry:
        same = entry.demand is None or entry.demand == row.entries[0].demand
        return entry if same else _as_different(entry)

    return replace(row, entries=tuple(map(judge, row.entries)))


def _of_section(test: str, sections: Sequence[SectionResult]) -> Iterator[ComparedRow]:
    if sections[0].grid_rules is not None:
        yield from _of_grids(test, sections)
        return
    if sections[0].plan.draws(FigureKind.NEIGHBOURS):
        # The rate of the reader is a share of the rate that each drive reaches alone, so the loads differ from drive to
        # drive.
        yield from _of_course(test, sections, set())
        yield from _of_readers(test, sections)
        return
    name, quantities = sections[0].name, sections[0].quantities
    phases, workloads = find_phases(sections), _workloads(sections)
    for part, of_phase in phases.items() if workloads else ():
        for quantity in quantities:
            entries = [phase_entry(part, phase, quantity) for phase in of_phase]
            yield _row(test, name, workloads[0][0], quantity, entries, part)
    whole = not phases or are_judged_steady(sections)
    cells = [_Cells.of(section) for section in sections]
    # A value over all phases depends on the length of each phase, so such a value cannot be compared.
    for of_runs in workloads if whole else ():
        for quantity in quantities:
            entries = [_entry(of_run, workload, quantity) for of_run, workload in zip(cells, of_runs, strict=True)]
            row = _row(test, name, of_runs[0], quantity, entries)
            # The total of different streams depends on their offered rates, so a greater total is not better.
            yield _judge_nothing(row) if of_runs[0].is_combination else row
    yield from _of_course(test, sections, {*phases, *({STEADY_PART} if whole and phases else ())})


def _of_readers(test: str, sections: Sequence[SectionResult]) -> Iterator[ComparedRow]:
    """Yield the latency of the reader alone, and its latency while each neighbour runs. The values are not judged as
    better or worse, because the rate of the reader differs from drive to drive.
    """
    first, *others = [{one.name: one for one in find_neighbours((section,))} for section in sections]
    names = [name for name in first if all(name in effects for effects in others)]
    of_runs = [[effects[name] for name in names] for effects in (first, *others)]
    builders = [make_entry_builder(section) for section in sections]
    alone = [[effects[0].alone for effects in of_runs]] if names else []
    for cells in (*alone, *([one.reader for one in effects] for effects in zip(*of_runs, strict=True))):
        entries = [build(cell.workload, READ_P99) for build, cell in zip(builders, cells, strict=True)]
        yield _judge_nothing(_row(test, sections[0].name, cells[0].workload, READ_P99, entries))


def _judge_nothing(row: ComparedRow) -> ComparedRow:
    """Return a row in which no value is called better or worse."""
    return replace(row, entries=tuple(map(_as_different, row.entries)))


def _as_different(entry: Entry) -> Entry:
    return replace(entry, change=Change.DIFFERENT) if entry.change in (Change.BETTER, Change.WORSE) else entry


def _of_grids(test: str, sections: Sequence[SectionResult]) -> Iterator[ComparedRow]:
    """Yield the highest rate of reads at which the latency is within the limit. The rate of writes is the same for all
    runs: it is the middle rate in the grid of the run with the slowest writes.

    All drives are compared at the same rate of writes, because a share of each drive's own write rate would be a
    different load for each drive.
    """
    grids = [grid for section in sections if (grid := build_grid(section)) is not None and grid.is_complete]
    middles = [point for grid in grids if (point := grid.at_middle_writes) is not None]
    if len(middles) < len(sections) or len({grid.conditions for grid in grids}) > 1:
        return
    beside = min(point.write_bytes_per_s for point in middles)
    measure = replace(
        READS_WITHIN_LIMIT,
        label=f"reads with p99 ≤ {grids[0].limit_us / 1000:g} ms during writes at {format_number(beside / 1e6)} MB/s",
    )
    reads = next(cell.reads.workload for cell in grids[0].cells.values() if cell.reads is not None)
    workload = replace(reads, offered_iops=None, arrival=Arrival.LINEAR, together=(), stream=None)
    entries = [_entry_of_grid(grid, beside) for grid in grids]
    yield _row(test, sections[0].name, workload, measure, entries)


def _entry_of_grid(grid: InterferenceGrid, write_bytes_per_s: float) -> Entry:
    """Return the highest rate of reads of a run, or the known bound of this rate. The result also contains the
    disturbances of the cells that decide this value, and states whether the host limited these cells.
    """
    bounds = grid.reads_during(write_bytes_per_s)
    around = (point for point in grid.limit if point.write_bytes_per_s >= write_bytes_per_s)
    cells = grid.decisive_cells(next(around)) if bounds is not None else ()
    value = None if bounds is None else bounds.at_least
    not_found: str | None = None
    if bounds is None:
        not_found = "not known: cells contradict each other"
    elif value is None:
        not_found = f"below {format_number(bounds.at_most)}"
    elif bounds.at_most is None:
        not_found = f"at least {format_number(value)}"
    return Entry(
        value=value,
        uncertainty=None if value is None or bounds is None else build_between(value, bounds.at_most),
        host_limited=any(cell.host_limited for cell in cells),
        disturbances=find_codes(code for cell in cells for code in cell.disturbances or ()),
        not_found=not_found,
    )


def _workloads(sections: Sequence[SectionResult]) -> list[list[Workload]]:
    """Return the workloads that all runs have in common. Each entry contains the corresponding workload of each run, in
    the order of the runs.
    """
    axes = comparable_axes([cell.workload for cell in of_run.cells] for of_run in sections)
    places = [{place_of(cell.workload, axes): cell.workload for cell in of_run.cells} for of_run in sections]
    return [[of_run[place] for of_run in places] for place in places[0] if all(place in of_run for of_run in places)]


def _row(
    test: str, section: str, workload: Workload, quantity: Measure, entries: Sequence[Entry], part: str = ""
) -> ComparedRow:
    first, *others = entries
    return ComparedRow(
        test=test,
        section=section,
        workload=workload,
        quantity=quantity,
        part=part,
        entries=(first, *(against_first(first, other, quantity) for other in others)),
    )


def _of_course(test: str, sections: Sequence[SectionResult], parts: set[str]) -> Iterator[ComparedRow]:
    """Yield the characteristics over time that all runs have in common. Workloads that stay at one level in all runs
    are omitted.
    """
    found = [section.characteristics for section in sections]
    axes = comparable_axes([one.workload for one in of_run] for of_run in found)
    by_place = [{(place_of(one.workload, axes), one.key): one for one in of_run} for of_run in found]
    for place, one in by_place[0].items():
        if LEVELS_OF.get(one.key) in parts:
            continue
        of_runs = [places[place] for places in by_place if place in places]
        # A characteristic that was found in no run is not compared. The report of each run already states that the
        # characteristic was not found.
        differs = any(of_run.value is not None for of_run in of_runs) and any(
            changes(section, of_run.workload) for section, of_run in zip(sections, of_runs, strict=False)
        )
        if len(of_runs) == len(sections) and (differs or one.measure in SOUGHT_ALWAYS):
            entries = [_course_entry(of_run) for of_run in of_runs]
            yield _row(test, sections[0].name, one.workload, one.measure, entries)


def _course_entry(found: Characteristic) -> Entry:
    not_found = found.text() if found.value is None else None
    if found.value is None and found.at_least is not None and found.at_most is None:
        # The lower bound becomes an interval without an upper end, because the bound can be enough to show a difference
        # between two runs.
        return Entry(value=found.at_least, not_found=not_found, uncertainty=build_between(found.at_least, None))
    return Entry(value=found.value, not_found=not_found, uncertainty=found.uncertainty)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """The cells, rounds and slices of a section. The keys are the workloads. The mappings allow fast searches, which
    are necessary because a sweep has thousands of cells.
    """

    section: SectionResult
    whole: Mapping[Workload, CellResult]
    rounds: Mapping[Workload, Sequence[CellResult]]
    slices: Sequence[CellResult]

    @classmethod
    def of(cls, section: SectionResult) -> Self:
        window = set(section.window)
        rounds: dict[Workload, list[CellResult]] = {}
        for one in section.rounds:
            for cell in one.cells if one.number in window else ():
                rounds.setdefault(cell.workload, []).append(cell)
        return cls(
            section=section,
            whole={cell.workload: cell for cell in reversed(section.cells)},
            rounds=rounds,
            slices=[one.values for one in section.slices if not window or one.number in window],
        )


def make_entry_builder(section: SectionResult) -> Callable[[Workload, Quantity], Entry]:
    """Return a function that returns the value of a cell of one run, without a comparison. The cells are collected only
    once for all calls of this function.
    """
    return partial(_entry, _Cells.of(section))


def _entry(of_run: _Cells, workload: Workload, quantity: Quantity) -> Entry:
    cell = of_run.whole.get(workload)
    low, high, span = _range(of_run, workload, quantity)
    return Entry(
        value=None if cell is None else cell.value(quantity),
        low=low,
        high=high,
        span=span,
        uncertainty=None if cell is None else cell.uncertainty_of(quantity),
        demand=(workload.jobs, workload.io_depth),
        host_limited=cell.host_limited if cell is not None else None,
        disturbances=cell.disturbances if cell is not None else None,
    )


def _range(of_run: _Cells, workload: Workload, quantity: Quantity) -> tuple[float | None, float | None, Span | None]:
    """Return the lowest and the highest of the values from which the mean of a cell is computed, and the part of the
    run to which these values belong.
    """
    measured = of_run.rounds.get(workload) or of_run.slices
    values = [value for cell in measured if (value := cell.value(quantity)) is not None]
    if len(values) < 2:
        return None, None, None
    return min(values), max(values), _span(of_run.section, workload)


def _span(section: SectionResult, workload: Workload) -> Span:
    if section.areas:
        return Span.AREAS
    if not section.window:
        return Span.STREAM
    return Span.WINDOW if section.steady_of(workload) else Span.UNSTEADY
