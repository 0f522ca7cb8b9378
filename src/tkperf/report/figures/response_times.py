"""Charts of all response times of a workload."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.analysis.tables import directions_of
from tkperf.figures import Figure
from tkperf.report.charts.flagged import with_flags
from tkperf.report.charts.latency import (
    exceedance,
    histogram_rows,
    mark_rows,
    response_time_histogram,
)
from tkperf.report.charts.vega import Spec
from tkperf.report.page import ChartView, Views
from tkperf.report.subject import Subject


def show_histogram(subject: Subject, figure: Figure) -> Views:
    text = (
        "All I/Os by response time, and the share of them that took no longer (confidence level). "
        "Marked: average (ART), percentiles, maximum (MRT). Buckets are 1/64 of the response time "
        "wide or less; counts step where the width doubles. The curve is exact at a bucket's edges, "
        "straight within."
    )
    title = figure.title or "Response time histogram"
    yield from _distribution(subject, figure, "rth", title, text, response_time_histogram)


def show_exceedance(subject: Subject, figure: Figure) -> Views:
    text = "The share of all I/Os that took longer than a response time."
    title = figure.title or "Exceedance"
    yield from _distribution(subject, figure, "exceedance", title, text, exceedance)


def _distribution(
    subject: Subject, figure: Figure, key: str, title: str, text: str, draw: Callable[..., Spec]
) -> Views:
    for detail in subject.details.values():
        for direction, words in directions_of(detail.workload, apart=figure.apart):
            if figure.apart and words == "reads and writes":
                continue
            stats = detail.of(direction)
            of = f"{words} of {detail.workload}" if figure.apart else str(detail.workload)
            if buckets := histogram_rows(stats):
                spec = draw(buckets, mark_rows(stats), f"{title}: {of}")
                spec = with_flags(spec, detail.counted)
                yield ChartView(key=key, text=text, spec=spec)
