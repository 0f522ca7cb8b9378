"""Make docs/examples/sample-report.html and the pictures in README and docs again after a page has changed.

    .venv/bin/python scripts/sample_report.py

All runs are simulated, and all pictures contain the word SIMULATED. The drives are those in README. The script makes:

- the sample report, a picture of its beginning, and a picture of the dialog of one cell. The profile of this run
  gives write saturation more time than the PTS, so the page shows a rate that has settled;
- the live view in a terminal, in the middle of the IOPS test;
- the comparison of two drives.

The script leaves out everything that differs from machine to machine and from day to day: the host, dates, and the path
of the command. The outputs therefore change only when the pages change.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.text import Text

import tkperf
from tkperf.analysis.comparing.comparison import compare
from tkperf.model.phases import Round
from tkperf.model.run_info import UserFacts
from tkperf.page.comparison.build_page import build_comparison_page
from tkperf.page.progress import build_progress
from tkperf.pipeline.run_state import RunState
from tkperf.render.reports import build_run_view, render_html
from tkperf.render.terminal.progress_lines import render_lines
from tkperf.runner.events import SampleSeen

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = DOCS / "examples/sample-report.html"
PROFILE = "docs/examples/long-saturation.toml"
OPENING, DARK, CELL = DOCS / "report.png", DOCS / "report-dark.png", DOCS / "report-cell.png"
LIVE = DOCS / "live-view.svg"
COMPARISON = DOCS / "comparison.png"
WIDTH_PX = 1400
NAME, DEVICE = "sample", "sim:sata-ssd"
COMPARED = {"rehearsal": "sim:sata-ssd", "nvme": "sim:nvme-4kn"}
COLUMNS, ROWS = 100, 30
LIVE_ROUND = 4
"""The live view shows the state in the middle of the round with this number."""
NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def main() -> None:
    """Measure the simulated drives, write the sample report, and draw all pictures."""
    with tempfile.TemporaryDirectory(prefix="tkperf-sample-") as name:
        folder = Path(name)
        PAGE.write_text(make_sample(folder), encoding="utf-8")
        LIVE.write_text(draw_live_view(folder), encoding="utf-8")
        comparison = folder / "comparison.html"
        comparison.write_text(make_comparison(folder), encoding="utf-8")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        with sync_playwright() as playwright:
            # The browser runs without a sandbox. The browser is still safe, because it opens only pages that tkperf
            # created and that contain no foreign content.
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            draw_sample(browser)
            draw_comparison(browser, comparison)
            browser.close()
    print(PAGE, OPENING, DARK, CELL, LIVE, COMPARISON, sep="\n")


def make_sample(folder: Path) -> str:
    """Measure the sample run and return its report page."""
    plan = tkperf.make_plan("ssd", DEVICE, profile=str(ROOT / PROFILE))
    measured = tkperf.run(plan, NAME, folder=folder)
    command = ("tkperf", "ssd", NAME, DEVICE, "--profile", PROFILE)
    info = replace(measured.info, command_line=command, started_utc=None, hosts=({},))
    result = replace(measured, info=info, ended_utc=None)
    with tkperf.open_run(folder / f"{NAME}.tkperf") as opened:
        return render_html(build_run_view(opened, opened.record(), result, user_facts=UserFacts()))


def draw_live_view(folder: Path) -> str:
    """Measure the first of the compared drives. Return its live view as SVG, in the middle of a round."""
    name, device = next(iter(COMPARED.items()))
    state = RunState()
    frames: list[list[Text]] = []

    def watch(event: tkperf.Event) -> None:
        state.take(event)
        phase = state.progress.phase
        is_wanted = state.progress.test == "iops" and isinstance(phase, Round) and phase.number == LIVE_ROUND
        if is_wanted and isinstance(event, SampleSeen):
            frames.append(render_lines(build_progress(state), width=COLUMNS - 1, height=ROWS, now=NOON))

    tkperf.run(tkperf.make_plan("ssd", device), name, folder=folder, observers=(watch,))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for line in frames[len(frames) // 2]:
        console.print(line, no_wrap=True, highlight=False)
    drawn = console.export_svg(title=f"tkperf ssd {name} {device}", unique_id="live")
    # The page of a code host does not load the fonts that a picture refers to.
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def make_comparison(folder: Path) -> str:
    """Measure the second drive and return the page that compares both drives."""
    first, second = COMPARED
    tkperf.run(tkperf.make_plan("ssd", COMPARED[second]), second, folder=folder)
    runs = [tkperf.load(folder / f"{name}.tkperf") for name in (first, second)]
    return render_html(build_comparison_page(compare(runs)))


def draw_sample(browser: Browser) -> None:
    """Draw two pictures: the sample report from its top to its findings, and the dialog with the details of a p99.9
    latency of the last test.
    """
    page = browser.new_page(viewport={"width": WIDTH_PX, "height": 1270})
    page.goto(PAGE.as_uri())
    page.locator("#iops0relative svg.marks").wait_for()
    page.wait_for_timeout(1000)
    for scheme, path in (("light", OPENING), ("dark", DARK)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_timeout(1000)
        draw_down_to(page, "#overview", 1, path)
    page.emulate_media(color_scheme="light")
    page.locator("#writesat0 tr", has_text="steady-state window").locator("button").nth(7).click()
    page.locator("dialog svg.marks").nth(3).wait_for()
    page.wait_for_timeout(1000)
    page.screenshot(path=CELL)


def draw_comparison(browser: Browser, path: Path) -> None:
    """Draw the comparison from its top to its first charts."""
    page = browser.new_page(viewport={"width": WIDTH_PX, "height": 1270})
    page.goto(path.as_uri())
    page.locator("figure svg.marks").first.wait_for()
    page.wait_for_timeout(1000)
    draw_down_to(page, "figure svg.marks", 1, COMPARISON)


def draw_down_to(page: Page, charts: str, count: int, path: Path) -> None:
    """Draw a page from its top to the end of the first charts."""
    drawn = page.locator(charts)
    boxes = [drawn.nth(number).bounding_box() for number in range(count)]
    bottom = max(box["y"] + box["height"] for box in boxes if box is not None)
    clip = {"x": 0, "y": 0, "width": WIDTH_PX, "height": bottom}
    page.screenshot(path=path, full_page=True, clip=clip)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
