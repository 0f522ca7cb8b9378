"""tkperf workload: files that describe tests of the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tkperf.cli.console import open_console, plain
from tkperf.procedures import Circumstances, load_profile, own_tests, with_workloads


def show(file: Path, profile: str, as_json: bool) -> None:
    """Say what the test of a workload file would do."""
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
