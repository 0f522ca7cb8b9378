"""The pages of a run, of a batch and of a comparison, and downloads. The addresses of these pages are permanent, so
users can send them by mail.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tkperf.analysis.comparing.comparison import FEWEST_TOGETHER, Arrangement
from tkperf.web.bounds import MOST_COMPARED
from tkperf.web.library import ListedBatch, ListedRun, describe_difference
from tkperf.web.live_pages import render_live
from tkperf.web.page_cache import DOWNLOADS, stream
from tkperf.web.pages import render_page, render_text
from tkperf.web.server_state import ServerState, find_batch, find_listed_run, find_run

_MAIL_BYTES = 1 << 16
BATCH_DOWNLOADS = DOWNLOADS | {"mail": (".txt", "text/plain")}


class BatchPages:
    """The pages ``/batches/ID``, and the downloads ``/batches/ID/KIND``."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def build_routes(self) -> list[Route]:
        return [Route("/batches/{id}", self.show), Route("/batches/{id}/{kind}", self.download)]

    async def show(self, request: Request) -> Response:
        """Answer with the page of the batch."""
        batch, runs = find_batch(self._state, request)
        mail = await self._make(request, batch, runs, kind="mail")
        with mail:
            text = os.pread(mail.fileno(), _MAIL_BYTES, 0).decode(errors="replace")
        running = await self._state.is_written(batch.known)
        run_ids = dict.fromkeys(run.run_id for run in runs.values())
        above = render_text(
            "batch_bar.html.j2",
            batch=batch,
            kinds=BATCH_DOWNLOADS,
            mail=text,
            running=running,
            compared=urlencode([("run", run_id) for run_id in run_ids]) if 1 < len(run_ids) <= MOST_COMPARED else "",
        )
        frame = await self._state.find_frame(above)
        if running:
            frame["live"] = render_text("batch_state.html.j2", batch=batch)
        page = await self._make(request, batch, runs, kind="page", frame=frame)
        return stream(page, "text/html; charset=utf-8")

    async def download(self, request: Request) -> Response:
        """Answer with a download."""
        kind = request.path_params["kind"]
        if kind not in BATCH_DOWNLOADS:
            raise HTTPException(404)
        batch, runs = find_batch(self._state, request)
        ending, media_type = BATCH_DOWNLOADS[kind]
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
        return await self._state.make(
            request,
            "batch",
            {"ledger": batch.known} | {name: run.known for name, run in runs.items()},
            addresses={name: f"/runs/{run.run_id}" for name, run in runs.items()},
            kind=kind,
            frame=frame,
            alone=kind == "pdf",
        )


RUN_DOWNLOADS = DOWNLOADS | {"run": (".tkperf", "application/vnd.sqlite3")}


