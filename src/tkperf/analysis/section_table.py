"""The sections of a test beside each other: what each began and ended with, and when it recovered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.analysis.results import SectionResult, SliceResult, TestResult
from tkperf.analysis.tables import Figure, Table, figure
from tkperf.figures import FigureKind
from tkperf.quantity import LATENCY_MAX, LATENCY_MEAN, QUANTITIES, Direction, Quantity
from tkperf.units import NOT_MEASURED
from tkperf.workload import Workload

_PEAKS = (LATENCY_MEAN, LATENCY_MAX)


def build_section_tables(test: TestResult) -> Iterator[Table]:
    """What the test's plan asks for, of sections that are streams."""
    streams = [section for section in test.sections if section.slices and section.cells]
    for asked in test.figures:
        if asked.kind is FigureKind.SECTIONS and len(streams) > 1:
            yield from (
                _build(streams, QUANTITIES[key]) for key in asked.quantities if key in QUANTITIES
            )


def find_recovery_s(section: SectionResult, level: float, rate: Quantity) -> float | None:
    """From the section's first I/O to the end of its first slice that reaches a rate; None: none does.

    A slice is not looked into, so this is the longest that it can have taken.
    """
    for slice_result in section.slices:
        value = slice_result.values.value(rate)
        if value is not None and value >= level:
            return slice_result.start_s + slice_result.duration_s
    return None


def _build(streams: Sequence[SectionResult], rate: Quantity) -> Table:
    """A row for each section, in their order."""
    first_of: dict[Workload, SectionResult] = {}
    rows: list[tuple[str | Figure, ...]] = []
    recovers = False
    for position, section in enumerate(streams):
        cell = section.cells[0]
        workload = cell.workload
        earlier = first_of.setdefault(workload, section)
        level = earlier.cells[0].value(rate)
        share = recovery = Figure(value=None)
        if earlier is not section and level:
            mean = cell.value(rate)
            share = Figure(value=None if mean is None else 100 * mean / level)
            if streams[position - 1].cells[0].workload != workload:
                recovers = True
                recovery = Figure(value=find_recovery_s(section, level, rate))
        rows.append(
            (
                section.name,
                figure(cell, rate, Direction.ALL),
                *(
                    figure(slice_result.values, rate, Direction.ALL)
                    for slice_result in (section.slices[0], section.slices[-1])
                ),
                *(_peak(section.slices, quantity) for quantity in _PEAKS),
                share,
                recovery,
            )
        )
    head = (
        "",
        "mean",
        "first slice",
        "last slice",
        f"peak {LATENCY_MEAN.title}",
        LATENCY_MAX.title,
        "of the first (%)",
        "recovered (s)",
    )
    kept = len(head) if recovers else len(head) - 1
    return Table(
        title=f"{rate.title} of each section",
        head=head[:kept],
        rows=tuple(row[:kept] for row in rows),
        notes=_notes(recovers),
    )


def _notes(recovers: bool) -> tuple[str, ...]:
    notes = [
        "mean: over the steady-state window where there is one, else over all I/Os; of the first: "
        "compared with the first section with the same load; peak: of any slice"
    ]
    if recovers:
        notes.append(
            "recovered: from the change of load to the end of the first slice that reaches the mean of "
            f"that section; {NOT_MEASURED} where none did"
        )
    return tuple(notes)


def _peak(slices: Sequence[SliceResult], quantity: Quantity) -> Figure:
    """The greatest value of any slice."""
    values = [
        value
        for slice_result in slices
        if (value := slice_result.values.value(quantity)) is not None
    ]
    return Figure(value=max(values, default=None), digits=quantity.digits)
