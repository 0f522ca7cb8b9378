"""Charts of hard disks: a quantity over the areas of the disk, and its spread."""

from __future__ import annotations

from tkperf.analysis.axes import place_of
from tkperf.analysis.results import SectionResult
from tkperf.model.quantity import Quantity
from tkperf.page.naming import Naming, find_naming
from tkperf.render.charts.curves import name_ends, style_curves
from tkperf.render.charts.flagged import flag
from tkperf.render.charts.vega import (
    PALETTE,
    Row,
    Spec,
    build_chart,
    quantity_axis,
    tooltip,
)


def draw_over_areas(section: SectionResult, quantity: Quantity, title: str) -> Spec:
    """Draw a quantity over the areas of a hard disk, a curve for each workload."""
    naming = _naming(section)
    rows = _area_rows(section, quantity, naming)
    workloads = [cell.workload for area in section.rounds for cell in area.cells]
    return build_chart(
        title,
        rows,
        {
            "x": {
                "field": "area",
                "type": "quantitative",
                "title": "Area of the device (1 is its start)",
                "scale": {"domain": [0.5, (section.areas or 0) + 0.5], "nice": False},
                "axis": {"format": "d", "tickMinStep": 1},
            },
            "y": quantity_axis(rows, quantity.title, log=False),
            **style_curves(naming, workloads),
            "tooltip": tooltip(("series", "Series"), ("area", "Area"), ("value", quantity.title)),
        },
        mark={"type": "line", "point": {"size": 12}},
        words=name_ends(naming, workloads),
    )


def box_plot(section: SectionResult, quantity: Quantity, title: str) -> Spec:
    """Draw the spread of a quantity over the areas of a hard disk, a box for each workload."""
    naming = _naming(section)
    rows = _area_rows(section, quantity, naming)
    workloads = {cell.workload for area in section.rounds for cell in area.cells}
    ordered = sorted(workloads, key=lambda work: place_of(work, naming.axes[::-1]))
    return build_chart(
        title,
        rows,
        {
            "x": {
                "field": "series",
                "type": "nominal",
                "title": naming.title,
                "sort": [naming.of(work) for work in ordered],
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
