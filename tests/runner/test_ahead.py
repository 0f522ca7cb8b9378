"""tkperf determines the next steps before a step ends. fio can therefore be started in time even after short steps."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.conftest import workload
from tkperf.model.phases import Idle, Procedure, Round
from tkperf.model.workload import Step
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.runner.ahead import Ahead

A, B, C = (Step(workload=workload(block_size_bytes=size_bytes), duration_s=1.0) for size_bytes in (4096, 8192, 16384))


def ahead_of(*phases: Round | Idle) -> Ahead:
    def procedure(_profile: object, _range: int) -> Procedure:
        for phase in phases:  # noqa: UP028 - a tuple cannot receive answers
            yield phase

    test = replace(SSD_TESTS["iops"], procedure=procedure)
    return Ahead(test, (), load_profile("quick"), 1 << 30)


def test_within_a_round_it_is_the_step_after_the_next() -> None:
    """Within a round, ``afterwards`` contains the step after the next step. For the second-last step of a round,
    ``afterwards`` contains the first step of the next round, which the procedure determines.
    """
    rounds = [Round(section="S", number=number, steps=(A, B, C)) for number in (1, 2)]
    ahead = ahead_of(*rounds)
    assert ahead.within(rounds[0], 0).afterwards == {B: (C,)}
    assert ahead.within(rounds[0], 1).afterwards == {C: (A,)}


def test_at_the_end_of_a_round_it_is_the_second_step_of_the_next() -> None:
    first, second = (Round(section="S", number=number, steps=(A, B)) for number in (1, 2))
    then = ahead_of(first, second).next(first, lambda _: {}, 1.0)
    assert then is not None
    assert then.afterwards == {A: (B,)}


def test_nothing_is_guessed() -> None:
    """tkperf never guesses the next steps. If a round has one step, the next steps are those to which the result of
    this step leads. The last step has no next step.
    """
    first, second = (Round(section="S", number=number, steps=(A,)) for number in (1, 2))
    then = ahead_of(first, second).next(first, lambda _: {}, 1.0)
    assert then is not None
    assert then.afterwards == {A: ()}
    last = Round(section="S", number=1, steps=(A, B))
    assert ahead_of(last).within(last, 0).afterwards == {B: ()}
