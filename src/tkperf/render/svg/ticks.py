"""Round values along an axis: as many as d3 would choose, and the ends that reach them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from tkperf.render.svg.boxes import round_half_up
from tkperf.render.svg.formats import to_datetime, to_ms
from tkperf.render.svg.known import NotDrawnError

# Where steps of 10, 5 and 2 are nearest, on a logarithmic scale.
_TEN, _FIVE, _TWO = math.sqrt(50), math.sqrt(10), math.sqrt(2)
_SECOND, _MINUTE, _HOUR, _DAY = 1e3, 6e4, 3.6e6, 8.64e7
_WEEK, _MONTH, _YEAR = 7 * _DAY, 30 * _DAY, 365 * _DAY
# The first Sunday since 1970.
_SUNDAY = 3 * _DAY
MOST_TICKS = 2000


def step_of(start: float, stop: float, count: float) -> float:
    """The step between ticks: 1, 2 or 5 times a power of ten."""
    increment = _increment(start, stop, count)
    return -1 / increment if increment < 0 else increment


def _increment(start: float, stop: float, count: float) -> float:
    """The step; below 1 its reciprocal, negative, which is a whole number."""
    step = (stop - start) / count
    power = math.floor(math.log10(step))
    error = step / 10.0**power
    factor = 10 if error >= _TEN else 5 if error >= _FIVE else 2 if error >= _TWO else 1
    return -(10.0**-power) / factor if power < 0 else 10.0**power * factor


def linear_ticks(start: float, stop: float, count: float) -> list[float]:
    if start == stop:
        return [start]
    increment = _increment(start, stop, count)
    by, per = (increment, 1.0) if increment > 0 else (1.0, -increment)
    first, last = (round_half_up(end * per / by) for end in (start, stop))
    first += first * by / per < start
    last -= last * by / per > stop
    if last - first > MOST_TICKS:
        raise NotDrawnError("an axis with thousands of ticks")
    if last < first and count < 2:  # 0 or 1 of them: finer, until there is one
        return linear_ticks(start, stop, 2 * count)
    return [place * by / per for place in range(first, last + 1)]


def nice_linear(start: float, stop: float, count: float = 10) -> tuple[float, float]:
    """The ends, moved outwards to where ticks are."""
    if not start < stop or not math.isfinite(stop - start):
        return start, stop
    before = None
    for _ in range(10):
        step = _increment(start, stop, count)
        if step == before:
            break
        if step > 0:
            start, stop = math.floor(start / step) * step, math.ceil(stop / step) * step
        else:
            start, stop = math.ceil(start * step) / step, math.floor(stop * step) / step
        before = step
    return start, stop


def nice_log(start: float, stop: float) -> tuple[float, float]:
    """The ends, moved outwards to powers of ten."""
    return 10.0 ** math.floor(math.log10(start)), 10.0 ** math.ceil(math.log10(stop))


def log_ticks(start: float, stop: float, count: float) -> list[float]:
    """All of 1, 2, 3 ... 9 times powers of ten; of many powers these alone."""
    low, high = math.log10(start), math.log10(stop)
    if high - low >= count:
        return [10.0**power for power in linear_ticks(low, high, min(high - low, count))]
    steps = (
        _digit(digit, power)
        for power in range(math.floor(low), math.ceil(high) + 1)
        for digit in range(1, 10)
    )
    within = [step for step in steps if start <= step <= stop]
    return linear_ticks(start, stop, count) if 2 * len(within) < count else within


def _digit(digit: int, power: int) -> float:
    return digit / 10.0**-power if power < 0 else digit * 10.0**power


def log_labels(ticks: Sequence[float], count: float) -> Callable[[float], bool]:
    """Which of the ticks of a logarithmic axis have room for a label."""
    most = max(1.0, 10 * count / max(1, len(ticks)))

    def is_labelled(value: float) -> bool:
        digit = value / 10.0 ** round_half_up(math.log10(value))
        return (digit * 10 if digit * 10 < 9.5 else digit) <= most

    return is_labelled


_INTERVALS: tuple[tuple[float, float], ...] = (
    *((_SECOND, every) for every in (1, 5, 15, 30)),
    *((_MINUTE, every) for every in (1, 5, 15, 30)),
    *((_HOUR, every) for every in (1, 3, 6, 12)),
    (_DAY, 1), (_DAY, 2), (_WEEK, 1), (_MONTH, 1), (_MONTH, 3), (_YEAR, 1),
)  # fmt: skip


def utc_ticks(start: float, stop: float, count: float) -> list[float]:
    """Times in ms since 1970 at whole seconds, minutes ... years."""
    if not start < stop:
        return [start] if start == stop else []
    target = (stop - start) / count
    lengths = [unit * every for unit, every in _INTERVALS]
    place = bisect_right(lengths, target)
    if place == len(lengths):
        return _months(start, stop, 12 * max(1, int(step_of(start / _YEAR, stop / _YEAR, count))))
    if place == 0:
        return _multiples(start, stop, max(1.0, step_of(start, stop, count)), 0.0)
    if target / lengths[place - 1] < lengths[place] / target:
        place -= 1
    unit, every = _INTERVALS[place]
    if unit in (_MONTH, _YEAR):
        return _months(start, stop, int(every) * (12 if unit == _YEAR else 1))
    return _multiples(start, stop, unit * every, _SUNDAY if unit == _WEEK else 0.0)


def _multiples(start: float, stop: float, step: float, origin: float) -> list[float]:
    first = math.ceil((start - origin) / step)
    last = math.floor((stop - origin) / step)
    if last - first > MOST_TICKS:
        raise NotDrawnError("an axis with thousands of ticks")
    return [origin + place * step for place in range(first, last + 1)]


def _months(start: float, stop: float, every: int) -> list[float]:
    """The beginnings of every so many months, counted from a January."""
    first, last = to_datetime(start), to_datetime(stop)
    counted = range(first.year * 12, last.year * 12 + 12, 1)
    return [
        at
        for month in counted
        if (month % every == 0 if every >= 12 else month % 12 % every == 0)
        and month // 12 >= 1
        and start <= (at := to_ms(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC))) <= stop
    ]
