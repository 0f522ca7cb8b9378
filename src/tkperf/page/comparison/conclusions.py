"""Build sentences about the findings of a comparison. Every output begins with these sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from tkperf.analysis.comparing.arrangements import (
    FEWEST_IN_TREND,
    FEWEST_SCORED,
    Cohort,
    CohortValue,
    History,
    HistoryValue,
    Outlier,
)
from tkperf.analysis.comparing.compared_rows import BEYOND_NOISE, Change, ComparedRow, Entry
from tkperf.analysis.comparing.comparison import Comparison, ComparisonCode, ComparisonReason, judge_comparison
from tkperf.analysis.drive_telemetry import DriveTelemetry
from tkperf.analysis.results import RunResult, TestResult
from tkperf.analysis.uncertainty.spread import COVERAGE_PERCENT
from tkperf.analysis.verdict import Judgement
from tkperf.model.quantity import LATENCY_MAX, PERCENTILES, Better
from tkperf.model.units import MOST_NAMED_RUNS, format_count, format_duration, list_names
from tkperf.page.comparison.ratio_texts import (
    describe_doubt,
    describe_group,
    describe_loads,
    describe_ratio_interval,
    format_ratio,
    list_ratios,
    name_headlines,
)
from tkperf.page.findings.headlines import Headline, headline_spikes
from tkperf.page.verdict_texts import Verdict, describe_reason, word_verdict
from tkperf.page.words.conditions import ConditionGroup
from tkperf.page.words.run import find_shared_notices
from tkperf.page.words.uncertainty import two_digits

# The smallest difference of temperatures that a comparison reports, in °C. Smaller differences can have other causes,
# such as the temperature of the room or the precision of a sensor.
DIFFERENCE_C = 10.0
DIFFERENCE_OF_AMPLIFICATION = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryDifference:
    """The difference between several runs in one test.

    Attributes:
        throttled: whether the runs differ in the time for which they were throttled.
    """

    test: str
    title: str
    text: str
    throttled: bool = False


def find_telemetry_differences(names: Sequence[str], results: Sequence[RunResult]) -> Iterator[TelemetryDifference]:
    """Yield the differences in the order of the tests in the first run. A difference requires values from two or more
    runs.
    """
    for test in results[0].tests:
        tests = [_find(result, test.name) for result in results]
        for text, throttled in _differences(names, tests):
            yield TelemetryDifference(test=test.name, title=test.title, text=text, throttled=throttled)


def _find(result: RunResult, name: str) -> TestResult | None:
    return next((test for test in result.tests if test.name == name), None)


def _differences(names: Sequence[str], tests: Sequence[TestResult | None]) -> Iterator[tuple[str, bool]]:
    throttled = _greatest(names, tests, lambda drive: drive.throttled_s)
    if len(throttled) > 1 and any(throttled.values()):
        yield f"throttled: {_describe_throttled(throttled)}", True
    degrees = _greatest(names, tests, lambda drive: drive.temperature_most_c)
    if len(degrees) > 1 and max(degrees.values()) - min(degrees.values()) >= DIFFERENCE_C:
        yield f"warmest: {_list_values(degrees, '{:.0f} °C')}", False
    amplified = _greatest(names, tests, lambda drive: drive.write_amplification)
    low, high = min(amplified.values(), default=0), max(amplified.values(), default=0)
    if len(amplified) > 1 and low > 0 and high / low >= DIFFERENCE_OF_AMPLIFICATION:
        yield f"write amplification: {_list_values(amplified, '{:.2f}')}", False


def _greatest(
    names: Sequence[str], tests: Sequence[TestResult | None], of: Callable[[DriveTelemetry], float | None]
) -> dict[str, float]:
    """Return, for each run, the greatest value of its drives. A run without a value is omitted."""
    greatest = {}
    for name, test in zip(names, tests, strict=True):
        values = [value for drive in (test.telemetry if test else ()) if (value := of(drive)) is not None]
        if values:
            greatest[name] = max(values)
    return greatest


def _list_values(values: Mapping[str, float], form: str) -> str:
    """Return the value of each run as a list. If there are many runs, return only the lowest and the highest value:
    ``42 °C (D) to 75 °C (C)``.
    """
    if len(values) <= MOST_NAMED_RUNS:
        return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())
    ends = (pick(values, key=lambda name: values[name]) for pick in (min, max))
    return " to ".join(f"{form.format(values[name])} ({name})" for name in ends)


def _describe_throttled(seconds: Mapping[str, float]) -> str:
    """Return a list of the times for which each run was throttled. One text names all runs with equal times. Runs that
    were not throttled are at the end.
    """
    by_words: dict[str, list[str]] = {}
    for name, value in sorted(seconds.items(), key=lambda pair: not pair[1]):
        by_words.setdefault(f"for {format_duration(value)}" if value else "not", []).append(name)
    return "; ".join(f"{list_names(names)} {words}" for words, names in by_words.items())


_MOST_OUTLIERS = 4
# If chance alone is expected to cause fewer differences than this number, a sentence does not mention chance. With ten
# figures, the expected number is 0.5.
_FEWEST_BY_CHANCE = 0.5
_TRENDS = {
    Change.BETTER: "getting better",
    Change.WORSE: "getting worse",
    Change.DIFFERENT: "changing",
    Change.WITHIN_NOISE: "without a trend beyond noise",
    Change.INCONCLUSIVE: "without a trend that can be shown",
}

# The load or the name of each headline figure. The key is ``place`` of the row that contains the figure.
_Names = Mapping[tuple[object, ...], str]


def find_conclusions(comparison: Comparison) -> Iterator[str]:
    """Yield the sentences about spikes, then the sentences about the differences of the figures, and finally those
    about throttled drives. The limitations of the comparison are part of the verdict.
    """
    yield from _of_spikes(comparison)
    if comparison.cohort is not None:
        yield from _of_cohort(comparison, comparison.cohort)
    elif comparison.history is not None:
        yield from _of_history(comparison, comparison.history)
    elif len(comparison.names) == 2:
        yield from _of_pair(comparison)
    else:
        yield from _of_many(comparison)
    for each in find_telemetry_differences(comparison.names, comparison.results):
        if each.throttled:
            yield f"{each.title}, {each.text}."


def find_comparison_notices(comparison: Comparison) -> tuple[str, ...]:
    """Return the notices of the runs, such as SIMULATED. A notice names the runs to which it applies, unless it applies
    to all runs.
    """
    return find_shared_notices(dict(zip(comparison.names, comparison.results, strict=True)))


# ---- the verdict


def describe_comparison_verdict(comparison: Comparison, verdict: Judgement[ComparisonReason]) -> Verdict:
    """Return the verdict on a comparison in words. One text names all runs with the same reason."""
    names: dict[str, list[str]] = {}
    for reason in verdict.reasons:
        of = reason.names if reason.of_run else ()
        names.setdefault(describe_comparison_reason(reason, comparison), []).extend(of)
    return word_verdict(
        verdict,
        (describe_comparison_reason(reason, comparison) for reason in verdict.reasons),
        reasons=(f"{call_several(of, len(comparison.names))}: {text}" if of else text for text, of in names.items()),
    )


def call_several(names: Sequence[str], count: int) -> str:
    """Return the names of some runs of a comparison: ``A, B, C, D and 3 more``. If all runs are named, return ``all 12
    runs``.
    """
    if len(names) < count:
        return list_names(names)
    return "both runs" if count == 2 else f"all {count} runs"


def find_verdict(comparison: Comparison, groups: Sequence[ConditionGroup]) -> Judgement[ComparisonReason]:
    """Return the verdict on a comparison. ``groups`` contains the conditions that differ or are not known."""
    return judge_comparison(
        comparison,
        differing=[name for group in groups for name in group.names],
        not_known=[name for group in groups for name in group.not_known],
    )


def describe_comparison_reason(reason: ComparisonReason, comparison: Comparison) -> str:
    """Return a reason in words. If the reason concerns a single run, return the most serious reason of the verdict on
    this run.
    """
    if reason.of_run is not None:
        runs = dict(zip(comparison.names, comparison.results, strict=True))
        return describe_reason(reason.of_run, runs[reason.names[0]])
    match reason.code:
        case ComparisonCode.MODEL_AND_DEVICE:
            return f"{list_names(reason.names)} measured a model, the others a device"
        case ComparisonCode.CONDITIONS_NOT_KNOWN:
            return f"not known of every run: {', '.join(reason.names)}"
        case _:
            return f"different {', '.join(reason.names)}"


# ---- spikes that occur only in some runs


def _of_spikes(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence about each load under which some runs have their highest periodic latency spikes, while other
    runs have no periodic spikes.
    """
    runs = dict(zip(comparison.names, comparison.results, strict=True))
    heights: dict[tuple[str, str], list[str]] = {}
    for name, result in runs.items():
        for spikes in headline_spikes(result.tests):
            without = [other for other, of in runs.items() if _has_no_spikes(of, spikes)]
            if without:
                place = (spikes.label, list_names(without))
                heights.setdefault(place, []).append(f"{name} {spikes.text}")
    for (label, without_any), of_runs in heights.items():
        yield f"{label}: {list_names(of_runs)}; {without_any} none."


