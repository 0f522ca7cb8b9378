"""One batch from the command line: look at all drives, ask once, show it under way, give the answer."""

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

from tkperf.cli.batch_drive import DriveTask, run_drive_process
from tkperf.cli.batch_options import BatchOptions
from tkperf.cli.batch_view import LOOK_EVERY_S, complain_aside, print_answer, shown_aside
from tkperf.cli.consent import type_answer
from tkperf.cli.session import Departure, depart
from tkperf.cli.streams import ended_by_signals
from tkperf.model.batch import BatchState, DriveShown
from tkperf.model.errors import Interrupted
from tkperf.model.units import format_count, format_duration, format_durations
from tkperf.page.batch_consent import build_consent_table, describe_groups, describe_neighbours, fold_texts
from tkperf.pipeline.batch.book import Book
from tkperf.pipeline.batch.conductor import Conductor
from tkperf.pipeline.batch.consent_file import confirm_by_file
from tkperf.pipeline.batch.crew import Crew, Member
from tkperf.pipeline.batch.lot import Lot, choose_all, choose_rest
from tkperf.pipeline.batch.neighbours import Neighbours, find_neighbours
from tkperf.pipeline.batch.protocol import Channel, Held
from tkperf.pipeline.batch.question import BatchQuestion
from tkperf.pipeline.batch.request import BatchRequest
from tkperf.pipeline.batch.watching import WatchedBatch
from tkperf.pipeline.keeping import require_space
from tkperf.render.terminal.console import open_console, print_facts, print_lines
from tkperf.render.terminal.page import print_table
from tkperf.runfile.writers import SQLITE_ENDINGS


class Desk(Protocol):
    """The place where the user sees a batch and confirms it."""

    def show(self, lot: Lot, neighbours: Neighbours) -> None:
        """Show what the process of each drive found, before the question."""

    def ask(self, crew: Crew) -> None:
        """Ask once for all drives.

        Raises:
            RefusedError: the drives are not confirmed.
        """

    def end(self, state: BatchState) -> int:
        """Show what the batch came to; return its exit code."""


def run_batch(request: BatchRequest, options: BatchOptions, desk: Desk | None = None) -> int:
    """Run ``tkperf batch``: return its exit code.

    Args:
        desk: default: the terminal.

    Raises:
        TkperfError: nothing has begun; the message names every drive with a fault.
    """
    lot = choose_new(request, options)
    return _conduct(lot, options, depart(options), desk or _Terminal(options))


def choose_new(request: BatchRequest, options: BatchOptions) -> Lot:
    """Return the drives of a new batch, whose files have a place.

    Raises:
        RunFileError: a name is taken or the folder cannot be written to; the message has all names.
    """
    return choose_all(request, options.path, options.folder, _find_outputs(options, request))


def _find_outputs(options: BatchOptions, request: BatchRequest) -> Iterator[Path]:
    """Yield the files that a batch and its runs may write."""
    yield from (options.path, options.log_path, options.report_path)
    for _, name in request.run_names:
        run = options.of_run(name)
        yield from (run.run_path, run.log_path, run.report_path)
        yield from (Path(f"{run.run_path}{ending}") for ending in SQLITE_ENDINGS)


def resume_batch(options: BatchOptions, *, without: Sequence[str] = (), desk: Desk | None = None) -> int:
    """Run ``tkperf resume NAME.batch``: begin or go on with every drive that is not done, after consent.

    Raises:
        TkperfError: nothing has begun: the book is no file to go on with, or no drive of it.
    """
    # First of all, as others find the process that has taken the lock.
    departure = depart(options)
    # Held until the end, so that no other process goes on with it, and no other file takes its place.
    book = Book.open(options.path)
    try:
        lot = choose_rest(book, without)
    except BaseException:
        book.close()
        raise
    return _conduct(lot, options, departure, desk or _Terminal(options), book)


