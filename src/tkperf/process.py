"""The one module that starts processes (a linter guards that)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tkperf.errors import EngineError

PIPE = subprocess.PIPE
ProcessTimeout = subprocess.TimeoutExpired

# Debian packages of the programs tkperf calls, for error messages.
PACKAGES = {"fio": "fio", "setpriv": "util-linux", "flock": "util-linux"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A program that ended. Exit status as the shell gives it; output decoded leniently."""

    status: int
    stdout: str
    stderr: str


def require_program(name: str) -> str:
    """Path of a program.

    Raises:
        EngineError: it is not installed; the message names the package.
    """
    path = shutil.which(name)
    if path is None:
        package = PACKAGES.get(name, name)
        raise EngineError(f"'{name}' is not installed: sudo apt-get install {package}")
    return path


def run_command(argv: Sequence[str], *, timeout_s: float) -> Completed:
    """Run a program to its end.

    Raises:
        EngineError: it is missing, cannot be started or does not end in time.
    """
    program = require_program(argv[0])
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"'{argv[0]}' did not end within {timeout_s:.0f} s") from None
    except OSError as error:
        raise EngineError(f"'{program}' cannot be started: {error.strerror}") from error
    return Completed(
        status=done.returncode,
        stdout=done.stdout.decode(errors="replace"),
        stderr=done.stderr.decode(errors="replace"),
    )


def start_process(
    argv: Sequence[str], *, cwd: Path, stdout: int | IO[bytes], stderr: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a long-running program.

    It gets a session of its own, so that Ctrl-C in the terminal reaches tkperf alone, and the
    kernel kills it when tkperf dies, however that happens (setpriv --pdeathsig).

    Raises:
        EngineError: it is missing or cannot be started.
    """
    program = require_program(argv[0])
    try:
        return subprocess.Popen(
            [require_program("setpriv"), "--pdeathsig", "KILL", "--", program, *argv[1:]],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except OSError as error:
        raise EngineError(f"'{program}' cannot be started: {error.strerror}") from error


def stop_process(process: subprocess.Popen[bytes], *, grace_s: float) -> None:
    """End a process started here, and all its children: politely, then for certain."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=grace_s)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue
