"""The runner. The tests check the order of events, the hand-over of steps, and the ways in which a run can end. The
simulated engine needs no real time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import FreeTarget, run_info
from tkperf.engine import EngineLoad, Execution, Next, OnSample
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import FlashModel
from tkperf.engine.simulation.service import Second
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.errors import EngineError, Interrupted, RefusedError, StepFailedError, TkperfError
from tkperf.model.record import RunStatus, StepKind, StepRecord
from tkperf.model.workload import Step, Workload
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.runner.events import (
    Event,
    Judged,
    PurgeEnded,
    RunEnded,
    RunStarted,
    StepEnded,
    StepStarted,
    TestEnded,
    Warned,
)
from tkperf.runner.run_watch import Observations, RunWatch
from tkperf.runner.runner import RunParts, execute_run

RANGE_BYTES = 1 << 30
# The capacity is so large that the drive never needs garbage collection.
STEADY = FlashModel(capacity_bytes=1 << 40, noise=0.01)


class SpyEngine(SimulatedEngine):
    """An engine that records which steps were announced to it, and that fails or is interrupted on request."""

    def __init__(
        self,
        model: FlashModel = STEADY,
        *,
        fail_at: int = -1,
        error: BaseException | None = None,
        cold_start_s: float = 0.0,
    ) -> None:
        super().__init__(model, RANGE_BYTES, cold_start_s=cold_start_s)
        self.asked: list[tuple[Step, Next | None]] = []
        self.let_go: list[EngineLoad] = []
        self.closed = 0
        self.acts: list[str] = []
        self.fail_at, self.error = fail_at, error
        self.slower_after: int | None = None

    def _serve(self, workload: Workload, duration_s: float) -> Second:
        """After ``slower_after`` steps, the drive is half as fast. A window that was likely to become steady is then
        not steady.
        """
        second = super()._serve(workload, duration_s)
        slower = self.slower_after is not None and len(self.asked) > self.slower_after
        if not slower:
            return second
        read, write = (each._replace(mean_ns=each.mean_ns * 2) for each in (second.read, second.write))
        return second._replace(rate=second.rate / 2, read=read, write=write)

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        self.asked.append((step, then))
        if len(self.asked) == self.fail_at and self.error is not None:
            raise self.error
        return super().measure(step, then=then, on_sample=on_sample)

    def start_next(self, load: EngineLoad) -> None:
        self.let_go.append(load)
        super().start_next(load)

    def rest(self) -> None:
        self.acts.append("rest")
        super().rest()

    def close(self) -> None:
        self.closed += 1


def run(
    engine: SpyEngine, tests: Sequence[str], target: FreeTarget | None = None, events: list[Event] | None = None
) -> list[Event]:
    events = [] if events is None else events
    execute_run(
        RunParts(
            info=run_info(),
            tests=[SSD_TESTS[name] for name in tests],
            profile=load_profile("quick"),
            engine=engine,
            target=target or FreeTarget(),
            observers=(events.append,),
            clock=engine.clock,
        )
    )
    return events


def test_every_step_but_the_last_is_told_what_follows() -> None:
    """For each step except the last, the runner announces the next step to the engine. The next step is certain within
    a round, and as long as steady state is not yet possible.
    """
    engine = SpyEngine()
    run(engine, ["iops"])
    steps = [step for step, _ in engine.asked]
    for (_, then), following in zip(engine.asked, steps[1:], strict=False):
        assert then is not None
        assert following in then.loads
    assert engine.asked[-1][1] is None or not engine.asked[-1][1].certain
    ends = [then for position, (_, then) in enumerate(engine.asked) if position % 12 == 11]
    assert [then.certain for then in ends[:4] if then] == [True] * 4


class SlowToTell(SpyEngine):
    """An engine that reports the totals of a step only when the step returns. The totals therefore never select the
    next step.
    """

    def _hand_over(self, execution: Execution, then: Next | None) -> Execution:
        if then is None or then.certain:
            return super()._hand_over(execution, then)
        self._ready = then.loads
        return execution


@pytest.mark.parametrize("engine_type", [SpyEngine, SlowToTell])
@pytest.mark.parametrize("slower_after", [None, 4 * 9], ids=["steady", "not steady"])
def test_nothing_that_follows_without_a_purge_starts_cold(
    engine_type: type[SpyEngine], slower_after: int | None
) -> None:
    """Except after a purge, no step starts without a hand-over. The fill is handed over to the first round, each round
    to the next, and the last round to the histogram run.
    """
    engine = engine_type(cold_start_s=0.3)
    engine.slower_after = slower_after
    events = run(engine, ["lat"])
    records = [event.record for event in events if isinstance(event, StepEnded)]
    cold = [each for each in records if (each.gap_s or 0) > 0.01]
    assert [each.kind for each in cold] == [StepKind.FILL]
    assert records[-1].kind is StepKind.CONTINUOUS
    rounds = {each.number for each in records if each.kind is StepKind.ROUND}
    assert len(rounds) == (5 if slower_after is None else 6)
    assert longest_gap_s(records) < 0.01


def longest_gap_s(records: Sequence[StepRecord]) -> float:
    return max(each.gap_s or 0.0 for each in records if not each.planned_pause)


def test_after_the_decision_the_next_round_starts_before_anything_is_written() -> None:
    """After a verdict, the next round is released before any data are written. This occurs once for each round after
    which only the verdict decides whether another round follows.
    """
    engine = SlowToTell(cold_start_s=0.3)
    engine.slower_after = 4 * 12
    order: list[str] = []
    start = engine.start_next

    def note_start(load: EngineLoad) -> None:
        order.append(f"start {len(engine.asked)}")
        start(load)

    engine.start_next = note_start  # type: ignore[method-assign]

    def watch(event: Event) -> None:
        if isinstance(event, StepEnded) and event.record.position == 11:
            order.append(f"end {event.record.number}")
        if isinstance(event, StepEnded) and event.record.kind is StepKind.ROUND:
            assert (event.record.gap_s or 0.0) < 0.01

    execute_run(
        RunParts(
            info=run_info(),
            tests=[SSD_TESTS["iops"]],
            profile=load_profile("quick"),
            engine=engine,
            target=FreeTarget(),
            observers=(watch,),
            clock=engine.clock,
        )
    )
    # The fifth round could have been steady, so the runner had to wait for its end.
    assert order[-3:] == ["end 5", *(f"start {n}" for n in range(61, 72)), "end 6"][-3:]
    assert order[order.index("end 5") - 1] == "start 60"


def test_a_run_says_that_it_followed_the_profile_that_it_followed() -> None:
    """A run stores the profile that it really used, so its numbers and its results belong together."""
    events = run(SpyEngine(), ["iops"])
    assert run_info().profile == {"title": "t"}
    (started,) = [event for event in events if isinstance(event, RunStarted)]
    assert started.info.profile == load_profile("quick").as_plain_data()
    assert started.info.profile_name == "quick"


def test_events_follow_the_procedure() -> None:
    """The events of a run are in the order of its procedure: a purge, a fill, rounds with one verdict each, the end of
    the test, and the end of the run.
    """
    events = run(SpyEngine(), ["iops"])
    kinds = [
        type(event).__name__
        for event in events
        if isinstance(event, PurgeEnded | StepEnded | Judged | TestEnded | RunEnded)
    ]
    one_round = ["StepEnded"] * 12 + ["Judged"]
    assert kinds == ["PurgeEnded", "StepEnded", *one_round * 5, "TestEnded", "RunEnded"]
    assert [event.number for event in events if isinstance(event, Judged)] == [1, 2, 3, 4, 5]


def test_the_device_is_checked_again_before_each_phase() -> None:
    """The device is checked again before each phase, so no purge and no write starts without a new check."""
    target = FreeTarget()
    run(SpyEngine(), ["iops"], target)
    assert target.acts == ["recheck", "purge", "recheck", *["recheck"] * 5]


def test_no_io_goes_on_into_a_purge() -> None:
    """A running stream, or a step that was prepared, is stopped before the device is purged."""
    engine = SpyEngine()
    target = FreeTarget(acts=engine.acts)
    run(engine, ["lat", "tp"], target)
    for position, act in enumerate(engine.acts):
        if act == "purge":
            assert engine.acts[position - 1] == "rest"
    assert engine.acts[-1] == "rest"


def test_an_engine_error_ends_the_run_and_is_recorded() -> None:
    """An error of the engine ends the run as failed, and the reason is recorded. The observers have received all
    earlier steps.
    """
    engine = SpyEngine(fail_at=20, error=EngineError("fio failed on X"))
    events: list[Event] = []
    with pytest.raises(EngineError, match="fio failed on X"):
        execute_run(
            RunParts(
                info=run_info(),
                tests=[SSD_TESTS["iops"]],
                profile=load_profile("quick"),
                engine=engine,
                target=FreeTarget(),
                observers=(events.append,),
                clock=engine.clock,
            )
        )
    assert sum(isinstance(event, StepEnded) for event in events) == 1 + 19
    last = events[-1]
    assert isinstance(last, RunEnded)
    assert (last.status, last.because) == (RunStatus.FAILED, "fio failed on X")
    assert engine.closed


class RefusedOnce(SpyEngine):
    """An engine that reports an impossibly early end of its fifth step. The check of the device takes 10 s."""

    def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
        execution = super().measure(step, then=then, on_sample=on_sample)
        if len(self.asked) != 5:
            return execution
        return replace(execution, measurement=replace(execution.measurement, duration_s=0.1))

    def rest(self) -> None:
        super().rest()
        if len(self.asked) == 5:
            self._clock_s += 1.5


class SlowTarget(FreeTarget):
    engine: SpyEngine

    def recheck(self) -> None:
        super().recheck()
        if len(self.engine.asked) == 5:
            self.engine._clock_s += 10


class RestingEngine(SpyEngine):
    rests = 0

    def rest(self) -> None:
        super().rest()
        self.rests += 1


class UsedTarget(FreeTarget):
    """A target that has other users at the third check. If ``until_rest`` is true, the later checks find no other user
    after the engine has stopped all I/O.
    """

    def __init__(self, engine: RestingEngine, *, until_rest: bool) -> None:
        super().__init__()
        self._engine, self._until_rest = engine, until_rest
        self._rests: int | None = None

    def recheck(self) -> None:
        super().recheck()
        if self.acts.count("recheck") == 3:
            self._rests = self._engine.rests
        if self._rests is not None and not (self._until_rest and self._engine.rests > self._rests):
            raise RefusedError("the device is in use")


def test_helpers_of_a_killed_fio_are_not_other_users() -> None:
    """If the check of the device finds another user, the engine stops all I/O and all prepared loads, and the check is
    repeated. The user may be a helper of a fio that was killed.
    """
    engine = RestingEngine()
    events = run(engine, ["iops"], UsedTarget(engine, until_rest=True))
    assert [event.status for event in events if isinstance(event, RunEnded)] == [RunStatus.COMPLETE]


def test_another_user_of_the_device_still_ends_the_run() -> None:
    """If the other user of the device remains after the engine has stopped all I/O and all prepared loads, the run
    ends.
    """
    engine = RestingEngine()
    target = UsedTarget(engine, until_rest=False)
    with pytest.raises(RefusedError):
        run(engine, ["iops"], target)
    assert engine.rests


def test_a_repeated_step_is_marked_and_its_gap_is_true() -> None:
    """A repeated step is marked, and its gap counts from the end of the refused attempt. The gap includes the time for
    the repeated check of the device.
    """
    engine, target = RefusedOnce(), SlowTarget()
    target.engine = engine
    events = run(engine, ["iops"], target)
    records = [event.record for event in events if isinstance(event, StepEnded)]
    before, repeated, after = records[4:7]
    refused_end_s = before.started_s + before.measurement.duration_s + 0.1
    assert repeated.gap_s == pytest.approx(repeated.started_s - refused_end_s)
    assert (repeated.gap_s or 0) > 11.5
    found = {each.code: each for each in repeated.disturbances or ()}
    assert list(found) == [DisturbanceCode.IDLE_BEFORE, DisturbanceCode.REPEATED]
    mark = found[DisturbanceCode.REPEATED]
    assert "cannot be believed" in mark.text
    assert mark.started_s == pytest.approx(refused_end_s - 0.1)
    assert mark.duration_s == pytest.approx(0.1)
    assert before.disturbances == after.disturbances == ()
    codes = [event.warning.code for event in events if isinstance(event, Warned)]
    assert codes == ["step-repeated", "idle-before"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_step_that_the_device_refutes_is_measured_again_once(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """If the counters of the device contradict a step, the step is measured again once. A step that the counters
    contradict is never kept.
    """
    engine, left = SpyEngine(), [times]
    look = RunWatch.step_ended

    def refuted(watch: RunWatch, kind: StepKind, *args: Any, **kwargs: Any) -> Observations:
        if len(engine.asked) >= 5 and left[0]:
            left[0] -= 1
            raise StepFailedError("fio counted 10 MiB, the device 20.0% less")
        return look(watch, kind, *args, **kwargs)

    monkeypatch.setattr(RunWatch, "step_ended", refuted)
    events: list[Event] = []
    if times == 1:
        run(engine, ["iops"], events=events)
    else:
        with pytest.raises(StepFailedError, match="measured twice, and failed twice"):
            run(engine, ["iops"], events=events)
    rounds = [event.record for event in events if isinstance(event, StepEnded) and event.record.kind is StepKind.ROUND]
    assert engine.asked[4][0] == engine.asked[5][0]
    assert len({(step.number, step.position) for step in rounds}) == len(rounds)
    if times == 1:
        (mark,) = [each for each in rounds[4].disturbances or () if each.code == "repeated"]
        assert "the device 20.0% less" in mark.text
    else:
        assert [step.position for step in rounds] == [0, 1, 2, 3]


def test_ctrl_c_is_an_interruption_not_a_failure() -> None:
    """After Ctrl-C, the engine is stopped, and the run counts as interrupted and not as failed."""
    engine = SpyEngine(fail_at=3, error=KeyboardInterrupt())
    with pytest.raises(Interrupted, match="kept"):
        run(engine, ["iops"])
    assert engine.closed


def test_gaps_are_known_between_any_two_steps() -> None:
    """The gap between any two steps is recorded. After a purge, the gap counts from the end of the purge. The first
    step has no gap.
    """
    events = run(SpyEngine(), ["tp", "writesat"])
    records = [event.record for event in events if isinstance(event, StepEnded)]
    purges = sum(isinstance(event, PurgeEnded) for event in events)
    assert [record.gap_s for record in records] == [pytest.approx(0)] * len(records)
    assert sum(record.planned_pause for record in records) == purges
    assert all(record.disturbances == () for record in records)


def test_answers_to_the_procedure_hold_no_samples() -> None:
    """The results that a procedure receives contain no samples. The samples of a day belong only in the run file. Each
    step is announced before it runs.
    """
    events = run(SpyEngine(), ["writesat"])
    started = [event for event in events if isinstance(event, StepStarted)]
    ended = [event for event in events if isinstance(event, StepEnded)]
    assert len(started) == len(ended)
    assert all(event.record.measurement.samples for event in ended)


class BadOutputError(TkperfError):
    pass


def test_an_observer_that_fails_at_the_end_of_a_test_hides_neither_it_nor_the_reason() -> None:
    """If an observer fails at the end of a test, the end and the original reason are still reported to all other
    observers.
    """

    class Idle(SpyEngine):
        def measure(self, step: Step, *, then: Next | None, on_sample: OnSample) -> Execution:
            if len(self.asked) < 2:
                self._clock_s += 10
            return super().measure(step, then=then, on_sample=on_sample)

    def fail_at_the_end(event: Event) -> None:
        if isinstance(event, TestEnded) or (isinstance(event, Warned) and "2 steps" in str(event)):
            raise BadOutputError("no more output")

    engine = Idle(fail_at=4, error=EngineError("fio failed on X"))
    events: list[Event] = []
    with pytest.raises(EngineError, match="fio failed on X"):
        execute_run(
            RunParts(
                info=run_info(),
                tests=[SSD_TESTS["iops"]],
                profile=load_profile("quick"),
                engine=engine,
                target=FreeTarget(),
                observers=(fail_at_the_end, events.append),
                clock=engine.clock,
            )
        )
    test_end, warning, run_end = events[-3:]
    assert isinstance(test_end, TestEnded)
    assert isinstance(warning, Warned)
    assert "2 steps with idle time before" in warning.warning.text
    assert isinstance(run_end, RunEnded)
    assert run_end.because == "fio failed on X"
