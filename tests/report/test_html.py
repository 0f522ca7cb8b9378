"""The HTML report: self-contained, inert against hostile text, drawn without errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.builders import run_info, simulate
from tkperf.analysis.export_json import render_json
from tkperf.analysis.results import RunResult
from tkperf.report.html import render_html

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202eRTL"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return simulate(tmp_path_factory.mktemp("report"), run_info(notices=("SIMULATED: a model",)))


def test_the_page_needs_no_network(result: RunResult) -> None:
    """No address is loaded: scripts and styles are inside, a policy forbids the rest."""
    page = render_html(result)
    # Without the bundled library, whose text names addresses it never loads.
    ours = page[: page.index('<script type="module">')]
    addresses = set(re.findall(r"https?://[^\"'\s<]+", ours))
    assert addresses <= {"https://vega.github.io/schema/vega-lite/v6.json"}
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe)\b", ours)


def test_simulated_results_say_so_in_bold_place(result: RunResult) -> None:
    """The notice is a banner at the top."""
    page = render_html(result)
    assert '<p class="banner">SIMULATED: a model</p>' in page


def test_hostile_text_is_inert(tmp_path: Path) -> None:
    """Model names, notes and command lines from outside are text, nothing else."""
    info = run_info(
        name="x",
        device={"model": HOSTILE, "serial": HOSTILE, "capacity_bytes": 1},
        device_description=HOSTILE * 100,
        feature_matrix="\x00" + HOSTILE,
        notices=(HOSTILE,),
        command_line=("tkperf", HOSTILE),
    )
    page = render_html(simulate(tmp_path, info))
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert" in page


def test_unknown_facts_are_said_to_be_unknown(result: RunResult) -> None:
    """Missing facts read 'not known', never an empty field or a zero."""
    page = render_html(result)
    assert re.search(r"<dt>Serial number</dt><dd>not known</dd>", page)


def test_an_unsteady_run_says_so(tmp_path: Path) -> None:
    """Not reached is said in the overview and in the determination block."""
    page = render_html(simulate(tmp_path, run_info(), preset="unsteady"))
    assert "NOT reached" in page


def test_json_has_no_nan_and_a_schema(result: RunResult) -> None:
    """The document for programs is strict JSON and names its layout."""
    text = render_json(result)
    assert '"schema": "tkperf-results/1"' in text
    assert "NaN" not in text


def test_chromium_draws_every_chart_without_an_error(result: RunResult, tmp_path: Path) -> None:
    """Opened from a file: each figure holds a drawing, the console is silent, nothing is fetched."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium")
    from playwright.sync_api import sync_playwright

    path = tmp_path / "report.html"
    path.write_text(render_html(result), encoding="utf-8")
    said: list[str] = []
    asked: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_function(
            "document.querySelectorAll('figure .chart svg.marks').length"
            " === document.querySelectorAll('figure').length"
        )
        figures = page.locator("figure").count()
        # A click in the legend fades the other curves.
        faded = "document.querySelectorAll('#iops0convergence path[opacity=\"0.1\"]').length"
        assert page.evaluate(faded) == 0
        page.locator("#iops0convergence .role-legend-symbol path").first.click()
        page.wait_for_function(f"{faded} > 0")
        empty = page.evaluate(
            "[...document.querySelectorAll('figure .chart svg.marks')]"
            ".filter(svg => svg.querySelectorAll('path').length < 3).length"
        )
        page.set_viewport_size({"width": 400, "height": 800})
        # The charts draw themselves anew; it would time out if the page stayed too wide.
        page.wait_for_function("document.documentElement.scrollWidth <= 420")
        browser.close()
    assert figures >= 12
    assert empty == 0
    assert said == []
    assert asked == [path.as_uri()]
