"""tkperf status, attach and stop: show, follow and end runs in progress from any terminal."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE
from tkperf.cli.standard_streams import complain, without_garbage_collection
from tkperf.cli.suite_options import PROGRESS, VERBOSE, json_option
from tkperf.model.choices import BATCH_SUFFIX
from tkperf.model.errors import RunFileError, UsageError, reason_of

if TYPE_CHECKING:
    from tkperf.analysis.run_overview import RunOverview
    from tkperf.model.batch_state import BatchState
    from tkperf.runfile.writers import Writer


@click.command(cls=Command, params=[click.Argument(["run_file"], type=RUN_FILE), PROGRESS, VERBOSE])
def attach(run_file: Path, progress: str, verbose: bool) -> None:
    """Watch the run in RUN_FILE from any terminal until the run ends. The view has no effect on the run, and Ctrl-C
    ends only the view.

    New figures appear at the end of each step, and once a minute during long steps.

    \b
    Examples:
      tkperf attach D3-S4510.tkperf
      ssh testhost tkperf attach D3-S4510.tkperf --progress plain
    """
    from tkperf.cli.ending import describe_ended
    from tkperf.cli.run_views import follow
    from tkperf.cli.standard_streams import ended_by_signals
    from tkperf.pipeline.running_runs import FollowedFile, format_stop_command
    from tkperf.render.terminal.console import plain, print_lines

    if run_file.suffix == BATCH_SUFFIX:
        from tkperf.cli.batch_view import follow_batch

        with _hint_at_sudo("attach", run_file):
            follow_batch(run_file, progress, verbose=verbose)
        return
    with _hint_at_sudo("attach", run_file):
        followed = FollowedFile(run_file)
    if followed.is_running:
        try:
            with ended_by_signals(once=False):
                follow(followed, progress, verbose=verbose)
        except KeyboardInterrupt:
            name, command = plain(run_file.stem), plain(format_stop_command(run_file))
            print_lines(f"no longer watched: {name} continues; '{command}' ends it")
            return
    print_lines(*describe_ended(run_file, followed.record))


# The greatest number of runs that are judged if the user names no run. To judge a run, tkperf must read all its steps,
# so more runs would take too long.
MOST_JUDGED = 24


@click.command(cls=Command)
@click.argument("run_files", nargs=-1, type=RUN_FILE)
@json_option
def status(run_files: tuple[Path, ...], as_json: bool) -> None:
    """Show the progress of runs. By default, the list contains all runs on this machine and all run files in the
    current folder.

    A batch has one row. If you name NAME.batch, each drive has one row, and --json also contains the runs of the
    batch that are in progress. A run counts as running while its process holds the lock on its run file.

    \b
    Examples:
      tkperf status
      tkperf status D3-S4510.tkperf --json | jq '.runs[0].remaining_longest_s'
    """
    from tkperf.batch.ledger import read_batch
    from tkperf.model.batch_state import DriveStage
    from tkperf.page.status import build_status
    from tkperf.pipeline.running_runs import find_run_files, format_stop_command, read_overview
    from tkperf.render.export_json import build_verdict
    from tkperf.render.terminal.console import open_console
    from tkperf.render.terminal.page_text import print_status

    if len(run_files) == 1 and run_files[0].suffix == BATCH_SUFFIX and not as_json:
        with _hint_at_sudo("status", run_files[0]):
            _show_batch(run_files[0])
        return
    states: list[RunOverview] = []
    failed: list[RunFileError] = []
    not_read: list[str] = []
    unseen: list[Writer] = []
    paths = list(run_files)
    if not paths:
        paths, unseen = find_run_files()
        paths += sorted(Path().glob(f"*{BATCH_SUFFIX}"))
    batches = []
    for path in dict.fromkeys(path for path in paths if path.suffix == BATCH_SUFFIX):
        try:
            with _hint_at_sudo("status", path):
                batches.append(read_batch(path))
        except RunFileError as error:
            failed.append(error)
            not_read.append(str(path))
    runs_of_batches = {Path(drive.run_file).resolve() for batch in batches for drive in batch.drives}
    paths = [
        path for path in paths if path.suffix != BATCH_SUFFIX and (run_files or path.resolve() not in runs_of_batches)
    ]
    if run_files and as_json:  # if the user names a batch, also list its runs that are in progress
        under_way = [
            Path(drive.run_file) for batch in batches for drive in batch.drives if drive.stage is DriveStage.RUNNING
        ]
        paths += [path for path in under_way if path not in paths and path.exists()]
    judged = bool(run_files) or len(paths) <= MOST_JUDGED
    for path in paths:
        try:
            with _hint_at_sudo("status", path), without_garbage_collection():
                states.append(read_overview(path, judged=judged))
        except RunFileError as error:
            failed.append(error)
            not_read.append(str(path))
    shown = {run.pid for run in states}
    unseen = [writer for writer in unseen if writer.pid not in shown]
    if as_json:
        page = build_status(states, not_read=not_read, batches=batches)
        verdict = build_verdict(page.verdict)
        click.echo(json.dumps({"verdict": verdict, **_as_json(states, unseen, batches)}, indent=2))
    elif states or batches:
        print_status(build_status(states, not_read=not_read, batches=batches), open_console())
    for run in states:
        command = format_stop_command(Path(run.run_file)) if run.user is not None else ""
        if command.startswith("sudo ") and not as_json:
            complain(f"tkperf: user {run.user} runs {run.run_file}: '{command}' ends it")
    for writer in unseen:
        why = (
            "only that user and root can see which run it is: 'sudo tkperf status'"
            if writer.path is None
            else f"its run file {writer.path} cannot be reached from here"
        )
        complain(f"tkperf: process {writer.pid} of user {writer.user or 'not known'} runs tkperf, too; {why}")
    # Errors about damaged files are printed after the rows, so that a damaged file does not hide the other runs.
    for damage in failed[:-1] if run_files else failed:
        complain(f"tkperf: {damage}")
    if failed and run_files:
        raise failed[-1]
    if not (states or batches or failed or unseen or as_json):
        complain("tkperf: no run is under way, and there is no run file in this folder")


@contextmanager
def _hint_at_sudo(command: str, path: Path) -> Iterator[None]:
    """If the user is not allowed to read the run file, add the command with sudo to the error."""
    try:
        yield
    except RunFileError as error:
        if isinstance(error.__cause__, PermissionError) and os.geteuid() != 0:
            raise RunFileError(f"{error}; try 'sudo tkperf {command} {path}'") from error
        raise


def _show_batch(path: Path) -> None:
    from tkperf.batch.batch_watch import WatchedBatch
    from tkperf.page.batch.batch_progress import build_batch_progress
    from tkperf.render.terminal.console import open_console
    from tkperf.render.terminal.page_text import print_page

    watched = WatchedBatch(path)
    watched.look_at_all()
    print_page(build_batch_progress(watched.state, watched.runs).page, open_console())


def _as_json(
    states: Sequence[RunOverview], unseen: Sequence[Writer], batches: Sequence[BatchState]
) -> dict[str, object]:
    import msgspec

    return {
        "batches": [msgspec.to_builtins(batch) for batch in batches],
        "runs": [asdict(state) for state in states],
        "not_visible": [{"pid": writer.pid, "user": writer.user} for writer in unseen],
    }


_LOOK_EVERY_S = 0.2
# A time in s. If the run has not ended after this time, the command prints the reason. A run usually ends sooner,
# unless a purge must finish first or the disk that stores the run file is full.
_EXPLAIN_AFTER_S = 5.0


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.option("--no-wait", is_flag=True, help="Do not wait until the run has ended.")
def stop(run_file: Path, no_wait: bool) -> None:
    """End the run in RUN_FILE, and wait until the run has ended. The command has the same effect as Ctrl-C in the
    terminal of the run.

    The run file contains all results so far, and 'tkperf resume' continues the run. If the run has already ended, the
    command prints the reason.

    \b
    Examples:
      tkperf stop D3-S4510.tkperf
    """
    from tkperf.cli.ending import describe_ended
    from tkperf.pipeline.running_runs import find_writing, interrupt, look_first
    from tkperf.render.terminal.console import plain, print_lines

    if run_file.suffix == BATCH_SUFFIX:
        with _hint_at_sudo("stop", run_file):
            _stop_batch(run_file, no_wait=no_wait)
        return
    with _hint_at_sudo("stop", run_file):
        record = look_first(run_file).record
        writer = find_writing(run_file)
    if writer is None:
        print_lines(*describe_ended(run_file, record))
        return
    interrupt(run_file, writer)
    if no_wait:
        print_lines(f"{plain(record.info.name)} (process {writer.pid}) was asked to end")
        return
    _wait(run_file, writer)
    print_lines(*describe_ended(run_file, look_first(run_file).record))


def _stop_batch(path: Path, *, no_wait: bool) -> None:
    """Ask the process of the batch to end all its runs. If this process no longer exists, ask each run to end."""
    from tkperf.batch.ledger import ask_batch_to_end, read_batch
    from tkperf.cli.batch_view import describe_batch_end
    from tkperf.model.batch_state import DriveStage
    from tkperf.render.terminal.console import plain, print_lines

    state = read_batch(path)
    if not state.is_under_way:
        print_lines(*describe_batch_end(state))
        if any(drive.stage in (DriveStage.RUNNING, DriveStage.WAITING) for drive in state.drives):
            raise UsageError(
                "runs on other hosts may still continue, but no process on this machine watches them. Start such a "
                f"process with 'tkperf resume {path}', and then stop the batch"
            )
        return
    ask_batch_to_end(path)
    if no_wait:
        print_lines(f"{plain(state.name)} was asked to end")
        return
    try:
        while (state := read_batch(path)).is_under_way:
            time.sleep(1.0)
    except KeyboardInterrupt:
        print_lines(f"{plain(state.name)} was asked to end and has not ended yet: see tkperf status {plain(path)}")
        raise
    print_lines(*describe_batch_end(state))


def _wait(run_file: Path, writer: Writer) -> None:
    from tkperf.pipeline.running_runs import describe_wait, find_writing
    from tkperf.render.terminal.console import print_lines
    from tkperf.runfile.writers import is_being_written

    explain_s: float | None = time.monotonic() + _EXPLAIN_AFTER_S
    try:
        while is_being_written(run_file) and find_writing(run_file) == writer:
            if explain_s is not None and time.monotonic() > explain_s:
                explain_s = None
                print_lines(describe_wait(writer.pid))
            time.sleep(_LOOK_EVERY_S)
    except OSError as error:
        raise RunFileError(f"cannot read {run_file}: {reason_of(error)}") from error
    except KeyboardInterrupt:
        print_lines(f"process {writer.pid} was asked to end and has not ended yet: see tkperf status")
        raise
