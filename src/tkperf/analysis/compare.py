"""Two or more runs beside each other: ratios to the first, and whether a difference is one.

Each value has its uncertainty, and so has the ratio of two: where its interval of 95 % contains 1, the
difference is within noise and called so. Where a value can have none, as a maximum, the ranges of
the rounds decide, if both are over a window that was judged steady: within noise where they overlap.
Other ranges, of areas of a disk, a stream's slices or unsteady rounds, are no noise and say nothing of
a second measurement. Runs made under different conditions are compared with a warning for each difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tkperf.analysis.characteristics import SOUGHT_ALWAYS, Characteristic, changes
from tkperf.analysis.conditions import (
    explain_nothing_common,
    find_differences,
    find_gaps,
    find_remarks,
)
from tkperf.analysis.layout import comparable_axes, place_of
from tkperf.analysis.results import RunResult, SectionResult, TestResult
from tkperf.analysis.uncertainty.estimate import Uncertainty, build_ratio
from tkperf.analysis.uncertainty.wording import two_digits
from tkperf.disturbance.codes import DisturbanceCode
from tkperf.errors import UsageError
from tkperf.quantity import QUANTITIES, Better, Measure, Quantity
from tkperf.workload import Workload


class Span(StrEnum):
    """What the lowest and the highest value of an entry were seen over; only the first is noise."""

    WINDOW = "the steady-state window"
    UNSTEADY = "rounds not found steady"
    STREAM = "a stream's slices, without a window"
    AREAS = "areas of the disk"


class Change(StrEnum):
    """What an entry is against that of the first run."""

    BETTER = "better"
    WORSE = "worse"
    WITHIN_NOISE = "within noise"
    CANNOT_BE_TOLD = "cannot be told"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run's value of a row; ``low`` and ``high`` are its range over ``span``.

    The three are None where it was measured once. ``uncertainty`` is the value's own; ``ratio`` is to
    the first run, None without a value or to 0, and ``ratio_uncertainty`` its. ``within_noise`` is None
    where neither uncertainties nor ranges tell; it, both of the ratio and ``change`` are None for the first run. ``host_limited``: the host's CPUs, not
    the device, set the pace; ``disturbances``: what disturbed its steps. ``not_found``: of what the
    course of a section shows, that it was looked for and not found, or where it can only be.
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

    @property
    def ratio_text(self) -> str:
        """``x1.034 ± 0.9 %``, in parentheses within noise, with a question mark if that cannot be told."""
        if self.ratio is None:
            return ""
        text = f"x{self.ratio:.3f}"
        half = None if self.ratio_uncertainty is None else self.ratio_uncertainty.expanded
        if half is not None:
            text += f" ± {two_digits(100 * half / self.ratio)} %"
        if self.change is Change.WITHIN_NOISE:
            return f"({text})"
        return f"{text}?" if self.change is Change.CANNOT_BE_TOLD else text


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    test: str
    section: str
    workload: Workload
    quantity: Measure
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``names`` tell the runs apart; ``warnings`` are what a reader of the rows must know.

    They name conditions that differ, what is in some runs only, and what the runs say themselves.
    """

    names: tuple[str, ...]
    results: tuple[RunResult, ...]
    warnings: tuple[str, ...]
    rows: tuple[ComparedRow, ...]


def compare(results: Sequence[RunResult]) -> Comparison:
    """Set runs beside each other.

    Raises:
        UsageError: fewer than two, or they have nothing in common.
    """
    if len(results) < 2:
        raise UsageError("a comparison takes two runs or more")
    suites = {result.info.suite for result in results}
    if "hdd" in suites and len(suites) > 1:
        raise UsageError(
            "hard disk runs measure areas, the others steady states: they cannot be compared"
        )
    rows = tuple(_rows(results))
    if not rows:
        raise UsageError(
            "these runs have no test in common that was measured in all of them"
            + explain_nothing_common(results)
        )
    names = _names(results)
    return Comparison(
        names=names,
        results=tuple(results),
        warnings=tuple(_warnings(names, results)),
        rows=rows,
    )


def _names(results: Sequence[RunResult]) -> tuple[str, ...]:
    """The runs' names, numbered where two have the same."""
    names = [result.info.name for result in results]
    return tuple(
        name if names.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(names, start=1)
    )


