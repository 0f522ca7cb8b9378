"""Levels of a rate, fresh out of the box, in transition, steady; and sudden drops, as in a stall or a cliff.

The search for levels is robust: medians of few neighbours keep single spikes and stalls from moving a boundary,
and the band around the last level is as wide as the noise there. In a sudden drop a rate falls to less than half from
one value to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tkperf.analysis.timeline.series import Series, running_median, spread
from tkperf.model.seconds import FloatArray

LEAST_FOR_LEVELS = 10
# A value leaves a level at a tenth of it, and another level differs by a fifth: the PTS's own limits
# for slope and range.
BAND = 0.10
OTHER_LEVEL = 0.20
FIRST_BAND = 0.05  # narrower for a first level: a decline that begins goes on
# Reach of noise alone, in standard deviations.
LEVEL_NOISE_SIGMAS = 5.0
# Standard deviation of the median of several normally distributed values, relative to their mean's.
_MEDIAN_STRAYS = 1.25
# The highest correlation of neighbours that differs from a change of level.
_MOST_CORRELATION = 0.97
# This share of the steady part may lie outside its band, but never for long.
MOST_OUTSIDE = 0.05
SHORTEST_PHASE = 3
# Longer series become as many medians; a boundary is then as precise as one part is long.
MOST_FOR_LEVELS = 3000


class LevelKind(StrEnum):
    FRESH = "fresh out of box"
    FIRST = "first level"
    TRANSITION = "transition"
    STEADY = "steady"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLevel:
    """A phase of a series, from its first value to the end of its last.

    ``value`` is the median there; for a transition it means little.
    """

    kind: LevelKind
    start: float
    end: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Phases of a series.

    ``settled``: the end is level; otherwise the last phase is a transition that still went on.
    """

    phases: tuple[RateLevel, ...]
    settled: bool


