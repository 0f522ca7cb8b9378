"""Where things end, and how they are laid out in rows and columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Self

from msgspec import Struct


class Box(Struct, frozen=True):
    """A rectangle in pixels; what is empty reaches from infinity to minus infinity."""

    x1: float = math.inf
    y1: float = math.inf
    x2: float = -math.inf
    y2: float = -math.inf

    @classmethod
    def around(cls, boxes: Iterable[Box]) -> Self:
        """All of them."""
        listed = tuple(boxes)
        if not listed:
            return cls()
        return cls(
            min(box.x1 for box in listed),
            min(box.y1 for box in listed),
            max(box.x2 for box in listed),
            max(box.y2 for box in listed),
        )

    @property
    def width(self) -> float:
        return self.x2 - self.x1

    @property
    def height(self) -> float:
        return self.y2 - self.y1

    def union(self, other: Box) -> Box:
        return Box.around((self, other))

    def moved(self, dx: float, dy: float) -> Box:
        return Box(self.x1 + dx, self.y1 + dy, self.x2 + dx, self.y2 + dy)

    def grown(self, by: float) -> Box:
        return Box(self.x1 - by, self.y1 - by, self.x2 + by, self.y2 + by)

    def turned(self, degrees: float, x: float, y: float) -> Box:
        """What has room for all of it when it is turned around a point."""
        if not degrees:
            return self
        cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        corners = [
            (x + cos * (px - x) - sin * (py - y), y + sin * (px - x) + cos * (py - y))
            for px in (self.x1, self.x2)
            for py in (self.y1, self.y2)
        ]
        across, down = zip(*corners, strict=True)
        return Box(min(across), min(down), max(across), max(down))

    def clipped(self, width: float, height: float) -> Box:
        """What of it is within a plot."""
        return Box(max(self.x1, 0.0), max(self.y1, 0.0), min(self.x2, width), min(self.y2, height))


def round_half_up(value: float) -> int:
    """As JavaScript rounds."""
    return math.floor(value + 0.5)


def lay_out_grid(
    boxes: Sequence[Box], columns: int, between_columns: float, between_rows: float
) -> list[tuple[float, float]]:
    """Where each of the boxes begins: row by row, columns as wide as their widest.

    Boxes of the first row are in its middle, as Vega has it; in others each begins at the top.
    """
    rows = -(-len(boxes) // columns)
    widths, heights = [0.0] * columns, [0.0] * rows
    before_columns, before_rows = [0.0] * columns, [0.0] * rows
    for number, box in enumerate(boxes):
        row, column = divmod(number, columns)
        widths[column] = max(widths[column], math.ceil(box.x2))
        heights[row] = max(heights[row], math.ceil(box.y2))
        before_columns[column] = max(
            before_columns[column], between_columns + max(0, math.ceil(-box.x1))
        )
        before_rows[row] = max(before_rows[row], between_rows + max(0, math.ceil(-box.y1)))
    across = _starts(widths, before_columns)
    down = _starts(heights, before_rows)
    return [
        (
            across[number % columns],
            down[number // columns]
            + (max(0.0, heights[0] - box.y2) / 2 if number < columns > 1 else 0.0),
        )
        for number, box in enumerate(boxes)
    ]


def _starts(sizes: Sequence[float], before: Sequence[float]) -> list[float]:
    starts = [0.0]
    for size, gap in zip(sizes, before[1:], strict=False):
        starts.append(starts[-1] + size + gap)
    return starts
