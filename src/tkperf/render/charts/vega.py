"""Building blocks of charts: frame, axes, colours, tooltips, zoom and legend.

Pure: plain dicts of Vega-Lite. Axes name their units and reach beyond the data. Colours follow Okabe and Ito's
palette, adjusted: each has a contrast of 3:1 to a white and to a dark page, and differs from the first seven others
under any of the common colour-vision deficiencies. Text has the page's colour, so that it is readable there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tkperf.analysis.results import CellResult
from tkperf.analysis.uncertainty.spread import COVERED
from tkperf.model.quantity import Quantity
from tkperf.model.units import NOT_MEASURED
from tkperf.page.words.uncertainty import describe_interval
from tkperf.render.charts.labels import name_curves
from tkperf.render.fonts import STACK

Spec = dict[str, object]
Row = dict[str, object]

PALETTE = [
    "#0B6BB8",
    "#C94A16",
    "#0A8D6E",
    "#B08F2E",
    "#9A5CF0",
    "#3B9DD2",
    "#DE64B0",
    "#8A5A4A",
    "#5F8A12",
    "#C0305A",
    "#5F6FA0",
    "#0F7F8C",
]

NEUTRAL = "#7D858C"
"""Colour of everything but curves: ideals, edges, marks."""

DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])

MANY_COLOURS = [*PALETTE, "#D0772B", "#4F7FE0", "#2F9E44", "#B0479F"]
"""Colours for parts of a chart that do not overlap: more than in ``PALETTE``, so harder to tell apart."""

INK = "#1B1F24"
TEXT_PX, TITLE_PX = 12, 14
"""Font sizes in pixels on the screen; print may not make them smaller."""

LEAST_LOG_TICKS, MOST_LOG_TICKS = 4, 10
MOST_TICKS = 6
_PLAIN_LABEL = "format(datum.value, ',.10~f')"
# A value closer to the end of an axis would look cut off.
_LEAST_BEYOND = 0.015

# Fields of measured numbers, in every chart.
MEASURED = {"value", "low", "high", "x", "us", "lower", "upper", "count", "share"}


def build_chart(
    title: str,
    rows: Sequence[Row],
    encoding: dict[str, object],
    *,
    mark: object,
    words: Mapping[str, str] | None = None,
) -> Spec:
    """Return a chart of one kind of mark; curves of several ``series`` have names at their ends.

    Args:
        words: labels that replace the names of series next to the curves.
    """
    spec = {**build_frame(title), "data": {"values": list(rows)}}
    params: list[Row] = []
    x = encoding["x"]
    if isinstance(x, dict) and x["type"] == "quantitative":
        # A long run has more points than pixels: the wheel zooms along time.
        interval = {"type": "interval", "encodings": ["x"]}
        params.append({"name": "zoom", "select": interval, "bind": "scales"})
    drawn: Spec = {"mark": mark} | ({"params": params} if params else {})
    if "color" not in encoding:
        return spec | drawn | {"encoding": encoding}
    encoding = encoding | {"color": _with_domain(encoding["color"], rows)}
    if isinstance(mark, dict) and mark["type"] == "line":
        encoding, labels = name_curves(encoding, rows, words or {})
        if labels:
            return spec | {"encoding": encoding, "layer": [drawn, *labels]}
    point = {"type": "point", "fields": ["series"]}
    params.append({"name": "shown", "select": point, "bind": "legend"})
    encoding["opacity"] = {"condition": {"param": "shown", "value": 1}, "value": 0.1}
    return spec | {"mark": mark, "encoding": encoding, "params": params}


def _with_domain(channel: Any, rows: Iterable[Row]) -> object:
    """Return the colour channel of series, with each series assigned to its colour."""
    if "domain" in channel["scale"]:
        return channel
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    colours = channel["scale"]["range"]
    drawn = [colours[place % len(colours)] for place in range(len(names))]
    return channel | {"scale": {"domain": names, "range": drawn}}


def has_values(spec: Spec) -> bool:
    """Return whether there is anything to draw. A chart without data would have no size either."""
    data, datasets = spec.get("data"), spec.get("datasets")
    if not isinstance(data, dict):
        return True  # a chart of layers, which are left out one by one
    rows = data.get("values")
    if rows is None and isinstance(datasets, dict):
        rows = datasets[data["name"]]
    return any(row.get("value", True) is not None for row in rows or ())


def build_frame(title: str) -> Spec:
    """Return the parts that every chart has. The page's dark colours replace the text colours."""
    text = {
        "labelFontSize": TEXT_PX,
        "titleFontSize": TEXT_PX,
        "labelColor": INK,
        "titleColor": INK,
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "anchor": "start"},
        "width": "container",
        "height": 300,
        "config": {
            "font": STACK,
            "view": {"stroke": None},
            "background": "white",
            "title": {
                "fontSize": TITLE_PX, "subtitleFontSize": TEXT_PX, "color": INK, "subtitleColor": INK, "offset": 10,
            },
            "axis": {
                **text, "titleFontWeight": "normal", "titlePadding": 8,
                "gridColor": "#E1E5EA", "domainColor": NEUTRAL, "tickColor": NEUTRAL,
            },
            "legend": {**text, "symbolStrokeWidth": 2.5, "labelLimit": 220},
            "mark": {"color": PALETTE[0]},
            "text": {"fontSize": TEXT_PX, "color": INK},
            "axisXQuantitative": {"tickCount": 8},
            "axisXTemporal": {"tickCount": 8},
            "axisYQuantitative": {"tickCount": MOST_TICKS},
            "axisX": {"labelSeparation": 4},
        },
    }  # fmt: skip


