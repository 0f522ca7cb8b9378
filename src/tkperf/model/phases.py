"""The vocabulary of procedures: what a test may ask for, and what it is sent back.

A procedure is a generator: it yields a phase, and the answer to the phase is sent into it.

| yielded            | sent back                    |
|--------------------|------------------------------|
| Purge              | None                         |
| Fill               | Measurement                  |
| Round              | RoundResult, or Interruption |
| Continuous         | Measurement                  |
| Idle               | None                         |
| SteadyStateVerdict | None (logged, shown)         |
| SectionOutcome     | None (logged, shown)         |

It yields the outcome of each section as soon as that is known: what ended is known even if the rest never does.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass

from tkperf.model.choices import DEEPEST_QUEUE, MOST_JOBS
from tkperf.model.measurement import Measurement
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.workload import Step, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Put the device in "as new" state (PTS User Guide, section 6)."""

    section: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Write ``passes`` x a range sequentially: workload-independent preconditioning.

    ``length_bytes`` is the length of that range, from the start of the device; None: the active range.
    """

    section: str
    workload: Workload
    passes: int
    length_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Steps run back to back, without idle time between them. Rounds count from 1.

    With ``areas``, ``number`` counts the areas that the active range is cut into, from its start,
    and the steps stay in that area; there is no steady state over areas. A ``warm_up`` is measured
    and kept, but apart from the results; warm-ups count from 1 by themselves. ``repeatable``: may be
    answered with an Interruption. Such rounds of one number that follow each other directly, of
    whatever sections, are one round to be measured again.
    """

    section: str
    number: int
    steps: tuple[Step, ...]
    areas: int | None = None
    warm_up: bool = False
    repeatable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuous:
    """The next ``duration_s`` of one uninterrupted stream of a workload.

    Consecutive phases of the same section and workload are slices of the same stream: the device
    never sees a pause between them. ``longest_s`` bounds the whole stream, which ends by itself
    then. ``warm_up`` slices are kept apart from the results, in the middle of the stream or not.
    """

    section: str
    number: int
    workload: Workload
    duration_s: float
    longest_s: float
    warm_up: bool = False

    def goes_on(self, before: object) -> bool:
        """Whether this is the next slice of the stream that ``before`` is a slice of."""
        return isinstance(before, Continuous) and (self.section, self.workload) == (
            before.section,
            before.workload,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """No I/O for ``duration_s``, counted from the end of the last I/O: a pause that is planned."""

    section: str
    duration_s: float

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            raise ValueError(f"duration_s {self.duration_s} is not more than 0")


@dataclass(frozen=True, slots=True)
class Interruption:
    """Sent back to a repeatable Round in the place of what it measured: the run was cut off in it.

    Afterwards the device was left alone for nobody knows how long. The procedure asks for the round
    again, and decides nothing from rounds before and after together.
    """


Phase = Purge | Fill | Round | Continuous | Idle
RoundResult = Mapping[Workload, Measurement]
Answer = Measurement | RoundResult | Interruption | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Phases that follow each other whatever is measured in them; answered with the answers to all.

    What comes next is then known without asking the procedure anew, phase after phase, which takes
    the longer the more of them there are.
    """

    phases: tuple[Phase, ...]


Reply = Answer | tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Thread count (TC) and queue depth of each (QD), as far as a test can be run at them.

    Raises:
        ValueError: it cannot.
    """

    jobs: int
    io_depth: int

    def __post_init__(self) -> None:
        if not (1 <= self.jobs <= MOST_JOBS and 1 <= self.io_depth <= DEEPEST_QUEUE):
            raise ValueError(f"no test runs at TC {self.jobs} and QD {self.io_depth}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionOutcome:
    """How one section of a test ended.

    ``window`` are the numbers of the rounds (or areas, or slices) that results are averaged over; empty
    where the section has none. ``verdict`` is None where the section has no steady-state rule. With
    several tracking variables it is the one that decided, and ``verdicts`` has all of them, in order.
    ``demand`` is what was found for the tests after this one that have none of their own; None: nothing.
    """

    section: str
    window: tuple[int, ...]
    verdict: SteadyStateVerdict | None
    ended_because: str
    verdicts: tuple[SteadyStateVerdict, ...] = ()
    demand: Demand | None = None


# What a procedure says of what was measured, for the log: nothing is done for it.
Told = SteadyStateVerdict | SectionOutcome
Yielded = Phase | Course | Told
Procedure = Generator[Yielded, Reply, None]
