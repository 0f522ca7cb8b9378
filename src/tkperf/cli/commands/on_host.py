"""tkperf on-host: the command that a batch over several hosts calls on each host."""

from __future__ import annotations

import click

from tkperf.cli.calling import Command


@click.command(cls=Command, hidden=True)
def on_host() -> None:
    """Take part in a batch that another host conducts, and read the orders of that host from stdin. Only programs call
    this command.
    """
    from tkperf.cli.remote_orders import serve

    serve()
