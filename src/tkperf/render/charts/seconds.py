"""Charts of every second: minimum, mean and maximum of as many parts as a plot has columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from tkperf.analysis.details import CellDetail
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MEAN, Quantity
from tkperf.model.seconds import FloatArray, Seconds, reduce_to_columns
from tkperf.page.naming import describe_together
from tkperf.render.charts.colours import colour_quantity
from tkperf.render.charts.flagged import FLAGGED, flag
from tkperf.render.charts.vega import (
    NEUTRAL,
    PALETTE,
    Row,
    Spec,
    build_frame,
    name_channel,
    quantity_axis,
    tooltip,
)

# More columns than a page has dots across would only make files larger.
COLUMNS = 400
# The PTS allows as many rounds; more lines between them would hide the curve.
MOST_MARKED_PARTS = 25
_RECORDED = {field.name for field in fields(Seconds)}

# Hours may go beyond 24: a clock's format would begin again.
# Milliseconds only if there are any, like on the axis of a few seconds.
_CLOCK = "floor({0} / 3600000) + utcFormat({0}, {0} % 1000 ? ':%M:%S.%L' : ':%M:%S')"


LATENCIES_OF_SECONDS = (LATENCY_MEAN, LATENCY_MAX)


def find_recorded(quantities: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Return the quantities that the run keeps for every second."""
    return tuple(quantity for quantity in quantities if quantity.key in _RECORDED)


def _name(quantity: Quantity) -> str:
    if quantity.unit != LATENCY_MEAN.unit:
        return quantity.short
    return f"{quantity.label.removesuffix(' latency')} of a second"


def seconds_rows(detail: CellDetail, quantities: Sequence[Quantity]) -> list[Row]:
    """Return rows for ``over_seconds``: time in ms, extremes and the value of the curve."""
    rows: list[Row] = []
    for quantity in quantities:
        name = _name(quantity)
        values: FloatArray = getattr(detail.seconds, quantity.key)
        reduced = reduce_to_columns(detail.seconds.start_s, values, COLUMNS)
        # The curve of maxima has the maximum of each column: a mean of maxima would mean nothing.
        line = reduced.high if quantity is LATENCY_MAX else reduced.mean
        columns = (reduced.at_s * 1000, reduced.low, line, reduced.high)
        rows += [
            {"t": round(at, 3), "series": name, "low": low, "value": value, "high": high}
            for at, low, value, high in zip(*(column.tolist() for column in columns), strict=True)
        ]
    return rows


def window_rows(detail: CellDetail) -> list[Row]:
    """Return start and end of each part in the verdict's window, in ms."""
    return [
        {"from": 1000 * part.start_s, "to": 1000 * part.end_s}
        for part in detail.parts
        if part.judged
    ]


def flagged_rows(detail: CellDetail) -> list[Row]:
    """Return start and end of each flagged part, in ms."""
    return [
        {"from": 1000 * part.start_s, "to": 1000 * part.end_s, **found}
        for part in detail.parts
        if (found := flag(part))
    ]


def part_rows(detail: CellDetail) -> list[Row]:
    """Return the start of each part, in ms; empty for a single part, or for too many to tell apart."""
    if not 1 < len(detail.parts) <= MOST_MARKED_PARTS:
        return []
    return [{"t": 1000 * part.start_s, "part": part.number} for part in detail.parts]


def over_seconds(
    rows: list[Row],
    window: list[Row],
    parts: list[Row],
    flagged: list[Row],
    quantities: Sequence[Quantity],
    title: str,
) -> Spec:
    """Draw quantities over time, each point with the extremes of the seconds that it represents."""
    log = quantities[0].unit == LATENCY_MEAN.unit
    y_title = describe_together(quantities)
    x: Spec = {
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
    if rows:
        y = quantity_axis(rows, y_title, log=log, fields=("low", "high"))
    else:  # the page brings them
        scale: Row = {"nice": True} | ({"type": "log"} if log else {"zero": True})
        y = {"field": "value", "type": "quantitative", "title": y_title, "scale": scale}
    # The highest first, in the order of the curves.
    names = {_name(quantity): colour_quantity(quantity.key) for quantity in reversed(quantities)}
    datasets = {"seconds": rows, "window": window, "flagged": flagged, "parts": parts}
    colour = name_channel(None, list(names), list(names.values())) | {
        "legend": {"orient": "top", "symbolOpacity": 1} if len(names) > 1 else None
    }
    return {
        **build_frame(title),
        # For the page: the columns to reduce again when a reader zooms in.
        "usermeta": {"series": [[_name(quantity), quantity.key] for quantity in quantities]},
        "datasets": datasets,
        "layer": _with_data(datasets, [*_part_layers(x), *_value_layers(x, y, colour, y_title)]),
    }


def _part_layers(x: Spec) -> list[Spec]:
    """Return the layers of the judged window, of flagged parts and of each part's start."""
    return [
        {
            "data": {"name": "window"},
            "mark": {"type": "rect", "color": PALETTE[2], "opacity": 0.12},
            "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}},
        },
        {
            "data": {"name": "flagged"},
            "mark": {"type": "rect", "color": FLAGGED, "opacity": 0.14},
            "encoding": {
                "x": {**x, "field": "from"},
                "x2": {"field": "to"},
                "tooltip": {"field": "flag", "type": "nominal"},
            },
        },
        {
            "data": {"name": "parts"},
            "mark": {"type": "rule", "color": NEUTRAL, "opacity": 0.5},
            "encoding": {"x": x},
        },
        {
            "data": {"name": "parts"},
            "mark": {"type": "text", "align": "left", "dx": 2, "baseline": "top"},
            "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "part", "type": "nominal"}},
        },
    ]


def _value_layers(x: Spec, y: Spec, colour: Spec, title: str) -> list[Spec]:
    """Return the curves, each with a shade from its lowest to its highest values."""
    return [
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
                    ("value", title),
                    ("low", "lowest"),
                    ("high", "highest"),
                ),
            },
        },
    ]


def _with_data(datasets: dict[str, list[Row]], layers: list[Spec]) -> list[Spec]:
    """Return the layers that have data; all layers if the page will bring the data."""
    if not any(datasets.values()):
        return layers
    return [layer for layer in layers if datasets[layer["data"]["name"]]]  # type: ignore[index]
