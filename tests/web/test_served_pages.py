"""tkperf serve in a real browser, with the files of one small library."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.builders import run_info, simulate
from tests.render.visits import DRAWN, LONGEST_WAIT_MS, find_violations
from tests.web.ledgers import CLAIMS, UTC, begin_ledger
from tkperf import make_plan
from tkperf.batch.ledger import DriveEnded, append_end
from tkperf.model.errors import EngineError
from tkperf.pipeline.api import resume, run
from tkperf.pipeline.resume_plan import ResumeRequest, make_resume_plan
from tkperf.procedures.write_saturation import TEST as WRITE_SATURATION
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner.events import Event, StepEnded
from tkperf.web.jobs import SHOW_EVERY_S

SUITE = {WRITE_SATURATION.name: WRITE_SATURATION}
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two measured runs, a simulated run with a copy, and a file that cannot be read."""
    folder = tmp_path_factory.mktemp("library")
    for number, (engine, model) in enumerate(
        (("io_uring", "KIOXIA KCD81"), ("io_uring", "Micron 7450"), ("simulated", "simulated")), start=1
    ):
        device = {"model": model, "serial": f"S{number}", "firmware": "F1", "capacity_bytes": 10**9}
        info = run_info(
            name=f"run-{number}",
            uuid=f"{number:032x}",
            ioengine=engine,
            device=device,
            started_utc=f"2026-0{number}-01T08:00:00+00:00",
            hosts=({"hostname": "bench1"},),
        )
        simulate(folder, info, suite=SUITE)
        (folder / "run.tkperf").rename(folder / f"run-{number}.tkperf")
    (folder / "copies").mkdir()
    shutil.copy(folder / "run-3.tkperf", folder / "copies/of-run-3.tkperf")
    (folder / "broken.tkperf").write_bytes(b"SQLite format 3\0" * 100)
    return folder


