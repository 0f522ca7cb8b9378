"""Draw the 3-D bars that the specifications require: values over two axes, such as block size and read/write mix.

Vega-Lite has no third dimension. This module therefore projects the faces of the bars and draws the faces as polygons.
Faces at the back are drawn first, so that faces in front cover them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tkperf.model.units import find_latency_unit
from tkperf.page.chart import Bars3D
from tkperf.render.charts.axes import linear_axis
from tkperf.render.charts.frame import GREY, Row, Spec, build_frame, find_colour, light_colour, tooltip

ScreenPoint = tuple[float, float]

# Lengths on the screen: one step to the right (mix), one step to the back (block size), and the height of the highest
# bar. The unit is one step to the right.
_RIGHT: ScreenPoint = (1.0, 0.26)
_BACK: ScreenPoint = (-0.82, 0.40)
_HIGHEST = 5.0
_HEIGHT_PX = 400
# The smallest width of the drawing in the same unit. Because of this limit, the bars of a small table are not as wide
# as the page.
_LEAST_WIDTH = 10.0
_HALF_WIDTH = 0.36
_SLANT = 40
_IN_US = "(µs)"
# The brightness of each face. The top is the brightest face, because light falls from above. The part of the brightness
# that exceeds 1 is the share of white.
_FACES = {"left": 1.0, "right": 0.8, "top": 1.25}


def draw_bars(chart: Bars3D) -> Spec:
    """Return the specification of the chart. Columns extend to the right, and rows extend to the back."""
    axis: Any = linear_axis(bar.y for bar in chart.bars).get("axis", {})
    ticks = axis.get("values", [0.0, 1.0])
    depth, width = len(chart.rows), len(chart.columns)
    ends = _project(width + 0.8, -0.5, 0)[0], _project(-1.2, depth - 0.5, 0)[0]
    missing = max(0.0, _LEAST_WIDTH - ends[0] + ends[1]) / 2
    facts = [(f"fact{number}", title) for number, title in enumerate(chart.facts)]
    tip = tooltip(
        ("column", chart.column_title),
        ("row", chart.row_title),
        ("value", chart.value_title),
        *facts,
        numbers=("value",),
    )
    marks = list(_marks(chart, ticks))
    datasets = {
        "faces": list(_faces(chart, ticks)),
        "floor": list(_floor(width, depth, ticks)),
        "labels": list(_labels(chart, ticks)),
        "titles": list(_titles(chart, ticks)),
    } | ({"marks": marks} if marks else {})
    layers = _layers([ends[1] - missing, ends[0] + missing], tip)
    layers += _draw_marks(tip) if marks else []
    return {**build_frame(chart, _HEIGHT_PX), "datasets": datasets, "layer": layers}


def _datum(chart: Bars3D, number: int) -> Row:
    """Return the facts that a bar's tooltip shows."""
    bar, (row, column) = chart.bars[number], chart.places[number]
    facts = {f"fact{at}": fact for at, fact in enumerate(bar.facts)}
    return {"column": chart.columns[column], "row": chart.rows[row], "value": bar.y, **facts}


def _height(value: float | None, ticks: Sequence[float]) -> float:
    return _HIGHEST * (value or 0.0) / ticks[-1]


def _faces(chart: Bars3D, ticks: Sequence[float]) -> Iterator[Row]:
    """Yield the faces from the back corner to the front corner, so that faces in front are drawn over faces at the
    back.
    """
    for number in sorted(range(len(chart.bars)), key=lambda at: chart.places[at], reverse=True):
        back, right = chart.places[number]
        height = _height(chart.bars[number].y, ticks)
        colour = find_colour(chart.colours[back])
        yield from _bar(right, back, height, colour, _datum(chart, number))


def _layers(domain: list[float], tip: list[dict[str, object]]) -> list[Spec]:
    plane = {"type": "quantitative", "axis": None, "scale": {"zero": False, "nice": False}}
    across = {"zero": False, "nice": False, "domain": domain}
    x, y = {**plane, "field": "x", "scale": across}, {**plane, "field": "y"}
    layers: list[Spec] = [
        {
            "data": {"name": "floor"},
            "mark": {"type": "rule", "color": GREY, "opacity": 0.6},
            "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
        },
        {
            "data": {"name": "faces"},
            "mark": {"type": "line", "filled": True, "stroke": GREY, "strokeWidth": 0.6},
            "encoding": {
                "x": x,
                "y": y,
                "fill": {"field": "colour", "type": "nominal", "scale": None},
                "detail": {"field": "face", "type": "nominal"},
                "order": {"field": "corner", "type": "quantitative"},
                "tooltip": tip,
            },
        },
    ]
    for align in ("left", "right"):
        layers.append(
            {
                "data": {"name": "labels"},
                "transform": [{"filter": f"datum.align === '{align}'"}],
                "mark": {"type": "text", "align": align},
                "encoding": {
                    "x": x,
                    "y": y,
                    "text": {"field": "text", "type": "nominal"},
                    "angle": {"field": "angle", "type": "quantitative", "scale": None},
                },
            }
        )
    layers.append(
        {
            "data": {"name": "titles"},
            "mark": {"type": "text", "fontWeight": "bold"},
            "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
        }
    )
    return layers