def find_levels(series: Series, *, as_new: bool = False) -> Levels | None:
    """Return the phases of a rate; None with fewer than ten values.

    Args:
        series: a rate that falls, or rises, to its last level.
        as_new: the series began on a purged device without any writes since: a first level above the
            last is then fresh out of box.
    """
    if len(series) < LEAST_FOR_LEVELS:
        return None
    series = _reduced(series)
    values = series.values
    window = 5 if values.size >= 40 else 3
    smooth = running_median(values, window)
    last = float(np.median(smooth[-max(5, values.size // 4) :]))
    noise = _find_noise(values[values.size // 2 :])
    band = max(BAND * abs(last), LEVEL_NOISE_SIGMAS * noise.of_median(window))
    begin = _find_steady(smooth, last, band)
    settled = values.size - begin >= 5 and _is_level(smooth[begin:], last, noise)
    first_end = _find_first_end(smooth[:begin], values[:begin], last, noise)
    if settled and first_end == 0 and not _is_apart(values[:begin], last, noise):
        begin = 0
    end = begin if settled else values.size
    phases = [
        _phase(LevelKind.FIRST, series, 0, first_end),
        _phase(LevelKind.TRANSITION, series, first_end, end),
        _phase(LevelKind.STEADY, series, end, values.size),
    ]
    present = [phase for phase in phases if phase is not None]
    if as_new and present[0].kind is LevelKind.FIRST and present[0].value > last:
        present[0] = replace(present[0], kind=LevelKind.FRESH)
    return Levels(phases=tuple(present), settled=settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noise:
    """Noise of single values: standard deviation, and correlation of neighbours (AR(1))."""

    sigma: float
    correlation: float

    def of_median(self, count: int) -> float:
        """Return the standard deviation of the median of ``count`` neighbours."""
        lags = np.arange(1, count)
        variance = count + 2 * float(np.sum((count - lags) * self.correlation**lags))
        return self.sigma * min(1.0, _MEDIAN_STRAYS * float(np.sqrt(variance)) / count)


def _find_noise(tail: FloatArray) -> _Noise:
    """Measure deviations from a parabola through the second half of a series, so that a bend is no noise.

    Few or correlated values give a poor estimate of their spread, so both figures are at the upper end
    of what is plausible.
    """
    at = np.arange(tail.size, dtype=float)
    strays = tail - np.polyval(np.polyfit(at, tail, 2), at)
    sigma = spread(strays)
    if sigma == 0:
        return _Noise(sigma=0.0, correlation=0.0)
    bounded = np.clip(strays - np.median(strays), -3 * sigma, 3 * sigma)
    alike = float(np.sum(bounded[1:] * bounded[:-1]) / np.sum(bounded**2))
    correlation = float(np.clip(alike + 2 / tail.size**0.5, 0.0, _MOST_CORRELATION))
    free = max(1.0, tail.size * (1 - correlation) / (1 + correlation) - 2)
    return _Noise(sigma=sigma * (1 + 2 / free), correlation=correlation)


def _reduced(series: Series) -> Series:
    """Return medians of equal parts if the series has more values than boundaries need."""
    part_length = -(-len(series) // MOST_FOR_LEVELS)
    if part_length == 1:
        return series
    firsts = np.arange(0, len(series), part_length)
    lasts = np.minimum(firsts + part_length, len(series)) - 1
    whole = series.values[: len(series) // part_length * part_length].reshape(-1, part_length)
    rest = series.values[whole.size :]
    medians = np.concatenate((np.median(whole, axis=1), [np.median(rest)] if rest.size else []))
    return Series(
        place=series.place[firsts],
        width=series.place[lasts] + series.width[lasts] - series.place[firsts],
        values=medians,
    )


def _find_steady(smooth: FloatArray, last: float, band: float) -> int:
    """Return the first index from which all values stay within the band, except few and short excursions."""
    outside = np.abs(smooth - last) > band
    longest = max(2, smooth.size // 100)
    begin, run, total = smooth.size, 0, 0
    for index in range(smooth.size - 1, -1, -1):
        if not outside[index]:
            run, begin = 0, index
            continue
        run, total = run + 1, total + 1
        if run > longest or total > MOST_OUTSIDE * (smooth.size - index) + longest:
            break
    return begin


def _is_level(steady: FloatArray, last: float, noise: _Noise) -> bool:
    """Return whether the last third lies at the level of the first, by the slope that the PTS allows."""
    third = max(1, steady.size // 3)
    risen = float(np.median(steady[-third:]) - np.median(steady[:third]))
    by_chance = LEVEL_NOISE_SIGMAS * 2**0.5 * noise.of_median(third)
    return abs(risen) <= max(BAND * abs(last) / 1.5, by_chance)


def _find_first_end(smooth: FloatArray, values: FloatArray, last: float, noise: _Noise) -> int:
    """Return how many values, from the first on, form a level of their own; 0: none."""
    if smooth.size < SHORTEST_PHASE:
        return 0
    count = SHORTEST_PHASE
    level = float(np.median(values[:count]))
    band = max(FIRST_BAND * abs(level), 3 * noise.of_median(SHORTEST_PHASE))
    while count < smooth.size and abs(smooth[count] - level) <= band:
        count += 1
        level = float(np.median(values[:count]))
    return count if _is_apart(values[:count], last, noise) else 0


def _is_apart(values: FloatArray, last: float, noise: _Noise) -> bool:
    """Return whether these values are another level than the last."""
    if values.size < SHORTEST_PHASE:
        return False
    distance = abs(float(np.median(values)) - last)
    by_chance = LEVEL_NOISE_SIGMAS * 2**0.5 * noise.of_median(min(values.size, 5))
    return distance > max(OTHER_LEVEL * abs(last), by_chance)


def _phase(kind: LevelKind, series: Series, first: int, end: int) -> RateLevel | None:
    if first >= end:
        return None
    return RateLevel(
        kind=kind,
        start=float(series.place[first]),
        end=float(series.place[end - 1] + series.width[end - 1]),
        value=float(np.median(series.values[first:end])),
    )


LEAST_FOR_DROPS = 10
# Level before a drop: the median of so many values. A drop is below half of their lower quartile.
BEFORE, LEAST_BEFORE = 9, 5
DEEP = 0.5
BACK = 0.75
NOISE_SIGMAS = 8.0
# Noise alone does not last so long. A shorter drop must nearly reach zero, far from the noise, and be
# deep compared with the highest rise: heavy tails reach to both sides.
LASTING = 3
NEARLY_NOTHING = 0.1
STALL_SIGMAS = 25.0
DEEPER_THAN_RISES = 3.0
NEIGHBOURS_OF_DROP = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A drop from the level ``before`` to the lowest value ``least``, between the places ``start`` and ``end``.

    ``recovered``: the rate reached three quarters of the level again.
    """

    start: float
    end: float
    before: float
    least: float
    recovered: bool


def find_drops(series: Series) -> tuple[Drop, ...]:
    """Return every sudden drop of a rate, in order."""
    if len(series) < LEAST_FOR_DROPS:
        return ()
    values = series.values
    strays = values - running_median(values, NEIGHBOURS_OF_DROP)
    sigma, highest_rise = spread(strays), float(strays.max())
    deep_for_stalls = max(STALL_SIGMAS * sigma, DEEPER_THAN_RISES * highest_rise)
    kept, levels = _levels_before(values)
    falls = (values < DEEP * kept) & (kept - values > NOISE_SIGMAS * sigma)
    candidates = np.flatnonzero(falls)
    drops: list[Drop] = []
    index = 0
    while (place := int(np.searchsorted(candidates, index))) < candidates.size:
        index = int(candidates[place])
        before = float(levels[index])
        end = _end_of(values, index, before)
        least = float(values[index:end].min())
        stalled = least <= NEARLY_NOTHING * before and before - least > deep_for_stalls
        if stalled or end - index >= LASTING:
            drops.append(_drop(series, index, end, before))
        # Later values are judged by the level after the drop, not by the level before it.
        if end == values.size:
            index += BEFORE
        else:
            index = end + (LEAST_BEFORE if end - index > BEFORE // 2 else 0)
    return tuple(drops)


def _levels_before(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower quartile and median of the values before each; NaN for the first values, which have too few."""
    levels = np.full((2, values.size), np.nan)
    for index in range(LEAST_BEFORE, min(BEFORE, values.size)):
        levels[:, index] = np.percentile(values[:index], (25, 50))
    if values.size > BEFORE:
        windows = np.lib.stride_tricks.sliding_window_view(values[:-1], BEFORE)
        levels[:, BEFORE:] = np.percentile(windows, (25, 50), axis=1)
    return levels[0], levels[1]


def _end_of(values: FloatArray, start: int, before: float) -> int:
    back = np.flatnonzero(values[start:] >= BACK * before)
    return start + int(back[0]) if back.size else values.size


def _drop(series: Series, start: int, end: int, before: float) -> Drop:
    return Drop(
        start=float(series.place[start]),
        end=float(series.place[end - 1] + series.width[end - 1]),
        before=before,
        least=float(series.values[start:end].min()),
        recovered=end < len(series),
    )
