"""Build texts about uncertainties, for places beside a figure, below a table, and in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import floor, isfinite, log10
from typing import Protocol

from tkperf.analysis.uncertainty.estimate import COUNT, EXTREME, Basis, Uncertainty
from tkperf.analysis.uncertainty.spread import COVERAGE_PERCENT, COVERED
from tkperf.model.disturbance.io import (
    HOST_LIMITED,
    WORDS,
    Disturbance,
    DisturbanceCode,
    describe_count,
    describe_disturbed,
    find_codes,
    find_doubtful,
)
from tkperf.model.quantity import Measure
from tkperf.model.units import format_count, format_exact, format_number, format_to_place

INTERVAL = f"{COVERED} interval"
MEANING = (
    f"The {INTERVAL} (±) of a figure contains, in {COVERAGE_PERCENT} of 100 cases, the result of a measurement twice "
    "as "
    "long right after."
)
"""Meaning of the interval of a single figure. The interval predicts the next results of the same device."""
MEANING_OF_RATIO = (
    f"The {INTERVAL} of a ratio contains, in {COVERAGE_PERCENT} of 100 cases, the ratio of the levels around which the "
    "values of both runs scatter."
)
_AT_LEAST = "at least"
_MOST_PERCENT = 100  # Above this value, a percentage shows only that the figure is not known.
# Values are shown with three or four digits, so a smaller percentage would lie below the last digit.
_LEAST_PERCENT = 0.05
# If the distance between the value and the middle of the interval exceeds this share of the half-width, both ends of
# the interval are shown.
_LOPSIDED = 0.25
_OR_WIDER = " or wider"
_FROM = {
    Basis.ROUNDS: "from the spread of the rounds",
    Basis.SECONDS: "from the seconds, as far as they depend on each other",
    Basis.SLICES: "from the spread of the slices",
    Basis.LEVELS: "from the spread of the levels",
    Basis.COUNTS: "from the number of I/Os",
    Basis.RESOLUTION: "from the resolution",
    Basis.FIGURES: "from the intervals of both figures",
}


def describe_interval(value: float | None, uncertainty: Uncertainty | None, digits: int | None = None) -> str:
    """Return the interval of a value: ``± 310 (0.35 %)``, or ``12.1 to 14.9`` if the interval is not symmetrical.

    If the width is only a lower limit, return ``at least ± 310 (0.35 %)`` or ``12.1 to 14.9 or wider``. The text is
    empty if there is no interval.
    """
    if value is None or uncertainty is None or uncertainty.low is None:
        return ""
    half = uncertainty.expanded
    if half is None or not uncertainty.is_even(value):
        return describe_ends(uncertainty, digits)
    percent = 100 * half / abs(value) if value else None
    if percent is not None and percent >= _MOST_PERCENT:
        return describe_share(percent)
    relative = f" ({two_digits(percent)} %)" if percent is not None else ""
    text = f"± {two_digits(half)}{relative}"
    return f"{_AT_LEAST} {text}" if uncertainty.at_least else text


def add_interval(value: float | None, uncertainty: Uncertainty | None, digits: int | None = None) -> str:
    """Return the value with its interval: ``93,883 ± 86``, ``1,352 (1,344 to 1,360)``. The value has the same number of
    digits as the interval.

    If the width is only a lower limit, return ``93,883, at least ± 86`` or ``1,352 (1,344 to 1,360 or wider)``.
    """
    if value is None or uncertainty is None or uncertainty.low is None:
        return format_number(value, digits)
    half = uncertainty.expanded
    if half is None or not uncertainty.is_even(value):
        text = _to_same_place(value, uncertainty, digits)
        return f"{text} ({describe_ends(uncertainty, digits)})"
    if value and 100 * half / abs(value) >= _MOST_PERCENT:
        return f"{format_number(value, digits)}, {describe_share(100 * half / abs(value))}".replace("± ", "±\u00a0")
    text = format_number(value, digits) if not half else format_to_place(value, _second_place(half))
    limit = f", {_AT_LEAST}" if uncertainty.at_least else ""
    return f"{text}{limit} ±\u00a0{two_digits(half)}"


def describe_share(percent: float, *, at_least: bool = False) -> str:
    """Return ``± 0.35 %``, or ``at least ± 0.35 %`` if the width is only a lower limit. From 100 % on, return ``at
    least ± 100 %``.

    If the percentage is smaller than the last digit of the value, return ``± < 0.05 %``.
    """
    if percent >= _MOST_PERCENT:
        percent, at_least = _MOST_PERCENT, True
    return f"{_AT_LEAST} " * at_least + f"± {_format_percent(percent)} %"


def _format_percent(percent: float) -> str:
    return f"< {_LEAST_PERCENT}" if percent < _LEAST_PERCENT else two_digits(percent)


def is_below_digits(percent: float) -> bool:
    """Return whether the half-width of an interval, in percent, is smaller than the last digit of a displayed value."""
    return percent < _LEAST_PERCENT


def is_lopsided(value: float, uncertainty: Uncertainty) -> bool:
    """Return whether an interval extends much further on one side of the value, so that its half-width would mislead a
    reader.
    """
    low, high, half = uncertainty.low, uncertainty.high, uncertainty.expanded
    return (
        low is not None and high is not None and half is not None and abs(low + high - 2 * value) / 2 > _LOPSIDED * half
    )


def describe_ends(uncertainty: Uncertainty, digits: int | None = None) -> str:
    """Return the ends of an interval: ``12.1 to 14.9``.

    If the width is only a lower limit, return ``12.1 to 14.9 or wider``. If there is no upper end, return ``above
    12.1``.
    """
    assert uncertainty.low is not None
    wider = _OR_WIDER if uncertainty.at_least else ""
    if uncertainty.high is None:
        return f"above {format_number(uncertainty.low, digits)}{wider}"
    ends = (uncertainty.low, uncertainty.high)
    return " to ".join(_to_same_place(end, uncertainty, digits) for end in ends) + wider


def _to_same_place(value: float, uncertainty: Uncertainty, digits: int | None) -> str:
    """Return the value, rounded to the second significant digit of the width of the interval. The printed value then
    differs from both ends of the interval.
    """
    low, high = uncertainty.low, uncertainty.high
    if digits is not None or low is None or high is None or high <= low:
        return format_number(value, digits)
    return format_to_place(value, _second_place(high - low))


def _second_place(value: float) -> int:
    """Return the decimal place of the second digit of a number."""
    return floor(log10(abs(value))) - 1 if isfinite(value) else 0


def describe_value(value: float | None, uncertainty: Uncertainty | None, measure: Measure) -> str:
    """Return the value with all its digits, its interval, and the basis of the interval. If there is no interval,
    return the reason why it is missing.
    """
    if value is None:
        return ""
    exact = f"{format_exact(value)} {measure.unit}".rstrip()
    if uncertainty is None:
        return exact
    if uncertainty.reason is not None:
        return f"{exact}; no uncertainty: {uncertainty.reason}"
    words = [
        f"{exact}; {INTERVAL}: {describe_interval(value, uncertainty, measure.digits)} {measure.unit}".rstrip(),
        _FROM[uncertainty.basis] if uncertainty.basis else "",
    ]
    if uncertainty.degrees_of_freedom is not None:
        words.append(format_count(uncertainty.degrees_of_freedom, "degree") + " of freedom")
    return ", ".join(filter(None, words))


def summarise(figures: Iterable[tuple[Measure, float | None, Uncertainty | None]]) -> tuple[str, ...]:
    """Return the lines below a table. These lines contain the uncertainty of each measure in percent of its values.

    The result is empty if nothing was computed, or if the figures cannot have an uncertainty.
    """
    by_measure: dict[str, tuple[Measure, list[tuple[float, Uncertainty]]]] = {}
    for measure, value, uncertainty in figures:
        if value is not None and uncertainty is not None:
            by_measure.setdefault(measure.key, (measure, []))[1].append((value, uncertainty))
    labels: dict[str, list[str]] = {}
    reasons: dict[str, None] = {}
    for measure, found in by_measure.values():
        known = [(value, one) for value, one in found if one.known]
        missing = [one.reason for _, one in found if one.reason not in (None, EXTREME, COUNT)]
        reasons.update((reason, None) for reason in missing if reason)
        if known:
            labels.setdefault(_range_of(known), []).append(measure.label)
    lines = []
    if labels:
        limits = any(one.at_least for _, found in by_measure.values() for _, one in found)
        parts = [f"{_list_labels(alike)} {span}" if len(by_measure) > 1 else span for span, alike in labels.items()]
        lines.append(f"Uncertainty ({INTERVAL}): {'; '.join(parts)}" + ("; some are lower limits" if limits else ""))
    if reasons:
        none = "Not known for the others" if labels else "Uncertainty not known"
        lines.append(f"{none}: {'; '.join(reasons)}")
    return tuple(lines)


def _list_labels(labels: Sequence[str]) -> str:
    """Return labels as one text: ``mean, p50, p99 latency``. If all labels have the same last word, the text contains
    this word once.
    """
    last = labels[-1].rpartition(" ")[2]
    short = [label.removesuffix(f" {last}") for label in labels[:-1]]
    alike = all(label.endswith(f" {last}") for label in labels)
    return ", ".join([*short, labels[-1]] if alike else labels)


def _range_of(known: list[tuple[float, Uncertainty]]) -> str:
    shares = [100 * one.expanded / abs(value) for value, one in known if value and one.expanded is not None]
    if not shares:
        return "without an upper end"
    low, high = _format_percent(min(shares)), _format_percent(max(shares))
    if max(shares) >= _MOST_PERCENT:
        most = describe_share(max(shares))
        span = most if min(shares) >= _MOST_PERCENT else f"± {low} % to {most}"
    else:
        span = f"± {high} %" if low == high else f"± {low} to {high} %"
    open_ended = sum(one.high is None for _, one in known)
    return f"{span}, {open_ended} of {len(known)} without an upper end" if open_ended else span


def two_digits(value: float) -> str:
    """Return a number with two significant digits (GUM 7.2.6): ``0.35``, ``1.4``, ``310``."""
    if not value:
        return "0"
    if not isfinite(value):  # a value that is not finite occurs only in a damaged file
        return str(value)
    value = float(f"{value:.1e}")
    after = 1 - floor(log10(abs(value)))
    return f"{round(value, after):,.{max(after, 0)}f}"


def format_change_percent(percent: float) -> str:
    """Return the amount of a change in percent. From 10 % on, the amount is a whole number. Below 10 %, it has two
    significant digits.
    """
    return f"{percent:.0f}" if abs(percent) >= 10 else f"{percent:.2g}"


def describe_factor_with_ends(factor: float, known: Uncertainty | None) -> str:
    """Return a factor with its interval: ``2.31 × (2.29 to 2.33)``. Without both ends, return only the factor."""
    if known is None or known.low is None or known.high is None:
        return f"{factor:.3g} ×"
    return f"{factor:.3g} × ({known.low:.3g} to {known.high:.3g})"


NOT_WATCHED = "not watched"
NOT_COMPARED = "I/O of others not compared"
_ALL = "fills included"


class Flagged(Protocol):
    """A figure of a table, with the facts that determine its marks."""

    @property
    def host_limited(self) -> bool | None: ...

    @property
    def disturbances(self) -> tuple[DisturbanceCode, ...] | None:
        """Return the kinds of disturbance of the steps from which the figure was computed."""
        ...


class WatchedStep(Protocol):
    """A step, with the facts about its disturbances."""

    @property
    def disturbances(self) -> tuple[Disturbance, ...] | None: ...


def mark(flagged: Flagged | None) -> str:
    """Return the marks after a figure: ``*``, ``!``, both marks, or an empty text."""
    if flagged is None:
        return ""
    return "*" * bool(flagged.host_limited) + "!" * bool(flagged.disturbances)


def explain_marks(flagged: Iterable[Flagged | None]) -> tuple[str, ...]:
    """Return a line for each mark that occurs in the figures. Each line begins with the mark."""
    figures = [figure for figure in flagged if figure is not None]
    lines = [f"* {HOST_LIMITED}"] if any(figure.host_limited for figure in figures) else []
    codes = find_codes(code for figure in figures for code in figure.disturbances or ())
    if codes:
        lines.append(f"! {describe_disturbed(codes)}")
    return tuple(lines)


def is_flagged(flagged: Flagged) -> bool:
    """Return whether there is a known reason why a figure may not show the performance of the device alone."""
    return bool(flagged.host_limited or flagged.disturbances)


def describe_flags(flagged: Flagged) -> str:
    """Return one line with the reasons why a figure may not show the performance of the device alone. The text is empty
    if no reason is known.
    """
    if not is_flagged(flagged):  # Most figures have no flag, so the function can return early.
        return ""
    words = [HOST_LIMITED] if flagged.host_limited else []
    words += [describe_disturbed(flagged.disturbances)] if flagged.disturbances else []
    return "; ".join(words)


def count_disturbed(steps: Iterable[WatchedStep]) -> str:
    """Return the number of disturbed steps in words: ``24 steps, fills included``. The text is empty if no step was
    disturbed.
    """
    count = sum(bool(find_doubtful(step.disturbances or ())) for step in steps)
    return f"{format_count(count, 'step')}, {_ALL}" if count else ""


def join_flags(words: Iterable[str]) -> str:
    """Return one text that combines the texts that ``describe_flags`` returned for several figures. Each reason is
    contained once.
    """
    text = "; ".join(words)
    lines = [HOST_LIMITED] if HOST_LIMITED in text else []
    codes = [code for code in DisturbanceCode if WORDS[code] in text]
    return "; ".join([*lines, describe_disturbed(codes)] if codes else lines)


def describe_counts(
    steps: Mapping[DisturbanceCode, int] | None, not_compared_steps: int | None, watched: Iterable[WatchedStep] = ()
) -> str | None:
    """Return the number of disturbed steps of each kind in a test.

    Example: ``24 steps, fills included: 20 steps with other I/O on the device; 6 steps with ...``. Return None if all
    steps were watched and compared, and if no step was disturbed.
    """
    if steps is None:
        return NOT_WATCHED
    counts = [describe_count(code, steps[code]) for code in steps]
    if counts and (of_all := count_disturbed(watched)):
        counts[0] = f"{counts[0]}, {_ALL}" if len(counts) == 1 else f"{of_all}: {counts[0]}"
    if not_compared_steps:
        of = format_count(not_compared_steps, "step")
        counts = [*(counts or ["no"]), f"{NOT_COMPARED} in {of}"]
    return "; ".join(counts) or None


def describe_disturbances(flagged: Flagged, foreign_bytes: int | None) -> str:
    """Return a text about the disturbances of a figure.

    Args:
        foreign_bytes: the bytes of I/O of other programs; None if tkperf could not compare the amounts of I/O.
    """
    if flagged.disturbances is None:
        return NOT_WATCHED
    words = ", ".join(WORDS[code] for code in flagged.disturbances) or "no"
    return words if foreign_bytes is not None else f"{words}; {NOT_COMPARED}"


def describe_gaps(longest_s: float, steps: Mapping[DisturbanceCode, int] | None) -> str:
    """Return a text about the longest time between two steps and about the number of gaps that were flagged as too
    long.

    Two steps may overlap for a moment. The text does not contain a limit, because the limit depends on the load before
    the gap.
    """
    longest = "none" if longest_s <= 0 else f"{longest_s * 1000:.1f} ms"
    if steps is None:
        return f"{longest}, {NOT_WATCHED}"
    flagged = steps.get(DisturbanceCode.IDLE_BEFORE, 0)
    if flagged:
        return f"{longest}, {flagged} too long"
    return longest if longest_s <= 0 else f"{longest}, none flagged"


def describe_window(disturbed: int | None) -> str:
    """Return a text about the disturbed steps in the window of a verdict. The text is empty if no step was
    disturbed.
    """
    if not disturbed:
        return ""
    return f"; {format_count(disturbed, 'step')} of the window disturbed"
