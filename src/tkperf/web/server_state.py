"""The state that all pages of the server have in common."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tkperf.model.errors import RunFileError
from tkperf.render.reports import find_report_date
from tkperf.runfile.writers import is_being_written
from tkperf.web.bounds import MOST_FOR_LISTS
from tkperf.web.files import KnownFile, look_again
from tkperf.web.library import Library, ListedBatch, ListedRun, Listing
from tkperf.web.page_cache import PageCache
from tkperf.web.pages import answer_for_good, render_text
from tkperf.web.workers import BusyError, FileError, Workers

# The number of answers that are stored for one listing. A page with 50 runs has about 150 kB, and /api/runs has about 1
# kB for each run.
_MOST_KEPT = 32
_MOST_KEPT_BYTES = 32 << 20


class ListAnswers:
    """Answers to requests for lists. The answers are stored as long as the listing does not change.

    The time for an answer increases with the number of runs, so the event loop must not wait for an answer.
    """

    def __init__(self) -> None:
        self._listing: Listing | None = None
        self._kept: dict[object, bytes] = {}
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def get(self, listing: Listing, key: object, make: Callable[[], bytes]) -> bytes:
        """Return the answer to a request about a listing.

        Raises:
            BusyError: too many other requests wait.
        """
        if (kept := self._find(listing, key)) is not None:
            return kept
        if self._waiting >= MOST_FOR_LISTS:
            raise BusyError(f"{self._waiting} other requests are already waiting for the list of runs. Try again later")
        self._waiting += 1
        try:
            async with self._turn:
                if (kept := self._find(listing, key)) is not None:
                    return kept
                content = await asyncio.to_thread(make)
                self._keep(listing, key, content)
                return content
        finally:
            self._waiting -= 1

    def _find(self, listing: Listing, key: object) -> bytes | None:
        return self._kept.get(key) if listing is self._listing else None

    def _keep(self, listing: Listing, key: object, content: bytes) -> None:
        if listing is not self._listing:
            self._listing, self._kept = listing, {}
        self._kept[key] = content
        while self._kept and (len(self._kept) > _MOST_KEPT or sum(map(len, self._kept.values())) > _MOST_KEPT_BYTES):
            del self._kept[next(iter(self._kept))]


class ChartScript:
    """Vega and the scripts of reports as one script. A worker builds this script once."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._made: asyncio.Task[bytes] | None = None

    def start(self) -> asyncio.Task[bytes]:
        """Begin to build the script, so that the first report does not need to wait for it."""
        self._made = asyncio.create_task(self._workers.run("script"))
        self._made.add_done_callback(self._forget_failure)
        return self._made

    def _forget_failure(self, made: asyncio.Task[bytes]) -> None:
        if made.cancelled() or made.exception() is not None:
            self._made = None  # the next page begins to build the script again

    async def _find(self) -> bytes:
        # If a browser closes its connection, only its own wait is cancelled.
        return await asyncio.shield(self._made or self.start())

    async def find_address(self) -> str:
        return f"/static/{hashlib.sha256(await self._find()).hexdigest()[:16]}/charts.js"

    async def serve(self, _: Request) -> Response:
        return answer_for_good(await self._find(), "text/javascript")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """The state that every page can use. ``ending`` is set when the server ends."""

    library: Library
    workers: Workers
    kept: PageCache
    charts: ChartScript
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    lists: ListAnswers = field(default_factory=ListAnswers)

    async def make(
        self,
        request: Request,
        job: str,
        files: Mapping[str, KnownFile],
        *,
        keep: bool = True,
        alone: bool = False,
        **arguments: object,
    ) -> BinaryIO:
        """Return the result of a job. ``files`` are passed to the job as arguments, with the same names. The result is
        stored unless a run is writing to one of the files.

        Raises:
            JobError: the same errors as in ``Workers.make``.
        """
        try:
            files, written = await asyncio.to_thread(_look_again, files)
        except (RunFileError, OSError) as error:
            raise FileError(str(error)) from error
        key = (job, sorted(files.items()), find_report_date(), sorted(arguments.items()))

        async def make(result: BinaryIO) -> None:
            await self.workers.make(result, job, alone=alone, **files, **arguments)

        return await self.kept.get(request, key, make, keep=keep and not written)

    async def is_written(self, known: KnownFile) -> bool:
        """Return whether a run, or the process of a batch, is currently writing to a file.

        Raises:
            FileError: the file was removed, or a link or another file has replaced it.
        """
        try:
            _, written = await asyncio.to_thread(_look_again, {"": known})
        except (RunFileError, OSError) as error:
            raise FileError(str(error)) from error
        return written

    async def find_frame(self, above: str) -> dict[str, str]:
        """Return the parts that the server adds to a page with charts. ``above`` is the bar at the top of the page."""
        return {
            "script_address": await self.charts.find_address(),
            "head": render_text("run_head.html.j2"),
            "above": above,
        }


def _look_again(files: Mapping[str, KnownFile]) -> tuple[dict[str, KnownFile], bool]:
    """Return files with the stamps of their current states. Also return whether a run is writing to any of the
    files.
    """
    found = {name: look_again(known) for name, known in files.items()}
    return found, any(is_being_written(known.folder / known.place) for known in found.values())


class AmbiguousError(HTTPException):
    """An ID that several different files have. ``more`` is the address of the list of these files."""

    def __init__(self, found: str, shared_id: str, count: int) -> None:
        super().__init__(
            300, f"{count:,} {found} have the id {shared_id} and differ from each other: each has an id of its own"
        )
        self.more = f"/?{urlencode({'q': shared_id})}"


def find_listed_run(state: ServerState, run_id: str) -> ListedRun | None:
    """Return the run with an ID, or None if the library contains no such run.

    Raises:
        AmbiguousError: several different files have this ID.
    """
    listing = state.library.listing
    if (count := listing.ambiguous_runs.get(run_id)) is not None:
        raise AmbiguousError("run files", run_id, count)
    return listing.find_run(run_id)


def find_run(state: ServerState, request: Request) -> ListedRun:
    """Return the run that the address names.

    Raises:
        HTTPException: 404 if the library contains no such run, or 300 if the files of this run differ.
    """
    run = find_listed_run(state, request.path_params["id"])
    if run is None:
        raise HTTPException(404)
    return run


def find_batch(state: ServerState, request: Request) -> tuple[ListedBatch, dict[str, ListedRun]]:
    """Return the batch that the address names. Also return those of its runs that the library contains, with the names
    of their files as the keys.

    Raises:
        HTTPException: 404 if the library contains no such batch, or 300 if the files of this batch differ.
    """
    listing = state.library.listing
    batch_id = request.path_params["id"]
    if (count := listing.ambiguous_batches.get(batch_id)) is not None:
        raise AmbiguousError("batch files", batch_id, count)
    batch = listing.find_batch(batch_id)
    if batch is None:
        raise HTTPException(404)
    return batch, dict(batch.runs)
