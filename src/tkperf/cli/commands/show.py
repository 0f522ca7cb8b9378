"""tkperf show: print the results of a run file, for people or programs."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option("--json", "as_json", is_flag=True, help="A documented JSON document instead.")
def show(**options: Any) -> None:
    """Print the results in RUN_FILE again; also while its run goes on.

    \b
    Examples:
      tkperf show D3-S4510.tkperf
      tkperf show D3-S4510.tkperf --json | jq '.tests[].sections[].steady'
    """
    from tkperf.cli.show import show as act

    act(**options)
