"""The vocabulary of procedures: the phases that a test may request, and the answers to them.

A procedure is a generator: it yields a phase, and the runner sends the answer into it.

| yielded            | sent back                    |
|--------------------|------------------------------|
| Purge              | None                         |
| Fill               | Measurement                  |
| Round              | RoundResult, or Interruption |
| Continuous         | Measurement                  |
| Idle               | None                         |
| SteadyStateVerdict | None (logged, shown)         |
| SectionOutcome     | None (logged, shown)         |

A procedure yields the outcome of a section as soon as possible. A finished section therefore has its outcome even if
the test never ends.
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

    ``length_bytes`` is the length of the range, from the start of the device; None: the active range.
    """

    section: str
    workload: Workload
    passes: int
    length_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Steps that run one directly after the other, without idle time between them. Rounds count from 1.

    With ``areas``, ``number`` counts the areas that the active range is cut into, from its start,
    and the steps stay in that area; there is no steady state over areas. A ``warm_up`` is measured
    and kept, but not among the results; warm-ups have their own count from 1. ``repeatable``: the answer may be
    an Interruption. Such rounds with one number that follow each other directly, in any sections, are
    one round, and are measured again together.
    """

    section: str
    number: int
    steps: tuple[Step, ...]
    areas: int | None = None
    warm_up: bool = False
    repeatable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuous:
    """The next ``duration_s`` of a stream: uninterrupted I/O of one workload.

    Consecutive phases of the same section and workload are slices of the same stream: the device
    never sees a pause between them. ``longest_s`` limits the whole stream, which then ends by itself.
    ``warm_up`` slices are not among the results, in the middle of the stream or not.
    """

    section: str
    number: int
    workload: Workload
    duration_s: float
    longest_s: float
    warm_up: bool = False

    def continues(self, before: object) -> bool:
        """Return whether this slice continues the stream to which the slice ``before`` belongs."""
        return isinstance(before, Continuous) and (self.section, self.workload) == (before.section, before.workload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A planned pause: no I/O for ``duration_s`` after the end of the last I/O."""

    section: str
    duration_s: float

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            raise ValueError(f"duration_s must be more than 0, but it is {self.duration_s}")


@dataclass(frozen=True, slots=True)
class Interruption:
    """The answer to a repeatable round that was interrupted. It replaces the measurement.

    After the interruption, the device had no I/O for an unknown time. The procedure requests the round again. It
    decides nothing from rounds before and after the interruption together.
    """


Phase = Purge | Fill | Round | Continuous | Idle
RoundAnswer = Mapping[Workload, Measurement]
Answer = Measurement | RoundAnswer | Interruption | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSequence:
    """Phases that follow each other whatever their measurements are. The answer is a tuple of the answers to all
    phases.

    tkperf then knows the next phase without a new run of the procedure. Such a run would be necessary after each phase,
    and takes longer with every phase.
    """

    phases: tuple[Phase, ...]


Reply = Answer | tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Thread count (TC) and queue depth of each thread (QD), within the limits of a test.

    Raises:
        ValueError: no test runs at these values.
    """

    jobs: int
    io_depth: int

    def __post_init__(self) -> None:
        if not (1 <= self.jobs <= MOST_JOBS and 1 <= self.io_depth <= DEEPEST_QUEUE):
            raise ValueError(
                f"a test cannot run at TC {self.jobs} and QD {self.io_depth}, because TC must be within "
                f"1..{MOST_JOBS} and QD within 1..{DEEPEST_QUEUE}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionOutcome:
    """The end of one section of a test.

    ``window`` are the numbers of the rounds (or areas, or slices) that results are averaged over; empty
    if the section has none. ``verdict`` is None if the section has no steady-state rule. With
    several tracking variables it is the decisive one, and ``verdicts`` has all of them, in order.
    ``demand`` is for later tests that have none of their own; None: the section found none.
    """

    section: str
    window: tuple[int, ...]
    verdict: SteadyStateVerdict | None
    ended_because: str
    verdicts: tuple[SteadyStateVerdict, ...] = ()
    demand: Demand | None = None


# Statements of a procedure about measurements, for the log. They need no action.
Statement = SteadyStateVerdict | SectionOutcome
Yielded = Phase | PhaseSequence | Statement
Procedure = Generator[Yielded, Reply, None]
