"""Describe steady-state verdicts in words and numbers, the same in every output."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.units import (
    NOT_MEASURED,
    find_digit_place,
    format_to_place,
    format_window,
)

# Most digits beyond the usual ones: a range of a hundred thousandth of the average needs no more.
_MOST_FINER = 3
# Most digits after the decimal point, for a value slightly beyond its limit.
_MOST_DIGITS = 6


def name_rounds(numbers: Sequence[int]) -> str:
    """Return ``rounds 4–8``; rounds of a stream's verdict may be apart: ``rounds 1, 31, 61, 91, 121``."""
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return format_window(numbers)
    return "rounds " + ", ".join(str(number) for number in numbers)


def find_verdict_place(verdict: SteadyStateVerdict) -> int:
    """Return the place of the last digit of a verdict's values.

    It is as fine as their range requires, so that a reader can judge them again.
    """
    place = find_digit_place(verdict.average)
    if not verdict.data_excursion or not isfinite(verdict.data_excursion):
        return place
    return max(min(place, find_digit_place(verdict.data_excursion)), place - _MOST_FINER)


def format_verdict_value(verdict: SteadyStateVerdict, value: float) -> str:
    """Format one of a verdict's values, their average or their excursion."""
    return format_to_place(value, find_verdict_place(verdict)) if isfinite(value) else NOT_MEASURED


def describe_excess(verdict: SteadyStateVerdict) -> str:
    """Explain why a window was not steady: ``slope 14 % (allowed 10 %)``; else return the verdict's reason."""
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
