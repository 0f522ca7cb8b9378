"""What one load does to another: the grid of offered reads and writes, its frontier, and the effect of neighbours.

A cell of the grid counts only if the drive did all that was offered. In overload, the queue depth limits the latency,
so a cell that was not reached looks better than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tkperf.analysis.characteristics import LATENCY_FACTOR, READS_WITHIN_LIMIT, Characteristic
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.analysis.uncertainty.estimate import Uncertainty, build_between, build_ratio
from tkperf.model.figures import FigureKind
from tkperf.model.quantity import IOPS, IOS, LATENCY_MEAN, THROUGHPUT, Quantity, percentile
from tkperf.model.workload import Workload
from tkperf.procedures.building_blocks import ARRIVALS_SPREAD
from tkperf.procedures.interference import READER, WRITER

READ_P99 = percentile(99)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceCell:
    """One cell of the grid. ``reads`` and ``writes`` are None where none were offered.

    Attributes:
        reached: whether reads and writes both did the requested share of what was offered.
        workload: the load of the cell, by which other outputs know the cell.
    """

    workload: Workload
    reads: CellResult | None
    writes: CellResult | None
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """The most offered reads within the limit, next to one rate of writes.

    Attributes:
        write_iops, write_bytes_per_s: what is offered of writes; 0: no writes.
        read_iops: the highest offered reads within the limit, with all lower ones; None: even the lowest exceed it.
        next_read_iops: the next higher offered reads, which exceed the limit or were not reached; None: there are none.
    """

    write_iops: float
    write_bytes_per_s: float
    read_iops: float | None
    next_read_iops: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceGrid:
    """The grid of a section. Rates are offered IOPS in ascending order, with 0 for none.

    Attributes:
        limit_us: the limit of the 99th percentile of the read latency.
        write_block_bytes: size of a write, from which bytes per second follow.
        cells: by the offered IOPS of reads and of writes.
    """

    limit_us: float
    write_block_bytes: float
    read_rates: tuple[float, ...]
    write_rates: tuple[float, ...]
    cells: dict[tuple[float, float], InterferenceCell]

    @property
    def frontier(self) -> tuple[FrontierPoint, ...]:
        return tuple(self._point(write_iops) for write_iops in self.write_rates)

    def is_within(self, read_iops: float, write_iops: float) -> bool:
        """Return whether a cell counts and its reads are within the limit."""
        cell = self.cells.get((read_iops, write_iops))
        if cell is None or cell.reads is None or not cell.reached:
            return False
        p99_us = cell.reads.value(READ_P99)
        return p99_us is not None and p99_us <= self.limit_us

    def _point(self, write_iops: float) -> FrontierPoint:
        offered = [rate for rate in self.read_rates if rate]
        within = list(takewhile(lambda rate: self.is_within(rate, write_iops), offered))
        return FrontierPoint(
            write_iops=write_iops,
            write_bytes_per_s=write_iops * self.write_block_bytes,
            read_iops=within[-1] if within else None,
            next_read_iops=offered[len(within)] if len(within) < len(offered) else None,
        )

    def reads_next_to(self, write_bytes_per_s: float) -> tuple[float, float] | None:
        """Return bounds of the most reads within the limit next to a rate of writes between those of the grid.

        More writes never leave room for more reads, so the next higher rate of writes gives the lower bound, and
        the next lower rate the upper one, which is never above the rate of reads alone. None: the rate exceeds that of
        the drive.
        """
        above = [point for point in self.frontier if point.write_bytes_per_s >= write_bytes_per_s]
        below = [point for point in self.frontier if point.write_bytes_per_s <= write_bytes_per_s]
        if not above or not below:
            return None
        return above[0].read_iops or 0.0, below[-1].next_read_iops or self.read_rates[-1]

    @property
    def at_half_writes(self) -> FrontierPoint:
        """Return the point of the frontier next to half of the writes, or the next lower rate."""
        return self.frontier[(len(self.write_rates) - 1) // 2]


def build_grid(section: SectionResult) -> InterferenceGrid | None:
    """Return the grid of offered reads and writes; None: the section has none."""
    rules = section.grid_rules
    if rules is None:
        return None
    cells: dict[tuple[float, float], InterferenceCell] = {}
    by_load = {cell.workload: cell for cell in section.cells}
    streams: dict[tuple[object, ...], dict[str, CellResult]] = {}
    for cell in section.cells:
        if cell.workload.stream is not None:
            streams.setdefault(cell.workload.together, {})[cell.workload.stream] = cell
    write_bytes = 0.0
    for load, cell in by_load.items():
        if load.stream is not None:
            continue
        if load.is_combination:
            parts = streams.get(load.together, {})
            reads, writes = parts.get(READER), parts.get(WRITER)
        else:
            reads, writes = (cell, None) if load.reads else (None, cell)
        offering = [one for one in (reads, writes) if one is not None]
        if writes is not None:
            write_bytes = writes.workload.mean_block_bytes
        place = (_offered(reads), _offered(writes))
        reached = bool(offering) and all(_has_reached(one, rules.kept_up_percent) for one in offering)
        cells[place] = InterferenceCell(workload=load, reads=reads, writes=writes, reached=reached)
    if not cells:
        return None
    return InterferenceGrid(
        limit_us=rules.latency_limit_us,
        write_block_bytes=write_bytes,
        read_rates=tuple(sorted({0.0, *(reads for reads, _ in cells)})),
        write_rates=tuple(sorted({0.0, *(writes for _, writes in cells)})),
        cells=cells,
    )


def _offered(cell: CellResult | None) -> float:
    return 0.0 if cell is None else cell.workload.offered_iops or 0.0


def _has_reached(cell: CellResult, kept_up_percent: float) -> bool:
    """Return whether a load did this share of what was offered. With random arrivals, fewer I/Os may be due."""
    offered_iops, ios, iops = cell.workload.offered_iops, cell.value(IOS), cell.value(IOPS)
    if not offered_iops or not ios or not iops:
        return False
    due = offered_iops * ios / iops
    fewer = ARRIVALS_SPREAD * cell.workload.arrivals_deviation(due)
    return ios >= due * kept_up_percent / 100 - fewer


def find_reads_within_limit(section: SectionResult) -> Iterator[Characteristic]:
    """Yield the most reads within the limit next to half of the writes; nothing for a section without a grid."""
    grid = build_grid(section)
    if grid is None:
        return
    point = grid.at_half_writes
    alone = grid.cells.get((0.0, point.write_iops))
    if alone is None:
        return
    known = (
        None
        if point.read_iops is None or point.next_read_iops is None
        else build_between(point.read_iops, point.next_read_iops)
    )
    beyond = point.read_iops is not None and point.next_read_iops is None
    yield Characteristic(
        key=READS_WITHIN_LIMIT.key,
        workload=alone.workload,
        value=None if beyond else point.read_iops,
        at_least=point.read_iops if beyond else None,
        at_most=point.next_read_iops if point.read_iops is None else None,
        uncertainty=known,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourEffect:
    """A latency of the reader next to a neighbour, and the same latency of the reader alone in the same rounds.

    ``factor`` is the ratio of both; None: one of them was not measured.
    """

    name: str
    combination: Workload
    reader: CellResult
    neighbour: CellResult | None
    alone: CellResult
    factor: float | None
    uncertainty: Uncertainty | None


def find_neighbours(sections: Sequence[SectionResult], quantity: Quantity = READ_P99) -> tuple[NeighbourEffect, ...]:
    """Return the effect of each neighbour on a latency of the reader, in the order of measurement.

    The sections of a test of neighbours contain the reader alone, and combinations of the reader with one other load.
    """
    effects = []
    for section in sections:
        if not any(figure.kind is FigureKind.NEIGHBOURS for figure in section.plan.figures):
            continue
        alone = next((cell for cell in section.cells if not cell.workload.together), None)
        if alone is None:
            continue
        streams = {cell.workload: cell for cell in section.cells if cell.workload.stream is not None}
        for key, reader in streams.items():
            if key.stream != READER or key.flushes:
                continue
            other = next(stream.name for stream in key.together if stream.name != READER)
            beside = (cell for at, cell in streams.items() if (at.together, at.stream) == (key.together, other))
            neighbour = next((cell for cell in beside if not cell.workload.flushes), None)
            value, own = reader.value(quantity), alone.value(quantity)
            known = value is not None and own is not None and own > 0
            effects.append(
                NeighbourEffect(
                    name=other,
                    combination=next(
                        cell.workload
                        for cell in section.cells
                        if cell.workload.is_combination and cell.workload.together == key.together
                    ),
                    reader=reader,
                    neighbour=neighbour,
                    alone=alone,
                    factor=value / own if known and value is not None and own is not None else None,
                    uncertainty=build_ratio(value, reader.uncertainty_of(quantity), own, alone.uncertainty_of(quantity))
                    if value is not None and own is not None and own > 0
                    else None,
                )
            )
    return tuple(effects)


def find_factors(section: SectionResult) -> Iterator[Characteristic]:
    """Yield by what factor each neighbour of a section makes the 99th percentile of the reader longer."""
    for effect in find_neighbours((section,)):
        yield Characteristic(
            key=LATENCY_FACTOR.key, workload=effect.combination, value=effect.factor, uncertainty=effect.uncertainty
        )


def drift_percent(grid: SectionResult, again: SectionResult) -> float | None:
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


def achieved_bytes_per_s(cell: CellResult) -> float:
    """Return what a load did, in bytes per second."""
    return (cell.value(THROUGHPUT) or 0.0) * 1e6
