"""Build the tables of a whole test: tables of merged or compared sections, and the table of the telemetry of the
drives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.characteristics import AFTER_RECOVERY, NO_BACKLOG, RECOVERY, SATURATED, SHARE_OF_FIRST
from tkperf.analysis.characteristics_search import find_characteristic
from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.results import RoundResult, SectionResult, SliceResult, TestResult
from tkperf.model.figures import FigureKind, SectionPlan, matrix_keys
from tkperf.model.quantity import (
    LATENCY_MAX,
    LATENCY_MEAN,
    LATENCY_WITH_WAIT,
    Measure,
    Quantity,
    find_quantities,
    percentile,
)
from tkperf.model.reported_percentiles import TAIL_PERCENT
from tkperf.model.units import format_window
from tkperf.model.workload import Workload
from tkperf.page.page import TableView
from tkperf.page.shown_section import NO_LINKS, ShownSection
from tkperf.page.tables.cell_tables import TableNumber, build_matrices, build_table, figure

_PEAKS = (LATENCY_MEAN, LATENCY_MAX)
_FOUND = {
    SHARE_OF_FIRST: "of the first (%)",
    RECOVERY: RECOVERY.title,
    AFTER_RECOVERY: f"{AFTER_RECOVERY.label} (% of the first)",
}
_AT_LEVEL = (LATENCY_MEAN, LATENCY_WITH_WAIT, percentile(TAIL_PERCENT), LATENCY_MAX)


def build_section_tables(test: TestResult, merged: ShownSection | None) -> Iterator[TableView]:
    """Yield the tables that the plan of the test requests: shared matrices, comparisons of streams, and offered rates.

    Args:
        merged: the sections with rounds, merged into one section (``merge_sections``); None if they cannot be merged.
    """
    links = NO_LINKS
    if merged is not None:
        links = merged.links
        yield from _shared_matrices(test, merged)
    streams = [section for section in test.sections if section.slices and section.cells]
    for asked in test.figures:
        if asked.kind is FigureKind.SECTIONS and len(streams) > 1:
            for quantity in find_quantities(asked.quantities):
                yield _build(streams, quantity, links)
    yield from _saturation(test, links)


def merge_sections(test: TestResult) -> SectionResult | None:
    """Return one section that merges all sections of a test with rounds. The plan of the result contains the figures of
    the whole test.

    Rounds with the same number are merged, although they did not run at the same time. The window is the window that
    all sections have in common, or empty if the windows differ. Return None if nothing was measured, or if two sections
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


def _shared_matrices(test: TestResult, merged: ShownSection) -> Iterator[TableView]:
    """Yield the tables that cover all sections and that the plan of the test requests."""
    quantities = find_quantities(matrix_keys(merged.section.plan))
    measured = [section for section in test.sections if section.cells and not section.areas]
    notes = [f"{each.name} is not complete: its figures so far" for each in measured if not each.complete]
    if not merged.section.window:
        windows = (f"{each.name} {format_window(each.window)}" for each in measured if each.window)
        notes.append(f"Means over the window of each: {', '.join(windows)}")
    for table in build_matrices(merged, quantities):
        yield replace(table, notes=(*table.notes, *notes))


def _saturation(test: TestResult, links: Mapping[Workload, str]) -> Iterator[TableView]:
    """Yield a table with a row for each section: the highest offered rate without a backlog, the latency at this rate,
    and the saturation rate.
    """
    rows: list[tuple[str | TableNumber, ...]] = []
    for section in test.sections:
        found = find_characteristic(section, NO_BACKLOG)
        if found is None:
            continue
        cell = section.cell(replace(found.workload, offered_iops=found.value))
        rows.append(
            (
                section.name,
                _found(section, NO_BACKLOG),
                *(figure(cell, quantity) for quantity in _AT_LEVEL),
                _found(section, SATURATED),
            )
        )
    if rows:
        yield build_table(
            "Offered IOPS of each section: the last level without a backlog, latency there, saturation",
            ("", NO_BACKLOG.title, *(quantity.title for quantity in _AT_LEVEL), SATURATED.title),
            rows,
            links=links,
            notes=(
                "no backlog: the median number of I/Os that wait, over the second half of a level, is at most TC × QD "
                "and 10 ms of the "
                "offered rate; saturates: mean rate of the levels that offered more than any level completed",
            ),
        )


