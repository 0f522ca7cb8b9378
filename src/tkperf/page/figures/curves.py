"""Curves of workloads: their points, names, colours and dashes, no two of them alike.

Each block size, mix, demand and quantity has the same colour in every chart, of any report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tkperf.analysis.results import CellResult
from tkperf.analysis.uncertainty.spread import COVERED
from tkperf.analysis.workload_axes import BLOCKS, DEPTH, JOBS, MIX, Order, WorkloadAxis, place_of
from tkperf.model.quantity import IOPS, LATENCY_MAX, LATENCY_MEAN, LATENCY_MIN, LATENCY_WITH_WAIT, THROUGHPUT, Quantity
from tkperf.model.units import KIB, NOT_MEASURED
from tkperf.model.workload import Workload
from tkperf.page.chart import DASH_COUNT, PALETTE, Curve, Mark, Point, warmth
from tkperf.page.naming import Naming
from tkperf.page.words.uncertainty import Flagged, describe_flags, describe_interval

# The sizes of the specifications' matrices have the eight most distinct colours.
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
_QUANTITIES = {
    IOPS.key: "blue",
    THROUGHPUT.key: "blue",
    LATENCY_MEAN.key: "blue",
    LATENCY_MAX.key: "vermilion",
    LATENCY_MIN.key: "slate",
    "p50_us": "brown",
    "p90_us": "sky",
    "p95_us": "olive",
    "p99_us": "green",
    "p99.9_us": "amber",
    "p99.99_us": "pink",
    "p99.999_us": "violet",
    LATENCY_WITH_WAIT.key: "brown",
}

SURE = f"Interval of {COVERED}"
"""Fact of a point: the interval of its value."""


def describe_sure(cell: CellResult, quantity: Quantity) -> str:
    """Return the interval of a cell's value, for a point's facts; a dash if it is not known."""
    known = cell.uncertainty_of(quantity)
    return describe_interval(cell.value(quantity), known, quantity.digits) or NOT_MEASURED


def flag(flagged: Flagged | None) -> str:
    """Return the reason why a result may not show the device alone; empty without one."""
    return "" if flagged is None else describe_flags(flagged)


def colour_quantity(quantity: Quantity) -> str:
    return _QUANTITIES.get(quantity.key, "blue")


def colour_values(axis: WorkloadAxis, workloads: Iterable[Workload]) -> dict[Order, str]:
    """Return a colour for each value that these workloads have on an axis, by ``axis.order``.

    Each value that specifications use has a fixed colour; the others get the colours that are left. More values
    than colours are between cold and warm.
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


@dataclass(frozen=True, slots=True)
class Style:
    """Look of a curve; dash 0 is solid."""

    colour: str
    dash: int = 0


def style_curves(naming: Naming, workloads: Iterable[Workload], *, dashed: bool = True) -> dict[str, Style]:
    """Return the look of each curve by its name, in the order of their axes.

    A single axis has a colour for each value. Among several axes the one with the most values has the colours,
    and dashes show the other differences. If there are too few dashes, each curve has a colour of its own: from
    the palette, or for more curves between cold and warm.

    Args:
        dashed: whether the marks can have dashes; bars cannot, and have only colours.
    """
    of_names = {naming.name_of(workload): workload for workload in reversed(list(workloads))}
    main = max(naming.axes, key=lambda axis: (len({axis.order(work) for work in of_names.values()}), axis is BLOCKS))
    others = [axis for axis in naming.axes if axis is not main]
    names = sorted(of_names, key=lambda name: place_of(of_names[name], (*others, main)))
    colours = colour_values(main, of_names.values())
    kinds = sorted({place_of(of_names[name], others) for name in names})
    own = [colours[main.order(of_names[name])] for name in names]
    if len(kinds) == 1 and len(colours) <= len(PALETTE):
        return {name: Style(colour) for name, colour in zip(names, own, strict=True)}
    if dashed and 1 < len(kinds) <= DASH_COUNT:
        dashes = [kinds.index(place_of(of_names[name], others)) for name in names]
        return {name: Style(colour, dash) for name, colour, dash in zip(names, own, dashes, strict=True)}
    few = len(names) <= len(PALETTE)
    return {
        name: Style(PALETTE[place]) if few else Style(warmth(place, len(names)), place % DASH_COUNT if dashed else 0)
        for place, name in enumerate(names)
    }


def build_curves(
    points: Iterable[tuple[Workload, Point]], naming: Naming, *, mark: Mark = Mark.LINE, facts: Sequence[str] = ()
) -> tuple[Curve, ...]:
    """Return a curve, or bars, for each name of these workloads.

    Args:
        naming: names of the curves; without axes there is only one, which needs no name.
        facts: titles of the points' facts.
    """
    of_names: dict[str, list[Point]] = {}
    loads: dict[str, Workload] = {}
    for work, point in points:
        name = naming.name_of(work) if naming.axes else ""
        loads.setdefault(name, work)
        of_names.setdefault(name, []).append(point)
    look: Mapping[str, Style] = (
        style_curves(naming, loads.values(), dashed=mark is Mark.LINE)
        if naming.axes and loads
        else {"": Style(PALETTE[0])}
    )
    return tuple(
        Curve(
            name=name,
            label=naming.words(loads[name]) if name else "",
            points=tuple(of_names[name]),
            mark=mark,
            colour=style.colour,
            dash=style.dash,
            dots=mark is Mark.LINE,
            facts=tuple(facts),
        )
        for name, style in look.items()
        if name in of_names
    )
