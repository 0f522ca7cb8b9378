"""Parts of a comparison: rows, an entry for each run, and its change against the first run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import log

from tkperf.analysis.uncertainty.estimate import Uncertainty, build_ratio
from tkperf.model.disturbance.codes import DisturbanceCode
from tkperf.model.quantity import Better, Measure
from tkperf.model.workload import Workload


class Span(StrEnum):
    """Origin of an entry's lowest and highest value; the first two are noise."""

    WINDOW = "the steady-state window"
    PHASE = "slices of the same phase"
    UNSTEADY = "rounds not found steady"
    STREAM = "a stream's slices, without a window"
    AREAS = "areas of the disk"


_NOISE = (Span.WINDOW, Span.PHASE)


class Change(StrEnum):
    """Change of an entry against the first run's."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """The measure has no better direction."""
    WITHIN_NOISE = "within noise"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"


MOST_WITHIN_NOISE = 1.10
"""A difference is within noise if the interval of its ratio contains 1 and no ratio beyond this one or its inverse.

A wider interval contains 1, too, but it also contains differences that matter: the PTS calls a slope of more
than 10 % not steady.
"""
BEYOND_NOISE = (Change.BETTER, Change.WORSE, Change.DIFFERENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run's value of a row.

    Attributes:
        low, high: range of the value over ``span``; the three are None if it was measured once.
        uncertainty: uncertainty of the value itself.
        ratio: ratio to the first run; None without a value, or if the first is 0.
        within_noise: None if neither uncertainties nor ranges decide it, or if the interval of the ratio contains
            both 1 and a difference that matters.
        host_limited: the host's CPUs, not the device, set the pace.
        disturbances: disturbances of its steps.
        not_found: for a characteristic of a section's course: it was looked for and not found, or its bound.

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

    @property
    def beyond_noise(self) -> float:
        """Distance from 1 to the near end of the ratio's interval, as a logarithm; 0 within noise or possibly so."""
        if self.change not in BEYOND_NOISE or not self.ratio:
            return 0.0
        known = self.ratio_uncertainty
        near = None if known is None else known.low if self.ratio > 1 else known.high
        # Where ranges decide, the interval does not leave 1 out, or there is none.
        certain = near if near and (near > 1) == (self.ratio > 1) else self.ratio
        return abs(log(certain))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """A value that all runs have; ``part`` is the phase of a stream that was not level, empty: the whole."""

    test: str
    section: str
    workload: Workload
    quantity: Measure
    entries: tuple[Entry, ...]
    part: str = ""

    @property
    def place(self) -> tuple[object, ...]:
        """Place of the row among those of the comparison."""
        return (self.test, self.section, self.workload, self.part, self.quantity.key)

    @property
    def beyond_noise(self) -> float:
        """Greatest distance of a run from the first one beyond noise, as a logarithm."""
        return max(entry.beyond_noise for entry in self.entries)

    @property
    def title(self) -> str:
        """Quantity with its unit, and the part if there is one."""
        return f"{self.part}: {self.quantity.title}" if self.part else self.quantity.title


def against_first(first: Entry, entry: Entry, measure: Measure) -> Entry:
    """Return the entry with its ratio to the first run's, and the change."""
    if entry.value is None or not first.value:
        return replace(entry, change=Change.NOT_COMPARABLE)
    of_ratio = build_ratio(entry.value, entry.uncertainty, first.value, first.uncertainty)
    noise = of_ratio.covers(1.0)
    if noise is None or (of_ratio.at_least and not noise):
        # A lower limit of noise shows no difference by itself.
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
    """Return the meaning of a ratio; ``within_noise`` is None if noise is not known."""
    if within_noise is None:
        return Change.INCONCLUSIVE
    if within_noise:
        return Change.WITHIN_NOISE
    if measure.better is Better.NEITHER:
        return Change.DIFFERENT
    return Change.BETTER if (ratio > 1) == (measure.better is Better.HIGHER) else Change.WORSE


def is_too_wide(of_ratio: Uncertainty | None) -> bool:
    """Return whether the interval of a ratio contains 1 and also a difference that matters."""
    if of_ratio is None or not of_ratio.covers(1.0):
        return False
    low, high = of_ratio.low, of_ratio.high
    if low is None or high is None:
        return True
    return low < 1 / MOST_WITHIN_NOISE or high > MOST_WITHIN_NOISE


def ranges_overlap(first: Entry, entry: Entry) -> bool | None:
    """Return whether the ranges overlap; None if the answer means nothing.

    Separate ranges show a difference over any span: every value of one run is beyond every value of the other.
    Overlapping ranges show noise only if both ranges are noise.
    """
    if first.low is None or first.high is None or entry.low is None or entry.high is None:
        return None
    if entry.low > first.high or first.low > entry.high:
        return False
    return True if first.span in _NOISE and entry.span in _NOISE else None