def _has_no_spikes(result: RunResult, spikes: Headline) -> bool:
    """Return whether tkperf searched for spikes in the run under the same load and found no spikes."""
    sought = [
        timeline.spikes
        for test in result.tests
        for section in test.sections
        for timeline in section.timelines
        if (test.name, section.name) == (spikes.test, spikes.section)
        and (timeline.workload, timeline.quantity) == (spikes.workload, LATENCY_MAX.key)
    ]
    return bool(sought) and not any(sought)


# ---- two runs


def _of_pair(comparison: Comparison) -> Iterator[str]:
    first, second = comparison.names
    loads = describe_loads(comparison)
    certain = [row for row in comparison.headlines if row.entries[1].change in BEYOND_NOISE]
    unsure = [row for row in comparison.headlines if row.entries[1].change is Change.INCONCLUSIVE]
    # Rows of tail latencies are last. Their differences are greater, but readers first want to know rates and means.
    certain.sort(key=lambda row: (row.quantity in PERCENTILES, -_distance(row.entries[1])))
    if certain:
        yield _ratio_sentence(certain[0], loads, first, second)
        change = certain[0].entries[1].change
        others = [row for row in certain if row.entries[1].change is not change]
        if others:
            yield _ratio_sentence(others[0], loads, first, second)
    elif any(row.entries[1].change is Change.WITHIN_NOISE for row in comparison.headlines):
        of = format_count(len(comparison.headlines), "headline figure")
        open_ = f"; {len(unsure)} of {of} cannot be judged" if unsure else ""
        yield f"No headline figure of {second} differs from that of {first} beyond noise{open_}."
    if unsure and not certain:
        greatest = max(unsure, key=lambda row: _distance(row.entries[1]))
        yield _ratio_sentence(greatest, loads, first, second)
    changes = Counter(row.entries[1].change for row in comparison.rows)
    counts = ", ".join(f"{changes[change]} {change}" for change in Change if changes[change])
    figures = format_count(len(comparison.rows), "figure")
    yield f"Of {figures} of {second}: {counts}{_describe_chance(changes)}."


