"""What was found in a series over time, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tkperf.analysis.timeline.drops import Drop
from tkperf.analysis.timeline.levels import Level, LevelKind
from tkperf.analysis.timeline.spikes import PeriodicSpikes
from tkperf.model.workload import Workload


class Recorded(StrEnum):
    """What a value of a series is of. Of rounds places are their numbers, else seconds."""

    ROUNDS = "rounds"
    SLICES = "slices"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """Values of bursts with idle time between them, which are no course: how far they lie apart."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One quantity of one workload over time, and what shows in it.

    Places count from the start of the stream in seconds, or are numbers of rounds.

    Attributes:
        quantity: its key.
        values: how many the series has.
        levels: of a rate its phases in order; empty where they were not looked for.
        settled: whether the rate is level at the end; None: not looked for.
        drops: sudden falls of a rate, without those of its transition.
        spikes: those of a latency that come back at equal distances; None: none.
        bursts: of a rate with idle time between its values, of which nothing else is looked for; None: it has none.
    """

    workload: Workload
    quantity: str
    recorded: Recorded
    values: int
    levels: tuple[Level, ...] = ()
    settled: bool | None = None
    drops: tuple[Drop, ...] = ()
    spikes: PeriodicSpikes | None = None
    bursts: Bursts | None = None

    @property
    def changes(self) -> bool:
        """Whether its rate has more than the one level."""
        return self.settled is False or any(
            level.kind is not LevelKind.STEADY for level in self.levels
        )
