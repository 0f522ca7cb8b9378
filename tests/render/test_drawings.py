"""Curves over time and histograms that ``tkperf show`` draws contain the same data as the tables."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.builders import run_info, simulate, view_of
from tkperf.model.figures import FigureKind
from tkperf.page.chart import Axis, Chart, HeatMap, Point, Slice
from tkperf.page.figures.curves import spread_in_bins
from tkperf.page.page import ChartView, ReportView
from tkperf.procedures import SSD_TESTS
from tkperf.render.terminal.drawings import draw_course, draw_heat_maps, draw_histogram, print_charts, spread_over
from tkperf.render.terminal.histories import ASCII, UNICODE

Charts = tuple[ChartView, ...]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> ReportView:
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info())
    return view_of(folder / "run.tkperf")


def stream_of(view: ReportView) -> Charts:
    return next(
        section.charts
        for test in view.tests
        for section in test.sections
        if any(has(section.charts, kind) for kind in (FigureKind.OVER_TIME,))
    )


def has(charts: Charts, kind: FigureKind) -> bool:
    return any(each.figure and each.figure.kind is kind for chart in charts for each in chart.views)


def test_spread_ios_stay_as_many_and_a_bin_is_as_wide_as_the_next() -> None:
    """If a bucket covers two bins, its I/Os are distributed over both bins, and the total number of I/Os does not
    change. Ten bins cover a factor of ten.
    """
    first, ios = spread_in_bins([(10.0, 1000.0, 200), (1000.0, 1100.0, 7)], 1)
    assert first == 1
    assert ios == pytest.approx([100, 100, 7])
    first, ios = spread_in_bins([(1.0, 10.0, 1000)], 10)
    assert (first, len(ios)) == (0, 10)
    assert ios == pytest.approx([100] * 10)


def test_a_wide_bucket_makes_no_step() -> None:
    """A smooth distribution is drawn without a jump at a power of two, where the width of fio's buckets doubles."""
    buckets = [(edge, edge * 1.02, 2) for edge in (1.02**n for n in range(0, 200, 2))]
    wide = [(edge, edge * 1.02**2, 2) for edge in (1.02**n for n in range(1, 200, 2))]
    _, ios = spread_in_bins([*buckets[:50], *wide[50:]], 8)
    inner = ios[1:-1]
    assert max(inner) / min(inner) < 1.4


def test_no_ios_in_between_are_an_empty_place() -> None:
    first, ios = spread_in_bins([(1.0, 1.01, 5), (100.0, 101.0, 5)], 2)
    assert (first, len(ios)) == (0, 5)
    assert [round(value, 6) for value in ios[1:4]] == [0, 0, 0]


def test_a_histogram_has_its_scale_below_and_the_greatest_share_beside(view: ReportView) -> None:
    """A histogram in the terminal shows its scale below the bars, and the greatest share of I/Os at the left of the
    bars.
    """
    lines = [line.plain for line in draw_histogram(stream_of(view), 80, UNICODE)]
    assert lines[1].startswith("Response time histogram")
    assert lines[1].endswith("; share of the I/Os in bins of equal width")
    bars, axis = lines[2:-1], lines[-1]
    assert len(bars) == 6
    assert bars[0].split()[1] == "%"
    assert "|100 µs" in axis or "|1 ms" in axis
    assert max(map(len, lines[2:])) <= 80


def test_a_stream_is_drawn_over_its_time(view: ReportView) -> None:
    """In the terminal, a stream is drawn over time with one line for each curve. The number of views of the chart does
    not matter.
    """
    lines = [line.plain for line in draw_course(stream_of(view), 80, UNICODE)]
    assert lines[1].startswith("Time (")
    names = [line.split("  ")[0] for line in lines[2:]]
    assert names[0] == "IOPS"
    assert len(set(names)) == len(names)
    assert max(map(len, lines)) <= 80


def test_points_are_spread_by_their_place() -> None:
    """A gap in time is a gap in the drawn line. If several points lie in one column of characters, their mean is
    drawn.
    """
    points = [Point(x, y) for x, y in ((0, 1.0), (1, 3.0), (9, 5.0))]
    axis = Axis(title="Time (s)", includes=(10.0,))
    assert spread_over(points, axis, 2) == [2.0, 5.0]
    assert spread_over([*points, Point(9.5, None)], axis, 3) == [2.0, None, 5.0]
    assert spread_over(points, axis, 3) == [1.0, 3.0, 5.0]
    # A damaged run file may contain a point before the beginning, such as the first point here.
    assert spread_over([Point(-9e9, 1.0), *points[1:]], axis, 2) == [2.0, 5.0]


