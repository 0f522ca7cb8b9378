"""The decision of a comparison fits into the terminal, and contains the same statements as the page."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.analysis.test_decision import READ, SINGLE, WRITE, run_of
from tests.analysis.test_ranking import run_of as figures_of
from tkperf.analysis.comparing.comparison import Arrangement, compare
from tkperf.analysis.comparing.ranking import rank_runs
from tkperf.model.units import KIB, MIB
from tkperf.model.workload import Access, Workload
from tkperf.page.chart import Axis, Chart, Curve, Point, Scale
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.comparison.ranking_page import build_ranking_view
from tkperf.render.terminal.comparison_text import _shorten, draw_curves, draw_list, draw_matrix, print_decision
from tkperf.render.terminal.histories import UNICODE

WORKLOADS = {
    mix: Workload(access=Access.RANDOM, read_percent=mix, block_size_bytes=4 * KIB, jobs=4, io_depth=32)
    for mix in (0, 65, 100)
}


@pytest.mark.parametrize("count", [2, 4, 12])
def test_a_matrix_fits_a_terminal_and_has_every_cell(count: int) -> None:
    """A matrix fits into a terminal and contains every cell. If some columns do not fit into the width of the terminal,
    they are printed below the others.
    """
    runs = [run_of(f"drive-{n}", {READ: 100.0 + 10 * n, WRITE: 10.0, SINGLE: 5.0 + n}) for n in range(count)]
    view = build_comparison_page(compare(runs, Arrangement.RUNS)).decision
    assert view is not None
    file = io.StringIO()
    print_decision(view, Console(file=file, width=80, force_terminal=True, no_color=True, highlight=False))
    lines = file.getvalue().splitlines()
    plain = [line.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, plain)) <= 80
    text = "\n".join(plain)
    for row in view.rows:
        for cell in row.cells:
            assert cell.short_line in text
    assert all(name in text for name, _ in view.lines)


@pytest.mark.parametrize("count", [2, 4, 12])
@pytest.mark.parametrize("width", [80, 200])
def test_a_matrix_is_as_long_as_a_screen(count: int, width: int) -> None:
    """A matrix of eight figures has at most 32 lines in a terminal of any usual width.

    If the matrix is too long, its bars are omitted first. If it is still too long, words that its column headings
    already state are also omitted.
    """
    loads = {
        **{WORKLOADS[mix]: 123_456.0 for mix in (0, 65, 100)},
        **{replace(WORKLOADS[mix], access=Access.SEQUENTIAL, block_size_bytes=MIB): 3456.0 for mix in (0, 100)},
        **{replace(WORKLOADS[mix], jobs=1, io_depth=1): 78.9 for mix in (0, 100)},
    }
    runs = [run_of(f"drive-{n:02}", {load: value * (1 + n / 3) for load, value in loads.items()}) for n in range(count)]
    view = build_comparison_page(compare(runs, Arrangement.RUNS)).decision
    assert view is not None
    assert len(view.columns) == 7
    lines = [line.plain for line in draw_matrix(view, width, UNICODE)]
    assert len(lines) <= 32
    assert max(map(len, lines)) <= width
    assert any("±" in line for line in lines) == (count == 2 or (count, width) == (4, 200))


def test_without_unicode_the_signs_are_letters() -> None:
    view = build_comparison_page(compare([run_of("A", {READ: 100.0}), run_of("B", {READ: 200.0})])).decision
    assert view is not None
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    print_decision(view, Console(file=file, width=80))
    said = raw.getvalue().decode("ascii")
    assert "200 ^" in said
    assert "100.0 v" in said
    assert "2.0 x less" in said


def test_curves_of_all_runs_are_on_one_scale() -> None:
    """The curves of all runs have a common scale. A run that is half as fast has lower bars. A run that ended earlier
    has no bars after its end.
    """
    chart = Chart(
        title="t",
        x=Axis(title="Time (h)"),
        y=Axis(title="IOPS", scale=Scale.LINEAR),
        curves=(
            Curve(name="A", points=tuple(Point(float(x), 80.0) for x in range(120))),
            Curve(name="B", points=tuple(Point(float(x), 40.0) for x in range(60))),
        ),
    )
    _, title, scale, *curves = (line.plain for line in draw_curves(chart, 100, UNICODE))
    assert title == "t"
    assert scale.startswith("IOPS, bars from 0.0 to 80.0")
    first, second = ([each for each in line if each in UNICODE.heights] for line in curves)
    assert set(first) == {UNICODE.heights[-1]}
    assert set(second) == {UNICODE.heights[4]}
    assert len(second) < len(first)
    long = replace(chart, title="Mean latency by block size and R/W mix: R/W 100/0")
    lines = [line.plain for line in draw_curves(long, 40, UNICODE)]
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()).startswith(long.title)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_list_of_drives_shows_each_reason_in_full(width: int) -> None:
    """A list of drives never truncates reasons, models, capacities or interfaces. Text that does not fit into its
    column continues on the next line.
    """
    device = {"model": "INTEL SSDSC2KB960G8", "capacity_bytes": 960_197_124_096, "interface": "SATA"}
    runs = [figures_of(name, value, device=device) for name, value in (("A", 100.0), ("B", 200.0))]
    odd = figures_of("odd", device=device, active_range_length_bytes=1 << 29, ioengine="libaio")
    ranking = rank_runs([*runs, odd], "random_read")
    view = build_ranking_view(ranking, {name: name for name in ("A", "B", "odd")})
    lines = [line.plain for line in draw_list(view, width, UNICODE)][2:]
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    for expected in ("2.0 × less", "INTEL SSDSC2KB960G8, 960 GB, SATA", view.rows[2].cells[0].words):
        assert expected in words


def test_values_in_little_room_keep_four_digits_and_have_no_exponent() -> None:
    """Values in a narrow column keep four digits and have no exponent, even above 10 million IOPS."""
    shown = {"7,310": "7,310", "12,345": "12.35k", "322,000": "322k", "9,999,960": "10000k"}
    shown |= {"12,500,000": "12500k", "123,456,789": "123500k", "78.9": "78.9"}
    assert {text: _shorten(text) for text in shown} == shown
