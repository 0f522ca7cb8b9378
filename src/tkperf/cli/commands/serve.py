"""tkperf serve: show run files in a browser."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Count, RunFolder
from tkperf.cli.streams import complain, ended_by_signals
from tkperf.model.errors import RefusedError


@click.command(cls=Command)
@click.argument("folders", nargs=-1, type=RunFolder(), metavar="[DIR]...")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at; other than loopback it needs a token, and 'ssh -L' is safer.",
)
@click.option(
    "--port", type=Count(0, 65535), default=8757, show_default=True, help="0: any that is free."
)
@click.option(
    "--socket",
    "socket_path",
    type=RunFolder(),
    metavar="PATH",
    help="Listen at a Unix socket that only you can open, instead.",
)
@click.option("--allow-root", is_flag=True, help="Serve as root.")
def serve(
    folders: tuple[Path, ...], host: str, port: int, socket_path: Path | None, allow_root: bool
) -> None:
    """Show the run files below DIR in a browser, also while they are written. Default: this folder.

    It reads only, and answers only to this host unless you name another address.

    \b
    Examples:
      tkperf serve results/
      ssh -L 8757:localhost:8757 testhost tkperf serve /srv/results
    """
    if os.geteuid() == 0 and not allow_root:
        raise RefusedError(
            "tkperf serve reads files that others may have written, so root should not: start it as an ordinary user "
            "who may read them, or pass --allow-root"
        )
    try:
        with ended_by_signals(once=True):
            _serve(folders or (Path(),), host, port, socket_path)
    except KeyboardInterrupt:
        return


def _serve(folders: tuple[Path, ...], host: str, port: int, socket_path: Path | None) -> None:
    from tkperf.render.packages import packages_of

    with packages_of("serve", whose="tkperf serve needs"):
        from tkperf.web.app import build_app
        from tkperf.web.listening import listen, listen_at_path
        from tkperf.web.listening import serve as serve_at

    listening = listen(host, port) if socket_path is None else listen_at_path(socket_path)
    complain(listening.address)
    serve_at(build_app(folders, names=listening.names, token=listening.token), listening)
