"""Find the levels of a rate (fresh out of the box, in transition, steady), and sudden drops of the rate.

The search for levels is robust: the search uses medians over a few neighbouring values, so single spikes and stalls do
not move a boundary. The band around a level is as wide as the noise of the level. In a sudden drop, a rate falls to
less than half of its level from one value to the next. docs/explanation/method.md contains each rule and its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tkperf.analysis.timeline.series import (
    FittedChange,
    Noise,
    Series,
    fit_change,
    measure_change_to_end,
    measure_noise,
    median,
    reduce_to_medians,
    running_median,
    spread,
)
from tkperf.model.measurement import FloatArray

LEAST_FOR_LEVELS = 10
# A value that differs from the last level by a tenth does not belong to this level. The fitted change over the settled
# part must also not exceed a tenth, which is the limit of the PTS for a slope.
BAND = 0.10
MOST_CHANGE = 0.10
# The first number is the share of the series, at its end, that must be flat. The second number is the largest change of
# a fitted line over this part. If the rate changes faster, it would change by another 10 % in less time than the whole
# stream took.
LAST_PART = 0.25
MOST_CHANGE_AT_END = 0.03
# The values of a level before the last level ("held level") stay within this share of their median. The fitted change
# over these values must not exceed the limit for a flat end, unless a clearly different level follows. A slow decline
# could also stay within the band, but its fitted change is up to twice this share.
HELD_BAND = 0.05
# A level must end abruptly. The distance between the level and the following values must be at least this multiple of
# the fitted change over the level. In a decline at constant speed, the multiple is only 1.25.
LEAST_ABRUPT = 3.0
# If values differ from a level by this share, they belong to another level. The share exceeds the largest allowed
# distance between a value and its own level.
OTHER_LEVEL = 0.12
# The rate is not at a level if the range that contains eight of ten values is wider than this share of the median. A
# rate that varies like a sine wave with an amplitude of 15 % has a level. A rate that varies like a sine wave or a
# square wave with an amplitude of 20 % has no level.
MOST_SWING = 1 / 3
# If the noise has no memory, the range may be wider, because the mean of a few such values is always near the level.
# Noise has no memory if neighbouring values hardly correlate and the mean is near the median.
MOST_SWING_OF_NOISE = 1.0
MOST_CORRELATION_OF_NOISE = 0.5
MOST_SKEW_OF_NOISE = 0.1
# The percentiles that describe a rate that varies. Eight of ten values lie between these two percentiles.
SWING_PERCENTILES = (10.0, 90.0)
# The last part is too short for a decision if two conditions are met: the part has fewer values than the first number,
# and the change over the part exceeds both the limit for a flat end and the change that noise explains. This noise is
# estimated from the differences between neighbouring values. The second number is the greatest change that this noise
# explains, in standard deviations.
LEAST_FOR_NOISE = 30
SHORT_SIGMAS = 3.0
# The greatest deviations that noise alone causes in the last level and in an earlier level. The unit is the standard
# deviation.
LEVEL_NOISE_SIGMAS = 5.0
HELD_NOISE_SIGMAS = 3.0
# The greatest share of the values of a level that may lie outside the band around the level. In addition, the rate must
# never stay outside the band for longer than a small part of the level.
MOST_OUTSIDE = 0.05
SHORTEST_PHASE = 3
# The smallest number of values of a second level. A few values between two levels would otherwise look like a level.
LEAST_FOR_SECOND = 10
# If at least this number of values outside the band precede a level, these values form a separate part. If there are
# fewer such values, they count as an irregular start of the level.
LEAST_APART = 5
# The greatest share of the values at the end of a level that may already be changing to the next level. These values
# are not judged.
ON_ITS_WAY_OUT = 0.2
# The search for a level begins with guesses of its length, and the first guess is the shortest length. The greatest
# guess is the first number times the length of the longest level found so far. If this level has fewer values than the
# second number, the second number is used as its length.
MOST_TIMES_LONGER, LEAST_TRIED = 8, 64
# The search extends a guess step by step. GROWTH is the largest factor by which one step extends the guess. MOST_STEPS
# is the largest number of steps. In practice, the search needs only a few steps to find a level.
GROWTH = 4
MOST_STEPS = 20
# A series with more values than this limit is divided into equal parts, and each part is reduced to its median. The
# number of parts does not exceed this limit. The boundary of the last level is then known with an error of no more than
# the length of one part.
MOST_FOR_LEVELS = 3000


class LevelKind(StrEnum):
    FRESH = "fresh out of box"
    FIRST = "first level"
    SECOND = "second level"
    TRANSITION = "transition"
    STEADY = "steady"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLevel:
    """A phase of a series, from the start of its first value to the end of its last value.

    Attributes:
        value: median of the values of the phase. The median of a transition has little meaning.
        end_bytes: bytes read and written from the start of the series to the end of the phase, or None if not known.
    """

    kind: LevelKind
    start: float
    end: float
    value: float
    end_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """The spread of a rate that varies around a level and does not stay near the level.

    Attributes:
        low, high: limits between which eight of ten values lie.
    """

    low: float
    high: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The phases of a series.

    Attributes:
        settled: whether the series is flat at its end. If not, the last phase is a transition that has not ended, or a
            second level that began only recently.
        end_change_percent: fitted change over the last quarter, in percent of the median of this quarter. A negative
            value means that the rate falls.
        end_noise_percent: change over the last quarter that noise alone can explain, in percent of the same median.
        swing: the spread of the rate if the rate neither rises nor falls at the end, but varies too much to be at a
            level. None means that there is no swing.
        is_too_short: whether the last quarter has too few values to decide whether the rate is flat.
    """

    phases: tuple[RateLevel, ...]
    settled: bool
    end_change_percent: float | None = None
    end_noise_percent: float | None = None
    swing: Swing | None = None
    is_too_short: bool = False


