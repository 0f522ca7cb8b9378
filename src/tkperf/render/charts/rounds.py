"""Charts of rounds, cells and slices: convergence, steady-state window, means, streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import isclose, isfinite
from types import MappingProxyType

from tkperf.analysis.axes import BLOCKS, Axis, find_axes
from tkperf.analysis.results import CellResult, SectionResult, SliceResult
from tkperf.model.quantity import IOPS, Direction, Quantity
from tkperf.model.seconds import places_of_extremes
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import unit_for_people
from tkperf.model.workload import Workload
from tkperf.page.naming import Naming, describe_together, find_naming
from tkperf.page.words.flags import is_flagged
from tkperf.render.charts.colours import colour_quantity
from tkperf.render.charts.curves import build_curves, name_ends, style_curves
from tkperf.render.charts.flagged import flag
from tkperf.render.charts.labels import name_curves
from tkperf.render.charts.vega import (
    DASHES,
    NEUTRAL,
    PALETTE,
    SURE,
    Row,
    Spec,
    build_chart,
    build_frame,
    length_axis,
    linear_axis,
    name_channel,
    quantity_axis,
    sure,
    tooltip,
)


def convergence(
    section: SectionResult,
    quantity: Quantity,
    title: str,
    *,
    read_percents: Sequence[int] | None = None,
    most_threads: bool = False,
    log: bool = False,
    links: Mapping[Workload, str] = MappingProxyType({}),
) -> Spec:
    """Draw a quantity over the rounds, a curve for each workload of these mixes.

    Args:
        links: the key of each workload's cell; a point opens its round of the cell.
    """
    shown = shown_over_rounds(section, read_percents, most_threads=most_threads)
    naming = find_naming(shown)
    rows: list[Row] = [
        {
            "round": round_result.number,
            "value": cell.value(quantity),
            "series": naming.of(cell.workload),
            "cell": links.get(cell.workload, ""),
            **flag(cell),
        }
        for round_result in section.rounds
        for cell in round_result.cells
        if cell.workload in shown
    ]
    return build_chart(
        title,
        rows,
        {
            "x": {"field": "round", "type": "ordinal", "title": "Round", "axis": {"labelAngle": 0}},
            "y": quantity_axis(rows, quantity.title, log=log),
            **style_curves(naming, shown),
            "tooltip": tooltip(("series", "Series"), ("round", "Round"), ("value", quantity.title)),
        },
        mark={"type": "line", "point": True},
        words=name_ends(naming, shown),
    )


def naming_over_rounds(
    section: SectionResult, read_percents: Sequence[int] | None, *, most_threads: bool = False
) -> Naming:
    """Return the names that tell the curves of these mixes apart."""
    return find_naming(shown_over_rounds(section, read_percents, most_threads=most_threads))


def shown_over_rounds(
    section: SectionResult, read_percents: Sequence[int] | None, *, most_threads: bool
) -> tuple[Workload, ...]:
    """Return the workloads of these mixes, in their order; ``most_threads`` keeps only the largest thread count."""
    measured = dict.fromkeys(
        cell.workload
        for round_result in section.rounds
        for cell in round_result.cells
        if read_percents is None or cell.workload.read_percent in read_percents
    )
    most = max((workload.jobs for workload in measured), default=0)
    return tuple(workload for workload in measured if workload.jobs == most or not most_threads)


def steady_state_window(
    verdict: SteadyStateVerdict,
    title: str,
    x_title: str = "Round",
    tracked: Mapping[int, CellResult] = MappingProxyType({}),
    links: Mapping[Workload, str] = MappingProxyType({}),
) -> Spec:
    """Draw the tracking variable in the window, its average, 110 % and 90 % lines and best fit.

    Args:
        tracked: the cell of each round or slice, as ``tracked_cells`` returns them.
        links: the key of each workload's cell; a point opens its round or slice of the cell.
    """
    first, last = verdict.rounds[0], verdict.rounds[-1]
    edges = {
        "average": (verdict.average, verdict.average),
        "110 % of average": (1.1 * verdict.average, 1.1 * verdict.average),
        "90 % of average": (0.9 * verdict.average, 0.9 * verdict.average),
    }
    if verdict.fit is not None:
        edges["best linear fit"] = (verdict.fit.at(first), verdict.fit.at(last))
    # A window with an unmeasured round has no such lines.
    lines: list[Row] = [
        {"round": number, "value": value, "series": name}
        for name, ends in edges.items()
        if isfinite(ends[0])
        for number, value in zip((first, last), ends, strict=True)
    ]
    points: list[Row] = [
        {
            "round": number,
            "value": value,
            "series": "measured",
            "cell": links.get(tracked[number].workload, "") if number in tracked else "",
            **flag(tracked.get(number)),
        }
        for number, value in zip(verdict.rounds, verdict.values, strict=True)
        if isfinite(value)
    ]
    x: Spec = {
        "field": "round",
        "type": "quantitative",
        "title": x_title,
        "axis": {"values": list(verdict.rounds), "format": "d"},
        "scale": {"domain": [first, last], "nice": False, "padding": 20},
    }
    drawn = [*lines, *points]
    unit = unit_for_people(verdict.unit)
    y_title = unit if unit == IOPS.unit else f"Tracked value ({unit})"
    y: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": y_title,
        **linear_axis((row["value"] for row in drawn), zero=False),
    }
    colours = name_channel(None, list(_LINES), list(_LINES.values()))
    encoding, labels = name_curves({"x": x, "y": y, "color": colours}, drawn, most=len(_LINES))
    tip = tooltip(("series", "Line"), ("round", x_title), ("value", y_title))
    return {
        **build_frame(title),
        "encoding": {**encoding, "tooltip": tip},
        "layer": [
            {"data": {"values": lines}, "mark": {"type": "line", "strokeDash": DASHES[1]}},
            {"data": {"values": points}, "mark": {"type": "line", "point": {"size": 60}}},
            *labels,
        ],
    }


# Places identify the lines, so all five have names next to the plot.
_LINES = {
    "measured": PALETTE[0],
    "average": PALETTE[1],
    "110 % of average": NEUTRAL,
    "90 % of average": NEUTRAL,
    "best linear fit": PALETTE[2],
}


def over_axis(
    cells: Sequence[CellResult],
    quantity: Quantity,
    title: str,
    *,
    log: bool = False,
    bars: bool = False,
    axis: str = "",
    links: Mapping[Workload, str] = MappingProxyType({}),
) -> Spec:
    """Draw a quantity over one axis of its workloads, a curve, or bars, for each value of the others.

    Args:
        links: the key of each workload's cell, which its point opens.
    """
    x, others = split_axes((cell.workload for cell in cells), axis)
    naming = Naming(axes=others)
    rows: list[Row] = [
        {
            "at": x.text(cell.workload),
            "value": cell.value(quantity),
            "sure": sure(cell, quantity),
            "series": naming.of(cell.workload),
            "cell": links.get(cell.workload, ""),
            **flag(cell),
        }
        for cell in cells
    ]
    places = sorted({x.order(cell.workload): x.text(cell.workload) for cell in cells}.items())
    fields = [("at", x.title), ("value", quantity.title), SURE]
    encoding: dict[str, object] = {
        "x": {
            "field": "at",
            "type": "ordinal",
            "title": x.title,
            "sort": [text for _, text in places],
            "axis": {"labelAngle": 0},
        },
        "y": quantity_axis(rows, quantity.title, log=log),
    }
    workloads = [cell.workload for cell in cells]
    return build_curves(title, rows, encoding, fields, naming, workloads, bars=bars)


def tracked_cells(section: SectionResult, verdict: SteadyStateVerdict) -> dict[int, CellResult]:
    """Return the cells behind a verdict's values, by their round or slice, as far as the values identify them."""
    of_number = {each.number: (each.values,) for each in section.slices} | {
        each.number: each.cells for each in section.rounds
    }
    return {
        number: cell
        for number, value in zip(verdict.rounds, verdict.values, strict=True)
        for cell in of_number.get(number, ())
        if any(isclose(value, other) for other in cell.all.values() if other is not None)
    }


