"""Every chart as a Vega-Lite specification: one definition for the page and for print.

Pure: results in, plain dicts out. Axes name their units. Colours are distinguishable with the
common colour-vision deficiencies (Okabe and Ito's palette,
brown in the place of black, which a dark page would hide, then two of Paul Tol's).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tkperf.analysis.results import CellResult, SectionResult, SliceResult
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import format_block_size_kib, format_mix

Spec = dict[str, object]
Row = dict[str, object]

PALETTE = [
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#8C564B",
    "#999999",
    "#882255",
    "#44AA99",
]

# Fields that hold measured numbers, in every chart.
MEASURED = {"value", "low", "high", "x", "us", "lower", "upper", "count", "share", "beyond"}


def convergence(
    section: SectionResult,
    *,
    title: str,
    read_percents: Iterable[int],
    value: Callable[[CellResult], float | None],
    quantity: str,
    log: bool = True,
) -> Spec:
    """A value over the rounds, a curve for each block size (and mix, if several)."""
    mixes = set(read_percents)
    rows: list[Row] = [
        {
            "round": round_result.number,
            "value": value(cell),
            "series": series_name(cell, many_mixes=len(mixes) > 1),
        }
        for round_result in section.rounds
        for cell in round_result.cells
        if cell.read_percent in mixes
    ]
    return build_chart(
        title,
        rows,
        {
            "x": {"field": "round", "type": "ordinal", "title": "Round", "axis": {"labelAngle": 0}},
            "y": quantity_axis("value", quantity, log=log and _positive(rows)),
            "color": colour("R/W %, block size" if len(mixes) > 1 else "Block size (KiB)"),
            "tooltip": tooltip(("series", "Series"), ("round", "Round"), ("value", quantity)),
        },
        mark={"type": "line", "point": True},
    )


def steady_state_window(verdict: SteadyStateVerdict, title: str, x_title: str = "Round") -> Spec:
    """The tracking variable in the window, its average, 110 % and 90 % lines and best fit."""
    first, last = verdict.rounds[0], verdict.rounds[-1]
    lines: list[Row] = []

    def line(name: str, y_first: float, y_last: float) -> None:
        lines.append({"round": first, "value": y_first, "line": name})
        lines.append({"round": last, "value": y_last, "line": name})

    line("average", verdict.average, verdict.average)
    line("110 % of average", 1.1 * verdict.average, 1.1 * verdict.average)
    line("90 % of average", 0.9 * verdict.average, 0.9 * verdict.average)
    if verdict.fit is not None:
        line("best linear fit", verdict.fit.at(first), verdict.fit.at(last))
    points = [
        {"round": number, "value": value, "line": "measured"}
        for number, value in zip(verdict.rounds, verdict.values, strict=True)
    ]
    names = ["measured", "average", "110 % of average", "90 % of average", "best linear fit"]
    encoding = {
        "x": {
            "field": "round",
            "type": "quantitative",
            "title": x_title,
            "axis": {"values": list(verdict.rounds), "format": "d"},
            "scale": {"domain": [first, last], "nice": False, "padding": 20},
        },
        "y": {
            "field": "value",
            "type": "quantitative",
            "title": verdict.unit,
            "scale": {"zero": False, "padding": 12},
        },
        "color": {
            "field": "line",
            "type": "nominal",
            "title": None,
            "scale": {"domain": names, "range": PALETTE[: len(names)]},
        },
        "tooltip": tooltip(("line", "Line"), ("round", x_title), ("value", verdict.unit)),
    }
    return {
        **build_frame(title),
        "layer": [
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeDash": [6, 3]},
                "encoding": encoding,
            },
            {
                "data": {"values": points},
                "mark": {"type": "line", "point": {"size": 60}},
                "encoding": encoding,
            },
        ],
    }


def measurement_2d(
    section: SectionResult,
    *,
    title: str,
    value: Callable[[CellResult], float | None],
    quantity: str,
    log: bool = True,
) -> Spec:
    """Window means over the block size, a curve for each read/write mix."""
    rows: list[Row] = [
        {
            "size": format_block_size_kib(cell.block_size_bytes),
            "value": value(cell),
            "series": format_mix(cell.read_percent),
        }
        for cell in section.cells
    ]
    sizes = sorted({cell.block_size_bytes for cell in section.cells})
    return build_chart(
        title,
        rows,
        {
            "x": {
                "field": "size",
                "type": "ordinal",
                "title": "Block size (KiB)",
                "sort": [format_block_size_kib(size) for size in sizes],
                "axis": {"labelAngle": 0},
            },
            "y": quantity_axis("value", quantity, log=log and _positive(rows)),
            "color": colour("R/W %"),
            "tooltip": tooltip(("series", "R/W %"), ("size", "KiB"), ("value", quantity)),
        },
        mark={"type": "line", "point": True},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """What a stream is drawn over: ``at`` places a slice; its unit depends on how long it takes."""

    title: str
    at: Callable[[SliceResult], float]


TIME = Over(title="Time", at=lambda each: each.start_s + each.duration_s / 2)
TOTAL_WRITTEN = Over(title="Total written (GB)", at=lambda each: each.total_written_bytes / 1e9)


def drive_fills(capacity_bytes: float) -> Over:
    """The amount written in multiples of the capacity."""
    return Over(title="Drive fills", at=lambda each: each.total_written_bytes / capacity_bytes)


def stream(
    section: SectionResult,
    *,
    title: str,
    series: Sequence[tuple[str, Callable[[CellResult], float | None]]],
    quantity: str,
    over: Over = TIME,
    log: bool = False,
) -> Spec:
    """Values of a stream's slices over time, or over what was written."""
    unit, unit_s, x_title = "", 1.0, over.title
    if over is TIME:
        unit, unit_s = find_time_unit(section.slices[-1].start_s + section.slices[-1].duration_s)
        x_title = f"{over.title} ({unit})"
    rows: list[Row] = [
        {"x": over.at(each) / unit_s, "value": value(each.values), "series": name}
        for each in section.slices
        for name, value in series
        if value(each.values) is not None
    ]
    encoding: dict[str, object] = {
        "x": {"field": "x", "type": "quantitative", "title": x_title, "scale": {"nice": False}},
        "y": quantity_axis("value", quantity, log=log and _positive(rows)),
        "tooltip": tooltip(("series", "Series"), ("x", x_title), ("value", quantity)),
    }
    if len(series) > 1:
        encoding["color"] = colour(None)
    return build_chart(
        title,
        rows,
        encoding,
        mark={"type": "line", "color": PALETTE[0], "point": len(section.slices) <= 60},
    )


