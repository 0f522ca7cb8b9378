"""The library: run files and batches below the served folders. The path of a file cannot be computed from the ID of a
run or batch.

The library searches the folders repeatedly. A worker reads each new or changed file, and the newest file is read first.
The content that is known so far can be shown at any time.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG

import msgspec

from tkperf.model.choices import BATCH_SUFFIX, RUN_FILE_SUFFIX
from tkperf.model.errors import reason_of
from tkperf.model.units import on_one_line
from tkperf.page.facts import shorten
from tkperf.pipeline.run_folders import walk_folder
from tkperf.runfile.writers import is_being_written, state_of
from tkperf.web.bounds import AGAIN_AFTER_LATE_S, AGAIN_AFTER_S, MOST_ENTRIES, MOST_FILES
from tkperf.web.files import KnownFile
from tkperf.web.index import BatchRow, FileKey, Index, Row, RunRow, decode_row
from tkperf.web.workers import BusyError, FileError, JobError, LateError, LockedError, Workers

# The shortest interval, in s, between two searches of the folders. Each search makes a stat call for each file.
LOOK_EVERY_S = 5.0
_MOST_REASON_CHARACTERS = 500

ReadRow = Callable[[KnownFile], Awaitable[Row]]
"""A function that builds the row of a file in a worker."""


def read_rows_with(workers: Workers) -> ReadRow:
    async def read_row(known: KnownFile) -> Row:
        return decode_row(await workers.run("row", file=known))

    return read_row


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """The files that one search of the folders found.

    Attributes:
        cut_short: whether the folders contain more files than a library lists.
        missing: folders that cannot be searched, with the reasons.
    """

    files: tuple[KnownFile, ...] = ()
    cut_short: bool = False
    missing: tuple[tuple[Path, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run of the library.

    Attributes:
        run_id: the ID of the run in addresses.
        known: one of the files with this content.
        copies: the other files with this content.
        differs: number of different contents among the other files of the same run.
        batch_ids: the batches to which the run belongs.
        searched: the text, in lower case, in which a search looks for words.
    """

    run_id: str
    known: KnownFile
    row: RunRow
    copies: tuple[KnownFile, ...] = ()
    differs: int = 0
    batch_ids: tuple[str, ...] = ()
    searched: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBatch:
    """A batch of the library.

    Attributes:
        batch_id: the ID of the batch in addresses.
        copies, differs, searched: the same as in ``ListedRun``.
        runs: the runs of the batch that the library contains. The keys are the names of their files in the same folder.
    """

    batch_id: str
    known: KnownFile
    row: BatchRow
    copies: tuple[KnownFile, ...] = ()
    differs: int = 0
    searched: str = ""
    runs: dict[str, ListedRun] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The complete content that the library can show.

    Attributes:
        runs, batches: the runs and batches, with their IDs as the keys.
        run_aliases, batch_aliases: IDs of single files as the keys. The value is the ID of the run or batch to which
            such an ID leads.
        ambiguous_runs, ambiguous_batches: IDs that belong to several different files, with the number of these files.
        unreadable: files that cannot be read, with the reasons.
        waiting: number of files that were not read yet.
        cut_short: whether the folders contain more files than a library lists.
        missing: folders that cannot be searched, with the reasons.
        is_begun: whether the folders were searched at least once.
    """

    runs: dict[str, ListedRun] = field(default_factory=dict)
    batches: dict[str, ListedBatch] = field(default_factory=dict)
    run_aliases: dict[str, str] = field(default_factory=dict)
    batch_aliases: dict[str, str] = field(default_factory=dict)
    ambiguous_runs: dict[str, int] = field(default_factory=dict)
    ambiguous_batches: dict[str, int] = field(default_factory=dict)
    unreadable: tuple[tuple[KnownFile, str], ...] = ()
    waiting: int = 0
    cut_short: bool = False
    missing: tuple[tuple[Path, str], ...] = ()
    is_begun: bool = False

    def find_run(self, run_id: str) -> ListedRun | None:
        """Return the run with an ID. None means that there is no such run, or that several different files have the
        ID.
        """
        return self.runs.get(self.run_aliases.get(run_id, run_id))

    def find_batch(self, batch_id: str) -> ListedBatch | None:
        """Return the batch with an ID. None means that there is no such batch, or that several different files have the
        ID.
        """
        return self.batches.get(self.batch_aliases.get(batch_id, batch_id))


class Library:
    """The run files and batches below several folders. ``listing`` is the content that is known so far.

    Args:
        folders: the served folders. A folder can be a link, but no link below a folder is followed.
    """

    def __init__(self, folders: Sequence[Path], index: Index, read_row: ReadRow) -> None:
        self._folders = tuple(folder.resolve() for folder in folders)
        self._index = index
        self._read_row = read_row
        self._found = FoundFiles()
        self._due: list[KnownFile] = []
        self._read_s: dict[FileKey, float] = {}
        # The pauses before unreadable files are read again. Only files with a temporary reason have a pause.
        self._again_after_s: dict[FileKey, float] = {}
        self._looked = asyncio.Event()
        self._ending = threading.Event()
        self._listing = Listing()
        self._is_old = False
        self._list_again_s = 0.0

    @property
    def listing(self) -> Listing:
        return self._listing

    async def wait_for_look(self, limit_s: float | None = None) -> None:
        """Wait until the first search of the folders has ended, but no longer than a time limit in s. The first search
        reads no run file.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(self._looked.wait(), limit_s)

    async def keep_up(self) -> None:
        """Search the folders repeatedly until the task is cancelled. Workers read new and changed files."""
        try:
            while True:
                began_s = time.monotonic()
                await self.look()
                # If a search takes a long time, for example on a slow file system, the pause after it is ten times as
                # long as the search.
                next_s = time.monotonic() + max(LOOK_EVERY_S, 10 * (time.monotonic() - began_s))
                while time.monotonic() < next_s and await self.read_next():
                    pass
                await asyncio.sleep(max(0.0, next_s - time.monotonic()))
        finally:
            self._ending.set()  # when the server ends, it waits for a search in progress

    async def look(self) -> None:
        """Search the folders once."""
        found, changed, due = await asyncio.to_thread(self._look)
        if changed or not self._looked.is_set():
            self._found = found
            self._is_old = True
        self._due = due
        if not found.cut_short and not found.missing:
            self._index.keep_only(known.stamp[:2] for known in found.files)
        if self._is_old:
            await self._list()
        self._looked.set()

    def _look(self) -> tuple[FoundFiles, bool, list[KnownFile]]:
        """Return all files, whether they have changed since the last search, and the files that must be read. Of the
        files that must be read, the newest file is last.
        """
        found = find_files(self._folders, self._ending.is_set)
        # If several names lead to the same file, the file is read only once.
        due = {known.stamp[:2]: known for known in found.files if self._is_due(known)}
        newest_last = sorted(due.values(), key=lambda one: one.stamp[3])
        return found, found != self._found, newest_last

    async def read_next(self) -> bool:
        """Read, in a worker, the newest of the files that must be read. Return whether there was such a file."""
        if not self._due:
            if self._is_old:
                await self._list()
            return False
        known = self._due.pop()
        key, kept, again_after_s = known.stamp[:2], True, 0.0
        self._read_s[key] = time.monotonic()
        try:
            row = await self._read_row(known)
        except UnicodeEncodeError:
            row = "its name, or that of its folder, is not UTF-8: rename it"
        # A damaged file may crash its worker. Even then, the library must continue to read other files.
        except (JobError, OSError, ValueError, msgspec.MsgspecError) as error:
            row = shorten(on_one_line(str(error)), _MOST_REASON_CHARACTERS)
            # Four temporary causes do not change the state of the file: too many pages were being built, another
            # program had locked the file, this user could not open the file yet, or the host was too busy to read the
            # file in time.
            if isinstance(error, LateError):
                again_after_s = max(AGAIN_AFTER_LATE_S, 2 * self._again_after_s.get(key, 0.0))
            elif isinstance(error, (BusyError, LockedError)) or not os.access(known.folder / known.place, os.R_OK):
                again_after_s = AGAIN_AFTER_S
            kept = isinstance(error, FileError) and not again_after_s
        if again_after_s:
            self._again_after_s[key] = again_after_s
        else:
            self._again_after_s.pop(key, None)
        self._index.put(known.stamp, row, kept=kept)
        self._is_old = True
        # While many files are being read, building the lists takes no more than a twentieth of the time.
        if time.monotonic() >= self._list_again_s:
            await self._list()
        return True

    async def _list(self) -> None:
        """Build the listing again."""
        self._is_old = False
        began_s = time.monotonic()
        self._listing = await asyncio.to_thread(build_listing, self._found, self._index)
        self._list_again_s = time.monotonic() + 20 * (time.monotonic() - began_s)

    def _is_due(self, known: KnownFile) -> bool:
        earlier = self._index.find_earlier(known.stamp)
        if earlier is None:
            return True
        running = not isinstance(earlier, str) and earlier.is_running
        changed = self._index.find(known.stamp) is None
        pause_s = self._again_after_s.get(known.stamp[:2])
        if running and not changed:
            # If the process of a run is killed, the run file does not change. The state of the file's lock is therefore
            # checked as well.
            with suppress(OSError):
                changed = not is_being_written(known.folder / known.place)
        if pause_s is None:
            # The row of a run in progress is built again only after a pause. The file changes with each step, but the
            # library shows only the state of the run.
            pause_s = AGAIN_AFTER_S if running else 0.0
        else:
            changed = True
        read_s = self._read_s.get(known.stamp[:2])
        return changed and (read_s is None or time.monotonic() - read_s >= pause_s)


