"""Functions that start, watch and end processes. A linter checks that no other module starts processes."""

from __future__ import annotations

import functools
import json
import locale
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from tkperf.model.errors import EngineError, reason_of

PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
ProcessTimeout = subprocess.TimeoutExpired
Process = subprocess.Popen[bytes]

# The Debian package of each program that tkperf calls, for error messages.
PACKAGES = {
    "fio": "fio",
    "setpriv": "util-linux",
    "flock": "util-linux",
    "ssh": "openssh-client",
    "wipefs": "util-linux",
    "nvme": "nvme-cli",
    "hdparm": "hdparm",
    "smartctl": "smartmontools",
    "sg_format": "sg3-utils",
    "sg_sanitize": "sg3-utils",
    "sg_requests": "sg3-utils",
    "sg_opcodes": "sg3-utils",
    "mdadm": "mdadm",
    "file": "file",
}
# The folders of programs for system administration. Not every user has these folders on the PATH.
SYSTEM_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")
# The environment variable with which the user chooses a fio instead of the fio on the PATH.
FIO_VARIABLE = "TKPERF_FIO"
# The prefix of the environment variables that no other program may receive.
SECRETS = "TKPERF_SMTP_"
# This limit is many times the output of any program that tkperf executes.
KEPT_OUTPUT_BYTES, PIECE_BYTES = 16 << 20, 1 << 16
# The longest wait, in s, until the reader has received the last output of a program that has ended.
LAST_WORDS_S = 1.0
# The longest wait for the end of a killed program.
KILL_GRACE_S = 5.0
# The time limit, in s, for another process of tkperf that returns a report or other bytes. The limit is many times the
# time that such a process needs on a slow machine.
ANSWER_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The exit status and the output of a program that has ended. Bytes that are not text are replaced."""

    exit_status: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        """Return the program's error output on one line. If the error output is empty, return the standard output."""
        return " ".join(self.stderr.split() or self.stdout.split())


RunTool = Callable[..., Completed]
"""The function ``run_command``, or a replacement for tests."""


def _own_environment() -> dict[str, str]:
    """Return tkperf's environment without the variables that contain secrets."""
    return {name: text for name, text in os.environ.items() if not name.startswith(SECRETS)}


def _environment() -> dict[str, str]:
    """Return the environment for a program: tkperf's environment without secret variables, and with a
    fixed locale.

    Programs print numbers, words and errors according to the locale. nvme-cli 2.3 prints 2433328 as
    2.433.328 under de_DE, and loses digits under fr_FR.
    """
    environment = _own_environment()
    # For messages, the C library prefers LANGUAGE to LC_ALL.
    environment.pop("LANGUAGE", None)
    return environment | {"LC_ALL": _fixed_locale()}


@functools.cache
def _fixed_locale() -> str:
    """Return C.UTF-8. On a host without C.UTF-8, return C, because bash and perl would otherwise print warnings on
    stderr.
    """
    # The availability of C.UTF-8 is tested with LC_COLLATE (the order of texts), because no other thread of tkperf uses
    # this category.
    before = locale.setlocale(locale.LC_COLLATE)
    try:
        return locale.setlocale(locale.LC_COLLATE, "C.UTF-8")
    except locale.Error:
        return "C"
    finally:
        locale.setlocale(locale.LC_COLLATE, before)


def find_named_fio() -> str | None:
    """Return the path of fio in the variable TKPERF_FIO. None means that the user did not set the variable."""
    return os.environ.get(FIO_VARIABLE) or None


def find_program(name: str) -> str | None:
    """Return the path of a program, even if it is outside an ordinary user's PATH. None means that the program is not
    installed.

    If the variable TKPERF_FIO is set, this variable determines the path of fio.
    """
    if name == "fio" and (named := find_named_fio()) is not None:
        return named if Path(named).is_absolute() and shutil.which(named) else None
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS))
    return shutil.which(name, path=path)