def find_levels(series: Series, *, as_new: bool = False) -> Levels | None:
    """Return the phases of a rate, or None if the series has fewer than ten values.

    Args:
        series: the series of a rate, which may fall or rise to a last level.
        as_new: whether the series began on a purged device to which nothing was written. In this case, a first level
            above the last level is called fresh out of the box.
    """
    if len(series) < LEAST_FOR_LEVELS:
        return None
    part_length = -(-len(series) // MOST_FOR_LEVELS)
    end = _find_end(_reduced(series, part_length))
    begin = len(series) if end.begin is None else end.begin * part_length
    swing: Swing | None = None
    if end.begin is not None and not _is_at_level(series.values[begin:]):
        swing = _find_swing(series.values[begin:])
        end, begin = replace(end, begin=None), len(series)
    near = max(SHORTEST_PHASE, 2 * part_length)
    first_end, second_end = _find_held_levels(series, begin + near, end)
    if end.begin is not None:
        before = max(first_end, second_end)
        if begin - before < near:
            begin = before
        elif first_end == 0 and end.is_level_throughout:
            begin = 0
    phases = (
        _phase(LevelKind.FIRST, series, 0, first_end),
        _phase(LevelKind.SECOND, series, first_end, second_end),
        _phase(LevelKind.TRANSITION, series, max(first_end, second_end), begin),
        _phase(LevelKind.STEADY, series, begin, len(series)),
    )
    present = [phase for phase in phases if phase is not None]
    last = median(series.values[first_end:]) if second_end == len(series) else end.value
    if as_new and present[0].kind is LevelKind.FIRST and present[0].value > last:
        present[0] = replace(present[0], kind=LevelKind.FRESH)
    return Levels(
        phases=tuple(present),
        settled=end.begin is not None,
        end_change_percent=100 * end.change.amount / abs(end.value) if end.value else None,
        end_noise_percent=100 * end.change.by_chance / abs(end.value) if end.value else None,
        swing=swing,
        is_too_short=end.is_too_short,
    )


def _is_at_level(values: FloatArray) -> bool:
    """Return whether the values stay near their median, or vary around the median like noise without memory. In such
    noise, neighbouring values hardly correlate.
    """
    low, high = np.percentile(values, SWING_PERCENTILES)
    level = median(values)
    swing = float(high - low)
    if swing <= MOST_SWING * abs(level):
        return True
    apart = values - values.mean()
    correlation = float(apart[1:] @ apart[:-1]) / float(apart @ apart)
    return (
        swing <= MOST_SWING_OF_NOISE * abs(level)
        and abs(correlation) <= MOST_CORRELATION_OF_NOISE
        and abs(float(values.mean()) - level) <= MOST_SKEW_OF_NOISE * abs(level)
    )


def _find_swing(values: FloatArray) -> Swing:
    low, high = np.percentile(values, SWING_PERCENTILES)
    return Swing(low=float(low), high=float(high), mean=float(values.mean()))


def _ends_in_another_level(series: Series, first_end: int) -> bool:
    """Return whether a second level follows the first level and lasts until the end of the series."""
    values = series.values
    first, noise = median(values[:first_end]), _measure_local_noise(values)
    return any(
        len(series) - start >= LEAST_FOR_SECOND
        and _is_apart(values[start:], first, noise)
        and _find_held(series, start) == len(series)
        for start in range(first_end, min(first_end + SHORTEST_PHASE, len(series)))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a series.

    Attributes:
        value: median of the last quarter.
        noise: noise of the last quarter.
        change: fitted change over the last quarter.
        begin: first index of the part at the last level, or None if the series is not settled.
        is_level_throughout: whether no other level precedes the part at the last level, and a line fitted through the
            whole series neither rises nor falls.
        is_too_short: whether the last quarter has too few values to decide whether the last quarter is flat.
    """

    value: float
    noise: Noise
    change: FittedChange
    begin: int | None
    is_level_throughout: bool
    is_too_short: bool


def _find_end(series: Series) -> _End:
    values, count = series.values, len(series)
    window = 5 if count >= 40 else 3
    smooth = running_median(values, window)
    tail = _find_last_part(series)
    last = median(smooth[tail:])
    noise = measure_noise(values[min(tail, count - LEAST_FOR_LEVELS) :])
    band = max(BAND * abs(last), LEVEL_NOISE_SIGMAS * noise.of_median(window))
    outside = np.abs(smooth - last) > band
    begin: int | None = count - _count_inside(outside[::-1], max(2, count // 100))
    change = measure_change_to_end(series, tail)
    if begin is None or begin > tail or not change.is_within(MOST_CHANGE_AT_END * abs(last)):
        begin = None
    else:
        begin = _find_flat(series, begin, tail, MOST_CHANGE * abs(last))
    is_too_short = begin is not None and _is_too_short(series, tail, change, abs(last))
    if is_too_short:
        begin = None
    throughout = begin is not None and (
        not _is_apart(values[:begin], last, noise)
        and measure_change_to_end(series, 0).is_within(MOST_CHANGE * abs(last))
    )
    return _End(
        value=last, noise=noise, change=change, begin=begin, is_level_throughout=throughout, is_too_short=is_too_short
    )


def _is_too_short(series: Series, tail: int, change: FittedChange, level: float) -> bool:
    """Return whether the last part seems flat only because the noise of too few values is overestimated.

    For few values, the function that estimates noise returns the upper end of the plausible range. Such noise explains
    nearly any change. The differences between neighbouring values give a lower estimate, which a steady change hardly
    increases.
    """
    count = len(series) - tail
    if count >= LEAST_FOR_NOISE:
        return False
    noise = spread(np.diff(series.values)) / 2**0.5
    by_chance = SHORT_SIGMAS * noise * float(np.sqrt(12 / count))
    return abs(change.amount) > max(MOST_CHANGE_AT_END * level, by_chance)


def _find_last_part(series: Series) -> int:
    """Return the index at which the last quarter of the time begins. If this quarter has fewer than five values, return
    the index of the fifth value from the end.
    """
    place = series.place
    quarter = place[-1] - LAST_PART * (place[-1] - place[0])
    return max(0, min(int(np.searchsorted(place, quarter)), len(series) - 5))


def _find_flat(series: Series, begin: int, tail: int, limit: float) -> int | None:
    """Return the first index between ``begin`` and ``tail`` from which the series is flat until its end. None means
    that there is no such index.

    For the part that starts at ``begin``, a change that noise explains does not count. A shorter part must be flat
    without this allowance, because noise could explain any change of a few values.
    """
    if measure_change_to_end(series, begin).is_within(limit):
        return begin
    while begin < tail:
        begin = min(tail, begin + max(1, (len(series) - begin) // 10))
        change = measure_change_to_end(series, begin)
        if max(abs(change.amount), change.by_chance) <= limit:
            return begin
    return None


def _reduced(series: Series, part_length: int) -> Series:
    """Return the series reduced to medians. Each median is that of a part with ``part_length`` values. If
    ``part_length`` is 1, return the series itself.
    """
    if part_length == 1:
        return series
    firsts = np.arange(0, len(series), part_length)
    lasts = np.minimum(firsts + part_length, len(series)) - 1
    _, medians = reduce_to_medians(series.place, series.values, part_length)
    return Series(
        place=series.place[firsts],
        width=series.place[lasts] + series.width[lasts] - series.place[firsts],
        values=medians,
    )


def _count_inside(outside: NDArray[np.bool_], longest: int) -> int:
    """Return the number of values before the series leaves the band around a level too often, or for more than
    ``longest`` values. ``outside`` contains, for each value, whether the value lies outside the band.
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], outside, [False])).astype(np.int8)))
    starts, ends = edges[0::2], edges[1::2]
    count = outside.size
    if (left := starts[ends - starts > longest]).size:
        count = int(left[0])
    allowed = MOST_OUTSIDE * np.arange(1, outside.size + 1) + longest
    if (often := np.flatnonzero(np.cumsum(outside) > allowed)).size:
        count = min(count, int(often[0]))
    inside = np.flatnonzero(~outside[:count])
    return int(inside[-1]) + 1 if inside.size else 0


