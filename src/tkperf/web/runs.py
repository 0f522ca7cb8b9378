"""Pages of one run: its report, downloads, and its results as JSON."""

from __future__ import annotations

from typing import BinaryIO

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tkperf.web.library import describe_difference
from tkperf.web.live_pages import render_live
from tkperf.web.page_cache import DOWNLOADS, stream
from tkperf.web.shared_parts import SharedParts, find_run

_DOWNLOADS = DOWNLOADS | {"run": (".tkperf", "application/vnd.sqlite3")}


class RunPages:
    """Pages below ``/runs/ID`` and ``/api/runs/ID``."""

    def __init__(self, parts: SharedParts) -> None:
        self._site = parts

    def build_routes(self) -> list[Route]:
        return [
            Route("/runs/{id}", self.show),
            Route("/runs/{id}/{kind}", self.download),
            Route("/api/runs/{id}", self.show_json),
        ]

    async def show(self, request: Request) -> Response:
        """Answer with the report, or the page of a run under way; ``?report``: with the report so far."""
        run = find_run(self._site, request)
        differs = describe_difference(run)
        if "report" not in request.query_params and await self._site.is_written(run.known):
            return render_live(run_id=run.run_id, name=run.known.name, differs=differs)
        script = await self._site.charts.find_address()
        page = await self._make(request, "page", run_id=run.run_id, script_address=script, differs=differs)
        return stream(page, "text/html; charset=utf-8")

    async def download(self, request: Request) -> Response:
        """Answer with a file to save."""
        kind = request.path_params["kind"]
        if kind not in _DOWNLOADS:
            raise HTTPException(404)
        ending, media_type = _DOWNLOADS[kind]
        name = find_run(self._site, request).known.name + ending
        return stream(await self._make(request, kind), media_type, name=name)

    async def show_json(self, request: Request) -> Response:
        """Answer with the results."""
        return stream(await self._make(request, "json"), "application/json")

    async def _make(self, request: Request, job: str, **arguments: str) -> BinaryIO:
        """Return what a job makes of the run that the address names; kept unless its run still writes the file."""
        known = find_run(self._site, request).known
        keep, alone = job != "run", job == "pdf"
        return await self._site.make(request, job, {"file": known}, keep=keep, alone=alone, **arguments)