def split_axes(workloads: Iterable[Workload], axis: str = "") -> tuple[Axis, tuple[Axis, ...]]:
    """Return the x axis of a chart of cells, and the other axes.

    The x axis is the one with the requested key, otherwise the block size, or the first axis if that does not differ.
    """
    axes = find_axes(workloads) or (BLOCKS,)
    asked = (candidate for candidate in axes if candidate.key == axis)
    x = next(asked, BLOCKS if BLOCKS in axes else axes[0])
    return x, tuple(axis for axis in axes if axis is not x)


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """An x axis of a stream's charts: ``at`` places a slice; the unit of time depends on the stream's length."""

    title: str
    at: Callable[[SliceResult], float]


TIME = Over(
    title="Time", at=lambda slice_result: slice_result.start_s + slice_result.duration_s / 2
)
TOTAL_WRITTEN = Over(
    title="Total written (GB)", at=lambda slice_result: _written_bytes(slice_result) / 1e9
)


def drive_fills(capacity_bytes: float) -> Over:
    """Return the axis of the amount written in multiples of the capacity."""
    return Over(
        title="Drive fills", at=lambda slice_result: _written_bytes(slice_result) / capacity_bytes
    )


def _written_bytes(slice_result: SliceResult) -> int:
    assert slice_result.total_written_bytes is not None, "nothing is drawn over what is not known"
    return slice_result.total_written_bytes


