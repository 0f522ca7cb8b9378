"""Series with known changes over time: simulated drives, and real drives as their reviewers describe them.

The seconds of a simulated drive are computed directly by its model, without an engine. The seconds of a real drive are
straight lines through the published figures, with added noise. The review of the drive contains the known conclusions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from math import hypot, isclose, sqrt

import numpy as np

from tests.builders import work
from tkperf.analysis.timeline.levels import BEFORE, Drop, LevelKind
from tkperf.analysis.timeline.timelines import SEARCHED, Recorded, find_timelines
from tkperf.engine.simulation.flash_drive import FlashDrive
from tkperf.engine.simulation.models import FlashModel, find_preset
from tkperf.model.measurement import FloatArray, Seconds
from tkperf.model.workload import Workload

MIB = 1 << 20
HOUR_S = 3600
REVIEW_NOISE, ADDED_NOISE = 0.02, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The known changes of a series over time.

    Attributes:
        levels: kind, value and end of each level, without the last level.
        settled: value and start of the last level, or None if the rate does not settle.
        drops: position of each sudden drop, and the level after the drop.
        period_s: period of the spikes of the maximum latency in seconds, or None if the spikes have no period.
        end_shows_in_cut: whether the behaviour at the end of the series can also be judged if the last tenth is
            missing.
    """

    levels: tuple[tuple[LevelKind, float, float], ...] = ()
    settled: tuple[float, float] | None = None
    drops: tuple[tuple[float, float], ...] = ()
    period_s: float | None = None
    end_shows_in_cut: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSeries:
    """A series with its source.

    Attributes:
        noise: standard deviation of the noise, as a share of the rate of a second; 0 if the series was made without
            noise.
    """

    name: str
    source: str
    build: Callable[[], Seconds]
    course: Course
    workload: Workload
    noise: float = 0.0
    long: bool = False
    """True if only bench/conclusions.py tests this series. The tests in this folder leave the series out, because its
    analysis would take too long.
    """


def build_columns(iops: FloatArray, mean_us: FloatArray, max_us: FloatArray, block_bytes: int) -> Seconds:
    return Seconds(
        start_s=np.arange(float(iops.size)),
        duration_s=np.ones(iops.size),
        iops=iops,
        megabytes_per_s=iops * block_bytes / 1e6,
        latency_mean_us=mean_us,
        latency_max_us=max_us,
    )


@cache
def of_preset(preset: str, hours: float | None = None) -> Seconds:
    """Return the seconds of random 4 KiB writes to a new simulated drive. The writes end after the given time, or after
    four times the capacity of the drive was written.
    """
    model = find_preset(preset)
    assert isinstance(model, FlashModel)
    random = np.random.default_rng(1)
    drive, load = FlashDrive(model, model.capacity_bytes, random), work(jobs=4, io_depth=32)
    iops: list[float] = []
    mean_us: list[float] = []
    stalls_us: list[float] = []
    left = 4.0 * model.capacity_bytes if hours is None else float("inf")
    while left > 0 and (hours is None or len(iops) < hours * HOUR_S):
        second = drive.serve(load, 1.0)
        left -= second.rate * 4096
        iops.append(second.rate)
        mean_us.append(second.write.mean_ns / 1e3)
        stalls_us.append(second.stall_s * 1e6)
    usual_us = 20_000 * np.exp(0.15 * random.normal(size=len(iops)))
    return build_columns(np.array(iops), np.array(mean_us), np.maximum(usual_us, stalls_us), 4096)


@cache
def of_amounts(*parts: tuple[float, float]) -> Seconds:
    """Return the seconds of a drive whose writes have several parts. Each part consists of a rate in MB/s and the total
    number of GB that have been written when the part ends.
    """
    random = np.random.default_rng(2)
    ends_s, written_gb, at_s = [], 0.0, 0.0
    for megabytes_per_s, until_gb in parts:
        at_s += 1000 * (until_gb - written_gb) / megabytes_per_s
        written_gb = until_gb
        ends_s.append(at_s)
    # Bytes that are written before the end of each second. A second in which the rate changes contains bytes at both
    # rates.
    seconds = np.arange(int(at_s) + 1)
    megabytes = np.interp(seconds, (0.0, *ends_s), (0.0, *(1000 * gb for _, gb in parts)))
    rate = np.diff(megabytes) * 1e6 / MIB
    iops = rate * (1 + REVIEW_NOISE * random.normal(size=rate.size))
    latency_us = 8e6 / iops
    return build_columns(iops, latency_us, 4 * latency_us * np.exp(0.2 * random.normal(size=rate.size)), MIB)


@cache
def of_s3700() -> Seconds:
    """Return 120 minutes of reads. The 7th minute and every 13th minute after that contain a slow I/O of 10 ms."""
    random = np.random.default_rng(3)
    iops = 20_000 * (1 + 0.01 * random.normal(size=120))
    slowest_us = 300 * np.exp(0.3 * random.normal(size=120))
    slowest_us[6::13] = 10_005
    return build_columns(iops, 1e6 / iops, slowest_us, 4096)


