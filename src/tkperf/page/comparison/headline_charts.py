"""Charts that open a comparison: each answers one question, with the size of a difference and its certainty."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median, quantiles

from tkperf.analysis.comparing.arrangements import History, HistoryFigure, find_trend
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import Change, ComparedRow
from tkperf.page.chart import (
    NEUTRAL,
    PALETTE,
    Axis,
    Chart,
    Curve,
    Legend,
    Mark,
    Point,
    Rule,
    RuleKind,
    Scale,
)
from tkperf.page.comparison.findings import describe_trend
from tkperf.page.comparison.tables import MOST_ACROSS, describe_exactly
from tkperf.page.comparison.words import describe_loads, name_headlines, name_reference
from tkperf.page.figures.curves import flag
from tkperf.page.page import ChartView
from tkperf.page.words.uncertainty import INTERVAL

DAY_MS = 86_400_000
# Better, worse, and within noise or possibly within it.
_TONES = {"better": PALETTE[0], "worse": PALETTE[1], "": NEUTRAL}
_ONE = Rule(kind=RuleKind.REFERENCE, y=1.0)
_RATIO = Axis(title="Ratio", scale=Scale.RATIO)


def build_headline_charts(comparison: Comparison) -> Iterator[ChartView]:
    """Yield the charts of the headline figures; none without headline figures."""
    if not comparison.headlines:
        return
    if comparison.history is not None:
        yield from _over_dates(comparison, comparison.history)
    elif comparison.cohort is not None or len(comparison.names) > MOST_ACROSS:
        yield from _spread(comparison)
    else:
        yield _intervals(comparison)


def _intervals(comparison: Comparison) -> ChartView:
    """Return a point for each headline figure and run with the interval of its ratio, around a line at 1."""
    first, *others = comparison.names
    figures = name_headlines(comparison)
    # A single run needs no name: its colour is that of the change.
    points: dict[str, list[Point]] = {name: [] for name in (others if len(others) > 1 else _TONES)}
    for headline in comparison.headlines:
        for name, entry in zip(others, headline.entries[1:], strict=True):
            if not entry.ratio:
                continue
            known = entry.ratio_uncertainty
            point = Point(
                figures[headline.place],
                entry.ratio,
                None if known is None else known.low,
                None if known is None else known.high,
                flag=flag(entry),
                facts=(f"{entry.change}; {describe_exactly(headline.quantity, entry)}",),
            )
            points[name if len(others) > 1 else _tone(entry.change)].append(point)
    # The first colour belongs to the first run, the reference of all others.
    colours = dict(zip(others, PALETTE[1:], strict=False)) if len(others) > 1 else _TONES
    of = others[0] if len(others) == 1 else "each run"
    return ChartView(
        key="headline-ratios",
        text=f"Headline figures of {of} as ratios to {first}, with the {INTERVAL}, where it is known.",
        chart=Chart(
            title=f"Headline figures against {first}",
            x=Axis(title="Figure", scale=Scale.ORDINAL, places=tuple(figures.values())),
            y=_RATIO,
            curves=tuple(
                Curve(
                    name=name, points=tuple(of_name), mark=Mark.POINT, colour=colours[name],
                    facts=("Sure",),
                )
                for name, of_name in points.items()
            ),
            rules=(_ONE,),
            series="Run" if len(others) > 1 else "",
            legend=Legend.TOP if len(others) > 1 else Legend.NONE,
            flat=True,
            grouped=len(others) > 1,
        ),
        question=f"How far from {first}?",
    )  # fmt: skip


def _spread(comparison: Comparison) -> Iterator[ChartView]:
    """Yield each run as a point in the row of each figure, with the middle half as a bar."""
    reference = name_reference(comparison)
    of_cohort = comparison.cohort is not None
    figures = name_headlines(comparison)
    bands: list[Point] = []
    named: dict[str, list[Point]] = {tone: [] for tone in _TONES}
    others: list[Point] = []
    for headline in comparison.headlines:
        ratios = comparison.ratios(headline)
        known = [ratio for ratio in ratios if ratio is not None]
        if not known:  # the median of a cohort is 0
            continue
        tones, figure = dict(_notable(comparison, headline)), figures[headline.place]
        low, _, high = quantiles([*known, *known][: max(2, len(known))], n=4, method="inclusive")
        bands.append(Point(figure, median(known), low, high))
        for name, entry, ratio in zip(comparison.names, headline.entries, ratios, strict=True):
            exactly = describe_exactly(headline.quantity, entry, to_first=not of_cohort)
            if ratio is not None:
                point = Point(figure, ratio, flag=flag(entry), facts=(name, exactly))
                (named[tones[name]] if name in tones else others).append(point)
    if not bands:
        return
    facts = ("Run", "Sure")
    who = "outliers are named" if of_cohort else "the lowest and the highest are named"
    yield ChartView(
        key="headline-spread",
        text=f"Each run a point for each headline figure, as ratio to {reference}; the band has the middle half of the runs; {who}.",
        chart=Chart(
            title=f"Headline figures against {reference}",
            x=Axis(
                title="Figure", scale=Scale.ORDINAL, places=tuple(str(each.x) for each in bands)
            ),
            y=_RATIO,
            curves=(
                Curve(points=tuple(bands), mark=Mark.RANGE),
                Curve(points=tuple(others), mark=Mark.POINT, muted=True, facts=facts),
                *(
                    Curve(
                        name=tone, points=tuple(points), mark=Mark.POINT, colour=_TONES[tone],
                        facts=facts, texts=True,
                    )
                    for tone, points in named.items()
                    if points
                ),
            ),
            rules=(_ONE,),
            legend=Legend.NONE,
            flat=True,
        ),
        question="How are the runs spread?",
    )  # fmt: skip


def _notable(comparison: Comparison, headline: ComparedRow) -> Iterator[tuple[str, str]]:
    """Yield the runs to look at, each with its tone."""
    if comparison.cohort is not None:
        for figure in comparison.cohort.figures:
            if figure.row is headline:
                yield from ((one.name, _tone(one.change)) for one in figure.outliers)
        return
    ratios = comparison.ratios(headline)
    known = [
        (ratio, name, _tone(entry.change))
        for ratio, name, entry in zip(ratios, comparison.names, headline.entries, strict=True)
        if ratio is not None
    ]
    for _, name, tone in (min(known), max(known)):
        if name != comparison.names[0]:  # the line of the chart marks the first run already
            yield name, tone


def _tone(change: Change | None) -> str:
    """Return the tone of a change; a change within noise, or possibly within it, has none."""
    return change.value if change in (Change.BETTER, Change.WORSE) else ""


def _over_dates(comparison: Comparison, history: History) -> Iterator[ChartView]:
    loads = describe_loads(comparison)
    for number, figure in enumerate(history.figures):
        yield _of_figure(
            comparison, history, figure, loads[figure.row.place], f"headline-history{number}"
        )


def _of_figure(
    comparison: Comparison, history: History, figure: HistoryFigure, load: str, key: str
) -> ChartView:
    measure = figure.row.quantity
    points: list[Point] = []
    for name, day, result, entry in zip(
        comparison.names, history.days, comparison.results, figure.row.entries, strict=True
    ):
        if entry.value is None:
            continue
        known = None if entry.uncertainty is None else entry.uncertainty.of_level
        began = (result.info.started_utc or "")[:10]
        points.append(
            Point(
                day * DAY_MS,
                entry.value,
                None if known is None else known.low,
                None if known is None else known.high,
                flag=flag(entry),
                facts=(name, began, describe_exactly(measure, entry)),
            )
        )
    places = [float(point.x) for point in points]
    trend = find_trend(places, [point.y or 0.0 for point in points])
    line = (
        ()
        if trend is None
        else tuple(
            Point(at, trend.level + trend.slope * (at - trend.at))
            for at in (history.days[0] * DAY_MS, history.days[-1] * DAY_MS)
        )
    )
    runs = Curve(points=tuple(points), mark=Mark.POINT, facts=("Run", "Began", "Interval"))
    return ChartView(
        key=key,
        text=f"{load}, {measure.label} of each run by its date, with the {INTERVAL} of its level; "
        f"trend (dashed): {describe_trend(figure, history)}, {figure.change}.",
        chart=Chart(
            title=f"{load}: {measure.label}",
            x=Axis(title="", scale=Scale.DATE),
            y=Axis(title=measure.title, zero=False),
            curves=(*((Curve(points=line, colour=PALETTE[1], dash=1),) if line else ()), runs),
            rules=tuple(
                Rule(kind=RuleKind.CHANGE, x=change.day * DAY_MS, name=f"firmware {change.after}")
                for change in history.firmware
            ),
            low=True,
        ),
    )
