"""Parts that several tests share. One part tracks several variables in one window, and another part continues a stream
until it is steady.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.engine.conftest import workload
from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.phases import Answer, Continuous, Interruption, Phase, Round, SectionOutcome
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.workload import Step
from tkperf.procedures import load_profile
from tkperf.procedures.building_blocks import (
    Stream,
    Tracked,
    find_decisive,
    rounds_until_steady,
    stream_until,
    track_iops,
)

RULES = load_profile("pts-e-1.1").steady_state
STEPS = (Step(workload=workload(), duration_s=1.0),)


def measured(iops: float, *, seconds: float = 60.0) -> Measurement:
    ios = round(iops * seconds)
    stats = IoStats(ios=ios, bytes=ios * 4096, latency_ios=ios, latency_sum_ns=ios * 100_000)
    return Measurement(duration_s=seconds, read=NO_IO, write=stats)


def drive(part: Any, answer: Callable[[Any], Answer]) -> tuple[list[Any], Any]:
    """Return the phases and verdicts that a part of a procedure yielded, and its return value."""
    said: list[Any] = []
    reply: Answer = None
    while True:
        try:
            asked = part.send(reply)
        except StopIteration as end:
            return said, end.value
        said.append(asked)
        reply = None if isinstance(asked, SteadyStateVerdict) else answer(asked)


def two_variables(first: Callable[[int], float], second: Callable[[int], float]) -> Any:
    """Run rounds with two tracking variables. Each function receives the number of a round and returns the value of one
    variable.
    """
    rounds: list[int] = []

    def value(of: Callable[[int], float]) -> Callable[[Any], float]:
        return lambda _: of(rounds[-1])

    def answer(phase: Phase) -> Answer:
        assert isinstance(phase, Round)
        rounds.append(phase.number)
        return {STEPS[0].workload: measured(1000)}

    tracked = [
        Tracked(tracking="A", unit="IOPS", workload=STEPS[0].workload, value=value(first)),
        Tracked(tracking="B", unit="us", workload=STEPS[0].workload, value=value(second)),
    ]
    return drive(rounds_until_steady("S", STEPS, RULES, tracked), answer)


def test_the_window_is_steady_when_all_variables_are() -> None:
    """A window is steady when all variables are steady. If the second variable becomes steady two rounds later than the
    first, the window of the second variable counts for both.
    """
    said, outcome = two_variables(lambda _: 100.0, lambda number: 1000.0 if number < 3 else 50.0)
    assert isinstance(outcome, SectionOutcome)
    assert outcome.window == (3, 4, 5, 6, 7)
    assert [each.tracking for each in outcome.verdicts] == ["A", "B"]
    assert all(each.reached for each in outcome.verdicts)
    assert outcome.verdict == outcome.verdicts[0]
    verdicts = [each for each in said if isinstance(each, SteadyStateVerdict)]
    assert [each.tracking for each in verdicts] == ["A", "B"] * 7
    assert [each.reached for each in verdicts[8:10]] == [True, False]


def test_one_variable_that_never_settles_decides() -> None:
    """If one variable never becomes steady, the outcome contains the verdict on this variable and its name."""
    _, outcome = two_variables(lambda _: 100.0, lambda number: 2.0 ** (number % 3))
    assert outcome.verdict is outcome.verdicts[1]
    assert not outcome.verdict.reached
    assert outcome.window == (21, 22, 23, 24, 25)
    assert "no steady state in 25 rounds: B: data excursion" in outcome.ended_because


def test_rounds_after_an_interruption_are_counted_from_it() -> None:
    """After an interruption, the limit on the number of rounds applies only to the rounds after the interruption. The
    reason for the end of the section names these rounds.
    """
    asked: list[int] = []

    def answer(phase: Phase) -> Answer:
        assert isinstance(phase, Round)
        asked.append(phase.number)
        if asked.count(6) == 1 and phase.number == 6:
            return Interruption()
        return {STEPS[0].workload: measured(1000 * 2 ** (phase.number % 3))}

    _, outcome = drive(rounds_until_steady("S", STEPS, RULES, (track_iops(STEPS[0].workload, "W"),)), answer)
    assert max(asked) == 30
    assert outcome.ended_because.startswith("no steady state in 25 rounds, rounds 6–30 since an interruption: ")


def test_nothing_tracked_is_a_mistake() -> None:
    """A section without a tracking variable is refused, because it would be steady immediately."""
    with pytest.raises(ValueError, match="needs at least one tracking variable"):
        find_decisive(())


def until(answer: Callable[[Continuous], Measurement], **how: Any) -> tuple[list[Any], Stream]:
    part = stream_until("S", track_iops(workload(), "W"), **{"slice_s": 60.0, "max_slices": 40, "rules": RULES, **how})
    said, stream = drive(part, answer)
    return [each for each in said if isinstance(each, Continuous)], stream


def settling(phase: Continuous) -> Measurement:
    return measured(4000 if phase.number < 4 else 1000)


def test_a_stream_ends_when_it_is_steady() -> None:
    """A stream ends when it is steady, and all its phases are slices of one stream."""
    slices, stream = until(settling)
    assert stream.slices == len(slices) == 8
    assert stream.verdict is not None
    assert stream.verdict.rounds == (4, 5, 6, 7, 8)
    assert stream.written_bytes == 60 * 4096 * (3 * 4000 + 5 * 1000)
    assert all(after.continues(before) for before, after in pairwise(slices))
    assert {each.longest_s for each in slices} == {2400.0}


def test_a_stream_ends_when_enough_is_written() -> None:
    """A stream ends when enough bytes were written. tkperf uses the number of written bytes, and not the rate
    multiplied by the time.
    """
    slices, stream = until(lambda _: measured(1000), judge_every=None, enough_bytes=3.5e8 * 3)
    assert len(slices) == 5
    assert stream.verdict is None


def test_a_stream_ends_when_its_slices_run_out() -> None:
    """A stream that never becomes steady ends after its maximum number of slices."""
    slices, stream = until(lambda phase: measured(1000 * 2.0 ** (phase.number % 3)))
    assert len(slices) == stream.slices == 40
    assert stream.verdict is not None
    assert not stream.verdict.reached
