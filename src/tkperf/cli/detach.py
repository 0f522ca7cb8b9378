"""Leave the terminal between the question and the first I/O: --detach (docs/adr/0029).

There are two processes from the very beginning. The first one waits. The second one does everything, so that no
other process takes over device, locks, leases, databases or threads. Until the run has begun, both belong to the
terminal.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

import click

from tkperf.cli.output import open_log
from tkperf.cli.run_options import RunOptions
from tkperf.cli.streams import complain
from tkperf.render.terminal.console import plain, tell
from tkperf.system.process import fork_early

# The waiting process passes these signals on, so they also end a run that has not begun.
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BEGUN = b"begun"


class Departure:
    """Departure of a run from its terminal. Without ``--detach`` the run stays there."""

    def leave_terminal(self) -> None:
        """Leave the terminal after the question: its signals no longer reach the run."""

    def tell_begun(self) -> None:
        """Report that the run is in its run file: no process has to wait for it any more."""


class _Leaving(Departure):
    def __init__(self, options: RunOptions, begun: int) -> None:
        self._options = options
        self._begun = begun

    def leave_terminal(self) -> None:
        # A session of its own, without a terminal. As a child, the process was never leader of its group.
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _redirect(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)

    def tell_begun(self) -> None:
        # Errors so far go to the terminal.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        try:
            log = open_log(self._options.log_path)
        except Exception:  # of any kind: the run has begun
            log = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(log, 1)
        _redirect(log, 2)
        with suppress(OSError):  # no process waits any more
            os.write(self._begun, _BEGUN)
        os.close(self._begun)


def depart(options: RunOptions) -> Departure:
    """Start a second process if ``--detach`` is given, and return only there.

    Raises:
        click.exceptions.Exit: in the first process, with 0 when the run has begun, or with the exit code of
            a run that ended before.
    """
    if not options.detach:
        return Departure()
    sys.stdout.flush()
    sys.stderr.flush()
    reader, begun = os.pipe()
    child = fork_early()
    if child == 0:
        os.close(reader)
        return _Leaving(options, begun)
    os.close(begun)
    raise click.exceptions.Exit(_wait(options, child, reader))


def _wait(options: RunOptions, child: int, reader: int) -> int:
    """Wait until the run has begun or ended, and return the exit code."""
    stopped = False

    def pass_on(number: int, _: object) -> None:
        nonlocal stopped
        # SIGHUP of a lost terminal does not stop a confirmed run, which needs no terminal.
        stopped = stopped or number != signal.SIGHUP
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    if os.read(reader, len(_BEGUN)) == _BEGUN and not stopped:
        _tell_where(options, child)
        return 0
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        complain(f"\ntkperf: the run was killed by signal {-code} before it began")
        return 128 - code
    return code


def _tell_where(options: RunOptions, child: int) -> None:
    if options.quiet:
        return
    run_path = plain(options.run_path)
    tell(
        f"\n{plain(options.name)} runs without this terminal now, as process {child}",
        f"run file: {run_path}",
        f"log:      {plain(options.log_path)}",
        f"watch:    tkperf attach {run_path}",
        f"stop:     tkperf stop {run_path}",
    )


def _redirect(descriptor: int, number: int) -> None:
    os.dup2(descriptor, number)
    if descriptor != number:
        os.close(descriptor)
