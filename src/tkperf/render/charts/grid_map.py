"""Grid of two offered rates in Vega-Lite: a square for each cell, shaded by its value, and a limit between squares."""

from __future__ import annotations

from tkperf.page.chart import PALETTE, GridMap
from tkperf.render.charts.frame import COLOURS, FLAGGED, GREY, Row, Spec, build_frame, tooltip

_SQUARE_PX, _LEAST_PX, _MOST_PX = 34, 200, 460
_PALEST = 0.06
# Darker squares have white text.
_DARK = 0.85


def draw_grid_map(chart: GridMap) -> Spec:
    """Draw the squares from the lower left corner, and the limit above them."""
    rows = len(chart.y.places)
    facts = [(f"fact{number}", title) for number, title in enumerate(chart.facts)]
    tip = tooltip(("across", chart.x.title), ("up", chart.y.title), *facts, ("flag", "Not the device alone"))
    axes: Spec = {
        "x": {"field": "x", "type": "quantitative", **_axis(chart.x.title, chart.x.places, overlap="greedy")},
        "y": {"field": "y", "type": "quantitative", **_axis(chart.y.title, chart.y.places, overlap=False)},
    }
    corners: Spec = {**axes, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    counted = "isValid(datum.strength)"
    blue = COLOURS[PALETTE[0]]
    layers: list[Spec] = [
        {
            "data": {"name": "squares"},
            "transform": [{"filter": counted}],
            "mark": {"type": "rect", "color": blue, "stroke": GREY, "strokeWidth": 0.5, "strokeOpacity": 0.6},
            "encoding": {
                **corners,
                "fillOpacity": {
                    "field": "strength",
                    "type": "quantitative",
                    "scale": {"domain": [0, 1], "range": [_PALEST, 1]},
                    "legend": None,
                },
                "tooltip": tip,
            },
        },
        {
            "data": {"name": "squares"},
            "transform": [{"filter": f"!{counted}"}],
            "mark": {"type": "rect", "fillOpacity": 0, "stroke": GREY, "strokeDash": [3, 3], "strokeOpacity": 0.6},
            "encoding": {**corners, "tooltip": tip},
        },
        *(_texts(axes, dark=dark, tip=tip) for dark in (False, True)),
    ]
    datasets: dict[str, list[Row]] = {"squares": [_row(chart, number) for number in range(len(chart.squares))]}
    if chart.edges:
        datasets["limit"] = [edge._asdict() | {"limit": chart.limit} for edge in chart.edges]
        ends = {"x2": {"field": "x_end"}, "y2": {"field": "y_end"}}
        layers.append(
            {
                "data": {"name": "limit"},
                "mark": {"type": "rule", "color": FLAGGED, "strokeWidth": 3, "strokeCap": "square"},
                "encoding": {**axes, **ends, "tooltip": tooltip(("limit", "Line"))},
            }
        )
    height = max(_LEAST_PX, min(_MOST_PX, _SQUARE_PX * rows))
    return {**build_frame(chart, height), "datasets": datasets, "layer": layers}


def _texts(axes: Spec, *, dark: bool, tip: list[Row]) -> Spec:
    is_dark = f"isValid(datum.strength) && datum.strength >= {_DARK}"
    return {
        "data": {"name": "squares"},
        "transform": [
            {"filter": is_dark if dark else f"!({is_dark})"},
            {"calculate": "datum.x + 0.5", "as": "middle"},
            {"calculate": "datum.y + 0.5", "as": "centre"},
        ],
        "mark": {"type": "text", "fontSize": 12} | ({"color": "white"} if dark else {}),
        "encoding": {
            "x": {**axes["x"], "field": "middle"},  # type: ignore[dict-item]
            "y": {**axes["y"], "field": "centre"},  # type: ignore[dict-item]
            "text": {"field": "text", "type": "nominal"},
            "tooltip": tip,
        },
    }


def _axis(title: str, places: tuple[object, ...], *, overlap: object) -> Spec:
    """Return an axis with the name of each place in the middle of its squares."""
    names = ",".join(f"'{place}'" for place in places)
    return {
        "title": title,
        "scale": {"domain": [0, len(places)], "nice": False, "zero": False},
        "axis": {
            "values": [number + 0.5 for number in range(len(places))],
            # Otherwise the tick count of all axes would thin out the values.
            "tickCount": len(places),
            "labelExpr": f"[{names}][floor(datum.value)]",
            "grid": False,
            "ticks": False,
            "domain": False,
            "labelOverlap": overlap,
        },
    }


def _row(chart: GridMap, number: int) -> Row:
    square = chart.squares[number]
    row: Row = {
        "x": square.column,
        "x2": square.column + 1,
        "y": square.row,
        "y2": square.row + 1,
        "across": str(chart.x.places[square.column]),
        "up": str(chart.y.places[square.row]),
        "text": square.text + ("!" if square.flag else ""),
        "strength": None if square.strength is None else round(square.strength, 4),
        **{f"fact{at}": fact for at, fact in enumerate(square.facts)},
        "flag": square.flag,
    }
    return row | ({"cell": square.link} if square.link else {})
