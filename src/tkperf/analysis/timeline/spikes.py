"""Periodic spikes, and the probability that chance set them at equal distances.

The search has two steps. The spectrum of the highest peaks as events gives candidates (the Rayleigh
statistic of every frequency at once, by one Fourier transform). Folding decides: a share of all places
should hold a spike, and the number of the highest peaks that lie there by chance is hypergeometric.
Only the order of the values counts, so heavy tails do not look like signals. The probability is
multiplied by the number of periods, phases and numbers of peaks that were tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, exp, lgamma, log10

import numpy as np
from numpy.typing import NDArray

from tkperf.analysis.timeline.series import Series, running_median
from tkperf.model.histogram import IntArray
from tkperf.model.seconds import FloatArray

ComplexArray = NDArray[np.complex128]

LEAST_VALUES = 30
LEAST_SPIKES = 5
SHORTEST_PERIOD = 4  # in values
# Least height of a spike over its neighbourhood, and least share of the places that have one.
LEAST_HEIGHT = 1.10
LEAST_SHARE = 0.7
# Chance of one false alarm in a series without spikes.
MOST_CHANCE = 1e-3
# Size of the neighbourhood, in values.
NEIGHBOURS = 21
MOST_PEAKS = 2000
# Spectra cover all places, also places without a value: up to twelve days of seconds. A damaged file may
# have years between two places; no pattern is sought there.
MOST_PLACES, MOST_PLACES_PER_VALUE = 1 << 20, 16
# Distance of a spike from its place: within a value, its neighbours, or a twentieth of the period.
_NEAR, _BESIDE, _WITHIN_PERIOD = 0.5, 1.5, 0.05
_REACH = 2.0
# So many events, one by one, take about as long as any number by a Fourier transform.
_FEW_EVENTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicSpikes:
    """A pattern of spikes at equal distances.

    Attributes:
        period, first: distance, and first observed place, in rounds or seconds.
        expected: number of places that fit in.
        places: places of the observed spikes: round numbers or seconds.
        height: median of the spikes, as a multiple of their neighbourhood.
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
    """A period and a first place, in values, with the events on it."""

    period: float
    first: float
    expected: int
    events: FloatArray
    near: float
    chance: float


