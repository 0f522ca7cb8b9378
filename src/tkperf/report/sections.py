"""The sections of each test: its tables and its charts, as their plans ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

from tkperf.analysis.results import TestResult
from tkperf.analysis.tables import build_directions, build_matrix, build_stream
from tkperf.analysis.timeline.wording import describe_timelines
from tkperf.report.charts import rounds
from tkperf.report.figures import build_figures
from tkperf.report.naming import capitalise, describe_axes
from tkperf.report.page import ChartView, SectionView, TableView
from tkperf.report.subject import Subject, find_quantities, show_table
from tkperf.report.wording import describe_end, describe_state
from tkperf.steady_state import SteadyStateVerdict
from tkperf.units import NOT_MEASURED, format_number


def build_section(subject: Subject) -> SectionView:
    """A section with what its plan asks for."""
    section = subject.section
    cut_off = not section.cells and not section.slices
    tables, charts = ((), ()) if cut_off else build_figures(subject)
    return SectionView(
        key=subject.key,
        title=section.name,
        state=describe_state(section.steady),
        summary=describe_end(section),
        determination=_determination(section.window_verdicts) if section.window_verdicts else None,
        tables=(
            *(_cut_off(subject) if cut_off else ()),
            *((_stream(subject),) if section.slices else ()),
            *tables,
            *_directions(subject),
        ),
        charts=charts,
        over_time=describe_timelines(section.timelines),
    )


def build_test_charts(test: TestResult) -> tuple[ChartView, ...]:
    """Charts of one quantity over all sections of a test, such as throughput by block size."""
    # Means of rounds so far do not belong beside those of a window.
    measured = [section for section in test.sections if section.cells and section.complete]
    if len(measured) < 2 or any(section.areas for section in measured):
        return ()
    cells = [cell for section in measured for cell in section.cells]
    x, others = rounds.split_axes(cell.workload for cell in cells)
    by = describe_axes(axis.title for axis in (x, *others))
    return tuple(
        ChartView(
            key=f"{test.name}2d{number or ''}",
            text=f"{capitalise(quantity.title)} by {by}: means over the window of each section.",
            spec=rounds.over_axis(
                cells, quantity, f"{capitalise(quantity.label)} by {by}", bars=True
            ),
        )
        for number, quantity in enumerate(find_quantities(test.over_sections))
    )


def _stream(subject: Subject) -> TableView:
    return show_table(build_stream(subject.section), subject.links)


def _directions(subject: Subject) -> Iterator[TableView]:
    """Reads and writes of mixed workloads apart, where anybody kept them so."""
    for quantity in subject.quantities:
        table = build_directions(subject.section, quantity)
        if table is not None:
            yield show_table(table, subject.links, folded=True)


def _cut_off(subject: Subject) -> Iterator[TableView]:
    """What there is of a first round that was never finished."""
    if not subject.section.rounds or not subject.quantities:
        return
    last = subject.section.rounds[-1]
    unfinished = replace(subject.section, cells=last.cells)
    table = show_table(build_matrix(unfinished, subject.quantities[0]), subject.links)
    yield replace(table, title=f"Round {last.number}, cut off before its end: {table.title}")


def _determination(verdicts: Sequence[SteadyStateVerdict]) -> TableView:
    """The PTS's steady-state determination block, a column for each tracking variable."""
    facts = [_facts_of(verdict) for verdict in verdicts]
    labels = dict.fromkeys(label for of_verdict in facts for label in of_verdict)
    return TableView(
        title="Steady state determination",
        columns=("",) * (1 + len(facts)),
        rows=tuple(
            (label, *(of_verdict.get(label, NOT_MEASURED) for of_verdict in facts))
            for label in labels
        ),
    )


def _facts_of(verdict: SteadyStateVerdict) -> dict[str, str]:
    average, fit = verdict.average, verdict.fit
    rows = [
        ("Steady state", describe_state(verdict.reached if verdict.judged else None)),
        ("Reason", verdict.reason),
        ("Tracking variable", f"{verdict.tracking} ({verdict.unit})"),
        ("Window", ", ".join(str(number) for number in verdict.rounds)),
        ("Values", ", ".join(format_number(value, 1) for value in verdict.values)),
        ("Average", format_number(average, 1)),
        (
            "Data excursion (max - min)",
            _excursion(verdict.data_excursion, verdict.allowed_data_excursion, average),
        ),
        (
            "Slope excursion",
            _excursion(verdict.slope_excursion, verdict.allowed_slope_excursion, average),
        ),
    ]
    if fit is not None and isfinite(fit.slope):
        rows.append(("Best linear fit", f"{fit.slope:,.4g} x round + {fit.intercept:,.6g}"))
        correlation = "undefined" if fit.correlation is None else f"{fit.correlation:.3f}"
        rows.append(("Correlation", correlation))
    return dict(rows)


def _excursion(measured: float | None, allowed: float, average: float) -> str:
    if measured is None or not average > 0:
        return NOT_MEASURED
    return (
        f"{measured:,.1f} ({measured / average:.1%}), allowed {allowed:,.1f} "
        f"({allowed / average:.0%})"
    )
