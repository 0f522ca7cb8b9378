"""tkperf workload: files that describe tests of the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tkperf.cli.console import open_console
from tkperf.cli.options import profile_option
from tkperf.cli.output import plain
from tkperf.cli.workload_from_fio import from_fio
from tkperf.procedures import Circumstances, load_profile, own_tests, with_workloads


@click.group(short_help="Tests of your own: explain a workload file, make one of a fio job.")
def workload() -> None:
    """Tests of your own: a workload file in TOML says the loads, phases and rule of steady state.

    It runs with tkperf ssd, hdd or raid NAME DEVICE --test FILE.toml, reports and compares like
    any other test. docs/own-workloads.md has every key.
    """


@workload.command()
@click.argument("file", type=click.Path(path_type=Path))
@profile_option("pts-e-1.1")
@click.option("--json", "as_json", is_flag=True, help="As a JSON document for programs.")
def show(file: Path, profile: str, as_json: bool) -> None:
    """Check a workload file, and say what its test would do, step by step.

    What the file leaves out is the profile's: TC and QD, preconditioning, the rule of steady
    state.

    \b
    Examples:
      tkperf workload show ./database.toml
      tkperf workload show ./database.toml --profile quick
    """
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


workload.add_command(from_fio)
