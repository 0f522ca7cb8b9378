"""Charts of the drives' own reports, below the charts of their work, on the same time axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tkperf.analysis.telemetry import DriveCourse, TelemetryCourse
from tkperf.render.charts.labels import with_legend_on_top
from tkperf.render.charts.vega import MANY_COLOURS, Row, Spec, build_frame, linear_axis, tooltip

HEIGHT = 170
# Width of an axis's labels: charts below each other begin at the same place.
AXIS_PX = 64
WARM, HOT = "#B08F2E", "#C94A16"
# A drive of constant temperature has a level line, without magnification.
LEAST_SPAN_C = 10.0
MOST_DOTTED = 120


def align(spec: Spec, from_s: float, to_s: float, unit_s: float) -> Spec:
    """Return a chart over time, drawn so that another one with the same times fits below it."""
    config = spec["config"]
    assert isinstance(config, dict)
    axis = {**config.get("axisYQuantitative", {}), "minExtent": AXIS_PX}
    legend = {**config["legend"], "orient": "top"}
    aligned = with_legend_on_top(spec) | {
        "config": config | {"axisYQuantitative": axis, "legend": legend}
    }
    encoding = aligned.get("encoding")
    if isinstance(encoding, dict) and isinstance(encoding.get("x"), dict):
        channel = encoding["x"]
        scale = {"nice": False, "domain": [from_s / unit_s, to_s / unit_s]}
        aligned["encoding"] = encoding | {"x": channel | {"scale": scale}}
    return aligned


def temperature(course: TelemetryCourse, title: str, unit: str, unit_s: float) -> Spec:
    """Draw the temperatures with the drives' own limits; shaded while a drive was throttled."""
    rows: list[Row] = [
        {"x": at_s / unit_s, "value": celsius, "series": drive.facts.drive}
        for drive in course.drives
        for at_s, celsius in drive.temperatures
    ]
    scale = linear_axis(_reached(rows, course.drives), zero=False)
    return _chart(
        course,
        title,
        unit,
        unit_s,
        [drive.facts.drive for drive in course.drives if drive.temperatures],
        [
            *_throttled(course, unit_s),
            *_limits(course.drives, scale),
            *_lines(rows, "Temperature (°C)", unit, scale),
        ],
    )


def written(course: TelemetryCourse, title: str, unit: str, unit_s: float) -> Spec:
    """Draw the bytes that the host wrote and the bytes that went to the flash, by the drives' counters."""
    rows: list[Row] = []
    names = []
    for drive in course.drives:
        for what, amount in (("host", "host_bytes"), ("flash", "nand_bytes")):
            name = what if len(course.drives) == 1 else f"{drive.facts.drive} {what}"
            found = [
                {"x": at_s / unit_s, "value": part.megabytes_per_s(bytes_), "series": name}
                for part in drive.written
                if (bytes_ := getattr(part, amount)) is not None
                for at_s in (part.began_s, part.ended_s)
            ]
            names += [name] if found else []
            rows += found
    lines = _lines(rows, "Written (MB/s)", unit, _from_zero(rows))
    return _chart(course, title, unit, unit_s, names, lines)


def amplification(course: TelemetryCourse, title: str, unit: str, unit_s: float) -> Spec:
    """Draw the bytes to the flash for each of the host's, from reading to reading."""
    rows: list[Row] = [
        {"x": at_s / unit_s, "value": part.amplification, "series": drive.facts.drive}
        for drive in course.drives
        for part in drive.written
        if part.amplification is not None
        for at_s in (part.began_s, part.ended_s)
    ]
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    lines = _lines(rows, "Write amplification (flash/host)", unit, _from_zero(rows))
    return _chart(course, title, unit, unit_s, names, lines)


