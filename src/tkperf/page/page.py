"""The parts a report is made of, as plain data; templates render them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tkperf.analysis.remarks import WarningGroup
from tkperf.render.charts.vega import Spec

Facts = tuple[tuple[str, str], ...]
Blocks = tuple[tuple[str, Facts], ...]
"""Named facts under a title each."""
Stretches = tuple[tuple[int, int], ...]
"""Of each the first place and the one after the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table of texts; ``notes`` are footnotes below.

    ``labels`` says how many cells at the start of each row are its name. ``links`` has, for each
    row, what a click on each cell after these opens (``address`` in naming.py), or ""; ``hints`` likewise what is
    told of it when it is pointed at. ``heat``, likewise, how strongly it is coloured, from 0 to 1 in one
    colour, from 0 to -1 in another, None not at all. ``folded``: a page shows it when asked.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1
    notes: tuple[str, ...] = ()
    links: tuple[tuple[str, ...], ...] = ()
    hints: tuple[tuple[str, ...], ...] = ()
    heat: tuple[tuple[float | None, ...], ...] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A chart, or one of several views of it; ``key`` is unique in the report, ``text`` says what it shows.

    Attributes:
        cell: the key of the ``CellView`` whose seconds it draws, so that zooming in shows more.
        below: it has the time axis of the chart before it, so a page shows it below that one, as long as
            that shows a view that is ``aligned``.
        question: that the chart answers; empty: nobody said which.
        choice: what the view is called, a name for each switch.
        others: more views, in their order; this one is shown first.
        printed: where nothing can be switched, it is shown as well as others.
    """

    key: str
    text: str
    spec: Spec
    cell: str = ""
    below: bool = False
    aligned: bool = False
    question: str = ""
    choice: tuple[str, ...] = ()
    others: tuple[ChartView, ...] = ()
    printed: bool = False

    @property
    def views(self) -> tuple[ChartView, ...]:
        """Itself and the others."""
        return (self, *self.others)

    @property
    def on_paper(self) -> tuple[ChartView, ...]:
        """The views that are shown where nothing can be switched: the first if none is meant for it."""
        alone = tuple(replace(view, others=()) for view in self.views)
        return tuple(view for view in alone if view.printed) or alone[:1]

    @property
    def switches(self) -> tuple[tuple[str, ...], ...]:
        """The names that each switch offers, in their order; one name is no switch."""
        if not self.others:
            return ()
        names = zip(*(view.choice for view in self.views), strict=True)
        return tuple(tuple(dict.fromkeys(of_switch)) for of_switch in names)


Views = Iterator[TableView | ChartView]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeView:
    """What of a cell can be shown: the window's rounds, all of them, its reads ...

    ``key`` stands for it in addresses, ``words`` in titles. ``parts`` are those in ``PartsView`` that it
    has; ``rows`` likewise the histograms that add up to its own. ``latencies`` are in us, by their short names.
    """

    key: str
    words: str
    facts: Facts
    marks: tuple[dict[str, object], ...]
    latencies: dict[str, float]
    parts: Stretches
    rows: Stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsView:
    """Each round, area or slice (``name``) of a cell by its number, as columns packed by ``pack``.

    They go from ``start_s`` to ``end_s``; ``seconds`` is where their seconds begin among the cell's, and where the last
    end. ``facts`` has a text for each part and name, ``latencies`` a number in us for each part and name. ``counts``
    has the histogram of each part, then of a mix those of its reads and its writes, in the
    buckets from ``lower`` to ``upper``; ``marks`` what is marked in them, by ``mark_names``.
    """

    name: str
    numbers: tuple[int, ...]
    start_s: str
    end_s: str
    seconds: str
    fact_names: tuple[str, ...]
    facts: str
    latency_names: tuple[str, ...]
    latencies: str
    mark_names: tuple[str, ...]
    lower: str = ""
    upper: str = ""
    counts: str = ""
    marks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """What a click on a cell opens: its numbers, every second, its histogram, its fio job.

    ``seconds`` and ``buckets`` are columns of numbers by name, each packed by ``pack``. ``scopes`` are what can
    be shown of it, what the section's figures are of first; ``buckets`` has the fine histogram of the one with key ``buckets_of``,
    ``apart`` each round, area or slice, None where there is nothing beside the whole. ``words`` say what the plots show. ``flagged`` are stretches that something else than the device
    had a part in; ``host`` is what the host did in each part, None where nobody looked.
    """

    key: str
    title: str
    rate: str
    seconds: dict[str, str]
    buckets: dict[str, str]
    buckets_of: str
    scopes: tuple[ScopeView, ...]
    window: tuple[dict[str, object], ...]
    parts: tuple[dict[str, object], ...]
    rounds: TableView | None
    words: str
    job: str
    apart: PartsView | None = None
    flagged: tuple[dict[str, object], ...] = ()
    host: TableView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionView:
    """A section of a test; ``over_time`` are sentences on what shows over its rounds or seconds."""

    key: str
    title: str
    state: str
    summary: str
    determination: TableView | None
    tables: tuple[TableView, ...]
    charts: tuple[ChartView, ...]
    over_time: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseView:
    """What happened over a test's time, by the clock."""

    tables: tuple[TableView, ...] = ()
    charts: tuple[ChartView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestView:
    """A test: its procedure in words and as pseudo code, its sections, tables and charts of all of it.

    ``course`` is what was done to the device over the test's time, and what the device told of itself meanwhile: it
    stands below the answers. ``header`` is what stands on top of its printed pages, block by block.
    """

    __test__ = False

    key: str
    title: str
    facts: Facts
    sections: tuple[SectionView, ...]
    procedure: str = ""
    tables: tuple[TableView, ...] = ()
    charts: tuple[ChartView, ...] = ()
    course: CourseView = CourseView()
    header: Blocks = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineView:
    """A figure asked for first; ``exact`` is it in full, ``cell`` the key of what lies behind it, or empty."""

    label: str
    text: str
    exact: str
    sure: str
    verdict: str
    alarm: bool
    test: str
    section: str
    cell: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsView:
    """What a test found: sentences without their full stops, each with whether it is an alarm."""

    key: str
    title: str
    sentences: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """The whole report. ``banners`` stand on top of every page; ``claims`` is None without any.

    ``headlines`` and ``findings`` are the answer; ``grouped_warnings`` stand below it, ``warnings_line`` says how
    many they are of what. ``about`` stands at the top, and, with ``header`` on pages that are of no test, on top of printed
    pages. ``answer`` has the sentences, ``overview`` and its charts the figures of a comparison. ``words`` explain what the figures are. ``cells`` may be built only when they are looked at. ``cell_charts`` are the charts that a ``CellView`` is drawn with, by name, without data.
    """

    title: str
    subtitle: str
    banners: tuple[str, ...]
    disclosure: Blocks
    tests: tuple[TestView, ...]
    words: tuple[str, ...]
    about: str = ""
    header: Blocks = ()
    headlines: tuple[HeadlineView, ...] = ()
    findings: tuple[FindingsView, ...] = ()
    warnings_line: str = ""
    grouped_warnings: tuple[WarningGroup, ...] = ()
    answer: tuple[str, ...] = ()
    overview: tuple[TableView, ...] = ()
    overview_charts: tuple[ChartView, ...] = ()
    claims: TableView | None = None
    cells: Iterable[CellView] = ()
    cell_charts: dict[str, Spec] | None = None
