"""Charts of response times: how they are distributed, and how far the slowest ones reach."""

from __future__ import annotations

from collections.abc import Iterable

from tkperf.measurement import IoStats
from tkperf.report.charts.parts import PALETTE, Row, Spec, build_frame, log_axis, tooltip

# What is marked; the median lies near the mean and would cover it.
MARKED_PERCENTILES = (99.0, 99.9, 99.99, 99.999)
LEAST_MARK_RATIO = 1.05


def _x(field: str, rows: list[Row]) -> Spec:
    """The axis of response times; it suits the data, or what the page brings instead of none."""
    axis = log_axis(row[edge] for row in rows for edge in ("lower", "upper"))
    return {
        "field": field,
        "type": "quantitative",
        "title": "Response time (us)",
        **(axis if rows else {"scale": {"type": "log", "nice": False}}),
    }


# Buckets come in ascending order; what they add up to is worked out where they are drawn.
_SHARES = [
    {"window": [{"op": "sum", "field": "count", "as": "seen"}], "sort": [{"field": "lower"}]},
    {"joinaggregate": [{"op": "sum", "field": "count", "as": "total"}]},
    {"calculate": "100 * datum.seen / datum.total", "as": "share"},
    {"calculate": "100 - datum.share", "as": "beyond"},
]
_BUCKET_TOOLTIP = tooltip(
    ("lower", "from us"),
    ("upper", "to us"),
    ("count", "I/Os"),
    ("share", "I/Os that took no longer (%)"),
)


def histogram_rows(whole: IoStats) -> list[Row]:
    """The filled buckets: edges in us, I/Os."""
    return [
        {"lower": lower / 1000, "upper": (upper + 1) / 1000, "count": count}
        for lower, upper, count in whole.histogram.buckets()
    ]


def mark_rows(whole: IoStats) -> list[Row]:
    """The mean (ART), percentiles and the maximum (MRT), in us; none that is not known.

    Marks too close to be told apart share one label, at the last of them.
    """
    found: Iterable[tuple[str, float | None]] = (
        ("ART", whole.latency_mean_ns),
        *((f"{percent:g} %", whole.percentile_ns(percent)) for percent in MARKED_PERCENTILES),
        ("MRT", whole.latency_max_ns),
    )
    known = sorted((value / 1000, name) for name, value in found if value is not None)
    rows: list[Row] = []
    waiting: list[str] = []
    for number, (us, name) in enumerate(known):
        waiting.append(name)
        apart = number + 1 == len(known) or known[number + 1][0] > us * LEAST_MARK_RATIO
        label = ", ".join(waiting) if len(waiting) < 3 else f"{waiting[0]} ... {waiting[-1]}"
        rows.append({"mark": name, "us": us, "label": label if apart else ""})
        waiting = [] if apart else waiting
    return rows


def response_time_histogram(rows: list[Row], marked: list[Row], title: str) -> Spec:
    """I/Os by response time, both logarithmic, with the share that took no longer (confidence)."""
    count = {
        "field": "count",
        "type": "quantitative",
        "title": "I/Os",
        "scale": {"type": "log", "domainMin": 0.5, "nice": False},
        "axis": {"format": "~s", "tickCount": 5},
    }
    share = {
        "field": "share",
        "type": "quantitative",
        "title": "I/Os that took no longer (%)",
        "scale": {"domain": [0, 100]},
    }
    return {
        **build_frame(title),
        "datasets": {"buckets": rows, "marks": marked},
        "data": {"name": "buckets"},
        "transform": _SHARES,
        "layer": [
            {
                "mark": {"type": "bar", "color": PALETTE[0]},
                "encoding": {
                    "x": _x("lower", rows),
                    "x2": {"field": "upper"},
                    "y": count,
                    "y2": {"datum": 0.5},
                    "tooltip": _BUCKET_TOOLTIP,
                },
            },
            {
                "mark": {"type": "line", "color": PALETTE[1], "interpolate": "step-before"},
                "encoding": {"x": _x("upper", rows), "y": share},
            },
            _marks_layer(),
        ],
        "resolve": {"scale": {"y": "independent"}},
    }


def exceedance(rows: list[Row], marked: list[Row], title: str) -> Spec:
    """The share of I/Os that took longer than a response time, both logarithmic."""
    return {
        **build_frame(title),
        "datasets": {"buckets": rows, "marks": marked},
        "data": {"name": "buckets"},
        # None is slower than the slowest: that bucket has no place on a logarithmic axis.
        "transform": [*_SHARES, {"filter": "datum.seen < datum.total"}],
        "layer": [
            {
                "mark": {"type": "line", "color": PALETTE[0], "interpolate": "step-after"},
                "encoding": {
                    "x": _x("upper", rows),
                    "y": {
                        "field": "beyond",
                        "type": "quantitative",
                        "title": "I/Os that took longer (%)",
                        "scale": {"type": "log", "domainMax": 100, "nice": False},
                        "axis": {"format": "~g", "tickCount": 6},
                    },
                    "tooltip": tooltip(("upper", "us"), ("beyond", "I/Os that took longer (%)")),
                },
            },
            _marks_layer(),
        ],
    }


def _marks_layer() -> Spec:
    x = {"field": "us", "type": "quantitative"}
    told = tooltip(("mark", "Mark"), ("us", "us"))
    return {
        "data": {"name": "marks"},
        "layer": [
            {
                "mark": {"type": "rule", "strokeDash": [3, 3], "color": PALETTE[7]},
                "encoding": {"x": x, "tooltip": told},
            },
            {
                # Above the plot, where neither bars nor curves cover it.
                "mark": {
                    "type": "text",
                    "angle": 315,
                    "align": "left",
                    "dx": 2,
                    "fontSize": 10,
                    "color": PALETTE[7],
                },
                "encoding": {
                    "x": x,
                    "y": {"value": -5},
                    "text": {"field": "label", "type": "nominal"},
                    "tooltip": told,
                },
            },
        ],
    }
