"""Phases from the procedure to the result. The tests cover idle times, warm-ups, streams, and the hand-over from one
phase to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import FreeTarget, run_info
from tests.engine.conftest import workload
from tkperf.analysis.details import build_details
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import FlashModel
from tkperf.model.figures import generic_section
from tkperf.model.phases import Continuous, Fill, Idle, Procedure, Purge, Round, SectionOutcome
from tkperf.model.quantity import IOS
from tkperf.model.record import RunRecord, StepKind
from tkperf.model.workload import Access, Step
from tkperf.procedures import Test as Procedures
from tkperf.procedures import load_profile
from tkperf.runfile.reader import RunFile
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.runner import RunParts, execute_run

RANGE_BYTES = 1 << 30
COLD_START_S = 0.3
STEP = Step(workload=workload(block_size_bytes=4096), duration_s=10.0)
OTHER = Step(workload=workload(block_size_bytes=8192), duration_s=10.0)
END = SectionOutcome(section="S", window=(1,), verdict=None, ended_because="end")


def run(
    folder: Path, *procedures: Callable[[], Procedure], engine: SimulatedEngine | None = None
) -> tuple[RunRecord, RunResult]:
    """Run each procedure as a separate test, on a drive that starts slowly if no hand-over precedes the start."""
    model = FlashModel(capacity_bytes=RANGE_BYTES)
    engine = engine or SimulatedEngine(model, RANGE_BYTES, cold_start_s=COLD_START_S)
    writer = RunFileWriter(folder / "run.tkperf")

    def bind(procedure: Callable[[], Procedure]) -> Callable[..., Procedure]:
        return lambda _profile, _range: procedure()

    execute_run(
        RunParts(
            info=run_info(),
            tests=[
                Procedures(name=f"t{number}", title="t", procedure=bind(procedure), section_plan=generic_section)
                for number, procedure in enumerate(procedures)
            ],
            profile=load_profile("quick"),
            engine=engine,
            target=FreeTarget(),
            observers=(writer,),
            clock=engine.clock,
        )
    )
    writer.close()
    with RunFile(folder / "run.tkperf") as run_file:
        record = run_file.record()
    return record, analyse(record)


def one_round(number: int, *steps: Step, section: str = "S", warm_up: bool = False) -> Round:
    return Round(section=section, number=number, steps=steps or (STEP,), warm_up=warm_up)


def a_stream(section: str, number: int = 1, *, slices: int = 1, warm_up: bool = False) -> Continuous:
    return Continuous(
        section=section,
        number=number,
        workload=STEP.workload,
        duration_s=10.0,
        longest_s=10.0 * slices,
        warm_up=warm_up,
    )


def test_an_idle_time_is_planned_and_no_disturbance(tmp_path: Path) -> None:
    """A planned idle time is not a disturbance. The step after the idle time records the exact length of this time, and
    the longest gap does not include it.
    """

    def procedure() -> Procedure:
        yield one_round(1)
        yield Idle(section="S", duration_s=7.0)
        yield one_round(2)
        yield END

    record, result = run(tmp_path, procedure)
    first, second = record.tests[0].steps
    assert second.planned_pause
    assert second.gap_s == pytest.approx(7.0)
    assert second.started_s - (first.started_s + 10.0) == pytest.approx(7.0)
    assert second.disturbances == ()
    assert result.tests[0].longest_gap_s is None


class Oversleeping(SimulatedEngine):
    """An engine that leaves the device idle for longer than requested."""

    def idle(self, duration_s, *, then):  # type: ignore[no-untyped-def]
        super().idle(duration_s + 1.5, then=then)


def test_an_idle_time_that_was_far_longer_than_asked_is_a_disturbance(tmp_path: Path) -> None:
    """An idle time that lasted much longer than planned counts as a disturbance, because only the planned time is
    intended.
    """

    def procedure() -> Procedure:
        yield one_round(1)
        yield Idle(section="S", duration_s=7.0)
        yield one_round(2)
        yield END

    engine = Oversleeping(FlashModel(capacity_bytes=RANGE_BYTES), RANGE_BYTES)
    record, _ = run(tmp_path, procedure, engine=engine)
    (found,) = record.tests[0].steps[1].disturbances or ()
    assert found.code == "idle-before"


def test_a_warm_up_is_kept_and_in_no_result(tmp_path: Path) -> None:
    """A warm-up is stored but is not part of any result. This rule applies to a step, and to slices of a stream that
    then continues without a gap.
    """

    def procedure() -> Procedure:
        yield one_round(1, OTHER, warm_up=True)
        yield one_round(1)
        yield a_stream("stream", 1, slices=3, warm_up=True)
        yield a_stream("stream", 1, slices=3)
        yield a_stream("stream", 2, slices=3)
        yield END

    record, result = run(tmp_path, procedure)
    steps = record.tests[0].steps
    kinds = [step.kind for step in steps]
    rounds, slices = StepKind.ROUND, StepKind.CONTINUOUS
    assert kinds == [StepKind.WARM_UP, rounds, StepKind.WARM_UP, slices, slices]
    assert all(step.measurement.samples == () and step.measurement.ios for step in steps)
    section, stream = result.tests[0].sections
    assert [cell.workload.block_size_bytes for cell in section.cells] == [4096]
    assert [len(each.cells) for each in section.rounds] == [1]
    assert [each.number for each in stream.slices] == [1, 2]
    assert stream.slices[0].start_s == 0
    assert sum(cell.value(IOS) or 0 for cell in stream.cells) == sum(step.measurement.ios for step in steps[3:])
    assert result.tests[0].written_bytes == sum(step.measurement.write.bytes for step in steps)
    assert [detail.section for detail in build_details(result, record, {})] == ["S", "stream"]
    # A stream is a single job, so no gap separates its warm-up from its slices.
    assert steps[3].gap_s == pytest.approx(0)


def test_no_hand_over_is_cold_but_to_a_fill(tmp_path: Path) -> None:
    """Every phase begins with a hand-over, except after a purge. Fills, rounds, streams, sections and tests therefore
    follow each other without a cold start.
    """

    def first() -> Procedure:
        yield Purge(section="S")
        fill = workload(block_size_bytes=131072, access=Access.SEQUENTIAL)
        yield Fill(section="S", workload=fill, passes=1)
        yield one_round(1, STEP, OTHER)
        yield a_stream("A")
        yield a_stream("B")
        yield one_round(1, section="T")
        yield END

    def second() -> Procedure:
        yield one_round(1, OTHER, section="U")
        yield END

    record, result = run(tmp_path, first, second)
    gaps = [step.gap_s for test in record.tests for step in test.steps]
    assert gaps == [pytest.approx(COLD_START_S), *[pytest.approx(0)] * 6]
    assert result.tests[0].longest_gap_s == pytest.approx(0)
    assert result.tests[1].longest_gap_s == pytest.approx(0)


class Careless(SimulatedEngine):
    """An engine that performs no hand-over."""

    def start_next(self, load):  # type: ignore[no-untyped-def]
        """Ignore the next load, so that no hand-over occurs."""


@pytest.mark.parametrize("kind", ["fill", "round", "stream", "section"])
def test_the_longest_gap_covers_each_kind_of_hand_over(tmp_path: Path, kind: str) -> None:
    """A late start after any kind of hand-over counts towards the longest gap. Only planned idle time does not
    count.
    """

    def procedure() -> Procedure:
        if kind == "fill":
            yield Fill(section="S", workload=workload(access=Access.SEQUENTIAL), passes=1)
        else:
            yield one_round(1)
        if kind == "round":
            yield a_stream("A")
        if kind == "stream":
            yield a_stream("A")
            yield a_stream("B")
        if kind in ("fill", "section"):
            yield one_round(1, OTHER, section="T")
        yield END

    model = FlashModel(capacity_bytes=RANGE_BYTES)
    record, result = run(tmp_path, procedure, engine=Careless(model, RANGE_BYTES, cold_start_s=COLD_START_S))
    assert record.tests[0].steps[0].gap_s is None
    assert result.tests[0].longest_gap_s == pytest.approx(COLD_START_S)


class Drifting(SimulatedEngine):
    """An engine whose slices last slightly less than the time between their starts, as with fio's clock and reports."""

    def measure_slice(self, phase, *, then, on_sample):  # type: ignore[no-untyped-def]
        execution = super().measure_slice(phase, then=then, on_sample=on_sample)
        self._clock_s += 0.25
        self._begins_s += 0.25
        return execution


def test_slices_lie_where_they_were_recorded(tmp_path: Path) -> None:
    """Slices are placed at their recorded start times. Over a day, the sum of their durations would deviate from the
    real time.
    """

    def procedure() -> Procedure:
        for number in (1, 2, 3):
            yield a_stream("S", number, slices=3)
        yield END

    engine = Drifting(FlashModel(capacity_bytes=RANGE_BYTES), RANGE_BYTES)
    _, result = run(tmp_path, procedure, engine=engine)
    (section,) = result.tests[0].sections
    assert [each.start_s for each in section.slices] == pytest.approx([0.0, 10.25, 20.5])
