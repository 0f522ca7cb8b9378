"""Colour of a ratio: centred on 1, equal in both directions, on one stated scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from tkperf.model.quantity import Better, Measure

# Ratios with full colour: the first that covers nearly all shown ratios is used.
_FULL = (1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)
_COVERED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scale of colours; ``full`` is the ratio (or its inverse) with full colour."""

    full: float

    def heat(self, ratio: float, measure: Measure) -> float | None:
        """Return the strength from -1 (worse) to 1 (better); None if neither direction is better."""
        if measure.better is Better.NEITHER or ratio <= 0:
            return None
        strength = max(-1.0, min(1.0, log(ratio) / log(self.full)))
        return strength if measure.better is Better.HIGHER else -strength

    def words(self, reference: str) -> str:
        return (
            f"Blue is better, orange worse than {reference}, full from x {self.full:g} "
            f"or 1/{self.full:g} on."
        )


def find_scale(ratios: Iterable[float]) -> Scale:
    """Return the scale for the ratios of a comparison; it ignores 1, the ratio of the reference."""
    strengths = sorted(abs(log(ratio)) for ratio in ratios if ratio > 0 and ratio != 1)
    if not strengths:
        return Scale(full=_FULL[-3])
    covered = strengths[round(_COVERED * (len(strengths) - 1))]
    return Scale(full=next((full for full in _FULL if log(full) >= covered), _FULL[-1]))
