"""Charts that open a comparison: each answers one question, with the size of a difference and its certainty."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tkperf.analysis.comparing.arrangements import History, HistoryFigure, find_trend
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import Change, ComparedRow
from tkperf.page.comparison.findings import describe_trend
from tkperf.page.comparison.tables import MOST_ACROSS, describe_exactly
from tkperf.page.comparison.words import describe_loads, name_headlines, name_reference
from tkperf.page.page import ChartView
from tkperf.page.words.uncertainty import INTERVAL
from tkperf.render.charts.flagged import flag
from tkperf.render.charts.headlines import (
    DAY_MS,
    ratios_with_intervals,
    spread_of_runs,
    values_over_dates,
)
from tkperf.render.charts.vega import Row


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
    first, *others = comparison.names
    figures = name_headlines(comparison)
    rows: list[Row] = []
    for headline in comparison.headlines:
        for name, entry in zip(others, headline.entries[1:], strict=True):
            if not entry.ratio:
                continue
            known = entry.ratio_uncertainty
            rows.append(
                {
                    "load": figures[headline.place],
                    "run": name,
                    "value": entry.ratio,
                    "low": None if known is None else known.low,
                    "high": None if known is None else known.high,
                    "tone": _tone(entry.change),
                    "told": f"{entry.change}; {describe_exactly(headline.quantity, entry)}",
                    **flag(entry),
                }
            )
    of = others[0] if len(others) == 1 else "each run"
    return ChartView(
        key="headline-ratios",
        text=f"Headline figures of {of} as ratios to {first}, with the {INTERVAL}, where it is known.",
        spec=ratios_with_intervals(
            rows, list(figures.values()), others, f"Headline figures against {first}", "Ratio"
        ),
        question=f"How far from {first}?",
    )


def _spread(comparison: Comparison) -> Iterator[ChartView]:
    reference = name_reference(comparison)
    of_cohort = comparison.cohort is not None
    figures = name_headlines(comparison)
    rows: list[Row] = []
    for headline in comparison.headlines:
        ratios = comparison.ratios(headline)
        known = [ratio for ratio in ratios if ratio is not None]
        if not known:  # the median of a cohort is 0
            continue
        tones, middle = dict(_notable(comparison, headline)), median(known)
        rows += [
            {
                "load": figures[headline.place],
                "run": name,
                "value": ratio,
                "tone": tones.get(name, ""),
                "told": describe_exactly(headline.quantity, entry, to_first=not of_cohort),
                "label": name if name in tones else "",
                "below": ratio < middle,
                **flag(entry),
            }
            for name, entry, ratio in zip(comparison.names, headline.entries, ratios, strict=True)
            if ratio is not None
        ]
    if not rows:
        return
    who = "outliers are named" if of_cohort else "the lowest and the highest are named"
    yield ChartView(
        key="headline-spread",
        text=f"Each run a point for each headline figure, as ratio to {reference}; the band has the middle half of the runs; {who}.",
        spec=spread_of_runs(
            rows,
            list(dict.fromkeys(str(row["load"]) for row in rows)),
            f"Headline figures against {reference}",
            "Ratio",
        ),
        question="How are the runs spread?",
    )


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
    rows: list[Row] = []
    places: list[float] = []
    values: list[float] = []
    for name, day, result, entry in zip(
        comparison.names, history.days, comparison.results, figure.row.entries, strict=True
    ):
        if entry.value is None:
            continue
        places.append(day * DAY_MS)
        values.append(entry.value)
        known = None if entry.uncertainty is None else entry.uncertainty.of_level
        rows.append(
            {
                "t": day * DAY_MS,
                "run": name,
                "date": (result.info.started_utc or "")[:10],
                "value": entry.value,
                "low": None if known is None else known.low,
                "high": None if known is None else known.high,
                "told": describe_exactly(measure, entry),
                **flag(entry),
            }
        )
    return ChartView(
        key=key,
        text=f"{load}, {measure.label} of each run by its date, with the {INTERVAL} of its level; "
        f"trend (dashed): {describe_trend(figure, history)}, {figure.change}.",
        spec=values_over_dates(
            rows,
            find_trend(places, values),
            (history.days[0] * DAY_MS, history.days[-1] * DAY_MS),
            history.firmware,
            title=f"{load}: {measure.label}",
            y_title=measure.title,
        ),
    )
