"""Conclusions do not depend on chance: clear and right on known series, and the same on noisy copies of them.

Each conclusion is tried on twenty copies, each second of which is multiplied by white noise of 1 %, and on the same
copies without their last tenth. At least 95 % must say what is known. ``bench/conclusions.py`` tries 200 copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isclose

import numpy as np
import pytest

from tests.analysis.made_up import made_up_cell, made_up_run, made_up_section
from tests.analysis.named_series import (
    SERIES,
    NamedSeries,
    cut_off_last_tenth,
    find_differences,
    multiply_by_noise,
)
from tests.builders import work
from tkperf.analysis.characteristics import (
    AFTER_RECOVERY,
    NO_BACKLOG,
    RECOVERY,
    SATURATED,
    Characteristic,
)
from tkperf.analysis.comparing.arrangements import build_cohort
from tkperf.analysis.comparing.entries import Change, ComparedRow, Entry, against_first
from tkperf.analysis.courses import with_characteristics
from tkperf.analysis.over_seconds import find_backlog_noise_ios, find_median_backlog_ios
from tkperf.analysis.results import CellResult
from tkperf.analysis.uncertainty.means import uncertainty_of_mean
from tkperf.model.figures import FigureKind, drawn
from tkperf.model.quantity import IOPS
from tkperf.model.seconds import FloatArray, Seconds
from tkperf.model.workload import Workload

COPIES = 20
LEAST_ALIKE = 0.95
READS = work(read_percent=100, jobs=32, io_depth=1)
OTHER = work(block_size_bytes=8192)


def count_most_wrong(copies: int) -> int:
    return int(copies * (1 - LEAST_ALIKE) + 1e-9)


@pytest.mark.parametrize("named", SERIES, ids=lambda named: named.name)
def test_the_course_of_a_known_series_is_found(named: NamedSeries) -> None:
    """The fresh level, second level, last level, drops and period are found, each with its value
    and place.
    """
    series = named.build()
    assert find_differences(named, series) == []
    assert find_differences(named, cut_off_last_tenth(series)) == []


def check_series(named: NamedSeries, copies: int) -> None:
    """Require the known course of nearly all copies of a series."""
    series, whole, cut = named.build(), [], []
    for seed in range(copies):
        noisy = multiply_by_noise(series, seed)
        whole += [differences] if (differences := find_differences(named, noisy)) else []
        noisy = cut_off_last_tenth(noisy)
        cut += [differences] if (differences := find_differences(named, noisy)) else []
    assert len(whole) <= count_most_wrong(copies), whole
    assert len(cut) <= count_most_wrong(copies), cut


@pytest.mark.parametrize(
    "named", [one for one in SERIES if not one.long], ids=lambda named: named.name
)
def test_noise_does_not_change_the_course(named: NamedSeries) -> None:
    check_series(named, COPIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """A drive that is offered a rising rate.

    Attributes:
        able_iops: what it does in the long run; ``burst_iops`` within the first ``burst_s`` of a level.
        no_backlog, saturated: what is known; None: neither within the offered rates.
    """

    name: str
    able_iops: float
    burst_iops: float = 0.0
    burst_s: float = 0.0
    no_backlog: float | None
    saturated: float | None


DRIVES = (
    Drive(name="SATA", able_iops=93_900, no_backlog=93_000, saturated=93_900),
    # Myce, Intel DC S3700 Review: reads keep up to just over 75,000 IOPS, writes to just over 32,500.
    Drive(name="S3700 reads", able_iops=75_400, no_backlog=75_000, saturated=75_400),
    Drive(name="S3700 writes", able_iops=32_700, no_backlog=32_000, saturated=32_700),
    # A cache takes everything for most of a level: that is no rate that the drive keeps up with.
    Drive(
        name="cache", able_iops=40_700, burst_iops=120_000, burst_s=40, no_backlog=41_000,
        saturated=82_500,
    ),
    Drive(name="faster than what was offered", able_iops=300_000, no_backlog=None, saturated=None),
)  # fmt: skip
LEVEL_S = 51


def offer(drive: Drive, noise: Callable[[int], FloatArray]) -> list[CellResult]:
    """The levels of a drive at 1,000, 2,000 ... IOPS, each with its seconds multiplied by noise."""
    levels = []
    for offered_iops in np.arange(1000.0, 101_000, 1000):
        waiting, done = 0.0, np.zeros(LEVEL_S)
        for second in range(LEVEL_S):
            able = drive.burst_iops if second < drive.burst_s else drive.able_iops
            done[second] = min(waiting + offered_iops, able)
            waiting += offered_iops - done[second]
        done *= noise(LEVEL_S)
        load = replace(READS, offered_iops=float(offered_iops))
        seconds = Seconds(start_s=np.arange(float(LEVEL_S)), duration_s=np.ones(LEVEL_S), iops=done)
        cell = made_up_cell(float(done.mean()), load)
        undone = max(0.0, float(offered_iops * LEVEL_S - done.sum()))
        figures = {**cell.all, "ios": float(done.sum()), "backlog_ios": undone}
        levels.append(
            replace(
                cell,
                all=figures,
                backlog_median_ios=find_median_backlog_ios(load, seconds),
                backlog_noise_ios=find_backlog_noise_ios(load, seconds),
            )
        )
    return levels


def find_offered_differences(drive: Drive, noise: Callable[[int], FloatArray]) -> list[str]:
    """Return what is concluded otherwise on a rising offered rate."""
    section = made_up_section("Demand 100/0", {READS: [1.0]}, steady=None)
    section = replace(section, cells=tuple(offer(drive, noise)))
    test = made_up_run("run", {"demand": [section]}).tests[0]
    found = {one.key: one for one in with_characteristics(test).sections[0].characteristics}
    wrong = [
        f"{key}: {found[key].value} for {known}"
        for key, known in ((NO_BACKLOG.key, drive.no_backlog), (SATURATED.key, drive.saturated))
        if not is_alike(found[key].value, known, within=0.03)
    ]
    no_backlog, saturated = found[NO_BACKLOG.key].value, found[SATURATED.key].value
    if no_backlog is not None and saturated is not None and no_backlog > saturated:
        wrong.append(f"no backlog up to {no_backlog}, but saturated at {saturated}")
    return wrong


def is_alike(value: float | None, known: float | None, *, within: float) -> bool:
    if value is None or known is None:
        return value is known
    return isclose(value, known, rel_tol=within)


def quiet(count: int) -> FloatArray:
    return np.ones(count)


def noise_of(seed: int, seconds_each: int = 1) -> Callable[[int], FloatArray]:
    """White noise of 1 % of a second, for means of so many seconds each."""
    random = np.random.default_rng(seed)
    return lambda count: 1 + 0.01 / seconds_each**0.5 * random.normal(size=count)


@pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive.name)
def test_noise_does_not_change_backlog_and_saturation(drive: Drive) -> None:
    """Both figures stay within 3 %, because noise of 1 % hides a small difference to the next
    level.
    """
    assert find_offered_differences(drive, quiet) == []
    copies = [find_offered_differences(drive, noise_of(seed)) for seed in range(COPIES)]
    wrong = [copy for copy in copies if copy]
    assert len(wrong) <= count_most_wrong(COPIES), wrong


SLICE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A stream after another load: its slices in percent of the rate before, and the slice in which it recovers."""

    name: str
    percent: Sequence[float]
    slice: int | None
    spread_percent: float = 0.13
    """Standard deviation of the slices before the other load."""


