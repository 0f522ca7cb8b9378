"""Parts of a report as plain data; templates render them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tkperf.model.figures import Figure
from tkperf.model.units import capital
from tkperf.page.chart import AnyChart, Chart, Marked, Rule, Shade
from tkperf.page.matrix import DecisionView
from tkperf.page.strip import Strip
from tkperf.page.verdict_texts import NoteLevel, Verdict
from tkperf.page.words.run import WarningGroup

Facts = tuple[tuple[str, str], ...]
FactBlocks = tuple[tuple[str, Facts], ...]
"""Blocks of named facts, each under a title."""
Stretches = tuple[tuple[int, int], ...]
"""Stretches of places: the first place of each, and the place after its last."""

# A figure, or nothing measured.
_FIGURE = re.compile(r"-$|$|[(]?[-+\N{MINUS SIGN}<>≤≥]?\s?[0-9]")

MOST_ROWS, FEW_MORE = 10, 4
"""A long table of steps shows so many at first; one with only a few more shows all."""
# A sweep has at most 1,024 rows (MOST_COMBINATIONS in procedures/workload_sweep.py).
MOST_ROWS_AT_ONCE = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table of texts.

    Attributes:
        labels: number of cells at the start of each row that are its name.
        notes: footnotes below the table.
        targets: for each row the id of the place on the page that its name leads to, or "".
        pages: for each row the file that its name leads to, next to the page, or "".
        strips: for each row a bar that shows its first values, or None; without any there is no such column.
        ids: likewise the ids of its first further cells, or "".
        links: for each row the address that a click on each further cell opens (``address`` in naming.py), or "";
            with ``#`` in it, of another page.
        hints: likewise the text that a cell shows under the pointer.
        heat: likewise the strength of its colour, 0 to 1; None without colour.
        levels: likewise the weight of what the cell shows; None without any.
        folded: a page shows the table on demand.
        stepwise: its rows are steps of one course, so that a few show it.
        priorities: for each column its rank where there is no room for all: the greatest goes first, 0 never. Such
            a table is a list whose rows stay lines; without ranks all columns are shown.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1
    notes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    strips: tuple[Strip | None, ...] = ()
    ids: tuple[tuple[str, ...], ...] = ()
    links: tuple[tuple[str, ...], ...] = ()
    hints: tuple[tuple[str, ...], ...] = ()
    heat: tuple[tuple[float | None, ...], ...] = ()
    levels: tuple[tuple[NoteLevel | None, ...], ...] = ()
    folded: bool = False
    stepwise: bool = False
    priorities: tuple[int, ...] = ()

    def take(self, numbers: Sequence[int]) -> TableView:
        """Return a list with these columns alone, which include its labels."""
        cells = [number - self.labels for number in numbers if number >= self.labels]
        return replace(
            self,
            columns=tuple(self.columns[number] for number in numbers),
            rows=tuple(tuple(row[number] for number in numbers) for row in self.rows),
            levels=tuple(tuple(row[number] for number in cells) for row in self.levels),
            priorities=tuple(self.priorities[number] for number in numbers),
        )

    @property
    def numeric(self) -> tuple[bool, ...]:
        """For each column whether all its cells are figures, or not measured: figures are aligned, words read."""
        return tuple(all(_FIGURE.match(row[column]) for row in self.rows) for column in range(len(self.columns)))

    @property
    def lead(self) -> Sequence[int]:
        """Return the rows that are shown first: all, or of many steps some from the first to the last.

        Of a table that is longer than any sweep, these are the first rows.
        """
        count = len(self.rows)
        if not self.stepwise or count <= MOST_ROWS + FEW_MORE:
            return range(min(count, MOST_ROWS_AT_ONCE))
        return tuple(round(place * (count - 1) / (MOST_ROWS - 1)) for place in range(MOST_ROWS))

    @property
    def on_paper(self) -> TableView:
        """Return the table with the rows for paper, which cannot unfold: the lead, of other long tables the first."""
        count = len(self.rows)
        places = self.lead if self.stepwise or count <= MOST_ROWS + FEW_MORE else range(MOST_ROWS)
        if len(places) == count:
            return self
        more = f"{count - len(places)} more rows in the HTML report"
        return replace(
            self,
            rows=tuple(self.rows[place] for place in places),
            heat=tuple(self.heat[place] for place in places) if self.heat else (),
            strips=tuple(self.strips[place] for place in places) if self.strips else (),
            notes=(more, *self.notes),
        )


Row = TypeVar("Row")
Cell = tuple[str, NoteLevel | None]
"""The text of a cell, and the weight of what it shows; None: none."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table.

    Attributes:
        cell: makes the cell of a row: a text, or a text with its weight.
        rank: where there is no room for all columns, the column with the greatest rank goes first, 0 never.
    """

    title: str
    cell: Callable[[Row], str | Cell]
    rank: int = 0


def build_table(
    title: str,
    rows: Sequence[Row],
    columns: Sequence[Column[Row]],
    *,
    labels: int = 1,
    notes: Sequence[str] = (),
    pages: Sequence[str] = (),
    links: Sequence[tuple[str, ...]] = (),
) -> TableView:
    """Return a table with a row for each item.

    Args:
        labels: number of columns that name the row. Their cells have no weight.
        pages, links: as in ``TableView``.
    """
    cells = [[weigh(column.cell(row)) for column in columns] for row in rows]
    ranks = tuple(column.rank for column in columns)
    return TableView(
        title=title,
        columns=tuple(column.title for column in columns),
        rows=tuple(tuple(text for text, _ in of_row) for of_row in cells),
        labels=labels,
        notes=tuple(notes),
        pages=tuple(pages),
        links=tuple(links),
        levels=tuple(tuple(level for _, level in of_row[labels:]) for of_row in cells),
        priorities=ranks if any(ranks) else (),
    )


def weigh(cell: str | Cell) -> Cell:
    """Return a cell with its weight."""
    return (cell, None) if isinstance(cell, str) else cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A remark: its text, details on lines of their own, and a command to copy; any may be empty."""

    text: str
    level: NoteLevel = NoteLevel.INFORMATION
    details: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesView:
    """A list of remarks."""

    title: str
    notes: tuple[Note, ...]
    folded: bool = False


