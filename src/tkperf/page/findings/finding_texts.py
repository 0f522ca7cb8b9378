"""Words for loads, figures and their parts in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.results import CellResult
from tkperf.analysis.workload_axes import DEPTH, JOBS
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MEAN, PERCENTILES, Better, Direction, Quantity
from tkperf.model.units import format_latency
from tkperf.model.workload import Workload
from tkperf.page.naming import ORDERS, name_blocks

# The highest percentile in a sentence: higher ones rest on few I/Os.
_HIGHEST = "p99.9_us"


def name_direction(workload: Workload) -> str:
    """Return ``reads``, ``writes``, ``mixed I/Os (65 % reads)``."""
    return {100: "reads", 0: "writes"}.get(workload.read_percent, f"mixed I/Os ({workload.read_percent} % reads)")


def name_ios(workload: Workload) -> str:
    """Return ``random 4 KiB writes``, ``random writes of 12 block sizes``."""
    order, direction = ORDERS[workload.access], name_direction(workload)
    if workload.block_mix:
        return f"{order} {direction} of {name_blocks(workload)}"
    return f"{order} {name_blocks(workload)} {direction}"


def name_demand(workload: Workload) -> str:
    """Return ``TC4 QD32``."""
    return f"{JOBS.words(workload)} {DEPTH.words(workload)}"


def say_value(value: float, quantity: Quantity) -> str:
    """Return ``27,000 IOPS``, ``1.204 ms``."""
    if quantity.unit == LATENCY_MEAN.unit:
        return format_latency(value)
    return quantity.text(value)


def say(cell: CellResult, quantity: Quantity) -> str:
    """Describe a load's result: ``run at 27,000 IOPS``, ``take 37.2 µs on average``; empty: not measured."""
    value = cell.value(quantity)
    if value is None:
        return ""
    if quantity is LATENCY_MEAN:
        return f"take {format_latency(value)} on average"
    if quantity.better is Better.HIGHER:
        return f"run at {say_value(value, quantity)}"
    return f"have a {quantity.label} of {say_value(value, quantity)}"


def say_tail(cell: CellResult, shown: Sequence[Quantity], of: str = "") -> str:
    """Return ``99.9 % complete within 1.204 ms, the slowest in 35.1 ms``; a mix gives reads and writes separately.

    Empty if the section does not show latencies of the tail. ``of`` names the I/Os, if the sentence needs it.
    """
    parts = []
    asked = [quantity for quantity in shown if quantity in PERCENTILES]
    if asked:
        limits = [limit for direction in _directions(cell) if (limit := _within(cell, direction, of)) is not None]
        if limits:
            parts.append(_join(limits))
    slowest = cell.value(LATENCY_MAX)
    if slowest is not None and (asked or LATENCY_MAX in shown):
        parts.append(f"the slowest {'in' if parts else 'completes in'} {format_latency(slowest)}")
    return ", ".join(parts)


def _join(limits: Sequence[tuple[str, str, str]]) -> str:
    """Return ``99.9 % of the reads complete within 354 µs, of the writes within 305 µs``."""
    share, of, time = limits[0]
    words = f"{share}{of} complete within {time}"
    for other, of_other, its_time in limits[1:]:
        words += f",{of_other} within {its_time}" if other == share else (f", {other}{of_other} within {its_time}")
    return words


def _directions(cell: CellResult) -> tuple[Direction, ...]:
    apart = (Direction.READ, Direction.WRITE)
    mixed = cell.workload.is_mixed
    known = all(cell.value(LATENCY_MEAN, direction) is not None for direction in apart)
    return apart if mixed and known else (Direction.ALL,)


def _within(cell: CellResult, direction: Direction, of: str) -> tuple[str, str, str] | None:
    """Return the highest known share, its I/Os, and the time within which it completes."""
    names = [quantity.key for quantity in PERCENTILES]
    for quantity in reversed(PERCENTILES[: names.index(_HIGHEST) + 1]):
        value = cell.value(quantity, direction)
        if value is not None:
            apart = of if direction is Direction.ALL else f"the {direction.value}s"
            share = quantity.short.removeprefix("p") + " %"
            return share, f" of {apart}" if apart else "", format_latency(value)
    return None
