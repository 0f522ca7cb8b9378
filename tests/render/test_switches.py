"""The switches of a chart in a browser. They can be used with the mouse, the keyboard and an address. Some tables are
coloured as heat maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page

from tests.builders import view_of
from tests.render.visits import DRAWN, Visit, new_page
from tkperf.cli.main import cli
from tkperf.render.html import render_view

STREAM = "#writesat0time"
LEAST_CONTRAST = 4.5
pytestmark = pytest.mark.report_of("writesat")


def shown(visit: Visit, key: str) -> None:
    visit.page.wait_for_selector(f"{STREAM}[data-shown='{key}']")


def title(visit: Visit) -> str:
    return visit.page.locator(f"{STREAM} .role-title-text").first.text_content() or ""


def switch(visit: Visit, name: str) -> Locator:
    return visit.page.locator(f"{STREAM} input[value='{name}']")


def test_a_switch_shows_another_view(visit: Visit) -> None:
    """If the reader uses a switch of a chart, the chart shows another view with its own texts and data. Only one view
    is shown at a time.
    """
    visit.open()
    shown(visit, "writesat0time")
    assert title(visit) == "IOPS over time"
    switch(visit, "total written").check()
    shown(visit, "writesat0tgbw")
    assert title(visit) == "IOPS over total GB written"
    switch(visit, "logarithmic").check()
    shown(visit, "writesat0tgbw2")
    assert title(visit) == "IOPS over total GB written, logarithmic"
    assert visit.count(f"{STREAM} .chart svg.marks") == 1
    words = visit.page.locator(f"{STREAM} figcaption").inner_text()
    assert words.startswith("IOPS of each slice over the total amount written (TGBW), the axis log")
    picture = visit.page.locator(f"{STREAM} .chart svg.marks")
    assert picture.get_attribute("aria-label") == title(visit)
    data = visit.page.locator(f"{STREAM} > details > div")
    assert data.get_attribute("aria-label") == f"Data of: {words}"


def test_switches_are_used_by_keyboard(visit: Visit) -> None:
    """The Tab key stops once at each switch, and the arrow keys change the selected position of the switch."""
    visit.open()
    switch(visit, "time").focus()
    visit.page.keyboard.press("ArrowRight")
    shown(visit, "writesat0seconds")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.value") == "linear"
    visit.page.keyboard.press("ArrowRight")
    # The view of seconds has no logarithmic form, so the switch that was used last decides which view is shown.
    shown(visit, "writesat0time2")
    assert switch(visit, "time").is_checked()
    assert switch(visit, "logarithmic").is_checked()


def test_each_switch_says_what_it_is_of(visit: Visit) -> None:
    """Each switch has a legend for screen readers, and the chart shows its question."""
    visit.open()
    groups = visit.page.locator(f"{STREAM} fieldset")
    question = "How do IOPS change while the device is written?"
    assert visit.page.locator(f"{STREAM} .question").inner_text() == question
    assert [groups.nth(place).locator("legend").text_content() for place in range(2)] == [
        f"View 1 of: {question}",
        f"View 2 of: {question}",
    ]


def test_the_table_behind_a_chart_is_that_of_its_view(visit: Visit) -> None:
    """The table behind a chart contains the data of the shown view. If the table is open, it changes with the view."""
    visit.open()
    visit.page.locator(f"{STREAM} summary", has_text="table").click()
    head = visit.page.locator(f"{STREAM} details th")
    head.first.wait_for()
    assert "Time (s)" in head.all_inner_texts()
    switch(visit, "drive fills").check()
    shown(visit, "writesat0fills")
    head.filter(has_text="Drive fills").first.wait_for()
    assert "Time (s)" not in head.all_inner_texts()


def test_an_address_names_a_view(visit: Visit) -> None:
    """The address of a page can name a view of a chart. The switches then have the same positions as if the reader had
    selected the view.
    """
    visit.open("#writesat0fills")
    shown(visit, "writesat0fills")
    assert switch(visit, "drive fills").is_checked()
    visit.page.evaluate("location.hash = 'writesat0tgbw2'")
    shown(visit, "writesat0tgbw2")


def test_what_shares_a_time_axis_hides_below_another(browser: Browser, tmp_path: Path) -> None:
    """The temperature is shown below the chart of IOPS over time, and both have the same axis. Below the chart of IOPS
    over the written amount, the temperature is hidden.
    """
    words = ["ssd", "hot", "sim:client-tlc", "--profile", "quick", "-ssdt", "writesat", "-q"]
    assert CliRunner().invoke(cli, [*words, "--output", str(tmp_path)]).exit_code == 0
    path = tmp_path / "hot.html"
    path.write_text(render_view(view_of(tmp_path / "hot.tkperf")), encoding="utf-8")
    visit = Visit(page=new_page(browser), path=path)
    visit.open()
    below = visit.page.locator("#writesat0temperature")
    assert below.is_visible()
    for name, visible in (("total written", False), ("time", True)):
        switch(visit, name).check()
        assert below.is_visible() == visible
    visit.page.close()


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Browser, report: Path) -> Iterator[Page]:
    page = new_page(browser, scheme=request.param)
    page.goto(report.as_uri())
    page.wait_for_selector(DRAWN)
    yield page
    page.close()


CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const seen = (...layers) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const layer of layers) { canvas.fillStyle = layer; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => rgb.map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = getComputedStyle(document.body).backgroundColor;
  return [...document.querySelectorAll("td.hot")].map((cell) => {
    const ink = getComputedStyle(cell.querySelector("button") ?? cell).color;
    const ground = getComputedStyle(cell).backgroundColor;
    const [one, other] = [luminance(seen(ink)), luminance(seen(paper, ground))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  });
}"""


@pytest.mark.report_of("iops", "lat")
def test_coloured_cells_can_be_read(page: Page) -> None:
    """The text in coloured cells has enough contrast on the darkest and on the lightest colour, on white and on black
    pages. The colours clearly differ from each other.
    """
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 30
    assert min(contrasts) >= LEAST_CONTRAST
    assert max(contrasts) > 1.3 * min(contrasts)