_FRESH, _SECOND = LevelKind.FRESH, LevelKind.SECOND
IOPS_OF_MB = 1e6 / MIB
"""The IOPS of 1 MiB writes at a rate of 1 MB/s."""
_MB = IOPS_OF_MB


def build_review(
    name: str, page: str, parts: Sequence[tuple[float, float]], course: Course, *, long: bool = False
) -> NamedSeries:
    """Return a series of a drive that is built from the figures in a published review. Each part consists of the rate
    in MB/s and the total number of GB that have been written when the part ends.
    """
    return NamedSeries(
        name=name,
        source=f"review of the drive, page on its write cache: {page}",
        build=lambda: of_amounts(*parts),
        course=course,
        workload=work(block_size_bytes=MIB),
        noise=REVIEW_NOISE,
        long=long,
    )


def _preset(preset: str, course: Course, hours: float | None = None, *, long: bool = False) -> NamedSeries:
    lasting = "" if hours is None else f", {hours:g} h"
    return NamedSeries(
        name=preset + lasting,
        source=f"model of sim:{preset}: the course follows from its numbers",
        build=lambda: of_preset(preset, hours),
        course=course,
        workload=work(),
        long=long,
    )


SERIES = (
    # The rate falls by 7 % in the last quarter. The fresh level lasts until the capacity and the spare area have been
    # written once.
    _preset("sata-ssd", Course(levels=((_FRESH, 94_000, 830),))),
    _preset("sata-ssd", Course(levels=((_FRESH, 94_000, 830),), settled=(47_700, 2900)), 10, long=True),
    _preset("nvme-4kn", Course(levels=((_FRESH, 569_000, 528),))),
    _preset("nvme-4kn", Course(levels=((_FRESH, 569_000, 528),), settled=(210_000, 2440)), 3, long=True),
    # The cache is full after 44 s. From then on, the drive writes directly to the flash behind the cache. After a
    # quarter of an hour, all flash has been written once.
    _preset("client-tlc", Course(levels=((_FRESH, 588_000, 44), (_SECOND, 284_000, 900)), drops=((44, 284_000),))),
    _preset("client-qlc", Course(levels=((_FRESH, 340_000, 134), (_SECOND, 44_400, 5190)), drops=((134, 44_400),))),
    # For six minutes, the rate falls to a third of its value. This happens first after 39 minutes and then every 45
    # minutes.
    _preset("cliffs", Course(levels=((_FRESH, 94_000, 830),), drops=((2340, 18_200),))),
    _preset(
        "cliffs",
        Course(
            levels=((_FRESH, 94_000, 830),),
            settled=(47_500, 2900),
            drops=((2340, 18_200), *((2340 + 2700 * n, 15_750) for n in range(1, 10))),
        ),
        8,
        long=True,
    ),
    # Four stalls in an hour are too few to determine a period.
    _preset("spikes-13min", Course(levels=((_FRESH, 94_000, 830),))),
    _preset("spikes-13min", Course(levels=((_FRESH, 94_000, 830),), settled=(47_700, 2900), period_s=780), 3),
    _preset("unsteady", Course()),
    # Each time the whole capacity has been written, the rate has fallen by another 30 %. The fall begins in the first
    # second.
    _preset("dying", Course()),
    build_review(
        "ADATA XPG Atom 50, 1 TB",
        "techpowerup.com/review/adata-xpg-atom-50-1-tb/6.html",
        ((4500, 280), (2000, 500), (500, 1000)),
        Course(
            levels=((_FRESH, 4500 * _MB, 62), (_SECOND, 2000 * _MB, 172)),
            settled=(500 * _MB, 172),
            drops=((63, 2000 * _MB),),
        ),
    ),
    # The duration of the second level was computed from the mean rate of the whole fill, 1,514 MB/s.
    build_review(
        "Lexar NM800 Pro, 2 TB",
        "techpowerup.com/review/lexar-nm800-pro-heatsink-2-tb/6.html",
        ((3500, 592), (2200, 1061), (1000, 2000)),
        Course(levels=((_FRESH, 3500 * _MB, 169), (_SECOND, 2200 * _MB, 382)), settled=(1000 * _MB, 382)),
    ),
    build_review(
        "MSI Spatium M480 Play, 2 TB",
        "techpowerup.com/review/msi-spatium-m480-play-2-tb/6.html",
        ((5000, 200), (3500, 1600), (1500, 2000)),
        Course(levels=((_FRESH, 5000 * _MB, 40), (_SECOND, 3500 * _MB, 440)), settled=(1500 * _MB, 440)),
    ),
    # The mean rate of the whole fill is 416 MB/s.
    build_review(
        "Samsung 870 EVO, 4 TB",
        "techpowerup.com/review/samsung-870-evo-4-tb/6.html",
        ((480, 24), (416, 4000)),
        Course(levels=((_FRESH, 480 * _MB, 50),), settled=(416 * _MB, 50)),
    ),
    build_review(
        "Neo Forza NFP075, 1 TB",
        "techpowerup.com/review/neo-forza-esports-nfp075-1-tb/6.html",
        ((3000, 24), (1000, 1000)),
        Course(levels=((_FRESH, 3000 * _MB, 8),), settled=(1000 * _MB, 8)),
    ),
    build_review(
        "HP FX700, 2 TB",
        "techpowerup.com/review/hp-fx700-2-tb/6.html",
        ((5000, 54), (3500, 460), (130, 2000)),
        Course(levels=((_FRESH, 5000 * _MB, 11), (_SECOND, 3500 * _MB, 127)), settled=(130 * _MB, 127)),
    ),
    NamedSeries(
        name="Intel DC S3700, reads in 120 rounds",
        source="Myce, Intel DC S3700 Review: slow I/Os of 10,005 us in the 7th and in every 13th round after it",
        build=of_s3700,
        course=Course(settled=(20_000, 0), period_s=13),
        workload=work(read_percent=100),
    ),
)


