"""Charts of demand: heat maps, latency against IOPS, and values over the total of outstanding I/Os."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tkperf.analysis.flags import mark
from tkperf.analysis.layout import DEPTH, JOBS, OFFERED, Axis, arrange, find_axes
from tkperf.analysis.results import CellResult
from tkperf.quantity import Quantity
from tkperf.report.charts.curves import build_curves
from tkperf.report.charts.flagged import flag
from tkperf.report.charts.vega import (
    SURE,
    Row,
    Spec,
    build_frame,
    quantity_axis,
    sure,
    tooltip,
)
from tkperf.report.naming import Naming
from tkperf.units import format_number
from tkperf.workload import Workload

OUTSTANDING = "Outstanding I/Os in total (TC x QD)"
_ROW_HEIGHT = 28
# Colours follow the logarithm where the greatest value is so many times the least.
_WIDE_RANGE = 20.0
# From this share of the colours on, letters on them are white.
_DARK_SHARE = 0.55


def heat_map(cells: Sequence[CellResult], quantity: Quantity, title: str) -> Spec:
    """The table of a quantity, its cells the darker the greater they are."""
    layout = arrange(cell.workload for cell in cells)
    cell_of = {cell.workload: cell for cell in cells}
    value_of = {cell.workload: cell.value(quantity) for cell in cells}
    sure_of = {cell.workload: sure(cell, quantity) for cell in cells}
    shares = _shares([value for value in value_of.values() if value is not None])
    down = ", ".join(layout.row_titles)
    rows: list[Row] = [
        {
            "column": layout.column_axis.text(column),
            "row": ", ".join(layout.row_text(row)),
            "value": value,
            "sure": sure_of[work],
            "share": shares[value],
            "text": format_number(value, 0 if abs(value) >= 1000 else quantity.digits)
            + mark(cell_of[work]),
            **flag(cell_of[work]),
        }
        for row, works in zip(layout.rows, layout.at, strict=True)
        for column, work in zip(layout.columns, works, strict=True)
        if work is not None and (value := value_of[work]) is not None
    ]
    places: dict[str, object] = {
        "x": {
            "field": "column",
            "type": "ordinal",
            "title": layout.column_axis.title,
            "sort": [layout.column_axis.text(column) for column in layout.columns],
            "axis": {"labelAngle": 0, "orient": "top"},
        },
        "y": {
            "field": "row",
            "type": "ordinal",
            "title": down,
            "sort": [", ".join(layout.row_text(row)) for row in layout.rows],
        },
    }
    shade = {
        "field": "share",
        "type": "quantitative",
        "scale": {"scheme": "blues", "domain": [0, 1]},
        "legend": None,
    }
    letters = {
        "condition": {"test": f"datum.share > {_DARK_SHARE}", "value": "white"},
        "value": "#222",
    }
    tip = tooltip(
        ("column", layout.column_axis.title), ("row", down), ("value", quantity.title), SURE
    )
    return {
        **build_frame(title),
        "height": _ROW_HEIGHT * len(layout.rows),
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "white"},
                "encoding": {**places, "color": shade, "tooltip": tip},
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    **places,
                    "text": {"field": "text", "type": "nominal"},
                    "color": letters,
                    "tooltip": tip,
                },
            },
        ],
    }


def _shares(values: Sequence[float]) -> dict[float, float]:
    """Where each value stands between the least (0) and the greatest (1)."""
    if not values:
        return {}
    low, high = min(values), max(values)
    wide = low > 0 and high > _WIDE_RANGE * low
    scale = math.log if wide else float
    length = scale(high) - scale(low)
    return {value: (scale(value) - scale(low)) / length if length else 0.5 for value in values}


def against(
    cells: Sequence[CellResult], upright: Quantity, across: Quantity, title: str, *, log: bool
) -> Spec:
    """One quantity over another: a point for each cell, a curve along the demand."""
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
        "x": {"field": "x", "type": "quantitative", "title": across.title},
        "y": quantity_axis(rows, upright.title, log=log),
        "order": {"field": "place", "type": "quantitative"},
    }
    fields = [("at", along.title), ("x", across.title), ("value", upright.title), SURE]
    workloads = [cell.workload for cell in cells]
    return build_curves(title, rows, encoding, fields, naming, workloads, ordered=True)


def over_demand(cells: Sequence[CellResult], quantity: Quantity, title: str, *, log: bool) -> Spec:
    """A quantity over threads x queue depth; cells of an equal product stand above each other."""
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
    return build_curves(title, rows, encoding, fields, naming, workloads, ordered=True)


def split_demand(workloads: Iterable[Workload]) -> tuple[Axis, tuple[Axis, ...]]:
    """The field along which demand grows within a curve, and those that tell the curves apart."""
    axes = find_axes(workloads)
    along = next((axis for axis in (DEPTH, JOBS, OFFERED) if axis in axes), DEPTH)
    return along, tuple(axis for axis in axes if axis is not along)
