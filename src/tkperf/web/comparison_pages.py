"""Comparisons of runs, as ``tkperf compare`` makes them, at addresses that can be mailed."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tkperf.analysis.comparing.comparison import FEWEST_TOGETHER, Arrangement
from tkperf.web.bounds import MOST_COMPARED
from tkperf.web.library import ListedRun
from tkperf.web.page_cache import DOWNLOADS, stream
from tkperf.web.pages import render_page, render_text
from tkperf.web.shared_parts import SharedParts, find_listed_run

_DOWNLOADS = DOWNLOADS | {"csv": (".csv", "text/csv")}
_ARRANGEMENTS = (
    ("", "by model and date"),
    ("runs", "each with the first"),
    ("cohort", "drives of one model"),
    ("history", "one drive over time"),
)


class ComparisonPages:
    """Pages ``/compare?run=ID&run=ID...[&as=...]``, and files to save at ``/compare/KIND?...``."""

    def __init__(self, parts: SharedParts) -> None:
        self._site = parts

    def build_routes(self) -> list[Route]:
        return [Route("/compare", self.show), Route("/compare/{kind}", self.download)]

    async def show(self, request: Request) -> Response:
        """Answer with the comparison; of fewer than two runs with what to do."""
        runs, arrangement = self._find(request)
        if not request.query_params.keys() <= {"run", "as"}:  # the rest is of the list
            return RedirectResponse(f"/compare?{_join(runs, arrangement)}", status_code=303)
        if len(runs) < 2:
            return render_page("compare.html.j2", status=400, runs=runs)
        above = render_text(
            "compare_bar.html.j2",
            runs=runs,
            query=_join(runs, arrangement),
            kinds=_DOWNLOADS,
            switches=[
                (words, _join(runs, one), one == arrangement)
                for one, words in _ARRANGEMENTS
                if len(runs) >= FEWEST_TOGETHER
            ],
        )
        frame = await self._site.find_frame(above)
        return await self._make(request, runs, arrangement, kind="page", frame=frame)

    async def download(self, request: Request) -> Response:
        """Answer with a file to save."""
        kind = request.path_params["kind"]
        runs, arrangement = self._find(request)
        if kind not in _DOWNLOADS or len(runs) < 2:
            raise HTTPException(404)
        return await self._make(request, runs, arrangement, kind=kind)

    def _find(self, request: Request) -> tuple[list[ListedRun], str]:
        arrangement = request.query_params.get("as", "")
        asked = dict.fromkeys(request.query_params.getlist("run"))
        if arrangement not in ("", *Arrangement) or len(asked) > MOST_COMPARED:
            raise HTTPException(400, f"A comparison takes at most {MOST_COMPARED} runs, as runs, cohort or history")
        listed = {run_id: find_listed_run(self._site, run_id) for run_id in asked}
        # Two ids can lead to one run: the id of the run, and the id of a copy.
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
        page = await self._site.make(
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
        ending, media_type = _DOWNLOADS[kind]
        return stream(page, media_type, name=f"comparison{ending}")


def _join(runs: Sequence[ListedRun], arrangement: str) -> str:
    """Return the query of an address of a comparison."""
    pairs = [("run", run.run_id) for run in runs]
    return urlencode([*pairs, ("as", arrangement)] if arrangement else pairs)
