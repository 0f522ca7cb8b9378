"""Heat map of response times in Vega-Lite: a rectangle for each time slice and band that contains I/Os.

The data contain a row for each time slice. Vega makes the rectangles from it, because a row for each rectangle would
make a page larger by a megabyte.
"""

from __future__ import annotations

from tkperf.page.chart import PALETTE, SHARE_NAMES, SHARES_PERCENT, HeatMap
from tkperf.render.charts.axes import LATENCY, log_axis
from tkperf.render.charts.frame import COLOURS, HEIGHT_PX, Row, Spec, build_frame, tooltip

# Opacities of the classes of shares, the greatest first, as the last two digits of a colour: 100, 69, 45, 28 and 16 %.
# All classes have one colour, so that no reader needs to distinguish colours, and suit a light and a dark page.
_OPACITIES = ("FF", "B0", "74", "48", "2A")
# The first bucket begins at 0, which has no logarithm; half of the finest bucket is small enough.
_LEAST_US = 0.0005
TIME = "Response time"


def draw_heat_map(chart: HeatMap) -> Spec:
    """Draw the share of the I/Os of each time slice that lies in each band of response time."""
    edges_us = [max(_LEAST_US, edge) for edge in chart.edges_us]
    rows: list[Row] = []
    for column in chart.slices:
        filled = [number for number, ios in enumerate(column.ios) if ios]
        if filled:
            first, last = filled[0], filled[-1]
            rows.append({"x": column.begin, "end": column.end, "first": first, "n": column.ios[first : last + 1]})
    axis = log_axis(edges_us)
    # The axis ends with the bands. Whole pixels leave no lines between neighbours.
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
    """Return transforms that turn time slices into a row for each band that contains I/Os."""
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