def find_periodic_spikes(series: Series) -> PeriodicSpikes | None:
    """Return the surest pattern of spikes at equal distances; None if chance explains it."""
    if len(series) < LEAST_VALUES:
        return None
    if (np.diff(series.place) < 0).any():  # slices may overlap
        series = _in_order(series)
    if not series.step > 0:  # all at one place, as a damaged file may have them
        return None
    at = np.rint((series.place - series.place[0]) / series.step)
    if not at[-1] < max(MOST_PLACES, MOST_PLACES_PER_VALUE * len(series)):
        return None
    height = _height(series.values)
    peaks = _find_peaks(height)
    best: _Comb | None = None
    sizes = _sizes(min(peaks.size, len(series) // 4, MOST_PEAKS))
    if not sizes:
        return None
    spectra = Spectra(at[peaks], int(at[-1]) + 1)
    for size in sizes:
        events = np.sort(at[peaks[:size]])
        for comb in _find_combs(events, spectra, len(series), len(sizes)):
            if best is None or comb.chance < best.chance:
                best = comb
    if best is None or best.chance > MOST_CHANCE:
        return None
    indices = _all_on(best, at, height, peaks)
    places = series.place[indices]
    return PeriodicSpikes(
        period=best.period * series.step,
        first=float(places[0]),
        expected=best.expected,
        places=tuple(places.tolist()),
        height=float(np.median(height[indices])),
        chance=best.chance,
    )


def _in_order(series: Series) -> Series:
    order = np.argsort(series.place, kind="stable")
    return Series(place=series.place[order], width=series.width[order], values=series.values[order])


def _all_on(
    comb: _Comb, at: FloatArray, height: FloatArray, peaks: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the highest peak at each place of a comb, if it is half as high as is typical there."""
    typical = float(np.median(height[np.searchsorted(at, comb.events)]))
    high = peaks[height[peaks] - 1 >= 0.5 * (typical - 1)]
    number = np.rint((at[high] - comb.first) / comb.period)
    kept = np.abs(at[high] - comb.first - comb.period * number) <= comb.near + 1e-9
    # Higher peaks come first, so the first of each number is the highest.
    _, firsts = np.unique(number[kept], return_index=True)
    return np.asarray(np.sort(high[kept][firsts]))


def _height(values: FloatArray) -> FloatArray:
    """Return each value as a multiple of the median around it."""
    base = running_median(values, NEIGHBOURS)
    return np.asarray(np.divide(values, base, out=np.ones_like(values), where=base > 0))


def _find_peaks(height: FloatArray) -> NDArray[np.intp]:
    """Return indices of values that no neighbour exceeds, the highest first."""
    before = np.concatenate(([-np.inf], height[:-1]))
    after = np.concatenate((height[1:], [-np.inf]))
    peaks = np.flatnonzero((height >= LEAST_HEIGHT) & (height > before) & (height >= after))
    return np.asarray(peaks[np.argsort(-height[peaks], kind="stable")])


def _sizes(most: int) -> list[int]:
    """Return how many of the highest peaks to examine together."""
    sizes, size = [], float(LEAST_SPIKES)
    while size < most:
        sizes.append(round(size))
        size = size * 1.5 if size >= 12 else size + 1
    return sizes if most < LEAST_SPIKES else [*sizes, most]


def power_of(spectrum: ComplexArray) -> FloatArray:
    return np.asarray(spectrum.real**2 + spectrum.imag**2)


class Spectra:
    """Spectra of the first few events, for several numbers of events, at the examined frequencies.

    The frequencies are from a Fourier transform of four times the length, so that no line falls between two.
    They reach from the lowest with enough periods to the frequency of the shortest period.
    """

    def __init__(self, events: FloatArray, length: int) -> None:
        self.length = length
        self.size = 1 << (4 * length - 1).bit_length()
        self.lowest = ceil((LEAST_SPIKES - 1) / length * self.size)
        self.highest = self.size // SHORTEST_PERIOD
        self._events = events.astype(np.int64)
        # Spectrum of equal values: the mean's part at low frequencies is no period.
        self._mean = self._transform(np.ones(length)) / length
        self._summed, self._sum = 0, np.zeros_like(self._mean)

    def of_first(self, count: int) -> ComplexArray:
        """Return the spectrum of the first ``count`` events, less the mean's part; ``count`` never decreases."""
        added = self._events[self._summed : count]
        if added.size <= _FEW_EVENTS:
            self._sum = self._sum + self._transform_few(added)
        else:
            self._sum = self._transform(self._mark(count))
        self._summed = count
        return self._sum - count * self._mean

    def may_reach(self, count: int, power: float) -> bool:
        """Return whether the first ``count`` may have such a power at any frequency, in half the time.

        Between two frequencies of a transform of at least twice the length, nothing is more than twice as
        strong as the strongest of all (Bernstein's inequality; Ehlich and Zeller, 1964).
        """
        if count - self._summed <= _FEW_EVENTS:
            return True
        marks = self._mark(count) - count / self.length
        return bool(2 * power_of(np.fft.rfft(marks, self.size // 2)).max() >= power)

    def _mark(self, count: int) -> FloatArray:
        """Count the first so many events in each place: with uneven distances two may share one."""
        return np.bincount(self._events[:count], minlength=self.length).astype(np.float64)

    def _transform(self, marks: FloatArray) -> ComplexArray:
        return np.fft.rfft(marks, self.size)[self.lowest : self.highest + 1]

    def _transform_few(self, events: IntArray) -> ComplexArray:
        """Return the transform of a few events as a sum of turns: the frequency's high digit times its low one."""
        digits = 1 << (self.size.bit_length() // 2)
        turn = -2j * np.pi / self.size
        high, low = (
            # Whole turns are removed before they cost digits.
            np.exp(turn * (np.multiply.outer(events, digit) % self.size))
            for digit in (np.arange(0, self.highest + 1, digits), np.arange(digits))
        )
        return (high.T @ low).ravel()[self.lowest : self.highest + 1]


def _find_combs(events: FloatArray, spectra: Spectra, values: int, tried: int) -> Iterator[_Comb]:
    """Yield periods in which many of these events recur, with the probability of so many by chance."""
    for period, first in _candidates(spectra, events.size):
        for near in (_NEAR, _BESIDE, _WITHIN_PERIOD * period):
            comb = _fold(events, spectra.length, values, tried, period, first, near)
            if comb is not None:
                yield comb


def _candidates(spectra: Spectra, count: int) -> Iterator[tuple[float, float]]:
    """Yield periods and first places at which so many events have a strong Rayleigh statistic.

    Pulses are about equally strong at all multiples of their frequency, so the lowest are candidates, too.
    """
    # If half of the events recur, the statistic is at least a quarter of its greatest value.
    least = 0.25 * LEAST_SHARE * count**2
    if not spectra.may_reach(count, least):
        return
    spectrum = spectra.of_first(count)
    inner = power_of(spectrum)
    if inner.size < 3:
        return
    tops = 1 + np.flatnonzero((inner[1:-1] >= inner[:-2]) & (inner[1:-1] > inner[2:]))
    strong = tops[inner[tops] >= least]
    strongest = strong[np.argsort(-inner[strong], kind="stable")][:6]
    if not strongest.size:
        return
    low = tops[inner[tops] >= 0.5 * inner[tops].max()][:4]
    for index in dict.fromkeys((*strongest.tolist(), *low.tolist())):
        frequency = (spectra.lowest + index) / spectra.size
        turned = -np.angle(spectrum[index]) / (2 * np.pi)
        yield 1 / frequency, float(turned % 1 / frequency)


def _fold(
    events: FloatArray,
    length: int,
    values: int,
    tried: int,
    period: float,
    first: float,
    near: float,
) -> _Comb | None:
    # Narrow the reach step by step; each step fits the line through the events anew.
    for reach in (max(near, period / 6), max(near, period / 12), near, near):
        number = np.rint((events - first) / period)
        kept = np.abs(events - first - period * number) <= reach + 1e-9
        if np.unique(number[kept]).size < LEAST_SPIKES - 1:
            return None
        if kept.sum() < LEAST_SHARE * length / period / 2:
            return None
        period, first = _fit(number[kept], events[kept])
        if period < SHORTEST_PERIOD:
            return None
    number = np.rint((events - first) / period)
    kept = np.abs(events - first - period * number) <= near + 1e-9
    _, one_each = np.unique(number[kept], return_index=True)
    hits = events[kept][one_each]
    expected = _count_places(first, period, length)
    if hits.size < max(LEAST_SPIKES, LEAST_SHARE * expected):
        return None
    # No two neighbours are both peaks, so there is room for half as many.
    room = values // 2
    covered = max(1, round((2 * near + 1) / 2))
    log_chance = _log_tail(hits.size, events.size, min(room, expected * covered), room)
    trials = tried * 3 * (length / 2) * max(1.0, period / (2 * near))
    chance = min(1.0, exp(min(0.0, log_chance)) * trials)
    reach = max(near, min(_REACH, period / 6))
    return _Comb(
        period=period, first=first, expected=expected, events=hits, near=reach, chance=chance
    )


def _fit(number: FloatArray, events: FloatArray) -> tuple[float, float]:
    """Return slope and start of the least-squares line."""
    middle, mean = number.mean(), events.mean()
    aside = number - middle
    slope = float(aside @ (events - mean) / (aside @ aside))
    return slope, float(mean - slope * middle)


def _count_places(first: float, period: float, length: int) -> int:
    """Count the places of a comb that fall on a value."""
    return int((length - 0.5 - first) // period) - ceil((-0.5 - first) / period) + 1


def _log_tail(hits: int, drawn: int, marked: int, room: int) -> float:
    """Return the logarithm of the probability of at least so many hits: hypergeometric."""

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


def describe_chance(chance: float) -> str:
    """Return ``1 in 10^8``: an upper limit of the probability by chance."""
    return f"1 in 10^{max(3, int(-log10(max(chance, 1e-300))))}"
