"""Marks: lines, areas, points, rules, rectangles and texts where their rows place them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from tkperf.render.svg import defaults
from tkperf.render.svg.boxes import Box
from tkperf.render.svg.expressions import compile_expression
from tkperf.render.svg.known import NotDrawnError, Row, Spec, check_keys
from tkperf.render.svg.placed import DrawnMark, Placed, fade
from tkperf.render.svg.positions import Scales, stack
from tkperf.render.svg.scales import Continuous
from tkperf.render.svg.text import Style, Text, escape, write, write_texts
from tkperf.render.svg.units import Unit


def draw_mark(mark: Placed, scales: Scales) -> DrawnMark:
    """All of a unit; nothing yet of what does not reach beyond the plot, while that is measured."""
    if scales.measuring and mark.unit.clip:
        return DrawnMark(svg="", box=Box())
    mark.scales = scales
    return _DRAWN[mark.unit.kind](mark)


def _segments(*columns: Sequence[float | None]) -> list[list[tuple[float, ...]]]:
    """Points in a row that have all their places."""
    points = zip(*columns, strict=True)
    if not any(None in column for column in columns):
        whole: list[tuple[Any, ...]] = list(points)
        return [whole] if whole else []
    runs = groupby(points, key=lambda point: None not in point)
    return [list(run) for complete, run in runs if complete]


def _path(points: Sequence[tuple[float, ...]]) -> str:
    text = "L".join([f"{x:.2f},{y:.2f}" for x, y in points])
    return f"M{text}Z" if len(points) == 1 else f"M{text}"


def _draw_line(mark: Placed) -> DrawnMark:
    if mark.unit.filled and "fill" not in mark.encoding:
        raise NotDrawnError("a filled line without the colour of its filling")
    if mark.opacity() != 1 and mark.unit.filled:
        raise NotDrawnError("a faint filled line")
    parts, boxes = [], []
    faint = fade(mark.opacity(), "stroke")
    width = float(mark.mark.get("strokeWidth", defaults.LINE_PX))
    for rows in mark.paths():
        segments = _segments(mark.along("x", rows), mark.along("y", rows))
        if not segments:
            continue
        boxes.append(_box(segments).grown(width))
        if mark.scales.measuring:
            continue
        stroke = escape(mark.mark["stroke"]) if "stroke" in mark.mark else mark.colours(rows[:1])[0]
        look = mark.line_look(rows[0], defaults.LINE_PX)
        if "fill" in mark.encoding:
            look += f' fill="{mark.fill_of(rows[0])}"'
        path = "".join(map(_path, segments))
        parts.append(f'<path d="{path}" stroke="{stroke}"{look}{faint}/>')
    return mark.drawn("".join(parts), Box.around(boxes), grouped=_is_grouped(mark.unit))


def _box(segments: Sequence[Sequence[tuple[float, ...]]]) -> Box:
    across, *down = zip(*chain.from_iterable(segments), strict=True)
    return Box(min(across), min(map(min, down)), max(across), max(map(max, down)))


def _is_grouped(unit: Unit) -> bool:
    return bool(unit.encoding.keys() & {"detail", "fill"}) or any(
        unit.field(key) for key in ("color", "strokeDash")
    )


def _draw_area(mark: Placed) -> DrawnMark:
    parts, boxes = [], []
    faint = fade(mark.opacity(), "fill")
    for rows in mark.paths():
        edges = mark.along("y", rows), mark.places("y2", rows)
        segments = _segments(mark.along("x", rows), *edges)
        if not segments:
            continue
        boxes.append(_box(segments))
        if mark.scales.measuring:
            continue
        fill = mark.colours(rows[:1])[0]
        path = "".join(map(_outline, segments))
        parts.append(f'<path d="{path}" fill="{fill}"{faint}/>')
    return mark.drawn("".join(parts), Box.around(boxes), grouped=_is_grouped(mark.unit))


def _outline(points: Sequence[tuple[float, ...]]) -> str:
    """Along one edge, and back along the other."""
    there = [(x, one) for x, one, _ in points]
    back = [(x, other) for x, _, other in reversed(points)]
    return f"{_path([*there, *back])}Z"


def _draw_points(mark: Placed) -> DrawnMark:
    radius = math.sqrt(float(mark.mark.get("size", defaults.POINT_SIZE))) / 2
    width = float(mark.mark.get("strokeWidth", defaults.POINT_LINE_PX))
    places = list(zip(mark.places("x", mark.rows), mark.places("y", mark.rows), strict=True))
    if not places:
        return mark.drawn("", Box())
    circle = mark.mark.get("shape", "circle") == "circle"
    high = radius if circle else radius * math.sqrt(3) / 2
    shape = _circle if circle else _triangle
    what = "fill" if mark.unit.filled else "stroke"
    faint = fade(mark.opacity(defaults.POINT_OPACITY), what)
    parts = []
    runs = groupby(zip(mark.colours(mark.rows), places, strict=True), key=lambda each: each[0])
    for colour, run in runs if not mark.scales.measuring else ():
        shapes = "".join([shape(x, y, radius, faint) for _, (x, y) in run])
        outline = f'stroke="{colour}" stroke-width="{write(width)}"'
        look = f'fill="{colour}"' if mark.unit.filled else outline
        parts.append(f"<g {look}>{shapes}</g>")
    across, down = zip(*places, strict=True)
    box = Box(min(across) - radius, min(down) - high, max(across) + radius, max(down) + high)
    return mark.drawn("".join(parts), box if mark.unit.filled else box.grown(width))


def _circle(x: float, y: float, radius: float, look: str) -> str:
    # By a transform: all circles of a size are then the same bytes, of which a PDF keeps few.
    return f'<circle transform="translate({x:.2f},{y:.2f})" r="{radius:.3f}"{look}/>'


def _triangle(x: float, y: float, radius: float, look: str) -> str:
    """Its tip points down."""
    high = radius * math.sqrt(3) / 2
    sides = f"l{-radius:.3f},{-2 * high:.3f}h{2 * radius:.3f}"
    return f'<path d="M{x:.2f},{y + high:.2f}{sides}Z"{look}/>'


def _draw_rules(mark: Placed) -> DrawnMark:
    if not {"x", "y"} & mark.encoding.keys():
        raise NotDrawnError("a rule without a place")
    width = float(mark.mark.get("strokeWidth", defaults.RULE_PX))
    faint = fade(mark.opacity(), "stroke")
    parts, boxes = [], []
    spans = zip(mark.rows, mark.colours(mark.rows), mark.spans("x"), mark.spans("y"), strict=True)
    for row, colour, (x1, x2), (y1, y2) in spans:
        look = mark.line_look(row, defaults.RULE_PX)
        path = f"M{write(x1)},{write(y1)}L{write(x2)},{write(y2)}"
        parts.append(f'<path d="{path}" stroke="{colour}"{look}{faint}/>')
        boxes.append(Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)).grown(width))
    return mark.drawn("".join(parts), Box.around(boxes))


def _draw_rectangles(mark: Placed) -> DrawnMark:
    for axis in ("x", "y"):
        if axis in mark.encoding and f"{axis}2" not in mark.encoding:
            raise NotDrawnError(f"rectangles without {axis}2")
    return _rectangles(mark, mark.spans("x"), mark.spans("y"))


def _rectangles(
    mark: Placed, across: Sequence[tuple[float, float]], down: Sequence[tuple[float, float]]
) -> DrawnMark:
    boxes = [Box(min(xs), min(ys), max(xs), max(ys)) for xs, ys in zip(across, down, strict=True)]
    parts = []
    if not mark.scales.measuring:
        faint = fade(mark.opacity(), "fill")
        for colour, box in zip(mark.colours(mark.rows), boxes, strict=True):
            path = f"M{box.x1:.3f},{box.y1:.3f}h{box.width:.3f}v{box.height:.3f}h{-box.width:.3f}Z"
            parts.append(f'<path d="{path}" fill="{colour}"{faint}/>')
    return mark.drawn("".join(parts), Box.around(boxes))


def _draw_bars(mark: Placed) -> DrawnMark:
    if mark.is_continuous("x"):
        return _draw_flat_bars(mark)
    if not mark.is_continuous("y") or mark.encoding.keys() & {"x2", "y2"}:
        raise NotDrawnError("bars of another kind")
    scale = mark.scales.of(mark.unit, "y")
    assert isinstance(scale, Continuous)
    if scale.log:
        raise NotDrawnError("bars on a logarithmic axis")
    within = mark.scales.positions.get("xOffset", mark.scales.positions["x"])
    width = max(defaults.LEAST_BAND_PX, within.bandwidth)
    across = [(start, start + width) for start in mark.places("x", mark.rows, start=True)]
    valid = {id(row) for row in mark.rows}
    pairs = zip(mark.unit.rows, stack(mark.unit), strict=True)
    ends = [reach for row, reach in pairs if id(row) in valid]
    down = list(zip(*(scale.many([each[end] for each in ends]) for end in (0, 1)), strict=True))
    return _rectangles(mark, across, down)


def _draw_flat_bars(mark: Placed) -> DrawnMark:
    """From one number to another, as high as they say, in the middle of a name's band."""
    if "x2" not in mark.encoding or "height" not in mark.mark or mark.is_continuous("y"):
        raise NotDrawnError("bars of another kind")
    half = float(mark.mark["height"]) / 2
    down = [(middle - half, middle + half) for middle in mark.places("y", mark.rows)]
    return _rectangles(mark, mark.spans("x"), down)


