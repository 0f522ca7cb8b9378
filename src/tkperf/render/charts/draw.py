"""Draw any chart of a page in Vega-Lite. A specification consists of named data and of layers that draw these data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from tkperf.page.chart import AnyChart, Bars3D, Chart, Curve, Distribution, GridMap, HeatMap, Legend, Mark, Rule, Scale
from tkperf.page.naming import MIX_TITLE, shorten_names
from tkperf.render.charts.axes import CLOCK, draw_place_axis, draw_value_axis
from tkperf.render.charts.bars_3d import draw_bars
from tkperf.render.charts.distribution import draw_distribution
from tkperf.render.charts.frame import (
    DASHES,
    FLAGGED,
    GREY,
    HEIGHT_PX,
    LOW_PX,
    RULES,
    SHADES,
    SPOTS,
    CurveGroup,
    Row,
    Spec,
    build_frame,
    build_rule_row,
    find_colour,
    find_ends,
    group_curves,
    is_sorted,
    name_channel,
    name_ends,
    order_by_ends,
    tooltip,
)
from tkperf.render.charts.shaded_cells import draw_grid_map, draw_heat_map

# The greatest number of rings. The first disturbed seconds of a long run are enough to show the disturbance.
MOST_RINGS = 2000
MOST_DIRECT = 4
# The greatest length of the name of a curve, in characters. A file can contain much longer names, and each point
# repeats the name of its curve.
LONGEST_NAME = 200
# If a curve has more points than this number, the points are drawn smaller, so that they do not hide the line.
_MANY_POINTS = 60
_LINE_PX = 14
# The name of a level is written above the level. The axis extends beyond the level by this factor, so that the name is
# still inside the plot.
_ROOM_FOR_NAME = 1.08
# The greatest width of a legend, in characters. A wider legend would make a printed chart smaller.
LEGEND_CHARACTERS = 100
_TIMES = (Scale.LINEAR, Scale.LOG, Scale.CLOCK)
_NUMBERS = ("value", "low", "high")
_ZOOM: Row = {"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}
_SHOWN: Row = {"name": "shown", "select": {"type": "point", "fields": ["series"]}, "bind": "legend"}
_WHY = ("flag", "Not the device alone")


def draw(chart: AnyChart, scale: float = 1) -> Spec:
    """Return the specification of a chart.

    Args:
        scale: height of the chart, as a multiple of its height on the screen.
    """
    if isinstance(chart, Bars3D):
        return draw_bars(chart)
    if isinstance(chart, Distribution):
        return draw_distribution(chart)
    if isinstance(chart, HeatMap):
        return draw_heat_map(chart)
    if isinstance(chart, GridMap):
        return draw_grid_map(chart)
    return _Drawing(_with_short_names(chart), scale).spec()


def _with_short_names(chart: Chart) -> Chart:
    if all(len(curve.name) <= LONGEST_NAME for curve in chart.curves):
        return chart
    called = shorten_names(dict.fromkeys(curve.name for curve in chart.curves), LONGEST_NAME)
    return replace(chart, curves=tuple(replace(curve, name=called[curve.name]) for curve in chart.curves))


class _Drawing:
    """The state of a chart while its layers are built. ``x`` is the channel of places, and ``y`` is the channel of
    values.
    """

    def __init__(self, chart: Chart, scale: float = 1) -> None:
        self.chart, self.scale = chart, scale
        self.groups = list(group_curves(chart))
        curves = chart.curves
        points = [point for curve in curves for point in curve.points]
        banded = any(curve.mark is Mark.LINE and curve.points and curve.points[0].high is not None for curve in curves)
        values = (
            [end for point in points for end in (point.low, point.high)]
            if banded
            else [value for point in points for value in (point.low, point.y, point.high)]
        )
        values += [point.y for point in points] * banded + [rule.y for rule in chart.rules]
        named = (rule for rule in chart.rules if rule.name and rule.x_end is not None and not rule.below)
        values += [_ROOM_FOR_NAME * rule.y for rule in named if rule.y]
        reached = values if chart.filled else []
        places = [point.x for point in points] + [rule.x for rule in chart.rules] + [*chart.x.includes]
        self.places = draw_place_axis(chart.x, places)
        self.values = draw_value_axis(chart.y, reached)
        self.zooms = chart.x.scale in _TIMES and chart.x.ticks is None
        self.data: dict[str, list[Row]] = {}
        self.style = self._find_style()

    def spec(self) -> Spec:
        chart = self.chart
        layers = [
            *self._shades(),
            *self._rules(front=False),
            *(layer for group in self.groups for layer in self._curves(group)),
            *self._rules(front=True),
            *self._spots(),
        ]
        rings = list(self._rings())
        layers += rings
        if self._at_ends:
            labels, rows = name_ends(self._named, self.values, self.style, self.scale * self._height())
            self.data["ends"] = rows
            layers += labels
        frame = build_frame(chart, self._height(), rings=bool(rings), aligned=chart.aligned)
        columns = [[curve.name, curve.column] for curve in chart.curves if curve.column]
        # Columns for the script of the page. When a reader zooms in, the script reduces the one-second samples again.
        meta = {"usermeta": {"series": columns}} if columns else {}
        if not chart.filled:
            self.data = {name: [] for name in self.data}
        self._set_params(layers)
        return {**frame, **meta, "datasets": self.data, "layer": layers}

    def _height(self) -> int:
        return LOW_PX if self.chart.low else HEIGHT_PX

    # ---- names, colours and dashes

    @property
    def _named(self) -> list[Curve]:
        """Return the curves whose names are shown in a legend or at the ends of the curves."""
        return [curve for curve in self.chart.curves if not curve.muted]

    @property
    def _at_ends(self) -> bool:
        """Return whether the names of the curves are written at the ends of the curves."""
        legend, names = self.chart.legend, [name for name in find_ends(self._named) if name]
        lines = all(curve.mark is Mark.LINE for curve in self.chart.curves)
        allowed = legend is Legend.ENDS or (legend is Legend.AUTO and len(names) <= MOST_DIRECT)
        scale: Any = self.values["scale"]
        return lines and allowed and bool(names) and "domain" in scale

    def _find_style(self) -> Spec:
        """Return the channels of colours and dashes if the curves differ in these properties."""
        chart, named = self.chart, self._named
        if not any(curve.name for curve in named):
            return {}
        colours: dict[str, object] = {each.name: find_colour(each.colour) for each in named}
        dashes: dict[str, object] = {each.name: DASHES[each.dash] for each in named}
        lines = [curve for curve in named if curve.mark is Mark.LINE]
        # In a legend, mixes are always in the order of the specification.
        if len(lines) == len(named) and chart.legend is not Legend.TOP and chart.series != MIX_TITLE:
            order = order_by_ends(named)
            colours = {name: colours[name] for name in order}
            dashes = {name: dashes[name] for name in order}
        legend = self._legend(list(colours))
        style: Spec = {"color": name_channel("series", chart.series, colours) | legend}
        if any(curve.variant for curve in lines):
            variants: dict[str, object] = {each.variant: DASHES[each.dash] for each in lines}
            below = {"legend": {"orient": "bottom"}} if chart.legend is Legend.TOP else {}
            style["strokeDash"] = name_channel("variant", chart.variants, variants) | below
        elif len({curve.dash for curve in lines}) > 1:
            if not legend:
                legend = {"legend": {"symbolType": "stroke", "symbolSize": 400}}
            style["strokeDash"] = name_channel("series", chart.series, dashes) | legend
        return style

    def _legend(self, names: Sequence[str]) -> Spec:
        legend = self.chart.legend
        if legend is Legend.NONE or self._at_ends or (legend is Legend.TOP and len(names) < 2):
            return {"legend": None}
        if legend is not Legend.TOP:
            return {}
        columns = max(1, LEGEND_CHARACTERS // (max(map(len, names)) + 4))
        on_top = {"orient": "top", "columns": columns, "symbolOpacity": 1, "labelLimit": 260}
        return {"legend": on_top}

    def _set_params(self, layers: Sequence[Spec]) -> None:
        """Add the parameters with which a reader can zoom along the x axis, and can choose a curve in a legend beside
        the plot.
        """
        of_curves = [layer for layer in layers if _data_name(layer).startswith("curves")]
        if not of_curves:
            return
        params = [_ZOOM] if self.zooms else []
        color: Any = self.style.get("color", {})
        if color and "legend" not in color:
            params.append(_SHOWN)
            for layer in of_curves:
                faint = {"condition": {"param": "shown", "value": 1}, "value": 0.1}
                layer["encoding"] |= {"opacity": faint}  # type: ignore[operator]
        if params:
            of_curves[0]["params"] = params

    # ---- curves

    def _curves(self, group: CurveGroup) -> Iterator[Spec]:
        first = group.first
        self.data[group.name] = group.rows
        encoding = self._encode(group)
        tip: Spec = {"tooltip": self._tip(group)}
        plain: Row = {"color": GREY if first.muted else find_colour(first.colour)}
        if first.muted:
            plain |= {"opacity": 0.45, "strokeWidth": 1}
        clip = {"clip": True} if self.zooms else {}
        if first.mark is Mark.LINE:
            yield from self._lines(group, encoding, tip, plain | clip)
        elif first.mark is Mark.BAR:
            yield self._layer(group.name, {"type": "bar", **plain}, encoding | tip)
            uncoloured = {key: each for key, each in encoding.items() if key != "color"}
            yield from self._whiskers(group, uncoloured, {"color": GREY, "strokeWidth": 2})
        elif first.mark is Mark.BOX:
            box = {"type": "boxplot", "extent": "min-max", **plain}
            yield self._layer(group.name, box, encoding)
        else:
            yield from self._points(group, encoding, tip, plain)

    def _lines(self, group: CurveGroup, encoding: Spec, tip: Spec, plain: Row) -> Iterator[Spec]:
        first, banded = group.first, group.is_spread
        line: Row = {"type": "line", **plain}
        if banded:
            line["strokeWidth"] = 1.2
            area: Row = {"type": "area", "opacity": 0.28} | {
                key: value for key, value in plain.items() if key != "strokeWidth"
            }
            of_area = {key: channel for key, channel in encoding.items() if key != "strokeDash"}
            if "strokeDash" in encoding:
                of_area["detail"] = [{"field": field} for field in ("curve", "variant", "series")]
            yield self._layer(group.name, area, of_area | self._from_low_to_high())
        if first.dash and "strokeDash" not in encoding:
            line["strokeDash"] = DASHES[first.dash]
        yield self._layer(group.name, line, encoding | tip)
        if first.has_texts:
            texts: Row = {"type": "text", "dy": -9, "dx": 3, "align": "left"}
            places = {key: encoding[key] for key in ("x", "y")}
            yield self._layer(group.name, texts, places | {"text": {"field": "label", "type": "nominal"}})
        dotted = group.rows if first.dots else [row for row in group.rows if row.get("alone")]
        if not dotted:
            return
        # The points need a separate layer. If they were part of the lines, the points would replace the lines in the
        # legend.
        longest = max(len(curve.points) for curve in group.curves)
        size = 36 if longest <= _MANY_POINTS else 15
        dot = {"type": "point", "filled": True, "size": size, "opacity": 1, **_unfaded(plain)}
        spots = {key: each for key, each in encoding.items() if key != "strokeDash"}
        layer = self._layer(group.name, dot, spots | tip)
        yield layer if first.dots else layer | {"transform": [{"filter": "datum.alone"}]}

    def _points(self, group: CurveGroup, encoding: Spec, tip: Spec, plain: Row) -> Iterator[Spec]:
        muted = group.first.muted
        yield from self._whiskers(group, encoding, {"strokeWidth": 2, **_unfaded(plain)})
        drawn: Row = {"filled": not muted, "size": 45 if muted else 70, "opacity": 0.9 if muted else 1}
        yield self._layer(group.name, {"type": "point", **_unfaded(plain), **drawn}, encoding | tip)

    def _whiskers(self, group: CurveGroup, encoding: Spec, mark: Row) -> Iterator[Spec]:
        """Yield the intervals of points or bars. Intervals that are not known are omitted."""
        if not group.is_spread:
            return
        known = {"filter": "isValid(datum.low) && isValid(datum.high)"}
        first: Any = self.values["scale"]
        # If the lower end of an interval reaches 0, a logarithmic axis cannot show this end. The lower end is therefore
        # moved to the end of the axis.
        cut = {"calculate": f"max(datum.low, {first['domain'][0]})", "as": "low"}
        ends = encoding | self._from_low_to_high()
        layer = self._layer(group.name, {"type": "rule", **mark}, ends)
        yield layer | {"transform": [known, cut]}

    def _encode(self, group: CurveGroup) -> Spec:
        """Return the channels for a group of curves. The channels are place, colour and dash."""
        muted = group.first.muted
        encoding: Spec = {"x": self.places, "y": self.values}
        style = {} if muted or group.first.mark is Mark.BOX else self.style
        names = [(curve.name, curve.variant) for curve in group.curves]
        encoding |= {key: each for key, each in style.items() if key == "color" or group.first.mark is Mark.LINE}
        if self.chart.grouped:
            encoding |= self._offset()
        if group.first.mark is Mark.LINE:
            if len(set(names)) < len(names):
                encoding["detail"] = {"field": "curve"}
            elif muted:
                encoding["detail"] = {"field": "series", "type": "nominal"}
            if not is_sorted(group.curves):
                encoding["order"] = {"field": "place", "type": "quantitative"}
        return encoding

    def _offset(self) -> Spec:
        sort = list(self.chart.names)
        return {"xOffset": {"field": "series", "type": "nominal", "sort": sort}}

    def _from_low_to_high(self) -> Spec:
        return {"y": {**self.values, "field": "low"}, "y2": {"field": "high"}}

    def _tip(self, group: CurveGroup) -> list[Row]:
        """Return the facts that the chart shows when the pointer is on a point."""
        chart, first = self.chart, group.first
        fields = [("series", chart.series or chart.series_word)] if "color" in self.style else []
        fields += [("variant", chart.variants or "Quantity")] if first.variant else []
        if chart.x.scale is Scale.CLOCK:
            fields.append(("clock", "Time"))
        elif chart.x.title:
            fields.append(("x", chart.x.title))
        fields.append(("value", chart.y.title))
        if group.is_spread and first.mark is Mark.LINE:
            fields += [("low", "lowest"), ("high", "highest")]
        fields += [pair for pair in zip(group.fields, first.facts, strict=True) if pair[1]]
        numbers = {*_NUMBERS} | ({"x"} if chart.x.scale in _TIMES else set())
        numbers |= {field for field in group.fields if any(isinstance(row.get(field), float) for row in group.rows)}
        return tooltip(*fields, numbers=numbers)

    def _layer(self, data: str, mark: Row, encoding: Spec) -> Spec:
        layer: Spec = {"data": {"name": data}, "mark": mark, "encoding": encoding}
        if "tooltip" in encoding and self.chart.x.scale is Scale.CLOCK and data.startswith("curves"):
            layer["transform"] = [{"calculate": CLOCK.format("datum.x"), "as": "clock"}]
        return layer

    # ---- what is marked

    def _shades(self) -> Iterator[Spec]:
        """Yield a layer for each kind of shade."""
        for kind, shades in _by_kind(self.chart.shades):
            colour, opacity = SHADES[kind]
            self.data[kind] = [{"from": each.begin, "to": each.end, "flag": each.text} for each in shades]
            ends: Spec = {"x": {**self.places, "field": "from"}, "x2": {"field": "to"}}
            tip = {"tooltip": tooltip(_WHY)} if any(each.text for each in shades) else {}
            mark: Row = {"type": "rect", "color": colour, "opacity": opacity, "clip": True}
            yield self._layer(kind, mark, ends | tip)

    def _rules(self, *, front: bool) -> Iterator[Spec]:
        """Yield the rules (straight lines) and their names.

        Args:
            front: whether to yield the rules in front of the curves. Only rules that coincide with curves are in front.
        """
        for kind, rules in _by_kind(self.chart.rules):
            level = any(rule.x_end is not None for rule in rules)
            if level is not front:
                continue
            self.data[kind] = [build_rule_row(rule) for rule in rules]
            encoding: Spec = {}
            if rules[0].x is not None:
                encoding["x"] = self.places
            if rules[0].x_end is not None:
                encoding["x2"] = {"field": "end"}
            if rules[0].y is not None:
                encoding["y"] = self.values
            if any(rule.name for rule in rules):
                encoding["tooltip"] = self._tip_of_rule(rules[0])
            clip = {"clip": True} if self.zooms else {}
            yield self._layer(kind, {"type": "rule", **RULES[kind], **clip}, encoding)
            yield from self._names(kind, rules)

    def _tip_of_rule(self, rule: Rule) -> list[Row]:
        fields = [("name", "Marked")]
        fields += [] if rule.x is None else [("x", self.chart.x.title)]
        fields += [] if rule.y is None else [("value", self.chart.y.title)]
        return tooltip(*fields, numbers=("x", "value"))

    def _names(self, kind: str, rules: Sequence[Rule]) -> Iterator[Spec]:
        """Yield the names of rules (straight lines). A name is at the start of a level, in the corner above a
        horizontal line, or at the top of the plot.
        """
        if not any(rule.name for rule in rules):
            return
        text: Spec = {"text": {"field": "name", "type": "nominal"}}
        first = rules[0]
        if first.x is None:
            mark = {"type": "text", "align": "left", "baseline": "top", "dx": 4, "dy": 4}
            yield self._layer(kind, mark, {"x": {"value": 0}, "y": self.values} | text)
        elif first.y is not None:
            for below in sorted({rule.below for rule in rules}):
                level = {"type": "text", "align": "left", "dx": 4, "dy": 9 if below else -8}
                layer = self._layer(kind, level, {"x": self.places, "y": self.values} | text)
                yield layer | {"transform": [{"filter": f"datum.below === {str(below).lower()}"}]}
        else:
            right = any(rule.row for rule in rules)
            side: Row = {"align": "right", "dx": -4} if right else {"align": "left", "dx": 3}
            for row in sorted({rule.row for rule in rules}):
                at: Spec = {"x": self.places, "y": {"value": 2 + _LINE_PX * row}}
                layer = self._layer(kind, {"type": "text", "baseline": "top", **side}, at | text)
                yield layer | ({"transform": [{"filter": f"datum.row === {row}"}]} if right else {})

    def _spots(self) -> Iterator[Spec]:
        """Yield marks for spots. A spot with a value has a point, and any other spot has a triangle at the top of the
        chart.
        """
        for kind, spots in _by_kind(self.chart.spots):
            self.data[kind] = [{"x": each.x, "value": each.y, "name": each.text} for each in spots]
            on_top = spots[0].y is None
            mark: Row = {
                "type": "point",
                "shape": "triangle-down" if on_top else "circle",
                "filled": True,
                "size": 55,
                "opacity": 1,
                "color": SPOTS[kind],
            }
            encoding: Spec = {
                "x": self.places,
                "y": {"value": 6} if on_top else self.values,
                "tooltip": tooltip(("name", "Over time"), ("x", self.chart.x.title), numbers=("x",)),
            }
            yield self._layer(kind, mark, encoding)

    def _rings(self) -> Iterator[Spec]:
        """Yield a ring around each flagged point."""
        for group in self.groups:
            rows = [row for row in group.rows if row.get("flag") and row["value"] is not None]
            if not rows or group.first.mark is Mark.BOX:
                continue
            name = group.name.replace("curves", "rings")
            self.data[name] = rows[:MOST_RINGS]
            ring: Row = {
                "type": "point",
                "shape": "circle",
                "filled": False,
                "size": 130,
                "strokeWidth": 2,
                "color": FLAGGED,
                "opacity": 1,
            }
            places: Spec = {"x": self.places, "y": self.values}
            places |= self._offset() if self.chart.grouped else {}
            tip = {"tooltip": [*self._tip(group), *tooltip(_WHY)]}
            yield self._layer(name, ring, places | tip)


def _by_kind(marks: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
    ordered = sorted(marks, key=lambda each: each.kind)
    return ((kind, list(of_kind)) for kind, of_kind in groupby(ordered, key=lambda each: each.kind))


def _unfaded(mark: Row) -> Row:
    return {key: value for key, value in mark.items() if key not in ("opacity", "strokeWidth")}


def _data_name(layer: Spec) -> str:
    data: Any = layer["data"]
    return str(data["name"])
