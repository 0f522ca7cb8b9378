"""docs/how-to/batches.md explains every key of a batch file, and its example is a valid batch file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent

from tkperf.batch.batch_estimate import estimate_batch
from tkperf.batch.draft import BatchDraft, BatchFile, DraftedDrive, parse_batch_file
from tkperf.model.batch_state import BatchPlace, BatchState, DriveShown, DriveStage, DriveState
from tkperf.model.sharing import SharingState
from tkperf.pipeline.estimate_run import ASSUMED
from tkperf.render.export_json import render_batch_plan_json

PAGE = (Path(__file__).parents[2] / "docs/how-to/batches.md").read_text(encoding="utf-8")


def keys(table: str) -> list[str]:
    rows = table.split("\n\n", maxsplit=1)[0].splitlines()[1:]
    return [key for row in rows for key in re.findall(r"`(\w+)`", row.split(" | ")[0])]


def test_every_key_is_on_the_page() -> None:
    _, of_file = PAGE.split("| key | takes | means |")
    _, of_drive = PAGE.split("The table of a drive accepts these keys:\n\n| key | means |")
    assert sorted(keys(of_file)) == sorted(BatchFile.__struct_fields__)
    assert keys(of_drive) == list(DraftedDrive.__struct_fields__)


def test_every_key_of_a_plan_is_on_the_page() -> None:
    draft = BatchDraft(common={"suite": "ssd"}, drives=(DraftedDrive(drive="sim:sata-ssd"),))
    plan = json.loads(render_batch_plan_json(estimate_batch(draft.settle("lab"), lambda _: ASSUMED)))
    table = PAGE.split("`tkperf-batch-plan/1`:")[1]
    assert {*plan, *plan["drives"][0], *plan["groups"][0]} - {"schema", "name"} <= set(re.findall(r"`(\w+)`", table))


def test_the_example_is_a_batch_file() -> None:
    """The example on the page is a batch file with every key of the format and no other key."""
    block = PAGE.split("## The batch file\n\n")[1].split("\n\n| key")[0]
    draft = parse_batch_file(dedent(block), Path("rack7.toml"))
    assert len(draft.drives) == 5
    assert all(re.search(rf"^    \[?{key}\b", block, re.MULTILINE) for key in BatchFile.__struct_fields__)


def test_every_key_of_the_state_is_on_the_page() -> None:
    for of, struct in (
        ("a batch", BatchState),
        ("a drive", DriveState),
        ("`shown`", DriveShown),
        ("`place`", BatchPlace),
    ):
        _, table = PAGE.split(f"| key of {of} | means |")
        assert sorted(keys(table)) == sorted(struct.__struct_fields__)
    for choices in (DriveStage, SharingState):
        assert all(f"`{one}`" in PAGE for one in choices)
