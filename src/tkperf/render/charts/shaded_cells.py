"""Draw shaded cells in Vega-Lite: the heat map of response times, and the grid of two offered rates.

The heat map contains a rectangle for each combination of a time slice and a band in which I/Os were counted. The data
contain one row for each time slice, and Vega creates the rectangles from the rows. If the data contained a row for each
rectangle, a page would be larger by a megabyte.

The grid contains a square for each cell. A line between squares shows the limit. The shade of a square shows the value
of the cell.
"""

from __future__ import annotations

from tkperf.page.chart import PALETTE, SHARE_NAMES, SHARES_PERCENT, GridMap, HeatMap
from tkperf.render.charts.axes import LATENCY, log_axis
from tkperf.render.charts.frame import COLOURS, FLAGGED, GREY, HEIGHT_PX, Row, Spec, build_frame, tooltip

# Opacities of the classes of shares, as the last two hexadecimal digits of a colour code: 100, 69, 45, 28 and 16 %. The
# greatest share is first. All classes have the same colour, so that a reader does not need to distinguish colours. The
# opacities suit both light and dark pages.
_OPACITIES = ("FF", "B0", "74", "48", "2A")
# in µs; the first bucket begins at 0, which has no logarithm, so half of the smallest bucket is used instead of 0
_LEAST_US = 0.0005
TIME = "Response time"


def draw_heat_map(chart: HeatMap) -> Spec:
    """Return the specification of a heat map. The shade of a rectangle shows which share of the I/Os of a time slice
    belongs to a band of response time.
    """
    edges_us = [max(_LEAST_US, edge) for edge in chart.edges_us]
    rows: list[Row] = []
    for column in chart.slices:
        filled = [number for number, ios in enumerate(column.ios) if ios]
        if filled:
            first, last = filled[0], filled[-1]
            rows.append({"x": column.begin, "end": column.end, "first": first, "n": column.ios[first : last + 1]})
    axis = log_axis(edges_us)
    # The axis ends at the outer edges of the bands. The edges are rounded to whole pixels, because otherwise lines
    # would appear between neighbouring bands.
    axis["scale"] = {"type": "log", "domain": [edges_us[0], edges_us[-1]], "nice": False, "round": True}
    axis["axis"] = {**axis["axis"], "labelExpr": LATENCY.format("datum.value")}  # type: ignore[dict-item]
    place: Spec = {"type": "quantitative"}
    encoding: Spec = {
        "x": {
            **place,
            "field": "x",
            "title": chart.x.title,
            "scale": {"domain": list(chart.x.domain or ()), "round": True},
        },
        "x2": {"field": "end"},
        "y": {**place, "field": "low", "title": TIME, **axis},
        "y2": {"field": "high"},
        "color": {
            "field": "class",
            "type": "ordinal",
            "sort": list(SHARE_NAMES),
            "title": "Share of the I/Os",
            "scale": {"domain": list(SHARE_NAMES), "range": [COLOURS[PALETTE[0]] + each for each in _OPACITIES]},
            "legend": {"orient": "top", "columns": len(SHARE_NAMES), "symbolType": "square", "symbolStrokeWidth": 0},
        },
        "tooltip": tooltip(
            ("x", f"from {chart.x.title}"),
            ("end", f"to {chart.x.title}"),
            ("took", TIME),
            ("n", "I/Os"),
            ("share", "% of the I/Os of this time"),
            numbers=("x", "end", "n", "share"),
        ),
    }
    layer: Spec = {
        "data": {"name": "slices"},
        "transform": _spread(edges_us),
        "mark": {"type": "rect", "clip": True},
        "encoding": encoding,
        "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}],
    }
    return {
        **build_frame(chart, HEIGHT_PX),
        "usermeta": {"edges_us": edges_us},
        "datasets": {"slices": rows},
        "layer": [layer],
    }


def _spread(edges_us: list[float]) -> list[Row]:
    """Return transforms that convert each time slice to one row for each band that contains I/Os."""
    found = f"'{SHARE_NAMES[-1]}'"
    for name, least in reversed(list(zip(SHARE_NAMES, SHARES_PERCENT, strict=True))[:-1]):
        found = f"10000 * datum.n >= {round(100 * least)} * datum.all ? '{name}' : {found}"
    edges = f"[{','.join(f'{edge:.6g}' for edge in edges_us)}]"
    from_to = " + ' to ' + ".join(f"({LATENCY.format(f'datum.{edge}')})" for edge in ("low", "high"))
    return [
        {"calculate": "sequence(datum.first, datum.first + length(datum.n))", "as": "band"},
        {"flatten": ["n", "band"]},
        {"joinaggregate": [{"op": "sum", "field": "n", "as": "all"}], "groupby": ["x"]},
        {"filter": "datum.n > 0"},
        {"calculate": f"{edges}[datum.band]", "as": "low"},
        {"calculate": f"{edges}[datum.band + 1]", "as": "high"},
        {"calculate": "100 * datum.n / datum.all", "as": "share"},
        {"calculate": found, "as": "class"},
        {"calculate": from_to, "as": "took"},
    ]


_SQUARE_PX, _LEAST_PX, _MOST_PX = 34, 200, 460
_PALEST = 0.06
# Squares with a higher strength are so dark that their text must be white.
_DARK = 0.85


def draw_grid_map(chart: GridMap) -> Spec:
    """Return the specification of a grid. The squares are drawn from the lower left corner on, and the limit is drawn
    in front of the squares.
    """
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
    """Return an axis on which the name of each place is written at the middle of its squares."""
    names = ",".join(f"'{place}'" for place in places)
    return {
        "title": title,
        "scale": {"domain": [0, len(places)], "nice": False, "zero": False},
        "axis": {
            "values": [number + 0.5 for number in range(len(places))],
            # If no tick count is given here, Vega uses the tick count for all axes and omits values.
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
