"""Findings of a comparison as sentences, from its data; every output opens with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log

from tkperf.analysis.comparing.arrangement import Arrangement
from tkperf.analysis.comparing.cohort import Cohort, CohortFigure, Outlier
from tkperf.analysis.comparing.comparison import Comparison
from tkperf.analysis.comparing.entries import (
    BEYOND_NOISE,
    Change,
    ComparedRow,
    Entry,
)
from tkperf.analysis.comparing.headlines import ComparedHeadline
from tkperf.analysis.comparing.history import FirmwareChange, History, HistoryFigure
from tkperf.analysis.comparing.robust import FEWEST_IN_TREND, FEWEST_SCORED, OUTLIER_SCORE
from tkperf.analysis.uncertainty.student import COVERAGE_PERCENT, COVERED
from tkperf.model.quantity import PERCENTILES, Better
from tkperf.model.units import format_count
from tkperf.page.comparing.ratios import describe_ratio_interval, format_ratio, list_names
from tkperf.page.comparing.telemetry import find_telemetry_differences
from tkperf.page.words.conditions import find_conditions
from tkperf.page.words.run import find_notices
from tkperf.page.words.uncertainty import two_digits

_MOST_OUTLIERS = 4
# Among more runs, one is the best of some figure by chance.
_MOST_RANKED = 6
_MODEL = "simulated"
# Of ten figures, one in two cases.
_FEWEST_BY_CHANCE = 0.5
_TRENDS = {
    Change.BETTER: "getting better",
    Change.WORSE: "getting worse",
    Change.DIFFERENT: "changing",
    Change.WITHIN_NOISE: "without a trend beyond noise",
    Change.CANNOT_BE_TOLD: "without a trend that can be shown",
}


def find_findings(comparison: Comparison) -> Iterator[str]:
    """Yield the answer first, then its limits."""
    yield from _of_kinds(comparison)
    match comparison.arrangement:
        case Arrangement.COHORT:
            yield from _of_cohort(comparison)
        case Arrangement.HISTORY:
            yield from _of_history(comparison)
        case Arrangement.RUNS if len(comparison.names) == 2:
            yield from _of_pair(comparison)
        case Arrangement.RUNS:
            yield from _of_many(comparison)
    for each in find_telemetry_differences(comparison.names, comparison.results):
        if each.throttled:
            yield f"{each.title}, {each.text}."
    conditions = find_conditions(comparison.names, comparison.results)
    differing = [name for group in conditions for name in group.names]
    if differing:
        yield f"Not all conditions are the same: {', '.join(differing)}."
    not_known = [name for group in conditions for name in group.not_known]
    if not_known:
        yield f"Not known of every run, so perhaps not the same: {', '.join(not_known)}."


def find_common_notices(comparison: Comparison) -> tuple[str, ...]:
    """Return the notices of all runs, each once, such as SIMULATED."""
    notices = (notice for result in comparison.results for notice in find_notices(result))
    return tuple(dict.fromkeys(notices))


def _of_kinds(comparison: Comparison) -> Iterator[str]:
    """A model's or another tool's results mixed with measurements."""
    by_kind: dict[str, list[str]] = {}
    for name, result in zip(comparison.names, comparison.results, strict=True):
        kind = result.info.device.get("kind")
        by_kind.setdefault("of an unknown kind" if kind is None else f"{kind}", []).append(name)
    if len(by_kind) > 1:
        told = "; ".join(f"{kind}: {list_names(names)}" for kind, names in by_kind.items())
        model = any(kind.startswith(_MODEL) for kind in by_kind)
        said = ": what is simulated comes from a model, not from a drive" if model else ""
        yield f"What was measured is not of one kind ({told}){said}."


# ---- two runs


def _of_pair(comparison: Comparison) -> Iterator[str]:
    first, second = comparison.names
    told = [
        (headline, headline.entries[1])
        for headline in comparison.headlines
        if headline.entries[1].change in BEYOND_NOISE
    ]
    # Tails differ more, but readers ask for rates and means first.
    told.sort(key=lambda pair: (pair[0].measure in PERCENTILES, -_distance(pair[1])))
    if told:
        headline, entry = told[0]
        yield _sentence(headline, entry, first, second)
        others = [pair for pair in told[1:] if pair[1].change is not entry.change]
        if others:
            yield _sentence(*others[0], first, second)
    elif any(
        headline.entries[1].change is Change.WITHIN_NOISE for headline in comparison.headlines
    ):
        yield f"No headline figure of {second} differs from that of {first} beyond noise."
    yield from _unsure(comparison.headlines, first, second, told=bool(told))
    yield _count(comparison.rows, second)


def _distance(entry: Entry) -> float:
    """Distance of a ratio from 1, in either direction."""
    return abs(log(entry.ratio)) if entry.ratio else 0.0


def _sentence(headline: ComparedHeadline, entry: Entry, first: str, second: str) -> str:
    """Return ``4 KiB random write, steady: B has 8.70 x the IOPS of A (8.52 to 8.88 with 95 %), beyond noise.``"""
    assert entry.ratio is not None
    interval = ""
    if of_ratio := describe_ratio_interval(entry):
        interval = f" ({of_ratio} with {COVERED})"
    elif entry.change in BEYOND_NOISE:
        interval = " (their ranges do not meet)"
    how = f"{entry.change}, " if headline.measure.better is Better.LOWER else ""
    sure = "beyond noise" if entry.change in BEYOND_NOISE else "noise not known"
    return (
        f"{headline.load}: {second} has {format_ratio(entry.ratio)} x the {headline.measure.label} of "
        f"{first}{interval}, {how}{sure}."
    )


def _unsure(
    headlines: Sequence[ComparedHeadline], first: str, second: str, *, told: bool
) -> Iterator[str]:
    """Yield the greatest uncertain difference if no figure differs beyond noise."""
    unsure = [one for one in headlines if one.entries[1].change is Change.CANNOT_BE_TOLD]
    if unsure and not told:
        greatest = max(unsure, key=lambda one: _distance(one.entries[1]))
        yield _sentence(greatest, greatest.entries[1], first, second)


def _count(rows: Sequence[ComparedRow], second: str) -> str:
    changes = Counter(row.entries[1].change for row in rows)
    parts = [f"{changes[change]} {change}" for change in Change if changes[change]]
    return f"Of {format_count(len(rows), 'figure')} of {second}: {', '.join(parts)}{_by_chance(changes)}."


def _by_chance(changes: Counter[Change | None]) -> str:
    """Return ``4 KiB random write, steady: B has 8.70 x the IOPS of A (8.52 to 8.88 with 95 %), beyond noise.``"""
    beyond = sum(changes[change] for change in BEYOND_NOISE)
    expected = (beyond + changes[Change.WITHIN_NOISE]) * (100 - COVERAGE_PERCENT) / 100
    if expected < _FEWEST_BY_CHANCE or not 0 < beyond <= 2 * expected:
        return ""
    return f"; by chance alone about {round(expected) or 1} would be beyond noise"


# ---- several runs


def _of_many(comparison: Comparison) -> Iterator[str]:
    # Tails differ more, but readers ask for rates and means first.
    first_asked = [one for one in comparison.headlines if one.measure not in PERCENTILES]
    widest = max(first_asked or comparison.headlines, key=_width, default=None)
    if widest is not None and _width(widest) > 0:
        known = _ratios(widest, comparison.names)
        (low, least), (high, most) = known[0], known[-1]
        sure = _how_sure(widest, comparison.names, (least, most))
        # Among many runs, chance shows at the ends first.
        chance = _by_chance(Counter(entry.change for entry in widest.entries[1:]))
        yield (
            f"{widest.load}: {widest.measure.label} from {format_ratio(low)} x ({least}) to "
            f"{format_ratio(high)} x ({most}) that of {comparison.names[0]}, {sure}{chance}."
        )
    leads = Counter(
        name for headline in comparison.headlines if (name := _best(headline, comparison.names))
    )
    if leads and len(comparison.names) <= _MOST_RANKED:
        told = ", ".join(f"{name} in {count}" for name, count in leads.most_common(3))
        yield f"Best by value, of {format_count(sum(leads.values()), 'headline figure')}: {told}."


def _ratios(headline: ComparedHeadline, names: Sequence[str]) -> list[tuple[float, str]]:
    """Return ratios and names in order; the first run's ratio is 1."""
    others = zip(headline.entries[1:], names[1:], strict=True)
    known = [(entry.ratio, name) for entry, name in others if entry.ratio is not None]
    return sorted([(1.0, names[0]), *known])


