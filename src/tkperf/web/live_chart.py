"""Charts on the page of a run in progress. A chart consists of a stretched drawing with curves, and two axes with
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import format_number, unit_for_people
from tkperf.page.naming import name_in_choice
from tkperf.page.progress import CellHistories, WindowSoFar
from tkperf.render.charts.axes import linear_ticks
from tkperf.render.terminal.histories import format_short

WIDTH, HEIGHT = 1000, 200
"""The size of a drawing in its own units. The page stretches the drawing."""
# The possible lengths of the time axis in s, with their labels. The chart uses the shortest length that contains all
# seconds.
_SPANS = {60: ("60 s ago", "45", "30", "15", "now"), 120: ("2 min ago", "1.5", "1", "0.5", "now")}
_SPANS |= {240: ("4 min ago", "3", "2", "1", "now"), 480: ("8 min ago", "6", "4", "2", "now")}
_MOST_SPAN_S = max(_SPANS)

Place = tuple[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCurve:
    """A curve of a chart.

    Attributes:
        kind: the class of the curve in the style sheet.
        name: the name of the curve in the legend; empty if the chart has no legend.
        path: the path of the curve in the units of the drawing.
        dots: whether each value is also drawn as a dot.
    """

    kind: str
    name: str
    path: str
    dots: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChart:
    """A chart with evenly spaced ticks on both axes.

    Attributes:
        up: labels of the vertical axis, from top to bottom, in the unit ``unit``.
        across: labels of the horizontal axis; ``of`` is the name of this axis.
        grid: heights of the grid lines in the drawing.
        words: the values in words, for readers who cannot see the drawing.
        current: whether the chart shows the cell that is being measured.
    """

    title: str
    unit: str
    of: str
    up: tuple[str, ...]
    across: tuple[str, ...]
    grid: tuple[float, ...]
    curves: tuple[LiveCurve, ...]
    words: str
    current: bool = False


def draw_seconds(iops: Sequence[float]) -> LiveChart | None:
    """Return the chart of the newest seconds. The newest second is on the right. None means that there are fewer than
    two seconds.
    """
    shown = iops[-_MOST_SPAN_S:]
    if len(shown) < 2:
        return None
    span = next(span for span in _SPANS if len(shown) <= span)
    ticks = _choose_ticks(shown)
    first = span - len(shown) + 1
    places = [((first + number) / span, value) for number, value in enumerate(shown)]
    return LiveChart(
        title="IOPS, second by second",
        unit="IOPS",
        of="measured time",
        up=_label(ticks),
        across=_SPANS[span],
        grid=_find_heights(ticks),
        curves=(LiveCurve(kind="measured", name="", path=_trace(places, ticks)),),
        words=_describe(shown),
    )


def draw_cells(cells: CellHistories) -> tuple[LiveChart, ...]:
    """Return the chart of each cell over rounds, slices or areas. The chart of a cell with a single value contains no
    curve.
    """
    names = cells.names or tuple(map(name_in_choice, cells.values))
    return tuple(
        _draw_cell(name, values, cells, current=workload == cells.current)
        for name, (workload, values) in zip(names, cells.values.items(), strict=True)
        if any(value is not None for value in values)
    )


def _draw_cell(title: str, values: Sequence[float | None], cells: CellHistories, *, current: bool) -> LiveChart:
    known = [value for value in values if value is not None]
    count = len(values)
    across = (f"{cells.part} 1", f"{count:,}") if count < cells.most else (f"{count:,} {cells.part}s ago", "now")
    # Two labels are enough to show where the axis begins and ends.
    ticks = _choose_ticks(known)[:: len(_choose_ticks(known)) - 1]
    places = [(number / max(1, count - 1), value) for number, value in enumerate(values)]
    curve = LiveCurve(kind="measured", name="", path=_trace(places, ticks))
    return LiveChart(
        title=title,
        unit=cells.unit,
        of="",
        up=_label(ticks),
        across=across,
        grid=_find_heights(ticks),
        curves=(curve,) if len(known) > 1 else (),
        words=_describe(known),
        current=current,
    )


def draw_window(window: WindowSoFar) -> LiveChart | None:
    """Return the chart of the measurement window so far. The limits of steady state are drawn around the average of the
    window.

    The distance between the average and each limit is half of the allowed range, as in the PTS. If the slope excursion
    is exactly the allowed value, the ends of the best linear fit lie on the lines for the slope.
    """
    verdict = window.verdict
    if len(verdict.values) < 2 or not all(map(isfinite, (*verdict.values, verdict.average))) or not verdict.average:
        return None
    levels = {"average": [(verdict.average, "average")]}
    for kind, allowed in (("range", verdict.allowed_data_excursion), ("slope", verdict.allowed_slope_excursion)):
        name = f"{kind}: average ± {50 * allowed / abs(verdict.average):.3g} %"
        levels[f"{kind}-limit"] = [(verdict.average + allowed / 2, name), (verdict.average - allowed / 2, "")]
    every = [*verdict.values, *(level for lines in levels.values() for level, _ in lines)]
    ticks = linear_ticks(min(every), max(every))
    count = len(verdict.rounds)
    curves = [
        LiveCurve(kind=kind, name=name, path=_trace([(0, level), (1, level)], ticks))
        for kind, lines in levels.items()
        for level, name in lines
    ]
    if verdict.fit is not None:
        ends = (verdict.fit.at(verdict.rounds[0]), verdict.fit.at(verdict.rounds[-1]))
        path = _trace(list(enumerate(ends)), ticks)
        curves.append(LiveCurve(kind="fit", name="best linear fit", path=path))
    places = [(number / (count - 1), value) for number, value in enumerate(verdict.values)]
    curves.append(LiveCurve(kind="measured", name="measured", path=_trace(places, ticks), dots=True))
    return LiveChart(
        title=f"Steady-state window: {verdict.tracking}",
        unit=unit_for_people(verdict.unit),
        of="round",
        up=_label(ticks),
        across=tuple(map(str, verdict.rounds)),
        grid=_find_heights(ticks),
        curves=tuple(curves),
        words=_describe_window(verdict),
    )


def _describe_window(verdict: SteadyStateVerdict) -> str:
    values = ", ".join(map(format_number, verdict.values))
    return f"values {values}; average {format_number(verdict.average)} {unit_for_people(verdict.unit)}"


def _choose_ticks(values: Sequence[float]) -> list[float]:
    return linear_ticks(0.0, max(values) if max(values) > 0 else 1.0)


def _label(ticks: Sequence[float]) -> tuple[str, ...]:
    return tuple(format_short(tick).replace(".0", "") for tick in reversed(ticks))


def _find_heights(ticks: Sequence[float]) -> tuple[float, ...]:
    return tuple(_find_height(tick, ticks) for tick in ticks)


def _find_height(value: float, ticks: Sequence[float]) -> float:
    low, high = ticks[0], ticks[-1]
    return 0.0 if low == high else HEIGHT * (1 - (value - low) / (high - low))


def _trace(places: Sequence[Place], ticks: Sequence[float]) -> str:
    """Return a path through the places. A place consists of a position from 0 (left) to 1 (right) and a value. If no
    value was measured, the path has a gap.
    """
    return " ".join(_list_steps(places, ticks))


def _list_steps(places: Sequence[Place], ticks: Sequence[float]) -> Iterator[str]:
    begins = True
    for at, value in places:
        if value is None or not isfinite(value):
            begins = True
            continue
        yield f"{'M' if begins else 'L'}{at * WIDTH:.1f},{_find_height(value, ticks):.1f}"
        begins = False


def _describe(values: Sequence[float]) -> str:
    """Return the newest and the greatest value in words."""
    if len(values) < 2:
        return "".join(map(format_number, values))
    return f"now {format_number(values[-1])}, at most {format_number(max(values))}"
