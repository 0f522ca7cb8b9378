"""Distribution of response times in Vega-Lite, which computes bars and curves from the buckets itself.

The script of a page can therefore replace the buckets.
"""

from __future__ import annotations

from collections.abc import Iterable

from tkperf.page.chart import PALETTE, Distribution
from tkperf.page.figures.curves import BINS_A_DECADE
from tkperf.render.charts.axes import PLAIN_LABEL, log_axis, suit_latency
from tkperf.render.charts.frame import CLICKED, COLOURS, GREY, Row, Spec, build_frame, tooltip

# From this count on, the bars are too tall for labels at three powers of ten.
_MANY_IOS = 10**8
# The first bucket begins at 0, which has no logarithm; half of the finest bucket is small enough.
_LEAST_US = 0.0005


# The buckets are in ascending order; the chart itself adds them up.
_SUMS = [
    {"window": [{"op": "sum", "field": "count", "as": "seen"}], "sort": [{"field": "lower"}]},
    {"joinaggregate": [{"op": "sum", "field": "count", "as": "total"}]},
    {"calculate": "100 * datum.seen / datum.total", "as": "share"},
]
# In bins, not in us.
_PLACE = f"{BINS_A_DECADE} * log(max({{}}, {_LEAST_US})) / LN10"
_BY_BIN = [{"field": "bin"}]
# Bars of equal logarithmic width. The width of fio's buckets doubles at each power of two, so their counts step where
# the response times do not. The I/Os of a bucket are divided among the bins that it overlaps, evenly according to the
# logarithm of the time, like the curve. Rounding applies to the running sum, so that each bin has whole I/Os, and none
# is lost or counted twice.
_BINS = [
    {"calculate": _PLACE.format("datum.lower"), "as": "from"},
    {"calculate": _PLACE.format("datum.upper"), "as": "to"},
    {"calculate": "sequence(floor(datum.from), ceil(datum.to))", "as": "bin"},
    {"flatten": ["bin"]},
    {
        "calculate": "datum.count * (min(datum.to, datum.bin + 1) - max(datum.from, datum.bin))"
        " / (datum.to - datum.from)",
        "as": "part",
    },
    {"aggregate": [{"op": "sum", "field": "part", "as": "part"}], "groupby": ["bin"]},
    {"window": [{"op": "sum", "field": "part", "as": "reached"}], "sort": _BY_BIN},
    {"calculate": "round(datum.reached)", "as": "seen"},
    {"window": [{"op": "lag", "field": "seen", "as": "before"}], "sort": _BY_BIN},
    {"calculate": "datum.seen - (datum.before || 0)", "as": "count"},
    {"joinaggregate": [{"op": "sum", "field": "count", "as": "total"}]},
    {"calculate": "100 * datum.seen / datum.total", "as": "share"},
    {"filter": "datum.count > 0"},
    {"calculate": f"pow(10, datum.bin / {BINS_A_DECADE})", "as": "lower"},
    {"calculate": f"pow(10, (datum.bin + 1) / {BINS_A_DECADE})", "as": "upper"},
]
_EDGES = (("lower", "from µs"), ("upper", "to µs"), ("count", "I/Os"))
_COUNTS = ("lower", "upper", "count", "share", "us")


def _curve(share: str) -> list[Row]:
    """Return transforms that make a point at each edge of each bucket, where ``share`` of the I/Os ``{counted}`` is
    exact.

    The I/Os of a bucket are somewhere between its edges, and no I/O is between two filled buckets. The curve may
    therefore be straight within a bucket, whose width is a 64th of its value, and is level between buckets.
    """
    at_edges = [share.format(counted=counted) for counted in ("(datum.seen - datum.count)", "datum.seen")]
    return [
        {"calculate": "[datum.lower, datum.upper]", "as": "us"},
        {"calculate": f"[{', '.join(at_edges)}]", "as": "at_edge"},
        {"flatten": ["us", "at_edge"]},
    ]


def draw_distribution(chart: Distribution) -> Spec:
    """Draw I/Os by response time, with the share that took no longer, or only the share that took longer."""
    us = _us_axis(edge for bucket in chart.buckets for edge in bucket[:2])
    datasets: dict[str, list[Row]] = {
        "buckets": [bucket._asdict() for bucket in chart.buckets],
        "marks": [mark._asdict() for mark in chart.marks],
    }
    if chart.exceedance:
        layers, resolve = [_draw_longer(us)], {}
    else:
        few = sum(bucket.count for bucket in chart.buckets) < _MANY_IOS
        layers = [_draw_bins(us, ticks=3 if few else 4), _draw_no_longer(us)]
        resolve = {"resolve": {"scale": {"y": "independent"}}}
    layers += _draw_marks()
    if not chart.filled:
        datasets["clicked"] = []
        layers += _draw_clicked()
    return {**build_frame(chart), "datasets": datasets, "layer": layers, **resolve}


def _us_axis(edges: Iterable[float]) -> Spec:
    """Return the axis of response times. Without data, the axis suits the data that the page inserts."""
    given = list(edges)
    axis = log_axis(given) if given else {"scale": {"type": "log", "nice": False}}
    return suit_latency({"type": "quantitative", "title": "Response time (µs)", **axis})


