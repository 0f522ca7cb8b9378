"""Build the axes of charts in Vega-Lite. An axis extends from a tick below all values to a tick above all values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tkperf.model.units import find_latency_unit
from tkperf.page.chart import Axis, Scale

Spec = dict[str, object]

_MOST_US = 10_000.0
LEAST_LOG_TICKS, MOST_LOG_TICKS = 4, 10
MOST_TICKS = 6
PLAIN_LABEL = "format(datum.value, ',.10~f')"
_IN_US = " (µs)"
LATENCY = (
    "{0} >= 1e6 ? format({0} / 1e6, ',.3~r') + ' s' : "
    "{0} >= 1e3 ? format({0} / 1e3, ',.3~r') + ' ms' : format({0}, ',.3~r') + ' µs'"
)
"""A Vega expression that formats a latency in µs with the unit that suits the value."""
_IS_ROUND = "indexof([1, 2, 5], round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))) >= 0"
# A share of the range of the axis. If a value were closer to the end of an axis than this share, the value would look
# cut off.
_LEAST_BEYOND = 0.015
# If the total number of letters in the names of places exceeds this number, the names are written at an angle.
_MOST_LETTERS = 48
# The number of hours can exceed 24, because a clock format would begin again at 0. Milliseconds are shown only if the
# time is not a whole number of seconds.
CLOCK = "floor({0} / 3600000) + utcFormat({0}, {0} % 1000 ? ':%M:%S.%L' : ':%M:%S')"


def draw_value_axis(axis: Axis, values: Iterable[object], field: str = "value") -> Spec:
    """Return the channel of an axis of values. The axis extends beyond all values. The axis is logarithmic only if
    every value is greater than 0.
    """
    given = [*values, *axis.includes]
    numbers = _finite(given)
    channel: Spec = {"field": field, "type": "quantitative", "title": axis.title}
    log = axis.scale is Scale.LOG
    if not numbers:  # There are no values yet, because the page inserts the numbers later.
        scale: Spec = {"nice": True} | ({"type": "log"} if log else {"zero": axis.zero})
        return suit_latency(channel | {"scale": scale})
    return suit_latency(channel | (log_axis(numbers) if log else linear_axis(numbers, zero=axis.zero)))


def suit_latency(channel: Spec) -> Spec:
    """If the axis shows latencies in µs, return the channel with the unit that suits the ticks of the axis. Other
    channels are returned unchanged.

    If no unit suits all ticks, as on a logarithmic axis from 20 µs to 1 ms, each tick has its own unit.
    """
    title = str(channel["title"])
    if _IN_US not in title:
        return channel
    drawn: Any = channel.get("axis", {})
    ticks: list[float] = drawn.get("values", [])
    unit, factor = find_latency_unit(ticks)
    is_log = isinstance(scale := channel.get("scale"), dict) and scale.get("type") == "log"
    suits = ticks and (not is_log or min(ticks) >= factor) and (unit != "µs" or max(ticks) < _MOST_US)
    if suits:
        label = PLAIN_LABEL.replace("datum.value", f"datum.value / {factor:g}") if factor > 1 else PLAIN_LABEL
        title = title.replace(_IN_US, f" ({unit})")
    else:
        label, title = LATENCY.format("datum.value"), title.replace(_IN_US, "")
        # For the data that a page inserts, Vega chooses the ticks 1, 2, 3 ... 9. Only round numbers receive labels.
        label = label if ticks else f"{_IS_ROUND} ? ({label}) : ''"
    return {**channel, "title": title, "axis": {**drawn, "labelExpr": label}}


def draw_place_axis(axis: Axis, values: Iterable[object]) -> Spec:
    """Return the channel of the axis of places. The ends of an axis of numbers are not rounded, because a reader can
    zoom this axis.
    """
    channel: Spec = {"field": "x", "type": "quantitative", "title": axis.title or None}
    if axis.scale is Scale.ORDINAL:
        return channel | {"type": "ordinal"} | _ordinal_axis(axis)
    if axis.scale is Scale.CLOCK:
        drawn = {"labelExpr": CLOCK.format("datum.value"), "labelOverlap": "greedy", "labelSeparation": 8}
        return channel | {"type": "temporal", "scale": {"type": "utc", "nice": False}, "axis": drawn}
    if axis.scale is Scale.DATE:
        scale: Spec = {"type": "utc", "padding": 12}
        return channel | {"type": "temporal", "scale": scale, "axis": {"labelOverlap": True}}
    if axis.ticks is not None:  # The places are whole numbers. The axis leaves space for their points at both ends.
        domain = list(axis.domain or (min(axis.ticks), max(axis.ticks)))
        return channel | {
            "axis": {"values": list(axis.ticks), "format": "d"},
            "scale": {"domain": domain, "nice": False, "padding": 20},
        }
    if axis.domain is not None:
        return channel | {"scale": {"domain": list(axis.domain), "nice": False}}
    return suit_latency(channel | (log_axis(values) if axis.scale is Scale.LOG else length_axis(values)))


def _ordinal_axis(axis: Axis) -> Spec:
    sort = {"sort": list(axis.places)}
    letters = sum(len(str(place)) for place in axis.places)
    if letters > _MOST_LETTERS:
        return sort | {"axis": {"labelAngle": -30}}
    return sort | {"axis": {"labelAngle": 0, "labelOverlap": "greedy"}}


def linear_axis(values: Iterable[object], *, zero: bool = True) -> Spec:
    """Return the scale and the axis from a tick below all values to a tick above all values.

    The distance between ticks is 1, 2 or 5 times a power of ten.
    """
    numbers = _finite(values)
    if not numbers:
        return {"scale": {"zero": zero, "nice": True}}
    low, high = min(numbers), max(numbers)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    # If all values are equal, they are drawn in the middle of the plot. If all values are 0, they are drawn at the
    # bottom.
    if math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12):
        low, high = (0.0, 1.0) if zero else (low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1))
    ticks = linear_ticks(low, high)
    return {
        "scale": {"domain": [ticks[0], ticks[-1]], "nice": False},
        # Vega omits ticks if their number exceeds ``tickCount``.
        "axis": {"values": ticks, "tickCount": len(ticks), "labelExpr": PLAIN_LABEL},
    }


def linear_ticks(low: float, high: float) -> list[float]:
    """Return ticks from a tick below all values to a tick above all values. If an end is exactly 0, it remains at 0."""
    step = _round_step((high - low) / MOST_TICKS)
    beyond = _LEAST_BEYOND * (high - low)
    first = 0 if low == 0 else math.floor((low - beyond) / step)
    last = 0 if high == 0 else math.floor((high + beyond) / step) + 1
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def length_axis(values: Iterable[object]) -> Spec:
    """Return the scale of an axis that a reader can zoom. The scale extends from 0 (or the smallest value) to slightly
    above the greatest value.
    """
    numbers = _finite(values)
    if not numbers:
        return {"scale": {"nice": False}}
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    beyond = _LEAST_BEYOND * (high - low or 1.0)
    return {"scale": {"domain": [low - beyond if low < 0 else low, high + beyond], "nice": False}}


def _finite(values: Iterable[object]) -> list[float]:
    numbers = (float(value) for value in values if isinstance(value, int | float))
    return [number for number in numbers if math.isfinite(number)]


def _round_step(least: float) -> float:
    """Return the smallest number that is not below ``least`` and is 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def log_axis(values: Iterable[object]) -> Spec:
    """Return a logarithmic scale and axis. They extend from the step below all values to the step above all values,
    with the steps 1, 2 and 5 in each power of ten.

    If these steps result in too few ticks, the steps are 1, 2, 3 ... 9, or the ticks are evenly spaced. The scale is
    linear if a value has no logarithm.
    """
    given = [float(value) for value in values if isinstance(value, int | float)]
    if not given or not all(value > 0 and math.isfinite(value) for value in given):
        return linear_axis(given)
    low, high = min(given) * (1 - _LEAST_BEYOND), max(given) * (1 + _LEAST_BEYOND)
    within = _log_steps(low, high, (1, 2, 5))
    if len(within) < LEAST_LOG_TICKS:
        within = _log_steps(low, high, range(1, 10))
    if len(within) < LEAST_LOG_TICKS:  # If values are this close together, powers of ten are not suitable as ticks.
        within = linear_ticks(low, high)
    # If an axis covers many powers of ten, only the powers of ten and both ends of the axis have labels.
    wide = len(within) > MOST_LOG_TICKS
    ends = (within[0], within[-1])
    ticks = [step for step in within if not wide or _is_power_of_ten(step) or step in ends]
    return {
        "scale": {"type": "log", "domain": [within[0], within[-1]], "nice": False},
        # Vega omits ticks if their number exceeds ``tickCount``. Vega also omits most labels, even if there is enough
        # space.
        "axis": {"values": ticks, "tickCount": len(ticks), "labelExpr": PLAIN_LABEL, "labelOverlap": "greedy"},
    }


def _log_steps(low: float, high: float, digits: Iterable[int]) -> list[float]:
    """Return the products of these digits and powers of ten. The first product is the greatest product below ``low``,
    and the last product is the smallest product above ``high``.
    """
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    digits = tuple(digits)
    steps = [float(f"{digit * 10.0**power:.12g}") for power in powers for digit in digits]
    first = max(step for step in steps if step < low)
    last = min(step for step in steps if step > high)
    return [step for step in steps if first <= step <= last]


def _is_power_of_ten(value: float) -> bool:
    return math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)
