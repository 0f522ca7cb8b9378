"""Parts that several tests share: preconditioning and rounds until steady state."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from tkperf.measurement import Measurement
from tkperf.phases import (
    Answer,
    Fill,
    Phase,
    Round,
    RoundResult,
    SectionOutcome,
)
from tkperf.profiles import Profile
from tkperf.profiles.tables import SteadyStateTable
from tkperf.steady_state import SteadyStateVerdict, judge
from tkperf.units import KIB, format_count, format_window
from tkperf.workload import Access, Step, Workload

Part = Phase | SteadyStateVerdict


def workload_independent_preconditioning(profile: Profile, section: str) -> Fill:
    """WIPC: the active range written sequentially, twice in the PTS."""
    block_size_kib = profile.preconditioning.block_size_kib
    return Fill(
        section=section,
        workload=profile.workload(Access.SEQUENTIAL, 0, block_size_kib),
        passes=profile.preconditioning.passes,
    )


def rounds_until_steady(
    section: str,
    steps: tuple[Step, ...],
    rules: SteadyStateTable,
    *,
    tracking: str,
    unit: str,
    tracked_value: Callable[[RoundResult], float],
) -> Generator[Part, Answer, SectionOutcome]:
    """Rounds of the same steps until the tracking variable is steady or rounds run out.

    The rounds are at once workload-dependent preconditioning (PTS-E 1.1, IOPS, step 3). Without
    steady state the window is the last rounds, and the outcome says so.
    """
    rounds: list[int] = []
    values: list[float] = []
    while True:
        rounds.append(len(rounds) + 1)
        result = yield Round(section=section, number=rounds[-1], steps=steps)
        values.append(tracked_value(expect_round(result)))
        verdict = judge(rounds, values, tracking=tracking, unit=unit, criteria=rules.criteria)
        yield verdict
        if verdict.reached or rounds[-1] >= rules.max_rounds:
            break
    return SectionOutcome(
        section=section,
        window=verdict.rounds,
        verdict=verdict,
        ended_because=(
            f"steady state in {format_window(verdict.rounds)}"
            if verdict.reached
            else f"no steady state in {format_count(rounds[-1], 'round')}: {verdict.reason}"
        ),
    )


def as_many_rounds_as(
    first: SectionOutcome, section: str, steps: tuple[Step, ...]
) -> Generator[Part, Answer, SectionOutcome]:
    """As many rounds as another section had, with the same window; not judged on their own."""
    last_round = first.window[-1]
    for number in range(1, last_round + 1):
        yield Round(section=section, number=number, steps=steps)
    return SectionOutcome(
        section=section,
        window=first.window,
        verdict=None,
        ended_because=f"{format_count(last_round, 'round')}, as many as {first.section}",
    )


def find_tracked(steps: Sequence[Step], read_percent: int, block_size_kib: float) -> Workload:
    """The workload whose result decides steady state, among the steps of a round."""
    block_size_bytes = round(block_size_kib * KIB)
    return next(
        step.workload
        for step in steps
        if (step.workload.read_percent, step.workload.block_size_bytes)
        == (read_percent, block_size_bytes)
    )


def expect_round(answer: Answer) -> RoundResult:
    """The answer to a Round phase."""
    if answer is None or isinstance(answer, Measurement):
        raise TypeError("a Round is answered with a measurement of each workload")
    return answer


def expect_measurement(answer: Answer) -> Measurement:
    """The answer to a Fill or Continuous phase."""
    if not isinstance(answer, Measurement):
        raise TypeError("a Fill or Continuous phase is answered with a measurement")
    return answer


def mean_latency_us(measurement: Measurement) -> float:
    """Mean response time over all I/Os in us; NaN, which is never steady, if none was measured."""
    mean_us = measurement.latency_mean_us
    return float("nan") if mean_us is None else mean_us
