"""Two drawings compared: what is seen in each, where it is, and how it looks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET  # what is parsed was drawn here

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
COMMAND = re.compile(r"([MLHVAZmlhvaz])([^MLHVAZmlhvaz]*)")
# How far a place may be off, in pixels; of the same font, by the same rules, nothing is.
NEAR_PX = 0.02
Point = tuple[float, float]
Matrix = tuple[float, float, float, float, float, float]
IDENTITY: Matrix = (1, 0, 0, 1, 0, 0)
INHERITED = (
    "fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor",
    "stroke-miterlimit", "fill-opacity", "stroke-opacity",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """One stroke of the pen."""

    points: tuple[Point, ...]
    look: Mapping[str, object]


@dataclass(frozen=True)
class Words:
    """One line of text."""

    text: str
    at: Point
    direction: Point
    look: Mapping[str, object]


@dataclass
class Seen:
    """All that is seen, in the order in which it is drawn."""

    size: Point
    shapes: list[Shape] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)


def see(svg: str) -> Seen:
    root = ET.fromstring(svg)
    seen = Seen(size=(float(root.get("width", 0)), float(root.get("height", 0))))
    _walk(root, IDENTITY, {"fill": "black", "text-anchor": "start"}, 1.0, False, seen)
    return seen


def _walk(
    node: ET.Element, outer: Matrix, inherited: dict[str, str], opacity: float, clipped: bool, seen: Seen
) -> None:  # fmt: skip
    tag = node.tag.rpartition("}")[2]
    if tag in ("clipPath", "defs") or node.get("display") == "none":
        return
    matrix = _times(outer, _matrix(node.get("transform", "")))
    style = inherited | {key: value for key in INHERITED if (value := node.get(key)) is not None}
    opacity *= float(node.get("opacity", 1))
    clipped = clipped or node.get("clip-path") is not None
    if opacity == 0:
        return
    if tag == "text":
        seen.words += _words(node, matrix, style, opacity, clipped)
        return
    for points in _outlines(tag, node):
        look = _look(style, opacity, clipped, _has_area(points))
        if look["fill"] or look["stroke"]:
            moved = tuple(_apply(matrix, point) for point in points)
            seen.shapes.append(Shape(_normal(moved), look))
    for child in node:
        _walk(child, matrix, style, opacity, clipped, seen)


def _has_area(points: tuple[Point, ...]) -> bool:
    """Whether there is anything to fill: to a thousandth of a pixel."""
    return len({(round(x, 3), round(y, 3)) for x, y in points}) > 2


def _look(
    style: Mapping[str, str], opacity: float, clipped: bool, filled: bool
) -> dict[str, object]:
    fill = style["fill"] if filled else "none"
    stroke = style.get("stroke", "none")
    hidden = ("none", "transparent")
    drawn = stroke not in hidden
    return {
        "fill": None if fill in hidden else fill.lower(),
        "stroke": stroke.lower() if drawn else None,
        "width": float(style.get("stroke-width", 1)) if drawn else None,
        "dashes": _dashes(style.get("stroke-dasharray", "none")) if drawn else None,
        "opacity": round(opacity * _own_opacity(style, fill, stroke), 6),
        "clipped": clipped,
    }


def _own_opacity(style: Mapping[str, str], fill: str, stroke: str) -> float:
    """That of the filling or of the stroke, whichever there is, counts like that of all."""
    seen = [key for key, value in (("fill", fill), ("stroke", stroke)) if value != "none"]
    told = {float(style.get(f"{key}-opacity", 1)) for key in seen}
    assert len(told) < 2, style
    return told.pop() if told else 1.0


def _dashes(text: str) -> tuple[float, ...]:
    return tuple(map(float, NUMBER.findall(text)))


def _normal(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """A straight line is the same from both ends, a circle wherever it begins."""
    return tuple(sorted(points)) if len(points) == 2 else points


def _outlines(tag: str, node: ET.Element) -> Iterator[tuple[Point, ...]]:
    def number(key: str) -> float:
        return float(node.get(key, 0))

    if tag == "line":
        yield (number("x1"), number("y1")), (number("x2"), number("y2"))
    elif tag == "rect":
        x, y, width, height = map(number, ("x", "y", "width", "height"))
        yield (x, y), (x + width, y), (x + width, y + height), (x, y + height)
    elif tag == "circle":
        x, y, radius = map(number, ("cx", "cy", "r"))
        yield (x + radius, y), (x, y + radius), (x - radius, y), (x, y - radius)
    elif tag == "path":
        yield from _strokes(node.get("d", ""))


def _strokes(path: str) -> Iterator[tuple[Point, ...]]:
    points: list[Point] = []
    x = y = 0.0
    for command, rest in COMMAND.findall(path):
        numbers = list(map(float, NUMBER.findall(rest)))
        kind, relative = command.upper(), command.islower()
        if kind == "M" and points:
            yield _closed(points)
            points = []
        if kind == "Z":
            continue
        step = {"H": 1, "V": 1, "A": 7}.get(kind, 2)
        assert numbers, path[:80]
        for at in range(0, len(numbers), step):
            end = numbers[at : at + step][-2:]
            before = x, y
            if kind == "H":
                x = end[0] + x * relative
            elif kind == "V":
                y = end[0] + y * relative
            else:
                x, y = end[0] + x * relative, end[1] + y * relative
            if kind == "A":  # half a circle: the place in its middle
                half = (x - before[0]) / 2, (y - before[1]) / 2
                points.append((before[0] + half[0] + half[1], before[1] + half[1] - half[0]))
            points.append((x, y))
    if points:
        yield _closed(points)


def _closed(points: list[Point]) -> tuple[Point, ...]:
    """Without a last point that only closes it."""
    if len(points) > 3 and points[0] == points[-1]:
        points = points[:-1]
    return tuple(points)


def _words(
    node: ET.Element, matrix: Matrix, style: Mapping[str, str], opacity: float, clipped: bool
) -> Iterator[Words]:
    look = {
        "family": style.get("font-family"), "size": float(style["font-size"].removesuffix("px")),
        "bold": style.get("font-weight", "normal") == "bold", "fill": style["fill"].lower(),
        "anchor": style["text-anchor"], "opacity": round(opacity, 6), "clipped": clipped,
    }  # fmt: skip
    x, y = float(node.get("x", 0)), float(node.get("y", 0))
    direction = matrix[0], matrix[1]
    lines = [node.text or ""]
    places = [(x, y)]
    for span in node:
        y += float(span.get("dy", 0))
        lines.append(span.text or "")
        places.append((x, y))
    for text, place in zip(lines, places, strict=True):
        if text.strip():
            yield Words(" ".join(text.split()), _apply(matrix, place), direction, look)


def _matrix(text: str) -> Matrix:
    from math import cos, radians, sin

    matrix = IDENTITY
    for name, inside in re.findall(r"(\w+)\(([^)]*)\)", text):
        numbers = list(map(float, NUMBER.findall(inside)))
        if name == "translate":
            part: Matrix = (1, 0, 0, 1, numbers[0], numbers[1])
        else:
            assert name == "rotate", name
            turn = radians(numbers[0])
            part = (cos(turn), sin(turn), -sin(turn), cos(turn), 0, 0)
        matrix = _times(matrix, part)
    return matrix


def _times(one: Matrix, other: Matrix) -> Matrix:
    a, b, c, d, e, f = one
    g, h, i, j, k, m = other
    return (
        a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * m + e, b * k + d * m + f,
    )  # fmt: skip


def _apply(matrix: Matrix, point: Point) -> Point:
    a, b, c, d, e, f = matrix
    x, y = point
    return a * x + c * y + e, b * x + d * y + f


def differences(own: str, vega: str, near_px: float = NEAR_PX) -> list[str]:
    """What differs, in words; nothing if both show the same."""
    ours, theirs = see(own), see(vega)
    found = []
    if _apart(ours.size, theirs.size) > near_px:
        found.append(f"size {ours.size}, not {theirs.size}")
    told = [[words.text for words in each.words] for each in (ours, theirs)]
    if told[0] != told[1]:
        found.append(f"texts {told[0]}, not {told[1]}")
    else:
        found += _of_words(ours, theirs, near_px)
    if len(ours.shapes) != len(theirs.shapes):
        found.append(
            f"{len(ours.shapes)} shapes, not {len(theirs.shapes)}: {_counts(ours)}, not {_counts(theirs)}"
        )
    else:
        found += _of_shapes(ours, theirs, near_px)
    return found


def _counts(seen: Seen) -> dict[str, int]:
    counts: dict[str, int] = {}
    for shape in seen.shapes:
        key = " ".join(f"{name}={value}" for name, value in shape.look.items() if value)
        counts[key] = counts.get(key, 0) + 1
    return counts


def _of_words(ours: Seen, theirs: Seen, near_px: float) -> Iterator[str]:
    for own, other in zip(ours.words, theirs.words, strict=True):
        if own.look != other.look:
            yield f"{own.text!r} looks {own.look}, not {other.look}"
        if max(_apart(own.at, other.at), _apart(own.direction, other.direction)) > near_px:
            yield f"{own.text!r} at {own.at}, not {other.at}"


def _of_shapes(ours: Seen, theirs: Seen, near_px: float) -> Iterator[str]:
    for number, (own, other) in enumerate(zip(ours.shapes, theirs.shapes, strict=True)):
        if own.look != other.look:
            yield f"shape {number} looks {own.look}, not {other.look}"
        elif len(own.points) != len(other.points):
            yield f"shape {number} has {len(own.points)} points, not {len(other.points)}"
        else:
            pairs = zip(own.points, other.points, strict=True)
            far = max(_apart(one, two) for one, two in pairs)
            if far > near_px:
                yield f"shape {number} is {far:.2f} px off: {own.points[:3]}, not {other.points[:3]}"


def _apart(one: Point, other: Point) -> float:
    return max(abs(one[0] - other[0]), abs(one[1] - other[1]))
