"""The first screens of a batch and of a check show the failures, without scrolling, without Vega and without a network
request.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from tests.batches import answer_of, checked_answer, claims_of, measured
from tests.render.test_accessible import opened
from tests.render.visits import Visit, find_violations, new_page
from tkperf.page.batch.batch_results_page import build_batch_page
from tkperf.page.check import build_check_page, build_claims_page
from tkperf.page.page import ReportView
from tkperf.render.document import compose
from tkperf.render.html import render_view
from tkperf.render.pdf import set_document

CLAIMS = claims_of((0, 95.0), (100, 199.5), *((0, 80.0 + number) for number in range(6)))
# Most of this size consists of fonts. Vega alone would exceed this limit.
MOST_BYTES = 600_000


def a_page(name: str) -> ReportView:
    drives = [measured(number, 100.0 + number / 10) for number in range(1, 24)]
    drives.append(measured(24, 90.0))
    answer = checked_answer(drives, CLAIMS)
    checked = answer.drives[-1].checked
    assert checked is not None
    match name:
        case "batch":
            return build_batch_page(answer)
        case "free":
            return build_batch_page(answer_of(*drives))
        case "check":
            return build_check_page([one.file for one in answer.drives])
    return build_claims_page(checked)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in ("batch", "free", "check", "claims")}
    for name, path in paths.items():
        path.write_text(render_view(a_page(name)), encoding="utf-8")
    return paths


def test_a_page_without_charts_leaves_out_vega(pages: dict[str, Path]) -> None:
    for path in pages.values():
        text = path.read_text("utf-8")
        assert len(text.encode()) < MOST_BYTES
        assert "<figure" not in text
        # Vega evaluates expressions as code. These pages must not contain Vega.
        assert "eval(" not in text
        assert "Function(" not in text


@pytest.mark.parametrize("name", ["batch", "free", "check"])
def test_24_drives_and_the_one_that_fails_are_on_the_first_screen(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    """The first screen shows all 24 drives, including the failing drive with its name, result and margins. The page
    prints nothing on the console and loads nothing from the network.
    """
    page = new_page(browser, 1440, 900)
    visit = Visit(page=page, path=pages[name])
    visit.open()
    rows = page.locator("table.margins tbody tr")
    assert rows.count() == 24
    last = rows.last.bounding_box()
    assert last is not None
    assert last["y"] + last["height"] <= 900
    assert "24" in rows.first.inner_text()
    assert page.locator(".strips svg.strip .dot").first.is_visible()
    wide = "() => document.documentElement.scrollWidth > innerWidth"
    assert page.evaluate(wide) is False
    assert visit.said == []
    assert visit.asked == [pages[name].as_uri()]
    page.close()


@pytest.mark.parametrize("name", ["batch", "free", "check", "claims"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1300), ("dark", 390)])
def test_axe_finds_nothing(
    browser: Browser, pages: dict[str, Path], name: str, scheme: Literal["light", "dark"], width: int
) -> None:
    with opened(browser, pages[name], scheme, width) as page:
        assert find_violations(page) == []


@pytest.mark.parametrize("name", ["batch", "claims"])
def test_margins_are_printed(name: str) -> None:
    assert set_document(compose(a_page(name))).startswith(b"%PDF")
