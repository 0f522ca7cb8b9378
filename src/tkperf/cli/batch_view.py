"""Views of a batch in progress, and of its results at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tkperf.analysis.batch_verdict import exit_code_of
from tkperf.batch.batch_watch import BatchFollower, WatchedBatch
from tkperf.cli.lines import JsonLines, PlainLines
from tkperf.cli.run_options import BatchOptions
from tkperf.cli.run_views import DRAIN_S, RedrawnLines, direct, time_of
from tkperf.cli.standard_streams import complain, ended_by_signals, warning_of
from tkperf.model.batch_state import BatchState, DriveStage, DriveState
from tkperf.model.errors import RunFileError, TkperfError, reason_of
from tkperf.model.units import drop_controls
from tkperf.page.batch.batch_progress import build_batch_progress
from tkperf.pipeline.running_runs import format_stop_command
from tkperf.render.terminal.console import OutputConsole, choose_progress, plain, print_lines
from tkperf.render.terminal.progress_lines import render_batch_lines

LOOK_EVERY_S = 0.5
DRAW_EVERY_S = 1.0
ShowBatch = Callable[[BatchFollower], None]


class LiveBatch:
    """A view on stderr. The view draws a line for each drive, and changes from page to page automatically."""

    def __init__(self, footer: str = "") -> None:
        self._frame = RedrawnLines(OutputConsole(file=direct(sys.stderr)))
        self._footer = footer
        self._began_s = time.monotonic()
        self._drawn_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A terminal that was lost cannot be cleared, and does not need to be cleared.
        with suppress(OSError):
            self._frame.clear()

    def __call__(self, watched: BatchFollower) -> None:
        console = self._frame.console
        now_s = time.monotonic()
        # A drawing half an interval too early is better than a drawing a whole interval too late.
        if not console.is_terminal or now_s - self._drawn_s < DRAW_EVERY_S - LOOK_EVERY_S / 2:
            return
        self._drawn_s = now_s
        lines = render_batch_lines(
            build_batch_progress(watched.state, watched.runs),
            width=console.width - 1,
            height=console.height - 1,
            now=datetime.now(UTC),
            passed_s=now_s - self._began_s,
            encoding=console.encoding,
            footer=self._footer,
        )
        self._frame.show(lines)


class _NewNotes:
    """A filter for the remarks of a batch, such as a remark about a full disk. The filter returns only remarks that the
    view has not shown before.
    """

    def __init__(self) -> None:
        self._seen: tuple[str, ...] = ()

    def find(self, state: BatchState) -> list[str]:
        new = [note for note in state.notes if note not in self._seen]
        self._seen = state.notes
        return new


class BatchLines:
    """A view that writes a line for each change of a drive's stage. For the run of a drive, it writes the lines of
    ``PlainLines``.
    """

    def __init__(self, *, every_s: float | None, steps: bool) -> None:
        self._stream = direct(sys.stderr)
        self._every_s, self._steps = every_s, steps
        self._stages: dict[int, DriveStage] = {}
        self._views: dict[int, PlainLines] = {}
        self._notes = _NewNotes()

    def __call__(self, watched: BatchFollower) -> None:
        for note in self._notes.find(watched.state):
            self._write(f"{watched.state.name}: {note}")
        drives = {drive.shown.number: drive for drive in watched.state.drives}
        changed = [drive for number, drive in drives.items() if self._stages.get(number) != drive.stage]
        self._write_stages([drive for drive in changed if drive.stage is DriveStage.RUNNING])
        for new in watched.news:
            view = self._views.get(new.number)
            if view is None:
                view = PlainLines(
                    self._stream, every_s=self._every_s, steps=self._steps, name=name_run(drives[new.number])
                )
                self._views[new.number] = view
            view(new.event, time_of(new.event, new.record))
        self._write_stages([drive for drive in changed if drive.stage is not DriveStage.RUNNING])

    def _write_stages(self, drives: list[DriveState]) -> None:
        for drive in drives:
            is_first = drive.shown.number not in self._stages
            self._stages[drive.shown.number] = drive.stage
            if is_first and drive.stage is DriveStage.WAITING:
                continue
            self._write(f"{name_run(drive)}: {drive.outcome}")

    def _write(self, text: str) -> None:
        self._stream.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {drop_controls(text)}\n")
        self._stream.flush()


class BatchJson:
    """A view that writes every event of a run, and each change of a drive's stage, as JSON."""

    def __init__(self) -> None:
        self._stages: dict[int, DriveStage] = {}
        self._views: dict[int, JsonLines] = {}
        self._whole = JsonLines(direct(sys.stdout), dict.fromkeys(("drive", "name", "slot", "host")))
        self._notes = _NewNotes()

    def __call__(self, watched: BatchFollower) -> None:
        for note in self._notes.find(watched.state):
            self._whole.write("BatchNoted", {"text": note})
        drives = {drive.shown.number: drive for drive in watched.state.drives}
        for drive in drives.values():
            if drive.stage is DriveStage.RUNNING:
                self._write_stage(drive)
        # The run of a drive may have begun and ended since the last reading.
        for new in watched.news:
            self._view_of(drives[new.number])(new.event, time_of(new.event, new.record))
        for number, event in watched.passed_on:
            if number in drives:
                self._view_of(drives[number]).write(str(event.pop("event", "")), event)
        for drive in drives.values():
            self._write_stage(drive)

    def _write_stage(self, drive: DriveState) -> None:
        shown = drive.shown
        if self._stages.get(shown.number) is drive.stage:
            return
        self._stages[shown.number] = drive.stage
        fields = {
            "stage": drive.stage,
            "serial": shown.serial,
            "run_file": drive.run_file,
            "exit_code": drive.exit_code,
            "text": drive.text,
        }
        self._view_of(drive).write("DriveStageChanged", fields)

    def _view_of(self, drive: DriveState) -> JsonLines:
        shown = drive.shown
        if shown.number not in self._views:
            about = {"drive": shown.number, "name": shown.name, "slot": shown.slot, "host": shown.host}
            self._views[shown.number] = JsonLines(direct(sys.stdout), about)
        return self._views[shown.number]


