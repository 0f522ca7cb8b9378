"""Uncertainty of a figure as data. The module also computes the uncertainty of the ratio and of the difference of two
figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, hypot, inf, isclose, log

from tkperf.analysis.uncertainty.spread import Spread, coverage_factor

NOT_KNOWN = "not known"
EXTREME = "an extreme: another measurement may have any greater or smaller one"
COUNT = "a count of what was measured"


class Basis(StrEnum):
    """The source of an uncertainty. If there are several sources, this is the source that causes the greatest
    uncertainty.
    """

    ROUNDS = "rounds"
    SECONDS = "seconds"
    SLICES = "slices"
    LEVELS = "levels"
    """The source for the rate at saturation: the levels whose offered rate exceeds the rate at saturation."""
    COUNTS = "counts"
    RESOLUTION = "resolution"
    FIGURES = "figures"
    """The source for a ratio or a difference: the uncertainties of the two figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval between two values. ``high`` is None if the interval has no upper end."""

    low: float
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """The uncertainty of a figure, in the unit of the figure. If no uncertainty is known, ``reason`` contains the
    reason.

    Attributes:
        standard: standard uncertainty u. For an asymmetrical interval, this is half the width divided by the coverage
            factor. None means that the interval has no upper end.
        low, high: prediction interval. A measurement that follows immediately and takes twice as long has a result in
            this interval with a probability of 95 %. ``high`` is None if the interval has no upper end.
        level: narrower interval that contains the level of the figure, for comparisons. None means that ``low`` and
            ``high`` are also used for comparisons, for example without steady state.
        degrees_of_freedom: degrees of freedom of ``standard``, or None if unlimited.
        at_least: whether the true uncertainty may be greater, because the values are correlated over a longer time than
            the measurement took, or because bursts of slow I/Os are rarer than the rounds.
        reason: reason why the uncertainty is missing, or None if the uncertainty is known.
    """

    standard: float | None = None
    low: float | None = None
    high: float | None = None
    level: Interval | None = None
    degrees_of_freedom: int | None = None
    basis: Basis | None = None
    at_least: bool = False
    reason: str | None = None

    @property
    def known(self) -> bool:
        return self.reason is None

    @property
    def expanded(self) -> float | None:
        """Half of the width of the 95 % interval, or None if the interval has no upper end."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    def is_even(self, value: float) -> bool:
        """Return whether the interval is symmetrical about the value."""
        if self.low is None or self.high is None:
            return False
        width = self.high - self.low
        return isclose(self.low + self.high, 2 * value, rel_tol=1e-9, abs_tol=1e-9 * width)

    @property
    def of_level(self) -> Uncertainty:
        """The uncertainty of the level of the figure, for comparisons with other figures."""
        if self.level is None:
            return self
        low, high = self.level.low, self.level.high
        factor = coverage_factor(self.degrees_of_freedom or inf)
        standard = None if high is None else (high - low) / 2 / factor
        return replace(self, standard=standard, low=low, high=high, level=None)

    def covers(self, value: float) -> bool | None:
        """Return whether a value lies in the interval, or None if there is no interval."""
        if not self.known or self.low is None:
            return None
        return self.low <= value <= (inf if self.high is None else self.high)


Uncertainties = Mapping[str, Uncertainty]


def build_from_spread(value: float, spread: Spread, basis: Basis, *, at_least: bool) -> Uncertainty:
    """Return the uncertainty of a value with a symmetrical interval, computed from the spread of the value."""
    return Uncertainty(
        standard=spread.standard,
        low=value - spread.expanded,
        high=value + spread.expanded,
        level=Interval(low=value - spread.expanded_of_level, high=value + spread.expanded_of_level),
        degrees_of_freedom=spread.degrees_of_freedom,
        basis=basis,
        at_least=at_least,
    )


def build_from_resolution(value: float, step: float) -> Uncertainty:
    """Return the uncertainty of a value that is known only with the resolution ``step``. The true value has a uniform
    distribution over an interval of this width (GUM F.2.2.1).
    """
    standard = step / 12**0.5
    half = coverage_factor() * standard
    return Uncertainty(standard=standard, low=value - half, high=value + half, basis=Basis.RESOLUTION)


