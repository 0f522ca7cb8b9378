"""Conclusions that are known for generated seconds: backlog, saturation, recovery, better or worse, trends and
outliers.

Other modules contain the conclusions about changes over time in a single series. Each case computes its seconds,
multiplies each second by noise, and returns the conclusions of tkperf that differ from the known ones. A cut case lacks
the last tenth of its seconds or levels. A known conclusion of a cut case is judged only if it concerns a time or level
before the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Protocol

import numpy as np

from tests.analysis.made_up import made_up_cell, made_up_run, made_up_section
from tests.builders import work
from tkperf.analysis.characteristics import AFTER_RECOVERY, NO_BACKLOG, RECOVERY, SATURATED
from tkperf.analysis.characteristics_search import with_characteristics
from tkperf.analysis.comparing.arrangements import build_cohort, build_history
from tkperf.analysis.comparing.compared_rows import Change, ComparedRow, Entry, against_first
from tkperf.analysis.over_seconds import find_backlog_noise_ios, find_median_backlog_ios
from tkperf.analysis.results import CellResult
from tkperf.analysis.uncertainty.means import uncertainty_of_mean
from tkperf.model.figures import FigureKind, drawn
from tkperf.model.measurement import FloatArray, Seconds
from tkperf.model.quantity import IOPS, LATENCY_MEAN, Quantity

READS = work(read_percent=100, jobs=32, io_depth=1)
OTHER = work(block_size_bytes=8192)
KEPT = 0.9

Noise = Callable[[int], FloatArray]
"""A function that returns one noise factor for each second."""


def quiet(count: int) -> FloatArray:
    return np.ones(count)


def noise_of(seed: int) -> Noise:
    """Return white noise with a standard deviation of 1 %."""
    random = np.random.default_rng(seed)
    return lambda count: 1 + 0.01 * random.normal(size=count)


class Case(Protocol):
    """A case for which the right conclusion is known."""

    @property
    def conclusion(self) -> str: ...

    @property
    def name(self) -> str: ...

    def find_differences(self, noise: Noise, *, cut: bool = False) -> list[str]: ...


LEVEL_S = 51


def _able(iops: float) -> Callable[[float, int], float]:
    return lambda offered_iops, second: iops


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRate:
    """A drive at a rising offered rate.

    Attributes:
        able: a function that returns the IOPS that the drive can reach at an offered rate, for each second of the
            level.
        step_iops: the offered rates are this rate, twice this rate, and so on.
        no_backlog, saturated: the known rates in IOPS, or None if a rate is higher than all offered rates.
        saturates_in_cut: whether the rate at saturation can also be judged without the highest tenth of the levels.
    """

    name: str
    able: Callable[[float, int], float]
    no_backlog: float | None
    saturated: float | None
    step_iops: float = 1000.0
    levels: int = 100
    saturates_in_cut: bool = True
    conclusion: str = "no backlog, saturation"

    def find_differences(self, noise: Noise, *, cut: bool = False) -> list[str]:
        section = made_up_section("Demand 100/0", {READS: [1.0]}, steady=None)
        count = int(self.levels * KEPT) if cut else self.levels
        cells = [self._offer(self.step_iops * n, noise) for n in range(1, count + 1)]
        test = made_up_run("run", {"demand": [replace(section, cells=tuple(cells))]}).tests[0]
        found = {one.key: one.value for one in with_characteristics(test).sections[0].characteristics}
        no_backlog, saturated = found[NO_BACKLOG.key], found[SATURATED.key]
        wrong = []
        # Two levels above the limit are enough to show the limit.
        if not cut or (self.saturated or 0.0) < (count - 2) * self.step_iops:
            wrong += [
                f"{key}: {value} for {known}"
                for key, value, known in (
                    (NO_BACKLOG.key, no_backlog, self.no_backlog),
                    (SATURATED.key, saturated, self.saturated),
                )
                if not _is_alike(value, known) and (key == NO_BACKLOG.key or self.saturates_in_cut or not cut)
            ]
        if no_backlog is not None and saturated is not None and no_backlog > saturated:
            wrong.append(f"no backlog up to {no_backlog}, but saturated at {saturated}")
        return wrong

    def _offer(self, offered_iops: float, noise: Noise) -> CellResult:
        """Return a level at an offered rate. The number of completed I/Os in each second is multiplied by noise."""
        waiting, done = 0.0, np.zeros(LEVEL_S)
        for second in range(LEVEL_S):
            done[second] = min(waiting + offered_iops, self.able(offered_iops, second))
            waiting += offered_iops - done[second]
        done *= noise(LEVEL_S)
        load = replace(READS, offered_iops=float(offered_iops))
        seconds = Seconds(start_s=np.arange(float(LEVEL_S)), duration_s=np.ones(LEVEL_S), iops=done)
        cell = made_up_cell(float(done.mean()), load)
        undone = max(0.0, float(offered_iops * LEVEL_S - done.sum()))
        return replace(
            cell,
            all={**cell.all, "ios": float(done.sum()), "backlog_ios": undone},
            backlog_median_ios=find_median_backlog_ios(load, seconds),
            backlog_noise_ios=find_backlog_noise_ios(load, seconds),
        )


def _is_alike(value: float | None, known: float | None) -> bool:
    """Return whether a result agrees with the known value. Results within 3 % of the known value agree, because noise
    of 1 % can hide such a small difference.
    """
    if value is None or known is None:
        return value is known
    return isclose(value, known, rel_tol=0.03)


SLICE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A stream whose rate recovers after another load.

    Attributes:
        percent: rate of each slice, in percent of the rate before the other load.
        slice: the slice in which the stream recovers. None means that the stream does not recover.
        within: the largest permitted distance, in slices, between the slice that tkperf finds and ``slice``. It is
            above 0 if the rate hardly changes between slices.
        spread_percent: standard deviation of the slices before the other load.
    """

    name: str
    percent: Sequence[float]
    slice: int | None
    within: int = 0
    spread_percent: float = 0.13
    conclusion: str = "recovery"

    def find_differences(self, noise: Noise, *, cut: bool = False) -> list[str]:
        spread = self.spread_percent / 100
        before = 500 * (1 + spread * np.random.default_rng(7).normal(size=120))
        kept = int(len(self.percent) * KEPT) if cut else len(self.percent)
        after = 500 * np.array(self.percent[:kept]) / 100
        streams = [
            made_up_section(
                name, {load: [float(each * noise(SLICE_S).mean()) for each in values]}, stream=True, window=False
            )
            for name, load, values in (("A", work(), before), ("B", OTHER, np.array([7.0, 7.0])), ("C", work(), after))
        ]
        run = made_up_run("run", {"xsr": streams})
        test = replace(run.tests[0], figures=(drawn(FigureKind.SECTIONS, "iops"),))
        found = {one.key: one for one in with_characteristics(test).sections[2].characteristics}
        value = found[RECOVERY.key].value
        if value is None or self.slice is None:
            alike = value is self.slice
        else:
            alike = abs(value - self.slice) <= self.within
        wrong = [] if alike else [f"recovery in slice {value} for {self.slice}"]
        if (self.slice is not None) is not (AFTER_RECOVERY.key in found):
            wrong.append("least after recovery")
        return wrong


