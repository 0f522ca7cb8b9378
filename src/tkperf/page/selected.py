"""Histograms that the user asked for, each as a section of its test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tkperf.analysis.selection import SelectedPart
from tkperf.model.measurement import explain_rare
from tkperf.model.quantity import IOS, LATENCY_MAX, LATENCY_MEAN, PERCENTILES, combine, stats_of
from tkperf.model.units import format_number
from tkperf.page.chart import Distribution
from tkperf.page.figures.response_times import find_buckets, find_marks
from tkperf.page.page import ChartView, SectionView, TableView
from tkperf.page.tables.results import directions_of, name_column

_SHOWN = (LATENCY_MEAN, *PERCENTILES, LATENCY_MAX, IOS)
_COARSE = " Of single seconds histograms are kept in buckets of up to 1/16 of the response time."


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
            charts=tuple(_charts(f"{test}-histogram{number}", asked)),
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
        {percentile.key: values[percentile.key] for percentile in PERCENTILES}
        for values in figures.values()
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


def _charts(key: str, selected: SelectedPart) -> Iterator[ChartView]:
    directions = directions_of(selected.workload, apart=True)
    for direction, words in directions[:2]:  # reads and writes of a mix, one chart each
        stats = stats_of(selected.measurement, direction)
        if buckets := find_buckets(stats):
            of = f"{words} of {selected.words}"
            marks = find_marks(stats)
            histogram = ChartView(
                key=f"{key}{direction.value}rth",
                text=f"The {of} by response time, and the share of them that took no longer."
                + _COARSE * selected.coarse,
                chart=Distribution(
                    title=f"Response time histogram: {of}", buckets=buckets, marks=marks
                ),
                question=f"How long did the {of} take?",
                choice=("histogram",),
                printed=True,
            )
            beyond = ChartView(
                key=f"{key}{direction.value}exceedance",
                text=f"The share of the {of} that took longer than a response time.",
                chart=Distribution(
                    title=f"Exceedance: {of}", buckets=buckets, marks=marks, exceedance=True
                ),
                choice=("exceedance",),
                printed=True,
            )
            yield replace(histogram, others=(beyond,))
