"""The specifications' 3-D bars: a value over block size and read/write mix.

Vega-Lite has no third dimension, so the bars' faces are projected here and drawn as polygons, those
behind before those in front: what stands in front really covers what stands behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tkperf.analysis.results import CellResult, SectionResult
from tkperf.report.charts.parts import PALETTE, Row, Spec, build_frame, tooltip
from tkperf.units import format_block_size_kib, format_mix
from tkperf.workload import Cell

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


def bars_3d(
    section: SectionResult,
    *,
    title: str,
    value: Callable[[CellResult], float | None],
    quantity: str,
) -> Spec:
    """Means over the window as bars: mix to the right, block size to the back, high ones behind."""
    mixes = list(dict.fromkeys(cell.read_percent for cell in section.cells))
    known = {cell.cell: value(cell) for cell in section.cells}
    sizes = sorted(
        {cell.block_size_bytes for cell in section.cells},
        key=lambda size: max((known[each] or 0) for each in known if each.block_size_bytes == size),
    )
    colours = dict(zip(sorted(sizes), PALETTE, strict=False))
    highest = max((each for each in known.values() if each is not None), default=0.0)
    top = _round_up(highest)
    depth, width = len(sizes), len(mixes)
    faces: list[Row] = []
    # The painter's order: from the far corner to the near one.
    for back in reversed(range(depth)):
        for right in reversed(range(width)):
            cell = Cell(mixes[right], sizes[back])
            seen = known.get(cell)
            if seen is not None:
                told = {
                    "mix": format_mix(cell.read_percent),
                    "size": format_block_size_kib(cell.block_size_bytes),
                    "value": seen,
                }
                height = _HIGHEST * seen / top
                faces += _bar(right, back, height, colours.get(sizes[back], PALETTE[7]), told)
    plane = {"type": "quantitative", "axis": None, "scale": {"zero": False, "nice": False}}
    ends = [_project(width + 0.8, -0.5, 0)[0], _project(-1.2, depth - 0.5, 0)[0]]
    missing = max(0.0, _LEAST_WIDTH - ends[0] + ends[1]) / 2
    across = {"zero": False, "nice": False, "domain": [ends[1] - missing, ends[0] + missing]}
    x, y = {**plane, "field": "x", "scale": across}, {**plane, "field": "y"}
    return {
        **build_frame(title),
        "height": 400,
        "datasets": {
            "faces": faces,
            "floor": list(_floor(width, depth, top)),
            "labels": list(_labels(mixes, sizes, top)),
        },
        "layer": [
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
                    "tooltip": tooltip(("mix", "R/W %"), ("size", "KiB"), ("value", quantity)),
                },
            },
            *(
                {
                    "data": {"name": "labels"},
                    "transform": [{"filter": f"datum.align == '{align}'"}],
                    "mark": {"type": "text", "align": align, "fontSize": 10, "color": PALETTE[7]},
                    "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
                }
                for align in ("left", "right")
            ),
        ],
    }


def _project(right: float, back: float, height: float) -> Point:
    return (
        right * _RIGHT[0] + back * _BACK[0],
        right * _RIGHT[1] + back * _BACK[1] + height,
    )


def _bar(right: int, back: int, height: float, colour: str, told: Row) -> list[Row]:
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
                    **told,
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


def _labels(mixes: list[int], sizes: list[int], top: float) -> Iterator[Row]:
    def label(at: Point, text: str, align: str) -> Row:
        return {"x": at[0], "y": at[1], "text": text, "align": align}

    for right, mix in enumerate(mixes):
        yield label(_project(right, -1.0, 0), format_mix(mix), "left")
    for back, size in enumerate(sizes):
        text = f"{format_block_size_kib(size)} KiB"
        yield label(_project(-0.75, back, 0), text, "right")
    for tick in _ticks(top):
        at = _project(len(mixes) - 0.5, -0.5, _HIGHEST * tick / top)
        yield label((at[0] + 0.25, at[1] + 0.1), f"{tick:,.10g}", "left")


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9))


def _ticks(top: float) -> list[float]:
    return [top * part / 5 for part in range(6)]


def _shade(colour: str, brightness: float) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part * brightness):02X}" for part in (red, green, blue))
