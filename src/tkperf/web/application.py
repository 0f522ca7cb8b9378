"""The application of tkperf serve. The application consists of the pages, the access check before the pages, and the
answers to errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tkperf.system.output_files import find_cache_folder
from tkperf.web import library_page
from tkperf.web.access import AccessGuard
from tkperf.web.data import DataPages
from tkperf.web.index import Index, find_index_path
from tkperf.web.library import Library, read_rows_with
from tkperf.web.live_pages import LivePages
from tkperf.web.page_cache import PageCache
from tkperf.web.pages import render_error, serve_static
from tkperf.web.result_pages import BatchPages, ComparisonPages, RunPages
from tkperf.web.server_state import AmbiguousError, ChartScript, ServerState
from tkperf.web.workers import JobError, Workers


def build_app(
    folders: Iterable[Path], *, names: Iterable[str] = (), token: str | None = None, ending: asyncio.Event | None = None
) -> ASGIApp:
    """Return the application for the run files below these folders.

    Args:
        names: host names with which browsers can reach the server, in addition to IP addresses and ``localhost``.
        token: the token that each request needs, or None if no token is necessary.
        ending: an event that is set when the server ends, so that continuous answers end too.
    """
    workers = Workers()
    served = tuple(folder.resolve() for folder in folders)
    index = Index(find_index_path(served))
    library = Library(served, index, read_rows_with(workers))
    charts = ChartScript(workers)
    kept = PageCache(find_cache_folder("pages"))
    state = ServerState(library=library, workers=workers, kept=kept, charts=charts, ending=ending or asyncio.Event())

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        workers.start()
        charts.start()
        keeping_up = asyncio.create_task(library.keep_up())
        try:
            yield
        finally:
            keeping_up.cancel()
            workers.close()
            index.close()

    app = Starlette(
        routes=[
            *LivePages(state).build_routes(),
            *RunPages(state).build_routes(),
            *DataPages(state).build_routes(),
            *ComparisonPages(state).build_routes(),
            *BatchPages(state).build_routes(),
            Route("/static/{version}/charts.js", charts.serve),
            Route("/static/{version}/{name}", serve_static),
            *library_page.build_routes(state),
        ],
        exception_handlers={JobError: _show_job_error, HTTPException: _show_http_error, Exception: _show_defect},
        lifespan=live,
    )
    # this layer is the outermost, so that answers to errors also contain its headers
    return AccessGuard(app, names=names, token=token)


def _show_job_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, JobError)
    return render_error(request, error.status, str(error))


def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = "There is no such page" if error.detail == HTTPStatus(404).phrase else error.detail
    more = error.more if isinstance(error, AmbiguousError) else ""
    return render_error(request, error.status_code, what, more=more)


def _show_defect(request: Request, _: Exception) -> Response:
    return render_error(request, 500, "A defect of tkperf: please report it with the lines on the server's stderr")
