"""Draw charts over time: every second of a stream, and the timeline of a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from tkperf.analysis.details import CellDetail, LoadsOfTest, TimedStep
from tkperf.model.measurement import FloatArray, Seconds, reduce_to_columns
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MEAN, Quantity
from tkperf.page.chart import (
    DASH_COUNT,
    MANY_COLOURS,
    NEUTRAL,
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
from tkperf.page.figures.curves import colour_quantity, find_time_unit, flag
from tkperf.page.naming import describe_quantities

# If there were more columns than pixels across the plot, the files would only become larger.
COLUMNS = 400
# The PTS allows this number of rounds. If there were more rounds, the lines between the rounds would hide the curve.
MOST_MARKED_PARTS = 25
_RECORDED = {field.name for field in fields(Seconds)}
LATENCIES_OF_SECONDS = (LATENCY_MEAN, LATENCY_MAX)


def find_recorded(quantities: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Return the quantities for which the run records a value every second."""
    return tuple(quantity for quantity in quantities if quantity.key in _RECORDED)


def draw_seconds(detail: CellDetail, quantities: Sequence[Quantity], title: str) -> Chart:
    """Return a chart that shows quantities over time. Each point contains the extremes of the seconds that it
    represents.
    """
    seconds = detail.seconds
    curves = tuple(
        _curve(
            quantity, reduce_points(quantity, seconds.start_s, getattr(seconds, quantity.key), unit_s=0.001, digits=3)
        )
        for quantity in reversed(quantities)
    )
    marks = (*find_judged(detail), *find_flagged(detail))
    return _chart(quantities, title, curves, marks, find_part_starts(detail))


def draw_any_seconds(quantities: Sequence[Quantity], title: str) -> Chart:
    """Return a chart of every second, but without the data of the seconds. The page inserts the one-second samples of
    the cell on which the user clicked.
    """
    shades = (Shade(kind=ShadeKind.JUDGED, begin=0, end=0), Shade(kind=ShadeKind.FLAGGED, begin=0, end=0, text=" "))
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
    quantity: Quantity, at_s: FloatArray, values: FloatArray, *, unit_s: float, digits: int, columns: int = COLUMNS
) -> tuple[Point, ...]:
    """Return one point for each column of the plot. Each point contains the extremes of the values that it represents.

    Args:
        unit_s: the unit of the times of the points, in seconds.
        digits: the number of decimals in the times of the points.
    """
    reduced = reduce_to_columns(at_s, values, columns)
    # In the curve of maximum latencies, each column shows its maximum, because a mean of maxima has no meaning.
    line = reduced.high if quantity is LATENCY_MAX else reduced.mean
    of_points = (reduced.at_s / unit_s, line, reduced.low, reduced.high)
    return tuple(
        Point(round(at, digits), value, low, high)
        for at, value, low, high in zip(*(column.tolist() for column in of_points), strict=True)
    )


def find_judged(detail: CellDetail) -> tuple[Shade, ...]:
    """Return the parts in the window of the verdict as shades, with times in ms."""
    return tuple(
        Shade(kind=ShadeKind.JUDGED, begin=1000 * part.start_s, end=1000 * part.end_s)
        for part in detail.parts
        if part.judged
    )


def find_flagged(detail: CellDetail) -> tuple[Shade, ...]:
    """Return the flagged parts as shades, with times in ms."""
    return tuple(
        Shade(kind=ShadeKind.FLAGGED, begin=1000 * part.start_s, end=1000 * part.end_s, text=words)
        for part in detail.parts
        if (words := flag(part))
    )


def find_part_starts(detail: CellDetail) -> tuple[Rule, ...]:
    """Return a line at the start of each part, with times in ms. The result is empty if there is a single part, or if
    there are too many parts to distinguish.
    """
    return tuple(_parts(detail)) if 1 < len(detail.parts) <= MOST_MARKED_PARTS else ()


def _parts(detail: CellDetail) -> Iterator[Rule]:
    for part in detail.parts:
        yield Rule(kind=RuleKind.PART, x=1000 * part.start_s, name=str(part.number))


