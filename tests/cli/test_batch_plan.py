"""``tkperf plan batch`` shows the estimate of each drive and the links that drives share. It also shows whether the
batch would be refused. The command has no effect on drives and files.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_bad_input import assert_clear, tkperf
from tkperf.analysis.estimates import BatchEstimate, PlanCode, judge_batch_plan
from tkperf.analysis.verdict import VerdictState
from tkperf.batch.batch_estimate import estimate_batch
from tkperf.batch.draft import BatchDraft, DraftedDrive
from tkperf.batch.request import BatchSettings
from tkperf.model.record import RunNote
from tkperf.model.sharing import DriveGroup, Part, PartBudget, PartKind
from tkperf.page.batch.batch_plan_page import build_batch_plan_page, describe_neighbours
from tkperf.page.page import NotesView, TableView
from tkperf.pipeline.estimate_run import ASSUMED, parse_rating

QUICK = ("--profile", "quick", "-ssdt", "iops", "--rate", "400MB/s")


def plan_json(*words: str | Path) -> Any:
    done = tkperf("plan", "batch", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def look(*given: str, rated: str | None = None, **settings: Any) -> BatchEstimate:
    draft = BatchDraft(
        common={"suite": "ssd", "tests": ("iops",), "profile": "quick"},
        drives=tuple(DraftedDrive(drive=one) for one in given),
        settings=BatchSettings(**settings),
    )
    rating = None if rated is None else parse_rating(rated)
    return estimate_batch(draft.settle("lab"), lambda _: ASSUMED, rating)


def notes(estimate: BatchEstimate, title: str) -> list[str]:
    blocks = build_batch_plan_page(estimate).overview
    found = [one for one in blocks if isinstance(one, NotesView) and one.title == title]
    return [note.text for block in found for note in block.notes]


def drives(estimate: BatchEstimate) -> TableView:
    table = build_batch_plan_page(estimate).overview[0]
    assert isinstance(table, TableView)
    return table


def test_a_plan_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    """Planning a batch for files with data needs no consent, changes no data, and leaves no new file."""
    files = [tmp_path / name for name in ("a.img", "b.img")]
    for file in files:
        file.write_bytes(os.urandom(16 << 20))
    before = [file.read_bytes() for file in files]
    done = tkperf("plan", "batch", "lab", "ssd", *files, *QUICK, "--rated", "1DWPD", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "2 drives, ",
        "all at once",
        "of each drive's rated endurance",
        "Of its life",
        "ends ",
        "nothing is written before you confirm",
        "400.0 MB/s, given by --rate",
    ):
        assert words in " ".join(done.stdout.split()), words
    assert "nothing was run, written or asked" in done.stderr
    assert [file.read_bytes() for file in files] == before
    assert {each.name for each in tmp_path.iterdir()} == {"a.img", "b.img"}


def test_faults_are_rows(tmp_path: Path) -> None:
    """If a drive cannot be measured, its row contains the refusal. The plan still contains the other drives, and the
    verdict reports that the batch would be refused.
    """
    path = tmp_path / "lab.toml"
    path.write_text(
        'suite = "ssd"\nprofile = "quick"\n'
        'drives = ["sim:sata-ssd", "NO-SUCH-SERIAL", "/dev/no-such-drive", "sim:sata-ssd", "./x", "./x"]\n'
    )
    told = plan_json("lab", path)
    assert told["verdict"]["state"] == "would be refused"
    assert told["verdict"]["reasons"][0]["names"] == ["lab-02", "lab-03", "lab-05", "lab-06"]
    refusals = [drive["refusals"] for drive in told["drives"]]
    assert refusals[0] == refusals[3] == []
    assert "no drive has the serial number 'NO-SUCH-SERIAL'" in refusals[1][0]
    assert "there is no device or file /dev/no-such-drive" in refusals[2][0]
    assert "are one file" in refusals[5][0]
    assert [drive["plan"] is None for drive in told["drives"]] == [False, True, True, False, True, True]
    assert [group["drives"] for group in told["groups"]] == [["lab-01", "lab-04"]]
    shown = tkperf("plan", "batch", "lab", path)
    assert shown.returncode == 0
    whole = "Would be refused: 4 of 6 drives, and the batch with them; the reason of each drive is below"
    assert shown.stdout.startswith(whole)
    assert shown.stdout.count("lab-02: ") == 1
    assert shown.stdout.count("  would be refused  ") == 4


def test_the_whole_is_the_sum(tmp_path: Path) -> None:
    """In the plan of a batch, the amount of written data is a sum over the drives. The times are sums over the groups
    of drives, because the drives of a group run at the same time.
    """
    words = ("ssd", "sim:sata-ssd", "sim:client-tlc", "sim:sata-ssd", *QUICK, "--rated", "1DWPD")
    at_once, in_turn = (plan_json("lab", *words, "--parallel", each) for each in ("all", "2"))
    for told in (at_once, in_turn):
        plans = [drive["plan"] for drive in told["drives"]]
        assert told["most_written_bytes"] == sum(plan["most_written_bytes"] for plan in plans)
        by_name = {drive["name"]: drive["plan"] for drive in told["drives"]}
        for key in ("shortest_s", "longest_s"):
            longest = [max(by_name[name][key] for name in group["drives"]) for group in told["groups"]]
            assert told[key] == sum(longest)
    assert [len(group["drives"]) for group in at_once["groups"]] == [3]
    assert [len(group["drives"]) for group in in_turn["groups"]] == [2, 1]
    single = json.loads(tkperf("plan", "ssd", "n", "sim:sata-ssd", *QUICK, "--rated", "1DWPD", "--json").stdout)
    del single["schema"]
    assert at_once["drives"][0]["plan"] == single


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("lab",), "After NAME, pass BATCH.toml"),
        (("lab", "ssd"), "Missing argument 'DEVICE...'"),
        (("lab", "raid", "/dev/md0"), "a RAID set is one device"),
        (("lab", "ssd", "sim:hdd", "--rated", "much"), "--rated 'much'"),
        (("lab", "none.toml"), "cannot read batch none.toml"),
        (("lab", "ssd", "sim:hdd", "-ssdt", "ipos"), "test 'ipos'"),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[str, ...], says: str) -> None:
    assert_clear(tkperf("plan", "batch", *words), 2, says)


def test_simulated_drives_alone_are_simulated(tmp_path: Path) -> None:
    """The plan of a batch is called simulated only if all drives are simulated. A plan with an unknown drive or a real
    file is not called simulated.
    """
    assert look("sim:sata-ssd", "sim:hdd").simulated
    assert not look("sim:sata-ssd", "no-such-serial").simulated
    assert not look("no-such-serial").simulated
    (tmp_path / "a.img").write_bytes(b"x" * (1 << 20))
    assert not look("sim:sata-ssd", str(tmp_path / "a.img")).simulated


def test_simulated_drives_share_nothing() -> None:
    """A simulated drive uses no link, and its figures do not depend on CPUs, so the plan mentions neither links nor
    CPUs.
    """
    simulated = look("sim:sata-ssd", "sim:sata-ssd")
    assert simulated.groups[0].drives
    assert list(describe_neighbours(simulated.groups, simulated.cpus)) == []


def test_no_drive_at_all_is_left() -> None:
    """If no drive can be measured, the plan contains the refusals, but no time and no amount of data."""
    estimate = look("no-such-serial", "another")
    page = build_batch_plan_page(estimate)
    assert page.verdict.title == "Would be refused"
    assert len(drives(estimate).rows) == 2
    assert estimate.bounds_s == (0.0, 0.0)


def test_a_link_over_its_budget() -> None:
    """If the drives exceed the budget of a link, the plan contains a caution that names the link. A strict batch is
    refused for the same reason.
    """
    estimate = look("sim:sata-ssd", "sim:sata-ssd")
    part = Part(key="x", kind=PartKind.CONTROLLER, name="SAS controller 0000:01:00.0", bytes_per_s=10**9)
    budget = PartBudget(part=part, drives=("lab-01", "lab-02"), demand_bytes_per_s=12 * 10**8)
    over = replace(estimate, groups=(DriveGroup(drives=("lab-01", "lab-02"), budgets=(budget,)),))
    judged = judge_batch_plan(over)
    assert judged.state is VerdictState.CAN_RUN_WITH_CAUTIONS
    assert [(one.code, one.names) for one in judged.reasons] == [(PlanCode.OVER_BUDGET, (part.name,))]
    page = build_batch_plan_page(over)
    assert f"drives that run at once may overload {part.name}" in page.verdict.text
    assert page.tables[1].rows == (("1", part.name, "2", "1.2 GB/s", "1.0 GB/s", "over budget"),)
    strict = replace(
        over, refused="the drives that would be measured at the same time could transfer more data than these links"
    )
    assert judge_batch_plan(strict).state is VerdictState.REFUSED
    assert build_batch_plan_page(strict).verdict.reasons[0] == strict.refused


def test_warnings_of_the_host_are_said_once() -> None:
    """Host warnings about the same subject are printed once for all drives, even if the numbers in these warnings
    differ. Warnings with different words remain separate.
    """
    estimate = look("sim:sata-ssd", "sim:sata-ssd", "sim:sata-ssd")

    def warned(drive: Any, *texts: str) -> Any:
        warnings = tuple(RunNote(code="host", text=text) for text in texts)
        return replace(drive, estimate=replace(drive.estimate, warnings=warnings))

    first, second, third = estimate.drives
    warned_all = (
        warned(first, "tasks waited for 51.12 %", "nvme1n1 is slow"),
        warned(second, "tasks waited for 9 %", "nvme2n1 is slow"),
        warned(third, "tasks waited for 10.5 %"),
    )
    assert notes(replace(estimate, drives=warned_all), "Warnings") == [
        "tasks waited for 51.12 %",
        "nvme1n1 is slow (lab-01)",
        "nvme2n1 is slow (lab-02)",
    ]


def test_much_of_a_life_names_the_drives() -> None:
    estimate = look("sim:sata-ssd", "sim:client-tlc", rated="0.3TBW")
    codes = {one.code: one.names for one in judge_batch_plan(estimate).reasons}
    assert codes[PlanCode.COSTS_MUCH] == ("lab-01",)
    assert "Of its life" in drives(estimate).columns
    assert "Of its life" not in drives(look("sim:sata-ssd")).columns


def test_conditions_of_all_drives_are_said_once(tmp_path: Path) -> None:
    """Conditions that all drives share are printed once. Conditions that differ only in the path of the drive count as
    shared. A condition that applies to some drives names only these drives.
    """
    estimate = look("sim:sata-ssd", "sim:sata-ssd", "sim:client-tlc", parallel=2, stagger_s=30.0)
    drives_with_host = tuple(
        replace(
            drive,
            path=f"/dev/sd{letter}",
            estimate=drive.estimate
            and replace(drive.estimate, conditions=(("host", f"'tkperf tune /dev/sd{letter}' shows more"),)),
        )
        for letter, drive in zip("abc", estimate.drives, strict=True)
    )
    page = build_batch_plan_page(replace(estimate, drives=drives_with_host))
    ((_, facts),) = page.disclosure
    assert ("host", "'tkperf tune DEVICE' shows more") in facts
    assert ("stagger", "30 s between beginnings on one link") in facts
    assert [text for label, text in facts if label == "tests"] == ["IOPS"]
    labels = [label for label, _ in facts]
    assert labels.index("profile") > labels.index("stagger")
