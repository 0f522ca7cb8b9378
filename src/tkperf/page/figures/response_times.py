"""Charts of all response times of a workload."""

from __future__ import annotations

from tkperf.model.figures import Figure
from tkperf.page.chart import Distribution
from tkperf.page.figures.curves import flag
from tkperf.page.page import ChartView, Views
from tkperf.page.response_times import BINS_A_DECADE, find_buckets, find_marks
from tkperf.page.subject import SectionSubject
from tkperf.page.tables.results import directions_of


def show_histogram(subject: SectionSubject, figure: Figure) -> Views:
    text = (
        f"All I/Os by response time: bars of equal logarithmic width, {BINS_A_DECADE} to a decade. Curve: the share that "
        "took no longer (confidence level), exact at the edges of buckets of 1/64 of the response time or less. "
        "Marked: average (ART), percentiles, maximum (MRT)."
    )
    title = figure.title or "Response time histogram"
    yield from _distribution(subject, figure, "rth", title, text)


def show_exceedance(subject: SectionSubject, figure: Figure) -> Views:
    text = "The share of all I/Os that took longer than a response time."
    title = figure.title or "Exceedance"
    yield from _distribution(subject, figure, "exceedance", title, text, exceedance=True)


def _distribution(
    subject: SectionSubject,
    figure: Figure,
    key: str,
    title: str,
    text: str,
    *,
    exceedance: bool = False,
) -> Views:
    for detail in subject.details.values():
        directions = directions_of(detail.workload, apart=figure.apart)
        directions = (
            directions[:-1] or directions
        )  # of a mix only reads and writes, not all together
        for direction, words in directions:
            stats = detail.of(direction)
            of = f"{words} of {detail.workload}" if figure.apart else str(detail.workload)
            if buckets := find_buckets(stats):
                chart = Distribution(
                    title=f"{title}: {of}",
                    buckets=buckets,
                    marks=find_marks(stats),
                    exceedance=exceedance,
                    flags=tuple(dict.fromkeys(filter(None, map(flag, detail.counted)))),
                )
                choice = (words,) if len(directions) > 1 else ()
                yield ChartView(key=key, text=text, chart=chart, choice=choice)
