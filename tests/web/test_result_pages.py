"""Comparisons, batches and running runs in a browser. The workers create these pages."""

from __future__ import annotations

import asyncio
import fcntl
import json
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from tests.builders import run_info, simulate, work
from tests.fleets import vary_run_file
from tests.web.ledgers import CLAIMS, NAMES, begin_ledger, make_ledger
from tests.web.listed import a_batch, a_row
from tkperf.model.errors import RunFileError, UsageError
from tkperf.model.steady_state import judge
from tkperf.page.progress import CellHistories, ProgressView, build_progress
from tkperf.pipeline.run_state import RunState
from tkperf.procedures import SSD_TESTS
from tkperf.render.export_tables import DataTable
from tkperf.runfile.writers import state_of
from tkperf.web import data, jobs, live_pages
from tkperf.web.data import DataPages
from tkperf.web.files import KnownFile
from tkperf.web.index import BatchRow, Index, RunRow
from tkperf.web.jobs import (
    follow_batch,
    follow_run,
    make_batch,
    make_comparison,
    make_row,
    pack_tables,
    render_progress,
)
from tkperf.web.library import FoundFiles, Listing, build_listing
from tkperf.web.live_chart import HEIGHT, draw_cells, draw_seconds, draw_window
from tkperf.web.live_pages import LivePages
from tkperf.web.page_cache import PageCache
from tkperf.web.result_pages import BatchPages, ComparisonPages
from tkperf.web.server_state import ChartScript, ServerState
from tkperf.web.workers import BusyError, JobError

