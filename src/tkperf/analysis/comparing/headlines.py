"""Headline figures of a comparison: the rows that a data sheet would name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.analysis.characteristics import SOUGHT_ALWAYS
from tkperf.analysis.comparing.entries import ComparedRow
from tkperf.analysis.results import RunResult
from tkperf.model.quantity import PERCENTILES, QUANTITIES
from tkperf.model.units import KIB
from tkperf.model.workload import Workload

# Figures of a data sheet: 4 KiB, reads, the mix, writes.
_BLOCK_SIZE_BYTES = 4 * KIB
_MIXES = (100, 65, 0)
_MOST_OF_TEST = 6
_MOST_CELLS = 3


def find_headlines(
    results: Sequence[RunResult], rows: Sequence[ComparedRow]
) -> tuple[ComparedRow, ...]:
    """Return a few rows of each test, in the order of the tests."""
    candidates = find_candidates(results, rows)
    return tuple(
        row
        for test in dict.fromkeys(row.test for row in candidates)
        for row in list(_most_important([row for row in candidates if row.test == test]))[
            :_MOST_OF_TEST
        ]
    )


def find_candidates(
    results: Sequence[RunResult], rows: Sequence[ComparedRow]
) -> tuple[ComparedRow, ...]:
    """Return the rows of sections that measure, with the ratio of at least one run."""
    preparing = {
        (test.name, section.name)
        for test in results[0].tests
        for section in test.sections
        if section.plan.prepares
    }
    return tuple(
        row
        for row in rows
        if (row.test, row.section) not in preparing
        and any(entry.ratio is not None for entry in row.entries[1:])
    )


def _most_important(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield sought results, then phases of the first stream, then cells of the first section with several workloads."""
    sought = [row for row in rows if row.quantity in SOUGHT_ALWAYS]
    of_cells = [row for row in rows if row.quantity.key in QUANTITIES]
    streams = [row.section for row in of_cells if row.part]
    phases = [row for row in of_cells if row.section in streams[:1]]
    cells = [row for row in of_cells if row.section not in streams]
    workloads: dict[str, set[Workload]] = {}
    for row in cells:
        workloads.setdefault(row.section, set()).add(row.workload)
    several = [row for row in cells if len(workloads[row.section]) > 1]
    yield from sought
    yield from _of_phases(phases)
    if several or not (sought or phases):
        chosen = several or cells
        yield from _of_cells([row for row in chosen if row.section == chosen[0].section])


def _of_phases(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield the first quantity of each phase of a stream, and the tail of the last phase."""
    for part in dict.fromkeys(row.part for row in rows):
        yield next(row for row in rows if row.part == part)
    if rows:
        yield from _tail([row for row in rows if row.part == rows[-1].part])


def _of_cells(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield the first quantity of the cells that a data sheet names, and the tail of the last cell."""
    if not rows:
        return
    first = [row for row in rows if row.quantity is rows[0].quantity]
    of_mixes = [
        row for mix in _MIXES for row in _ends([row for row in first if _is_of(row.workload, mix)])
    ]
    chosen = (of_mixes or first)[:_MOST_CELLS]
    yield from chosen
    yield from _tail([row for row in rows if row.workload == chosen[-1].workload])


def _ends(rows: Sequence[ComparedRow]) -> Sequence[ComparedRow]:
    """Return the first and the last row."""
    return rows if len(rows) < 2 else (rows[0], rows[-1])


def _is_of(workload: Workload, mix: int) -> bool:
    return (workload.read_percent, workload.block_size_bytes) == (mix, _BLOCK_SIZE_BYTES)


def _tail(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
    """Yield the highest percentile, if there is one."""
    yield from [row for row in rows if row.quantity in PERCENTILES][-1:]
