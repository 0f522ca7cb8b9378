"""The one module that starts processes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

PIPE = subprocess.PIPE
ProcessTimeout = subprocess.TimeoutExpired


def start_process(
    argv: Sequence[str], *, cwd: Path, stdout: int | IO[bytes], stderr: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a long-running program that dies with tkperf however tkperf dies."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *argv],
        cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
    )


def stop_process(process: subprocess.Popen[bytes], *, grace_s: float) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=grace_s)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue
