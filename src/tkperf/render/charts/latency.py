"""Charts of response times: their distribution, and the reach of the slowest ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tkperf.model.measurement import IoStats
from tkperf.render.charts.vega import NEUTRAL, PALETTE, Row, Spec, build_frame, log_axis, tooltip

# Marked percentiles; the median is close to the mean and would cover it.
MARKED_PERCENTILES = (99.0, 99.9, 99.99, 99.999)
LEAST_MARK_RATIO = 1.05
BINS_A_DECADE = 40
"""Bars of a histogram are 5.9 % of the response time wide: several of fio's buckets."""
# From this count on the bars are too tall for three labels at powers of ten.
_MANY_IOS = 10**8
# The first bucket begins at 0, which has no logarithm; half of the finest bucket is small enough.
_LEAST_US = 0.0005


def _x(field: str, rows: list[Row]) -> Spec:
    """Return the axis of response times; without data it suits the data that the page brings."""
    axis = log_axis(row[edge] for row in rows for edge in ("lower", "upper"))
    return {
        "field": field,
        "type": "quantitative",
        "title": "Response time (µs)",
        **(axis if rows else {"scale": {"type": "log", "nice": False}}),
    }


# Buckets come in ascending order; the chart itself adds them up.
_SUMS = [
    {"window": [{"op": "sum", "field": "count", "as": "seen"}], "sort": [{"field": "lower"}]},
    {"joinaggregate": [{"op": "sum", "field": "count", "as": "total"}]},
    {"calculate": "100 * datum.seen / datum.total", "as": "share"},
]
# In bins, not in us.
_PLACE = f"{BINS_A_DECADE} * log(max({{}}, {_LEAST_US})) / LN10"
_BY_BIN = [{"field": "bin"}]
# Bars of equal logarithmic width. The width of fio's buckets doubles at each power of two, so their counts step
# where the response times do not. The I/Os of a bucket go to the bins that it overlaps, like the curve evenly by
# the logarithm of the time. Rounding applies to the running sum: whole I/Os, none lost, none twice.
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
_BUCKET_TOOLTIP = tooltip(
    ("lower", "from µs"),
    ("upper", "to µs"),
    ("count", "I/Os"),
    ("share", "I/Os that took no longer (%)"),
)


def _curve(share: str) -> list[Spec]:
    """Return transforms to a point at each edge of each bucket, where ``share`` of the I/Os ``{counted}`` is exact.

    The I/Os of a bucket are somewhere between its edges, and no I/O is between two filled buckets. So the
    curve may be straight within a bucket, a 64th of its value, and is level from one to the next.
    """
    at_edges = [
        share.format(counted=counted) for counted in ("(datum.seen - datum.count)", "datum.seen")
    ]
    return [
        {"calculate": "[datum.lower, datum.upper]", "as": "us"},
        {"calculate": f"[{', '.join(at_edges)}]", "as": "at_edge"},
        {"flatten": ["us", "at_edge"]},
    ]


def exceedance_points(buckets: Iterable[tuple[float, float, int]]) -> Iterator[tuple[float, float]]:
    """Yield the same curve in numbers: response time, and percentage of the I/Os that took longer.

    The curve ends at the lower edge of the slowest bucket: beyond that bucket the share is 0, which has no
    place on a logarithmic axis.

    Args:
        buckets: lower edge, upper edge, I/Os, ascending.
    """
    filled = tuple(buckets)
    total = beyond = sum(count for _, _, count in filled)
    for lower, upper, count in filled:
        yield lower, 100 * beyond / total
        beyond -= count
        if beyond:
            yield upper, 100 * beyond / total


def histogram_rows(whole: IoStats) -> list[Row]:
    """Return the filled buckets: edges in us, I/Os."""
    return [
        {"lower": lower / 1000, "upper": (upper + 1) / 1000, "count": count}
        for lower, upper, count in whole.histogram.buckets()
    ]


def _percentile(percent: float) -> Callable[[IoStats], float | None]:
    return lambda whole: whole.percentile_ns(percent)


# Mean, percentiles and maximum: the name of each, and its value in ns.
LATENCY_MARKS: tuple[tuple[str, Callable[[IoStats], float | None]], ...] = (
    ("ART", lambda whole: whole.latency_mean_ns),
    *((f"{percent:g} %", _percentile(percent)) for percent in MARKED_PERCENTILES),
    ("MRT", lambda whole: whole.latency_max_ns),
)


def mark_rows(whole: IoStats) -> list[Row]:
    """Return the mean (ART), percentiles and the maximum (MRT), in us, as far as they are known.

    Marks too close to tell apart share one label, at the last of them.
    """
    values_ns = ((name, mark(whole)) for name, mark in LATENCY_MARKS)
    marks_us = sorted((value / 1000, name) for name, value in values_ns if value is not None)
    rows: list[Row] = []
    waiting: list[str] = []
    for number, (us, name) in enumerate(marks_us):
        waiting.append(name)
        apart = number + 1 == len(marks_us) or marks_us[number + 1][0] > us * LEAST_MARK_RATIO
        label = ", ".join(waiting) if len(waiting) < 3 else f"{waiting[0]} ... {waiting[-1]}"
        rows.append({"mark": name, "us": us, "label": label if apart else ""})
        waiting = [] if apart else waiting
    return rows


def draw_response_times(rows: list[Row], marked: list[Row], title: str) -> Spec:
    """Draw I/Os by response time, both logarithmic, with the share that took no longer (confidence)."""
    count = {
        "field": "count",
        "type": "quantitative",
        "title": "I/Os (bars)",
        # The axis begins at half an I/O, below the lowest possible bar, and has some room above the highest.
        "scale": {"type": "log", "domainMin": 0.5, "nice": False, "padding": 8},
        # More ticks would draw a line for each 2, 3 ... 9 if there are fewer powers of ten than ticks.
        "axis": {"format": "~s", "tickCount": 3 if _count(rows) < _MANY_IOS else 4},
    }
    share = {
        "field": "at_edge",
        "type": "quantitative",
        "title": "I/Os that took no longer (%, curve)",
        "scale": {"domain": [0, 100]},
        "axis": {"grid": False},
    }
    return {
        **build_frame(title),
        "datasets": {"buckets": rows, "marks": marked},
        "data": {"name": "buckets"},
        "layer": [
            {
                "transform": _BINS,
                "mark": {"type": "rect", "color": PALETTE[0]},
                "encoding": {
                    "x": _x("lower", rows),
                    "x2": {"field": "upper"},
                    "y": count,
                    "y2": {"value": "height"},
                    "tooltip": _BUCKET_TOOLTIP,
                },
            },
            {
                "transform": [*_SUMS, *_curve("100 * {counted} / datum.total")],
                "mark": {"type": "line", "color": PALETTE[1]},
                "encoding": {"x": _x("us", rows), "y": share},
            },
            _marks_layer(),
        ],
        "resolve": {"scale": {"y": "independent"}},
    }


def _count(rows: Iterable[Row]) -> float:
    return sum(count for row in rows if isinstance(count := row["count"], int | float))


def exceedance(rows: list[Row], marked: list[Row], title: str) -> Spec:
    """Draw the share of I/Os that took longer than a response time, both logarithmic."""
    return {
        **build_frame(title),
        "datasets": {"buckets": rows, "marks": marked},
        "data": {"name": "buckets"},
        "transform": [
            *_SUMS,
            *_curve("100 * (datum.total - {counted}) / datum.total"),
            # No I/O is slower than the slowest, and a share of 0 has no place on a logarithmic axis.
            {"filter": "datum.at_edge > 0"},
        ],
        "layer": [
            {
                "mark": {"type": "line", "color": PALETTE[0]},
                "encoding": {
                    "x": _x("us", rows),
                    "y": {
                        "field": "at_edge",
                        "type": "quantitative",
                        "title": "I/Os that took longer (%)",
                        "scale": {"type": "log", "domainMax": 100, "nice": True},
                        "axis": {"format": "~g", "tickCount": 6},
                    },
                    "tooltip": tooltip(("lower", "from µs"), ("upper", "to µs"), ("count", "I/Os")),
                },
            },
            _marks_layer(),
        ],
    }


def _marks_layer() -> Spec:
    x = {"field": "us", "type": "quantitative"}
    tip = tooltip(("mark", "Mark"), ("us", "µs"))
    return {
        "data": {"name": "marks"},
        "layer": [
            {
                "mark": {"type": "rule", "strokeDash": [3, 3], "color": NEUTRAL},
                "encoding": {"x": x, "tooltip": tip},
            },
            {
                # Above the plot, where neither bars nor curves cover it.
                "mark": {"type": "text", "angle": 315, "align": "left", "dx": 2},
                "encoding": {
                    "x": x,
                    "y": {"value": -5},
                    "text": {"field": "label", "type": "nominal"},
                    "tooltip": tip,
                },
            },
        ],
    }