Block = TableView | NotesView


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A chart, or one of its several views.

    Attributes:
        key: unique in the report.
        text: describes the chart.
        cell: the key of the ``CellView`` whose seconds it draws, so that zooming in shows more.
        below: it has the time axis of the chart before it. A page shows it below that chart, as long as
            that chart shows a view that is ``aligned``.
        question: the question that the chart answers; empty: no plan gives one.
        figure: the figure of the test's plan that it draws; None: no plan asks for it.
        choice: the name of the view, a name for each switch.
        others: more views, in their order; this one is shown first.
        printed: paper, which has no switches, shows this view in addition to other printed ones.
        small: one of many alike, several of which fit into a row.
    """

    key: str
    text: str
    chart: AnyChart
    cell: str = ""
    below: bool = False
    question: str = ""
    figure: Figure | None = None
    choice: tuple[str, ...] = ()
    others: tuple[ChartView, ...] = ()
    printed: bool = False
    small: bool = False

    @property
    def caption(self) -> str:
        """Return the description without the chart's title, below which it is shown."""
        rest = self.text.removeprefix(f"{self.chart.title}: ")
        return rest if rest == self.text else capital(rest)

    @property
    def aligned(self) -> bool:
        """Return whether charts of the same time fit below it."""
        return isinstance(self.chart, Chart) and self.chart.aligned

    @property
    def views(self) -> tuple[ChartView, ...]:
        """Return this view and the others."""
        return (self, *self.others)

    @property
    def on_paper(self) -> tuple[ChartView, ...]:
        """Return the views for paper, which has no switches: the printed ones, or else the first."""
        alone = tuple(replace(view, others=()) for view in self.views)
        return tuple(view for view in alone if view.printed) or alone[:1]

    def opened_at(self, view: ChartView) -> ChartView:
        """Return the chart with another of its views shown first."""
        others = (replace(one, others=()) for one in self.views if one.key != view.key)
        return replace(view, others=tuple(others), below=self.below)

    @property
    def switches(self) -> tuple[tuple[str, ...], ...]:
        """Return the names that each switch offers, in their order; a single name is no switch."""
        if not self.others:
            return ()
        names = zip(*(view.choice for view in self.views), strict=True)
        return tuple(tuple(dict.fromkeys(of_switch)) for of_switch in names)


