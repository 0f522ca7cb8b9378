"""All outputs disclose the same set-up: the options that changed a run, the filled range and the load of the fill."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import tkperf
from tests.analysis.made_up import made_up_run, made_up_section
from tests.builders import run_info, simulate, view_of, work
from tkperf.analysis.results import RunResult, TestResult
from tkperf.model.errors import UsageError
from tkperf.model.run_info import IMPORTED, NO_USER_FACTS, SPONSOR, UserFacts, parse_facts
from tkperf.page.disclosure import (
    build_disclosure,
    build_page_header,
    describe_procedure,
    describe_run,
    summarise_set_up,
)
from tkperf.page.facts import describe_demands
from tkperf.page.view import build_view
from tkperf.page.words.conditions import describe_demand
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.procedures.profiles import apply_options
from tkperf.render.export_json import render_json
from tkperf.render.export_markdown import render_markdown
from tkperf.render.html import render_view
from tkperf.render.terminal.page_text import print_page

QUICK = load_profile("quick").as_plain_data()


def printed(result: RunResult) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_page(build_view(result), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def set_up_of(result: RunResult, test: TestResult) -> dict[str, str]:
    """Return the third block in the page header of a test."""
    return dict(dict(build_page_header(result, NO_USER_FACTS, test))["Set-up parameters"])


def test_a_header_has_the_blocks_of_the_pts_with_what_is_known(tmp_path: Path) -> None:
    """The header contains the blocks of the PTS: both preconditionings with their demands and rounds, the stimuli, and
    a row for facts that are not known.
    """
    result = simulate(tmp_path, run_info(profile=QUICK))
    iops = next(test for test in result.tests if test.name == "iops")
    told = UserFacts(report_date="2026-01-02", facts={SPONSOR: "ACME", "NAND type": "TLC"})
    header = build_page_header(result, told, iops)
    assert [title for title, _ in header] == [
        "Test platform",
        "Device under test",
        "Set-up parameters",
        "Test parameters",
    ]
    platform, device, set_up, parameters = (dict(facts) for _, facts in header)
    assert platform["Test ID"] == "test-20260101T000000"
    assert platform[SPONSOR] == "ACME"
    assert dict(dict(build_page_header(result, NO_USER_FACTS, iops))["Test platform"])[SPONSOR] == ("not known")
    assert list(parameters)[:3] == ["Data pattern", "Active range", "Stimulus 1"]
    assert parameters["Stimulus 2"] == "none"
    assert device == {
        "Manufacturer": "not known",
        "Model": "M",
        "Serial number": "not known",
        "Firmware": "not known",
        "Capacity": "1.0 GB",
        "Interface": "not known",
        "NAND type": "TLC",
        "Purge method": "test",
        "Write cache": "not known",
    }
    assert set_up["AR segments"] == "none, one range"
    assert set_up["Precondition 2"] == "the rounds of IOPS"
    assert set_up["Steady state"] == parameters["Steady state"] == "rounds 1–5"
    assert (parameters["Stimulus 1"], parameters["R/W mix"]) == ("IOPS", "100/0, 65/35, 0/100")
    assert describe_run(result, told) == (
        f"Test run date 2026-01-01 00:00:00 UTC · report date 2026-01-02 · {QUICK['title']} · sponsor ACME"
    )


def test_what_is_not_known_is_named_once_in_a_line(tmp_path: Path) -> None:
    """The disclosure lists all unknown facts in one line. A fact that the user stated is not among them."""
    result = simulate(tmp_path, run_info(profile=QUICK))
    before = dict(build_disclosure(result))
    (line,) = before["Not known"]
    assert {"NAND type", "Test sponsor", "Report date", "Serial number"} <= set(line[1].split(", "))
    assert "not known" not in str([facts for title, facts in before.items() if title != "Not known"])
    told = UserFacts(report_date="2026-01-02", facts=parse_facts(["nand TYPE = 3D TLC"]))
    after = dict(build_disclosure(result, told))
    assert dict(after["Device under test"])["NAND type"] == "3D TLC"
    assert not {"NAND type", "Report date"} & set(after["Not known"][0][1].split(", "))


def test_a_scheduler_that_the_audit_knows_is_not_called_unknown(tmp_path: Path) -> None:
    """If a file is measured and the audit found the I/O scheduler of the disk below the file, the scheduler is not
    listed as unknown.
    """
    result = simulate(tmp_path, run_info(profile=QUICK))
    assert "I/O scheduler" in dict(build_disclosure(result))["Not known"][0][1].split(", ")
    finding = {"subject": "I/O scheduler", "level": "ok", "found": "none", "why": "", "advice": None}
    host: dict[str, object] = {"audit": [finding]}
    audited = replace(result, info=replace(result.info, hosts=(host,)))
    assert "I/O scheduler" not in dict(build_disclosure(audited))["Not known"][0][1].split(", ")


def test_the_clock_of_fio_is_disclosed_where_it_is_recorded(tmp_path: Path) -> None:
    """The clock of fio is disclosed if the run file records it. A simulation or an imported run has no row for the
    clock.
    """
    result = simulate(tmp_path, run_info(profile=QUICK))
    assert "Clock of fio" not in dict(dict(build_disclosure(result))["Test run"])
    timed = replace(result, info=replace(result.info, hosts=({"fio_clock": "the CPU's (TSC)"},)))
    assert dict(dict(build_disclosure(timed))["Test run"])["Clock of fio"] == "the CPU's (TSC)"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("NAND type", "does not have the form NAME=TEXT"),
        ("NAND type=", "does not have the form NAME=TEXT"),
        ("nand tipe=TLC", "did you mean 'NAND type'?"),
        ("Serial number=1", "there is no fact with the name 'Serial number'"),
        ("Note=" + "x" * 1001, "the text of Note has 1001 characters. Use 1 to 1000"),
        ("Note=\x1b\x07", "Note has 0 characters"),
    ],
)
def test_a_fact_that_reports_do_not_have_is_refused(text: str, says: str) -> None:
    """A fact that no report contains is refused, both in a file and on the command line. The message names the
    option.
    """
    with pytest.raises(UsageError, match=re.escape(says)):
        parse_facts([text])
    with pytest.raises(UsageError, match=f"^--fact-file.*{re.escape(says)}"):
        parse_facts([], f"# a file\n\n{text}\n")


def test_a_file_of_facts_has_one_on_each_line() -> None:
    """A file of facts contains one fact on each line. The name and the value are separated with = or a colon. A fact on
    the command line replaces the same fact in the file.
    """
    lines = "# lab\n  # 2\nNAND type: 3D TLC, V=6\r\n\nnote=a: b\nTest sponsor=ACME"
    assert parse_facts(["Note=\x1b[31mlate"], lines) == {
        "NAND type": "3D TLC, V=6",
        "Note": "[31mlate",
        "Test sponsor": "ACME",
    }


def test_facts_given_with_the_run_are_in_each_of_its_reports(tmp_path: Path) -> None:
    """Facts that are given with a run appear in each report of the run. Facts that are given with a report replace
    them. The disclosure states which facts the operator provided. A file from another program may contain any value.
    """
    kept: dict[str, object] = {
        "NAND type": "TLC",
        "Note": "early",
        "Serial number": "1",
        "Motherboard": 7,
        "Manufacturer": "\0",
    }
    view = build_view(simulate(tmp_path, run_info(options={"facts": kept})))
    shown = dict(view.disclosure)
    assert dict(shown["Device under test"])["NAND type"] == "TLC"
    assert dict(shown["Test run"])["Note"] == "early"
    assert dict(shown["Test run"])["Given by the operator"] == "NAND type, Note"
    assert all(dict(dict(test.header)["Device under test"])["NAND type"] == "TLC" for test in view.tests)
    odd = UserFacts(facts={"Note": "late"}).with_those_of(run_info(options={"facts": ["x"]}))
    assert odd.facts == {"Note": "late"}
    later = UserFacts(facts={"Note": "late"}).with_those_of(run_info(options={"facts": kept}))
    assert later.facts == {"NAND type": "TLC", "Note": "late"}


def test_a_run_bent_by_options_says_so_everywhere(tmp_path: Path) -> None:
    """If options altered a run, every output states this. Each changed number is shown together with the number of the
    specification, and every title contains the word "altered".
    """
    plan = tkperf.make_plan(
        "ssd", "sim:sata-ssd", profile="pts-e-1.1", tests=["lat"], step_s=1, jobs=1, active_range="1GiB"
    )
    result = tkperf.run(plan, "bent", folder=tmp_path)
    changes = ("runtime 60 s -> 1 s", "active range 100 % -> 1 GiB")
    assert result.info.alterations == changes
    assert result.info.choices == ("threads 4 -> 1",)
    assert "SNIA PTS-E 1.1 (2013), altered" in describe_run(result, NO_USER_FACTS)
    set_up = dict(dict(build_disclosure(result))["Test run"])
    assert (set_up["Altered"], set_up["Operator's choice"]) == (", ".join(changes), "threads 4 -> 1")
    view = view_of(tmp_path / "bent.tkperf")
    assert view.verdict is not None
    for said in (render_view(view), render_markdown(build_view(result)), printed(result), view.verdict.text):
        # The page encloses figures and names in tags that prevent line breaks.
        assert "altered from SNIA PTS-E 1.1 (2013): " in re.sub(r"</?span[^>]*>|\\", "", said)
        for change in changes:
            assert change.replace(">", "&gt;") in said or change in said
    for said in (render_view(view), render_markdown(build_view(result)), printed(result)):
        assert "SNIA PTS-E 1.1 (2013), altered" in said


def test_a_run_by_the_numbers_is_not_called_altered(tmp_path: Path) -> None:
    """A run with unchanged numbers is not described as altered. An older run file does not record changes, so its run
    is not described as altered either.
    """
    result = simulate(tmp_path, run_info(profile=QUICK))
    assert describe_run(result, NO_USER_FACTS).endswith(f" · {QUICK['title']}")
    assert "Altered" not in dict(dict(build_disclosure(result))["Test run"])
    assert "ltered" not in render_markdown(build_view(result)) + printed(result)


@pytest.mark.parametrize(
    ("device", "text"),
    [
        (
            {"preconditioned": "members", "members": [{"path": "/dev/sdb"}]},
            "2 × each member, all at once, before the set is made, SEQ 128 KiB writes, TC 2 / QD 16 each",
        ),
        (
            {"preconditioned": "set", "members": [{"path": "252:0"}]},
            "2 × the active range, after the set is made, SEQ 128 KiB writes, TC 2 / QD 16",
        ),
    ],
)
def test_header_and_procedure_agree_on_what_of_a_set_was_filled(
    tmp_path: Path, device: dict[str, object], text: str
) -> None:
    """The header and the procedure agree on which devices were filled. With mdadm, the members are filled before the
    set is created. With a controller, the set itself is filled.
    """
    result = simulate(tmp_path, run_info(profile=QUICK))
    info = replace(result.info, suite="raid", device={**result.info.device, **device})
    result = replace(result, info=info)
    test = next(test for test in result.tests if test.name == "iops")
    assert set_up_of(result, test)["Precondition 1"] == text
    assert f"preconditioning: {text}" in describe_procedure(info, "iops")
    filled_members = "2 × each member" in render_markdown(build_view(result))
    assert filled_members is info.fills_members is text.startswith("2 × each member")


def test_the_load_of_the_fill_stands_beside_that_of_the_latency_test(tmp_path: Path) -> None:
    """The load of the fill is shown together with the load of the latency test, because the fill uses more than one
    outstanding I/O.
    """
    result = simulate(tmp_path, run_info(profile=QUICK))
    latency = next(test for test in result.tests if test.name == "lat")
    header = set_up_of(result, latency)
    assert header["TC / QD"] == "TC 1 / QD 1"
    filled = "2 × the active range, SEQ 128 KiB writes, TC 2 / QD 16"
    assert header["Precondition 1"] == filled
    assert filled in describe_procedure(result.info, "lat")
    assert filled in render_view(view_of(tmp_path / "run.tkperf"))


def test_each_fill_of_a_test_is_disclosed_with_its_own_load(tmp_path: Path) -> None:
    """The disclosure describes each fill of a test with its own load. With the profile pts-2.0, one thread fills the
    drive for the throughput test, once for each block size and with this block size.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="pts-2.0", tests=["tp"], step_s=1)
    result = tkperf.run(plan, "own", folder=tmp_path)
    (test,) = result.tests
    assert set_up_of(result, test)["Precondition 1"] == (
        "2 × the active range, SEQ 1024 KiB writes, TC 1 / QD 32; "
        "2 × the active range, SEQ 128 KiB writes, TC 1 / QD 32"
    )
    text = describe_procedure(result.info, "tp")
    assert "2 × the active range, SEQ writes of that block size, TC 1 / QD 32" in text
    document = json.loads(render_json(result))
    loads = [section["fill_workload"] for section in document["tests"][0]["sections"]]
    assert [(load["block_size_bytes"], load["jobs"]) for load in loads] == [(1 << 20, 1), (1 << 17, 1)]


