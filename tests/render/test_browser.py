"""The HTML report in a browser. It is drawn without errors, can be used with mouse and keyboard, and does not use the
network.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Dialog

import tkperf
from tests.builders import run_info, simulate, view_of
from tests.render.visits import DRAWN, Visit, new_page, unpack_spec
from tkperf.analysis.comparing.comparison import compare
from tkperf.model.measurement import reduce_to_columns
from tkperf.model.quantity import IOPS, IOS, LATENCY_MEAN, percentile
from tkperf.model.units import format_number
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.words.uncertainty import add_interval
from tkperf.procedures import SSD_TESTS
from tkperf.render.html import render_view

CHARTS = Path(tkperf.__file__).parent / "render/templates/script/charts.js"
CELL = "iops0-0-4096"


def test_every_chart_is_drawn(visit: Visit) -> None:
    """Every chart is drawn, and no drawing is empty."""
    visit.open()
    assert visit.count("figure") >= 15
    assert visit.count("figure .chart svg.marks") == visit.count("figure")
    empty = visit.page.evaluate(
        "[...document.querySelectorAll('figure .chart svg.marks')]"
        ".filter(svg => svg.querySelectorAll('path').length < 3).length"
    )
    assert empty == 0


@pytest.mark.report_of("tp")
def test_a_chart_is_saved_for_publication(visit: Visit) -> None:
    """Each chart has visible buttons that save it as PNG and SVG. The name of the file contains the names of the run
    and of the chart. The picture has the format 16:9 with twice the resolution, and contains the drive, the load and
    the day.
    """
    visit.open()
    assert visit.count("figure .save button:visible") == 2 * visit.count("figure .chart:visible")
    figure = visit.page.locator("#tp2d")
    saved = {}
    for kind in ("PNG", "SVG"):
        with visit.page.expect_download() as download:
            figure.get_by_role("button", name=f"Save as {kind}").click()
        saved[kind] = download.value.path().read_bytes()
        assert re.fullmatch(rf"[\w.-]+-throughput-[\w-]+\.{kind.lower()}", download.value.suggested_filename)
    assert saved["PNG"].startswith(b"\x89PNG")
    assert struct.unpack(">II", saved["PNG"][16:24]) == (1920, 1080)
    drawn = saved["SVG"].decode()
    assert re.search(r'<svg[^>]* width="960" height="540"', drawn)
    texts = re.findall(r"<(?:text|tspan)[^>]*>([^<]+)<", drawn)
    page = view_of(visit.path.parent / "run.tkperf")
    (source,) = [text for text in texts if page.subtitle in text]
    assert source.endswith(f" · {page.date}")
    assert "Throughput" in source
    assert "sequential, TC" in source
    assert visit.said == []


def test_pictures_have_names_of_their_own(report: Path) -> None:
    """Different charts of a page have different file names. The chart at the top of the page is a copy of another
    chart, and its file has the name of that chart.
    """
    view = view_of(report.parent / "run.tkperf")
    charts = [
        each
        for test in view.tests
        for of_part in (test.charts, test.events.charts, *(section.charts for section in test.sections))
        for chart in of_part
        for each in chart.views
    ]
    names = [chart.file_name for chart in charts]
    assert len(set(names)) == len(names) >= 15
    assert view.opening_chart is not None
    assert view.opening_chart.file_name in names


@pytest.mark.report_of("tp")
def test_a_click_in_the_legend_fades_the_other_curves(visit: Visit) -> None:
    """A click on the name of a curve in the legend fades the other curves of the chart."""
    visit.open()
    faded = "#tp2d path[opacity='0.1']"
    assert visit.count(faded) == 0
    visit.page.locator("#tp2d .role-legend-symbol path").first.click()
    visit.page.wait_for_selector(faded)


@pytest.mark.report_of("iops")
def test_a_cell_opens_its_seconds_and_its_histogram(visit: Visit) -> None:
    """A click on a cell opens its numbers from the run file. Escape closes the dialog and returns the focus to the
    cell.
    """
    visit.open()
    run = tkperf.load(visit.path.parent / "run.tkperf")
    cell = next(
        each
        for each in run.tests[0].sections[0].cells
        if (each.workload.read_percent, each.workload.block_size_bytes) == (0, 4096)
    )
    button = visit.page.locator(f"td button[data-cell='{CELL}']")
    assert button.inner_text() == format_number(cell.value(IOPS))
    button.focus()
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    said = visit.page.locator("dialog dl").inner_text()
    for quantity in (IOPS, LATENCY_MEAN, percentile(99.9)):
        assert add_interval(cell.value(quantity), cell.uncertainty_of(quantity)) in said
    assert f"{cell.value(IOS):,}" in said
    assert visit.page.locator("dialog .badge").all_inner_texts() == ["SIMULATED"]
    assert visit.count("dialog .chart svg.marks") == 4
    assert visit.page.locator("#cell-rounds tbody tr").count() == len(run.tests[0].sections[0].rounds)
    assert visit.page.url.endswith(f"#{CELL}")
    visit.page.keyboard.press("Escape")
    visit.page.wait_for_selector("dialog:not([open])", state="attached")
    assert visit.page.evaluate("document.activeElement.dataset.cell") == CELL


def test_every_kind_of_cell_opens(visit: Visit) -> None:
    """The first cell of each test can be opened, even in tests with streams."""
    visit.open()
    keys = visit.page.evaluate("[...document.querySelectorAll('button[data-cell]')].map(each => each.dataset.cell)")
    first = {key.split("-")[0]: key for key in reversed(keys)}
    assert len(first) >= 6
    for address in first.values():
        visit.page.locator(f"button[data-cell='{address}']").first.click()
        visit.wait_for_part(address.split("/")[0])
        assert visit.count("dialog .chart svg.marks") == 4
        visit.page.locator("dialog form button").click()


@pytest.mark.report_of("iops")
def test_lines_below_a_title_are_no_wider_than_the_chart(visit: Visit) -> None:
    """The lines below the title of a saved chart are no wider than the chart. Without this limit, a long line, such as
    that of a run on a busy host, would leave too little space for the plot.
    """
    visit.open()
    visit.page.add_script_tag(path=CHARTS)
    visit.page.add_script_tag(path=CHARTS.with_name("pictures.js"))
    widths = visit.page.evaluate(
        """async () => {
          const chart = document.createElement("div");
          chart.style.width = "500px";
          document.body.append(chart);
          const title = { text: "T", subtitle: ["disturbed: " + "some reason, ".repeat(20), "SIMULATED"] };
          const data = { values: [{ x: 1, value: 1 }] };
          const encoding = { x: { field: "x", type: "quantitative" } };
          const { view } = await draw(chart, { title, data, layer: [{ mark: "point", encoding }], width: "container" });
          return [view.width(), chart.querySelector("svg").getBoundingClientRect().width];
        }"""
    )
    assert widths[0] > 400
    assert widths[1] <= 500


@pytest.mark.report_of("iops")
def test_the_way_back_closes_a_cell(visit: Visit) -> None:
    """The back button of the browser closes a cell, and the report remains open. The forward button opens the cell
    again.
    """
    visit.open()
    visit.page.locator(f"td button[data-cell='{CELL}']").click()
    visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    visit.page.go_back()
    visit.page.wait_for_selector("dialog:not([open])", state="attached")
    assert visit.page.url == visit.path.as_uri()
    visit.page.go_forward()
    visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    assert visit.said == []


@pytest.mark.report_of("iops")
def test_a_cell_remains_open_when_the_event_of_its_closing_is_late(visit: Visit) -> None:
    """The browser reports with its next frame that a dialog was closed. On a busy host, the reader may have opened the
    cell again before.
    """
    visit.open()
    visit.page.locator(f"td button[data-cell='{CELL}']").click()
    visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    visit.page.evaluate(
        """() => document.getElementById("cell").addEventListener("close", (event) => {
            if (event.isTrusted) event.stopImmediatePropagation();
        }, true)"""
    )
    visit.page.go_back()
    visit.page.wait_for_selector("dialog:not([open])", state="attached")
    visit.page.go_forward()
    visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    visit.page.evaluate("""() => document.getElementById("cell").dispatchEvent(new Event("close"))""")
    assert visit.page.url == f"{visit.path.as_uri()}#{CELL}"
    assert visit.count(f"dialog[data-shown='{CELL}']") == 1
    assert visit.said == []


@pytest.mark.report_of("iops")
def test_a_link_opens_a_cell(visit: Visit) -> None:
    """A link to a cell opens the cell, so a reviewer can send a reference to a single cell."""
    visit.open(f"#{CELL}")
    visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")


@pytest.mark.report_of("iops")
def test_a_link_into_what_is_folded_opens_it(visit: Visit) -> None:
    """A link into a folded part of the page unfolds this part. The set-up and the disclosure are folded until the
    reader opens them.
    """
    visit.open()
    assert not visit.page.locator("#disclosure dl").first.is_visible()
    visit.page.click("nav a[href='#disclosure']")
    visit.page.locator("#disclosure dl").first.wait_for()


def test_a_figure_on_top_opens_what_is_behind_it(visit: Visit) -> None:
    """A click on a headline figure opens its cell. If the mouse pointer is over the figure, all its digits are shown.
    After the dialog is closed, the focus is on the figure again.
    """
    visit.open()
    figure = visit.page.locator(".headlines button").first
    exact = visit.page.locator(".headlines dd.figure").first.get_attribute("title")
    size, label = (
        visit.page.locator(f".headlines {where}").first.evaluate("each => getComputedStyle(each).fontSize")
        for where in ("dt .figure", "dt .load")
    )
    assert size == label
    assert exact is not None
    assert exact.endswith(" IOPS")
    figure.click()
    visit.page.wait_for_selector("dialog[open]")
    visit.page.keyboard.press("Escape")
    assert figure.evaluate("each => document.activeElement === each")


@pytest.mark.parametrize("width", [390, 1000, 1400])
def test_headline_figures_stay_in_their_tiles(browser: Browser, report: Path, tmp_path: Path, width: int) -> None:
    """The text of each headline figure lies inside its box, even if the text is a bound or a long reason. A number and
    its unit are on the same line if they fit.
    """
    view = view_of(report.parent / "run.tkperf")
    reason = "disturbed: others on the CPUs that fio waited for"
    texts = ("at least 140.0 ×", "at least 13.07 ×", "below 5,690 IOPS", "2.21 ×", "above 1,234,567 IOPS", "1.000 ×")
    tile = replace(view.headlines[0], sure="at least ± 35 %", verdict=reason, alarm=True, load="", cell="")
    tiles = tuple(replace(tile, text=text) for text in texts)
    path = tmp_path / "tiles.html"
    path.write_text(render_view(replace(view, headlines=tiles)), encoding="utf-8")
    page = new_page(browser, width, 900)
    page.goto(path.as_uri())
    inside, heights_px = page.evaluate(
        """() => {
            const tiles = [...document.querySelectorAll(".headlines > div")];
            const box = each => { const of = document.createRange(); of.selectNodeContents(each);
                                  return of.getBoundingClientRect(); };
            return [tiles.map(tile => box(tile).right <= tile.getBoundingClientRect().right + 1),
                    tiles.map(tile => tile.querySelector("dd.figure .figure").getBoundingClientRect().height)];
        }"""
    )
    page.close()
    assert inside == [True] * len(texts)
    one_line_px = min(heights_px)
    broken = [text for text, height_px in zip(texts, heights_px, strict=True) if height_px > 1.5 * one_line_px]
    assert set(broken) <= {"above 1,234,567 IOPS"}


def test_the_data_of_a_chart_is_a_table_away(visit: Visit) -> None:
    """Each chart offers its data as a table with one row for each point. The table is for readers who cannot see the
    chart or who need the numbers.
    """
    visit.open()
    spec = unpack_spec(visit.page.locator("#iops0relative script").first.inner_text())
    points = len(spec["datasets"]["curves"])
    visit.page.locator("#iops0relative summary", has_text="table").click()
    visit.page.wait_for_selector("#iops0relative details table")
    assert visit.count("#iops0relative details tbody tr") == points
    for figure in visit.page.locator("figure").all():
        key = figure.get_attribute("id")
        if key != "iops0relative":
            figure.locator("summary", has_text="table").click()
        figure.locator("details tbody td").first.wait_for()  # this call times out if the table has no row


def test_all_of_it_fits_a_phone(browser: Browser, visit: Visit) -> None:
    """The report fits on a phone. Only wide tables scroll sideways, within their own boxes."""
    visit.page.set_viewport_size({"width": 390, "height": 800})
    visit.open()
    visit.page.wait_for_function("document.documentElement.scrollWidth <= 390")
    visit.page.locator(f"td button[data-cell='{CELL}']").click()
    visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    assert visit.page.evaluate("document.querySelector('dialog').scrollWidth <= 390")
    # A long value must not cause line breaks in the name on its left.
    visit.page.locator("dialog dd").first.evaluate("dd => { dd.textContent = 'IOPS 31,500, '.repeat(9) }")
    # The boxes of a name and its value always have the same height. The test therefore counts the lines of the text
    # itself.
    lines = """dt => {
      const text = document.createRange();
      text.selectNodeContents(dt);
      return new Set([...text.getClientRects()].map(line => Math.round(line.top))).size;
    }"""
    most = visit.page.evaluate(f"Math.max(...[...document.querySelectorAll('dialog dt')].map({lines}))")
    assert most < 3


def test_hostile_names_do_nothing(browser: Browser, tmp_path: Path) -> None:
    """Hostile names and notes, from a drive or from another user's file, run no script, load no address and do not
    damage the page.
    """
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\0" + "W" * 10_000
    info = run_info(
        name=hostile,
        device={"model": hostile, "serial": hostile, "path": hostile, "capacity_bytes": 1},
        device_description=hostile,
        notices=(hostile,),
        command_line=("tkperf", hostile),
    )
    result = simulate(tmp_path, info, suite={"iops": SSD_TESTS["iops"]})
    run_page = tmp_path / "report.html"
    run_page.write_text(render_view(view_of(tmp_path / "run.tkperf")), encoding="utf-8")
    with open_hostile(browser, run_page) as visit:
        visit.page.locator(f"td button[data-cell='{CELL}']").click()
        visit.page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    compared_page = tmp_path / "compared.html"
    comparison = build_comparison_page(compare([result, result]))
    compared_page.write_text(render_view(comparison), encoding="utf-8")
    with open_hostile(browser, compared_page):
        pass


@contextmanager
def open_hostile(browser: Browser, path: Path) -> Iterator[Visit]:
    """Open a page. While a test uses it, the page must print nothing, load no address and show no error."""
    page = new_page(browser, 1000, 900)
    page.set_default_timeout(120_000)  # a name of 10,000 characters makes the page large
    visit = Visit(page=page, path=path)
    alerts: list[str] = []

    def refuse(alert: Dialog) -> None:
        alerts.append(alert.message)
        alert.dismiss()

    page.on("dialog", refuse)
    visit.open()
    yield visit
    assert alerts == []
    assert visit.said == []
    assert visit.asked == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= 1000")
    page.close()


@pytest.mark.report_of("iops")
def test_the_page_reduces_as_we_do(visit: Visit) -> None:
    """When a reader zooms in, the script computes the same extremes and means as measurement.py."""
    visit.open()
    source = (resources.files("tkperf.render") / "templates/script/seconds.js").read_text("utf-8")
    found = re.search(r"^function reduceToColumns.*?^}", source, re.S | re.M)
    assert found is not None
    random = np.random.default_rng(1)
    start_s = np.arange(1000, dtype=float)
    values = random.lognormal(size=1000)
    values[[0, 17, 999]] = np.nan
    for columns in (1, 7, 600, 1000):
        reduced = reduce_to_columns(start_s, values, columns)
        there = visit.page.evaluate(
            f"([at, values, columns]) => {{ {found[0]} "
            "return reduceToColumns(at, values.map(v => v ?? NaN), -Infinity, Infinity, columns) }",
            [start_s.tolist(), json.loads(json.dumps(values.tolist()).replace("NaN", "null")), columns],
        )
        assert [row["t"] / 1000 for row in there] == reduced.at_s.tolist()
        for name in ("low", "mean", "high"):
            np.testing.assert_allclose([row[name] for row in there], getattr(reduced, name))


def test_zooming_in_shows_single_seconds(browser: Browser, tmp_path: Path) -> None:
    """A long stream is drawn with fewer points than samples. Zooming in shows every sample."""
    simulate(tmp_path, run_info(), suite={"writesat": SSD_TESTS["writesat"]}, profile=long_stream(tmp_path))
    path = tmp_path / "report.html"
    path.write_text(render_view(view_of(tmp_path / "run.tkperf")), encoding="utf-8")
    page = new_page(browser, 1300, 900)
    page.goto(path.as_uri() + "#writesat0seconds")
    page.wait_for_selector(DRAWN)
    page.wait_for_selector("#writesat0time[data-shown='writesat0seconds']")
    chart = page.locator("#writesat0time .chart")
    line = "document.querySelector('#writesat0time .mark-line path').getAttribute('d')"
    whole = page.evaluate(line)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    assert 300 < whole.count("L") <= box["width"]
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    for _ in range(12):
        page.mouse.wheel(0, -400)
    page.wait_for_function(f"(d => d.split('L').length < 300)({line})")
    page.close()


def long_stream(folder: Path) -> str:
    """Return the quick profile with a write saturation of half an hour."""
    quick = resources.files("tkperf.procedures.profiles") / "quick.toml"
    text = quick.read_text("utf-8")
    text = text.replace('name = "quick"', 'name = "long"').replace('title = "', 'title = "long ')
    head, rest = text.split("[write_saturation]")
    rest = re.sub(r"slice_s = .*", "slice_s = 60", rest, count=1)
    rest = re.sub(r"max_slices = .*", "max_slices = 30", rest, count=1)
    rest = re.sub(r"capacity_multiple = .*", "capacity_multiple = 1000000", rest, count=1)
    rest = re.sub(r"round_every_slices = .*", "round_every_slices = 0", rest, count=1)
    path = folder / "long.toml"
    path.write_text(head + "[write_saturation]" + rest)
    return str(path)


def test_paper_says_simulated_on_every_page_and_cuts_no_table(visit: Visit, tmp_path: Path) -> None:
    """Each printed page contains the word SIMULATED, because a reader may receive only one page. The last column of the
    widest table is printed completely.
    """
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext (poppler-utils)")
    visit.open()
    path = tmp_path / "printed.pdf"
    visit.page.pdf(path=path, format="A4")
    done = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, check=True, text=True)
    pages = done.stdout.split("\f")[:-1]
    assert len(pages) > 10
    for page in pages:
        assert page.split()[0] == "SIMULATED"
    heads = [line.split() for line in done.stdout.splitlines() if "p99.999" in line]
    assert any(words[-1] == "max" for words in heads)


def test_a_point_over_offered_rates_opens_its_level(browser: Browser, tmp_path: Path) -> None:
    """In a chart over offered rates, a click on a point opens the level of this point, as a click on a figure in the
    table does.
    """
    simulate(tmp_path, run_info(), suite={"demand": SSD_TESTS["demand"]})
    path = tmp_path / "report.html"
    path.write_text(render_view(view_of(tmp_path / "run.tkperf")), encoding="utf-8")
    visit = Visit(page=new_page(browser), path=path)
    visit.open()
    points = visit.page.locator("#demand12d g.mark-symbol.role-mark path")
    points.nth(2).scroll_into_view_if_needed()
    points.nth(2).click(force=True)
    visit.page.wait_for_selector("dialog[data-shown]")
    spec = unpack_spec(visit.page.locator("#demand12d script").first.inner_text())
    third = next(rows[2] for rows in spec["datasets"].values() if "cell" in rows[0])
    assert visit.page.locator("#cell").get_attribute("data-shown") == third["cell"]
    assert f"{third['x']:,.0f} IOPS offered" in visit.page.locator("#cell h2").inner_text()
    assert visit.said == []
    visit.page.close()


@pytest.mark.parametrize("tests", ["default", "all"])
def test_the_first_screen_has_verdict_headlines_and_a_whole_chart(
    browser: Browser, report: Path, tmp_path: Path, tests: str
) -> None:
    """The first screen shows the verdict, the headline figures and a whole chart. On a phone, the chart is below the
    first screen. On both screens, the navigation has one line.
    """
    path = report
    if tests == "all":
        simulate(tmp_path, run_info(notices=("SIMULATED: a model",)), suite=SSD_TESTS)
        path = tmp_path / "report.html"
        path.write_text(render_view(view_of(tmp_path / "run.tkperf")), encoding="utf-8")
    for width, height, last in ((1440, 900, ".story svg.marks"), (390, 844, ".headlines > :last-child")):
        page = new_page(browser, width, height)
        page.goto(path.as_uri())
        page.wait_for_selector(".story svg.marks", timeout=120_000)
        end = page.locator(last).first.bounding_box()
        line = page.locator("nav").bounding_box()
        assert end is not None
        assert line is not None
        assert end["y"] + end["height"] <= height
        assert line["height"] < 60
        page.close()


@pytest.mark.parametrize("count", [2, 5, 12])
def test_a_decision_is_on_the_first_screen(browser: Browser, report: Path, tmp_path: Path, count: int) -> None:
    """The first screen of a comparison shows the title, the lines about kinds of load, the matrix and two charts. A
    select box shows the other parts, and a link to such a part opens it.
    """
    result = tkperf.load(report.parent / "run.tkperf")
    results = [replace(result, info=replace(result.info, name=f"drive-{n:02}")) for n in range(count)]
    path = tmp_path / "compared.html"
    path.write_text(render_view(build_comparison_page(compare(results))), encoding="utf-8")
    page = new_page(browser, 1440, 900)
    visit = Visit(page=page, path=path)
    page.on("console", lambda message: visit.said.append(message.text))
    page.on("request", lambda request: visit.asked.append(request.url))
    page.goto(path.as_uri())
    drawings = page.locator(".leads svg.marks")
    drawings.nth(1).wait_for()
    assert visit.count("table.drives tbody tr") == count
    assert drawings.count() == 2
    for drawing in drawings.all():
        box = drawing.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900
    assert not page.locator("#iops").is_visible()
    page.locator("#chapter").select_option("iops")
    assert page.locator("#iops").is_visible()
    # A chart over block sizes lets the reader choose mixes, but no block size.
    last = page.locator("#iops fieldset[data-switch='2']").first
    mix, size = (last.get_by_text(name, exact=True) for name in ("R/W 100/0", "4 KiB"))
    assert (mix.is_visible(), size.is_visible()) == (True, False)
    page.locator("#iops input[value='over mix']").first.check()
    assert (mix.is_visible(), size.is_visible()) == (False, True)
    page.locator("table.drives td a").last.click()
    page.locator(":target").wait_for()
    page.locator("#iops").wait_for(state="hidden")
    assert visit.said == []
    assert {url.split("#")[0] for url in visit.asked} == {path.as_uri()}
    page.close()
