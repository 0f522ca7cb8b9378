"""Histograms that were asked for, each as a section of its test's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.analysis.chosen import Chosen
from tkperf.analysis.tables import directions_of, name_column
from tkperf.measurement import explain_rare
from tkperf.quantity import IOS, LATENCY_MAX, LATENCY_MEAN, PERCENTILES, combine, stats_of
from tkperf.report.charts.latency import (
    exceedance,
    histogram_rows,
    mark_rows,
    response_time_histogram,
)
from tkperf.report.page import ChartView, SectionView, TableView
from tkperf.units import format_number

_SHOWN = (LATENCY_MEAN, *PERCENTILES, LATENCY_MAX, IOS)
_COARSE = " Of single seconds histograms are kept in buckets of up to 1/16 of the response time."


def build_chosen(test: str, chosen: Sequence[Chosen]) -> tuple[SectionView, ...]:
    """Those of a test, numbered."""
    of_test = [each for each in chosen if each.test == test]
    return tuple(
        SectionView(
            key=f"{test}-histogram{number}",
            title=f"{each.section}, {each.words}",
            state="not judged",
            summary=f"Histogram of {each.words}, as asked for: {each.workload}",
            determination=None,
            tables=(_quantiles(each),),
            charts=tuple(_charts(f"{test}-histogram{number}", each)),
        )
        for number, each in enumerate(of_test, start=1)
    )


def _quantiles(chosen: Chosen) -> TableView:
    workload = chosen.workload
    figures = {
        words: combine([chosen.measurement], workload, direction)
        for direction, words in directions_of(workload, apart=True)
    }
    percentiles = (
        {each.key: found[each.key] for each in PERCENTILES} for found in figures.values()
    )
    return TableView(
        title=f"Latency quantiles of {chosen.words}",
        columns=("", *(name_column(quantity) for quantity in _SHOWN)),
        rows=tuple(
            (words, *(format_number(found[each.key], each.digits) for each in _SHOWN))
            for words, found in figures.items()
        ),
        notes=explain_rare(percentiles),
    )


def _charts(key: str, chosen: Chosen) -> Iterator[ChartView]:
    told = directions_of(chosen.workload, apart=True)
    for direction, words in told[:2]:  # reads and writes of a mix each
        stats = stats_of(chosen.measurement, direction)
        if buckets := histogram_rows(stats):
            of = f"{words} of {chosen.words}"
            marked = mark_rows(stats)
            yield ChartView(
                key=f"{key}{direction.value}rth",
                text=f"The {of} by response time, and the share of them that took no longer."
                + _COARSE * chosen.coarse,
                spec=response_time_histogram(buckets, marked, f"Response time histogram: {of}"),
            )
            yield ChartView(
                key=f"{key}{direction.value}exceedance",
                text=f"The share of the {of} that took longer than a response time.",
                spec=exceedance(buckets, marked, f"Exceedance: {of}"),
            )