def require_program(name: str) -> str:
    """Return the path of a program.

    Raises:
        EngineError: the program is not installed. The message names the package.
    """
    path = find_program(name)
    if path is None and name == "fio" and (named := find_named_fio()) is not None:
        raise EngineError(
            f"{FIO_VARIABLE} is '{named[:200]}', which is not a program. Set {FIO_VARIABLE} to the absolute path of "
            "an fio program, or unset it"
        )
    if path is None:
        package = PACKAGES.get(name, name)
        raise EngineError(f"'{name}' is not installed. Install it with: sudo apt-get install {package}")
    return path


def run_command(
    argv: Sequence[str],
    *,
    timeout_s: float,
    on_tick: Callable[[], None] = lambda: None,
    must_finish: bool = False,
    inherit: Sequence[int] = (),
) -> Completed:
    """Run a program to its end. Ctrl-C in the terminal reaches only tkperf, not the program.

    Args:
        on_tick: a function that is called about once a second while the program runs.
        must_finish: whether an interruption by the user takes effect only when the program has ended. Set this argument
            for programs that would leave a drive in a bad state if they ended early, such as the program that executes
            an erase.
        inherit: descriptors that the program inherits, such as the lock on the device to which the program writes.

    Raises:
        EngineError: the program is missing, cannot be started, or does not end in time.
    """
    program = require_program(argv[0])
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            pass_fds=tuple(inherit),
            env=_environment(),
        )
    except OSError as error:
        raise EngineError(f"'{program}' cannot be started: {reason_of(error)}") from error
    output = _Beginning(process.stdout), _Beginning(process.stderr)
    until_s = time.monotonic() + timeout_s
    interrupted = ended = False
    try:
        # In "while not ended", no handler would cover the jump back (Python 3.12 and newer).
        while True:
            if ended:
                break
            try:
                ended = _wait(process, until_s)
                if not ended and time.monotonic() >= until_s:
                    # After an interruption, the children of a shell would continue to query the drive, so they are
                    # ended. An erase, however, must not be interrupted.
                    if not must_finish:
                        _kill_group(process)
                    said = f"'{argv[0]}' did not end within {timeout_s:.0f} s"
                    if not _kill(process):
                        said += " and cannot be stopped: it hangs in the kernel, see the kernel log"
                    raise EngineError(said)
                on_tick()
            except KeyboardInterrupt:
                if not must_finish:
                    raise
                interrupted = True
        texts = output[0].text(), output[1].text()
    finally:
        _kill(process)
    if interrupted:
        raise KeyboardInterrupt
    return Completed(exit_status=process.returncode, stdout=texts[0], stderr=texts[1])


def read_json_object(
    argv: Sequence[str], *, timeout_s: float, run: Callable[..., Completed] = run_command, must_succeed: bool = False
) -> dict[str, object]:
    """Return the JSON object that a program prints.

    Args:
        must_succeed: whether the exit status must be 0. If a command fails, nvme-cli 2.7 and newer print an object that
            contains an error.

    Raises:
        EngineError: the program is missing, does not end, or prints a text that is not a JSON object.
    """
    done = run(argv, timeout_s=timeout_s)
    if must_succeed and done.exit_status != 0:
        # If a command fails, nvme-cli 3.0 prints a warning on stderr and the reason on stdout.
        output = " ".join((done.stdout or done.stderr).split())[:200]
        said = f"'{' '.join(argv)}' ended with status {done.exit_status}"
        raise EngineError(f"{said}: {output}" if output else said)
    try:
        document = json.loads(done.stdout)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        output = done.words[:120]
        said = f"'{' '.join(argv)}' printed no JSON (exit status {done.exit_status})"
        raise EngineError(f"{said}: {output}" if output else said)
    return document


class _Beginning:
    """A reader that reads a pipe to its end but keeps only the beginning, because a program may print without end."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._kept = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):  # the pipe was closed because the program was killed
            while piece := os.read(self._pipe.fileno(), PIECE_BYTES):
                self._kept += piece[: KEPT_OUTPUT_BYTES - len(self._kept)]

    def text(self) -> str:
        """Return the output of a program that has ended. Later output of the program's children is not included."""
        self._reader.join(LAST_WORDS_S)
        return bytes(self._kept).decode(errors="replace")


