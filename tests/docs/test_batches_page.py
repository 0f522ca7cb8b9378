"""docs/batches.md has every key of a batch file, and its example is one."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

from tkperf.pipeline.batch.batch_file import BatchFile, DriveOfFile, parse_batch_file

PAGE = (Path(__file__).parents[2] / "docs/batches.md").read_text(encoding="utf-8")


def keys(table: str) -> list[str]:
    rows = table.split("\n\n", maxsplit=1)[0].splitlines()[1:]
    return [key for row in rows for key in re.findall(r"`(\w+)`", row.split(" | ")[0])]


def test_every_key_is_on_the_page() -> None:
    _, of_file, *_ = PAGE.split("| key | takes | means |")
    _, of_drive = PAGE.split("\n| key | means |")
    assert sorted(keys(of_file)) == sorted(BatchFile.__struct_fields__)
    assert keys(of_drive) == list(DriveOfFile.__struct_fields__)


def test_the_example_is_a_batch_file() -> None:
    """With every key of the file but none that is not there."""
    block = PAGE.split("## The batch file\n\n")[1].split("\n\n| key")[0]
    draft = parse_batch_file(dedent(block), Path("rack7.toml"))
    assert len(draft.drives) == 5
    assert all(
        re.search(rf"^    \[?{key}\b", block, re.MULTILINE) for key in BatchFile.__struct_fields__
    )
