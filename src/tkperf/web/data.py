"""Data for programs: runs as JSON, and the progress of runs as OpenMetrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tkperf.model.decoding import make_msgpack_decoder
from tkperf.model.errors import RunFileError
from tkperf.render.export_series import SeriesPoint, render_openmetrics
from tkperf.runfile.writers import FileStamp
from tkperf.web.bounds import MOST_FOR_LISTS
from tkperf.web.files import look_again
from tkperf.web.library import ListedRun, Listing
from tkperf.web.pages import answer_in_pieces, encode_json
from tkperf.web.server_state import ServerState
from tkperf.web.workers import BusyError, JobError

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# The pause before a run file is read again, as a multiple of the duration of the last reading. Reading the file of a
# long run takes a long time.
REST = 20
_POINTS = make_msgpack_decoder(list[SeriesPoint])


class _Points(NamedTuple):
    """The latest points of a run. ``stamp`` is the state of the file when the points were read, or None if the file
    could not be read. ``next_s`` is the time from which the file may be read again.
    """

    stamp: FileStamp | None
    next_s: float
    points: list[SeriesPoint]


class DataPages:
    """The pages ``/api/runs`` and ``/metrics``."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        # The points of each run in progress. The file of such a run changes with each step.
        self._points: dict[str, _Points] = {}
        self._reading = asyncio.Lock()
        self._waiting = 0

    def build_routes(self) -> list[Route]:
        return [Route("/api/runs", self.list_runs), Route("/metrics", self.show_metrics)]

    async def list_runs(self, request: Request) -> Response:
        """Answer with all runs that the library has read. The newest run is first."""
        await self._state.library.wait_for_look()
        listing = self._state.library.listing
        content = await self._state.lists.get(listing, "/api/runs", lambda: encode_json(_describe(listing)))
        return answer_in_pieces(content, "application/json")

    async def show_metrics(self, _: Request) -> Response:
        """Answer with the progress and the latest figures of runs in progress, for Prometheus."""
        await self._state.library.wait_for_look()
        if self._waiting >= MOST_FOR_LISTS:
            raise BusyError(f"{self._waiting} other requests are already waiting for metrics. Try again later")
        self._waiting += 1
        try:
            # For all waiting requests together, only one file is read at a time, because pages need workers too.
            async with self._reading:
                listing = self._state.library.listing
                running = [run for run in listing.runs.values() if run.row.is_running]
                points = [await self._read_points(run) for run in running]
                self._points = {run.run_id: self._points[run.run_id] for run in running if run.run_id in self._points}
                text = await asyncio.to_thread(
                    lambda: "".join(render_openmetrics(point for of_run in points for point in of_run))
                )
        finally:
            self._waiting -= 1
        return answer_in_pieces(text.encode(errors="replace"), OPENMETRICS)

    async def _read_points(self, run: ListedRun) -> list[SeriesPoint]:
        try:
            known = await asyncio.to_thread(look_again, run.known)
        except RunFileError:
            return []  # the page of the library already shows the reason
        latest, now_s = self._points.get(run.run_id), time.monotonic()
        if latest is not None and (latest.stamp == known.stamp or now_s < latest.next_s):
            return latest.points
        stamp: FileStamp | None = None
        points: list[SeriesPoint] = []
        with suppress(JobError):
            content = await self._state.workers.run("points", file=known)
            # Two runs can have the same name and device, but never the same ID.
            points = [replace(point, labels={**point.labels, "id": run.run_id}) for point in _POINTS.decode(content)]
            stamp = known.stamp
        took_s = time.monotonic() - now_s
        self._points[run.run_id] = _Points(stamp, now_s + REST * took_s, points)
        return points


def _describe(listing: Listing) -> Mapping[str, object]:
    """Return the list of runs for programs. The newest run is first."""
    runs = sorted(listing.runs.values(), key=lambda run: run.row.started_utc, reverse=True)
    return {
        "runs": [describe_run(run) for run in runs],
        "not_read_yet": listing.waiting,
        "unreadable": [
            *({"file": str(folder), "reason": reason} for folder, reason in listing.missing),
            *({"file": known.place, "reason": reason} for known, reason in listing.unreadable),
        ],
    }


def describe_run(run: ListedRun) -> Mapping[str, object]:
    """Return a run for programs. The value null means that a value is not known."""
    row = run.row
    return {
        "id": run.run_id,
        "uuid": row.run_id,
        "file": run.known.place,
        "copies": [copy.place for copy in run.copies],
        "differs": run.differs > 0,
        "entries": row.entries,
        "batch": run.batch_ids[0] if run.batch_ids else None,
        "name": row.name,
        "model": row.model or None,
        "serial": row.serial or None,
        "firmware": row.firmware or None,
        "capacity_bytes": row.capacity_bytes,
        "interface": row.interface or None,
        "form_factor": row.form_factor or None,
        "host": row.host or None,
        "profile": row.profile,
        "tests": row.tests,
        "started_utc": row.started_utc or None,
        "state": row.state,
        "place": row.place or None,
        "simulated": row.simulated,
        "verdict": row.verdict,
        "reasons": row.reasons,
        "figures": [{"label": figure.label, "text": figure.text} for figure in row.figures],
    }
