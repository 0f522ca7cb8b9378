"""The end of a run that another process measures: asked for in order, as Ctrl-C would."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tkperf.device.sysfs import text
from tkperf.model.errors import RunFileError, UsageError, reason_of
from tkperf.runfile.writers import Writer, find_writer


def find_writing(run_file: Path) -> Writer | None:
    """Return the process that writes a run file, if one does.

    Raises:
        RunFileError: the file cannot be read.
    """
    try:
        return find_writer(run_file)
    except OSError as error:
        raise RunFileError(f"cannot read {run_file}: {reason_of(error)}") from error


def interrupt(run_file: Path, writer: Writer) -> None:
    """Ask a run to end: signal only the process that holds the file's lock, never another one that has its number by then.

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
        if find_writing(run_file) == writer:
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
