"""A specification taken apart: what is drawn one above the other, each with its mark, channels and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tkperf.render.svg import defaults, known
from tkperf.render.svg.data import Rows, group_rows, is_number, quantile, transform
from tkperf.render.svg.known import NotDrawnError, Spec, check_keys, check_value
from tkperf.render.svg.text import ANCHORS, BASELINES

Encoding = Mapping[str, Any]

DISCRETE = ("nominal", "ordinal")
FILLED = {"bar", "area", "rect", "text", "tick"}
_SORTED = (*DISCRETE, None)
_QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75, "min": 0.0, "max": 1.0}


class Unit(Struct, frozen=True, kw_only=True):
    """One kind of mark; ``layer`` is its place among the specification's own layers."""

    mark: Spec
    encoding: Encoding
    rows: Rows
    layer: int
    clip: bool

    @property
    def kind(self) -> str:
        return str(self.mark["type"])

    @property
    def filled(self) -> bool:
        return bool(self.mark.get("filled", self.kind in FILLED))

    def field(self, channel: str) -> str | None:
        """The field that a channel shows."""
        found = self.encoding.get(channel, {}).get("field")
        return None if found is None else str(found)

    def type_of(self, channel: str) -> str:
        default = "nominal" if channel in ("xOffset", "yOffset") else "quantitative"
        return str(self.encoding[channel].get("type", default))

    def is_discrete(self, channel: str) -> bool:
        return self.type_of(channel) in DISCRETE

    def groups(self) -> Sequence[Rows]:
        """The rows of each path: apart by what has a colour, a dash or is a detail."""
        fields = group_fields(self)
        return list(group_rows(self.rows, fields).values()) if fields else [self.rows]


def group_fields(unit: Unit) -> list[str]:
    """The fields that tell paths apart."""
    details = unit.encoding.get("detail", ())
    listed = [details] if isinstance(details, Mapping) else details
    fields = [str(each["field"]) for each in listed]
    fields += [field for key in ("color", "fill", "strokeDash") if (field := unit.field(key))]
    return list(dict.fromkeys(fields))


def read_units(spec: Spec) -> list[Unit]:
    """All that is drawn, what lies below first.

    Raises:
        NotDrawnError: there is something that is not known.
    """
    check_keys(spec, known.CHART, "a chart")
    zoomed = _is_zoomed(spec)
    whole = {key: value for key, value in spec.items() if key in known.LAYER}
    return [
        unit
        for number, part in enumerate(whole.get("layer", [whole]))
        for unit in _read_part(
            part if part is whole else _inherit(part, whole), spec, number, zoomed=zoomed
        )
    ]


def _is_zoomed(part: Spec) -> bool:
    """Whether any part can be zoomed on the screen: nothing reaches beyond the plot then."""
    params = part.get("params", [])
    known.check_params(params)
    layers = part.get("layer", [])
    if not isinstance(layers, list):
        raise NotDrawnError(f"layer {layers!r:.60}")
    for layer in layers:
        check_keys(layer, known.LAYER, "a layer")
    return any(param["bind"] == "scales" for param in params) or any(map(_is_zoomed, layers))


def _inherit(part: Spec, outer: Spec) -> Spec:
    """A layer with the data, transforms and channels of what it is in."""
    before = outer.get("transform", []) if "data" not in part else []
    return {
        **part,
        "data": part.get("data", outer.get("data")),
        "transform": [*before, *part.get("transform", [])],
        "encoding": _merge(outer.get("encoding", {}), part.get("encoding", {})),
    }


def _merge(outer: Encoding, own: Encoding) -> Encoding:
    """Channels of a layer; one with a field has what it does not say from outside."""
    check_keys(outer, known.CHANNELS, "an encoding")
    check_keys(own, known.CHANNELS, "an encoding")
    merged = {**outer, **own}
    for key, channel in own.items():
        both = isinstance(channel, Mapping) and isinstance(outer.get(key), Mapping)
        if both and "field" in channel:
            merged[key] = {**outer[key], **channel}
    return merged


