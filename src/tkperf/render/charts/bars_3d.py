"""3-D bars of the specifications: a quantity over block size and read/write mix, or any two axes.

Vega-Lite has no third dimension, so this module projects the bars' faces and draws them as polygons. Far
faces come first, so that near ones cover them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from tkperf.analysis.axes import BLOCKS, MIX, Axis, Order
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.model.quantity import Quantity
from tkperf.model.workload import Workload
from tkperf.page.layout import Layout, arrange
from tkperf.page.words.flags import mark
from tkperf.render.charts.colours import colour_values
from tkperf.render.charts.flagged import flag
from tkperf.render.charts.vega import (
    NEUTRAL,
    PALETTE,
    SURE,
    Row,
    Spec,
    build_frame,
    linear_axis,
    sure,
    tooltip,
)

ScreenPoint = tuple[float, float]

# Screen units of one step to the right (mix), to the back (block size), and of the highest bar.
_RIGHT: ScreenPoint = (1.0, 0.26)
_BACK: ScreenPoint = (-0.82, 0.40)
_HIGHEST = 5.0
# A table of few cells keeps narrow bars instead of bars as wide as the page.
_LEAST_WIDTH = 10.0
_HALF_WIDTH = 0.36
# Light falls from above. Brightness of each face; the part beyond 1 is its share of white.
_FACES = {"left": 1.0, "right": 0.8, "top": 1.25}


def bars_3d(section: SectionResult, quantity: Quantity, title: str) -> Spec | None:
    """Draw means over the window as bars: columns of the table to the right, rows to the back in their own order.

    The end with the lower bars is in front, so that high bars are behind. Return None unless the workloads
    differ in exactly two fields and at least one cell has a value.
    """
    layout = arrange(cell.workload for cell in section.cells)
    if min(len(layout.rows), len(layout.columns)) < 2 or len(layout.row_axes) > 1:
        return None
    plot = _Plot.of(section, quantity, layout)
    if not plot.values:
        return None
    depth, width = len(layout.rows), len(layout.columns)
    columns = [_label(layout.column_axis, work) for work in layout.columns]
    rows = [_label(layout.row_axes[0], work) for work in plot.rows]
    ends = _project(width + 0.8, -0.5, 0)[0], _project(-1.2, depth - 0.5, 0)[0]
    missing = max(0.0, _LEAST_WIDTH - ends[0] + ends[1]) / 2
    tip = tooltip(
        ("column", layout.column_axis.title),
        ("row", layout.row_axes[0].title),
        ("value", quantity.title),
        SURE,
    )
    return {
        **build_frame(title),
        "height": 400,
        "datasets": {
            "faces": list(_faces(plot)),
            "floor": list(_floor(width, depth, plot.ticks)),
            "labels": list(_labels(columns, rows, plot.ticks)),
            "titles": list(_titles(layout, quantity)),
        },
        "layer": [
            *_layers([ends[1] - missing, ends[0] + missing], tip),
            *_marks_layer(list(_marks(plot)), tip),
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plot:
    """Data of the plot: ``rows`` from the front to the back, each with its colour; ``values`` of the measured cells."""

    layout: Layout
    rows: tuple[Workload, ...]
    colours: dict[Order, str]
    cells: dict[tuple[int, int], CellResult]
    values: dict[tuple[int, int], float]
    quantity: Quantity
    ticks: list[float]

    @classmethod
    def of(cls, section: SectionResult, quantity: Quantity, layout: Layout) -> Self:
        cell_of = {cell.workload: cell for cell in section.cells}
        highest = [
            max((cell_of[work].value(quantity) or 0.0 for work in row if work), default=0.0)
            for row in layout.at
        ]
        step = 1 if highest[0] <= highest[-1] else -1
        cells = {
            (back, right): cell_of[work]
            for back, row in enumerate(layout.at[::step])
            for right, work in enumerate(row)
            if work is not None
        }
        values = {
            place: value
            for place, cell in cells.items()
            if (value := cell.value(quantity)) is not None
        }
        axis: Any = linear_axis(values.values()).get("axis", {})
        return cls(
            layout=layout,
            rows=layout.rows[::step],
            colours=colour_values(layout.row_axes[0], layout.rows),
            cells=cells,
            values=values,
            quantity=quantity,
            ticks=axis.get("values", [0.0, 1.0]),
        )

    def height(self, value: float) -> float:
        return _HIGHEST * value / self.ticks[-1]

    def datum(self, back: int, right: int) -> Row:
        """Return the facts that a bar's tooltip shows."""
        column, row = self.layout.columns[right], self.rows[back]
        return {
            "column": self.layout.column_axis.text(column),
            "row": self.layout.row_axes[0].text(row),
            "value": self.values[back, right],
            "sure": sure(self.cells[back, right], self.quantity),
        }


def _faces(plot: _Plot) -> Iterator[Row]:
    """Yield the faces in the painter's order: from the far corner to the near one."""
    axis = plot.layout.row_axes[0]
    for back, right in sorted(plot.values, reverse=True):
        colour = plot.colours.get(axis.order(plot.rows[back]), PALETTE[back % len(PALETTE)])
        height = plot.height(plot.values[back, right])
        yield from _bar(right, back, height, colour, plot.datum(back, right))


