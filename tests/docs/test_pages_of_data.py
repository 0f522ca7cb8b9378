"""The pages about machine-readable data are complete. They contain all codes, tables, columns, keys and options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

import tkperf
from tests.builders import run_info, simulate
from tkperf.analysis.comparing.comparison import compare
from tkperf.analysis.comparing.run_figures import build_run_figures
from tkperf.analysis.estimates import REFUSAL
from tkperf.analysis.results import RunResult
from tkperf.cli.commands.suites import raid, ssd
from tkperf.cli.main import COMMANDS
from tkperf.host.audit import AuditResult
from tkperf.model.disturbance.io import DisturbanceCode
from tkperf.model.host_use import HostUse
from tkperf.model.quantity import Direction
from tkperf.model.throttling import MEDIA_ERRORS, THROTTLED
from tkperf.pipeline.device_under_test import NO_ROOM, USERS_NOT_VISIBLE
from tkperf.pipeline.host_check import HOST_DISTURBS, TUNING_LEFT_BEHIND
from tkperf.pipeline.run_request import RunRequest
from tkperf.render.dataset import build_dataset_tables
from tkperf.render.export_json import WORKLOAD, render_json
from tkperf.render.export_series import FLUSHES, READINGS, SECONDS, TRIMS
from tkperf.render.export_tables import build_comparison_table, build_tables
from tkperf.runner.run_watch import HOST_LIMITED, UNREAD

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/tkperf"
# These codes occur in no run file. tkperf reports them before a run, during a run, about an imported run, or in the
# analysis.
TOLD_ELSEWHERE = {REFUSAL, "run-file-waiting", "not-searched"}
# The page describes each of these facts as a whole and not key by key, because the content of these facts differs from
# profile to profile.
AS_A_WHOLE = {"profile", "options", "hosts", "device", "host"}


def read(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def rows_below(text: str, heading: str) -> list[list[str]]:
    """Return the cells of each row of the first table whose header begins with this text."""
    lines = text[text.index(f"| {heading} |") :].split("\n\n", maxsplit=1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:]]


def in_backticks(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("run")
    simulate(folder, run_info())
    return tkperf.load(folder / "run.tkperf")


def test_every_kind_of_disturbance_is_on_the_page() -> None:
    """The table in run-file.md lists exactly the existing kinds of disturbances."""
    page = read("reference/run-file.md")
    found = {code.strip("`") for code, _ in rows_below(page[page.index("`disturbance`:") :], "code")}
    assert found == {str(code) for code in DisturbanceCode}


def test_every_code_of_a_warning_is_on_a_page() -> None:
    """Every warning code is on a page, with the same spelling as in the program. The codes of runs are in the table in
    run-file.md.
    """
    made = {
        HOST_DISTURBS,
        REFUSAL,
        TUNING_LEFT_BEHIND,
        USERS_NOT_VISIBLE,
        NO_ROOM,
        UNREAD,
        HOST_LIMITED,
        MEDIA_ERRORS,
        THROTTLED,
    }
    of_runs = made.copy()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        codes = re.findall(r'(?:(?<!note=)RunNote\(\s*code=|\b_?warn\(\s*)"([\w-]+)"', text)
        made |= set(codes)
        if not path.is_relative_to(SOURCE / "interop") and not path.is_relative_to(SOURCE / "page"):
            of_runs |= set(codes)
    page = read("reference/run-file.md")
    table = rows_below(page[page.index("`warning`:") :], "code")
    assert {code for row in table for code in in_backticks(row[0])} == of_runs - TOLD_ELSEWHERE
    pages = page + read("how-to/import.md") + read("reference/results-json.md") + read("reference/progress-json.md")
    assert {code for code in made if f"`{code}`" not in pages} == {REFUSAL}


def test_what_is_kept_of_the_host_is_on_the_page() -> None:
    page = read("reference/run-file.md")
    found = [
        each for row in rows_below(page[page.index("`host_use` contains") :], "key") for each in in_backticks(row[0])
    ]
    assert set(found) == {each.name for each in fields(HostUse)}
    named = in_backticks(read("how-to/host.md"))
    assert {each.name for each in fields(AuditResult)} - set(named) == set()


def test_every_table_of_the_exports_is_on_the_page(result: RunResult) -> None:
    """The page lists every table of the exports. Each name in a row is either a column of the table or the name of
    another table.
    """
    tables = list(build_tables(result, (), lambda *_: ()))
    page = read("reference/exports.md")
    rows = rows_below(page, "table")
    assert {name.strip("`") for name, _ in rows} == {table.name for table in tables}
    compared = build_comparison_table(compare([result, result]))
    known = {column for table in (*tables, compared) for column in table.columns} | set(WORKLOAD)
    known |= {table.name for table in tables} | set(Direction)
    named = {each for row in rows for each in in_backticks(row[1])}
    text = page[page.index("The columns of a workload are `access`") : page.index("## A data set of many runs")]
    named |= {each for each in in_backticks(text) if not each.startswith("tkperf ")}
    assert named - known == set()


def test_tables_of_a_data_set_are_on_the_page(result: RunResult) -> None:
    """The page lists exactly the tables of a data set, with their columns. The columns of the tables for each run are
    in the preceding table of the page.
    """
    page = read("reference/exports.md")
    rows = rows_below(page[page.index("## A data set of many runs") :], "table")
    tables = list(build_dataset_tables(result, build_run_figures(result)))
    assert [name.strip("`") for name, _ in rows] == [table.name for table in tables]
    for (_, text), table in zip(rows, tables, strict=True):
        named = {each for each in in_backticks(text) if each not in WORKLOAD}
        assert named == set(table.columns) - {"run", "target", "test", "section", "part", *WORKLOAD}


def test_every_series_is_on_the_page() -> None:
    """The page names exactly the exported series over time."""
    page = read("reference/exports.md")
    text = page[page.index("## Series over time") : page.index("In TKperf's XML")]
    named = {each for each in in_backticks(text) if re.fullmatch(r"tkperf_\w+_\w+", each)}
    assert named == {*SECONDS, *TRIMS, *FLUSHES, *READINGS}


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            if key not in AS_A_WHOLE:
                yield from keys_of(below)
    elif isinstance(value, list):
        for each in value:
            yield from keys_of(each)


def test_every_key_of_the_results_is_on_the_page(result: RunResult) -> None:
    named = set(in_backticks(read("reference/results-json.md")))
    assert set(keys_of(json.loads(render_json(result)))) - named == set()


def test_new_options_and_commands_are_named_beside_tkperfs() -> None:
    """docs/how-to/tkperf-2.2.md names every option of ``ssd`` and ``raid``, and lists exactly the commands that are new
    in tkperf.
    """
    page = read("how-to/tkperf-2.2.md")
    missing = [
        param.name
        for command in (ssd, raid)
        for param in command.params
        if isinstance(param, click.Option) and not any(f"`{each}" in page for each in param.opts)
    ]
    assert missing == []
    assert "`tkperf ssd|hdd|raid NAME DEVICE`" in page
    new = page[page.index("`tkperf plan`") :].split("\n\n")[0].replace("`tkperf ", "`")
    assert set(in_backticks(new.partition(".")[0])) == set(COMMANDS) - {"ssd", "hdd", "raid"}


def test_every_wish_of_a_run_is_named_for_python() -> None:
    named = set(in_backticks(read("reference/python-api.md")))
    assert set(RunRequest.__struct_fields__) - named - {"suite", "device"} == set()
