"""Charts of numbers that no drive ever had, of any magnitude, length and number of names: each the same for its seed."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from tkperf.model.quantity import LATENCY_MAX, LATENCY_MEAN
from tkperf.render.charts.headlines import ratios_with_intervals, values_over_dates
from tkperf.render.charts.latency import draw_response_times, exceedance
from tkperf.render.charts.seconds import over_seconds
from tkperf.render.charts.vega import (
    build_chart,
    build_frame,
    colour,
    length_axis,
    quantity_axis,
)

Spec = dict[str, Any]
LETTERS = "abcdefg WMil0123456789./%&<"


def _number(chance: Random, low: float = -6, high: float = 9) -> float:
    digits = chance.choice([1, 2, 3, 6, 12])
    return float(f"{10 ** chance.uniform(low, high):.{digits}g}")


def _names(chance: Random) -> list[str]:
    lengths = [chance.randint(1, chance.choice([4, 12, 40])) for _ in range(chance.randint(1, 9))]
    return [
        "".join(chance.choices(LETTERS, k=length)) + str(number)
        for number, length in enumerate(lengths)
    ]


def _seconds(chance: Random) -> Spec:
    """From a second to two days, perhaps beginning later."""
    length_s, columns = 10 ** chance.uniform(0, 5.2), chance.choice([2, 5, 40, 200])
    base, begin_s = _number(chance, 0, 5), chance.choice([0, 0, chance.uniform(0, 1e6)])
    rows: list[Spec] = []
    for series in ("mean of a second", "maximum of a second"):
        for column in range(columns):
            value = base * math.exp(chance.gauss(0, 0.5))
            at_ms = 1000 * (begin_s + length_s * column / (columns - 1))
            row = {"t": round(at_ms, 3), "low": value * 0.7, "value": value, "high": value * 1.3}
            rows.append({**row, "series": series})
    window: list[Spec] = [{"from": begin_s * 1000, "to": (begin_s + length_s / 3) * 1000}]
    parts: list[Spec] = [
        {"t": (begin_s + length_s * part / 9) * 1000, "part": part + 1} for part in range(4)
    ]
    quantities = (LATENCY_MEAN, LATENCY_MAX)
    return over_seconds(rows, window, chance.choice([parts, []]), [], quantities, "t")


def _stream(chance: Random) -> Spec:
    """Curves over a length, some values not measured."""
    end, points, names = _number(chance, -1, 6), chance.choice([1, 3, 30, 300]), _names(chance)
    begin = chance.choice([0, 0, -end * chance.random()])
    rows: list[Spec] = [
        {
            "x": begin + end * point / max(1, points - 1),
            "value": _number(chance, 0, 4) if chance.random() < 0.95 else None,
            "series": name,
        }
        for point in range(points)
        for name in names
    ]
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "X",
        **length_axis(row["x"] for row in rows),
    }
    encoding: Spec = {
        "x": x,
        "y": quantity_axis(rows, "Y", log=chance.random() < 0.5),
        "color": colour(chance.choice([None, "Names"])),
    }
    return build_chart("t", rows, encoding, mark={"type": "line", "point": points < 60})


def _points(chance: Random) -> Spec:
    """Axes whose ends and ticks are left to Vega."""
    low, length = _number(chance, -3, 6) * chance.choice([1, 1, -1]), _number(chance, -3, 6)
    rows = [
        {"x": low + length * chance.random(), "value": low + length * chance.random()}
        for _ in range(12)
    ]
    scales: list[Spec] = [
        {}, {"zero": False}, {"nice": False}, {"zero": False, "nice": True}, {"type": "log"} if low > 0 else {},
        {"padding": 9, "zero": False, "nice": False},
    ]  # fmt: skip
    across: list[Spec] = [
        {"zero": False, "nice": True},
        {"zero": True},
        {"zero": False, "nice": False},
    ]
    channel = {"type": "quantitative", "title": "Title"}
    return {
        **build_frame("t"),
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
        "encoding": {
            "x": {**channel, "field": "x", "scale": chance.choice(across)},
            "y": {**channel, "field": "value", "scale": chance.choice(scales)},
        },
    }


def _dates(chance: Random) -> Spec:
    """From hours to decades."""
    length_ms, first_ms = 10 ** chance.uniform(4.5, 12), chance.uniform(0.5e12, 1.9e12)
    runs = chance.randint(2, 12)
    rows: list[Spec] = []
    for run in range(runs):
        value, known = _number(chance, 2, 3), chance.random() < 0.6
        low, high = (value * 0.9, value * 1.1) if known else (None, None)
        at_ms = float(int(first_ms + length_ms * run / (runs - 1)))
        rows.append({"t": at_ms, "value": value, "low": low, "high": high, "run": str(run)})
    ends = first_ms, first_ms + length_ms
    return values_over_dates(rows, None, ends, (), title="t", y_title="Y")


def _ratios(chance: Random) -> Spec:
    loads = [
        f"{one}, {other}: q" for one, other in zip(_names(chance), _names(chance), strict=False)
    ]
    runs, spread = ["A", "B", "C"][: chance.randint(1, 3)], chance.choice([0.05, 0.5, 3])
    rows: list[Spec] = []
    for load in loads:
        for run in runs:
            value = math.exp(chance.gauss(0, spread))
            low = value * 0.9 if chance.random() < 0.8 else None
            tone = chance.choice(["better", "worse", ""])
            row = {"load": load, "run": run, "value": value, "low": low, "high": value * 1.1}
            rows.append({**row, "tone": tone})
    return ratios_with_intervals(rows, list(dict.fromkeys(loads)), runs, "t", "Ratio")


def _buckets(chance: Random) -> Spec:
    """From one bucket to many, with gaps."""
    us, rows = _number(chance, -1, 3), []
    for _ in range(chance.choice([1, 2, 10, 200])):
        width = us / 64 * chance.choice([1, 1, 1, 2])
        count = chance.choice([1, 3, 50, 10 ** chance.randint(0, 7)])
        rows.append({"lower": us, "upper": us + width, "count": count})
        us += width * chance.choice([1, 1, 1, 5])
    middle, last = rows[len(rows) // 2]["lower"], rows[-1]["upper"]
    marks: list[Spec] = [{"us": middle, "label": "ART"}, {"us": last, "label": "MRT"}]
    return chance.choice([draw_response_times, exceedance])(rows, marks, "t")


KINDS = (_seconds, _stream, _points, _dates, _ratios, _buckets)


def make_up_chart(seed: int) -> Spec:
    """One of the kinds in turn."""
    return KINDS[seed % len(KINDS)](Random(seed))
