"""One batch from the command line: look at all drives, ask once, let them begin in turn, give the answer."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click
from msgspec.structs import replace

from tkperf.analysis.batch import find_gravity
from tkperf.cli.batch_drive import DriveTask, run_drive_process
from tkperf.cli.batch_options import BatchOptions
from tkperf.cli.batch_view import LOOK_EVERY_S, complain_aside, print_answer, shown_aside
from tkperf.cli.consent import type_answer
from tkperf.cli.session import depart
from tkperf.cli.streams import ended_by_signals
from tkperf.host.paths import read_cores
from tkperf.model.batch import BatchPlace, DriveStage
from tkperf.model.errors import (
    DeviceError,
    EngineError,
    Interrupted,
    RefusedError,
    RunFileError,
    TkperfError,
    UsageError,
)
from tkperf.model.sharing import SharingState
from tkperf.model.units import format_count, format_duration, format_durations
from tkperf.page.batch_consent import (
    build_consent_table,
    describe_groups,
    describe_neighbours,
    fold_texts,
)
from tkperf.pipeline.batch.book import (
    AGAIN,
    Book,
    DriveBegan,
    DriveEnded,
    DrivesConfirmed,
    Line,
    Noted,
    find_start,
    now_utc,
    read_batch,
)
from tkperf.pipeline.batch.consent_file import confirm_by_file
from tkperf.pipeline.batch.crew import Crew, Member
from tkperf.pipeline.batch.draft import find_again
from tkperf.pipeline.batch.neighbours import Neighbours
from tkperf.pipeline.batch.protocol import Channel, Go
from tkperf.pipeline.batch.question import BatchQuestion
from tkperf.pipeline.batch.request import BatchDrive, BatchRequest
from tkperf.pipeline.batch.turns import Turns
from tkperf.pipeline.following import outline_first
from tkperf.pipeline.keeping import Destination
from tkperf.render.terminal.console import open_console, print_facts, print_lines
from tkperf.render.terminal.page import print_table
from tkperf.runfile.writers import SQLITE_ENDINGS, is_being_written

# Effects of neighbours for which --alone-again measures a drive once more.
_DOUBTFUL = (SharingState.SLOWED, SharingState.OVER_BUDGET)
STRANGERS_EVERY_S = 5.0
# Length of each reading of a comparison.
READS_S = 10
_KINDS: Mapping[int, type[TkperfError]] = {
    kind.exit_code: kind
    for kind in (UsageError, RefusedError, DeviceError, EngineError, RunFileError, Interrupted)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """The drives that one call begins: all of a new batch, or the rest of one that goes on.

    Attributes:
        numbers: their places in the request.
        resumed: those whose run file goes on.
        running: drives that another process of the batch still measures.
    """

    request: BatchRequest
    options: BatchOptions
    numbers: tuple[int, ...]
    resumed: frozenset[int] = frozenset()
    running: frozenset[int] = frozenset()

    def task(self, number: int) -> DriveTask:
        drive = self.request.drives[number - 1]
        return DriveTask(
            number=number,
            drive=drive,
            options=self.options.of_run(drive.name),
            book=self.options.path.absolute(),
            resumes=number in self.resumed,
        )


def run_batch(request: BatchRequest, options: BatchOptions) -> int:
    """Run ``tkperf batch``: return its exit code.

    Raises:
        TkperfError: nothing has begun; the message names every drive with a fault.
    """
    numbers = tuple(range(1, len(request.drives) + 1))
    _require_free(request, options)
    lot = Lot(request=request, options=options, numbers=numbers)
    return _conduct(lot, lambda: Book.create(options.path, request, options.command_line))


def resume_batch(options: BatchOptions, *, without: Sequence[str] = ()) -> int:
    """Run ``tkperf resume NAME.batch``: begin or go on with every drive that is not done, after consent.

    Raises:
        RefusedError: another user can have written the book.
        RunFileError: it cannot be read, or its batch is under way.
        DeviceError: a drive that is left to measure is not there.
        UsageError: nothing is left to do.
    """
    # Read by the descriptor that is locked, so that nobody else goes on with it meanwhile.
    book = Book.open(options.path)
    try:
        request = book.read().begun.request
        state = read_batch(options.path)
    finally:
        # The drives' processes must not inherit it.
        book.close()
    names = {drive.name for drive in request.drives}
    if unknown := sorted(set(without) - names):
        raise UsageError(f"--without {unknown[0]}: the batch has no such run")
    rest = [
        drive
        for drive in state.drives
        if drive.stage not in (DriveStage.DONE, DriveStage.RUNNING)
        and drive.shown.name not in without
    ]
    if not rest:
        raise UsageError(
            f"{options.path}: no drive is left to measure; see tkperf show {options.path}"
        )
    lot = Lot(
        request=find_again(request, {drive.shown.name for drive in rest}),
        options=options,
        numbers=tuple(drive.shown.number for drive in rest),
        resumed=frozenset(drive.shown.number for drive in rest if _goes_on(Path(drive.run_file))),
        running=frozenset(
            drive.shown.number for drive in state.drives if drive.stage is DriveStage.RUNNING
        ),
    )
    return _conduct(lot, lambda: Book.open(options.path))


def _goes_on(run_file: Path) -> bool:
    """Return whether a run has a beginning. A file without one, left by a process that was killed, is removed."""
    if not run_file.exists():
        return False
    if run_file.stat().st_size and outline_first(run_file).record.planned:
        return True
    if is_being_written(run_file):  # another process goes on with the batch just now
        return True
    run_file.unlink()
    return False


def _require_free(request: BatchRequest, options: BatchOptions) -> None:
    """Raise RunFileError if a name is taken or the folder cannot be written to: all names at once."""
    faults = []
    if os.path.lexists(options.path):
        faults.append(
            f"{options.path} exists: go on with 'tkperf resume {options.path}', or choose another NAME"
        )
    names = [(drive, drive.name) for drive in request.drives]
    if request.alone_again:
        names += [(drive, f"{drive.name}{AGAIN}") for drive in request.drives]
    written = {os.path.realpath(path) for path in _find_outputs(options, names)}
    for drive, name in names:
        device = drive.request.device
        try:
            if os.path.realpath(device) in written:
                raise RunFileError(
                    f"{device} is a file that the batch would write to: choose another NAME"
                )
            Destination(name=name, folder=options.folder).require_free(device)
        except RunFileError as error:
            faults.append(str(error))
    if faults:
        raise RunFileError("; ".join(faults))


def _find_outputs(options: BatchOptions, names: Sequence[tuple[BatchDrive, str]]) -> Iterator[Path]:
    """Yield the files that a batch and its runs may write."""
    yield from (options.path, options.log_path, options.report_path)
    for _, name in names:
        run = options.of_run(name)
        yield from (run.run_path, run.log_path, run.report_path)
        yield from (Path(f"{run.run_path}{ending}") for ending in SQLITE_ENDINGS)


def _conduct(lot: Lot, open_book: Callable[[], Book]) -> int:
    options = lot.options
    departure = depart(options)
    # The processes of the drives share the memory of all that is loaded by now.
    gc.freeze()

    def work(number: int, channel: Channel) -> NoReturn:
        run_drive_process(lot.task(number), channel)

    crew = Crew(lot.numbers, work)
    book: Book | None = None
    try:
        with ended_by_signals(once=False):
            _gather(crew, options)
            _refuse_faults(crew, lot.request)
            neighbours = _find_neighbours(lot, crew)
            _show(lot, neighbours)
            _ask(lot, crew)
            while crew.listen(0):
                pass
            # A drive may have gone while the question was on the screen.
            _refuse_faults(crew, lot.request)
            # Each answers for itself from here on.
            book = open_book()
            book.write(
                DrivesConfirmed(utc=now_utc(), drives=tuple(one.shown for one in crew.members))
            )
    except BaseException as error:
        crew.dismiss()
        if book is not None:
            book.close()
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(
                "stopped by the user before the batch began: nothing was touched"
            ) from None
        raise
    departure.leave_terminal()
    # A lost terminal ends nothing that 24 drives measure for a day.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    departure.report_start()
    try:
        with ended_by_signals(once=False):
            _measure(lot, crew, neighbours, book)
    except KeyboardInterrupt:
        _stop(crew, lot)
    finally:
        _note_ends(crew, book)
        book.close()
    return print_answer(read_batch(options.path), options)


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


def _refuse_faults(crew: Crew, request: BatchRequest) -> None:
    """Refuse the whole batch if one drive has a fault.

    Raises:
        TkperfError: of the kind of the gravest fault; the message has all of them.
    """
    faults = [(one, one.ended) for one in crew.faults if one.ended is not None]
    if not faults:
        return
    gravest = min((ended for _, ended in faults), key=lambda ended: find_gravity(ended.exit_code))
    texts = []
    for one, ended in faults:
        device = request.drives[one.number - 1].request.device
        texts.append(ended.text if device in ended.text else f"{device}: {ended.text}")
    kind = _KINDS.get(gravest.exit_code, RefusedError)
    count = len(crew.members)
    raise kind(
        f"{len(faults)} of {format_count(count, 'drive')} cannot be measured, so none is: {'; '.join(texts)}. No drive was touched"
    )


def _find_neighbours(lot: Lot, crew: Crew) -> Neighbours:
    neighbours = Neighbours(
        request=lot.request,
        held=[one.held for one in crew.members if one.held is not None],
        allowed=os.sched_getaffinity(0),
        cores=read_cores(),
    )
    neighbours.require_within()
    return neighbours


def _show(lot: Lot, neighbours: Neighbours) -> None:
    """Show on stderr what each drive's process found, before the question. Warnings are said once."""
    held = neighbours.held
    if lot.options.quiet or lot.options.progress == "json":
        return
    table = build_consent_table([one.shown for one in held])
    print_table(table, open_console(stderr=True))
    print_facts(
        [
            (
                "time",
                f"{format_durations(*neighbours.bounds_s)}, {describe_groups(neighbours.groups)}",
            ),
            *((each.shown.name, each.resumed) for each in held if each.resumed),
            *(
                (("again", "a drive that the others slow down is measured once more, alone"),)
                * lot.request.alone_again
            ),
            *(
                ("at once", text)
                for text in describe_neighbours(neighbours.groups, neighbours.cpus)
            ),
        ]
    )
    warnings = fold_texts(
        [(each.shown.name, [("warning", text) for text in each.warnings]) for each in held],
        by_words=True,
    )
    print_facts(warnings, style="yellow")


