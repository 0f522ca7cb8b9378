"""tkperf status, attach and stop: runs under way, from any terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE
from tkperf.cli.options import PROGRESS, VERBOSE, json_option
from tkperf.cli.streams import complain
from tkperf.model.errors import RunFileError, reason_of
from tkperf.model.units import format_duration, format_durations

if TYPE_CHECKING:
    from rich.table import Table

    from tkperf.pipeline.following import RunOverview
    from tkperf.runfile.writers import Writer


@click.command(cls=Command, params=[click.Argument(["run_file"], type=RUN_FILE), PROGRESS, VERBOSE])
def attach(run_file: Path, progress: str, verbose: bool) -> None:
    """Watch the run in RUN_FILE from any terminal, read-only, until it ends. Ctrl-C ends the watching alone.

    Figures come as the run file gets them: with each step, of a long one once a minute.

    \b
    Examples:
      tkperf attach D3-S4510.tkperf
      ssh testhost tkperf attach D3-S4510.tkperf --progress plain
    """
    from tkperf.cli.progress import follow
    from tkperf.cli.results import describe_ended
    from tkperf.cli.streams import ended_by_signals
    from tkperf.pipeline.following import FollowedFile
    from tkperf.render.terminal.console import plain, tell

    followed = FollowedFile(run_file)
    if followed.goes_on:
        try:
            with ended_by_signals(once=False):
                follow(followed, progress, verbose=verbose)
        except KeyboardInterrupt:
            name, file = plain(run_file.stem), plain(run_file)
            tell(f"no longer watched: {name} goes on; 'tkperf stop {file}' ends it")
            return
    tell(*describe_ended(run_file, followed.record))


@click.command(cls=Command)
@click.argument("run_files", nargs=-1, type=RUN_FILE)
@json_option
def status(run_files: tuple[Path, ...], as_json: bool) -> None:
    """Show the progress of runs: of RUN_FILES, or of all that run on this machine and all in this folder.

    A run that is shown as running is running: its process holds its file.

    \b
    Examples:
      tkperf status
      tkperf status D3-S4510.tkperf --json | jq '.runs[0].remaining_longest_s'
    """
    from tkperf.pipeline.following import find_run_files, read_overview
    from tkperf.render.terminal.console import open_console

    states: list[RunOverview] = []
    failed: list[RunFileError] = []
    unseen: list[Writer] = []
    paths = list(run_files)
    if not paths:
        paths, unseen = find_run_files()
    for path in paths:
        try:
            states.append(read_overview(path))
        except RunFileError as error:
            failed.append(error)
    if as_json:
        click.echo(json.dumps(_as_json(states, unseen), indent=2))
    elif states:
        console = open_console()
        console.print(_table(states, console.width))
    for writer in unseen:
        why = (
            "only that user and root see which run that is"
            if writer.path is None
            else f"its run file {writer.path} cannot be reached from here"
        )
        complain(
            f"tkperf: process {writer.pid} of user {writer.user or 'not known'} runs tkperf, too; {why}"
        )
    # Damage to one file does not hide the others.
    for damage in failed[:-1] if run_files else failed:
        complain(f"tkperf: {damage}")
    if failed and run_files:
        raise failed[-1]
    if not (states or failed or unseen or as_json):
        complain("tkperf: no run is under way, and there is no run file in this folder")


def _as_json(states: Sequence[RunOverview], unseen: Sequence[Writer]) -> dict[str, object]:
    return {
        "runs": [asdict(state) for state in states],
        "not_visible": [{"pid": writer.pid, "user": writer.user} for writer in unseen],
    }


_LEAST_CHARACTERS = 20
# Columns that a narrow terminal does without, the first to go first.
_LEFT_OUT = ("disturbed steps", "warnings", "device", "elapsed")


def _table(states: Sequence[RunOverview], width: int) -> Table:
    """Return a line for each run, with as many columns as there is room for."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from tkperf.render.terminal.console import plain

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    rows = [
        {
            "run": plain(_keep_end(state.run_file, max(_LEAST_CHARACTERS, width // 3))),
            "device": plain(state.device or "not known"),
            "state": plain(state.state_in_words),
            "at": plain(state.place_in_words),
            "elapsed": "-" if state.elapsed_s is None else format_duration(state.elapsed_s),
            "remaining": "-" if state.remaining_s is None else format_durations(*state.remaining_s),
            "warnings": str(state.warnings),
            "disturbed steps": "-" if state.disturbed_steps is None else str(state.disturbed_steps),
        }
        for state in states
    ]
    # Reasons of failures and places are sentences; tkperf show and --json have them whole.
    limits = dict.fromkeys(("state", "at"), max(_LEAST_CHARACTERS, width // 4))
    needed = {  # with three characters between columns
        name: min(max(map(len, (name, *(row[name] for row in rows)))), limits.get(name, width)) + 3
        for name in rows[0]
    }
    for name in _LEFT_OUT:
        if sum(needed.values()) - 1 > width:
            del needed[name]
    for name in needed:
        right = name in ("warnings", "disturbed steps")
        table.add_column(
            name,
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=limits.get(name),
        )
    for row in rows:
        table.add_row(*(row[name] for name in needed))
    return table


def _keep_end(path: str, most: int) -> str:
    """Shorten a path at its beginning, as its end tells runs apart."""
    return path if len(path) <= most else f"\N{HORIZONTAL ELLIPSIS}{path[-most + 1 :]}"


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
    from tkperf.cli.results import describe_ended
    from tkperf.pipeline.following import find_writing, interrupt, look_first
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
    from tkperf.pipeline.following import describe_wait, find_writing
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
