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
MARK = {
    "type", "color", "opacity", "strokeWidth", "strokeDash", "stroke", "filled", "size", "shape", "point", "clip",
    "align", "baseline", "dx", "dy", "angle", "limit", "fontSize", "fontWeight", "text", "height", "extent",
}  # fmt: skip
MARKS = {"line", "area", "point", "rule", "rect", "bar", "text", "boxplot"}
# Told to a pointer on the screen.
TOLD = {"tooltip"}
POSITIONS = {"x", "y", "x2", "y2", "xOffset", "yOffset"}
STYLES = {"color", "fill", "strokeDash"}
CHANNELS = POSITIONS | STYLES | TOLD | {"opacity", "order", "detail", "text"}
CHANNEL = {"field", "type", "title", "value", "scale", "axis", "legend", "sort", "aggregate"}
SCALE = {"type", "domain", "range", "nice", "zero", "padding", "domainMin", "domainMax"}
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
