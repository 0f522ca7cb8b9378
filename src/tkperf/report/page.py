"""The parts a report is made of, as plain data; templates render them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tkperf.report.charts.vega import Spec

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table of texts; ``notes`` are footnotes below.

    ``labels`` says how many cells at the start of each row are its name. ``links`` has, for each
    row, the key of the ``CellView`` behind each cell after these, or ""; ``hints`` likewise what is
    told of it when it is pointed at. ``folded``: a page shows it
    when asked.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1
    notes: tuple[str, ...] = ()
    links: tuple[tuple[str, ...], ...] = ()
    hints: tuple[tuple[str, ...], ...] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A chart; ``key`` is unique in the report, ``text`` says in words what it shows.

    ``cell`` is the key of the ``CellView`` whose seconds it draws, so that zooming in shows more. ``below``: it has
    the time axis of the chart before it, so a page shows it below that one.
    """

    key: str
    text: str
    spec: Spec
    cell: str = ""
    below: bool = False


Views = Iterator[TableView | ChartView]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """What a click on a cell opens: its numbers, every second, its histogram, its fio job.

    ``seconds`` and ``buckets`` are columns of numbers by name, each packed by ``pack``. ``words``
    say what the plots show. ``part_buckets`` has the histogram of each round, area or slice
    (``part_name``) of ``part_numbers``: edges, and for each part its counts and what is
    marked, by the names of ``part_marks``. ``flagged`` are stretches that something else than the device
    had a part in; ``host`` is what the host did in each part, None where nobody looked.
    """

    key: str
    title: str
    facts: Facts
    rate: str
    seconds: dict[str, str]
    buckets: dict[str, str]
    marks: tuple[dict[str, object], ...]
    window: tuple[dict[str, object], ...]
    parts: tuple[dict[str, object], ...]
    rounds: TableView | None
    words: str
    job: str
    part_name: str = ""
    part_numbers: tuple[int, ...] = ()
    part_buckets: dict[str, str] = field(default_factory=dict)
    part_marks: tuple[str, ...] = ()
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
class TestView:
    """A test: its procedure in words and as pseudo code, its sections, tables and charts of all of it.

    ``header`` replaces facts of the page header on its pages.
    """

    __test__ = False

    key: str
    title: str
    facts: Facts
    sections: tuple[SectionView, ...]
    procedure: str = ""
    tables: tuple[TableView, ...] = ()
    charts: tuple[ChartView, ...] = ()
    header: Facts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """A section at a glance: its state and its most telling numbers; ``figures`` are name, value."""

    key: str
    title: str
    state: str
    summary: str
    figures: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """The whole report. ``banners`` stand on top of every page; ``claims`` is None without any.

    ``words`` explain what the figures are. ``cell_charts`` are the charts that a ``CellView`` is drawn with, by name, without data.
    """

    title: str
    subtitle: str
    banners: tuple[str, ...]
    warnings: tuple[str, ...]
    disclosure: tuple[tuple[str, Facts], ...]
    cards: tuple[CardView, ...]
    tests: tuple[TestView, ...]
    words: tuple[str, ...]
    overview: TableView | None = None
    claims: TableView | None = None
    cells: tuple[CellView, ...] = ()
    cell_charts: dict[str, Spec] | None = None
