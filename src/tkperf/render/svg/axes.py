"""Axes: ticks, labels as far as there is room, titles, and lines across the plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from tkperf.render.svg import defaults
from tkperf.render.svg.boxes import Box, round_half_up
from tkperf.render.svg.expressions import compile_expression
from tkperf.render.svg.known import NotDrawnError, Spec, check_value
from tkperf.render.svg.positions import Scales, channels_of, merge
from tkperf.render.svg.scales import Bands, Continuous, Scale
from tkperf.render.svg.text import Style, Text, escape, write, write_texts
from tkperf.render.svg.units import DISCRETE, Unit

_TURNED = {"left": -90, "right": 90}
# Where labels are left out that others would cover: one of two, or all that come too close to the one before.
_OVERLAPS = {True: "parity", "parity": "parity", "greedy": "greedy", False: ""}


class Axis(Struct, frozen=True, kw_only=True):
    """An axis before its length is known: what a specification says of it, with the defaults of its kind."""

    key: str
    orient: str
    title: str | None
    options: Mapping[str, Any]
    grid: bool
    overlap: str

    @property
    def is_x(self) -> bool:
        return self.orient == "bottom"

    def draw(self, scales: Scales) -> DrawnAxis:
        return _Drawing(self, scales).draw()


class DrawnAxis(Struct, frozen=True, kw_only=True):
    """Its lines across the plot, and itself; how far it reaches beside the plot."""

    grid: str
    svg: str
    box: Box


def find_axes(units: Sequence[Unit], keys: Mapping[str, str], config: Spec) -> list[Axis]:
    """The axes of scales that have one.

    Args:
        keys: the channel of each scale.
    """
    axes: list[Axis] = []
    for scale, key in keys.items():
        own = [unit for unit in units if scale in (key, f"{key}{unit.layer}")]
        channels = [channel for _, channel in channels_of(own, key)]
        hidden = {channel.get("axis", {}) is None for channel in channels}
        if hidden == {True}:
            continue
        if len(hidden) > 1:
            raise NotDrawnError("an axis for some layers only")
        orient = "bottom" if key == "x" else "right" if any(a.key != "x" for a in axes) else "left"
        axes.append(_find_axis(scale, key, orient, channels, config))
    return axes


def _find_axis(scale: str, key: str, orient: str, channels: Sequence[Spec], config: Spec) -> Axis:
    given = merge((channel.get("axis", {}) for channel in channels), f"axis {key}")
    types = {channel.get("type", "quantitative") for channel in channels}
    scale_types = {(channel.get("scale") or {}).get("type") for channel in channels}
    discrete = bool(types & set(DISCRETE))
    kind = "" if discrete else "Temporal" if "temporal" in types else "Quantitative"
    options: dict[str, Any] = {**defaults.AXIS, **config.get("axis", {})}
    for part in ("axisX",) * (key == "x") + (f"axis{key.upper()}{kind}",) * bool(kind):
        options |= config.get(part, {})
    options |= given
    overlap = options.get(
        "labelOverlap", not discrete and ("greedy" if "log" in scale_types else True)
    )
    check_value(overlap, _OVERLAPS, "labelOverlap")
    return Axis(
        key=scale,
        orient=orient,
        title=_find_title(channels, key),
        options=options,
        grid=bool(options.get("grid", not discrete)),
        overlap=_OVERLAPS[overlap],
    )


def _find_title(channels: Sequence[Spec], key: str) -> str | None:
    titles = list(dict.fromkeys(channel["title"] for channel in channels if "title" in channel))
    if not titles or not all(title is None or isinstance(title, str) for title in titles):
        raise NotDrawnError(f"an axis {key} without a title of its own")
    if None in titles and len(titles) > 1:
        raise NotDrawnError(f"two titles of axis {key}")
    return ", ".join(titles) if titles != [None] else None


class _Label(Struct, frozen=True, kw_only=True):
    text: Text
    box: Box


class _Drawing:
    """One axis at one width of the plot. Its origin is the corner of the plot that it begins at."""

    def __init__(self, axis: Axis, scales: Scales) -> None:
        self.axis, self.options = axis, axis.options
        self.scale: Scale = scales.positions[axis.key]
        self.length = scales.width if axis.is_x else scales.height
        self.across = scales.height if axis.is_x else scales.width
        self.away = scales.height if axis.is_x else scales.width if axis.orient == "right" else 0.0
        self.sign = -1 if axis.orient == "left" else 1
        self.style = Style(
            colour=self.options["labelColor"],
            px=self.options["labelFontSize"],
            limit=self.options["labelLimit"],
        )
        self.shift = (
            defaults.BAND_SHIFT if isinstance(self.scale, Bands) and self.scale.banded else 0.0
        )

    def draw(self) -> DrawnAxis:
        values = self._find_values()
        places = self._places(values)
        labels = self._drop_overlapping(self._labels(values, places))
        inner = Box.around([self._tick_box(places), *(label.box for label in labels)])
        extent, box = self._extent(inner)
        title = self._title(extent)
        if title is not None:
            box = box.union(title.box())
        rounded = [round_half_up(place) for place in places]
        x, y = (0.0, self.away) if self.axis.is_x else (self.away, 0.0)
        # Half a pixel beside: lines of one pixel are sharp there.
        begin = f'<g transform="translate({write(x + 0.5)},{write(y + 0.5)})">'
        return DrawnAxis(
            grid=self._grid(rounded),
            svg=f"{begin}{self._lines(rounded)}{write_texts([each.text for each in labels]) if labels else ''}"
            f"{write_texts([title]) if title else ''}</g>",
            box=box.moved(x, y),
        )

    def _find_values(self) -> Sequence[Any]:
        count = self._count()
        given = self.options.get("values")
        return self.scale.ticks(count) if given is None else self._thin(given, count)

    def _count(self) -> float:
        count = self.options.get("tickCount", math.ceil(self.length / defaults.TICK_EVERY_PX))
        least = self.options.get("tickMinStep")
        if least is not None and isinstance(self.scale, Continuous):
            low, high = self.scale.domain
            count = min(count, math.floor((high - low) / least or 1) + 1)
        return float(count)

    def _thin(self, values: Sequence[Any], count: float) -> Sequence[Any]:
        """Those within the axis, in its order; every other one of too many."""
        if isinstance(self.scale, Bands):
            raise NotDrawnError("chosen ticks of names")
        first, last = self.scale.range_
        low, high = math.floor(min(first, last)), math.ceil(max(first, last))
        placed = list(zip(self.scale.many(values), values, strict=True))
        placed.sort(key=lambda each: each[0] if first <= last else -each[0])
        within = [value for place, value in placed if low <= place <= high]
        if len(within) < 2:
            return within
        ends = [within[0], within[-1]]
        while len(within) > count and len(within) >= 3:
            within = within[::2]
        return within if len(within) >= 3 else ends

    def _places(self, values: Sequence[Any]) -> list[float]:
        if isinstance(self.scale, Bands):
            middles = self.scale.middles()
            return [middles[value] + self.shift for value in values]
        return self.scale.many(values)

    def _tick_box(self, places: Sequence[float]) -> Box:
        if not places:
            return Box()
        ends = min(0.0, self.sign * defaults.TICK_PX), max(0.0, self.sign * defaults.TICK_PX)
        rounded = [round_half_up(place) for place in places]
        along = min(rounded), max(rounded)
        if self.axis.is_x:
            return Box(along[0], ends[0], along[1], ends[1]).grown(1)
        return Box(ends[0], along[0], ends[1], along[1]).grown(1)

    def _labels(self, values: Sequence[Any], places: Sequence[float]) -> list[_Label]:
        write_label = self.scale.label(
            self._count(), self.options.get("format"), all_labelled="values" in self.options
        )
        expression = self.options.get("labelExpr")
        find = None if expression is None else compile_expression(expression)
        away = self.sign * (defaults.TICK_PX + defaults.LABEL_AWAY_PX)
        labels = []
        for number, (value, place) in enumerate(zip(values, places, strict=True)):
            label: Any = write_label(value)
            if find is not None:
                label = find({"value": value, "label": label, "index": number})
            lines = label if isinstance(label, list) else [label]
            x, y = (place, away) if self.axis.is_x else (away, place)
            align, baseline, angle = self._turn(place)
            text = Text(
                x=x, y=y, lines=[str(line) for line in lines], style=self.style,
                align=align, baseline=baseline, angle=angle,
            )  # fmt: skip
            labels.append(_Label(text=text, box=text.box()))
        return labels

    def _turn(self, place: float) -> tuple[str, str, float]:
        """How a label stands at its place: at the ends of an axis of numbers within these."""
        discrete = isinstance(self.scale, Bands)
        if not self.axis.is_x:
            if "labelAngle" in self.options:
                raise NotDrawnError("turned labels of an upright axis")
            return ("right" if self.sign < 0 else "left"), "middle", 0.0
        angle = self.options.get("labelAngle", 270 if discrete else 0) % 360
        if not angle:
            first, last = self.scale.range_
            at_end = not discrete and abs(place - first) <= defaults.FLUSH_PX
            at_other = not discrete and abs(place - last) <= defaults.FLUSH_PX
            nearer = abs(place - first) < abs(place - last)
            align = "left" if nearer and at_end else "right" if at_other else "center"
            return align, "top", 0.0
        align = "center" if angle % 180 == 0 else "left" if angle < 180 else "right"
        flat = angle <= 45 or angle >= 315
        return align, ("top" if flat else "bottom" if 135 <= angle <= 225 else "middle"), angle

    def _drop_overlapping(self, labels: Sequence[_Label]) -> list[_Label]:
        """As Vega does: the first and the last stay if nothing else can."""
        if not self.axis.overlap:
            return list(labels)
        apart = self.options["labelSeparation"]
        source = [each for each in labels if each.box.width > 1 and each.box.height > 1]
        kept = source
        if len(source) >= 3 and _overlap(source, apart):
            while len(kept) >= 3 and _overlap(kept, apart):
                kept = kept[::2] if self.axis.overlap == "parity" else _scan(kept, apart)
            if len(kept) < 3 and source[-1] not in kept:
                kept = [*(kept[:-1] if len(kept) > 1 else kept), source[-1]]
        return list(kept)

    def _extent(self, inner: Box) -> tuple[float, Box]:
        """How far ticks and labels reach, within what is allowed; and what they take up."""
        reach = {"left": -inner.x1, "right": inner.x2, "bottom": inner.y2}[self.axis.orient]
        extent = max(self.options["minExtent"], min(defaults.MOST_EXTENT_PX, reach))
        own = {
            "left": Box(-extent, 0, 0, self.length),
            "right": Box(0, 0, extent, self.length),
            "bottom": Box(0, 0, self.length, extent),
        }
        return extent, inner.union(own[self.axis.orient])

    def _title(self, extent: float) -> Text | None:
        if not self.axis.title:
            return None
        style = Style(
            colour=self.options["titleColor"],
            px=self.options["titleFontSize"],
            weight=self.options["titleFontWeight"],
        )
        away = self.sign * (extent + self.options["titlePadding"])
        lines = [self.axis.title]
        if self.axis.is_x:
            return Text(x=self.length / 2, y=away, lines=lines, style=style, baseline="top")
        return Text(
            x=away, y=self.length / 2, lines=lines, style=style, baseline="bottom",
            angle=_TURNED[self.axis.orient],
        )  # fmt: skip

    def _grid(self, places: Sequence[int]) -> str:
        if not self.axis.grid or not places:
            return ""
        x, end = (write(0.5), write(self.across + 0.5)) if not self.axis.is_x else ("", "")
        if self.axis.is_x:
            path = "".join(f"M{place + 0.5:g},0.5v{write(self.across)}" for place in places)
        else:
            path = "".join(f"M{x},{place + 0.5:g}H{end}" for place in places)
        return f'<path d="{path}" stroke="{escape(self.options["gridColor"])}"/>'

    def _lines(self, places: Sequence[int]) -> str:
        end = self.sign * defaults.TICK_PX
        if self.axis.is_x:
            marks = "".join(f"M{place},0v{end}" for place in places)
            domain = f"M0,0h{write(self.length)}"
        else:
            marks = "".join(f"M0,{place}h{end}" for place in places)
            domain = f"M0,0v{write(self.length)}"
        drawn = f'<path d="{marks}" stroke="{escape(self.options["tickColor"])}"/>' if marks else ""
        return f'{drawn}<path d="{domain}" stroke="{escape(self.options["domainColor"])}"/>'


def _too_near(one: Box, other: Box, apart: float) -> bool:
    return apart > max(other.x1 - one.x2, one.x1 - other.x2, other.y1 - one.y2, one.y1 - other.y2)


def _overlap(labels: Sequence[_Label], apart: float) -> bool:
    return any(_too_near(one.box, other.box, apart) for one, other in pairwise(labels))


def _scan(labels: Sequence[_Label], apart: float) -> list[_Label]:
    kept = [labels[0]]
    for label in labels[1:]:
        if not _too_near(kept[-1].box, label.box, apart):
            kept.append(label)
    return kept
