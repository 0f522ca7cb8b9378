"""Accessibility of the page. axe-core finds no violation, and the page can be used with the keyboard, on a phone, in
dark mode and on paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.builders import run_info, simulate
from tests.render.visits import DRAWN, Visit, find_violations, new_page
from tkperf.analysis.comparing.comparison import compare
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.procedures import SSD_TESTS
from tkperf.render.html import render_view

CELL = "iops0-0-4096"
GRID = "#iops0 table[role='grid']"
Scheme = Literal["light", "dark"]
BOTH: tuple[Scheme, ...] = ("light", "dark")


@contextmanager
def opened(browser: Browser, path: Path, scheme: Scheme = "light", width: int = 1300) -> Iterator[Page]:
    page = new_page(browser, width, 900, scheme)
    page.goto(path.as_uri())
    page.wait_for_selector(DRAWN)
    yield page
    page.close()


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    results = []
    for preset in ("sata-ssd", "unsteady"):
        (folder / preset).mkdir()
        suite = {name: SSD_TESTS[name] for name in ("iops", "writesat")}
        results.append(simulate(folder / preset, run_info(name=preset), preset, suite=suite))
    path = folder / "compared.html"
    path.write_text(render_view(build_comparison_page(compare(results))), encoding="utf-8")
    return path


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1300)])
def test_axe_finds_nothing_in_a_report(browser: Browser, report: Path, scheme: Scheme, width: int) -> None:
    with opened(browser, report, scheme, width) as page:
        assert find_violations(page) == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1300), ("dark", 390)])
def test_axe_finds_nothing_in_a_comparison(browser: Browser, compared: Path, scheme: Scheme, width: int) -> None:
    """axe-core finds no violation in the decision of a comparison and in each part that the select box shows."""
    with opened(browser, compared, scheme, width) as page:
        for chapter in ("", "overview", "writesat", "conditions"):
            page.locator("#chapter").select_option(chapter)
            assert find_violations(page) == []


@pytest.mark.report_of("iops")
@pytest.mark.parametrize("scheme", BOTH)
def test_axe_finds_nothing_in_what_a_click_opens(browser: Browser, report: Path, scheme: Scheme) -> None:
    """axe-core finds no violation in the dialog of a cell when all folded parts of the dialog are open."""
    with opened(browser, report, scheme) as page:
        page.locator(f"td button[data-cell='{CELL}']").click()
        page.wait_for_selector(f"dialog[data-shown='{CELL}']")
        for summary in page.locator("dialog > details:not([hidden]) > summary").all():
            summary.click()
        assert find_violations(page) == []


@pytest.mark.report_of("iops")
def test_axe_would_find_something(browser: Browser, report: Path) -> None:
    """axe-core reports a picture without a text alternative, and grey text on a grey background. These reports prove
    that the rules of axe-core are active.
    """
    with opened(browser, report) as page:
        page.evaluate(
            "document.querySelector('main').insertAdjacentHTML('beforeend',"
            '\'<img src="data:,"><p style="color:#aaa;background:#999">grey</p>\')'
        )
        assert {each.split(":")[0] for each in find_violations(page)} == {"image-alt", "color-contrast"}


@pytest.mark.report_of("iops")
def test_the_first_tab_leads_past_the_navigation(visit: Visit) -> None:
    """The first Tab key shows a link that skips the navigation. After the reader follows this link, the next Tab key
    reaches the results.
    """
    visit.open()
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.innerText") == "Skip to the results"
    box = visit.page.locator(".skip").bounding_box()
    assert box is not None
    assert box["y"] >= 0
    visit.page.keyboard.press("Enter")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("!!document.activeElement.closest('main')")


@pytest.mark.report_of("iops")
def test_a_table_is_one_stop_and_arrows_go_within(visit: Visit) -> None:
    """The Tab key stops once at a table, and the arrow keys move between its cells as in a spreadsheet. Shift+Tab
    returns to the last cell.
    """
    visit.open()
    grid = visit.page.locator(GRID).first
    rows = grid.locator("tbody tr").count()
    assert grid.locator("button").count() > rows > 1
    for table in visit.page.locator("main table[role='grid']").all():
        assert table.locator("button:not([tabindex='-1'])").count() == 1

    def at() -> list[int]:
        place: list[int] = visit.page.evaluate(
            "(({ parentNode: cell }) => [cell.parentNode.sectionRowIndex, cell.cellIndex])(document.activeElement)"
        )
        return place

    grid.locator("button").first.focus()
    first = at()
    columns = grid.locator("tbody tr").first.locator("button").count()
    for key, there in (
        ("ArrowRight", [first[0], first[1] + 1]),
        ("ArrowDown", [first[0] + 1, first[1] + 1]),
        ("ArrowLeft", [first[0] + 1, first[1]]),
        ("ArrowLeft", [first[0] + 1, first[1]]),  # the focus remains, because no cell is further to the left
        ("End", [first[0] + 1, first[1] + columns - 1]),
        ("Home", [first[0] + 1, first[1]]),
        ("Control+End", [rows - 1, first[1] + columns - 1]),
        ("Control+Home", first),
        ("ArrowUp", first),
        ("ArrowDown", [first[0] + 1, first[1]]),
    ):
        visit.page.keyboard.press(key)
        assert at() == there, key
    visit.page.keyboard.press("Tab")
    assert not grid.evaluate("table => table.contains(document.activeElement)")
    visit.page.keyboard.press("Shift+Tab")
    assert grid.evaluate("table => table.contains(document.activeElement)")
    assert at() == [first[0] + 1, first[1]]


@pytest.mark.report_of("iops")
def test_what_has_the_focus_is_seen(visit: Visit) -> None:
    """Every element that has the focus is outlined. When the dialog closes, the focus returns to the figure that opened
    the dialog.
    """
    visit.open()
    for _ in range(12):
        visit.page.keyboard.press("Tab")
        outline = visit.page.evaluate(
            "(style => [style.outlineStyle, parseFloat(style.outlineWidth)])(getComputedStyle(document.activeElement))"
        )
        assert outline[0] != "none"
        assert outline[1] >= 2


def test_a_phone_keeps_first_column_and_navigation_in_sight(browser: Browser, report: Path) -> None:
    """On a phone, the page never scrolls sideways. A wide table scrolls within its own box, and its first column
    remains visible.
    """
    with opened(browser, report, width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        wide = page.locator("main .scroll:has(table[role='grid'])").evaluate_all(
            "all => all.findIndex(each => each.scrollWidth > each.clientWidth + 80)"
        )
        assert wide >= 0
        scroll = page.locator("main .scroll:has(table[role='grid'])").nth(wide)
        scroll.scroll_into_view_if_needed()
        label = scroll.locator("tbody th").first
        before = label.bounding_box()
        scroll.evaluate("each => { each.scrollLeft = 80 }")
        after = label.bounding_box()
        assert before is not None
        assert after is not None
        assert after["x"] == before["x"] >= 0
        nav = page.locator("nav").bounding_box()
        assert nav is not None
        assert page.evaluate("scrollY") > 500
        assert nav["y"] == 0
        assert nav["height"] < 60
        current = page.locator("nav a[aria-current]")
        assert current.count() == 1
        box = current.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < 390


def test_heads_of_tables_are_low_on_a_phone(browser: Browser, compared: Path) -> None:
    """On a phone, the header row of a table has at most three lines, even if the names in it are long."""
    name = "Write Saturation, 4 KiB random write: mean latency (µs)"
    with opened(browser, compared, width=390) as page:
        tallest = page.evaluate(
            """name => {
              const row = document.querySelector("#overview table thead tr");
              for (const head of row.querySelectorAll("th")) {
                head.classList.add("long");
                head.textContent = name;
              }
              return row.offsetHeight;
            }""",
            name,
        )
    assert tallest <= 100


@pytest.mark.report_of("writesat")
def test_a_figure_reached_by_arrows_is_not_below_the_pinned_column(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=390) as page:
        grid = page.locator("#writesat0 table[role='grid']").first
        grid.locator("button").first.focus()
        page.keyboard.press("End")
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
            left, pinned = page.evaluate(
                "(button => [button.getBoundingClientRect().left,"
                " button.closest('tr').querySelector('th').getBoundingClientRect().right])"
                "(document.activeElement)"
            )
            assert left >= pinned - 1


@pytest.mark.report_of("iops")
def test_a_dark_page_has_light_charts(browser: Browser, report: Path) -> None:
    """Charts use the colours of the system (light or dark) without being drawn again."""
    ink = (
        "getComputedStyle(document.querySelector('#iops0window .role-axis-title text')).fill"
        " === getComputedStyle(document.body).color"
    )
    with opened(browser, report, "dark") as page:
        dark = page.evaluate("getComputedStyle(document.body).color")
        assert page.evaluate(ink)
        page.emulate_media(color_scheme="light")
        assert page.evaluate("getComputedStyle(document.body).color") != dark
        assert page.evaluate(ink)


@pytest.mark.report_of("iops")
def test_paper_is_white_for_those_who_read_in_the_dark(browser: Browser, report: Path) -> None:
    """A printed page is white with black charts, even if the reader uses dark colours. It shows neither navigation nor
    buttons.
    """
    with opened(browser, report, "dark") as page:
        page.emulate_media(media="print")
        colours = page.evaluate(
            "[document.body, document.querySelector('#iops0window .role-axis-title text')]"
            ".map(each => [getComputedStyle(each).backgroundColor, getComputedStyle(each).color,"
            " getComputedStyle(each).fill])"
        )
        assert colours[0][:2] == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
        assert colours[1][2] == "rgb(0, 0, 0)"
        for hidden in ("nav", ".skip", "figure details"):
            assert not page.locator(hidden).first.is_visible()


@pytest.mark.report_of("iops")
def test_nothing_moves_for_those_who_asked_for_that(browser: Browser, report: Path) -> None:
    page = new_page(browser, reduced_motion="reduce")
    page.goto(report.as_uri())
    page.wait_for_selector(DRAWN)
    page.locator(f"td button[data-cell='{CELL}']").click()
    page.wait_for_selector(f"dialog[data-shown='{CELL}']")
    assert page.evaluate("document.getAnimations().length") == 0
    moving = page.evaluate(
        "[...document.querySelectorAll('*')].filter(each =>"
        " getComputedStyle(each).transitionDuration.split(', ').some(time => parseFloat(time) > 0)"
        " || getComputedStyle(each).scrollBehavior === 'smooth').length"
    )
    assert moving == 0
    page.close()
