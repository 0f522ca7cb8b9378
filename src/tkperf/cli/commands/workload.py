"""tkperf workload: explain files that describe the user's own tests."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command, Group
from tkperf.cli.commands.workload_from_fio import from_fio
from tkperf.cli.kinds import InputFile
from tkperf.cli.options import profile_option


@click.group(cls=Group)
def workload() -> None:
    """Tests of your own: a workload file in TOML gives the loads, phases and rule of steady state.

    It runs with tkperf ssd, hdd or raid NAME DEVICE --test FILE.toml, reports and compares like
    any other test. tkperf workload keys lists every key of such a file.
    """


@workload.command(cls=Command)
def keys() -> None:
    """List every key of a workload file, with the values that it takes and its meaning.

    \b
    Example:
      tkperf workload keys
    """
    from tkperf.render.terminal.workload import list_keys

    list_keys()


@workload.command(cls=Command)
@click.argument("file", type=InputFile(".toml"))
@profile_option("pts-e-1.1")
@click.option("--json", "as_json", is_flag=True, help="As a JSON document for programs.")
def show(**options: Any) -> None:
    """Check a workload file, say what it would do.

    It describes the test step by step. What the file leaves out is the profile's: TC and QD,
    preconditioning, the rule of steady state.

    \b
    Examples:
      tkperf workload show ./database.toml
      tkperf workload show ./database.toml --profile quick
    """
    from tkperf.render.terminal.workload import show as act

    act(**options)


workload.add_command(from_fio)
