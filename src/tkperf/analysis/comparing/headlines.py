"""Headline figures of a comparison, chosen from the rows of all runs, and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tkperf.analysis.characteristics import SOUGHT_ALWAYS
from tkperf.analysis.comparing.entries import ComparedRow, Entry
from tkperf.analysis.layout import ACCESS, BLOCKS, DEPTH, JOBS, MIX, find_axes, name_figure
from tkperf.analysis.results import RunResult
from tkperf.model.quantity import PERCENTILES, QUANTITIES, Measure
from tkperf.model.units import KIB
from tkperf.model.workload import Workload

# Figures of a data sheet: 4 KiB, reads, the mix, writes.
_BLOCK_SIZE_BYTES = 4 * KIB
_MIXES = (100, 65, 0)
_MOST_OF_TEST = 6
_MOST_CELLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedHeadline:
    """A headline figure.

    Attributes:
        test: title of the test.
        load: the load in words: ``4 KiB random write, steady``; it names the test if several tests have the same text.
    """

    test: str
    load: str
    row: ComparedRow

    @property
    def measure(self) -> Measure:
        return self.row.quantity

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.row.entries

    @property
    def text(self) -> str:
        """``4 KiB random write, steady: IOPS``."""
        return f"{self.load}: {self.measure.label}"


def find_headlines(
    results: Sequence[RunResult], rows: Sequence[ComparedRow]
) -> tuple[ComparedHeadline, ...]:
    """Return a few headline figures of each test, in the order of the tests."""
    titles = {test.name: test.title for test in results[0].tests}
    preparing = {
        (test.name, section.name)
        for test in results[0].tests
        for section in test.sections
        if section.plan.prepares
    }
    chosen = []
    for test in dict.fromkeys(row.test for row in rows):
        of_test = [
            row
            for row in rows
            if row.test == test and (test, row.section) not in preparing and _is_known(row)
        ]
        chosen += [
            ComparedHeadline(test=titles.get(test, test), load=_describe(row, of_test), row=row)
            for row in list(_most_telling(of_test))[:_MOST_OF_TEST]
        ]
    times = Counter(headline.text for headline in chosen)
    return tuple(
        replace(headline, load=f"{headline.test}, {headline.load}")
        if times[headline.text] > 1
        else headline
        for headline in chosen
    )


def _describe(row: ComparedRow, of_test: Sequence[ComparedRow]) -> str:
    alike = [other.workload for other in of_test if other.section == row.section]
    # Imported results have a section for each demand.
    demands = [axis for axis in find_axes(of.workload for of in of_test) if axis in (JOBS, DEPTH)]
    axes = [axis for axis in find_axes(alike) if axis not in (ACCESS, MIX, BLOCKS, *demands)]
    words = (name_figure(row.workload), *(axis.words(row.workload) for axis in (*demands, *axes)))
    return ", ".join(filter(None, (" ".join(words), row.part)))


def _is_known(row: ComparedRow) -> bool:
    """Return whether any run has a ratio."""
    return any(entry.ratio is not None for entry in row.entries[1:])


def _most_telling(rows: Sequence[ComparedRow]) -> Iterator[ComparedRow]:
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