def find_time_unit(total_s: float) -> tuple[str, float]:
    """The unit that suits a length of time, and its seconds."""
    if total_s > 7200:
        return "h", 3600.0
    return ("min", 60.0) if total_s > 300 else ("s", 1.0)


def throughput_bars(cells: Sequence[CellResult], *, title: str) -> Spec:
    """Reads and writes of each block size beside each other."""
    rows: list[Row] = [
        {
            "size": format_block_size_kib(cell.block_size_bytes),
            "value": cell.megabytes_per_s,
            "series": "read" if cell.read_percent == 100 else "write",
        }
        for cell in cells
        if cell.read_percent in (0, 100)
    ]
    order = [
        format_block_size_kib(size) for size in sorted({cell.block_size_bytes for cell in cells})
    ]
    return build_chart(
        title,
        rows,
        {
            "x": {"field": "size", "type": "ordinal", "title": "Block size (KiB)", "sort": order,
                  "axis": {"labelAngle": 0}},
            "xOffset": {"field": "series"},
            "y": quantity_axis("value", "MB/s", log=False),
            "color": colour(None),
            "tooltip": tooltip(("series", "Direction"), ("size", "KiB"), ("value", "MB/s")),
        },
        mark={"type": "bar"},
    )  # fmt: skip


def build_chart(
    title: str, rows: Sequence[Row], encoding: dict[str, object], *, mark: object
) -> Spec:
    spec = {
        **build_frame(title),
        "data": {"values": list(rows)},
        "mark": mark,
        "encoding": encoding,
    }
    params: list[Row] = []
    x = encoding["x"]
    if isinstance(x, dict) and x["type"] == "quantitative":
        # A long run has more points than pixels: the wheel zooms along time.
        interval = {"type": "interval", "encodings": ["x"]}
        params.append({"name": "zoom", "select": interval, "bind": "scales"})
    if "color" in encoding:
        point = {"type": "point", "fields": ["series"]}
        params.append({"name": "shown", "select": point, "bind": "legend"})
        encoding["opacity"] = {"condition": {"param": "shown", "value": 1}, "value": 0.1}
    if params:
        spec["params"] = params
    return spec


def build_frame(title: str) -> Spec:
    """What every chart has."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "anchor": "start"},
        "width": "container",
        "height": 300,
        "config": {"font": "sans-serif", "view": {"stroke": None}, "background": "white"},
    }


def quantity_axis(field: str, title: str, *, log: bool) -> dict[str, object]:
    scale: dict[str, object] = {"type": "log"} if log else {"zero": True}
    scale["nice"] = True  # also where zooming along x would switch it off
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def colour(title: str | None) -> dict[str, object]:
    return {
        "field": "series",
        "type": "nominal",
        "title": title,
        "sort": None,
        "scale": {"range": PALETTE},
    }


def tooltip(*fields: tuple[str, str]) -> list[dict[str, object]]:
    """What is told of a point: fields with their titles, measured numbers to six digits."""
    number: dict[str, object] = {"type": "quantitative", "format": ",.6~r"}
    return [
        {"field": field, "title": title, **(number if field in MEASURED else {})}
        for field, title in fields
    ]


def series_name(cell: CellResult, *, many_mixes: bool) -> str:
    size = format_block_size_kib(cell.block_size_bytes)
    return f"{format_mix(cell.read_percent)} {size} KiB" if many_mixes else size


def _positive(rows: Sequence[Row]) -> bool:
    """Whether a log axis can show all values."""
    values = [row["value"] for row in rows if isinstance(row["value"], int | float)]
    return bool(values) and all(value > 0 and math.isfinite(value) for value in values)
