"""Charts of every second: minimum, mean and maximum of as many parts as a plot has columns."""

from __future__ import annotations

from dataclasses import dataclass

from tkperf.analysis.details import CellDetail
from tkperf.report.charts.parts import PALETTE, Row, Spec, build_frame, log_axis, tooltip
from tkperf.seconds import FloatArray, reduce_to_columns

# More columns than a page has dots across would only make files larger.
COLUMNS = 400
# As many rounds as the PTS allows; more lines between them would hide the curve.
MOST_MARKED_PARTS = 25

# Hours may go beyond 24: a clock's format would begin again.
# Milliseconds only where there are any, as on the axis of a few seconds.
_CLOCK = "floor({0} / 3600000) + utcFormat({0}, {0} % 1000 ? ':%M:%S.%L' : ':%M:%S')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What is drawn over the seconds. ``series``: its curves by column of ``Seconds``."""

    title: str
    series: tuple[tuple[str, str], ...]
    log: bool = False


IOPS = Quantity(title="IOPS", series=(("IOPS", "iops"),))
THROUGHPUT = Quantity(title="MB/s", series=(("MB/s", "megabytes_per_s"),))
# The maximum of a second is drawn as such: a mean of maxima would mean nothing.
LATENCY = Quantity(
    title="Latency (us)",
    series=(("mean of a second", "latency_mean_us"), ("maximum of a second", "latency_max_us")),
    log=True,
)


def find_rate(test: str) -> Quantity:
    """Throughput tests are told in MB/s, all others in IOPS."""
    return THROUGHPUT if test == "tp" else IOPS


def seconds_rows(detail: CellDetail, quantity: Quantity) -> list[Row]:
    """Rows for ``over_seconds``: time in ms, extremes and the value of the curve."""
    rows: list[Row] = []
    for name, column in quantity.series:
        values: FloatArray = getattr(detail.seconds, column)
        reduced = reduce_to_columns(detail.seconds.start_s, values, COLUMNS)
        line = reduced.high if column == "latency_max_us" else reduced.mean
        columns = (reduced.at_s * 1000, reduced.low, line, reduced.high)
        rows += [
            {"t": round(at, 3), "series": name, "low": low, "value": value, "high": high}
            for at, low, value, high in zip(*(each.tolist() for each in columns), strict=True)
        ]
    return rows


def window_rows(detail: CellDetail) -> list[Row]:
    """From where to where the parts in the verdict's window reach, in ms."""
    return [
        {"from": 1000 * part.start_s, "to": 1000 * part.end_s}
        for part in detail.parts
        if part.judged
    ]


def part_rows(detail: CellDetail) -> list[Row]:
    """Where each part begins, in ms; none if there is one only, or too many to tell apart."""
    if not 1 < len(detail.parts) <= MOST_MARKED_PARTS:
        return []
    return [{"t": 1000 * part.start_s, "part": part.number} for part in detail.parts]


def over_seconds(
    rows: list[Row], window: list[Row], parts: list[Row], quantity: Quantity, title: str
) -> Spec:
    """A quantity over time, each point with the extremes of what it stands for."""
    x = {
        "field": "t",
        "type": "temporal",
        "title": "Time (h:mm:ss)",
        "scale": {"type": "utc", "nice": False},
        "axis": {
            "labelExpr": _CLOCK.format("datum.value"),
            "labelOverlap": "greedy",
            "labelSeparation": 8,
        },
    }
    y: dict[str, object] = {
        "field": "value",
        "type": "quantitative",
        "title": quantity.title,
        "scale": {"nice": True} | ({"type": "log"} if quantity.log else {"zero": True}),
    }
    if quantity.log and rows:
        y |= log_axis(row[field] for row in rows for field in ("low", "high"))
    names = [name for name, _ in quantity.series]
    datasets = {"seconds": rows, "window": window, "parts": parts}
    colour = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "sort": None,
        "scale": {"domain": names, "range": PALETTE[: len(names)]},
        "legend": {"orient": "top", "symbolOpacity": 1} if len(names) > 1 else None,
    }
    return {
        **build_frame(title),
        # For the page: which columns to reduce anew when a reader zooms in.
        "usermeta": {"series": [list(each) for each in quantity.series]},
        "datasets": datasets,
        "layer": _with_data(datasets, [
            {
                "data": {"name": "window"},
                "mark": {"type": "rect", "color": PALETTE[2], "opacity": 0.12},
                "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}},
            },
            {
                "data": {"name": "parts"},
                "mark": {"type": "rule", "color": PALETTE[7], "opacity": 0.4},
                "encoding": {"x": x},
            },
            {
                "data": {"name": "parts"},
                "mark": {"type": "text", "align": "left", "dx": 2, "baseline": "top",
                         "fontSize": 10, "color": PALETTE[7]},
                "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "part", "type": "nominal"}},
            },
            {
                "data": {"name": "seconds"},
                "params": [
                    {
                        "name": "zoom",
                        "select": {"type": "interval", "encodings": ["x"]},
                        "bind": "scales",
                    }
                ],
                "mark": {"type": "area", "opacity": 0.3},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "low"},
                    "y2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "data": {"name": "seconds"},
                "transform": [{"calculate": _CLOCK.format("datum.t"), "as": "clock"}],
                "mark": {"type": "line", "strokeWidth": 1},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "tooltip": tooltip(
                        ("series", "Series"),
                        ("clock", "Time"),
                        ("value", quantity.title),
                        ("low", "lowest"),
                        ("high", "highest"),
                    ),
                },
            },
        ]),
    }  # fmt: skip


def _with_data(datasets: dict[str, list[Row]], layers: list[Spec]) -> list[Spec]:
    """Layers that have something to draw; all where the page will bring the data."""
    if not any(datasets.values()):
        return layers
    return [layer for layer in layers if datasets[layer["data"]["name"]]]  # type: ignore[index]