def _build(streams: Sequence[SectionResult], rate: Quantity, links: Mapping[Workload, str]) -> TableView:
    """Build a table with a row for each section, in the order of the sections."""
    rows: list[tuple[str | TableNumber, ...]] = []
    recovers = any(find_characteristic(section, RECOVERY) for section in streams)
    columns = _FOUND if recovers else {SHARE_OF_FIRST: _FOUND[SHARE_OF_FIRST]}
    for section in streams:
        rows.append(
            (
                section.name if section.complete else f"{section.name}, so far",
                figure(section.cells[0], rate),
                figure(section.slices[0].values, rate),
                figure(section.slices[-1].values, rate),
                *(_peak(section.slices, quantity) for quantity in _PEAKS),
                *(_found(section, measure) for measure in columns),
            )
        )
    head = ("", "mean", "first slice", "last slice", f"peak {LATENCY_MEAN.title}", LATENCY_MAX.title, *columns.values())
    return build_table(f"{rate.title} of each section", head, rows, links=links, notes=_notes(recovers))


def _found(section: SectionResult, measure: Measure) -> str | TableNumber:
    """Return the figure of a characteristic. The result is a dash if the analysis did not search for the
    characteristic. If the search found nothing, the result is a text that states this.
    """
    found = find_characteristic(section, measure)
    if found is not None and found.value is None:
        return found.text()
    return TableNumber(
        value=found.value if found else None,
        digits=measure.digits,
        measure=measure,
        uncertainty=found.uncertainty if found else None,
    )


def _notes(recovers: bool) -> tuple[str, ...]:
    notes = [
        "mean: over the steady-state window where there is one, else over all I/Os; of the first: "
        "compared with the first section with the same load; peak: of any slice"
    ]
    if recovers:
        notes.append(
            f"{RECOVERY.label}: from the change of load to the end of the first slice that reaches the "
            f"mean of that section; {AFTER_RECOVERY.label}: the lowest slice that follows"
        )
    return tuple(notes)


def _peak(slices: Sequence[SliceResult], quantity: Quantity) -> TableNumber:
    """Return the greatest value of the slices."""
    values = [value for slice_result in slices if (value := slice_result.values.value(quantity)) is not None]
    return TableNumber(value=max(values, default=None), digits=quantity.digits)


# The rows of the table of telemetry. Each entry contains the attribute of the telemetry, the label, the divisor and the
# number of digits.
_ROWS = (
    ("temperature_least_c", "Temperature, lowest (°C)", 1, 1),
    ("temperature_mean_c", "Temperature, mean (°C)", 1, 1),
    ("temperature_most_c", "Temperature, highest (°C)", 1, 1),
    ("throttled_s", "Throttled, between readings (s)", 1, 0),
    ("load_written_bytes", "Written by the test, as fio counts (GB)", 1e9, 3),
    ("host_written_bytes", "Written by the host, as the drive counts (GB)", 1e9, 3),
    ("nand_written_bytes", "Written to the flash (GB)", 1e9, 3),
    ("write_amplification", "Write amplification (flash / host)", 1, 2),
    ("media_errors", "Media errors, new", 1, 0),
    ("unsafe_shutdowns", "Unsafe shutdowns, new", 1, 0),
    ("warning_minutes", "Above its warning temperature, new (min)", 1, 0),
    ("critical_minutes", "Above its critical temperature, new (min)", 1, 0),
    ("thermal_1_count", "Slowed down lightly for heat, times", 1, 0),
    ("thermal_1_s", "Slowed down lightly for heat (s)", 1, 0),
    ("thermal_2_count", "Slowed down heavily for heat, times", 1, 0),
    ("thermal_2_s", "Slowed down heavily for heat (s)", 1, 0),
    ("throttle_events", "Thermal throttling events, new", 1, 0),
    ("percentage_used", "Life used, at the end (%)", 1, 0),
    ("percentage_used_growth", "Life used, new (percentage points)", 1, 0),
    ("spare_percent", "Spare blocks, at the end (%)", 1, 0),
    ("power_on_hours", "Power-on hours, at the end", 1, 0),
    ("power_state", "Power state, at the end (0: fastest)", 1, 0),
)


def build_telemetry_table(telemetry: Sequence[DriveTelemetry]) -> TableView | None:
    """Build a folded table of values that are reported by one or more drives. The table has a row for each value and a
    column for each drive.
    """
    if not telemetry:
        return None
    lines: Iterator[tuple[str | TableNumber, ...]] = (
        (label, *(_figure(getattr(drive, name), divisor, digits) for drive in telemetry))
        for name, label, divisor, digits in _ROWS
        if any(getattr(drive, name) is not None for drive in telemetry)
    )
    return build_table(
        "The drive's own log" if len(telemetry) == 1 else "Each drive's own log",
        ("", *(drive.drive for drive in telemetry)),
        lines,
        folded=True,
    )


def _figure(value: float | None, divisor: float, digits: int) -> TableNumber:
    return TableNumber(value=None if value is None else value / divisor, digits=digits)
