"""Build texts about the course of a section: verdicts on steady state, and findings over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, log10

from tkperf.analysis.timeline.levels import Drop, LevelKind, RateLevel
from tkperf.analysis.timeline.spikes import PeriodicSpikes
from tkperf.analysis.timeline.timelines import Bursts, Recorded, Timeline, preferred
from tkperf.analysis.workload_axes import find_axes
from tkperf.model.quantity import LATENCY_MAX, QUANTITIES
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import (
    NOT_MEASURED,
    capital,
    find_digit_place,
    format_capacity,
    format_count,
    format_duration,
    format_number,
    format_to_place,
    format_window,
)
from tkperf.page.naming import name_within
from tkperf.page.words.uncertainty import format_change_percent

MOST_SENTENCES = 8
_SAME_PERIOD = 0.01  # as a share of the period of the spikes
# The smallest probability that a text contains is 1 in 10^9, because a smaller number would not tell a reader more.
_MOST_POWER = 9


def describe_timelines(timelines: Sequence[Timeline]) -> tuple[str, ...]:
    """Return the sentences about a section in the order of its findings. The result is empty if there are no findings.

    If the rate of a stream stays at one level, a sentence states this. For a test with rounds, a sentence describes the
    levels only if the rate changes.
    """
    axes = find_axes(timeline.workload for timeline in timelines)
    sentences = []
    for timeline in without_totals(preferred(timelines)):
        of = f"{name_within(timeline.workload, axes)}: " if axes else ""
        sentences += [of + words for words in _sentences(timeline)]
    if len(sentences) <= MOST_SENTENCES:
        return tuple(sentences)
    left = len(sentences) - MOST_SENTENCES
    return (*sentences[:MOST_SENTENCES], f"... and {left:,} more findings, which the JSON has")


def without_totals(timelines: Sequence[Timeline]) -> tuple[Timeline, ...]:
    """Return the timelines without the timeline of the total of all streams, because this timeline repeats the findings
    about the streams.
    """
    streams = {timeline.workload.together for timeline in timelines if timeline.workload.stream is not None}
    return tuple(one for one in timelines if not one.workload.is_combination or one.workload.together not in streams)


def describe_events(timelines: Sequence[Timeline]) -> Iterator[str]:
    """Yield sentences about drops and spikes, but not about levels.

    One sentence covers spikes that raise both the mean and the maximum. A sentence about a stream begins with the name
    of the stream.
    """
    kept = without_totals(preferred(timelines))
    of_maximum = {
        timeline.workload: timeline.spikes.period
        for timeline in kept
        if timeline.spikes is not None and timeline.quantity == LATENCY_MAX.key
    }
    for timeline in kept:
        period = of_maximum.get(timeline.workload)
        again = (
            timeline.spikes is not None
            and timeline.quantity != LATENCY_MAX.key
            and period is not None
            and abs(timeline.spikes.period / period - 1) < _SAME_PERIOD
        )
        if not again:
            name = f"{name_within(timeline.workload, ())}: " if timeline.workload.together else ""
            yield from (name + words for words in _events(timeline))


def _sentences(timeline: Timeline) -> Iterator[str]:
    if timeline.bursts is not None:
        yield _describe_bursts(timeline, timeline.bursts)
    if timeline.levels and (timeline.changes or timeline.recorded is not Recorded.ROUNDS):
        yield _describe_levels(timeline)
    yield from _events(timeline)


def _events(timeline: Timeline) -> Iterator[str]:
    if timeline.drops:
        yield _describe_drops(timeline)
    if timeline.spikes is not None:
        yield _describe_spikes(timeline, timeline.spikes)


def _describe_levels(timeline: Timeline) -> str:
    """Return the levels of a rate in words: ``Fresh out of box 88,800 IOPS for 9 min 00 s (196.4 GB), settled at 27,000
    IOPS from 41 min 00 s on``.
    """
    unit = QUANTITIES[timeline.quantity].unit
    in_rounds = timeline.recorded is Recorded.ROUNDS
    words = []
    for level in timeline.levels:
        value = f"{format_number(level.value)} {unit}"
        if level.kind is LevelKind.TRANSITION:
            if timeline.settled is False:
                words.append(f"{describe_still_changing(timeline)}, {_until(level, in_rounds)}")
        elif len(timeline.levels) == 1:
            words.append(f"level at {value} throughout")
        elif level.kind is LevelKind.STEADY:
            words.append(f"settled at {value} {_from(level.start, in_rounds)} on")
        elif level.kind is LevelKind.SECOND:
            until = f"round {level.end:.0f}" if in_rounds else format_duration(level.end)
            words.append(f"then {value} until {until}{_amount(timeline, level)}")
        else:
            words.append(f"{level.kind} {value} {_for(level, in_rounds)}{_amount(timeline, level)}")
    sentence = ", ".join(words)
    return capital(sentence)


def describe_still_changing(timeline: Timeline) -> str:
    """Return a text about a rate that did not settle: ``still falling at the end, by 6.8 % in the last quarter``."""
    if timeline.is_too_short:
        return "measured for too short a time to tell whether the rate settled"
    if (swing := timeline.swing) is not None:
        low, high, mean = (format_number(one) for one in (swing.low, swing.high, swing.mean))
        unit = QUANTITIES[timeline.quantity].unit
        return f"varying between {low} and {high} {unit}, mean {mean}"
    change = timeline.still_changes_percent
    if change is None:
        return "still changing at the end"
    verb = "falling" if change < 0 else "rising"
    return f"still {verb} at the end, by {format_change_percent(abs(change))} % in the last quarter"


def _amount(timeline: Timeline, level: RateLevel) -> str:
    """Return the amount written up to the end of a level, in brackets. The text is empty for loads that also read."""
    if level.end_bytes is None or timeline.workload.read_percent:
        return ""
    return f" ({format_capacity(level.end_bytes)})"


def _for(level: RateLevel, in_rounds: bool) -> str:
    if in_rounds:
        return f"until round {level.end:.0f}"
    return f"for {format_duration(level.end - level.start)}"


def _from(place: float, in_rounds: bool) -> str:
    return f"from round {place:.0f}" if in_rounds else f"from {format_duration(place)}"


def _until(level: RateLevel, in_rounds: bool) -> str:
    if in_rounds:
        return f"in rounds {level.start:.0f} to {level.end:.0f}"
    return f"from {format_duration(level.start)} to {format_duration(level.end)}"


def _describe_bursts(timeline: Timeline, bursts: Bursts) -> str:
    """Return a text about bursts: ``60 bursts, idle time between them: median 44,500 IOPS, 43,900 to 94,100``."""
    return (
        f"{format_count(timeline.values, 'burst')}, idle time between them: median "
        f"{format_number(bursts.median)} {QUANTITIES[timeline.quantity].unit}, "
        f"{format_number(bursts.least)} to {format_number(bursts.most)}"
    )


def _describe_drops(timeline: Timeline) -> str:
    """Return a text about drops: ``3 sudden drops, the deepest from 27,000 to 120 IOPS at 5 min 00 s for 12 s``."""
    unit = QUANTITIES[timeline.quantity].unit
    deepest: Drop = min(timeline.drops, key=lambda drop: drop.after / drop.before)
    in_rounds = timeline.recorded is Recorded.ROUNDS
    at = f"in round {deepest.start:.0f}" if in_rounds else f"at {format_duration(deepest.start)}"
    if not deepest.recovered:
        lasts = ", without recovery"
    elif in_rounds:
        lasts = f", until round {deepest.end:.0f}"
    else:
        lasts = f" for {format_duration(deepest.end - deepest.start)}"
    several = len(timeline.drops) > 1
    return (
        format_count(len(timeline.drops), "sudden drop")
        + (", the deepest" if several else "")
        + f" from {format_number(deepest.before)} to {format_number(deepest.after)} {unit} {at}{lasts}"
    )


def _describe_spikes(timeline: Timeline, spikes: PeriodicSpikes) -> str:
    """Return a text about periodic spikes: ``Maximum latency spikes every 13 rounds, first in round 7: at 9 of 9 places
    ...``.
    """
    in_rounds = timeline.recorded is Recorded.ROUNDS
    first = f"in round {spikes.first:.0f}" if in_rounds else f"at {format_duration(spikes.first)}"
    period = f"{_number(spikes.period)} {'rounds' if in_rounds else 's'}"
    if spikes.period >= 120 and not in_rounds:
        period += f" ({_number(spikes.period / 60)} min)"
    label = QUANTITIES[timeline.quantity].label
    power = min(_MOST_POWER, max(3, int(-log10(max(spikes.chance, 1e-300)))))
    return (
        f"{capital(label)} spikes every {period}, first {first}: at {spikes.observed:,} of "
        f"{spikes.expected:,} places, typically {spikes.height:.3g} times the values around them; by "
        f"chance in at most 1 of {10**power:,} cases"
    )


def describe_period(timeline: Timeline) -> str:
    """Return the period of the spikes: ``every 13 min``, ``every 7.5 s`` or ``every 13 rounds``. The text is empty if
    there are no periodic spikes.
    """
    if timeline.spikes is None:
        return ""
    period = timeline.spikes.period
    if timeline.recorded is Recorded.ROUNDS:
        return f"every {_number(period)} rounds"
    return f"every {_number(period / 60)} min" if period >= 120 else f"every {_number(period)} s"


def _number(value: float) -> str:
    """Return a number with no more than one decimal. If the number differs from a whole number by less than 0.05, it
    has no decimals.
    """
    whole = round(value)
    return f"{whole:,}" if abs(value - whole) < 0.05 else f"{value:,.1f}"


# The greatest number of digits that are added to the usual digits. With these digits, a range of only 0.001 % of the
# average is still visible.
_MOST_FINER = 3
# The greatest number of digits after the decimal point, for a value slightly beyond its limit.
_MOST_DIGITS = 6


def name_rounds(numbers: Sequence[int]) -> str:
    """Return rounds in words: ``rounds 4–8``. The rounds in the verdict on a stream may not be consecutive: ``rounds 1,
    31, 61, 91, 121``.
    """
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return format_window(numbers)
    return "rounds " + ", ".join(str(number) for number in numbers)


def find_verdict_place(verdict: SteadyStateVerdict) -> int:
    """Return the decimal place of the last digit that is shown for the values of a verdict.

    The place is small enough for the range of the values. A reader can therefore check the verdict with the printed
    values.
    """
    place = find_digit_place(verdict.average)
    if not verdict.data_excursion or not isfinite(verdict.data_excursion):
        return place
    return max(min(place, find_digit_place(verdict.data_excursion)), place - _MOST_FINER)


def format_verdict_value(verdict: SteadyStateVerdict, value: float) -> str:
    """Return a number of a verdict as text: a value, the average of the values, or an excursion."""
    return format_to_place(value, find_verdict_place(verdict)) if isfinite(value) else NOT_MEASURED


def describe_excess(verdict: SteadyStateVerdict) -> str:
    """Return the reason why a window was not steady: ``slope 14 % (allowed 10 %)``. If no limit was exceeded, return
    the reason of the verdict.
    """
    excursions = (
        ("range", verdict.data_excursion, verdict.allowed_data_excursion),
        ("slope", verdict.slope_excursion, verdict.allowed_slope_excursion),
    )
    excesses = [
        f"{name} {_share(verdict, measured, allowed)}"
        for name, measured, allowed in excursions
        if measured is not None and measured > allowed and verdict.average > 0
    ]
    return " and ".join(excesses) or verdict.reason


def _share(verdict: SteadyStateVerdict, measured: float | None, allowed: float) -> str:
    """Return an excursion in percent of the average, with its limit."""
    if measured is None or not isfinite(measured) or not verdict.average > 0:
        return NOT_MEASURED
    percent, limit = (100 * value / verdict.average for value in (measured, allowed))
    digits = 1
    while percent > limit >= round(percent, digits) and digits < _MOST_DIGITS:
        digits += 1
    return f"{percent:.{digits}f} % (allowed {limit:.3g} %)"
