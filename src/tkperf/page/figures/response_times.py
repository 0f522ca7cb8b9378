"""Charts of all response times of a workload."""

from __future__ import annotations

from collections.abc import Callable

from tkperf.model.figures import Figure
from tkperf.page.page import ChartView, Views
from tkperf.page.subject import SectionSubject
from tkperf.page.tables.results import directions_of
from tkperf.render.charts.flagged import with_flags
from tkperf.render.charts.latency import (
    BINS_A_DECADE,
    draw_response_times,
    exceedance,
    histogram_rows,
    mark_rows,
)
from tkperf.render.charts.vega import Spec


def show_histogram(subject: SectionSubject, figure: Figure) -> Views:
    text = (
        f"All I/Os by response time: bars of equal logarithmic width, {BINS_A_DECADE} to a decade. Curve: the share that "
        "took no longer (confidence level), exact at the edges of buckets of 1/64 of the response time or less. "
        "Marked: average (ART), percentiles, maximum (MRT)."
    )
    title = figure.title or "Response time histogram"
    yield from _distribution(subject, figure, "rth", title, text, draw_response_times)


def show_exceedance(subject: SectionSubject, figure: Figure) -> Views:
    text = "The share of all I/Os that took longer than a response time."
    title = figure.title or "Exceedance"
    yield from _distribution(subject, figure, "exceedance", title, text, exceedance)


def _distribution(
    subject: SectionSubject,
    figure: Figure,
    key: str,
    title: str,
    text: str,
    draw: Callable[..., Spec],
) -> Views:
    for detail in subject.details.values():
        directions = directions_of(detail.workload, apart=figure.apart)
        directions = (
            directions[:-1] or directions
        )  # of a mix only reads and writes, not all together
        for direction, words in directions:
            stats = detail.of(direction)
            of = f"{words} of {detail.workload}" if figure.apart else str(detail.workload)
            if buckets := histogram_rows(stats):
                spec = draw(buckets, mark_rows(stats), f"{title}: {of}")
                spec = with_flags(spec, detail.counted)
                choice = (words,) if len(directions) > 1 else ()
                yield ChartView(key=key, text=text, spec=spec, choice=choice)
