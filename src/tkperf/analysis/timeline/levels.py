"""Where a rate is level: fresh out of the box, in transition, steady.

Robust on purpose: medians of few neighbours, so that single spikes and stalls move no boundary, and
a band around the last level as wide as the noise there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tkperf.analysis.timeline.series import Series, running_median, spread
from tkperf.model.seconds import FloatArray

LEAST_VALUES = 10
# A level is left by a tenth of itself, and another level differs by a fifth: the PTS's own limits
# for slope and range.
BAND = 0.10
OTHER_LEVEL = 0.20
FIRST_BAND = 0.05  # a first level is left sooner: what begins to fall goes on
# What noise may do by itself, in standard deviations.
NOISE_SIGMAS = 5.0
# The median of several normally distributed values strays so much more than their mean.
_MEDIAN_STRAYS = 1.25
# Correlation of neighbours that can be told from a change of level, at most.
_MOST_CORRELATION = 0.97
# So much of the steady part may lie outside its band, but never for long.
MOST_OUTSIDE = 0.05
SHORTEST_PHASE = 3
# Longer series are reduced to as many medians: boundaries are then as exact as a part is long.
MOST_VALUES = 3000


class LevelKind(StrEnum):
    FRESH = "fresh out of box"
    FIRST = "first level"
    TRANSITION = "transition"
    STEADY = "steady"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A phase of a series, from its first value to the end of its last.

    ``value`` is the median there; of a transition it says little.
    """

    kind: LevelKind
    start: float
    end: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """``settled``: the end is level; else the last phase is a transition that was still going on."""

    phases: tuple[Level, ...]
    settled: bool


def find_levels(series: Series, *, as_new: bool = False) -> Levels | None:
    """The phases of a rate; None of fewer than ten values.

    Args:
        series: of a rate that falls, or rises, to where it stays.
        as_new: it began on a purged device that nothing had been written to since: then a first
            level above the last is called fresh out of box.
    """
    if len(series) < LEAST_VALUES:
        return None
    series = _reduced(series)
    values = series.values
    window = 5 if values.size >= 40 else 3
    smooth = running_median(values, window)
    last = float(np.median(smooth[-max(5, values.size // 4) :]))
    noise = _find_noise(values[values.size // 2 :])
    band = max(BAND * abs(last), NOISE_SIGMAS * noise.of_median(window))
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
    """Of single values the standard deviation, and the correlation of neighbours (AR(1))."""

    sigma: float
    correlation: float

    def of_median(self, count: int) -> float:
        """The standard deviation of the median of so many neighbours."""
        lags = np.arange(1, count)
        together = count + 2 * float(np.sum((count - lags) * self.correlation**lags))
        return self.sigma * min(1.0, _MEDIAN_STRAYS * float(np.sqrt(together)) / count)


def _find_noise(tail: FloatArray) -> _Noise:
    """How values stray from the parabola through the second half: a bend is no noise.

    Few values, or values that hang together, say little of their spread: both figures are taken as
    large as they may well be.
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
    """Medians of equal parts where there are more values than boundaries need."""
    part_length = -(-len(series) // MOST_VALUES)
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
    """From which value on all stay within the band, but for few and short excursions."""
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
    """Whether its last third lies where its first does, by the slope that the PTS allows."""
    third = max(1, steady.size // 3)
    risen = float(np.median(steady[-third:]) - np.median(steady[:third]))
    by_chance = NOISE_SIGMAS * 2**0.5 * noise.of_median(third)
    return abs(risen) <= max(BAND * abs(last) / 1.5, by_chance)


def _find_first_end(smooth: FloatArray, values: FloatArray, last: float, noise: _Noise) -> int:
    """How many values, from the first on, lie on a level of their own; 0: there is none."""
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
    """Whether these are another level than the last."""
    if values.size < SHORTEST_PHASE:
        return False
    distance = abs(float(np.median(values)) - last)
    by_chance = NOISE_SIGMAS * 2**0.5 * noise.of_median(min(values.size, 5))
    return distance > max(OTHER_LEVEL * abs(last), by_chance)


def _phase(kind: LevelKind, series: Series, first: int, end: int) -> Level | None:
    if first >= end:
        return None
    return Level(
        kind=kind,
        start=float(series.place[first]),
        end=float(series.place[end - 1] + series.width[end - 1]),
        value=float(np.median(series.values[first:end])),
    )