def _find_held_levels(series: Series, latest: int, end: _End) -> tuple[int, int]:
    """Return the ends of the first and of the second level before the last level. The value 0 means that no such level
    exists.

    A level that ends after ``latest`` is the last level, or a part of the last level.
    """
    values = series.values
    first_end = _find_held(series, 0)
    may_end_late = end.begin is None and not end.is_too_short and first_end > 0
    if may_end_late and _ends_in_another_level(series, first_end):
        return first_end, len(series)
    if first_end > latest or not _is_apart(values[:first_end], end.value, end.noise):
        return 0, 0
    first = median(values[:first_end])
    # One of the next values may lie between the two levels.
    for start in range(first_end, min(first_end + SHORTEST_PHASE, len(series))):
        second_end = _find_held(series, start)
        second = values[start:second_end]
        another = second.size >= LEAST_FOR_SECOND and _is_apart(second, first, end.noise)
        if not another or second_end == len(series):
            continue
        is_last = second_end > latest or not _is_apart(second, end.value, end.noise)
        return first_end, 0 if end.begin is not None and is_last else second_end
    return first_end, 0


def _find_held(series: Series, start: int) -> int:
    """Return the end of the level that begins at the index ``start``. If no level begins at ``start``, return
    ``start``.

    The search begins with guesses of different lengths. Each guess is extended until the median no longer changes. The
    longest result counts, because a short piece of any decline looks flat. A short piece is also flat within its noise.
    Therefore a level that is flat only within its noise must end abruptly.
    """
    values = series.values[start:]
    smooth = running_median(values, 5)
    longest, seed = 0, SHORTEST_PHASE
    grown: dict[int, int] = {}
    while seed <= values.size and seed <= MOST_TIMES_LONGER * max(longest, LEAST_TRIED):
        longest = max(longest, _grow(values, smooth, seed, grown))
        seed *= 2
    if longest < SHORTEST_PHASE:
        return start
    inside = max(SHORTEST_PHASE, int(longest * (1 - ON_ITS_WAY_OUT)))
    change = abs(fit_change(series, start, start + inside))
    by_chance = HELD_NOISE_SIGMAS * _measure_local_noise(values[:longest]).of_change(inside)
    level = abs(median(values[:longest]))
    leap = _measure_leap(values, longest)
    if leap < LEAST_ABRUPT * change:
        return start
    if not _is_at_level(values[:longest]):
        return start
    is_flat = max(change, by_chance) <= MOST_CHANGE_AT_END * level
    is_abrupt = leap > OTHER_LEVEL * level and change <= max(by_chance, HELD_BAND * level)
    return start + longest if is_flat or is_abrupt else start