def test_rounds_are_drawn_cell_by_cell(view: ReportView) -> None:
    charts = view.tests[0].sections[0].charts
    lines = [line.plain for line in draw_course(charts, 80, UNICODE)]
    assert lines[1].startswith("IOPS (% of the window's value), round by round; Block size (KiB) down")
    drawn = {
        curve.name
        for chart in charts
        for each in chart.views
        if each.figure and each.figure.kind is FigureKind.OVER_ROUNDS
        if isinstance(each.chart, Chart)
        for curve in each.chart.curves
    }
    assert len(lines) - 2 - ("R/W" in lines[2]) == len(drawn)
    assert max(map(len, lines)) <= 80


def draw_map(slices: tuple[Slice, ...], width: int) -> list[str]:
    edges_us = (100.0, 1000.0, 10_000.0)
    chart = HeatMap(title="Response times", x=Axis(title="Time (h)"), edges_us=edges_us, slices=slices)
    view = ChartView(key="heat", text="", chart=chart)
    return [line.plain for line in draw_heat_maps((view,), width, UNICODE)]


def test_a_heat_map_has_a_row_for_each_band_and_a_shade_for_each_share() -> None:
    """The fastest band is the lowest row of a heat map. The shade of a cell shows which share of the I/Os in its column
    the cell contains. The limits between two shades are exact. A period without measurements is blank, and a band
    without I/Os is also blank.
    """
    every = ((1, 9), (1, 99), (1, 999), (1, 9999), (1, 10_000))
    slices = [Slice(number, number + 1, ios) for number, ios in enumerate(every)]
    slices += [Slice(7, 8, (0, 5)), Slice(8, 9, (0, 0)), Slice(9, 10, (3, 0))]
    _, title, slow, fast, axis, key = draw_map(tuple(slices), 80)
    assert title.startswith("Response times")
    assert slow == "1.000 ms █████  █"
    assert fast == "100.0 µs █▓▒░·    █"
    assert axis.split() == ["0", "10", "h"]
    assert key == "█ from 10 %, ▓ from 1 %, ▒ from 0.1 %, ░ from 0.01 %, · less"


def test_a_heat_map_fits_a_narrow_terminal_and_counts_all_ios() -> None:
    """In a narrow terminal, neighbouring columns of a heat map are merged, and no column between them is blank."""
    slices = tuple(Slice(number, number + 1, (1, 1)) for number in range(100))
    for width in (30, 45, 80):
        lines = draw_map(slices, width)
        assert max(map(len, lines[2:5])) <= width
        assert all(set(line[9:]) == {"█"} for line in lines[2:4])


def test_streams_of_a_run_have_heat_maps_in_the_terminal(tmp_path: Path) -> None:
    """The stream of the host idle recovery test has a heat map that fits into 80 columns."""
    simulate(tmp_path, run_info(), suite={"hir": SSD_TESTS["hir"]})
    lines = [line.plain for line in draw_heat_maps(stream_of(view_of(tmp_path / "run.tkperf")), 80, UNICODE)]
    assert lines[1].startswith("Response times over time")
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80


def test_a_section_without_charts_has_no_drawings() -> None:
    assert list(draw_course((), 80, UNICODE)) == []
    assert list(draw_histogram((), 80, UNICODE)) == []


def test_a_terminal_without_blocks_or_colours_gets_neither(view: ReportView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    class Plain(io.StringIO):
        encoding = "ascii"

    for charts in (stream_of(view), view.tests[0].sections[0].charts):
        file = Plain()
        print_charts(charts, Console(file=file, width=80, force_terminal=True))
        drawn = file.getvalue()
        assert drawn.isascii()
        assert any(character in drawn for character in ASCII.heights)
        assert "\x1b[3" not in drawn  # such an escape sequence would set a colour


def test_a_run_under_way_says_where_it_is_and_nothing_else(tmp_path: Path) -> None:
    """If a run is in progress, its current step is printed. The output never states that a section ended or that a test
    failed.
    """
    from tests.runfile.runs import a_run
    from tkperf.cli.ending import print_run

    path, writer = a_run(tmp_path, steps=2)
    with pytest.MonkeyPatch.context() as changed:
        file = io.StringIO()
        changed.setattr("tkperf.cli.ending.open_console", lambda: Console(file=file, width=100))
        print_run(path, full=True)
        writer.close()
    shown = file.getvalue()
    (line,) = [line for line in shown.splitlines() if line.startswith("going on: ")]
    assert line.startswith("going on: test 1 of 1, ")
    for wrong in ("did not end", "still going on", "interrupted", "nobody knows", "run running"):
        assert wrong not in shown
    assert "it is going on" in shown
