"""Pages of batches: their answer, each cell of which leads to the run of its drive, and their state while they are
under way.
"""

from __future__ import annotations

import os
from typing import BinaryIO
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tkperf.web.bounds import MOST_COMPARED
from tkperf.web.library import ListedBatch, ListedRun
from tkperf.web.page_cache import DOWNLOADS, stream
from tkperf.web.pages import render_text
from tkperf.web.shared_parts import SharedParts, find_batch

_MAIL_BYTES = 1 << 16
_DOWNLOADS = DOWNLOADS | {"mail": (".txt", "text/plain")}


class BatchPages:
    """Pages ``/batches/ID``, and files to save at ``/batches/ID/KIND``."""

    def __init__(self, parts: SharedParts) -> None:
        self._site = parts

    def build_routes(self) -> list[Route]:
        return [Route("/batches/{id}", self.show), Route("/batches/{id}/{kind}", self.download)]

    async def show(self, request: Request) -> Response:
        """Answer with the page of the batch."""
        batch, runs = find_batch(self._site, request)
        mail = await self._make(request, batch, runs, kind="mail")
        with mail:
            text = os.pread(mail.fileno(), _MAIL_BYTES, 0).decode(errors="replace")
        running = await self._site.is_written(batch.known)
        run_ids = dict.fromkeys(run.run_id for run in runs.values())
        above = render_text(
            "batch_bar.html.j2",
            batch=batch,
            kinds=_DOWNLOADS,
            mail=text,
            running=running,
            compared=urlencode([("run", run_id) for run_id in run_ids]) if 1 < len(run_ids) <= MOST_COMPARED else "",
        )
        frame = await self._site.find_frame(above)
        if running:
            frame["live"] = render_text("batch_state.html.j2", batch=batch)
        page = await self._make(request, batch, runs, kind="page", frame=frame)
        return stream(page, "text/html; charset=utf-8")

    async def download(self, request: Request) -> Response:
        """Answer with a file to save."""
        kind = request.path_params["kind"]
        if kind not in _DOWNLOADS:
            raise HTTPException(404)
        batch, runs = find_batch(self._site, request)
        ending, media_type = _DOWNLOADS[kind]
        page = await self._make(request, batch, runs, kind=kind)
        return stream(page, media_type, name=f"{batch.known.name}{ending}")

    async def _make(
        self,
        request: Request,
        batch: ListedBatch,
        runs: dict[str, ListedRun],
        *,
        kind: str,
        frame: dict[str, str] | None = None,
    ) -> BinaryIO:
        return await self._site.make(
            request,
            "batch",
            {"ledger": batch.known} | {name: run.known for name, run in runs.items()},
            addresses={name: f"/runs/{run.run_id}" for name, run in runs.items()},
            kind=kind,
            frame=frame,
            alone=kind == "pdf",
        )