def with_layers(spec: Spec, layers: Sequence[Spec]) -> Spec:
    """Return the chart with more layers above its own; these have data and channels of their own."""
    own = ("data", "mark", "encoding", "params")
    kept = layers_of(spec) or [{key: spec[key] for key in own if key in spec}]
    return {key: value for key, value in spec.items() if key not in own} | {
        "layer": [*kept, *layers]
    }


def layers_of(spec: Any) -> list[Spec]:
    """Return the layers of a chart, each with the parts that all of them share; empty for a chart without layers."""
    return [_with_shared(layer, spec) for layer in spec.get("layer", ())]


def _with_shared(layer: Any, spec: Any) -> Spec:
    encoding = {**spec.get("encoding", {}), **layer.get("encoding", {})}
    data = {"data": spec["data"]} if "data" in spec and "data" not in layer else {}
    return {
        **data,
        **layer,
        "encoding": {key: value for key, value in encoding.items() if value is not None},
    }


def find_curve(spec: Any) -> Any:
    """Return the first layer of a chart that has an x and a y axis of its data, or the whole chart."""
    layers: list[Any] = layers_of(spec)
    return next(
        (
            layer
            for layer in layers
            if all("field" in layer["encoding"].get(channel, ()) for channel in ("x", "y"))
        ),
        spec,
    )


def quantity_axis(
    rows: Iterable[Row], title: str, *, log: bool, fields: Sequence[str] = ("value",)
) -> dict[str, object]:
    """Return the y axis of field ``value``, beyond all values of ``fields``; logarithmic only if all fit on it."""
    values = [row[field] for row in rows for field in fields]
    axis = log_axis(values) if log else linear_axis(values)
    return {"field": "value", "type": "quantitative", "title": title} | axis


def linear_axis(values: Iterable[object], *, zero: bool = True) -> dict[str, object]:
    """Return scale and axis from a tick below all values to one above them.

    Ticks are 1, 2 or 5 times a power of ten apart.
    """
    numbers = _finite(values)
    if not numbers:
        return {"scale": {"zero": zero, "nice": True}}
    low, high = min(numbers), max(numbers)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    if math.isclose(
        low, high, rel_tol=1e-9, abs_tol=1e-12
    ):  # level: in the middle, or 0 at the bottom
        low, high = (
            (0.0, 1.0) if zero else (low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1))
        )
    ticks = _linear_ticks(low, high)
    return {
        "scale": {"domain": [ticks[0], ticks[-1]], "nice": False},
        "axis": {"values": ticks, "labelExpr": _PLAIN_LABEL},
    }