def _layers(domain: list[float], tip: list[dict[str, object]]) -> list[Spec]:
    plane = {"type": "quantitative", "axis": None, "scale": {"zero": False, "nice": False}}
    across = {"zero": False, "nice": False, "domain": domain}
    x, y = {**plane, "field": "x", "scale": across}, {**plane, "field": "y"}
    layers: list[Spec] = [
        {
            "data": {"name": "floor"},
            "mark": {"type": "rule", "color": NEUTRAL, "opacity": 0.6},
            "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
        },
        {
            "data": {"name": "faces"},
            "mark": {"type": "line", "filled": True, "stroke": NEUTRAL, "strokeWidth": 0.6},
            "encoding": {
                "x": x,
                "y": y,
                "fill": {"field": "colour", "type": "nominal", "scale": None},
                "detail": {"field": "face", "type": "nominal"},
                "order": {"field": "corner", "type": "quantitative"},
                "tooltip": tip,
            },
        },
    ]
    for align in ("left", "right"):
        layers.append(
            {
                "data": {"name": "labels"},
                "transform": [{"filter": f"datum.align === '{align}'"}],
                "mark": {"type": "text", "align": align},
                "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
            }
        )
    layers.append(
        {
            "data": {"name": "titles"},
            "mark": {"type": "text", "fontWeight": "bold"},
            "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
        }
    )
    return layers


def _marks(plot: _Plot) -> Iterator[Row]:
    """Yield the mark of each flagged bar, above it."""
    for (back, right), value in plot.values.items():
        cell = plot.cells[back, right]
        if found := flag(cell):
            x, y = _project(right, back, plot.height(value))
            at = {"x": round(x, 3), "y": round(y + 0.12, 3)}
            yield {**plot.datum(back, right), **at, "text": mark(cell), **found}


def _marks_layer(rows: list[Row], tip: list[dict[str, object]]) -> list[Spec]:
    if not rows:
        return []
    plane = {"type": "quantitative", "axis": None}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "text", "fontSize": 14, "fontWeight": "bold"},
            "encoding": {
                "x": {**plane, "field": "x"},
                "y": {**plane, "field": "y"},
                "text": {"field": "text", "type": "nominal"},
                "tooltip": tip,
            },
        }
    ]


def _project(right: float, back: float, height: float) -> ScreenPoint:
    return (
        right * _RIGHT[0] + back * _BACK[0],
        right * _RIGHT[1] + back * _BACK[1] + height,
    )


def _bar(right: int, back: int, height: float, colour: str, datum: Row) -> list[Row]:
    """Return the three visible faces, as corners of polygons."""
    near, far = -_HALF_WIDTH, _HALF_WIDTH
    corners = {
        "left": ((near, near, 0), (near, far, 0), (near, far, height), (near, near, height)),
        "right": ((near, near, 0), (far, near, 0), (far, near, height), (near, near, height)),
        "top": (
            (near, near, height),
            (far, near, height),
            (far, far, height),
            (near, far, height),
        ),
    }
    rows: list[Row] = []
    for face, around in corners.items():
        for number, (dx, dy, z) in enumerate((*around, around[0])):
            x, y = _project(right + dx, back + dy, z)
            rows.append(
                {
                    **datum,
                    "x": round(x, 3),
                    "y": round(y, 3),
                    "face": f"{right}/{back}/{face}",
                    "corner": number,
                    "colour": _shade(colour, _FACES[face]),
                }
            )
    return rows


def _floor(width: int, depth: int, ticks: list[float]) -> Iterator[Row]:
    """Yield the edges of the floor, and a line along both walls behind it at each tick."""
    left, right, front, back = -0.5, width - 0.5, -0.5, depth - 0.5

    def line(a: ScreenPoint, b: ScreenPoint) -> Row:
        return {"x": a[0], "y": a[1], "x2": b[0], "y2": b[1]}

    yield line(_project(left, front, 0), _project(right, front, 0))
    yield line(_project(left, front, 0), _project(left, back, 0))
    for tick in ticks:
        z = _HIGHEST * tick / ticks[-1]
        yield line(_project(left, back, z), _project(right, back, z))
        yield line(_project(right, back, z), _project(right, front, z))
    for corner in ((left, back), (right, back), (right, front)):
        yield line(_project(*corner, 0), _project(*corner, _HIGHEST))


def _label(axis: Axis, workload: Workload) -> str:
    """Return the label of a place along an edge; a mix is clear by its stroke, a block size by the edge's title."""
    return axis.text(workload) if axis in (MIX, BLOCKS) else axis.words(workload)


def _labels(columns: list[str], rows: list[str], ticks: list[float]) -> Iterator[Row]:
    def label(at: ScreenPoint, text: str, align: str) -> Row:
        return {"x": at[0], "y": at[1], "text": text, "align": align}

    for right, text in enumerate(columns):
        yield label(_project(right, -1.0, 0), text, "left")
    for back, text in enumerate(rows):
        yield label(_project(-0.75, back, 0), text, "right")
    for tick in ticks:
        at = _project(len(columns) - 0.5, -0.5, _HIGHEST * tick / ticks[-1])
        yield label((at[0] + 0.25, at[1] + 0.1), f"{tick:,.10g}", "left")


def _titles(layout: Layout, quantity: Quantity) -> Iterator[Row]:
    """Yield the titles of the three axes: next to the middle of each edge of the floor, and above the upright scale."""
    width, depth = len(layout.columns), len(layout.rows)
    for edge, away, text in (
        (_project((width - 1) / 2, -1.0, 0), (1.5, -0.9), layout.column_axis.title),
        (_project(-0.75, (depth - 1) / 2, 0), (-1.5, -1.1), layout.row_axes[0].title),
        (_project(width - 0.5, -0.5, _HIGHEST), (0.0, 0.6), quantity.title),
    ):
        yield {"x": edge[0] + away[0], "y": edge[1] + away[1], "text": text}


def _shade(colour: str, brightness: float) -> str:
    white = max(0.0, brightness - 1)
    channels = (int(colour[at : at + 2], 16) * min(1.0, brightness) for at in (1, 3, 5))
    return "#" + "".join(f"{round(each + white * (255 - each)):02X}" for each in channels)
