"""The changes of a misbehaving drive's rate with time and wear."""

from __future__ import annotations

from math import sqrt

from tkperf.engine.simulation.models import Misbehaviour
from tkperf.model.errors import EngineError
from tkperf.model.workload import Workload

# An unsteady drive takes another level at every new load, and at these intervals under the same one: with
# any length of a round or slice, one of the three differs from one to the next.
_SCALES_S = (1.0, 8.0, 60.0)
# The n-th level is the fraction of n times this: for the distances that tests use, no five levels with the same
# distance lie close together.
_GOLDEN = (sqrt(5) - 1) / 2
_LEAST_SHARE = 0.02


class Moods:
    """One drive's misbehaviour. ``at_s`` is the time since it was switched on."""

    def __init__(self, misbehaviour: Misbehaviour) -> None:
        self._does = misbehaviour
        self._loads: dict[Workload, int] = {}
        self._load: Workload | None = None
        self._since_s = 0.0

    def share(self, workload: Workload, at_s: float, fills: float) -> float:
        """Return the share of its rate that is left now under a load, after so many capacities of writes."""
        does = self._does
        share = self._level(workload, at_s) if does.unrest else 1.0
        # It begins at its full rate, so that it has something to fall from.
        every_s, lasts_s = does.cliff_every_s, does.cliff_lasts_s
        if every_s is not None and at_s % every_s >= every_s - lasts_s:
            share *= does.cliff_share
        left: float = (1 - does.weaker_per_fill) ** fills
        return max(_LEAST_SHARE, share * left)

    def stall_s(self, at_s: float, duration_s: float) -> float:
        """Return how long the drive answers nothing within the coming ``duration_s``."""
        every_s = self._does.stall_every_s
        if every_s is None or (at_s + duration_s) // every_s == at_s // every_s:
            return 0.0
        return min(self._does.stall_s, 0.9 * duration_s)

    def require_alive(self, fills: float) -> None:
        """Require that the drive has not failed yet.

        Raises:
            EngineError: the drive has failed.
        """
        end = self._does.fails_after_fills
        if end is not None and fills >= end:
            raise EngineError(
                f"the simulated drive has failed, as this one does after {end:g} capacities of "
                "writes: Input/output error; SIMULATED"
            )

    def _level(self, workload: Workload, at_s: float) -> float:
        if workload != self._load:
            self._load, self._since_s = workload, at_s
            self._loads[workload] = self._loads.get(workload, 0) + 1
        level = 1.0
        for scale_s in _SCALES_S:
            number = self._loads[workload] + int((at_s - self._since_s) / scale_s + 1e-6)
            level *= (1 - self._does.unrest) ** (number * _GOLDEN % 1)
        return level
