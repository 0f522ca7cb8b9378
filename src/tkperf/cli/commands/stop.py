"""tkperf stop: ask a run to end in order, wherever it runs on this machine."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option("--no-wait", is_flag=True, help="Ask only; do not wait until it has ended.")
def stop(**options: Any) -> None:
    """Ask the run in RUN_FILE to end in order, as Ctrl-C in its terminal would, and wait until it has.

    What was measured is kept, and 'tkperf resume' goes on with it.

    \b
    Examples:
      tkperf stop D3-S4510.tkperf
    """
    from tkperf.cli.stop import stop as act

    act(**options)
