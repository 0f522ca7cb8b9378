"""More series with known changes over time. Their shapes, rates, lengths and noise do not occur on simulated drives.

The developers wrote down the known answers before tkperf judged these series for the first time. Series of real drives
use the figures of a review. The other series have shapes that drives and RAID sets show: waves of garbage collection,
throttling, a rebuild, a write cliff, slow drifts, hard disks, and noise whose seconds are correlated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from tests.analysis.named_series import IOPS_OF_MB, MIB, Course, NamedSeries, build_columns, build_review
from tests.builders import work
from tkperf.analysis.timeline.levels import LevelKind
from tkperf.model.measurement import FloatArray, Seconds

_FRESH, _FIRST, _SECOND = LevelKind.FRESH, LevelKind.FIRST, LevelKind.SECOND
_MB = IOPS_OF_MB

Curve = Callable[[], FloatArray]


def _lines(*pieces: tuple[int, float, float]) -> FloatArray:
    """Return the seconds of a series that consists of straight lines. Each line begins at one rate and reaches another
    rate at a given time.
    """
    parts, at_s = [], 0
    for until_s, begin, end in pieces:
        parts.append(np.linspace(begin, end, until_s - at_s))
        at_s = until_s
    return np.concatenate(parts)


def make_noise(count: int, share: float, seed: int, correlation: float = 0.0) -> FloatArray:
    """Return factors around 1 with this standard deviation. Neighbouring factors are correlated as in AR(1) noise."""
    random = np.random.default_rng(seed)
    strays = share * random.normal(size=count)
    if correlation:
        fresh = (1 - correlation**2) ** 0.5
        for index in range(1, count):
            strays[index] = correlation * strays[index - 1] + fresh * strays[index]
    return np.asarray(1 + strays)


@cache
def _of_curve(
    curve: Curve,
    seed: int,
    share: float = 0.02,
    correlation: float = 0.0,
    slow_at: tuple[float, ...] = (),
    slow_by: float = 8.0,
) -> Seconds:
    """Return the seconds of a curve with noise. In the seconds ``slow_at``, the slowest I/O takes ``slow_by`` times as
    long as in other seconds.
    """
    rate = curve()
    iops = rate * make_noise(rate.size, share, seed, correlation)
    random = np.random.default_rng(seed + 1000)
    slowest_us = 2_000 * np.exp(0.2 * random.normal(size=rate.size))
    slowest_us[[int(at) for at in slow_at]] *= slow_by
    return build_columns(iops, 32e6 / np.maximum(iops, 1.0), slowest_us, MIB)


def _shape(
    name: str,
    curve: Curve,
    course: Course,
    *,
    share: float = 0.02,
    correlation: float = 0.0,
    slow_at: tuple[float, ...] = (),
    slow_by: float = 8.0,
) -> NamedSeries:
    return NamedSeries(
        name=name,
        source="a shape that drives show",
        build=partial(_of_curve, curve, len(name), share, correlation, slow_at, slow_by),
        course=course,
        workload=work(block_size_bytes=MIB),
        noise=share,
    )


def _waves(share: float, period_s: float, level: float, seconds: int) -> FloatArray:
    return np.asarray(level * (1 + share * np.sin(2 * np.pi * np.arange(seconds) / period_s)))


def _saw_teeth() -> FloatArray:
    """Return a series that begins with a fresh level. After this level, garbage collection repeatedly makes the rate
    fall by 12 % within five minutes and then recover at once.
    """
    teeth = 80_000 * (1.06 - 0.12 * (np.arange(3300) % 300) / 300)
    return np.concatenate((np.full(300, 200_000.0), teeth))


def _throttled() -> FloatArray:
    """Return rates that alternate between 3,000 MB/s for 90 s and 900 MB/s for 30 s. The drive cools down at the lower
    rate.
    """
    hot = np.arange(1850) % 120 >= 90
    return np.where(hot, 900.0, 3000.0) * _MB


def _folding() -> FloatArray:
    """Return the rates of a QLC drive. After the cache is full, the drive folds data into QLC flash at 120 MB/s, and
    reaches 400 MB/s for 3 s in each minute.
    """
    burst = np.arange(1752) % 60 < 3
    return np.concatenate((np.full(48, 2800.0), np.where(burst, 400.0, 120.0))) * _MB


def _cliff_with_low() -> FloatArray:
    """Return a series that falls from 90,000 to 12,000 IOPS at a cliff and then slowly rises to 30,000 IOPS."""
    after = 30_000 - 18_000 * np.exp(-np.arange(6300) / 200)
    return np.concatenate((np.full(900, 90_000.0), after))


def _decay(seconds: int = 5000) -> FloatArray:
    return np.asarray(40_000 + 60_000 * np.exp(-np.arange(seconds) / 300))


def _power_law() -> FloatArray:
    return np.asarray(80_000 * (1 + np.arange(3600) / 60) ** -0.25)


def _stalled() -> FloatArray:
    """Return the rates of a hard disk that stops three times for 4 s."""
    rate = np.full(2400, 150.0 * _MB)
    for at in (400, 1111, 1930):
        rate[at : at + 4] = 0.5 * _MB
    return rate


def _shingled() -> FloatArray:
    """Return rates that fall from 130 MB/s at the outer edge to 70 MB/s at the inner edge. Every two minutes, the rate
    falls to 10 MB/s for 5 s.
    """
    rate = _lines((2000, 130 * _MB, 70 * _MB))
    for at in range(60, 2000, 120):
        rate[at : at + 5] = 10 * _MB
    return rate


def _small_cache() -> FloatArray:
    """Return rates of 500 MB/s for 8 s, and then alternately 150 MB/s for 15 s and 500 MB/s for 5 s."""
    full = (np.arange(1992) % 20) < 15
    return np.concatenate((np.full(8, 500.0), np.where(full, 150.0, 500.0))) * _MB


def _drift(percent: float) -> Curve:
    """Return a series of 50,000 IOPS. In the last quarter, the rate rises or falls linearly by the given percentage."""
    return partial(_lines, (2700, 50_000, 50_000), (3600, 50_000, 50_000 * (1 + percent / 100)))


# The rate changes in the last quarter of a series of one hour. The noise of neighbouring seconds is correlated.
_RED = 0.9
_REVIEWED = "techpowerup.com/review/"

FURTHER_SERIES = (
    # Series that imitate real drives.
    build_review(
        "Acer Predator GM7, 4 TB",
        _REVIEWED + "acer-predator-gm7-4-tb/6.html",
        ((5000, 615), (2000, 2600), (600, 4000)),
        Course(
            levels=((_FRESH, 5000 * _MB, 123), (_SECOND, 2000 * _MB, 1115)),
            settled=(600 * _MB, 1115),
            drops=((123, 2000 * _MB),),
        ),
        long=True,
    ),
    build_review(
        "Team Group MP44S, 1 TB",
        _REVIEWED + "team-group-mp44s-1-tb/6.html",
        ((4000, 231), (100, 1000)),
        Course(levels=((_FRESH, 4000 * _MB, 58),), settled=(100 * _MB, 58)),
        long=True,
    ),
    build_review(
        "Sabrent Rocket Q, 1 TB",
        _REVIEWED + "sabrent-rocket-q-1-tb-m-2-nvme-ssd/6.html",
        ((1700, 250), (150, 1000)),
        Course(levels=((_FRESH, 1700 * _MB, 147),), settled=(150 * _MB, 147)),
        long=True,
    ),
    build_review(
        "Kingston A2000, 1 TB",
        _REVIEWED + "kingston-a2000-1-tb-m-2-nvme-ssd/6.html",
        ((2000, 150), (500, 600), (400, 1000)),
        Course(
            levels=((_FRESH, 2000 * _MB, 75), (_SECOND, 500 * _MB, 975)),
            settled=(400 * _MB, 975),
            drops=((75, 500 * _MB),),
        ),
    ),
    # The first 16 GB are the slowest part. The rate after the cache is full, 1,750 MB/s, was measured by Guru3D.
    build_review(
        "Solidigm P44 Pro, 2 TB",
        _REVIEWED + "solidigm-p44-pro-2-tb-1-tb/6.html",
        ((1000, 16), (5000, 289), (1750, 2000)),
        Course(levels=((_FIRST, 1000 * _MB, 16), (_SECOND, 5000 * _MB, 71)), settled=(1750 * _MB, 71)),
    ),
    build_review(
        "Zadak Spark RGB, 1 TB",
        _REVIEWED + "zadak-spark-rgb-1-tb/6.html",
        ((2500, 14), (1000, 1000)),
        Course(levels=((_FRESH, 2500 * _MB, 6),), settled=(1000 * _MB, 6)),
    ),
    build_review(
        "Solidigm P41 Plus, 1 TB",
        "guru3d.com/review/solidigm-p41-plus-1tb-m-2-nvme-ssd-review/page-9/",
        ((3000, 120), (262, 1000)),
        Course(levels=((_FRESH, 3000 * _MB, 40),), settled=(262 * _MB, 40)),
    ),
    # The rate falls from 100 MB/s at the outer edge to 60 MB/s at the inner edge, in 20 zones. The test covers a tenth
    # of the disk.
    build_review(
        "WD My Passport, 4 TB",
        "anandtech.com/show/14539, page 3",
        tuple((100 - 40 * zone / 19, 20.0 * (zone + 1)) for zone in range(20)),
        Course(),
        long=True,
    ),
    _shape(
        "Seagate Backup Plus Slim, 2 TB (AnandTech, show/14539, page 3)",
        _shingled,
        Course(drops=tuple((at, 10 * _MB) for at in range(60, 2000, 120))),
    ),
    # The figures are taken from a review: 4 GB at 500 MB/s, and then 150 MB/s. The rate recovers after a few seconds
    # and quickly drops again.
    _shape(
        "Kingston HyperX Fury RGB, 480 GB (TechPowerUp)",
        _small_cache,
        Course(levels=((_FRESH, 500 * _MB, 8),), drops=tuple((8 + 20 * n, 150 * _MB) for n in range(100))),
    ),
    # Series with garbage collection.
    _shape("waves of 8 %", partial(_waves, 0.08, 70, 60_000, 3600), Course(settled=(60_000, 0)), share=0.01),
    _shape("waves of 15 %", partial(_waves, 0.15, 240, 60_000, 7200), Course(settled=(60_000, 0))),
    _shape("saw teeth of 12 %", _saw_teeth, Course(levels=((_FRESH, 200_000, 300),), settled=(80_000, 300))),
    # Hard disks have noise of 4 %. The inner edge of the tested range is 8 % slower than the outer edge. A quarter of
    # this loss, 2 %, occurs in the last quarter of the series.
    _shape("hard disk, random reads", partial(_lines, (1800, 180, 180)), Course(settled=(180, 0)), share=0.04),
    _shape("hard disk, 8 % slower at the end", partial(_lines, (5400, 200, 184)), Course(settled=(192, 0))),
    _shape(
        "hard disk with three stalls",
        _stalled,
        Course(settled=(150 * _MB, 0), drops=((400, 0.5 * _MB), (1111, 0.5 * _MB), (1930, 0.5 * _MB))),
    ),
    # Drifts in the last quarter. Without the last tenth of the series, less than two thirds of a drift remains.
    _shape("drift by -2 %", _drift(-2), Course(settled=(50_000, 0))),
    _shape("drift by -5 %", _drift(-5), Course(end_shows_in_cut=False)),
    _shape("drift by +5 %", _drift(5), Course(end_shows_in_cut=False)),
    _shape("drift by -10 %", _drift(-10), Course()),
    _shape("drift by -15 %", _drift(-15), Course()),
    _shape("drift by -7 % in red noise", _drift(-7), Course(end_shows_in_cut=False), share=0.015, correlation=_RED),
    _shape(
        "level in red noise",
        partial(_lines, (3600, 50_000, 50_000)),
        Course(settled=(50_000, 0)),
        share=0.02,
        correlation=0.98,
    ),
    _shape("rise by 20 % in all", partial(_lines, (3600, 50_000, 60_000)), Course()),
    # Series of RAID sets.
    _shape(
        "rebuild within the run",
        partial(_lines, (600, 40_000, 40_000), (2400, 18_000, 18_000), (4800, 40_000, 40_000)),
        Course(settled=(40_000, 2400), drops=((600, 18_000),)),
    ),
    _shape(
        "rebuild that ends",
        partial(_lines, (1500, 22_000, 22_000), (4000, 40_000, 40_000)),
        Course(levels=((_FIRST, 22_000, 1500),), settled=(40_000, 1500)),
    ),
    # Series with cliffs and declines.
    _shape(
        "write cliff of 100 s",
        partial(_lines, (5000, 75_000, 75_000), (5100, 75_000, 20_000), (12_000, 20_000, 20_000)),
        Course(levels=((_FRESH, 75_000, 5000),), settled=(20_000, 5100)),
    ),
    # After 358 s, the rate is within 10 % of the last level.
    _shape("write cliff with a low", _cliff_with_low, Course(levels=((_FRESH, 90_000, 900),), settled=(30_000, 1258))),
    # After 812 s, the rate is within 10 % of the last level.
    _shape("exponential decline", _decay, Course(settled=(40_000, 812))),
    # In the last quarter of the series, the rate falls by 7 %.
    _shape("decline by a power of time", _power_law, Course()),
    # Series with throttling.
    _shape("throttled in turn", _throttled, Course(drops=tuple((90 + 120 * n, 900 * _MB) for n in range(15)))),
    _shape(
        "throttled in steps",
        partial(_lines, (180, 3500 * _MB, 3500 * _MB), (580, 2800 * _MB, 2800 * _MB), (2000, 1800 * _MB, 1800 * _MB)),
        Course(levels=((_FRESH, 3500 * _MB, 180), (_SECOND, 2800 * _MB, 580)), settled=(1800 * _MB, 580)),
    ),
    # Series with caches.
    _shape("folding with bursts", _folding, Course(levels=((_FRESH, 2800 * _MB, 48),), settled=(120 * _MB, 48))),
    _shape(
        "cache of 12 s",
        partial(_lines, (12, 1900 * _MB, 1900 * _MB), (1500, 450 * _MB, 450 * _MB)),
        Course(levels=((_FRESH, 1900 * _MB, 12),), settled=(450 * _MB, 12)),
    ),
    # Series with spikes of the maximum latency.
    _shape(
        "spikes every 37 s",
        partial(_lines, (1200, 9000, 9000)),
        Course(settled=(9000, 0), period_s=37),
        correlation=0.8,
        slow_at=tuple(range(11, 1200, 37)),
    ),
    # In this series, two of the 24 spikes are missing.
    _shape(
        "spikes every 301.3 s",
        partial(_lines, (7200, 500, 500)),
        Course(settled=(500, 0), period_s=301.3),
        slow_at=tuple(100 + 301.3 * n for n in range(24) if n not in {7, 15}),
        slow_by=4.0,
    ),
    # In this series, each spike is up to a second early or late.
    _shape(
        "spikes every 97 s, not exactly",
        partial(_lines, (3600, 9000, 9000)),
        Course(settled=(9000, 0), period_s=97),
        slow_at=tuple(40 + 97 * n + (n * n) % 3 - 1 for n in range(36)),
    ),
    _shape(
        "spikes at random places",
        partial(_lines, (3600, 9000, 9000)),
        Course(settled=(9000, 0)),
        slow_at=tuple(sorted(np.random.default_rng(5).choice(3600, 60, replace=False).tolist())),
    ),
)
