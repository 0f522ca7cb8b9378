"""What one load does to another, as sentences and headline figures of a run."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.characteristics import LATENCY_FACTOR, READS_WITHIN_LIMIT, Characteristic
from tkperf.analysis.characteristics_search import find_characteristic
from tkperf.analysis.loads_together import (
    FrontierPoint,
    InterferenceGrid,
    NeighbourEffect,
    build_grid,
    drift_percent,
    find_neighbours,
)
from tkperf.analysis.results import SectionResult, TestResult
from tkperf.model.units import format_number
from tkperf.page.words.interference import describe_factor, describe_limit, name_read_blocks
from tkperf.procedures.interference import FIRST_CELL_AGAIN


def describe_grid(test: TestResult, section: SectionResult) -> str:
    """Return the most reads within the limit next to half of the writes, and the rates alone; empty without a grid."""
    grid = build_grid(section)
    if grid is None:
        return ""
    again = next((one for one in test.sections if one.name == FIRST_CELL_AGAIN), None)
    drift = None if again is None else drift_percent(section, again)
    changed = "" if drift is None else f"; the mean read latency of the first cell changed by {drift:+.2g} %"
    return f"{_describe_point(grid, grid.at_half_writes)}{changed}"


def _describe_point(grid: InterferenceGrid, point: FrontierPoint) -> str:
    blocks, beside = name_read_blocks(grid), f"next to {_megabytes(point)} MB/s of writes"
    limit = describe_limit(grid.limit_us)
    alone = (
        f"alone, the drive reads {format_number(grid.read_rates[-1])} IOPS and writes "
        f"{format_number(grid.write_rates[-1] * grid.write_block_bytes / 1e6)} MB/s"
    )
    if point.read_iops is None:
        least = format_number(point.next_read_iops)
        return f"No offered rate of {blocks} reads keeps {limit} {beside}, not even {least} IOPS; {alone}"
    more = "" if point.next_read_iops is not None else " or more"
    return f"{blocks} reads keep {limit} up to {format_number(point.read_iops)} IOPS{more} {beside}; {alone}"


def _megabytes(point: FrontierPoint) -> str:
    return format_number(point.write_bytes_per_s / 1e6)


def label_grid(section: SectionResult) -> tuple[Characteristic, str, str] | None:
    """Return the headline figure of a grid, with its label and its text; None: the section has no grid."""
    grid, found = build_grid(section), find_characteristic(section, READS_WITHIN_LIMIT)
    if grid is None or found is None:
        return None
    point = grid.at_half_writes
    label = (
        f"{name_read_blocks(grid)} reads with {describe_limit(grid.limit_us)}, next to {_megabytes(point)} MB/s of "
        "writes"
    )
    return found, label, f"{found.text()} {found.measure.unit}"


def describe_neighbours(section: SectionResult) -> str:
    """Return which neighbour slows the reader down most, and which least; empty without neighbours."""
    effects = sorted(
        (one for one in find_neighbours((section,)) if one.factor is not None), key=lambda one: -(one.factor or 0.0)
    )
    if not effects:
        return ""
    worst, *others = effects
    text = (
        f"Next to {_article(worst)}, the p99 latency of the reader is {describe_factor(worst)} that of the reader alone"
    )
    if others:
        text += f"; next to {_article(others[-1])}, {describe_factor(others[-1])}"
    return text


def _article(effect: NeighbourEffect) -> str:
    return f"the {effect.name}"


def label_neighbours(section: SectionResult) -> Iterator[tuple[Characteristic, str, str]]:
    """Yield the factor of each neighbour, the worst first, with its label and its text."""
    effects = {one.combination: one for one in find_neighbours((section,))}
    factors = [one for one in section.characteristics if one.key == LATENCY_FACTOR.key and one.value is not None]
    for found in sorted(factors, key=lambda one: -(one.value or 0.0)):
        effect = effects[found.workload]
        yield found, f"Read p99 next to the {effect.name}, against alone", f"{found.text()} ×"
