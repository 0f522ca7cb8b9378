"""The overview: each section at a glance, its state and the numbers asked for first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tkperf.analysis.characteristics import KNEE, SOUGHT_ALWAYS, find_characteristic
from tkperf.analysis.layout import find_axes
from tkperf.analysis.results import CellResult, SectionResult, TestResult
from tkperf.quantity import IOPS, LATENCY_MAX, Quantity
from tkperf.report.naming import capitalise, describe_load
from tkperf.report.page import CardView, Facts
from tkperf.report.subject import Subject
from tkperf.report.wording import describe_end, describe_state, format_written
from tkperf.units import KIB, format_quantity

# What a data sheet names: 4 KiB, reads, the mix, writes.
_BLOCK_SIZE_BYTES = 4 * KIB
_MIXES = (100, 65, 0)
_MOST_CELLS = 3


def build_cards(of_tests: Iterable[tuple[TestResult, Sequence[Subject]]]) -> tuple[CardView, ...]:
    """A card for each section; those of a name that several tests have say of which test they are."""
    places = [(test, subject) for test, subjects in of_tests for subject in subjects]
    times = Counter(subject.section.name for _, subject in places)
    return tuple(
        _card(subject, f"{test.title}: " if times[subject.section.name] > 1 else "")
        for test, subject in places
    )


def _card(subject: Subject, of_test: str) -> CardView:
    section = subject.section
    return CardView(
        key=subject.key,
        title=of_test + section.name,
        state=describe_state(section.steady),
        summary=describe_end(section),
        figures=(
            *_sought(section),
            *(_stream(subject) if section.slices else _cells(subject)),
        ),
    )


def _sought(section: SectionResult) -> Facts:
    """What the test was made to find: a knee, a recovery time."""
    return tuple(
        (capitalise(found.measure.label), f"{found.text()} {found.measure.unit}")
        for measure in SOUGHT_ALWAYS
        if (found := find_characteristic(section, measure)) is not None
    )


def _cells(subject: Subject) -> Facts:
    """The first quantity of the most telling workloads, and the others of the last of these.

    Where an offered rate was raised they are those at the knee: the first levels are easy for any device.
    """
    section = subject.section
    if not subject.quantities:
        return ()
    knee = find_characteristic(section, KNEE)
    if knee is not None:
        reached = section.cell(replace(knee.workload, offered_iops=knee.value or knee.at_least))
        asked = [quantity for quantity in subject.quantities if quantity is not IOPS]
        return tuple(
            (f"{capitalise(quantity.label)} there", _bare(reached, quantity))
            for quantity in asked
            if reached is not None
        )
    first, *others = subject.quantities
    chosen = list(section.cells) if section.areas else _most_telling(section.cells)
    axes = find_axes(cell.workload for cell in section.cells)
    pairs = [(cell, first) for cell in chosen]
    pairs += [(cell, quantity) for cell in chosen[-1:] for quantity in others]
    over = " mean" if section.areas else ""
    return tuple(
        (describe_load(cell.workload, axes), _format(cell, quantity) + over)
        for cell, quantity in pairs
    )


def _most_telling(cells: Sequence[CellResult]) -> list[CellResult]:
    of_mixes = [
        cell
        for mix in _MIXES
        for cell in cells
        if (cell.workload.read_percent, cell.workload.block_size_bytes) == (mix, _BLOCK_SIZE_BYTES)
    ]
    return (of_mixes or list(cells))[:_MOST_CELLS]


def _format(cell: CellResult, quantity: Quantity) -> str:
    named = quantity.unit == quantity.short
    unit = quantity.unit if named else f"{quantity.unit} {quantity.short}"
    return format_quantity(cell.value(quantity), quantity.digits, unit)


def _stream(subject: Subject) -> Facts:
    section = subject.section
    last = section.slices[-1]
    steady = bool(section.window) and bool(section.cells)
    values = section.cells[0] if steady else last.values
    window = ", window" if section.verdict else ""
    where = "" if len(section.slices) == 1 else (window if steady else ", last slice")
    whole = section.cells and not steady and len(section.slices) > 1
    return (
        *(
            ((f"{subject.rate.label}, whole stream", _bare(section.cells[0], subject.rate)),)
            if whole
            else ()
        ),
        *(
            (f"{capitalise(quantity.label)}{where}", _bare(values, quantity))
            for quantity in dict.fromkeys((*subject.quantities, LATENCY_MAX))
        ),
        ("Written", format_written(last.total_written_bytes)),
    )


def _bare(cell: CellResult, quantity: Quantity) -> str:
    """With its unit, unless the name says it."""
    unit = "" if quantity.unit == quantity.label else quantity.unit
    return format_quantity(cell.value(quantity), quantity.digits, unit).rstrip()
