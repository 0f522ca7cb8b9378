"""Pages of one run."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tkperf.web.site import RUN_ID, KnownFile, Site


def build_routes(site: Site) -> list[Route]:
    """Return the routes below ``/runs/ID``."""

    async def show(request: Request) -> Response:
        known = find_run(site, request)
        return HTMLResponse(await site.workers.run("report", file=known))

    return [Route("/runs/{id}", show)]


def find_run(site: Site, request: Request) -> KnownFile:
    """Return the file that the address names.

    Raises:
        HTTPException: 404, the library has no such run.
    """
    run_id = request.path_params["id"]
    known = site.library.find(run_id) if RUN_ID.fullmatch(run_id) else None
    if known is None:
        raise HTTPException(404)
    return known
