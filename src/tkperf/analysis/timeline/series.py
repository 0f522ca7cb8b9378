"""A series of values over rounds or seconds, and robust statistics for the searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tkperf.model.measurement import FloatArray

# Standard deviation of normally distributed values, divided by the median of their distances from the median.
_MAD_TO_SIGMA = 1.4826
# Above this number of values, sorting takes longer than the selection algorithm of numpy.
_FEW = 500
# in s; longer than 0.3 s, the longest time from a late start of fio to the first I/O
_IDLE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """Values in the order of measurement, at ascending places.

    Attributes:
        place: start of each value. The start is the number of a round, or a time in s.
        width: length of each value in s; 0 for rounds.
        values: measured values, without NaN.
    """

    place: FloatArray
    width: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return self.values.size

    @property
    def spacing(self) -> float:
        """Distance between two neighbouring values. The distance is 1 for rounds, and about 1 s for seconds."""
        return median(np.diff(self.place)) if len(self) > 1 else 1.0


def has_idle(starts_s: Sequence[float] | FloatArray, durations_s: Sequence[float] | FloatArray) -> bool:
    """Return whether the device was idle between two neighbouring values. If so, the values are not a continuous
    series.
    """
    ends_s = (start + duration for start, duration in zip(starts_s, durations_s, strict=True))
    return any(start - end > _IDLE_S for start, end in zip(starts_s[1:], ends_s, strict=False))


def make_series(
    place: Sequence[float] | FloatArray,
    values: Sequence[float | None] | FloatArray,
    width: Sequence[float] | FloatArray | None = None,
) -> Series:
    """Return a series of the measured values. Values that are None or NaN are omitted."""
    places = np.asarray(place, dtype=float)
    measured = np.array(values, dtype=float)  # None also becomes NaN
    widths = np.zeros(places.size) if width is None else np.asarray(width, dtype=float)
    if not places.size == measured.size == widths.size:
        raise ValueError("each value of a series needs one position and one width")
    finite = np.isfinite(measured)
    return Series(place=places[finite], width=widths[finite], values=measured[finite])


def running_median(values: FloatArray, window: int) -> FloatArray:
    """Return the median of the ``window`` values around each value. Beyond both ends, the series is continued with
    mirrored values. ``window`` is odd.
    """
    half = min(window // 2, max(0, (values.size - 1) // 2))
    if half == 0:
        return values.copy()
    padded = np.pad(values, half, mode="reflect")
    # np.median is not used, because it also checks for NaN and takes three times as long.
    return np.partition(sliding_window_view(padded, 2 * half + 1), half, axis=1)[:, half]


def median(values: FloatArray) -> float:
    """Return the median of measured values, like ``numpy.median``. For few values, this function needs a fifth of the
    time that numpy needs.
    """
    if not 0 < values.size <= _FEW:
        return float(np.median(values))
    ordered, middle = np.sort(values), values.size // 2
    if np.isnan(ordered[-1]):
        return float(ordered[-1])
    if values.size % 2:
        return float(ordered[middle])
    return float((ordered[middle - 1] + ordered[middle]) / 2)


def spread(values: FloatArray) -> float:
    """Return an estimate of the standard deviation that outliers do not increase. The estimate is 1.4826 times the
    median distance from the median.
    """
    if not values.size:
        return 0.0
    return _MAD_TO_SIGMA * median(np.abs(values - median(values)))


# Standard deviation of the median of several normally distributed values, divided by the standard deviation of their
# mean.
_MEDIAN_STRAYS = 1.25
# The highest correlation of neighbouring values that can still be distinguished from a change of level.
_MOST_CORRELATION = 0.97
# Number of standard errors that are added to an estimate of noise. The search for levels needs an estimate that is
# almost certainly high enough. A single fit needs only a likely estimate.
_SURE, _LIKELY = 2.0, 1.0
# The greatest number of medians to which a part of a series is reduced. If the part has fewer values, the noise is
# computed from this number of values before the end of the part. Some of these values then precede the part.
_POINTS = 30
_LEAST_FOR_CUBIC = 20
# Greatest change of a fitted line that noise alone can explain, in standard deviations.
CHANGE_SIGMAS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of single values, described by the standard deviation and by the correlation of neighbouring values
    (AR(1) process).
    """

    sigma: float
    correlation: float

    def of_median(self, count: int) -> float:
        """Return the standard deviation of the median of ``count`` neighbours."""
        lags = np.arange(1, count)
        variance = count + 2 * float(np.sum((count - lags) * self.correlation**lags))
        return self.sigma * min(1.0, _MEDIAN_STRAYS * float(np.sqrt(variance)) / count)

    def of_change(self, count: int) -> float:
        """Return the standard deviation of the change of a line fitted through ``count`` values."""
        alike = (1 + self.correlation) / (1 - self.correlation)
        return self.sigma * float(np.sqrt(12 * alike / count))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedChange:
    """The change of the line that is fitted through a part of a series, from the first value of the part to the last
    value.

    Attributes:
        amount: signed change, in the unit of the values.
        by_chance: change that noise alone can explain, in the same unit.
    """

    amount: float
    by_chance: float

    def is_within(self, limit: float) -> bool:
        """Return whether the change does not exceed the limit, or can be explained by noise alone."""
        return abs(self.amount) <= max(limit, self.by_chance)


