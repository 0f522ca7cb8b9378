"""tkperf report: a run file as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from tkperf.analysis.results import analyse
from tkperf.errors import UsageError
from tkperf.runfile.reader import RunFile


@click.command(short_help="The report of RUN_FILE as one HTML file.")
@click.argument("run_file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The HTML file; by default beside the run file.",
)
def report(run_file: Path, output: Path | None) -> None:
    """Write the report of RUN_FILE as one HTML file that needs no network.

    \b
    Example:
      tkperf report D3-S4510.tkperf        writes D3-S4510.html
    """
    try:
        # Reports need more than the base install, so only this command loads it.
        from tkperf.report.html import render_html  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"reports need more packages ({error.name} is missing): pip install 'tkperf[report]'"
        ) from error
    with RunFile(run_file) as opened:
        page = render_html(analyse(opened.record()))
    path = output or run_file.with_suffix(".html")
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the report {path}: {error.strerror}") from error
    click.echo(path)
