"""Names of curves at their ends: up to four next to the plot; more curves have a legend in the same order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tkperf.page.chart import Curve
from tkperf.render.charts.frame import Row, Spec

# Two lines of text as a share of the plot's height: enough for the lowest plots, in print.
_GAP = 15 / 170
# Sample of the line in front of a label, in pixels from the edge of the plot.
_SAMPLE_PX = (5, 19)
_TEXT_PX = 23
_WIDEST_PX = 170


def find_ends(curves: Sequence[Curve]) -> dict[str, float]:
    """Return the last value of each name along the x axis, from the highest to the lowest."""
    last: dict[str, tuple[float, float]] = {}
    for curve in curves:
        for number, point in enumerate(curve.points):
            if point.y is None:
                continue
            place = point.x if isinstance(point.x, int | float) else number
            if curve.name not in last or place >= last[curve.name][0]:
                last[curve.name] = (place, float(point.y))
    ordered = sorted(last.items(), key=lambda item: -item[1][1])
    return {name: value for name, (_, value) in ordered}


def order_by_ends(curves: Sequence[Curve]) -> list[str]:
    """Return the names in the order of their curves' ends; names without a value come last."""
    return list(dict.fromkeys((*find_ends(curves), *(curve.name for curve in curves))))


def name_ends(
    curves: Sequence[Curve], y: Spec, style: Spec, channel: str
) -> tuple[list[Spec], list[Row]]:
    """Return the layers of samples and names next to the plot, and the data ``ends`` of both.

    The page's script leaves these layers out if it has no room for them.

    Args:
        y: the axis of values, which has a domain.
        style: the channels by which the curves differ.
    """
    ends = {name: value for name, value in find_ends(curves).items() if name}
    labels = {curve.name: curve.label or curve.name for curve in curves}
    scale: Any = y["scale"]
    log = scale.get("type") == "log"
    low, high = (math.log(edge) if log else edge for edge in scale["domain"])
    values = [math.log(value) if log else value for value in ends.values()]
    shares = _move_apart([(value - low) / (high - low) for value in values])
    places = [low + share * (high - low) for share in shares]
    rows: list[Row] = [
        {"series": name, "label": labels[name], "at": math.exp(at) if log else at}
        for name, at in zip(ends, places, strict=True)
    ]
    # Unclipped in a zoomable plot; that also gives them their room.
    begin, end, text = ({"value": {"expr": f"width + {px}"}} for px in (*_SAMPLE_PX, _TEXT_PX))
    at: Spec = {channel: y | {"field": "at"}}
    by_name = {key: each for key, each in style.items() if each["field"] == "series"}  # type: ignore[index]
    sample: Row = {"type": "rule", "strokeWidth": 2.5, "clip": False}
    name: Row = {
        "type": "text",
        "align": "left",
        "baseline": "middle",
        "limit": _WIDEST_PX,
        "clip": False,
    }
    data: Spec = {"data": {"name": "ends"}}
    return [
        {**data, "name": "end-lines", "mark": sample, "encoding": {**at, "x": begin, "x2": end, **by_name}},
        {
            **data, "name": "end-names", "mark": name,
            "encoding": {**at, "x": text, "text": {"field": "label", "type": "nominal"}},
        },
    ], rows  # fmt: skip


def _move_apart(shares: Sequence[float]) -> list[float]:
    """Return the places from the highest to the lowest, at least a gap apart, within the plot if they fit."""
    moved = list(shares)
    for number in range(1, len(moved)):
        moved[number] = min(moved[number], moved[number - 1] - _GAP)
    for number in reversed(range(len(moved))):
        least = moved[number + 1] + _GAP if number + 1 < len(moved) else 0.0
        moved[number] = max(moved[number], least)
    return moved