def _ask(lot: Lot, crew: Crew) -> None:
    """Ask once for all drives.

    Raises:
        RefusedError: no terminal to ask on, or the answer does not confirm.
    """
    shown = [one.shown for one in crew.members if one.shown.confirm_id is not None]
    if not shown:
        return
    if lot.options.yes_destroy_file is not None:
        confirm_by_file(lot.options.yes_destroy_file, shown)
        return
    question = BatchQuestion(name=lot.options.name, count=len(shown))
    if not sys.stdin.isatty():
        raise question.refuse_without_terminal()
    try:
        answer = type_answer(question.text, question.expected, question.is_confirmed_by)
    except click.Abort:
        raise KeyboardInterrupt from None
    if not question.is_confirmed_by(answer):
        raise question.refuse(answer)


def _measure(lot: Lot, crew: Crew, neighbours: Neighbours, book: Book) -> None:
    """Let drives begin in turn until all have ended."""
    if lot.request.compare_reads and not (lot.resumed or lot.running):
        _compare_reads(crew, neighbours, book, lot.options)
    places = neighbours.places()
    turns = Turns(
        groups=neighbours.numbers,
        parts=neighbours.parts,
        stagger_s=lot.request.stagger_s,
        simulated=lot.request.simulated,
    )
    members = {one.number: one for one in crew.members}
    waiting = list(members)
    began_s = look_again_s = time.monotonic()
    strangers = set(lot.running)
    with shown_aside(lot.options):
        while True:
            for gone in [number for number in waiting if members[number].has_gone]:
                waiting.remove(gone)
                _note_end(members[gone], book)
            running = {
                number
                for number, one in members.items()
                if number not in waiting and not one.has_gone and not one.repeats
            }
            if not waiting and not running:
                again = next(
                    (one for one in members.values() if one.repeats and not one.has_gone), None
                )
                if again is None:
                    break
                alone = replace(places[again.number], others=0, sharing=SharingState.ALONE, cpus=())
                if _begin(lot, crew, again, alone, book):
                    continue
            if strangers and time.monotonic() >= look_again_s:
                strangers = _find_strangers(lot)
                look_again_s = time.monotonic() + STRANGERS_EVERY_S
            now_s = time.monotonic() - began_s
            number = turns.choose(waiting, frozenset(running | strangers), now_s)
            if number is not None and _begin(lot, crew, members[number], places[number], book):
                waiting.remove(number)
                turns.begin(number, now_s)
                continue
            crew.listen(LOOK_EVERY_S)


