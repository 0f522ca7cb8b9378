"""The address at which the server listens, the limits of its connections, and the start and end of the server."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from tkperf.model.errors import UsageError, reason_of
from tkperf.model.units import format_count, list_names
from tkperf.runfile.writers import find_running
from tkperf.web.bounds import MOST_CONNECTIONS, MOST_REQUEST_BYTES, REQUEST_WITHIN_S, RETRY_AFTER_S, TAKEN_WITHIN_S

# The time, in s, within which answers in progress must be complete when the server ends.
GRACE_S = 2
LOOK_FOR_RUNS_EVERY_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The socket at which the server listens.

    Attributes:
        address: the address for a browser, including the token.
        token: the token that each request needs, or None if no token is necessary.
        names: host names that lead to this server.
    """

    socket: socket.socket
    address: str
    token: str | None = None
    names: tuple[str, ...] = ()


def listen(host: str, port: int) -> Listening:
    """Open a socket at an address. Every address that is not a loopback address needs a token.

    Raises:
        UsageError: the address does not belong to this host, or is already in use.
    """
    opened = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen()
    except OSError as error:
        if opened is not None:
            opened.close()
        raise UsageError(
            f"tkperf cannot listen at {host}, port {port}: {reason_of(error)}. Choose another address "
            "or port with --host and --port"
        ) from error
    bound, port = opened.getsockname()[:2]
    if bound == "::1" or bound.startswith("127."):
        return Listening(socket=opened, address=_address_of(bound, port))
    own = socket.gethostname()
    token = secrets.token_urlsafe(24)
    reached = own if bound in ("0.0.0.0", "::") else bound  # noqa: S104 - at the user's request
    return Listening(
        socket=opened,
        address=f"{_address_of(reached, port)}?token={token}",
        token=token,
        names=(own, socket.getfqdn(), host),
    )


def _address_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


@contextmanager
def listen_at_path(path: Path) -> Iterator[Listening]:
    """Open a Unix socket that only this user can use, and remove the socket after the ``with`` block.

    Raises:
        UsageError: the file exists and is in use, or cannot be created.
    """
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        _remove_unused(path)
        opened.bind(str(path))
        opened.listen()
    except OSError as error:
        opened.close()
        raise UsageError(f"cannot listen at {path}: {reason_of(error)}") from error
    finally:
        os.umask(before)
    try:
        yield Listening(socket=opened, address=f"curl --unix-socket {path} http://localhost/")
    finally:
        with suppress(OSError):
            path.unlink()


def _remove_unused(path: Path) -> None:
    """Remove a socket that a killed server left behind."""
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attempt:
                try:
                    attempt.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink()


_TOO_MANY_CONNECTIONS = (
    f"tkperf serve has {MOST_CONNECTIONS} other connections now: try again in {RETRY_AFTER_S} seconds.\n"
)
_NO_CONNECTION = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    f"Content-Length: {len(_TOO_MANY_CONNECTIONS)}\r\nRetry-After: {RETRY_AFTER_S}\r\nConnection: close\r\n\r\n"
    f"{_TOO_MANY_CONNECTIONS}"
).encode()


class BoundedProtocol(H11Protocol):
    """A connection. The number of connections is limited.

    Each request must arrive in time, and the client must read each piece of an answer in time.
    """

    _late: asyncio.TimerHandle | None = None
    _not_taken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # With this setting, asyncio calls pause_writing as soon as any byte waits for the client. It calls
        # resume_writing when no byte waits any more.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(_NO_CONNECTION)
            transport.close()
        else:
            self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_request()

    def pause_writing(self) -> None:
        """Close the connection if the client does not read the waiting data in time.

        Otherwise a client that reads nothing would occupy a request and a connection forever. ``close`` is not used,
        because it would also wait for the client.
        """
        super().pause_writing()
        if self._not_taken is None:
            self._not_taken = self.loop.call_later(TAKEN_WITHIN_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_taking()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        self._end_taking()
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        """Close the connection if the next request, or the rest of the current request, does not arrive in time."""
        if self.conn.their_state is not h11.IDLE:
            self._end_wait()
        elif self._late is None:
            self._late = self.loop.call_later(REQUEST_WITHIN_S, self.transport.close)

    def _end_taking(self) -> None:
        if self._not_taken is not None:
            self._not_taken.cancel()
            self._not_taken = None

    def _end_wait(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Server(uvicorn.Server):
    """A server that does not handle signals, because ``serve`` handles them. uvicorn itself would let the signal kill
    the process, so that tkperf could not shut down cleanly.
    """

    def capture_signals(self) -> Any:
        return nullcontext()


def serve(app: ASGIApp, listening: Listening, *, ending: asyncio.Event, warn: Callable[[str], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP arrives.

    Args:
        ending: an event that is set when the signal arrives.
        warn: a function that receives a sentence if a run is in progress on this host.
    """
    # Each connection needs a file descriptor. If no file descriptor is free, asyncio would report every attempt to
    # connect.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = uvicorn.Config(
        app,
        access_log=False,  # addresses can contain the token
        log_level="error",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        http=BoundedProtocol,
        ws="none",
        h11_max_incomplete_event_size=MOST_REQUEST_BYTES,
    )
    server = _Server(config)

    def end() -> None:
        ending.set()
        server.should_exit = True

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, end)
        looking = asyncio.create_task(_watch_runs(warn))
        await server.serve(sockets=[listening.socket])
        looking.cancel()

    asyncio.run(run())


async def _watch_runs(warn: Callable[[str], None]) -> None:
    """Warn about the runs in progress on this host. Each run causes only one warning."""
    warned: set[int | None] = set()
    while True:
        with suppress(OSError):
            running = await asyncio.to_thread(lambda: list(find_running()))
            if new := [writer for writer in running if writer.pid not in warned]:
                names = list_names(
                    [f"process {writer.pid}" if writer.path is None else writer.path.name for writer in new]
                )
                warn(
                    f"{format_count(len(new), 'run')} under way on this host ({names}): pages take CPU time from a "
                    "measurement; copy run files to another machine, and serve them there"
                )
            warned.update(writer.pid for writer in new)
        await asyncio.sleep(LOOK_FOR_RUNS_EVERY_S)
