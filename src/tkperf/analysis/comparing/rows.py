"""Rows of a comparison: cells, phases of streams and characteristics of courses that every run has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tkperf.analysis.characteristics import SOUGHT_ALWAYS, Characteristic
from tkperf.analysis.comparing.entries import ComparedRow, Entry, Span, against_first
from tkperf.analysis.comparing.phases import (
    LEVELS_OF,
    STEADY_PART,
    ComparedPhase,
    are_judged_steady,
    find_phases,
    phase_entry,
)
from tkperf.analysis.courses import changes
from tkperf.analysis.layout import comparable_axes, place_of
from tkperf.analysis.results import CellResult, RunResult, SectionResult, TestResult
from tkperf.model.quantity import QUANTITIES, Measure, Quantity
from tkperf.model.workload import Workload


def build_rows(results: Sequence[RunResult]) -> Iterator[ComparedRow]:
    """Yield the rows that every run has, in the order of the first run."""
    for test in results[0].tests:
        for section in test.sections:
            found = (_find(result, test, section) for result in results)
            present = [of_run for of_run in found if of_run is not None]
            if len(present) == len(results):
                yield from _of_section(test.name, present)


def _of_section(test: str, sections: Sequence[SectionResult]) -> Iterator[ComparedRow]:
    phases = find_phases(sections)
    workloads = _workloads(sections)
    for phase in phases:
        yield from _of_phase(test, sections, workloads, phase)
    whole = not phases or are_judged_steady(sections)
    cells = [_Cells.of(section) for section in sections]
    # A value over all phases would depend on how long each lasted.
    for of_runs in workloads if whole else ():
        for quantity in _quantities(sections[0]):
            entries = [
                _entry(of_run, workload, quantity)
                for of_run, workload in zip(cells, of_runs, strict=True)
            ]
            yield _row(test, sections[0].name, of_runs[0], quantity, entries)
    parts = {phase.part for phase in phases} | ({STEADY_PART} if whole and phases else set())
    yield from _of_course(test, sections, parts)


def _workloads(sections: Sequence[SectionResult]) -> list[list[Workload]]:
    """Return the workloads that every run has, each with its counterparts, the first run's first."""
    axes = comparable_axes([cell.workload for cell in of_run.cells] for of_run in sections)
    places = [
        {place_of(cell.workload, axes): cell.workload for cell in of_run.cells}
        for of_run in sections
    ]
    return [
        [of_run[place] for of_run in places]
        for place in places[0]
        if all(place in of_run for of_run in places)
    ]


def _of_phase(
    test: str,
    sections: Sequence[SectionResult],
    workloads: Sequence[Sequence[Workload]],
    phase: ComparedPhase,
) -> Iterator[ComparedRow]:
    if not workloads:
        return
    for quantity in _quantities(sections[0]):
        entries = [phase_entry(phase, run, quantity) for run in range(len(sections))]
        yield _row(test, sections[0].name, workloads[0][0], quantity, entries, phase.part)


def _row(
    test: str,
    section: str,
    workload: Workload,
    quantity: Measure,
    entries: Sequence[Entry],
    part: str = "",
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


def _of_course(
    test: str, sections: Sequence[SectionResult], parts: set[str]
) -> Iterator[ComparedRow]:
    """Yield characteristics of the course that every run has; skip workloads that are level in all runs."""
    found = [section.characteristics for section in sections]
    axes = comparable_axes([one.workload for one in of_run] for of_run in found)
    by_place = [
        {(place_of(one.workload, axes), one.key): one for one in of_run} for of_run in found
    ]
    for place, one in by_place[0].items():
        if LEVELS_OF.get(one.key) in parts:
            continue
        of_runs = [places[place] for places in by_place if place in places]
        # A characteristic that no run has gives no comparison; each report names it as not found.
        differs = any(of_run.value is not None for of_run in of_runs) and any(
            changes(section, of_run.workload)
            for section, of_run in zip(sections, of_runs, strict=False)
        )
        if len(of_runs) == len(sections) and (differs or one.measure in SOUGHT_ALWAYS):
            entries = [_course_entry(of_run) for of_run in of_runs]
            yield _row(test, sections[0].name, one.workload, one.measure, entries)


def _course_entry(found: Characteristic) -> Entry:
    not_found = found.text() if found.value is None else None
    return Entry(value=found.value, not_found=not_found, uncertainty=found.uncertainty)


def _find(result: RunResult, test: TestResult, section: SectionResult) -> SectionResult | None:
    for other in result.tests:
        for candidate in other.sections:
            if (other.name, candidate.name) == (test.name, section.name):
                return candidate
    return None


def _quantities(section: SectionResult) -> list[Quantity]:
    """Quantities of the section by its plan; a plan of another version may have unknown ones."""
    return [QUANTITIES[key] for key in section.plan.quantities if key in QUANTITIES]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """A section's cells and their rounds and slices, by workload: a sweep has thousands."""

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


def _entry(of_run: _Cells, workload: Workload, quantity: Quantity) -> Entry:
    cell = of_run.whole.get(workload)
    low, high, span = _range(of_run, workload, quantity)
    return Entry(
        value=None if cell is None else cell.value(quantity),
        low=low,
        high=high,
        span=span,
        uncertainty=None if cell is None else cell.uncertainty_of(quantity),
        host_limited=cell.host_limited if cell is not None else None,
        disturbances=cell.disturbances if cell is not None else None,
    )


def _range(
    of_run: _Cells, workload: Workload, quantity: Quantity
) -> tuple[float | None, float | None, Span | None]:
    """Return the lowest and the highest of the averaged values, and their span."""
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
