"""A click on a figure opens the data of the figure. With the keyboard, a reader can reach the other parts of the same
cell.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import tkperf
from tests.builders import run_info, simulate, view_of
from tests.page.test_view import unpack
from tests.render.visits import Visit, new_page, unpack_spec
from tkperf.analysis.results import SectionResult
from tkperf.model.quantity import IOPS, IOS, LATENCY_MAX, PERCENTILES, THROUGHPUT, Quantity
from tkperf.model.units import format_number
from tkperf.page.figures.curves import BINS_A_DECADE, spread_in_bins
from tkperf.page.words.uncertainty import add_interval
from tkperf.procedures import HDD_TESTS, SSD_TESTS
from tkperf.render.html import render_view

CELL = "iops0-0-4096"
TITLE = "#cell-title"
BARS = "#cell-plots > :nth-child(3) g.mark-rect.role-mark path"
# This drive never becomes steady, so each window consists of the last rounds.
pytestmark = pytest.mark.report_of("iops", preset="unsteady")


def told(visit: Visit, quantity: str) -> str:
    """Return the value of a quantity in the dialog, without its uncertainty."""
    names = visit.page.locator("dialog dt").all_inner_texts()
    values = visit.page.locator("dialog dd").all_inner_texts()
    return dict(zip(names, values, strict=True))[quantity].split(" ")[0]


def section_of(visit: Visit) -> SectionResult:
    """Return the only section of the only test."""
    ((section,),) = [test.sections for test in tkperf.load(visit.path.parent / "run.tkperf").tests]
    return section


def test_a_figure_of_a_window_opens_its_rounds(visit: Visit) -> None:
    """A click on a figure of a window opens the cell of the figure. The cell shows the same number, a histogram of the
    I/Os of the window, and a title that names the rounds.
    """
    section = section_of(visit)
    cell = next(
        each for each in section.cells if (each.workload.read_percent, each.workload.block_size_bytes) == (0, 4096)
    )
    window = section.window
    assert len(window) < len(section.rounds)
    visit.open()
    visit.page.locator(f"td button[data-cell='{CELL}']").click()
    visit.wait_for_part(CELL, "window")
    assert f"rounds {window[0]} to {window[-1]}, the window" in visit.page.inner_text(TITLE)
    shown = add_interval(cell.value(IOPS), cell.uncertainty_of(IOPS))
    assert told(visit, "IOPS") == shown.split(" ")[0]
    assert told(visit, "I/Os") == format_number(cell.value(IOS), IOS.digits)


def test_the_whole_and_each_round_are_a_key_away(visit: Visit) -> None:
    """The list of parts in the dialog can be used with the arrow keys. The buttons near the list select the previous
    and the next part.
    """
    section = section_of(visit)
    visit.open(f"#{CELL}")
    visit.wait_for_part(CELL, "window")
    select = visit.page.locator("#cell-scope")
    texts = select.locator("option").all_inner_texts()
    numbers = [each.number for each in section.rounds]
    assert texts[1:] == [f"all {len(numbers)} rounds", *(f"round {number}" for number in numbers)]
    select.focus()
    visit.page.keyboard.press("ArrowDown")
    visit.wait_for_part(CELL, "all")
    assert f"all {len(numbers)} rounds" in visit.page.inner_text(TITLE)
    every = sum(
        each.value(IOS) or 0
        for of_round in section.rounds
        for each in of_round.cells
        if (each.workload.read_percent, each.workload.block_size_bytes) == (0, 4096)
    )
    assert told(visit, "I/Os") == format_number(every, IOS.digits)
    visit.page.locator("#cell-after").press("Enter")
    visit.wait_for_part(CELL, "1")
    first = next(
        each
        for each in section.rounds[0].cells
        if (each.workload.read_percent, each.workload.block_size_bytes) == (0, 4096)
    )
    assert visit.page.inner_text(TITLE).endswith(": round 1")
    assert told(visit, "IOPS") == format_number(first.value(IOPS), IOPS.digits)
    assert visit.page.url.endswith(f"#{CELL}/1")
    # The parts that were shown since then add no entries to the history of the browser.
    visit.page.keyboard.press("Escape")
    visit.page.wait_for_selector("dialog:not([open])", state="attached")


def test_a_round_of_the_table_is_shown_by_its_number(visit: Visit) -> None:
    visit.open(f"#{CELL}")
    visit.wait_for_part(CELL)
    visit.page.locator("#cell-rounds summary").click()
    visit.page.locator("#cell-rounds tbody button").nth(1).click()
    visit.wait_for_part(CELL, "2")
    assert visit.page.inner_text(TITLE).endswith(": round 2")


def test_a_parts_histogram_is_its_own(visit: Visit) -> None:
    """The histogram of a round contains exactly the I/Os of this round. When the reader selects the window again, the
    histogram of the window is shown.
    """
    visit.open(f"#{CELL}")
    visit.wait_for_part(CELL, "window")
    (cell,) = (each for each in view_of(visit.path.parent / "run.tkperf").cells if each.key == CELL)
    assert cell.apart is not None
    counts = unpack(cell.apart.counts)
    rounds = counts.reshape(len(cell.apart.numbers), -1)
    section = section_of(visit)
    measured = [
        each.value(IOS)
        for of_round in section.rounds
        for each in of_round.cells
        if (each.workload.read_percent, each.workload.block_size_bytes) == (0, 4096)
    ]
    assert rounds.sum(axis=1).tolist() == measured
    of_window = visit.count(BARS)
    visit.page.select_option("#cell-scope", label="round 2")
    visit.wait_for_part(CELL, "2")
    assert 0 < visit.count(BARS) < of_window
    visit.page.select_option("#cell-scope", value="window")
    visit.wait_for_part(CELL, "window")
    assert visit.count(BARS) == of_window


@pytest.mark.report_of("writesat", preset="unsteady")
def test_a_slice_of_a_stream_opens_that_slice(visit: Visit) -> None:
    """A click on a slice of a stream opens the figures of this slice. Its percentiles are marked in the histogram of
    the slice.
    """
    section = section_of(visit)
    last = section.slices[-1]
    visit.open()
    row = visit.page.locator("#writesat0 table[role='grid'] tbody tr").filter(has_text="(last)")
    row.locator("button").last.click()
    visit.page.wait_for_selector(f"dialog[data-part='{last.number}']")
    assert visit.page.inner_text(TITLE).endswith(f": slice {last.number}")
    slowest = last.values.value(LATENCY_MAX)
    assert told(visit, "Maximum latency (µs)") == format_number(slowest, LATENCY_MAX.digits)
    assert visit.page.inner_text("#cell-clicked").startswith("Marked in the histogram: max, ")


@pytest.mark.report_of("writesat", preset="unsteady")
def test_a_figure_of_a_whole_stream_opens_the_stream(visit: Visit) -> None:
    section = section_of(visit)
    visit.open()
    visit.page.locator("#writesat0 table[role='grid'] tbody tr").last.locator("button").first.click()
    visit.page.wait_for_selector("dialog[data-shown]")
    ios = sum(each.values.value(IOS) or 0 for each in section.slices)
    assert visit.page.locator("#cell").get_attribute("data-part") == "all"
    assert visit.page.inner_text(TITLE).endswith(f"all {len(section.slices)} slices")
    assert told(visit, "I/Os") == format_number(ios, IOS.digits)


@pytest.mark.report_of("writesat", preset="unsteady")
def test_a_point_of_a_stream_opens_its_slice(visit: Visit) -> None:
    """A click on a point of a stream opens the slice of the point, as a click on a figure in the table does. If the
    point is a percentile, the percentile is marked in the histogram.
    """
    visit.open()
    spec = unpack_spec(visit.page.locator("#writesat0time script").first.inner_text())
    rows = spec["datasets"]["curves"]
    points = visit.page.locator("#writesat0time g.mark-symbol.role-mark path")
    points.nth(1).scroll_into_view_if_needed()
    points.nth(1).click(force=True)
    visit.page.wait_for_selector("dialog[data-shown]")
    assert visit.page.locator("#cell").get_attribute("data-part") == rows[1]["cell"].split("/")[1]


@pytest.mark.report_of("iops", "lat", preset="unsteady")
@pytest.mark.parametrize(("chart", "part"), [("iops02d", "window"), ("iops0relative", "1"), ("lat0window", "")])
def test_a_point_of_a_chart_of_cells_opens_its_cell(visit: Visit, chart: str, part: str) -> None:
    """A click on a point that shows a mean over the window opens the window. A click on a point in a chart over rounds
    opens the round.
    """
    visit.open()
    points = visit.page.locator(f"#{chart} g.mark-symbol.role-mark path")
    points.first.scroll_into_view_if_needed()
    points.first.click(force=True)
    visit.page.wait_for_selector("dialog[data-shown]")
    latency = tkperf.load(visit.path.parent / "run.tkperf").tests[1].sections[0]
    first = latency.window_verdicts[0].rounds[0]
    shown = visit.page.locator("#cell").get_attribute("data-part")
    assert shown == (part or str(first))


@pytest.mark.report_of("iops", "lat", preset="unsteady")
@pytest.mark.parametrize("quantity", [each for each in PERCENTILES if each.short in ("p50", "p99")])
def test_a_percentile_is_marked_in_the_histogram(visit: Visit, quantity: Quantity) -> None:
    """A percentile is marked in the histogram with a separate line at its value."""
    line = "#cell-plots g.mark-rule.role-mark line[stroke='#9467BD']"
    visit.open()
    button = visit.page.locator(f"button[data-cell$='//{quantity.short}']").first
    shown = button.inner_text().rstrip("*!")
    button.click()
    visit.page.wait_for_selector("dialog[data-shown]")
    assert visit.count(line) == 2
    words = visit.page.inner_text("#cell-clicked")
    assert words.startswith(f"Marked in the histogram: {quantity.short}, ")
    number, unit = words.split(", ", 1)[1].split(" ")
    marked_us = float(number.replace(",", "")) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]
    # The table uses a unit that suits its values.
    in_table = float(shown.replace(",", ""))
    assert any(marked_us == pytest.approx(in_table * us, rel=0.01) for us in (1, 1e3, 1e6))
    # The percentile is also marked in the histogram of each round.
    visit.page.locator("#cell-scope").select_option(index=1)
    visit.page.wait_for_selector("dialog[data-shown]")
    assert visit.page.inner_text("#cell-clicked").startswith(f"Marked in the histogram: {quantity.short}, ")
    visit.page.locator("dialog form button").click()
    visit.page.locator(f"td button[data-cell='{CELL}']").click()
    visit.wait_for_part(CELL)
    assert visit.count(line) == 0
    assert not visit.page.locator("#cell-clicked").is_visible()


def test_reads_of_a_mix_are_theirs_alone(browser: Browser, visit: Visit) -> None:
    """A click on a figure of reads opens the numbers and the histogram of the reads, and not those of all I/Os."""
    visit.open()
    button = visit.page.locator("button[data-cell^='iops0-'][data-cell$='/read']").first
    visit.page.locator("#iops0 details.folded summary").first.click()
    key = (button.get_attribute("data-cell") or "").split("/")[0]
    shown = button.inner_text()
    button.click()
    visit.wait_for_part(key, "read")
    assert "reads of rounds" in visit.page.inner_text(TITLE)
    # The page shows a figure with only as many digits as its uncertainty permits.
    told_iops = float(told(visit, "IOPS").replace(",", ""))
    assert told_iops == pytest.approx(float(shown.rstrip("*!").replace(",", "")), rel=0.03)


def test_the_slowest_area_of_a_disk_is_shown(browser: Browser, tmp_path: Path) -> None:
    """The table shows only the value of the slowest area. The dialog also shows the number of this area."""
    result = simulate(tmp_path, run_info(suite="hdd"), suite={"tp": HDD_TESTS["tp"]})
    path = tmp_path / "report.html"
    path.write_text(render_view(view_of(tmp_path / "run.tkperf")), encoding="utf-8")
    visit = Visit(page=new_page(browser), path=path)
    visit.open()
    areas = visit.page.locator("main table", has_text="of the disk")
    areas.locator("tbody tr").first.locator("button").nth(3).click()
    visit.page.wait_for_selector("dialog[data-shown]")
    section = result.tests[0].sections[0]
    workload = section.cells[0].workload
    slowest = min(
        (cell.value(THROUGHPUT) or 0, area.number)
        for area in section.rounds
        for cell in area.cells
        if cell.workload == workload
    )[1]
    assert visit.page.inner_text(TITLE).endswith(f": area {slowest}")
    visit.page.close()


def test_a_window_whose_slices_lie_apart_opens_these(browser: Browser, tmp_path: Path) -> None:
    """The histogram of a window contains only the slices of the window. In this test, only every fifth slice was
    judged. The other slices do not count.
    """
    simulate(tmp_path, run_info(), suite={"hir": SSD_TESTS["hir"]})
    view = view_of(tmp_path / "run.tkperf")
    section = tkperf.load(tmp_path / "run.tkperf").tests[0].sections[0]
    assert section.window == (1, 6, 11, 16, 21)
    (cell,) = (each for each in view.cells if each.key.startswith("hir0"))
    window = cell.scopes[0]
    assert window.facts[0] == ("Slices", "1, 6, 11, 16, 21")
    assert window.parts == window.rows == ((0, 1), (5, 6), (10, 11), (15, 16), (20, 21))
    assert cell.apart is not None
    lower, upper, counts = map(unpack, (cell.apart.lower, cell.apart.upper, cell.apart.counts))
    judged = counts.reshape(len(cell.apart.numbers), -1)[[0, 5, 10, 15, 20]].sum(axis=0)
    assert judged.sum() == section.cells[0].value(IOS)
    buckets = list(zip(lower.tolist(), upper.tolist(), judged.astype(int).tolist(), strict=True))
    path = tmp_path / "report.html"
    path.write_text(render_view(view), encoding="utf-8")
    visit = Visit(new_page(browser), path)
    visit.open(f"#{cell.key}")
    visit.wait_for_part(cell.key, "window")
    assert "slices 1, 6, 11, 16, 21, the window" in visit.page.inner_text(TITLE)
    assert "Every second from the first to the last of" in visit.page.inner_text("#cell-words")
    # The terminal distributes the counts of buckets over bins of equal width in the same manner as the page.
    _, ios = spread_in_bins([bucket for bucket in buckets if bucket[2]], BINS_A_DECADE)
    drawn = np.diff(np.round(np.cumsum([0.0, *ios]))) > 0
    assert visit.count(BARS) == drawn.sum()
    assert visit.said == []