def _distance(entry: Entry) -> float:
    """Return the absolute logarithm of a ratio. Ratios above 1 and below 1 are treated equally."""
    return abs(log(entry.ratio)) if entry.ratio else 0.0


def _ratio_sentence(row: ComparedRow, loads: _Names, first: str, second: str, *, place: int = 1) -> str:
    """Return a sentence about a ratio: ``4 KiB random write, settled: B has 8.70 × the IOPS of A (8.52 to 8.88), beyond
    noise.``
    """
    entry = row.entries[place]
    assert entry.ratio is not None
    interval = ""
    if of_ratio := describe_ratio_interval(entry):
        interval = f" ({of_ratio})"
    elif entry.change in BEYOND_NOISE:
        interval = " (their ranges do not meet)"
    how = f"{entry.change}, " if row.quantity.better is Better.LOWER else ""
    sure = _certainty_of(entry)
    return (
        f"{loads[row.place]}: {second} has {format_ratio(entry.ratio)} × the {row.quantity.label} of "
        f"{first}{interval}, {how}{sure}."
    )


def _describe_chance(changes: Counter[Change | None]) -> str:
    """Return the number of differences that are expected by chance, in words. The text is empty if this number is too
    small, if there are no differences, or if there are too many differences for chance to explain.
    """
    beyond = sum(changes[change] for change in BEYOND_NOISE)
    expected = (beyond + changes[Change.WITHIN_NOISE]) * (100 - COVERAGE_PERCENT) / 100
    if expected < _FEWEST_BY_CHANCE or not 0 < beyond <= 2 * expected:
        return ""
    return f"; by chance alone about {round(expected) or 1} would be beyond noise"


