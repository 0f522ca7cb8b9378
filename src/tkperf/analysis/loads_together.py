"""Results of loads that run at the same time. The results are the main quantity of each stream, the grid of offered
reads and writes with the highest rates of reads within the limit, and the effect of neighbours on a reader.

A cell of the grid counts only if the drive completed the offered I/Os. In overload, the queue depth limits the latency,
so an overloaded cell would look too good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from tkperf.analysis.characteristics import LATENCY_FACTOR, READS_WITHIN_LIMIT, Characteristic
from tkperf.analysis.results import CellResult, GridRules, SectionResult
from tkperf.analysis.uncertainty.estimate import Uncertainty, build_between, build_ratio
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import IOPS, IOS, LATENCY_MEAN, THROUGHPUT, Quantity, percentile
from tkperf.model.units import KIB
from tkperf.model.workload import Workload
from tkperf.procedures.building_blocks import KEPT_UP_PERCENT, did_offered
from tkperf.procedures.interference import READER, WRITER, InterferenceTable
from tkperf.procedures.profiles.profile_tables import ProfileTable

TAIL = percentile(99)
# From this block size on, data sheets state the throughput instead of IOPS.
_LEAST_LARGE_BYTES = 64 * KIB


def find_rate(workload: Workload) -> Quantity:
    """Return the quantity in which the rate of a load is usually given. The quantity is throughput for large blocks,
    and IOPS for all other blocks.
    """
    return THROUGHPUT if workload.mean_block_bytes >= _LEAST_LARGE_BYTES and not workload.flushes else IOPS


def is_latency_sought(workload: Workload) -> bool:
    """Return whether the latency is the main result of a load. This is the case for flushes and for loads with an
    offered rate, because the rate of these I/Os is set in advance.
    """
    return workload.offered_iops is not None or workload.flushes


def find_main_quantity(workload: Workload) -> Quantity:
    """Return the quantity that is used to compare runs of this stream."""
    return TAIL if is_latency_sought(workload) else find_rate(workload)


READ_P99 = percentile(99)


class CellState(StrEnum):
    """States of a cell: within the limit, or the reason why the cell does not count as within the limit."""

    WITHIN = "within the limit"
    TOO_SLOW = "the reads take longer"
    READS_SHORT = "the drive does not do all reads"
    WRITES_SHORT = "the drive does not do all writes"
    NO_PERCENTILE = "too few reads for a 99th percentile"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceCell:
    """One cell of the grid. ``reads`` is None if no reads were offered. ``writes`` is None if no writes were offered.

    Attributes:
        workload: the load of the cell, which identifies the cell in other outputs.
        state: the state of the cell. If a cell has no reads, WITHIN means that the drive completed the offered writes.
    """

    workload: Workload
    reads: CellResult | None
    writes: CellResult | None
    state: CellState

    @property
    def reached(self) -> bool:
        """Return whether the drive completed the required share of the offered reads, and also the required share of
        the offered writes.
        """
        return self.state not in (CellState.READS_SHORT, CellState.WRITES_SHORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPoint:
    """The highest offered rate of reads at which the latency is within the limit, while the drive also writes at a
    given rate.

    Attributes:
        write_iops, write_bytes_per_s: offered rate of writes. The value 0 means that no writes were offered.
        read_iops: the highest offered rate of reads for which the cells at this rate and at all lower rates are within
            the limit. None means that even the cell at the lowest rate is not within the limit.
        next_read_iops: the next higher offered rate of reads. The cell at this rate is not within the limit. None means
            that no higher rate was offered.
        why_not: the reason why the cell at the next higher rate of reads is not within the limit. None means that no
            higher rate was offered.
    """

    write_iops: float
    write_bytes_per_s: float
    read_iops: float | None
    next_read_iops: float | None
    why_not: CellState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBounds:
    """Bounds, in IOPS, of the highest rate of reads within the limit while the drive also writes at a given rate. None
    means that there is no such bound.
    """

    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceGrid:
    """The grid of a section. The rates are offered IOPS in ascending order. The rate 0 means that no reads, or no
    writes, were offered.

    Attributes:
        write_block_bytes: mean size of a write. This size is used to convert IOPS to bytes per second.
        cells: the cells. The key is the pair of offered IOPS: first the reads, then the writes.
    """

    rules: GridRules
    write_block_bytes: float
    read_rates: tuple[float, ...]
    write_rates: tuple[float, ...]
    cells: dict[tuple[float, float], InterferenceCell]

    @property
    def limit_us(self) -> float:
        return self.rules.latency_limit_us

    @property
    def measured(self) -> int:
        """Return the number of measurements. If a drive reaches fewer I/Os per second than the number of levels in the
        grid, several levels have the same offered rate, because a rate is a whole number of I/Os per second. The
        measurements at these levels are combined into one cell.
        """
        return sum(load.rounds for cell in self.cells.values() if (load := cell.reads or cell.writes) is not None)

    @property
    def is_complete(self) -> bool:
        """Return whether every cell was measured. The highest rates of reads within the limit are known only if the
        grid is complete.
        """
        return self.measured >= self.rules.levels**2 - 1

    @property
    def limit(self) -> tuple[LimitPoint, ...]:
        """Return the highest rate of reads within the limit for each rate of writes. If a cell was not measured, the
        result is empty.
        """
        return tuple(self._point(write_iops) for write_iops in self.write_rates) if self.is_complete else ()

    @property
    def conditions(self) -> tuple[object, ...]:
        """Return the conditions that must be equal in two grids before the grids are compared."""
        loads = [cell.reads.workload for cell in self.cells.values() if cell.reads is not None]
        reads = loads[0] if loads else None
        of_reads = None if reads is None else (reads.block_size_bytes, reads.block_mix, reads.arrival, reads.zones)
        return self.rules.latency_limit_us, self.rules.kept_up_percent, self.write_block_bytes, of_reads

    def state_of(self, read_iops: float, write_iops: float) -> CellState:
        cell = self.cells.get((read_iops, write_iops))
        return CellState.NOT_MEASURED if cell is None else cell.state

    def _point(self, write_iops: float) -> LimitPoint:
        offered = [rate for rate in self.read_rates if rate]
        within = list(takewhile(lambda rate: self.state_of(rate, write_iops) is CellState.WITHIN, offered))
        beyond = offered[len(within)] if len(within) < len(offered) else None
        return LimitPoint(
            write_iops=write_iops,
            write_bytes_per_s=write_iops * self.write_block_bytes,
            read_iops=within[-1] if within else None,
            next_read_iops=beyond,
            why_not=None if beyond is None else self.state_of(beyond, write_iops),
        )

    @property
    def at_middle_writes(self) -> LimitPoint | None:
        """Return the highest rate of reads within the limit at the middle rate of writes. If there are two middle
        rates, the lower of these rates is used. None means that the grid is not complete.
        """
        limit = self.limit
        return limit[(len(limit) - 1) // 2] if limit else None

    def reads_during(self, write_bytes_per_s: float) -> ReadBounds | None:
        """Return bounds of the highest rate of reads within the limit at this rate of writes. The rate of writes may
        lie between two levels of the grid.

        More writes never allow more reads. The results at higher rates of writes therefore provide the lower bound, and
        the results at lower rates provide the upper bound. The upper bound is never greater than the rate of reads
        without writes. None means that the rate of writes is beyond the grid, that a cell was not measured, or that the
        bounds contradict each other because a single cell was slow.
        """
        above = [point for point in self.limit if point.write_bytes_per_s >= write_bytes_per_s]
        below = [point for point in self.limit if point.write_bytes_per_s <= write_bytes_per_s]
        if not above or not below:
            return None
        least = max((point.read_iops for point in above if point.read_iops is not None), default=None)
        most = min((point.next_read_iops for point in below if point.next_read_iops is not None), default=None)
        alone = self.read_rates[-1]
        if most is None and least is not None and least < alone:
            most = alone
        if least is not None and most is not None and least >= most:
            return None
        return ReadBounds(at_least=least, at_most=most)

    def decisive_cells(self, point: LimitPoint) -> tuple[CellResult, ...]:
        """Return the results of the reads and writes in the two cells that determine ``point``: the cell at the highest
        rate of reads within the limit, and the cell at the next higher rate.
        """
        found = (self.cells.get((rate, point.write_iops)) for rate in (point.read_iops, point.next_read_iops) if rate)
        return tuple(
            load for cell in found if cell is not None for load in (cell.reads, cell.writes) if load is not None
        )


def build_grid(section: SectionResult) -> InterferenceGrid | None:
    """Return the grid of offered reads and writes, or None if the section has no grid."""
    rules = section.grid_rules
    if rules is None:
        return None
    cells: dict[tuple[float, float], InterferenceCell] = {}
    streams: dict[tuple[object, ...], dict[str, CellResult]] = {}
    for cell in section.cells:
        if cell.workload.stream is not None:
            streams.setdefault(cell.workload.together, {})[cell.workload.stream] = cell
    write_bytes = 0.0
    for cell in section.cells:
        load = cell.workload
        if load.stream is not None:
            continue
        if load.is_combination:
            parts = streams.get(load.together, {})
            reads, writes = parts.get(READER), parts.get(WRITER)
            if reads is None or writes is None:
                continue
        else:
            reads, writes = (cell, None) if load.reads else (None, cell)
        if writes is not None:
            write_bytes = writes.workload.mean_block_bytes
        cells[_offered(reads), _offered(writes)] = InterferenceCell(
            workload=load, reads=reads, writes=writes, state=_find_state(reads, writes, rules)
        )
    if not cells:
        return None
    return InterferenceGrid(
        rules=rules,
        write_block_bytes=write_bytes,
        read_rates=tuple(sorted({0.0, *(reads for reads, _ in cells)})),
        write_rates=tuple(sorted({0.0, *(writes for _, writes in cells)})),
        cells=cells,
    )


def _offered(cell: CellResult | None) -> float:
    return 0.0 if cell is None else cell.workload.offered_iops or 0.0


def _find_state(reads: CellResult | None, writes: CellResult | None, rules: GridRules) -> CellState:
    return judge_cell(
        reads_kept=None if reads is None else keeps_rate(reads, rules.kept_up_percent),
        writes_kept=None if writes is None else keeps_rate(writes, rules.kept_up_percent),
        read_p99_us=None if reads is None else reads.value(READ_P99),
        limit_us=rules.latency_limit_us,
    )


def judge_cell(
    *, reads_kept: bool | None, writes_kept: bool | None, read_p99_us: float | None, limit_us: float
) -> CellState:
    """Return the state of a cell.

    Args:
        reads_kept, writes_kept: whether the drive completed the offered reads, and whether it completed the offered
            writes. None means that no reads, or no writes, were offered.
        read_p99_us: the 99th percentile of the read latency. None means that there were too few reads, or no reads.
    """
    if reads_kept is False:
        return CellState.READS_SHORT
    if writes_kept is False:
        return CellState.WRITES_SHORT
    if reads_kept is None:
        return CellState.WITHIN
    if read_p99_us is None:
        return CellState.NO_PERCENTILE
    return CellState.WITHIN if read_p99_us <= limit_us else CellState.TOO_SLOW


def find_grid_rules(table: ProfileTable | None) -> GridRules | None:
    """Return the rules for a grid of offered reads and writes, or None if the test has no such grid."""
    if not isinstance(table, InterferenceTable):
        return None
    return GridRules(
        latency_limit_us=table.latency_limit_ms * 1000,
        kept_up_percent=table.kept_up_percent,
        levels=table.levels,
        max_drift_percent=table.max_drift_percent,
    )


def keeps_rate(cell: CellResult, kept_up_percent: float) -> bool:
    """Return whether a load completed this percentage of the offered I/Os or more. The function tolerates random
    arrivals, for which the number of I/Os that are due may be smaller than the offered number.
    """
    share = share_of_rate(cell)
    ios = cell.value(IOS)
    return share is not None and ios is not None and did_offered(cell.workload, ios, ios / share, kept_up_percent)


def share_of_rate(cell: CellResult) -> float | None:
    """Return the rate of a load as a share of its offered rate. None means that the load did no I/O, or that it has no
    offered rate.
    """
    offered_iops, iops = cell.workload.offered_iops, cell.value(IOPS)
    return iops / offered_iops if offered_iops and iops else None


def find_reads_within_limit(section: SectionResult) -> Iterator[Characteristic]:
    """Yield the highest rate of reads within the limit at the middle rate of writes. If the grid is not complete, the
    function yields nothing.
    """
    grid = build_grid(section)
    point = None if grid is None else grid.at_middle_writes
    if grid is None or point is None:
        return
    known = (
        None
        if point.read_iops is None or point.next_read_iops is None
        else build_between(point.read_iops, point.next_read_iops)
    )
    beyond = point.read_iops is not None and point.next_read_iops is None
    yield Characteristic(
        key=READS_WITHIN_LIMIT.key,
        workload=grid.cells[0.0, point.write_iops].workload,
        value=None if beyond else point.read_iops,
        at_least=point.read_iops if beyond else None,
        at_most=point.next_read_iops if point.read_iops is None else None,
        uncertainty=known,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourEffect:
    """A latency of the reader while a neighbour runs, and the same latency of the reader alone in the same rounds.

    Attributes:
        factor: the latency while the neighbour runs, divided by the latency alone. None means that one of these
            latencies was not measured.
        kept_share: the rate of the reader while the neighbour runs, as a share of its offered rate. The value exists
            only if the reader did not reach the offered rate. In this case the queue depth limits the latency, and the
            factor is only a lower bound. None means that the reader reached the offered rate.
    """

    name: str
    combination: Workload
    reader: CellResult
    neighbour: CellResult | None
    alone: CellResult
    factor: float | None
    kept_share: float | None
    uncertainty: Uncertainty | None


def find_neighbours(sections: Sequence[SectionResult], quantity: Quantity = READ_P99) -> tuple[NeighbourEffect, ...]:
    """Return the effect of each neighbour on a latency of the reader, in the order of measurement.

    A test of neighbours has sections in which the reader runs alone, and combinations in which the reader runs together
    with one other load.
    """
    effects = []
    for section in sections:
        if not section.plan.draws(FigureKind.NEIGHBOURS):
            continue
        alone = next((cell for cell in section.cells if not cell.workload.together), None)
        if alone is None:
            continue
        streams = {cell.workload: cell for cell in section.cells if cell.workload.stream is not None}
        combinations = {cell.workload.together: cell.workload for cell in section.cells if cell.workload.is_combination}
        for key, reader in streams.items():
            if key.stream == READER and not key.flushes and key.together in combinations:
                effects.append(_find_effect(combinations[key.together], reader, alone, streams, quantity))
    return tuple(effects)


def _find_effect(
    combination: Workload,
    reader: CellResult,
    alone: CellResult,
    streams: dict[Workload, CellResult],
    quantity: Quantity,
) -> NeighbourEffect:
    other = next(stream.name for stream in combination.together if stream.name != READER)
    beside = (cell for key, cell in streams.items() if (key.together, key.stream) == (combination.together, other))
    value, own = reader.value(quantity), alone.value(quantity)
    factor = uncertainty = None
    if value is not None and own is not None and own > 0:
        factor = value / own
        uncertainty = build_ratio(value, reader.uncertainty_of(quantity), own, alone.uncertainty_of(quantity))
    kept = keeps_rate(reader, KEPT_UP_PERCENT)
    return NeighbourEffect(
        name=other,
        combination=combination,
        reader=reader,
        neighbour=next((cell for cell in beside if not cell.workload.flushes), None),
        alone=alone,
        factor=factor,
        kept_share=None if kept else share_of_rate(reader),
        uncertainty=uncertainty if kept else None,
    )


def find_factors(section: SectionResult) -> Iterator[Characteristic]:
    """Yield, for each neighbour in a section, the factor by which the neighbour increases the 99th percentile of the
    reader's latency.
    """
    for effect in find_neighbours((section,)):
        kept = effect.kept_share is None
        yield Characteristic(
            key=LATENCY_FACTOR.key,
            workload=effect.combination,
            value=effect.factor if kept else None,
            at_least=None if kept else effect.factor,
            uncertainty=effect.uncertainty,
        )


def find_drift_percent(grid: SectionResult, again: SectionResult) -> float | None:
    """Return the change, in percent, of the mean read latency of the first cell from the first measurement to the
    repetition at the end of the test.

    None means that the cell was not measured twice.
    """
    for cell in again.cells:
        if cell.workload.stream != READER:
            continue
        before = grid.cell(cell.workload)
        first = None if before is None else before.value(LATENCY_MEAN)
        last = cell.value(LATENCY_MEAN)
        if first and last is not None:
            return 100 * (last / first - 1)
    return None