def _warnings(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[str]:
    yield from find_differences(names, results)
    yield from find_gaps(names, results)
    for name, result in zip(names, results, strict=True):
        yield from find_remarks(name, result)


def _rows(results: Sequence[RunResult]) -> Iterator[ComparedRow]:
    """Cells that every run has, in the order of the first."""
    for test in results[0].tests:
        for section in test.sections:
            sections = [_find(result, test, section) for result in results]
            present = [of_run for of_run in sections if of_run is not None]
            if len(present) < len(results):
                continue
            axes = comparable_axes([cell.workload for cell in of_run.cells] for of_run in present)
            places = [
                {place_of(cell.workload, axes): cell.workload for cell in of_run.cells}
                for of_run in present
            ]
            for place, workload in places[0].items():
                if not all(place in by_place for by_place in places):
                    continue
                workloads = [by_place[place] for by_place in places]
                for quantity in _quantities(section):
                    yield ComparedRow(
                        test=test.name,
                        section=section.name,
                        workload=workload,
                        quantity=quantity,
                        entries=tuple(_entries(present, workloads, quantity)),
                    )
            yield from _of_course(test.name, present)


def _of_course(test: str, sections: Sequence[SectionResult]) -> Iterator[ComparedRow]:
    """What the course of a section shows in every run; nothing of workloads that are level in all."""
    found = [section.characteristics for section in sections]
    axes = comparable_axes([one.workload for one in of_run] for of_run in found)
    by_place = [
        {(place_of(one.workload, axes), one.key): one for one in of_run} for of_run in found
    ]
    for place, one in by_place[0].items():
        of_runs = [places.get(place) for places in by_place]
        found_again = [of_run for of_run in of_runs if of_run is not None]
        telling = one.measure in SOUGHT_ALWAYS or any(
            changes(section, of_run.workload)
            for section, of_run in zip(sections, found_again, strict=False)
        )
        if len(found_again) == len(sections) and telling:
            first, *others = (_course_entry(of_run) for of_run in found_again)
            yield ComparedRow(
                test=test,
                section=sections[0].name,
                workload=one.workload,
                quantity=one.measure,
                entries=(first, *(_against(first, other, one.measure) for other in others)),
            )


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
    """What the section is about, by its plan; a plan of another version may have others."""
    return [QUANTITIES[key] for key in section.plan.quantities if key in QUANTITIES]


def _entries(
    sections: Sequence[SectionResult], workloads: Sequence[Workload], quantity: Quantity
) -> Iterator[Entry]:
    first: Entry | None = None
    for section, workload in zip(sections, workloads, strict=True):
        cell = section.cell(workload)
        value = None if cell is None else cell.value(quantity)
        low, high, span = _range(section, workload, quantity)
        entry = Entry(
            value=value,
            low=low,
            high=high,
            span=span,
            uncertainty=None if cell is None else cell.uncertainty_of(quantity),
            host_limited=cell.host_limited if cell is not None else None,
            disturbances=cell.disturbances if cell is not None else None,
        )
        if first is None:
            first = entry
        else:
            entry = _against(first, entry, quantity)
        yield entry


def _against(first: Entry, entry: Entry, quantity: Measure) -> Entry:
    """The entry with what it is against the first run's."""
    if entry.value is None or not first.value:
        return replace(entry, change=Change.NOT_COMPARABLE)
    ratio = entry.value / first.value
    of_ratio = build_ratio(entry.value, entry.uncertainty, first.value, first.uncertainty)
    noise = of_ratio.covers(1.0) if of_ratio.known else _ranges_overlap(first, entry)
    if noise is None:
        change = Change.CANNOT_BE_TOLD
    elif noise:
        change = Change.WITHIN_NOISE
    else:
        change = (
            Change.BETTER if (ratio > 1) == (quantity.better is Better.HIGHER) else Change.WORSE
        )
    return replace(
        entry,
        ratio=ratio,
        ratio_uncertainty=of_ratio,
        within_noise=noise,
        change=change,
    )


def _ranges_overlap(first: Entry, entry: Entry) -> bool | None:
    """Whether the ranges overlap; None where either says nothing of noise."""
    if first.low is None or first.high is None or entry.low is None or entry.high is None:
        return None
    if (first.span, entry.span) != (Span.WINDOW, Span.WINDOW):
        return None
    return entry.low <= first.high and first.low <= entry.high


def _range(
    section: SectionResult, workload: Workload, quantity: Quantity
) -> tuple[float | None, float | None, Span | None]:
    """The lowest and the highest of what the value is a mean of, and what that is."""
    rounds = [
        cell
        for one in section.rounds
        if one.number in section.window
        for cell in one.cells
        if cell.workload == workload
    ]
    slices = [
        one.values for one in section.slices if not section.window or one.number in section.window
    ]
    values = [value for cell in rounds or slices if (value := cell.value(quantity)) is not None]
    if len(values) < 2:
        return None, None, None
    return min(values), max(values), _span(section, workload)


def _span(section: SectionResult, workload: Workload) -> Span:
    if section.areas:
        return Span.AREAS
    if not section.window:
        return Span.STREAM
    return Span.WINDOW if section.steady_of(workload) else Span.UNSTEADY