# ---- several runs


def _certainty_of(entry: Entry) -> str:
    if entry.change in BEYOND_NOISE:
        return "beyond noise"
    if entry.change is Change.WITHIN_NOISE:
        return Change.WITHIN_NOISE.value
    return describe_doubt(entry)


def _of_many(comparison: Comparison) -> Iterator[str]:
    # If the headlines contain other figures, tail latencies are omitted. Tail latencies differ more between runs than
    # rates and means do, but readers first want to know rates and means.
    first_asked = [row for row in comparison.headlines if row.quantity not in PERCENTILES]
    asked = first_asked or comparison.headlines
    # A difference that noise can explain is named only if noise can explain all differences.
    certain = [row for row in asked if any(one.change in BEYOND_NOISE for one in row.entries)]
    widest = max(certain or asked, key=_width, default=None)
    if widest is None or not _width(widest):
        return
    entries = dict(zip(comparison.names, widest.entries, strict=True))
    first = comparison.names[0]
    known = list_ratios(comparison, widest)
    (low, least), (high, most) = min(known), max(known)
    ends = [name for name in (least, most) if name != first]
    sure = [name for name in ends if entries[name].change in BEYOND_NOISE]
    if sure and sure != ends:
        certainty = f"beyond noise for {sure[0]} only"
    else:
        by_end = {_certainty_of(entries[name]): name for name in ends}
        certainty = ", ".join(text if len(by_end) == 1 else f"{text} for {name}" for text, name in by_end.items())
    # If there are many runs, the lowest and the highest value are those that chance affects most.
    chance = _describe_chance(Counter(entry.change for entry in widest.entries[1:]))
    yield (
        f"{name_headlines(comparison)[widest.place]} from {format_ratio(low)} × ({least}) to "
        f"{format_ratio(high)} × ({most}) that of {first}, {certainty}{chance}."
    )


def _width(row: ComparedRow) -> float:
    ratios = [entry.ratio for entry in row.entries[1:] if entry.ratio]
    return log(max(*ratios, 1.0) / min(*ratios, 1.0)) if ratios else 0.0


# ---- a cohort


def _of_cohort(comparison: Comparison, cohort: Cohort) -> Iterator[str]:
    if not cohort.figures:
        return
    names = name_headlines(comparison)
    outliers = [(one, figure) for figure in cohort.figures for one in figure.outliers]
    unsure = [(one, figure) for figure in cohort.figures for one in figure.unsure]
    sure = {one.name for one, _ in outliers}
    yield from _name_far("Outlier {}", outliers, names)
    others = [pair for pair in unsure if pair[0].name not in sure]
    yield from _name_far("{} may be an outlier, but its own uncertainty reaches the median", others, names)
    yield f"{describe_group(comparison)}: {_describe_spreads(cohort.figures, names)}."
    if not outliers and len(comparison.names) < FEWEST_SCORED:
        yield f"Outliers are named among {FEWEST_SCORED} runs or more."
    elif not outliers and not unsure:
        yield "No outlier."


def _describe_spreads(figures: Sequence[CohortValue], names: _Names) -> str:
    alike = "more than half of the runs have the same value"
    known = [(spread, names[figure.row.place]) for figure in figures if (spread := figure.spread_percent) is not None]
    if not known:
        return f"in every headline figure {alike}"
    (least, _), (most, where) = (pick(known, key=lambda pair: pair[0]) for pick in (min, max))
    low, high = two_digits(least), two_digits(most)
    span = f"{high} %" if low == high else f"{low} to {high} %, most in {where}"
    text = f"headline figures spread by {span}"
    same = len(figures) - len(known)
    return f"{text}; in {format_count(same, 'figure')} {alike}" if same else text


