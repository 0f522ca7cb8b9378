"""Find periodic spikes, and compute the probability that the equal distances of the spikes are due to chance.

The search has two steps. First, the highest peaks are treated as events. One Fourier transform of the events yields the
Rayleigh statistic of every frequency, and strong frequencies are candidates for a period. Second, each candidate is
checked: a certain share of all places at multiples of the period must have a spike. If the order of the values were
random, the number of the highest peaks at these places would have a hypergeometric distribution. Only the order of the
values matters, so a distribution with heavy tails does not look like a periodic signal. The probability is multiplied
by the number of combinations of period, phase and number of peaks that were tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, exp, lgamma

import numpy as np
from numpy.typing import NDArray

from tkperf.analysis.timeline.series import Series, running_median
from tkperf.model.measurement import FloatArray

LEAST_FOR_SPIKES = 30
LEAST_SPIKES = 5
SHORTEST_PERIOD = 4  # in values
# The first number is the smallest height of a spike, as a multiple of the median around the spike. The second number is
# the smallest share of the places that must have a spike.
LEAST_HEIGHT = 1.10
LEAST_SHARE = 0.7
# The largest accepted probability of a false alarm for a series without periodic spikes.
MOST_CHANCE = 1e-3
# The number of values from which the median around a value is computed.
NEIGHBOURS = 21
MOST_PEAKS = 2000
# A spectrum covers all positions of a series, including positions without a value. The first limit corresponds to
# twelve days with one value in each second. In a damaged file, two positions may be years apart. tkperf does not search
# such a series for periodic spikes.
MOST_PLACES, MOST_PLACES_PER_VALUE = 1 << 20, 16
# Greatest distance of a spike from its place in the pattern. A spike may be at the neighbouring value, or within a
# twentieth of the period.
_NEAR, _NEXT, _WITHIN_PERIOD = 0.5, 1.5, 0.05
_REACH = 2.0
# Tolerance for rounding, in values. Without this tolerance, a fitted period of exactly four values could be rounded to
# less than the shortest period.
_PERIOD_ERROR = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicSpikes:
    """A pattern of spikes at equal distances.

    Attributes:
        period, first: distance between the spikes, and place of the first observed spike, in rounds or seconds.
        expected: number of places of the pattern within the series.
        places: places of the observed spikes, as numbers of rounds or as seconds.
        height: median height of the spikes, as a multiple of the median around each spike.
        chance: probability that any such pattern appears in a series of the same values in random order.
    """

    period: float
    first: float
    expected: int
    places: tuple[float, ...]
    height: float
    chance: float

    @property
    def observed(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Comb:
    """A possible pattern of spikes. The pattern consists of a period and a first place, both in values, and of the
    events at the places of the pattern.
    """

    period: float
    first: float
    expected: int
    events: FloatArray
    near: float
    chance: float


def find_periodic_spikes(series: Series) -> PeriodicSpikes | None:
    """Return the pattern of spikes at equal distances that is least likely to be due to chance. None means that chance
    can explain every pattern.
    """
    if len(series) < LEAST_FOR_SPIKES:
        return None
    series = _in_order(series)  # Overlapping slices may be out of order.
    if not series.spacing > 0:  # All values have the same place, as in a damaged file.
        return None
    at = np.rint((series.place - series.place[0]) / series.spacing)
    if not at[-1] < max(MOST_PLACES, MOST_PLACES_PER_VALUE * len(series)):
        return None
    height = _height(series.values)
    peaks = _find_peaks(height)
    sizes = _sizes(min(peaks.size, len(series) // 4, MOST_PEAKS))
    combs = (
        comb
        for size in sizes
        for comb in _find_combs(np.sort(at[peaks[:size]]), int(at[-1]) + 1, len(series), len(sizes))
    )
    sure = sorted((comb for comb in combs if comb.chance <= MOST_CHANCE), key=lambda comb: comb.chance)
    for best in sure:
        indices = _all_on(best, at, height, peaks)
        # Peaks that are much lower than the typical peaks do not belong to the pattern.
        if indices.size >= max(LEAST_SPIKES, LEAST_SHARE * best.expected):
            break
    else:
        return None
    places = series.place[indices]
    return PeriodicSpikes(
        period=best.period * series.spacing,
        first=float(places[0]),
        expected=best.expected,
        places=tuple(places.tolist()),
        height=float(np.median(height[indices])),
        chance=best.chance,
    )


def _in_order(series: Series) -> Series:
    order = np.argsort(series.place, kind="stable")
    return Series(place=series.place[order], width=series.width[order], values=series.values[order])


def _all_on(comb: _Comb, at: FloatArray, height: FloatArray, peaks: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the highest peak at each place of a pattern. A peak counts only if it has at least half of the typical
    height.
    """
    typical = float(np.median(height[np.searchsorted(at, comb.events)]))
    high = peaks[height[peaks] - 1 >= 0.5 * (typical - 1)]
    number = np.rint((at[high] - comb.first) / comb.period)
    kept = np.abs(at[high] - comb.first - comb.period * number) <= comb.near + 1e-9
    # Higher peaks are first, so the first peak for each number is the highest peak.
    _, firsts = np.unique(number[kept], return_index=True)
    return np.asarray(np.sort(high[kept][firsts]))


def _height(values: FloatArray) -> FloatArray:
    """Return each value as a multiple of the median of the surrounding values."""
    base = running_median(values, NEIGHBOURS)
    return np.asarray(np.divide(values, base, out=np.ones_like(values), where=base > 0))


