"""The parts a report is made of, as plain data; a template renders them."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.report import charts


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table; ``cells`` hold text, ``marks`` are footnotes below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A chart; ``key`` is unique in the report, ``text`` says in words what it shows."""

    key: str
    text: str
    spec: charts.Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionView:
    key: str
    title: str
    state: str
    summary: str
    determination: TableView | None
    tables: tuple[TableView, ...]
    charts: tuple[ChartView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestView:
    __test__ = False

    key: str
    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[SectionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """The whole report. ``banners`` stand on top of every page; ``claims`` is None without any."""

    title: str
    subtitle: str
    banners: tuple[str, ...]
    warnings: tuple[str, ...]
    disclosure: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    overview: TableView
    tests: tuple[TestView, ...]
    claims: TableView | None = None
