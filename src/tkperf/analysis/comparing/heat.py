"""How strongly a ratio is coloured: around 1, alike in both directions, on one stated scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from tkperf.model.quantity import Better, Measure

# Ratios at which a colour is full: the first that covers nearly all of what is shown.
_FULL = (1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)
_COVERED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """``full``: the ratio, or its inverse, from which on colours are full."""

    full: float

    def heat(self, ratio: float, measure: Measure) -> float | None:
        """From -1, worse, to 1, better; None: neither direction is better."""
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
    """That of the ratios of a comparison; 1 is the reference's own and says nothing."""
    strengths = sorted(abs(log(ratio)) for ratio in ratios if ratio > 0 and ratio != 1)
    if not strengths:
        return Scale(full=_FULL[-3])
    covered = strengths[round(_COVERED * (len(strengths) - 1))]
    return Scale(full=next((full for full in _FULL if log(full) >= covered), _FULL[-1]))
