"""Find the figures of a decision in the runs: by the workload that was run, in whichever test measured it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tkperf.analysis.characteristics import FRESH
from tkperf.analysis.comparing.compared_rows import (
    LAST_PART,
    STEADY_PART,
    Entry,
    build_entry,
    find_last_quarter,
    find_levels,
    is_stream,
    phase_entry,
)
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.decision import Decision, DecisionFigure, Unranked, Use, rank
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.uncertainty.estimate import build_ratio
from tkperf.analysis.verdict import VerdictState, judge_run
from tkperf.analysis.workload_axes import comparable_axes, place_of
from tkperf.model.disturbance.io import OF_HISTORY, DisturbanceCode
from tkperf.model.quantity import IOPS, LATENCY_MEAN, THROUGHPUT, Better, Measure, Quantity, percentile
from tkperf.model.units import KIB, MIB
from tkperf.model.workload import Access, Workload

KEPT_RATE = Measure(key="kept_rate_percent", label="kept rate", unit="%", better=Better.HIGHER)
"""The rate in the last quarter of a stream of writes, in percent of the rate fresh out of box."""
_FEWEST_FIXED = 3
_MOST_FIGURES = 8
# A stream that filled its drive less often than this share of the longest stream has not fallen as far.
_LEAST_OF_FILLS = 0.8

_IsWanted = Callable[[Workload], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFigure:
    """A figure of every comparison that has it.

    Attributes:
        loads: the loads that it may be of; the first that two runs have is taken.
    """

    key: str
    use: Use | None
    measure: Quantity
    loads: tuple[_IsWanted, ...]


def _is_of(work: Workload, access: Access, read_percent: int, block_size_bytes: int, single: bool | None) -> bool:
    """Return whether a workload is of this kind; ``single``: with one I/O at a time, None: with any number."""
    return (
        (work.access, work.read_percent, work.block_size_bytes) == (access, read_percent, block_size_bytes)
        and work.offered_iops is None
        and not (work.block_mix or work.zones or work.region or work.compressible_percent)
        and (single is None or (work.total_outstanding_ios == 1) is single)
    )


def _random(*read_percents: int, single: bool | None) -> tuple[_IsWanted, ...]:
    """Return 4 KiB random loads; None: with several I/Os at a time, or else with one."""
    return tuple(
        partial(
            _is_of, access=Access.RANDOM, read_percent=read_percent, block_size_bytes=4 * KIB, single=bool(of_single)
        )
        for read_percent in read_percents
        for of_single in ((False, True) if single is None else (single,))
    )


def _sequential(read_percent: int) -> tuple[_IsWanted, ...]:
    return tuple(
        partial(_is_of, access=Access.SEQUENTIAL, read_percent=read_percent, block_size_bytes=size, single=None)
        for size in (MIB, 512 * KIB, 256 * KIB, 128 * KIB)
    )


# In the order of the matrix. The mixes are those of the PTS and of data sheets.
FIXED = (
    FixedFigure(key="random_read", use=Use.READS, measure=IOPS, loads=_random(100, single=None)),
    FixedFigure(key="random_write", use=Use.WRITES, measure=IOPS, loads=_random(0, single=None)),
    FixedFigure(key="random_mix", use=None, measure=IOPS, loads=_random(65, 70, 50, single=None)),
    FixedFigure(key="large_read", use=Use.LARGE_FILES, measure=THROUGHPUT, loads=_sequential(100)),
    FixedFigure(key="large_write", use=Use.LARGE_FILES, measure=THROUGHPUT, loads=_sequential(0)),
    FixedFigure(key="single_read", use=Use.SINGLE_READS, measure=LATENCY_MEAN, loads=_random(100, single=True)),
    FixedFigure(key="single_write_tail", use=None, measure=percentile(99.9), loads=_random(0, single=True)),
)


class _Measured(NamedTuple):
    """One run's value, before it is ranked."""

    workload: Workload
    entry: Entry
    unranked: Unranked | None


class _Place(NamedTuple):
    test: str
    section: str


_Sections = dict[_Place, dict[int, SectionResult]]
_Runs = Mapping[int, _Measured]


def build_decision(comparison: Comparison) -> Decision:
    """Return the figures of a comparison, with the runs ranked by each."""
    finder = _Finder(comparison)
    found = [*map(finder.find_fixed, FIXED), finder.find_kept_rate()]
    known = [figure for figure in found if figure is not None]
    shared = [figure for figure in known if len(figure.measured) > 1]
    if len(shared) < _FEWEST_FIXED:
        shared = [*shared, *finder.find_headlines(shared)][:_MOST_FIGURES]
    return Decision(figures=tuple(shared), alone=tuple(figure for figure in known if len(figure.measured) == 1))