RECOVERIES = (
    # sim:sata-ssd and sim:client-tlc in the cross stimulus recovery test.
    Recovery(
        name="SATA", slice=16,
        percent=(37.3, 37.5, 37.7, 38.4, 39.2, 40.3, 41.7, 43.8, 46.4, 49.8, 54.1, 58.2, 64.2, 72.5, 85.6, 99.3, *[100.0] * 40),
    ),
    Recovery(
        name="client", slice=9, spread_percent=0.5,
        percent=(25.7, 29.0, 33.3, 39.1, 45.7, 56.2, 60.0, 73.0, 96.1, 99.4, 103.9, *[100.0] * 40),
    ),
    Recovery(name="at once", slice=1, percent=(100.0,) * 30),
    Recovery(name="never", slice=None, percent=(60.0, 80.0, *[90.0] * 40)),
)  # fmt: skip


def find_recovery_differences(
    known: Recovery, noise: Callable[[int], FloatArray], kept: float = 1.0
) -> list[str]:
    spread = known.spread_percent / 100
    before = 500 * (1 + spread * np.random.default_rng(7).normal(size=120))
    after = 500 * np.array(known.percent[: int(len(known.percent) * kept)]) / 100
    streams = [
        made_up_section(name, {load: (values * noise(values.size)).tolist()}, stream=True, window=False)
        for name, load, values in (
            ("A", work(), before), ("B", OTHER, np.array([7.0, 7.0])), ("C", work(), after)
        )
    ]  # fmt: skip
    run = made_up_run("run", {"xsr": streams})
    test = replace(run.tests[0], figures=(drawn(FigureKind.SECTIONS, "iops"),))
    found: dict[str, Characteristic] = {
        one.key: one for one in with_characteristics(test).sections[2].characteristics
    }
    value = found[RECOVERY.key].value
    wrong = [] if value == known.slice else [f"recovery in slice {value} for {known.slice}"]
    if (known.slice is not None) is not (AFTER_RECOVERY.key in found):
        wrong.append("least after recovery")
    return wrong