Views = Iterator[TableView | ChartView]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartShownView:
    """A part of a cell that its dialog can show: the window's rounds, all of them, its reads ...

    Attributes:
        key: name of the part in addresses.
        words: name of the part in titles.
        latencies: in us, by their short names.
        parts: its parts in ``PartsView``.
        rows: likewise the histograms that add up to its own.
    """

    key: str
    words: str
    facts: Facts
    marks: tuple[Marked, ...]
    latencies: dict[str, float]
    parts: Stretches
    rows: Stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsView:
    """Parts of a cell, each a round, area or slice (``name``) by its number, as columns packed by ``pack``.

    Attributes:
        start_s: start of each part.
        end_s: end of each part.
        seconds: index of each part's first second among the cell's seconds, and the end of the last part's.
        facts: a text for each part and name.
        latencies: a number in us for each part and name.
        lower: lower edges of the buckets.
        upper: upper edges of the buckets.
        counts: the histogram of each part, for a mix followed by the histograms of its reads and its writes.
        marks: marked values in each histogram, by ``mark_names``.
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
    """A cell that a click opens: its numbers, every second, its histogram, its fio job.

    Attributes:
        seconds: columns of numbers by name, each packed by ``pack``.
        buckets: likewise; the fine histogram of the scope with the key ``buckets_of``.
        scopes: its parts to show, first the part that the section's figures describe.
        words: explain the plots.
        apart: each round, area or slice; None if the cell has nothing but the whole.
        flagged: stretches that were not the device's work alone.
        host: the host's work in each part; None without a record of it.
    """

    key: str
    title: str
    rate: str
    seconds: dict[str, str]
    buckets: dict[str, str]
    buckets_of: str
    scopes: tuple[PartShownView, ...]
    window: tuple[Shade, ...]
    parts: tuple[Rule, ...]
    rounds: TableView | None
    words: str
    job: str
    apart: PartsView | None = None
    flagged: tuple[Shade, ...] = ()
    host: TableView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionView:
    """A section of a test; ``over_time`` are sentences on its course over rounds or seconds."""

    key: str
    title: str
    state: str
    summary: str
    determination: TableView | None
    tables: tuple[TableView, ...]
    charts: tuple[ChartView, ...]
    over_time: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsView:
    """Events of a test's time, by the clock."""

    tables: tuple[TableView, ...] = ()
    charts: tuple[ChartView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineView:
    """A headline figure, of a run or of many drives.

    Attributes:
        exact: its full value.
        test, section: keys of its test and section; empty: those of several drives.
        cell: the key of the cell behind it, or empty.
        strip: the values of many drives, of which ``text`` is the median; None: it is a figure of one run.
    """

    label: str
    text: str
    exact: str
    sure: str
    verdict: str
    alarm: bool
    test: str
    section: str
    cell: str = ""
    strip: Strip | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestView:
    """A test: its procedure in words and as pseudo code, its sections, tables and charts of all of it.

    Attributes:
        headlines: the figures of many drives, each with its strip.
        events: the load on the device over the test's time, and the drives' own reports meanwhile; it comes
            below the answers.
        sheet: the name on top of its printed pages; empty: its title.
        header: the facts at the beginning of its print, block by block.
    """

    __test__ = False

    key: str
    title: str
    facts: Facts
    sections: tuple[SectionView, ...]
    procedure: str = ""
    tables: tuple[TableView, ...] = ()
    charts: tuple[ChartView, ...] = ()
    headlines: tuple[HeadlineView, ...] = ()
    events: EventsView = EventsView()
    sheet: str = ""
    header: FactBlocks = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsView:
    """Findings of a test: sentences without their full stops, each with a flag for an alarm."""

    key: str
    title: str
    sentences: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """A whole report.

    Attributes:
        banners: every reader must know them, and the verdict does not say them.
        stamp: the banners with those that the verdict says; empty: the banners alone.
        words: explain the figures.
        colours: explains the colours of tables, for an output that has them; empty: no table has any.
        about: appears at the top, and on top of printed pages.
        device: vendor, model ..., or the runs; appears with ``about`` on top of printed pages.
        footer: appears at the bottom of printed pages.
        verdict: opens the page.
        headlines: the answer, together with ``findings``.
        opening_chart: the chart below the headlines of a run; it is one of a test's charts again.
        warnings_line: counts the warnings by kind.
        grouped_warnings: appear below the answer.
        answer: the sentences of a comparison.
        decision: opens a comparison, together with ``lead_charts``; the rest of such a page is shown on demand.
        overview: tables and remarks of a page about something other than one run, with ``overview_charts``.
        claims: None without any.
        cells: may be built on iteration.
        cell_charts: the charts that draw a ``CellView``, by name, without data.
    """

    title: str
    verdict: Verdict
    subtitle: str = ""
    banners: tuple[str, ...] = ()
    disclosure: FactBlocks = ()
    tests: tuple[TestView, ...] = ()
    words: tuple[str, ...] = ()
    stamp: tuple[str, ...] = ()
    colours: str = ""
    about: str = ""
    device: str = ""
    footer: str = ""
    headlines: tuple[HeadlineView, ...] = ()
    opening_chart: ChartView | None = None
    findings: tuple[FindingsView, ...] = ()
    warnings_line: str = ""
    grouped_warnings: tuple[WarningGroup, ...] = ()
    answer: tuple[str, ...] = ()
    decision: DecisionView | None = None
    lead_charts: tuple[ChartView, ...] = ()
    overview: tuple[Block, ...] = ()
    overview_charts: tuple[ChartView, ...] = ()
    claims: TableView | None = None
    cells: Iterable[CellView] = ()
    cell_charts: dict[str, AnyChart] | None = None

    @property
    def tables(self) -> tuple[TableView, ...]:
        """The tables of the overview."""
        return tuple(block for block in self.overview if isinstance(block, TableView))
