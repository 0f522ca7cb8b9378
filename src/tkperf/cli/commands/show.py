"""tkperf show: print the results of a run file, for people or programs."""

from __future__ import annotations

from pathlib import Path

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option("--json", "as_json", is_flag=True, help="A documented JSON document instead.")
def show(run_file: Path, as_json: bool) -> None:
    """Print the results in RUN_FILE again; also while its run goes on.

    \b
    Examples:
      tkperf show D3-S4510.tkperf
      tkperf show D3-S4510.tkperf --json | jq '.tests[].sections[].steady'
    """
    if not as_json:
        from tkperf.cli.results import print_run

        print_run(run_file)
        return
    from tkperf.pipeline.api import load
    from tkperf.render.export_json import render_json

    click.echo(render_json(load(run_file)))
