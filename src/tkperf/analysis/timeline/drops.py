"""Sudden drops: a rate falls to less than half from one value to the next, as in a stall or a cliff."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tkperf.analysis.timeline.series import Series, running_median, spread
from tkperf.model.seconds import FloatArray

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
