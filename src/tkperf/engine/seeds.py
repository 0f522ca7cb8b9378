"""Seeds of fio's random numbers: each run has one, and each of its jobs gets another from it. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter

from tkperf.engine import EngineLoad
from tkperf.model.phases import Fill

# A run's seed is short enough to be typed, and exact as a number in JSON.
RUN_SEED_BITS = 48
# fio reads a signed number of 64 bits.
_JOB_SEED_BITS = 62


class Seeds:
    """The seeds of a run's jobs. Runs with the same seed and the same order of jobs give fio the same seeds.

    No two jobs of a run have the same one: the PTS wants no sequence of addresses to be repeated.
    """

    def __init__(self, run_seed: int) -> None:
        self.go_on(run_seed, resumptions=0)

    def go_on(self, run_seed: int, *, resumptions: int) -> None:
        """Take the seed of a run that is resumed, with other seeds for its jobs than before."""
        self.run_seed = run_seed
        self._resumptions = resumptions
        self._taken: Counter[EngineLoad | Fill] = Counter()

    def next_of(self, load: EngineLoad | Fill) -> int:
        """Return the seed of the next job of a load. Jobs that were made ready in vain do not change it."""
        text = f"{self.run_seed}:{self._resumptions}:{self._taken[load]}:{load!r}"
        digest = hashlib.sha256(text.encode()).digest()
        return int.from_bytes(digest[:8], "little") >> (64 - _JOB_SEED_BITS)

    def take(self, load: EngineLoad | Fill) -> int:
        """Return the seed of a job that runs now, and count it, so that the next one gets another."""
        seed = self.next_of(load)
        self._taken[load] += 1
        return seed
