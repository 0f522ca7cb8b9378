"""Runs with more workloads than any sweep. The tables contain all workloads, but tkperf draws no charts and searches
for no findings over time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runfile.runs import a_run
from tests.runfile.test_limits import many_steps
from tkperf.analysis import run_results
from tkperf.analysis.results import CellResult
from tkperf.analysis.run_results import analyse
from tkperf.analysis.timeline.series import median
from tkperf.model.record import RunRecord
from tkperf.model.workload import Access, Workload
from tkperf.page.figures import section_figures
from tkperf.page.naming import arrange
from tkperf.page.page import MOST_ROWS_AT_ONCE, TableView
from tkperf.page.view import build_view
from tkperf.render.reports import build_run_view
from tkperf.runfile.reader import RunFile

Value = Callable[..., float | None]


@pytest.fixture(scope="module")
def large_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with five workloads, each in twelve rounds."""
    path, writer = a_run(tmp_path_factory.mktemp("large"), 1)
    writer.close()
    with closing(sqlite3.connect(path)) as db:
        many_steps(
            db, 59, number="1 + n / 5", position="n % 5", block_size_bytes="512 * (8 + n % 5)", started_s="60 * n"
        )
        db.commit()
    return path


@pytest.fixture(scope="module")
def record(large_path: Path) -> RunRecord:
    with RunFile(large_path) as run_file:
        return run_file.record()


def test_findings_over_time_are_searched_for_few_workloads(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings over time are searched for only if both the number of workloads and the number of steps of the whole run
    are within their limits. A sweep exceeds neither limit.
    """
    for most, most_steps, found in ((5, 60, 5), (4, 60, 0), (5, 59, 0)):
        monkeypatch.setattr(run_results, "MOST_SEARCHED_WORKLOADS", most)
        monkeypatch.setattr(run_results, "MOST_SEARCHED_STEPS", most_steps)
        result = analyse(record)
        (section,) = result.tests[0].sections
        # If tkperf did not search a run for findings, every output states this.
        assert ("not-searched" in {note.code for note in result.warnings}) == (found == 0)
        assert len({timeline.workload for timeline in section.timelines}) == found
        assert len(section.cells) == 5


def test_charts_are_drawn_of_few_workloads(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are drawn only if a section has few workloads. The tables of a section are always complete."""
    views = {}
    for most in (5, 4):
        monkeypatch.setattr(section_figures, "MOST_DRAWN_WORKLOADS", most)
        (views[most],) = build_view(analyse(record)).tests[0].sections
    assert views[5].charts
    assert not views[4].charts
    assert views[4].tables == views[5].tables


def test_cells_open_and_tests_have_courses_of_few_workloads(
    large_path: Path, record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells can be opened and charts over time are drawn only in runs with few workloads. A report of 2,700 workloads
    in 57,000 steps needed 600 MB and 20 s. The tables remain complete.
    """
    views = {}
    for most in (5, 4):
        monkeypatch.setattr(run_results, "MOST_SEARCHED_WORKLOADS", most)
        with RunFile(large_path) as run_file:
            views[most] = build_run_view(run_file, record, analyse(record))
    assert [len(list(views[most].cells)) for most in (5, 4)] == [5, 0]
    assert views[5].tests[0].events.charts
    assert not views[4].tests[0].events.charts
    rows = {most: [table.rows for table in view.tests[0].sections[0].tables] for most, view in views.items()}
    assert rows[4] == rows[5]


def test_the_details_of_a_stream_cost_the_same_with_many_workloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The details of a stream with 60 workloads need about the same amount of work as the details of a stream with 2
    workloads, because tkperf does not read all slices again for each workload.
    """
    counts = {}
    for workloads in (2, 60):
        folder = tmp_path / str(workloads)
        folder.mkdir()
        path, writer = a_run(folder, 1)
        writer.close()
        with closing(sqlite3.connect(path)) as db:
            size = f"512 * (8 + n % {workloads})"
            many_steps(db, 120, kind="'continuous'", number="1 + n", block_size_bytes=size, started_s="60 * n")
            db.execute("UPDATE step SET kind = 'continuous'")
            db.commit()
        with RunFile(path) as run_file:
            record = run_file.record()
            view = build_run_view(run_file, record, analyse(record))
        looks = 0

        def count(cell: CellResult, *asked: Any, value: Value = CellResult.value) -> float | None:
            nonlocal looks
            looks += 1
            return value(cell, *asked)

        with monkeypatch.context() as patched:
            patched.setattr(CellResult, "value", count)
            assert len(list(view.cells)) == workloads
        counts[workloads] = looks
    assert counts[60] < 1.5 * counts[2]


def test_a_large_table_is_never_mostly_empty() -> None:
    """If most cells of a large table would be empty, the table has only one column of values. Otherwise a terminal
    would need minutes for 3,000 workloads with different sizes and depths. A table that is small or full keeps its
    columns.
    """
    some = Workload(access=Access.RANDOM, block_size_bytes=4096, read_percent=0, jobs=1, io_depth=1)
    for count, columns in ((100, 100), (101, 1), (1000, 1)):
        works = [replace(some, block_size_bytes=512 * n, io_depth=n) for n in range(1, count + 1)]
        layout = arrange(works)
        assert len(layout.columns) == columns
        assert {work for row in layout.at for work in row if work is not None} == set(works)
    full = [replace(some, block_size_bytes=512 * n, io_depth=m) for n in range(1, 121) for m in range(1, 121)]
    assert len(arrange(full).columns) == 120


def test_a_table_with_one_column_names_all_fields(tmp_path: Path) -> None:
    """In a table with one column of values, the rows also contain the field that forms the column headings of a smaller
    table.
    """
    path, writer = a_run(tmp_path, 1)
    writer.close()
    with closing(sqlite3.connect(path)) as db:
        many_steps(db, 150, number="1", position="n", block_size_bytes="512 * n", io_depth="n")
        db.commit()
    with RunFile(path) as run_file:
        (section,) = build_view(analyse(run_file.record())).tests[0].sections
    matrices = [table for table in section.tables if table.columns[-1] == "value"]
    assert matrices
    assert {table.columns for table in matrices} == {("Block size (KiB)", "QD", "value")}


def test_a_table_longer_than_any_sweep_shows_its_first_rows() -> None:
    """If a table is longer than that of any sweep, the page shows its first rows. The other rows are hidden until the
    reader opens them.
    """
    rows = tuple((str(n),) for n in range(MOST_ROWS_AT_ONCE + 5))
    table = TableView(title="", columns=("n",), rows=rows)
    assert list(table.lead) == list(range(MOST_ROWS_AT_ONCE))
    assert list(TableView(title="", columns=("n",), rows=rows[:-5]).lead) == list(range(1200))


@pytest.mark.parametrize("count", [1, 2, 3, 10, 499, 500, 501, 1000])
def test_the_median_is_that_of_numpy(count: int) -> None:
    """The function median() returns exactly the same result as numpy, even with NaN."""
    values = np.random.default_rng(count).normal(1000, 30, count)
    assert median(values) == np.median(values)
    values[count // 2] = np.nan
    assert np.isnan(median(values))
