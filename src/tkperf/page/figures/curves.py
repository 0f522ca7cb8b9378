"""Build curves of workloads with points, names, colours and dashes. All curves of a chart look different.

A block size, mix, demand or quantity has the same colour in every chart of every report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil, floor, log10

from tkperf.analysis.results import CellResult, SectionResult, SliceResult
from tkperf.analysis.uncertainty.spread import COVERED
from tkperf.analysis.workload_axes import BLOCKS, DEPTH, JOBS, MIX, Order, WorkloadAxis, place_of
from tkperf.model.figures import Figure
from tkperf.model.measurement import IoStats, places_of_extremes
from tkperf.model.quantity import (
    IOPS,
    LATENCY_MAX,
    LATENCY_MEAN,
    LATENCY_MIN,
    LATENCY_WITH_WAIT,
    PERCENTILES,
    THROUGHPUT,
    Direction,
    Quantity,
)
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES
from tkperf.model.units import KIB, NOT_MEASURED
from tkperf.model.workload import Workload
from tkperf.page.chart import (
    DASH_COUNT,
    PALETTE,
    Axis,
    Bucket,
    Chart,
    Curve,
    Distribution,
    Mark,
    Marked,
    Point,
    Scale,
    warmth,
)
from tkperf.page.naming import Naming, address, describe_quantities, name_in_choice
from tkperf.page.page import ChartView, Views
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import directions_of
from tkperf.page.words.uncertainty import Flagged, describe_flags, describe_interval, is_flagged

# The eight colours that are easiest to distinguish belong to the block sizes in the matrices of the specifications.
_BLOCK_SIZES = {
    512: "violet",
    1 * KIB: "crimson",
    2 * KIB: "olive",
    4 * KIB: "blue",
    8 * KIB: "sky",
    16 * KIB: "green",
    32 * KIB: "amber",
    64 * KIB: "pink",
    128 * KIB: "vermilion",
    256 * KIB: "slate",
    512 * KIB: "teal",
    1024 * KIB: "brown",
}
_MIXES = {
    100: "blue",
    95: "sky",
    90: "teal",
    70: "olive",
    65: "green",
    50: "amber",
    35: "pink",
    30: "slate",
    10: "crimson",
    5: "violet",
    0: "vermilion",
}
_DEMANDS = {
    1: "blue",
    2: "sky",
    4: "green",
    8: "amber",
    16: "pink",
    32: "vermilion",
    64: "violet",
    128: "brown",
    256: "crimson",
    512: "olive",
    1024: "slate",
    2048: "teal",
}
_PERCENTILE_COLOURS = ("brown", "sky", "olive", "green", "amber", "pink", "violet")
_QUANTITIES = {
    IOPS.key: "blue",
    THROUGHPUT.key: "blue",
    LATENCY_MEAN.key: "blue",
    LATENCY_MAX.key: "vermilion",
    LATENCY_MIN.key: "slate",
    **{each.key: colour for each, colour in zip(PERCENTILES, _PERCENTILE_COLOURS, strict=True)},
    LATENCY_WITH_WAIT.key: "brown",
}

SURE = f"Interval of {COVERED}"
"""The title of a fact about a point. The fact is the interval of the value."""


def describe_sure(cell: CellResult, quantity: Quantity) -> str:
    """Return the interval of the value of a cell, as a fact about a point. The text is a dash if the interval is not
    known.
    """
    known = cell.uncertainty_of(quantity)
    return describe_interval(cell.value(quantity), known, quantity.digits) or NOT_MEASURED


def flag(flagged: Flagged | None) -> str:
    """Return the reason why a result may not show the performance of the device alone. The text is empty if there is no
    such reason.
    """
    return "" if flagged is None else describe_flags(flagged)


def colour_quantity(quantity: Quantity) -> str:
    return _QUANTITIES.get(quantity.key, "blue")


def colour_values(axis: WorkloadAxis, workloads: Iterable[Workload]) -> dict[Order, str]:
    """Return a colour for each value of these workloads on an axis. The key is ``axis.order`` of the value.

    Each value that specifications use has a fixed colour. The other values receive the remaining colours. If there are
    more values than colours, the colours of all values lie on a scale from cold to warm.
    """
    values = {axis.order(work): work for work in workloads}
    if len(values) > len(PALETTE):
        return {order: warmth(place, len(values)) for place, order in enumerate(sorted(values))}
    known = {order: found for order, work in values.items() if (found := _find(axis, work))}
    left = [colour for colour in PALETTE if colour not in known.values()]
    others = sorted(values.keys() - known.keys())
    return known | dict(zip(others, left, strict=False))


def _find(axis: WorkloadAxis, work: Workload) -> str | None:
    if axis is BLOCKS:
        return None if work.block_mix else _BLOCK_SIZES.get(work.block_size_bytes)
    if axis is MIX:
        return _MIXES.get(work.read_percent)
    if axis in (DEPTH, JOBS):
        return _DEMANDS.get(work.io_depth if axis is DEPTH else work.jobs)
    return None


def style_curves(naming: Naming, workloads: Iterable[Workload], *, dashed: bool = True) -> dict[str, tuple[str, int]]:
    """Return the colour and the dash of each curve. The name of the curve is the key. The curves are in the order of
    the axes.

    Dash 0 is a solid line. If there is a single axis, each value has a colour. If there are several axes, colours show
    the axis with the most values, and dashes show all other differences. If there are too few dashes, each curve has
    its own colour. This colour is from the palette or, if there are more curves, from a scale between cold and warm.

    Args:
        dashed: whether the marks can have dashes. Bars cannot have dashes, so only colours distinguish bars.
    """
    of_names = {naming.name_of(workload): workload for workload in reversed(list(workloads))}
    main = max(naming.axes, key=lambda axis: (len({axis.order(work) for work in of_names.values()}), axis is BLOCKS))
    others = [axis for axis in naming.axes if axis is not main]
    names = sorted(of_names, key=lambda name: place_of(of_names[name], (*others, main)))
    colours = colour_values(main, of_names.values())
    kinds = sorted({place_of(of_names[name], others) for name in names})
    own = [colours[main.order(of_names[name])] for name in names]
    if len(kinds) == 1 and len(colours) <= len(PALETTE):
        return {name: (colour, 0) for name, colour in zip(names, own, strict=True)}
    if dashed and 1 < len(kinds) <= DASH_COUNT:
        dashes = [kinds.index(place_of(of_names[name], others)) for name in names]
        return {name: (colour, dash) for name, colour, dash in zip(names, own, dashes, strict=True)}
    few = len(names) <= len(PALETTE)
    return {
        name: (PALETTE[place], 0) if few else (warmth(place, len(names)), place % DASH_COUNT if dashed else 0)
        for place, name in enumerate(names)
    }


def build_curves(
    points: Iterable[tuple[Workload, Point]], naming: Naming, *, mark: Mark = Mark.LINE, facts: Sequence[str] = ()
) -> tuple[Curve, ...]:
    """Return a curve, or bars, for each name of these workloads.

    Args:
        naming: the names of the curves. If there are no axes, there is only one curve, which needs no name.
        facts: titles of the facts of the points.
    """
    of_names: dict[str, list[Point]] = {}
    loads: dict[str, Workload] = {}
    for work, point in points:
        name = naming.name_of(work) if naming.axes else ""
        loads.setdefault(name, work)
        of_names.setdefault(name, []).append(point)
    look: Mapping[str, tuple[str, int]] = (
        style_curves(naming, loads.values(), dashed=mark is Mark.LINE)
        if naming.axes and loads
        else {"": (PALETTE[0], 0)}
    )
    return tuple(
        Curve(
            name=name,
            label=naming.words(loads[name]) if name else "",
            points=tuple(of_names[name]),
            mark=mark,
            colour=colour,
            dash=dash,
            dots=mark is Mark.LINE,
            facts=tuple(facts),
        )
        for name, (colour, dash) in look.items()
        if name in of_names
    )


# The greatest number of slices that are drawn. All minutes of a day are drawn. For a longer stream, only the lowest and
# the highest of neighbouring slices are drawn. Otherwise the page of several days would become too large.
MOST_SLICES_DRAWN = 1500
# A combination has a chart for each stream and for the total. Each of these charts has fewer points, but the distance
# between neighbouring points is still less than two pixels.
_MOST_SLICES_OF_STREAM = 500
# The greatest number of points that a chart can show as separate dots.
MOST_DOTTED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAxis:
    """An x axis that a chart of a stream can use.

    Attributes:
        at: returns the place of a slice on the axis.
        unit_s: the unit of a time axis, in seconds; None for other axes.
    """

    title: str
    at: Callable[[SliceResult], float]
    unit_s: float | None = None


def over_time(lasted_s: float) -> StreamAxis:
    """Return the time axis for a stream with this duration in seconds."""
    unit, unit_s = find_time_unit(lasted_s)
    return StreamAxis(
        title=f"Time ({unit})", at=lambda each: (each.start_s + each.duration_s / 2) / unit_s, unit_s=unit_s
    )


def over_written(title: str, unit_bytes: float) -> StreamAxis:
    """Return the axis that shows the total amount written."""

    def place(slice_result: SliceResult) -> float:
        written_bytes = slice_result.total_written_bytes
        assert written_bytes is not None, "nothing is drawn over what is not known"
        return written_bytes / unit_bytes

    return StreamAxis(title=title, at=place)


TOTAL_WRITTEN = over_written("Total written (GB)", 1e9)


def drive_fills(capacity_bytes: float) -> StreamAxis:
    """Return the axis of the amount written, in multiples of the capacity."""
    return over_written("Drive fills", capacity_bytes)


def draw_stream(
    section: SectionResult,
    quantities: Sequence[Quantity],
    title: str,
    over: StreamAxis,
    *,
    workload: Workload | None = None,
    log: bool = False,
    directions: Sequence[tuple[Direction, str]] = ((Direction.ALL, ""),),
    link: str = "",
) -> Chart:
    """Return a chart that shows the values of the slices of a stream over time or over the amount written.

    Args:
        workload: a stream or its flushes; None for the whole load.
        directions: the directions for which a curve is drawn, each with the name of the curve.
        link: the key of the content that opens when a user clicks on a slice.
    """
    apart = len(directions) > 1
    several = apart or len(quantities) > 1
    last = section.slices[-1]
    end = over.at(last) if over.unit_s is None else last.end_s / over.unit_s
    # Every curve shows cells from this list. A day has thousands of cells, so they are listed only once.
    cells = [(each, cell, is_flagged(cell)) for each, cell in _cells_of_slices(section, workload)]
    most_drawn = find_most_drawn(section)
    curves = []
    for dash, (direction, words) in zip(cycle(range(DASH_COUNT)), directions, strict=False):
        for quantity in quantities:
            name = f"{quantity.short} of {words}" if apart else quantity.short
            points = tuple(
                Point(over.at(each), value, link=address(link, str(each.number)), flag=flag(cell), facts=(each.number,))
                for each, cell, value in _drawn_slices(cells, quantity, direction, most_drawn)
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
    cells: Iterable[tuple[SliceResult, CellResult, bool]], quantity: Quantity, direction: Direction, most: int
) -> Iterator[tuple[SliceResult, CellResult, float]]:
    """Yield a limited number of slices that a chart can show. The extremes and the flagged slices are included. Yield
    nothing if no slice has a value.

    Args:
        cells: each slice with its result, and whether this result is flagged.
    """
    measured = [
        (one, cell, is_marked, value)
        for one, cell, is_marked in cells
        if (value := cell.value(quantity, direction)) is not None
    ]
    extremes = places_of_extremes([value for *_, value in measured], most)
    marked = (place for place, (_, _, is_marked, _) in enumerate(measured) if is_marked)
    for place in sorted({*extremes, *marked}):
        one, cell, _, value = measured[place]
        yield one, cell, value


def _cells_of_slices(section: SectionResult, workload: Workload | None) -> Iterator[tuple[SliceResult, CellResult]]:
    """Yield each slice with the result of ``workload``, which is a stream or the flushes of a stream. If ``workload``
    is None, yield each slice with the result of the whole load.
    """
    if workload is None:
        yield from ((one, one.values) for one in section.slices)
        return
    # Comparing the keys is faster than comparing whole workloads. The keys of nearly all slices are in the same order.
    key, place = workload.part_key, 0
    for one in section.slices:
        cells = one.cells
        if place >= len(cells) or cells[place].workload.part_key != key:
            place = next((at for at, cell in enumerate(cells) if cell.workload.part_key == key), len(cells))
        if place < len(cells):
            yield one, cells[place]


def find_most_drawn(section: SectionResult) -> int:
    """Return the greatest number of slices that a chart of the section shows, in addition to the flagged slices."""
    is_combination = bool(section.slices) and section.slices[0].values.workload.is_combination
    return _MOST_SLICES_OF_STREAM if is_combination else MOST_SLICES_DRAWN


def find_time_unit(total_s: float) -> tuple[str, float]:
    """Return the unit that suits a duration, and the length of this unit in seconds."""
    if total_s > 7200:
        return "h", 3600.0
    return ("min", 60.0) if total_s > 300 else ("s", 1.0)


# Only percentiles of the tail are marked. A mark at the median would cover the mark at the mean, because both are close
# together.
MARKED_PERCENTILES = tuple(percent for percent in REPORTED_PERCENTILES if percent >= 99)
LEAST_MARK_RATIO = 1.05
BINS_A_DECADE = 40
"""The number of histogram bars for each power of ten. A bar covers 5.9 % of the response time, which corresponds to
several buckets of fio.
"""


def exceedance_points(buckets: Iterable[tuple[float, float, int]]) -> Iterator[tuple[float, float]]:
    """Yield the points of an exceedance curve. A point consists of the response time and the percentage of the I/Os
    that needed a longer time.

    The curve ends at the lower edge of the slowest bucket. Beyond this bucket the share is 0, and a logarithmic axis
    cannot show 0.

    Args:
        buckets: the lower edge, the upper edge and the number of I/Os of each bucket, in ascending order.
    """
    filled = tuple(buckets)
    total = beyond = sum(count for _, _, count in filled)
    for lower, upper, count in filled:
        yield lower, 100 * beyond / total
        beyond -= count
        if beyond:
            yield upper, 100 * beyond / total


def find_buckets(whole: IoStats) -> tuple[Bucket, ...]:
    """Return the buckets that contain I/Os, with edges in µs."""
    return tuple(Bucket(lower / 1000, (upper + 1) / 1000, count) for lower, upper, count in whole.histogram.buckets())


def _percentile(percent: float) -> Callable[[IoStats], float | None]:
    return lambda whole: whole.percentile_ns(percent)


# The mean, the percentiles and the maximum. Each entry contains the name of the value, and a function that returns the
# value in ns.
LATENCY_MARKS: tuple[tuple[str, Callable[[IoStats], float | None]], ...] = (
    ("ART", lambda whole: whole.latency_mean_ns),
    *((f"{percent:g} %", _percentile(percent)) for percent in MARKED_PERCENTILES),
    ("MRT", lambda whole: whole.latency_max_ns),
)


def find_marks(whole: IoStats) -> tuple[Marked, ...]:
    """Return the known values of the mean (ART), the percentiles and the maximum (MRT), in µs.

    If marks are too close together to be distinguished, they share one label at the last of these marks.
    """
    values_ns = ((name, mark(whole)) for name, mark in LATENCY_MARKS)
    marks_us = sorted((value / 1000, name) for name, value in values_ns if value is not None)
    marks: list[Marked] = []
    waiting: list[str] = []
    for number, (us, name) in enumerate(marks_us):
        waiting.append(name)
        apart = number + 1 == len(marks_us) or marks_us[number + 1][0] > us * LEAST_MARK_RATIO
        label = ", ".join(waiting) if len(waiting) < 3 else f"{waiting[0]} ... {waiting[-1]}"
        marks.append(Marked(name, us, label if apart else ""))
        waiting = [] if apart else waiting
    return tuple(marks)


def spread_in_bins(buckets: Sequence[tuple[float, float, int]], per_decade: int) -> tuple[int, list[float]]:
    """Return the number of the first bin, and the number of I/Os in each bin. All bins have the same logarithmic width.

    Bin n extends from 10^(n / per_decade) µs to the start of the next bin. The I/Os of a bucket are distributed evenly
    over the logarithmic width of the bucket.

    Args:
        buckets: the lower edge and the upper edge in µs, and the number of I/Os.
        per_decade: the number of bins for each power of ten.
    """
    bins: dict[int, float] = {}
    for lower_us, upper_us, ios in buckets:
        # Times below 1 ns are counted as 1 ns, because 0 has no logarithm.
        low, high = (log10(max(edge, 1e-3)) * per_decade for edge in (lower_us, upper_us))
        if high <= low:
            bins[floor(low)] = bins.get(floor(low), 0.0) + ios
            continue
        for number in range(floor(low), ceil(high)):
            within = min(high, number + 1) - max(low, number)
            bins[number] = bins.get(number, 0.0) + ios * within / (high - low)
    first, last = min(bins), max(bins)
    return first, [bins.get(number, 0.0) for number in range(first, last + 1)]


def show_histogram(shown: ShownSection, figure: Figure) -> Views:
    text = (
        f"All I/Os by response time: bars of equal logarithmic width, {BINS_A_DECADE} to a decade. Curve: the share "
        "that "
        "took no longer (confidence level), exact at the edges of buckets of 1/64 of the response time or less. "
        "Marked: average (ART), percentiles, maximum (MRT)."
    )
    title = figure.title or "Response time histogram"
    yield from _distribution(shown, figure, "rth", title, text)


def show_exceedance(shown: ShownSection, figure: Figure) -> Views:
    text = "The share of all I/Os that took longer than a response time."
    title = figure.title or "Exceedance"
    yield from _distribution(shown, figure, "exceedance", title, text, exceedance=True)


def _distribution(
    shown: ShownSection, figure: Figure, key: str, title: str, text: str, *, exceedance: bool = False
) -> Views:
    for detail in shown.details.values():
        # If different loads had a common distribution of response times, this distribution would describe none of these
        # loads.
        if detail.workload.is_combination:
            continue
        directions = directions_of(detail.workload, apart=figure.apart)
        # For a mix, the reads and the writes are shown separately. Their common distribution is not shown.
        directions = directions[:-1] or directions
        for direction, words in directions:
            stats = detail.stats_of(direction)
            load = name_in_choice(detail.workload)
            of = f"{words} of {load}" if figure.apart else load
            if buckets := find_buckets(stats):
                chart = Distribution(
                    title=f"{title}: {of}",
                    buckets=buckets,
                    marks=find_marks(stats),
                    exceedance=exceedance,
                    flags=tuple(dict.fromkeys(filter(None, map(flag, detail.counted)))),
                )
                choice: tuple[str, ...] = (load,) if len(shown.details) > 1 else ()
                choice += (words,) if len(directions) > 1 else ()
                yield ChartView(key=key, text=text, chart=chart, choice=choice)
