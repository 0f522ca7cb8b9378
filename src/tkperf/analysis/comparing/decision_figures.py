"""Choose the figures of a decision among the values of the compared runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tkperf.analysis.characteristics import LATENCY_FACTOR
from tkperf.analysis.comparing.compared_rows import ComparedRow, Entry
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.decision import Decision, DecisionFigure, Unranked, Use, rank
from tkperf.analysis.comparing.run_figures import (
    FIXED,
    KEPT_RATE,
    KEPT_RATE_KEY,
    STREAM,
    FigureValue,
    FixedFigure,
    find_reason,
    find_values,
    is_comparable,
)
from tkperf.analysis.results import RunResult, SectionResult
from tkperf.analysis.workload_axes import AXES, DEMAND_AXES, place_of
from tkperf.model.quantity import Better, Measure
from tkperf.model.workload import Workload

FEWEST_FIXED = 3
"""If a page has fewer fixed figures than this number, tkperf adds headline figures."""
_MOST_FIGURES = 8
LEAST_OF_FILLS = 0.8
"""The kept rate of a stream is its rate in the last quarter, in percent of the rate fresh out of the box. Kept rates
can be compared only if the streams wrote similar amounts. Each stream fills the active range a certain number of times.
A stream is too short if its number is less than this share of the number for the longest stream.
"""


class _Measured(NamedTuple):
    """The value of one run before the runs are ranked."""

    workload: Workload
    entry: Entry
    unranked: Unranked | None


class _Place(NamedTuple):
    test: str
    section: str
    part: str = ""


_Runs = Mapping[int, _Measured]


def build_decision(comparison: Comparison) -> Decision:
    """Return the figures of a comparison, and rank the runs by each figure."""
    finder = _Finder(comparison.results)
    found = [*map(finder.find_fixed, FIXED), finder.find_kept_rate()]
    known = [figure for figure in found if figure is not None]
    shared = [figure for figure in known if len(figure.measured) > 1]
    if len(shared) < FEWEST_FIXED:
        shared = [*shared, *finder.find_headlines(comparison.headlines, shared)][:_MOST_FIGURES]
    return Decision(figures=tuple(shared), alone=tuple(figure for figure in known if len(figure.measured) == 1))


def find_fixed_figures(result: RunResult) -> tuple[DecisionFigure, ...]:
    """Return the fixed figures of a run, with the values that a comparison of this run with similar runs would show."""
    found = map(_Finder((result,)).find_fixed, FIXED)
    return tuple(figure for figure in found if figure is not None)


class _Finder:
    """A search for the figures that several runs have in common."""

    def __init__(self, results: Sequence[RunResult]) -> None:
        self._results = results
        self._count = len(results)
        self._not_comparable = _find_not_comparable(results)
        # For each figure and each load, the mapping contains the values at each place. A place is a section of a test
        # or a phase of this section. Each value is stored together with the number of its run.
        self._values: dict[tuple[str, int], dict[_Place, list[tuple[int, FigureValue]]]] = {}
        for number, result in enumerate(results):
            for value in find_values(result):
                place = _Place(value.test, value.section, value.part)
                self._values.setdefault((value.key, value.load), {}).setdefault(place, []).append((number, value))

    def find_fixed(self, fixed: FixedFigure) -> DecisionFigure | None:
        """Return a fixed figure from the section in which the greatest number of runs have a value. If fewer than two
        runs measured a figure of writes in a test, the rate of a stream of writes is used.
        """
        best: tuple[_Place, _Runs] | None = None
        for load in range(len(fixed.loads)):
            best = _choose(best, self._of_load(fixed.key, load))
        if fixed.use is Use.WRITES and (best is None or len(best[1]) < 2):
            streams = _choose(None, self._of_load(fixed.key, STREAM))
            if streams is not None and (best is None or len(streams[1]) > 1):
                best = streams
        return None if best is None else self._build(fixed.key, fixed.use, fixed.measure, *best)

    def _of_load(self, key: str, load: int) -> Iterator[tuple[_Place, _Runs]]:
        """Yield the values of a load for each section or phase in which the load was measured. If there are several
        demands, yield the values at the demand that the greatest number of runs have in common. If several demands are
        equally common, the greatest of these demands is used.
        """
        for place, values in self._values.get((key, load), {}).items():
            varying = {axis for _, value in values for axis in value.varying}
            axes = [axis for axis in AXES if axis.key in varying or axis not in DEMAND_AXES]
            demands: dict[tuple[object, ...], dict[int, FigureValue]] = {}
            for number, value in values:
                demands.setdefault(place_of(value.workload, axes), {})[number] = value
            chosen = max(
                demands.values(),
                key=lambda of: (len(of), max(value.workload.total_outstanding_ios for value in of.values())),
            )
            fewest = min((set(value.cautions) for value in chosen.values()), key=len)
            yield (
                place,
                {
                    number: _Measured(
                        value.workload,
                        value.entry,
                        value.unranked if set(value.cautions) == fewest else Unranked.NOT_COMPARABLE,
                    )
                    for number, value in chosen.items()
                },
            )

    def find_kept_rate(self) -> DecisionFigure | None:
        """Return the figure for the kept rate. The kept rate is the rate in the last quarter of a stream of random
        writes, in percent of the rate fresh out of the box.
        """
        best = _choose(None, self._of_kept_rates())
        return None if best is None else self._build(KEPT_RATE_KEY, None, KEPT_RATE, *best)

    def _of_kept_rates(self) -> Iterator[tuple[_Place, _Runs]]:
        for place, values in self._values.get((KEPT_RATE_KEY, 0), {}).items():
            short = find_short(value.fills for _, value in values)
            yield (
                place,
                {
                    number: _Measured(
                        value.workload,
                        value.entry,
                        (value.unranked or Unranked.NOT_COMPARABLE) if is_short else value.unranked,
                    )
                    for (number, value), is_short in zip(values, short, strict=True)
                },
            )

    def find_headlines(self, rows: Sequence[ComparedRow], found: Sequence[DecisionFigure]) -> Iterator[DecisionFigure]:
        """Yield the headline figures that are not yet among the figures. These figures belong to no use."""
        known = {(figure.test, figure.section, figure.workload, figure.measure.key) for figure in found}
        for number, row in enumerate(rows):
            place = (row.test, row.section, row.workload, row.quantity.key)
            of_own_load = row.quantity.key == LATENCY_FACTOR.key
            if (row.quantity.better is Better.NEITHER and not of_own_load) or place in known:
                continue
            sections = _find_sections(self._results, row.test, row.section)
            runs = {
                run: _Measured(
                    row.workload,
                    replace(entry, ratio=None, ratio_uncertainty=None, within_noise=None, change=None),
                    Unranked.OWN_LOAD
                    if of_own_load
                    else find_reason(sections[run], entry, steady=sections[run].steady_of(row.workload)),
                )
                for run, entry in enumerate(row.entries)
                if run in sections
            }
            place_of_row = _Place(row.test, row.section, row.part)
            yield self._build(f"headline_{number}", None, row.quantity, place_of_row, runs)

    def _build(self, key: str, use: Use | None, measure: Measure, place: _Place, runs: _Runs) -> DecisionFigure:
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
            part=place.part,
            same_demand=len({(of.workload.jobs, of.workload.io_depth) for of in runs.values()}) == 1,
            cells=cells,
            ranking=ranking,
        )


def _choose(
    best: tuple[_Place, _Runs] | None, candidates: Iterator[tuple[_Place, _Runs]]
) -> tuple[_Place, _Runs] | None:
    """Return the candidate for which the greatest number of runs have a value. The earlier candidate ``best`` is kept
    if at least two runs have a value for ``best``, or if no new candidate has more runs.
    """
    if best is not None and len(best[1]) > 1:
        return best
    for place, runs in candidates:
        if runs and (best is None or len(runs) > len(best[1])):
            best = place, runs
    return best


def _find_not_comparable(results: Sequence[RunResult]) -> frozenset[int]:
    """Return the numbers of the runs that must not be compared. A run must not be compared if the run is not valid, or
    if the run measured a simulated drive while other runs measured real devices.
    """
    simulated = {number for number, result in enumerate(results) if result.info.is_simulated}
    invalid = {number for number, result in enumerate(results) if not is_comparable(result)}
    return frozenset(invalid | (simulated if len(simulated) < len(results) else set()))


def _find_sections(results: Sequence[RunResult], test: str, name: str) -> dict[int, SectionResult]:
    """Return the section with this name in each run. The keys are the numbers of the runs. Runs without the section are
    omitted. Sections that only prepare the device are also omitted.
    """
    return {
        number: section
        for number, result in enumerate(results)
        for one in result.tests
        if one.name == test
        for section in one.sections
        if section.name == name and not section.plan.prepares
    }


def find_short(fills: Iterable[float | None]) -> tuple[bool, ...]:
    """Return, for each stream, whether the stream filled the active range clearly less often than the longest stream.
    ``fills`` contains, for each stream, how often the stream filled the active range, or None if this number is not
    known.
    """
    several = tuple(fills)
    most = max((one for one in several if one is not None), default=0.0)
    return tuple(one is not None and one < LEAST_OF_FILLS * most for one in several)