WITHIN_VALUE, WITHIN_PLACE, WITHIN_START = 0.03, 0.10, 0.15
"""Shares by which values may differ from the known values. One share is for the value of a level, including a level
after a drop. The others are for the end of a level and for the start of the last level.
"""


def multiply_by_noise(series: Seconds, seed: int) -> Seconds:
    """Return the series with each second multiplied by white noise with a standard deviation of 1 %."""
    random = np.random.default_rng(seed)

    def noisy(values: FloatArray) -> FloatArray:
        return np.asarray(values * (1 + ADDED_NOISE * random.normal(size=values.size)))

    return replace(
        series,
        iops=noisy(series.iops),
        latency_mean_us=noisy(series.latency_mean_us),
        latency_max_us=noisy(series.latency_max_us),
    )


def cut_off_last_tenth(series: Seconds) -> Seconds:
    kept = len(series) * 9 // 10
    columns = (each.name for each in fields(Seconds) if each.name != "parts")
    return replace(series, **{name: getattr(series, name)[:kept] for name in columns})


def within_drop(named: NamedSeries, drop: Drop) -> float:
    """Return the share by which the level after a drop may differ from the known level. The share is four standard
    deviations of the median, because the level is the median of only a few seconds. It is never smaller than the share
    for other levels.
    """
    count = min(BEFORE, drop.end - drop.start)
    return max(WITHIN_VALUE, 4 * 1.25 * hypot(named.noise, ADDED_NOISE) / sqrt(count))


def find_differences(named: NamedSeries, series: Seconds, *, cut: bool = False) -> list[str]:
    """Return the conclusions of tkperf that differ from the known ones. Only times within the series count. The list is
    empty if no conclusion differs.
    """
    course, end_s = named.course, series.end_s
    judges_end = course.end_shows_in_cut or not cut
    found = {
        timeline.quantity: timeline
        for timeline in find_timelines(
            named.workload,
            Recorded.SECONDS,
            series.start_s,
            series.duration_s,
            {key: getattr(series, key) for key in SEARCHED},
            as_new=True,
        )
    }
    rate, slowest = found["iops"], found["latency_max_us"]
    wrong = []
    held = [one for one in rate.levels if one.kind in (LevelKind.FRESH, LevelKind.SECOND, LevelKind.FIRST)]
    if [one.kind for one in held] != [kind for kind, _, _ in course.levels]:
        wrong.append(f"levels: {[str(one.kind) for one in held]}")
    for one, (kind, value, place_s) in zip(held, course.levels, strict=False):
        if not isclose(one.value, value, rel_tol=WITHIN_VALUE):
            wrong.append(f"{kind}: {one.value:.0f} for {value:.0f}")
        if not isclose(one.end, place_s, rel_tol=WITHIN_PLACE, abs_tol=2):
            wrong.append(f"{kind}: until {one.end:.0f} s for {place_s:.0f} s")
    last = rate.levels[-1]
    if judges_end and rate.settled is not (course.settled is not None):
        wrong.append(f"settled: {rate.settled}, {rate.end_change_percent} % in the last quarter")
    elif judges_end and course.settled is not None:
        value, place_s = course.settled
        if not isclose(last.value, value, rel_tol=WITHIN_VALUE):
            wrong.append(f"settled at {last.value:.0f} for {value:.0f}")
        if not isclose(last.start, place_s, rel_tol=WITHIN_START, abs_tol=2):
            wrong.append(f"settled from {last.start:.0f} s for {place_s:.0f} s")
    drops = [(place_s, after) for place_s, after in course.drops if place_s < end_s]
    if len(rate.drops) != len(drops):
        wrong.append(f"drops: {len(rate.drops)} for {len(drops)}")
    for drop, (place_s, after) in zip(rate.drops, drops, strict=False):
        if abs(drop.start - place_s) > 2 or not isclose(drop.after, after, rel_tol=within_drop(named, drop)):
            wrong.append(f"drop at {drop.start:.0f} s to {drop.after:.0f} for {after:.0f}")
    period_s = 0.0 if slowest.spikes is None else slowest.spikes.period
    if not isclose(period_s, course.period_s or 0.0, rel_tol=0.01):
        wrong.append(f"period {period_s:.1f} s for {course.period_s}")
    return wrong