@pytest.fixture(scope="module")
def address(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the library with the command ``tkperf serve``, and yield the address."""
    with subprocess.Popen(
        [sys.executable, "-m", "tkperf", "serve", str(library), "--port", "0", "--allow-root"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))},
    ) as process:
        assert process.stdout is not None
        yield next(found[0] for line in process.stdout if (found := re.search(r"http://[^/\s]+", line)))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


@contextmanager
def opened(browser: Browser, address: str, scheme: Scheme = "light", width: int = 1440) -> Iterator[Page]:
    """Open a page. Require that it prints nothing on its console, that it requests no other address, and that it is no
    wider than the screen.
    """
    said: list[str] = []
    asked: set[str] = set()
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.set_default_timeout(LONGEST_WAIT_MS)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.add(request.url))
    page.goto(address)
    yield page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    own = "/".join(address.split("/")[:3])
    assert [url for url in asked if not url.startswith((own, "data:", "blob:"))] == []
    page.close()


@pytest.fixture(scope="module")
def whole(browser: Browser, address: str) -> str:
    """Return the address of the list after all files were read. Before that, the page states how many files have not
    been read yet.
    """
    with opened(browser, address) as page:
        expect(page.locator(".count")).to_have_text("2 measured runs and 1 simulated", timeout=120_000)
    return address


def names(page: Page) -> list[str]:
    return page.locator("table.runs th[scope=row] a").all_inner_texts()


def test_a_run_is_found_narrowed_opened_and_compared(browser: Browser, whole: str) -> None:
    """A user can find a run with facets and with words, and each result has its own address. If the user ticks two
    runs, a link leads to the comparison.
    """
    with opened(browser, whole) as page:
        assert names(page) == ["run-3", "run-2", "run-1"]
        page.locator("summary", has_text="Model").click()
        page.get_by_label("KIOXIA KCD81").check()
        page.wait_for_url("**/?model=KIOXIA+KCD81")
        page.get_by_label("Micron 7450").check()  # the facet is still open, so that another value can be chosen
        page.wait_for_url("**&model=Micron+7450")
        assert names(page) == ["run-2", "run-1"]
        page.get_by_role("searchbox").fill("bench1 s2")
        page.keyboard.press("Enter")
        page.wait_for_url("**/?q=bench1+s2**")
        assert names(page) == ["run-2"]
        page.goto(whole)
        compare = page.get_by_role("button", name="Compare")
        page.get_by_label("Compare run-1").check()
        assert compare.get_attribute("aria-disabled") == "true"
        page.get_by_label("Compare run-3").check()
        assert compare.inner_text() == "Compare 2 runs"
        compare.click()
        page.wait_for_url(f"{whole}/compare?run={3:032x}&run={1:032x}")
        page.wait_for_selector(DRAWN, timeout=120_000)
        assert "run-3 and run-1 cannot be ranked" in page.locator("h1").inner_text()
        page.go_back()
        page.get_by_role("link", name="run-2").click()
        page.wait_for_url(f"**/runs/{2:032x}")


def test_the_list_says_what_is_special(browser: Browser, whole: str) -> None:
    """In the list, a simulated run is marked, a copy is mentioned, and a file that cannot be read is shown with the
    reason.
    """
    with opened(browser, whole) as page:
        simulated = page.locator("tr.simulated")
        assert "SIMULATED" in simulated.inner_text()
        assert "1 copy of it is here, too" in simulated.inner_text()
        assert page.locator("td.spark svg").count() == 3
        page.get_by_text("1 file cannot be read").click()
        expect(page.locator(".unreadable li")).to_contain_text("broken.tkperf")


def test_the_list_works_without_scripts(browser: Browser, whole: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(LONGEST_WAIT_MS)
    page.goto(whole)
    page.get_by_role("searchbox").fill("kioxia")
    page.get_by_label("Compare run-2").check()
    page.get_by_role("button", name="Find").click()
    page.wait_for_url("**/?q=kioxia**")
    assert names(page) == ["run-1"]
    page.get_by_role("button", name="kioxia").click()  # this click removes the words and keeps the tick
    page.wait_for_url(f"{whole}/?run={2:032x}")
    page.get_by_label("Compare run-1").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(f"{whole}/compare?run={2:032x}&run={1:032x}")
    context.close()


def test_ticks_go_along_to_another_choice(browser: Browser, whole: str) -> None:
    """Ticked runs remain ticked when the user selects a facet, another order or a link. The user can remove
    each tick.
    """
    with opened(browser, whole) as page:
        bar = page.locator("#compare")
        page.get_by_label("Compare run-1").check()
        page.get_by_role("link", name="Host").click()
        page.wait_for_url(f"**/?sort=host&run={1:032x}")
        assert page.get_by_label("Compare run-1").is_disabled()  # the bar contains the ticked run
        page.get_by_label("Compare run-3").check()
        page.locator("summary", has_text="Model").click()
        page.get_by_label("Micron 7450").check()
        page.wait_for_url("**model=Micron+7450**")
        assert bar.locator("label").all_inner_texts() == ["run-1", "run-3"]
        page.get_by_role("link", name="All runs").click()
        page.wait_for_url(f"**/?sort=host&run={1:032x}&run={3:032x}")
        bar.get_by_label("run-3").click()  # the run is removed from the bar
        page.wait_for_url(f"**/?sort=host&run={1:032x}")
        expect(page.get_by_label("Compare run-3")).to_be_focused()
        page.get_by_label("Compare run-2").check()
        bar.get_by_role("button", name="Compare 2 runs").click()
        page.wait_for_url(f"{whole}/compare?run={1:032x}&run={2:032x}")


def test_a_report_draws_its_charts_under_the_servers_policy(browser: Browser, whole: str) -> None:
    """A report draws its charts under the policy of the server, without eval and without inline scripts. The user can
    save the run file and open a figure.
    """
    with opened(browser, f"{whole}/runs/{1:032x}") as page:
        page.wait_for_selector(DRAWN, timeout=120_000)
        assert page.locator("svg.marks").count() > 0
        page.locator("button[data-cell]").first.click()
        page.wait_for_selector("dialog[open] svg.marks")
        page.keyboard.press("Escape")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download run file").click()
        assert download.value.suggested_filename == "run-1.tkperf"
        page.get_by_role("link", name="Compare with").click()
        page.get_by_label("Compare run-2").check()
        page.get_by_role("button", name="Compare 2 runs").click()
        page.wait_for_url(f"{whole}/compare?run={1:032x}&run={2:032x}")


def test_scripts_of_strangers_do_not_run(browser: Browser, whole: str) -> None:
    """The policy of the server blocks a script element, an event handler and eval in a page, even if the escaping of
    texts failed.
    """
    page = browser.new_page()
    page.set_default_timeout(LONGEST_WAIT_MS)
    page.goto(whole)
    with page.expect_event("requestfinished", lambda request: request.url.endswith("/nope")):
        page.evaluate("""() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = 'script'";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", `<img alt="" src="/nope" onerror="window.ran = 'handler'">`);
            setTimeout("window.ran = 'eval'");
        }""")
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran") is None
    page.close()


# Contrasts depend on the colour scheme, and the layout depends on the width. No property depends on both, so two
# combinations are enough.
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1440)])
@pytest.mark.parametrize(
    "path", ["/?sort=name", f"/runs/{1:032x}", f"/compare?run={1:032x}&run={3:032x}", "/runs/none"]
)
def test_axe_finds_nothing(browser: Browser, whole: str, scheme: Scheme, width: int, path: str) -> None:
    """axe finds no accessibility fault in the list, in a report, in a comparison or in the page of an error."""
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.set_default_timeout(LONGEST_WAIT_MS)
    page.goto(f"{whole}{path}")
    if "run" in path and "none" not in path:
        page.wait_for_selector(DRAWN, timeout=120_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('.facet:first-of-type, .unreadable').forEach(each => each.open = true)")
    assert find_violations(page) == []
    context.close()


@contextmanager
def under_way(folder: Path) -> Iterator[threading.Semaphore]:
    """Start a run. Each release of the semaphore lets the run end one step."""
    steps = threading.Semaphore(0)

    def wait_for_step(event: Event) -> None:
        if isinstance(event, StepEnded):
            steps.acquire()

    info = run_info(name="live", uuid=f"{9:032x}")
    arguments = {"suite": SUITE, "observer": wait_for_step}
    run = threading.Thread(target=simulate, args=(folder, info), kwargs=arguments)
    run.start()
    try:
        yield steps
    finally:
        steps.release(10_000)
        run.join()


def wait_until_listed(browser: Browser, whole: str, name: str) -> str:
    """Wait until the list contains a run, and return the address of the run's page."""
    with opened(browser, whole) as page:
        link = page.get_by_role("link", name=name, exact=True, include_hidden=True)
        while not link.count():
            page.wait_for_timeout(500)
            page.reload()
        return f"{whole}{link.get_attribute('href')}"


