"""tkperf stop: ask a run to end in order, wherever it runs on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE
from tkperf.model.errors import RunFileError, reason_of

if TYPE_CHECKING:
    from tkperf.runfile.writers import Writer

_LOOK_EVERY_S = 0.2
# Longer than a run takes to end, unless a purge has to finish first or its disk is full.
_EXPLAIN_AFTER_S = 5.0


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option("--no-wait", is_flag=True, help="Ask only; do not wait until it has ended.")
def stop(run_file: Path, no_wait: bool) -> None:
    """Ask the run in RUN_FILE to end in order, as Ctrl-C in its terminal would, and wait until it has.

    What was measured is kept, and 'tkperf resume' goes on with it. Of a run that has ended, it says how.

    \b
    Examples:
      tkperf stop D3-S4510.tkperf
    """
    from tkperf.cli.run_words import describe_ended
    from tkperf.pipeline.following import look_first
    from tkperf.pipeline.stopping import find_writing, interrupt
    from tkperf.render.terminal.console import plain, tell

    record = look_first(run_file).record
    writer = find_writing(run_file)
    if writer is None:
        tell(*describe_ended(run_file, record))
        return
    interrupt(run_file, writer)
    if no_wait:
        tell(f"{plain(record.info.name)} (process {writer.pid}) was asked to end")
        return
    _wait(run_file, writer)
    tell(*describe_ended(run_file, look_first(run_file).record))


def _wait(run_file: Path, writer: Writer) -> None:
    from tkperf.pipeline.stopping import describe_wait, find_writing
    from tkperf.render.terminal.console import tell
    from tkperf.runfile.writers import is_being_written

    explain_s: float | None = time.monotonic() + _EXPLAIN_AFTER_S
    try:
        while is_being_written(run_file) and find_writing(run_file) == writer:
            if explain_s is not None and time.monotonic() > explain_s:
                explain_s = None
                tell(describe_wait(writer.pid))
            time.sleep(_LOOK_EVERY_S)
    except OSError as error:
        raise RunFileError(f"cannot read {run_file}: {reason_of(error)}") from error
    except KeyboardInterrupt:
        tell(f"process {writer.pid} was asked to end and has not ended yet: see tkperf status")
        raise
