"""Marks of findings over time, on the charts of a stream, of rounds and of seconds.

Levels are lines at their value with a boundary at their start, drops and periodic spikes are points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tkperf.analysis.timeline.findings import Recorded, Timeline
from tkperf.analysis.timeline.levels import LevelKind
from tkperf.model.quantity import QUANTITIES, Quantity
from tkperf.render.charts.vega import Row, Spec, find_curve, tooltip, with_layers

# Visible on white and on dark pages, and distinct from the curves' colours.
LEVEL, DROP, SPIKE = "#C0305A", "#C94A16", "#B08F2E"
MOST_MARKS = 2000


def mark_over_time(
    spec: Spec,
    timelines: Iterable[Timeline],
    quantities: Sequence[Quantity],
    *,
    scale: float = 1.0,
    x: str = "x",
) -> Spec:
    """Return the chart with marks of the findings in these quantities; unchanged without findings.

    Args:
        scale: factor from a place to a value on the chart's axis.
        x: the field of that axis.
    """
    keys = {quantity.key for quantity in quantities}
    marked = [timeline for timeline in timelines if timeline.quantity in keys]
    layers = [
        *_level_layers(
            [row for timeline in marked for row in _level_rows(timeline, scale, x)], spec, x
        ),
        *_point_layers(
            [row for timeline in marked for row in _drop_rows(timeline, scale, x)], DROP, spec, x
        ),
        *_point_layers(
            [row for timeline in marked for row in _spike_rows(timeline, scale, x)][:MOST_MARKS],
            SPIKE,
            spec,
            x,
        ),
    ]
    if not layers:
        return spec
    return with_layers(spec, layers)


def _level_rows(timeline: Timeline, scale: float, x: str) -> Iterable[Row]:
    if not timeline.changes:
        return
    levels = [level for level in timeline.levels if level.kind is not LevelKind.TRANSITION]
    for number, level in enumerate(levels):
        # The curve comes from the level before; from the first level it goes to the next.
        other = levels[number - 1] if number else levels[min(1, len(levels) - 1)]
        yield {
            x: level.start * scale,
            "end": level.end * scale,
            "value": level.value,
            "phase": str(level.kind),
            "below": level.value < other.value,
        }


def _drop_rows(timeline: Timeline, scale: float, x: str) -> Iterable[Row]:
    for drop in timeline.drops:
        yield {x: drop.start * scale, "value": drop.least, "phase": "sudden drop"}


def _spike_rows(timeline: Timeline, scale: float, x: str) -> Iterable[Row]:
    spikes = timeline.spikes
    if spikes is None:
        return
    unit = "rounds" if timeline.recorded is Recorded.ROUNDS else "s"
    words = f"{QUANTITIES[timeline.quantity].label}: every {spikes.period:,.1f} {unit}"
    for place in spikes.places:
        yield {x: place * scale, "phase": words}


def _axes(spec: Spec) -> tuple[Spec, Spec]:
    """Return the x and y channels of the chart's curve."""
    encoding = find_curve(spec)["encoding"]
    return encoding["x"], encoding["y"]


def _level_layers(rows: list[Row], spec: Spec, x: str) -> list[Spec]:
    """Return levels with their names, each name on the side of the line that the curve does not come from."""
    if not rows:
        return []
    x_axis, y_axis = _axes(spec)
    y = {**y_axis, "field": "value"}
    tip = tooltip(
        ("phase", "Phase"), (x, str(x_axis.get("title"))), ("value", str(y_axis["title"]))
    )
    lasting = [row for row in rows if row["end"] != row[x]]
    drawn: list[Spec] = [
        {
            "data": {"values": rows[1:]},
            "mark": {"type": "rule", "color": LEVEL, "strokeDash": [2, 3]},
            "encoding": {"x": x_axis},
        },
        {
            "data": {"values": lasting},
            "mark": {"type": "rule", "color": LEVEL, "strokeWidth": 2, "strokeDash": [8, 4]},
            "encoding": {"x": x_axis, "x2": {"field": "end"}, "y": y, "tooltip": tip},
        },
        *(
            {
                "data": {"values": [row for row in rows if row["below"] == is_below]},
                "mark": {"type": "text", "align": "left", "dx": 4, "dy": 9 if is_below else -8},
                "encoding": {"x": x_axis, "y": y, "text": {"field": "phase", "type": "nominal"}},
            }
            for is_below in (False, True)
        ),
    ]
    return [layer for layer in drawn if layer["data"]["values"]]  # type: ignore[index]


def _point_layers(rows: list[Row], colour: str, spec: Spec, x: str) -> list[Spec]:
    """Return points at a value, or triangles at the top of the chart for rows without a value."""
    if not rows:
        return []
    x_axis, y_axis = _axes(spec)
    at_value = "value" in rows[0]
    encoding: Spec = {
        "x": x_axis,
        "y": {**y_axis, "field": "value"} if at_value else {"value": 6},
        "tooltip": tooltip(("phase", "Over time"), (x, str(x_axis.get("title")))),
    }
    shape = "circle" if at_value else "triangle-down"
    mark = {"type": "point", "shape": shape, "filled": True, "size": 55, "color": colour}
    return [{"data": {"values": rows}, "mark": mark, "encoding": encoding}]
