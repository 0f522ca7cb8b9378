"""Names of curves at their ends: up to four next to the plot; more curves have a legend in the same order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

Spec = dict[str, object]
Row = dict[str, object]

MOST_DIRECT = 4
# Two lines of text as a share of the plot's height: enough for the lowest plots, in print.
_GAP = 15 / 190
# Sample of the line in front of a label, in pixels from the edge of the plot.
_SAMPLE_PX = (5, 19)
_TEXT_PX = 23
_WIDEST_PX = 170
_CHANNELS = ("color", "strokeDash")
# The page's script leaves out layers with such names if it has no room for them.
_NAMED = "end-"


def name_curves(
    encoding: Spec,
    rows: Sequence[Row],
    words: Mapping[str, str] = MappingProxyType({}),
    *,
    most: int = MOST_DIRECT,
) -> tuple[Spec, list[Spec]]:
    """Return the channels of a chart whose curves differ by ``series``, and layers with the curves' names.

    A few curves have a sample of their line and their name next to the plot, at the height of their ends. More
    curves have no such layers: a legend lists them in the order of their ends.

    Args:
        encoding: its x, y, color and perhaps strokeDash; the last two have a domain and a range each.
        rows: all rows that the chart draws.
        words: labels that replace the names of curves.
        most: the largest number of curves with layers.
    """
    x, y = encoding["x"], encoding["y"]
    assert isinstance(x, dict)
    assert isinstance(y, dict)
    ends = _find_ends(rows, x)
    channels: dict[str, Any] = {key: encoding[key] for key in _CHANNELS if key in encoding}
    apart = {
        key: _order(channel, list(ends))
        for key, channel in channels.items()
        if channel["field"] == "series"
    }
    if not 0 < len(ends) <= most or "domain" not in y.get("scale", ()):
        return encoding | apart, []
    apart = {key: channel | {"legend": None} for key, channel in apart.items()}
    return encoding | apart, _build_labels(ends, y, apart, words)


def with_legend_on_top(spec: Any) -> Spec:
    """Return the chart with a legend instead of names next to the plot, which leaves it the full width."""
    layers = spec.get("layer", ())
    if not any(is_name(layer) for layer in layers):
        return {**spec}
    encoding = {
        key: channel | {"legend": {"orient": "top"}} if key in _CHANNELS else channel
        for key, channel in spec["encoding"].items()
    }
    kept = [each for each in layers if not is_name(each)]
    return {**spec, "encoding": encoding, "layer": kept}


def is_name(layer: Mapping[str, object]) -> bool:
    """Return whether a layer has names next to the plot, or the samples of lines before them."""
    return str(layer.get("name", "")).startswith(_NAMED)


def _find_ends(rows: Sequence[Row], x: Mapping[str, object]) -> dict[str, float]:
    """Return the last value of each series along the x axis, from the highest to the lowest."""
    field, order = str(x["field"]), x.get("sort")
    places = {each: place for place, each in enumerate(order)} if isinstance(order, list) else {}
    last: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        value, at = row.get("value"), row.get(field)
        if not isinstance(value, int | float) or at is None:
            continue
        place = places.get(at, at if isinstance(at, int | float) else number)
        name = str(row["series"])
        if name not in last or place >= last[name][0]:
            last[name] = (place, float(value))
    ordered = sorted(last.items(), key=lambda item: -item[1][1])
    return {name: value for name, (_, value) in ordered}


def _order(channel: Mapping[str, Any], names: Sequence[str]) -> dict[str, object]:
    """Return a channel with its names in this order; names without a curve come last."""
    style = dict(zip(channel["scale"]["domain"], channel["scale"]["range"], strict=True))
    names = [
        *(name for name in names if name in style),
        *(name for name in style if name not in names),
    ]
    scale = {"domain": names, "range": [style[name] for name in names]}
    return {**channel, "sort": names, "scale": scale}


def _build_labels(
    ends: Mapping[str, float], y: Spec, apart: Mapping[str, Spec], words: Mapping[str, str]
) -> list[Spec]:
    """Return the layers of labels next to the plot, moved apart if they would cover each other."""
    scale: Any = y["scale"]
    log = scale.get("type") == "log"
    low, high = (math.log(edge) if log else edge for edge in scale["domain"])
    values = [math.log(value) if log else value for value in ends.values()]
    shares = _move_apart([(value - low) / (high - low) for value in values])
    places = [low + share * (high - low) for share in shares]
    rows: list[Row] = [
        {"series": name, "label": words.get(name, name), "at": math.exp(at) if log else at}
        for name, at in zip(ends, places, strict=True)
    ]
    # Unclipped in a zoomable plot; that also gives them their room.
    begin, end, text = ({"value": {"expr": f"width + {px}"}} for px in (*_SAMPLE_PX, _TEXT_PX))
    # These rows lack the fields of the chart's own channels.
    at: Spec = {"y": y | {"field": "at"}, "tooltip": None, "order": None}
    return [
        {
            "name": f"{_NAMED}lines",
            "data": {"values": rows},
            "mark": {"type": "rule", "strokeWidth": 2.5, "clip": False},
            "encoding": {**at, "x": begin, "x2": end, "strokeDash": None, **apart},
        },
        {
            "name": f"{_NAMED}names",
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left", "baseline": "middle", "limit": _WIDEST_PX, "clip": False},
            "encoding": {
                **at, "x": text, "text": {"field": "label", "type": "nominal"}, "color": None, "strokeDash": None,
            },
        },
    ]  # fmt: skip


def _move_apart(shares: Sequence[float]) -> list[float]:
    """Return the places from the highest to the lowest, at least a gap apart, within the plot if they fit."""
    moved = list(shares)
    for number in range(1, len(moved)):
        moved[number] = min(moved[number], moved[number - 1] - _GAP)
    for number in reversed(range(len(moved))):
        least = moved[number + 1] + _GAP if number + 1 < len(moved) else 0.0
        moved[number] = max(moved[number], least)
    return moved
