"""Every part of a workload is read back from the run file and distinguishes its results from others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import FreeTarget, run_info, work
from tkperf.analysis.results import SectionResult
from tkperf.analysis.run_results import analyse
from tkperf.engine.simulated import SimulatedEngine
from tkperf.engine.simulation.models import FlashModel
from tkperf.model.figures import generic_section
from tkperf.model.phases import Procedure, Round, SectionOutcome
from tkperf.model.quantity import IOPS
from tkperf.model.units import format_number
from tkperf.model.workload import ActiveRange, Arrival, BlockShare, Burst, Step, Workload, Zone
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import build_matrix
from tkperf.procedures import Test, load_profile
from tkperf.procedures.profiles import Profile
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.runner import RunParts, execute_run

ODD = (
    replace(work(), block_size_bytes=65536, block_mix=(BlockShare(4096, 60), BlockShare(65536, 40))),
    replace(work(), zones=(Zone(50, 5), Zone(50, 95))),
    replace(work(), offered_iops=1234.5, arrival=Arrival.POISSON),
    replace(work(), offered_iops=1234.5),
    replace(work(), compressible_percent=50),
    replace(work(), region=ActiveRange(offset_bytes=1 << 20, length_bytes=1 << 24)),
    replace(work(), region=ActiveRange(offset_bytes=0, length_bytes=1 << 24)),
    work(jobs=2),
    work(io_depth=2),
    replace(work(), random_percent=25),
    replace(work(), burst=Burst(32, 0.25)),
    work(),
)


def measure(path: Path, workloads: tuple[Workload, ...]) -> SectionResult:
    """Measure one round of the workloads on a simulated drive. Return the section that is read from the run file."""

    def procedure(_profile: Profile, _bytes: int) -> Procedure:
        steps = tuple(Step(workload=each, duration_s=2) for each in workloads)
        yield Round(section="S", number=1, steps=steps)
        yield SectionOutcome(section="S", window=(1,), verdict=None, ended_because=".")

    engine = SimulatedEngine(FlashModel(capacity_bytes=1 << 30), 1 << 30)
    writer = RunFileWriter(path)
    execute_run(
        RunParts(
            info=run_info(),
            tests=[Test(name="own", title="Own", procedure=procedure, section_plan=generic_section)],
            profile=load_profile("quick"),
            engine=engine,
            target=FreeTarget(),
            observers=(writer,),
            clock=engine.clock,
        )
    )
    writer.close()
    (section,) = analyse(read_run(path)).tests[0].sections
    return section


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> SectionResult:
    return measure(tmp_path_factory.mktemp("run") / "run.tkperf", ODD)


def test_all_of_a_workload_comes_back(section: SectionResult) -> None:
    """A workload is read back with all its parts, because the workload is the key of its results."""
    assert tuple(cell.workload for cell in section.cells) == ODD


def test_workloads_that_differ_in_anything_are_results_of_their_own(section: SectionResult) -> None:
    """Workloads that differ in any part, such as the number of threads, the queue depth or the arrival, have separate
    results.
    """
    values = {cell.workload: cell.value(IOPS) for cell in section.cells}
    assert len(values) == len(ODD)
    assert values[work(jobs=2)] != values[work()]


def test_a_grid_of_threads_and_depths_is_a_table_without_a_line_of_its_own(tmp_path: Path) -> None:
    """A grid of thread counts and queue depths is shown as a table with a row for each thread count and a column for
    each queue depth. A workload in the grid needs no separate line.
    """
    grid = tuple(work(jobs=jobs, io_depth=depth) for jobs in (1, 4) for depth in (1, 8, 32))
    section = measure(tmp_path / "a.tkperf", grid)
    table = build_matrix(ShownSection(section=section, key=""), IOPS)
    assert table.columns == ("TC", "QD 1", "QD 8", "QD 32")
    assert [row[0] for row in table.rows] == ["1", "4"]
    shown = [each for row in table.rows for each in row[1:]]
    by_work = {cell.workload: cell.value(IOPS) for cell in section.cells}
    assert shown == [format_number(by_work[each], IOPS.digits) for each in grid]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("block_mix", "[[4096, 10]]"),
        ("zones", "nonsense"),
        ("offered_iops", -1.0),
        ("region_length_bytes", 0),
        ("arrival", "never"),
        ("block_mix", "[]"),
        ("block_mix", '[["4k", 10]]'),
        ("zones", "5"),
    ],
)
def test_a_workload_that_cannot_be_is_left_out_with_its_reason(tmp_path: Path, column: str, value: object) -> None:
    """An impossible workload is left out with the reason, and the other workloads remain."""
    path = tmp_path / "a.tkperf"
    measure(path, (work(), work(jobs=2)))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE step SET {column} = ? WHERE jobs = 2", (value,))
    database.close()
    record = read_run(path)
    assert [step.workload for step in record.tests[0].steps] == [work()]
    assert len(record.left_out) == 1
