"""Charts over the rate that was offered: what was achieved beside the ideal, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tkperf.analysis.layout import OFFERED
from tkperf.analysis.results import CellResult
from tkperf.phases import Knee
from tkperf.quantity import IOPS, Quantity
from tkperf.report.charts.flagged import flag
from tkperf.report.charts.vega import (
    PALETTE,
    SURE,
    Row,
    Spec,
    build_frame,
    quantity_axis,
    sure,
    tooltip,
)
from tkperf.report.naming import Naming
from tkperf.workload import Workload


def over_offered(
    cells: Sequence[CellResult],
    quantity: Quantity,
    title: str,
    *,
    naming: Naming,
    knee: Knee | None = None,
    links: Mapping[Workload, str] | None = None,
    log: bool = False,
) -> Spec:
    """A quantity over the offered rate, the ideal line beside achieved IOPS, the knee marked.

    Args:
        naming: how the curves of other fields are told apart.
        links: what a click on a point opens.
    """
    rows: list[Row] = [
        {
            "x": cell.workload.offered_iops,
            "value": value,
            "sure": sure(cell, quantity),
            "series": naming.of(cell.workload) if naming.axes else "measured",
            "cell": (links or {}).get(cell.workload, ""),
            **flag(cell),
        }
        for cell in cells
        if (value := cell.value(quantity)) is not None
    ]
    x = {"field": "x", "type": "quantitative", "title": OFFERED.title, "scale": {"zero": True}}
    y = quantity_axis(rows, quantity.title, log=log)
    tip_fields = [("x", OFFERED.title), ("value", quantity.title)]
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    colours = {"domain": names, "range": PALETTE[: len(names)]}
    series = {
        "field": "series",
        "type": "nominal",
        "title": naming.title if naming.axes else None,
        "scale": colours,
    }
    layers: list[Spec] = []
    if quantity is IOPS and rows:
        most = max(cell.workload.offered_iops or 0.0 for cell in cells)
        names.append("ideal: all that is offered")
        colours["range"] = [*PALETTE[: len(names) - 1], PALETTE[7]]
        ideal = [{"x": at, "value": at, "series": names[-1]} for at in (0.0, most)]
        encoding = {
            "x": x,
            "y": y,
            "color": series,
            "tooltip": tooltip(("series", "Line"), *tip_fields),
        }
        mark: Spec = {"type": "line", "strokeDash": [6, 3]}
        layers.append({"data": {"values": ideal}, "mark": mark, "encoding": encoding})
    measured: dict[str, object] = {"x": x, "y": y, "tooltip": tooltip(*tip_fields, SURE)}
    if naming.axes or layers:
        measured["color"] = series
    layers.append(
        {
            "data": {"values": rows},
            "mark": {"type": "line", "point": {"size": 40}, "color": PALETTE[0]},
            "encoding": measured,
        }
    )
    if knee is not None and knee.kept_iops is not None and knee.missed_iops is not None:
        layers += _knee_layers(knee.kept_iops)
    return {**build_frame(title), "layer": layers}


def _knee_layers(kept_iops: float) -> list[Spec]:
    rows = [{"x": kept_iops, "label": f"knee {kept_iops:,.0f}"}]
    x = {"field": "x", "type": "quantitative"}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "strokeDash": [3, 3], "color": PALETTE[7]},
            "encoding": {"x": x, "tooltip": tooltip(("label", "Last level kept up with (IOPS)"))},
        },
        {
            "data": {"values": rows},
            "mark": {
                "type": "text",
                "align": "right",
                "dx": -4,
                "fontSize": 10,
                "color": PALETTE[7],
            },
            "encoding": {"x": x, "y": {"value": 8}, "text": {"field": "label"}},
        },
    ]