def test_a_run_is_seen_live_to_its_end(browser: Browser, whole: str, library: Path) -> None:
    """The page of a running run becomes the report of the run without any action of the user."""
    folder = library / "live"
    folder.mkdir()
    address = f"{whole}/runs/{9:032x}"
    with under_way(folder) as steps:
        steps.release(5)
        wait_until_listed(browser, whole, "live")
        with looked_at(browser, address, "Test 1 of 1"):
            pass
        with opened(browser, address, width=390) as page:
            place = page.locator("#live .place")
            expect(place).to_contain_text("Test 1 of 1", timeout=60_000)
            shown = page.locator("#live").inner_html()
            steps.release()
            page.wait_for_function("before => document.querySelector('#live').innerHTML !== before", arg=shown)
            page.wait_for_function("document.querySelectorAll('#live .measured').length > 0")
            steps.release(10_000)
            page.wait_for_selector(DRAWN, timeout=120_000)
            assert not page.locator("#live").count()


@contextmanager
def looked_at(browser: Browser, address: str, waits_for: str) -> Iterator[Page]:
    """Open the page of a running run, and require that axe finds no fault in it. The page is opened in light and dark
    colours, on a wide and a narrow screen.
    """
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(LONGEST_WAIT_MS)
    page.goto(address)
    expect(page.locator("#live")).to_contain_text(waits_for, timeout=60_000)
    for scheme, width in (("light", 1440), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert find_violations(page) == []
    yield page
    context.close()


def test_a_batch_is_seen_live_to_its_end(browser: Browser, whole: str, library: Path) -> None:
    """A batch is shown live until it ends. The page shows the states of the drives below the name of the batch until
    all drives are done.
    """
    folder = library / "batch"
    folder.mkdir()
    with begin_ledger(folder, CLAIMS) as ledger:
        address = wait_until_listed(browser, whole, "Page of the batch")
        with looked_at(browser, address, "rack-02") as page:
            assert page.locator("h1 + #live tbody tr").count() == 2
            for number in (1, 2):
                append_end(ledger.path, DriveEnded(number=number, utc=UTC, pid=1, exit_code=7))
            ledger.close()
            expect(page.locator("#live")).to_have_count(0, timeout=60_000)


def stays(page: Page, loads: Sequence[object]) -> None:
    """Require that the page is not loaded again during a period that is longer than the interval between two events."""
    before = len(loads)
    page.wait_for_timeout(1000 * (SHOW_EVERY_S + 2))
    assert len(loads) == before


def test_a_resumption_is_seen_live(browser: Browser, whole: str, library: Path) -> None:
    """The report of an interrupted run becomes a live page while a process holds the file. After the run has continued
    to its end, the page becomes the report again.
    """
    folder = library / "resumed"
    steps = threading.Semaphore(8)

    def stop(event: Event) -> None:
        if isinstance(event, StepEnded) and not steps.acquire(blocking=False):
            raise EngineError("the host was switched off")

    plan = make_plan("ssd", "sim:sata-ssd", tests=["writesat"])
    with pytest.raises(EngineError):
        run(plan, "resumed", folder=folder, observers=(stop,))
    path = folder / "resumed.tkperf"

    def wait_for_step(event: Event) -> None:
        if isinstance(event, StepEnded):
            steps.acquire()

    loads: list[object] = []

    # Playwright does not accept list.append as a callback, because this method is written in C
    def take(loaded: object) -> None:
        loads.append(loaded)

    with opened(browser, wait_until_listed(browser, whole, "resumed")) as page:
        page.on("domcontentloaded", take)
        page.wait_for_selector(DRAWN, timeout=120_000)
        held = RunFileWriter(path, appends=True)
        page.wait_for_selector("#live .place", timeout=60_000)
        stays(page, loads)
        held.close()
        page.wait_for_selector(DRAWN, timeout=120_000)
        rest = make_resume_plan(ResumeRequest(path=path))
        resumption = threading.Thread(target=resume, args=(rest,), kwargs={"observers": [wait_for_step]})
        resumption.start()
        try:
            expect(page.locator("#live .place")).to_contain_text("Test 1 of 1", timeout=60_000)
            stays(page, loads)
        finally:
            steps.release(10_000)
            resumption.join()
        page.wait_for_selector(DRAWN, timeout=120_000)
