"""Charts over the offered rate: the achieved rate next to the ideal, and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice

from tkperf.analysis.axes import OFFERED
from tkperf.analysis.characteristics import Characteristic
from tkperf.analysis.results import CellResult
from tkperf.model.quantity import IOPS, Quantity
from tkperf.model.workload import Workload
from tkperf.page.naming import Naming
from tkperf.render.charts.flagged import flag
from tkperf.render.charts.labels import name_curves
from tkperf.render.charts.vega import (
    DASHES,
    NEUTRAL,
    PALETTE,
    SURE,
    Row,
    Spec,
    build_frame,
    length_axis,
    name_channel,
    quantity_axis,
    sure,
    tooltip,
)

IDEAL = "ideal: all that is offered"


def over_offered(
    cells: Sequence[CellResult],
    quantity: Quantity,
    title: str,
    *,
    naming: Naming,
    marks: Sequence[Characteristic] = (),
    links: Mapping[Workload, str] | None = None,
    log: bool = False,
) -> Spec:
    """Draw a quantity over the offered rate; a chart of IOPS also has the ideal line.

    Args:
        naming: names of the curves by their other fields.
        marks: rates to mark.
        links: the key that a click on a point opens.
    """
    rows = _rows(cells, quantity, naming, links or {})
    ideal: list[Row] = []
    if quantity is IOPS and rows:
        most = max(cell.workload.offered_iops or 0.0 for cell in cells)
        ideal = [{"x": at, "value": at, "series": IDEAL} for at in (0.0, most)]
    drawn = [*ideal, *rows]
    encoding: Spec = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "title": OFFERED.title,
            **length_axis(row["x"] for row in drawn),
        },
        "y": quantity_axis(drawn, quantity.title, log=log),
    }
    labels: list[Spec] = []
    if naming.axes or ideal:
        names = list(dict.fromkeys(str(row["series"]) for row in rows))
        colours = [*islice(cycle(PALETTE), len(names)), NEUTRAL]
        legend = naming.title if naming.axes else None
        encoding["color"] = name_channel(legend, [*names, IDEAL], colours)
        encoding, labels = name_curves(encoding, drawn)
    tip = (("x", OFFERED.title), ("value", quantity.title))
    ideal_layer: Spec = {
        "data": {"values": ideal},
        "mark": {"type": "line", "strokeDash": DASHES[1]},
        "encoding": {**encoding, "tooltip": tooltip(("series", "Line"), *tip)},
    }
    measured: Spec = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": {"size": 40}, "color": PALETTE[0]},
        "encoding": {**encoding, "tooltip": tooltip(*tip, SURE)},
    }
    layers = [ideal_layer, measured] if ideal else [measured]
    if marks:
        layers += _mark_layers(marks)
    return {**build_frame(title), "layer": [*layers, *labels]}


def _rows(
    cells: Sequence[CellResult], quantity: Quantity, naming: Naming, links: Mapping[Workload, str]
) -> list[Row]:
    return [
        {
            "x": cell.workload.offered_iops,
            "value": value,
            "sure": sure(cell, quantity),
            "series": naming.of(cell.workload) if naming.axes else "measured",
            "cell": links.get(cell.workload, ""),
            **flag(cell),
        }
        for cell in cells
        if (value := cell.value(quantity)) is not None
    ]


def describe_marks(marks: Sequence[Characteristic]) -> str:
    """Return the marks in words: ``no backlog up to 91,000 IOPS, saturates at 93,900 IOPS``."""
    return ", ".join(map(_name_mark, marks))


def _name_mark(mark: Characteristic) -> str:
    return f"{mark.measure.label} {mark.text()} {mark.measure.unit}"


def _mark_layers(marks: Sequence[Characteristic]) -> list[Spec]:
    """Return a rule at each rate; the names are one below the other, as the rates may be close together."""
    rows = [{"x": mark.value, "label": _name_mark(mark)} for mark in marks]
    x = {"field": "x", "type": "quantitative"}
    rules: Spec = {
        "data": {"values": rows},
        "mark": {"type": "rule", "strokeDash": [3, 3], "color": NEUTRAL},
        "encoding": {"x": x, "tooltip": tooltip(("label", "Rate"))},
    }
    names: list[Spec] = [
        {
            "data": {"values": [row]},
            "mark": {"type": "text", "align": "right", "dx": -4},
            "encoding": {
                "x": x,
                "y": {"value": 8 + 14 * place},
                "text": {"field": "label", "type": "nominal"},
            },
        }
        for place, row in enumerate(rows)
    ]
    return [rules, *names]
