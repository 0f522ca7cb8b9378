"""docs/examples/sample-report.html, for whoever wants to look before installing anything, and the pictures of it in
README and docs: made again after a change of the page.

    .venv/bin/python scripts/sample_report.py

The four tests on the simulated drive of the README. What would differ from machine to machine and from day to day (the
host, dates, the command's path) is left out, so a page that comes out otherwise is one that looks otherwise.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import sync_playwright

import tkperf
from tkperf.model.run_info import UserFacts
from tkperf.render.reports import build_run_view, render_html

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "examples/sample-report.html"
OPENING, DARK, CELL = DOCS / "report.png", DOCS / "report-dark.png", DOCS / "report-cell.png"
WIDTH_PX = 1400
NAME, DEVICE = "sample", "sim:sata-ssd"


def main() -> None:
    """Measure the simulated drive, write its page, and draw it."""
    with tempfile.TemporaryDirectory(prefix="tkperf-sample-") as folder:
        measured = tkperf.run(tkperf.make_plan("ssd", DEVICE), NAME, folder=folder)
        info = replace(measured.info, command_line=("tkperf", "ssd", NAME, DEVICE), started_utc=None, hosts=({},))
        result = replace(measured, info=info, ended_utc=None)
        with tkperf.open_run(Path(folder) / f"{NAME}.tkperf") as opened:
            view = build_run_view(opened, opened.record(), result, user_facts=UserFacts())
    PAGE.write_text(render_html(view), encoding="utf-8")
    _draw()
    print(PAGE, OPENING, DARK, CELL, sep="\n")


def _draw() -> None:
    """From the top down to the first charts; the stream of the last test, opened by its 99.9 % latency."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        # The page is tkperf's own.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH_PX, "height": 1270})
        page.goto(PAGE.as_uri())
        page.locator("#iops0convergence svg.marks").wait_for()
        page.wait_for_timeout(1000)
        drawn = page.locator("#iops0 figure svg.marks")
        boxes = [drawn.nth(number).bounding_box() for number in range(2)]
        bottom = max(box["y"] + box["height"] for box in boxes if box is not None)
        clip = {"x": 0, "y": 0, "width": WIDTH_PX, "height": bottom}
        for scheme, path in (("light", OPENING), ("dark", DARK)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.wait_for_timeout(1000)
            page.screenshot(path=path, full_page=True, clip=clip)  # type: ignore[arg-type]
        page.emulate_media(color_scheme="light")
        page.locator("#writesat0 tr", has_text="whole").locator("button").nth(7).click()
        page.locator("dialog svg.marks").nth(3).wait_for()
        page.wait_for_timeout(1000)
        page.screenshot(path=CELL)
        browser.close()


if __name__ == "__main__":
    main()
