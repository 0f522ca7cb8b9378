"""The library: run files and batches below the served folders, by ids that no path can be made of.

It looks through the folders again and again, and has a worker read each file that is new or has changed, the newest
first. What it knows so far can be shown at any time.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from tkperf.model.choices import BATCH_SUFFIX, RUN_FILE_SUFFIX
from tkperf.model.errors import reason_of
from tkperf.runfile.writers import is_being_written, state_of
from tkperf.web.files import KnownFile
from tkperf.web.index import FileKey, Index, Row, Unreadable, decode_row
from tkperf.web.rows import BatchRow, RunRow
from tkperf.web.workers import BusyError, FileError, JobError, Workers

MOST_FILES = 20_000
MOST_ENTRIES = 500_000
# A look costs a stat of each file. Of a run under way the library shows no more than its state, so its file, which
# changes with each step, is read again once a minute.
LOOK_EVERY_S = 5.0
READ_RUNNING_EVERY_S = 60.0

ReadRow = Callable[[KnownFile], Awaitable[Row]]
"""Makes the row of a file, in a worker."""


def read_rows_with(workers: Workers) -> ReadRow:
    async def read_row(known: KnownFile) -> Row:
        return decode_row(await workers.run("row", file=known))

    return read_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The files of one look.

    Attributes:
        cut_short: there are more than a library lists.
        missing: folders that cannot be looked through, and why.
    """

    files: tuple[KnownFile, ...] = ()
    cut_short: bool = False
    missing: tuple[tuple[Path, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run of the library.

    Attributes:
        run_id: for addresses.
        known: the file that got furthest.
        copies: other files of the same run that got no further.
        differs: another file of this run has another log, and got further.
        batch_id: the batch that it belongs to; empty: none.
        searched: what a search looks through, in small letters.
    """

    run_id: str
    known: KnownFile
    row: RunRow
    copies: tuple[KnownFile, ...] = ()
    differs: bool = False
    batch_id: str = ""
    searched: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBatch:
    """A batch of the library."""

    known: KnownFile
    row: BatchRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All that the library can show.

    Attributes:
        runs, batches: by their ids.
        unreadable: files that cannot be read, and why.
        waiting: how many files are still to be read for the first time.
        cut_short: there are more files than a library lists.
        missing: folders that cannot be looked through, and why.
        is_begun: the folders have been looked through once.
    """

    runs: dict[str, ListedRun] = field(default_factory=dict)
    batches: dict[str, ListedBatch] = field(default_factory=dict)
    unreadable: tuple[tuple[KnownFile, str], ...] = ()
    waiting: int = 0
    cut_short: bool = False
    missing: tuple[tuple[Path, str], ...] = ()
    is_begun: bool = False


class Library:
    """Run files and batches below folders. ``listing`` is what is known so far.

    Args:
        folders: a link among them is followed, but none below them.
    """

    def __init__(self, folders: Sequence[Path], index: Index, read_row: ReadRow) -> None:
        self._folders = tuple(folder.resolve() for folder in folders)
        self._index = index
        self._read_row = read_row
        self._found = Found()
        self._read_s: dict[FileKey, float] = {}
        self._try_again: set[FileKey] = set()
        self._looked = asyncio.Event()
        self._ending = threading.Event()
        self._listing: Listing | None = Listing()

    @property
    def listing(self) -> Listing:
        if self._listing is None:
            self._listing = build_listing(self._found, self._index)
        return self._listing

    async def wait_for_look(self, limit_s: float | None = None) -> None:
        """Wait until the folders have been looked through once, which reads no run file, or until a limit."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._looked.wait(), limit_s)

    async def keep_up(self) -> None:
        """Look through the folders, and have new and changed files read, until cancelled."""
        try:
            while True:
                began_s = time.monotonic()
                await self.look()
                # A folder on a slow file system is not looked through all the time.
                next_s = time.monotonic() + max(LOOK_EVERY_S, 10 * (time.monotonic() - began_s))
                while time.monotonic() < next_s and await self.read_next():
                    pass
                await asyncio.sleep(max(0.0, next_s - time.monotonic()))
        finally:
            self._ending.set()  # the server waits for a look under way

    async def look(self) -> None:
        """Look through the folders once."""
        found = await asyncio.to_thread(find_files, self._folders, self._ending.is_set)
        if not self._looked.is_set() or found != self._found:
            self._found = found
            self._listing = None
        if not found.cut_short and not found.missing:
            self._index.keep_only(known.stamp[:2] for known in found.files)
        self._looked.set()

    async def read_next(self) -> bool:
        """Have the newest file read that is due; return whether there was one."""
        due = [known for known in self._found.files if self._is_due(known)]
        if not due:
            return False
        known = max(due, key=lambda one: one.stamp[3])
        key, kept, try_again = known.stamp[:2], True, False
        self._read_s[key] = time.monotonic()
        try:
            row = await self._read_row(known)
        except (JobError, OSError) as error:
            row = Unreadable(str(error))
            # Too many pages were being made, or the file may be opened to this user, which does not change its state.
            try_again = isinstance(error, BusyError) or not os.access(
                known.folder / known.place, os.R_OK
            )
            kept = isinstance(error, FileError) and not try_again
        except UnicodeEncodeError:
            row = Unreadable("its name, or that of its folder, is not UTF-8: rename it")
        (self._try_again.add if try_again else self._try_again.discard)(key)
        self._index.put(known.stamp, row, kept=kept)
        self._listing = None
        return True

    def _is_due(self, known: KnownFile) -> bool:
        earlier = self._index.find_earlier(known.stamp)
        if earlier is None:
            return True
        running = not isinstance(earlier, Unreadable) and earlier.is_running
        changed = self._index.find(known.stamp) is None
        again = known.stamp[:2] in self._try_again
        if running and not changed:
            # A process that was killed leaves its file as it is.
            with suppress(OSError):
                changed = not is_being_written(known.folder / known.place)
        lately = time.monotonic() - READ_RUNNING_EVERY_S < self._read_s.get(known.stamp[:2], -1e9)
        return (changed or again) and not ((running or again) and lately)


def find_files(folders: Sequence[Path], ending: Callable[[], bool] = lambda: False) -> Found:
    """Return the run files and batches below folders. No link is followed; a file in two of the folders counts once.

    Args:
        ending: nobody waits for the rest any longer.
    """
    files: dict[str, KnownFile] = {}
    missing: list[tuple[Path, str]] = []
    entries = 0
    for folder in folders:
        try:
            os.scandir(folder).close()
        except OSError as error:
            missing.append((folder, reason_of(error)))
        for entry, place in _walk(folder):
            entries += 1
            if entries > MOST_ENTRIES or len(files) >= MOST_FILES or ending():
                return Found(files=tuple(files.values()), cut_short=True)
            if entry.name.endswith((RUN_FILE_SUFFIX, BATCH_SUFFIX)):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if S_ISREG(status.st_mode):
                        known = KnownFile(folder=folder, place=place, stamp=state_of(status))
                        files.setdefault(entry.path, known)
    return Found(files=tuple(files.values()), missing=tuple(missing))


def _walk(folder: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield each entry below a folder with its place; folders that cannot be read have none."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with suppress(OSError), os.scandir(folder / below) as entries:
            for entry in entries:
                place = f"{below}/{entry.name}" if below else entry.name
                yield entry, place
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(place)


def build_listing(found: Found, index: Index) -> Listing:
    """Return what is known of the files by their rows."""
    runs: dict[str, list[tuple[KnownFile, RunRow]]] = {}
    batches: dict[str, ListedBatch] = {}
    unreadable: list[tuple[KnownFile, str]] = []
    waiting = 0
    for known in found.files:
        match index.find_earlier(known.stamp):
            case None:
                waiting += 1
            case RunRow() as row:
                runs.setdefault(row.run_id, []).append((known, row))
            case BatchRow() as row:
                batches.setdefault(row.batch_id, ListedBatch(known=known, row=row))
            case Unreadable(reason=reason):
                unreadable.append((known, reason))
    batch_ids = {
        (batch.known.folder / batch.known.place).with_name(name): batch.row.batch_id
        for batch in batches.values()
        for name in batch.row.runs
    }
    names = {batch_id: batch.row.name for batch_id, batch in batches.items()}
    listed: dict[str, ListedRun] = {}
    for of_run in runs.values():
        for known, row, copies, run_id in _tell_apart(of_run):
            batch_id = batch_ids.get(known.folder / known.place, "")
            words = (
                row.name, row.model, row.serial, row.firmware, row.host, row.profile, *row.tests,
                known.place, names.get(batch_id, ""), *(one.place for one in copies),
            )  # fmt: skip
            listed[run_id] = ListedRun(
                run_id=run_id,
                known=known,
                row=row,
                copies=copies,
                differs=run_id != row.run_id,
                batch_id=batch_id,
                searched="\n".join(words).casefold(),
            )
    return Listing(
        runs=listed,
        batches=batches,
        unreadable=tuple(unreadable),
        waiting=waiting,
        cut_short=found.cut_short,
        missing=found.missing,
        is_begun=True,
    )


def _tell_apart(
    of_run: Sequence[tuple[KnownFile, RunRow]],
) -> Iterator[tuple[KnownFile, RunRow, tuple[KnownFile, ...], str]]:
    """Yield each log that files of one run have, by the file that got furthest: its copies and its id.

    The furthest of all has the run's id, others the id with a digest of where they differ.
    """
    heads: list[tuple[KnownFile, RunRow, list[KnownFile]]] = []
    # Of equal ones that with an end is further, and then the same one each time.
    for known, row in sorted(
        of_run, key=lambda one: (-len(one[1].marks), one[1].is_running, one[0].place)
    ):
        head = next((head for head in heads if head[1].marks.startswith(row.marks)), None)
        if head is None:
            heads.append((known, row, []))
        else:
            head[2].append(known)
    for number, (known, row, copies) in enumerate(heads):
        run_id = row.run_id
        if number:
            pairs = enumerate(zip(row.marks, heads[0][1].marks, strict=False))
            differs_at = next(place for place, (own, other) in pairs if own != other)
            digest = hashlib.sha256(row.marks[: differs_at + 1]).hexdigest()[:8]
            run_id = f"{run_id}-{digest}"
        yield known, row, tuple(copies), run_id
