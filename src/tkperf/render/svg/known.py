"""What of a specification is drawn: all else is refused, so that nothing is ever silently left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

Spec = Mapping[str, Any]
Row = Mapping[str, Any]

CHART = {
    "$schema", "width", "height", "autosize", "config", "datasets", "data", "mark", "encoding", "layer", "transform",
    "params", "resolve", "usermeta",
}  # fmt: skip
LAYER = {"name", "data", "mark", "encoding", "layer", "transform", "params"}
# Of each mark its properties, and its channels beside those that all have.
_MARK = {"type", "color", "opacity", "clip"}
MARKS: Mapping[str, Collection[str]] = {
    "line": _MARK | {"strokeWidth", "strokeDash", "stroke", "filled", "point"},
    "area": _MARK,
    "point": _MARK | {"strokeWidth", "filled", "size", "shape"},
    "rule": _MARK | {"strokeWidth", "strokeDash"},
    "rect": _MARK,
    "bar": _MARK | {"height"},
    "text": _MARK | {"align", "baseline", "dx", "dy", "angle", "limit", "fontSize", "fontWeight"},
    "boxplot": {"type", "color", "extent"},
}
_CHANNELS = {"x", "y", "color"}
CHANNELS_OF: Mapping[str, Collection[str]] = {
    "line": _CHANNELS | {"opacity", "strokeDash", "detail", "order", "fill"},
    "area": _CHANNELS | {"detail", "y2"},
    "point": _CHANNELS | {"opacity", "xOffset", "yOffset", "detail"},
    "rule": _CHANNELS | {"yOffset", "strokeDash", "x2", "y2"},
    "rect": _CHANNELS | {"detail", "x2", "y2"},
    "bar": _CHANNELS | {"opacity", "xOffset", "x2"},
    "text": {"x", "y", "text"},
    "boxplot": {"x", "y"},
}
# Told to a pointer on the screen.
TOLD = {"tooltip"}
_FIELD = {"field", "type"}
_AT = _FIELD | {"title", "scale", "axis", "sort", "aggregate"}
_STYLE = _FIELD | {"title", "scale", "legend", "sort"}
CHANNELS: Mapping[str, Collection[str]] = {
    "x": _AT, "y": _AT, "x2": {"field", "aggregate"}, "y2": {"field", "aggregate"}, "xOffset": _FIELD | {"sort"},
    "yOffset": _FIELD | {"sort"}, "color": _STYLE, "strokeDash": _STYLE, "fill": _FIELD | {"scale"}, "order": _FIELD,
    "detail": _FIELD, "text": _FIELD, "opacity": (), "tooltip": (),
}  # fmt: skip
# A number of pixels, or a colour, in place of a field.
VALUED = {"x", "y", "x2", "y2", "color"}
SCALE = {"type", "domain", "nice", "zero", "padding", "domainMin", "domainMax"}
# Of colours and dashes.
STYLE_SCALE = {"domain", "range"}
AXIS = {
    "values", "tickCount", "tickMinStep", "format", "labelExpr", "labelAngle", "labelLimit", "labelOverlap",
    "labelSeparation", "grid",
}  # fmt: skip
LEGEND = {"orient", "columns", "labelLimit", "symbolOpacity", "symbolType", "symbolSize"}
CONFIG = {
    "font": None, "background": None, "aria": None,
    "view": {"stroke"},
    # There is none: a chart's title is set as text.
    "title": {"fontSize", "subtitleFontSize", "color", "subtitleColor", "offset"},
    "axis": {
        "labelFontSize", "titleFontSize", "labelColor", "titleColor", "titleFontWeight", "titlePadding", "gridColor",
        "domainColor", "tickColor",
    },
    "axisX": {"labelSeparation"},
    "axisXQuantitative": {"tickCount"},
    "axisXTemporal": {"tickCount"},
    "axisYQuantitative": {"tickCount", "minExtent"},
    "legend": {
        "labelFontSize", "titleFontSize", "labelColor", "titleColor", "symbolStrokeWidth", "labelLimit", "orient",
    },
    "mark": {"color"},
    "text": {"fontSize", "color"},
}  # fmt: skip


class NotDrawnError(Exception):
    """A specification asks for what is not drawn here."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not drawn without Vega")


def check_keys(given: object, known: Collection[str], where: str) -> None:
    """Refuse what has other keys than these, or is no object."""
    if not isinstance(given, Mapping):
        raise NotDrawnError(f"{where} {given!r:.60}")
    for key in given:
        if key not in known:
            raise NotDrawnError(f"{key} of {where}")


def check_value(given: object, known: Collection[object], where: str) -> None:
    """Refuse another value than these."""
    if isinstance(given, dict | list) or given not in known:
        raise NotDrawnError(f"{where} {given!r:.60}")


def check_config(config: Spec) -> None:
    """Refuse a configuration with more than is known."""
    check_keys(config, CONFIG, "config")
    for key, known in CONFIG.items():
        if known is not None and key in config:
            check_keys(config[key], known, f"config.{key}")
    check_value(config.get("view", {}).get("stroke"), (None,), "a view's stroke")
    check_value(config.get("aria", False), (False,), "aria")


def check_params(params: object) -> None:
    """Selections for the screen: nothing of them is seen on paper; refuse any others."""
    if not isinstance(params, list):
        raise NotDrawnError(f"params {params!r:.60}")
    for param in params:
        check_keys(param, {"name", "select", "bind"}, "a selection")
        check_keys(param.get("select"), {"type", "encodings", "fields"}, "a selection")
        check_value(param.get("bind"), ("scales", "legend"), "a selection bound to")