class RunPages:
    """The pages below ``/runs/ID`` and ``/api/runs/ID``."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def build_routes(self) -> list[Route]:
        return [
            Route("/runs/{id}", self.show),
            Route("/runs/{id}/{kind}", self.download),
            Route("/api/runs/{id}", self.show_json),
        ]

    async def show(self, request: Request) -> Response:
        """Answer with the report, or with the page of a run in progress. With ``?report``, always answer with the
        report so far.
        """
        run = find_run(self._state, request)
        differs = describe_difference(run)
        if "report" not in request.query_params and await self._state.is_written(run.known):
            return render_live(run_id=run.run_id, name=run.known.name, differs=differs)
        script = await self._state.charts.find_address()
        page = await self._make(request, "page", run_id=run.run_id, script_address=script, differs=differs)
        return stream(page, "text/html; charset=utf-8")

    async def download(self, request: Request) -> Response:
        """Answer with a download."""
        kind = request.path_params["kind"]
        if kind not in RUN_DOWNLOADS:
            raise HTTPException(404)
        ending, media_type = RUN_DOWNLOADS[kind]
        name = find_run(self._state, request).known.name + ending
        return stream(await self._make(request, kind), media_type, name=name)

    async def show_json(self, request: Request) -> Response:
        """Answer with the results as JSON."""
        return stream(await self._make(request, "json"), "application/json")

    async def _make(self, request: Request, job: str, **arguments: str) -> BinaryIO:
        """Return the result of a job for the run that the address names. The result is stored unless a run is still
        writing to the file.
        """
        known = find_run(self._state, request).known
        keep, alone = job != "run", job == "pdf"
        return await self._state.make(request, job, {"file": known}, keep=keep, alone=alone, **arguments)


COMPARISON_DOWNLOADS = DOWNLOADS | {"csv": (".csv", "text/csv")}
_ARRANGEMENTS = (
    ("", "by model and date"),
    ("runs", "each with the first"),
    ("cohort", "drives of one model"),
    ("history", "one drive over time"),
)


class ComparisonPages:
    """The pages ``/compare?run=ID&run=ID...[&as=...]``, and the downloads ``/compare/KIND?...``."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def build_routes(self) -> list[Route]:
        return [Route("/compare", self.show), Route("/compare/{kind}", self.download)]

    async def show(self, request: Request) -> Response:
        """Answer with the comparison. If the address contains fewer than two runs, answer with advice."""
        runs, arrangement = self._find(request)
        if not request.query_params.keys() <= {"run", "as"}:  # the form of the list sends the other parameters too
            return RedirectResponse(f"/compare?{_join(runs, arrangement)}", status_code=303)
        if len(runs) < 2:
            return render_page("compare.html.j2", status=400, runs=runs)
        above = render_text(
            "compare_bar.html.j2",
            runs=runs,
            query=_join(runs, arrangement),
            kinds=COMPARISON_DOWNLOADS,
            switches=[
                (words, _join(runs, one), one == arrangement)
                for one, words in _ARRANGEMENTS
                if len(runs) >= FEWEST_TOGETHER
            ],
        )
        frame = await self._state.find_frame(above)
        return await self._make(request, runs, arrangement, kind="page", frame=frame)

    async def download(self, request: Request) -> Response:
        """Answer with a download."""
        kind = request.path_params["kind"]
        runs, arrangement = self._find(request)
        if kind not in COMPARISON_DOWNLOADS or len(runs) < 2:
            raise HTTPException(404)
        return await self._make(request, runs, arrangement, kind=kind)

    def _find(self, request: Request) -> tuple[list[ListedRun], str]:
        arrangement = request.query_params.get("as", "")
        asked = dict.fromkeys(request.query_params.getlist("run"))
        if arrangement not in ("", *Arrangement) or len(asked) > MOST_COMPARED:
            raise HTTPException(400, f"A comparison takes at most {MOST_COMPARED} runs, as runs, cohort or history")
        listed = {run_id: find_listed_run(self._state, run_id) for run_id in asked}
        # Two IDs can lead to the same run: the ID of the run, and the ID of a copy.
        found = {run.run_id: run for run in listed.values() if run is not None}
        if missing := sum(run is None for run in listed.values()):
            raise HTTPException(
                404,
                f"Runs that are not below the served folders, or that the server has not read yet: "
                f"{missing} of {len(asked)}",
            )
        return list(found.values()), arrangement

    async def _make(
        self,
        request: Request,
        runs: Sequence[ListedRun],
        arrangement: str,
        *,
        kind: str,
        frame: dict[str, str] | None = None,
    ) -> Response:
        page = await self._state.make(
            request,
            "comparison",
            {run.run_id: run.known for run in runs},
            order=[run.run_id for run in runs],
            arrangement=arrangement,
            kind=kind,
            frame=frame,
            alone=kind == "pdf",
        )
        if frame is not None:
            return stream(page, "text/html; charset=utf-8")
        ending, media_type = COMPARISON_DOWNLOADS[kind]
        return stream(page, media_type, name=f"comparison{ending}")


def _join(runs: Sequence[ListedRun], arrangement: str) -> str:
    """Return the query of the address of a comparison."""
    pairs = [("run", run.run_id) for run in runs]
    return urlencode([*pairs, ("as", arrangement)] if arrangement else pairs)
