"""Define the parts of a report as plain data. Templates render these parts."""

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
"""Blocks of named facts. Each block has a title."""
Stretches = tuple[tuple[int, int], ...]
"""Ranges of numbers. Each range consists of its first number and the number after its last number."""

# A pattern that matches a figure, or the sign for a value that was not measured.
_FIGURE = re.compile(r"-$|$|[(]?[-+\N{MINUS SIGN}<>≤≥]?\s?[0-9]")

MOST_ROWS, FEW_MORE = 10, 4
"""The number of rows that a long table of steps shows at first. If a table has only a few more rows, it shows all
rows.
"""
# All rows of a sweep are shown at once. A sweep has no more than 1,024 rows (MOST_COMBINATIONS in
# procedures/workload_sweep.py).
MOST_ROWS_AT_ONCE = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table of texts.

    Attributes:
        labels: number of cells at the start of each row that form the name of the row.
        notes: footnotes below the table.
        targets: for each row, the ID of the place on the page to which the name of the row links, or "".
        pages: for each row, the file, in the folder of the page, to which the name of the row links, or "".
        strips: for each row, a bar that shows the first values of the row, or None. If the tuple is empty, the table
            has no column of bars.
        ids: for each row, the IDs of the first cells after the labels, or "".
        links: for each row, the addresses that open when a user clicks on a cell after the labels (``address`` in
            naming.py), or "". An address with ``#`` belongs to another page.
        hints: for each cell, the text that appears under the pointer.
        heat: for each cell, the strength of its colour from 0 to 1, or None for a cell without colour.
        levels: for each cell, the severity of its content, or None for content without severity.
        folded: whether a page shows the table only when the user opens it.
        stepwise: whether the rows are steps of one course over time, so that a few rows are enough to show the course.
        priorities: the rank of each column. If there is not enough space for all columns, the column with the greatest
            rank is omitted first. A column with rank 0 is never omitted. A table with ranks is a list, in which each
            row remains one line. Without ranks, all columns are shown.
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
        """Return the table with only these columns. The columns are numbered from the first label on."""
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
        """Return, for each column, whether every cell of the column is a figure or was not measured. Such a column is
        aligned to the right.
        """
        return tuple(all(_FIGURE.match(row[column]) for row in self.rows) for column in range(len(self.columns)))

    @property
    def lead(self) -> Sequence[int]:
        """Return the numbers of the rows that are shown first.

        Usually these are all rows. For a table with many steps, these are a selection of the rows from the first to the
        last. If a table is longer than any sweep, these are its first rows.
        """
        count = len(self.rows)
        if not self.stepwise or count <= MOST_ROWS + FEW_MORE:
            return range(min(count, MOST_ROWS_AT_ONCE))
        return tuple(round(place * (count - 1) / (MOST_ROWS - 1)) for place in range(MOST_ROWS))

    @property
    def on_paper(self) -> TableView:
        """Return the table with only those rows that are printed. A reader of a printed page cannot unfold a table.

        For a long table, the printed rows are those of ``lead`` if the rows are steps. Otherwise they are the first
        rows.
        """
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
"""The text of a cell and the severity of its content. The severity is None if the content has no severity."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table.

    Attributes:
        cell: returns the cell of a row. The cell is a text, or a text with its severity.
        rank: if there is not enough space for all columns, the column with the greatest rank is omitted first. A column
            with rank 0 is never omitted.
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
        labels: number of columns that name the row. Their cells have no severity.
        pages, links: the same as in ``TableView``.
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
    """Return a cell with its severity. If a cell is only a text, its severity is None."""
    return (cell, None) if isinstance(cell, str) else cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A remark, which consists of a text, details on separate lines, and a command that the user can copy. Each of
    these parts may be empty.
    """

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
    """A chart, or one of several views of the same chart.

    Attributes:
        key: a key that is unique in the report.
        text: the description of the chart.
        cell: the key of the ``CellView`` whose one-second samples the chart shows. The user can then zoom in to see
            more details.
        below: whether the chart uses the time axis of the preceding chart. A page shows this chart below the preceding
            chart while the preceding chart shows an ``aligned`` view.
        question: the question that the chart answers; empty if no plan contains a question.
        figure: the figure in the plan of the test that the chart shows; None if no plan requests the chart.
        choice: the name of the view, with one part for each switch.
        others: the other views in their order. This view is shown first.
        printed: whether this view is printed. A printed page has no switches, so several views can be printed.
        on_screen_only: whether the view is omitted on printed pages. There, another view shows the values that
            specifications require.
        small: whether the chart is one of many similar charts, several of which fit into a row.
        level: a sentence that replaces the chart on a page if all curves are level; otherwise empty.
        file_name: the file name for the picture of the chart, without an extension. It consists of the run and the
            chart, and is unique on the page.
        source: drive, load and date, which are shown with a picture outside the page.
        stream: name of the stream whose values the chart draws; empty for a load that ran alone.
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
    on_screen_only: bool = False
    small: bool = False
    level: str = ""
    file_name: str = ""
    source: str = ""
    stream: str = ""

    @property
    def caption(self) -> str:
        """Return the description without the title of the chart, because the title is shown above the description."""
        rest = self.text.removeprefix(f"{self.chart.title}: ")
        return rest if rest == self.text else capital(rest)

    @property
    def aligned(self) -> bool:
        """Return whether charts of the same period can be placed below this chart."""
        return isinstance(self.chart, Chart) and self.chart.aligned

    @property
    def views(self) -> tuple[ChartView, ...]:
        """Return this view, followed by the other views."""
        return (self, *self.others)

    @property
    def on_paper(self) -> tuple[ChartView, ...]:
        """Return the views for printed pages, which have no switches. These are the views that are marked as printed.
        If no view is marked, return the first view.
        """
        alone = tuple(replace(view, others=()) for view in self.views)
        printed = tuple(view for view in alone if view.printed)
        return printed or tuple(view for view in alone if not view.on_screen_only)[:1]

    def opened_at(self, view: ChartView) -> ChartView:
        """Return the chart with ``view`` as its first view."""
        others = (replace(one, others=()) for one in self.views if one.key != view.key)
        return replace(view, others=tuple(others), below=self.below)

    @property
    def switches(self) -> tuple[tuple[str, ...], ...]:
        """Return the names that each switch offers, in their order. If there is a single name, no switch is needed."""
        if not self.others:
            return ()
        names = zip(*(view.choice for view in self.views), strict=True)
        return tuple(tuple(dict.fromkeys(of_switch)) for of_switch in names)


Views = Iterator[TableView | ChartView]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartShownView:
    """A part of a cell that the dialog of the cell can show, such as the rounds of the window, all rounds, or the
    reads.

    Attributes:
        key: name of the part in addresses.
        words: name of the part in titles.
        latencies: latencies in µs, with their short names as the keys.
        parts: the indexes, in ``PartsView``, of the rounds, areas or slices that belong to the part.
        rows: the indexes of the histograms whose sum is the histogram of the part.
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
    """The parts of a cell. Each part is a round, an area or a slice (``name``) with a number. ``pack`` packs the
    columns.

    Attributes:
        start_s: start of each part.
        end_s: end of each part.
        seconds: for each part, the index of its first sample among the one-second samples of the cell, followed by the
            index after the last sample.
        facts: a text for each part and each name.
        latencies: a latency in µs for each part and each name.
        lower: lower edges of the buckets.
        upper: upper edges of the buckets.
        counts: the histogram of each part. For a mix, the histograms of the parts are followed by the histograms of the
            reads and those of the writes.
        marks: marked values in each histogram, in the order of ``mark_names``.
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
    """The content that opens when a user clicks on a cell: the numbers, every second, the histogram, and the fio job.

    Attributes:
        seconds: columns of one-second samples, with their names as the keys. ``pack`` packs each column.
        buckets: the fine histogram of the part with the key ``buckets_of``, packed in the same way.
        scopes: the parts that can be shown. The figures of the section describe the first part.
        words: the explanation of the plots.
        apart: the values of each round, area or slice; None if the cell cannot be divided into parts.
        flagged: ranges of seconds in which the values may not show the performance of the device alone.
        host: the activity of the host in each part; None if the activity was not recorded.
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
    """A section of a test.

    Attributes:
        over_time: sentences about changes within the section over rounds or seconds.
        load: the properties that all loads of the section share, such as ``random, TC2/QD16``.
        is_brief: whether only the sentences of the section are printed. This is the case if the section only prepares
            the device and was not judged by a rule.
    """

    key: str
    title: str
    state: str
    summary: str
    determination: TableView | None
    tables: tuple[TableView, ...]
    charts: tuple[ChartView, ...]
    over_time: tuple[str, ...] = ()
    load: str = ""
    is_brief: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsView:
    """Events during a test, in chronological order."""

    tables: tuple[TableView, ...] = ()
    charts: tuple[ChartView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineView:
    """A headline figure of a run or of many drives.

    Attributes:
        exact: the value with all its digits.
        test, section: title of the test, and key of the section or test. Both are empty for several drives, or if the
            figure was not measured.
        load: the load of a fixed figure, such as ``4 KiB, TC2/QD16``; empty if the label contains the load.
        also: values that belong to the figure of a stream, such as ``p99 281 µs``; empty if the load ran alone.
        needs_attention: whether this is the finding that a reader must know together with the six figures of a run.
        cell: the key of the cell of the figure, or empty.
        strip: the values of many drives, or None for a figure of one run. If there is a strip, ``text`` is the median
            of these values.
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
    load: str = ""
    needs_attention: bool = False
    also: str = ""

    @property
    def remark(self) -> str:
        """Return the additional values for the figure of a stream, and the verdict."""
        return "; ".join(filter(None, (self.also, self.verdict)))

    @property
    def name(self) -> str:
        """Return the label together with the load."""
        return f"{self.label}, {self.load}" if self.load else self.label

    @property
    def origin(self) -> str:
        """Return the title of the test to which the figure belongs, without the remarks in brackets."""
        return self.test.split(" (")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestView:
    """The content about a test: its procedure in words and as pseudo code, its sections, and the tables and charts of
    the whole test.

    Attributes:
        headlines: the figures of many drives. Each figure contains a ``strip`` with a dot for each drive.
        events: the load on the device during the test, and the reports of the drives. A page shows these charts below
            the charts that answer questions.
        sheet: the name at the top of the test's printed pages; empty to use the title.
        header: the facts at the beginning of the printed test, block by block.
        load: the properties that the loads of all sections share.
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
    load: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsView:
    """Findings of a test as sentences without full stops. Each sentence has a flag that marks an alarm."""

    key: str
    title: str
    sentences: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """A whole report.

    Attributes:
        banners: facts that every reader must know and that are not part of the verdict.
        stamp: all banners, including those that the verdict contains. If ``stamp`` is empty, only ``banners`` are used.
        words: the explanation of the figures.
        colours: the explanation of the colours in tables, for outputs with colours; empty if no table has colours.
        about: a text at the top of the page and of each printed page.
        device: vendor, model and further facts about the device, or the names of the runs. This text appears with
            ``about`` at the top of printed pages.
        footer: a text at the bottom of printed pages.
        set_up_line: the demand, the active range, the preparation and the window of a run. A page shows this line below
            the verdict.
        date: the day of the run in UTC; empty if the day is not known, or if the page covers several runs.
        verdict: the verdict at the beginning of the page.
        headlines: the headline figures, which are shown together with ``findings``.
        opening_chart: the chart below the headline figures of a run, which is a copy of a chart of a test.
        warnings_line: a line with the number of warnings of each kind.
        grouped_warnings: the warnings, which appear below the findings.
        answer: the sentences of a comparison.
        decision: the content at the beginning of a comparison, together with ``lead_charts``. The page shows all other
            parts only when the user opens them.
        overview: tables and remarks of a page that is not about a single run. The page shows them together with
            ``overview_charts``.
        claims: the table of the claims; None if there are no claims.
        cells: the cells. A cell may be built only during the iteration.
        cell_charts: the charts of a ``CellView`` without data, with their names as the keys.
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
    set_up_line: str = ""
    date: str = ""
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
        """Return the tables of the overview."""
        return tuple(block for block in self.overview if isinstance(block, TableView))
