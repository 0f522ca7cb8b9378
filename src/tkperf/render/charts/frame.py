"""Build the parts that every chart has in Vega-Lite: fonts, colours and tooltips.

The colours are a changed form of the palette of Okabe and Ito. Each colour has a contrast of 3:1 to a white page and to
a dark page. The first seven colours remain different for readers with any common colour-vision deficiency. Text has the
same colour as the text of the page, so that the text is readable on both kinds of pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tkperf.page.chart import (
    MANY_COLOURS,
    NEUTRAL,
    PALETTE,
    Chart,
    Curve,
    Mark,
    Picture,
    Point,
    Rule,
    RuleKind,
    ShadeKind,
    SpotKind,
)
from tkperf.render.charts.axes import MOST_TICKS
from tkperf.render.paper import STACK

Spec = dict[str, object]
Row = dict[str, object]

COLOURS = {
    **dict(
        zip(
            MANY_COLOURS,
            (
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
                "#D0772B",
                "#4F7FE0",
                "#2F9E44",
                "#B0479F",
            ),
            strict=True,
        )
    ),
    NEUTRAL: "#7D858C",
}
GREY = COLOURS[NEUTRAL]
BRIGHTER = 1.3
"""The factor by which colours are brighter on a dark page. With this factor, the colours have the contrast that text
requires (4.5:1).
"""
DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
# The colours of flagged parts and of the figure on which the user clicked. They differ from the colours of the curves,
# and are visible on white pages and on dark pages.
FLAGGED, CLICKED = "#D62728", "#9467BD"
# Colours from cold to warm. A mixture of two neighbouring colours fits between these two colours.
_WARMTH = ("violet", "blue", "green", "olive", "amber", "vermilion")

SHADES = {
    ShadeKind.JUDGED: (COLOURS["green"], 0.12),
    ShadeKind.FLAGGED: (FLAGGED, 0.14),
    ShadeKind.THROTTLED: (COLOURS["vermilion"], 0.15),
}
RULES: dict[RuleKind, Row] = {
    RuleKind.PART: {"color": GREY, "opacity": 0.5},
    RuleKind.LEVEL: {"color": GREY, "strokeWidth": 2, "strokeDash": [8, 4]},
    RuleKind.BOUNDARY: {"color": GREY, "strokeDash": [2, 3]},
    RuleKind.RATE: {"color": GREY, "strokeDash": [3, 3]},
    RuleKind.REFERENCE: {"color": GREY, "strokeDash": [4, 3]},
    RuleKind.CHANGE: {"color": COLOURS["green"], "strokeWidth": 1.5},
    RuleKind.WARNING: {"color": COLOURS["amber"], "strokeDash": [6, 3]},
    RuleKind.CRITICAL: {"color": COLOURS["vermilion"], "strokeDash": [6, 3]},
}
SPOTS = {SpotKind.DROP: COLOURS["vermilion"], SpotKind.SPIKE: COLOURS["amber"]}

INK = "#1B1F24"
TEXT_PX, TITLE_PX = 12, 14
"""Font sizes in pixels on the screen. For print, a chart is drawn again with another width instead of being reduced, so
that its texts remain readable.
"""
HEIGHT_PX, LOW_PX = 300, 170
RING = "\N{WHITE CIRCLE}"
# The width of the labels of a vertical axis. The width is fixed, so that charts below each other begin at the same
# horizontal position.
_AXIS_PX = 64
_NUMBER: Row = {"type": "quantitative", "format": ",.6~r"}


def find_colour(name: str) -> str:
    """Return the colour that belongs to a name in ``page.chart``."""
    if name in COLOURS:
        return COLOURS[name]
    at = float(name.removeprefix("warmth ")) * (len(_WARMTH) - 1)
    below = min(int(at), len(_WARMTH) - 2)
    ends = COLOURS[_WARMTH[below]], COLOURS[_WARMTH[below + 1]]
    share = at - below
    return _join_channels(
        (1 - share) * channel + share * other for channel, other in zip(*map(_split_channels, ends), strict=True)
    )


def light_colour(colour: str, brightness: float) -> str:
    """Return a colour with another brightness. The part of the brightness that exceeds 1 is the share of white."""
    white = max(0.0, brightness - 1)
    channels = (each * min(1.0, brightness) for each in _split_channels(colour))
    return _join_channels(each + white * (255 - each) for each in channels)


def _split_channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def _join_channels(channels: Iterable[float]) -> str:
    return "#" + "".join(f"{round(each):02X}" for each in channels)


def build_frame(chart: Picture, height: int = HEIGHT_PX, *, rings: bool = False, aligned: bool = False) -> Spec:
    """Return the parts that all charts have in common. On a dark page, other colours replace the colours for text."""
    text = {"labelFontSize": TEXT_PX, "titleFontSize": TEXT_PX, "labelColor": INK, "titleColor": INK}
    legend = {**text, "symbolStrokeWidth": 2.5, "labelLimit": 220}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": _build_title(chart, rings=rings),
        "width": "container",
        "height": height,
        "config": {
            "font": STACK,
            "view": {"stroke": None},
            "background": "white",
            "title": {
                "fontSize": TITLE_PX,
                "subtitleFontSize": TEXT_PX,
                "color": INK,
                "subtitleColor": INK,
                "offset": 10,
            },
            "axis": {
                **text,
                "titleFontWeight": "normal",
                "titlePadding": 8,
                "gridColor": "#E1E5EA",
                "domainColor": GREY,
                "tickColor": GREY,
            },
            "legend": legend | ({"orient": "top"} if aligned else {}),
            "mark": {"color": COLOURS[PALETTE[0]]},
            "text": {"fontSize": TEXT_PX, "color": INK},
            "axisXQuantitative": {"tickCount": 8},
            "axisXTemporal": {"tickCount": 8},
            "axisYQuantitative": {"tickCount": MOST_TICKS} | ({"minExtent": _AXIS_PX} if aligned else {}),
            "axisX": {"labelSeparation": 4},
        },
    }


def _build_title(chart: Picture, *, rings: bool) -> Spec:
    """Return the title of the chart. The flags and keywords are shown below the title."""
    flags = chart.flag_words
    lines = [line for line in (f"{RING} " * rings * bool(flags) + flags, chart.keywords) if line]
    title: Spec = {"text": chart.title, "anchor": "start"}
    if lines:
        title["subtitle"] = lines[0] if len(lines) == 1 else lines
    return title | ({"subtitleFontWeight": "bold"} if chart.keywords else {})


def name_channel(field: str, title: str, style: dict[str, object]) -> Row:
    """Return the channel that assigns a colour or a dash to each name that a field of the data contains."""
    return {
        "field": field,
        "type": "nominal",
        "title": title or None,
        "sort": list(style),
        "scale": {"domain": list(style), "range": list(style.values())},
    }


def tooltip(*fields: tuple[str, str], numbers: Iterable[str] = ()) -> list[Row]:
    """Return the tooltip of a mark. The tooltip consists of fields with their titles. The fields in ``numbers`` are
    measured numbers, which are shown with six digits.
    """
    measured = set(numbers)
    return [{"field": field, "title": title, **(_NUMBER if field in measured else {})} for field, title in fields]


# The smallest distance between two labels, in pixels and as a share of the height of the lowest plot on a page.
_GAP_PX = 15
_GAP = _GAP_PX / 170
# The position of the line sample before a label, in pixels from the edge of the plot.
_SAMPLE_PX = (5, 19)
_TEXT_PX = 23
_WIDEST_PX = 170


def find_ends(curves: Sequence[Curve]) -> dict[str, float]:
    """Return the last value of each name along the x axis, in descending order of the values."""
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
    """Return the names in the order in which their curves end, from top to bottom. Names without a value are last."""
    return list(dict.fromkeys((*find_ends(curves), *(curve.name for curve in curves))))


def name_ends(
    curves: Sequence[Curve], y: Spec, style: Spec, height_px: float = HEIGHT_PX
) -> tuple[list[Spec], list[Row]]:
    """Return the layers that draw line samples and names beside the plot. The result also contains the data ``ends``
    for these layers.

    The script of the page omits these layers if there is not enough space for them.

    Args:
        y: the axis of values, which has a domain.
        style: the channels in which the curves differ.
        height_px: height of the plot.
    """
    ends = {name: value for name, value in find_ends(curves).items() if name}
    labels = {curve.name: curve.label or curve.name for curve in curves}
    scale: Any = y["scale"]
    log = scale.get("type") == "log"
    low, high = (math.log(edge) if log else edge for edge in scale["domain"])
    values = [math.log(value) if log else value for value in ends.values()]
    shares = _move_apart([(value - low) / (high - low) for value in values], max(_GAP, _GAP_PX / height_px))
    places = [low + share * (high - low) for share in shares]
    rows: list[Row] = [
        {"series": name, "label": labels[name], "at": math.exp(at) if log else at}
        for name, at in zip(ends, places, strict=True)
    ]
    # If a reader can zoom the plot, the names are not clipped, so Vega reserves space for the names.
    begin, end, text = ({"value": {"expr": f"width + {px}"}} for px in (*_SAMPLE_PX, _TEXT_PX))
    at: Spec = {"y": y | {"field": "at"}}
    by_name = {key: each for key, each in style.items() if each["field"] == "series"}  # type: ignore[index]
    sample: Row = {"type": "rule", "strokeWidth": 2.5, "clip": False}
    name: Row = {"type": "text", "align": "left", "baseline": "middle", "limit": _WIDEST_PX, "clip": False}
    data: Spec = {"data": {"name": "ends"}}
    return [
        {**data, "name": "end-lines", "mark": sample, "encoding": {**at, "x": begin, "x2": end, **by_name}},
        {
            **data,
            "name": "end-names",
            "mark": name,
            "encoding": {**at, "x": text, "text": {"field": "label", "type": "nominal"}},
        },
    ], rows


def _move_apart(shares: Sequence[float], gap: float) -> list[float]:
    """Return the places from the highest to the lowest. The distance between neighbouring places is not less than
    ``gap``. The places remain within the plot if there is enough space.
    """
    moved = list(shares)
    for number in range(1, len(moved)):
        moved[number] = min(moved[number], moved[number - 1] - gap)
    for number in reversed(range(len(moved))):
        least = moved[number + 1] + gap if number + 1 < len(moved) else 0.0
        moved[number] = max(moved[number], least)
    return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveGroup:
    """Curves that are drawn by the same layers, and the name of their data."""

    name: str
    curves: tuple[Curve, ...]
    rows: list[Row]

    @property
    def first(self) -> Curve:
        return self.curves[0]

    @property
    def fields(self) -> list[str]:
        return [f"fact{number}" for number in range(len(self.first.facts))]

    @property
    def is_spread(self) -> bool:
        return any(row.get("high") is not None for row in self.rows)


def group_curves(chart: Chart) -> Iterator[CurveGroup]:
    """Yield a group of curves for each appearance, with the rows of data. Groups in the background are first."""

    def look(curve: Curve) -> tuple[object, ...]:
        return (not curve.muted, curve.mark, curve.dots, curve.has_texts, curve.facts, curve.name == "")

    groups: dict[tuple[object, ...], list[Curve]] = {}
    for curve in chart.curves:
        groups.setdefault(look(curve), []).append(curve)
    # Measured curves have points. These curves are drawn last, so that they are in front of the ideal lines.
    ordered = sorted(groups.values(), key=lambda of: (not of[0].muted, of[0].dots))
    for number, curves in enumerate(ordered):
        names = [(curve.name, curve.variant) for curve in curves]
        repeated = len(set(names)) < len(names)
        unsorted = not is_sorted(curves)
        rows: list[Row] = []
        for at, curve in enumerate(curves):
            shared: Row = {"series": curve.name} if any(each.name for each in chart.curves) else {}
            shared |= {"variant": curve.variant} if curve.variant else {}
            shared |= {"curve": at} if repeated else {}
            if chart.filled and len(curve.points) == 1 and curve.mark is Mark.LINE:
                shared["alone"] = True
            for place, point in enumerate(curve.points):
                row = _build_row(point) | shared
                if unsorted:
                    row["place"] = place
                if curve.has_texts:
                    row["label"] = point.facts[0]
                rows.append(row)
        yield CurveGroup(name=f"curves{number or ''}", curves=tuple(curves), rows=rows)


def _build_row(point: Point) -> Row:
    row: Row = {"x": point.x, "value": point.y}
    if point.low is not None or point.high is not None:
        row |= {"low": point.low, "high": point.high}
    row |= {f"fact{number}": fact for number, fact in enumerate(point.facts)}
    row |= {"cell": point.link} if point.link else {}
    return row | ({"flag": point.flag} if point.flag else {})


def build_rule_row(rule: Rule) -> Row:
    row: Row = {"x": rule.x, "value": rule.y, "end": rule.x_end, "name": rule.name}
    row = {key: value for key, value in row.items() if value not in (None, "")}
    if rule.x_end is not None:
        row["below"] = rule.below
    return row | ({"row": rule.row} if rule.x is not None and rule.y is None else {})


def is_sorted(curves: Iterable[Curve]) -> bool:
    """Return whether the points of each curve are in ascending order along the x axis. If they are not, a line must
    follow the order of the points.
    """
    for curve in curves:
        places = [point.x for point in curve.points if isinstance(point.x, int | float)]
        if any(after < before for before, after in pairwise(places)):
            return False
    return True