def _find_peaks(height: FloatArray) -> NDArray[np.intp]:
    """Return the indices of values that no neighbour exceeds. The index of the highest value is first."""
    before = np.concatenate(([-np.inf], height[:-1]))
    after = np.concatenate((height[1:], [-np.inf]))
    peaks = np.flatnonzero((height >= LEAST_HEIGHT) & (height > before) & (height >= after))
    return np.asarray(peaks[np.argsort(-height[peaks], kind="stable")])


def _sizes(most: int) -> list[int]:
    """Return the numbers of peaks that the search tries one after the other. The search always uses the highest
    peaks.
    """
    sizes, size = [], LEAST_SPIKES
    while size < most:
        sizes.append(size)
        size = ceil(1.7 * size)
    return sizes if most < LEAST_SPIKES else [*sizes, most]


def _find_combs(events: FloatArray, length: int, values: int, tried: int) -> Iterator[_Comb]:
    """Yield patterns in which many of these events recur, each with the probability that the pattern is due to
    chance.
    """
    for period, first in _candidates(events, length):
        for near in (_NEAR, _NEXT, _WITHIN_PERIOD * period):
            comb = _fold(events, length, values, tried, period, first, near)
            if comb is not None:
                yield comb


def _candidates(events: FloatArray, length: int) -> Iterator[tuple[float, float]]:
    """Yield periods and first places at which the events have a strong Rayleigh statistic.

    One Fourier transform of four times the length yields the statistic for all frequencies, from the lowest frequency
    with enough periods to the frequency of the shortest period. The spectrum of short pulses is about equally strong at
    all multiples of the pulse frequency. The lowest strong frequencies are therefore also candidates.
    """
    size = 1 << (4 * length - 1).bit_length()
    lowest, highest = ceil((LEAST_SPIKES - 1) / length * size), size // SHORTEST_PERIOD
    # The mean is subtracted, because otherwise the mean would appear as a strong low frequency. If the distances are
    # uneven, two events can have the same place.
    marks = np.bincount(events.astype(np.int64), minlength=length) - events.size / length
    # One additional frequency is included, so that the shortest period can be a maximum of the spectrum.
    spectrum = np.fft.rfft(marks, size)[lowest : highest + 2]
    power = np.asarray(spectrum.real**2 + spectrum.imag**2)
    if power.size < 3:
        return
    tops = 1 + np.flatnonzero((power[1:-1] >= power[:-2]) & (power[1:-1] > power[2:]))
    # If half of the events recur, the statistic is at least a quarter of its greatest value.
    strong = tops[power[tops] >= 0.25 * LEAST_SHARE * events.size**2]
    if not strong.size:
        return
    strongest = strong[np.argsort(-power[strong], kind="stable")][:6]
    low = tops[power[tops] >= 0.5 * power[tops].max()][:4]
    for index in dict.fromkeys((*strongest.tolist(), *low.tolist())):
        frequency = (lowest + index) / size
        turned = -np.angle(spectrum[index]) / (2 * np.pi)
        yield 1 / frequency, float(turned % 1 / frequency)


def _fold(
    events: FloatArray, length: int, values: int, tried: int, period: float, first: float, near: float
) -> _Comb | None:
    # The tolerance is reduced step by step. After each reduction, the line is fitted again.
    for reach in (max(near, period / 6), max(near, period / 12), near, near):
        number = np.rint((events - first) / period)
        kept = np.abs(events - first - period * number) <= reach + 1e-9
        if np.unique(number[kept]).size < LEAST_SPIKES - 1:
            return None
        if kept.sum() < LEAST_SHARE * length / period / 2:
            return None
        period, first = _fit(number[kept], events[kept])
        if period < SHORTEST_PERIOD - _PERIOD_ERROR:
            return None
    number = np.rint((events - first) / period)
    kept = np.abs(events - first - period * number) <= near + 1e-9
    _, one_each = np.unique(number[kept], return_index=True)
    hits = events[kept][one_each]
    expected = _count_places(first, period, length)
    if hits.size < max(LEAST_SPIKES, LEAST_SHARE * expected):
        return None
    # Two neighbouring values are never both peaks, so no more than half of the values can be peaks.
    room = values // 2
    covered = max(1, round((2 * near + 1) / 2))
    log_chance = _log_tail(hits.size, events.size, min(room, expected * covered), room)
    trials = tried * 3 * (length / 2) * max(1.0, period / (2 * near))
    chance = min(1.0, exp(min(0.0, log_chance)) * trials)
    reach = max(near, min(_REACH, period / 6))
    return _Comb(period=period, first=first, expected=expected, events=hits, near=reach, chance=chance)


def _fit(number: FloatArray, events: FloatArray) -> tuple[float, float]:
    """Return the slope and the start of the least-squares line."""
    middle, mean = number.mean(), events.mean()
    apart = number - middle
    slope = float(apart @ (events - mean) / (apart @ apart))
    return slope, float(mean - slope * middle)


def _count_places(first: float, period: float, length: int) -> int:
    """Return the number of places of a pattern that lie within the series."""
    return int((length - 0.5 - first) // period) - ceil((-0.5 - first) / period) + 1


def _log_tail(hits: int, drawn: int, marked: int, room: int) -> float:
    """Return the logarithm of the probability of at least ``hits`` hits (hypergeometric distribution)."""

    def log_choose(many: int, few: int) -> float:
        return lgamma(many + 1) - lgamma(few + 1) - lgamma(many - few + 1)

    drawn = min(drawn, room)
    whole = log_choose(room, drawn)
    terms = [
        log_choose(marked, count) + log_choose(room - marked, drawn - count) - whole
        for count in range(hits, min(drawn, marked) + 1)
        if drawn - count <= room - marked
    ]
    if not terms:
        return -700.0
    top = max(terms)
    return top + float(np.log(sum(exp(term - top) for term in terms)))
