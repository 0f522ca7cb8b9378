"""Pages of one run: its report, downloads, and its results as JSON."""

from __future__ import annotations

import asyncio
import hashlib
from typing import BinaryIO

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tkperf.model.errors import RunFileError
from tkperf.render.reports import find_report_date
from tkperf.runfile.writers import is_being_written
from tkperf.web.files import KnownFile, look_again
from tkperf.web.kept import stream
from tkperf.web.site import Site
from tkperf.web.workers import FileError

# Of each download: its job, the ending of its name, and its type.
DOWNLOADS = {
    "html": ("html", ".html", "text/html"),
    "pdf": ("pdf", ".pdf", "application/pdf"),
    "run": ("copy", ".tkperf", "application/vnd.sqlite3"),
    "csv": ("csv", "-csv.zip", "application/zip"),
    "json": ("json", ".json", "application/json"),
}
# Not kept: a copy of the run file itself.
_NOT_KEPT = ("copy",)


class RunPages:
    """Pages below ``/runs/ID`` and ``/api/runs/ID``."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._script = b""

    def build_routes(self) -> list[Route]:
        return [
            Route("/runs/{id}", self.show),
            Route("/runs/{id}/{kind}", self.download),
            Route("/api/runs/{id}", self.show_json),
            Route("/static/{version}/charts.js", self.serve_script),
        ]

    async def show(self, request: Request) -> Response:
        """Answer with the report."""
        run_id = request.path_params["id"]
        script = await self._find_script_address()
        page = await self._make(request, "page", run_id=run_id, script_address=script)
        return stream(page, "text/html; charset=utf-8")

    async def download(self, request: Request) -> Response:
        """Answer with a file to save."""
        if request.path_params["kind"] not in DOWNLOADS:
            raise HTTPException(404)
        job, ending, media_type = DOWNLOADS[request.path_params["kind"]]
        name = find_run(self._site, request).name + ending
        return stream(await self._make(request, job), media_type, name=name)

    async def show_json(self, request: Request) -> Response:
        """Answer with the results."""
        return stream(await self._make(request, "json"), "application/json")

    async def serve_script(self, request: Request) -> Response:
        """Answer with Vega and the scripts of reports."""
        await self._find_script_address()
        return Response(
            self._script,
            media_type="text/javascript",
            headers={"Cache-Control": "private, max-age=31536000, immutable"},
        )

    async def _find_script_address(self) -> str:
        if not self._script:
            self._script = await self._site.workers.run("script")
        return f"/static/{hashlib.sha256(self._script).hexdigest()[:16]}/charts.js"

    async def _make(self, request: Request, job: str, **arguments: str) -> BinaryIO:
        """Return what a job makes of the run that the address names; kept unless its run still writes the file."""
        known = find_run(self._site, request)
        try:
            known = look_again(known)
            path = known.folder / known.place
            running = await asyncio.to_thread(is_being_written, path)
        except (RunFileError, OSError) as error:
            raise FileError(str(error)) from error
        key = (job, known, find_report_date(), sorted(arguments.items()))

        async def make(result: BinaryIO) -> None:
            workers = self._site.workers
            await workers.make(result, job, alone=job == "pdf", file=known, **arguments)

        keep = not running and job not in _NOT_KEPT
        return await self._site.kept.get(request, key, make, keep=keep)


def find_run(site: Site, request: Request) -> KnownFile:
    """Return the file that the address names.

    Raises:
        HTTPException: 404, the library has no such run.
    """
    known = site.library.find(request.path_params["id"])
    if known is None:
        raise HTTPException(404)
    return known
