"""The address that the server listens at, and the server's life."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tkperf.model.errors import UsageError, reason_of

# Pages under way get so long after SIGTERM.
GRACE_S = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """An open socket; ``address`` is what to open in a browser, ``token`` what each request needs."""

    socket: socket.socket
    address: str
    token: str | None = None
    names: tuple[str, ...] = ()


def listen(host: str, port: int) -> Listening:
    """Listen at an IP address or name; any but loopback needs a token.

    Raises:
        UsageError: the address is not of this host, or in use.
    """
    where = f"{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen()
    except OSError as error:
        raise UsageError(
            f"cannot listen at {where}: {reason_of(error)}; choose another with --port"
        ) from error
    bound, port = opened.getsockname()[:2]
    if bound == "::1" or bound.startswith("127."):
        shown = f"[{bound}]" if ":" in bound else bound
        return Listening(socket=opened, address=f"http://{shown}:{port}/")
    names = tuple({socket.gethostname(), socket.getfqdn(), host})
    shown = socket.gethostname() if bound in ("0.0.0.0", "::") else bound  # noqa: S104  # asked for
    token = secrets.token_urlsafe(24)
    shown = f"[{shown}]" if ":" in shown else shown
    return Listening(
        socket=opened, address=f"http://{shown}:{port}/?token={token}", token=token, names=names
    )


def listen_at_path(path: Path) -> Listening:
    """Listen at a Unix socket that only this user can open.

    Raises:
        UsageError: the file exists, or cannot be made.
    """
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        opened.bind(str(path))
        opened.listen()
    except OSError as error:
        raise UsageError(f"cannot listen at {path}: {reason_of(error)}") from error
    finally:
        os.umask(before)
    return Listening(socket=opened, address=f"curl --unix-socket {path} http://localhost/")


class _Server(uvicorn.Server):
    """A server whose signals are handled by ``serve``: uvicorn's would end the process by the signal."""

    def capture_signals(self) -> Any:
        return nullcontext()


def serve(app: ASGIApp, listening: Listening) -> None:
    """Serve until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        app,
        access_log=False,  # addresses may have the token
        log_level="error",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        ws="none",
    )
    server = _Server(config)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, setattr, server, "should_exit", True)
        await server.serve(sockets=[listening.socket])

    asyncio.run(run())
