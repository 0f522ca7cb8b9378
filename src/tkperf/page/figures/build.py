"""Build the tables and charts that a section's plan asks for."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.model.figures import Figure, FigureKind
from tkperf.page.figures import areas, cells, over_time, response_times
from tkperf.page.figures.joining import join_charts, name_views
from tkperf.page.page import ChartView, TableView, Views
from tkperf.page.subject import SectionSubject


def build_figures(subject: SectionSubject) -> tuple[tuple[TableView, ...], tuple[ChartView, ...]]:
    """Return the tables and charts that the section's plan asks for, as far as they have something to show."""
    tables: list[TableView] = []
    charts: list[ChartView] = []
    for figure in subject.section.plan.figures:
        views = list(BUILD[figure.kind](subject, figure))
        tables += (view for view in views if isinstance(view, TableView))
        charts += name_views(figure, (view for view in views if isinstance(view, ChartView)))
    return tuple(tables), join_charts(charts, subject.key)


BUILD: dict[FigureKind, Callable[[SectionSubject, Figure], Views]] = {
    FigureKind.MATRIX: cells.show_matrix,
    FigureKind.LISTING: cells.show_listing,
    FigureKind.OVER_ROUNDS: over_time.show_over_rounds,
    FigureKind.WINDOW: over_time.show_window,
    FigureKind.OVER_AXIS: cells.show_over_axis,
    FigureKind.BARS_3D: cells.show_bars_3d,
    FigureKind.AGAINST: cells.show_against,
    FigureKind.OVER_DEMAND: cells.show_over_demand,
    FigureKind.OVER_TIME: over_time.show_over_time,
    FigureKind.OVER_WRITTEN: over_time.show_over_written,
    FigureKind.OVER_FILLS: over_time.show_over_fills,
    FigureKind.SECONDS: over_time.show_seconds,
    FigureKind.HISTOGRAM: response_times.show_histogram,
    FigureKind.EXCEEDANCE: response_times.show_exceedance,
    FigureKind.OVER_AREAS: areas.show_over_areas,
    FigureKind.SPREAD: areas.show_spread,
}
