"""Build the tables and charts that the plan of a section requests. Charts with the same question are joined into one
chart with several views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tkperf.analysis.timeline.timelines import Timeline
from tkperf.model.figures import Figure, FigureKind
from tkperf.model.quantity import LATENCY_MAX
from tkperf.page.figures import cells, curves, interference_charts, over_time
from tkperf.page.page import ChartView, TableView, Views
from tkperf.page.shown_section import ShownSection

# A sweep has no more than 1,024 workloads (MOST_COMBINATIONS in procedures/workload_sweep.py). In a chart with more
# workloads, the lines could not be distinguished. The tables contain all workloads.
MOST_DRAWN_WORKLOADS = 1200
_TABLES = (FigureKind.MATRIX, FigureKind.LISTING)
_OVER_TIME = (FigureKind.OVER_TIME, FigureKind.SECONDS, FigureKind.TIMELINE)


def build_figures(shown: ShownSection) -> tuple[tuple[TableView, ...], tuple[ChartView, ...]]:
    """Return the tables and charts that the plan of the section requests. Empty tables and charts are omitted."""
    tables: list[TableView] = []
    charts: list[ChartView] = []
    is_drawn = len(shown.section.cells) <= MOST_DRAWN_WORKLOADS
    for figure in shown.section.plan.figures:
        if not is_drawn and figure.kind not in _TABLES:
            continue
        views = list(BUILD[figure.kind](shown, figure))
        tables += (view for view in views if isinstance(view, TableView))
        charts += name_views(figure, (view for view in views if isinstance(view, ChartView)))
    return tuple(tables), join_charts(charts, shown.key)


BUILD: dict[FigureKind, Callable[[ShownSection, Figure], Views]] = {
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
    FigureKind.HISTOGRAM: curves.show_histogram,
    FigureKind.EXCEEDANCE: curves.show_exceedance,
    FigureKind.HEAT_MAP: over_time.show_heat_map,
    FigureKind.INTERFERENCE: interference_charts.show_interference,
    FigureKind.FRONTIER: interference_charts.show_frontier,
    FigureKind.NEIGHBOURS: interference_charts.show_neighbours,
    FigureKind.OVER_AREAS: cells.show_over_areas,
    FigureKind.SPREAD: cells.show_spread,
}


def name_views(figure: Figure, charts: Iterable[ChartView]) -> Iterator[ChartView]:
    """Yield the charts of a figure, with the names from the plan of the figure. A chart that is shown below another
    chart keeps its own question.
    """
    for chart in charts:
        if chart.below:
            yield chart
        else:
            yield replace(
                chart,
                question=figure.question,
                figure=figure,
                choice=(*figure.view, *chart.choice),
                printed=figure.printed and not chart.on_screen_only,
            )


def join_charts(charts: Iterable[ChartView], key: str) -> tuple[ChartView, ...]:
    """Return one chart for each question, in the order of the first views.

    A chart without a question remains separate. A chart without values is omitted. The keys are changed so that each
    key is unique in the report. The key of the first view of a kind consists of ``key`` and the name of the kind. The
    keys of the other views also contain a number.
    """
    groups: dict[str, list[ChartView]] = {}
    below: dict[str, list[ChartView]] = {}
    last = ""
    for chart in _key(charts, key):
        if chart.below:
            below.setdefault(last, []).append(chart)
        else:
            last = chart.question or chart.key
            groups.setdefault(last, []).append(chart)
    joined: list[ChartView] = []
    for name, views in groups.items():
        joined.append(_join(views))
        joined += map(_join, _by_question(below.get(name, ())).values())
    return tuple(joined)


def open_at_spikes(charts: Iterable[ChartView], timelines: Iterable[Timeline]) -> tuple[ChartView, ...]:
    """Return the charts. If a chart shows periodic spikes over time, the view with these spikes becomes its first
    view.
    """
    spiking = {timeline.quantity for timeline in timelines if timeline.spikes is not None}
    return tuple(open_over_time(chart, spiking) or chart for chart in charts)


def open_over_time(chart: ChartView, quantities: set[str]) -> ChartView | None:
    """Return the chart, with the view that draws these quantities over time as its first view. Return None if there is
    no such view.

    If there are several such views, a view that contains only the maximum latency is preferred.
    """
    views = [view for view in chart.views if view.figure and view.figure.kind in _OVER_TIME]
    asked = [view for view in views if view.figure and quantities & set(view.figure.quantities)]
    if not asked:
        return None
    best = min(asked, key=lambda view: _distance(view, quantities))
    return chart.opened_at(best)


def _distance(view: ChartView, quantities: set[str]) -> int:
    """Return a measure of how poorly the view suits the request. The measure is the number of quantities that the view
    draws, plus 10 if the maximum latency is requested but not drawn.
    """
    drawn = set(view.figure.quantities) if view.figure else set()
    lacks = LATENCY_MAX.key in quantities and LATENCY_MAX.key not in drawn
    return len(drawn) + 10 * lacks


def _by_question(charts: Iterable[ChartView]) -> dict[str, list[ChartView]]:
    groups: dict[str, list[ChartView]] = {}
    for chart in charts:
        groups.setdefault(chart.question or chart.key, []).append(chart)
    return groups


def _key(charts: Iterable[ChartView], key: str) -> Iterator[ChartView]:
    count: Counter[str] = Counter()
    for chart in charts:
        count[chart.key] += 1
        number = count[chart.key] if count[chart.key] > 1 else ""
        if chart.chart.drawable:
            yield replace(chart, key=f"{key}{chart.key}{number}")


def _join(views: list[ChartView]) -> ChartView:
    """Return the first view as a chart that contains the other views."""
    names = [chart.choice for chart in views]
    # A plan from another program can contain names that do not distinguish the views.
    if len(set(names)) < len(names) or len(set(map(len, names))) > 1:
        views = [replace(view, choice=(f"{number}: {view.chart.title}",)) for number, view in enumerate(views, start=1)]
    level = " ".join(view.level for view in views) if all(view.level for view in views) else ""
    others = tuple(replace(view, level="") for view in views[1:])
    return replace(views[0], others=() if level else others, level=level)