FRAME = {"script_address": "/static/x/charts.js", "head": "", "above": "<nav>bar</nav>"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished batch of two drives."""
    folder = tmp_path_factory.mktemp("served")
    simulate(folder, run_info(), suite={"tp": SSD_TESTS["tp"]})
    for name in NAMES:
        vary_run_file(folder / "run.tkperf", folder / f"{name}.tkperf", device={}, uuid=name)
    make_ledger(folder, CLAIMS)
    return folder


def known(path: Path) -> KnownFile:
    return KnownFile(folder=path.parent, place=path.name, stamp=state_of(path.stat()))


@pytest.fixture
def runs(served: Path) -> dict[str, KnownFile]:
    return {f"{name}.tkperf": known(served / f"{name}.tkperf") for name in NAMES}


@pytest.mark.parametrize(
    ("kind", "begins"), [("page", b"<!DOCTYPE html>"), ("csv", b""), ("json", b"{"), ("pdf", b"%PDF")]
)
def test_a_comparison_is_that_of_the_command_line(kind: str, begins: bytes, runs: dict[str, KnownFile]) -> None:
    """A comparison keeps the order of the runs in its address, in each output format. An HTML page of the comparison
    has the server's bar and script.
    """
    content = make_comparison(
        order=list(runs), arrangement="", kind=kind, frame=FRAME if kind == "page" else None, **runs
    )
    assert content.startswith(begins)
    if kind == "page":
        assert b"<nav>bar</nav>" in content
        assert b'src="/static/x/charts.js"' in content


def test_runs_that_cannot_be_arranged_so_are_refused(runs: dict[str, KnownFile]) -> None:
    with pytest.raises(UsageError):
        make_comparison(order=list(runs), arrangement="cohort", kind="page", frame=FRAME, **runs)


def test_cells_of_a_batch_lead_to_the_seconds_of_their_drive(served: Path, runs: dict[str, KnownFile]) -> None:
    """On the page of a batch, each claim of a drive has a link to the seconds of the drive, and each drive has a link
    to its report.
    """
    addresses = {name: f"/runs/{number}" for number, name in enumerate(runs)}
    page = make_batch(
        ledger=known(served / "rack.batch"), addresses=addresses, kind="page", frame=FRAME, **runs
    ).decode()
    for address in addresses.values():
        assert f'<a href="{address}">' in page
        assert re.search(rf'<td[^>]*><a href="{address}#tp[^"]+" title="[^"]*Every second', page)


def test_a_batch_is_set_as_a_pdf(served: Path, runs: dict[str, KnownFile]) -> None:
    content = make_batch(ledger=known(served / "rack.batch"), addresses={}, kind="pdf", frame=None, **runs)
    assert content.startswith(b"%PDF")


def test_a_mail_about_a_batch_has_its_verdict(served: Path, runs: dict[str, KnownFile]) -> None:
    mail = make_batch(ledger=known(served / "rack.batch"), addresses={}, kind="mail", frame=None, **runs).decode()
    assert mail.startswith("rack: ")
    assert len(mail.splitlines()) <= 12


def test_a_batch_reads_no_file_that_is_not_served(served: Path, tmp_path: Path) -> None:
    """A batch reads no file outside the served folder. The names in its ledger and the baseline of its claims cannot
    refer to such a file.
    """
    ledger = make_ledger(tmp_path, f'[baseline]\nrun = "{served / "run.tkperf"}"\nwithin_percent = 5\n')
    (tmp_path / "rack-01.tkperf").symlink_to(served / "rack-01.tkperf")
    with pytest.raises(RunFileError, match="link"):
        make_batch(ledger=known(ledger), addresses={}, kind="json", frame=None)
    with pytest.raises(RunFileError, match="link"):
        next(follow_batch(ledger=known(ledger), addresses={}))
    with pytest.raises(RunFileError, match="link"):
        make_row(known(ledger))
    (tmp_path / "rack-01.tkperf").unlink()
    shutil.copy(served / "rack-01.tkperf", tmp_path)
    without = json.loads(make_batch(ledger=known(ledger), addresses={}, kind="json", frame=None))
    assert "done" in str(without)
    assert "tp" not in str(without["drives"])
    shutil.copy(served / "rack-02.tkperf", tmp_path)
    of_two = {"rack-02.tkperf": known(tmp_path / "rack-02.tkperf")}
    page = make_batch(ledger=known(ledger), addresses={}, kind="page", frame=FRAME, **of_two)
    assert b"the baseline run.tkperf of the claims is not in the served folder" in page


def test_tables_of_a_file_whose_name_is_no_text_are_packed() -> None:
    table = DataTable(name="steps", types={"a": str}, rows=[])
    assert b"bad?/steps.csv" in pack_tables([table], "bad\udcff")


def test_a_run_is_watched_to_its_end(served: Path) -> None:
    """If no process writes to a run file, the run has only its last state. A watch of such a run sends this state and
    then ends.
    """
    states = list(follow_run(known(served / "run.tkperf")))
    assert len(states) == 1
    assert b"run complete" in states[0]


def test_another_file_in_its_place_is_not_watched(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another file takes the place of a run or a batch, the server stops watching this run or batch. The new file
    may be a link that leads out of the folder.
    """
    monkeypatch.setattr(jobs, "SHOW_EVERY_S", 0.1)
    path = tmp_path / "rack-01.tkperf"
    shutil.copy(served / path.name, path)
    with path.open("rb") as writer, begin_ledger(tmp_path, "") as ledger:
        fcntl.flock(writer, fcntl.LOCK_EX)
        watches = (follow_run(known(path)), follow_batch(ledger=known(ledger.path), addresses={}))
        for watch in watches:
            assert next(watch)
            assert next(watch)
        path.unlink()
        path.symlink_to(served / path.name)
        for watch in watches:
            with pytest.raises(RunFileError, match=r"no longer the file|is a link"):
                next(watch)


def test_a_curve_begins_with_two_values() -> None:
    """The curve of a cell is drawn only after its second value. In the first round, curves of a single dot would show
    less than the numbers.
    """
    cells = CellHistories(title="IOPS, round by round", values={work(): (5.0,), work(100): (5.0, 6.0)}, current=None)
    page = render_progress(ProgressView(name="run", tests=("iops",), test="iops", number=1, place="", cells=cells))
    assert page.count('<path class="measured"') == 1
    assert ">5.00<" in page
    assert "now 6.00, at most 6.00" in page


def test_the_window_is_drawn_with_its_limits_on_the_scale_of_its_values() -> None:
    """In the chart of a window, lines for the limits are above and below the average, at a distance of half the
    permitted range or half the permitted slope. These lines use the same scale as the values. The fitted line ends at
    its computed value.
    """
    state = RunState()
    state.verdict = judge([3, 4, 5, 6, 7], [100.0, 104.0, 102.0, 108.0, 106.0], tracking="4k", unit="IOPS")
    window = build_progress(state).window
    assert window is not None
    chart = draw_window(window)
    assert chart is not None
    assert chart.across == ("3", "4", "5", "6", "7")
    assert chart.up[0] == "115"
    assert chart.up[-1] == "90"

    def values_of(kind: str, number: int = 0) -> list[float]:
        paths = [curve.path for curve in chart.curves if curve.kind == kind]
        heights = [float(place.rpartition(",")[2]) for place in paths[number].split()]
        return [round(90 + (115 - 90) * (1 - height / HEIGHT), 1) for height in heights]

    assert values_of("measured") == [100.0, 104.0, 102.0, 108.0, 106.0]
    assert values_of("average") == [104.0, 104.0]
    assert values_of("range-limit") == [114.4, 114.4]
    assert values_of("range-limit", 1) == [93.6, 93.6]
    assert values_of("slope-limit") == [109.2, 109.2]
    assert values_of("fit") == [100.8, 107.2]
    names = [curve.name for curve in chart.curves if curve.name]
    assert names == ["average", "range: average ± 10 %", "slope: average ± 5 %", "best linear fit", "measured"]
    state.verdict = judge([1], [100.0], tracking="4k", unit="IOPS")
    assert build_progress(state).window is not None
    assert "range-limit" not in render_progress(build_progress(state))


def test_axes_name_units_and_times() -> None:
    """On a time axis, the newest second is at the right end, and the axis names its unit. If a round is missing, the
    curve has a gap.
    """
    chart = draw_seconds([50.0] * 70)
    assert chart is not None
    assert (chart.unit, chart.across) == ("IOPS", ("2 min ago", "1.5", "1", "0.5", "now"))
    (curve,) = chart.curves
    assert curve.path.startswith("M425.0,")
    assert curve.path.rpartition(" ")[2].startswith("L1000.0,")
    assert draw_seconds([50.0]) is None
    long = draw_seconds([1.0, *[50.0] * 499])
    assert long is not None
    assert len(long.curves[0].path.split()) == 480
    values = {work(): (5.0, None, 6.0, 7.0)}
    (cell,) = draw_cells(CellHistories(title="x", values=values, current=None, part="slice", unit="µs"))
    assert (cell.unit, cell.across) == ("µs", ("slice 1", "4"))
    assert cell.curves[0].path.count("M") == 2
    full = CellHistories(title="x", values={work(): (5.0,) * 9}, current=None, part="slice", most=9)
    assert draw_cells(full)[0].across == ("9 slices ago", "now")


def test_texts_of_a_run_under_way_stay_texts() -> None:
    """Texts of a running run are escaped, because a run file may contain a script in every text."""
    hostile = "<script>alert(1)</script>"
    view = ProgressView(
        name=hostile,
        tests=(hostile,),
        test=hostile,
        number=1,
        place=hostile,
        load=hostile,
        disturbed=hostile,
        remarks=(hostile,),
        totals=(hostile,),
        seconds_iops=(1.0, 2.0),
    )
    assert "<script" not in render_progress(view)
    assert render_progress(view).count("&lt;script&gt;") == 6


class Workers:
    """A stand-in for the workers that records the requested jobs."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.error: JobError | None = None
        self.busy = False
        self.followed = 0

    async def run(self, job: str) -> bytes:
        return job.encode()

    async def make(self, result: Any, job: str, **arguments: Any) -> None:
        self.asked.append({"job": job, **arguments})
        result.write(b"made")

    def require_follower(self) -> None:
        if self.busy:
            raise BusyError("16 other runs are being watched")

    async def follow(self, job: str, **arguments: Any) -> AsyncIterator[bytes]:
        self.followed += 1
        if self.error is not None:
            raise self.error
        yield b"<p>first\nline"
        await asyncio.sleep(0.5)
        yield b"<p>second"


class Library:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing

    async def wait_for_look(self) -> None:
        pass


@pytest.fixture
def state(served: Path) -> ServerState:
    files = [known(served / f"{name}.tkperf") for name in NAMES] + [known(served / "rack.batch")]
    rows: tuple[RunRow | BatchRow, ...] = (a_row(1), a_row(2), a_batch(*(f"{name}.tkperf" for name in NAMES)))
    with closing(Index(None)) as index:
        for file, row in zip(files, rows, strict=True):
            index.put(file.stamp, row)
        library: Any = Library(build_listing(FoundFiles(files=tuple(files)), index))
    workers: Any = Workers()
    return ServerState(library=library, workers=workers, kept=PageCache(None), charts=ChartScript(workers))


@pytest.fixture
def browser(state: ServerState) -> Iterator[TestClient]:
    pages = (LivePages(state), ComparisonPages(state), BatchPages(state))
    routes = [route for each in pages for route in each.build_routes()]
    with TestClient(Starlette(routes=routes)) as client:
        yield client


ONE, TWO = f"{1:032x}", f"{2:032x}"


def test_the_address_of_a_comparison_has_all_of_it(browser: TestClient, state: ServerState) -> None:
    answer = browser.get(f"/compare?run={TWO}&run={ONE}&run={TWO}&as=runs")
    assert answer.text == "made"
    (asked,) = cast("Workers", state.workers).asked
    assert asked["order"] == [TWO, ONE]
    assert asked["arrangement"] == "runs"
    assert asked[ONE].place == "rack-01.tkperf"


def test_an_address_of_the_list_becomes_that_of_the_comparison(browser: TestClient) -> None:
    """The form of the list leads to the address of the comparison, which contains only the runs that the user
    ticked.
    """
    answer = browser.get(f"/compare?q=rack&sort=name&page=2&run={TWO}&run={ONE}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/compare?run={TWO}&run={ONE}"


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/compare", 400),
        (f"/compare?run={ONE}", 400),
        (f"/compare?run={ONE}&run=../../etc/passwd", 404),
        (f"/compare?run={ONE}&run={TWO}&as=x", 400),
        ("/compare?" + "&".join(f"run={number}" for number in range(300)), 400),
        (f"/compare/exe?run={ONE}&run={TWO}", 404),
        ("/batches/none", 404),
        ("/batches/none/live", 404),
        ("/runs/none/live", 404),
        (f"/batches/{'b' * 32}/exe", 404),
    ],
)
def test_addresses_of_nothing_are_refused(browser: TestClient, state: ServerState, address: str, status: int) -> None:
    assert browser.get(address).status_code == status
    assert not cast("Workers", state.workers).asked


def test_downloads_are_saved_under_a_name(browser: TestClient) -> None:
    for address, name in (
        (f"/compare/csv?run={ONE}&run={TWO}", "comparison.csv"),
        (f"/batches/{'b' * 32}/json", "rack.json"),
    ):
        answer = browser.get(address)
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name}"


def test_nothing_under_way_has_no_events(browser: TestClient) -> None:
    """If a run is not in progress, a request for its events is answered with status 204. A browser then stops
    asking.
    """
    assert browser.get(f"/runs/{ONE}/live").status_code == 204
    assert browser.head(f"/runs/{ONE}/live").status_code == 204


@pytest.mark.parametrize("error", [None, JobError("too busy")])
def test_metrics_read_one_file_at_a_time_and_rest(
    served: Path, state: ServerState, monkeypatch: pytest.MonkeyPatch, error: JobError | None
) -> None:
    """For all requests together, the server reads the files for the metrics one at a time, and pauses after each file.
    Reading a long run takes long, and pages need the workers at the same time.
    """
    at_once, read = 0, []

    async def read_points(_: str, *, file: KnownFile) -> bytes:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        read.append(file.place)
        await asyncio.sleep(0.001)
        at_once -= 1
        if error is not None:
            raise error
        return msgspec.msgpack.encode([])

    monkeypatch.setattr(state.workers, "run", read_points, raising=False)
    monkeypatch.setattr(RunRow, "is_running", True)
    monkeypatch.setattr(data, "REST", 1e9)
    request = Request({"type": "http"})

    async def scrape() -> None:
        pages = DataPages(state)
        for _ in range(2):
            await asyncio.gather(*(pages.show_metrics(request) for _ in range(3)))
            assert len(read) == len(NAMES)
            (served / f"{NAMES[0]}.tkperf").touch()
        monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + 1e12)
        await pages.show_metrics(request)
        assert len(read) == len(NAMES) + (1 if error is None else len(NAMES))

    asyncio.run(scrape())


def test_a_run_under_way_is_watched_once(served: Path, browser: TestClient, state: ServerState) -> None:
    """A HEAD request starts no watch of a running run. The events that a browser receives end when the run ends."""
    with (served / "rack-01.tkperf").open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        head = browser.head(f"/runs/{ONE}/live")
        assert head.status_code == 200
        assert not head.content
        assert not cast("Workers", state.workers).followed
        answer = browser.get(f"/runs/{ONE}/live")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: <p>second\n\n:\n\nevent: ended\ndata:\n\n")
    assert "data: <p>first\ndata: line\n\n" in answer.text


def test_browsers_share_one_watch(served: Path, state: ServerState) -> None:
    async def look() -> list[bytes]:
        pages = LivePages(state)
        events = pages._watch("/runs/1/live", "follow_run", {})
        others = pages._watch("/runs/1/live", "follow_run", {})
        first, second = await asyncio.gather(anext(events), anext(others))
        for each in (events, others):
            await cast("Any", each).aclose()
        assert not pages._watched
        return [first, second]

    first, second = asyncio.run(look())
    assert first == second
    assert cast("Workers", state.workers).followed == 1


def test_a_watch_that_fails_gives_the_reason_and_no_end(state: ServerState) -> None:
    """If a watch fails, the event contains the reason, and the event "ended" is not sent. If the event "ended" were
    sent, browsers would load the page again and immediately start the same watch.
    """
    cast("Workers", state.workers).error = JobError("<b> is busy")

    async def look() -> list[bytes]:
        return [event async for event in LivePages(state)._watch("/runs/1/live", "follow_run", {})]

    event, _ = asyncio.run(look())
    assert b"&lt;b&gt; is busy" in event


def test_events_end_with_the_server(state: ServerState) -> None:
    """If the server ends, the events of a page end without the event "ended", so the browser asks again."""

    async def look() -> list[bytes]:
        state.ending.set()
        return [event async for event in LivePages(state)._watch("/runs/1/live", "follow_run", {})]

    assert asyncio.run(look())[0].startswith(b"data: <p>first")
    assert b"event: ended" not in b"".join(asyncio.run(look()))


def test_events_that_wait_for_browsers_are_bounded(state: ServerState, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as one browser does not read its event, the other browsers receive no event either. Later, they receive
    the newest event.
    """
    monkeypatch.setattr(live_pages, "KEEP_ALIVE_S", 0.0)

    async def look() -> list[bytes]:
        pages = LivePages(state)
        stalled = pages._watch("/runs/1/live", "follow_run", {})
        others = pages._watch("/runs/1/live", "follow_run", {})
        taken = await anext(stalled)
        monkeypatch.setattr(live_pages, "MOST_SENT_BYTES", len(taken))
        pieces = [await anext(others)]
        assert pages._sent_bytes == len(taken)
        await cast("Any", stalled).aclose()
        assert pages._sent_bytes == 0
        pieces.append(await anext(others))
        await cast("Any", others).aclose()
        return [taken, *pieces]

    taken, nothing, later = asyncio.run(look())
    assert taken.startswith(b"data: <p>")
    assert nothing == b":\n\n"
    assert later.startswith(b"data: <p>")


def test_streams_and_watches_are_bounded(served: Path, state: ServerState, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of streams and watches is limited. Streams that have not sent an event yet also count.

    When a browser has left, another browser can use its place.
    """
    monkeypatch.setattr(live_pages, "MOST_STREAMS", 2)
    pages, arguments = LivePages(state), {"file": known(served / "rack-01.tkperf")}

    async def answer() -> Response:
        scope = {"type": "http", "method": "GET", "path": "/"}
        return await pages._answer(Request(scope), "/runs/1", arguments["file"], "follow_run", arguments)

    async def leave() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_: object) -> None:
        pass

    async def run() -> None:
        first, _ = [await answer() for _ in range(2)]
        with pytest.raises(BusyError, match="2 other browsers"):
            await answer()
        await first({"type": "http"}, leave, send)
        await answer()
        pages._streams = 0
        cast("Workers", state.workers).busy = True
        with pytest.raises(BusyError, match="16 other runs"):
            await answer()

    with (served / "rack-01.tkperf").open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        asyncio.run(run())


def test_a_batch_of_too_many_drives_is_refused(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch with too many drives is refused, because a batch file from another user may name a million drives."""
    monkeypatch.setattr(jobs, "MOST_DRIVES", 1)
    with pytest.raises(RunFileError, match="names 2 drives, but a batch has at most 1"):
        make_row(known(served / "rack.batch"))