def _find_strangers(lot: Lot) -> set[int]:
    """Return the drives that still run since a former process of the batch gave them the word."""
    return {
        drive.shown.number
        for drive in read_batch(lot.options.path).drives
        if drive.shown.number in lot.running and drive.stage is DriveStage.RUNNING
    }


def _note(book: Book, line: Line) -> bool:
    """Write a line; return whether it is written. A full disk ends no batch: what needs the line waits."""
    did = book.keeps_up
    try:
        book.write(line)
    except RunFileError as error:
        if did:
            complain_aside(f"tkperf: warning: {error}; no drive begins before that is possible")
    return book.keeps_up


def _compare_reads(crew: Crew, neighbours: Neighbours, book: Book, options: BatchOptions) -> None:
    """Have the drives of each group read alone and together, if all of them hold data: empty places are not read."""
    by_name = {one.shown.name: one for one in crew.members if one.waits}
    for group in neighbours.groups:
        members = [by_name[name] for name in group.drives if name in by_name]
        if len(members) < 2:
            continue
        if not all(one.shown.data for one in members):
            continue
        seconds = READS_S * (len(members) + 1)
        if not options.quiet:
            print_lines(
                f"reading {len(members)} drives alone and together for {format_duration(seconds)}"
            )
        alone: dict[str, tuple[float, ...]] = {}
        for member in members:
            crew.read([member], READS_S)
            alone |= _rates([member])
        crew.read(members, READS_S)
        neighbours.add_reads(alone, _rates(members))
    for one in neighbours.slowed:
        _note(
            book,
            Noted(
                text=f"{one.drive} reads {1 - (one.ratio or 0):.0%} slower together with the others than alone"
            ),
        )


