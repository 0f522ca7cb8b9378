"""The vocabulary of procedures: the phases that a test may request, and the answers to them.

A procedure is a generator. The procedure yields a phase, and the runner sends the answer to the procedure.

| yielded            | sent back                    |
|--------------------|------------------------------|
| Purge              | None                         |
| Fill               | Measurement                  |
| Round              | RoundResult, or Interruption |
| Continuous         | Measurement                  |
| Idle               | None                         |
| SteadyStateVerdict | None (logged, shown)         |
| SectionOutcome     | None (logged, shown)         |

A procedure yields the outcome of a section as soon as possible. A finished section therefore has an outcome even if the
test never ends.
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
    """A request to put the device into the state of a new device (PTS User Guide, section 6)."""

    section: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """A request to write a range sequentially ``passes`` times (workload-independent preconditioning).

    ``length_bytes`` is the length of the range, which begins at the start of the device. None means the active range.
    """

    section: str
    workload: Workload
    passes: int
    length_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Steps that follow each other directly, without idle time. Rounds count from 1.

    With ``areas``, the active range is divided into this number of areas. ``number`` then counts the areas from the
    start of the range, and the steps stay in the area with this number. Areas have no steady state. With ``cells``,
    each round measures one cell of a grid with this number of cells, and ``number`` counts the cells. A ``warm_up`` is
    measured and recorded, but no result is computed from the warm-up. Warm-ups have a separate count, which also begins
    with 1. If ``repeatable`` is set, the answer may be an Interruption. Repeatable rounds that have the same number and
    follow each other directly count as one round, even in different sections. After an interruption, such rounds are
    measured again together.
    """

    section: str
    number: int
    steps: tuple[Step, ...]
    areas: int | None = None
    cells: int | None = None
    warm_up: bool = False
    repeatable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuous:
    """The next ``duration_s`` of a stream: uninterrupted I/O of one workload.

    Consecutive phases of the same section and workload are slices of the same stream. The I/O continues without a pause
    from one slice to the next. ``longest_s`` limits the duration of the whole stream, which then ends by itself. No
    result is computed from ``warm_up`` slices, which may lie anywhere in the stream.
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
    """The answer to a repeatable round that was interrupted. The answer replaces the measurement.

    The interruption left the device without I/O for an unknown time. The procedure requests the round again. No
    decision of the procedure may combine rounds from before the interruption with rounds from after the interruption.
    """


Phase = Purge | Fill | Round | Continuous | Idle
RoundAnswer = Mapping[Workload, Measurement]
Answer = Measurement | RoundAnswer | Interruption | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSequence:
    """A sequence of phases whose order does not depend on measurements. The answer is a tuple of the answers to all
    phases.

    Within a sequence, tkperf knows the next phase without running the procedure again. Without a sequence, tkperf must
    run the procedure again after each phase, and each of these repetitions takes longer than the previous repetition.
    """

    phases: tuple[Phase, ...]


Reply = Answer | tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Thread count (TC), and queue depth (QD) of each thread, within the limits of a test.

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
    """The outcome of one section of a test.

    ``window`` contains the numbers of the rounds, areas or slices over which results are averaged. An empty ``window``
    means that the section has no window. ``verdict`` is None if the section has no steady-state rule. With several
    tracking variables, ``verdict`` is the decisive verdict, and ``verdicts`` contains the verdicts of all tracking
    variables in order. ``demand`` is the demand that this section determined for later tests without their own demand.
    None means that the section determined no demand.
    """

    section: str
    window: tuple[int, ...]
    verdict: SteadyStateVerdict | None
    ended_because: str
    verdicts: tuple[SteadyStateVerdict, ...] = ()
    demand: Demand | None = None


# Statements of a procedure about measurements. The runner only records and shows these statements.
Statement = SteadyStateVerdict | SectionOutcome
Yielded = Phase | PhaseSequence | Statement
Procedure = Generator[Yielded, Reply, None]
