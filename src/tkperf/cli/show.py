"""tkperf show: results of a run file, for people or programs."""

from __future__ import annotations

from pathlib import Path

import click

from tkperf import load
from tkperf.analysis.export_json import render_json
from tkperf.cli.console import open_console
from tkperf.cli.tables import print_results


@click.command(short_help="The results in RUN_FILE, also during its run.")
@click.argument("run_file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="A documented JSON document instead.")
def show(run_file: Path, as_json: bool) -> None:
    """Print the results in RUN_FILE again; also while its run goes on.

    \b
    Examples:
      tkperf show D3-S4510.tkperf
      tkperf show D3-S4510.tkperf --json | jq '.tests[].sections[].steady'
    """
    result = load(run_file)
    if as_json:
        click.echo(render_json(result))
    else:
        print_results(result, open_console())
