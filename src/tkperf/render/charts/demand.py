"""Charts of demand: latency against IOPS, and values over the total of outstanding I/Os."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tkperf.analysis.axes import DEPTH, JOBS, OFFERED, Axis, find_axes
from tkperf.analysis.results import CellResult
from tkperf.model.quantity import Quantity
from tkperf.model.workload import Workload
from tkperf.page.naming import Naming
from tkperf.render.charts.curves import build_curves
from tkperf.render.charts.flagged import flag
from tkperf.render.charts.vega import (
    SURE,
    Row,
    Spec,
    length_axis,
    quantity_axis,
    sure,
)

OUTSTANDING = "Outstanding I/Os in total (TC x QD)"


def against(
    cells: Sequence[CellResult], upright: Quantity, across: Quantity, title: str, *, log: bool
) -> Spec:
    """Draw one quantity over another: a point for each cell, a curve along the demand."""
    along, others = split_demand(cell.workload for cell in cells)
    naming = Naming(axes=others)
    ordered = sorted(cells, key=lambda cell: along.order(cell.workload))
    rows: list[Row] = [
        {
            "x": x,
            "value": value,
            "at": along.text(cell.workload),
            "place": place,
            "sure": sure(cell, upright),
            "series": naming.of(cell.workload),
            **flag(cell),
        }
        for place, cell in enumerate(ordered)
        if (x := cell.value(across)) is not None and (value := cell.value(upright)) is not None
    ]
    encoding: dict[str, object] = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "title": across.title,
            **length_axis(row["x"] for row in rows),
        },
        "y": quantity_axis(rows, upright.title, log=log),
        "order": {"field": "place", "type": "quantitative"},
    }
    fields = [("at", along.title), ("x", across.title), ("value", upright.title), SURE]
    workloads = [cell.workload for cell in cells]
    return build_curves(title, rows, encoding, fields, naming, workloads)


def over_demand(cells: Sequence[CellResult], quantity: Quantity, title: str, *, log: bool) -> Spec:
    """Draw a quantity over threads x queue depth; cells of an equal product are above each other."""
    _, others = split_demand(cell.workload for cell in cells)
    naming = Naming(axes=others)
    rows: list[Row] = [
        {
            "at": cell.workload.total_outstanding_ios,
            "demand": f"TC{cell.workload.jobs} QD{cell.workload.io_depth}",
            "value": cell.value(quantity),
            "sure": sure(cell, quantity),
            "series": naming.of(cell.workload),
            **flag(cell),
        }
        for cell in sorted(cells, key=lambda cell: cell.workload.total_outstanding_ios)
    ]
    encoding: dict[str, object] = {
        "x": {
            "field": "at",
            "type": "ordinal",
            "title": OUTSTANDING,
            "axis": {"labelAngle": 0},
        },
        "y": quantity_axis(rows, quantity.title, log=log),
    }
    fields = [("demand", "Demand"), ("at", OUTSTANDING), ("value", quantity.title), SURE]
    workloads = [cell.workload for cell in cells]
    return build_curves(title, rows, encoding, fields, naming, workloads)


def split_demand(workloads: Iterable[Workload]) -> tuple[Axis, tuple[Axis, ...]]:
    """Return the axis along which demand grows within a curve, and the axes that tell the curves apart."""
    axes = find_axes(workloads)
    along = next((axis for axis in (DEPTH, JOBS, OFFERED) if axis in axes), DEPTH)
    return along, tuple(axis for axis in axes if axis is not along)
