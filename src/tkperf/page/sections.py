"""Sections of each test: the tables and charts that their plans ask for, and histograms that the user asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

from tkperf.analysis.selected_part import SelectedPart
from tkperf.model.measurement import explain_rare
from tkperf.model.quantity import IOS, LATENCY_MAX, LATENCY_MEAN, PERCENTILES, combine, stats_of
from tkperf.model.steady_state import Fit, SteadyStateVerdict
from tkperf.model.units import NOT_MEASURED, format_number, unit_for_people
from tkperf.page.chart import Distribution
from tkperf.page.facts import describe_end, describe_state
from tkperf.page.figures.response_times import find_buckets, find_marks
from tkperf.page.figures.section_figures import build_figures, join_charts, open_at_spikes
from tkperf.page.page import ChartView, SectionView, TableView
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import build_directions, build_matrix, build_stream, directions_of, name_column
from tkperf.page.words.time_course import describe_timelines, format_verdict_value

_SHOWN = (LATENCY_MEAN, *PERCENTILES, LATENCY_MAX, IOS)
_COARSE = " Of single seconds histograms are kept in buckets of up to 1/16 of the response time."


def build_section_view(shown: ShownSection) -> SectionView:
    """Return a section with the tables and charts that its plan asks for."""
    section = shown.section
    cut_off = not section.cells and not section.slices
    tables, charts = ((), ()) if cut_off else build_figures(shown)
    # With fewer rounds than a window, a line through them means nothing.
    judged = [verdict for verdict in section.window_verdicts if verdict.judged]
    return SectionView(
        key=shown.key,
        title=section.name,
        state=describe_state(section.steady),
        summary=describe_end(section),
        determination=_determination(judged) if judged else None,
        tables=(
            *(_cut_off(shown) if cut_off else ()),
            *((build_stream(shown),) if section.slices else ()),
            *tables,
            *(table for quantity in section.quantities if (table := build_directions(shown, quantity)) is not None),
        ),
        charts=open_at_spikes(charts, section.timelines),
        over_time=describe_timelines(section.timelines),
    )


def _cut_off(shown: ShownSection) -> Iterator[TableView]:
    """Yield a table of an unfinished first round."""
    if not shown.section.rounds or not shown.section.quantities:
        return
    last = shown.section.rounds[-1]
    unfinished = replace(shown, section=replace(shown.section, cells=last.cells))
    table = build_matrix(unfinished, shown.section.quantities[0])
    yield replace(table, title=f"Round {last.number}, cut off before its end: {table.title}")


def _determination(verdicts: Sequence[SteadyStateVerdict]) -> TableView:
    """Return the PTS's steady-state determination block, a column for each tracking variable."""
    facts = [_facts_of(verdict) for verdict in verdicts]
    labels = dict.fromkeys(label for of_verdict in facts for label in of_verdict)
    return TableView(
        title="Steady state determination",
        columns=("",) * (1 + len(facts)),
        rows=tuple((label, *(of_verdict.get(label, NOT_MEASURED) for of_verdict in facts)) for label in labels),
    )


def _facts_of(verdict: SteadyStateVerdict) -> dict[str, str]:
    average, fit = verdict.average, verdict.fit
    rows = [
        ("Steady state", describe_state(verdict.reached if verdict.judged else None)),
        ("Reason", verdict.reason),
        ("Tracking variable", f"{verdict.tracking} ({unit_for_people(verdict.unit)})"),
        ("Window", ", ".join(str(number) for number in verdict.rounds)),
        ("Values", ", ".join(format_verdict_value(verdict, value) for value in verdict.values)),
        ("Average", format_verdict_value(verdict, average)),
        ("Data excursion (max - min)", _excursion(verdict, verdict.data_excursion, verdict.allowed_data_excursion)),
        ("Slope excursion", _excursion(verdict, verdict.slope_excursion, verdict.allowed_slope_excursion)),
    ]
    if fit is not None and isfinite(fit.slope):
        rows.append(("Best linear fit", describe_fit(fit)))
        correlation = "undefined" if fit.correlation is None else f"{fit.correlation:.3f}"
        rows.append(("Correlation", correlation))
    return dict(rows)


def describe_fit(fit: Fit) -> str:
    """Return the fit as ``-12.15 × round + 47,625.5``, a steep one as ``11,104 × round - 3,954.54``."""
    slope, start = f"{fit.slope:,.4g}", f"{abs(fit.intercept):,.6g}"
    if "e+" in slope:
        slope = f"{fit.slope:,.0f}"
    if "e+" in start:
        start = f"{abs(fit.intercept):,.0f}"
    return f"{slope} × round {'-' if fit.intercept < 0 else '+'} {start}"


def _excursion(verdict: SteadyStateVerdict, measured: float | None, allowed: float) -> str:
    average = verdict.average
    if measured is None or not average > 0:
        return NOT_MEASURED
    values = [format_verdict_value(verdict, value) for value in (measured, allowed)]
    return f"{values[0]} ({100 * measured / average:.1f} %), allowed {values[1]} ({100 * allowed / average:.0f} %)"


def build_selected_parts(test: str, selected: Sequence[SelectedPart]) -> tuple[SectionView, ...]:
    """Return the numbered histogram sections of one test."""
    of_test = [asked for asked in selected if asked.test == test]
    return tuple(
        SectionView(
            key=f"{test}-histogram{number}",
            title=f"{asked.section}, {asked.words}",
            state="not judged",
            summary=f"Histogram of {asked.words}, as asked for: {asked.workload}",
            determination=None,
            tables=(_quantiles(asked),),
            charts=join_charts(_charts(asked), f"{test}-histogram{number}"),
        )
        for number, asked in enumerate(of_test, start=1)
    )


def _quantiles(selected: SelectedPart) -> TableView:
    workload = selected.workload
    figures = {
        words: combine([selected.measurement], workload, direction)
        for direction, words in directions_of(workload, apart=True)
    }
    percentiles = (
        {percentile.key: values[percentile.key] for percentile in PERCENTILES} for values in figures.values()
    )
    return TableView(
        title=f"Latency quantiles of {selected.words}",
        columns=("", *(name_column(quantity) for quantity in _SHOWN)),
        rows=tuple(
            (words, *(format_number(values[quantity.key], quantity.digits) for quantity in _SHOWN))
            for words, values in figures.items()
        ),
        notes=explain_rare(percentiles),
    )


def _charts(selected: SelectedPart) -> Iterator[ChartView]:
    for direction, words in directions_of(selected.workload, apart=True)[:2]:
        stats = stats_of(selected.measurement, direction)
        buckets, marks, of = find_buckets(stats), find_marks(stats), f"{words} of {selected.words}"
        histogram = ChartView(
            key=f"{direction.value}rth",
            text=f"The {of} by response time, and the share of them that took no longer." + _COARSE * selected.coarse,
            chart=Distribution(title=f"Response time histogram: {of}", buckets=buckets, marks=marks),
            question=f"How long did the {of} take?",
            choice=("histogram",),
            printed=True,
        )
        yield histogram
        yield replace(
            histogram,
            key=f"{direction.value}exceedance",
            text=f"The share of the {of} that took longer than a response time.",
            chart=Distribution(title=f"Exceedance: {of}", buckets=buckets, marks=marks, exceedance=True),
            choice=("exceedance",),
        )
