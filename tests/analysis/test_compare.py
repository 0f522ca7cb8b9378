"""Comparison: ratios to the first run, noise called noise, different conditions named."""

from __future__ import annotations

import csv
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.builders import run_info, simulate
from tkperf.analysis.compare import ComparedRow, compare
from tkperf.analysis.results import CellResult, RunResult
from tkperf.cli.main import cli
from tkperf.errors import UsageError
from tkperf.procedures import HDD_TESTS
from tkperf.report.comparison import build_comparison_view
from tkperf.report.parts import ChartView
from tkperf.workload import Cell


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def slow(folder: Path) -> RunResult:
    (folder / "slow").mkdir()
    return simulate(folder / "slow", run_info(name="slow"))


@pytest.fixture(scope="module")
def fast(folder: Path) -> RunResult:
    (folder / "fast").mkdir()
    info = run_info(name="fast", fio_version="fio-3.36", profile_name="tkperf-2.2")
    return simulate(folder / "fast", info, "nvme-4kn")


def row_of(rows: tuple[ComparedRow, ...], test: str) -> ComparedRow:
    return next(row for row in rows if row.test == test)


def test_a_run_beside_itself_is_all_noise(slow: RunResult) -> None:
    """Ratio 1 in every cell, within noise wherever there is a spread, and no condition differs."""
    twice = compare([slow, slow])
    assert twice.names == ("slow (1)", "slow (2)")
    for row in twice.rows:
        assert row.entries[1].ratio in (None, 1.0)
        assert row.entries[1].within_noise in (None, True)
    assert not [warning for warning in twice.warnings if "differs" in warning]


def test_each_value_is_the_results_own(slow: RunResult, fast: RunResult) -> None:
    """Means from the window, the spread from its rounds, the ratio of the two."""
    both = compare([slow, fast])
    row = row_of(both.rows, "iops")
    sections = [result.tests[0].sections[0] for result in (slow, fast)]
    for entry, section in zip(row.entries, sections, strict=True):
        cell = section.cell(row.cell)
        assert isinstance(cell, CellResult)
        assert entry.value == cell.iops
        seen = [
            each.iops
            for one in section.rounds
            if one.number in section.window
            for each in one.cells
            if each.cell == row.cell and each.iops is not None
        ]
        assert (entry.low, entry.high) == (min(seen), max(seen))
    first, second = row.entries
    assert second.value is not None
    assert first.value is not None
    assert second.ratio == pytest.approx(second.value / first.value)
    assert second.within_noise is False


def test_different_conditions_are_named(slow: RunResult, fast: RunResult) -> None:
    """Profile and fio by name and value; what is the same is not mentioned."""
    warnings = compare([slow, fast]).warnings
    assert any(each.startswith("profile differs (slow: quick, fast: tkperf") for each in warnings)
    assert any(each.startswith("fio differs (slow: not known, fast: fio-3.36") for each in warnings)
    assert not any(each.startswith("suite differs") for each in warnings)


def test_a_run_that_is_not_steady_or_not_complete_is_named(slow: RunResult) -> None:
    """Its numbers are there, with the warning."""
    test = slow.tests[0]
    broken = replace(
        slow, tests=(replace(test, sections=(replace(test.sections[0], steady=False),)),)
    )
    assert any(
        "IOPS did not reach steady state" in each for each in compare([slow, broken]).warnings
    )


def test_what_cannot_be_compared_is_refused(slow: RunResult) -> None:
    """One run, areas against steady states, nothing in common."""
    with pytest.raises(UsageError, match="two runs or more"):
        compare([slow])
    areas = replace(slow, info=replace(slow.info, suite="hdd"))
    with pytest.raises(UsageError, match="cannot be compared"):
        compare([slow, areas])
    with pytest.raises(UsageError, match="no test in common"):
        compare([slow, replace(slow, tests=())])


def data_of(chart: ChartView) -> list[dict[str, Any]]:
    return chart.spec["data"]["values"]  # type: ignore[index,no-any-return]


def test_the_report_counts_what_the_comparison_says(slow: RunResult, fast: RunResult) -> None:
    """The overview adds up to all rows, the tables hold each value; each bar is an entry."""
    both = compare([slow, fast])
    view = build_comparison_view(both)
    assert view.overview is not None
    counted = sum(int(count) for row in view.overview.rows for count in row[2:])
    assert counted == sum(row.entries[1].ratio is not None for row in both.rows)
    sections = [section for test in view.tests for section in test.sections]
    tables = [row for section in sections for table in section.tables for row in table.rows]
    for row, told in zip(both.rows, tables, strict=True):
        for entry, text in zip(row.entries, told[3:], strict=True):
            assert text.split(" ")[0] == f"{entry.value:,.1f}"
    bars = [bar["value"] for each in sections for chart in each.charts for bar in data_of(chart)]
    values = [entry.value for row in both.rows for entry in row.entries if entry.value is not None]
    assert set(bars) <= set(values)
    assert len(bars) > len(values) / 2


