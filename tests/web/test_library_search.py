"""Runs are found with words and facets, sorted, and divided into pages. The address of a page contains the
whole query.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from tests.web.listed import a_batch, a_row, list_rows
from tkperf.web.bounds import PAGE_ITEMS
from tkperf.web.library import Listing
from tkperf.web.library_page import render_library
from tkperf.web.library_search import FACETS, SORTS, Query, parse_query, select
from tkperf.web.pages import draw_course


def find(listing: Listing, address: str) -> list[str]:
    found = select(listing, parse_query(parse_qsl(urlsplit(address).query)))
    return [run.row.name for item in found.items for run in item.runs]


LISTING = list_rows(
    {
        "a": a_row(1, model="INTEL", firmware="X1", verdict="not valid"),
        "b": a_row(2, model="INTEL", firmware="X2", host="bench2"),
        "c": a_row(3, model="KIOXIA", firmware="X1", simulated=True),
        "d": a_row(4, model="KIOXIA", firmware="X3", tests=("Latency",), verdict="running"),
    }
)
queries = st.builds(
    Query,
    words=st.text("aß &?=%+", max_size=9).map(lambda text: " ".join(text.split())),
    chosen=st.dictionaries(
        st.sampled_from([facet.key for facet in FACETS]),
        st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3, unique=True).map(tuple),
    ),
    sort=st.sampled_from([*SORTS, *(f"-{key}" for key in SORTS)]),
    page=st.integers(1, 999_999),
    ticked=st.lists(st.text(min_size=1, max_size=9), max_size=3, unique=True).map(tuple),
)


@given(queries)
def test_an_address_is_the_whole_query(query: Query) -> None:
    """The address contains the whole query, so that every user who opens a mailed address sees the same runs."""
    address = query.address(page=query.page)
    assert parse_query(parse_qsl(urlsplit(address).query)) == query


@given(st.lists(st.tuples(st.sampled_from(["q", "sort", "page", "model", "run", "x"]), st.text())))
def test_any_address_is_answered(pairs: list[tuple[str, str]]) -> None:
    """Any address is answered. Unknown keys and impossible values in an address are ignored."""
    selected = select(LISTING, parse_query(pairs))
    assert 1 <= selected.page <= selected.pages


def test_words_and_facets_narrow_together() -> None:
    """Several values of one facet extend the result. Values of several facets, and words, reduce the result."""
    assert find(LISTING, "/?model=INTEL") == ["run-2", "run-1"]
    assert find(LISTING, "/?model=INTEL&firmware=X1") == ["run-1"]
    assert find(LISTING, "/?firmware=X1&firmware=X3&sort=name") == ["run-1", "run-3", "run-4"]
    assert find(LISTING, "/?q=kioxia+s0004") == ["run-4"]
    assert find(LISTING, "/?q=kioxia&host=bench2") == []


def test_runs_are_in_the_order_that_was_asked_for() -> None:
    assert find(LISTING, "/?sort=-name") == ["run-4", "run-3", "run-2", "run-1"]
    assert find(LISTING, "/?sort=-verdict")[0] == "run-1"
    assert find(LISTING, "/?sort=nonsense") == find(LISTING, "/")


def test_a_simulated_run_is_never_counted_as_a_measurement() -> None:
    """A simulated run is never counted as a measurement, neither in the total nor in a facet."""
    selected = select(LISTING, Query())
    assert (selected.measured, selected.simulated) == (3, 1)
    firmware = next(choices for facet, choices in selected.facets if facet.key == "firmware")
    counts = {one.value: (one.measured, one.simulated) for one in firmware}
    assert counts == {"X1": (1, 1), "X2": (1, 0), "X3": (1, 0)}


def test_a_facet_counts_what_the_other_facets_leave() -> None:
    """The counts of a facet take the selected values of the other facets into account. Each count is therefore the
    number of runs that a click on the value would show.
    """
    selected = select(LISTING, Query(chosen={"model": ("INTEL",), "firmware": ("X2",)}))
    counts = {
        facet.key: {one.value: one.measured + one.simulated for one in choices} for facet, choices in selected.facets
    }
    assert counts["model"] == {"INTEL": 1}
    assert counts["firmware"] == {"X1": 1, "X2": 1}


def test_a_batch_is_one_row_with_its_runs() -> None:
    """A batch is one row. The row contains only the runs of the batch that the search found. A batch without runs is
    listed only if the user selected no words and no values of facets.
    """
    listing = list_rows(
        {
            "rack7.batch": a_batch("1.tkperf", "2.tkperf"),
            "1.tkperf": a_row(1),
            "2.tkperf": a_row(2),
            "3.tkperf": a_row(3),
            "x/empty.batch": a_batch(batch_id="e" * 32, name="empty"),
        }
    )
    items = select(listing, Query()).items
    assert [(item.batch and item.batch.row.name, len(item.runs)) for item in items] == [
        (None, 1),
        ("rack7", 2),
        ("empty", 0),
    ]
    (item,) = select(listing, Query(words="run-2")).items
    assert item.batch is not None
    assert [run.row.name for run in item.runs] == ["run-2"]


def test_pages_have_each_row_once() -> None:
    listing = list_rows({str(number): a_row(number) for number in range(1, 2 * 50 + 8)})
    pages = [select(listing, Query(page=page)) for page in (1, 2, 3)]
    assert [len(page.items) for page in pages] == [50, 50, 7]
    assert len({item.runs[0].run_id for page in pages for item in page.items}) == 107
    assert select(listing, Query(page=99)).page == pages[0].pages == 3
    assert PAGE_ITEMS == 50


def test_a_page_escapes_each_text_of_a_file() -> None:
    """A page escapes each text of a file, including the file name, even if the file name is not UTF-8."""
    evil = "<script>\"'&"
    row = a_row(1, name=evil, model=evil, host=evil, reasons=(evil,), place=evil, verdict=evil)
    page = bytes(render_library(list_rows({f"{evil}\udcff": row, "x": row}), Query(words=evil)).body).decode()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_course_is_drawn_from_zero() -> None:
    """In the curve of a run, a part that was not measured is left out and not drawn as 0. The curve of a drive that
    stops entirely can also be drawn.
    """
    assert draw_course((2.0, None, 1.0), (120, 28)) == "0.0,1.0 120.0,14.0"
    assert draw_course((0.0, 0.0), (120, 28)) == "0.0,27.0 120.0,27.0"
