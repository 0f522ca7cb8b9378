"""The remaining part of a running test: the loads that may follow and can therefore be prepared, and the remaining
time.

To determine these loads and this time, the module replays the procedure of the test with the answers so far
(docs/adr/0007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tkperf.engine import EngineLoad, Next
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.measurement import Measurement
from tkperf.model.phases import Answer, Continuous, Interruption, Phase, Procedure, Round
from tkperf.procedures import Test
from tkperf.procedures.forecast import (
    Case,
    expected_s,
    following_phases,
    forecast,
    greatest_numbers,
    possible_ends,
    series_of,
    upcoming_phase,
)
from tkperf.procedures.profiles import Profile


@dataclass(slots=True)
class Ahead:
    """A view of the phases that may follow the current phase. ``answers`` contains the answers to the earlier
    phases.
    """

    test: Test
    later_tests: Sequence[Test]
    profile: Profile
    active_range_bytes: int
    answers: list[Answer] = field(default_factory=list)
    _following: Sequence[Phase] = ()
    _before: Phase | None = None
    _left_s: dict[Case, float] = field(default_factory=dict)
    _later_s: dict[Case, float] = field(default_factory=dict)
    _greatest: dict[object, int] | None = None

    def begin(self, phase: Phase, following: Sequence[Phase]) -> None:
        """Begin a phase. ``following`` contains the later phases that are already certain, as ``drive`` passes them."""
        if self._before is not None and self._following:
            passed_s = expected_s(self._before, self.active_range_bytes)
            self._left_s = {case: left_s - passed_s for case, left_s in self._left_s.items()}
        else:
            self._left_s.clear()
        self._before, self._following = phase, following

    def procedure(self) -> Procedure:
        """Return a new procedure of the test."""
        return self._procedure_of(self.test)

    def _procedure_of(self, test: Test) -> Procedure:
        return test.procedure(self.profile, self.active_range_bytes)

    def next(
        self, phase: Phase, answer: Callable[[Measurement], Answer], planned_s: float | None = None
    ) -> Next | None:
        """Return the loads that may follow the last step of the current phase. None means that no load can be prepared.

        Args:
            answer: a function that returns the answer to the phase, given the measurement of the phase's last step.
            planned_s: the planned duration of the last step. None means that the step ends after an amount of data.
        """
        if self._following:
            following = self._following[0]
            load = self._load(following, after=phase)
            return None if load is None else Next.for_certain(load, self._second_load(following))
        phases = following_phases(self.procedure, self.answers, active_range_bytes=self.active_range_bytes)
        loads = tuple(self._load(following, after=phase) for following in phases)
        afterwards = {
            load: self._second_load(following)
            for load, following in zip(loads, phases, strict=True)
            if load is not None
        }
        ready = tuple(afterwards)
        if not ready:
            return None

        def choose(so_far: Measurement) -> EngineLoad | None:
            ends = (so_far,) if planned_s is None else possible_ends(so_far, planned_s)
            followers = {self.load_after(phase, answer(seen)) for end in ends for seen in _judged(end)}
            return followers.pop() if len(followers) == 1 else None

        return Next(loads=ready, choose=choose, certain=len(loads) == 1, afterwards=afterwards)

    def within(self, phase: Round, position: int) -> Next:
        """Return the load that follows a step of a round. The step must not be the last step of the round."""
        if position + 2 < len(phase.steps):
            afterwards: tuple[EngineLoad, ...] = (phase.steps[position + 2],)
        else:
            then = self.next(phase, lambda _: None)
            afterwards = () if then is None else then.loads
        return Next.for_certain(phase.steps[position + 1], afterwards)

    def load_after(self, phase: Phase, answer: Answer) -> EngineLoad | None:
        """Return the load that follows if the phase ends with this answer."""
        return self._load(upcoming_phase(self.procedure(), [*self.answers, answer]), after=phase)

    def _load(self, phase: Phase | None, *, after: Phase) -> EngineLoad | None:
        """Return the load with which a phase begins. None means that the phase has no load, or that the running stream
        continues.
        """
        if phase is None:
            phase = self.first_of_next_test()
        if isinstance(phase, Round):
            return phase.steps[0]
        return phase if isinstance(phase, Continuous) and not phase.continues(after) else None

    def _second_load(self, following: Phase | None) -> tuple[EngineLoad, ...]:
        """Return the load that follows the first load of the phase ``following``, if that later load is certain."""
        phase = self.first_of_next_test() if following is None else following
        if isinstance(phase, Round) and len(phase.steps) > 1:
            return (phase.steps[1],)
        if phase is not None and len(self._following) > 1:
            load = self._load(self._following[1], after=phase)
            return () if load is None else (load,)
        return ()

    def first_of_next_test(self) -> Round | Continuous | None:
        """Return the first phase of the next test, if no purge precedes this phase."""
        if not self.later_tests or self.test.finds_demand:
            return None  # the running test is the last, or must first find the demand
        first = upcoming_phase(self._procedure_of(self.later_tests[0]), ())
        return first if isinstance(first, Round | Continuous) else None

    def left_s(self, case: Case) -> float:
        """Return the time, in seconds, from the beginning of the current phase to the end of the run in the best or the
        worst case.
        """
        if case not in self._left_s:
            if case not in self._later_s:
                self._later_s[case] = sum(self._forecast_s(test, (), case) for test in self.later_tests)
            self._left_s[case] = self._forecast_s(self.test, self.answers, case) + self._later_s[case]
        return self._left_s[case]

    def at_most(self, phase: Phase) -> int | None:
        """Return the greatest number of rounds, areas or slices in the section of this phase. None means that the
        section has only one such phase.
        """
        # The number is computed at the first call, which is normally during the first purge. A computation between a
        # fill and the first round would delay the load.
        if self._greatest is None:
            # After an interruption, the round numbers continue. As many rounds may follow as at the beginning of the
            # section.
            known = [isinstance(answer, Interruption) for answer in self.answers]
            so_far = self.answers[: len(known) - known[::-1].index(True)] if any(known) else ()
            self._greatest = greatest_numbers(self.procedure(), so_far, active_range_bytes=self.active_range_bytes)
        if not isinstance(phase, Round | Continuous):
            return None
        greatest = max(phase.number, self._greatest.get(series_of(phase), 0))
        return greatest if greatest > 1 else None

    def _forecast_s(self, test: Test, answers: Sequence[Answer], case: Case) -> float:
        procedure = self._procedure_of(test)
        return sum(forecast(procedure, answers, case, active_range_bytes=self.active_range_bytes))


def _judged(end: Measurement) -> tuple[Measurement, ...]:
    """Return the measurement twice: without a disturbance, and as disturbed by foreign I/O. tkperf detects foreign I/O
    only after the end of the measurement.
    """
    return end, replace(end, disturbed_by=(DisturbanceCode.FOREIGN_IO,))