def name_run(drive: DriveState) -> str:
    """Return the name of a run with its host and slot: ``rack7-01 (slot 7)``."""
    place = ", ".join(filter(None, (drive.shown.host, drive.shown.slot)))
    return f"{drive.shown.name} ({place})" if place else drive.shown.name


@contextmanager
def open_batch_view(options: BatchOptions, footer: str = "") -> Iterator[ShowBatch]:
    """Open the view that the user chose. Each time tkperf has read the state of the batch, the view receives this
    state. If the view fails because its reader or terminal is lost, the batch continues without the view.
    """
    progress = choose_progress(options.progress)
    view: ShowBatch | None = None
    if progress == "json":
        view = BatchJson()
    elif not (options.quiet or options.detach):
        every_s = 0.0 if options.verbose else None
        lines = BatchLines(every_s=every_s, steps=options.verbose)
        view = LiveBatch(footer) if progress == "live" else lines

    def show(watched: BatchFollower) -> None:
        nonlocal view
        if view is None:
            return
        try:
            view(watched)
        except Exception as error:  # every error is caught, because the measurement of the drives must continue
            view = None
            with suppress(OSError):
                complain(f"tkperf: progress is no longer shown: {reason_of(error)}")

    with view if isinstance(view, LiveBatch) else nullcontext():
        yield show


@contextmanager
def shown_in_thread(options: BatchOptions, watch: Callable[[], BatchFollower]) -> Iterator[None]:
    """Show a batch in progress in a separate thread. If the view blocks, for example on a stopped terminal, the drives
    do not have to wait.

    Args:
        watch: a function that starts to observe the batch.
    """
    if options.progress != "json" and (options.quiet or options.detach):
        yield
        return
    ended = threading.Event()
    # The thread is a daemon thread, because Python can exit without waiting for a daemon thread that is blocked in a
    # write.
    thread = threading.Thread(target=_show_until, args=(ended, options, watch), name="tkperf progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(DRAIN_S)


def _show_until(ended: threading.Event, options: BatchOptions, watch: Callable[[], BatchFollower]) -> None:
    with warning_of("progress is no longer shown"), open_batch_view(options) as show:
        watched = watch()
        is_last = False
        while not is_last:
            is_last = ended.wait(LOOK_EVERY_S)
            with suppress(RunFileError):  # if the ledger was removed, the batch writes a new ledger
                watched.look()
            show(watched)


def complain_in_thread(text: str) -> None:
    """Print a line on stderr. If the terminal accepts no output, do not wait for it."""
    thread = threading.Thread(target=complain, args=(text,), daemon=True)
    thread.start()
    thread.join(0.5)


def describe_batch_end(state: BatchState) -> Iterator[str]:
    """Yield lines with markup that describe the progress of a batch that is not running."""
    for drive in state.drives:
        yield plain(f"{drive.shown.label} {drive.outcome}")
    yield f"results: tkperf show {plain(state.path)}; as a page: tkperf report {plain(state.path)}"
    if any(drive.stage is not DriveStage.DONE for drive in state.drives):
        yield f"resume:  tkperf resume {plain(state.path)}"


def follow_batch(path: Path, progress: str, *, verbose: bool) -> None:
    """Show a batch until it ends. Only its ledger and its run files are read."""
    watched = WatchedBatch(path)
    if not watched.state.is_under_way:
        print_lines(*describe_batch_end(watched.state))
        return
    options = BatchOptions(name=path.stem, folder=path.parent, progress=progress, verbose=verbose)
    footer = "attached, read-only: Ctrl-C ends this view, the batch continues"
    try:
        with ended_by_signals(once=False), open_batch_view(options, footer) as show:
            show(watched)
            while watched.state.is_under_way:
                time.sleep(LOOK_EVERY_S)
                watched.look()
                show(watched)
    except KeyboardInterrupt:
        ends_it = f"'{plain(format_stop_command(path))}' ends it"
        print_lines(f"no longer watched: {plain(path.stem)} continues; {ends_it}")
        return
    print_lines(*describe_batch_end(watched.state))


def print_batch_result(state: BatchState, options: BatchOptions) -> int:
    """Print the outcome of the batch, write its page and the pages of its drives, and return the exit code."""
    from tkperf.cli.batch_output import describe_outcome, end_batch, notify_of_batch  # noqa: PLC0415
    from tkperf.page.batch.batch_verdict_texts import build_batch_mail  # noqa: PLC0415

    try:
        batch_result = end_batch(state, options)
    except (TkperfError, KeyboardInterrupt) as error:  # the run files already contain all results
        reason = f"no results are shown: {error or 'stopped by the user'}"
        complain(f"tkperf: {reason}")
        notify_of_batch(options, state, (f"{state.name}: {describe_outcome(state)}", reason))
        return exit_code_of(state)
    notify_of_batch(options, state, build_batch_mail(batch_result))
    return exit_code_of(state, claims_pass=batch_result.passes)
