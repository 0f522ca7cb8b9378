"""Draw the curves of several runs in one chart. For many runs, the chart contains the median, a band with the middle
half of the runs, and the outliers with their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from math import log
from statistics import fmean
from typing import Any

import numpy as np

from tkperf.analysis.comparing.arrangements import OUTLIER_SCORE, describe_distribution
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.results import SectionResult
from tkperf.analysis.workload_axes import name_stream
from tkperf.model.figures import DISTRIBUTED, Figure, FigureKind
from tkperf.model.measurement import places_of_extremes
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, THROUGHPUT, find_quantities, percentile
from tkperf.model.units import list_names
from tkperf.model.workload import WHOLE_LOAD, Access, PartKey, Workload
from tkperf.page.chart import NEUTRAL, PALETTE, Axis, Chart, Curve, Legend, Mark, Place, Point, Scale
from tkperf.page.figures.curves import (
    StreamAxis,
    draw_stream,
    drive_fills,
    exceedance_points,
    flag,
    over_time,
    over_written,
    spread_in_bins,
)
from tkperf.page.figures.section_figures import BUILD, join_charts, name_views
from tkperf.page.naming import capitalise, name_figure, shorten_names
from tkperf.page.page import ChartView
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.verdict_tables import merge_sections

MOST_COLOURED = len(PALETTE)
"""The greatest number of runs for which each run has its own colour."""
LONGEST_NAME = 18
"""The greatest length, in characters, of the short name of a run in the matrix, in sentences and beside its curves."""
# The greatest number of points of a curve, which is enough to show its shape. If all slices of a day were drawn, the
# page of a dozen runs would be too large.
_MOST_POINTS = 300
_BINS_A_DECADE = 20
# The greatest number of curves among which a reader can choose with a switch. The tables contain all curves.
_MOST_VIEWS = 12
# Readers want to see a rate both in IOPS and as throughput, over the block size and also over the mix.
_RATES = (IOPS.key, THROUGHPUT.key)
_OVER_CELLS = (FigureKind.OVER_AXIS, FigureKind.AGAINST, FigureKind.OVER_DEMAND, FigureKind.FRONTIER)
_OF_STREAMS = (FigureKind.OVER_TIME, FigureKind.OVER_WRITTEN, FigureKind.OVER_FILLS)
_STREAM_QUANTITIES = (IOPS, THROUGHPUT, LATENCY_MEAN, percentile(99.9), LATENCY_MAX)
_FEWEST_SIZES = 3
_LEAD_CHARTS = 2

Sections = Mapping[str, SectionResult]
_Curves = dict[str, Curve]


def call_runs(names: Sequence[str]) -> dict[str, str]:
    """Return the short name of each run, which is used in the matrix, in sentences and beside the curves of the run."""
    return shorten_names(names, LONGEST_NAME)


def colour_runs(names: Sequence[str]) -> dict[str, str]:
    """Return the colour of each run, which is the same on the whole page. If there are more runs than colours, all runs
    have a neutral colour.
    """
    if len(names) > MOST_COLOURED:
        return dict.fromkeys(names, NEUTRAL)
    return dict(zip(names, PALETTE, strict=False))


def find_sections(comparison: Comparison, test: str) -> dict[str, Sections]:
    """Return the sections of a test that two or more runs measured. The outer key is the section, and the inner key is
    the run.
    """
    found: dict[str, dict[str, SectionResult]] = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        for section in (each for one in result.tests if one.name == test for each in one.sections):
            if section.complete and not section.plan.prepares:
                found.setdefault(section.name, {})[name] = section
    return {name: of_runs for name, of_runs in found.items() if len(of_runs) > 1}


def build_run_curves(comparison: Comparison, test: str) -> tuple[ChartView, ...]:
    """Return the charts of a test with a curve for each run. The charts are those that the plans of the sections
    request.
    """
    charts: list[ChartView] = []
    for number, sections in enumerate(find_sections(comparison, test).values()):
        figures = next(iter(sections.values())).plan.figures
        views = [view for figure in _choose_figures(figures) for view in _overlay(comparison, sections, figure)]
        charts += join_charts([*views, *_draw_distributions(comparison, sections)], f"{test}{number}-")
    merged = _merge_tests(comparison, test)
    if len(merged) > 1:
        figures = next(iter(merged.values())).plan.figures
        means = [figure for figure in figures if figure.kind is FigureKind.OVER_AXIS]
        views = [view for figure in _choose_figures(means) for view in _overlay(comparison, merged, figure)]
        charts += join_charts(views, f"{test}-all-")
    return tuple(charts)


def _merge_tests(comparison: Comparison, test: str) -> dict[str, SectionResult]:
    """Return one section for each run that completed the test. This section combines all sections of the test."""
    merged = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        for one in result.tests:
            joined = merge_sections(one) if one.name == test else None
            if joined is not None and joined.complete:
                merged[name] = joined
    return merged


def build_lead_charts(comparison: Comparison) -> tuple[ChartView, ...]:
    """Return the two charts at the beginning of a comparison. The first chart shows random writes over the amount
    written, in drive fills. The second chart shows random reads over the block size.

    If fewer than two runs have the curve of a chart, another chart replaces this chart.
    """
    tests = dict.fromkeys(test.name for result in comparison.results for test in result.tests)
    found: list[ChartView] = []
    finders = (_find_fills, partial(_find_sizes, 100), partial(_find_sizes, 0), _find_others)
    for find in finders:
        charts = (chart for test in tests for chart in find(comparison, test))
        found += islice(charts, 1 if find is not _find_others else _LEAD_CHARTS)
    lead = found[:_LEAD_CHARTS]
    return tuple(_lower(replace(chart, key=f"lead{number}")) for number, chart in enumerate(lead))


def _lower(view: ChartView) -> ChartView:
    """Return a chart that is low enough to fit on the first screen, below the matrix."""
    assert isinstance(view.chart, Chart)
    return replace(view, chart=replace(view.chart, low=True))


def _find_others(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield the first view of each chart of a test."""
    for chart in build_run_curves(comparison, test):
        yield replace(chart, others=(), question="")


