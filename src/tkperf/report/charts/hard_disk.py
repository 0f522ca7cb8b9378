"""Charts of hard disks: a value over the areas of the disk, and its spread."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.analysis.results import CellResult, SectionResult
from tkperf.report.charts.parts import (
    PALETTE,
    Row,
    Spec,
    build_chart,
    colour,
    quantity_axis,
    series_name,
    tooltip,
)


def over_areas(
    section: SectionResult,
    *,
    title: str,
    value: Callable[[CellResult], float | None],
    quantity: str,
) -> Spec:
    """A value over the areas of a hard disk, a curve for each cell."""
    rows = _area_rows(section, value)
    return build_chart(
        title,
        rows,
        {
            "x": {
                "field": "area",
                "type": "quantitative",
                "title": "Area of the device (1 is its start)",
                "scale": {"nice": False},
                "axis": {"format": "d", "tickMinStep": 1},
            },
            "y": quantity_axis(rows, quantity, log=False),
            "color": colour("R/W %, block size"),
            "tooltip": tooltip(("series", "Series"), ("area", "Area"), ("value", quantity)),
        },
        mark={"type": "line", "point": {"size": 12}},
    )


def box_plot(
    section: SectionResult,
    *,
    title: str,
    value: Callable[[CellResult], float | None],
    quantity: str,
) -> Spec:
    """The spread of a value over the areas of a hard disk, a box for each cell."""
    rows = _area_rows(section, value)
    return build_chart(
        title,
        rows,
        {
            "x": {
                "field": "series",
                "type": "nominal",
                "title": "R/W %, block size",
                "sort": None,
                "axis": {"labelAngle": -30},
            },
            "y": quantity_axis(rows, quantity, log=False),
        },
        mark={"type": "boxplot", "extent": "min-max", "color": PALETTE[0]},
    )


def _area_rows(section: SectionResult, value: Callable[[CellResult], float | None]) -> list[Row]:
    return [
        {
            "area": area.number,
            "value": value(cell),
            "series": series_name(cell, many_mixes=True),
        }
        for area in section.rounds
        for cell in area.cells
    ]
