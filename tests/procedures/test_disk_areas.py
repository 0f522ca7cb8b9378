"""The hard disk suite: its areas, the order of the areas, and the results for the areas."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import FreeTarget, run_info
from tkperf.analysis.results import RunResult
from tkperf.analysis.run_results import analyse
from tkperf.engine.fio_job import FioTarget, render_step_job
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import FlashModel
from tkperf.model.errors import EngineError
from tkperf.model.phases import Round
from tkperf.model.quantity import IOPS
from tkperf.model.record import StepKind
from tkperf.model.workload import Access, ActiveRange, Step
from tkperf.procedures import HDD_TESTS, load_profile
from tkperf.procedures.disk_areas import HardDiskTable, cut_into_areas
from tkperf.procedures.forecast import Case, forecast, phases_of
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.runner import RunParts, execute_run

CAPACITY_BYTES = 4 << 40
TKPERF = load_profile("tkperf-2.2")


@given(st.integers(min_value=128 * 4096, max_value=1 << 45))
def test_areas_are_equal_disjoint_aligned_and_in_order(active_range_bytes: int) -> None:
    """A disk is divided into 128 equal, aligned areas without gaps, in order from its start. At the end of the disk,
    fewer than 128 units of 4 KiB remain.
    """
    areas = cut_into_areas(TKPERF.table(HardDiskTable), active_range_bytes)
    assert len(areas) == 128
    assert {area.length_bytes for area in areas} == {areas[0].length_bytes}
    for before, after in itertools.pairwise(areas):
        assert before.offset_bytes + before.length_bytes == after.offset_bytes
    assert all(area.offset_bytes % 4096 == 0 == area.length_bytes % 4096 for area in areas)
    left_bytes = active_range_bytes - areas[-1].offset_bytes - areas[-1].length_bytes
    assert 0 <= left_bytes < 128 * 4096 + 128


def test_a_range_too_small_to_be_cut() -> None:
    """A range that is too small to be divided into areas causes an error of tkperf and not a division by zero."""
    with pytest.raises(ValueError, match="cannot be divided into 128 areas"):
        cut_into_areas(TKPERF.table(HardDiskTable), 4096)


@pytest.mark.parametrize(("test", "rounds", "steps", "hours"), [("iops", 128, 9, 19.2), ("tp", 256, 2, 8.533)])
def test_the_course_is_tkperfs(test: str, rounds: int, steps: int, hours: float) -> None:
    """The hard disk tests use the procedure of TKperf 2.2. In each area, the IOPS test runs nine random cells of one
    minute, and the throughput test runs one minute of reads and one minute of writes for each of two block sizes.
    """
    procedure = HDD_TESTS[test].procedure
    phases = list(phases_of(procedure(TKPERF, CAPACITY_BYTES), lambda _: {}))
    assert len(phases) == rounds
    assert all(isinstance(phase, Round) and len(phase.steps) == steps for phase in phases)
    best = forecast(procedure(TKPERF, CAPACITY_BYTES), (), Case.BEST, active_range_bytes=CAPACITY_BYTES)
    assert sum(best) / 3600 == pytest.approx(hours, abs=0.01)


def test_read_before_write_and_larger_blocks_first() -> None:
    """Reads precede writes, and larger blocks precede smaller blocks, as in the loops of TKperf."""
    (first, *_) = phases_of(HDD_TESTS["iops"].procedure(TKPERF, CAPACITY_BYTES), lambda _: {})
    assert isinstance(first, Round)
    cells = [(step.workload.read_percent, step.workload.block_size_bytes) for step in first.steps]
    kib = 1024
    assert cells == [(mix, size * kib) for mix in (100, 50, 0) for size in (64, 16, 4)]


def test_a_step_stays_in_its_area() -> None:
    """A step stays inside its area. fio receives the offset and the size of the area, counted from the start of the
    active range.
    """
    target = FioTarget(
        path="/dev/x", ioengine="libaio", active_range=ActiveRange(offset_bytes=1 << 20, length_bytes=1 << 30)
    )
    area = ActiveRange(offset_bytes=8 << 20, length_bytes=4 << 20)
    for access in Access:
        workload = replace(TKPERF.workload(access, 100, 4), region=area)
        job = render_step_job(Step(workload=workload, duration_s=1), target)
        assert f"offset={9 << 20}\n" in job
        assert f"size={4 << 20}\n" in job


class Stopping(SimulatedEngine):
    """An engine that fails in a given step."""

    steps = 0
    fails_at = 14

    def measure(self, step, *, then, on_sample):  # type: ignore[no-untyped-def]
        self.steps += 1
        if self.steps == self.fails_at:
            raise EngineError("stopped here")
        return super().measure(step, then=then, on_sample=on_sample)


def run(folder: Path, engine: SimulatedEngine, **facts: object) -> RunResult:
    """Run the quick profile, which has 8 areas with 9 cells each."""
    path = folder / "run.tkperf"
    writer = RunFileWriter(path)
    try:
        execute_run(
            RunParts(
                info=run_info(active_range_length_bytes=1 << 30, suite="hdd", **facts),
                tests=[HDD_TESTS["iops"]],
                profile=load_profile("quick"),
                engine=engine,
                target=FreeTarget(),
                observers=(writer,),
                clock=engine.clock,
            )
        )
    except EngineError:
        pass
    finally:
        writer.close()
    record = read_run(path)
    assert {step.kind for step in record.tests[0].steps} == {StepKind.AREA}
    return analyse(record)


def test_areas_are_reported_as_such(tmp_path: Path) -> None:
    """The report of a hard disk run has a row for each area, and the means over all areas. Steady state is not judged
    for areas.
    """
    result = run(tmp_path, SimulatedEngine(FlashModel(capacity_bytes=1 << 30), 1 << 30))
    (section,) = result.tests[0].sections
    assert section.areas == 8
    assert section.steady is None
    assert [area.number for area in section.rounds] == list(range(1, 9))
    assert all(area.complete and len(area.cells) == 9 for area in section.rounds)
    cell = section.cells[0]
    values = [area.cells[0].value(IOPS) or 0 for area in section.rounds]
    assert cell.value(IOPS) == pytest.approx(sum(values) / 8)
    assert cell.rounds == 8


def test_a_run_cut_short_reports_its_whole_areas(tmp_path: Path) -> None:
    """A run that was stopped in its second area reports the first area. The second area is marked as incomplete."""
    result = run(tmp_path, Stopping(FlashModel(capacity_bytes=1 << 30), 1 << 30))
    (section,) = result.tests[0].sections
    assert section.areas == 8
    assert section.window == (1,)
    assert [area.complete for area in section.rounds] == [True, False]


def test_the_runs_own_profile_says_what_a_whole_area_is(tmp_path: Path) -> None:
    """A run that was stopped in its first area reports no complete area. According to the profile of the run, eight
    areas were planned.
    """
    engine = Stopping(FlashModel(capacity_bytes=1 << 30), 1 << 30)
    engine.fails_at = 5
    stored = load_profile("quick").as_plain_data()
    (section,) = run(tmp_path, engine, profile=stored).tests[0].sections
    assert (section.areas, section.window) == (8, ())
    assert [area.complete for area in section.rounds] == [False]
