"""Run the tkperf command in a copy of a process that has already loaded tkperf.

Most of the CPU time of a short call of tkperf is spent on starting Python and loading modules. ``run_forked`` sends the
call to a server process. The server forks, and the child runs ``tkperf.cli.main`` with the arguments, environment,
folder and streams of the call. The child contains no state of pytest, because the server is a separate process that
loads tkperf and no module of pytest. A run in the child does not sync its run file after each commit.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

CHECKOUT = Path(__file__).parents[2]
# The server loads these packages before the first call, because a command imports its modules only when it is called.
PACKAGES = (
    "cli.commands",
    "cli",
    "pipeline",
    "batch",
    "analysis",
    "page",
    "interop",
    "render.terminal",
    "device.purge",
)


def run_forked(
    argv: Sequence[str | Path], *, env: Mapping[str, str], stdin: str = "", limit_s: float = 600.0
) -> subprocess.CompletedProcess[str]:
    """Run tkperf with the given arguments in the current folder, as ``subprocess.run`` would do.

    Raises:
        subprocess.TimeoutExpired: The call took longer than ``limit_s``, and the child was killed.
    """
    words = [str(word) for word in argv]
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        status = _ask(words, env, (given.fileno(), out.fileno(), err.fileno()), limit_s)
        return subprocess.CompletedProcess(["tkperf", *words], status, _text(out), _text(err))


def _ask(words: list[str], env: Mapping[str, str], streams: tuple[int, ...], limit_s: float) -> int:
    umask = os.umask(0)
    os.umask(umask)
    order = {"argv": words, "env": dict(env), "folder": os.getcwd(), "umask": umask}
    with tempfile.TemporaryFile("w+") as file:
        json.dump(order, file)
        file.seek(0)
        server, _ = _start_server(os.getpid())
        socket.send_fds(server, [b"x"], [file.fileno(), *streams])
    pid = int(server.recv(64))
    server.settimeout(limit_s)
    try:
        return int(server.recv(64))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        server.settimeout(None)
        server.recv(64)
        raise subprocess.TimeoutExpired(words, limit_s) from None


@cache
def _start_server(_pid: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the server of this process. The server ends with this process, because this process holds the other end of
    the server's socket.
    """
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.fork_server", str(its.fileno())],
            cwd=CHECKOUT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
        )
    return ours, process


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


def serve(connection: socket.socket) -> None:
    """Answer each request with the PID of the child. When the child has ended, also send its exit status to the
    client.
    """
    import_module("tkperf.cli.main")
    for package in PACKAGES:
        module = import_module(f"tkperf.{package}")
        for found in pkgutil.iter_modules(module.__path__, f"{module.__name__}."):
            import_module(found.name)
    import_module("tkperf.pipeline.result_cache").describe_maker()
    prepared_process = import_module("tests.prepared_process")
    prepared_process.examine_types()
    prepared_process.stop_syncs()
    gc.collect()
    gc.freeze()
    while True:
        told, files, _, _ = socket.recv_fds(connection, 1, 4)
        if not told:
            return
        child = os.fork()
        if child == 0:
            connection.close()
            _become(*files)
        for file in files:
            os.close(file)
        connection.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(order_file: int, *streams: int) -> None:
    """Run the command in the child. This function never returns."""
    with open(order_file) as file:
        order = json.load(file)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["folder"])
    os.umask(order["umask"])
    time.tzset()
    tempfile.tempdir = None
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for the rest of the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.argv = ["tkperf", *order["argv"]]
    code = 1
    try:
        import_module("tkperf.cli.main").main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # The child ends here without Python's shutdown, because the threads and exit handlers belong to the server.
        _end(code)


def _end(code: int) -> None:
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 120
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
