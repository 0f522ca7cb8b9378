"""Build words, sentences and headline figures about the effect of one load on another load."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.characteristics import LATENCY_FACTOR, READS_WITHIN_LIMIT, Characteristic
from tkperf.analysis.characteristics_search import find_characteristic
from tkperf.analysis.loads_together import (
    READ_P99,
    CellState,
    InterferenceGrid,
    LimitPoint,
    NeighbourEffect,
    build_grid,
    find_drift_percent,
    find_neighbours,
)
from tkperf.analysis.results import SectionResult, TestResult
from tkperf.model.units import NOT_MEASURED, format_block_size_kib, format_number
from tkperf.page.words.uncertainty import describe_factor_with_ends, describe_flags, format_change_percent
from tkperf.procedures.interference import FIRST_CELL_AGAIN

# If the interval of a factor contains 1, and the ratio between its ends does not exceed this value, the factor counts
# as 1. A wider interval also contains effects that a user would notice.
NARROW_INTERVAL = 1.1


def describe_limit(limit_us: float) -> str:
    """Return the limit of a grid in words: ``p99 ≤ 1 ms``."""
    limit = f"{limit_us / 1000:g} ms" if limit_us >= 1000 else f"{limit_us:g} µs"
    return f"{READ_P99.short} ≤ {limit}"


def name_read_blocks(grid: InterferenceGrid) -> str:
    """Return the block size and the access of the reads in a grid: ``4 KiB random``."""
    reads = next(cell.reads.workload for cell in grid.cells.values() if cell.reads is not None)
    return f"{format_block_size_kib(reads.block_size_bytes)} KiB random"


def describe_factor(effect: NeighbourEffect) -> str:
    """Return a factor with its interval: ``2.31 × (2.29 to 2.33)``. If the reader did not reach its offered rate,
    return a lower bound.
    """
    if effect.factor is None:
        return NOT_MEASURED
    if effect.kept_share is not None:
        return f"at least {effect.factor:.3g} ×, as the reader did {100 * effect.kept_share:.0f} % of its rate"
    return describe_factor_with_ends(effect.factor, effect.uncertainty)


_WHY_NOT = {
    CellState.READS_SHORT: "; at the next higher rate, the drive did not do all reads",
    CellState.WRITES_SHORT: "; at the next higher rate of reads, the drive did not do all writes",
    CellState.NO_PERCENTILE: "; the next higher rate had too few reads for a 99th percentile",
}


def describe_grid(test: TestResult, section: SectionResult) -> str:
    """Return a sentence about the highest read rate whose latency is within the limit while the drive writes at the
    middle write rate. The text is empty if the section has no grid.
    """
    grid = build_grid(section)
    if grid is None:
        return ""
    point = grid.at_middle_writes
    if point is None:
        cells = grid.rules.levels**2 - 1
        return f"{grid.measured} of {cells} cells of reads and writes were measured, too few for a limit"
    return f"{_describe_point(grid, point)}{_describe_drift(test, section)}"


def _describe_point(grid: InterferenceGrid, point: LimitPoint) -> str:
    reads, writes = grid.read_rates[-1], grid.write_rates[-1]
    no_reads = "less than " if _is_below_one(reads, grid.state_of(reads, 0.0)) else ""
    no_writes = "less than " if _is_below_one(writes, grid.state_of(0.0, writes)) else ""
    alone = (
        f"alone, the drive reads {no_reads}{format_number(reads)} IOPS and writes "
        f"{no_writes}{format_number(writes * grid.write_block_bytes / 1e6)} MB/s"
    )
    if point.read_iops is None:
        return f"{_describe_none(grid, point)}; {alone}"
    more = " or more" if point.next_read_iops is None else ""
    why_not = "" if point.why_not is None else _WHY_NOT.get(point.why_not, "")
    return (
        f"{name_read_blocks(grid)} reads keep {describe_limit(grid.limit_us)} up to "
        f"{format_number(point.read_iops)} IOPS{more} during {_megabytes(point)} MB/s of writes{why_not}; {alone}"
    )


def _is_below_one(offered_iops: float, state: CellState) -> bool:
    """Return whether a drive completes less than one I/O per second when a load runs alone. One I/O per second is the
    lowest rate that a grid offers.
    """
    return offered_iops <= 1 and state in (CellState.READS_SHORT, CellState.WRITES_SHORT)


def _describe_none(grid: InterferenceGrid, point: LimitPoint) -> str:
    """Return the reason why no read rate satisfies the limit."""
    reads = f"{format_number(point.next_read_iops)} IOPS of {name_read_blocks(grid)} reads"
    writes = f"{_megabytes(point)} MB/s of writes"
    match point.why_not:
        case CellState.READS_SHORT:
            return f"during {writes}, the drive does not do {reads}"
        case CellState.WRITES_SHORT:
            return f"during {reads}, the drive does not do {writes}"
        case CellState.NO_PERCENTILE:
            return f"{reads} during {writes} are too few for a 99th percentile"
        case _:
            return f"even {reads} do not keep {describe_limit(grid.limit_us)} during {writes}"


def _describe_drift(test: TestResult, section: SectionResult) -> str:
    drift = find_drift(test, section)
    return "" if drift is None else f"; the mean read latency of the first cell changed by {_format_drift(drift)}"


def _format_drift(drift: float) -> str:
    return f"{'-' if drift < 0 else '+'}{format_change_percent(abs(drift))} %"


def find_drift(test: TestResult, section: SectionResult) -> float | None:
    """Return the change of the read latency of the first cell in percent, or None if the cell was not measured a second
    time.
    """
    again = next((one for one in test.sections if one.name == FIRST_CELL_AGAIN), None)
    return None if again is None else find_drift_percent(section, again)


def _megabytes(point: LimitPoint) -> str:
    return format_number(point.write_bytes_per_s / 1e6)


def label_grid(test: TestResult, section: SectionResult) -> tuple[Characteristic, str, str, str] | None:
    """Return the headline figure of a grid. It consists of the label, the text, and the reason why the figure must be
    read with care.

    Return None if the section has no complete grid.
    """
    grid, found = build_grid(section), find_characteristic(section, READS_WITHIN_LIMIT)
    point = None if grid is None else grid.at_middle_writes
    if grid is None or found is None or point is None:
        return None
    label = (
        f"{name_read_blocks(grid)} reads with {describe_limit(grid.limit_us)}, during {_megabytes(point)} MB/s of "
        "writes"
    )
    return found, label, f"{found.text()} {found.measure.unit}", _find_doubt(grid, point, find_drift(test, section))


def _find_doubt(grid: InterferenceGrid, point: LimitPoint, drift: float | None) -> str:
    """Return the reason why a limit must be read with care: a drift of the drive, or cells that the host limited. The
    text is empty if there is no reason.
    """
    if drift is not None and abs(drift) > grid.rules.max_drift_percent:
        return f"the mean read latency of the first cell changed by {_format_drift(drift)} during the test"
    return next((words for cell in grid.decisive_cells(point) if (words := describe_flags(cell))), "")


def describe_neighbours(section: SectionResult) -> str:
    """Return a sentence that names two neighbours: the neighbour that slows the reader down most, and the neighbour
    that slows the reader down least. The text is empty if there are no neighbours.
    """
    effects = sorted(
        (one for one in find_neighbours((section,)) if one.factor is not None), key=lambda one: -(one.factor or 0.0)
    )
    if not effects:
        return ""
    worst, *others = effects
    text = f"Compared with alone, the p99 latency of the reader is {_describe_effect(worst)}"
    if others:
        text += f", and {_describe_effect(others[-1])}"
    return text


def _describe_effect(effect: NeighbourEffect) -> str:
    """Return a text about how a second load changes the latency of the first load. The text contains the factor, or
    states that the latency does not measurably change.
    """
    known = effect.uncertainty
    ends = None if known is None or known.low is None or known.high is None else (known.low, known.high)
    if ends is not None and ends[0] <= 1 <= ends[1] <= NARROW_INTERVAL * ends[0]:
        return f"not measurably changed while the {effect.name} runs"
    return f"{describe_factor(effect)} while the {effect.name} runs"


def label_neighbours(section: SectionResult) -> Iterator[tuple[Characteristic, str, str, NeighbourEffect]]:
    """For each neighbour, yield the factor, the label and the text of the factor, and the effect of the neighbour. The
    neighbour with the greatest effect is first.
    """
    effects = {one.combination: one for one in find_neighbours((section,))}
    factors = [one for one in section.characteristics if one.key == LATENCY_FACTOR.key]
    for found in sorted(factors, key=lambda one: -(one.value or one.at_least or 0.0)):
        effect = effects[found.workload]
        if effect.factor is not None:
            yield found, f"Read p99 while the {effect.name} runs, against alone", f"{found.text()} ×", effect
