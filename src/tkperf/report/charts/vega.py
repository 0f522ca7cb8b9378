"""What charts are made of: frame, axes, colours, tooltips, zoom and legend.

Pure: plain dicts of Vega-Lite. Axes name their units. Colours are distinguishable with the common
colour-vision deficiencies (Okabe and Ito's palette, brown in the place of black, which a dark page
would hide, then two of Paul Tol's).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tkperf.analysis.results import CellResult
from tkperf.analysis.uncertainty.wording import COVERED, describe_interval
from tkperf.quantity import Quantity
from tkperf.units import NOT_MEASURED

Spec = dict[str, object]
Row = dict[str, object]

PALETTE = [
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#8C564B",
    "#999999",
    "#882255",
    "#44AA99",
]

DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])

MANY_COLOURS = [*PALETTE, "#332288", "#DDAA33", "#117733", "#AA4499", "#6699CC", "#CC3311"]
"""For parts of a chart that do not overlap; more of them than in ``PALETTE`` are harder to tell apart."""

MOST_LOG_TICKS = 10
_PLAIN_LABEL = "format(datum.value, ',.10~f')"

# Fields that hold measured numbers, in every chart.
MEASURED = {"value", "low", "high", "x", "us", "lower", "upper", "count", "share"}


def build_chart(
    title: str, rows: Sequence[Row], encoding: dict[str, object], *, mark: object
) -> Spec:
    spec = {
        **build_frame(title),
        "data": {"values": list(rows)},
        "mark": mark,
        "encoding": encoding,
    }
    params: list[Row] = []
    x = encoding["x"]
    if isinstance(x, dict) and x["type"] == "quantitative":
        # A long run has more points than pixels: the wheel zooms along time.
        interval = {"type": "interval", "encodings": ["x"]}
        params.append({"name": "zoom", "select": interval, "bind": "scales"})
    if "color" in encoding:
        point = {"type": "point", "fields": ["series"]}
        params.append({"name": "shown", "select": point, "bind": "legend"})
        encoding["opacity"] = {"condition": {"param": "shown", "value": 1}, "value": 0.1}
    if params:
        spec["params"] = params
    return spec


def has_values(spec: Spec) -> bool:
    """Whether there is anything to draw. A chart without data would have no size either."""
    data, datasets = spec.get("data"), spec.get("datasets")
    if not isinstance(data, dict):
        return True  # of layers, which are left out one by one
    rows = data.get("values")
    if rows is None and isinstance(datasets, dict):
        rows = datasets[data["name"]]
    return any(row.get("value", True) is not None for row in rows or ())


def build_frame(title: str) -> Spec:
    """What every chart has."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "anchor": "start"},
        "width": "container",
        "height": 300,
        "config": {
            "font": "sans-serif",
            "view": {"stroke": None},
            "background": "white",
            "axisXQuantitative": {"tickCount": 8},
            "axisXTemporal": {"tickCount": 8},
            "axisYQuantitative": {"tickCount": 6},
            "axisX": {"labelSeparation": 4},
        },
    }


def with_layers(spec: Spec, layers: Sequence[Spec]) -> Spec:
    """The chart with more layers above its own."""
    drawn = spec.get("layer")
    if isinstance(drawn, list):
        return spec | {"layer": [*drawn, *layers]}
    own = ("data", "mark", "encoding", "params")
    base: Spec = {key: spec[key] for key in own if key in spec}
    return {key: value for key, value in spec.items() if key not in own} | {
        "layer": [base, *layers]
    }


def quantity_axis(rows: Sequence[Row], title: str, *, log: bool) -> dict[str, object]:
    """The y axis of field ``value``; logarithmic only where all values can be shown so."""
    values = [row["value"] for row in rows]
    channel: dict[str, object] = {"field": "value", "type": "quantitative", "title": title}
    if log:
        return channel | log_axis(values)
    # Nice also where zooming along x would switch it off.
    return channel | {"scale": {"zero": True, "nice": True}}


def log_axis(values: Iterable[object]) -> dict[str, object]:
    """Scale and axis that are logarithmic, from the step of 1, 2, 5 below all values to that above.

    Within a decade the steps are 1, 2, 3 ... 9. Linear if there is a value that has no logarithm.
    """
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers or not all(value > 0 and math.isfinite(value) for value in numbers):
        return {"scale": {"zero": True, "nice": True}}
    low, high = min(numbers), max(numbers)
    steps = [
        step * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for step in ((1, 2, 5) if high > 10 * low else range(1, 10))
    ]
    first = max((step for step in steps if step <= low), default=steps[0])
    last = min((step for step in steps if step >= high), default=steps[-1])
    within = [step for step in steps if first <= step <= last]
    if len(within) == 1:  # all values are the same power of ten
        first, last = first / 10, last * 10
    # Over many powers of ten only these are labelled.
    wide = len(within) > MOST_LOG_TICKS
    ticks = [step for step in within if not wide or _is_power_of_ten(step)]
    return {
        "scale": {"type": "log", "domain": [first, last], "nice": False},
        # Vega itself leaves ticks beyond the count out, and most labels, whatever the room.
        "axis": {
            "values": ticks,
            "tickCount": len(ticks),
            "labelExpr": _PLAIN_LABEL,
            "labelOverlap": "greedy",
        },
    }


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


SURE = ("sure", f"Interval of {COVERED}")
"""The field of how far a point can be trusted."""


def sure(cell: CellResult, quantity: Quantity) -> str:
    """Of a cell's figure, for a point's tooltip; a dash where it is not known."""
    known = cell.uncertainty_of(quantity)
    return describe_interval(cell.value(quantity), known, quantity.digits) or NOT_MEASURED


def tooltip(*fields: tuple[str, str]) -> list[dict[str, object]]:
    """What is told of a point: fields with their titles, measured numbers to six digits."""
    number: dict[str, object] = {"type": "quantitative", "format": ",.6~r"}
    return [
        {"field": field, "title": title, **(number if field in MEASURED else {})}
        for field, title in fields
    ]
