"""What a figure's uncertainty is, as data, and how that of a ratio follows from two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, hypot, inf, isclose, log

from tkperf.analysis.uncertainty.series import Spread
from tkperf.analysis.uncertainty.student import coverage_factor

NOT_KNOWN = "not known"
EXTREME = "an extreme: another measurement may have any greater or smaller one"
COUNT = "a count of what was measured"


class Basis(StrEnum):
    """What an uncertainty was found from: of several the one that told the greatest."""

    ROUNDS = "rounds"
    SECONDS = "seconds"
    SLICES = "slices"
    LEVELS = "levels"
    """Of what saturates: the levels that offer more than it does."""
    COUNTS = "counts"
    RESOLUTION = "resolution"
    FIGURES = "figures"
    """Of a ratio: the uncertainties of the two figures that it is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """From one value to another; ``high`` is None where nothing bounds it from above."""

    low: float
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """Of one figure, in its unit; or, with ``reason``, why it has none.

    Attributes:
        standard: standard uncertainty u; of an interval that is not even to both sides half its width by the coverage factor.
            None without an upper end.
        low, high: the interval that covers, with 95 %, a measurement twice as long right after; ``high`` is None
            where nothing bounds it from above.
        level: the narrower one that covers the level of the figure, for comparing; None: the same,
            as where steady state was not reached.
        degrees_of_freedom: of ``standard``; None: unlimited.
        at_least: the true one may be greater, as what it was found from is correlated over longer than it lasted.
        reason: why there is none; None: there is.
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
        """Half the width of the interval of 95 % coverage; None without an upper end."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    def is_even(self, value: float) -> bool:
        """Whether the interval reaches as far to both sides of the value."""
        if self.low is None or self.high is None:
            return False
        width = self.high - self.low
        return isclose(self.low + self.high, 2 * value, rel_tol=1e-9, abs_tol=1e-9 * width)

    @property
    def of_level(self) -> Uncertainty:
        """The uncertainty of the figure's level, by which it is compared with others."""
        if self.level is None:
            return self
        low, high = self.level.low, self.level.high
        factor = coverage_factor(self.degrees_of_freedom or inf)
        standard = None if high is None else (high - low) / 2 / factor
        return replace(self, standard=standard, low=low, high=high, level=None)

    def covers(self, value: float) -> bool | None:
        """Whether a value lies in the interval; None: there is none."""
        if not self.known or self.low is None:
            return None
        return self.low <= value <= (inf if self.high is None else self.high)


Uncertainties = Mapping[str, Uncertainty]


def build_from_spread(value: float, spread: Spread, basis: Basis, *, at_least: bool) -> Uncertainty:
    """Even to both sides."""
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
    """Of a value that is known to within a step, anywhere in it as likely (GUM F.2.2.1)."""
    standard = step / 12**0.5
    half = coverage_factor() * standard
    return Uncertainty(
        standard=standard, low=value - half, high=value + half, basis=Basis.RESOLUTION
    )


def build_between(low: float, high: float) -> Uncertainty:
    """Of a value that can only lie between two, anywhere as likely: all of it is the interval."""
    return Uncertainty(standard=(high - low) / 12**0.5, low=low, high=high, basis=Basis.RESOLUTION)


def build_ratio(
    value: float,
    of: Uncertainty | None,
    to_value: float,
    to: Uncertainty | None,
    *,
    times: float = 1,
) -> Uncertainty:
    """Of the ratio of both levels, ``times`` 1 or 100: each end from the distances of both intervals' ends, as logarithms.

    Zou and Donner (2008): no evenness to both sides is assumed, and few degrees of freedom of either
    count by its own interval.
    """
    for one in (of, to):
        if one is None or not one.known:
            return Uncertainty(reason=NOT_KNOWN if one is None else one.reason)
    if value <= 0 or to_value <= 0:
        return Uncertainty(reason="of a value that is not above 0")
    ratio = times * value / to_value
    assert of is not None
    assert to is not None
    of, to = of.of_level, to.of_level
    down = hypot(_log_distance(value, of.low), _log_distance(to_value, to.high))
    up = hypot(_log_distance(value, of.high), _log_distance(to_value, to.low))
    high = None if up == inf else ratio * exp(up)
    low = ratio * exp(-down)
    return Uncertainty(
        standard=None if high is None else (high - low) / 2 / coverage_factor(),
        low=low,
        high=high,
        basis=Basis.FIGURES,
        at_least=of.at_least or to.at_least,
    )


def build_difference(
    value: float, of: Uncertainty | None, to_value: float, to: Uncertainty | None
) -> Uncertainty:
    """Of ``value - to_value``, each end likewise; what is exact has an uncertainty of 0."""
    for one in (of, to):
        if one is None or not one.known:
            return Uncertainty(reason=NOT_KNOWN if one is None else one.reason)
    assert of is not None
    assert to is not None
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


def build_exact(value: float) -> Uncertainty:
    """Of a number that is laid down, not measured."""
    return Uncertainty(standard=0.0, low=value, high=value, basis=Basis.RESOLUTION)


def scale(uncertainty: Uncertainty | None, factor: float) -> Uncertainty | None:
    """Of so many times the figure."""
    if uncertainty is None:
        return None
    standard, low, high = (
        None if value is None else value * factor
        for value in (uncertainty.standard, uncertainty.low, uncertainty.high)
    )
    level = uncertainty.level
    if level is not None:
        upper = None if level.high is None else level.high * factor
        level = Interval(low=level.low * factor, high=upper)
    return replace(uncertainty, standard=standard, low=low, high=high, level=level)


def _distance(value: float, end: float | None) -> float:
    return inf if end is None else abs(end - value)


def _log_distance(value: float, end: float | None) -> float:
    return inf if end is None or end <= 0 else abs(log(end / value))
