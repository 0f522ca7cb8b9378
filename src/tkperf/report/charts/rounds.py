"""Charts of rounds, cells and slices: convergence, steady-state window, means, streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from tkperf.analysis.results import CellResult, SectionResult, SliceResult
from tkperf.report.charts.parts import (
    PALETTE,
    Row,
    Spec,
    build_chart,
    build_frame,
    colour,
    quantity_axis,
    series_name,
    tooltip,
)
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import format_block_size_kib, format_mix


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
            "y": quantity_axis(rows, quantity, log=log),
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
        if not isfinite(y_first):  # a round in which nothing was measured
            return
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
        if isfinite(value)
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
            "y": quantity_axis(rows, quantity, log=log),
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
TOTAL_WRITTEN = Over(title="Total written (GB)", at=lambda each: _written_bytes(each) / 1e9)


def drive_fills(capacity_bytes: float) -> Over:
    """The amount written in multiples of the capacity."""
    return Over(title="Drive fills", at=lambda each: _written_bytes(each) / capacity_bytes)


def _written_bytes(each: SliceResult) -> int:
    assert each.total_written_bytes is not None, "nothing is drawn over what is not known"
    return each.total_written_bytes


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
        "y": quantity_axis(rows, quantity, log=log),
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
            "y": quantity_axis(rows, "MB/s", log=False),
            "color": colour(None),
            "tooltip": tooltip(("series", "Direction"), ("size", "KiB"), ("value", "MB/s")),
        },
        mark={"type": "bar"},
    )  # fmt: skip