def test_tkperfs_four_plots(slow: RunResult, fast: RunResult) -> None:
    """By the names of tkperf-cmp's files, with its choice of cells, each value the results' own."""
    both = compare([slow, fast])
    view = build_comparison_view(both)
    charts = {chart.key: chart for test in view.tests for chart in test.charts}
    cells = [result.tests[0].sections[0].cell(Cell(0, 4096)) for result in (slow, fast)]
    writes = [
        bar["value"] for bar in data_of(charts["compIOPSPlt"]) if bar["cell"] == "0/100 4 KiB"
    ]
    assert writes == [cell.iops for cell in cells if cell is not None]
    assert {bar["cell"] for bar in data_of(charts["compLATPlt"])} == {
        f"{mix} 4 KiB" for mix in ("100/0", "65/35", "0/100")
    }
    assert len(data_of(charts["compTPPlt"])) == 8  # two sizes, two directions, two runs
    slices = [result.tests[3].sections[0].slices for result in (slow, fast)]
    assert [point["value"] for point in data_of(charts["compWriteSatIOPSPlt"])] == [
        each.values.iops for run in slices for each in run
    ]


def test_streams_are_compared_over_drive_fills_and_by_their_tails(
    slow: RunResult, fast: RunResult
) -> None:
    """The last slice lies at its amount over the range; exceedance falls to less than 1 %."""
    view = build_comparison_view(compare([slow, fast]))
    charts = {chart.key: chart for test in view.tests for chart in test.charts}
    last = slow.tests[3].sections[0].slices[-1]
    points = [point for point in data_of(charts["writesatfills"]) if point["series"] == "slow"]
    assert points[-1]["x"] == last.total_written_bytes / (slow.info.active_range_length_bytes or 0)
    for run in ("slow", "fast"):
        beyond = [
            row["value"] for row in data_of(charts["writesatexceedance0"]) if row["series"] == run
        ]
        assert beyond == sorted(beyond, reverse=True)
        assert 0 < beyond[-1] < 1


def test_hard_disks_are_compared_over_their_areas(tmp_path: Path) -> None:
    """A point for each area and cell of each disk, placed by its share of the disk."""
    results = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        info = run_info(name=name, suite="hdd")
        results.append(simulate(tmp_path / name, info, suite=HDD_TESTS))
    view = build_comparison_view(compare(results))
    charts = {chart.key: chart for test in view.tests for chart in test.charts}
    points = data_of(charts["iopsareas0"])
    assert len(points) == 2 * 8 * 9
    assert sorted({point["x"] for point in points}) == [6.25 + 12.5 * area for area in range(8)]
    values = [
        cell.iops
        for result in results
        for area in result.tests[0].sections[0].rounds
        for cell in area.cells
    ]
    assert [point["value"] for point in points] == values


def test_the_command(slow: RunResult, fast: RunResult, folder: Path, tmp_path: Path) -> None:
    """Table, CSV and page from run files; a missing file is one clear error."""
    files = [str(folder / name / "run.tkperf") for name in ("slow", "fast")]
    table, page = tmp_path / "c.csv", tmp_path / "c.html"
    ran = CliRunner().invoke(cli, ["compare", *files, "--csv", str(table), "--html", str(page)])
    assert ran.exit_code == 0, ran.output
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    both = compare([slow, fast])
    assert len(rows) == 2 * len(both.rows)
    assert float(rows[1]["ratio_to_first"]) == both.rows[0].entries[1].ratio
    assert "comparison of 2 runs" in page.read_text(encoding="utf-8")
    missing = CliRunner().invoke(cli, ["compare", files[0], str(tmp_path / "none.tkperf")])
    assert "there is no run file" in str(missing.exception)


def test_a_folder_with_everything(
    slow: RunResult, fast: RunResult, folder: Path, tmp_path: Path
) -> None:
    """-f writes all forms, -z packs them; -z alone is a mistake."""
    files = [str(folder / name / "run.tkperf") for name in ("slow", "fast")]
    ran = CliRunner().invoke(cli, ["compare", *files, "-f", str(tmp_path / "out"), "-z"])
    assert ran.exit_code == 0, ran.exception
    with zipfile.ZipFile(tmp_path / "out/comparison.zip") as archive:
        assert sorted(archive.namelist()) == [
            "compIOPSPlt.png", "compLATPlt.png", "compTPPlt.png", "compWriteSatIOPSPlt.png",
            "comparison.csv", "comparison.html", "comparison.pdf",
        ]  # fmt: skip
        assert archive.read("compIOPSPlt.png").startswith(b"\x89PNG")
        assert archive.read("comparison.pdf").startswith(b"%PDF")
    alone = CliRunner().invoke(cli, ["compare", *files, "-z"])
    assert isinstance(alone.exception, UsageError)