def _wait(process: subprocess.Popen[bytes], until_s: float) -> bool:
    """Wait for up to about a second. Return whether the program has ended."""
    try:
        process.wait(timeout=max(0.01, min(1.0, until_s - time.monotonic())))
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and all processes in the program's session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill a program. Return False if the program is blocked in the kernel. tkperf does not wait for such a program."""
    if process.poll() is None:
        process.kill()
        try:
            process.wait(timeout=KILL_GRACE_S)
        except subprocess.TimeoutExpired:
            return False
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return True


def start_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    inherit: Sequence[int] = (),
    blocked: Collection[signal.Signals] = (),
) -> subprocess.Popen[bytes]:
    """Start a long-running program.

    The program runs in a separate session, so that Ctrl-C in the terminal reaches only tkperf. If tkperf dies for any
    reason, the kernel kills the program (setpriv --pdeathsig).

    Args:
        inherit: descriptors that the program inherits.
        blocked: signals that must not wake any thread of the program. The program's children inherit this block.

    Raises:
        EngineError: the program is missing or cannot be started.
    """
    program = require_program(argv[0])
    # A program inherits the blocked signals from the thread that starts the program.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        return subprocess.Popen(
            [require_program("setpriv"), "--pdeathsig", "KILL", "--", program, *argv[1:]],
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            pass_fds=tuple(inherit),
            env=_environment(),
        )
    except OSError as error:
        raise EngineError(f"'{program}' cannot be started: {reason_of(error)}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fork_early() -> int:
    """Fork this process. Return 0 in the child, and the process id of the child in the parent.

    Call this function before tkperf opens a file or starts a thread, because threads, leases and database connections
    do not survive a fork.
    """
    assert threading.active_count() == 1, "threads do not survive a fork"
    return os.fork()


def start_module(
    name: str, *, stdin: int = PIPE, stdout: int = PIPE, stderr: int | None = DEVNULL
) -> subprocess.Popen[bytes]:
    """Run a module of tkperf in a separate Python process, which reads stdin and writes stdout.

    Python loads nothing from the current folder (-P), because other users may have put modules there.
    Ctrl-C in the terminal does not reach the process. If setpriv is installed, the kernel kills the
    process when tkperf dies. The process uses the same locale as tkperf, so that both interpret file
    names in the same way.

    Raises:
        OSError: the process cannot be started.
    """
    setpriv = find_program("setpriv")
    dying_with_us = () if setpriv is None else (setpriv, "--pdeathsig", "KILL", "--")
    return subprocess.Popen(
        [*dying_with_us, sys.executable, "-P", "-m", name],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        env=_own_environment(),
    )


def stop_process(process: subprocess.Popen[bytes], *, grace_s: float) -> None:
    """End a process that this module started, and its children. The function sends SIGINT, then SIGTERM, then
    SIGKILL.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=grace_s)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue


class Worker:
    """A worker process that receives bytes and returns bytes. Create the worker early, because the worker prepares
    itself in the background.
    """

    def __init__(self, module: str) -> None:
        self._process: Process | None = None
        self._talk: threading.Thread | None = None
        self._answer: bytes | None = None
        with suppress(OSError):
            self._process = start_module(module)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, asked: bytes) -> None:
        """Send the whole input to the worker, and return immediately. This method may be called only once."""
        if self._process is None:
            return
        talk = threading.Thread(target=self._communicate, args=(self._process, asked), daemon=True)
        with suppress(RuntimeError):  # the limit of threads for this user is reached
            talk.start()
            self._talk = talk

    def receive(self) -> bytes | None:
        """Wait for the worker's answer and return it. None means that the worker failed, or did not answer in time."""
        if self._talk is not None:
            self._talk.join()
        return self._answer

    def close(self) -> None:
        """End the worker, and do not wait for its answer."""
        if self._process is None:
            return
        self._process.kill()
        if self._talk is not None:
            self._talk.join()
        with self._process:
            pass

    def _communicate(self, process: Process, asked: bytes) -> None:
        with process:  # the ``with`` block closes the pipes of the process at its end
            try:
                answer, _ = process.communicate(asked, timeout=ANSWER_LIMIT_S)
            except ProcessTimeout:
                process.kill()
                return
        self._answer = answer if process.returncode == 0 else None
