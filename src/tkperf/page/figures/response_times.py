"""Response times as charts: buckets, what is marked in them, and the share that took longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tkperf.model.figures import Figure
from tkperf.model.histogram import REPORTED_PERCENTILES
from tkperf.model.measurement import IoStats
from tkperf.page.chart import Bucket, Distribution, Marked
from tkperf.page.figures.curves import flag
from tkperf.page.page import ChartView, Views
from tkperf.page.shown_section import ShownSection
from tkperf.page.tables.cell_tables import directions_of

# The tail; the median is close to the mean and would cover it.
MARKED_PERCENTILES = tuple(percent for percent in REPORTED_PERCENTILES if percent >= 99)
LEAST_MARK_RATIO = 1.05
BINS_A_DECADE = 40
"""Bars of a histogram are 5.9 % of the response time wide: several of fio's buckets."""


def exceedance_points(buckets: Iterable[tuple[float, float, int]]) -> Iterator[tuple[float, float]]:
    """Yield the curve of an exceedance: response time, and percentage of the I/Os that took longer.

    The curve ends at the lower edge of the slowest bucket: beyond that bucket the share is 0, which has no
    place on a logarithmic axis.

    Args:
        buckets: lower edge, upper edge, I/Os, ascending.
    """
    filled = tuple(buckets)
    total = beyond = sum(count for _, _, count in filled)
    for lower, upper, count in filled:
        yield lower, 100 * beyond / total
        beyond -= count
        if beyond:
            yield upper, 100 * beyond / total


def find_buckets(whole: IoStats) -> tuple[Bucket, ...]:
    """Return the filled buckets: edges in us, I/Os."""
    return tuple(Bucket(lower / 1000, (upper + 1) / 1000, count) for lower, upper, count in whole.histogram.buckets())


def _percentile(percent: float) -> Callable[[IoStats], float | None]:
    return lambda whole: whole.percentile_ns(percent)


# Mean, percentiles and maximum: the name of each, and its value in ns.
LATENCY_MARKS: tuple[tuple[str, Callable[[IoStats], float | None]], ...] = (
    ("ART", lambda whole: whole.latency_mean_ns),
    *((f"{percent:g} %", _percentile(percent)) for percent in MARKED_PERCENTILES),
    ("MRT", lambda whole: whole.latency_max_ns),
)


def find_marks(whole: IoStats) -> tuple[Marked, ...]:
    """Return the mean (ART), percentiles and the maximum (MRT), in us, as far as they are known.

    Marks too close to distinguish share one label, at the last of them.
    """
    values_ns = ((name, mark(whole)) for name, mark in LATENCY_MARKS)
    marks_us = sorted((value / 1000, name) for name, value in values_ns if value is not None)
    marks: list[Marked] = []
    waiting: list[str] = []
    for number, (us, name) in enumerate(marks_us):
        waiting.append(name)
        apart = number + 1 == len(marks_us) or marks_us[number + 1][0] > us * LEAST_MARK_RATIO
        label = ", ".join(waiting) if len(waiting) < 3 else f"{waiting[0]} ... {waiting[-1]}"
        marks.append(Marked(name, us, label if apart else ""))
        waiting = [] if apart else waiting
    return tuple(marks)


def show_histogram(shown: ShownSection, figure: Figure) -> Views:
    text = (
        f"All I/Os by response time: bars of equal logarithmic width, {BINS_A_DECADE} to a decade. Curve: the share "
        "that "
        "took no longer (confidence level), exact at the edges of buckets of 1/64 of the response time or less. "
        "Marked: average (ART), percentiles, maximum (MRT)."
    )
    title = figure.title or "Response time histogram"
    yield from _distribution(shown, figure, "rth", title, text)


def show_exceedance(shown: ShownSection, figure: Figure) -> Views:
    text = "The share of all I/Os that took longer than a response time."
    title = figure.title or "Exceedance"
    yield from _distribution(shown, figure, "exceedance", title, text, exceedance=True)


def _distribution(
    shown: ShownSection, figure: Figure, key: str, title: str, text: str, *, exceedance: bool = False
) -> Views:
    for detail in shown.details.values():
        directions = directions_of(detail.workload, apart=figure.apart)
        directions = directions[:-1] or directions  # of a mix only reads and writes, not all together
        for direction, words in directions:
            stats = detail.stats_of(direction)
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
