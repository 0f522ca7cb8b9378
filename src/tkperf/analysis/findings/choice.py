"""Which of a section's many figures speak for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tkperf.analysis.characteristics import STEADY, find_characteristic
from tkperf.analysis.layout import DEPTH, JOBS, find_axes
from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.figures import SectionPlan, matrix_keys
from tkperf.quantity import IOPS, QUANTITIES, THROUGHPUT, Quantity
from tkperf.units import KIB
from tkperf.workload import Workload

# What a data sheet names: 4 KiB; writes first, as they are what takes a device to its limits.
_BLOCK_SIZE_BYTES = 4 * KIB
_MIXES = (0, 100, 65)


def find_shown(section: SectionResult) -> tuple[Quantity, ...]:
    """What the section is about, the first above all; none that this version does not know."""
    return tuple(QUANTITIES[key] for key in section.plan.quantities if key in QUANTITIES)


def find_rate(section: SectionResult) -> Quantity:
    """IOPS, or throughput where the section is about that."""
    rates = [quantity for quantity in find_shown(section) if quantity in (IOPS, THROUGHPUT)]
    return rates[0] if rates else IOPS


def find_settled(section: SectionResult, cell: CellResult) -> float | None:
    """Where a stream's rate settled: what the specification calls steady is what its tables have; else what shows in the course."""
    level = find_characteristic(section, STEADY)
    # Levels are of IOPS.
    if level is None or level.value is None or find_rate(section) is not IOPS:
        return None
    of_window = cell.value(IOPS) if section.steady else None
    return level.value if of_window is None else of_window


def find_shared(test: TestResult) -> Quantity | None:
    """What all sections of a test have tables of together, such as the sizes of a throughput test."""
    plan = SectionPlan(name=test.title, quantities=(), figures=test.figures)
    shared = [QUANTITIES[key] for key in matrix_keys(plan) if key in QUANTITIES]
    return shared[0] if shared else None


def is_grid(section: SectionResult) -> bool:
    """Whether demand was varied in it."""
    axes = find_axes(cell.workload for cell in section.cells)
    return JOBS in axes or DEPTH in axes


def choose_cells(cells: Sequence[CellResult]) -> list[CellResult]:
    """Cells of one block size that differ in their mix: writes, reads, then the mix run first."""
    four_kib = [cell for cell in cells if cell.workload.block_size_bytes == _BLOCK_SIZE_BYTES]
    first = (four_kib or cells)[0].workload
    alike = [
        cell
        for cell in cells
        if (cell.workload.blocks_text, cell.workload.access) == (first.blocks_text, first.access)
    ]
    chosen: dict[int, CellResult] = {}
    for cell in alike:
        chosen.setdefault(cell.workload.read_percent, cell)
    mixes = [*_MIXES, *(percent for percent in chosen if percent not in _MIXES)]
    return [chosen[percent] for percent in mixes if percent in chosen][:3]


def choose_peaks(section: SectionResult) -> list[CellResult]:
    """Of a grid of demands the cell with the highest rate, of writes and of reads each if both were run."""
    rate = find_rate(section)
    peaks = []
    for like in choose_cells(section.cells)[:2]:
        alike = _alike(section, like)
        measured = [cell for cell in alike if cell.value(rate) is not None]
        if measured:
            peaks.append(max(measured, key=lambda cell: cell.value(rate) or 0))
    return peaks


def find_peaks_of_demands(sections: Sequence[SectionResult]) -> dict[Workload, Workload]:
    """Return loads that several sections ran, each at its own demand, with the one that has the highest rate.

    Imported results have a section for each demand.
    """
    by_load: dict[Workload, list[tuple[float, Workload]]] = {}
    for section in sections:
        if section.slices or section.areas or is_grid(section):
            continue
        for cell in section.cells:
            if (value := cell.value(find_rate(section))) is not None:
                load = replace(cell.workload, jobs=1, io_depth=1)
                by_load.setdefault(load, []).append((value, cell.workload))
    peaks: dict[Workload, Workload] = {}
    for measured in by_load.values():
        works = {work for _, work in measured}
        if len(works) > 1:
            _, peak = max(measured, key=lambda of: of[0])
            peaks |= dict.fromkeys(works, peak)
    return peaks


def find_single(section: SectionResult, like: CellResult) -> CellResult | None:
    """The same load with a single outstanding I/O."""
    return next(
        (cell for cell in _alike(section, like) if cell.workload.total_outstanding_ios == 1), None
    )


def _alike(section: SectionResult, like: CellResult) -> list[CellResult]:
    """Cells that differ in their demand alone."""

    def place(cell: CellResult) -> tuple[object, ...]:
        work = cell.workload
        return (work.access, work.read_percent, work.blocks_text, work.zones, work.compressible_percent, work.region)  # fmt: skip

    return [cell for cell in section.cells if place(cell) == place(like)]