def _marks(chart: Bars3D, ticks: Sequence[float]) -> Iterator[Row]:
    """Yield a mark above each flagged bar."""
    for number, bar in enumerate(chart.bars):
        if bar.flag:
            back, right = chart.places[number]
            x, y = _project(right, back, _height(bar.y, ticks))
            at = {"x": round(x, 3), "y": round(y + 0.12, 3)}
            yield {**_datum(chart, number), **at, "flag": bar.flag}


def _draw_marks(tip: list[dict[str, object]]) -> list[Spec]:
    plane = {"type": "quantitative", "axis": None}
    why = tooltip(("flag", "Not the device alone"))
    return [
        {
            "data": {"name": "marks"},
            "mark": {"type": "text", "text": "!", "fontSize": 14, "fontWeight": "bold"},
            "encoding": {"x": {**plane, "field": "x"}, "y": {**plane, "field": "y"}, "tooltip": [*tip, *why]},
        }
    ]


def _project(right: float, back: float, height: float) -> ScreenPoint:
    return (right * _RIGHT[0] + back * _BACK[0], right * _RIGHT[1] + back * _BACK[1] + height)


def _bar(right: int, back: int, height: float, colour: str, datum: Row) -> list[Row]:
    """Return the three visible faces of a bar. Each face is a polygon, described by its corners."""
    near, far = -_HALF_WIDTH, _HALF_WIDTH
    corners = {
        "left": ((near, near, 0), (near, far, 0), (near, far, height), (near, near, height)),
        "right": ((near, near, 0), (far, near, 0), (far, near, height), (near, near, height)),
        "top": ((near, near, height), (far, near, height), (far, far, height), (near, far, height)),
    }
    rows: list[Row] = []
    for face, around in corners.items():
        for number, (dx, dy, z) in enumerate((*around, around[0])):
            x, y = _project(right + dx, back + dy, z)
            rows.append(
                {
                    **datum,
                    "x": round(x, 3),
                    "y": round(y, 3),
                    "face": f"{right}/{back}/{face}",
                    "corner": number,
                    "colour": light_colour(colour, _FACES[face]),
                }
            )
    return rows


def _floor(width: int, depth: int, ticks: Sequence[float]) -> Iterator[Row]:
    """Yield the edges of the floor. For each tick, also yield a line along the two walls behind the floor."""
    left, right, front, back = -0.5, width - 0.5, -0.5, depth - 0.5

    def line(a: ScreenPoint, b: ScreenPoint) -> Row:
        return {"x": a[0], "y": a[1], "x2": b[0], "y2": b[1]}

    yield line(_project(left, front, 0), _project(right, front, 0))
    yield line(_project(left, front, 0), _project(left, back, 0))
    for tick in ticks:
        z = _HIGHEST * tick / ticks[-1]
        yield line(_project(left, back, z), _project(right, back, z))
        yield line(_project(right, back, z), _project(right, front, z))
    for corner in ((left, back), (right, back), (right, front)):
        yield line(_project(*corner, 0), _project(*corner, _HIGHEST))


def _labels(chart: Bars3D, ticks: Sequence[float]) -> Iterator[Row]:
    def label(at: ScreenPoint, text: str, align: str, angle: int = 0) -> Row:
        return {"x": at[0], "y": at[1], "text": text, "align": align, "angle": angle}

    # The labels are slanted away from the bars. The texts therefore do not overlap even if the steps are small.
    for right, text in enumerate(chart.columns):
        yield label(_project(right, -0.75, 0), text, "left", _SLANT)
    for back, text in enumerate(chart.rows):
        yield label(_project(-0.75, back, 0), text, "right", -_SLANT)
    length_us = find_latency_unit(ticks)[1] if _IN_US in chart.value_title else 1.0
    for tick in ticks:
        at = _project(len(chart.columns) - 0.5, -0.5, _HIGHEST * tick / ticks[-1])
        yield label((at[0] + 0.25, at[1] + 0.1), f"{tick / length_us:,.10g}", "left")


def _titles(chart: Bars3D, ticks: Sequence[float]) -> Iterator[Row]:
    """Yield the titles of the three axes. Two titles are beside the middle of an edge of the floor, and one title is
    above the vertical scale.
    """
    width, depth = len(chart.columns), len(chart.rows)
    value_title = chart.value_title.replace(_IN_US, f"({find_latency_unit(ticks)[0]})")
    for edge, away, text in (
        (_project((width - 1) / 2, -1.0, 0), (1.9, -1.3), chart.column_title),
        (_project(-0.75, (depth - 1) / 2, 0), (-1.9, -1.3), chart.row_title),
        (_project(width - 0.5, -0.5, _HIGHEST), (0.0, 0.6), value_title),
    ):
        yield {"x": edge[0] + away[0], "y": edge[1] + away[1], "text": text}
