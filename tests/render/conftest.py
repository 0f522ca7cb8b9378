"""A browser for tests, and reports that are opened in this browser. A report contains all default tests or some
tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.builders import run_info, simulate, view_of
from tests.render.visits import LONGEST_WAIT_MS, Visit, new_page
from tkperf.procedures import SSD_TESTS
from tkperf.render.html import render_view


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a browser with an empty page. The empty page keeps the process of all other pages alive (see ``new_page``
    in visits.py).
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--process-per-site"])
        empty = tmp_path_factory.mktemp("empty") / "empty.html"
        empty.touch()
        context = browser.new_context()
        context.set_default_timeout(LONGEST_WAIT_MS)
        context.new_page().goto(empty.as_uri())
        yield browser
        browser.close()


@pytest.fixture
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the report of a simulated run. The run file is in the same folder. Tests only read this
    folder, and all workers of pytest-xdist share it.

    Without the marker ``report_of``, the report contains all default tests.
    """
    base = tmp_path_factory.getbasetemp()
    marker = request.node.get_closest_marker("report_of") or pytest.mark.report_of().mark
    preset = marker.kwargs.get("preset", "sata-ssd")
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "reports-of-all-workers"
    folder = folder / "-".join((preset, *marker.args))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            suite = {name: SSD_TESTS[name] for name in marker.args} or None
            simulate(folder, run_info(notices=("SIMULATED: a model",)), preset, suite=suite)
            path.write_text(render_view(view_of(folder / "run.tkperf")), encoding="utf-8")
    return path


@pytest.fixture
def visit(browser: Browser, report: Path) -> Iterator[Visit]:
    page = new_page(browser, 1300, 900)
    visit = Visit(page=page, path=report)
    yield visit
    # In every test with this fixture, the page must print nothing on the console and must load no file other than its
    # own.
    assert visit.said == []
    assert {url.split("#")[0] for url in visit.asked} == {report.as_uri()}
    page.close()
