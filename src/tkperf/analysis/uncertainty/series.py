"""The uncertainty of a mean of values in time, which hang together: of few rounds, and of many by blocking.

Each spread is of two quantities: the mean of ``FURTHER`` times as many values that follow, which a figure
by itself promises, and the level that the values stray around, by which two figures are compared.

Five values cannot show how much neighbours are alike. Of few, a lag-1 correlation is assumed, as measured
rounds have; the values before the window count, as a window that was chosen because it is quiet is quieter than
its drive; and a line through the values goes on over those that follow. bench/coverage.py tries it.

Neighbouring seconds of a drive are alike, too (its garbage collection goes on for longer than one), so that
n of them tell less than n independent values would. Means of blocks of neighbours are the less alike the
longer the blocks are: the uncertainty found from them grows with their length until blocks are
independent, and stays there (Flyvbjerg and Petersen 1989). Lengths are 1, 2, 4 ...; taken is
the shortest that exceeds the correlation it shows: B**3 > 2 n (u_B / u_1)**4 (Lee et al. 2011; n of the
longest piece, as no block is longer). If no length does, the series is correlated over longer than can be told from it: the greatest uncertainty
found is then a lower limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import hypot, sqrt

import numpy as np

from tkperf.analysis.uncertainty.student import coverage_factor
from tkperf.model.seconds import FloatArray

LEAST_VALUES = 4
_LEAST_DEGREES = 3

FURTHER = 2
"""The interval is for the mean of so many times as many values: of ten rounds after a window of five."""
ASSUMED_CORRELATION = 0.31
"""Of neighbouring rounds: the median of measured series (docs/method.md, uncertainty)."""
# Of as many that follow, the mean strays, too.
PREDICTED = sqrt(1 + 1 / FURTHER)
_MEDIAN_OF_ABSOLUTE = 0.6745  # of normally distributed values, in standard deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Standard uncertainties of a mean, of how many degrees of freedom, and whether they are lower limits.

    Attributes:
        standard: as a promise of what follows.
        of_level: as the level that the values stray around.
    """

    standard: float
    of_level: float
    degrees_of_freedom: int
    at_least: bool = False

    @property
    def expanded(self) -> float:
        """Half the width of the interval of 95 % coverage, of what follows."""
        return coverage_factor(self.degrees_of_freedom) * self.standard

    @property
    def expanded_of_level(self) -> float:
        """Half the width of the interval of 95 % coverage, of the level."""
        return coverage_factor(self.degrees_of_freedom) * self.of_level


def spread_of_few(
    values: FloatArray, earlier: FloatArray | None = None, *, in_time: bool = True
) -> Spread | None:
    """Of the mean of few rounds, one after the other; None of fewer than two.

    Args:
        earlier: rounds before these, in order.
        in_time: a line through the values goes on in time; False: it does not.
    """
    if values.size < 2:
        return None
    strays = float(values.std(ddof=1))
    if earlier is not None and earlier.size:
        strays = max(strays, _usual_spread(np.concatenate((earlier[-values.size :], values))))
    slope = float(np.polyfit(np.arange(values.size), values, 1)[0]) if in_time else 0.0
    ahead = (1 + FURTHER) * values.size / 2
    degrees = values.size - 1
    drift = abs(slope) * ahead / coverage_factor(degrees)
    following, level = _of_correlated(values.size)
    return Spread(
        standard=hypot(strays * following, drift),
        of_level=strays * level,
        degrees_of_freedom=degrees,
    )


def _usual_spread(values: FloatArray) -> float:
    """Standard deviation by the median step from value to value: neither a level that falls nor one that strays moves it far."""
    step = float(np.median(np.abs(np.diff(values))))
    return step / _MEDIAN_OF_ABSOLUTE / sqrt(2 * (1 - ASSUMED_CORRELATION))


@cache
def _of_correlated(count: int) -> tuple[float, float]:
    """Standard deviations from the mean of so many values: of the next values' mean, and of the level.

    In standard deviations seen in the values. Of a series of AR(1), with what its few values show too
    little of their spread.
    """
    following = FURTHER * count
    places = np.arange(count + following)
    alike = ASSUMED_CORRELATION ** np.abs(places[:, None] - places)
    apart = np.where(places < count, 1 / count, -1 / following)
    of_mean = float(alike[:count, :count].mean())
    seen = (1 - of_mean) * count / (count - 1)
    return sqrt(float(apart @ alike @ apart) / seen), sqrt(of_mean / seen)


def spread_of_series(pieces: Sequence[FloatArray]) -> Spread | None:
    """Of the mean of the means of pieces of a series; None where there are too few values.

    What differs from piece to piece is not in it, only what their values do within each.
    """
    if not pieces or any(piece.size < LEAST_VALUES for piece in pieces):
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
    """Degrees of freedom of blocks of a length; 0 where a piece is of fewer than two."""
    blocks = [piece.size // length for piece in pieces]
    return sum(blocks) - len(blocks) if min(blocks) > 1 else 0


def _of_blocks(pieces: Sequence[FloatArray], length: int) -> Spread:
    """As if blocks of this length were independent; what is left over at a piece's start is left out."""
    squares, inverse = 0.0, 0.0
    for piece in pieces:
        blocks = piece.size // length
        means = piece[piece.size - blocks * length :].reshape(blocks, length).mean(axis=1)
        squares += float(((means - means.mean()) ** 2).sum())
        inverse += length / piece.size
    degrees = _degrees(pieces, length)
    level = sqrt(squares / degrees * inverse / len(pieces) ** 2)
    return Spread(standard=PREDICTED * level, of_level=level, degrees_of_freedom=degrees)
