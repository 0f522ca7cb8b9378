"""A library that is ranked by a figure shows the ranks of ``tkperf rank`` with bars. Only the selected runs are
ranked.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tests.analysis.test_ranking import run_of
from tests.web.listed import a_batch, a_row, list_rows
from tkperf.analysis.comparing.ranking import rank_runs, shorten_figures
from tkperf.analysis.comparing.run_figures import RunFigures
from tkperf.model.choices import FIGURES
from tkperf.page.comparison.ranking_page import describe_unranked
from tkperf.web.index import RunRow
from tkperf.web.library import Listing
from tkperf.web.library_page import render_library
from tkperf.web.library_search import FACETS, FoundRuns, Query, parse_query, select


def row_of(number: int, figures: RunFigures, **changes: object) -> RunRow:
    return a_row(number, name=figures.name, ranks=msgspec.msgpack.encode(shorten_figures(figures)), **changes)


def listing_of(*rows: RunRow) -> Listing:
    return list_rows({f"{row.name}.tkperf": row for row in rows})


def found(listing: Listing, address: str) -> FoundRuns:
    return select(listing, parse_query(parse_qsl(urlsplit(address).query)))


def names_of(selection: FoundRuns) -> list[str]:
    return [run.row.name for item in selection.items for run in item.runs]


DRIVES = (
    row_of(1, run_of("slow", 50.0), interface="SATA", capacity_bytes=960_197_124_096),
    row_of(2, run_of("fast", 200.0), interface="NVMe", capacity_bytes=960_197_124_096),
    row_of(3, run_of("odd", 900.0, active_range_length_bytes=1 << 29), interface="NVMe", form_factor="U.2"),
    row_of(4, run_of("unsteady", 900.0, steady=False)),
    row_of(5, run_of("middle", 100.0)),
    a_row(6, name="nothing"),
)


def test_the_order_is_that_of_the_ranking() -> None:
    """The ranked runs are listed first. Then follow runs with a value that is not ranked, and finally runs without a
    value.
    """
    selection = found(listing_of(*DRIVES), "/?by=random-read")
    assert names_of(selection) == ["fast", "middle", "slow", "odd", "unsteady", "nothing"]
    ranking = selection.ranking
    assert ranking is not None
    assert [shown.place for shown in ranking.shown.values()] == ["1.", "2.", "3.", "", ""]
    assert ranking.ranked == "3 of 6 runs ranked"
    assert ranking.title == "Random read, 4 KiB, TC4/QD32, IOPS"


def test_facets_make_the_peers() -> None:
    """A drive is ranked only among the drives that the selected values of facets (filters) leave in the list."""
    listing = listing_of(*DRIVES)
    assert {facet.key for facet in FACETS} >= {"capacity", "interface", "form"}
    assert names_of(found(listing, "/?by=random-read&capacity=960+GB")) == ["fast", "slow"]
    alone = found(listing, "/?by=random-read&interface=NVMe&form=U.2").ranking
    assert alone is not None
    assert [shown.place for shown in alone.shown.values()] == ["1."]


def test_shortened_records_rank_as_whole_ones() -> None:
    """A ranking of shortened records leads to the same ranks as a ranking of complete records. A shortened record
    contains a digest in place of the numbers of the profile, so runs with different numbers are still not ranked.
    """
    numbers = [{"title": "t", "iops": {"step_s": step_s}} for step_s in (60, 60, 5)]
    runs = [run_of(name, profile=profile) for name, profile in zip("ABC", numbers, strict=True)]
    short = rank_runs([shorten_figures(run) for run in runs], "random_read")
    whole = rank_runs(runs, "random_read")
    assert [(one.run.name, one.place) for one in short.runs] == [(one.run.name, one.place) for one in whole.runs]
    assert describe_unranked(whole.others[0]) == "other conditions: iops.step_s 5, not 60"
    assert describe_unranked(short.others[0]) == "other conditions: numbers of the profile"


def test_a_page_shows_values_bars_and_reasons() -> None:
    """Each row of a ranking contains a bar. It also contains the rank, or the reason why the run is not ranked. The
    page states which conditions are equal.
    """
    page = bytes(render_library(listing_of(*DRIVES), Query(by="random-read")).body).decode()
    assert page.count('<svg class="rank-bar') == 5
    assert page.count('<svg class="rank-bar unranked"') == 2
    assert "other conditions: active range 50 %, not 100 %" in page
    assert "Only equal conditions are ranked: test iops, load RND 4k R/W 100/0 TC4/QD32" in page
    assert '<option value="random-read" selected>' in page
    # the header and each row contain this cell, so no column is shifted
    assert page.count(' colspan="2">') == 1 + len(DRIVES)
    assert 'name="sort"' not in page


def test_models_are_said_to_be_simulated() -> None:
    """If all runs are simulated, they are ranked, and the text with their number contains SIMULATED. Among real drives,
    simulated runs are not ranked.
    """
    models = [
        row_of(number, run_of(name, 900.0, ioengine="simulated"), simulated=True)
        for number, name in ((7, "m1"), (8, "m2"))
    ]
    alone = bytes(render_library(listing_of(*models), Query(by="random-read")).body).decode()
    assert "SIMULATED: 2 of 2 runs ranked" in alone
    mixed = found(listing_of(*models, *DRIVES[:2]), "/?by=random-read")
    assert names_of(mixed) == ["fast", "slow", "m1", "m2"]
    assert mixed.ranking is not None
    assert mixed.ranking.ranked == "2 of 4 runs ranked"


def test_runs_of_a_batch_have_their_own_places() -> None:
    """In a ranking, each run of a batch has its own row. If the batch had only one row, all its runs would seem to have
    the rank of the best run.
    """
    rows = {"slow.tkperf": DRIVES[0], "fast.tkperf": DRIVES[1], "middle.tkperf": DRIVES[4]}
    listing = list_rows({**rows, "rack7.batch": a_batch("slow.tkperf", "fast.tkperf")})
    assert names_of(found(listing, "/?by=random-read")) == ["fast", "middle", "slow"]
    assert all(item.batch is None for item in found(listing, "/?by=random-read").items)


def test_addresses_keep_the_figure() -> None:
    """The addresses of pages and facets keep the chosen figure. A click on a column heading ends the ranking."""
    query = Query(by="kept-rate", chosen={"interface": ("NVMe",)}, page=2)
    assert parse_query(parse_qsl(urlsplit(query.address(page=2)).query)) == query
    assert "by=kept-rate" in query.without("interface", "NVMe")
    assert query.sorted_by("name") == "/?interface=NVMe&sort=name"
    assert parse_query([("by", "rubbish")]).by == ""
    assert {parse_query([("by", figure)]).by for figure in FIGURES} == set(FIGURES)


def test_a_damaged_record_hides_nothing() -> None:
    """If the figures of a run cannot be decoded, the run is listed without them."""
    listing = listing_of(*DRIVES[:2], a_row(9, name="damaged", ranks=b"\xc1"))
    assert names_of(found(listing, "/?by=random-read")) == ["fast", "slow", "damaged"]


def test_a_property_known_of_no_run_is_no_facet() -> None:
    """If no run has a property, the property is not offered as a facet, because the facet would only use space in the
    form.
    """
    page = bytes(render_library(listing_of(DRIVES[4]), Query()).body).decode()
    titles = re.findall(r"<summary>([^<]+)", page)
    assert "Form factor" not in titles
    assert "Model" in titles
