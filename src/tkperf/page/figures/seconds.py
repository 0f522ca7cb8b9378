"""Every second of a cell as a chart: minimum, mean and maximum of as many parts as a plot has columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from tkperf.analysis.details import CellDetail
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MEAN, Quantity
from tkperf.model.seconds import FloatArray, Seconds, reduce_to_columns
from tkperf.page.chart import (
    Axis,
    Chart,
    Curve,
    Legend,
    Point,
    Rule,
    RuleKind,
    Scale,
    Shade,
    ShadeKind,
)
from tkperf.page.figures.curves import colour_quantity, flag
from tkperf.page.naming import describe_quantities

# More columns than a page has dots across would only make files larger.
COLUMNS = 400
# The PTS allows as many rounds; more lines between them would hide the curve.
MOST_MARKED_PARTS = 25
_RECORDED = {field.name for field in fields(Seconds)}
LATENCIES_OF_SECONDS = (LATENCY_MEAN, LATENCY_MAX)


def find_recorded(quantities: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Return the quantities that the run keeps for every second."""
    return tuple(quantity for quantity in quantities if quantity.key in _RECORDED)


def draw_seconds(detail: CellDetail, quantities: Sequence[Quantity], title: str) -> Chart:
    """Return quantities over time, each point with the extremes of the seconds that it represents."""
    seconds = detail.seconds
    curves = tuple(
        _curve(
            quantity,
            reduce_points(
                quantity, seconds.start_s, getattr(seconds, quantity.key), unit_s=0.001, digits=3
            ),
        )
        for quantity in reversed(quantities)
    )
    marks = (*find_judged(detail), *find_flagged(detail))
    return _chart(quantities, title, curves, marks, find_part_starts(detail))


def draw_any_seconds(quantities: Sequence[Quantity], title: str) -> Chart:
    """Return a chart of every second without data: the page brings those of any cell."""
    shades = (
        Shade(kind=ShadeKind.JUDGED, begin=0, end=0),
        Shade(kind=ShadeKind.FLAGGED, begin=0, end=0, text=" "),
    )
    parts = (Rule(kind=RuleKind.PART, x=0, name=" "),)
    empty = (Point(0, None, 0, 0),)
    curves = tuple(_curve(quantity, empty) for quantity in reversed(quantities))
    return _chart(quantities, title, curves, shades, parts, filled=False)


def _chart(
    quantities: Sequence[Quantity],
    title: str,
    curves: tuple[Curve, ...],
    shades: tuple[Shade, ...],
    parts: tuple[Rule, ...],
    *,
    filled: bool = True,
) -> Chart:
    log = quantities[0].unit == LATENCY_MEAN.unit
    return Chart(
        title=title,
        x=Axis(title="Time (h:mm:ss)", scale=Scale.CLOCK),
        y=Axis(title=describe_quantities(quantities), scale=Scale.LOG if log else Scale.LINEAR),
        curves=curves,
        shades=shades,
        rules=parts,
        legend=Legend.TOP,
        filled=filled,
    )


def _curve(quantity: Quantity, points: tuple[Point, ...]) -> Curve:
    name = quantity.short
    if quantity.unit == LATENCY_MEAN.unit:
        name = f"{quantity.label.removesuffix(' latency')} of a second"
    colour = colour_quantity(quantity)
    return Curve(name=name, points=points, colour=colour, column=quantity.key)


def reduce_points(
    quantity: Quantity,
    at_s: FloatArray,
    values: FloatArray,
    *,
    unit_s: float,
    digits: int,
    columns: int = COLUMNS,
) -> tuple[Point, ...]:
    """Return as many points as a plot has columns, each with the extremes of the values that it represents.

    Args:
        unit_s, digits: unit and precision of the points' times.
    """
    reduced = reduce_to_columns(at_s, values, columns)
    # The curve of maxima has the maximum of each column: a mean of maxima would mean nothing.
    line = reduced.high if quantity is LATENCY_MAX else reduced.mean
    of_points = (reduced.at_s / unit_s, line, reduced.low, reduced.high)
    return tuple(
        Point(round(at, digits), value, low, high)
        for at, value, low, high in zip(*(column.tolist() for column in of_points), strict=True)
    )


def find_judged(detail: CellDetail) -> tuple[Shade, ...]:
    """Return the parts in the verdict's window, in ms."""
    return tuple(
        Shade(kind=ShadeKind.JUDGED, begin=1000 * part.start_s, end=1000 * part.end_s)
        for part in detail.parts
        if part.judged
    )


def find_flagged(detail: CellDetail) -> tuple[Shade, ...]:
    """Return the flagged parts, in ms."""
    return tuple(
        Shade(kind=ShadeKind.FLAGGED, begin=1000 * part.start_s, end=1000 * part.end_s, text=words)
        for part in detail.parts
        if (words := flag(part))
    )


def find_part_starts(detail: CellDetail) -> tuple[Rule, ...]:
    """Return the start of each part, in ms; empty for a single part, or for too many to distinguish."""
    return tuple(_parts(detail)) if 1 < len(detail.parts) <= MOST_MARKED_PARTS else ()


def _parts(detail: CellDetail) -> Iterator[Rule]:
    for part in detail.parts:
        yield Rule(kind=RuleKind.PART, x=1000 * part.start_s, name=str(part.number))