@pytest.mark.parametrize("known", RECOVERIES, ids=lambda known: known.name)
def test_noise_does_not_change_the_recovery(known: Recovery) -> None:
    """Noisy copies recover in the same slice: the slice that first touches the old level does not
    decide.
    """
    for kept in (1.0, 0.9):
        assert find_recovery_differences(known, quiet, kept) == []
        copies = [
            find_recovery_differences(known, noise_of(seed, SLICE_S), kept)
            for seed in range(COPIES)
        ]
        wrong = [copy for copy in copies if copy]
        assert len(wrong) <= count_most_wrong(COPIES), wrong


ROUNDS, ROUND_S = 5, 60


def measure(level_iops: float, noise: Callable[[int], FloatArray]) -> Entry:
    """A figure over five rounds of a minute."""
    # Rounds of a drive differ by more than its seconds explain.
    own = 1 + 0.002 * np.array([0.4, -1.1, 0.9, -0.6, 0.4])
    rounds = [float((level_iops * step * noise(ROUND_S)).mean()) for step in own]
    mean = sum(rounds) / ROUNDS
    return Entry(value=mean, uncertainty=uncertainty_of_mean(mean, rounds, None, 1 / ROUND_S))


def row_of(entries: Sequence[Entry], load: Workload = READS) -> ComparedRow:
    return ComparedRow(
        test="iops", section="IOPS", workload=load, quantity=IOPS, entries=tuple(entries)
    )


@pytest.mark.parametrize(
    ("ratio", "change"),
    [
        (1.0, Change.WITHIN_NOISE),
        (1.03, Change.BETTER),
        (0.97, Change.WORSE),
        (0.3, Change.WORSE),
    ],
)
def test_noise_does_not_change_better_or_worse(ratio: float, change: Change) -> None:
    def judge(noise: Callable[[int], FloatArray]) -> Change | None:
        first, second = measure(27_000, noise), measure(27_000 * ratio, noise)
        return against_first(first, second, IOPS).change

    assert judge(quiet) is change
    wrong = [found for seed in range(COPIES) if (found := judge(noise_of(seed))) is not change]
    assert len(wrong) <= count_most_wrong(COPIES), wrong


@pytest.mark.parametrize(
    ("levels", "outliers"),
    [
        ([27_000.0] * 8, []),
        ([27_000.0] * 7 + [24_000.0], ["8"]),
        ([26_900.0, 27_100, 27_000, 26_950, 27_050, 31_000, 27_000, 20_000], ["8", "6"]),
        ([26_000.0, 26_500, 27_000, 27_500, 28_000], []),
    ],
)
def test_noise_does_not_change_the_outliers(levels: Sequence[float], outliers: list[str]) -> None:
    names = [str(number) for number in range(1, len(levels) + 1)]
    devices = [{"model": "M", "serial": name} for name in names]

    def judge(noise: Callable[[int], FloatArray]) -> list[str]:
        row = row_of([measure(level, noise) for level in levels])
        (figure,) = build_cohort(names, devices, [row]).figures
        return [one.name for one in figure.outliers]

    assert judge(quiet) == outliers
    wrong = [found for seed in range(COPIES) if (found := judge(noise_of(seed))) != outliers]
    assert len(wrong) <= count_most_wrong(COPIES), wrong
