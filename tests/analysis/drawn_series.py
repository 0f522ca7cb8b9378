"""Series with known changes over time. Their shape, rates, lengths and noise are drawn at random.

The developers did not use these series to choose the rules of tkperf. No series has parameters close to the limit of a
rule, because the right conclusion would then depend on the exact limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tests.analysis.further_series import make_noise
from tests.analysis.named_series import MIB, Course, NamedSeries, build_columns
from tests.builders import work
from tkperf.analysis.timeline.levels import LevelKind
from tkperf.model.measurement import FloatArray, Seconds

_FRESH, _SECOND = LevelKind.FRESH, LevelKind.SECOND
_Drawn = tuple[FloatArray, Course]
_Random = np.random.Generator


def _log(random: _Random, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def _levels(*parts: tuple[int, float]) -> FloatArray:
    """Return a series of levels. Each part has a number of seconds and a rate."""
    return np.concatenate([np.full(seconds, rate) for seconds, rate in parts])


def _flat(random: _Random, rate: float) -> _Drawn:
    return _levels((int(_log(random, 600, 7000)), rate)), Course(settled=(rate, 0))


def _cache(random: _Random, rate: float) -> _Drawn:
    held, share = int(_log(random, 8, 2000)), random.uniform(0.05, 0.8)
    then = max(300, int(held * random.uniform(0.6, 4)))
    course = Course(levels=((_FRESH, rate, held),), settled=(rate * share, held))
    return _levels((held, rate), (then, rate * share)), course


def _three_levels(random: _Random, rate: float) -> _Drawn:
    first, second = int(_log(random, 10, 500)), int(_log(random, 30, 1500))
    share = random.uniform(0.2, 0.4) if random.random() < 0.5 else random.uniform(0.6, 0.75)
    last = share * random.uniform(0.2, 0.75)
    then = max(300, int((first + second) * random.uniform(0.7, 2)))
    course = Course(
        levels=((_FRESH, rate, first), (_SECOND, rate * share, first + second)),
        settled=(rate * last, first + second),
        drops=((first, rate * share),) if share < 0.5 else (),
    )
    return _levels((first, rate), (second, rate * share), (then, rate * last)), course


def _line(random: _Random, rate: float) -> _Drawn:
    """Return a line over the whole series. The line rises or falls by 1 to 7 %, or by 20 to 50 %."""
    seconds, sign = int(_log(random, 1200, 7000)), random.choice((-1, 1))
    if random.random() < 0.5:
        change = sign * random.uniform(0.01, 0.07)
        return np.linspace(rate, rate * (1 + change), seconds), Course(settled=(rate * (1 + change / 2), 0))
    return np.linspace(rate, rate * (1 + sign * random.uniform(0.2, 0.5)), seconds), Course()


def _late_drift(random: _Random, rate: float) -> _Drawn:
    """Return a rate that is constant until the last quarter. In the last quarter, the rate rises or falls linearly, by
    at most 1.5 % or by 7 to 20 %.
    """
    seconds, sign = int(_log(random, 2400, 7000)), random.choice((-1, 1))
    small = random.random() < 0.5
    change = sign * (random.uniform(0.002, 0.015) if small else random.uniform(0.07, 0.2))
    curve = np.concatenate(
        (np.full(seconds - seconds // 4, rate), np.linspace(rate, rate * (1 + change), seconds // 4))
    )
    return curve, Course(settled=(rate, 0)) if small else Course(end_shows_in_cut=bool(abs(change) > 0.1))


def _exponential(random: _Random, rate: float) -> _Drawn:
    share, tau = random.uniform(0.1, 0.7), _log(random, 60, 600)
    at = np.arange(int(tau * random.uniform(9, 14)))
    curve = rate * (share + (1 - share) * np.exp(-at / tau))
    return curve, Course(settled=(rate * share, tau * float(np.log((1 - share) / (0.1 * share)))))


def _drops(random: _Random, rate: float) -> _Drawn:
    curve, drops, at = np.full(int(_log(random, 1500, 6000)), rate), [], 0
    for _ in range(random.integers(1, 8)):
        at += int(random.uniform(70, 500))
        lasting, share = int(random.uniform(4, 40)), random.uniform(0.03, 0.4)
        if at + lasting > 0.85 * curve.size:
            break
        curve[at : at + lasting] = rate * share
        drops.append((float(at), rate * share))
        at += lasting
    return curve, Course(settled=(rate, 0), drops=tuple(drops))


def _cliff(random: _Random, rate: float) -> _Drawn:
    held, share = int(_log(random, 200, 2500)), random.uniform(0.15, 0.6)
    fall = int(random.uniform(0.05, 0.5) * held)
    then = max(300, int((held + fall) * random.uniform(0.8, 2)))
    curve = np.concatenate((np.full(held, rate), np.linspace(rate, rate * share, fall), np.full(then, rate * share)))
    return curve, Course(levels=((_FRESH, rate, held),), settled=(rate * share, held + fall))


def _waves(random: _Random, rate: float) -> _Drawn:
    period_s, share = random.uniform(20, 200), random.uniform(0.03, 0.09)
    at = np.arange(int(period_s * random.uniform(20, 35)))
    return rate * (1 + share * np.sin(2 * np.pi * at / period_s)), Course(settled=(rate, 0))


_SHAPES: tuple[Callable[[_Random, float], _Drawn], ...] = (
    _flat,
    _cache,
    _three_levels,
    _line,
    _late_drift,
    _exponential,
    _drops,
    _cliff,
    _waves,
)


def draw_series(number: int) -> NamedSeries:
    """Return the series that belongs to a number. The same number always produces the same series."""
    random = np.random.default_rng([41, number])
    shape = _SHAPES[number % len(_SHAPES)]
    curve, course = shape(random, _log(random, 100, 1e6))
    correlation = random.uniform(0.3, 0.9) if random.random() < 0.3 else 0.0
    share = _log(random, 0.002, 0.015 if correlation else 0.04)
    iops = curve * make_noise(curve.size, share, number, correlation)
    slowest_us = 2_000 * np.exp(random.uniform(0.05, 0.3) * random.normal(size=curve.size))
    if random.random() < 0.5:
        period_s = random.uniform(15, curve.size / 10)
        places = np.arange(random.uniform(0, period_s), curve.size, period_s).astype(int)
        slowest_us[places] *= random.uniform(4, 12)
        course = replace(course, period_s=period_s)
    return NamedSeries(
        name=f"{number}, {shape.__name__.lstrip('_').replace('_', ' ')}",
        source="drawn by chance",
        build=partial(_build, iops, slowest_us),
        course=course,
        workload=work(block_size_bytes=MIB),
        noise=share,
    )


def _build(iops: FloatArray, slowest_us: FloatArray) -> Seconds:
    return build_columns(iops, 32e6 / iops, slowest_us, MIB)
