"""Charts of a whole test over time: all its loads by recorded start times, each section in its colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tkperf.analysis.details import LoadsOfTest, TimedStep
from tkperf.model.quantity import LATENCY_MAX, Quantity
from tkperf.model.seconds import Column, FloatArray, reduce_to_columns
from tkperf.page.naming import describe_together
from tkperf.render.charts.flagged import flag, segments
from tkperf.render.charts.rounds import find_time_unit
from tkperf.render.charts.seconds import COLUMNS, find_recorded
from tkperf.render.charts.vega import (
    DASHES,
    MANY_COLOURS,
    NEUTRAL,
    Row,
    Spec,
    build_frame,
    name_channel,
    quantity_axis,
    tooltip,
)

FILL = "preconditioning"
# Colour of preconditioning, independent of the sections.
_FILL_COLOUR = NEUTRAL
# A pause or an interruption; steps follow each other within milliseconds.
LEAST_GAP_S = 1.0
# Number of points that a chart can show apart.
MOST_DOTTED = 120
# A wider legend would make a printed chart smaller.
LEGEND_CHARACTERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Loads that form one line. Times of a chart count from ``origin_s``."""

    name: str
    loads: tuple[TimedStep, ...]
    origin_s: float = 0.0


def curves_by_section(loads: LoadsOfTest, origin_s: float = 0.0) -> tuple[Curve, ...]:
    """Return a curve for each stretch of a section; all stretches of a section have its name."""
    return tuple(
        Curve(
            name=FILL if stretch[0].is_fill else stretch[0].step.section,
            loads=stretch,
            origin_s=origin_s,
        )
        for stretch in loads.stretches()
    )


def over_test(
    curves: Sequence[Curve],
    quantities: Sequence[Quantity],
    title: str,
    *,
    log: bool = False,
    order: Sequence[str] = (),
    from_s: float | None = None,
    to_s: float | None = None,
) -> Spec:
    """Draw quantities over the time of a test, each point with the extremes of the values that it represents.

    Args:
        order: names in the order of their colours; others come after them.
        from_s, to_s: the part of the time to draw; None: from the beginning, to the end.
    """
    begin_s, end_s = _span(curves, from_s, to_s)
    unit, unit_s = find_time_unit(end_s - begin_s)
    rows = [
        {
            "x": round(at_s / unit_s, 6), "series": curve.name, "quantity": quantity.label,
            "curve": number, "low": low, "value": value, "high": high,
            **({"alone": True} if len(points) == 1 else {}),
        }
        for number, curve in enumerate(_without_gaps(curves, (end_s - begin_s) / COLUMNS))
        for quantity in quantities
        for points in (tuple(_points(curve, quantity, begin_s, end_s)),)
        for at_s, low, value, high in points
    ]  # fmt: skip
    x_title, y_title = f"Time ({unit})", describe_together(quantities)
    y = quantity_axis(rows, y_title, log=log, fields=("low", "high"))
    # A zooming axis cannot have a nice domain as well.
    x: Row = {
        "field": "x",
        "type": "quantitative",
        "title": x_title,
        "scale": {"nice": False, "domain": [begin_s / unit_s, end_s / unit_s]},
    }
    names = list(dict.fromkeys(curve.name for curve in curves))
    tip = tooltip(
        ("series", "Section"), ("quantity", "Quantity"), ("x", x_title), ("value", y_title),
        ("low", "lowest"), ("high", "highest"),
    )  # fmt: skip
    return {
        **build_frame(title),
        "datasets": {"loads": rows},
        "data": {"name": "loads"},
        "encoding": {"x": x, "detail": {"field": "curve"}, "color": _colours(names, order)},
        "layer": [
            *_layers(y, _dashes(quantities), tip, dotted=len(rows) <= MOST_DOTTED),
            *segments(_flagged(curves, begin_s, end_s, unit_s), x),
        ],
    }


def _without_gaps(curves: Sequence[Curve], column_s: float) -> Iterator[Curve]:
    """Yield the curves, broken at visible gaps without measurements."""
    for curve in curves:
        for loads in LoadsOfTest(loads=curve.loads).without_gaps(max(LEAST_GAP_S, column_s)):
            yield replace(curve, loads=loads)


