"""Views of a batch under way, and its answer at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from tkperf.cli.batch_options import BatchOptions
from tkperf.cli.streams import ended_by_signals
from tkperf.model.batch import BatchState, DriveStage
from tkperf.model.errors import ExitCode
from tkperf.pipeline.batch.watching import WatchedBatch
from tkperf.render.terminal.console import plain, print_lines

LOOK_EVERY_S = 0.5
ShowBatch = Callable[[WatchedBatch], None]


@contextmanager
def open_batch_view(options: BatchOptions) -> Iterator[ShowBatch]:
    """Open the chosen view; it gets the batch each time that it was looked at."""
    stages: dict[int, DriveStage] = {}

    def show(watched: WatchedBatch) -> None:
        for drive in watched.state.drives:
            number = drive.shown.number
            if stages.get(number) != drive.stage:
                stages[number] = drive.stage
                if not options.quiet:
                    text = f": {drive.text}" if drive.text else ""
                    print_lines(
                        f"{datetime.now().astimezone():%H:%M:%S} {plain(drive.shown.name)} {drive.stage}{plain(text)}"
                    )

    yield show


def print_answer(state: BatchState) -> int:
    """Print what the batch came to; return its exit code."""
    codes = [drive.exit_code for drive in state.drives]
    return max((code for code in codes if code is not None), default=ExitCode.DONE)


def describe_batch_end(state: BatchState) -> Iterator[str]:
    """Yield the lines that say how far a batch has come that is not under way."""
    for drive in state.drives:
        text = f": {drive.text}" if drive.text else ""
        yield f"{plain(drive.shown.name)} {drive.stage}{plain(text)}"


def follow_batch(path: Path, progress: str, *, verbose: bool) -> None:
    """Show a batch until it ends, by its book and run files alone."""
    watched = WatchedBatch(path)
    options = BatchOptions(name=path.stem, folder=path.parent, progress=progress, verbose=verbose)
    try:
        with ended_by_signals(once=False), open_batch_view(options) as show:
            show(watched)
            while watched.state.is_under_way:
                time.sleep(LOOK_EVERY_S)
                watched.look()
                show(watched)
    except KeyboardInterrupt:
        print_lines(
            f"no longer watched: {plain(path.stem)} goes on; 'tkperf stop {plain(path)}' ends it"
        )
