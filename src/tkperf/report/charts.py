"""Every chart as a Vega-Lite specification: one definition for the page and for print.

Pure: results in, plain dicts out. Axes name their units. Colours are distinguishable with the
common colour-vision deficiencies (Okabe and Ito's palette,
then two of Paul Tol's).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tkperf.analysis.compare import ComparedRow
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
    "#000000",
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
            "series": _series(cell, many_mixes=len(mixes) > 1),
        }
        for round_result in section.rounds
        for cell in round_result.cells
        if cell.read_percent in mixes
    ]
    return _chart(
        title,
        rows,
        {
            "x": {"field": "round", "type": "ordinal", "title": "Round", "axis": {"labelAngle": 0}},
            "y": _quantity("value", quantity, log=log and _positive(rows)),
            "color": _colour("R/W %, block size" if len(mixes) > 1 else "Block size (KiB)"),
            "tooltip": _tooltip(("series", "Series"), ("round", "Round"), ("value", quantity)),
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
        "tooltip": _tooltip(("line", "Line"), ("round", x_title), ("value", verdict.unit)),
    }
    return {
        **_frame(title),
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
    return _chart(
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
            "y": _quantity("value", quantity, log=log and _positive(rows)),
            "color": _colour("R/W %"),
            "tooltip": _tooltip(("series", "R/W %"), ("size", "KiB"), ("value", quantity)),
        },
        mark={"type": "line", "point": True},
    )


def over_areas(
    section: SectionResult,
    *,
    title: str,
    value: Callable[[CellResult], float | None],
    quantity: str,
) -> Spec:
    """A value over the areas of a hard disk, a curve for each cell."""
    rows = _area_rows(section, value)
    return _chart(
        title,
        rows,
        {
            "x": {
                "field": "area",
                "type": "quantitative",
                "title": "Area of the device (1 is its start)",
                "scale": {"nice": False},
                "axis": {"format": "d", "tickMinStep": 1},
            },
            "y": _quantity("value", quantity, log=False),
            "color": _colour("R/W %, block size"),
            "tooltip": _tooltip(("series", "Series"), ("area", "Area"), ("value", quantity)),
        },
        mark={"type": "line", "point": {"size": 12}},
    )


def box_plot(
    section: SectionResult,
    *,
    title: str,
    value: Callable[[CellResult], float | None],
    quantity: str,
) -> Spec:
    """The spread of a value over the areas of a hard disk, a box for each cell."""
    return _chart(
        title,
        _area_rows(section, value),
        {
            "x": {
                "field": "series",
                "type": "nominal",
                "title": "R/W %, block size",
                "sort": None,
                "axis": {"labelAngle": -30},
            },
            "y": {**_quantity("value", quantity, log=False), "scale": {"zero": False}},
        },
        mark={"type": "boxplot", "extent": "min-max", "color": PALETTE[0]},
    )


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
        **_frame(title),
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
                    "tooltip": _tooltip(
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


def _area_rows(section: SectionResult, value: Callable[[CellResult], float | None]) -> list[Row]:
    return [
        {
            "area": area.number,
            "value": value(cell),
            "series": _series(cell, many_mixes=True),
        }
        for area in section.rounds
        for cell in area.cells
    ]


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
        "y": _quantity("value", quantity, log=log and _positive(rows)),
        "tooltip": _tooltip(("series", "Series"), ("x", x_title), ("value", quantity)),
    }
    if len(series) > 1:
        encoding["color"] = _colour(None)
    return _chart(title, rows, encoding, mark={"type": "line", "point": len(section.slices) <= 60})


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
        **_frame(title),
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
                    "tooltip": _tooltip(
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


def _chart(title: str, rows: Sequence[Row], encoding: dict[str, object], *, mark: object) -> Spec:
    spec = {**_frame(title), "data": {"values": list(rows)}, "mark": mark, "encoding": encoding}
    if "color" in encoding:
        spec["params"] = [
            {"name": "shown", "select": {"type": "point", "fields": ["series"]}, "bind": "legend"}
        ]
        encoding["opacity"] = {"condition": {"param": "shown", "value": 1}, "value": 0.1}
    return spec


def _frame(title: str) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "anchor": "start"},
        "width": "container",
        "height": 300,
        "config": {"font": "sans-serif", "view": {"stroke": None}, "background": "white"},
    }


def _quantity(field: str, title: str, *, log: bool) -> dict[str, object]:
    scale = {"type": "log"} if log else {"zero": True}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def _colour(title: str | None) -> dict[str, object]:
    return {
        "field": "series",
        "type": "nominal",
        "title": title,
        "sort": None,
        "scale": {"range": PALETTE},
    }


def _tooltip(*fields: tuple[str, str]) -> list[dict[str, object]]:
    return [{"field": field, "title": title} for field, title in fields]


def _series(cell: CellResult, *, many_mixes: bool) -> str:
    size = format_block_size_kib(cell.block_size_bytes)
    return f"{format_mix(cell.read_percent)} {size} KiB" if many_mixes else size


def _positive(rows: Sequence[Row]) -> bool:
    """Whether a log axis can show all values."""
    values = [row["value"] for row in rows if isinstance(row["value"], int | float)]
    return bool(values) and all(value > 0 and math.isfinite(value) for value in values)


def rounds_of(section: SectionResult) -> tuple[RoundResult, ...]:
    """Only whole rounds can be compared."""
    return tuple(each for each in section.rounds if each.complete)
