"""Loads that run together: the quantities that answer for a stream, and what one load does to another: the grid of
offered reads and writes, its limit, and the effect of neighbours.

A cell of the grid counts only if the drive did all that was offered. In overload, the queue depth limits the latency,
so a cell that was not reached looks better than it is.
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
from tkperf.procedures.interference import READER, WRITER

TAIL = percentile(99)
# The rate of larger blocks is a throughput to readers of data sheets.
_LEAST_LARGE_BYTES = 64 * KIB


def find_rate(workload: Workload) -> Quantity:
    """Return the rate by which readers know a load: MB/s of large blocks, else IOPS."""
    return THROUGHPUT if workload.mean_block_bytes >= _LEAST_LARGE_BYTES and not workload.flushes else IOPS


def is_latency_sought(workload: Workload) -> bool:
    """Return whether the rate of a load was given, so that its latency is the answer."""
    return workload.offered_iops is not None or workload.flushes


def find_main_quantity(workload: Workload) -> Quantity:
    """Return the quantity by which runs with this stream are compared."""
    return TAIL if is_latency_sought(workload) else find_rate(workload)


READ_P99 = percentile(99)


class CellState(StrEnum):
    """Whether a cell is within the limit, and if not, why."""

    WITHIN = "within the limit"
    TOO_SLOW = "the reads take longer"
    READS_SHORT = "the drive does not do all reads"
    WRITES_SHORT = "the drive does not do all writes"
    NO_PERCENTILE = "too few reads for a 99th percentile"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceCell:
    """One cell of the grid. ``reads`` and ``writes`` are None where none were offered.

    Attributes:
        workload: the load of the cell, by which other outputs know the cell.
        state: for a cell without reads, WITHIN means that the drive did all writes.
    """

    workload: Workload
    reads: CellResult | None
    writes: CellResult | None
    state: CellState

    @property
    def reached(self) -> bool:
        """Return whether reads and writes both did the requested share of what was offered."""
        return self.state not in (CellState.READS_SHORT, CellState.WRITES_SHORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPoint:
    """The most offered reads within the limit, next to one rate of writes.

    Attributes:
        write_iops, write_bytes_per_s: what is offered of writes; 0: no writes.
        read_iops: the highest offered reads within the limit, with all lower ones; None: not even the lowest are.
        next_read_iops: the next higher offered reads, which are not within the limit; None: there are none.
        why_not: why the next higher reads are not within the limit; None: there are none.
    """

    write_iops: float
    write_bytes_per_s: float
    read_iops: float | None
    next_read_iops: float | None
    why_not: CellState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBounds:
    """Bounds of the most reads within the limit next to some rate of writes, in IOPS; None: the bound is open."""

    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceGrid:
    """The grid of a section. Rates are offered IOPS in ascending order, with 0 for none.

    Attributes:
        write_block_bytes: size of a write, from which bytes per second follow.
        cells: by the offered IOPS of reads and of writes.
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
    def is_complete(self) -> bool:
        """Return whether every cell was measured. Only then are the rates of the drive alone and a limit known."""
        return len(self.cells) == self.rules.levels**2 - 1

    @property
    def limit(self) -> tuple[LimitPoint, ...]:
        """Return the limit next to each rate of writes; empty if a cell was not measured."""
        return tuple(self._point(write_iops) for write_iops in self.write_rates) if self.is_complete else ()

    @property
    def conditions(self) -> tuple[object, ...]:
        """Return the conditions that two grids must share to be compared."""
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
        """Return the limit next to the middle rate of writes: half of them, or the next lower rate; None: not known."""
        limit = self.limit
        return limit[(len(limit) - 1) // 2] if limit else None

    def reads_next_to(self, write_bytes_per_s: float) -> ReadBounds | None:
        """Return bounds of the most reads within the limit next to a rate of writes between those of the grid.

        More writes leave no room for more reads. Higher rates of writes therefore give the lower bound, and lower
        rates the upper one, which is at most the rate of reads alone. None: the rate exceeds that of the drive, a cell
        was not measured, or the bounds contradict each other because a single cell was slow.
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
        """Return the reads and writes of the two cells between which the limit lies."""
        found = (self.cells.get((rate, point.write_iops)) for rate in (point.read_iops, point.next_read_iops) if rate)
        return tuple(
            load for cell in found if cell is not None for load in (cell.reads, cell.writes) if load is not None
        )


def build_grid(section: SectionResult) -> InterferenceGrid | None:
    """Return the grid of offered reads and writes; None: the section has none."""
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
    if reads is not None and not keeps_rate(reads, rules.kept_up_percent):
        return CellState.READS_SHORT
    if writes is not None and not keeps_rate(writes, rules.kept_up_percent):
        return CellState.WRITES_SHORT
    if reads is None:
        return CellState.WITHIN
    p99_us = reads.value(READ_P99)
    if p99_us is None:
        return CellState.NO_PERCENTILE
    return CellState.WITHIN if p99_us <= rules.latency_limit_us else CellState.TOO_SLOW


def keeps_rate(cell: CellResult, kept_up_percent: float) -> bool:
    """Return whether a load did this share of its offered rate. With random arrivals, fewer I/Os may be due."""
    share = share_of_rate(cell)
    ios = cell.value(IOS)
    return share is not None and ios is not None and did_offered(cell.workload, ios, ios / share, kept_up_percent)


def share_of_rate(cell: CellResult) -> float | None:
    """Return the share of its offered rate that a load did; None: it did nothing, or has no offered rate."""
    offered_iops, iops = cell.workload.offered_iops, cell.value(IOPS)
    return iops / offered_iops if offered_iops and iops else None


def find_reads_within_limit(section: SectionResult) -> Iterator[Characteristic]:
    """Yield the most reads within the limit next to the middle rate of writes; nothing without a complete grid."""
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
    """A latency of the reader next to a neighbour, and the same latency of the reader alone in the same rounds.

    Attributes:
        factor: the ratio of both; None: one of them was not measured.
        kept_share: the share of its offered rate that the reader did next to the neighbour, if that is too little; the
            queue depth then limits its latency, and the factor is a lower bound. None: the reader kept its rate.
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

    The sections of a test of neighbours contain the reader alone, and combinations of the reader with one other load.
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
    """Yield by what factor each neighbour of a section makes the 99th percentile of the reader longer."""
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
    """Return by how much the mean read latency of the first cell changed until the end of the test, in %.

    None: it was not measured twice.
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
