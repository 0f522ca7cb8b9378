"""The process of tkperf serve. The tests check its address, its start and its end."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from tests.conftest import children_of
from tkperf.web import listening
from tkperf.web.listening import BoundedProtocol

TKPERF = (sys.executable, "-m", "tkperf", "serve")
ROOT = ("--allow-root",) if os.geteuid() == 0 else ()


@contextmanager
def started(folder: Path, *options: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*TKPERF, *ROOT, *options],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(address: tuple[str, int] | str, path: str, *, host: str = "localhost", more: str = "") -> str:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as connection:
        connection.connect(address)
        words = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
        connection.sendall(words.encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def without_warnings(complaints: str) -> list[str]:
    """Return the output without warnings about other runs on this host, which must not affect a test."""
    return [line for line in complaints.splitlines() if "under way on this host" not in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """SIGINT and SIGTERM end the server with exit code 0 and without output. The workers of the server end too."""
    with started(tmp_path, "--port", "0") as process:
        assert process.stdout is not None
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
        assert found
        assert "200 OK" in ask(("127.0.0.1", int(found[1])), "/")
        workers = children_of(process.pid)
        assert workers
        process.send_signal(number)
        _, complaints = process.communicate(timeout=60)
        assert process.returncode == 0
        assert not without_warnings(complaints)
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_a_signal_while_it_loads_ends_it_in_order(tmp_path: Path) -> None:
    with started(tmp_path, "--port", "0", env={"PYTHONPROFILEIMPORTTIME": "1"}) as process:
        assert process.stderr is not None
        for line in process.stderr:  # the output contains a line for each loaded module
            if "starlette" in line:
                process.send_signal(signal.SIGTERM)
                break
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_a_long_address_is_refused_in_words(tmp_path: Path) -> None:
    """If an address contains too many runs, the request is refused with a message, and the connection is not broken.

    A user can tick more runs than a page can compare.
    """
    with started(tmp_path, "--port", "0") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
        for count, status, words in ((300, " 400 ", "at most 200 runs"), (1500, " 414 ", "tick fewer runs")):
            runs = "&".join(f"run={number:032x}" for number in range(count))
            answer = ask(("127.0.0.1", port), f"/compare?{runs}")
            assert status in answer
            assert words in answer


def test_it_takes_as_many_connections_as_it_may(tmp_path: Path) -> None:
    """The server raises its limit of open files to the hard limit. The usual limit is 1024, but each browser needs
    several connections.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard))
    try:
        with started(tmp_path, "--port", "0") as process:
            assert process.stdout is not None
            port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
            assert "200 OK" in ask(("127.0.0.1", port), "/")
            assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_other_addresses_need_the_printed_token(tmp_path: Path) -> None:
    """A server that listens at an address other than localhost requires the printed token. No other line of output
    contains the token.
    """
    with started(tmp_path, "--host", "0.0.0.0", "--port", "0") as process:
        assert process.stdout is not None
        found = re.fullmatch(r"http://[^:/]+:(\d+)/\?token=([\w-]{32,})\n", process.stdout.readline())
        assert found
        address, token = ("127.0.0.1", int(found[1])), found[2]
        assert " 401 " in ask(address, "/")
        assert " 401 " in ask(address, "/?token=wrong")
        assert " 303 " in ask(address, f"/?token={token}")
        assert "200 OK" in ask(address, "/", more=f"Authorization: Bearer {token}\r\n")
        assert "200 OK" in ask(address, "/", host=socket.gethostname(), more=f"Authorization: Bearer {token}\r\n")
        assert " 421 " in ask(address, f"/?token={token}", host="evil.example")
        assert " 400 " in ask(address, f"/bad path?token={token}")
        process.terminate()
        said, complaints = process.communicate(timeout=60)
        assert process.returncode == 0
        assert token not in said + complaints
        assert f"ssh -L {found[1]}:localhost:{found[1]}" in complaints


