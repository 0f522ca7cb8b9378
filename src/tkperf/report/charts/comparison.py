"""Charts of comparisons: runs beside each other, a colour for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tkperf.analysis.compare import ComparedRow
from tkperf.analysis.layout import listing_axes
from tkperf.analysis.results import SectionResult
from tkperf.quantity import Measure, Quantity
from tkperf.report.charts.flagged import FLAGGED, flag, with_flags
from tkperf.report.charts.latency import exceedance_points
from tkperf.report.charts.rounds import Over
from tkperf.report.charts.vega import (
    PALETTE,
    Row,
    Spec,
    build_chart,
    build_frame,
    colour,
    log_axis,
    quantity_axis,
    tooltip,
)
from tkperf.report.naming import Naming, find_naming


def compared_bars(
    rows: Sequence[ComparedRow], names: Sequence[str], quantity: Measure, title: str
) -> Spec:
    """A bar for each run of each workload, with its range; the axis says what the range is over."""
    naming = Naming(axes=listing_axes(row.workload for row in rows))
    values: list[Row] = [
        {
            "cell": naming.of(row.workload),
            "run": name,
            "value": entry.value,
            "low": entry.low,
            "high": entry.high,
            "range": entry.span,
            **flag(entry),
        }
        for row in rows
        for name, entry in zip(names, row.entries, strict=True)
        if entry.value is not None
    ]
    order = list(dict.fromkeys(str(value["cell"]) for value in values))
    x = {
        "field": "cell",
        "type": "nominal",
        "title": f"{naming.title}{describe_ranges(rows, ' (lines: range over {})')}",
        "sort": order,
        "axis": {"labelAngle": -40},
    }
    offset = {"field": "run", "sort": list(names)}
    ranges: list[Spec] = [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "color": "#444"},
            "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
        }
    ]
    spread_known = any(value["low"] is not None for value in values)
    return {
        **build_frame(title),
        "data": {"values": values},
        "encoding": {"x": x, "xOffset": offset},
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "y": {"field": "value", "type": "quantitative", "title": quantity.title},
                    "color": {
                        "field": "run",
                        "type": "nominal",
                        "title": "Run",
                        "sort": list(names),
                        "scale": {"range": PALETTE},
                    },
                    "tooltip": tooltip(
                        ("run", "Run"),
                        ("cell", naming.title),
                        ("value", quantity.title),
                        ("low", "lowest"),
                        ("high", "highest"),
                        ("range", "range over"),
                    ),
                },
            },
            *(ranges if spread_known else ()),
            *(_marks_layer() if any("flag" in value for value in values) else ()),
        ],
    }


def _marks_layer() -> list[Spec]:
    """A mark above each bar that is flagged."""
    return [
        {
            "transform": [{"filter": "isValid(datum.flag)"}],
            "mark": {
                "type": "text", "text": "!", "dy": -7, "fontSize": 14, "fontWeight": "bold",
                "color": FLAGGED,
            },
            "encoding": {
                "y": {"field": "value", "type": "quantitative"},
                "tooltip": {"field": "flag", "type": "nominal"},
            },
        }
    ]  # fmt: skip


def describe_ranges(rows: Sequence[ComparedRow], text: str) -> str:
    """``text`` with what the rows' ranges are over in place of ``{}``; nothing without ranges."""
    spans = dict.fromkeys(entry.span.value for row in rows for entry in row.entries if entry.span)
    return text.format(" or ".join(spans)) if spans else ""


def compared_streams(
    sections: Mapping[str, SectionResult],
    quantity: Quantity,
    *,
    title: str,
    over: Mapping[str, Over],
    x_title: str,
) -> Spec:
    """A quantity of every slice, a curve for each run.

    Args:
        sections: of each run, by its name.
        over: what each run's slices are placed by; ``x_title`` says it with its unit.
    """
    rows: list[Row] = [
        {
            "x": over[name].at(slice_result),
            "value": slice_result.values.value(quantity),
            "series": name,
            **flag(slice_result.values),
        }
        for name, section in sections.items()
        for slice_result in section.slices
    ]
    return build_chart(
        title,
        rows,
        {
            "x": {"field": "x", "type": "quantitative", "title": x_title, "scale": {"nice": False}},
            "y": quantity_axis(rows, quantity.title, log=False),
            "color": colour("Run"),
            "tooltip": tooltip(("series", "Run"), ("x", x_title), ("value", quantity.title)),
        },
        mark={"type": "line"},
    )


def compared_exceedance(sections: Mapping[str, SectionResult], *, title: str) -> Spec:
    """The share of a stream's I/Os that took longer than a response time, a curve for each run."""
    rows: list[Row] = [
        {"x": us, "value": beyond_percent, "series": name}
        for name, section in sections.items()
        for us, beyond_percent in exceedance_points(section.histogram_us)
    ]
    spec = build_chart(
        title,
        rows,
        {
            "x": {
                "field": "x",
                "type": "quantitative",
                "title": "Response time (us)",
                **log_axis(row["x"] for row in rows),
            },
            "y": quantity_axis(rows, "I/Os that took longer (%)", log=True),
            "color": colour("Run"),
            "tooltip": tooltip(
                ("series", "Run"), ("x", "us"), ("value", "I/Os that took longer (%)")
            ),
        },
        mark={"type": "line"},
    )
    slices = (each.values for section in sections.values() for each in section.slices)
    return with_flags(spec, slices)


def compared_areas(
    sections: Mapping[str, SectionResult], quantity: Quantity, *, title: str
) -> Spec:
    """A quantity over the areas of hard disks: a colour for each run, a dash for each workload.

    Disks may be cut into different numbers of areas, so an area is placed by its share of the disk.
    """
    naming = find_naming(
        cell.workload
        for section in sections.values()
        for area in section.rounds
        for cell in area.cells
    )
    rows: list[Row] = [
        {
            "x": 100 * (area.number - 0.5) / section.areas,
            "value": cell.value(quantity),
            "series": name,
            "cell": naming.of(cell.workload),
            **flag(cell),
        }
        for name, section in sections.items()
        if section.areas
        for area in section.rounds
        for cell in area.cells
    ]
    x_title = "Place on the device (% of its capacity)"
    return build_chart(
        title,
        rows,
        {
            "x": {"field": "x", "type": "quantitative", "title": x_title, "scale": {"nice": False}},
            "y": quantity_axis(rows, quantity.title, log=False),
            "color": colour("Run"),
            "strokeDash": {"field": "cell", "type": "nominal", "title": naming.title},
            "tooltip": tooltip(
                ("series", "Run"), ("cell", naming.title), ("x", x_title), ("value", quantity.title)
            ),
        },
        mark={"type": "line"},
    )
