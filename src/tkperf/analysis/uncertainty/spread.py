"""Spread of a mean of correlated values in time, from few rounds or from many values; the coverage factor.

Each spread has two quantities: for the mean of ``FURTHER`` times as many values that follow, which a single figure
promises, and for the level around which the values stray, by which two figures are compared.

Five values cannot show the correlation of neighbours. For few values: a lag-1 correlation is assumed, from measured
rounds; the values before the window count, since a window chosen because it is quiet is quieter than its drive; and a
line through the values continues over the values that follow. bench/coverage.py tests it.

Neighbouring seconds of a drive are correlated, too (its garbage collection lasts longer than one), so n of
them carry less information than n independent values. Means of blocks of neighbours are less correlated the
longer the blocks are: the uncertainty found from them grows with their length until blocks are
independent, and stays there (Flyvbjerg and Petersen 1989). Lengths are 1, 2, 4 ...; the result is from the
shortest that exceeds the correlation it shows: B**3 > 2 n (u_B / u_1)**4 (Lee et al. 2011; n is for the longest
piece, as no block is longer). If no length does, the series is correlated over longer than it can show: the
greatest uncertainty is then a lower limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import atan2, cos, hypot, inf, pi, sin, sqrt
from statistics import NormalDist

import numpy as np

from tkperf.model.measurement import FloatArray

COVERAGE_PERCENT = 95
COVERED = f"{COVERAGE_PERCENT} %"
"""The coverage of every interval, for people."""
_MANY = 100  # degrees of freedom; above it an expansion is exact to six digits


@cache
def coverage_factor(degrees_of_freedom: float = inf) -> float:
    """Return the factor of a standard uncertainty for a two-sided coverage of 95 %.

    It follows from the distribution's finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4); for many degrees
    of freedom from its expansion around the normal distribution (26.7.5).

    Args:
        degrees_of_freedom: a whole number, or infinite.

    Raises:
        ValueError: fewer than one.
    """
    n = degrees_of_freedom
    if n < 1:
        raise ValueError("a single value has no spread, so at least two values are necessary")
    normal = NormalDist().inv_cdf(0.5 + COVERAGE_PERCENT / 200)
    if n == inf:
        return normal
    if n > _MANY:
        z = normal
        return (
            z
            + (z**3 + z) / (4 * n)
            + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        )
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        below = _covered(middle, int(n)) < COVERAGE_PERCENT / 100
        low, high = (middle, high) if below else (low, middle)
    return high


def _covered(t: float, n: int) -> float:
    """Return the probability that Student's t with n degrees of freedom lies between -t and t."""
    angle = atan2(t, sqrt(n))
    odd = n % 2
    term = cos(angle) if odd else 1.0
    total = term if n > 1 else 0.0
    for k in range(3 if odd else 2, n - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    total *= sin(angle)
    return 2 / pi * (angle + total) if odd else total


LEAST_FOR_SERIES = 4
_LEAST_DEGREES = 3

FURTHER = 2
"""The interval predicts the mean of this many times as many values, for example ten rounds after a window of five."""
ASSUMED_CORRELATION = 0.31
"""Correlation of neighbouring rounds: the median of measured series (docs/explanation/method.md, uncertainty)."""
# The mean of the following values varies, too.
PREDICTED = sqrt(1 + 1 / FURTHER)
_MEDIAN_OF_ABSOLUTE = 0.6745  # of normally distributed values, in standard deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Standard uncertainties of a mean, with their degrees of freedom. ``at_least``: they are lower limits.

    Attributes:
        standard: uncertainty of the mean as a prediction of the values that follow.
        of_level: uncertainty of the level around which the values vary.
    """

    standard: float
    of_level: float
    degrees_of_freedom: int
    at_least: bool = False

    @property
    def expanded(self) -> float:
        """Half the width of the interval of 95 % coverage for the values that follow."""
        return coverage_factor(self.degrees_of_freedom) * self.standard

    @property
    def expanded_of_level(self) -> float:
        """Half the width of the interval of 95 % coverage for the level."""
        return coverage_factor(self.degrees_of_freedom) * self.of_level


def spread_of_few(values: FloatArray, earlier: FloatArray | None = None, *, in_time: bool = True) -> Spread | None:
    """Return the spread of the mean of a few successive rounds; None if there are fewer than two.

    Args:
        values: the rounds.
        earlier: the earlier rounds, in order.
        in_time: whether a line through the values continues in time.
    """
    if values.size < 2:
        return None
    standard_deviation = float(values.std(ddof=1))
    if earlier is not None and earlier.size:
        standard_deviation = max(standard_deviation, _usual_spread(np.concatenate((earlier[-values.size :], values))))
    places = np.arange(values.size) - (values.size - 1) / 2
    slope = float(places @ values / (places @ places)) if in_time else 0.0
    ahead = (1 + FURTHER) * values.size / 2
    degrees = values.size - 1
    drift = abs(slope) * ahead / coverage_factor(degrees)
    following, level = _of_correlated(values.size)
    return Spread(
        standard=hypot(standard_deviation * following, drift),
        of_level=standard_deviation * level,
        degrees_of_freedom=degrees,
    )


def _usual_spread(values: FloatArray) -> float:
    """Return the standard deviation from the median step between values.

    A falling level or an outlier changes this value little.
    """
    step = float(np.median(np.abs(np.diff(values))))
    return step / _MEDIAN_OF_ABSOLUTE / sqrt(2 * (1 - ASSUMED_CORRELATION))


@cache
def _of_correlated(count: int) -> tuple[float, float]:
    """Return the deviations from the mean of so many values: of the mean of the following values, and of the level.

    Both are in observed standard deviations of the values, for an AR(1) series. They allow for the fact that the
    observed spread of few values is too small.
    """
    following = FURTHER * count
    places = np.arange(count + following)
    alike = ASSUMED_CORRELATION ** np.abs(places[:, None] - places)
    apart = np.where(places < count, 1 / count, -1 / following)
    of_mean = float(alike[:count, :count].mean())
    seen = (1 - of_mean) * count / (count - 1)
    return sqrt(float(apart @ alike @ apart) / seen), sqrt(of_mean / seen)


def spread_of_series(pieces: Sequence[FloatArray]) -> Spread | None:
    """Return the spread of the mean of the means of pieces of a series; None if there are too few values.

    The spread includes the variation within each piece, but not the variation from piece to piece.
    """
    if not pieces or any(piece.size < LEAST_FOR_SERIES for piece in pieces):
        return None
    values = max(piece.size for piece in pieces)
    alone = greatest = _of_blocks(pieces, 1)
    length = 1
    while _degrees(pieces, length) >= _LEAST_DEGREES:
        found = _of_blocks(pieces, length)
        if not alone.standard or length**3 > 2 * values * (found.standard / alone.standard) ** 4:
            return found
        greatest = max(greatest, found, key=lambda spread: spread.expanded)
        length *= 2
    return replace(greatest, at_least=True)


def _degrees(pieces: Sequence[FloatArray], length: int) -> int:
    """Return the degrees of freedom of blocks of this length; 0 if a piece has fewer than two blocks."""
    blocks = [piece.size // length for piece in pieces]
    return sum(blocks) - len(blocks) if min(blocks) > 1 else 0


def _of_blocks(pieces: Sequence[FloatArray], length: int) -> Spread:
    """Return the spread as if blocks of this length were independent, without the remainder at the start of a piece."""
    squares, inverse = 0.0, 0.0
    for piece in pieces:
        blocks = piece.size // length
        means = piece[piece.size - blocks * length :].reshape(blocks, length).mean(axis=1)
        squares += float(((means - means.mean()) ** 2).sum())
        inverse += length / piece.size
    degrees = _degrees(pieces, length)
    level = sqrt(squares / degrees * inverse / len(pieces) ** 2)
    return Spread(standard=PREDICTED * level, of_level=level, degrees_of_freedom=degrees)
