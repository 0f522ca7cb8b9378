"""Phases of streams: the values that are compared if a stream went from one level to another.

A mean over such a stream depends on how long it lasted, so each of its phases has its own value: fresh out of box
and steady, if tkperf finds them in every run (``analysis/timeline/``). If not every run became steady, the last
quarter of each stream is compared. If every run reached the specification's steady state, its window is compared
instead. A quantity's value in a phase is the median of its slices, as a level's is; a maximum is their greatest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tkperf.analysis.characteristics import FRESH, STEADY
from tkperf.analysis.comparing.entries import Entry, Span
from tkperf.analysis.courses import changes
from tkperf.analysis.results import CellResult, SectionResult, SliceResult
from tkperf.analysis.timeline.findings import preferred
from tkperf.analysis.timeline.levels import LevelKind
from tkperf.analysis.uncertainty.estimate import EXTREME, Basis, Uncertainty
from tkperf.analysis.uncertainty.means import uncertainty_of_median
from tkperf.model.disturbance.codes import DisturbanceCode, find_codes
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MIN, QUANTITIES, Quantity

FRESH_PART = "fresh out of box"
STEADY_PART = "steady"
LAST_PART = "last quarter"
_LEAST_SLICES = 2
# Ranges of three slices each are separate by chance in 1 of 10 cases, ranges of four in 1 of 35.
_FEWEST_RANGED = 4
_KINDS = {LevelKind.FRESH: FRESH_PART, LevelKind.STEADY: STEADY_PART}
LEVELS_OF = {FRESH.key: FRESH_PART, STEADY.key: STEADY_PART}
"""Phases by the key of the characteristic that repeats them."""
_EXTREMES = {LATENCY_MAX: max, LATENCY_MIN: min}


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOfRun:
    """One run's part of a phase: its slices, and its levels by quantity, as far as these are known."""

    slices: tuple[SliceResult, ...]
    levels: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPhase:
    """A phase that every run's stream has."""

    part: str
    of_runs: tuple[PhaseOfRun, ...]


def find_phases(sections: Sequence[SectionResult]) -> tuple[ComparedPhase, ...]:
    """Return the phases that every run's stream has.

    Empty if a section is not a stream, or if all streams were level throughout.
    """
    if not all(_is_stream(section) for section in sections):
        return ()
    if not any(changes(section, section.slices[0].values.workload) for section in sections):
        return ()
    by_run = [dict(_levels(section)) for section in sections]
    judged = are_judged_steady(sections)
    phases = [
        ComparedPhase(part=part, of_runs=tuple(of_run[part] for of_run in by_run))
        for part in ((FRESH_PART,) if judged else tuple(_KINDS.values()))
        if all(part in of_run for of_run in by_run)
    ]
    if not judged and not any(phase.part == STEADY_PART for phase in phases):
        quarters = tuple(_last_quarter(section) for section in sections)
        phases.append(ComparedPhase(part=LAST_PART, of_runs=quarters))
    return tuple(phases)


def are_judged_steady(sections: Sequence[SectionResult]) -> bool:
    """Return whether cells are means over a window of steady state in every run."""
    return all(section.window and section.steady for section in sections)


def phase_entry(phase: ComparedPhase, run: int, quantity: Quantity) -> Entry:
    """Return one run's value of a quantity in a phase."""
    of_run = phase.of_runs[run]
    cells = [one.values for one in of_run.slices]
    values = [value for cell in cells if (value := cell.value(quantity)) is not None]
    if len(values) < len(cells):  # some slices have no value
        return Entry(value=None)
    value, uncertainty = _value(of_run.levels, quantity, values)
    if phase.part == LAST_PART:  # has no level yet
        uncertainty = replace(uncertainty, level=None)
    ranged = len(values) >= _FEWEST_RANGED
    return Entry(
        value=value,
        low=min(values) if ranged else None,
        high=max(values) if ranged else None,
        span=Span.PHASE if ranged else None,
        uncertainty=uncertainty,
        host_limited=_limited(cells),
        disturbances=_disturbances(cells),
    )


def _value(
    levels: Mapping[str, float], quantity: Quantity, values: Sequence[float]
) -> tuple[float, Uncertainty]:
    if quantity in _EXTREMES:
        return _EXTREMES[quantity](values), Uncertainty(reason=EXTREME)
    value = levels.get(quantity.key, median(values))
    return value, uncertainty_of_median(value, values, Basis.SLICES)


def _limited(cells: Sequence[CellResult]) -> bool | None:
    known = [cell.host_limited for cell in cells if cell.host_limited is not None]
    return any(known) if known else None


def _disturbances(cells: Sequence[CellResult]) -> tuple[DisturbanceCode, ...] | None:
    watched = [cell.disturbances for cell in cells if cell.disturbances is not None]
    return find_codes(code for codes in watched for code in codes) if watched else None


def _is_stream(section: SectionResult) -> bool:
    return len(section.slices) >= 4 * _LEAST_SLICES and section.areas is None


def _levels(section: SectionResult) -> Iterator[tuple[str, PhaseOfRun]]:
    """Yield the name of each level with its slices and its value."""
    for timeline in preferred(section.timelines):
        if timeline.settled is None or timeline.quantity not in QUANTITIES:
            continue
        for level in timeline.levels:
            slices = tuple(one for one in section.slices if level.start <= one.start_s < level.end)
            if level.kind in _KINDS and len(slices) >= _LEAST_SLICES:
                levels = {timeline.quantity: level.value}
                yield _KINDS[level.kind], PhaseOfRun(slices=slices, levels=levels)


def _last_quarter(section: SectionResult) -> PhaseOfRun:
    return PhaseOfRun(slices=section.slices[-(-3 * len(section.slices) // 4) :], levels={})