def _how_sure(headline: ComparedHeadline, names: Sequence[str], ends: Sequence[str]) -> str:
    """Describe the certainty of both ends; the first run counts as the reference only."""
    others = zip(headline.entries[1:], names[1:], strict=True)
    beyond = {name: entry.change in BEYOND_NOISE for entry, name in others if name in ends}
    if all(beyond.values()):
        return "beyond noise"
    sure = [name for name, is_beyond in beyond.items() if is_beyond]
    return f"beyond noise of {sure[0]} alone" if sure else "within noise, or noise not known"


def _width(headline: ComparedHeadline) -> float:
    ratios = [entry.ratio for entry in headline.entries[1:] if entry.ratio]
    return log(max(*ratios, 1.0) / min(*ratios, 1.0)) if ratios else 0.0


def _best(headline: ComparedHeadline, names: Sequence[str]) -> str | None:
    """Return the best run; None if runs share the first place, or if a value is not known.

    Saturation may lie beyond the loads that were tried.
    """
    known = [entry.value for entry in headline.entries if entry.value is not None]
    if len(known) < len(names) or headline.measure.better is Better.NEITHER:
        return None
    first = max(known) if headline.measure.better is Better.HIGHER else min(known)
    return names[known.index(first)] if known.count(first) == 1 else None


