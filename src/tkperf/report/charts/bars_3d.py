"""The specifications' 3-D bars: a quantity over block size and read/write mix, or any two axes.

Vega-Lite has no third dimension, so the bars' faces are projected here and drawn as polygons, those
behind before those in front: what stands in front really covers what stands behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tkperf.analysis.flags import mark
from tkperf.analysis.layout import MIX, Axis, Layout, arrange
from tkperf.analysis.results import SectionResult
from tkperf.quantity import Quantity
from tkperf.report.charts.flagged import FLAGGED, flag
from tkperf.report.charts.vega import PALETTE, Row, Spec, build_frame, tooltip
from tkperf.workload import Workload

Point = tuple[float, float]

# Screen units of one step to the right (mix), to the back (block size), and of the highest bar.
_RIGHT: Point = (1.0, 0.26)
_BACK: Point = (-0.82, 0.40)
_HIGHEST = 5.0
# A table of few cells is not stretched to bars as wide as the page.
_LEAST_WIDTH = 10.0
_HALF_WIDTH = 0.36
# Light falls from the left: how bright each face is.
_FACES = {"left": 0.82, "right": 0.62, "top": 1.0}


def bars_3d(section: SectionResult, quantity: Quantity, title: str) -> Spec | None:
    """Means over the window as bars: columns of the table to the right, rows to the back, high ones behind.

    None unless the workloads differ in exactly two fields and something was measured.
    """
    layout = arrange(cell.workload for cell in section.cells)
    if min(len(layout.rows), len(layout.columns)) < 2 or len(layout.row_axes) > 1:
        return None
    value_of = {cell.workload: cell.value(quantity) for cell in section.cells}
    if all(value is None for value in value_of.values()):
        return None
    grid = [[None if work is None else value_of[work] for work in row] for row in layout.at]
    # Low rows in front.
    order = sorted(range(len(grid)), key=lambda row: max(value or 0 for value in grid[row]))
    top = _round_up(max((value for row in grid for value in row if value is not None), default=0.0))
    depth, width = len(layout.rows), len(layout.columns)
    columns = [_label(layout.column_axis, work) for work in layout.columns]
    rows = [_label(layout.row_axes[0], layout.rows[number]) for number in order]
    ends = _project(width + 0.8, -0.5, 0)[0], _project(-1.2, depth - 0.5, 0)[0]
    missing = max(0.0, _LEAST_WIDTH - ends[0] + ends[1]) / 2
    tip = tooltip(
        ("column", layout.column_axis.title),
        ("row", layout.row_axes[0].title),
        ("value", quantity.title),
    )
    return {
        **build_frame(title),
        "height": 400,
        "datasets": {
            "faces": list(_faces(layout, grid, order, top)),
            "floor": list(_floor(width, depth, top)),
            "labels": list(_labels(columns, rows, top)),
            "titles": list(_titles(layout, quantity)),
        },
        "layer": [
            *_layers([ends[1] - missing, ends[0] + missing], tip),
            *_marks_layer(list(_marks(section, layout, grid, order, top)), tip),
        ],
    }


def _faces(
    layout: Layout, grid: list[list[float | None]], order: list[int], top: float
) -> Iterator[Row]:
    """The painter's order: from the far corner to the near one."""
    for back in reversed(range(len(order))):
        for right in reversed(range(len(layout.columns))):
            value = grid[order[back]][right]
            if value is not None:
                datum: Row = {
                    "column": layout.column_axis.text(layout.columns[right]),
                    "row": layout.row_axes[0].text(layout.rows[order[back]]),
                    "value": value,
                }
                colour = PALETTE[order[back] % len(PALETTE)]
                yield from _bar(right, back, _HIGHEST * value / top, colour, datum)


def _layers(domain: list[float], tip: list[dict[str, object]]) -> list[Spec]:
    plane = {"type": "quantitative", "axis": None, "scale": {"zero": False, "nice": False}}
    across = {"zero": False, "nice": False, "domain": domain}
    x, y = {**plane, "field": "x", "scale": across}, {**plane, "field": "y"}
    layers: list[Spec] = [
        {
            "data": {"name": "floor"},
            "mark": {"type": "rule", "color": PALETTE[7], "opacity": 0.5},
            "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
        },
        {
            "data": {"name": "faces"},
            "mark": {"type": "line", "filled": True, "stroke": "white", "strokeWidth": 0.4},
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
                "transform": [{"filter": f"datum.align == '{align}'"}],
                "mark": {"type": "text", "align": align, "fontSize": 10, "color": PALETTE[7]},
                "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
            }
        )
    layers.append(
        {
            "data": {"name": "titles"},
            "mark": {"type": "text", "fontSize": 10, "fontWeight": "bold"},
            "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
        }
    )
    return layers


