"""Charts of comparisons: runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.compare import ComparedRow
from tkperf.report.chart_parts import PALETTE, Row, Spec, build_frame, tooltip
from tkperf.units import format_block_size_kib, format_mix


def compared_bars(
    rows: Sequence[ComparedRow], names: Sequence[str], *, title: str, quantity: str
) -> Spec:
    """A bar for each run in each cell, with the range over the rounds of its window."""
    values: list[Row] = [
        {
            "cell": f"{format_mix(row.cell.read_percent)} "
            f"{format_block_size_kib(row.cell.block_size_bytes)} KiB",
            "run": name,
            "value": entry.value,
            "low": entry.low,
            "high": entry.high,
        }
        for row in rows
        for name, entry in zip(names, row.entries, strict=True)
        if entry.value is not None
    ]
    order = list(dict.fromkeys(str(value["cell"]) for value in values))
    x = {
        "field": "cell",
        "type": "nominal",
        "title": "R/W %, block size",
        "sort": order,
        "axis": {"labelAngle": -40},
    }
    offset = {"field": "run", "sort": list(names)}
    return {
        **build_frame(title),
        "data": {"values": values},
        "encoding": {"x": x, "xOffset": offset},
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "y": {"field": "value", "type": "quantitative", "title": quantity},
                    "color": {
                        "field": "run",
                        "type": "nominal",
                        "title": "Run",
                        "sort": list(names),
                        "scale": {"range": PALETTE},
                    },
                    "tooltip": tooltip(
                        ("run", "Run"),
                        ("cell", "Cell"),
                        ("value", quantity),
                        ("low", "lowest"),
                        ("high", "highest"),
                    ),
                },
            },
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "color": "#444"},
                "encoding": {
                    "y": {"field": "low", "type": "quantitative"},
                    "y2": {"field": "high"},
                },
            },
        ],
    }