def _draw_bins(us: Spec, *, ticks: int) -> Spec:
    count = {
        "field": "count",
        "type": "quantitative",
        "title": "I/Os (bars)",
        # The axis begins at half an I/O, below the lowest possible bar, and leaves some room above the highest bar.
        "scale": {"type": "log", "domainMin": 0.5, "nice": False, "padding": 8},
        # More ticks would draw a line for each 2, 3 ... 9 if there are fewer powers of ten than ticks.
        "axis": {"format": "~s", "tickCount": ticks},
    }
    return {
        "data": {"name": "buckets"},
        "transform": _BINS,
        "mark": {"type": "rect", "color": COLOURS[PALETTE[0]]},
        "encoding": {
            "x": {"field": "lower", **us},
            "x2": {"field": "upper"},
            "y": count,
            "y2": {"value": "height"},
            "tooltip": tooltip(*_EDGES, ("share", "I/Os that took no longer (%)"), numbers=_COUNTS),
        },
    }


def _draw_no_longer(us: Spec) -> Spec:
    share = {
        "field": "at_edge",
        "type": "quantitative",
        "title": "I/Os that took no longer (%, curve)",
        "scale": {"domain": [0, 100]},
        "axis": {"grid": False},
    }
    return {
        "data": {"name": "buckets"},
        "transform": [*_SUMS, *_curve("100 * {counted} / datum.total")],
        "mark": {"type": "line", "color": COLOURS[PALETTE[1]]},
        "encoding": {"x": {"field": "us", **us}, "y": share},
    }


def _draw_longer(us: Spec) -> Spec:
    share = {
        "field": "at_edge",
        "type": "quantitative",
        "title": "I/Os that took longer (%)",
        "scale": {"type": "log", "domainMax": 100, "nice": True},
        # Not 1e-7, so that all shares have the same form.
        "axis": {"labelExpr": PLAIN_LABEL, "tickCount": 6},
    }
    return {
        "data": {"name": "buckets"},
        "transform": [
            *_SUMS,
            *_curve("100 * (datum.total - {counted}) / datum.total"),
            # No I/O is slower than the slowest, and a share of 0 has no place on a logarithmic axis.
            {"filter": "datum.at_edge > 0"},
        ],
        "mark": {"type": "line", "color": COLOURS[PALETTE[0]]},
        "encoding": {"x": {"field": "us", **us}, "y": share, "tooltip": tooltip(*_EDGES, numbers=_COUNTS)},
    }


_AT_US: Spec = {"field": "us", "type": "quantitative"}


# Each name is at its mark, or this far to the right of the preceding name. The range of the marks takes up about half
# of the width.
_NAME_GAP_PX = 15
_BY_US = [{"field": "us"}]
_NAME_PLACES = [
    {"filter": "datum.label !== ''"},
    {"calculate": f"log(max(datum.us, {_LEAST_US}))", "as": "place"},
    {"joinaggregate": [{"op": "min", "field": "place", "as": "least"}, {"op": "max", "field": "place", "as": "most"}]},
    {"window": [{"op": "row_number", "as": "number"}], "sort": _BY_US},
    {"calculate": f"2 * {_NAME_GAP_PX} / width * datum.number * (datum.most - datum.least)", "as": "gaps"},
    {"calculate": "datum.place - datum.gaps", "as": "free"},
    {"window": [{"op": "max", "field": "free", "as": "taken"}], "sort": _BY_US},
    {"calculate": "exp(datum.taken + datum.gaps)", "as": "name_us"},
]


def _draw_marks() -> list[Spec]:
    """Return a line at each mark. The line leads to the name of the mark above the plot, where neither bars nor curves
    cover it.
    """
    tip = tooltip(("mark", "Mark"), ("us", "µs"), numbers=_COUNTS)
    name: Spec = {**_AT_US, "field": "name_us"}
    text = {"text": {"field": "label", "type": "nominal"}, "y": {"value": -8}}
    slanted = {"type": "text", "angle": 315, "align": "left", "dx": 2}
    rule = {"type": "rule", "strokeDash": [3, 3], "color": GREY}
    lead = {"x": _AT_US, "x2": {"field": "name_us"}, "y": {"value": 0}, "y2": {"value": -8}}
    data: Spec = {"data": {"name": "marks"}}
    named: Spec = {**data, "transform": _NAME_PLACES}
    return [
        {**data, "mark": rule, "encoding": {"x": _AT_US, "tooltip": tip}},
        {**named, "mark": {"type": "rule", "color": GREY}, "encoding": lead},
        {**named, "mark": slanted, "encoding": {"x": name, **text, "tooltip": tip}},
    ]


def _draw_clicked() -> list[Spec]:
    """Return a line and a triangle at the clicked figure. The page's script adds the figure as data."""
    tip = tooltip(("mark", "Clicked"), ("us", "µs"), numbers=_COUNTS)
    triangle = {"type": "point", "shape": "triangle-down", "filled": True, "size": 90, "opacity": 1, "color": CLICKED}
    rule = {"type": "rule", "color": CLICKED, "strokeWidth": 2}
    data: Spec = {"data": {"name": "clicked"}}
    return [
        {**data, "mark": rule, "encoding": {"x": _AT_US, "tooltip": tip}},
        {**data, "mark": triangle, "encoding": {"x": _AT_US, "y": {"value": 4}, "tooltip": tip}},
    ]
