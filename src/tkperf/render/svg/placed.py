"""A mark's rows on the scales of its chart: where each is, and how it looks."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tkperf.render.svg import defaults
from tkperf.render.svg.boxes import Box
from tkperf.render.svg.data import Rows, column, is_number
from tkperf.render.svg.known import NotDrawnError, Row, Spec, check_value
from tkperf.render.svg.positions import OFFSETS, Scales, dashes
from tkperf.render.svg.scales import Bands, Continuous
from tkperf.render.svg.text import escape, write
from tkperf.render.svg.units import Unit

_BESIDE = re.compile(r"(width|height) ([+-]) (\d+(?:\.\d+)?)\Z")
_COLOURS = {"rule": defaults.RULE_COLOUR, "text": defaults.TEXT_COLOUR}


class DrawnMark(Struct, frozen=True, kw_only=True):
    """``grouped``: it is of several paths, which Vega counts to what lies around the plot."""

    svg: str
    box: Box
    grouped: bool = False


class Placed:
    """A unit on scales, which may change: where its rows are, and how they look."""

    scales: Scales

    def __init__(self, unit: Unit, config: Spec) -> None:
        self.unit, self.config = unit, config
        self.mark, self.encoding = unit.mark, unit.encoding
        self.rows = unit.rows if unit.kind in ("line", "area") else self._valid_rows()
        self._paths: list[Rows] | None = None
        self._columns: dict[tuple[str, int], list[int | float | None]] = {}

    def is_continuous(self, key: str) -> bool:
        return self.unit.field(key) is not None and not self.unit.is_discrete(key)

    def _valid_rows(self) -> Rows:
        """Those that have a place on the axes."""
        rows = self.unit.rows
        keys = [key for key in ("x", "y") if self.is_continuous(key)]
        columns = [column(rows, self.encoding[key]["field"]) for key in keys]
        if not any(None in each for each in columns):
            return rows
        return [row for row, *each in zip(rows, *columns, strict=True) if None not in each]

    def paths(self) -> list[Rows]:
        """The rows of each line, along the order asked for, else from left to right."""
        if self._paths is None:
            self._paths = [self._in_order(group) for group in self.unit.groups() if group]
        return self._paths

    def _in_order(self, rows: Rows) -> Rows:
        if "order" in self.encoding:
            field = self.encoding["order"]["field"]
            return sorted(rows, key=lambda row: row[field])
        if len(rows) < 2:
            return rows
        if self.is_continuous("x"):
            values = column(rows, self.encoding["x"]["field"])
            at = [-math.inf if value is None else float(value) for value in values]
        else:
            at = self.places("x", rows)
        numbers = sorted(range(len(rows)), key=at.__getitem__)
        return [rows[number] for number in numbers]

    def along(self, key: str, rows: Rows) -> Sequence[float | None]:
        """Pixels of the rows of a line, None of what has no place."""
        if not self.is_continuous(key):
            return self.places(key, rows)
        known = (key, id(rows))
        if known not in self._columns:
            self._columns[known] = column(rows, self.encoding[key]["field"])
        values = self._columns[known]
        scale = self.scales.of(self.unit, key[0])
        assert isinstance(scale, Continuous)
        if None not in values:
            return scale.many(values)  # type: ignore[arg-type]
        found = iter(scale.many([value for value in values if value is not None]))
        return [None if value is None else next(found) for value in values]

    def places(self, key: str, rows: Rows, *, start: bool = False) -> list[float]:
        """Pixels of rows in a channel.

        Args:
            start: where a band begins, not its middle.
        """
        axis = key[0]
        channel = self.encoding[key]
        if "value" in channel:
            return [self._value(channel["value"])] * len(rows)
        scale, field = self.scales.of(self.unit, axis), channel["field"]
        offset = OFFSETS[axis]
        if isinstance(scale, Continuous):
            if offset in self.encoding:
                raise NotDrawnError(f"{offset} along numbers")
            return scale.many([0 if value is None else value for value in column(rows, field)])
        if offset in self.encoding:
            inner = self.scales.positions[offset]
            assert isinstance(inner, Bands)
            within = inner.starts() if start else inner.middles()
            inside = self.encoding[offset]["field"]
            begins = scale.starts()
            return [_look_up(begins, row, field) + _look_up(within, row, inside) for row in rows]
        at = scale.starts() if start else scale.middles()
        return [_look_up(at, row, field) for row in rows]

    def _value(self, value: object) -> float:
        sizes = {"width": self.scales.width, "height": self.scales.height}
        if isinstance(value, Mapping):
            found = _BESIDE.match(str(value["expr"]))
            if found is None:
                raise NotDrawnError(f"the place {value['expr']!r:.60}")
            away = float(found[3])
            return sizes[found[1]] + (away if found[2] == "+" else -away)
        if isinstance(value, str):
            check_value(value, sizes, "the place")
            return sizes[value]
        if not is_number(value):
            raise NotDrawnError(f"the place {value!r:.60}")
        assert isinstance(value, int | float)
        return float(value)

    def spans(self, axis: str) -> list[tuple[float, float]]:
        """From where to where each row reaches: all of the plot where it says nothing."""
        second = f"{axis}2"
        if axis not in self.encoding:
            if second in self.encoding:
                raise NotDrawnError(f"{second} without {axis}")
            length = self.scales.width if axis == "x" else self.scales.height
            return [(0.0, length)] * len(self.rows)
        first = self.places(axis, self.rows)
        last = self.places(second, self.rows) if second in self.encoding else first
        return list(zip(first, last, strict=True))

    def colours(self, rows: Rows) -> list[str]:
        if "color" not in self.encoding:
            own = self.config.get("mark", {}).get("color", defaults.MARK_COLOUR)
            default = _COLOURS.get(self.unit.kind, own)
            if self.unit.kind == "text":
                default = self.config.get("text", {}).get("color", default)
            return [escape(self.mark.get("color", default))] * len(rows)
        return self._styles("color", rows)

    def _styles(self, key: str, rows: Rows) -> list[str]:
        channel = self.encoding[key]
        if "value" in channel:
            return [escape(channel["value"])] * len(rows)
        field = channel["field"]
        if key not in self.scales.styles:
            return [escape(row[field]) for row in rows]
        names = self.scales.styles[key].of_names()
        return [escape(_look_up(names, row, field)) for row in rows]

    def fill_of(self, row: Row) -> str:
        return self._styles("fill", [row])[0]

    def opacity(self, default: float = 1.0) -> float:
        if "opacity" in self.encoding:
            return float(self.encoding["opacity"]["condition"]["value"])
        return float(self.mark.get("opacity", default))

    def line_look(self, row: Row, px: float) -> str:
        """Width and dashes."""
        width = float(self.mark.get("strokeWidth", px))
        look = f' stroke-width="{write(width)}"' if width != 1 else ""
        told = self.mark.get("strokeDash")
        if "strokeDash" in self.encoding:
            names = self.scales.styles["strokeDash"].of_names()
            told = _look_up(names, row, self.encoding["strokeDash"]["field"])
        return look + (f' stroke-dasharray="{dashes(told)}"' if told is not None else "")

    def drawn(self, svg: str, box: Box, *, grouped: bool = False) -> DrawnMark:
        if self.unit.clip:
            svg = f'<g clip-path="url(#plot)">{svg}</g>' if svg else ""
            box = box.clipped(self.scales.width, self.scales.height)
        return DrawnMark(svg=svg, box=box, grouped=grouped)


def _look_up(names: Mapping[object, Any], row: Row, field: str) -> Any:
    try:
        return names[row.get(field)]
    except (KeyError, TypeError):
        raise NotDrawnError(f"a name that its scale lacks: {row.get(field)!r:.60}") from None


def fade(opacity: float, what: str) -> str:
    """How faint a filling or a stroke is. Of a whole element it would be a layer of its own in a PDF."""
    return f' {what}-opacity="{opacity:g}"' if opacity != 1 else ""
