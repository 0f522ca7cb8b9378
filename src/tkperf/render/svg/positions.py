"""The scales of a chart's axes and of its colours and dashes: which values they have, in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tkperf.render.svg import defaults, ticks
from tkperf.render.svg.data import column, is_number
from tkperf.render.svg.known import NotDrawnError, Spec, check_value
from tkperf.render.svg.scales import Bands, Continuous, Scale, Styles, name_text, pad_domain
from tkperf.render.svg.units import Unit

OFFSETS = {"x": "xOffset", "y": "yOffset"}
# Marks that are as wide as a band.
_BANDED = {"bar", "rect", "rule", "box", "tick"}


class Position(Struct, frozen=True, kw_only=True):
    """A scale before its length is known: ``inner`` and ``outer`` are room between bands; padding is in pixels."""

    domain: tuple[Any, ...]
    discrete: bool = False
    inner: float = 0.0
    outer: float = 0.0
    banded: bool = False
    log: bool = False
    utc: bool = False
    padding: float = 0.0
    least: float | None = None
    most: float | None = None
    nice: bool = False

    def scale(self, first: float, last: float) -> Scale:
        """On these pixels."""
        if self.discrete:
            return Bands(
                domain=self.domain,
                range_=(min(first, last), max(first, last)),
                inner=self.inner,
                outer=self.outer,
                banded=self.banded,
            )
        low, high = self.domain
        low = low if self.least is None else self.least
        high = high if self.most is None else self.most
        if self.padding:
            low, high = pad_domain(
                (low, high), log=self.log, padding=self.padding, length=abs(last - first)
            )
        if self.utc:  # a date has no parts of milliseconds
            low, high = math.trunc(low), math.trunc(high)
        if self.nice:
            low, high = ticks.nice_log(low, high) if self.log else ticks.nice_linear(low, high)
        return Continuous(
            domain=(float(low), float(high)), range_=(first, last), log=self.log, utc=self.utc
        )


def channels_of(units: Sequence[Unit], key: str) -> list[tuple[Unit, Spec]]:
    """Those that show a field in a channel."""
    return [(unit, unit.encoding[key]) for unit in units if unit.field(key) is not None]


def merge(parts: Iterable[Spec], where: str) -> dict[str, Any]:
    """What several say together; they must not contradict each other."""
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key in merged and merged[key] != value:
                raise NotDrawnError(f"two {key} of {where}")
            merged[key] = value
    return merged


def find_position(units: Sequence[Unit], key: str) -> Position | None:
    """The scale of an axis, or within its bands; None of one without a field."""
    channels = channels_of(units, key)
    if not channels:
        return None
    given = merge((channel.get("scale") or {} for _, channel in channels), f"the scale {key}")
    kinds = {unit.is_discrete(key) for unit, _ in channels}
    if len(kinds) > 1:
        raise NotDrawnError(f"names and numbers on {key}")
    if kinds == {True}:
        return _find_bands(units, key, channels, given)
    return _find_continuous(key, channels, given)


def _find_bands(
    units: Sequence[Unit], key: str, channels: Sequence[tuple[Unit, Spec]], given: Spec
) -> Position:
    for name in given.keys() - {"domain"}:
        raise NotDrawnError(f"{name} of a scale of names")
    domain = tuple(given["domain"]) if "domain" in given else find_names(channels)
    nested = any(OFFSETS.get(key) in unit.encoding for unit in units)
    if key in OFFSETS.values():
        return Position(domain=domain, discrete=True, banded=True)
    if not nested and not any(unit.kind in _BANDED for unit, _ in channels):
        return Position(domain=domain, discrete=True, inner=1.0, outer=defaults.POINT_PADDING)
    first, _ = next(each for each in channels if nested or each[0].kind in _BANDED)
    bars = defaults.BAR_PADDING if first.kind == "bar" else defaults.RECT_PADDING
    if nested:
        inner = outer = defaults.NESTED_PADDING
    else:
        inner, outer = bars, bars / 2
    return Position(domain=domain, discrete=True, banded=True, inner=inner, outer=outer)


def find_names(channels: Sequence[tuple[Unit, Spec]]) -> tuple[object, ...]:
    """The names of a field: in the order asked for, as they appear, or sorted."""
    orders = [channel["sort"] for _, channel in channels if "sort" in channel]
    if any(order != orders[0] for order in orders):
        raise NotDrawnError("names in two orders")
    fields = ((unit, str(channel["field"])) for unit, channel in channels)
    seen: dict[Any, None] = dict.fromkeys(
        row.get(field) for unit, field in fields for row in unit.rows
    )
    for name in seen:
        name_text(name)
    if not orders:
        if len({isinstance(name, str) for name in seen}) > 1:
            raise NotDrawnError("names of several kinds")
        return tuple(sorted(seen))
    order = orders[0]
    if order is None:
        return tuple(seen)
    places = {name: place for place, name in enumerate(order)}
    return tuple(sorted(seen, key=lambda name: places.get(name, len(places))))


def _find_continuous(key: str, channels: Sequence[tuple[Unit, Spec]], given: Spec) -> Position:
    temporal = {unit.type_of(key) == "temporal" for unit, _ in channels}
    if len(temporal) > 1:
        raise NotDrawnError(f"times and numbers on {key}")
    kind = given.get("type", "time" if temporal == {True} else "linear")
    check_value(kind, ("utc",) if temporal == {True} else ("linear", "log"), f"the scale {key}")
    explicit = "domain" in given
    ends = given["domain"] if explicit else _find_ends(key, channels)
    if not isinstance(ends, Sequence) or len(ends) != 2 or not all(map(is_number, ends)):
        raise NotDrawnError(f"an axis from {ends!r:.60}")
    low, high = ends
    if kind == "linear" and given.get("zero", _begins_at_0(key, *channels[0])):
        low, high = min(low, 0), max(high, 0)
    bounded = explicit or "domainMin" in given or "domainMax" in given
    nice = given.get("nice", not bounded and kind != "utc")
    check_value(nice, (True, False), "nice")
    if nice and kind == "utc":
        raise NotDrawnError("a time axis with nice ends")
    return Position(
        domain=(low, high),
        log=kind == "log",
        utc=kind == "utc",
        padding=float(given.get("padding", 0.0)),
        least=given.get("domainMin"),
        most=given.get("domainMax"),
        nice=bool(nice),
    )


def _find_ends(key: str, channels: Sequence[tuple[Unit, Spec]]) -> tuple[float, float]:
    """The least and the greatest value that is drawn."""
    values = [value for unit, channel in channels for value in _values(unit, key, channel)]
    if not values:
        raise NotDrawnError("an axis without values")
    return min(values), max(values)


def _values(unit: Unit, key: str, channel: Spec) -> Iterator[float]:
    if unit.kind == "bar" and key == "y":
        raise NotDrawnError("stacked bars on an axis without ends")
    fields = [channel["field"]]
    second = unit.field(f"{key}2")
    for field in [*fields, *([second] if second else [])]:
        yield from (value for value in column(unit.rows, field) if value is not None)


def _begins_at_0(key: str, unit: Unit, channel: Spec) -> bool:
    """Whether an axis that says nothing of it reaches to 0: as its first layer has it, if that says no ends; not along a line."""
    if "domain" in (channel.get("scale") or {}):
        return False
    return not (key == "x" and unit.kind in ("line", "area"))


def stack(unit: Unit) -> list[tuple[float, float]]:
    """From where to where each bar reaches: those of one place above each other, if colours tell them apart."""
    field = unit.encoding["y"]["field"]
    values = column(unit.rows, field)
    if unit.field("color") is None:
        return [(0.0, 0.0 if value is None else value) for value in values]
    reached: dict[object, float] = {}
    places = [unit.field(key) for key in ("x", "xOffset")]
    found = []
    for row, value in zip(unit.rows, values, strict=True):
        amount = value or 0.0
        place = (*(row.get(each) for each in places if each), amount < 0)
        start = reached.get(place, 0.0)
        reached[place] = start + amount
        found.append((start, start + amount))
    return found


def find_styles(units: Sequence[Unit], key: str) -> Styles | None:
    """The scale of colours, or of dashes; None without one."""
    channels = [
        (unit, channel)
        for unit, channel in channels_of(units, key)
        if channel.get("scale", {}) is not None
    ]
    if not channels:
        return None
    for _, channel in channels:
        check_value(channel.get("type", "nominal"), ("nominal",), f"type of {key}")
    given = merge((channel.get("scale", {}) for _, channel in channels), f"the scale {key}")
    range_ = given.get("range", defaults.DASHES if key == "strokeDash" else None)
    if not isinstance(range_, Sequence) or isinstance(range_, str) or not range_:
        raise NotDrawnError(f"a range {range_!r:.60}")
    domain = tuple(given["domain"]) if "domain" in given else find_names(channels)
    return Styles(domain=domain, range_=range_)


class Scales(Struct, frozen=True, kw_only=True):
    """All of a chart at one width; while it is measured, only what reaches beyond the plot matters."""

    width: float
    height: float
    measuring: bool
    positions: Mapping[str, Scale]
    styles: Mapping[str, Styles]

    def of(self, unit: Unit, key: str) -> Scale:
        """The scale of a unit's channel."""
        own = f"{key}{unit.layer}"
        return self.positions[own if own in self.positions else key]


def dashes(value: object) -> str:
    """As SVG has them."""
    if not isinstance(value, Sequence) or not all(
        isinstance(each, int | float) and math.isfinite(each) for each in value
    ):
        raise NotDrawnError(f"dashes {value!r:.60}")
    return ",".join(f"{each:g}" for each in value)