def measure_noise(values: FloatArray, errors: float = _SURE) -> Noise:
    """Return the noise of values. The noise consists of the deviations from a smooth curve through the values, so a
    bend does not count as noise.

    The curve is a parabola. With 20 values or more, the curve is a cubic, which can also follow a decline that becomes
    flat over half of the series. Few or correlated values give a poor estimate of the noise, so the function returns
    the upper ends of the plausible ranges of the standard deviation and of the correlation.
    """
    at = np.arange(values.size, dtype=float)
    deviations = values - np.polyval(np.polyfit(at, values, 2 if values.size < _LEAST_FOR_CUBIC else 3), at)
    sigma = spread(deviations)
    if sigma == 0:
        return Noise(sigma=0.0, correlation=0.0)
    bounded = np.clip(deviations - median(deviations), -3 * sigma, 3 * sigma)
    alike = float(np.sum(bounded[1:] * bounded[:-1]) / np.sum(bounded**2))
    correlation = float(np.clip(alike + errors / values.size**0.5, 0.0, _MOST_CORRELATION))
    free = max(1.0, values.size * (1 - correlation) / (1 + correlation) - 2)
    return Noise(sigma=sigma * (1 + errors / free), correlation=correlation)


def fit_change(series: Series, first: int, end: int) -> float:
    """Return the change of the line that is fitted through the values from ``first`` to ``end``. The value at ``end``
    is not included.

    The slope of the line is the median of the slopes between all pairs of values (method of Theil and Sen). A long part
    is first reduced to 30 medians.
    """
    place, values = _points(series, first, end)
    one, other = np.triu_indices(values.size, k=1)
    apart = place[other] - place[one]
    kept = apart > 0
    if not kept.any():
        return 0.0
    slope = median((values[other] - values[one])[kept] / apart[kept])
    return slope * float(series.place[end - 1] - series.place[first])


def measure_change_to_end(series: Series, first: int) -> FittedChange:
    """Return the fitted change from ``first`` to the end of a series, and the change that noise alone can explain.

    If the part has fewer than 30 values, the noise is computed from the last 30 values of the series. In a short
    series, the noise is computed from the second half.
    """
    _, values = _points(series, first, len(series))
    if len(series) - first < _POINTS:
        first_for_noise = min(first, max(len(series) // 2, len(series) - _POINTS))
        noise = measure_noise(series.values[first_for_noise:])
    else:
        noise = measure_noise(values, _LIKELY)
    return FittedChange(
        amount=fit_change(series, first, len(series)), by_chance=CHANGE_SIGMAS * noise.of_change(values.size)
    )


def _points(series: Series, first: int, end: int) -> tuple[FloatArray, FloatArray]:
    part_length = -(-(end - first) // _POINTS)
    return reduce_to_medians(series.place[first:end], series.values[first:end], part_length)


def reduce_to_medians(place: FloatArray, values: FloatArray, part_length: int) -> tuple[FloatArray, FloatArray]:
    """Return the middle place and the median of each part of ``part_length`` values. The last part may be shorter."""
    if part_length <= 1:
        return place, values
    whole = values.size // part_length * part_length
    parts = [
        (place[:whole].reshape(-1, part_length), values[:whole].reshape(-1, part_length)),
        (place[whole:].reshape(1, -1), values[whole:].reshape(1, -1)),
    ]
    kept = [(at, of) for at, of in parts if of.size]
    return (
        np.concatenate([at.mean(axis=1) for at, _ in kept]),
        np.concatenate([np.median(of, axis=1) for _, of in kept]),
    )
