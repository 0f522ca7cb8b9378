"""Tests that the report can show without special code. Examples are grids, offered rates, block mixes and streams."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import run_info, simulate, view_of, work
from tests.charts import rows_of
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.details import build_details
from tkperf.analysis.run_results import analyse
from tkperf.model.figures import FigureKind, SectionPlan, drawn, generic_section, over_rounds
from tkperf.model.phases import Continuous, Procedure, Purge, SectionOutcome
from tkperf.model.quantity import CPU, IOPS, LATENCY_MAX, LATENCY_MEAN
from tkperf.model.units import format_number
from tkperf.model.workload import Arrival, BlockShare, Step, Workload, Zone
from tkperf.page import sections
from tkperf.page.chart import Bars3D
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.figures import section_figures as figures
from tkperf.page.figures.cells import order_axes
from tkperf.page.naming import Naming, name_links
from tkperf.page.page import ChartView, ReportView
from tkperf.page.view import build_view
from tkperf.procedures import Test
from tkperf.procedures.building_blocks import rounds_until_steady, track_iops
from tkperf.procedures.profiles import Profile
from tkperf.render.html import render_view
from tkperf.runfile.reader import RunFile

GRID = tuple(work(70, 8192, jobs=jobs, io_depth=depth) for jobs in (1, 2, 4, 8) for depth in (1, 16))
STREAM = "Endless"
ALL_KINDS_OF_A_GRID = (
    drawn(FigureKind.BARS_3D, IOPS.key),
    drawn(FigureKind.BARS_3D, CPU.key),
    drawn(FigureKind.MATRIX, LATENCY_MAX.key),
    drawn(FigureKind.AGAINST, LATENCY_MEAN.key, IOPS.key),
    drawn(FigureKind.OVER_DEMAND, IOPS.key),
    drawn(FigureKind.OVER_AXIS, IOPS.key, axis="io_depth"),
    drawn(FigureKind.OVER_AXIS, IOPS.key, axis="block_size"),
    over_rounds(IOPS.key, "Of the most threads", most_threads=True),
)


def made_up_test(workloads: Sequence[Workload]) -> Test:
    """Return a test with an unknown name. The test runs rounds of these workloads and then a stream of the first
    workload.
    """

    def procedure(profile: Profile, _length_bytes: int) -> Procedure:
        yield Purge(section="Grid")
        steps = tuple(Step(workload=each, duration_s=1) for each in workloads)
        tracked = track_iops(workloads[0], "The first's")
        yield (yield from rounds_until_steady("Grid", steps, profile.steady_state, (tracked,)))
        for number in range(1, 4):
            yield Continuous(section=STREAM, number=number, workload=workloads[0], duration_s=2, longest_s=6)
        yield SectionOutcome(section=STREAM, window=(), verdict=None, ended_because="enough")

    def section_plan(name: str) -> SectionPlan:
        plan = generic_section(name, stream=name == STREAM)
        return replace(plan, figures=(*plan.figures, *ALL_KINDS_OF_A_GRID))

    return Test(name="grid", title="Made up", procedure=procedure, section_plan=section_plan)


def run_of(folder: Path, workloads: Sequence[Workload]) -> Path:
    test = made_up_test(workloads)
    simulate(folder, run_info(), suite={test.name: test})
    return folder / "run.tkperf"


def charts_of(view: ReportView, section: int) -> dict[str, ChartView]:
    """Return every view of every chart in a section. The key of a view is its name."""
    charts = view.tests[0].sections[section].charts
    return {each.key: each for chart in charts for each in chart.views}


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("grid"), GRID)


def test_every_kind_of_figure_can_be_drawn() -> None:
    of_tests = {*sections._BUILD, FigureKind.SECTIONS}
    assert {*figures.BUILD, *of_tests} == set(FigureKind)
    assert not set(figures.BUILD) & of_tests


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_a_grid_of_threads_and_depths_is_a_matrix(grid: Path) -> None:
    """A grid of threads and queue depths is shown as a matrix with a row for each thread count and a column for each
    queue depth. Each of the eight cells is in the matrix, and reads and writes have separate tables.
    """
    view = view_of(grid)
    iops, _, _, maximum, *apart = view.tests[0].sections[0].tables
    assert maximum.title.startswith("Maximum latency (ms) by TC and QD, greatest of rounds ")
    assert iops.title.startswith("IOPS by TC and QD, mean of rounds ")
    assert iops.columns == ("TC", "QD 1", "QD 16")
    assert [row[0] for row in iops.rows] == ["1", "2", "4", "8"]
    cells = {cell.key: dict(cell.scopes[0].facts) for cell in view.cells}
    for row, links in zip(iops.rows, iops.links, strict=True):
        for text, link in zip(row[1:], links, strict=True):
            # A figure with an uncertainty has only as many digits as its uncertainty permits.
            opened = cells[link]["IOPS"].split(" ±")[0]
            assert number(opened) == pytest.approx(number(text), rel=5e-3)
    assert len({link for links in iops.links for link in links}) == 8
    assert iops.links[1] == ("grid0-70-8192-tc2-qd1", "grid0-70-8192-tc2-qd16")
    assert apart[0].folded
    assert apart[0].columns == ("Workload", "read", "write", "all")
    assert len(apart[0].rows) == 8
    read = cells["grid0-70-8192-tc2-qd16"]["Reads"]
    assert f"IOPS {apart[0].rows[3][1]}, " in read


def test_a_grid_of_threads_and_depths_has_its_charts(grid: Path) -> None:
    """A grid has charts over threads with a curve for each depth, charts over all rounds, and eight bars."""
    charts = charts_of(view_of(grid), 0)
    assert list(charts) == [
        "grid0relative",
        "grid0convergence",
        "grid0window",
        "grid02d",
        "grid03d",
        "grid0against",
        "grid0outstanding",
        "grid02d2",
        "grid0convergence2",
    ]
    assert {row["series"] for row in rows_of(charts["grid0convergence"])} == {
        f"TC{jobs} QD{depth}" for jobs in (1, 2, 4, 8) for depth in (1, 16)
    }
    over_threads = rows_of(charts["grid02d"])
    assert [(row["x"], row["series"]) for row in over_threads[:5]] == [
        ("1", "1"),
        ("2", "1"),
        ("4", "1"),
        ("8", "1"),
        ("1", "16"),
    ]
    bars = charts["grid03d"].chart
    assert isinstance(bars, Bars3D)
    assert len(set(bars.places)) == 8


def test_a_grid_is_a_heat_map(grid: Path) -> None:
    """The table of a grid is a heat map. The cell with the greatest value is the darkest, the cell with the least value
    is the lightest, and all other cells are shaded in the order of their values.
    """
    table = view_of(grid).tests[0].sections[0].tables[0]
    assert [len(shades) for shades in table.heat] == [2] * 4
    cells = sorted(
        (float(text.replace(",", "")), shade)
        for row, shades in zip(table.rows, table.heat, strict=True)
        for text, shade in zip(row[1:], shades, strict=True)
        if shade is not None
    )
    shades = [shade for _, shade in cells]
    assert len(cells) == 8
    assert (shades[0], shades[-1]) == (0, 1)
    assert shades == sorted(shades)


def test_latency_against_iops_has_a_curve_for_each_thread_count(grid: Path) -> None:
    """The chart of latency against IOPS has one curve for each thread count. The points of a curve are in the order of
    increasing queue depth.
    """
    view = view_of(grid)
    rows = rows_of(charts_of(view, 0)["grid0against"])
    assert {row["series"] for row in rows} == {"1", "2", "4", "8"}
    for threads in "1248":
        assert [row["QD"] for row in rows if row["series"] == threads] == ["QD1", "QD16"]
    iops, _, latency, *_ = view.tests[0].sections[0].tables
    first = next(row for row in rows if (row["series"], row["QD"]) == ("1", "QD1"))
    assert format_number(first["x"]) == iops.rows[0][1]
    assert format_number(first["value"]) == latency.rows[0][1]


def test_over_outstanding_ios_no_cell_is_left_out(grid: Path) -> None:
    """The chart over outstanding I/Os contains all eight cells. The position of a cell is its thread count times its
    queue depth.
    """
    rows = rows_of(charts_of(view_of(grid), 0)["grid0outstanding"])
    assert sorted(row["x"] for row in rows) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert [row["Demand"] for row in rows if row["x"] == 16] == ["TC1 QD16"]


def test_curves_over_an_axis_that_is_asked_for(grid: Path) -> None:
    """A chart over queue depth has a curve for each thread count. A chart over block sizes is omitted if the block size
    does not vary.
    """
    charts = charts_of(view_of(grid), 0)
    assert "grid02d3" not in charts
    rows = rows_of(charts["grid02d2"])
    assert {(row["x"], row["series"]) for row in rows} == {
        (depth, threads) for depth in ("1", "16") for threads in "1248"
    }


def test_over_rounds_of_the_most_threads_alone(grid: Path) -> None:
    """The chart over rounds shows only the curves with the most threads, because the other curves would hide the curves
    for which steady state was judged.
    """
    rows = rows_of(charts_of(view_of(grid), 0)["grid0convergence2"])
    assert {row["series"] for row in rows} == {"1", "16"}
    assert len(rows) == 2 * len({row["x"] for row in rows})


def test_curves_are_told_apart_by_what_differs_alone() -> None:
    """The name of a curve contains only the fields in which the curves differ. In a chart over block sizes, the curve
    of each mix and depth includes all sizes.
    """
    loads = [work(mix, size, io_depth=depth) for mix in (100, 0) for size in (4096, 8192) for depth in (1, 8)]
    _, *others = order_axes(loads)
    naming = Naming(axes=tuple(others))
    assert naming.title == "R/W %, QD"
    assert {naming.name_of(load) for load in loads} == {
        f"R/W {mix} QD{depth}" for mix in ("100/0", "0/100") for depth in (1, 8)
    }


def test_an_unknown_test_is_shown_by_what_was_recorded(grid: Path) -> None:
    """A test without a plan in its file is shown with all recorded data: tables, curves over rounds and over time,
    every second, and tail latencies.
    """
    with RunFile(grid) as run_file:
        record = run_file.record()
        seconds = {test.name: run_file.seconds(test) for test in record.tests}
    record = replace(record, tests=tuple(replace(test, plan=None) for test in record.tests))
    result = analyse(record)
    view = build_view(result, details=build_details(result, record, seconds))
    rounds, stream = view.tests[0].sections
    assert [table.title.split(" by ")[0] for table in rounds.tables[:3]] == [
        "IOPS",
        "Throughput (MB/s)",
        "Mean latency (µs)",
    ]
    assert [chart.key for chart in rounds.charts] == ["grid0relative", "grid0window", "grid02d"]
    assert [[each.key for each in chart.views] for chart in stream.charts] == [
        ["grid1time", "grid1seconds"],
        ["grid1time2", "grid1time3", "grid1seconds2"],
        ["grid1rth", "grid1exceedance"],
    ]
    assert [len(found.sentences) > 1 for found in view.findings] == [True]
    assert {headline.section for headline in view.headlines} == {"grid0", "grid1"}
    assert "Endless" in render_view(view)


def test_unknown_tests_are_compared(grid: Path) -> None:
    """Tests without a plan can be compared. The comparison has a row for each workload, curves over the demand, and
    streams over time with their histograms.
    """
    with RunFile(grid) as run_file:
        result = analyse(run_file.record())
    view = build_comparison_page(compare([result, result]))
    (test,) = view.tests
    table = test.sections[0].tables[-1]
    assert table.columns[:5] == ("Block size (KiB)", "R/W %", "TC", "QD", "")
    assert len({row[:4] for row in table.rows}) == 8
    views = {view.key for chart in test.charts for view in (chart, *chart.views)}
    assert {"grid0-outstanding", "grid0-against", "grid1-over_time", "grid1-histogram", "grid1-exceedance"} <= views


def test_three_fields_make_no_3d_bars(tmp_path: Path) -> None:
    """If three fields vary, the table has two columns of names. No 3D bars are drawn, because a bar for two fields
    would cover several workloads.
    """
    several = [work(mix, 4096, jobs=jobs, io_depth=depth) for mix in (0, 100) for jobs in (1, 2) for depth in (1, 2)]
    view = view_of(run_of(tmp_path, several))
    table = view.tests[0].sections[0].tables[0]
    assert (table.labels, table.columns) == (2, ("TC", "QD", "0/100", "100/0"))
    assert all(len(links) == 2 and all(links) for links in table.links)
    assert "grid03d" not in charts_of(view, 0)
    assert {row["series"] for row in rows_of(charts_of(view, 0)["grid02d"])} == {
        f"TC{jobs} QD{depth}" for jobs in (1, 2) for depth in (1, 2)
    }
    assert '<th scope="row">1</th>\n    <th scope="row">2</th>' in render_view(view)


def test_links_of_mixes_and_sizes_are_those_of_earlier_reports() -> None:
    several = [work(mix, size) for mix in (0, 65, 100) for size in (512, 4096)]
    assert [*name_links("iops0", several).values()][:3] == ["iops0-0-512", "iops0-0-4096", "iops0-65-512"]


def test_links_are_different_whatever_differs() -> None:
    """Two workloads that differ in any field have different links. Each link contains only characters that an address
    can contain.
    """
    plain = work(0, 65536)
    several = [
        plain,
        replace(plain, offered_iops=1000.0),
        replace(plain, offered_iops=1000.25),
        replace(plain, offered_iops=1000.0, arrival=Arrival.POISSON),
        replace(plain, block_mix=(BlockShare(4096, 60), BlockShare(65536, 40))),
        replace(plain, block_mix=(BlockShare(4096, 40), BlockShare(65536, 60))),
        replace(plain, zones=(Zone(50, 5), Zone(50, 95))),
        replace(plain, compressible_percent=50),
        # If numbers had only six digits, these values would be equal.
        replace(plain, offered_iops=1234567.1),
        replace(plain, offered_iops=1234567.2),
    ]
    links = [*name_links("grid0", several).values()]
    assert len(set(links)) == len(several)
    assert all(re.fullmatch(r"[A-Za-z0-9.-]+", link) for link in links)
