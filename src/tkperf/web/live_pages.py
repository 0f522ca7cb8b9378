"""Runs and batches in progress, as server-sent events. A run or batch is watched by a single process, regardless of how
many browsers show the run or batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from html import escape

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tkperf.web.bounds import MOST_SENT_BYTES, MOST_STREAMS
from tkperf.web.files import KnownFile
from tkperf.web.pages import render_page
from tkperf.web.server_state import ServerState, find_batch, find_run
from tkperf.web.workers import BusyError, JobError

# The interval, in s, between lines that keep a connection open. If the server cannot send a line, it detects that the
# browser has closed the connection. At the same interval, the code that sends the events checks whether the server is
# ending.
KEEP_ALIVE_S = 1.0
# A comment line for the event stream. Browsers ignore comments.
_NOTHING = b":\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(slots=True)
class _Watched:
    """A file that is being watched.

    ``event`` contains the newest state of the file for all browsers. ``number`` is the number of states so far.
    """

    event: bytes = b""
    number: int = 0
    ended: bool = False
    failed: bool = False
    browsers: int = 0
    task: asyncio.Task[None] | None = None
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def show(self, content: bytes) -> None:
        """Store a new state, and wake the tasks that send events to the browsers."""
        async with self.news:
            self.event = _event(content)
            self.number += 1
            self.news.notify_all()

    async def wait_for_news(self, seen: int) -> None:
        """Wait until there are more than ``seen`` states, or until the file is no longer watched. The wait never
        exceeds ``KEEP_ALIVE_S``.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(KEEP_ALIVE_S), self.news:
                await self.news.wait_for(lambda: self.ended or self.number > seen)


class _Stream(StreamingResponse):
    """A response that continues until the run ends.

    ``end`` is called when the response ends, even if the browser closes the connection before the first event.
    """

    def __init__(self, events: AsyncIterator[bytes], end: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=_HEADERS)
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()


class LivePages:
    """The events ``/runs/ID/live`` and ``/batches/ID/live``. If the run or batch is not in progress, the answer is 204.
    A browser does not ask again after this answer.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._watched: dict[str, _Watched] = {}
        self._streams = 0
        self._sent_bytes = 0

    def build_routes(self) -> list[Route]:
        return [Route("/runs/{id}/live", self.watch_run), Route("/batches/{id}/live", self.watch_batch)]

    async def watch_run(self, request: Request) -> Response:
        run = find_run(self._state, request)
        key = f"/runs/{run.run_id}"
        return await self._answer(request, key, run.known, "follow_run", {"file": run.known})

    async def watch_batch(self, request: Request) -> Response:
        batch, runs = find_batch(self._state, request)
        addresses = {run.known.name: f"/runs/{run.run_id}" for run in runs.values()}
        arguments = {"ledger": batch.known, "addresses": addresses}
        key = f"/batches/{batch.batch_id}"
        return await self._answer(request, key, batch.known, "follow_batch", arguments)

    async def _answer(
        self, request: Request, key: str, known: KnownFile, job: str, arguments: Mapping[str, object]
    ) -> Response:
        if not await self._state.is_written(known):
            return Response(status_code=204, headers=_HEADERS)
        if self._streams >= MOST_STREAMS:
            raise BusyError(
                f"{self._streams} other browsers are watching runs, which is the limit. This page tries again later"
            )
        if key not in self._watched:
            self._state.workers.require_follower()
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=_HEADERS)
        self._streams += 1
        return _Stream(self._watch(key, job, arguments), self._end_stream)

    def _end_stream(self) -> None:
        self._streams -= 1

    async def _watch(self, key: str, job: str, arguments: Mapping[str, object]) -> AsyncIterator[bytes]:
        """Yield the events for one browser. The first event is the newest state."""
        watched = self._watched.get(key)
        if watched is None or watched.ended:
            watched = self._watched[key] = _Watched()
            watched.task = asyncio.create_task(self._follow(watched, job, arguments))
        watched.browsers += 1
        seen = 0
        try:
            while True:
                await watched.wait_for_news(seen)
                if watched.number > seen and self._may_send(watched.event):
                    seen, event = watched.number, watched.event
                    self._sent_bytes += len(event)
                    try:
                        yield event
                        # The server accepts the next piece only after it has sent the event to the browser.
                        yield _NOTHING
                    finally:
                        self._sent_bytes -= len(event)
                elif self._state.ending.is_set():
                    return
                elif watched.number > seen:
                    # Other browsers have not received their events yet, so this browser receives only a later state.
                    await asyncio.sleep(KEEP_ALIVE_S)
                    yield _NOTHING
                elif watched.ended:
                    if not watched.failed:
                        yield b"event: ended\ndata:\n\n"
                    return
                else:
                    yield _NOTHING
        finally:
            watched.browsers -= 1
            if not watched.browsers and watched.task is not None:
                watched.task.cancel()
                if self._watched.get(key) is watched:
                    del self._watched[key]

    def _may_send(self, event: bytes) -> bool:
        """Return whether an event fits into the memory for events. This memory also contains the events that browsers
        have not received yet.
        """
        return self._sent_bytes + len(event) <= MOST_SENT_BYTES

    async def _follow(self, watched: _Watched, job: str, arguments: Mapping[str, object]) -> None:
        try:
            async with aclosing(self._state.workers.follow(job, **arguments)) as messages:
                async for content in messages:
                    await watched.show(content)
        except JobError as error:
            # The page remains open in the browsers. The script of the page asks again after a few seconds.
            watched.failed = True
            text = f"<p>This cannot be shown now: {escape(str(error))}.</p>"
            await watched.show(text.encode(errors="replace"))
        finally:
            watched.ended = True
            async with watched.news:
                watched.news.notify_all()


def _event(content: bytes) -> bytes:
    """Return a text as one event. Each line of the text becomes a field."""
    return b"".join(b"data: %s\n" % line for line in content.splitlines()) + b"\n"


def render_live(*, run_id: str, name: str, differs: str) -> Response:
    """Return the page of a run in progress. The page is empty at first. The events of the run fill the page.

    Args:
        differs: a sentence about other files of this run whose content differs; empty if there are no such files.
    """
    return render_page("live_page.html.j2", address=f"/runs/{run_id}/live", name=name, differs=differs)