def test_a_filled_range_beyond_the_tested_one_is_disclosed(tmp_path: Path) -> None:
    """A filled range that exceeds the tested range is disclosed as a share of the device, in every description of the
    preconditioning.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="pts-c-1.2", tests=["lat"], active_range="16GiB", step_s=1)
    result = tkperf.run(plan, "ranges", folder=tmp_path)
    (test,) = result.tests
    said = "2 × the first 80 % of the device, SEQ 128 KiB writes, TC 2 / QD 16"
    assert set_up_of(result, test)["Precondition 1"] == said
    assert said in describe_procedure(result.info, "lat")
    assert said in render_view(view_of(tmp_path / "ranges.tkperf"))
    assert said in render_markdown(build_view(result))
    assert result.info.active_range_length_bytes == 16 << 30
    assert test.sections[0].filled_bytes == 2 * (240_057_409_536 * 8 // 10 // 512 * 512)


def test_members_behind_a_controller_are_listed(tmp_path: Path) -> None:
    """The disclosure lists the members behind a controller with the facts that the controller reports."""
    result = simulate(tmp_path, run_info(profile=QUICK))
    member = {"path": "252:0", "model": "INTEL", "serial": "A1", "size": "446.625 GB"}
    device = {**result.info.device, "raid": "MegaRAID RAID 1", "members": [member]}
    result = replace(result, info=replace(result.info, suite="raid", device=device))
    block = dict(dict(build_disclosure(result))["RAID set"])
    assert block == {"Set": "MegaRAID RAID 1", "Member 1": "252:0, INTEL, A1, 446.625 GB"}


def test_a_key_of_another_version_blanks_no_procedure() -> None:
    """If a newer version stored additional keys or tables, every test keeps its description. If the table of a test is
    missing, only the description of this test is empty.
    """
    stored = QUICK
    texts = {test: describe_procedure(run_info(profile=stored), test) for test in SSD_TESTS}
    assert all(texts.values())
    assert isinstance(stored["iops"], dict)
    newer = stored | {"iops": stored["iops"] | {"new_key": 1}, "hir": {"source": "?", "wait_s": 5}}
    for test, text in texts.items():
        assert describe_procedure(run_info(profile=newer), test) == text
    older = {key: table for key, table in stored.items() if key != "latency"}
    for test, text in texts.items():
        assert describe_procedure(run_info(profile=older), test) == ("" if test == "lat" else text)
    unknown = describe_procedure(run_info(profile=stored), "of a newer version")
    assert unknown == ""


def test_every_tracking_variable_is_shown_with_its_window(tmp_path: Path) -> None:
    """Each of the three tracking variables of PTS 2.0 has a column in the table about the determination of steady
    state, a chart, and a mention in the texts.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", profile="pts-2.0", tests=["iops"], step_s=1)
    result = tkperf.run(plan, "three", folder=tmp_path)
    tracked = ["RND 0/100 4k IOPS", "RND 65/35 64k IOPS", "RND 100/0 1024k IOPS"]
    (section,) = result.tests[0].sections
    assert [verdict.tracking for verdict in section.window_verdicts] == tracked
    assert {verdict.rounds for verdict in section.window_verdicts} == {section.window}
    for said in (render_markdown(build_view(result)), printed(result)):
        assert all(f"{each} (IOPS)" in said for each in tracked)
    shown = view_of(tmp_path / "three.tkperf").tests[0].sections[0]
    assert shown.determination is not None
    rows = {row[0]: row[1:] for row in shown.determination.rows}
    assert rows["Tracking variable"] == tuple(f"{each} (IOPS)" for each in tracked)
    assert rows["Steady state"] == ("reached",) * 3
    views = [view for chart in shown.charts for view in chart.on_paper]
    windows = [view for view in views if view.key.startswith("iops0window")]
    assert [chart.key for chart in windows] == ["iops0window", "iops0window1", "iops0window2"]
    assert [chart.text.split(" in the window")[0] for chart in windows] == tracked


