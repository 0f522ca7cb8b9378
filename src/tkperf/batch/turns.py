"""Whose turn it is: drives of a batch begin group by group, all of them some time apart, those on one link longer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

# Where one step ends and the next begins, fio's end and the results take tens of milliseconds of a CPU: drives that
# begin together, with steps of one length, would wait for each other there in every round. 24 drives stay apart with
# steps of a minute.
APART_S = 1.3


@dataclass(slots=True, kw_only=True)
class Turns:
    """The rule by which drives begin.

    Attributes:
        groups: numbers of the drives that are measured at once, in their order. A group begins when nothing of
            another one runs any more, so that each drive has the same neighbours all the time.
        parts: names of the links that each drive shares with others; none: not known.
        stagger_s: least time between the beginnings of two drives that share a link, or may share one.
        simulated: drives that use no CPU for steps; they begin at once.
    """

    groups: Sequence[Sequence[int]]
    parts: Mapping[int, frozenset[str]] = field(default_factory=dict)
    stagger_s: float = 0.0
    simulated: frozenset[int] = frozenset()
    _begun_s: dict[str, float] = field(default_factory=dict)
    _last_s: float = -APART_S

    def choose(
        self, waiting: Collection[int], running: AbstractSet[int], now_s: float, *, repeatable: Collection[int] = ()
    ) -> int | None:
        """Return the drive that begins now; None: none may.

        Args:
            running: the drives that are measured now, also by other processes.
            repeatable: those that were measured and are measured once more, alone, after all others.
        """
        if not waiting and not running:
            return next(iter(repeatable), None)
        group = next((one for one in self.groups if not set(one).isdisjoint(waiting)), ())
        if running - set(group):
            return None
        for number in group:
            if number in waiting and self._is_apart(number, now_s):
                return number
        return None

    def begin(self, number: int, now_s: float) -> None:
        """Note that a drive begins."""
        if number not in self.simulated:
            self._last_s = now_s
        self._begun_s |= dict.fromkeys(self._parts(number), now_s)

    def _is_apart(self, number: int, now_s: float) -> bool:
        if number not in self.simulated and now_s - self._last_s < APART_S:
            return False
        began_s = (self._begun_s[part] for part in self._parts(number) if part in self._begun_s)
        return all(now_s - at_s >= self.stagger_s for at_s in began_s)

    def _parts(self, number: int) -> frozenset[str]:
        return self.parts.get(number) or frozenset({""})
