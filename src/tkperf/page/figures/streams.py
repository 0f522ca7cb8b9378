"""Streams as charts: values of their slices over time, or over the amount written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from tkperf.analysis.results import SectionResult, SliceResult
from tkperf.model.quantity import Direction, Quantity
from tkperf.model.seconds import places_of_extremes
from tkperf.page.chart import DASH_COUNT, Axis, Chart, Curve, Point, Scale
from tkperf.page.figures.curves import colour_quantity, flag
from tkperf.page.naming import address, describe_quantities
from tkperf.page.words.uncertainty import is_flagged

# A day of minutes fits in full. A longer stream has only the lowest and the highest of neighbours, or the page
# of several days gets heavy.
MOST_SLICES_DRAWN = 1500
# Number of points that a chart can show apart.
MOST_DOTTED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAxis:
    """An x axis of a stream's charts: ``at`` places a slice, ``unit_s`` is the unit of time, if it is of time."""

    title: str
    at: Callable[[SliceResult], float]
    unit_s: float | None = None


def over_time(lasted_s: float) -> StreamAxis:
    """Return the axis of time of a stream that lasted so long."""
    unit, unit_s = find_time_unit(lasted_s)
    return StreamAxis(
        title=f"Time ({unit})", at=lambda each: (each.start_s + each.duration_s / 2) / unit_s, unit_s=unit_s
    )


def over_written(title: str, unit_bytes: float) -> StreamAxis:
    """Return the axis of the total amount written."""

    def place(slice_result: SliceResult) -> float:
        written_bytes = slice_result.total_written_bytes
        assert written_bytes is not None, "nothing is drawn over what is not known"
        return written_bytes / unit_bytes

    return StreamAxis(title=title, at=place)


TOTAL_WRITTEN = over_written("Total written (GB)", 1e9)


def drive_fills(capacity_bytes: float) -> StreamAxis:
    """Return the axis of the amount written in multiples of the capacity."""
    return over_written("Drive fills", capacity_bytes)


def draw_stream(
    section: SectionResult,
    quantities: Sequence[Quantity],
    title: str,
    over: StreamAxis,
    *,
    log: bool = False,
    directions: Sequence[tuple[Direction, str]] = ((Direction.ALL, ""),),
    link: str = "",
) -> Chart:
    """Return values of a stream's slices over time, or over the amount written.

    Args:
        directions: a curve for each, with its name.
        link: the key that a click on a slice opens.
    """
    apart = len(directions) > 1
    several = apart or len(quantities) > 1
    last = section.slices[-1]
    end = over.at(last) if over.unit_s is None else last.end_s / over.unit_s
    curves = []
    for dash, (direction, words) in zip(cycle(range(DASH_COUNT)), directions, strict=False):
        for quantity in quantities:
            name = f"{quantity.short} of {words}" if apart else quantity.short
            points = tuple(
                Point(
                    over.at(each),
                    value,
                    link=address(link, str(each.number)),
                    flag=flag(each.values),
                    facts=(each.number,),
                )
                for each, value in _drawn_slices(section, quantity, direction)
            )
            curves.append(
                Curve(
                    name=name if several else "",
                    points=points,
                    colour=colour_quantity(quantity),
                    dash=dash,
                    dots=len(section.slices) <= MOST_DOTTED,
                    facts=("Slice",),
                )
            )
    return Chart(
        title=title,
        x=Axis(title=over.title, includes=(end,)),
        y=Axis(title=describe_quantities(quantities), scale=Scale.LOG if log else Scale.LINEAR),
        curves=tuple(curves),
    )


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


def find_time_unit(total_s: float) -> tuple[str, float]:
    """Return the unit that suits a length of time, and its length in seconds."""
    if total_s > 7200:
        return "h", 3600.0
    return ("min", 60.0) if total_s > 300 else ("s", 1.0)