def _chart(
    course: TelemetryCourse,
    title: str,
    unit: str,
    unit_s: float,
    names: Sequence[str],
    layers: Sequence[Spec],
) -> Spec:
    colours = [MANY_COLOURS[number % len(MANY_COLOURS)] for number in range(len(names))]
    frame = build_frame(title) | {
        "height": HEIGHT,
        # Layers bring their own rows; a page looks here for any rows.
        "data": {"values": [{}]},
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "title": f"Time ({unit})",
            },
            "color": {
                "field": "series",
                "type": "nominal",
                "title": None,
                "sort": None,
                "scale": {"domain": list(names), "range": colours},
                "legend": {"orient": "top"} if len(names) > 1 else None,
            },
        },
        "layer": list(layers),
    }
    return align(frame, 0.0, course.length_s, unit_s)


def _reached(rows: list[Row], drives: Iterable[DriveCourse]) -> list[float]:
    """Return the values that an axis of temperatures has to reach, with the drives' own limits."""
    temperatures = [value for row in rows if isinstance(value := row["value"], float | int)]
    if not temperatures:
        return []
    limits = [limit for each in drives for limit in (each.facts.warning_c, each.facts.critical_c)]
    temperatures += [limit for limit in limits if limit is not None]
    low, high = min(temperatures), max(temperatures)
    beyond = max(0.0, LEAST_SPAN_C - (high - low)) / 2
    return [low - beyond, high + beyond]


def _lines(rows: list[Row], axis: str, unit: str, scale: dict[str, object]) -> list[Spec]:
    y = {"field": "value", "type": "quantitative", "title": axis, **scale}
    tip = tooltip(("series", "Drive"), ("x", f"Time ({unit})"), ("value", axis))
    point = {"size": 18, "filled": True} if len(rows) <= MOST_DOTTED else False
    zoom: Row = {"type": "interval", "encodings": ["x"]}
    return [
        {
            "data": {"values": rows},
            "params": [{"name": "zoom", "select": zoom, "bind": "scales"}],
            "mark": {"type": "line", "strokeWidth": 1.6, "clip": True, "point": point},
            "encoding": {"y": y, "tooltip": tip},
        }
    ]


def _from_zero(rows: list[Row]) -> dict[str, object]:
    return linear_axis(row["value"] for row in rows)


def _throttled(course: TelemetryCourse, unit_s: float) -> list[Spec]:
    rows: list[Row] = [
        {"from": max(0.0, began_s) / unit_s, "to": min(course.length_s, ended_s) / unit_s}
        for drive in course.drives
        for began_s, ended_s in drive.throttled
        if began_s < course.length_s and ended_s > 0
    ]
    if not rows:
        return []
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "rect", "color": HOT, "opacity": 0.15},
            "encoding": {
                "x": {"field": "from", "type": "quantitative"},
                "x2": {"field": "to"},
                "color": {"value": HOT},
            },
        }
    ]


def _limits(drives: Iterable[DriveCourse], scale: dict[str, object]) -> list[Spec]:
    """Return a line for each limit that any of the drives has, on the same axis."""
    facts = [drive.facts for drive in drives]
    limits = [
        (celsius, words, colour)
        for values, words, colour in (
            ({limits.warning_c for limits in facts} - {None}, "warning", WARM),
            ({limits.critical_c for limits in facts} - {None}, "critical", HOT),
        )
        for celsius in sorted(value for value in values if value is not None)
    ]
    layers: list[Spec] = []
    for celsius, words, colour in limits:
        y = {"field": "value", "type": "quantitative", "title": "Temperature (°C)", **scale}
        values = [{"value": celsius, "text": f"{words} {celsius:g} °C"}]
        shown = {"y": y, "color": None, "x": {"value": 0}}
        layers += [
            {
                "data": {"values": values},
                "mark": {"type": "rule", "strokeDash": [6, 3]},
                "encoding": {"y": y, "color": {"value": colour}, "x": None},
            },
            {
                "data": {"values": values},
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "top",
                    "dx": 4,
                    "dy": 4,
                },
                "encoding": {**shown, "text": {"field": "text", "type": "nominal"}},
            },
        ]
    return layers
