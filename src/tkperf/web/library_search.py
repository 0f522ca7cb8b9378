"""Find runs of the library, and rank them according to a figure. The address contains the words, the facets, the order
and the number of the page. This module has no side effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from tkperf.analysis.comparing.ranking import RankedRun, Ranking, rank_runs
from tkperf.analysis.comparing.run_figures import RunFigures
from tkperf.analysis.verdict import VerdictState
from tkperf.model.choices import FIGURES
from tkperf.model.decoding import make_msgpack_decoder
from tkperf.model.units import format_count
from tkperf.page.comparison.decision_texts import build_cell, find_scale, name_size
from tkperf.page.comparison.ranking_page import build_ranking_view, describe_unranked
from tkperf.page.matrix import FIGURE_NAMES, MatrixCell
from tkperf.page.naming import capitalise
from tkperf.web.bounds import MOST_CHOICES, MOST_COMPARED, MOST_WORDS, PAGE_ITEMS, PAGE_RUNS
from tkperf.web.library import ListedBatch, ListedRun, Listing

_DECODER = make_msgpack_decoder(RunFigures)
CHOICES = tuple((figure, capitalise(FIGURE_NAMES[figure.replace("-", "_")][1])) for figure in FIGURES)
"""The figures that the library can use for a ranking. Each entry consists of the key and the name of a figure."""


class ShownRank(NamedTuple):
    """A run in the ranking of a list. ``place`` is empty if the run is not ranked."""

    place: str
    cell: MatrixCell
    words: str


class ListRanking(NamedTuple):
    """The ranking of the runs of a list.

    Attributes:
        order: the IDs of all runs. The ranked runs are first.
        shown: the place of each run. The ID of the run is the key.
        title: the figure with its load and unit.
        ranked: the number of ranked runs in words. The text contains SIMULATED if the drives are models.
        conditions: the conditions that all ranked values have in common.
    """

    order: tuple[str, ...]
    shown: Mapping[str, ShownRank]
    title: str
    ranked: str
    conditions: str


def rank_list(runs: Sequence[ListedRun], figure: str) -> ListRanking:
    """Return the ranking of these runs according to a figure of ``FIGURES``. Runs without a value for this figure are
    last.
    """
    known: list[ListedRun] = []
    figures: list[RunFigures] = []
    for run in runs:
        try:
            figures.append(_DECODER.decode(run.row.ranks))
        except msgspec.MsgspecError:
            continue
        known.append(run)
    ranking = rank_runs(figures, figure.replace("-", "_"))
    view = build_ranking_view(ranking, {run.name: run.name for run in figures})
    whole = find_scale([one.cell for one in ranking.runs])
    shown = {known[one.number].run_id: _show(ranking, one, whole) for one in ranking.runs}
    simulated = "SIMULATED: " if ranking.is_simulated else ""
    titles = [f"{column.title}, {column.detail}" for column in view.columns]
    return ListRanking(
        order=(*shown, *(run.run_id for run in runs if run.run_id not in shown)),
        shown=shown,
        title=titles[0] if titles else capitalise(FIGURE_NAMES[ranking.key][1]),
        ranked=f"{simulated}{len(ranking.ranked):,} of {format_count(len(runs), 'run')} ranked",
        conditions="; ".join(text for _, text in view.lines),
    )


def _show(ranking: Ranking, one: RankedRun, whole: float) -> ShownRank:
    cell = build_cell(one.cell, ranking.measure, whole)
    if one.place is None:
        return ShownRank("", cell, describe_unranked(one))
    return ShownRank(f"{one.place}.", cell, ", ".join(filter(None, (cell.words, cell.interval))))


_NOT_KNOWN = "not known"


def name_capacity(run: ListedRun) -> str:
    """Return the nominal capacity of a drive, such as ``960 GB``, which is the capacity that vendors advertise."""
    return _NOT_KNOWN if run.row.capacity_bytes is None else name_size(run.row.capacity_bytes)


class Facet(NamedTuple):
    """A property with which the user can select runs. ``of`` returns the values of a run."""

    key: str
    title: str
    of: Callable[[ListedRun], tuple[str, ...]]


FACETS = (
    Facet("model", "Model", lambda run: (run.row.model or _NOT_KNOWN,)),
    Facet("firmware", "Firmware", lambda run: (run.row.firmware or _NOT_KNOWN,)),
    Facet("capacity", "Capacity", lambda run: (name_capacity(run),)),
    Facet("interface", "Interface", lambda run: (run.row.interface or _NOT_KNOWN,)),
    Facet("form", "Form factor", lambda run: (run.row.form_factor or _NOT_KNOWN,)),
    Facet("test", "Test", lambda run: run.row.tests),
    Facet("verdict", "Verdict", lambda run: (run.row.verdict,)),
    Facet("host", "Host", lambda run: (run.row.host or _NOT_KNOWN,)),
    Facet("month", "Month", lambda run: (run.row.month or _NOT_KNOWN,)),
)
_GRAVITY = {state.value: place for place, state in enumerate(VerdictState)}
# The sort orders of the list. In addresses, "-" before a key means that the greatest value is first. The default is
# ``DEFAULT_SORT``.
SORTS: Mapping[str, Callable[[ListedRun], object]] = {
    "date": lambda run: run.row.started_utc,
    "name": lambda run: run.row.name.casefold(),
    "drive": lambda run: (run.row.model.casefold(), run.row.serial, run.row.started_utc),
    "capacity": lambda run: (run.row.capacity_bytes or 0, run.row.interface, run.row.form_factor),
    "verdict": lambda run: _GRAVITY.get(run.row.verdict, 0),
    "host": lambda run: (run.row.host.casefold(), run.row.started_utc),
}
DEFAULT_SORT = "-date"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The selection that an address of the library describes.

    Attributes:
        chosen: the selected values of each facet. In each facet with selected values, a run must have one of these
            values.
        by: the figure of ``FIGURES`` according to which the list is ranked. If ``by`` is empty, the list has the order
            of ``sort``.
        sort: a key of ``SORTS``. With ``-`` before the key, the order is descending.
        page: the number of the page, counted from 1.
        ticked: IDs of runs that the user wants to compare. These runs may be on other pages.
    """

    words: str = ""
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by: str = ""
    sort: str = DEFAULT_SORT
    page: int = 1
    ticked: tuple[str, ...] = ()

    @property
    def is_narrow(self) -> bool:
        return bool(self.words or self.chosen)

    def address(self, **changes: object) -> str:
        """Return the address of this query with the given changes. The address leads to the first page, unless the
        changes contain another page.
        """
        query = replace(self, **{"page": 1, **changes})  # type: ignore[arg-type]
        pairs = [("q", query.words)] if query.words else []
        pairs += [(key, value) for key, values in query.chosen.items() for value in values]
        if query.by:
            pairs.append(("by", query.by))
        elif query.sort != DEFAULT_SORT:
            pairs.append(("sort", query.sort))
        if query.page > 1:
            pairs.append(("page", str(query.page)))
        pairs += [("run", run_id) for run_id in query.ticked]
        return f"/?{urlencode(pairs)}" if pairs else "/"

    def without(self, key: str, value: str) -> str:
        """Return the address without a selected value of a facet. For the key ``q``, return the address without the
        words of the search.
        """
        if key == "q":
            return self.address(words="")
        left = tuple(one for one in self.chosen.get(key, ()) if one != value)
        chosen = {**self.chosen, key: left}
        return self.address(chosen={key: values for key, values in chosen.items() if values})

    def sorted_by(self, key: str) -> str:
        """Return the address of the list in the order of a column. If the list already has this order, the address
        contains the reverse order. Dates are first sorted in descending order, and all other columns are first sorted
        in ascending order.
        """
        first = DEFAULT_SORT if key == "date" else key
        other = key if first.startswith("-") else f"-{key}"
        return self.address(by="", sort=other if self.sort == first and not self.by else first)


