"""A chart as SVG: drawn once to see what room axes, names and legends need, then in what is left of the width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tkperf.render.fonts import FAMILY
from tkperf.render.svg import defaults, known
from tkperf.render.svg.axes import Axis, DrawnAxis, find_axes
from tkperf.render.svg.boxes import Box
from tkperf.render.svg.known import NotDrawnError, Spec, check_keys
from tkperf.render.svg.legends import Legend, draw_legend, find_legends, place_legends
from tkperf.render.svg.marks import draw_mark
from tkperf.render.svg.placed import Placed
from tkperf.render.svg.positions import Position, Scales, find_position, find_styles
from tkperf.render.svg.scales import Styles
from tkperf.render.svg.text import escape
from tkperf.render.svg.units import Unit, read_units

_BAD_DATA = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, AssertionError,
)  # fmt: skip


def draw(spec: Spec) -> str:
    """The SVG of a Vega-Lite specification for print, as Vega would draw it.

    Raises:
        NotDrawnError: it asks for something that is not known here.
    """
    try:
        chart = _read(spec)
        first = chart.lay_out(chart.outer_width, measuring=True)
        left, right, top, bottom = first.margins()
        width = max(0.0, chart.outer_width - 2 * defaults.PADDING - left - right)
        return chart.lay_out(width).write(left, top, bottom)
    except _BAD_DATA as error:
        raise NotDrawnError(f"a specification in which something does not fit ({error})") from error


class _Layout(Struct, frozen=True, kw_only=True):
    """All of a chart at one width of its plot."""

    chart: _Chart
    width: float
    plot: str
    box: Box

    def margins(self) -> tuple[int, int, int, int]:
        """Pixels beside the plot: left, right, above, below."""
        return (
            max(0, math.ceil(-self.box.x1)),
            max(0, math.ceil(self.box.x2 - self.width)),
            max(0, math.ceil(-self.box.y1)),
            max(0, math.ceil(self.box.y2 - self.chart.height)),
        )

    def write(self, left: int, top: int, bottom: int) -> str:
        chart, padding = self.chart, defaults.PADDING
        outer_height = chart.height + top + bottom + 2 * padding
        size = f'width="{chart.outer_width:g}" height="{outer_height:g}"'
        background = chart.config.get("background")
        behind = f'<rect {size} fill="{escape(background)}"/>' if background else ""
        clip = (
            f'<clipPath id="plot"><rect width="{self.width:g}" height="{chart.height:g}"/></clipPath>'
            if any(mark.unit.clip for mark in chart.marks)
            else ""
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {chart.outer_width:g} {outer_height:g}">'
            f'{behind}{clip}<g fill="none" stroke-miterlimit="10" font-family="{FAMILY}" '
            f'transform="translate({padding + left},{padding + top})">{self.plot}</g></svg>'
        )


class _Chart(Struct, frozen=True, kw_only=True):
    """A specification that is known in all its parts."""

    config: Spec
    outer_width: float
    height: float
    marks: Sequence[Placed]
    positions: Mapping[str, Position]
    styles: Mapping[str, Styles]
    axes: Sequence[Axis]
    legends: Sequence[Legend]

    def lay_out(self, width: float, *, measuring: bool = False) -> _Layout:
        """With a plot of this width."""
        scales = self._scale(width, measuring=measuring)
        axes = [axis.draw(scales) for axis in self.axes]
        marks = [draw_mark(mark, scales) for mark in self.marks]
        plot = Box(0, 0, width, self.height)
        grouped = Box.around([plot, *(mark.box for mark in marks if mark.grouped)])
        across = Box.around([grouped, *self._boxes(axes, upright=False)])
        upright = Box.around([grouped, *self._boxes(axes, upright=True)])
        drawn = [draw_legend(legend) for legend in self.legends]
        legends, beside = place_legends(drawn, width, self.height, across, upright)
        parts = [axis.grid for axis in axes]
        parts += [axis.svg for axis in axes]
        parts += [mark.svg for mark in marks]
        return _Layout(
            chart=self,
            width=width,
            plot="".join(parts) + legends,
            box=Box.around([across, upright, beside, *(mark.box for mark in marks)]),
        )

    def _boxes(self, drawn: Sequence[DrawnAxis], *, upright: bool) -> list[Box]:
        return [
            each.box for axis, each in zip(self.axes, drawn, strict=True) if axis.is_x is upright
        ]

    def _scale(self, width: float, *, measuring: bool) -> Scales:
        ends = {"x": (0.0, width), "y": (self.height, 0.0)}
        scales = {
            key: position.scale(*ends[key[0]])
            for key, position in self.positions.items()
            if not key.endswith("Offset")
        }
        for key, position in self.positions.items():
            if key.endswith("Offset"):
                scales[key] = position.scale(0.0, scales[key[0]].bandwidth)
        return Scales(
            width=width,
            height=self.height,
            measuring=measuring,
            positions=scales,
            styles=self.styles,
        )


def _read(spec: Spec) -> _Chart:
    check_keys(spec, known.CHART, "a chart")
    config = spec.get("config", {})
    known.check_config(config)
    family = str(config.get("font", "")).split(",", maxsplit=1)[0].strip("\"' ")
    if family != FAMILY:
        raise NotDrawnError(f"type of the family {family!r}")
    if spec.get("autosize") != {"type": "fit-x", "contains": "padding"}:
        raise NotDrawnError(f"autosize {spec.get('autosize')!r}")
    units = read_units(spec)
    keys = _scale_keys(spec, units)
    positions = {
        key: position
        for key, channel in keys.items()
        if (position := find_position(_own(units, key, channel), channel)) is not None
    }
    styles = {
        key: style
        for key in ("color", "strokeDash")
        if (style := find_styles(units, key)) is not None
    }
    axes = find_axes(
        units, {key: keys[key] for key in positions if not key.endswith("Offset")}, config
    )
    return _Chart(
        config=config,
        outer_width=_size(spec, "width"),
        height=_size(spec, "height"),
        marks=[Placed(unit, config) for unit in units],
        positions=positions,
        styles=styles,
        axes=axes,
        legends=find_legends(units, styles, config),
    )


def _own(units: Sequence[Unit], key: str, channel: str) -> list[Unit]:
    """The units that share a scale."""
    return [unit for unit in units if key in (channel, f"{channel}{unit.layer}")]


def _scale_keys(spec: Spec, units: Sequence[Unit]) -> dict[str, str]:
    """The channel of each scale: one for all layers, or an upright one for each."""
    resolve = spec.get("resolve")
    keys = {key: key for key in ("x", "y", "xOffset", "yOffset")}
    if resolve is None:
        return keys
    if resolve != {"scale": {"y": "independent"}}:
        raise NotDrawnError(f"resolve {resolve!r:.60}")
    layers = list(dict.fromkeys(unit.layer for unit in units if unit.field("y")))
    return {"x": "x"} | {f"y{layer}": "y" for layer in layers}


def _size(spec: Spec, key: str) -> float:
    value = spec.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise NotDrawnError(f"{key} {value!r:.60}")
    return float(value)
