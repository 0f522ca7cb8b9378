"""Run a batch from the command line. tkperf either prints only the plan of the batch, or measures. To measure, it
examines all drives, asks the user once, shows the progress, and prints the results.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

import click

from tkperf.analysis.estimates import Rates
from tkperf.batch.batch_estimate import estimate_batch
from tkperf.batch.batch_watch import WatchedBatch
from tkperf.batch.conductor import Conductor
from tkperf.batch.draft import DriveSelection, Settled, choose_all, choose_rest
from tkperf.batch.drive_processes import Channel, DriveProcess, DriveProcesses, Held
from tkperf.batch.ledger import Ledger
from tkperf.batch.neighbours import Neighbours, find_neighbours
from tkperf.batch.question import BatchQuestion, confirm_by_file
from tkperf.batch.request import BatchRequest
from tkperf.cli.batch_drive import DriveTask, run_drive_process
from tkperf.cli.batch_view import LOOK_EVERY_S, complain_in_thread, print_batch_result, shown_in_thread
from tkperf.cli.consent_prompt import type_answer
from tkperf.cli.run_options import BatchOptions, RunOptions, given_rates, rating_of
from tkperf.cli.session import Departure, depart
from tkperf.cli.standard_streams import ended_by_signals
from tkperf.model.batch_state import BatchState, DriveShown
from tkperf.model.errors import Interrupted
from tkperf.model.units import format_count, format_duration, format_durations
from tkperf.page.batch.batch_plan_page import build_consent_table, describe_groups, describe_neighbours, fold_texts
from tkperf.pipeline.estimate_run import ASSUMED, probe_each_model
from tkperf.pipeline.run_plan import RunPlan
from tkperf.pipeline.run_to_file import require_space
from tkperf.render.export_json import render_batch_plan_json
from tkperf.render.terminal.console import open_console, print_facts, print_lines
from tkperf.render.terminal.page_text import print_table
from tkperf.render.terminal.plans_and_profiles import print_batch_plan
from tkperf.runfile.writers import SQLITE_ENDINGS


def print_plan_of_batch(settled: Settled, run_options: RunOptions, *, no_probe: bool, as_json: bool) -> None:
    """Print the plan of a batch on stdout."""

    probe = probe_each_model()

    def find_rates(made: RunPlan) -> Rates:
        return given_rates(run_options, made) or (ASSUMED if no_probe else probe(made.dut))

    estimate = estimate_batch(settled, find_rates, rating_of(run_options))
    if as_json:
        click.echo(render_batch_plan_json(estimate))
    else:
        print_batch_plan(estimate)


class BatchPrompt(Protocol):
    """The interface that shows a batch to the user, asks for confirmation, and shows the outcome."""

    def show(self, selection: DriveSelection, neighbours: Neighbours) -> None:
        """Show the facts that the processes found out about the drives. tkperf asks the question afterwards."""

    def ask(self, processes: DriveProcesses) -> None:
        """Ask the user once for all drives.

        Raises:
            RefusedError: the drives are not confirmed.
        """

    def end(self, state: BatchState) -> int:
        """Show the outcome of the batch, and return the exit code."""


def run_batch(request: BatchRequest, options: BatchOptions, prompt: BatchPrompt | None = None) -> int:
    """Run ``tkperf batch``, and return the exit code.

    Args:
        prompt: the interface that asks the user. The default is the terminal.
    """
    selection = choose_new(request, options)
    return _conduct(selection, options, depart(options), prompt or _Terminal(options))


def choose_new(request: BatchRequest, options: BatchOptions) -> DriveSelection:
    """Return the drives of a new batch, after a check that tkperf can create the files of the batch."""
    return choose_all(request, options.path, options.folder, _find_outputs(options, request))


def _find_outputs(options: BatchOptions, request: BatchRequest) -> Iterator[Path]:
    """Yield the files that a batch and its runs can write."""
    yield from (options.path, options.log_path, options.report_path)
    for _, name in request.run_names:
        run = options.of_run(name)
        yield from (run.run_path, run.log_path, run.report_path)
        yield from (Path(f"{run.run_path}{ending}") for ending in SQLITE_ENDINGS)


def resume_batch(options: BatchOptions, *, without: Sequence[str] = (), prompt: BatchPrompt | None = None) -> int:
    """Run ``tkperf resume NAME.batch``. After the user has consented, begin or continue the run of every drive that is
    not done.
    """
    # The lock is taken first, because other processes find this process by means of the lock.
    departure = depart(options)
    # This process holds the lock until it ends, so that no other process continues the batch or replaces its file.
    ledger = Ledger.open(options.path)
    try:
        selection = choose_rest(ledger, without)
    except BaseException:
        ledger.close()
        raise
    return _conduct(selection, options, departure, prompt or _Terminal(options), ledger)


def _conduct(
    selection: DriveSelection,
    options: BatchOptions,
    departure: Departure,
    prompt: BatchPrompt,
    ledger: Ledger | None = None,
) -> int:
    """Measure drives after the user has consented. ``ledger`` is the ledger of a resumed batch. The function closes
    this ledger before it returns.
    """

    def work(number: int, channel: Channel) -> NoReturn:
        if held is not None:
            held.close()
        drive = selection.request.drives[number - 1]
        task = DriveTask(
            number=number,
            drive=drive,
            options=options.of_run(drive.name),
            ledger=options.path.absolute(),
            resumes=number in selection.resumed,
        )
        run_drive_process(task, channel)

    held = ledger
    with until_it_begins() as undone:
        if ledger is not None:
            undone.callback(ledger.close)
        # Modules that are loaded before the fork are stored in memory only once for all processes of the drives.
        gc.freeze()
        processes = DriveProcesses(selection.numbers, work)
        undone.callback(processes.dismiss)
        _gather(processes, options)
        processes.require_sound(selection.request)
        found = [one.found for one in processes.members]
        runs = 2 if selection.request.alone_again else 1
        require_space(options.folder, [one.file_bytes for one in found] * runs)
        neighbours = find_neighbours(selection.request, found)
        prompt.show(selection, neighbours)
        prompt.ask(processes)
        # A drive may have disappeared while tkperf waited for the answer.
        processes.require_sound(selection.request)
        if ledger is None:
            ledger = Ledger.create(options.path, selection.request, options.command_line)
            undone.callback(ledger.close)
        conductor = Conductor(selection, processes, neighbours, ledger, warn=_warn_aside)
    leave(departure)
    try:
        with ended_by_signals(once=False):
            conductor.read_together(
                lambda count, seconds: (
                    None
                    if options.quiet
                    else print_lines(f"reading {count} drives alone and together for {format_duration(seconds)}")
                )
            )
            with shown_in_thread(options, lambda: WatchedBatch(conductor.find_ledger)):
                while conductor.go_on(LOOK_EVERY_S):
                    pass
                conductor.note_ends()  # before the views look at the batch for the last time
    except KeyboardInterrupt:
        processes.stop()
        wait_for_ends(lambda: processes.has_gone, processes.listen, options.path)
    finally:
        conductor.note_ends()
        state = ledger.read_state()
        ledger.close()
    return prompt.end(state)


@contextmanager
def until_it_begins() -> Iterator[ExitStack]:
    """Yield a stack to which the caller adds callbacks. If the batch does not begin, these callbacks are run."""
    with ExitStack() as undone:
        try:
            with ended_by_signals(once=False):
                yield undone
        except KeyboardInterrupt:
            raise Interrupted("stopped by the user before the batch began: nothing was touched") from None
        undone.pop_all()


def leave(departure: Departure) -> None:
    """Report that the batch has begun. From this time on, the loss of the terminal does not end a measurement."""
    departure.leave_terminal()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    departure.report_start()


def _warn_aside(text: str) -> None:
    complain_in_thread(f"tkperf: warning: {text}")


def _gather(processes: DriveProcesses, options: BatchOptions) -> None:
    """Wait until each drive is either held or has a fault."""
    began_s = time.monotonic()
    said_s = 0.0

    def say(looking: Sequence[DriveProcess]) -> None:
        nonlocal said_s
        passed_s = time.monotonic() - began_s
        if not options.quiet and passed_s > said_s + 10:
            said_s = passed_s
            print_lines(f"still looking at {format_count(len(looking), 'drive')}")

    processes.gather(say)


@dataclass(frozen=True, slots=True)
class _Terminal:
    """A ``BatchPrompt`` that asks the user on a terminal."""

    options: BatchOptions

    def show(self, selection: DriveSelection, neighbours: Neighbours) -> None:
        print_held(
            self.options,
            neighbours.held,
            [
                ("time", f"{format_durations(*neighbours.bounds_s)}, {describe_groups(neighbours.groups)}"),
                *(
                    (("again", "a drive that the others slow down is measured once more, alone"),)
                    * selection.request.alone_again
                ),
                *(("at once", text) for text in describe_neighbours(neighbours.groups, neighbours.cpus)),
            ],
        )

    def ask(self, processes: DriveProcesses) -> None:
        ask_for(self.options, [one.shown for one in processes.members])

    def end(self, state: BatchState) -> int:
        return print_batch_result(state, self.options)


def print_held(options: BatchOptions, held: Sequence[Held], facts: Sequence[tuple[str, str]]) -> None:
    """Show the held drives on stderr before the question. If a warning concerns several drives, it is shown only
    once.
    """
    if options.quiet or options.progress == "json":
        return
    print_table(build_consent_table([one.shown for one in held]), open_console(stderr=True))
    print_facts([*facts, *((each.shown.name, each.resumed) for each in held if each.resumed)])
    warnings = fold_texts(
        [(each.shown.name, [("warning", text) for text in each.warnings]) for each in held], by_words=True
    )
    print_facts(warnings, style="yellow")


def ask_for(options: BatchOptions, drives: Sequence[DriveShown]) -> None:
    """Ask the user once for all drives."""
    question = BatchQuestion(name=options.name, shown=drives)
    if not question.erased:
        return
    if options.yes_destroy_file is not None:
        confirm_by_file(options.yes_destroy_file, question.erased)
        return
    if not sys.stdin.isatty():
        raise question.refuse_without_terminal()
    try:
        answer = type_answer(question.text, question.expected, question.is_confirmed_by)
    except click.Abort:
        raise KeyboardInterrupt from None
    if not question.is_confirmed_by(answer):
        raise question.refuse(answer)


def wait_for_ends(is_over: Callable[[], bool], listen: Callable[[float], object], path: Path) -> None:
    """Wait until the runs that were asked to end have ended. If the user presses Ctrl-C again, only the wait ends."""
    complain_in_thread("\ntkperf: the runs are asked to end; Ctrl-C again ends only this waiting")
    try:
        with ended_by_signals(once=False):
            while not is_over():
                listen(LOOK_EVERY_S)
    except KeyboardInterrupt:
        complain_in_thread(f"tkperf: they end without this terminal: see tkperf status {path}")
