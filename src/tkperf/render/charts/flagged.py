"""Marks at points that may not show the device alone: rings, shades, and their meaning below the title.

Such a point is a row of a chart with a ``flag``, which gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tkperf.page.words.flags import Flagged, describe_flags, join_flags
from tkperf.render.charts.vega import Row, Spec, layers_of, with_layers

# Visible on white and on dark pages, and distinct from the curves' colours.
FLAGGED = "#D62728"
RING = "\N{WHITE CIRCLE}"
# The first disturbed seconds of a day are enough to show it.
MOST_RINGS = 2000
_LISTED = "flagged"


def flag(flagged: Flagged | None) -> Row:
    """Return the extra field of a chart's row if its result is flagged; empty otherwise."""
    words = "" if flagged is None else describe_flags(flagged)
    return {"flag": words} if words else {}


def with_flags(spec: Spec, flagged: Iterable[Flagged | None]) -> Spec:
    """Return the chart with a list of all flags, for a chart whose points do not belong to one step each."""
    words = [describe_flags(result) for result in flagged if result is not None]
    return _list(spec, [text for text in words if text])


def segments(rows: Sequence[Row], x: Spec) -> list[Spec]:
    """Return a shade over each flagged stretch; its rows have ``from``, ``to`` and ``flag``."""
    if not rows:
        return []
    tip = [{"field": "flag", "type": "nominal", "title": "Not the device alone"}]
    return [
        {
            "data": {"values": list(rows)},
            "mark": {"type": "rect", "opacity": 0.14, "clip": True},
            "encoding": {
                "x": {**x, "field": "from"},
                "x2": {"field": "to"},
                "color": {"value": FLAGGED},
                "detail": {"field": "flag", "type": "nominal"},
                "tooltip": tip,
            },
        }
    ]


def explain_flagged(spec: Spec) -> Spec:
    """Return the chart with a ring around each flagged point, and with the flags below its title."""
    meta = dict(spec.get("usermeta") or {})  # type: ignore[call-overload]
    words: list[str] = meta.pop(_LISTED, [])
    own: list[Any] = layers_of(spec) or [spec]
    rings = [ring for layer in own for ring in _rings(layer)]
    datasets: Any = spec.get("datasets") or {}
    parts = (spec, *own, *({"data": {"values": rows}} for rows in datasets.values()))
    rows = [row for part in parts for row in _rows(part)]
    words = [*words, *(str(row["flag"]) for row in rows if row.get("flag"))]
    if not words:
        return spec
    drawn = spec if not rings else with_layers(spec, rings)
    title = drawn["title"]
    assert isinstance(title, dict)
    subtitle = f"{RING} " * bool(rings) + join_flags(dict.fromkeys(words))
    marked = {key: value for key, value in drawn.items() if key != "usermeta"} | {
        "title": title | {"subtitle": subtitle}
    }
    return marked | ({"usermeta": meta} if meta else {})


def _list(spec: Spec, words: Sequence[str]) -> Spec:
    if not words:
        return spec
    meta = dict(spec.get("usermeta") or {})  # type: ignore[call-overload]
    return spec | {"usermeta": meta | {_LISTED: list(dict.fromkeys(words))}}


def _rows(part: Any) -> list[Row]:
    data = part.get("data")
    rows = data.get("values") if isinstance(data, dict) else None
    return [row for row in rows or () if isinstance(row, dict)]


def _rings(layer: Any) -> list[Spec]:
    """Return rings around the points of a curve or the tops of bars that have data and axes of their own."""
    rows = [row for row in _rows(layer) if row.get("flag") and row.get("value") is not None]
    encoding = layer.get("encoding", {})
    kind = layer.get("mark", {})
    kind = kind.get("type") if isinstance(kind, dict) else kind
    if not rows or kind not in ("line", "point", "bar") or not {"x", "y"} <= encoding.keys():
        return []
    places = {key: encoding[key] for key in ("x", "y", "xOffset", "yOffset") if key in encoding}
    tip = [*encoding.get("tooltip", ())]
    tip.append({"field": "flag", "type": "nominal", "title": "Not the device alone"})
    return [
        {
            "data": {"values": rows[:MOST_RINGS]},
            "mark": {
                "type": "point", "shape": "circle", "filled": False, "size": 130, "strokeWidth": 2,
                "color": FLAGGED, "opacity": 1,
            },
            "encoding": {**places, "tooltip": tip},
        }
    ]  # fmt: skip
