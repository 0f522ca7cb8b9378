"""Draw the charts of a section with characters. The charts show values over time, and the distribution of response
times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from rich.console import Console
from rich.text import Text

from tkperf.model.figures import FigureKind
from tkperf.model.quantity import LATENCY_MEAN, percentile
from tkperf.model.reported_percentiles import TAIL_PERCENT
from tkperf.model.units import format_latency
from tkperf.page.chart import (
    SHARE_NAMES,
    Axis,
    Chart,
    Curve,
    Distribution,
    GridMap,
    GridSquare,
    HeatMap,
    Point,
    find_share_class,
)
from tkperf.page.figures.curves import spread_in_bins
from tkperf.page.page import ChartView
from tkperf.render.terminal.histories import (
    BlockLetters,
    Grid,
    blocks_for,
    columns,
    draw_grid,
    format_short,
    mean,
    sparkline,
)

WIDEST = 100
_MOST_BARS = 60
_HISTOGRAM_LINES = 6
# Possible numbers of bins for each power of ten. The first number for which the histogram fits into the width is used.
_BINS_A_DECADE = (32, 24, 16, 12, 8, 4, 2)
# The number of characters for the label of the greatest share.
_SCALE = 9
# The kinds of figures that show values over time or places. For each section, tkperf draws the first kind in this list
# for which the section has charts.
_COURSES = (FigureKind.OVER_ROUNDS, FigureKind.OVER_TIME, FigureKind.SECONDS, FigureKind.OVER_AREAS)

# The names of the curves that are drawn for each stream of a combination. These curves are the rate, which has no name,
# and two latencies. If all curves were drawn, a combination of many streams would need too many lines.
_OF_A_STREAM = ("", LATENCY_MEAN.short, percentile(TAIL_PERCENT).short)


def print_charts(charts: Sequence[ChartView], console: Console) -> None:
    """Print the values over time and the response times of a section. Each drawing consists of lines of characters."""
    blocks = blocks_for(console.encoding)
    width = min(WIDEST, console.width)
    lines = (
        *draw_course(charts, width, blocks),
        *draw_heat_maps(charts, width, blocks),
        *draw_grid_maps(charts, width, blocks),
    )
    for line in (*lines, *draw_histogram(charts, width, blocks)):
        line.plain = blocks.spell(line.plain)
        console.print(line, highlight=False, no_wrap=True)


def draw_course(charts: Sequence[ChartView], width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield bars from 0 to the greatest value. There is a line for each curve over time, or for the rounds of each
    cell.
    """
    drawn = {kind: list(_of_kind(charts, kind)) for kind in _COURSES}
    kind = next((kind for kind in _COURSES if drawn[kind]), None)
    if kind is FigureKind.OVER_ROUNDS:
        charts_of_kind = [(view.chart, view.choice[-1] if view.choice else "") for view in drawn[kind]]
        named = [(chart, name) for chart, name in charts_of_kind if isinstance(chart, Chart)]
        first, _ = named[0]
        alike = [(chart, name) for chart, name in named if chart.y.title == first.y.title]
        if max(len(curve.points) for chart, _ in alike for curve in chart.curves) > 1:
            yield Text()
            title = f"{first.y.title}, {first.x.title.lower()} by {first.x.title.lower()}"
            yield from draw_grid(title, _grid(alike), width, blocks=blocks)
    elif kind is not None:
        yield from _draw_lines(drawn[kind], width, blocks)


def _of_kind(charts: Sequence[ChartView], kind: FigureKind) -> Iterator[ChartView]:
    """Yield the views that draw figures of this kind as curves."""
    for view in (view for chart in charts for view in chart.views):
        if view.figure is not None and view.figure.kind is kind and isinstance(view.chart, Chart):
            yield view


def _grid(views: Sequence[tuple[Chart, str]]) -> Grid:
    """Return the values of curves over the rounds. There is a row for each name of a curve, and a column for each
    view.
    """
    names = tuple(dict.fromkeys(curve.name for chart, _ in views for curve in chart.curves))
    by_name = [{curve.name: curve.values for curve in chart.curves} for chart, _ in views]
    return Grid(
        rows=names,
        columns=tuple(name for _, name in views),
        values=tuple(tuple(of.get(name) for of in by_name) for name in names),
        row_title=views[0][0].series,
    )