def build_between(low: float, high: float | None) -> Uncertainty:
    """Return the uncertainty of a value with a uniform distribution between two limits. The interval covers the whole
    range. If ``high`` is None, the interval has no upper end, and the standard uncertainty is not known.
    """
    standard = None if high is None else (high - low) / 12**0.5
    return Uncertainty(standard=standard, low=low, high=high, basis=Basis.RESOLUTION)


def build_ratio(
    value: float, of: Uncertainty | None, to_value: float, to: Uncertainty | None, *, times: float = 1
) -> Uncertainty:
    """Return the uncertainty of the ratio of two levels. ``times`` is 1 for a factor, and 100 for a ratio in percent.

    Each end is computed from the distances between the values and the ends of both intervals, as logarithms (Zou and
    Donner 2008). The method does not assume symmetry. Each interval already takes its degrees of freedom into account.
    For a symmetrical interval, both distances are the half-width divided by the value. Therefore the result does not
    depend on whether a slower device is compared by IOPS or by latency, and no interval can contain 0.
    """
    if of is None or to is None or not (of.known and to.known):
        return _not_known(of, to)
    if value <= 0 or to_value <= 0:
        return Uncertainty(reason="the value is not above 0")
    ratio = times * value / to_value
    of, to = of.of_level, to.of_level
    of_down, of_up = _log_distances(value, of)
    to_down, to_up = _log_distances(to_value, to)
    down, up = hypot(of_down, to_up), hypot(of_up, to_down)
    high = None if up == inf else ratio * exp(up)
    low = ratio * exp(-down)
    return Uncertainty(
        standard=None if high is None else (high - low) / 2 / coverage_factor(),
        low=low,
        high=high,
        basis=Basis.FIGURES,
        at_least=of.at_least or to.at_least,
    )


def build_difference(value: float, of: Uncertainty | None, to_value: float, to: Uncertainty | None) -> Uncertainty:
    """Return the uncertainty of ``value - to_value``. Each end is computed from the distances between the values and
    the ends of their intervals. An exact value has an uncertainty of 0.
    """
    if of is None or to is None or not (of.known and to.known):
        return _not_known(of, to)
    difference = value - to_value
    down = hypot(_distance(value, of.low), _distance(to_value, to.high))
    up = hypot(_distance(value, of.high), _distance(to_value, to.low))
    known = of.standard is not None and to.standard is not None
    return Uncertainty(
        standard=hypot(of.standard or 0.0, to.standard or 0.0) if known else None,
        low=difference - down,
        high=None if up == inf else difference + up,
        basis=Basis.FIGURES,
        at_least=of.at_least or to.at_least,
    )


def _not_known(*figures: Uncertainty | None) -> Uncertainty:
    """Return a missing uncertainty. Its reason is that of the first figure without a known uncertainty."""
    first = next(one for one in figures if one is None or not one.known)
    return Uncertainty(reason=NOT_KNOWN if first is None else first.reason)


def build_exact(value: float) -> Uncertainty:
    """Return the uncertainty of an exact number, which is 0."""
    return Uncertainty(standard=0.0, low=value, high=value, basis=Basis.RESOLUTION)


def scale(uncertainty: Uncertainty | None, factor: float) -> Uncertainty | None:
    """Return the uncertainty of ``factor`` times the figure."""
    if uncertainty is None:
        return None
    standard, low, high = (
        None if value is None else value * factor for value in (uncertainty.standard, uncertainty.low, uncertainty.high)
    )
    level = uncertainty.level
    if level is not None:
        upper = None if level.high is None else level.high * factor
        level = Interval(low=level.low * factor, high=upper)
    return replace(uncertainty, standard=standard, low=low, high=high, level=level)


def _distance(value: float, end: float | None) -> float:
    return inf if end is None else abs(end - value)


def _log_distances(value: float, known: Uncertainty) -> tuple[float, float]:
    """Return the distances between the value and both ends of the interval, as logarithms."""
    half = known.expanded
    if half is not None and known.is_even(value):
        return half / value, half / value
    down, up = (inf if end is None or end <= 0 else abs(log(end / value)) for end in (known.low, known.high))
    return down, up