@pytest.mark.parametrize(
    ("profile", "missing"),
    [
        (
            "pts-c-1.2",
            "Write Saturation, Composite Block Workload (CBW, ECW), Demand Intensity (DIRTH), Host "
            "Idle Recovery, Cross Stimulus Recovery: not run, no source for their parameters",
        ),
        ("pts-e-1.1", None),
        ("quick", None),
    ],
)
def test_pts_tests_that_a_profile_of_it_lacks_are_named(profile: str, missing: str | None) -> None:
    """The report names the PTS tests that a PTS profile omits. If a profile is not a PTS specification, the report does
    not list omitted PTS tests.
    """
    result = made_up_run("R", {}, profile=load_profile(profile).as_plain_data())
    run = dict(dict(build_disclosure(result))["Test run"])
    assert run.get("PTS tests not in the profile") == missing


@pytest.mark.parametrize(
    ("profile", "range_", "note"),
    [
        (
            "pts-2.0-client",
            None,
            "The PTS requires 4 × the user capacity, and this profile writes 3 × the user capacity",
        ),
        ("pts-2.0-client", "16GiB", "In the PTS, the amount refers to the user capacity, not to the active range"),
        ("pts-e-1.1", None, None),
    ],
)
def test_the_amount_of_write_saturation_is_set_against_that_of_the_pts(
    profile: str, range_: str | None, note: str | None
) -> None:
    numbers = apply_options(load_profile(profile), active_range=range_).as_plain_data()
    lines = describe_procedure(run_info(profile=numbers), "writesat").splitlines()
    assert [line.strip() for line in lines if "the user capacity" in line] == ([note] if note else [])