def _find_fills(comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield charts of random-write streams. The x axis is the amount written, in multiples of each drive's capacity."""
    for sections in find_sections(comparison, test).values():
        streams = {run: section for run, section in sections.items() if len(section.slices) > 1}
        works = [section.slices[0].values.workload for section in streams.values()]
        if len(streams) > 1 and all((work.access, work.read_percent) == (Access.RANDOM, 0) for work in works):
            figure = Figure(kind=FigureKind.OVER_FILLS, quantities=(IOPS.key,), log=True)
            yield from _overlay_streams(comparison, streams, figure)


def _find_sizes(read_percent: int, comparison: Comparison, test: str) -> Iterator[ChartView]:
    """Yield charts of the throughput of random reads or of random writes over the block size."""
    title = f"Random {'reads' if read_percent else 'writes'} over block size"
    figure = Figure(kind=FigureKind.OVER_AXIS, quantities=(THROUGHPUT.key,), log=True, axis="block_size")
    for sections in find_sections(comparison, test).values():
        kept: dict[str, SectionResult] = {}
        for run, section in sections.items():
            cells = [
                cell
                for cell in section.cells
                if (cell.workload.access, cell.workload.read_percent) == (Access.RANDOM, read_percent)
            ]
            if not section.slices and len({cell.workload.block_size_bytes for cell in cells}) >= _FEWEST_SIZES:
                kept[run] = replace(section, cells=tuple(cells))
        for chart in _overlay_cells(comparison, kept, figure) if len(kept) > 1 else ():
            yield replace(chart, chart=replace(chart.chart, title=title))


def _choose_figures(figures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield each figure that is a curve, without repetitions. If a figure exists with a linear axis and with a
    logarithmic axis, only the figure with the logarithmic axis is yielded, because this axis can show both slow and
    fast drives.
    """
    logarithmic = {(figure.kind, figure.quantities) for figure in figures if figure.log}
    for figure in figures:
        if figure.kind not in (*_OVER_CELLS, *_OF_STREAMS):
            continue
        if figure.log or (figure.kind, figure.quantities) not in logarithmic:
            words = tuple(word for word in figure.view if word not in ("linear", "logarithmic", "curves"))
            yield from _in_both_measures(replace(figure, view=words))


def _in_both_measures(figure: Figure) -> Iterator[Figure]:
    """Yield the figure. If a figure shows a rate over the block size, the function yields it in IOPS and in MB/s, over
    the block size and over the mix.
    """
    if figure.kind is not FigureKind.OVER_AXIS or figure.axis or len(figure.quantities) != 1:
        yield figure
        return
    (key,) = figure.quantities
    for axis, words in (("block_size", "over block size"), ("read_percent", "over mix")):
        # The first view shows the quantity that the test itself uses.
        for quantity in find_quantities((key, *(rate for rate in _RATES if key in _RATES and rate != key))):
            yield replace(
                figure, quantities=(quantity.key,), axis=axis, log=True, title="", view=(quantity.short, words)
            )


def _overlay(comparison: Comparison, sections: Sections, figure: Figure) -> Iterator[ChartView]:
    build = _overlay_streams if figure.kind in _OF_STREAMS else _overlay_cells
    return name_views(figure, build(comparison, sections, figure))


# ---- curves of cells


def _overlay_cells(comparison: Comparison, sections: Sections, figure: Figure) -> Iterator[ChartView]:
    """Yield a view for each curve that two or more runs have. The view shows this curve for each of these runs."""
    of_runs: dict[str, list[ChartView]] = {}
    for run, section in sections.items():
        views = BUILD[figure.kind](ShownSection(section=section, key=""), figure)
        of_runs[run] = [view for view in views if isinstance(view, ChartView) and isinstance(view.chart, Chart)]
    for views_of_place in zip(*of_runs.values(), strict=False):
        charts = {run: view.chart for run, view in zip(of_runs, views_of_place, strict=True)}
        yield from _overlay_charts(comparison, views_of_place[0].key, charts)


def _overlay_charts(comparison: Comparison, key: str, charts: Mapping[str, Any]) -> Iterator[ChartView]:
    by_name: dict[str, _Curves] = {}
    for run, chart in charts.items():
        for curve in chart.curves:
            if curve.mark is Mark.LINE and curve.colour != NEUTRAL:
                by_name.setdefault(curve.name, {})[run] = curve
    first = next(iter(charts.values()))
    # The run with the most curves determines the order, because another run may lack the first curves.
    longest = max(charts.values(), key=lambda chart: len(chart.curves))
    names = dict.fromkeys((*(curve.name for curve in longest.curves), *by_name))
    shared = {name: curves for name in names if len(curves := by_name.get(name, {})) > 1}
    for name, curves in list(shared.items())[:_MOST_VIEWS]:
        label = next(iter(curves.values())).label or name
        x = first.x
        if x.scale is Scale.ORDINAL:
            x = replace(x, places=_join_places([chart.x.places for chart in charts.values()]))
        title = f"{first.title}: {label}" if label else first.title
        chart = Chart(title=title, x=x, y=first.y)
        yield _show(comparison, key, draw_runs(comparison, chart, curves), curves, label or first.y.title)


def _join_places(of_runs: Sequence[Sequence[Place]]) -> tuple[Place, ...]:
    """Return all places in order. Numbers are in ascending order. All other places are in the order of the run that has
    the most places.
    """
    longest = max(of_runs, key=len)
    places = dict.fromkeys(place for places in (longest, *of_runs) for place in places)
    try:
        return tuple(sorted(places, key=float))
    except ValueError:
        return tuple(places)


def draw_runs(comparison: Comparison, chart: Chart, curves: Mapping[str, Curve]) -> Chart:
    """Return the chart with a curve for each run. Each curve has the colour of its run, and ends with the short name of
    the run.

    If there are more runs than colours, the chart shows the median, a band and the outliers.
    """
    called, colours = call_runs(comparison.names), colour_runs(comparison.names)
    points = {called[run]: _thin(curve.points) for run, curve in curves.items()}
    if len(points) > MOST_COLOURED:
        numbers = {called[name]: number for number, name in enumerate(comparison.names)}
        drawn = draw_band(points, numbers, chart.x.scale)
        flags = dict.fromkeys(point.flag for of_run in points.values() for point in of_run if point.flag)
        chart = replace(chart, flags=(*chart.flags, *flags))
    else:
        drawn = tuple(
            Curve(name=called[run], points=points[called[run]], colour=colours[run], dots=curve.dots)
            for run, curve in curves.items()
        )
    return replace(chart, curves=drawn, series="Run", legend=Legend.ENDS)


def _thin(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points that are enough to show the shape of a curve. The points have no links."""
    known = [point for point in points if point.y is not None]
    places = places_of_extremes([point.y or 0.0 for point in known], _MOST_POINTS)
    return tuple(Point(known[place].x, known[place].y, flag=known[place].flag) for place in places)


def _show(comparison: Comparison, key: str, chart: Chart, curves: Iterable[str], choice: str) -> ChartView:
    """Return one view of a chart. Its caption names the runs that lack the curve."""
    present = set(curves)
    missing = [name for name in comparison.names if name not in present]
    text = f"{chart.title}: a curve for each run."
    if len(present) > MOST_COLOURED:
        text = f"{chart.title}: the median of {len(present)} runs, a band with the middle half, outliers by name."
    if missing:
        text += f" Not measured: {list_names(missing)}."
    return ChartView(key=key, text=text, chart=chart, choice=(choice,))


# ---- curves of streams


def _overlay_streams(comparison: Comparison, sections: Sections, figure: Figure) -> Iterator[ChartView]:
    """Yield a view for each quantity of the slices, over time or over the amount written. The same unit is used for all
    runs.
    """
    streams = {run: section for run, section in sections.items() if len(section.slices) > 1}
    axes = _find_axes(comparison, streams, figure.kind)
    if len(axes) < 2:
        return
    over = next(iter(axes.values())).title
    of_runs = [_find_loads(section) for section in streams.values()]
    keys = [key for key in of_runs[0] if all(key in of_run for of_run in of_runs)]
    asked = [quantity for quantity in find_quantities(figure.quantities) if quantity in _STREAM_QUANTITIES]
    for key, quantity in product(keys, asked):
        curves = {}
        for run, axis in axes.items():
            workload = _find_loads(streams[run])[key]
            (curve,) = draw_stream(streams[run], (quantity,), "", axis, workload=workload).curves
            if len(curve.points) > 1:
                curves[run] = replace(curve, dots=False)
        if len(curves) < 2:
            continue
        name = capitalise(name_figure(of_runs[0][key])) if key == WHOLE_LOAD else name_stream(of_runs[0][key])
        chart = Chart(
            title=f"{name}: {quantity.label} {_WORDS[figure.kind]}",
            x=Axis(title=over),
            y=Axis(title=quantity.title, scale=Scale.LOG if figure.log else Scale.LINEAR),
        )
        view = quantity.label if key == WHOLE_LOAD else f"{name}: {quantity.label}"
        yield _show(comparison, figure.kind.name.lower(), draw_runs(comparison, chart, curves), curves, view)


def _find_loads(section: SectionResult) -> dict[PartKey, Workload]:
    """Return the load of a section with slices. For a combination, return its streams and their flushes."""
    workloads = [cell.workload for cell in section.slices[0].cells]
    is_alone = len(workloads) == 1
    return {work.part_key: work for work in workloads if is_alone or not work.is_combination}


_WORDS = {
    FigureKind.OVER_TIME: "over time",
    FigureKind.OVER_WRITTEN: "over GB written",
    FigureKind.OVER_FILLS: "from fresh to full",
}


def _find_axes(comparison: Comparison, streams: Sections, kind: FigureKind) -> dict[str, StreamAxis]:
    """Return the axis of each run. If the axis shows the amount written, runs whose amount is not known are omitted."""
    if kind is FigureKind.OVER_TIME:
        time = over_time(max((section.slices[-1].end_s for section in streams.values()), default=0.0))
        return dict.fromkeys(streams, time)
    written = [run for run, section in streams.items() if section.slices[-1].total_written_bytes]
    if kind is FigureKind.OVER_WRITTEN:
        return dict.fromkeys(written, over_written("Total written (GB)", 1e9))
    lengths = {
        run: result.info.active_range_length_bytes
        for run, result in zip(comparison.names, comparison.results, strict=True)
    }
    fills = {run: drive_fills(length) for run in written if (length := lengths[run])}
    return {run: replace(axis, title="Written, in capacities of the drive") for run, axis in fills.items()}


# ---- distributions


def _draw_distributions(comparison: Comparison, sections: Sections) -> Iterator[ChartView]:
    """Yield charts of the response times of streams. One chart shows the share of I/Os that needed a longer time, and
    another chart shows the share of I/Os in each bin.
    """
    # If different loads had a common distribution of response times, this distribution would describe none of these
    # loads.
    streams = {
        run: section
        for run, section in sections.items()
        if section.histogram_us and not section.slices[0].values.workload.is_combination
    }
    if len(streams) < 2:
        return
    title = f"{next(iter(streams.values())).name}: response times"
    flags = [flag(each.values) for section in streams.values() for each in section.slices]
    wanted = {
        "exceedance": (_beyond, "I/Os that took longer (%)", Scale.LOG),
        "histogram": (_share_of_bins, "I/Os (%) in bins of equal logarithmic width", Scale.LINEAR),
    }
    for name, (find_points, y_title, scale) in wanted.items():
        chart = Chart(
            title=f"{title}, {name}",
            x=Axis(title="Response time (µs)", scale=Scale.LOG),
            y=Axis(title=y_title, scale=scale),
            flags=tuple(dict.fromkeys(filter(None, flags))),
        )
        curves = {run: Curve(points=tuple(find_points(section))) for run, section in streams.items()}
        view = _show(comparison, name, draw_runs(comparison, chart, curves), curves, name)
        yield replace(view, question=DISTRIBUTED)


def _beyond(section: SectionResult) -> Iterator[Point]:
    for us, percent in exceedance_points(section.histogram_us):
        yield Point(us, float(f"{percent:.7g}"))


def _share_of_bins(section: SectionResult) -> Iterator[Point]:
    first, ios = spread_in_bins(section.histogram_us, _BINS_A_DECADE)
    total = sum(ios)
    for number, count in enumerate(ios):
        yield Point(float(f"{10 ** ((first + number + 0.5) / _BINS_A_DECADE):.5g}"), 100 * count / total)


_GRID_POINTS = 120
_MOST_OUTLIERS = 6
# If possible, the median covers the same runs at all places, because otherwise the median would jump where a run begins
# or ends. If fewer than half of the places satisfy this rule, the median is drawn at the places where most of the runs
# have a value.
_LEAST_SHARES = (1.0, 0.9, 0.5)
_LEAST_PLACES = 0.5
# The factor of the fences in Tukey's box plot. The distance between an outlier and the band exceeds this multiple of
# the height of the band.
_FENCE = 1.5

Courses = Mapping[str, Sequence[Point]]
_Columns = dict[str, dict[Place, float]]


def draw_band(courses: Courses, numbers: Mapping[str, int], scale: Scale) -> tuple[Curve, ...]:
    """Return the median of the curves with its band, followed by the outliers, the farthest first.

    Args:
        courses: the points of each run, with the name of the run as the key.
        numbers: the number of each run among all runs, which determines the colour of an outlier.
        scale: scale of the x axis. Curves over time or over amounts have values at different places, so their values
            are interpolated at common places.
    """
    columns = _read_at_places(courses) if scale is Scale.ORDINAL else _read_at_grid(courses, scale)
    places = list(dict.fromkeys(place for column in columns.values() for place in column))
    by_place = {place: [column[place] for column in columns.values() if place in column] for place in places}
    kept: dict[Place, list[float]] = {}
    for share in _LEAST_SHARES:
        if len(kept) < _LEAST_PLACES * len(places):
            kept = {place: values for place, values in by_place.items() if len(values) >= share * len(courses)}
    if scale is not Scale.ORDINAL:
        kept = dict(sorted(kept.items(), key=lambda one: float(one[0])))
    band = tuple(Point(place, *_find_middle(values)) for place, values in kept.items())
    medians = {point.x: point.y or 0.0 for point in band}
    outliers = list(_find_outliers(columns, medians))
    return (
        Curve(name=f"median of {len(courses)}", points=band, colour=NEUTRAL),
        *(
            Curve(name=name, points=tuple(courses[name]), colour=PALETTE[numbers[name] % len(PALETTE)])
            for name in outliers[:_MOST_OUTLIERS]
        ),
    )


def _find_middle(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the lower quartile and the upper quartile."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), float(low), float(high)


def _read_at_places(courses: Courses) -> _Columns:
    return {name: {point.x: point.y for point in points if point.y is not None} for name, points in courses.items()}


def _read_at_grid(courses: Courses, scale: Scale) -> _Columns:
    """Return the values of each curve at common places. A curve has no values before its first or after its last
    place.
    """
    known = {
        name: [(float(point.x), point.y) for point in points if point.y is not None] for name, points in courses.items()
    }
    every = [place for points in known.values() for place, _ in points]
    if not every:
        return {}
    low, high = min(every), max(every)
    if scale is Scale.LOG and low > 0:
        grid = np.geomspace(low, high, _GRID_POINTS)
    else:
        grid = np.linspace(low, high, _GRID_POINTS)
    columns: _Columns = {}
    for name, points in known.items():
        if not points:
            continue
        points.sort()
        at, values = ([pair[part] for pair in points] for part in (0, 1))
        within = [place for place in grid if at[0] <= place <= at[-1]]
        read = np.interp(within, at, values)
        columns[name] = {float(f"{place:.6g}"): float(value) for place, value in zip(within, read, strict=True)}
    return columns


def _find_outliers(columns: _Columns, medians: Mapping[Place, float]) -> Iterator[str]:
    """Yield the curves whose mean logarithmic distance from the median is an outlier, the farthest first.

    An outlier must also be far from the middle half of the curves. Therefore, if the drives form two groups, the curves
    of the smaller group do not count as outliers.
    """
    distances = {}
    for name, column in columns.items():
        pairs = [(value, medians.get(place, 0.0)) for place, value in column.items()]
        ratios = [log(value / middle) for value, middle in pairs if value > 0 and middle > 0]
        if ratios:
            distances[name] = fmean(ratios)
    if len(distances) < 2 or not any(distances.values()):
        return
    _, low, high = _find_middle(list(distances.values()))
    fence = _FENCE * (high - low)
    scores = describe_distribution(list(distances.values())).scores or ()
    far = [
        (abs(score), name)
        for score, (name, distance) in zip(scores, distances.items(), strict=False)
        if abs(score) > OUTLIER_SCORE and not low - fence <= distance <= high + fence
    ]
    yield from (name for _, name in sorted(far, key=lambda one: -one[0]))
