"""Charts that open a comparison: each answers one question, with the size of a difference and its certainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median, quantiles

from tkperf.analysis.comparing.arrangements import History, HistoryValue, find_trend
from tkperf.analysis.comparing.compared_rows import Change, ComparedRow, Entry
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.model.quantity import Better
from tkperf.model.units import format_number
from tkperf.page.chart import NEUTRAL, PALETTE, Axis, Chart, Curve, Legend, Mark, Place, Point, Rule, RuleKind, Scale
from tkperf.page.comparison.conclusions import describe_trend
from tkperf.page.comparison.ratio_tables import MOST_ACROSS, describe_exactly
from tkperf.page.comparison.ratio_texts import (
    describe_loads,
    name_headlines,
    name_reference,
    sort_figures,
    sort_headlines,
)
from tkperf.page.figures.curves import flag
from tkperf.page.page import ChartView
from tkperf.page.words.uncertainty import INTERVAL

DAY_MS = 86_400_000
# Better, worse, and within noise or possibly within it.
_TONES = {"better": PALETTE[0], "worse": PALETTE[1], "": NEUTRAL}
_ONE = Rule(kind=RuleKind.REFERENCE, y=1.0)
# Names of more runs are no longer readable next to their bars.
_MOST_BARS = 40
# The axis of values goes this many times beyond the longest bar, so that its value can be read there.
_ROOM_FOR_VALUE = 1.1
_ROOM_FOR_NAME = 1.3


def build_headline_charts(comparison: Comparison) -> Iterator[ChartView]:
    """Yield the charts of a cohort's or a history's headline figures, the greatest differences first.

    Other runs have their bars in the matrix.
    """
    if not comparison.headlines or (comparison.cohort is None and comparison.history is None):
        return
    if comparison.history is not None:
        yield from _over_dates(comparison, comparison.history)
        return
    headlines = sort_headlines(comparison)
    if len(comparison.names) <= _MOST_BARS:
        yield _bars(comparison, headlines)
    yield from _times_better(comparison, headlines)


def _bars(comparison: Comparison, headlines: Sequence[ComparedRow]) -> ChartView:
    """Return a bar for each run with its interval, a view for each headline figure."""
    few = len(comparison.names) <= MOST_ACROSS
    names = name_headlines(comparison)
    views = tuple(
        ChartView(
            key=f"headline-bars{number or ''}",
            text=f"A bar for each run, with the {INTERVAL} of its level, if it is known.",
            chart=_draw_bars(comparison, headline, names[headline.place], few=few),
            question="How do the runs compare?",
            choice=(names[headline.place],),
            # Of many runs only figures that show a difference.
            printed=few or not number or headline.beyond_noise > 0,
        )
        for number, headline in enumerate(headlines)
    )
    return replace(views[0], others=views[1:])


def _draw_bars(comparison: Comparison, headline: ComparedRow, title: str, *, few: bool) -> Chart:
    """Return a bar for each run: few in their order and colours, many with the best on top and outliers coloured."""
    measure, to_first = headline.quantity, comparison.cohort is None
    notable = {} if few else dict(_notable(comparison, headline))
    curves = []
    for number, (name, entry) in enumerate(zip(comparison.names, headline.entries, strict=True)):
        if entry.value is None:
            continue
        exactly = describe_exactly(measure, entry, to_first=to_first)
        point = _place_value(name, entry, format_number(entry.value, measure.digits), exactly)
        colour = PALETTE[number % len(PALETTE)] if few else _TONES[notable.get(name, "")]
        bar = Curve(name=name, points=(point,), mark=Mark.BAR, colour=colour, facts=("", "Sure"), has_texts=True)
        curves.append(bar)
    if not few:
        falling = measure.better is not Better.LOWER
        curves.sort(key=lambda curve: curve.values[0] or 0.0, reverse=falling)
    ends = [max(point.y or 0.0, point.high or 0.0) for curve in curves for point in curve.points]
    return Chart(
        title=title,
        x=Axis(title="Run", scale=Scale.ORDINAL, places=tuple(curve.name for curve in curves)),
        y=Axis(title=measure.title, includes=(_ROOM_FOR_VALUE * max(ends, default=0.0),)),
        curves=tuple(curves),
        legend=Legend.NONE,
        flat=True,
    )


def _place_value(at: Place, entry: Entry, *facts: str) -> Point:
    """Return the point of a value with the interval of its level, as far as it is above 0."""
    known = None if entry.uncertainty is None else entry.uncertainty.of_level
    low, high = (None, None) if known is None else (known.low, known.high)
    low = None if low is None else max(low, 0.0)
    return Point(at, entry.value, low, high, flag=flag(entry), facts=facts)


def _times_better(comparison: Comparison, headlines: Sequence[ComparedRow]) -> Iterator[ChartView]:
    """Yield all headline figures of a cohort on one axis: a point for each run, more than 1 is better.

    Outliers are named, and a band has the middle half.
    """
    reference, figures = name_reference(comparison), name_headlines(comparison)
    points: dict[str, list[Point]] = {name: [] for name in _TONES}
    others: list[Point] = []
    bands: list[Point] = []
    for headline in headlines:
        if headline.quantity.better is Better.NEITHER:
            continue
        figure, tones = figures[headline.place], dict(_notable(comparison, headline))
        known: list[float] = []
        for name, entry, ratio in zip(comparison.names, headline.entries, comparison.ratios(headline), strict=True):
            if not ratio:
                continue
            times = 1 / ratio if headline.quantity.better is Better.LOWER else ratio
            known.append(times)
            group = points[tones[name]] if name in tones else others
            exactly = describe_exactly(headline.quantity, entry, to_first=False)
            group.append(Point(figure, times, flag=flag(entry), facts=(name, exactly)))
        if known:  # none to a median of 0
            low, _, high = quantiles([*known, *known][: max(2, len(known))], n=4, method="inclusive")
            bands.append(Point(figure, median(known), low, high))
    if not bands:
        return
    drawn = [point.y or 1.0 for of in (others, *points.values()) for point in of]
    furthest = max(max(each, 1 / each) for each in drawn)
    run = Curve(mark=Mark.POINT, facts=("Run", "Sure"), has_texts=True)
    curves = (
        Curve(points=tuple(bands), mark=Mark.RANGE),
        replace(run, points=tuple(others), muted=True, has_texts=False),
        *(replace(run, name=name, points=tuple(of), colour=_TONES[name]) for name, of in points.items() if of),
    )
    yield ChartView(
        key="headline-spread",
        text=f"How many times better than {reference} each run is; the band has the middle half; outliers are named. "
        "2 is twice the IOPS, or half the latency.",
        chart=Chart(
            title="Headline figures",
            x=Axis(title="Figure", scale=Scale.ORDINAL, places=tuple(str(each.x) for each in bands)),
            y=Axis(title=f"Times better than {reference}", scale=Scale.RATIO, includes=(_ROOM_FOR_NAME * furthest,)),
            curves=curves,
            rules=(_ONE,),
            legend=Legend.NONE,
            flat=True,
        ),
        question=f"How many times better than {reference}?",
    )


def _notable(comparison: Comparison, headline: ComparedRow) -> Iterator[tuple[str, str]]:
    """Yield the outliers of a cohort, each with its tone."""
    for figure in comparison.cohort.figures if comparison.cohort is not None else ():
        if figure.row is headline:
            yield from ((one.name, _tone(one.change)) for one in figure.outliers)


def _tone(change: Change) -> str:
    """Return the tone of a change; a change that is neither better nor worse has none."""
    return change.value if change in (Change.BETTER, Change.WORSE) else ""


def _over_dates(comparison: Comparison, history: History) -> Iterator[ChartView]:
    loads = describe_loads(comparison)
    for number, figure in enumerate(sort_figures(comparison, history.figures)):
        load, key = loads[figure.row.place], f"headline-history{number}"
        yield _of_figure(comparison, history, figure, load, key)


def _of_figure(comparison: Comparison, history: History, figure: HistoryValue, load: str, key: str) -> ChartView:
    measure = figure.row.quantity
    points: list[Point] = []
    for name, day, result, entry in zip(
        comparison.names, history.days, comparison.results, figure.row.entries, strict=True
    ):
        if entry.value is None:
            continue
        began, exactly = (result.info.started_utc or "")[:10], describe_exactly(measure, entry)
        points.append(_place_value(day * DAY_MS, entry, name, began, exactly))
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
        text=f"Each run by its date, with the {INTERVAL}; trend (dashed): "
        f"{describe_trend(figure, history)}, {figure.change}.",
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
