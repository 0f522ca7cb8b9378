"""The standard uncertainty of a mean of values in time, which hang together: by blocking.

Neighbouring seconds of a drive are alike (its garbage collection goes on for longer than one), so that
n of them tell less than n independent values would. Means of blocks of neighbours are the less alike the
longer the blocks are: the uncertainty found from them grows with their length until blocks are
independent, and stays there (Flyvbjerg and Petersen 1989). Lengths are 1, 2, 4 ...; taken is
the shortest that exceeds the correlation it shows: B**3 > 2 n (u_B / u_1)**4 (Lee et al. 2011; n of the
longest piece, as no block is longer). If no length does, the series is correlated over longer than can be told from it: the greatest uncertainty
found is then a lower limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from tkperf.analysis.uncertainty.student import coverage_factor
from tkperf.seconds import FloatArray

LEAST_VALUES = 4
_LEAST_DEGREES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of a mean: its standard uncertainty, of how many degrees of freedom, and whether it is a lower limit."""

    standard: float
    degrees_of_freedom: int
    at_least: bool = False

    @property
    def expanded(self) -> float:
        """Half the width of the interval of 95 % coverage."""
        return coverage_factor(self.degrees_of_freedom) * self.standard


def spread_of_independent(values: FloatArray) -> Spread | None:
    """Of the mean of values that lie far apart in time; None of fewer than two."""
    if values.size < 2:
        return None
    standard = float(values.std(ddof=1)) / sqrt(values.size)
    return Spread(standard=standard, degrees_of_freedom=values.size - 1)


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
    return Spread(
        standard=greatest.standard, degrees_of_freedom=greatest.degrees_of_freedom, at_least=True
    )


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
    variance = squares / degrees * inverse / len(pieces) ** 2
    return Spread(standard=sqrt(variance), degrees_of_freedom=degrees)
