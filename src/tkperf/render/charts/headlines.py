"""Charts of headline figures: ratios with their intervals, spread of the runs, values over dates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tkperf.analysis.comparing.arrangements import FirmwareChange, Trend
from tkperf.render.charts.vega import NEUTRAL, PALETTE, Row, Spec, build_frame, tooltip

_LINE_PX = 14
_FRAME_PX = 50
_BETWEEN_PX = 11  # between runs of one row
DAY_MS = 86_400_000
# Ticks of a logarithmic axis: tenths if all ratios are within a few times each other, otherwise steps of 1, 2, 5.
_NARROW = 4
_TENTHS = [step / 10 for step in range(1, 60)]
_STEPS = [step * 10.0**power for power in range(-9, 10) for step in (1, 2, 5)]
BETTER, WORSE = PALETTE[0], PALETTE[1]
COLOURS = {"better": BETTER, "worse": WORSE, "": NEUTRAL}


def ratios_with_intervals(
    rows: Sequence[Row], loads: Sequence[str], names: Sequence[str], title: str, x_title: str
) -> Spec:
    """Draw a point for each headline figure and run with the interval of its ratio, around a line at 1.

    Args:
        rows: ``load``, ``run``, ``value`` (the ratio), ``low``, ``high``, ``tone`` (a key of COLOURS), ``told``.
        loads: the figures, from the top.
        names: the runs compared with the first; a single one needs no name of its own.
    """
    several = len(names) > 1
    y = _rows_of(loads)
    offset: dict[str, object] = (
        {"yOffset": {"field": "run", "type": "nominal", "sort": list(names)}} if several else {}
    )
    if several:
        colour: dict[str, object] = {
            "field": "run",
            "type": "nominal",
            "title": None,
            "sort": list(names),
            # The first colour belongs to the first run, the reference of all others.
            "scale": {"domain": list(names), "range": PALETTE[1 : len(names) + 1]},
            "legend": {"orient": "top"},
        }
    else:
        colour = _tones()
    x = _ratio_axis(rows, x_title)
    interval: Spec = {
        "transform": [
            {"filter": "isValid(datum.low) && isValid(datum.high)"},
            # An interval that reaches 0 has no end on a logarithmic axis.
            {"calculate": f"max(datum.low, {_first_of(x)})", "as": "low"},
        ],
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}, "y": y, "color": colour,
            **offset,
        },
    }  # fmt: skip
    point: Spec = {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            "x": x, "y": y, "color": colour, **offset,
            "tooltip": _told(several=several),
        },
    }  # fmt: skip
    height = len(loads) * max(_row_px(loads), _BETWEEN_PX * len(names) + 10 if several else 0)
    return {
        **build_frame(title),
        "height": height + _FRAME_PX,
        "data": {"values": list(rows)},
        "layer": [_line_at(1), interval, point],
    }


def spread_of_runs(rows: Sequence[Row], loads: Sequence[str], title: str, x_title: str) -> Spec:
    """Draw each run as a point in the row of each figure, with the middle half as a bar; a ``label`` names a point.

    Args:
        rows: ``load``, ``run``, ``value`` (the ratio), ``tone``, ``told``, ``label`` ("" without), ``below`` (the label
            is on the left of the point).
        loads: the figures, from the top.
    """
    y = _rows_of(loads)
    plain = {"filter": "datum.label === ''"}
    named = {"filter": "datum.label !== ''"}
    x = _ratio_axis(rows, x_title)
    return {
        **build_frame(title),
        "height": len(loads) * _row_px(loads) + _FRAME_PX,
        "data": {"values": list(rows)},
        "layer": [
            _line_at(1),
            {
                "mark": {"type": "bar", "height": 12, "color": NEUTRAL, "opacity": 0.25},
                "encoding": {
                    "y": y,
                    "x": {"aggregate": "q1", "field": "value", "type": "quantitative"},
                    "x2": {"aggregate": "q3", "field": "value"},
                },
            },
            {
                "transform": [plain],
                "mark": {"type": "point", "size": 45, "color": NEUTRAL, "opacity": 0.9},
                "encoding": {"x": x, "y": y, "tooltip": _told(several=True)},
            },
            {
                "transform": [named],
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": _tones(), "tooltip": _told(several=True)},
            },
            {
                "transform": [named],
                "mark": {"type": "text", "dx": {"expr": "datum.below ? -8 : 8"},
                         "align": {"expr": "datum.below ? 'right' : 'left'"}},
                "encoding": {"x": x, "y": y, "text": {"field": "label", "type": "nominal"}},
            },
        ],
    }  # fmt: skip


def values_over_dates(
    rows: Sequence[Row],
    trend: Trend | None,
    ends: tuple[float, float],
    firmware: Sequence[FirmwareChange],
    *,
    title: str,
    y_title: str,
) -> Spec:
    """Draw a figure's value and interval of each run by the run's date, with its trend and firmware changes.

    Args:
        rows: ``t`` (ms since 1970), ``value``, ``low``, ``high``, ``run``, ``told``.
        trend: of the values over ms since 1970.
        ends: the first and the last date in ms.
    """
    x: Row = {
        "field": "t", "type": "temporal", "title": None, "scale": {"type": "utc", "padding": 12},
        "axis": {"labelOverlap": True},
    }  # fmt: skip
    bounds = _numbers(rows)
    low, high = min(bounds), max(bounds)
    margin = (high - low) * 0.15 or abs(high) * 0.05 or 1.0
    y: Row = {
        "field": "value", "type": "quantitative", "title": y_title,
        "scale": {"zero": False, "domain": [low - margin, high + margin], "nice": True},
    }  # fmt: skip
    points: list[Spec] = [
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "color": NEUTRAL},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 60,
                "color": PALETTE[0],
                "opacity": 1,
            },
            "encoding": {
                "x": x,
                "y": y,
                "tooltip": tooltip(
                    ("run", "Run"), ("date", "Began"), ("value", y_title), ("told", "Interval")
                ),
            },
        },
    ]
    layers = [*_trend_layer(trend, ends, x, y), *points, *_firmware_layers(firmware, x)]
    return {**build_frame(title), "height": 200, "data": {"values": list(rows)}, "layer": layers}


def _trend_layer(trend: Trend | None, ends: tuple[float, float], x: Row, y: Row) -> Iterator[Spec]:
    if trend is None:
        return
    line = [{"t": at, "value": trend.level + trend.slope * (at - trend.at)} for at in ends]
    yield {
        "data": {"values": line},
        "mark": {"type": "line", "color": PALETTE[1], "strokeDash": [6, 3]},
        "encoding": {"x": x, "y": y},
    }


def _firmware_layers(firmware: Sequence[FirmwareChange], x: Row) -> Iterator[Spec]:
    """Yield a line at each change, with the new version next to it."""
    if not firmware:
        return
    changes = [
        {"t": change.day * DAY_MS, "label": f"firmware {change.after}"} for change in firmware
    ]
    yield {
        "data": {"values": changes},
        "mark": {"type": "rule", "color": PALETTE[2], "strokeWidth": 1.5},
        "encoding": {"x": x},
    }
    yield {
        "data": {"values": changes},
        "mark": {"type": "text", "align": "left", "dx": 4, "baseline": "top"},
        "encoding": {
            "x": x, "y": {"value": 2}, "text": {"field": "label", "type": "nominal"},
        },
    }  # fmt: skip


def _row_px(loads: Sequence[str]) -> int:
    """Return the height that the lines of the longest name need."""
    return 10 + _LINE_PX * max(1 + name.count(", ") + name.count(": ") for name in loads)


def _rows_of(loads: Sequence[str]) -> Row:
    return {
        "field": "load", "type": "nominal", "title": None, "sort": list(loads),
        "scale": {"domain": list(loads)},
        # Names split into lines, so that a narrow screen has room for the points.
        "axis": {"labelExpr": "split(replace(datum.label, /, /g, ': '), ': ')", "labelLimit": 200, "grid": False},
    }  # fmt: skip


def _first_of(axis: Any) -> float:
    first: float = axis["scale"]["domain"][0]
    return first


def _numbers(rows: Sequence[Row]) -> list[float]:
    """Return all values that the points and intervals of the rows reach."""
    values = (row.get(key) for row in rows for key in ("low", "value", "high"))
    return [float(value) for value in values if isinstance(value, int | float)]


def _ratio_axis(rows: Sequence[Row], title: str) -> Row:
    """Return a logarithmic axis, so that twice and half are equally far from 1; linear if all are close to 1."""
    bounds = [value for value in _numbers(rows) if value > 0]
    least, most = min([*bounds, 1.0]), max([*bounds, 1.0])
    axis: Row = {"field": "value", "type": "quantitative", "title": title}
    if most / least < 1.5:  # a logarithm would have a single round tick there
        margin = (most - least) * 0.08 or 0.05
        return axis | {
            "scale": {"zero": False, "domain": [least - margin, most + margin], "nice": True}
        }
    narrow = most / least < _NARROW
    steps = _TENTHS if narrow else _STEPS
    # An interval may reach close to 0, or any number, so the axis ends at the steps.
    first = max((step for step in steps if step <= least / 1.02), default=steps[0])
    last = min((step for step in steps if step >= most * 1.02), default=steps[-1])
    ticks = [step for step in steps if first <= step <= last]
    return axis | {
        "scale": {"type": "log", "domain": [first, last], "nice": False},
        "axis": {
            "values": ticks,
            "labelExpr": "format(datum.value, '~r')",
            "labelOverlap": "greedy",
        },
    }


def _line_at(value: float) -> Spec:
    return {
        "data": {"values": [{"one": value}]},
        "mark": {"type": "rule", "color": NEUTRAL, "strokeDash": [4, 3]},
        "encoding": {"x": {"field": "one", "type": "quantitative"}},
    }


def _tones() -> dict[str, object]:
    return {
        "field": "tone", "type": "nominal", "legend": None,
        "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
    }  # fmt: skip


def _told(*, several: bool) -> list[dict[str, object]]:
    run = (("run", "Run"),) if several else ()
    return tooltip(("load", "Figure"), *run, ("value", "Ratio"), ("told", "Sure"))
