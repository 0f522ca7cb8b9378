"""tkperf attach: watch a run from another terminal, by its run file alone."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE, OneOf
from tkperf.cli.options import VERBOSE

if TYPE_CHECKING:
    from tkperf.pipeline.following import FollowedFile

_LOOK_EVERY_S = 0.5


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option(
    "--progress",
    type=OneOf(["auto", "live", "plain", "json"]),
    default="auto",
    show_default=True,
    help="Live view, plain lines, or one JSON event a line on stdout.",
)
@click.option("-v", "--verbose", is_flag=True, help=VERBOSE)
def attach(run_file: Path, progress: str, verbose: bool) -> None:
    """Watch the run in RUN_FILE from any terminal, read-only, until it ends. Ctrl-C ends the watching alone.

    Figures come as the run file gets them: with each step, of a long one once a minute.

    \b
    Examples:
      tkperf attach D3-S4510.tkperf
      ssh testhost tkperf attach D3-S4510.tkperf --progress plain
    """
    from tkperf.cli.run_words import describe_ended
    from tkperf.cli.signals import ended_by_signals
    from tkperf.pipeline.following import FollowedFile
    from tkperf.render.terminal.console import plain, tell

    followed = FollowedFile(run_file)
    if followed.goes_on:
        try:
            with ended_by_signals(once=False):
                _watch(followed, progress, verbose=verbose)
        except KeyboardInterrupt:
            name, file = plain(run_file.stem), plain(run_file)
            tell(f"no longer watched: {name} goes on; 'tkperf stop {file}' ends it")
            return
    tell(*describe_ended(run_file, followed.record))


def _watch(followed: FollowedFile, progress: str, *, verbose: bool) -> None:
    """Show a run until it ends."""
    from tkperf.cli.attached import open_attached

    with ExitStack() as stack:
        view = open_attached(progress, stack, verbose=verbose)
        view.catch_up(followed.first_events())
        while followed.goes_on:
            time.sleep(_LOOK_EVERY_S)
            for event in followed.new_events():
                view.show(event)
            view.wait(followed.record)
