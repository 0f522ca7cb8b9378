"""The example on the page about user-defined workloads runs, and every key has an explanation."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tkperf.cli.main import cli
from tkperf.procedures.own_workloads.workload_file import TABLES_BY_PLACE
from tkperf.procedures.profiles import explain_keys

PAGE = Path(__file__).parents[2] / "docs/reference/own-workloads.md"
EXAMPLE = PAGE.parents[1] / "examples/database.toml"


@pytest.mark.parametrize("table", TABLES_BY_PLACE.values())
def test_an_optional_key_says_what_is_taken_without_it(table: type[msgspec.Struct]) -> None:
    """The explanation of an optional key contains its default. The explanation of a required key contains none."""
    for field, key in zip(msgspec.structs.fields(table), explain_keys(table), strict=True):
        assert key.meaning, "every key says what it means: give its type a means(...)"
        assert ("default: " in key.meaning) is not field.required, key


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the example have the results that the page states for the shipped file, and the claim is met."""
    text = PAGE.read_text("utf-8")
    claims, together = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    shutil.copy(EXAMPLE, tmp_path / "database.toml")
    (tmp_path / "claims.toml").write_text(claims)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ tkperf (.*)$", text, re.MULTILINE)
    assert len(commands) == 7
    outputs = {}
    for command in commands:
        if command.startswith("report"):
            (tmp_path / "database.toml").unlink()  # only the run file exists from here on
        done = CliRunner().invoke(cli, shlex.split(command), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        outputs[command.split()[0]] = done.output
    assert "Pages at rising demand" in outputs["workload"]
    assert "fill 2 × 240.1 GB" in outputs["plan"]
    document = json.loads((tmp_path / "pages.json").read_text())
    (test,) = document["tests"]
    assert (test["name"], test["title"]) == ("database", "Database pages, log and backup")
    assert [section["name"] for section in test["sections"]] == [
        "Pages and log in turn",
        "Pages at rising demand",
        "Backup",
    ]
    page = (tmp_path / "pages.html").read_text()
    assert "OWN WORKLOAD: Database pages, log and backup is a test of a workload file" in page
    assert "pages: RND 8k 90 % + 64k 10 %, R/W 70/30, TC 4 / QD 32" in page
    assert {path.name for path in (tmp_path / "tables").iterdir()} >= {"cells.csv", "slices.csv"}
    (tmp_path / "together.toml").write_text(together)
    call = ["ssd", "together", "sim:sata-ssd", "--test", "./together.toml", "-rt", "2"]
    done = CliRunner().invoke(cli, call, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(cli, ["show", "together.tkperf", "--full"], catch_exceptions=False).output
    assert "log, flushes" in " ".join(shown.split())
