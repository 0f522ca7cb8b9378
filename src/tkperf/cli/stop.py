"""tkperf stop: ask a run to end in order, wherever it runs on this machine."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tkperf.cli.following import describe_end, look_first
from tkperf.device.sysfs import text
from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.render.terminal.console import plain, tell
from tkperf.runfile.writers import Writer, find_writer, is_being_written

LOOK_EVERY_S = 0.2
# Longer than a run takes to end, unless a purge has to finish first or its disk is full.
EXPLAIN_AFTER_S = 5.0


def stop(run_file: Path, no_wait: bool) -> None:
    """Ask a run to end, and wait until it has."""
    record = look_first(run_file).record
    writer = _find(run_file)
    if writer is None:
        raise UsageError(
            f"{run_file}: nothing runs there to be stopped: "
            + ("it is an imported result" if record.info.imported else record.status.value)
            + (f", {record.ended_because}" if record.ended_because else "")
        )
    _interrupt(run_file, writer)
    if no_wait:
        tell(f"{plain(record.info.name)} (process {writer.pid}) was asked to end")
        return
    _wait(run_file, writer)
    tell(*describe_end(run_file, look_first(run_file).record))


def _find(run_file: Path) -> Writer | None:
    try:
        return find_writer(run_file)
    except OSError as error:
        raise RunFileError(f"cannot read {run_file}: {reason_of(error)}") from error


def _interrupt(run_file: Path, writer: Writer) -> None:
    """Signal only the process that holds the file's lock, never another one that has its number by then.

    Raises:
        UsageError: the process is not seen from here, is another user's, or is no tkperf.
    """
    pid = writer.pid
    if pid is None:
        raise UsageError(
            f"{run_file} is being written, but not by a process seen from here: stop it in the "
            "container or on the machine where it runs"
        )
    theirs = f"{run_file}: process {pid} of user {writer.user or 'not known'} writes it"
    if writer.is_tkperf is None:
        raise UsageError(f"{theirs}; only that user and root may stop it")
    if not writer.is_tkperf:
        raise UsageError(f"{theirs}; it is {writer.program or 'not known'}, no tkperf")
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return  # it has ended just now
    try:
        # The descriptor holds that very process: while it is alive, no other one gets its number.
        if _find(run_file) == writer:
            signal.pidfd_send_signal(process, signal.SIGINT)
    except ProcessLookupError:
        return
    except PermissionError:
        raise UsageError(f"{theirs}; only that user and root may stop it") from None
    finally:
        os.close(process)


def describe_wait(pid: int | None) -> str:
    """Explain a long wait. A process that a signal stopped (T in proc(5)) ends only when it goes on."""
    state = (text(Path(f"/proc/{pid}/stat")) or "").rpartition(")")[2].split()[:1]
    why = (
        f"it stands still by SIGSTOP or Ctrl-Z, and ends once it goes on: kill -CONT {pid}"
        if state == ["T"]
        else "a purge under way is finished first, and a full disk is waited for"
    )
    return f"waiting for process {pid}: {why}; Ctrl-C ends this waiting alone"


def _wait(run_file: Path, writer: Writer) -> None:
    explain_s: float | None = time.monotonic() + EXPLAIN_AFTER_S
    try:
        while is_being_written(run_file) and _find(run_file) == writer:
            if explain_s is not None and time.monotonic() > explain_s:
                explain_s = None
                tell(describe_wait(writer.pid))
            time.sleep(LOOK_EVERY_S)
    except OSError as error:
        raise RunFileError(f"cannot read {run_file}: {reason_of(error)}") from error
    except KeyboardInterrupt:
        tell(f"process {writer.pid} was asked to end and has not ended yet: tkperf status tells")
        raise
