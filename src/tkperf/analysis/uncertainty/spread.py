"""Spread of the mean of values that are correlated in time, computed from few rounds or from many values. This module
also computes the coverage factor.

Each spread contains two uncertainties. The first uncertainty belongs to a single figure, and predicts the mean of the
next values, whose number is ``FURTHER`` times the number of measured values. The second uncertainty is that of the
level around which the values vary, and is used to compare two figures.

Five values cannot show the correlation of neighbouring values. With few values, tkperf assumes a lag-1 correlation that
was measured in other runs. The values before the window are also used, because the window was chosen for its small
variation and therefore varies less than the drive usually does. A line through the values is assumed to continue over
the next values. bench/coverage.py tests this method.

Neighbouring seconds of a drive are also correlated, because garbage collection lasts longer than a second. Therefore n
seconds contain less information than n independent values. The method computes the means of blocks of neighbouring
values. The means of longer blocks are less correlated. The computed uncertainty grows with the length of the blocks
until the blocks are independent, and then stays the same (Flyvbjerg and Petersen 1989). The tried lengths B are 1, 2, 4
and so on. The method uses the uncertainty u_B for the shortest length that fulfils the condition B**3 > 2 n (u_B /
u_1)**4. This length exceeds the time for which values are correlated (Lee et al. 2011). In the condition, n is the
number of values of the longest piece, because no block is longer than a piece. If no length fulfils the condition, the
values are correlated over a longer time than the series can show. In this case, the method uses the greatest
uncertainty, which is only a lower limit.
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
"""The coverage of every interval, as text for people to read."""
_MANY = 100  # Above this number of degrees of freedom, an expansion is accurate to six digits.


@cache
def coverage_factor(degrees_of_freedom: float = inf) -> float:
    """Return the factor of a standard uncertainty for a two-sided coverage of 95 %.

    The factor is computed with the finite series of Student's t distribution (Abramowitz and Stegun, 26.7.3 and
    26.7.4). For many degrees of freedom, the factor is computed with the expansion around the normal distribution
    (26.7.5).

    Args:
        degrees_of_freedom: a whole number, or infinite.

    Raises:
        ValueError: ``degrees_of_freedom`` is less than 1.
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
    """Return the probability that a variable with Student's t distribution and n degrees of freedom lies between -t and
    t.
    """
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
"""An interval predicts the mean of the next values. The number of these values is this multiple of the number of
measured values, for example ten rounds after a window of five rounds.
"""
ASSUMED_CORRELATION = 0.31
"""The correlation of neighbouring rounds that is assumed if there are few rounds. The value is the median of measured
series (docs/explanation/method.md, section "Uncertainty").
"""
# The factor by which the uncertainty of a prediction exceeds that of the level. A prediction is less certain, because
# the mean of the next values also varies.
PREDICTED = sqrt(1 + 1 / FURTHER)
_MEDIAN_OF_ABSOLUTE = 0.6745  # in standard deviations of normally distributed values


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The standard uncertainties of a mean, with their degrees of freedom. ``at_least`` means that the uncertainties
    are lower limits.

    Attributes:
        standard: uncertainty of the mean as a prediction of the next values.
        of_level: uncertainty of the level around which the values vary.
    """

    standard: float
    of_level: float
    degrees_of_freedom: int
    at_least: bool = False

    @property
    def expanded(self) -> float:
        """Half of the width of the 95 % interval that predicts the mean of the next values."""
        return coverage_factor(self.degrees_of_freedom) * self.standard

    @property
    def expanded_of_level(self) -> float:
        """Half of the width of the 95 % interval of the level."""
        return coverage_factor(self.degrees_of_freedom) * self.of_level


def spread_of_few(values: FloatArray, earlier: FloatArray | None = None, *, in_time: bool = True) -> Spread | None:
    """Return the spread of the mean of a few successive rounds, or None if there are fewer than two rounds.

    Args:
        values: the values of the rounds.
        earlier: the values of the earlier rounds, in order.
        in_time: whether the values follow each other in time, so that a line through the values continues over the next
            values.
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
    """Return the standard deviation, estimated from the median difference between neighbouring values.

    A falling level or an outlier hardly changes this estimate.
    """
    step = float(np.median(np.abs(np.diff(values))))
    return step / _MEDIAN_OF_ABSOLUTE / sqrt(2 * (1 - ASSUMED_CORRELATION))


@cache
def _of_correlated(count: int) -> tuple[float, float]:
    """Return two standard deviations for the mean of ``count`` values. The first is that of the difference between this
    mean and the mean of the next values. The second is that of the difference between this mean and the level.

    Both results are multiples of the observed standard deviation of the values, for an AR(1) series. The results
    compensate for the fact that the observed spread of few values is too small.
    """
    following = FURTHER * count
    places = np.arange(count + following)
    alike = ASSUMED_CORRELATION ** np.abs(places[:, None] - places)
    apart = np.where(places < count, 1 / count, -1 / following)
    of_mean = float(alike[:count, :count].mean())
    seen = (1 - of_mean) * count / (count - 1)
    return sqrt(float(apart @ alike @ apart) / seen), sqrt(of_mean / seen)


def spread_of_series(pieces: Sequence[FloatArray]) -> Spread | None:
    """Return the spread of the mean over several pieces of a series. Each piece has the same weight. None means that
    there are too few values.

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
    """Return the degrees of freedom for blocks of this length. The result is 0 if a piece has fewer than two blocks."""
    blocks = [piece.size // length for piece in pieces]
    return sum(blocks) - len(blocks) if min(blocks) > 1 else 0


def _of_blocks(pieces: Sequence[FloatArray], length: int) -> Spread:
    """Return the spread under the assumption that blocks of this length are independent. Values at the start of a piece
    that do not fill a block are omitted.
    """
    squares, inverse = 0.0, 0.0
    for piece in pieces:
        blocks = piece.size // length
        means = piece[piece.size - blocks * length :].reshape(blocks, length).mean(axis=1)
        squares += float(((means - means.mean()) ** 2).sum())
        inverse += length / piece.size
    degrees = _degrees(pieces, length)
    level = sqrt(squares / degrees * inverse / len(pieces) ** 2)
    return Spread(standard=PREDICTED * level, of_level=level, degrees_of_freedom=degrees)
