"""Draw the distribution of response times in Vega-Lite. Vega-Lite computes the bars and curves from the buckets.

The script of a page therefore needs to replace only the buckets.
"""

from __future__ import annotations

from collections.abc import Iterable

from tkperf.page.chart import PALETTE, Distribution
from tkperf.page.figures.curves import BINS_A_DECADE
from tkperf.render.charts.axes import PLAIN_LABEL, log_axis, suit_latency
from tkperf.render.charts.frame import CLICKED, COLOURS, GREY, Row, Spec, build_frame, tooltip

# From this number of I/Os on, the axis of I/Os covers so many powers of ten that three labels are not enough.
_MANY_IOS = 10**8
# in µs; the first bucket begins at 0, which has no logarithm, so half of the smallest bucket is used instead of 0
_LEAST_US = 0.0005


# The chart adds up the buckets, so they must be in ascending order.
_SUMS = [
    {"window": [{"op": "sum", "field": "count", "as": "seen"}], "sort": [{"field": "lower"}]},
    {"joinaggregate": [{"op": "sum", "field": "count", "as": "total"}]},
    {"calculate": "100 * datum.seen / datum.total", "as": "share"},
]
# The unit of the result is bins, not µs.
_PLACE = f"{BINS_A_DECADE} * log(max({{}}, {_LEAST_US})) / LN10"
_BY_BIN = [{"field": "bin"}]
# All bars have the same logarithmic width. The width of fio's buckets doubles at each power of two. The counts of the
# buckets therefore have steps that the response times do not have. To avoid these steps, the I/Os of a bucket are
# divided among the bins that the bucket overlaps. These I/Os are distributed evenly over the logarithm of the time, as
# in the curve. The cumulative sum is rounded, so that each bin contains a whole number of I/Os, and no I/O is lost or
# counted twice.
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
    """Return transforms that create a point at each edge of each bucket. ``share`` is an expression that contains the
    number of I/Os ``{counted}``. At the edges, the result of this expression is exact.

    The response time of an I/O lies between the edges of its bucket, and no response time lies between two filled
    buckets. The curve is therefore a straight line within a bucket and level between buckets. No bucket is wider than a
    64th of its lower edge.
    """
    at_edges = [share.format(counted=counted) for counted in ("(datum.seen - datum.count)", "datum.seen")]
    return [
        {"calculate": "[datum.lower, datum.upper]", "as": "us"},
        {"calculate": f"[{', '.join(at_edges)}]", "as": "at_edge"},
        {"flatten": ["us", "at_edge"]},
    ]


def draw_distribution(chart: Distribution) -> Spec:
    """Return the specification of a chart of I/Os by response time. The chart also shows the share of I/Os that were
    completed within a given time. An exceedance chart shows only the share of I/Os that needed a longer time.
    """
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
    """Return the axis of response times. If there are no data yet, the axis suits the data that the page inserts
    later.
    """
    given = list(edges)
    axis = log_axis(given) if given else {"scale": {"type": "log", "nice": False}}
    return suit_latency({"type": "quantitative", "title": "Response time (µs)", **axis})


def _draw_bins(us: Spec, *, ticks: int) -> Spec:
    count = {
        "field": "count",
        "type": "quantitative",
        "title": "I/Os (bars)",
        # The axis begins at half an I/O, which is below the lowest possible bar. The padding leaves some space above
        # the highest bar.
        "scale": {"type": "log", "domainMin": 0.5, "nice": False, "padding": 8},
        # If there were more ticks than powers of ten, Vega would draw lines for 2, 3 ... 9.
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
        # Without the expression for labels, Vega would write small shares as 1e-7, which differs from the form of all
        # other shares.
        "axis": {"labelExpr": PLAIN_LABEL, "tickCount": 6},
    }
    return {
        "data": {"name": "buckets"},
        "transform": [
            *_SUMS,
            *_curve("100 * (datum.total - {counted}) / datum.total"),
            # No I/O is slower than the slowest I/O, so the share at the upper edge of the bucket of this I/O is 0. A
            # logarithmic axis cannot show 0.
            {"filter": "datum.at_edge > 0"},
        ],
        "mark": {"type": "line", "color": COLOURS[PALETTE[0]]},
        "encoding": {"x": {"field": "us", **us}, "y": share, "tooltip": tooltip(*_EDGES, numbers=_COUNTS)},
    }


_AT_US: Spec = {"field": "us", "type": "quantitative"}


# The name of a mark is drawn at the mark or, if the preceding name is too close, this number of pixels to the right of
# that name. The estimate assumes that the marks cover about half of the width.
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
    """Return a line for each mark. The line leads to the name of the mark above the plot, where bars and curves do not
    cover the name.
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
    """Return a line and a triangle at the figure on which the user clicked. The script of the page adds this figure as
    data.
    """
    tip = tooltip(("mark", "Clicked"), ("us", "µs"), numbers=_COUNTS)
    triangle = {"type": "point", "shape": "triangle-down", "filled": True, "size": 90, "opacity": 1, "color": CLICKED}
    rule = {"type": "rule", "color": CLICKED, "strokeWidth": 2}
    data: Spec = {"data": {"name": "clicked"}}
    return [
        {**data, "mark": rule, "encoding": {"x": _AT_US, "tooltip": tip}},
        {**data, "mark": triangle, "encoding": {"x": _AT_US, "y": {"value": 4}, "tooltip": tip}},
    ]
