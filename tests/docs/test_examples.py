"""The files of docs/examples do what the pages say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tkperf
from tkperf.analysis.claim_findings import ClaimState
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.device.raid.config import load_raid_config
from tkperf.page.findings.headlines import build_headlines
from tkperf.pipeline.batch.batch_file import read_batch_file
from tkperf.procedures import load_profile

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its first cell to its last, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert (tmp_path / "notebook.png").stat().st_size > 5_000


def test_the_profile_is_a_profile() -> None:
    """Its tests are those of its tables."""
    profile = load_profile(str(EXAMPLES / "profile.toml"))
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile=profile)
    assert [test.test.name for test in plan.tests] == ["iops", "lat"]


def test_the_batch_is_a_batch_file() -> None:
    draft = read_batch_file(EXAMPLES / "batch.toml")
    assert len(draft.drives) == 4
    assert draft.claims_path == EXAMPLES / "claims.toml"


def test_the_claims_are_claims(tmp_path: Path) -> None:
    """On a run of the tests that they are on each is met or not: none is of something that is not measured."""
    text = (EXAMPLES / "claims.toml").read_text(encoding="utf-8")
    plan = tkperf.make_plan("ssd", "sim:sata-ssd")
    claims, result = (
        parse_claims(text, file="claims.toml"),
        tkperf.run(plan, "run", folder=tmp_path),
    )
    checked = check_claims(claims, result, load=tkperf.load, folder=tmp_path)
    assert [
        finding.state
        for finding in checked.findings
        if finding.state not in (ClaimState.MET, ClaimState.NOT_MET)
    ] == []
    assert len(checked.findings) == text.count("[[claim]]")
    readme = " ".join((EXAMPLES.parents[1] / "README.md").read_text(encoding="utf-8").split())
    for line in build_headlines(result.tests):
        assert " ".join(f"{line.label} {line.text} {line.sure} {line.verdict}".split()) in readme


def test_the_sample_report_is_of_no_device_and_no_machine() -> None:
    """It says SIMULATED, has the four tests, and of host and days only that they are not known."""
    page = (EXAMPLES / "sample-report.html").read_text(encoding="utf-8")
    assert "<strong>SIMULATED. Valid</strong>" in page
    assert re.findall(r'<section id="(iops|lat|tp|writesat)"', page) == [
        "iops", "lat", "tp", "writesat"
    ]  # fmt: skip
    not_known = re.search(r"<dd>(Test run date, [^<]*)</dd>", page)
    assert not_known is not None
    for fact in ("Report date", "Host", "CPU", "Kernel", "Operating system"):
        assert fact in not_known[1].split(", ")


def test_the_set_is_a_set() -> None:
    config = load_raid_config(EXAMPLES / "raid.json")
    assert (config.raidlevel, len(config.devices)) == (5, 4)
