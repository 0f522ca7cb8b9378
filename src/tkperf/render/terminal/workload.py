"""tkperf workload: explain files that describe the user's own tests."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tkperf.procedures import Circumstances, load_profile, own_tests, with_workloads
from tkperf.procedures.own_workloads.tables import TABLES_BY_PLACE
from tkperf.procedures.profiles import explain_keys
from tkperf.render.terminal.console import open_console, plain


def show(file: Path, profile: str, as_json: bool) -> None:
    """Print what the test of a workload file would do."""
    chosen = with_workloads(load_profile(profile), "ssd", (str(file.absolute()),))
    (test,) = own_tests(chosen)
    lines = test.describe(chosen, Circumstances())
    if as_json:
        (table,) = test.tables
        described = {"name": test.name, "title": test.title, "profile": chosen.name}
        data = {"course": lines, "workload": chosen.as_plain_data()[table.key]}
        click.echo(json.dumps(described | data, indent=2))
        return
    console = open_console()
    console.print(f"[bold]{plain(test.name)}[/bold]  {plain(test.title)}", highlight=False)
    console.print(f"with profile {plain(chosen.name)}: {plain(chosen.title)}", highlight=False)
    for line in lines:
        console.print(f"  {plain(line)}", highlight=False)


def list_keys() -> None:
    """Print every key of a workload file, table by table."""
    console = open_console()
    for place, table in TABLES_BY_PLACE.items():
        console.print(f"[bold]{plain(place)}[/bold]", highlight=False)
        drawn = Table(box=SIMPLE_HEAD, show_edge=False)
        for column in ("key", "values", "meaning"):
            drawn.add_column(column, overflow="fold")
        for key in explain_keys(table):
            drawn.add_row(key.name, plain(key.values), plain(key.meaning))
        if drawn.row_count:
            console.print(drawn)
        console.print()
