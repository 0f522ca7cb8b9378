"""Whose turn it is: the drives of a batch that may be measured at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Fits = Callable[[frozenset[int]], bool]
"""Whether these drives, by number, overload nothing that they share."""


@dataclass(slots=True, kw_only=True)
class Turns:
    """The rule by which drives begin, in the order of their numbers.

    Attributes:
        most: most drives at once; None: no such limit.
        fits: whether drives can run together. A drive alone always can.
        parts: names of the links that each drive shares with others; none: not known.
        stagger_s: least time between the beginnings of two drives that share a link, or may share one.
    """

    most: int | None
    fits: Fits
    parts: Mapping[int, frozenset[str]]
    stagger_s: float = 0.0
    _begun_s: dict[str, float] = field(default_factory=dict)

    def choose(self, waiting: Sequence[int], running: frozenset[int], now_s: float) -> int | None:
        """Return the drive that begins now; None: none may."""
        if self.most is not None and len(running) >= self.most:
            return None
        for number in waiting:
            if running and not self.fits(running | {number}):
                continue
            if all(
                now_s - self._begun_s.get(part, -1e9) >= self.stagger_s
                for part in self._parts(number)
            ):
                return number
        return None

    def begin(self, number: int, now_s: float) -> None:
        """Note that a drive begins."""
        for part in self._parts(number):
            self._begun_s[part] = now_s

    def most_others(self, number: int, numbers: Sequence[int]) -> int:
        """Return how many of these drives are measured with one of them at most, taken in their order."""
        together = frozenset({number})
        for other in numbers:
            full = self.most is not None and len(together) >= self.most
            if not full and self.fits(together | {other}):
                together |= {other}
        return len(together) - 1

    def _parts(self, number: int) -> frozenset[str]:
        return self.parts.get(number) or frozenset({""})
