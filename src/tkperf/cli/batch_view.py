"""Views of a batch under way, and its answer at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from tkperf.cli.batch_options import BatchOptions
from tkperf.model.batch import BatchState, DriveStage
from tkperf.model.errors import ExitCode
from tkperf.pipeline.batch.watching import WatchedBatch
from tkperf.render.terminal.console import plain, print_lines

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
