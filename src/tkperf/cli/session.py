"""One run from the command line: prepare, show the plan, ask, execute, show the results."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tkperf.analysis.results import analyse
from tkperf.cli.consent import show_plan
from tkperf.cli.console import open_console, tell
from tkperf.cli.equipment import Equipment, open_equipment
from tkperf.cli.notify import notify
from tkperf.cli.options import RunOptions
from tkperf.cli.output import plain
from tkperf.cli.preparation import Preparation, prepare
from tkperf.cli.progress import open_observers
from tkperf.cli.run_info import build_run_info
from tkperf.cli.tables import print_results
from tkperf.device.file_target import remove_file_target
from tkperf.errors import RunFileError, TkperfError, UsageError
from tkperf.record import RunWarning
from tkperf.runfile.reader import read_run
from tkperf.runfile.writer import RunFileWriter
from tkperf.runner import Run, execute


def run_session(options: RunOptions) -> None:
    """The whole of ``tkperf ssd`` and ``tkperf hdd``."""
    require_free_name(options)
    preparation = prepare(options)
    try:
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
        if options.run_path.exists():
            raise RunFileError(
                f"{options.run_path} exists already and is not overwritten: choose another NAME "
                "or another --output folder"
            )
        options.folder.mkdir(parents=True, exist_ok=True)
        probe = options.folder / f".{options.name}.{os.getpid()}.probe"
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise RunFileError(
            f"cannot write to the output folder {options.folder}: {error.strerror}"
        ) from error


def run_and_keep(options: RunOptions, preparation: Preparation, equipment: Equipment) -> None:
    """Execute the run, everything that happens going to the run file and to the views."""
    writer = RunFileWriter(options.run_path)
    try:
        with (
            _say_what_is_kept(options),
            _stop_signals(),
            open_observers(options, told=writer) as observers,
        ):
            execute(
                Run(
                    info=build_run_info(options, preparation, equipment),
                    tests=preparation.tests,
                    profile=preparation.profile,
                    engine=equipment.engine,
                    target=equipment.target,
                    observers=(writer, *observers),
                    clock=equipment.clock,
                    warnings=tuple(
                        RunWarning(code="preparation", text=text) for text in preparation.warnings
                    ),
                )
            )
    finally:
        writer.close()
        notify(options)


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
def _say_what_is_kept(options: RunOptions) -> Iterator[None]:
    """An error that ends a run also says how to see what was measured before."""
    try:
        yield
    except TkperfError as error:
        raise type(error)(
            f"{error}; see what was measured: tkperf show {options.run_path}"
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
