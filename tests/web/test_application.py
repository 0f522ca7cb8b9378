"""The server with real workers and real run files. A hostile file affects only its own page."""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.builders import io_stats, run_info, simulate
from tests.runfile.runs import a_run, a_step
from tkperf.model.measurement import NO_IO, Sample
from tkperf.pipeline.api import load
from tkperf.procedures.iops import TEST as IOPS_TEST
from tkperf.runner.events import SampleSeen, StepStarted
from tkperf.web.application import build_app
from tkperf.web.workers import BusyError, FileError, JobError, LateError

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
UUID = "0b9a7a34-7d8f-4a63-8f3c-6a1d9f1f0c11"
TWICE = UUID.replace("0b9a", "2b9a")
RUN_ID = UUID.replace("-", "")
NAME = "a <img src=x onerror=alert(3)> ü\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder with a run that has a script in every text, files that are not run files, and a running run."""
    folder = tmp_path_factory.mktemp("served")
    info = run_info(
        name=HOSTILE,
        uuid=UUID,
        device={"model": HOSTILE, "serial": HOSTILE, "firmware": HOSTILE},
        device_description=HOSTILE,
        notices=(HOSTILE,),
        hosts=({"hostname": HOSTILE},),
        profile_name=HOSTILE,
    )
    simulate(folder, info, suite={"iops": IOPS_TEST})
    (folder / "run.tkperf").rename(folder / f"{NAME}.tkperf")
    simulate(folder, run_info(name="damaged", uuid=UUID.replace("0b9a", "1b9a")), suite={"iops": IOPS_TEST})
    content = (folder / "run.tkperf").read_bytes()
    (folder / "run.tkperf").unlink()
    simulate(folder, run_info(name="twice", uuid=TWICE, device={"model": "original"}), suite={"iops": IOPS_TEST})
    (folder / "run.tkperf").rename(folder / "original.tkperf")
    shutil.copy(folder / "original.tkperf", folder / "copy.tkperf")
    with closing(sqlite3.connect(folder / "copy.tkperf")) as db, db:
        changed = json.dumps({"model": "of-the-copy"})
        db.execute("UPDATE run SET value = ? WHERE key = 'device'", (changed,))
    for size in (1, 100, 5000, len(content) // 2):
        (folder / f"cut-{size}.tkperf").write_bytes(content[:size])
    for number, at in enumerate(range(2000, len(content), len(content) // 6)):
        damaged = bytearray(content)
        damaged[at : at + 400] = b"\xff" * 400
        (folder / f"damaged-{number}.tkperf").write_bytes(damaged)
    (folder / "not-sqlite.tkperf").write_text("x" * 10_000)
    (folder / "folder.tkperf").mkdir()
    (folder / "link.tkperf").symlink_to("/etc/passwd")
    _, writer = a_run(folder)
    writer(a_start())
    for number in range(70):
        writer(a_second(number))
    yield folder
    writer.close()


def a_start() -> StepStarted:
    step = a_step()
    return StepStarted(
        test="iops",
        section="IOPS",
        kind=step.kind,
        number=1,
        position=0,
        steps=1,
        workload=step.workload,
        planned_s=600.0,
        planned_bytes=None,
        at_s=10.0,
    )


def a_second(number: int) -> SampleSeen:
    sample = Sample(start_s=number, duration_s=1, read=NO_IO, write=io_stats([1000] * 8))
    return SampleSeen(test="iops", sample=sample, at_s=11.0 + number)


@pytest.fixture(scope="module")
def client(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Yield the client of a server that has read all files."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with TestClient(build_app([folder]), base_url="http://localhost") as client:
            while client.get("/api/runs").json()["not_read_yet"]:
                pass
            yield client


def test_the_report_is_shown_with_the_servers_scripts(client: TestClient) -> None:
    answer = client.get(f"/runs/{RUN_ID}")
    assert answer.status_code == 200
    scripts = re.findall(r"<script(?![^>]*application/json)[^>]*>", answer.text)
    assert any("charts.js" in script for script in scripts)
    for script in scripts:
        address = re.search(r'src="(/static/[^"]+)"', script)
        assert address, script
        assert client.get(address[1]).headers["content-type"].startswith("text/javascript")
    for style in re.findall(r'<link rel="stylesheet" href="([^"]+)"', answer.text):
        assert client.get(style).status_code == 200


def test_a_kept_page_is_the_same(client: TestClient) -> None:
    assert client.get(f"/runs/{RUN_ID}").content == client.get(f"/runs/{RUN_ID}").content


@pytest.mark.parametrize("address", [f"/runs/{RUN_ID}", "/", f"/runs/{RUN_ID}/html"])
def test_texts_of_run_files_are_inert(client: TestClient, address: str) -> None:
    page = client.get(address).text
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_downloads_are_saved_under_the_name_of_the_run_file(client: TestClient, folder: Path) -> None:
    """A download has the name of the run file. The name is encoded so that it cannot end the header. The content equals
    the output of the command line.
    """
    for kind in ("html", "run", "csv", "json"):
        answer = client.get(f"/runs/{RUN_ID}/{kind}")
        assert answer.status_code == 200
        name = answer.headers["content-disposition"]
        assert re.fullmatch(r"attachment; filename\*=UTF-8''[\w%.-]+", name), name
    results = client.get(f"/runs/{RUN_ID}/json").json()
    assert results["schema"] == load(folder / f"{NAME}.tkperf").schema
    assert client.get(f"/api/runs/{RUN_ID}").json() == results
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/runs/{RUN_ID}/csv").content))
    assert any(name.endswith("/cells.csv") for name in archive.namelist())
    html = client.get(f"/runs/{RUN_ID}/html").text
    assert "Content-Security-Policy" in html
    assert "<link" not in html


def test_the_run_file_can_be_saved_whole(client: TestClient, tmp_path: Path) -> None:
    saved = tmp_path / "saved.tkperf"
    saved.write_bytes(client.get(f"/runs/{RUN_ID}/run").content)
    with closing(sqlite3.connect(saved)) as db, db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert load(saved).info.uuid == UUID


@pytest.mark.parametrize(
    "run_id",
    [
        "../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "link",
        "link.tkperf",
        "%00",
        RUN_ID + "%00",
        RUN_ID + "x",
        "x" * 10_000,
    ],
)
def test_no_path_leads_to_a_file(client: TestClient, run_id: str) -> None:
    for address in (f"/runs/{run_id}", f"/runs/{run_id}/run", f"/api/runs/{run_id}"):
        answer = client.get(address)
        assert answer.status_code == (404 if len(run_id) < 1000 else 414)
        assert "root:" not in answer.text


@pytest.mark.parametrize(
    "name", ["../pages.py", "..%2fpages.py", "%2e%2e%2fpages.py", "/etc/passwd", "nope.css", "%00"]
)
def test_no_path_leads_to_another_static_file(client: TestClient, name: str) -> None:
    answer = client.get(f"/static/0/{name}")
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_files_that_cannot_be_read_are_named_with_their_reason(client: TestClient) -> None:
    """A file that cannot be read is listed with its name and the reason. A link that leads out of the folder is not
    listed.
    """
    unreadable = {each["file"]: each["reason"] for each in client.get("/api/runs").json()["unreadable"]}
    assert "is not a run file" in unreadable["not-sqlite.tkperf"]
    assert all(unreadable.values())
    assert not [name for name in unreadable if name.startswith("link")]


def test_damaged_files_have_a_page_or_a_reason(client: TestClient) -> None:
    """A damaged file leads to a page or to a stated reason, and the server continues. It does not matter what the bytes
    of the file cause in the worker that reads it.
    """
    for run in client.get("/api/runs").json()["runs"]:
        answer = client.get(f"/runs/{run['id']}")
        assert answer.status_code in (200, 422)
        assert len(answer.text) > 100
    assert client.get(f"/runs/{RUN_ID}").status_code == 200


def test_a_file_that_was_exchanged_is_refused(client: TestClient, folder: Path) -> None:
    """A file that was replaced by a link is refused with a page that contains the reason and a link back."""
    path = folder / f"{NAME}.tkperf"
    aside = path.rename(folder / "aside")
    try:
        path.symlink_to(aside)
        answer = client.get(f"/runs/{RUN_ID}/json")
        assert answer.status_code == 422
        assert "no longer the file" in answer.text
        assert json.loads(client.get(f"/api/runs/{RUN_ID}").text)["error"]
    finally:
        path.unlink()
        aside.rename(path)
    assert client.get(f"/runs/{RUN_ID}/json").status_code == 200


@pytest.mark.parametrize(("error", "status"), [(JobError, 500), (BusyError, 503), (LateError, 504), (FileError, 422)])
def test_a_job_that_failed_has_a_page_with_the_reason(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, error: type[JobError], status: int
) -> None:
    """If a job fails, the page contains the reason. Programs receive the reason as JSON."""

    def fail(*_: object) -> None:
        raise error(f"it takes longer: {HOSTILE}")

    monkeypatch.setattr("tkperf.web.result_pages.find_run", fail)
    answer = client.get(f"/runs/{RUN_ID}")
    assert answer.status_code == status
    assert ("retry-after" in answer.headers) == (status == 503)
    assert "it takes longer" in answer.text
    assert "<script>alert" not in answer.text
    assert client.get(f"/api/runs/{RUN_ID}").json() == {"error": f"it takes longer: {HOSTILE}"}


def test_files_of_one_run_that_differ_have_addresses_of_their_own(client: TestClient) -> None:
    """If the files of one run differ, each file has its own pages, downloads, data and comparisons. The shared id leads
    to a list of these files.
    """
    listed = client.get("/api/runs").json()["runs"]
    both = {run["file"]: run for run in listed if run["uuid"] == TWICE.replace("-", "")}
    assert set(both) == {"original.tkperf", "copy.tkperf"}
    assert both["copy.tkperf"]["entries"] == both["original.tkperf"]["entries"]
    for kind in ("", "/run", "/json", "/live"):
        answer = client.get(f"/runs/{TWICE.replace('-', '')}{kind}")
        assert answer.status_code == 300
        assert "2 run files have the id" in answer.text
        assert f'href="/?q={TWICE.replace("-", "")}"' in answer.text
    ids = [run["id"] for run in both.values()]
    query = "&".join(f"run={run_id}" for run_id in (TWICE.replace("-", ""), *ids))
    assert client.get(f"/compare?{query}").status_code == 300
    assert "differ" in client.get(f"/api/runs/{TWICE.replace('-', '')}").json()["error"]
    page = client.get(f"/?q={TWICE.replace('-', '')}").text
    for file, run in both.items():
        assert run["differs"]
        assert f'href="/runs/{run["id"]}"' in page
        assert f"This file is {file}" in page
        assert f"This file is {file}" in client.get(f"/runs/{run['id']}").text
        results = client.get(f"/api/runs/{run['id']}").text
        assert ("of-the-copy" in results) == (file == "copy.tkperf")


def test_errors_have_the_servers_headers(client: TestClient) -> None:
    for address in ("/nope", "/runs/nope", "/runs/x/y/z"):
        headers = client.get(address).headers
        assert "default-src 'none'" in headers["content-security-policy"]


def test_a_run_under_way_has_a_page_and_metrics(client: TestClient) -> None:
    """The page of a running run is created again for each request. The metrics contain the run's progress, and its
    latest stored second with the time of this second.
    """
    runs = client.get("/api/runs").json()["runs"]
    (run_id,) = (run["id"] for run in runs if run["state"] == "running")
    assert client.get(f"/runs/{run_id}?report").status_code == 200
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    samples = {
        sample.name: sample
        for family in text_string_to_metric_families(answer.text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }
    assert samples["tkperf_run_tests"].value == 1
    assert samples["tkperf_run_tests_done"].value == 0
    assert samples["tkperf_write_iops"].value == 8
    assert samples["tkperf_write_iops"].labels["test"] == "iops"
    began_s = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert 60 <= float(samples["tkperf_write_iops"].timestamp) - began_s <= 81
    assert client.get("/metrics").text == answer.text