def _draw_lines(views: Sequence[ChartView], width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield a line for each curve over time. If several curves have the same name and unit, only one is drawn. For
    streams, only some curves are drawn.
    """
    streams = dict.fromkeys(view.stream for view in views)
    charts = [(view.stream, view.chart) for stream in streams for view in views if view.stream == stream]
    drawn = [(stream, chart) for stream, chart in charts if isinstance(chart, Chart)]
    curves = {
        f"{stream} {_name_curve(chart, curve)}".strip(): (chart.x, curve)
        for stream, chart in reversed(drawn)
        for curve in reversed(chart.curves)
        if len(curve.points) > 1 and (not stream or curve.name in _OF_A_STREAM)
    }
    if not curves:
        return
    yield Text()
    title = f"{drawn[0][1].x.title} to the right, bars from 0 to the greatest; first and last value"
    yield Text(title, style="dim")
    label = max(map(len, curves))
    bars = max(1, min(_MOST_BARS, width - label - 16))
    for name, (axis, curve) in reversed(curves.items()):
        values = curve.values
        yield Text.assemble(
            (name.ljust(label), "dim"),
            " ",
            (sparkline(spread_over(curve.points, axis, bars), blocks), "cyan"),
            f" {format_short(values[0])} {format_short(values[-1])}",
        )


def _name_curve(chart: Chart, curve: Curve) -> str:
    unit = chart.y.title.rpartition(" ")[2] if chart.y.title.endswith(")") else ""
    return " ".join(filter(None, (curve.name, unit))) if curve.name else chart.y.title


def spread_over(points: Sequence[Point], axis: Axis, bars: int) -> list[float | None]:
    """Return the mean of the points in each of ``bars`` equal parts of an axis. If a part has no points, its value is
    None.

    If there are fewer points than bars, each point is a bar.
    """
    if len(points) <= bars:
        return [point.y for point in points]
    at = [float(point.x) for point in points]
    end = max((*at, *axis.includes)) or 1.0
    parts: list[list[float | None]] = [[] for _ in range(bars)]
    for place, point in zip(at, points, strict=True):
        # In a damaged run file, the time of a point may precede the start.
        parts[max(0, min(bars - 1, int(place / end * bars)))].append(point.y)
    return [mean(part) for part in parts]


def draw_histogram(charts: Sequence[ChartView], width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield response times in bins with equal logarithmic width, so that the different widths of the buckets do not
    cause jumps in the drawn curve.
    """
    for view in (view for chart in charts for view in chart.views):
        if isinstance(view.chart, Distribution) and not view.chart.exceedance:
            yield from _draw_histogram(view.chart, width, blocks)


def _draw_histogram(chart: Distribution, width: int, blocks: BlockLetters) -> Iterator[Text]:
    room = width - _SCALE
    per_decade = next((many for many in _BINS_A_DECADE if len(spread_in_bins(chart.buckets, many)[1]) <= room), 1)
    first, ios = spread_in_bins(chart.buckets, per_decade)
    yield Text()
    yield Text(f"{chart.title}; share of the I/Os in bins of equal width", style="dim")
    top = f"{max(ios) / sum(ios):.1%}".replace("%", " %")
    for number, line in enumerate(columns(ios, _HISTOGRAM_LINES, blocks)):
        yield Text.assemble((f"{top if number == 0 else '':>{_SCALE - 1}} ", "dim"), (line, "cyan"))
    yield Text(" " * _SCALE + _axis(first, len(ios), per_decade), style="dim")


def _axis(first: int, count: int, per_decade: int) -> str:
    """Return a line with powers of ten. Each power of ten is placed below the bin that begins at this value."""
    text = ""
    for decade in range(ceil(first / per_decade), (first + count) // per_decade + 1):
        place = decade * per_decade - first
        if place >= len(text) and place < count:
            text = text.ljust(place) + f"|{_name_us(10.0**decade)} "
    return text.rstrip()


def _name_us(us: float) -> str:
    """Return a time such as ``100 µs`` or ``10 ms``."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= factor:
            return f"{us / factor:g} {unit}"
    return f"{us:g} µs"


def draw_heat_maps(charts: Sequence[ChartView], width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the lines of each heat map. Time increases to the right, and response times increase upwards. A character
    shows the share of the I/Os.
    """
    for view in (view for chart in charts for view in chart.views):
        if isinstance(view.chart, HeatMap):
            yield from _draw_heat_map(view.chart, width, blocks)


def _draw_heat_map(chart: HeatMap, width: int, blocks: BlockLetters) -> Iterator[Text]:
    begin, end = chart.slices[0].begin, chart.slices[-1].end
    widths = sorted(column.end - column.begin for column in chart.slices)
    # The number of columns never exceeds the number of slices, because a column without a slice would look like a gap
    # in the measurement.
    room = max(1, min(_MOST_BARS, width - _SCALE, round((end - begin) / widths[len(widths) // 2])))
    columns = [[0] * (len(chart.edges_us) - 1) for _ in range(room)]
    for column in chart.slices:
        middle = (column.begin + column.end) / 2
        place = min(room - 1, int((middle - begin) / (end - begin) * room))
        columns[place] = [before + ios for before, ios in zip(columns[place], column.ios, strict=True)]
    yield Text()
    yield Text(f"{chart.title}; share of the I/Os of each time, of bands from", style="dim")
    for band in range(len(chart.edges_us) - 2, -1, -1):
        shades = "".join(_shade(of[band], sum(of), blocks) for of in columns)
        label = format_latency(chart.edges_us[band])
        yield Text.assemble((f"{label:>{_SCALE - 1}} ", "dim"), (shades.rstrip(), "cyan"))
    unit = chart.x.title.partition("(")[2].rstrip(")")
    last = f"{end:.3g} {unit}"
    yield Text(" " * _SCALE + f"{begin:.3g}".ljust(room - len(last)) + last, style="dim")
    key = ", ".join(f"{shade} {name}" for shade, name in zip(blocks.shades, SHARE_NAMES, strict=True))
    yield Text(key, style="dim")


def _shade(ios: int, of: int, blocks: BlockLetters) -> str:
    return blocks.shades[find_share_class(ios, of)] if ios else " "


def draw_grid_maps(charts: Sequence[ChartView], width: int, blocks: BlockLetters) -> Iterator[Text]:
    """Yield the lines of the first view of each grid of two rates. The lines contain a shade and the value for each
    square, and the limit.
    """
    for view in charts:
        if isinstance(view.chart, GridMap):
            yield from _draw_grid_map(view.chart, width, blocks)


def _draw_grid_map(chart: GridMap, width: int, blocks: BlockLetters) -> Iterator[Text]:
    squares = {(square.column, square.row): square for square in chart.squares}
    up, across = [str(place) for place in chart.y.places], [str(place) for place in chart.x.places]
    label = max(map(len, up))
    value = max(len(text) for text in (*across, *(square.text for square in chart.squares)))
    has_shades = label + 1 + (value + 2) * len(across) <= width
    limits = {(edge.x - 1, edge.y) for edge in chart.edges if edge.x == edge.x_end}
    yield Text()
    yield Text(f"{chart.title}; upwards: {chart.y.title[0].lower()}{chart.y.title[1:]}", style="dim")
    for row in range(len(up) - 1, -1, -1):
        line = Text.assemble((f"{up[row]:>{label}} ", "dim"))
        for column in range(len(across)):
            square = squares.get((column, row))
            line.append(f"{'' if square is None else square.text:>{value}}")
            line.append(_shade_of(square, blocks) if has_shades else "", style="cyan")
            line.append(blocks.limit if (column, row) in limits else " ", style="red")
        yield line
    blank = " " * (label + 1)
    yield Text(blank + "".join(f"{place:>{value}}{' ' * (1 + has_shades)}" for place in across), style="dim")
    yield Text(f"{blank}{chart.x.title}" + (f"; {blocks.limit} {chart.limit}" if chart.limit else ""), style="dim")


def _shade_of(square: GridSquare | None, blocks: BlockLetters) -> str:
    """Return the shade of a square. A greater value has a darker shade. A square without a valid value is blank."""
    if square is None or square.strength is None:
        return " "
    darkest = len(blocks.shades) - 1
    return blocks.shades[darkest - min(darkest, int(square.strength * len(blocks.shades)))]
