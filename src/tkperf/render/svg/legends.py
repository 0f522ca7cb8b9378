"""Legends: what the names of colours and dashes are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tkperf.render.svg import defaults
from tkperf.render.svg.boxes import Box, lay_out_grid, round_half_up
from tkperf.render.svg.known import NotDrawnError, Spec, check_value
from tkperf.render.svg.positions import channels_of, dashes, merge
from tkperf.render.svg.scales import Styles, name_text
from tkperf.render.svg.text import Style, Text, escape, write, write_texts
from tkperf.render.svg.units import Unit

_SYMBOLS = {
    "line": "stroke", "rule": "stroke", "bar": "square", "rect": "square", "area": "circle", "point": "circle",
}  # fmt: skip


class Legend(Struct, frozen=True, kw_only=True):
    """A legend before it has its place. Colours fill its symbols, or are those of their lines, or both."""

    orient: str
    title: str | None
    symbol: str
    options: Mapping[str, Any]
    columns: int
    names: tuple[object, ...]
    fills: Mapping[object, str]
    strokes: Mapping[object, str]
    dashes: Mapping[object, Any]


class DrawnLegend(Struct, frozen=True, kw_only=True):
    """Its width and height, and its drawing from its own corner on."""

    orient: str
    width: float
    height: float
    svg: str


def find_legends(units: Sequence[Unit], styles: Mapping[str, Styles], config: Spec) -> list[Legend]:
    """Those of colours and of dashes; one of both where they tell the same names."""
    found: dict[tuple[object, ...], list[str]] = {}
    for key, style in styles.items():
        channels = [channel for _, channel in channels_of(units, key)]
        shown = {channel.get("legend", {}) is not None for channel in channels}
        if len(shown) > 1:
            raise NotDrawnError("a legend for some layers only")
        if True in shown:
            found.setdefault(style.domain, []).append(key)
    return [_find_legend(units, keys, styles, config) for keys in found.values()]


def _find_legend(
    units: Sequence[Unit], keys: Sequence[str], styles: Mapping[str, Styles], config: Spec
) -> Legend:
    channels = [each for key in keys for each in channels_of(units, key)]
    options = merge((channel.get("legend", {}) for _, channel in channels), "a legend")
    titles = list(dict.fromkeys(channel.get("title", "") for _, channel in channels))
    if len(titles) != 1 or titles == [""]:
        raise NotDrawnError("a legend with several titles, or without one of its own")
    every = {**defaults.LEGEND, **config.get("legend", {}), **options}
    check_value(every["orient"], ("right", "top", "bottom"), "a legend at")
    names = styles[keys[0]].domain
    if len(names) > defaults.MOST_LEGEND_ENTRIES:
        raise NotDrawnError("a legend of so many names")
    coloured = [unit for unit, _ in channels_of(units, "color")] if "color" in keys else []
    colours = styles["color"].of_names() if coloured else {}
    upright = every["orient"] == "right"
    columns = options.get("columns", 1 if upright else len(names))
    _check_opacity(coloured, options)
    return Legend(
        orient=every["orient"],
        title=titles[0],
        symbol=_find_symbol([unit for unit, _ in channels], options),
        options=every,
        columns=columns,
        names=names,
        fills=colours if any(unit.filled for unit in coloured) else {},
        strokes=colours if any(not unit.filled for unit in coloured) else {},
        dashes=styles["strokeDash"].of_names() if "strokeDash" in keys else {},
    )


def _find_symbol(units: Sequence[Unit], options: Spec) -> str:
    symbol = options.get("symbolType")
    check_value(symbol, (None, "stroke"), "symbolType")
    if symbol is not None:
        return str(symbol)
    kinds = [_SYMBOLS[unit.kind] for unit in units]
    return "circle" if "circle" in kinds else kinds[-1]


def _check_opacity(units: Sequence[Unit], options: Spec) -> None:
    """Symbols are as faint as the marks are, unless a legend says otherwise: none is."""
    faint = any(
        unit.mark.get("opacity", 1) != 1 and "opacity" not in unit.encoding for unit in units
    )
    if options.get("symbolOpacity", 0 if faint else 1) != 1:
        raise NotDrawnError("a legend with faint symbols")


class _Entries:
    """The entries of a legend from their own corner on."""

    def __init__(self, legend: Legend) -> None:
        options = legend.options
        self.legend = legend
        self.radius = math.sqrt(options["symbolSize"]) / 2
        self.line_px = options["symbolStrokeWidth"]
        self.style = Style(
            colour=options["labelColor"], px=options["labelFontSize"], limit=options["labelLimit"]
        )
        self.size = max(math.ceil(2 * self.radius + self.line_px), self.style.px)
        self.texts = [
            Text(
                x=self.size + defaults.LEGEND_LABEL_PX,
                y=self.size / 2,
                lines=[name_text(name)],
                style=self.style,
                align="left",
            )
            for name in legend.names
        ]
        boxes = [self._box(text) for text in self.texts]
        columns = min(legend.columns, len(boxes)) if legend.columns else len(boxes)
        self.places = lay_out_grid(
            boxes, columns, defaults.LEGEND_COLUMN_PX, defaults.LEGEND_ROW_PX
        )
        if legend.orient == "right" and columns > 1:
            raise NotDrawnError("columns of a legend beside the plot")
        self.box = Box.around(
            box.moved(*place) for box, place in zip(boxes, self.places, strict=True)
        )

    def _box(self, text: Text) -> Box:
        middle, radius = self.size / 2, self.radius
        high = 0.0 if self.legend.symbol == "stroke" else radius
        symbol = Box(middle - radius, middle - high, middle + radius, middle + high)
        if self.legend.strokes or not self.legend.fills:
            symbol = symbol.grown(self.line_px)
        return symbol.union(text.box())

    def svg(self) -> str:
        symbols, texts = [], []
        for name, text, (x, y) in zip(self.legend.names, self.texts, self.places, strict=True):
            symbols.append(self._symbol(name, x + self.size / 2, y + self.size / 2))
            texts.append(
                Text(x=text.x + x, y=text.y + y, lines=text.lines, style=text.style, align="left")
            )
        return "".join(symbols) + write_texts(texts)

    def _symbol(self, name: object, x: float, y: float) -> str:
        legend, radius = self.legend, self.radius
        fill = legend.fills.get(name)
        stroke = legend.strokes.get(name)
        if not legend.fills and not legend.strokes:
            stroke = defaults.LEGEND_LINE_COLOUR
        look = f' fill="{escape(fill)}"' if fill and legend.symbol != "stroke" else ""
        if stroke:
            look += f' stroke="{escape(stroke)}" stroke-width="{write(self.line_px)}"'
        if name in legend.dashes:
            look += f' stroke-dasharray="{dashes(legend.dashes[name])}"'
        if legend.symbol == "stroke":
            return f'<path d="M{write(x - radius)},{write(y)}h{write(2 * radius)}"{look}/>'
        if legend.symbol == "circle":
            return f'<circle cx="{write(x)}" cy="{write(y)}" r="{write(radius)}"{look}/>'
        side = write(2 * radius)
        return f'<rect x="{write(x - radius)}" y="{write(y - radius)}" width="{side}" height="{side}"{look}/>'


def draw_legend(legend: Legend) -> DrawnLegend:
    options = legend.options
    entries = _Entries(legend)
    down, width = 0.0, 0.0
    title = ""
    if legend.title:
        style = Style(
            colour=options["titleColor"],
            px=options["titleFontSize"],
            weight="bold",
            limit=defaults.LEGEND_TITLE_LIMIT_PX,
        )
        text = Text(
            x=0,
            y=0,
            lines=[legend.title],
            style=style,
            align="left",
            baseline="top",
        )
        title = write_texts([text])
        box = text.box()
        down, width = box.height + defaults.LEGEND_TITLE_PX, box.x2
    begin = f'<g transform="translate(0,{write(down)})">' if down else ""
    return DrawnLegend(
        orient=legend.orient,
        width=math.ceil(max(width, entries.box.x2)),
        height=math.ceil(down + entries.box.y2),
        svg=f"{begin}{entries.svg()}{'</g>' if begin else ''}{title}",
    )


def place_legends(
    drawn: Sequence[DrawnLegend], width: float, height: float, across: Box, upright: Box
) -> tuple[str, Box]:
    """Where legends stand beside the plot and its axes, and what they take up.

    Args:
        across: the plot with the axes at its sides.
        upright: the plot with the axis below it.
    """
    parts, boxes = [], [Box(0, 0, width, height)]
    for orient in dict.fromkeys(each.orient for each in drawn):
        legends = [each for each in drawn if each.orient == orient]
        columns = 1 if orient == "right" else len(legends)
        own = [Box(0, 0, each.width, each.height) for each in legends]
        margin = defaults.LEGEND_MARGIN_PX
        places = [
            (dx, _row_start(own, number) if columns == 1 else 0.0)
            for number, (dx, _) in enumerate(lay_out_grid(own, columns, margin, margin))
        ]
        whole = Box.around(box.moved(*at) for box, at in zip(own, places, strict=True))
        left, top = _anchor(orient, whole, across, upright)
        for each, box, (dx, dy) in zip(legends, own, places, strict=True):
            x, y = left + dx, top + dy
            boxes.append(_room(orient, box.moved(x, y)))
            parts.append(f'<g transform="translate({write(x)},{write(y)})">{each.svg}</g>')
    return "".join(parts), Box.around(boxes)


def _room(orient: str, box: Box) -> Box:
    """What a legend takes from the plot: of one beside it the width, of one above or below it the height."""
    if orient == "right":
        return Box(0, 0, max(0.0, box.x2), 0)
    return Box(0, min(0.0, box.y1), 0, max(0.0, box.y2))


def _row_start(boxes: Sequence[Box], number: int) -> float:
    return sum(box.y2 + defaults.LEGEND_MARGIN_PX for box in boxes[:number])


def _anchor(orient: str, whole: Box, across: Box, upright: Box) -> tuple[float, float]:
    away = defaults.LEGEND_AWAY_PX
    if orient == "right":
        return math.ceil(across.x2) + away, 0.0
    if orient == "top":
        return 0.0, round_half_up(math.floor(upright.y1) - away - whole.height)
    return 0.0, math.ceil(upright.y2) + away
