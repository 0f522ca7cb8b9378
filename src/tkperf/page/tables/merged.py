"""Join sections of rounds into one, such as a test's block sizes, each with its own purge."""

from __future__ import annotations

from dataclasses import replace

from tkperf.analysis.results import RoundResult, SectionResult, TestResult
from tkperf.model.figures import SectionPlan, matrix_keys
from tkperf.model.quantity import QUANTITIES
from tkperf.model.units import format_window
from tkperf.page.tables.results import ResultTable, build_matrices


def merge_sections(test: TestResult) -> SectionResult | None:
    """Join all sections of a test that have rounds; the plan has the figures of the whole test.

    Rounds of the same number are joined, though they did not run at the same time. The window is the
    common one, empty if the sections have different ones. None: nothing was measured, or two sections
    have the same workload.
    """
    sections = [section for section in test.sections if section.rounds and not section.areas]
    workloads = [cell.workload for section in sections for cell in section.cells]
    if not sections or len(set(workloads)) < len(workloads):
        return None
    windows = {section.window for section in sections if section.cells}
    return replace(
        sections[0],
        name=test.title,
        plan=SectionPlan(name=test.title, quantities=(), figures=test.figures),
        window=windows.pop() if len(windows) == 1 else (),
        verdict=None,
        verdicts=(),
        window_verdicts=tuple(each for section in sections for each in section.window_verdicts),
        cells=tuple(cell for section in sections for cell in section.cells),
        rounds=_rounds(sections),
        timelines=tuple(each for section in sections for each in section.timelines),
        complete=all(section.complete for section in sections),
    )


def _rounds(sections: list[SectionResult]) -> tuple[RoundResult, ...]:
    of_number: dict[int, list[RoundResult]] = {}
    for section in sections:
        for each in section.rounds:
            of_number.setdefault(each.number, []).append(each)
    return tuple(
        RoundResult(
            number=number,
            complete=all(each.complete for each in rounds),
            cells=tuple(cell for each in rounds for cell in each.cells),
        )
        for number, rounds in sorted(of_number.items())
    )


def build_shared_matrices(test: TestResult) -> tuple[ResultTable, ...]:
    """Build the tables that all sections share, if the test's plan asks for any."""
    merged = merge_sections(test)
    if merged is None:
        return ()
    quantities = [QUANTITIES[key] for key in matrix_keys(merged.plan) if key in QUANTITIES]
    measured = [section for section in test.sections if section.cells and not section.areas]
    notes = [
        f"{each.name} is not complete: its figures so far" for each in measured if not each.complete
    ]
    if not merged.window:
        windows = (f"{each.name} {format_window(each.window)}" for each in measured if each.window)
        notes.append(f"Means over the window of each: {', '.join(windows)}")
    return tuple(
        replace(table, notes=(*table.notes, *notes)) for table in build_matrices(merged, quantities)
    )