# ---- a cohort


def _of_cohort(comparison: Comparison) -> Iterator[str]:
    cohort = comparison.cohort
    if cohort is None or not cohort.figures:
        return
    yield _spreads(cohort)
    strays = [(one, figure) for figure in cohort.figures for one in figure.outliers]
    if strays:
        strays.sort(key=lambda pair: -abs(pair[0].score))
        for name in list(dict.fromkeys(one.name for one, _ in strays))[:_MOST_OUTLIERS]:
            yield _outlier(name, [pair for pair in strays if pair[0].name == name])
    elif len(comparison.names) < FEWEST_SCORED:
        yield f"Outliers are named among {FEWEST_SCORED} runs or more."
    else:
        yield (
            f"No outlier: no modified z-score beyond {OUTLIER_SCORE} that the run's own uncertainty "
            "does not explain."
        )


def _spreads(cohort: Cohort) -> str:
    known = [
        (spread, figure.headline.text)
        for figure in cohort.figures
        if (spread := figure.spread_percent) is not None
    ]
    if not known:
        return f"{cohort.title}: of each headline figure more than half of the runs have the same value."
    (least, _), (most, where) = (pick(known, key=lambda pair: pair[0]) for pick in (min, max))
    low, high = two_digits(least), two_digits(most)
    span = f"{high} %" if low == high else f"{low} to {high} %, most in {where}"
    same = len(cohort.figures) - len(known)
    besides = (
        f"; of {format_count(same, 'figure')} more than half of the runs have the same value"
        if same
        else ""
    )
    return (
        f"{cohort.title}: headline figures spread by {span} (robust standard deviation){besides}."
    )


def _outlier(name: str, strays: Sequence[tuple[Outlier, CohortFigure]]) -> str:
    told = [
        f"{figure.headline.text} {two_digits(abs(one.from_median_percent))} % "
        f"{'above' if one.from_median_percent > 0 else 'below'} the median (score {one.score:.1f})"
        for one, figure in strays[:2]
    ]
    more = format_count(len(strays) - 2, "more figure") if len(strays) > 2 else ""
    return f"Outlier {name}: {'; '.join(filter(None, (*told, more)))}."


# ---- a history


def _of_history(comparison: Comparison) -> Iterator[str]:
    history = comparison.history
    if history is None:
        return
    changes = Counter[Change | None](figure.change for figure in history.figures)
    of = f"Drive {history.serial}, " if history.serial else ""
    count, span = len(history.days), history.days[-1] - history.days[0]
    said = f"{of}{format_count(count, 'run')} over {describe_days(span)}"
    told = [figure for figure in history.figures if figure.change in BEYOND_NOISE]
    told.sort(key=lambda figure: -abs(figure.trend.slope if figure.trend else 0.0))
    if told:
        most = told[0]
        yield f"{said}: {most.headline.text} {describe_trend(most, history)}, {most.change}, beyond noise."
        parts = (f"{changes[change]} {word}" for change, word in _TRENDS.items() if changes[change])
        count_of = format_count(len(history.figures), "headline figure")
        yield f"Of {count_of}: {', '.join(parts)}{_by_chance(changes)}."
    elif changes[Change.WITHIN_NOISE]:
        yield f"{said}: no trend beyond noise in any headline figure."
    elif count >= FEWEST_IN_TREND and len(set(history.days)) < count:
        yield f"{said}: no trend can be shown where two runs have the same date."
    else:
        yield (
            f"{said}: too few to tell a trend from noise ({FEWEST_IN_TREND} or more are needed)."
        )
    for change in history.firmware:
        yield describe_firmware(change)


def describe_firmware(change: FirmwareChange) -> str:
    return (
        f"Firmware changed from {change.before} to {change.after} before run {change.name}: "
        "what looks like a trend may be a step there."
    )


def describe_days(days: float) -> str:
    """Return ``12 days``, ``9 h``, ``5 min``."""
    hours = 24 * days
    if hours < 2:
        return f"{60 * hours:.0f} min"
    return f"{hours:.0f} h" if days < 2 else f"{days:,.0f} days"


def describe_trend(figure: HistoryFigure, history: History) -> str:
    """Return ``-1.2 % per 30 days (-2.0 to -0.4)``."""
    trend = figure.trend
    if trend is None:
        return "not known"
    text = f"{_signed(trend.slope)} % per {history.period.label}"
    if trend.low is None or trend.high is None:
        return text
    return f"{text} ({_signed(trend.low)} to {_signed(trend.high)})"


def _signed(percent: float) -> str:
    return f"{percent:+.2f}" if abs(percent) < 10 else f"{percent:+,.0f}"
