"""Fixtures for programs other than tkperf that use a target: processes that are not children of the test, and loop
devices. When the test ends, the processes are ended and the loop devices are detached.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import attach_loop, until, why_no_loop_devices

# The process executes PROGRAM with its arguments in ``words``, writes its PID to a file, and then waits.
_STAY = """
import os, sys, time
words = sys.argv[3:]
exec(sys.argv[2])
with open(sys.argv[1] + '.new', 'w') as mark:
    mark.write(str(os.getpid()))
os.rename(sys.argv[1] + '.new', sys.argv[1])
time.sleep(600)
"""

Foreign = Callable[..., int]


def make_whole_view(proc: Path) -> None:
    """Make a /proc that shows the whole machine. This /proc contains a kernel thread and the mounts of process 1."""
    for name in ("self", "1", "2"):
        (proc / name).mkdir(parents=True)
    (proc / "2/stat").write_text("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0\n")
    (proc / "1/mountinfo").write_text("22 1 0:21 / /proc rw - proc proc rw\n")


def name_of(process: int) -> str:
    """Return the name of a process. After exec, this is the name of the new program. An empty name means that the
    process does not exist.
    """
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def has_ended(process: int) -> bool:
    """Return whether the first thread of a process has ended. A process that became a zombie has closed its files,
    unless other threads of the process still run. A missing /proc/PID/exe does not show that the files are closed,
    because the kernel closes the files later.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@contextmanager
def loop_on(backing: Path, *options: str) -> Iterator[Path]:
    """Yield a loop device on an existing file or device, and detach it at the end of the test."""
    if reason := why_no_loop_devices():
        pytest.skip(reason)
    device = attach_loop(*options, backing)
    try:
        yield device
    finally:
        attribute = Path("/sys/block", device.name, "loop/backing_file")
        attached = read_backing(attribute)
        subprocess.run(["losetup", "--detach", device], check=True)
        # If another process, such as a survey in another test, has the device open, the kernel detaches the file only
        # when this process closes the device. If this takes longer, only a test that needs the detached device fails.
        with suppress(AssertionError):
            until(lambda: read_backing(attribute) != attached)


def read_backing(attribute: Path) -> str | None:
    """Return the file behind a loop device, as sysfs shows it. None means that the device is not attached."""
    try:
        return attribute.read_text()
    except OSError:
        return None


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
        until(mark.exists, "the foreign process did not get ready")
        started.append(int(mark.read_text()))
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    until(lambda: all(map(has_ended, started)), "a foreign process did not end")