def _read_part(part: Spec, spec: Spec, layer: int, *, zoomed: bool) -> Iterator[Unit]:
    if "layer" in part:
        if "mark" in part:
            raise NotDrawnError("a layer that is a mark too")
        for inner in part["layer"]:
            yield from _read_part(_inherit(inner, part), spec, layer, zoomed=zoomed)
        return
    told: Any = part.get("mark")
    mark: Spec = {"type": told} if isinstance(told, str) else told
    _check_mark(mark)
    encoding = _read_encoding(part.get("encoding", {}))
    check_keys(encoding, known.CHANNELS_OF[mark["type"]], f"the encoding of {mark['type']}")
    unit = Unit(
        mark=mark,
        encoding=encoding,
        rows=_read_rows(part, spec),
        layer=layer,
        clip=bool(mark.get("clip", zoomed)),
    )
    yield from _expand(_aggregate(unit))


def _read_rows(part: Spec, spec: Spec) -> Rows:
    data = part.get("data")
    check_keys(data, ("values", "name"), "data")
    assert isinstance(data, Mapping)
    rows = data["values"] if "values" in data else spec.get("datasets", {}).get(data.get("name"))
    if not isinstance(rows, list):
        raise NotDrawnError(f"data {data!r:.60}")
    return transform(rows, part.get("transform", []))


def _read_encoding(encoding: Encoding) -> Encoding:
    """The channels that are seen, each checked."""
    check_keys(encoding, known.CHANNELS, "an encoding")
    shown = {
        key: channel
        for key, channel in encoding.items()
        if channel is not None and key not in known.TOLD
    }
    for key, channel in shown.items():
        for each in channel if key == "detail" and isinstance(channel, list) else [channel]:
            _check_channel(key, each)
    return shown


def _check_channel(key: str, channel: Spec) -> None:
    where = f"channel {key}"
    if key == "opacity":
        # Fainter is what a click on the legend did not choose; on paper nobody has.
        check_keys(channel, ("condition", "value"), where)
        check_keys(channel["condition"], ("param", "value"), where)
        return
    if isinstance(channel, Mapping) and "value" in channel and key in known.VALUED:
        check_keys(channel, ("value",), where)
        if isinstance(channel["value"], Mapping):
            check_keys(channel["value"], ("expr",), where)
        return
    check_keys(channel, known.CHANNELS[key], where)
    if not isinstance(channel.get("field"), str):
        raise NotDrawnError(f"{where} without a field")
    known_types = ("quantitative", "temporal", *DISCRETE)
    check_value(channel.get("type", "nominal"), known_types, where)
    sort = channel.get("sort")
    if sort is not None and (not isinstance(sort, list) or channel.get("type") not in _SORTED):
        raise NotDrawnError(f"the order {sort!r:.60} of {where}")
    if key == "text":  # a number would have a format
        check_value(channel.get("type"), ("nominal",), where)
    if key == "fill":  # as the rows have it
        check_value(channel.get("scale", "one"), (None,), f"scale of {where}")
    scale = known.SCALE if key in ("x", "y") else known.STYLE_SCALE
    for part, keys in (("scale", scale), ("axis", known.AXIS), ("legend", known.LEGEND)):
        if channel.get(part) is not None:
            check_keys(channel[part], keys, f"{part} of {where}")


def _aggregate(unit: Unit) -> Unit:
    """With quartiles in place of what they are of."""
    aggregated = {key: each for key, each in unit.encoding.items() if "aggregate" in each}
    if not aggregated:
        return unit
    others = [
        field for key in unit.encoding if key not in aggregated and (field := unit.field(key))
    ]
    wanted: dict[str, tuple[str, float]] = {}
    encoding = dict(unit.encoding)
    for key, channel in aggregated.items():
        share = _QUARTILES.get(channel["aggregate"])
        if share is None:
            raise NotDrawnError(f"{channel['aggregate']} of channel {key}")
        name = f"{channel['aggregate']}_{channel['field']}"
        wanted[name] = (channel["field"], share)
        encoding[key] = {**channel, "field": name}
    return replace(unit, encoding=encoding, rows=_summarise(unit.rows, others, wanted))


