"""The application: routes of all pages behind the guard, and errors as pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tkperf.web import runs
from tkperf.web.access import Access
from tkperf.web.library import FolderLibrary
from tkperf.web.pages import render_error, serve_static
from tkperf.web.site import Site
from tkperf.web.workers import JobError, Workers


def build_app(
    folders: Iterable[Path], *, names: Iterable[str] = (), token: str | None = None
) -> ASGIApp:
    """Return the application for the run files below folders.

    Args:
        names: host names by which browsers may reach it, besides IP addresses and ``localhost``.
        token: what each request needs; None: nothing.
    """
    workers = Workers()
    site = Site(library=FolderLibrary(tuple(folders)), workers=workers)

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        workers.start()
        try:
            yield
        finally:
            workers.close()

    app = Starlette(
        routes=[
            Route("/static/{version}/{name}", serve_static),
            *runs.build_routes(site),
        ],
        exception_handlers={
            JobError: _show_job_error,
            HTTPException: _show_http_error,
            Exception: _show_defect,
        },
        lifespan=live,
    )
    return Access(app, names=names, token=token)  # around everything: errors get its headers, too


def _show_job_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, JobError)
    return render_error(request, error.status, str(error))


def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = "There is no such page" if error.status_code == 404 else error.detail
    return render_error(request, error.status_code, what)


def _show_defect(request: Request, _: Exception) -> Response:
    return render_error(
        request, 500, "A defect of tkperf: please report it with the lines on the server's stderr"
    )
