"""Cautions about imported loads. If a figure depends on more than the capability of the drive, the figure is marked in
JSON, on the page and in the headline.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.fio_files import document, job, written
from tests.interop.test_pts_rounds import imported
from tkperf.analysis.claim_results import Checked, ClaimKind
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.results import RunResult
from tkperf.page.findings import findings, headlines
from tkperf.page.findings.whole_test_findings import build_findings
from tkperf.page.view import build_view
from tkperf.render.export_check import render_check_json
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown

MARKED: dict[str, tuple[dict[str, str], str, str]] = {
    "no direct": ({"direct": "0"}, "buffered-io", "buffered I/O"),
    "buffered": ({"direct": "0", "ioengine": "libaio"}, "buffered-io", "buffered I/O"),
    "mmap": ({"ioengine": "mmap"}, "buffered-io", "buffered I/O"),
    "null": ({"ioengine": "null"}, "no-device", "ioengine=null"),
    "/dev/null": ({"filename": "/dev/null"}, "no-device", "filename=/dev/null"),
    "memory": ({"filename": "/dev/shm/x"}, "no-device", "filename=/dev/shm/x"),
    "folder in memory": ({"directory": "/dev/shm", "filename": "x"}, "no-device", "directory=/dev/shm"),
    "space without data": ({"ioengine": "falloc"}, "no-device", "ioengine=falloc"),
    "buffered last": ({"direct": "1", "buffered": "1"}, "buffered-io", "buffered I/O"),
    "rate of writes": ({"rate": ",4m"}, "rate-limited", "rate=,4m"),
    "rate": ({"rate": "4m"}, "rate-limited", "rate=4m"),
    "rate_iops": ({"rate_iops": "150"}, "rate-limited", "rate_iops=150"),
    "thinktime": ({"thinktime": "100"}, "rate-limited", "thinktime=100"),
    "time": ({"runtime": "60"}, "ended-early", "ended early"),
}


@pytest.mark.parametrize("how", MARKED)
def test_a_caution_is_said_everywhere(tmp_path: Path, how: str) -> None:
    """A caution appears as a code in JSON and as a reason of the verdict. It also appears as words in the headline and
    in the name of the section.
    """
    options, code, words = MARKED[how]
    run = imported(tmp_path, ("a.json", written(500, options=options)))
    (section,) = run.tests[0].sections
    assert section.plan.cautions == (code,)
    assert words in section.name
    assert words in headlines(run)[0].label
    (finding, *_) = build_findings(run.tests)
    assert ": random 4 KiB " in finding.text, "the condition precedes the figure"
    plain = json.loads(render_json(run))
    assert code in [reason["code"] for reason in plain["verdict"]["reasons"]]
    assert plain["tests"][0]["sections"][0]["plan"]["cautions"] == [code]
    assert words.replace("_", r"\_") in render_markdown(build_view(run))


CLAIMS = """
[[claim]]
test = "fio"
metric = "iops"
read_percent = 0
block_size = "4k"
at_least = {at_least}
"""


def no_baseline(_path: Path) -> RunResult:
    raise AssertionError("no baseline is named")


def checked_against(run: RunResult, at_least: float, folder: Path) -> Checked:
    claims = parse_claims(CLAIMS.format(at_least=at_least), file="claims")
    return check_claims(claims, run, load=no_baseline, folder=folder)


@pytest.mark.parametrize("how", MARKED)
def test_a_claim_on_a_load_with_a_caution_is_not_judged(tmp_path: Path, how: str) -> None:
    """A claim about a load with a caution is not judged, because the value contains little information about the
    device. The only exception is a load that has a rate limit and nevertheless reaches a rate that meets the claim,
    because the device would not be slower without the limit. The note names the caution.
    """
    options, code, _ = MARKED[how]
    run = imported(tmp_path, ("a.json", written(500, options=options)))
    for at_least in (1.0, 1e9):
        checked = checked_against(run, at_least, tmp_path)
        (one,) = checked.claim_results
        assert one.load_cautions == (code,)
        assert one.note
        reaches = code == "rate-limited" and at_least == 1.0
        assert checked.judge(one) is (ClaimKind.MET if reaches else ClaimKind.NOT_JUDGED)
        assert bool(checked.find_doubts(one)) is not reaches
    assert json.loads(render_check_json(checked))["findings"][0]["load_cautions"] == [code]


def test_a_claim_on_a_load_without_cautions_is_judged(tmp_path: Path) -> None:
    run = imported(tmp_path, ("a.json", written(500, options={"direct": "1"})))
    for at_least, kind in ((1.0, ClaimKind.MET), (1e9, ClaimKind.FAILED)):
        checked = checked_against(run, at_least, tmp_path)
        assert [checked.judge(one) for one in checked.claim_results] == [kind]


@pytest.mark.parametrize(
    "options",
    [
        {"direct": "1", "ioengine": "libaio"},
        {"direct": "", "ioengine": "io_uring"},
        {"direct": "0", "buffered": "0"},
        {"rate": "0,0", "rate_iops": ",0"},
        {"directory": "/dev/shmem", "thinktime": "0us"},
        {"direct": "0", "ioengine": "io_uring_cmd"},
        {"direct": "0", "ioengine": "spdk"},
        {"filename": "/dev/nvme0n1:/dev/nvme1n1", "rate_iops": "0"},
    ],
)
def test_a_plain_load_has_no_caution(tmp_path: Path, options: dict[str, str]) -> None:
    """Direct I/O, I/O engines that bypass the page cache, and a limit of 0 (no limit) lead to no caution."""
    run = imported(tmp_path, ("a.json", written(500, options=options)))
    (section,) = run.tests[0].sections
    assert section.plan.cautions == ()
    assert headlines(run)[0].label == "4 KiB random write"


def test_nothing_is_known_without_options(tmp_path: Path) -> None:
    run = imported(tmp_path, ("a.json", written(500, version="2.2.10")))
    assert run.tests[0].sections[0].plan.cautions == ()


def several(*loads: tuple[str, int, dict[str, str]]) -> list[tuple[str, str]]:
    return [(name, written(iops, 60.0 * at, options=options)) for at, (name, iops, options) in enumerate(loads)]


HIGHEST: dict[str, list[tuple[str, int, dict[str, str]]]] = {
    "limits of one demand": [("a.json", 75, {"rate_iops": "75"}), ("b.json", 150, {"rate_iops": "150"})],
    "drives": [("sda.json", 75, {}), ("sdb.json", 150, {})],
    "demands and drives": [
        ("q1.json", 10, {"iodepth": "1"}),
        ("sda.json", 75, {"iodepth": "4"}),
        ("sdb.json", 150, {"iodepth": "4"}),
        ("q8.json", 140, {"iodepth": "8"}),
    ],
    "files": [("x.json", 75, {"filename": "/dev/a"}), ("y.json", 150, {"filename": "/dev/b"})],
}


@pytest.mark.parametrize("how", HIGHEST)
@pytest.mark.parametrize("turned", [False, True])
def test_the_highest_is_the_highest(tmp_path: Path, how: str, turned: bool) -> None:
    """The headline is the highest figure of all sections with the load. The differences between the sections and the
    order of the loads do not matter.
    """
    loads = HIGHEST[how][::-1] if turned else HIGHEST[how]
    told = headlines(imported(tmp_path, *several(*loads)))
    rates = [(one.value, "highest" in one.label) for one in told if one.key == "iops"]
    assert rates == [(150, True)]


def test_a_buffered_load_does_not_compete(tmp_path: Path) -> None:
    """A figure with buffered I/O is not compared with figures for direct I/O, because memory is faster than any drive.

    Both figures are headlines, and the figure with direct I/O is first.
    """
    run = imported(
        tmp_path, *several(("a.json", 90_000, {"direct": "0"}), ("b.json", 100, {}), ("c.json", 200, {"iodepth": "4"}))
    )
    told = [(one.label, one.value) for one in headlines(run) if one.key == "iops"]
    assert told == [
        ("4 KiB random write, highest, at TC1 QD4", 200),
        ("4 KiB random write, at TC1 QD1, buffered I/O", 90_000),
    ]


def test_sentences_about_a_load_of_several_sections_name_them(tmp_path: Path) -> None:
    run = imported(tmp_path, *several(("sda.json", 75, {}), ("sdb.json", 150, {})))
    texts = [one.text for one in findings(run) if "run at" in one.text]
    assert [text.partition(":")[0] for text in texts] == ["fio RND TC1/QD1, file sda", "fio RND TC1/QD1, file sdb"]


def test_loads_at_the_same_time_are_a_caution(tmp_path: Path) -> None:
    known: dict[str, Any] = {"rw": "randwrite", "bs": "4k"}
    both = document(
        job(name="a", writes=5000, options=known),
        job(name="b", reads=900, options={"rw": "randread", "bs": "8k"}, block_bytes=8192),
    )
    run = imported(tmp_path, ("a.json", json.dumps(both)))
    assert [section.plan.cautions for section in run.tests[0].sections] == [("shared-load",)]
    assert [one.label for one in headlines(run)] == ["a, in a + b", "b, in a + b"]