def _layers(y: Row, dashes: Row, tip: list[dict[str, object]], *, dotted: bool) -> list[Spec]:
    """Return a shade from the lowest to the highest, a line, and points if there are few or no line reaches them."""
    # Points form a layer of their own: as part of the lines they would represent them in the legend.
    dots: Spec = {
        **({} if dotted else {"transform": [{"filter": "datum.alone"}]}),
        "mark": {"type": "point", "filled": True, "size": 15, "opacity": 1, "clip": True},
        "encoding": {"y": y, "tooltip": tip},
    }
    zoom: Row = {"type": "interval", "encodings": ["x"]}
    return [
        {
            "params": [{"name": "zoom", "select": zoom, "bind": "scales"}],
            "mark": {"type": "area", "opacity": 0.25, "clip": True},
            "encoding": {
                "y": {**y, "field": "low"},
                "y2": {"field": "high"},
                "detail": [{"field": "curve"}, {"field": "quantity"}],
            },
        },
        {
            "mark": {"type": "line", "strokeWidth": 1.4, "clip": True},
            "encoding": {"y": y, **dashes, "tooltip": tip},
        },
        dots,
    ]


def _span(curves: Sequence[Curve], from_s: float | None, to_s: float | None) -> tuple[float, float]:
    """Return the first and the last moment to draw."""
    starts_s = [curve.loads[0].start_s - curve.origin_s for curve in curves]
    ends_s = [curve.loads[-1].end_s - curve.origin_s for curve in curves]
    return (
        min(starts_s, default=0.0) if from_s is None else from_s,
        max(ends_s, default=0.0) if to_s is None else to_s,
    )


def _colours(names: Sequence[str], order: Sequence[str]) -> Row:
    """Return a colour for each curve's name, with a legend that is no wider than the chart."""
    columns = max(1, LEGEND_CHARACTERS // (max(map(len, names), default=0) + 4))
    places = [name for name in dict.fromkeys((*order, *names)) if name != FILL]
    colours = [
        _FILL_COLOUR if name == FILL else MANY_COLOURS[places.index(name) % len(MANY_COLOURS)]
        for name in names
    ]
    legend = {"orient": "top", "columns": columns, "symbolOpacity": 1, "labelLimit": 260}
    return name_channel(None, names, colours) | {"legend": legend if len(names) > 1 else None}


def _dashes(quantities: Sequence[Quantity]) -> Row:
    """Return the dashes that tell quantities apart, if there are several."""
    labels = [quantity.label for quantity in quantities]
    if len(labels) < 2:
        return {}
    return {
        "strokeDash": {
            "field": "quantity",
            "type": "nominal",
            "title": None,
            "sort": None,
            "scale": {"domain": labels, "range": list(DASHES[: len(labels)])},
            "legend": {"orient": "bottom"},
        }
    }


def _flagged(curves: Sequence[Curve], begin_s: float, end_s: float, unit_s: float) -> list[Row]:
    """Return the flagged loads, as far as the chart shows them."""
    return [
        {
            "from": max(begin_s, load.start_s - curve.origin_s) / unit_s,
            "to": min(end_s, load.end_s - curve.origin_s) / unit_s,
            **found,
        }
        for curve in curves
        for load in curve.loads
        if load.end_s - curve.origin_s > begin_s
        and load.start_s - curve.origin_s < end_s
        and (found := flag(load))
    ]


def _points(
    curve: Curve, quantity: Quantity, begin_s: float, end_s: float
) -> Iterator[tuple[float, float, float, float]]:
    """Yield time in seconds, lowest, value and highest: as many as a plot can show of the curve's part of it."""
    at_s, values = _series(curve, quantity, (end_s - begin_s) / COLUMNS)
    within = (at_s >= begin_s) & (at_s <= end_s)
    at_s, values = at_s[within], values[within]
    if not values.size:
        return
    share = (at_s[-1] - at_s[0]) / (end_s - begin_s or 1.0)
    reduced: Column = reduce_to_columns(at_s, values, max(2, round(COLUMNS * share)))
    # The curve of maxima has the maximum of each column: a mean of maxima would mean nothing.
    drawn = reduced.high if quantity is LATENCY_MAX else reduced.mean
    columns = (reduced.at_s, reduced.low, drawn, reduced.high)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _series(curve: Curve, quantity: Quantity, column_s: float) -> tuple[FloatArray, FloatArray]:
    """Return times and values: a load longer than a column by its seconds, if the run keeps them, otherwise as one."""
    by_second = bool(find_recorded((quantity,)))
    times: list[FloatArray] = []
    values: list[FloatArray] = []
    for load in curve.loads:
        start_s = load.start_s - curve.origin_s
        if by_second and len(load.seconds) and load.end_s - load.start_s > column_s:
            middle_s = load.seconds.start_s + load.seconds.duration_s / 2
            times.append(start_s + middle_s)
            values.append(getattr(load.seconds, quantity.key))
        elif (value := load.value(quantity)) is not None:
            times.append(np.array([start_s + (load.end_s - load.start_s) / 2]))
            values.append(np.array([value]))
    if not times:
        return np.empty(0), np.empty(0)
    return np.concatenate(times), np.concatenate(values)
