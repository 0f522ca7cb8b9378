"""Pages and downloads that workers built. All browsers that request a page at the same time share one page, and the
page is stored in the user's cache.

A key contains all properties on which a page depends, so a stored page is never out of date. The size of the folder for
stored pages is limited.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import disk_usage
from typing import BinaryIO
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

import tkperf
from tkperf.model.version import __version__
from tkperf.web.bounds import MOST_FOR_A_PAGE
from tkperf.web.workers import BusyError

MOST_BYTES = 512 << 20
_PIECE_BYTES = 1 << 18

# The file name extension and the media type for each kind of download.
DOWNLOADS = {
    "html": (".html", "text/html"),
    "pdf": (".pdf", "application/pdf"),
    "csv": ("-csv.zip", "application/zip"),
    "json": (".json", "application/json"),
}

Make = Callable[[BinaryIO], Awaitable[None]]
"""A function that writes a page to an empty file."""


@dataclass(slots=True)
class _Shared:
    """A page that is being built, and the number of requests that wait for it."""

    task: asyncio.Task[BinaryIO]
    waiting: int = 0


class PageCache:
    """A store of pages with their keys.

    Args:
        folder: the folder in the user's cache. Nothing is stored if the folder is None or cannot be written to, or if
            its disk is nearly full.
    """

    def __init__(self, folder: Path | None, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._shared: dict[str, _Shared] = {}

    async def get(self, request: Request, key: tuple[object, ...], make: Make, *, keep: bool = True) -> BinaryIO:
        """Return the open file of a page. If the page does not exist, it is built. The caller must close the file.

        If several browsers request the page while it is being built, the page is built only once for all of them. The
        work ends early if all of these browsers have closed their connections.

        Raises:
            BusyError: too many other requests wait for the page.
        """
        name = hashlib.sha256(repr((_maker(), key)).encode(errors="replace")).hexdigest()
        if keep and (kept := self._open(name)) is not None:
            return kept
        shared = self._shared.get(name)
        if shared is not None and shared.waiting >= MOST_FOR_A_PAGE:
            raise BusyError(
                f"{shared.waiting} other browsers are already waiting for this page. Load the page again later"
            )
        if shared is None or shared.task.done():
            task = asyncio.create_task(self._make(name, make, keep=keep))
            shared = self._shared[name] = _Shared(task)
        shared.waiting += 1
        left = asyncio.create_task(_wait_until_left(request))
        try:
            await asyncio.wait({shared.task, left}, return_when=asyncio.FIRST_COMPLETED)
            if not shared.task.done():
                raise HTTPException(499, "The browser has left")
            file = await shared.task
            return open(os.dup(file.fileno()), "rb")
        finally:
            left.cancel()
            shared.waiting -= 1
            if not shared.waiting:
                task = shared.task
                if not task.cancel() and not task.cancelled() and task.exception() is None:
                    task.result().close()
                # Another attempt may already be building the page, for browsers that sent their request after this
                # attempt had failed.
                if self._shared.get(name) is shared:
                    del self._shared[name]

    async def _make(self, name: str, make: Make, *, keep: bool) -> BinaryIO:
        place, file = self._begin(keep=keep)
        try:
            await make(file)
            if place is not None:
                place.replace(place.with_name(name))
                await asyncio.to_thread(self._trim)
        except BaseException:
            file.close()
            if place is not None:
                place.unlink(missing_ok=True)
            raise
        return file

    def _begin(self, *, keep: bool) -> tuple[Path | None, BinaryIO]:
        if keep and self._folder is not None:
            with suppress(OSError):
                if disk_usage(self._folder).free < self._most_bytes:
                    return None, tempfile.TemporaryFile()
                descriptor, place = tempfile.mkstemp(dir=self._folder, suffix=".part")
                return Path(place), open(descriptor, "w+b")
        return None, tempfile.TemporaryFile()

    def _open(self, name: str) -> BinaryIO | None:
        if self._folder is None:
            return None
        try:
            file = (self._folder / name).open("rb")
        except OSError:
            return None
        with suppress(OSError):
            # the new time marks the page as used, because the least recently used pages are removed first
            os.utime(file.fileno())
        return file

    def _trim(self) -> None:
        """Remove the pages that were used least recently, and the pages of servers that were killed."""
        assert self._folder is not None
        with suppress(OSError):
            found = [(path.stat(), path) for path in self._folder.iterdir()]
            total_bytes = sum(status.st_size for status, _ in found)
            for status, path in sorted(found, key=lambda each: each[0].st_mtime_ns):
                if total_bytes <= self._most_bytes:
                    break
                path.unlink()
                total_bytes -= status.st_size


async def _wait_until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@cache
def _maker() -> str:
    """Return the version of tkperf. If tkperf runs from a checkout, the result also contains the state of the files."""
    folder = Path(tkperf.__file__).parent
    newest_ns = max(path.stat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return f"{__version__} {newest_ns}"


def stream(file: BinaryIO, media_type: str, *, name: str = "") -> Response:
    """Return the content of a file that ``PageCache`` opened.

    Args:
        name: the name of a download. If a name is given, the browser saves the content under this name instead of
            showing the content.
    """
    headers = {"Content-Length": str(os.fstat(file.fileno()).st_size)}
    if name:
        headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, errors='replace')}"
    return StreamingResponse(_pieces(file), media_type=media_type, headers=headers)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file without changing the position of the file descriptor, because other answers use the
    same descriptor.
    """
    with file:
        at = 0
        while piece := os.pread(file.fileno(), _PIECE_BYTES, at):
            yield piece
            at += len(piece)