ROUNDS, ROUND_S = 5, 60
# The rounds of a drive differ by more than the noise of the seconds explains.
_OWN = (0.4, -1.1, 0.9, -0.6, 0.4)


def measure(level: float, noise: Noise, *, cut: bool = False, spread: float = 0.002) -> Entry:
    """Return a figure from five rounds of a minute each. ``spread`` scales the differences between the rounds."""
    seconds = np.concatenate([level * (1 + spread * own) * noise(ROUND_S) for own in _OWN])
    seconds = seconds[: int(seconds.size * KEPT)] if cut else seconds
    rounds = [float(seconds[at : at + ROUND_S].mean()) for at in range(0, seconds.size, ROUND_S)]
    mean = sum(rounds) / len(rounds)
    return Entry(value=mean, uncertainty=uncertainty_of_mean(mean, rounds, None, 1 / ROUND_S))


def _row(entries: Sequence[Entry], quantity: Quantity = IOPS) -> ComparedRow:
    return ComparedRow(test="iops", section="IOPS", workload=READS, quantity=quantity, entries=tuple(entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of two runs. ``ratio`` is the second figure divided by the first. ``spread`` scales the differences
    between the rounds of both runs.
    """

    ratio: float
    change: Change
    quantity: Quantity = IOPS
    spread: float = 0.002
    conclusion: str = "better or worse"

    @property
    def name(self) -> str:
        return f"{self.quantity.key} x {self.ratio:g}, rounds differ by {100 * self.spread:g} %"

    def find_differences(self, noise: Noise, *, cut: bool = False) -> list[str]:
        first = measure(27_000, noise, cut=cut, spread=self.spread)
        second = measure(27_000 * self.ratio, noise, cut=cut, spread=self.spread)
        change = against_first(first, second, self.quantity).change
        return [] if change is self.change else [f"{change} for {self.change}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Runs of one drive, one month apart."""

    name: str
    levels: Sequence[float]
    change: Change
    conclusion: str = "better or worse over time"

    def find_differences(self, noise: Noise, *, cut: bool = False) -> list[str]:
        names = [str(number) for number in range(len(self.levels))]
        entries = [measure(level, noise, cut=cut) for level in self.levels]
        days = [20_000.0 + 30 * number for number in range(len(names))]
        history = build_history(names, [{"model": "M", "serial": "S"}] * len(names), days, [_row(entries)])
        (figure,) = history.figures
        return [] if figure.change is self.change else [f"{figure.change} for {self.change}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drives:
    """Drives of one model. ``outliers`` contains the numbers of the outliers, counted from 1."""

    name: str
    levels: Sequence[float]
    outliers: tuple[int, ...] = ()
    conclusion: str = "outliers"

    def find_differences(self, noise: Noise, *, cut: bool = False) -> list[str]:
        names = [str(number) for number in range(1, len(self.levels) + 1)]
        devices = [{"model": "M", "serial": name} for name in names]
        row = _row([measure(level, noise, cut=cut) for level in self.levels])
        (figure,) = build_cohort(names, devices, [row]).figures
        found = {int(one.name) for one in figure.outliers}
        return [] if found == {*self.outliers} else [f"{sorted(found)} for {self.outliers}"]


def _cached(burst_iops: float, burst_s: int, able_iops: float) -> Callable[[float, int], float]:
    return lambda offered_iops, second: burst_iops if second < burst_s else able_iops


OFFERED_RATES = (
    OfferedRate(name="SATA", able=_able(93_900), no_backlog=93_000, saturated=93_900),
    # Source: Myce, Intel DC S3700 Review. The drive sustains just over 75,000 IOPS of reads and just over 32,500 IOPS
    # of writes.
    OfferedRate(name="S3700 reads", able=_able(75_400), no_backlog=75_000, saturated=75_400),
    OfferedRate(name="S3700 writes", able=_able(32_700), no_backlog=32_000, saturated=32_700),
    # A cache absorbs nearly all I/Os of one level, but the drive cannot sustain this rate for longer. At higher offered
    # rates, the drive completes more I/Os, so the drive is saturated at the levels from 88,000 IOPS on.
    OfferedRate(
        name="cache", able=_cached(120_000, 40, 40_700), no_backlog=41_000, saturated=82_500, saturates_in_cut=False
    ),
    OfferedRate(name="faster than what was offered", able=_able(300_000), no_backlog=None, saturated=None),
    # The developers wrote down the answers for the cases below before tkperf judged these cases for the first time.
    OfferedRate(name="hard disk", able=_able(182), no_backlog=180, saturated=182, step_iops=10, levels=25),
    # At one level, the drive stops for 3 s and then catches up.
    OfferedRate(
        name="one stall",
        able=lambda offered, second: 0.0 if offered == 30_000 and 10 <= second < 13 else 50_500,
        no_backlog=50_000,
        saturated=50_500,
    ),
    # The drive sustains 39,000 IOPS until it becomes hot.
    OfferedRate(
        name="throttled from 40,000 on",
        able=lambda offered, second: 60_000 if offered < 40_000 else 35_400,
        no_backlog=35_000,
        saturated=35_400,
    ),
    # The waves of garbage collection have an amplitude of 5 %. The drive sustains 47,500 IOPS at any time, and 50,000
    # IOPS on average.
    OfferedRate(
        name="waves",
        able=lambda offered, second: 50_000 * (1 + 0.05 * float(np.sin(2 * np.pi * second / 17))),
        no_backlog=48_750,
        saturated=50_000,
    ),
    OfferedRate(
        name="NVMe in steps of 25,000",
        able=_able(610_000),
        no_backlog=600_000,
        saturated=610_000,
        step_iops=25_000,
        levels=40,
    ),
)

RECOVERIES = (
    # The rates are those of sim:sata-ssd and sim:client-tlc in the cross stimulus recovery test.
    Recovery(
        name="SATA",
        slice=16,
        percent=(
            37.3,
            37.5,
            37.7,
            38.4,
            39.2,
            40.3,
            41.7,
            43.8,
            46.4,
            49.8,
            54.1,
            58.2,
            64.2,
            72.5,
            85.6,
            99.3,
            *[100.0] * 40,
        ),
    ),
    Recovery(
        name="client",
        slice=9,
        spread_percent=0.5,
        percent=(25.7, 29.0, 33.3, 39.1, 45.7, 56.2, 60.0, 73.0, 96.1, 99.4, 103.9, *[100.0] * 40),
    ),
    Recovery(name="at once", slice=1, percent=(100.0,) * 30),
    Recovery(name="never", slice=None, percent=(60.0, 80.0, *[90.0] * 40)),
    # The developers wrote down the answers for the cases below before tkperf judged these cases for the first time. In
    # the following case, the rate is within 5 % of the old rate after 25 slices. With each further slice, the rate is
    # about 0.5 % closer.
    Recovery(
        name="exponential",
        slice=25,
        within=1,
        spread_percent=1.0,
        percent=tuple(100 - 60 * float(np.exp(-n / 10)) for n in range(1, 91)),
    ),
    Recovery(name="after half an hour", slice=31, percent=(*[50.0] * 30, *[100.0] * 60)),
    Recovery(name="beyond the old rate", slice=3, percent=(60.0, 80.0, 112.0, 106.0, 102.0, *[100.0] * 30)),
    Recovery(name="in part", slice=None, percent=(40.0, 70.0, 85.0, *[92.5] * 60), spread_percent=0.5),
    Recovery(name="nearly", slice=4, percent=(40.0, 70.0, 85.0, *[97.0] * 60), spread_percent=0.5),
    Recovery(name="an unsteady rate", slice=6, percent=(30.0, 40, 50, 60, 70, *[100.0] * 50), spread_percent=4.0),
)

COMPARISONS = (
    Comparison(ratio=1.0, change=Change.WITHIN_NOISE),
    Comparison(ratio=1.03, change=Change.BETTER),
    Comparison(ratio=0.97, change=Change.WORSE),
    Comparison(ratio=0.3, change=Change.WORSE),
    # The developers wrote down the answers for the cases below before tkperf judged these cases for the first time.
    Comparison(ratio=1.02, change=Change.BETTER),
    Comparison(ratio=1.02, spread=0.03, change=Change.WITHIN_NOISE),
    Comparison(ratio=1.25, spread=0.03, change=Change.BETTER),
    Comparison(ratio=0.9, quantity=LATENCY_MEAN, change=Change.BETTER),
    Comparison(ratio=1.1, quantity=LATENCY_MEAN, change=Change.WORSE),
)

TRENDS = (
    Trend(name="1 % slower with each run", levels=[27_000 * 0.99**n for n in range(8)], change=Change.WORSE),
    Trend(name="2 % faster with each run", levels=[27_000 * 1.02**n for n in range(6)], change=Change.BETTER),
    Trend(name="up and down", levels=[27_000 + 300 * (-1) ** n for n in range(8)], change=Change.WITHIN_NOISE),
)

COHORTS = (
    Drives(name="eight alike", levels=[27_000.0] * 8),
    Drives(name="one slow of eight", levels=[27_000.0] * 7 + [24_000.0], outliers=(8,)),
    Drives(
        name="one slow and one fast of eight",
        levels=[26_900.0, 27_100, 27_000, 26_950, 27_050, 31_000, 27_000, 20_000],
        outliers=(6, 8),
    ),
    Drives(name="five that differ", levels=[26_000.0, 26_500, 27_000, 27_500, 28_000]),
    # The developers wrote down the answers for the cases below before tkperf judged these cases for the first time.
    Drives(name="six, one fast by 5 %", levels=[500.0, 502, 498, 501, 499, 525], outliers=(6,)),
    Drives(name="twelve that differ", levels=[180.0 + 3 * n for n in range(12)]),
    Drives(
        name="three of another kind among eight",
        levels=[27_000.0, 27_080, 26_920, 27_040, 26_960, 22_000, 22_050, 21_950],
        outliers=(6, 7, 8),
    ),
    Drives(name="24, one dying", levels=[90_000.0 + 700 * (n % 5) for n in range(23)] + [30_000.0], outliers=(24,)),
)

CASES: tuple[Case, ...] = (*OFFERED_RATES, *RECOVERIES, *COMPARISONS, *TRENDS, *COHORTS)
