"""Fixtures for programs other than tkperf that use a target: processes that are not children of the test, and loop
devices. When the test ends, the processes are ended and the loop devices are detached.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import attach_loop, why_no_loop_devices

# The process executes PROGRAM with its arguments in ``words``, writes its PID to a file, and then waits.
_STAY = """
import os, sys, time
words = sys.argv[3:]
exec(sys.argv[2])
with open(sys.argv[1] + '.new', 'w') as mark:
    mark.write(str(os.getpid()))
os.rename(sys.argv[1] + '.new', sys.argv[1])
time.sleep(120)
"""

Foreign = Callable[..., int]


def make_whole_view(proc: Path) -> None:
    """Make a /proc that shows the whole machine. This /proc contains a kernel thread and the mounts of process 1."""
    for name in ("self", "1", "2"):
        (proc / name).mkdir(parents=True)
    (proc / "2/stat").write_text("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0\n")
    (proc / "1/mountinfo").write_text("22 1 0:21 / /proc rw - proc proc rw\n")


@contextmanager
def loop_on(backing: Path, *options: str) -> Iterator[Path]:
    """Yield a loop device on an existing file or device, and detach it at the end of the test."""
    if reason := why_no_loop_devices():
        pytest.skip(reason)
    device = attach_loop(*options, backing)
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    """Yield a function that starts a Python program in a process. This process is not a child of the test. The function
    waits until the process has executed the lines of the program.
    """
    started: list[int] = []

    def start(program: str, *words: str | Path) -> int:
        mark = tmp_path / f"foreign{len(started)}"
        argv = ["setsid", "--fork", sys.executable, "-S", "-c", _STAY, mark, program, *words]
        subprocess.run([str(word) for word in argv], check=True, stdin=subprocess.DEVNULL)
        until_s = time.monotonic() + 60
        while not mark.exists():
            assert time.monotonic() < until_s, "the foreign process did not get ready"
            time.sleep(0.02)
        started.append(int(mark.read_text()))
        return started[-1]

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        until_s = time.monotonic() + 60
        while Path(f"/proc/{process}/exe").exists() and time.monotonic() < until_s:
            time.sleep(0.02)
