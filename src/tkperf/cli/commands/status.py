"""tkperf status: show the progress of runs, from their files and locks alone."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE


@click.command(cls=Command)
@click.argument("run_files", nargs=-1, type=RUN_FILE)
@click.option("--json", "as_json", is_flag=True, help="A documented JSON document instead.")
def status(**options: Any) -> None:
    """Tell how runs stand: of RUN_FILES, or of all that run on this machine and all in this folder.

    A run that is shown as running is running: its process holds its file.

    \b
    Examples:
      tkperf status
      tkperf status D3-S4510.tkperf --json | jq '.runs[0].remaining_longest_s'
    """
    from tkperf.cli.status import status as act

    act(**options)