def _rates(members: Sequence[Member]) -> dict[str, tuple[float, ...]]:
    """Return the rates of drives that could be read, by their runs' names."""
    return {
        one.shown.name: one.reads.bytes_per_s
        for one in members
        if one.reads is not None and one.reads.bytes_per_s
    }


def _begin(lot: Lot, crew: Crew, member: Member, place: BatchPlace, book: Book) -> bool:
    """Give a drive the word to begin, also once more, alone.

    Return whether the book has it: a drive that it does not have does not begin.
    """
    began = DriveBegan(
        number=member.number,
        utc=now_utc(),
        pid=member.pid,
        pid_started=find_start(member.pid),
        place=place,
        again=member.repeats,
    )
    if not _note(book, began):
        return False
    go = Go(
        digest=member.shown.digest,
        answer=member.shown.confirm_id,
        place=place,
        siblings=(os.getpid(), *(one.pid for one in crew.members if one is not member)),
        repeatable=lot.request.alone_again and place.sharing in _DOUBTFUL and not lot.resumed,
    )
    crew.begin(member, go)
    return True


def _stop(crew: Crew, lot: Lot) -> None:
    """End the runs in order after Ctrl-C; a second one ends only the waiting for them."""
    crew.stop()
    complain_aside("\ntkperf: the runs are asked to end; Ctrl-C again ends only this waiting")
    try:
        with ended_by_signals(once=False):
            while not all(one.has_gone for one in crew.members):
                crew.listen(LOOK_EVERY_S)
    except KeyboardInterrupt:
        complain_aside(
            f"tkperf: they end without this terminal: see tkperf status {lot.options.path}"
        )


def _note_ends(crew: Crew, book: Book) -> None:
    """Note the ends that a killed process could not note itself."""
    log = book.read()
    begun = log.began.keys() - log.ended.keys()
    for member in crew.members:
        if member.has_gone and member.number in begun:
            _note_end(member, book)


def _note_end(member: Member, book: Book) -> None:
    ended = member.ended
    if ended is not None:
        _note(
            book,
            DriveEnded(
                number=member.number,
                utc=now_utc(),
                pid=member.pid,
                exit_code=ended.exit_code,
                text=ended.text,
            ),
        )
