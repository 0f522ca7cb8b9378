"""The rules that every engine must follow. The tests run with three sources of I/O: the simulation, a scripted fio and
a real fio.

To test a new engine, add it to the parameters of ``rig``. Faults that only fio can cause in a run (wrong numbers, a
flood of output, kills) are tested in test_fake_fio.py.

The times of the simulation are exact. On a busy host, fio may begin, report or end late, so the rules for fio concern
the order of events. If a load has to begin by itself, its gate must have been opened before the result of the load is
requested. bench/handover_gap.py measures how late fio is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.engine.conftest import Scenario, workload
from tkperf.engine import Engine, EngineLoad, Execution, Next
from tkperf.engine.fio import FioEngine
from tkperf.engine.fio_output import FioReading, parse_document
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import FlashModel
from tkperf.model.measurement import NO_IO, Measurement, Sample
from tkperf.model.phases import Continuous, Fill
from tkperf.model.workload import Access, Step

RANGE_BYTES = 64 << 20
LENGTH_S = 0.6
# Two times of the same event may differ by this number of seconds, because they are read from two clocks.
SAME_S = 0.15
# A busy host may delay a program by this number of seconds, even if the program waits for no event.
LATE_S = 30.0
COLD_START_S = 5.0

FIRST = Step(workload=workload(block_size_bytes=4096), duration_s=LENGTH_S)
SECOND = Step(workload=workload(block_size_bytes=8192), duration_s=LENGTH_S)
THIRD = Step(workload=workload(block_size_bytes=16384), duration_s=LENGTH_S)


@dataclass
class Rig:
    """An engine and its clock.

    Attributes:
        wait: lets time pass.
        exact: the clock is that of the simulation, so no event is late, and totals are known at the planned end.
        may_miss_ends: the load is a real fio, which may exit before a busy host lets the engine notice the planned
            end.
        asked_s: the time of the last request for a result.
    """

    engine: Engine
    clock: Callable[[], float]
    wait: Callable[[float], None]
    exact: bool = False
    may_miss_ends: bool = False
    asked_s: float = 0.0

    def ask(self) -> None:
        self.asked_s = self.clock()

    def require_begun_unasked(self, execution: Execution) -> None:
        """Require that a load was released before the test requested its result.

        The engine opens the gate of a fio load and notes the time. How soon the load begins after that depends on the
        host.
        """
        let_go_s = execution.started_s if self.exact else execution.earliest_s
        assert let_go_s is not None
        assert let_go_s <= self.asked_s

    def require_at(self, moment_s: float, planned_s: float) -> None:
        """Require that an event does not occur before its planned time. If the clock is exact, the event must not occur
        after its planned time either.
        """
        assert planned_s - SAME_S <= moment_s <= planned_s + (SAME_S if self.exact else LATE_S)

    def require_length(self, length_s: float, planned_s: float) -> None:
        """Require that a load is not shorter than requested. If the clock is exact, the load must not be longer
        either.
        """
        self.require_at(length_s, planned_s)


@pytest.fixture(params=["simulated", "scripted fio", pytest.param("fio", marks=pytest.mark.fio)])
def rig(request: pytest.FixtureRequest) -> Rig:
    if request.param == "simulated":
        model = FlashModel(capacity_bytes=RANGE_BYTES)
        engine = SimulatedEngine(model, RANGE_BYTES, cold_start_s=COLD_START_S)

        def wait(seconds: float) -> None:
            engine._clock_s += seconds

        return Rig(engine, engine.clock, wait, exact=True)
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    # On a busy host, the next fio may reach its gate late. The engine waits for it.
    patch.setattr("tkperf.engine.waiting.PREPARE_AHEAD_S", LATE_S)
    scripted = request.param == "scripted fio"
    if scripted:
        request.getfixturevalue("fake_fio")
        # This fio exits so late that the engine notices each planned end. The engine also waits longer for a report
        # that it has requested.
        patch.setenv("FAKE_FIO_LAST_WORDS_S", "2")
        patch.setattr("tkperf.engine.fio.CHOOSE_AHEAD_S", 0.5)
        patch.setattr("tkperf.engine.fio.LONGEST_REPORT_S", 0.4)
    make: Callable[[], FioEngine] = request.getfixturevalue("make_engine")
    return Rig(make(), time.monotonic, time.sleep, may_miss_ends=not scripted)


def ignore(_sample: Sample, _arrived_s: float | None) -> None:
    """Ignore the samples in a test that checks totals."""


def measure(rig: Rig, step: Step, then: Next | None = None) -> Execution:
    rig.ask()
    return rig.engine.measure(step, then=then, on_sample=ignore)


def measure_slice(rig: Rig, phase: Continuous, then: Next | None = None) -> Execution:
    rig.ask()
    return rig.engine.measure_slice(phase, then=then, on_sample=ignore)


def stream(section: str, *, slices: int = 2, of: Step = FIRST) -> Continuous:
    return Continuous(section=section, number=1, workload=of.workload, duration_s=1.0, longest_s=float(slices))


def uncertain(*loads: EngineLoad, choose: Callable[[Measurement], EngineLoad | None] = lambda _: None) -> Next:
    return Next(loads=loads, choose=choose, certain=False)


def require_handed_over(rig: Rig, before: Execution, after: Execution, planned_s: float | None = LENGTH_S) -> None:
    """Require that the second load began when it was released, at the planned end of the first load, and before the
    test requested the result of the second load.

    A fio that begins late on a busy host ends after its planned end, and the second load does not wait for this end.
    If ``planned_s`` is None, the end was not known beforehand. The second load must then not begin before the earliest
    possible end of the first load. This end is ``earliest_s`` plus the measured duration. If the engine noticed the end
    only after fio had exited, the second load began when its result was requested.
    """
    if rig.may_miss_ends and before.handed_over_s is None:
        assert after.earliest_s is not None
        assert rig.asked_s <= after.earliest_s <= after.started_s
        return
    assert before.handed_over_s is not None
    rig.require_at(after.started_s, before.handed_over_s)
    begun_s = before.started_s if before.earliest_s is None else before.earliest_s
    rig.require_at(after.started_s, begun_s + (before.measurement.duration_s if planned_s is None else planned_s))
    assert after.earliest_s is None or before.handed_over_s == after.earliest_s <= after.started_s
    rig.require_begun_unasked(after)


def require_whole(execution: Execution) -> None:
    """Require that the seconds of a load follow each other without a gap and add up to the load."""
    seen = execution.measurement
    require_sum(seen, seen.samples)
    assert sum(each.duration_s for each in seen.samples) == pytest.approx(seen.duration_s)


def require_sum(whole: Measurement | FioReading, parts: Sequence[Sample | Measurement]) -> None:
    """Require that the parts add up to the whole exactly, separately for reads and writes. The test compares I/Os,
    bytes, latencies and every bucket of the histogram.
    """
    for side in ("read", "write"):
        total, summed = getattr(whole, side), sum((getattr(each, side) for each in parts), NO_IO)
        for what in ("ios", "bytes", "latency_ios", "latency_sum_ns", "histogram"):
            assert getattr(summed, what) == getattr(total, what), (side, what)


def test_a_step_lasts_as_long_as_asked_and_its_seconds_add_up(rig: Rig) -> None:
    """A step lasts as long as requested. The sum of its seconds equals its totals, and its times are consistent."""
    samples: list[Sample] = []
    step = replace(FIRST, duration_s=1.4)
    execution = rig.engine.measure(step, then=None, on_sample=lambda sample, _: samples.append(sample))
    rig.require_length(execution.measurement.duration_s, 1.4)
    assert execution.measurement.ios > 0
    lasted_s = execution.ended_s - execution.started_s
    assert lasted_s == pytest.approx(execution.measurement.duration_s)
    assert samples
    require_whole(execution)


def test_what_is_certain_begins_at_the_planned_end(rig: Rig) -> None:
    """If only one load can follow a step, the load begins by itself at the planned end of the step. The runner does not
    need to release it.
    """
    first = measure(rig, FIRST, Next.for_certain(SECOND))
    second = measure(rig, SECOND)
    require_handed_over(rig, first, second)
    assert second.handed_over_s is None
    assert second.measurement.bytes == second.measurement.ios * 8192


def test_one_of_several_begins_that_is_chosen_shortly_before_the_end(rig: Rig) -> None:
    """If one of several loads can follow, the engine prepares all of them. Shortly before the end of the step, the
    engine asks which load follows, and the answer depends on the measurement so far. The chosen load then begins by
    itself.
    """
    asked: list[float] = []

    def choose(so_far: Measurement) -> EngineLoad:
        asked.append(so_far.duration_s)
        return THIRD

    first = measure(rig, FIRST, uncertain(SECOND, THIRD, choose=choose))
    third = measure(rig, THIRD)
    require_handed_over(rig, first, third)
    assert third.measurement.bytes == third.measurement.ios * 16384
    assert asked or rig.may_miss_ends
    assert all(0 < each <= first.measurement.duration_s + SAME_S for each in asked)


def test_what_depends_on_the_last_ios_begins_when_the_totals_are_known(rig: Rig) -> None:
    """If the choice of the next load depends on the last I/Os, the engine asks again when all I/Os are completed. The
    chosen load then begins by itself, and the runner does not have to release it.
    """

    def choose(so_far: Measurement) -> EngineLoad | None:
        return SECOND if so_far.duration_s >= 0.99 * LENGTH_S else None

    first = measure(rig, FIRST, uncertain(SECOND, choose=choose))
    second = measure(rig, SECOND)
    require_handed_over(rig, first, second)


def test_what_the_runner_decides_begins_when_it_says_so(rig: Rig) -> None:
    """If the runner decides which load follows, this load begins when the runner releases it. It does not wait until
    its measurement is requested.
    """
    first = measure(rig, FIRST, uncertain(SECOND, THIRD))
    assert first.handed_over_s is None
    rig.wait(0.3)
    said_s = rig.clock()
    rig.engine.start_next(THIRD)
    third = measure(rig, THIRD)
    rig.require_at(third.started_s, said_s)
    rig.require_begun_unasked(third)


def test_what_was_not_made_ready_cannot_be_let_go(rig: Rig) -> None:
    """A load that was not prepared cannot be released early. It begins when its measurement is requested, in the same
    manner as a load that was not announced.
    """
    measure(rig, FIRST, uncertain(SECOND))
    rig.engine.start_next(THIRD)
    asked_s = rig.clock()
    third = measure(rig, THIRD)
    assert third.started_s > asked_s
    assert third.measurement.bytes == third.measurement.ios * 16384


def test_a_wrong_guess_is_thrown_away(rig: Rig) -> None:
    """If the engine started the wrong load, no result contains this load, and the requested load is measured
    completely.
    """
    first = measure(rig, FIRST, uncertain(SECOND, THIRD, choose=lambda _: SECOND))
    assert first.handed_over_s is not None or rig.may_miss_ends
    rig.engine.start_next(THIRD)
    third = measure(rig, THIRD)
    assert third.measurement.bytes == third.measurement.ios * 16384
    rig.require_length(third.measurement.duration_s, LENGTH_S)
    assert third.started_s >= first.ended_s - SAME_S


def test_nothing_goes_on_after_rest(rig: Rig) -> None:
    """The function rest() also ends a step that was released early. If the measurement of this step is requested later,
    the step begins again.
    """
    measure(rig, FIRST, Next.for_certain(SECOND))
    rig.engine.rest()
    rested_s = rig.clock()
    assert measure(rig, SECOND).started_s > rested_s


def test_a_fill_writes_all_of_it_and_its_follower_begins_at_its_end(rig: Rig) -> None:
    """A fill writes its whole amount, and the next load begins at the end of the fill. The end is not known beforehand,
    and the next load issues no I/O before the end.
    """
    fill = Fill(section="S", workload=workload(access=Access.SEQUENTIAL), passes=2)
    filled = rig.engine.fill(fill, then=Next.for_certain(SECOND), on_sample=ignore)
    second = measure(rig, SECOND)
    assert filled.measurement.write.bytes == 2 * RANGE_BYTES
    require_handed_over(rig, filled, second, None)
    # The end of the fill is computed as its beginning plus its duration. The beginning is uncertain, because fio may
    # begin later than it was released.
    begun_s = filled.started_s if filled.earliest_s is None else filled.earliest_s
    assert second.started_s >= begun_s + filled.measurement.duration_s - 0.02


def test_a_stream_has_no_gaps(rig: Rig) -> None:
    """Each slice of a stream begins at the end of the previous slice. The stream is much longer than its slices,
    because fio may report late, and a late report still ends the slice.
    """
    slices = [measure_slice(rig, stream("S", slices=30)) for _ in range(2)]
    assert slices[1].started_s == pytest.approx(slices[0].ended_s, abs=1e-3)


def test_a_stream_ends_in_its_time(rig: Rig) -> None:
    """All slices of a stream together last as long as requested. The next load begins at the end of the last slice."""
    slices = [measure_slice(rig, stream("S"), then) for then in (None, Next.for_certain(SECOND))]
    second = measure(rig, SECOND)
    total_s = sum(each.measurement.duration_s for each in slices)
    rig.require_length(total_s, 2.0)
    for each in slices:
        assert each.measurement.ios > 0
        require_whole(each)
    assert slices[0].handed_over_s is None
    require_handed_over(rig, slices[1], second, 2.0 - slices[0].measurement.duration_s)


def test_slices_of_a_mix_add_up_to_what_the_load_did(rig: Rig) -> None:
    """The sum of all slices of a mix equals the numbers in fio's last document, separately for reads and writes. The
    last fraction of a second is included.
    """
    mix = Step(workload=workload(read_percent=65), duration_s=LENGTH_S)
    phase = replace(stream("S", of=mix), duration_s=1.3, longest_s=2.6)
    slices = [measure_slice(rig, phase) for _ in range(2)]
    for each in slices:
        assert each.measurement.ios > 0
        require_whole(each)
    if document := slices[-1].output:
        require_sum(parse_document(document), [each.measurement for each in slices])


def test_a_stream_is_handed_over_to_like_a_step(rig: Rig) -> None:
    """A stream can follow a step or another stream. It begins in the same manner as a step."""
    first = measure(rig, FIRST, Next.for_certain(stream("A", slices=1)))
    a = measure_slice(rig, stream("A", slices=1), Next.for_certain(stream("B", slices=1)))
    require_handed_over(rig, first, a)
    b = measure_slice(rig, stream("B", slices=1))
    require_handed_over(rig, a, b, 1.0)


def test_a_stream_that_is_decided_to_end_is_cut_there(rig: Rig) -> None:
    """If a stream has to end early, it ends with its current slice, long before its longest time. The next step begins
    immediately.
    """
    then = uncertain(SECOND, choose=lambda _: SECOND)
    phase = stream("S", slices=100)
    slice_ = measure_slice(rig, phase, then)
    second = measure(rig, SECOND)
    assert slice_.measurement.duration_s < phase.longest_s / 2
    require_handed_over(rig, slice_, second, None)


def test_an_idle_time_is_as_long_as_asked(rig: Rig) -> None:
    """An idle period lasts as long as requested, from the last I/O to the first I/O of the next load. Other work during
    this period does not change its length.
    """
    first = measure(rig, FIRST, None)
    rig.engine.idle(4.0, then=Next.for_certain(SECOND))
    second = measure(rig, SECOND)
    rig.require_at(second.started_s, first.ended_s + 4.0)


def test_close_is_safe_at_any_time(rig: Rig) -> None:
    """The engine can be closed more than once, even while a prepared step is waiting."""
    measure(rig, FIRST, uncertain(SECOND, stream("S")))
    rig.engine.close()
    rig.engine.close()


# The following tests apply only to fio. They cover events in its processes that can affect a hand-over.

Play = Callable[[Scenario], None]
Acts = list[Any]


def test_a_last_document_soon_after_the_one_before_is_in_a_second(
    fake_fio: Play, make_engine: Callable[[], FioEngine]
) -> None:
    """If fio reports just before its end, the I/Os after this report become part of the last sample and not of a
    separate one.
    """
    fake_fio({"*": [[["status", {"elapsed_s": 0.57}], ["jobs end"], ["status", {"elapsed_s": 0.6}]]]})
    execution = make_engine().measure(FIRST, then=None, on_sample=ignore)
    assert execution.measurement.ios == 2 * 2000 * 0.6
    require_whole(execution)


def test_what_died_at_its_gate_is_started_anew(fake_fio: Play, make_engine: Callable[[], FioEngine]) -> None:
    """If a load dies at its gate, it is started again, and the step is measured. No other load is released."""
    fake_fio({"8192": [[["killed at the gate"], ["do not come"]], [["run"]]]})
    engine = make_engine()
    step = replace(FIRST, duration_s=2.5)
    first = engine.measure(step, then=Next.for_certain(SECOND), on_sample=ignore)
    assert first.handed_over_s is None
    assert engine.measure(SECOND, then=None, on_sample=ignore).measurement.ios > 0


def test_what_comes_after_a_short_step_is_started_before_its_results_are_written(
    fake_fio: Play, make_engine: Callable[[], FioEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load after a short step is started before the results of the preceding step are written. Otherwise a slow
    disk that stores the run file would delay the load. After a long step, the engine has enough time.
    """
    # On a busy host, the engine may notice a planned end late, and the next fio may reach its gate late.
    monkeypatch.setenv("FAKE_FIO_LAST_WORDS_S", "2")
    monkeypatch.setattr("tkperf.engine.waiting.PREPARE_AHEAD_S", LATE_S)
    engine = make_engine()
    engine.measure(FIRST, then=Next.for_certain(SECOND, (THIRD,)), on_sample=ignore)
    assert THIRD in engine._waiting
    second = engine.measure(SECOND, then=Next.for_certain(THIRD), on_sample=ignore)
    third = engine.measure(THIRD, then=None, on_sample=ignore)
    assert second.handed_over_s is not None
    assert third.started_s >= second.handed_over_s
    long = replace(SECOND, duration_s=2 * engine._waiting.ahead_s)
    engine.measure(FIRST, then=Next.for_certain(long, (THIRD,)), on_sample=ignore)
    assert long in engine._waiting
    assert THIRD not in engine._waiting


def test_a_fio_that_cannot_be_told_to_report_is_waited_for(
    fake_fio: Play, make_engine: Callable[[], FioEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If fio does not report on request, the engine does not choose a load early. The runner then decides."""
    monkeypatch.setenv("FAKE_FIO_DEAF", "1")
    asked: list[Measurement] = []
    engine = make_engine()
    then = uncertain(SECOND, choose=asked.append)
    first = engine.measure(FIRST, then=then, on_sample=ignore)
    assert first.handed_over_s is None
    assert all(seen.duration_s >= LENGTH_S for seen in asked)
    engine.start_next(SECOND)
    assert engine.measure(SECOND, then=None, on_sample=ignore).measurement.ios > 0
