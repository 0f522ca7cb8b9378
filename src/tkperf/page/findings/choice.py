"""Choose the figures that represent a section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from tkperf.analysis.characteristics import STEADY
from tkperf.analysis.characteristics_search import find_characteristic
from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.analysis.timeline.timelines import Timeline
from tkperf.analysis.workload_axes import DEPTH, JOBS, find_axes
from tkperf.model.figures import SectionPlan, matrix_keys
from tkperf.model.quantity import IOPS, LATENCY_MEAN, Quantity, find_quantities
from tkperf.model.units import KIB
from tkperf.model.workload import Workload
from tkperf.procedures.demand_search import CellMeans, DemandPoint, choose_points

# Data sheets usually state values for 4 KiB.
_BLOCK_SIZE_BYTES = 4 * KIB
_MIXES = (0, 100, 65)


def find_settled(section: SectionResult, cell: CellResult) -> float | None:
    """Return the rate at which a stream settled, or None if there is no such rate.

    If the stream reached steady state according to the specification, the rate is the value in the tables. Otherwise
    the rate is the level that was found. The result is None if the stream did not settle, or if the rate of the section
    is not IOPS.
    """
    level = find_characteristic(section, STEADY)
    # tkperf searches for levels only in IOPS.
    if level is None or level.value is None or section.rate is not IOPS:
        return None
    of_window = cell.value(IOPS) if section.steady else None
    return level.value if of_window is None else of_window


def find_rate_series(section: SectionResult, workload: Workload, rate: Quantity) -> Timeline | None:
    """Return the timeline of the rate of a workload, or None if this timeline contains no levels."""
    of_rate = (one for one in section.timelines if (one.workload, one.quantity) == (workload, rate.key))
    return next((one for one in of_rate if one.settled is not None), None)


def find_shared(test: TestResult) -> Quantity | None:
    """Return the quantity of the table that covers all sections of a test, such as the throughput over all block sizes.

    Return None if the test has no such table.
    """
    plan = SectionPlan(name=test.title, quantities=(), figures=test.figures)
    return next(iter(find_quantities(matrix_keys(plan))), None)


def is_grid(section: SectionResult) -> bool:
    """Return whether the section varies the demand. A section in which streams with different demands run together does
    not vary the demand.
    """
    if any(cell.workload.together for cell in section.cells):
        return False
    axes = find_axes(cell.workload for cell in section.cells)
    return JOBS in axes or DEPTH in axes


def choose_cells(cells: Sequence[CellResult]) -> list[CellResult]:
    """Return at most three cells with one block size and different mixes. The order is: writes, reads, the mix with 65
    % reads, and then the other mixes in the order in which they ran.
    """
    four_kib = [cell for cell in cells if cell.workload.block_size_bytes == _BLOCK_SIZE_BYTES]
    first = (four_kib or cells)[0].workload
    alike = [
        cell for cell in cells if (cell.workload.blocks_text, cell.workload.access) == (first.blocks_text, first.access)
    ]
    of_mix: dict[int, CellResult] = {}
    for cell in alike:
        of_mix.setdefault(cell.workload.read_percent, cell)
    mixes = [*_MIXES, *(percent for percent in of_mix if percent not in _MIXES)]
    return [of_mix[percent] for percent in mixes if percent in of_mix][:3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The maximum in a grid of demands.

    Attributes:
        below: the ceiling of the mean latency in words; empty if the test has no ceiling.
        none_below: whether no demand had a mean latency below the ceiling.
        rivals: the other considered demands for which the interval of the rate overlaps the interval of the maximum.
    """

    cell: CellResult
    below: str = ""
    none_below: bool = False
    rivals: tuple[CellResult, ...] = ()


def choose_peaks(section: SectionResult) -> list[Peak]:
    """For writes and for reads, return the maximum in the section's grid of demands. A direction that did not run is
    omitted.

    The test itself chooses the same point (``choose_points``): the highest rate among the cells with a mean latency
    below the ceiling. If there is no ceiling, all cells are considered.
    """
    rate = section.rate
    peaks = [_choose_peak(section, like, rate) for like in choose_cells(section.cells)[:2]]
    return [peak for peak in peaks if peak is not None]