def _name_far(words: str, outliers: Sequence[tuple[Outlier, CohortValue]], names: _Names) -> Iterator[str]:
    """Yield a sentence for each run that is far from the median. The run that is farthest from the median is first.
    ``words`` contains a placeholder for the name of the run.
    """
    furthest = sorted(outliers, key=lambda pair: -abs(pair[0].score))
    for name in list(dict.fromkeys(one.name for one, _ in furthest))[:_MOST_OUTLIERS]:
        of_run = [(one, figure) for one, figure in furthest if one.name == name]
        parts = [
            f"{names[figure.row.place]} {two_digits(abs(one.from_median_percent))} % "
            f"{'above' if one.from_median_percent > 0 else 'below'} the median"
            for one, figure in of_run[:2]
        ]
        if len(of_run) > 2:
            parts.append(format_count(len(of_run) - 2, "more figure"))
        yield f"{words.format(name)}: {'; '.join(parts)}."


# ---- a history


def _of_history(comparison: Comparison, history: History) -> Iterator[str]:
    changes = Counter[Change | None](figure.change for figure in history.figures)
    drive = f"Drive {history.serial}, " if history.serial else ""
    count, span = len(history.days), history.days[-1] - history.days[0]
    opening = f"{drive}{format_count(count, 'run')} over {describe_days(span)}"
    certain = [figure for figure in history.figures if figure.change in BEYOND_NOISE]
    if certain:
        most = max(certain, key=lambda figure: abs(figure.trend.slope if figure.trend else 0.0))
        name = name_headlines(comparison)[most.row.place]
        yield f"{opening}: {name} {describe_trend(most, history)}, {most.change}, beyond noise."
        counts = (f"{changes[change]} {word}" for change, word in _TRENDS.items() if changes[change])
        of = format_count(len(history.figures), "headline figure")
        yield f"Of {of}: {', '.join(counts)}{_describe_chance(changes)}."
    elif changes[Change.WITHIN_NOISE]:
        yield from _of_last_run(comparison)
        yield f"{opening}: no trend beyond noise in any headline figure."
    elif count >= FEWEST_IN_TREND and len(set(history.days)) < count:
        yield f"{opening}: no trend can be shown where two runs have the same date."
    else:
        yield f"{opening}: too few to separate a trend from noise ({FEWEST_IN_TREND} or more are needed)."
    for change in history.firmware:
        yield (
            f"Firmware changed from {change.before} to {change.after} before run {change.name}: "
            "what looks like a trend may be a step there."
        )


def _of_last_run(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence about the greatest difference between the last run and the first run. A single fall is not a
    trend, so the trend of the figure would not show this difference.
    """
    differing = [row for row in comparison.headlines if row.entries[-1].change in BEYOND_NOISE]
    if differing:
        row = min(differing, key=lambda row: (row.quantity in PERCENTILES, -_distance(row.entries[-1])))
        first, *_, last = comparison.names
        yield _ratio_sentence(row, describe_loads(comparison), first, last, place=-1)


def describe_days(days: float) -> str:
    """Return a number of days in a suitable unit: ``12 days``, ``9 h``, ``5 min``."""
    hours = 24 * days
    if hours < 2:
        return f"{60 * hours:.0f} min"
    return f"{hours:.0f} h" if days < 2 else f"{days:,.0f} days"


def describe_trend(figure: HistoryValue, history: History) -> str:
    """Return the trend of a figure with its interval: ``-1.2 % per 30 days (-2.0 to -0.4)``."""
    trend = figure.trend
    if trend is None:
        return "not known"
    text = f"{_signed(trend.slope)} % per {history.period}"
    if trend.low is None or trend.high is None:
        return text
    return f"{text} ({_signed(trend.low)} to {_signed(trend.high)})"


def _signed(percent: float) -> str:
    return f"{percent:+.2f}" if abs(percent) < 10 else f"{percent:+,.0f}"
