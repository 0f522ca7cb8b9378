"""Charts of hard disks: a quantity over the areas of the disk, and its spread."""

from __future__ import annotations

from tkperf.analysis.results import SectionResult
from tkperf.quantity import Quantity
from tkperf.report.charts.curves import style_curves
from tkperf.report.charts.flagged import flag
from tkperf.report.charts.vega import (
    PALETTE,
    Row,
    Spec,
    build_chart,
    quantity_axis,
    tooltip,
)
from tkperf.report.naming import Naming, find_naming


def over_areas(section: SectionResult, quantity: Quantity, title: str) -> Spec:
    """A quantity over the areas of a hard disk, a curve for each workload."""
    naming = _naming(section)
    rows = _area_rows(section, quantity, naming)
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
            "y": quantity_axis(rows, quantity.title, log=False),
            **style_curves(naming, (cell.workload for cell in section.cells)),
            "tooltip": tooltip(("series", "Series"), ("area", "Area"), ("value", quantity.title)),
        },
        mark={"type": "line", "point": {"size": 12}},
    )


def box_plot(section: SectionResult, quantity: Quantity, title: str) -> Spec:
    """The spread of a quantity over the areas of a hard disk, a box for each workload."""
    naming = _naming(section)
    rows = _area_rows(section, quantity, naming)
    return build_chart(
        title,
        rows,
        {
            "x": {
                "field": "series",
                "type": "nominal",
                "title": naming.title,
                "sort": None,
                "axis": {"labelAngle": -30},
            },
            "y": quantity_axis(rows, quantity.title, log=False),
        },
        mark={"type": "boxplot", "extent": "min-max", "color": PALETTE[0]},
    )


def _naming(section: SectionResult) -> Naming:
    return find_naming(cell.workload for area in section.rounds for cell in area.cells)


def _area_rows(section: SectionResult, quantity: Quantity, naming: Naming) -> list[Row]:
    return [
        {
            "area": area.number,
            "value": cell.value(quantity),
            "series": naming.of(cell.workload),
            **flag(cell),
        }
        for area in section.rounds
        for cell in area.cells
    ]