def _choose_peak(section: SectionResult, like: CellResult, rate: Quantity) -> Peak | None:
    cells = {cell.workload: cell for cell in _alike(section, like) if cell.value(rate) is not None}
    if not cells:
        return None
    ceiling_us = section.latency_ceiling_us
    means = [
        CellMeans(workload=work, iops=cell.value(rate) or 0.0, latency_mean_us=cell.value(LATENCY_MEAN))
        for work, cell in cells.items()
    ]
    points = choose_points(means, inf if ceiling_us is None else ceiling_us)
    peak = cells[points.at[DemandPoint.MAXIMUM].workload]
    below = ""
    if ceiling_us is not None:
        none = "none " if points.all_above_ceiling else ""
        below = f"{none}below {ceiling_us / 1000:g} ms on average"
    every = ceiling_us is None or points.all_above_ceiling
    rivals = tuple(
        cell
        for cell in cells.values()
        if cell is not peak
        and (every or (cell.value(LATENCY_MEAN) or inf) < (ceiling_us or inf))
        and _overlap(peak, cell, rate)
    )
    none_below = bool(below) and points.all_above_ceiling
    return Peak(cell=peak, below=below, none_below=none_below, rivals=rivals)


def _overlap(one: CellResult, other: CellResult, rate: Quantity) -> bool:
    """Return whether the intervals of the levels of both rates overlap. If an interval is not known, return False."""
    of, to = one.uncertainty_of(rate), other.uncertainty_of(rate)
    if of is None or to is None:
        return False
    of, to = of.of_level, to.of_level
    if of.low is None or to.low is None:
        return False
    highs = [inf if each.high is None else each.high for each in (of, to)]
    return max(of.low, to.low) <= min(highs)


CellPlace = tuple[str, Workload]
"""The place of a cell in a test. It consists of the name of the section and the workload."""


def find_peaks_of_sections(sections: Sequence[SectionResult]) -> dict[CellPlace, CellPlace]:
    """For each cell whose load ran in several sections, return the cell in which this load reached its highest rate.

    Imported results have a section for each demand, drive, host or condition. A load with cautions, such as buffered
    I/O, is compared only with loads that have the same cautions.
    """
    by_load: dict[object, list[tuple[float, CellPlace]]] = {}
    named: set[object] = set()
    for section in sections:
        if section.slices or section.areas or is_grid(section):
            continue
        for cell in section.cells:
            if (value := cell.value(section.rate)) is not None:
                load = replace(cell.workload, jobs=1, io_depth=1), section.plan.cautions
                place = section.name, cell.workload
                by_load.setdefault(load, []).append((value, place))
                if section.plan.state:
                    named.add(load)
    peaks: dict[CellPlace, CellPlace] = {}
    for rivals, measured in by_load.items():
        demands = {workload for _, (_, workload) in measured}
        if len(demands) > 1 or (rivals in named and len(measured) > 1):
            _, peak = max(measured, key=lambda of: of[0])
            peaks |= dict.fromkeys((place for _, place in measured), peak)
    return peaks


def find_single(section: SectionResult, like: CellResult) -> CellResult | None:
    """Return the cell with the same load and a single outstanding I/O, or None if there is no such cell."""
    return next((cell for cell in _alike(section, like) if cell.workload.total_outstanding_ios == 1), None)


def _alike(section: SectionResult, like: CellResult) -> list[CellResult]:
    """Return the cells that have the same load as ``like``. Only the demand may differ."""

    def place(cell: CellResult) -> tuple[object, ...]:
        work = cell.workload
        return (work.access, work.read_percent, work.blocks_text, work.zones, work.compressible_percent, work.region)

    return [cell for cell in section.cells if place(cell) == place(like)]
