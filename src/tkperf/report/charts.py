"""Every chart as a Vega-Lite specification: one definition for the page and for print.

Pure: results in, plain dicts out. Axes name their units. Colours are distinguishable with the
common colour-vision deficiencies (Okabe and Ito's palette,
brown in the place of black, which a dark page would hide, then two of Paul Tol's).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tkperf.analysis.results import CellResult, RoundResult, SectionResult
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


def stream_over_time(
    section: SectionResult,
    *,
    title: str,
    series: Sequence[tuple[str, Callable[[CellResult], float | None]]],
    quantity: str,
    log: bool = False,
    over_bytes: bool = False,
) -> Spec:
    """Values of a stream's slices over time, or over the amount written."""
    total_s = section.slices[-1].start_s + section.slices[-1].duration_s
    unit, unit_s = (
        ("h", 3600.0) if total_s > 7200 else ("min", 60.0) if total_s > 300 else ("s", 1.0)
    )
    rows: list[Row] = [
        {
            "x": (
                each.total_written_bytes / 1e9
                if over_bytes
                else (each.start_s + each.duration_s / 2) / unit_s
            ),
            "value": value(each.values),
            "series": name,
        }
        for each in section.slices
        for name, value in series
    ]
    x_title = "Total written (GB)" if over_bytes else f"Time ({unit})"
    encoding: dict[str, object] = {
        "x": {"field": "x", "type": "quantitative", "title": x_title, "scale": {"nice": False}},
        "y": quantity_axis("value", quantity, log=log and _positive(rows)),
        "tooltip": tooltip(("series", "Series"), ("x", x_title), ("value", quantity)),
    }
    if len(series) > 1:
        encoding["color"] = colour(None)
    return build_chart(
        title, rows, encoding, mark={"type": "line", "point": len(section.slices) <= 60}
    )


def response_time_histogram(section: SectionResult, title: str) -> Spec:
    """I/Os by response time (log) with the share of I/Os that took no longer."""
    total = sum(count for _, _, count in section.histogram_us)
    rows, seen = [], 0
    for lower_us, upper_us, count in section.histogram_us:
        seen += count
        rows.append(
            {"lower": lower_us, "upper": upper_us, "count": count, "share": 100 * seen / total}
        )
    x = {
        "field": "lower",
        "type": "quantitative",
        "title": "Response time (us)",
        "scale": {"type": "log", "nice": False},
    }
    return {
        **build_frame(title),
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar", "color": PALETTE[0]},
                "encoding": {
                    "x": x,
                    "x2": {"field": "upper"},
                    "y": {
                        "field": "count",
                        "type": "quantitative",
                        "title": "I/Os",
                        "scale": {"type": "symlog", "domainMin": 0},
                        "axis": {"values": [10**power for power in range(10)], "format": ",d"},
                    },
                    "y2": {"datum": 0},
                    "tooltip": tooltip(
                        ("lower", "from us"),
                        ("upper", "to us"),
                        ("count", "I/Os"),
                        ("share", "I/Os up to here (%)"),
                    ),
                },
            },
            {
                "mark": {"type": "line", "color": PALETTE[1]},
                "encoding": {
                    "x": {**x, "field": "upper"},
                    "y": {
                        "field": "share",
                        "type": "quantitative",
                        "title": "I/Os that took no longer (%)",
                        "scale": {"domain": [0, 100]},
                    },
                },
            },
        ],
        "resolve": {"scale": {"y": "independent"}},
    }


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
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "anchor": "start"},
        "width": "container",
        "height": 300,
        "config": {"font": "sans-serif", "view": {"stroke": None}, "background": "white"},
    }


def quantity_axis(field: str, title: str, *, log: bool) -> dict[str, object]:
    scale = {"type": "log"} if log else {"zero": True}
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
    return [{"field": field, "title": title} for field, title in fields]


def series_name(cell: CellResult, *, many_mixes: bool) -> str:
    size = format_block_size_kib(cell.block_size_bytes)
    return f"{format_mix(cell.read_percent)} {size} KiB" if many_mixes else size


def _positive(rows: Sequence[Row]) -> bool:
    """Whether a log axis can show all values."""
    values = [row["value"] for row in rows if isinstance(row["value"], int | float)]
    return bool(values) and all(value > 0 and math.isfinite(value) for value in values)


def rounds_of(section: SectionResult) -> tuple[RoundResult, ...]:
    """Only whole rounds can be compared."""
    return tuple(each for each in section.rounds if each.complete)