def _linear_ticks(low: float, high: float) -> list[float]:
    """Return ticks from one below to one above; an end at exactly 0 stays at 0."""
    step = _round_step((high - low) / MOST_TICKS)
    beyond = _LEAST_BEYOND * (high - low)
    first = 0 if low == 0 else math.floor((low - beyond) / step)
    last = 0 if high == 0 else math.floor((high + beyond) / step) + 1
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def length_axis(values: Iterable[object]) -> dict[str, object]:
    """Return the scale of an x axis that zooms, from 0 (or the least) to a little beyond the greatest."""
    numbers = _finite(values)
    if not numbers:
        return {"scale": {"nice": False}}
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    beyond = _LEAST_BEYOND * (high - low or 1.0)
    return {"scale": {"domain": [low - beyond if low < 0 else low, high + beyond], "nice": False}}


def _finite(values: Iterable[object]) -> list[float]:
    numbers = (float(value) for value in values if isinstance(value, int | float))
    return [number for number in numbers if math.isfinite(number)]


def _round_step(least: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def log_axis(values: Iterable[object]) -> dict[str, object]:
    """Return a logarithmic scale and axis, from the step of 1, 2, 5 below all values to the step above.

    If these are too few, steps are 1, 2, 3 ... 9, or evenly apart. Linear if a value has no logarithm.
    """
    given = [float(value) for value in values if isinstance(value, int | float)]
    if not given or not all(value > 0 and math.isfinite(value) for value in given):
        return linear_axis(given)
    low, high = min(given) * (1 - _LEAST_BEYOND), max(given) * (1 + _LEAST_BEYOND)
    within = _log_steps(low, high, (1, 2, 5))
    if len(within) < LEAST_LOG_TICKS:
        within = _log_steps(low, high, range(1, 10))
    if len(within) < LEAST_LOG_TICKS:  # values so close to each other have no use for decades
        within = _linear_ticks(low, high)
    # Over many powers of ten only these have labels.
    wide = len(within) > MOST_LOG_TICKS
    ticks = [step for step in within if not wide or _is_power_of_ten(step)]
    return {
        "scale": {"type": "log", "domain": [within[0], within[-1]], "nice": False},
        # Vega itself leaves out ticks beyond the count, and most labels, whatever the room.
        "axis": {
            "values": ticks,
            "tickCount": len(ticks),
            "labelExpr": _PLAIN_LABEL,
            "labelOverlap": "greedy",
        },
    }


def _log_steps(low: float, high: float, digits: Iterable[int]) -> list[float]:
    """Return these digits times powers of ten, from the last below ``low`` to the first above ``high``."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    digits = tuple(digits)
    steps = [float(f"{digit * 10.0**power:.12g}") for power in powers for digit in digits]
    first = max(step for step in steps if step < low)
    last = min(step for step in steps if step > high)
    return [step for step in steps if first <= step <= last]


def _is_power_of_ten(value: float) -> bool:
    return math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)


def colour(title: str | None) -> dict[str, object]:
    return {
        "field": "series",
        "type": "nominal",
        "title": title,
        "sort": None,
        "scale": {"range": PALETTE},
    }


def name_channel(
    title: str | None, names: Sequence[str], range_: Sequence[object]
) -> dict[str, object]:
    """Return the channel that gives each ``series`` of these names its colour or dash of ``range_``."""
    return {
        "field": "series",
        "type": "nominal",
        "title": title,
        "sort": list(names),
        "scale": {"domain": list(names), "range": list(range_)},
    }


SURE = ("sure", f"Interval of {COVERED}")
"""Tooltip field of a value's interval."""


def sure(cell: CellResult, quantity: Quantity) -> str:
    """Return the interval of a cell's value, for a point's tooltip; a dash if it is not known."""
    known = cell.uncertainty_of(quantity)
    return describe_interval(cell.value(quantity), known, quantity.digits) or NOT_MEASURED


def tooltip(*fields: tuple[str, str]) -> list[dict[str, object]]:
    """Return the tooltip of a point: fields with their titles, measured numbers to six digits."""
    number: dict[str, object] = {"type": "quantitative", "format": ",.6~r"}
    return [
        {"field": field, "title": title, **(number if field in MEASURED else {})}
        for field, title in fields
    ]