def _summarise(rows: Rows, by: Sequence[str], wanted: Mapping[str, tuple[str, float]]) -> Rows:
    found = []
    for key, group in group_rows(rows, by).items():
        row = dict(zip(by, key, strict=True))
        for name, (field, share) in wanted.items():
            values = [each[field] for each in group if is_number(each.get(field))]
            row[name] = quantile(values, share) if values else None
        found.append(row)
    return found


def _expand(unit: Unit) -> Iterator[Unit]:
    """With marks that consist of others as these."""
    if unit.kind == "boxplot":
        yield from _expand_boxes(unit)
        return
    yield unit
    point = unit.mark.get("point", False)
    if unit.kind != "line" or point is False:
        return
    more = {} if point is True else point
    check_keys(more, ("filled", "size"), "points of a line")
    # As Vega-Lite has it: a colour that the line has by itself is not theirs.
    mark = {"type": "point", "filled": True, "opacity": 1, **more}
    kept = {key: each for key, each in unit.encoding.items() if key not in ("order", "strokeDash")}
    yield replace(unit, mark=mark, encoding=kept)


def _check_mark(mark: Spec) -> None:
    if not isinstance(mark, Mapping):
        raise NotDrawnError(f"the mark {mark!r:.60}")
    check_value(mark.get("type"), known.MARKS, "a mark")
    check_keys(mark, known.MARKS[mark["type"]], str(mark["type"]))
    check_value(mark.get("shape", "circle"), ("circle", "triangle-down"), "a point's shape")
    if not isinstance(mark.get("align"), Mapping):
        check_value(mark.get("align", "center"), ANCHORS, "text at the")
    check_value(mark.get("baseline", "middle"), BASELINES, "text at the")
    for key in ("filled", "clip"):
        check_value(mark.get(key, False), (True, False), key)
    if "point" in mark and not isinstance(mark["point"], bool | Mapping):
        raise NotDrawnError(f"the points {mark['point']!r:.60}")


def _expand_boxes(unit: Unit) -> Iterator[Unit]:
    """From the least to the greatest a line, the middle half a box, the median a line across it."""
    mark = unit.mark
    check_value(mark.get("extent"), ("min-max",), "the extent of a box plot")
    x, y = unit.encoding["x"], unit.encoding["y"]
    if not unit.is_discrete("x") or unit.is_discrete("y"):
        raise NotDrawnError("a box plot of another kind")
    names = {name: f"{name}_box" for name in _QUARTILES}
    wanted = {names[name]: (y["field"], share) for name, share in _QUARTILES.items()}
    rows = _summarise(unit.rows, [x["field"]], wanted)
    colour = {"color": mark["color"]} if "color" in mark else {}

    def part(kind: str, low: str, high: str | None, **more: object) -> Unit:
        ends = {"y": {**y, "field": names[low]}}
        if high is not None:
            ends["y2"] = {"field": names[high]}
        return replace(
            unit, mark={"type": kind, **colour, **more}, encoding={"x": x, **ends}, rows=rows
        )

    yield part("rule", "min", "q1")
    yield part("rule", "q3", "max")
    yield part("box", "q1", "q3")
    # As Vega-Lite has it: light on a box, and not in the box's colour where that has no height.
    low, high = names["q1"], names["q3"]
    light = [row[low] is not None and row[low] < row[high] for row in rows]
    coloured = [
        {**row, "colour": "white" if each else defaults.MARK_COLOUR}
        for row, each in zip(rows, light, strict=True)
    ]
    median = part("tick", "median", None, opacity=0.7)
    colours = {"color": {"field": "colour", "scale": None}}
    yield replace(median, rows=coloured, encoding={**median.encoding, **colours})
