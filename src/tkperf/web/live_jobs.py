"""Jobs of workers that go on: they watch a run or a batch under way, and yield its state as a part of a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from tkperf.batch.batch_watch import WatchedBatch
from tkperf.model.units import format_number
from tkperf.page.batch_progress import build_batch_progress
from tkperf.page.chart import Axis, Point
from tkperf.page.progress import ProgressView, build_progress
from tkperf.pipeline.run_state import RunState
from tkperf.pipeline.running_runs import FollowedFile, find_clock_s
from tkperf.render.terminal.drawings import spread_over
from tkperf.web.files import KnownFile, reach
from tkperf.web.pages import draw_course, render_text
from tkperf.web.row_reader import reach_batch

LOOK_EVERY_S = 0.25
# Clocks and remaining times go on without news; and a server that has gone is noticed.
SHOW_EVERY_S = 5.0
_MOST_POINTS = 160
CURVE = 320, 60
"""Width and height of a curve, in pixels."""


def follow_run(file: KnownFile) -> Iterator[bytes]:
    """Yield a run under way, as often as its file changes, until no process holds it any more."""
    followed = FollowedFile(reach(file))
    reach(file)  # nor was another file there meanwhile: what is shown is of this one
    state = RunState()
    events = followed.first_events()
    while True:
        for event in events:
            state.take(event)
        clock_s = find_clock_s(followed.record)
        if clock_s is not None and followed.is_running:
            state.at_s = max(state.at_s, clock_s)
        yield render_progress(build_progress(state)).encode(errors="replace")
        if not followed.is_held:
            return
        _wait_for(lambda: followed.has_changed)
        events = followed.new_events()
        reach(file)


def follow_batch(*, ledger: KnownFile, addresses: Mapping[str, str]) -> Iterator[bytes]:
    """Yield a batch under way, likewise.

    Args:
        addresses: the pages of its runs by their names.
    """
    watched = WatchedBatch(reach_batch(ledger))
    watched.look_at_all()
    while True:
        view = build_batch_progress(watched.state, watched.runs)
        text = render_text("batch_live.html.j2", view=view, addresses=addresses)
        yield text.encode(errors="replace")
        if not watched.state.is_under_way:
            return
        _wait_for(lambda: bool(watched.look() or watched.news))
        reach_batch(ledger)


def _wait_for(has_news: Callable[[], bool]) -> None:
    """Look until there is something new, or for as long as a page may stay as it is."""
    until_s = time.monotonic() + SHOW_EVERY_S
    while True:
        time.sleep(LOOK_EVERY_S)
        if has_news() or time.monotonic() > until_s:
            return


def render_progress(view: ProgressView) -> str:
    """Return a run under way as a part of a page: its place, figures, and the curve that grows."""
    cells = view.cells
    curves = []
    if cells is not None:
        curves = [
            (str(workload), workload == cells.current, _draw(values))
            for workload, values in cells.values.items()
            if any(value is not None for value in values)
        ]
    return render_text(
        "live.html.j2",
        view=view,
        curves=curves,
        seconds=_draw(view.seconds_iops) if len(view.seconds_iops) > 1 else None,
        number=format_number,
        size=CURVE,
    )


def _draw(values: Sequence[float | None]) -> tuple[str, str]:
    """Return a curve as points of SVG, which begins with two values, and its newest and greatest value in words."""
    points = [Point(place, value) for place, value in enumerate(values)]
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return "", "".join(map(format_number, known))
    words = f"now {format_number(known[-1])}, at most {format_number(max(known))}"
    return draw_course(spread_over(points, Axis(title=""), _MOST_POINTS), CURVE), words