def find_files(folders: Sequence[Path], ending: Callable[[], bool] = lambda: False) -> FoundFiles:
    """Return the run files and batches below folders. No link is followed. A file that is in two of the folders counts
    once.

    Args:
        ending: a function that returns True when the remaining files are no longer needed.
    """
    files: dict[str, KnownFile] = {}
    missing: list[tuple[Path, str]] = []
    entries = 0
    for folder in folders:
        try:
            os.scandir(folder).close()
        except OSError as error:
            missing.append((folder, reason_of(error)))
        for entry, place in walk_folder(folder):
            entries += 1
            if entries > MOST_ENTRIES or len(files) >= MOST_FILES or ending():
                return FoundFiles(files=tuple(files.values()), cut_short=True)
            if entry.name.endswith((RUN_FILE_SUFFIX, BATCH_SUFFIX)):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if S_ISREG(status.st_mode):
                        known = KnownFile(folder=folder, place=place, stamp=state_of(status))
                        files.setdefault(entry.path, known)
    return FoundFiles(files=tuple(files.values()), missing=tuple(missing))


def build_listing(found: FoundFiles, index: Index) -> Listing:
    """Return the listing of the library, built from the rows of the files."""
    runs: dict[str, dict[bytes, list[tuple[KnownFile, RunRow]]]] = {}
    batches: dict[str, dict[bytes, list[tuple[KnownFile, BatchRow]]]] = {}
    unreadable: list[tuple[KnownFile, str]] = []
    waiting = 0
    for known in found.files:
        match index.find_earlier(known.stamp):
            case None:
                waiting += 1
            case RunRow() as row:
                runs.setdefault(row.run_id, {}).setdefault(row.digest, []).append((known, row))
            case BatchRow() as row:
                # The row of a batch also depends on the run files in its folder.
                content = row.digest + row.text.encode(errors="replace")
                batches.setdefault(row.batch_id, {}).setdefault(content, []).append((known, row))
            case str() as reason:
                unreadable.append((known, reason))
    listed_batches, batch_aliases = _list_batches(batches)
    # The batches to which a run belongs. The path of the run file is the key.
    of_batches: dict[Path, list[ListedBatch]] = {}
    for batch in listed_batches.values():
        for name in dict.fromkeys(batch.row.runs):
            of_batches.setdefault(_path_of(batch.known).parent / name, []).append(batch)
    listed_runs, run_aliases = _list_runs(runs, of_batches)
    return Listing(
        runs=listed_runs,
        batches=listed_batches,
        run_aliases=run_aliases,
        batch_aliases=batch_aliases,
        ambiguous_runs={shared: len(of_id) for shared, of_id in runs.items() if len(of_id) > 1},
        ambiguous_batches={shared: len(of_id) for shared, of_id in batches.items() if len(of_id) > 1},
        unreadable=tuple(unreadable),
        waiting=waiting,
        cut_short=found.cut_short,
        missing=found.missing,
        is_begun=True,
    )


