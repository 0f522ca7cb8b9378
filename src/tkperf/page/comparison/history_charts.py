"""Charts of the history of a drive: each headline figure over the dates of its runs."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.analysis.comparing.arrangements import History, HistoryValue, find_trend
from tkperf.analysis.comparing.compared_rows import Entry
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.page.chart import PALETTE, Axis, Chart, Curve, Mark, Place, Point, Rule, RuleKind, Scale
from tkperf.page.comparison.conclusions import describe_trend
from tkperf.page.comparison.ratio_tables import describe_exactly
from tkperf.page.comparison.ratio_texts import describe_loads, sort_figures
from tkperf.page.figures.curves import flag
from tkperf.page.page import ChartView
from tkperf.page.words.uncertainty import INTERVAL

DAY_MS = 86_400_000


def build_history_charts(comparison: Comparison) -> Iterator[ChartView]:
    """Yield a chart for each headline figure of a history, the figure with the greatest trend first. Other comparisons
    have no such charts.
    """
    history = comparison.history
    if history is None:
        return
    loads = describe_loads(comparison)
    for number, figure in enumerate(sort_figures(comparison, history.figures)):
        load, key = loads[figure.row.place], f"headline-history{number}"
        yield _of_figure(comparison, history, figure, load, key)


def _place_value(at: Place, entry: Entry, *facts: str) -> Point:
    """Return the point of a value with the interval of its level, as far as the interval is above 0."""
    known = None if entry.uncertainty is None else entry.uncertainty.of_level
    low, high = (None, None) if known is None else (known.low, known.high)
    low = None if low is None else max(low, 0.0)
    return Point(at, entry.value, low, high, flag=flag(entry), facts=facts)


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