# A day of minutes fits in full. A longer stream has only the lowest and the highest of neighbours, or the page
# of several days gets heavy.
MOST_SLICES_DRAWN = 1500


def stream(
    section: SectionResult,
    quantities: Sequence[Quantity],
    title: str,
    *,
    over: Over = TIME,
    log: bool = False,
    directions: Sequence[tuple[Direction, str]] = ((Direction.ALL, ""),),
    link: str = "",
) -> Spec:
    """Draw values of a stream's slices over time, or over the amount written.

    Args:
        directions: a curve for each, with its name.
        link: the key that a click on a slice opens.
    """
    apart = len(directions) > 1
    unit_s, x_title = 1.0, over.title
    if over is TIME:
        unit, unit_s = stream_unit(section)
        x_title = f"{over.title} ({unit})"
    rows: list[Row] = []
    style: dict[str, tuple[str, Sequence[int]]] = {}
    for dash, (direction, words) in zip(cycle(DASHES), directions, strict=False):
        for quantity in quantities:
            name = f"{quantity.short} of {words}" if apart else quantity.short
            style[name] = colour_quantity(quantity.key), dash
            rows += [
                {
                    "x": over.at(slice_result) / unit_s,
                    "value": value,
                    "series": name,
                    "slice": slice_result.number,
                    "cell": link,
                    **flag(slice_result.values),
                }
                for slice_result, value in _drawn_slices(section, quantity, direction)
            ]
    y_title = describe_together(quantities)
    last = section.slices[-1]
    end = last.start_s + last.duration_s if over is TIME else over.at(last)
    x_scale = length_axis([end / unit_s, *(row["x"] for row in rows)])
    encoding: dict[str, object] = {
        "x": {"field": "x", "type": "quantitative", "title": x_title, **x_scale},
        "y": quantity_axis(rows, y_title, log=log),
        "tooltip": tooltip(
            ("series", "Series"), ("slice", "Slice"), ("x", x_title), ("value", y_title)
        ),
    }
    if len(style) > 1:
        colours, dashes = zip(*style.values(), strict=True)
        encoding["color"] = name_channel(None, list(style), colours)
        if apart:
            encoding["strokeDash"] = name_channel(None, list(style), dashes)
    mark: Row = {"type": "line", "color": PALETTE[0], "point": len(section.slices) <= 60}
    return build_chart(title, rows, encoding, mark=mark)


def _drawn_slices(
    section: SectionResult, quantity: Quantity, direction: Direction
) -> Iterator[tuple[SliceResult, float]]:
    """Yield as many slices as a chart can show, with the extremes and the flagged ones; none without a value."""
    measured = [
        (slice_result, value)
        for slice_result in section.slices
        if (value := slice_result.values.value(quantity, direction)) is not None
    ]
    extremes = places_of_extremes([value for _, value in measured], MOST_SLICES_DRAWN)
    marked = (place for place, (each, _) in enumerate(measured) if is_flagged(each.values))
    for place in sorted({*extremes, *marked}):
        yield measured[place]


def stream_unit(section: SectionResult) -> tuple[str, float]:
    """Return the unit of the time axis of a stream's charts, and its length in seconds."""
    last = section.slices[-1]
    return find_time_unit(last.start_s + last.duration_s)


def find_time_unit(total_s: float) -> tuple[str, float]:
    """Return the unit that suits a length of time, and its length in seconds."""
    if total_s > 7200:
        return "h", 3600.0
    return ("min", 60.0) if total_s > 300 else ("s", 1.0)