def test_the_line_below_the_verdict_has_demand_range_preparation_and_window(tmp_path: Path) -> None:
    """In each output, the line below the verdict contains the demand, the active range, the preparation and the window.
    If the device was not purged, the line states this.
    """
    result = simulate(tmp_path, run_info(profile=QUICK))
    line = build_view(result).set_up_line
    for output in (render_view(build_view(result)), render_markdown(build_view(result)), printed(result)):
        assert line in re.sub(r"</?span[^>]*>", "", output)
    assert re.fullmatch(
        r"Demand TC2/QD16 and TC1/QD1 · active range [\d.]+ % \(1\.1 GB\) · purged, "
        r"[\d.]+ × preconditioned \(except Write Saturation\) · steady-state window of 5 rounds",
        line,
    ), line
    tests = tuple(
        replace(test, sections=tuple(replace(section, purge=None) for section in test.sections))
        for test in result.tests
    )
    assert " · not purged, " in summarise_set_up(replace(result, tests=tests))
    only_first = (result.tests[0], replace(tests[1], title="Second"))
    assert " · purged (except Second), " in summarise_set_up(replace(result, tests=only_first))


def test_the_line_below_the_verdict_omits_what_is_not_known() -> None:
    """If the active range is only part of the device, the line below the verdict states the range. The line omits facts
    that an imported run lacks. Until the first step has begun, the whole line is omitted.
    """
    section = made_up_section("Grid", {work(jobs=4, io_depth=32): [1.0] * 5})
    half = made_up_run("R", {"grid": [section]}, device={"capacity_bytes": 1 << 31})
    assert summarise_set_up(half) == "Demand TC4/QD32 · active range 50 % (1.1 GB) · not purged, not preconditioned"
    imported = made_up_run("R", {"grid": [section]}, device={"kind": IMPORTED}, active_range_length_bytes=None)
    assert summarise_set_up(imported) == "Demand TC4/QD32"
    assert summarise_set_up(replace(half, tests=())) == ""


def test_many_demands_are_given_from_the_least_to_the_greatest() -> None:
    """If many demands ran, they are described by the least and the greatest demand. The order in which they ran does
    not matter. A few demands are listed in the order of the run.
    """
    grid = [(jobs, depth) for jobs in (32, 4, 1) for depth in (32, 1)]
    assert describe_demands(grid) == "TC 1 / QD 1 to TC 32 / QD 32, 6 of them"
    assert describe_demands(grid[:2]) == "TC 32 / QD 32, TC 32 / QD 1"


def test_a_range_of_demands_has_an_en_dash() -> None:
    """A range of demands is written with an en dash, as a range of rounds is. A hyphen would look like a minus sign."""
    (test,) = made_up_run("R", {"grid": [made_up_section("Grid", {work(): [1.0] * 5})]}).tests
    test = replace(test, demands=((1, 1), (4, 32)))
    assert describe_demand(test) == "TC1\N{EN DASH}4/QD1\N{EN DASH}32"
