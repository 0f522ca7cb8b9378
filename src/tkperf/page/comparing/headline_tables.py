"""Tables that open a comparison: its headline figures, by arrangement and number of runs."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.analysis.comparing.arrangement import Arrangement
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import Change, Entry
from tkperf.analysis.comparing.headlines import ComparedHeadline
from tkperf.analysis.comparing.history import HistoryFigure
from tkperf.analysis.comparing.robust import (
    FEWEST_IN_TREND,
    FEWEST_SCORED,
    OUTLIER_SCORE,
    Distribution,
)
from tkperf.analysis.uncertainty.student import COVERED
from tkperf.model.units import NOT_MEASURED, format_number
from tkperf.page.comparing.ratios import describe_ratio_interval, describe_ratio_uncertainty
from tkperf.page.comparing.tables import (
    MOST_ACROSS,
    Cell,
    ComparedTable,
    Line,
    build_compared_table,
    describe_percent,
    hint,
    ratio_cells,
    reference_of,
    summary_cells,
    summary_head,
)
from tkperf.page.words.flags import mark
from tkperf.page.words.uncertainty import two_digits

_PLACE = ("Load", "Measure")
# With more runs a column has no room for intervals; the chart below has them.
_MOST_WITH_INTERVALS = 4
_ALIKE = "alike"


def build_headline_table(comparison: Comparison) -> ComparedTable | None:
    """Return a row for each headline figure; None without any."""
    if not comparison.headlines:
        return None
    if comparison.cohort is not None:
        return _of_cohort(comparison)
    if comparison.history is not None:
        return _of_history(comparison)
    if len(comparison.names) == 2:
        return _of_pair(comparison)
    return _of_several(comparison)


def build_runs_table(comparison: Comparison) -> ComparedTable | None:
    """Return a row for each run, a column for each headline figure.

    None if few runs have no common drive or model, or without headline figures.
    """
    together = comparison.arrangement is not Arrangement.RUNS
    if not comparison.headlines or not (together or len(comparison.names) > MOST_ACROSS):
        return None
    columns = [ratio_cells(comparison, headline.row) for headline in comparison.headlines]
    lines: list[Line] = [
        (_of_run(comparison, number), [column[number] for column in columns])
        for number in range(len(comparison.names))
    ]
    dated = ("Began", "Firmware") if comparison.history is not None else ()
    heads = (f"{headline.load}: {headline.measure.title}" for headline in comparison.headlines)
    return build_compared_table(
        f"Each run's headline figures as ratios to {reference_of(comparison)}",
        ("Run", *dated, *heads),
        lines,
    )


def _of_run(comparison: Comparison, number: int) -> tuple[str, ...]:
    """Name of a run in the first columns."""
    name, info = comparison.names[number], comparison.results[number].info
    if comparison.history is None:
        return (name,)
    firmware = info.device.get("firmware")
    return (name, (info.started_utc or "")[:10], str(firmware) if firmware else "not known")


def _place(headline: ComparedHeadline) -> tuple[str, ...]:
    return (headline.load, headline.measure.title)


def _of_pair(comparison: Comparison) -> ComparedTable:
    first, second = comparison.names
    lines: list[Line] = []
    for headline in comparison.headlines:
        one, other = headline.entries
        (_, ratio) = ratio_cells(comparison, headline.row)
        values = [_value(headline, entry) for entry in (one, other)]
        told = Cell(text=str(other.change or ""), change=other.change)
        lines.append(
            (
                _place(headline),
                [*values, ratio, Cell(text=describe_ratio_interval(other) or NOT_MEASURED), told],
            )
        )
    return build_compared_table(
        "Headline figures",
        (*_PLACE, first, second, f"{second} / {first}", COVERED, "Change"),
        lines,
    )


def _value(headline: ComparedHeadline, entry: Entry) -> Cell:
    text = format_number(entry.value, headline.measure.digits) + mark(entry)
    return Cell(text=entry.not_found or text, hint=hint(headline.measure, entry))


def _of_several(comparison: Comparison) -> ComparedTable:
    """A column for each of a few runs; the ends of many."""
    if len(comparison.names) > MOST_ACROSS:
        lines: list[Line] = [
            (_place(headline), summary_cells(comparison, headline.row))
            for headline in comparison.headlines
        ]
        return build_compared_table("Headline figures", (*_PLACE, *summary_head(comparison)), lines)
    lines = []
    few = len(comparison.names) <= _MOST_WITH_INTERVALS
    for headline in comparison.headlines:
        ratios = ratio_cells(comparison, headline.row)[1:]
        sure = [
            Cell(text=f"{cell.text}{describe_ratio_uncertainty(entry)}" if few else cell.text, hint=cell.hint, change=cell.change)
            for cell, entry in zip(ratios, headline.entries[1:], strict=True)
        ]  # fmt: skip
        lines.append((_place(headline), [_value(headline, headline.entries[0]), *sure]))
    return build_compared_table(
        f"Headline figures, as ratios to {comparison.names[0]}"
        + (f" (± {COVERED})" if few else ""),
        (*_PLACE, *comparison.names),
        lines,
    )


def _of_cohort(comparison: Comparison) -> ComparedTable:
    assert comparison.cohort is not None
    lines: list[Line] = []
    for figure in comparison.cohort.figures:
        distribution, digits = figure.distribution, figure.headline.measure.digits
        outliers = ", ".join(one.name for one in figure.outliers)
        numbers = (
            format_number(distribution.median, digits),
            _median_interval(distribution, digits),
            _ALIKE if figure.spread_percent is None else two_digits(figure.spread_percent),
            describe_percent(figure.own_percent),
            format_number(distribution.lowest, digits),
            format_number(distribution.highest, digits),
        )
        named = outliers or ("none" if distribution.scores is not None else NOT_MEASURED)
        told = "; ".join(
            f"{one.name}: {one.from_median_percent:+.1f} %, score {one.score:+.1f}"
            for one in figure.outliers
        )
        cells = [*(Cell(text=number) for number in numbers), Cell(text=named, hint=told)]
        lines.append((_place(figure.headline), cells))
    return build_compared_table(
        f"Distribution over {len(comparison.names)} runs",
        (*_PLACE, "Median", f"Median, {COVERED}", "Spread (%)", "Own ± (%)", "Lowest", "Highest", "Outliers"),
        lines,
        (
            "Spread: robust standard deviation between runs, 1.4826 x the median absolute deviation from the "
            f"median; {_ALIKE}: more than half have the same figure, of which it tells nothing. Own ±: half the {COVERED} interval of a single run's figure. Outliers: modified "
            f"z-score beyond {OUTLIER_SCORE} (0.6745 x distance from the median / median absolute deviation; "
            "Iglewicz and Hoaglin), the median beyond the run's own uncertainty; named among "
            f"{FEWEST_SCORED} runs or more.",
        ),
    )  # fmt: skip


def _median_interval(distribution: Distribution, digits: int | None) -> str:
    if distribution.median_low is None or distribution.median_high is None:
        return NOT_MEASURED
    low, high = distribution.median_low, distribution.median_high
    return f"{format_number(low, digits)} to {format_number(high, digits)}"


def _of_history(comparison: Comparison) -> ComparedTable:
    history = comparison.history
    assert history is not None
    lines: list[Line] = []
    for figure in history.figures:
        trend = figure.trend
        told = (
            format_number(figure.median, figure.headline.measure.digits),
            NOT_MEASURED if trend is None else f"{trend.slope:+.2f}",
            _trend_interval(figure),
        )
        change = Cell(text=_describe_change(figure.change), change=figure.change)
        lines.append((_place(figure.headline), [*(Cell(text=text) for text in told), change]))
    return build_compared_table(
        f"Trend over {len(comparison.names)} runs",
        (*_PLACE, "Median", f"Trend (% per {history.period.label})", f"Trend, {COVERED}", "Change"),
        lines,
        (
            "Trend: Theil and Sen's slope, the median of the slopes between all pairs of runs, in percent of "
            f"the median, and its interval by Kendall's tau (Sen 1968); none of fewer than {FEWEST_IN_TREND} runs.",
        ),
    )  # fmt: skip


def _trend_interval(figure: HistoryFigure) -> str:
    trend = figure.trend
    if trend is None or trend.low is None or trend.high is None:
        return NOT_MEASURED
    return f"{trend.low:+.2f} to {trend.high:+.2f}"


def _describe_change(change: Change) -> str:
    return "no trend beyond noise" if change is Change.WITHIN_NOISE else str(change)


def build_headline_tables(comparison: Comparison) -> Sequence[ComparedTable]:
    """Return both tables, without missing ones."""
    tables = (build_headline_table(comparison), build_runs_table(comparison))
    return [table for table in tables if table is not None]
