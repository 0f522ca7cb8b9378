"""tkperf attach: watch a run from another terminal, by its run file alone."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE, OneOf
from tkperf.cli.options import VERBOSE


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option(
    "--progress",
    type=OneOf(["auto", "live", "plain", "json"]),
    default="auto",
    show_default=True,
    help="Live view, plain lines, or one JSON event a line on stdout.",
)
@click.option("-v", "--verbose", is_flag=True, help=VERBOSE)
def attach(**options: Any) -> None:
    """Watch the run in RUN_FILE from any terminal, read-only, until it ends. Ctrl-C ends the watching alone.

    Figures come as the run file gets them: with each step, of a long one once a minute.

    \b
    Examples:
      tkperf attach D3-S4510.tkperf
      ssh testhost tkperf attach D3-S4510.tkperf --progress plain
    """
    from tkperf.cli.attach import attach as act

    act(**options)