def _list_batches(
    batches: Mapping[str, Mapping[bytes, Sequence[tuple[KnownFile, BatchRow]]]],
) -> tuple[dict[str, ListedBatch], dict[str, str]]:
    """Return the batches with their IDs as the keys. Also return the IDs of copies, with the IDs to which they lead."""
    listed: dict[str, ListedBatch] = {}
    aliases: dict[str, str] = {}
    for shared_id, contents in batches.items():
        for files in contents.values():
            ordered = sorted(files, key=lambda one: (not one[1].is_running, one[0].place))
            (known, row), *copies = ordered
            own_id = shared_id if len(contents) == 1 else _id_of(shared_id, known)
            words = (row.name, shared_id, *(one.place for one, _ in ordered))
            listed[own_id] = ListedBatch(
                batch_id=own_id,
                known=known,
                row=row,
                copies=tuple(one for one, _ in copies),
                differs=len(contents) - 1,
                searched="\n".join(words).casefold(),
            )
            aliases |= {_id_of(shared_id, one): own_id for one, _ in ordered}
    return listed, aliases


def _list_runs(
    runs: Mapping[str, Mapping[bytes, Sequence[tuple[KnownFile, RunRow]]]],
    of_batches: Mapping[Path, Sequence[ListedBatch]],
) -> tuple[dict[str, ListedRun], dict[str, str]]:
    """Return the runs with their IDs as the keys. Also return the IDs of copies, with the IDs to which they lead.

    The function also adds the runs to the batches to which they belong.
    """
    listed: dict[str, ListedRun] = {}
    aliases: dict[str, str] = {}
    for shared_id, contents in runs.items():
        for files in contents.values():
            # If a process is writing to one of the copies, this copy represents all copies. Otherwise, a copy that
            # belongs to a batch represents them.
            ordered = sorted(
                files, key=lambda one: (not one[1].is_running, _path_of(one[0]) not in of_batches, one[0].place)
            )
            (known, row), *copies = ordered
            own_id = shared_id if len(contents) == 1 else _id_of(shared_id, known)
            members = [(one, batch) for one, _ in ordered for batch in of_batches.get(_path_of(one), ())]
            own_batches = {batch.batch_id: batch.row.name for _, batch in members}
            words = (
                row.name,
                row.model,
                row.serial,
                row.firmware,
                row.host,
                row.profile,
                *row.tests,
                shared_id,
                *own_batches,
                *own_batches.values(),
                *(one.place for one, _ in ordered),
            )
            run = listed[own_id] = ListedRun(
                run_id=own_id,
                known=known,
                row=row,
                copies=tuple(one for one, _ in copies),
                differs=len(contents) - 1,
                batch_ids=tuple(own_batches),
                searched="\n".join(words).casefold(),
            )
            for one, batch in members:
                batch.runs[Path(one.place).name] = replace(run, known=one)
            aliases |= {_id_of(shared_id, one): own_id for one, _ in ordered}
    return listed, aliases


def _path_of(known: KnownFile) -> Path:
    return known.folder / known.place


def _id_of(shared_id: str, known: KnownFile) -> str:
    """Return a separate ID for one of several files that have the same ID.

    The separate ID remains the same if the content of a file changes.
    """
    place = f"{known.folder}\0{known.place}".encode(errors="surrogateescape")
    return f"{shared_id}-{hashlib.sha256(place).hexdigest()[:16]}"


def describe_difference(run: ListedRun) -> str:
    """Return a sentence about other files of the same run whose content differs from the content of this file. The
    sentence is empty if there are no such files.
    """
    if not run.differs:
        return ""
    place, entries = on_one_line(run.known.place), run.row.entries
    others = (
        "Another file of this run differs" if run.differs == 1 else f"{run.differs:,} other files of this run differ"
    )
    return (
        f"{others} from this one. This file is {place}, "
        f"and its log has {'1 entry' if entries == 1 else f'{entries:,} entries'}"
    )