def _measure_leap(values: FloatArray, count: int) -> float:
    """Return the distance between two medians: that of the first values, and that of the same number of following
    values.

    If the level lasts until the end of the series, too few values follow, and the result is infinite.
    """
    following = values[count : 2 * count]
    if following.size < SHORTEST_PHASE:
        return float("inf")
    return abs(median(following) - median(values[:count]))


def _grow(values: FloatArray, smooth: FloatArray, count: int, grown: dict[int, int]) -> int:
    """Return the number of values that form a level. ``count`` is the first guess. ``grown`` stores the steps of
    earlier guesses, because most guesses result in the same level.
    """
    for _ in range(MOST_STEPS):
        if (known := grown.get(count)) is None:
            known = grown[count] = _count_at_level(values, smooth, count)
        if known in {0, count}:
            return known
        count = known
    return count


def _count_at_level(values: FloatArray, smooth: FloatArray, count: int) -> int:
    """Return the number of values that stay in the band around the median of the first ``count`` values. The result is
    0 if there are too few values.
    """
    level = median(values[:count])
    noise = _measure_local_noise(values[: max(count, LEAST_APART)])
    band = max(HELD_BAND * abs(level), HELD_NOISE_SIGMAS * noise.of_median(5))
    outside = np.abs(smooth[: GROWTH * max(count, LEAST_TRIED)] - level) > band
    if outside[:LEAST_APART].all():
        return 0
    inside = _count_inside(outside, max(2, count // 20))
    return 0 if inside < SHORTEST_PHASE else inside


def _measure_local_noise(values: FloatArray) -> Noise:
    """Return the noise that is estimated from the differences between neighbouring values. A change of level does not
    increase this estimate. For few values, the result is the upper end of the plausible range.
    """
    sigma = spread(np.diff(values)) / 2**0.5
    return Noise(sigma=sigma * (1 + 2 / max(1, values.size - 2)), correlation=0.0)


def _is_apart(values: FloatArray, level: float, noise: Noise) -> bool:
    """Return whether the values belong to a level other than ``level``."""
    if values.size < SHORTEST_PHASE:
        return False
    distance = abs(median(values) - level)
    by_chance = LEVEL_NOISE_SIGMAS * 2**0.5 * noise.of_median(min(values.size, 5))
    return distance > max(OTHER_LEVEL * abs(level), by_chance)


def _phase(kind: LevelKind, series: Series, first: int, end: int) -> RateLevel | None:
    if first >= end:
        return None
    return RateLevel(
        kind=kind,
        start=float(series.place[first]),
        end=float(series.place[end - 1] + series.width[end - 1]),
        value=median(series.values[first:end]),
    )


LEAST_FOR_DROPS = 10
# The level before a drop is the median of this number of values. The level after the drop is the median of the
# following values, up to the same number. The second number is the smallest number of values before a drop.
BEFORE, LEAST_BEFORE = 9, 5
# The level after a drop is less than half of the level before the drop. The search begins at a single value and needs a
# tolerance, because noise can raise a single value above this limit although the median is below the limit.
DEEP = 0.5
NEARLY_DEEP = 0.6
BACK = 0.75
NOISE_SIGMAS = 8.0
# Noise alone does not keep a rate low for this number of values. A drop with fewer values must fall nearly to zero and
# far beyond the noise. The fall must also be large in comparison with the highest rise, because noise with heavy tails
# deviates to both sides.
LASTING = 3
NEARLY_NOTHING = 0.1
STALL_SIGMAS = 25.0
DEEPER_THAN_RISES = 3.0
NEIGHBOURS_OF_DROP = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A drop of a rate from the level ``before`` to the level ``after``, from the place ``start`` to the place ``end``.

    Attributes:
        after: median of the nine values that follow the fall. If the drop is shorter, the median of all its values is
            used.
        least: the lowest of these values.
        recovered: whether three values in succession again reached three quarters of the level before the drop. If the
            rate did not recover, ``end`` is the end of the series.
    """

    start: float
    end: float
    before: float
    after: float
    least: float
    recovered: bool


def find_drops(series: Series) -> tuple[Drop, ...]:
    """Return all sudden drops of a rate, in order."""
    if len(series) < LEAST_FOR_DROPS:
        return ()
    values = series.values
    deviations = values - running_median(values, NEIGHBOURS_OF_DROP)
    sigma, highest_rise = spread(deviations), float(deviations.max())
    deep_for_stalls = max(STALL_SIGMAS * sigma, DEEPER_THAN_RISES * highest_rise)
    kept, levels = _levels_before(values)
    candidates = np.flatnonzero(_falls(values, kept, sigma))
    drops: list[Drop] = []
    index, back_since = 0, None
    while True:
        fall = None if back_since is None else _find_next_fall(values, back_since, sigma)
        if fall is None:
            place = int(np.searchsorted(candidates, index))
            if place == candidates.size:
                break
            fall = int(candidates[place]), float(levels[candidates[place]])
        index, before = fall
        end = _end_of(values, index, before)
        follow = values[index : min(end, index + BEFORE)]
        after, least = median(follow), float(follow.min())
        stalled = least <= NEARLY_NOTHING * before and before - least > deep_for_stalls
        lasting = end - index >= LASTING and after < DEEP * before
        if stalled or lasting:
            drops.append(_drop(series, index, end, before))
        # If the rate did not recover, later values are compared with the level after the drop.
        if end == values.size:
            index, back_since = index + BEFORE, None
        else:
            index, back_since = end + BEFORE, end
    return tuple(drops)


def _falls(values: FloatArray, kept: FloatArray, sigma: float) -> NDArray[np.bool_]:
    """Return for each value whether it is far below the lower quartile of the preceding values."""
    return (values < NEARLY_DEEP * kept) & (kept - values > NOISE_SIGMAS * sigma)


def _find_next_fall(values: FloatArray, back_since: int, sigma: float) -> tuple[int, float] | None:
    """Return the place of a fall that happens soon after a rate has recovered, and the level before this fall. None
    means that there is no such fall.

    Only the values since the recovery determine the level before the fall, even if there are few such values.
    Otherwise, the earlier drop would hide the next drop.
    """
    soon = values[back_since : back_since + BEFORE]
    if soon.size <= LASTING or soon.min() >= NEARLY_DEEP * soon.max():
        return None
    for place in range(back_since + LASTING, min(back_since + BEFORE, values.size)):
        kept, before = np.percentile(values[back_since:place], (25, 50))
        if _falls(values[place : place + 1], kept, sigma)[0]:
            return place, float(before)
    return None


def _levels_before(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, for each value, the lower quartile and the median of the preceding values. For the first values, the
    result is NaN, because too few values precede them.
    """
    levels = np.full((2, values.size), np.nan)
    for index in range(LEAST_BEFORE, min(BEFORE, values.size)):
        levels[:, index] = np.percentile(values[:index], (25, 50))
    if values.size > BEFORE:
        windows = np.lib.stride_tricks.sliding_window_view(values[:-1], BEFORE)
        levels[:, BEFORE:] = np.percentile(windows, (25, 50), axis=1)
    return levels[0], levels[1]


def _end_of(values: FloatArray, start: int, before: float) -> int:
    """Return the index at which the rate has recovered for three values. At the end of the series, fewer values are
    enough.
    """
    back = values[start:] >= BACK * before
    stays = back.copy()
    for later in range(1, LASTING):
        stays[:-later] &= back[later:]
    found = np.flatnonzero(stays)
    return start + int(found[0]) if found.size else values.size


def _drop(series: Series, start: int, end: int, before: float) -> Drop:
    follow = series.values[start : min(end, start + BEFORE)]
    return Drop(
        start=float(series.place[start]),
        end=float(series.place[end - 1] + series.width[end - 1]),
        before=before,
        after=median(follow),
        least=float(follow.min()),
        recovered=end < len(series),
    )