def test_a_unix_socket_is_the_users_alone(tmp_path: Path) -> None:
    """Only the user who started the server can open its Unix socket. The socket of a killed server is replaced, and a
    socket in use is not replaced. The server removes its socket when it ends.
    """
    path = tmp_path / "serve.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with started(tmp_path, "--socket", str(path)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "200 OK" in ask(str(path), "/")
        with started(tmp_path, "--socket", str(path)) as second:
            _, complaints = second.communicate(timeout=60)
            assert second.returncode == 2
            assert "cannot listen at" in complaints
        assert "200 OK" in ask(str(path), "/")
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert not path.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "192.0.2.1"), "cannot listen at 192.0.2.1"),
        (("--host", "nowhere.invalid"), "cannot listen at nowhere.invalid"),
        (("missing",), "missing is not a folder"),
        (("--socket", "/nowhere/at/all"), "cannot listen at /nowhere/at/all"),
    ],
)
def test_wrong_calls_say_what_is_wrong(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    with started(tmp_path, *options) as process:
        _, complaints = process.communicate(timeout=60)
        assert process.returncode == 2
        assert words in complaints


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(TKPERF, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "--allow-root" in done.stderr


def test_connections_are_bounded_in_number_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the number of connections exceeds the limit, a further connection receives a refusal as text.

    A connection whose request does not arrive in time is closed.
    """
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(listening, "REQUEST_WITHIN_S", 3.0)

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("page")(scope, receive, send)

    async def ask() -> tuple[bytes, bytes, bytes]:
        server = uvicorn.Server(uvicorn.Config(page, http=BoundedProtocol, log_level="error"))
        path = str(tmp_path / "socket")
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path)
            serving = asyncio.create_task(server.serve(sockets=[opened]))
            while not server.started:
                await asyncio.sleep(0.01)
            slow, to_slow = await asyncio.open_unix_connection(path)
            to_slow.write(b"GET / HTTP/1.1\r\nHost: loc")
            await asyncio.sleep(0.01)
            over, to_over = await asyncio.open_unix_connection(path)
            refused, cut_off = await over.read(), await slow.read()
            last, to_last = await asyncio.open_unix_connection(path)
            to_last.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answered = await last.read()
            for writer in (to_slow, to_over, to_last):
                writer.close()
                await writer.wait_closed()
            server.should_exit = True
            await serving
        return refused, cut_off, answered

    refused, cut_off, answered = asyncio.run(asyncio.wait_for(ask(), 60))
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"Retry-After: " in refused
    assert b"other connections now" in refused
    assert cut_off == b""
    assert answered.endswith(b"page")


@pytest.mark.parametrize("body_bytes", [8 << 20, 1 << 18])
def test_a_reader_that_takes_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body_bytes: int
) -> None:
    """If a client does not read its answer in time, the server closes the connection, even if only the end of the
    answer remains.

    Other clients receive their complete answers.
    """
    monkeypatch.setattr(listening, "TAKEN_WITHIN_S", 3.0)

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(b"x" * body_bytes)(scope, receive, send)

    async def ask() -> tuple[int, bytes]:
        server = uvicorn.Server(uvicorn.Config(page, http=BoundedProtocol, log_level="error"))
        path = str(tmp_path / "socket")
        request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as opened, socket.socket(socket.AF_UNIX) as stalled:
            opened.bind(path)
            serving = asyncio.create_task(server.serve(sockets=[opened]))
            while not server.started:
                await asyncio.sleep(0.01)
            stalled.connect(path)
            stalled.sendall(request)
            while not server.server_state.total_requests:
                await asyncio.sleep(0.01)
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(request)
            answered = await reader.read()
            while server.server_state.connections:
                await asyncio.sleep(0.01)
            writer.close()
            taken = 0
            while piece := stalled.recv(1 << 20):
                taken += len(piece)
            server.should_exit = True
            await serving
        return taken, answered

    taken, answered = asyncio.run(asyncio.wait_for(ask(), 120))
    assert taken < body_bytes
    assert answered.endswith(b"x" * body_bytes)
