"""The files in docs/examples work as the pages state."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tkperf
from tkperf.analysis.claims_file import parse_claims
from tkperf.batch.draft import read_batch_file
from tkperf.device.raid.config import load_raid_config
from tkperf.procedures import load_profile

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells of the notebook run in an empty folder, from the first cell to the last."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert (tmp_path / "notebook.png").stat().st_size > 5_000


def test_the_profile_is_a_profile() -> None:
    """The example profile is valid and offers the tests of its tables."""
    profile = load_profile(str(EXAMPLES / "profile.toml"))
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=profile)
    assert [test.test.name for test in plan.tests] == ["iops", "lat"]


def test_the_batch_is_a_batch_file() -> None:
    draft = read_batch_file(EXAMPLES / "batch.toml")
    assert len(draft.drives) == 4
    assert draft.claims_path == EXAMPLES / "claims.toml"


def test_the_rack_has_24_drives_and_the_claims_of_a_data_sheet() -> None:
    """The example of a rack has 24 drives, and every claim of its data sheet is about a test that the batch runs."""
    draft = read_batch_file(EXAMPLES / "data-sheet/rack.toml")
    assert len(draft.drives) == 24
    assert draft.claims_path == EXAMPLES / "data-sheet/data-sheet.toml"
    claims = parse_claims(draft.claims_path.read_text(encoding="utf-8"), file="data-sheet.toml")
    assert {claim.test for claim in claims.claim} == {"iops", "lat", "tp"}


def test_the_heating_workload_is_one() -> None:
    plan = tkperf.make_plan("ssd", "sim:client-tlc", tests=[str(EXAMPLES / "heat.toml")])
    assert [test.test.name for test in plan.tests] == ["heat"]


def test_the_code_on_the_page_about_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of Python on the page can be executed. In the test, the second block runs first, and its run file is
    renamed to the name that the first block reads. The last block is only compiled, because it would erase a drive.
    """
    page = (EXAMPLES.parent / "how-to/python.md").read_text(encoding="utf-8")
    read, rehearse, measure = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(rehearse, "python.md", "exec"), {})
    assert not Path("rehearsal.tkperf").exists()
    Path("quick-latency.tkperf").rename("rehearsal.tkperf")
    exec(compile(read, "python.md", "exec"), {})
    compile(measure, "python.md", "exec")


def test_the_sample_report_is_of_no_device_and_no_machine() -> None:
    """The sample report contains the word SIMULATED and the four tests, but no facts about a host and no dates."""
    page = (EXAMPLES / "sample-report.html").read_text(encoding="utf-8")
    assert "<strong>SIMULATED. Valid</strong>" in page
    assert re.findall(r'<section id="(iops|lat|tp|writesat)"', page) == ["iops", "lat", "tp", "writesat"]
    not_known = re.search(r"<dd>(Test run date, [^<]*)</dd>", page)
    assert not_known is not None
    for fact in ("Report date", "Host", "CPU", "Kernel", "Operating system"):
        assert fact in not_known[1].split(", ")


def test_the_set_is_a_set() -> None:
    config = load_raid_config(EXAMPLES / "raid.json")
    assert (config.raidlevel, len(config.devices)) == (5, 4)
