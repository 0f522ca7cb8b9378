"""tkperf on-host: what a batch over hosts calls on each of them."""

from __future__ import annotations

import click

from tkperf.cli.calling import Command


@click.command(cls=Command, hidden=True)
def on_host() -> None:
    """Take part in a batch that is conducted on another host: its orders come on stdin. For programs only."""
    from tkperf.cli.remote_orders import serve

    serve()