def parse_query(pairs: Iterable[tuple[str, str]]) -> Query:
    """Return the query that an address contains. Unknown parameters are ignored."""
    words, by, sort, page = "", "", DEFAULT_SORT, 1
    ticked: dict[str, None] = {}
    chosen: dict[str, dict[str, None]] = {}
    facets = {facet.key for facet in FACETS}
    for key, value in pairs:
        if key == "q":
            words = " ".join(value.split()[:MOST_WORDS])[:200].rstrip()
        elif key in facets and value:
            chosen.setdefault(key, {})[value] = None
        elif key == "by" and value in FIGURES:
            by = value
        elif key == "sort" and value.removeprefix("-") in SORTS:
            sort = value
        elif key == "page" and value.isdecimal() and len(value) < 7:
            page = max(1, int(value))
        elif key == "run" and len(ticked) < MOST_COMPARED:
            ticked[value[:64]] = None
    return Query(
        words=words,
        chosen={key: tuple(values) for key, values in chosen.items()},
        by=by,
        sort=sort,
        page=page,
        ticked=tuple(ticked),
    )


class Choice(NamedTuple):
    """A value of a facet, with the number of runs that remain if the user selects this value. Runs on simulated drives
    are counted separately.
    """

    value: str
    measured: int
    simulated: int
    chosen: bool


