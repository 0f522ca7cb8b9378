"""One run from the command line: prepare, show the plan, ask, execute, show the results."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tkperf.analysis.results import analyse
from tkperf.cli.awake import kept_awake
from tkperf.cli.consent import show_plan
from tkperf.cli.console import open_console, tell
from tkperf.cli.equipment import Equipment, open_equipment
from tkperf.cli.notify import notify
from tkperf.cli.options import RunOptions
from tkperf.cli.output import open_log, plain
from tkperf.cli.preparation import Preparation, prepare
from tkperf.cli.progress import open_observers
from tkperf.cli.run_info import build_run_info
from tkperf.cli.tables import print_results
from tkperf.device.file_target import remove_file_target
from tkperf.device.identity import TargetKind
from tkperf.errors import RunFileError, TkperfError, UsageError
from tkperf.events import Event, Observer
from tkperf.plan import Case, forecast
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter, describe_existing
from tkperf.runner import Run, execute
from tkperf.units import format_capacity, format_duration

DAY_S = 86_400
# Of files that SQLite keeps beside a database.
SQLITE_ENDINGS = ("-journal", "-wal", "-shm")
# One sample a second takes up to 14.2 MB a day (bench/run_file_size.py), and steps of a minute,
# each with its histograms and fio's own report, as much again.
RUN_FILE_BYTES_A_DAY = 30_000_000
LEAST_FREE_BYTES = 4_000_000


def run_session(options: RunOptions) -> None:
    """The whole of ``tkperf ssd`` and ``tkperf hdd``."""
    require_free_name(options)
    preparation = prepare(options)
    try:
        require_space(options, preparation)
        show_plan(options, preparation)
        with open_equipment(options, preparation) as equipment:
            run_and_keep(options, preparation, equipment)
    finally:
        # A scratch file that holds no result is of no use to anybody.
        if preparation.created and not options.run_path.exists():
            remove_file_target(Path(preparation.identity.path), preparation.identity.inode)
    show_results(options)


def require_free_name(options: RunOptions) -> None:
    """Find out before anything else that results could not be kept.

    Raises:
        RunFileError: NAME is taken, or the folder cannot be written to.
    """
    try:
        if os.path.lexists(options.run_path):
            raise RunFileError(describe_existing(options.run_path))
        _refuse_side_files(options)
        options.folder.mkdir(parents=True, exist_ok=True)
        probe = options.folder / f".tkperf-{secrets.token_hex(8)}.probe"
        probe.touch(exist_ok=False)
        probe.unlink()
        # Now, as it would end the run after the purge; what is written to it comes later.
        if os.path.lexists(options.log_path):
            os.close(open_log(options.log_path))
    except OSError as error:
        raise RunFileError(
            f"cannot write to the output folder {options.folder}: {error.strerror}"
        ) from error


def _refuse_side_files(options: RunOptions) -> None:
    """What SQLite would take for its own, or that is the target, is nothing to write to.

    Raises:
        RunFileError: such a file is there, or DEVICE is one of them.
    """
    beside = [Path(f"{options.run_path}{ending}") for ending in SQLITE_ENDINGS]
    for path in beside:
        if os.path.lexists(path):
            raise RunFileError(
                f"{path} is there without its run file: move it away, it may hold the last steps of "
                f"an earlier {options.name}, or choose another NAME"
            )
    target = Path(os.path.realpath(options.device))
    for path in (options.run_path, options.log_path, *beside):
        if Path(os.path.realpath(path)) == target:
            raise RunFileError(
                f"{options.device} is where tkperf would write results of its own: choose another "
                "NAME"
            )


def run_and_keep(options: RunOptions, preparation: Preparation, equipment: Equipment) -> None:
    """Execute the run, everything that happens going to the run file and to the views."""
    require_space(options, preparation)
    views: list[Observer] = []

    def show(event: Event) -> None:
        for view in views:
            view(event)

    writer = RunFileWriter(options.run_path, tell=show)
    try:
        with ExitStack() as stack:
            stack.enter_context(_say_what_is_kept(options, writer))
            stack.enter_context(_stop_signals())
            views += stack.enter_context(open_observers(options, told=writer))
            if preparation.identity.kind is not TargetKind.SIMULATED:
                stack.enter_context(kept_awake(options.name, tell=views[0]))
            execute(
                Run(
                    info=build_run_info(options, preparation, equipment),
                    tests=preparation.tests,
                    profile=preparation.profile,
                    engine=equipment.engine,
                    target=equipment.target,
                    observers=(writer, *views),
                    clock=equipment.clock,
                    warnings=(*preparation.warnings, *equipment.warnings),
                    counters=equipment.counters,
                    fill_counters=equipment.fill_counters,
                )
            )
    finally:
        writer.close()
        notify(options)


def require_space(options: RunOptions, preparation: Preparation) -> None:
    """Refuse to begin where the run file, were the run as long as it may get, would not fit.

    Raises:
        RunFileError: too little room; a file system that does not tell is taken as it is.
    """
    length_bytes = preparation.active_range.length_bytes
    longest_s = sum(
        forecast(
            test.procedure(preparation.profile, length_bytes),
            (),
            Case.WORST,
            active_range_bytes=length_bytes,
        ).duration_s
        for test in preparation.tests
    )
    needed_bytes = LEAST_FREE_BYTES + longest_s / DAY_S * RUN_FILE_BYTES_A_DAY
    try:
        free_bytes = shutil.disk_usage(options.folder).free
    except OSError:
        return
    if free_bytes < needed_bytes:
        raise RunFileError(
            f"{options.folder} has {format_capacity(free_bytes)} free, but the run file may need "
            f"{format_capacity(needed_bytes)}: about {format_capacity(RUN_FILE_BYTES_A_DAY)} a day, "
            f"for up to {format_duration(longest_s)}; make room, or choose another --output folder"
        )


def show_results(options: RunOptions) -> None:
    """The tables on stdout, and how to see them again on stderr."""
    if options.progress == "json":
        return
    run_path = options.run_path
    try:
        print_results(analyse(read_run(run_path)), open_console())
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(
            f"the run has ended, but its results cannot be printed: {error.strerror}; see them "
            f"with tkperf show {run_path}"
        ) from error
    tell(f"\nrun file: {plain(run_path)}\nreport:   tkperf report {plain(run_path)}")


@contextmanager
def _say_what_is_kept(options: RunOptions, writer: RunFileWriter) -> Iterator[None]:
    """An error that ends a run also says what could not be kept, and how to see the rest."""
    try:
        yield
    except TkperfError as error:
        text = str(error)
        if writer.lost is not None and writer.lost not in text:
            text += f"; {writer.lost}"
        raise type(error)(
            f"{text}; see what was measured: tkperf show {options.run_path}"
        ) from error


@contextmanager
def _stop_signals() -> Iterator[None]:
    """End the run in order on Ctrl-C, SIGTERM or a lost terminal; further ones are ignored.

    Under nohup, which is told by SIGHUP being ignored already, a lost terminal ends nothing.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    def stop(*_: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