FILL = "preconditioning"
# Preconditioning always has the same colour, which does not depend on the sections.
_FILL_COLOUR = NEUTRAL
# A longer gap is caused by a pause or an interruption, because otherwise steps follow each other within milliseconds.
LEAST_GAP_S = 1.0
# The greatest number of points that a chart can show as separate dots.
MOST_DOTTED = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The loads that form one line of a chart. The times in the chart are counted from ``origin_s``."""

    name: str
    loads: tuple[TimedStep, ...]
    origin_s: float = 0.0


def stretches_by_section(loads: LoadsOfTest, origin_s: float = 0.0) -> tuple[Stretch, ...]:
    """Return a line of a chart for each group of loads that follow each other in one section. The line has the name of
    the section. The line of a fill is named after preconditioning.
    """
    return tuple(
        Stretch(name=FILL if stretch[0].is_fill else stretch[0].step.section, loads=stretch, origin_s=origin_s)
        for stretch in loads.stretches()
    )


def draw_test(
    stretches: Sequence[Stretch],
    quantities: Sequence[Quantity],
    title: str,
    *,
    log: bool = False,
    order: Sequence[str] = (),
    from_s: float | None = None,
    to_s: float | None = None,
) -> Chart:
    """Return a chart that shows quantities over the time of a test. Each point contains the extremes of the values that
    it represents.

    Args:
        order: names in the order of their colours. Names that are not listed receive the colours that follow.
        from_s, to_s: the part of the time that is drawn; None for the beginning and the end of the test.
    """
    begin_s, end_s = _span(stretches, from_s, to_s)
    unit, unit_s = find_time_unit(end_s - begin_s)
    colours = _colours([each.name for each in stretches], order)
    curves = [
        Curve(
            name=stretch.name,
            points=points,
            colour=colours[stretch.name],
            dash=dash % DASH_COUNT,
            variant=quantity.label if len(quantities) > 1 else "",
        )
        for stretch in _without_gaps(stretches, (end_s - begin_s) / COLUMNS)
        for dash, quantity in enumerate(quantities)
        if (points := _points(stretch, quantity, begin_s, end_s, unit_s))
    ]
    few = sum(len(curve.points) for curve in curves) <= MOST_DOTTED
    return Chart(
        title=title,
        x=Axis(title=f"Time ({unit})", domain=(begin_s / unit_s, end_s / unit_s)),
        y=Axis(title=describe_quantities(quantities), scale=Scale.LOG if log else Scale.LINEAR),
        curves=tuple(replace(curve, dots=few) for curve in curves),
        shades=tuple(_flagged(stretches, begin_s, end_s, unit_s)),
        series_word="Section",
        legend=Legend.TOP,
    )


def _without_gaps(stretches: Sequence[Stretch], column_s: float) -> Iterator[Stretch]:
    """Yield the lines of a chart. A line is divided at each gap in the measurements that is wide enough to be visible
    in the chart.
    """
    for stretch in stretches:
        for loads in LoadsOfTest(loads=stretch.loads).without_gaps(max(LEAST_GAP_S, column_s)):
            yield replace(stretch, loads=loads)


def _span(stretches: Sequence[Stretch], from_s: float | None, to_s: float | None) -> tuple[float, float]:
    """Return the first and the last time that is drawn, in seconds."""
    starts_s = [stretch.loads[0].start_s - stretch.origin_s for stretch in stretches]
    ends_s = [stretch.loads[-1].end_s - stretch.origin_s for stretch in stretches]
    return (
        min(starts_s, default=0.0) if from_s is None else from_s,
        max(ends_s, default=0.0) if to_s is None else to_s,
    )


def _colours(names: Sequence[str], order: Sequence[str]) -> dict[str, str]:
    """Return a colour for each name. Preconditioning always has the same colour, which does not depend on the
    sections.
    """
    places = [name for name in dict.fromkeys((*order, *names)) if name != FILL]
    return {
        name: _FILL_COLOUR if name == FILL else MANY_COLOURS[places.index(name) % len(MANY_COLOURS)] for name in names
    }


def _flagged(stretches: Sequence[Stretch], begin_s: float, end_s: float, unit_s: float) -> Iterator[Shade]:
    """Yield a shade for each flagged load that is visible in the chart."""
    for stretch in stretches:
        for load in stretch.loads:
            start_s, stop_s = load.start_s - stretch.origin_s, load.end_s - stretch.origin_s
            if stop_s > begin_s and start_s < end_s and (found := flag(load)):
                yield Shade(
                    kind=ShadeKind.FLAGGED,
                    begin=max(begin_s, start_s) / unit_s,
                    end=min(end_s, stop_s) / unit_s,
                    text=found,
                )


def _points(stretch: Stretch, quantity: Quantity, begin_s: float, end_s: float, unit_s: float) -> tuple[Point, ...]:
    """Return the points of a line of a chart. Their number is limited to the number of columns that the line covers in
    the plot.
    """
    at_s, values = _series(stretch, quantity, (end_s - begin_s) / COLUMNS)
    within = (at_s >= begin_s) & (at_s <= end_s)
    at_s, values = at_s[within], values[within]
    if not values.size:
        return ()
    share = (at_s[-1] - at_s[0]) / (end_s - begin_s or 1.0)
    columns = max(2, round(COLUMNS * share))
    return reduce_points(quantity, at_s, values, unit_s=unit_s, digits=6, columns=columns)


def _series(stretch: Stretch, quantity: Quantity, column_s: float) -> tuple[FloatArray, FloatArray]:
    """Return the times and the values of a line. If the run contains one-second samples, a load that is longer than a
    column has a value for each second. Any other load has one value.
    """
    by_second = bool(find_recorded((quantity,)))
    times: list[FloatArray] = []
    values: list[FloatArray] = []
    for load in stretch.loads:
        start_s = load.start_s - stretch.origin_s
        if by_second and len(load.seconds) and load.end_s - load.start_s > column_s:
            middle_s = load.seconds.start_s + load.seconds.duration_s / 2
            times.append(start_s + middle_s)
            values.append(getattr(load.seconds, quantity.key))
        elif (value := load.value(quantity)) is not None:
            times.append(np.array([start_s + (load.end_s - load.start_s) / 2]))
            values.append(np.array([value]))
    if not times:
        return np.empty(0), np.empty(0)
    return np.concatenate(times), np.concatenate(values)