def _conduct(lot: Lot, options: BatchOptions, departure: Departure, desk: Desk, book: Book | None = None) -> int:
    """Measure drives after consent. ``book``: that of a batch that goes on; it is closed in the end."""

    def work(number: int, channel: Channel) -> NoReturn:
        if held is not None:
            held.close()
        drive = lot.request.drives[number - 1]
        task = DriveTask(
            number=number,
            drive=drive,
            options=options.of_run(drive.name),
            book=options.path.absolute(),
            resumes=number in lot.resumed,
        )
        run_drive_process(task, channel)

    held = book
    with until_it_begins() as undone:
        if book is not None:
            undone.callback(book.close)
        # The processes of the drives share the memory of all that is loaded by now.
        gc.freeze()
        crew = Crew(lot.numbers, work)
        undone.callback(crew.dismiss)
        _gather(crew, options)
        crew.require_sound(lot.request)
        found = [one.found for one in crew.members]
        runs = 2 if lot.request.alone_again else 1
        require_space(options.folder, [one.longest_s for one in found] * runs)
        neighbours = find_neighbours(lot.request, found)
        desk.show(lot, neighbours)
        desk.ask(crew)
        # A drive may have gone while the question was on the screen.
        crew.require_sound(lot.request)
        if book is None:
            book = Book.create(options.path, lot.request, options.command_line)
            undone.callback(book.close)
        conductor = Conductor(lot, crew, neighbours, book, warn=_warn_aside)
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
            with shown_aside(options, lambda: WatchedBatch(conductor.find_book)):
                while conductor.go_on(LOOK_EVERY_S):
                    pass
                conductor.note_ends()  # before the views look for the last time
    except KeyboardInterrupt:
        crew.stop()
        wait_for_ends(lambda: crew.has_gone, crew.listen, options.path)
    finally:
        conductor.note_ends()
        state = book.read_state()
        book.close()
    return desk.end(state)


@contextmanager
def until_it_begins() -> Iterator[ExitStack]:
    """Undo what the caller gives to the stack, if the batch does not begin.

    Raises:
        Interrupted: by the user.
    """
    with ExitStack() as undone:
        try:
            with ended_by_signals(once=False):
                yield undone
        except KeyboardInterrupt:
            raise Interrupted("stopped by the user before the batch began: nothing was touched") from None
        undone.pop_all()


def leave(departure: Departure) -> None:
    """Tell that the batch has begun; from now on a lost terminal ends nothing that drives measure for a day."""
    departure.leave_terminal()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    departure.report_start()


def _warn_aside(text: str) -> None:
    complain_aside(f"tkperf: warning: {text}")


def _gather(crew: Crew, options: BatchOptions) -> None:
    """Wait until each drive is held or has a fault."""
    began_s = time.monotonic()
    said_s = 0.0

    def say(looking: Sequence[Member]) -> None:
        nonlocal said_s
        passed_s = time.monotonic() - began_s
        if not options.quiet and passed_s > said_s + 10:
            said_s = passed_s
            print_lines(f"still looking at {format_count(len(looking), 'drive')}")

    crew.gather(say)


@dataclass(frozen=True, slots=True)
class _Terminal:
    """The desk of a batch whose user is here."""

    options: BatchOptions

    def show(self, lot: Lot, neighbours: Neighbours) -> None:
        print_held(
            self.options,
            neighbours.held,
            [
                ("time", f"{format_durations(*neighbours.bounds_s)}, {describe_groups(neighbours.groups)}"),
                *(
                    (("again", "a drive that the others slow down is measured once more, alone"),)
                    * lot.request.alone_again
                ),
                *(("at once", text) for text in describe_neighbours(neighbours.groups, neighbours.cpus)),
            ],
        )

    def ask(self, crew: Crew) -> None:
        ask_for(self.options, [one.shown for one in crew.members])

    def end(self, state: BatchState) -> int:
        return print_answer(state, self.options)


def print_held(options: BatchOptions, held: Sequence[Held], facts: Sequence[tuple[str, str]]) -> None:
    """Show on stderr the drives that are held, before the question. Warnings are said once."""
    if options.quiet or options.progress == "json":
        return
    print_table(build_consent_table([one.shown for one in held]), open_console(stderr=True))
    print_facts([*facts, *((each.shown.name, each.resumed) for each in held if each.resumed)])
    warnings = fold_texts(
        [(each.shown.name, [("warning", text) for text in each.warnings]) for each in held], by_words=True
    )
    print_facts(warnings, style="yellow")


def ask_for(options: BatchOptions, drives: Sequence[DriveShown]) -> None:
    """Ask once for all drives.

    Raises:
        RefusedError: no terminal to ask on, or the answer does not confirm.
    """
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
    """Wait for runs that were asked to end; another Ctrl-C ends only the waiting."""
    complain_aside("\ntkperf: the runs are asked to end; Ctrl-C again ends only this waiting")
    try:
        with ended_by_signals(once=False):
            while not is_over():
                listen(LOOK_EVERY_S)
    except KeyboardInterrupt:
        complain_aside(f"tkperf: they end without this terminal: see tkperf status {path}")