def _draw_boxes(mark: Placed) -> DrawnMark:
    half = defaults.BOX_PX / 2
    across = [(middle - half, middle + half) for middle in mark.places("x", mark.rows)]
    return _rectangles(mark, across, mark.spans("y"))


def _draw_medians(mark: Placed) -> DrawnMark:
    half = defaults.BOX_PX / 2
    across = [(middle - half, middle + half) for middle in mark.places("x", mark.rows)]
    high = defaults.MEDIAN_PX / 2
    down = [(at - high, at + high) for at in mark.places("y", mark.rows)]
    return _rectangles(mark, across, down)


def _told(mark: Spec, key: str, default: Any) -> Callable[[Row], Any]:
    """A property, which an expression may tell of each row."""
    given = mark.get(key, default)
    if isinstance(given, Mapping):
        check_keys(given, ("expr",), key)
        return compile_expression(given["expr"])
    return lambda _: given


def _draw_texts(mark: Placed) -> DrawnMark:
    config = mark.config.get("text", {})
    (colour,) = set(mark.colours(mark.rows)) or {""}
    style = Style(
        colour=colour,
        px=mark.mark.get("fontSize", config.get("fontSize", defaults.TEXT_PX)),
        weight=mark.mark.get("fontWeight", "normal"),
        limit=mark.mark.get("limit", 0),
    )
    align, dx = _told(mark.mark, "align", "center"), _told(mark.mark, "dx", 0)
    texts = [
        Text(
            x=x, y=y, lines=[_words(mark, row)], style=style, align=align(row), dx=dx(row),
            baseline=mark.mark.get("baseline", "middle"), dy=mark.mark.get("dy", 0), angle=mark.mark.get("angle", 0),
        )
        for x, y, row in zip(mark.places("x", mark.rows), mark.places("y", mark.rows), mark.rows, strict=True)
    ]  # fmt: skip
    if not texts:
        return mark.drawn("", Box())
    svg = write_texts(texts)
    if mark.opacity() != 1:
        raise NotDrawnError("faint texts")
    return mark.drawn(svg, Box.around(text.box() for text in texts))


def _words(mark: Placed, row: Row) -> str:
    if "text" not in mark.encoding:
        raise NotDrawnError("text without a channel")
    channel = mark.encoding["text"]
    value = row.get(channel["field"])
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotDrawnError(f"the text {value!r:.60}")
    return str(value)


_DRAWN: dict[str, Callable[[Placed], DrawnMark]] = {
    "line": _draw_line,
    "area": _draw_area,
    "point": _draw_points,
    "rule": _draw_rules,
    "rect": _draw_rectangles,
    "bar": _draw_bars,
    "box": _draw_boxes,
    "tick": _draw_medians,
    "text": _draw_texts,
}
