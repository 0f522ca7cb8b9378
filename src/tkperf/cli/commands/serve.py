"""tkperf serve: show run files in a browser."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from pathlib import Path

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import Count, RunFolder
from tkperf.cli.standard_streams import complain, ended_by_signals
from tkperf.model.errors import RefusedError, UsageError

DESCRIPTORS = 64


@click.command(cls=Command)
@click.argument("folders", nargs=-1, type=RunFolder(), metavar="[DIR]...")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address at which the server listens. If the address is not a loopback address, a request needs the token "
    "that tkperf prints. A tunnel with 'ssh -L' is safer.",
)
@click.option(
    "--port",
    type=Count(0, 65535),
    default=8757,
    show_default=True,
    help="Port at which the server listens; 0 means any free port.",
)
@click.option(
    "--socket",
    "socket_path",
    type=RunFolder(),
    metavar="PATH",
    help="Listen on this Unix socket instead of a port. Only you can open the socket.",
)
@click.option("--allow-root", is_flag=True, help="Serve as root. Without this option, tkperf refuses to serve as root.")
def serve(folders: tuple[Path, ...], host: str, port: int, socket_path: Path | None, allow_root: bool) -> None:
    """Show the run files below each DIR in a browser. The pages also show runs that have not ended. Default: the
    current folder.

    The server only reads files and changes nothing. Ctrl-C ends the server.

    \b
    Examples:
      tkperf serve results/
      ssh -L 8757:localhost:8757 testhost tkperf serve /srv/results
    """
    from tkperf.system.host import require_descriptors

    # The server needs many file descriptors, because a browser opens several connections, and each page reads files.
    require_descriptors(DESCRIPTORS, purpose="serving pages", fault=UsageError)
    if os.geteuid() == 0 and not allow_root:
        raise RefusedError(
            "tkperf serve reads files that other users may have written, so it must not run as root. Start it as an "
            "ordinary user with access to these files, or pass --allow-root"
        )
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder. Name the folder that contains the run files")
    with suppress(KeyboardInterrupt), ended_by_signals(once=False):
        _serve(folders or (Path(),), host, port, socket_path)


def _serve(folders: tuple[Path, ...], host: str, port: int, socket_path: Path | None) -> None:
    import asyncio

    from tkperf.render.packages import packages_of

    with packages_of("serve", whose="tkperf serve needs"):
        from tkperf.web.application import build_app
        from tkperf.web.listening import listen, listen_at_path
        from tkperf.web.listening import serve as serve_at

    at = listen_at_path(socket_path) if socket_path else nullcontext(listen(host, port))
    with at as listening:
        click.echo(listening.address)
        if listening.token is not None:
            bound = listening.socket.getsockname()[1]
            complain(
                "Anyone who has this address can read the runs, and the connection is not "
                "encrypted. Safer: 'tkperf serve' without "
                f"--host, and 'ssh -L {bound}:localhost:{bound}' to this host"
            )
        ending = asyncio.Event()
        app = build_app(folders, names=listening.names, token=listening.token, ending=ending)

        def warn(text: str) -> None:
            complain(f"tkperf: warning: {text}")

        serve_at(app, listening, ending=ending, warn=warn)