class Item(NamedTuple):
    """A row of the list. It contains a run, or a batch with those of its runs that were found."""

    runs: tuple[ListedRun, ...]
    batch: ListedBatch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """A page of the runs that a query finds.

    Attributes:
        measured, simulated, total: ``measured`` is the number of found runs on real drives, ``simulated`` is the number
            of found runs on simulated drives, and ``total`` is the number of all runs in the library.
        facets: facets with their values. If a facet has very many values, only the most frequent values are included.
        page, pages: ``page`` is the number of this page, limited to existing pages. ``pages`` is the number of pages.
    """

    items: tuple[Item, ...]
    measured: int
    simulated: int
    total: int
    facets: tuple[tuple[Facet, tuple[Choice, ...]], ...]
    page: int
    pages: int
    ranking: ListRanking | None = None


def select(listing: Listing, query: Query) -> FoundRuns:
    """Return the page of the runs that a query finds."""
    words = query.words.casefold().split()
    by_words = [run for run in listing.runs.values() if all(word in run.searched for word in words)]
    values = {run.run_id: [facet.of(run) for facet in FACETS] for run in by_words}
    chosen = {key: frozenset(of_facet) for key, of_facet in query.chosen.items()}
    missed = {
        run_id: [
            facet.key
            for facet, own in zip(FACETS, of_run, strict=True)
            if facet.key in chosen and chosen[facet.key].isdisjoint(own)
        ]
        for run_id, of_run in values.items()
    }
    found = [run for run in by_words if not missed[run.run_id]]
    ranking = rank_list(found, query.by) if query.by else None
    if ranking is None:
        items = _group(_sort(found, query.sort), listing, query)
    else:  # a ranked list shows runs one by one, because a batch would hide the places of its other runs
        items = [Item((listing.runs[run_id],)) for run_id in ranking.order]
    pages = _split(items)
    page = min(query.page, len(pages))
    simulated = sum(run.row.simulated for run in found)
    return FoundRuns(
        items=pages[page - 1],
        measured=len(found) - simulated,
        simulated=simulated,
        total=len(listing.runs),
        facets=tuple(
            (facet, _count(by_words, values, missed, place, chosen.get(facet.key, frozenset())))
            for place, facet in enumerate(FACETS)
        ),
        page=page,
        pages=len(pages),
        ranking=ranking,
    )


def _split(items: Iterable[Item]) -> list[tuple[Item, ...]]:
    """Return the rows, divided into pages. A page ends after PAGE_ITEMS rows. It ends earlier if its rows would
    otherwise contain more than PAGE_RUNS runs.
    """
    pages: list[list[Item]] = [[]]
    runs = 0
    for item in items:
        if len(pages[-1]) == PAGE_ITEMS or (pages[-1] and runs + len(item.runs) > PAGE_RUNS):
            pages.append([])
            runs = 0
        pages[-1].append(item)
        runs += len(item.runs)
    return [tuple(page) for page in pages]


def _count(
    runs: Sequence[ListedRun],
    values: Mapping[str, list[tuple[str, ...]]],
    missed: Mapping[str, list[str]],
    place: int,
    chosen: frozenset[str],
) -> tuple[Choice, ...]:
    """Return the values of a facet. Each value has the number of runs that match the selection in all other facets.
    Months are in descending order.
    """
    key = FACETS[place].key
    counts: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    for run in runs:
        if missed[run.run_id] in ([], [key]):
            counts[run.row.simulated].update(set(values[run.run_id][place]))
    most = (counts[False] + counts[True]).most_common(MOST_CHOICES)
    names = sorted({*dict(most), *chosen}, key=str.casefold, reverse=key == "month")
    return tuple(Choice(name, counts[False][name], counts[True][name], name in chosen) for name in names)


def _sort(runs: Sequence[ListedRun], sort: str) -> list[ListedRun]:
    key = SORTS[sort.removeprefix("-")]
    ordered = sorted(runs, key=lambda run: (run.row.name, run.run_id))
    return sorted(ordered, key=key, reverse=sort.startswith("-"))  # type: ignore[arg-type]


def _group(runs: Sequence[ListedRun], listing: Listing, query: Query) -> list[Item]:
    """Return the rows of the list. All runs of a batch are shown at the position of its first run.

    A batch of which no run was found follows at the end if no facet is selected and the batch matches the words of the
    search.
    """
    of_batches: dict[str, list[ListedRun]] = {}
    for run in runs:
        for batch_id in run.batch_ids:
            of_batches.setdefault(batch_id, []).append(run)
    items = []
    left = dict(of_batches)
    for run in runs:
        if not run.batch_ids:
            items.append(Item((run,)))
        for batch_id in run.batch_ids:
            if of_run := left.pop(batch_id, None):
                items.append(Item(tuple(of_run), listing.batches[batch_id]))
    if not query.chosen:
        words = query.words.casefold().split()
        items += [
            Item((), batch)
            for key, batch in listing.batches.items()
            if key not in of_batches and all(word in batch.searched for word in words)
        ]
    return items