def _marks(
    section: SectionResult,
    layout: Layout,
    grid: list[list[float | None]],
    order: list[int],
    top: float,
) -> Iterator[Row]:
    """The mark of each flagged bar, above it."""
    cell_of = {cell.workload: cell for cell in section.cells}
    for back, row in enumerate(order):
        for right, work in enumerate(layout.at[row]):
            value, cell = grid[row][right], None if work is None else cell_of[work]
            if value is not None and cell is not None and (found := flag(cell)):
                x, y = _project(right, back, _HIGHEST * value / top)
                yield {
                    "column": layout.column_axis.text(layout.columns[right]),
                    "row": layout.row_axes[0].text(layout.rows[row]),
                    "value": value, "x": round(x, 3), "y": round(y + 0.12, 3), "text": mark(cell),
                    **found,
                }  # fmt: skip


def _marks_layer(rows: list[Row], tip: list[dict[str, object]]) -> list[Spec]:
    if not rows:
        return []
    plane = {"type": "quantitative", "axis": None}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "text", "fontSize": 14, "fontWeight": "bold", "color": FLAGGED},
            "encoding": {
                "x": {**plane, "field": "x"},
                "y": {**plane, "field": "y"},
                "text": {"field": "text", "type": "nominal"},
                "tooltip": tip,
            },
        }
    ]


def _project(right: float, back: float, height: float) -> Point:
    return (
        right * _RIGHT[0] + back * _BACK[0],
        right * _RIGHT[1] + back * _BACK[1] + height,
    )


def _bar(right: int, back: int, height: float, colour: str, datum: Row) -> list[Row]:
    """The three faces that are seen, as corners of polygons."""
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


def _floor(width: int, depth: int, top: float) -> Iterator[Row]:
    """Edges of the floor, and a line along both walls behind it at each tick."""
    left, right, front, back = -0.5, width - 0.5, -0.5, depth - 0.5

    def line(a: Point, b: Point) -> Row:
        return {"x": a[0], "y": a[1], "x2": b[0], "y2": b[1]}

    yield line(_project(left, front, 0), _project(right, front, 0))
    yield line(_project(left, front, 0), _project(left, back, 0))
    for tick in _ticks(top):
        z = _HIGHEST * tick / top
        yield line(_project(left, back, z), _project(right, back, z))
        yield line(_project(right, back, z), _project(right, front, z))
    for corner in ((left, back), (right, back), (right, front)):
        yield line(_project(*corner, 0), _project(*corner, _HIGHEST))


def _label(axis: Axis, workload: Workload) -> str:
    """Its place along an edge; a mix is known by its stroke."""
    return axis.text(workload) if axis is MIX else axis.words(workload)


def _labels(columns: list[str], rows: list[str], top: float) -> Iterator[Row]:
    def label(at: Point, text: str, align: str) -> Row:
        return {"x": at[0], "y": at[1], "text": text, "align": align}

    for right, text in enumerate(columns):
        yield label(_project(right, -1.0, 0), text, "left")
    for back, text in enumerate(rows):
        yield label(_project(-0.75, back, 0), text, "right")
    for tick in _ticks(top):
        at = _project(len(columns) - 0.5, -0.5, _HIGHEST * tick / top)
        yield label((at[0] + 0.25, at[1] + 0.1), f"{tick:,.10g}", "left")


def _titles(layout: Layout, quantity: Quantity) -> Iterator[Row]:
    """Of the three axes: beside the middle of each edge of the floor, and above the upright scale."""
    width, depth = len(layout.columns), len(layout.rows)
    for edge, away, text in (
        (_project((width - 1) / 2, -1.0, 0), (1.5, -0.9), layout.column_axis.title),
        (_project(-0.75, (depth - 1) / 2, 0), (-1.5, -1.1), layout.row_axes[0].title),
        (_project(width - 0.5, -0.5, _HIGHEST), (0.0, 0.6), quantity.title),
    ):
        yield {"x": edge[0] + away[0], "y": edge[1] + away[1], "text": text}


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9))


def _ticks(top: float) -> list[float]:
    return [top * tick / 5 for tick in range(6)]


def _shade(colour: str, brightness: float) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(channel * brightness):02X}" for channel in (red, green, blue))