class _Finder:
    """Find figures in the runs of a comparison."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._count = len(comparison.results)
        self._not_comparable = _find_not_comparable(comparison.results)
        self._sections: _Sections = {}
        for number, result in enumerate(comparison.results):
            for test in result.tests:
                for section in test.sections:
                    if not section.plan.prepares:
                        self._sections.setdefault(_Place(test.name, section.name), {})[number] = section

    def find_fixed(self, fixed: FixedFigure) -> DecisionFigure | None:
        """Return a fixed figure where most runs have it; writes from a stream if nothing else has them."""
        best: tuple[_Place, _Runs] | None = None
        for load in fixed.loads:
            best = _choose(best, ((place, self._of_cells(place, load, fixed.measure)) for place in self._sections))
        part = ""
        if fixed.use is Use.WRITES and (best is None or len(best[1]) < 2):
            streams = _choose(None, ((place, self._of_streams(place, fixed.loads[0])) for place in self._sections))
            if streams is not None and (best is None or len(streams[1]) > 1):
                best, part = streams, LAST_PART
        return None if best is None else self._build(fixed.key, fixed.use, fixed.measure, *best, part)

    def _of_cells(self, place: _Place, is_wanted: _IsWanted, quantity: Quantity) -> _Runs:
        """Return the values of a load in a section; of several demands the greatest that most runs have."""
        of_runs = {number: section for number, section in self._sections[place].items() if not section.slices}
        axes = comparable_axes([cell.workload for cell in section.cells] for section in of_runs.values())
        demands: dict[tuple[object, ...], dict[int, Workload]] = {}
        for number, section in of_runs.items():
            for cell in section.cells:
                if is_wanted(cell.workload) and cell.value(quantity) is not None:
                    demands.setdefault(place_of(cell.workload, axes), {})[number] = cell.workload
        if not demands:
            return {}
        workloads = max(
            demands.values(), key=lambda of: (len(of), max(work.total_outstanding_ios for work in of.values()))
        )
        usual = [set(of_runs[number].plan.cautions) for number in workloads]
        measured = {}
        for number, workload in workloads.items():
            section = of_runs[number]
            entry = build_entry(section, workload, quantity)
            unranked = _find_reason(section, entry, steady=section.steady_of(workload))
            if set(section.plan.cautions) != min(usual, key=len):
                unranked = Unranked.NOT_COMPARABLE
            measured[number] = _Measured(workload, entry, unranked)
        return measured

    def _of_streams(self, place: _Place, is_wanted: _IsWanted) -> _Runs:
        """Return the rates of streams where they settled; of a stream that did not, that of its last quarter."""
        measured = {}
        for number, section in self._sections[place].items():
            workload = _find_workload(section)
            if workload is None or not is_wanted(workload):
                continue
            levels = dict(find_levels(section))
            phase = levels.get(STEADY_PART, find_last_quarter(section))
            entry = phase_entry(STEADY_PART if STEADY_PART in levels else LAST_PART, phase, IOPS)
            steady = STEADY_PART in levels or bool(section.steady)
            measured[number] = _Measured(workload, entry, _find_reason(section, entry, steady=steady))
        return measured

    def find_kept_rate(self) -> DecisionFigure | None:
        """Return the rate that streams of random writes kept until their last quarter."""
        best = _choose(None, ((place, self._of_kept_rates(place)) for place in self._sections))
        return None if best is None else self._build("kept_rate", None, KEPT_RATE, *best, LAST_PART)

    def _of_kept_rates(self, place: _Place) -> _Runs:
        measured: dict[int, _Measured] = {}
        fills: dict[int, float] = {}
        for number, section in self._sections[place].items():
            workload = _find_workload(section)
            if workload is None or not any(is_wanted(workload) for is_wanted in _random(0, single=None)):
                continue
            fresh = next((found for found in section.characteristics if found.key == FRESH.key and found.value), None)
            last = phase_entry(LAST_PART, find_last_quarter(section), IOPS)
            if fresh is None or not fresh.value or last.value is None:
                continue
            percent = 100 / fresh.value
            entry = Entry(
                value=percent * last.value,
                low=None if last.low is None else percent * last.low,
                high=None if last.high is None else percent * last.high,
                span=last.span,
                uncertainty=build_ratio(last.value, last.uncertainty, fresh.value, fresh.uncertainty, times=100),
                host_limited=last.host_limited,
                disturbances=last.disturbances,
            )
            measured[number] = _Measured(workload, entry, _find_reason(section, entry, steady=None))
            written, length = section.slices[-1].total_written_bytes, self._find_length(number)
            if written and length:
                fills[number] = written / length
        most = max(fills.values(), default=0.0)
        return {
            number: of._replace(unranked=of.unranked or Unranked.NOT_COMPARABLE)
            if number in fills and fills[number] < _LEAST_OF_FILLS * most
            else of
            for number, of in measured.items()
        }

    def _find_length(self, number: int) -> int | None:
        return self._comparison.results[number].info.active_range_length_bytes

    def find_headlines(self, found: Sequence[DecisionFigure]) -> Iterator[DecisionFigure]:
        """Yield the headline figures that are not among those already found, as figures without a use."""
        known = {(figure.test, figure.section, figure.workload, figure.measure.key) for figure in found}
        for number, row in enumerate(self._comparison.headlines):
            place = (row.test, row.section, row.workload, row.quantity.key)
            if row.quantity.better is Better.NEITHER or place in known:
                continue
            sections = self._sections.get(_Place(row.test, row.section), {})
            runs = {
                run: _Measured(
                    row.workload,
                    Entry(
                        value=entry.value,
                        low=entry.low,
                        high=entry.high,
                        span=entry.span,
                        uncertainty=entry.uncertainty,
                        host_limited=entry.host_limited,
                        disturbances=entry.disturbances,
                        not_found=entry.not_found,
                    ),
                    _find_reason(sections[run], entry, steady=sections[run].steady_of(row.workload)),
                )
                for run, entry in enumerate(row.entries)
                if run in sections
            }
            place_of_row = _Place(row.test, row.section)
            yield self._build(f"headline_{number}", None, row.quantity, place_of_row, runs, row.part)

    def _build(
        self, key: str, use: Use | None, measure: Measure, place: _Place, runs: _Runs, part: str
    ) -> DecisionFigure:
        reasons = {number: of.unranked for number, of in runs.items() if of.unranked is not None}
        reasons |= dict.fromkeys(self._not_comparable, Unranked.NOT_COMPARABLE)
        entries = [runs[number].entry if number in runs else Entry(value=None) for number in range(self._count)]
        cells, ranking = rank(entries, reasons, measure)
        return DecisionFigure(
            key=key,
            use=use,
            measure=measure,
            test=place.test,
            section=place.section,
            workload=runs[min(runs)].workload,
            part=part,
            same_demand=len({(of.workload.jobs, of.workload.io_depth) for of in runs.values()}) == 1,
            cells=cells,
            ranking=ranking,
        )


def _choose(
    best: tuple[_Place, _Runs] | None, candidates: Iterator[tuple[_Place, _Runs]]
) -> tuple[_Place, _Runs] | None:
    """Return the candidate of most runs, unless the one found before has two runs, or as many."""
    if best is not None and len(best[1]) > 1:
        return best
    for place, runs in candidates:
        if runs and (best is None or len(runs) > len(best[1])):
            best = place, runs
    return best


def _find_not_comparable(results: Sequence[RunResult]) -> frozenset[int]:
    """Return the runs that the rules of comparison exclude: those that are not valid, and models among devices."""
    simulated = {number for number, result in enumerate(results) if result.info.is_simulated}
    invalid = {number for number, result in enumerate(results) if judge_run(result).state is VerdictState.NOT_VALID}
    return frozenset(invalid | (simulated if len(simulated) < len(results) else set()))


def _find_workload(section: SectionResult) -> Workload | None:
    """Return the workload of a stream; None: the section is no stream, or one of few slices."""
    return section.slices[0].values.workload if is_stream(section) else None


def _find_reason(section: SectionResult, entry: Entry, *, steady: bool | None) -> Unranked | None:
    """Return why a value is not to be ranked; ``steady`` is None if nothing was judged."""
    if entry.value is None:
        return Unranked.NOT_MEASURED
    codes = set(entry.disturbances or ()) - set(OF_HISTORY)
    reasons = {
        Unranked.NOT_COMPLETE: not section.complete,
        Unranked.NOT_STEADY: steady is False,
        Unranked.DISTURBED: bool(codes - {DisturbanceCode.THROTTLED}),
        Unranked.THROTTLED: DisturbanceCode.THROTTLED in codes,
        Unranked.HOST_LIMITED: bool(entry.host_limited),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)
