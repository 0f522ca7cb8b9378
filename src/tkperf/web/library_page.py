"""The page of the library, which lists all runs. The user can find runs by words and facets. Each run is a link to its
report.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tkperf.model.units import format_count
from tkperf.page.facts import format_moment
from tkperf.page.verdict_texts import NoteLevel
from tkperf.web.bounds import MOST_FILES, MOST_NAMED, MOST_UNREADABLE, PAGE_RUNS
from tkperf.web.index import RunRow
from tkperf.web.library import Listing, describe_difference
from tkperf.web.library_search import CHOICES, SORTS, FoundRuns, Query, name_capacity, parse_query, select
from tkperf.web.pages import answer_in_pieces, draw_course, render_page
from tkperf.web.server_state import ServerState

# The time, in s, that the page waits for the first search. If folders are slow, the page is shown after this time and
# states that the server is still searching them.
_LOOK_LIMIT_S = 2.0
# The size, in pixels, of the drawing that shows a rate over time.
_SPARK = 120, 28
_COLUMNS = (
    ("name", "Run"),
    ("drive", "Drive"),
    ("capacity", "Capacity"),
    ("verdict", "Verdict"),
    ("", "Headline figures"),
    ("", "Write saturation"),
    ("date", "Begun (UTC)"),
    ("host", "Host"),
)
_ORDERS = (
    ("-date", "Newest first"),
    ("date", "Oldest first"),
    ("name", "Run, A to Z"),
    ("drive", "Drive, A to Z"),
    ("-verdict", "Gravest verdict first"),
    ("host", "Host, A to Z"),
)
_SIGNS = {NoteLevel.INFORMATION: "✓", NoteLevel.CAUTION: "!", NoteLevel.FAILURE: "×"}
_UNJUDGED = ("running", "interrupted", "not judged")


def build_routes(state: ServerState) -> list[Route]:
    """Return the route of the library."""

    async def show(request: Request) -> Response:
        query = parse_query(request.query_params.multi_items())
        if (without := request.query_params.get("without")) is not None:
            key, _, value = without.partition("=")
            return RedirectResponse(query.without(key, value), status_code=303)
        await state.library.wait_for_look(_LOOK_LIMIT_S)
        listing = state.library.listing
        asked = (query.address(page=query.page), "page of the list")
        page = await state.lists.get(listing, asked, lambda: bytes(render_library(listing, query).body))
        return answer_in_pieces(page, "text/html; charset=utf-8")

    return [Route("/", show)]


def render_library(listing: Listing, query: Query) -> Response:
    """Render the page of the runs that a query finds."""
    selection = select(listing, query)
    ticked = [run for run_id in query.ticked if (run := listing.find_run(run_id)) is not None]
    return render_page(
        "library.html.j2",
        query=query,
        selection=selection,
        ticked=ticked,
        is_ticked=frozenset(run.run_id for run in ticked).__contains__,
        listing=listing,
        count=_count(selection, query),
        columns=_build_columns(query, selection),
        figures=CHOICES,
        ranking=selection.ranking,
        rank_of=(selection.ranking.shown.get if selection.ranking else lambda _: None),
        capacity=name_capacity,
        orders=_ORDERS,
        most_files=MOST_FILES,
        most_named=MOST_NAMED,
        most_unreadable=MOST_UNREADABLE,
        most_runs=PAGE_RUNS,
        difference=describe_difference,
        draw=lambda spark: draw_course(spark.values, _SPARK),
        size=_SPARK,
        sign=_find_sign,
        moment=lambda utc: format_moment(utc).removesuffix(" UTC").rpartition(":")[0] or utc,
    )


def _count(selection: FoundRuns, query: Query) -> str:
    """Return the number of runs in words: ``12 measured runs and 3 simulated, of 40 in all``."""
    found = format_count(selection.measured, "measured run")
    if selection.simulated:
        found += f" and {selection.simulated:,} simulated"
    if selection.ranking is not None:
        found = f"{selection.ranking.ranked}; {found}"
    return f"{found}, of {selection.total:,} in all" if query.is_narrow else found


def _build_columns(query: Query, selection: FoundRuns) -> list[tuple[str, str, str]]:
    """Return three texts for each column: its title, the address of the list sorted by this column, and the current
    order of the list. The order is empty if the list is not sorted by this column.
    """
    columns = []
    ranking = selection.ranking
    # In a ranking, columns with the ranked figure and its bar replace the columns for the headline figures and for
    # write saturation.
    titles = {} if ranking is None else {"Headline figures": ranking.title, "Write saturation": None}
    for key, column in _COLUMNS:
        title = titles.get(column, column)
        if title is None:
            continue
        sorted_here = key and ranking is None
        order = {key: "ascending", f"-{key}": "descending"}.get(query.sort, "") if sorted_here else ""
        columns.append((title, query.sorted_by(key) if key in SORTS else "", order))
    return columns


def _find_sign(row: RunRow) -> str:
    return "•" if row.verdict in _UNJUDGED else _SIGNS[NoteLevel(row.level)]
