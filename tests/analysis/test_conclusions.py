"""Conclusions do not depend on chance. They are correct for known series and for noisy copies of these series.

Each conclusion is tested on five copies. Each second of a copy is multiplied by white noise of 1 %. The same copies are
also tested without their last tenth. The conclusions on all copies must match the known changes over time.
``bench/conclusions.py`` tests 200 copies, of which 95 % must match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.analysis.further_series import FURTHER_SERIES
from tests.analysis.known_conclusions import CASES, Case, noise_of, quiet
from tests.analysis.named_series import SERIES, NamedSeries, cut_off_last_tenth, find_differences, multiply_by_noise
from tests.builders import work
from tkperf.analysis.over_seconds import find_backlog_noise_ios
from tkperf.analysis.timeline.levels import find_drops, find_levels
from tkperf.analysis.timeline.series import make_series
from tkperf.model.measurement import FloatArray, Seconds

COPIES = 5
KNOWN_SERIES = (*SERIES, *FURTHER_SERIES)


def require_alike(find: Callable[[int], list[str]]) -> None:
    """Require that tkperf finds the known conclusion in all copies."""
    assert [differences for seed in range(COPIES) if (differences := find(seed))] == []


@pytest.mark.parametrize("named", KNOWN_SERIES, ids=lambda named: named.name)
def test_the_course_of_a_known_series_is_found(named: NamedSeries) -> None:
    """tkperf finds the fresh level, the second level, the last level, the drops and the period of a known series. The
    value and the position of each of these changes agree with the known value and position.
    """
    series = named.build()
    assert find_differences(named, series) == []
    assert find_differences(named, cut_off_last_tenth(series), cut=True) == []


@pytest.mark.parametrize("named", [one for one in KNOWN_SERIES if not one.long], ids=lambda named: named.name)
def test_noise_does_not_change_the_course(named: NamedSeries) -> None:
    series = named.build()
    copies = [multiply_by_noise(series, seed) for seed in range(COPIES)]
    require_alike(lambda seed: find_differences(named, copies[seed]))
    require_alike(lambda seed: find_differences(named, cut_off_last_tenth(copies[seed]), cut=True))


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.conclusion}, {case.name}")
def test_noise_does_not_change_other_conclusions(case: Case, cut: bool) -> None:
    """tkperf also finds the known backlog, saturation, recovery, comparison, trend or outliers in noisy copies."""
    assert case.find_differences(quiet, cut=cut) == []
    require_alike(lambda seed: case.find_differences(noise_of(seed), cut=cut))


@pytest.mark.parametrize("seed", range(5))
def test_the_beginning_of_a_decline_is_not_a_level(seed: int) -> None:
    """The first values of a decline look flat but are not a level. They count as a level only if the rate then falls
    abruptly.
    """
    random = np.random.default_rng(seed)
    at = np.arange(3600.0)
    noise = 1 + 0.02 * random.normal(size=at.size)
    decline = find_levels(make_series(at, 80_000 * (1 + at / 60) ** -0.25 * noise), as_new=True)
    assert decline is not None
    assert [str(phase.kind) for phase in decline.phases] == ["transition"]
    abrupt = find_levels(make_series(at, np.where(at < 8, 80_000.0, 40_000.0) * noise), as_new=True)
    assert abrupt is not None
    assert [str(phase.kind) for phase in abrupt.phases] == ["fresh out of box", "steady"]


def test_a_decline_that_becomes_faster_is_not_a_level() -> None:
    """A level ends only with a change that is large compared with the slow change within the level."""

    def first_phase(percent_each_second: float) -> str:
        begin = 100 - percent_each_second * np.arange(20)
        fall = np.arange(begin[-1], 40, -0.7)
        rate = 1000 * np.concatenate((begin, fall, np.full(400, 40.0)))
        levels = find_levels(make_series(np.arange(float(rate.size)), rate), as_new=True)
        assert levels is not None
        return str(levels.phases[0].kind)

    assert first_phase(0.25) == "transition"
    assert first_phase(0.0) == "fresh out of box"


def test_a_drop_soon_after_a_recovery_is_found() -> None:
    """If a rate returns to its old level for 3 to 8 values and falls again, two drops are found. The first drop does
    not hide the second fall. If the rate stays at its old level, only one drop is found.
    """
    noise = 1 + 0.01 * np.random.default_rng(1).normal(size=300)
    for back in (3, 5, 8):
        rate = np.full(300, 500.0)
        starts = [20 + (15 + back) * n for n in range(10)]
        for start in starts:
            rate[start : start + 15] = 150.0
        assert [drop.start for drop in find_drops(make_series(np.arange(300.0), rate * noise))] == starts
    once = np.full(300, 500.0)
    once[20:35] = 150.0
    assert len(find_drops(make_series(np.arange(300.0), once * noise))) == 1


def test_a_slow_fall_is_not_noise_of_the_seconds() -> None:
    """The number of I/Os that are due but not complete at the end of a level varies because of noise. tkperf computes
    this noise from the differences between neighbouring seconds, so a slow wave adds little to the computed noise. If
    the seconds are independent, the noise of n seconds is √n times the standard deviation of a second.
    """
    load = replace(work(read_percent=100), offered_iops=1000.0)

    def noise_of_seconds(iops: FloatArray) -> float:
        seconds = Seconds(start_s=np.arange(float(iops.size)), duration_s=np.ones(iops.size), iops=iops)
        return find_backlog_noise_ios(load, seconds) or 0.0

    wave = 1000 + 100 * np.sin(2 * np.pi * np.arange(400.0) / 200)
    assert noise_of_seconds(wave) < 0.05 * 20 * float(wave.std())
    independent = 1000 + 10 * np.random.default_rng(1).normal(size=400)
    assert noise_of_seconds(independent) == pytest.approx(20 * 10, rel=0.15)
