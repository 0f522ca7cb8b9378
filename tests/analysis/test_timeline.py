"""Findings over time. Signals with a pattern lead to the known findings, and signals without a pattern lead to no
findings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pytest

import tkperf
from tests.builders import view_of, work
from tests.charts import curves_of
from tkperf.analysis.results import SectionResult
from tkperf.analysis.timeline.levels import LevelKind, RateLevel, find_drops, find_levels
from tkperf.analysis.timeline.series import Series, make_series
from tkperf.analysis.timeline.spikes import LEAST_SHARE, find_periodic_spikes
from tkperf.analysis.timeline.timelines import SEARCHED, Bursts, Recorded, Timeline, find_timelines
from tkperf.analysis.uncertainty.estimate import Basis
from tkperf.model.measurement import FloatArray, Seconds
from tkperf.model.quantity import IOPS
from tkperf.page.view import build_view
from tkperf.page.words.time_course import describe_timelines
from tkperf.render.export_markdown import render_markdown

Generator = np.random.Generator
SIGNALS = 1000
LENGTHS = (25, 60, 120, 240)
SHIPPED = Path(tkperf.__file__).parent / "procedures" / "profiles"


def rounds(values: FloatArray) -> Series:
    return make_series(np.arange(1.0, values.size + 1), values)


def find_in_seconds(seconds: Seconds, *, as_new: bool) -> list[Timeline]:
    return list(
        find_timelines(
            work(),
            Recorded.SECONDS,
            seconds.start_s,
            seconds.duration_s,
            {key: getattr(seconds, key) for key in SEARCHED},
            as_new=as_new,
        )
    )


def correlated(random: Generator, count: int, correlation: float) -> FloatArray:
    """Return AR(1) noise with a standard deviation of 1."""
    pushed = random.normal(size=count + 200) * (1 - correlation**2) ** 0.5
    for index in range(1, pushed.size):
        pushed[index] += correlation * pushed[index - 1]
    return np.asarray(pushed[200:])


NOISE: dict[str, Callable[[Generator, int], FloatArray]] = {
    "white": lambda random, count: 1000 * (1 + 0.1 * random.normal(size=count)),
    "wide": lambda random, count: np.abs(1000 * (1 + 0.3 * random.normal(size=count))),
    "AR(1) 0.5": lambda random, count: 1000 * (1 + 0.1 * correlated(random, count, 0.5)),
    "AR(1) 0.8": lambda random, count: 1000 * (1 + 0.1 * correlated(random, count, 0.8)),
    "Student's t": lambda random, count: np.maximum(0, 1000 * (1 + 0.05 * random.standard_t(3, size=count))),
    "log-normal": lambda random, count: 1000 * np.exp(0.8 * random.normal(size=count)),
    "Pareto": lambda random, count: 1000 * (1 + random.pareto(2, size=count)),
}


def noise_signals() -> list[Series]:
    """Return as many noise signals as the tests require. All kinds and lengths of signals occur in turn."""
    kinds = list(NOISE.values())
    return [
        rounds(kinds[seed % len(kinds)](np.random.default_rng(seed), LENGTHS[seed // 7 % 4])) for seed in range(SIGNALS)
    ]


def test_of_a_thousand_signals_without_any_less_than_one_in_a_hundred_alarms() -> None:
    """Fewer than 1 % of the noise signals lead to a false alarm. White, correlated or heavy-tailed noise has one level
    or one range, and no drop or period. For a signal with few values, tkperf may also find that the signal is too
    short.
    """
    alarms = []
    for number, signal in enumerate(noise_signals()):
        levels = find_levels(signal)
        assert levels is not None
        unclear = levels.swing is not None or levels.is_too_short
        if len(levels.phases) != 1 or not (levels.settled or unclear):
            alarms.append((number, "levels"))
        if find_periodic_spikes(signal) is not None:
            alarms.append((number, "spikes"))
        if find_drops(signal):
            alarms.append((number, "drops"))
    assert len({number for number, _ in alarms}) < SIGNALS / 100, alarms


def test_the_reviewers_every_13th_round_is_found() -> None:
    """A spike in the 7th round and in every 13th round after that is found among heavy-tailed maxima."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        values = 300 * (1 + 0.2 * random.pareto(3, size=120))
        values[6::13] = 10_000
        found = find_periodic_spikes(rounds(values))
        assert found is not None
        assert found.period == pytest.approx(13, abs=0.01)
        assert (found.first, found.observed, found.expected) == (7, 9, 9)
        assert found.places == tuple(range(7, 121, 13))
        assert found.chance < 1e-5
        assert found.height > 10


def test_a_blip_of_a_mean_is_found_though_some_are_missing_and_others_added() -> None:
    """Spikes of a mean at regular intervals are found, even if two of 18 spikes are missing and three other spikes
    exist.
    """
    random = np.random.default_rng(3)
    values = 155 * (1 + 0.01 * random.normal(size=240))
    places = [index for index in range(4, 240, 13) if index not in (43, 108)]
    values[places] *= 1.25
    values[[60, 61, 150]] *= 1.3
    found = find_periodic_spikes(rounds(values))
    assert found is not None
    assert found.period == pytest.approx(13, abs=0.05)
    assert (found.observed, found.expected) == (17, 19)


def test_a_period_between_two_seconds_is_found_in_a_day_of_seconds() -> None:
    """Spikes every 780.4 s are found in half a day of seconds. Each spike is up to a second early or late, and the
    level drifts slowly.
    """
    random = np.random.default_rng(5)
    count = 43_200
    values = (400 + 50 * np.sin(np.arange(count) / 9000)) * np.exp(0.15 * random.normal(size=count))
    places = np.rint(200 + 780.4 * np.arange(55) + random.integers(-1, 2, size=55)).astype(int)
    values[places] *= 8
    found = find_periodic_spikes(make_series(np.arange(float(count)), values))
    assert found is not None
    assert found.period == pytest.approx(780.4, abs=0.2)
    assert (found.observed, found.expected) == (55, 56)


@pytest.mark.parametrize("spike", [100.0, 500.0])
@pytest.mark.parametrize("moved", [slice(50, None), slice(50, 90), slice(1), slice(9), slice(70, 71)])
@pytest.mark.parametrize("years", [1e9, 1e12, 1e308, -1e9])
def test_a_series_takes_no_memory_for_the_time_it_spans(spike: float, moved: slice, years: float) -> None:
    """The search for spikes needs no more memory if a series covers a longer time. In a file from another user, two
    consecutive values may be years apart, forwards or backwards.
    """
    place = np.arange(100.0)
    place[moved] += years
    values = np.full(100, 100.0)
    values[::8] = spike
    assert find_periodic_spikes(make_series(place, values)) is None


def test_spikes_are_found_where_slices_overlap() -> None:
    """Spikes are found even if slices overlap, so that the last second of a slice begins after the first second of the
    next slice.
    """
    places = np.arange(200.0)
    values = np.where(places % 10 == 9, 3.0, 1.0)
    swapped = [*range(198), 199, 198]
    in_order = find_periodic_spikes(make_series(places, values))
    assert in_order is not None
    assert find_periodic_spikes(make_series(places[swapped], values[swapped])) == in_order


def test_spikes_at_random_distances_are_none_that_come_back() -> None:
    """Spikes at random intervals are not reported as periodic, however high they are."""
    for seed in range(50):
        random = np.random.default_rng(seed)
        values = 300 * np.exp(0.1 * random.normal(size=600))
        values[random.choice(600, 30, replace=False)] *= 20
        assert find_periodic_spikes(rounds(values)) is None


def test_a_write_saturation_curve_has_its_three_phases() -> None:
    """A write saturation curve has a fresh phase of nine minutes, a transition until minute 41 and a steady phase.
    Single spikes and stalls do not move the boundaries of the phases.
    """
    random = np.random.default_rng(1)
    minute = np.arange(1440)
    level = np.interp(minute, [0, 9, 41, 1440], [88_800, 88_800, 27_000, 27_000])
    level[:9] = 88_800
    values = level * (1 + 0.02 * random.normal(size=1440))
    values[[4, 700, 701, 1300]] *= (1.5, 0.1, 0.1, 2.0)
    series = make_series(60.0 * minute.astype(float), values, np.full(1440, 60.0))
    found = find_levels(series, as_new=True)
    assert found is not None
    assert found.settled
    fresh, transition, steady = found.phases
    assert [each.kind for each in found.phases] == [LevelKind.FRESH, LevelKind.TRANSITION, LevelKind.STEADY]
    assert fresh.value == pytest.approx(88_800, rel=0.02)
    assert steady.value == pytest.approx(27_000, rel=0.01)
    assert fresh.end == pytest.approx(9 * 60, abs=4 * 60)
    assert transition.end == steady.start == pytest.approx(40 * 60, abs=3 * 60)
    assert steady.end == 1440 * 60


def test_a_cliff_has_no_transition_and_a_first_level_is_fresh_only_after_a_purge() -> None:
    """A cliff is an exact boundary between two levels, without a transition. The first level counts as fresh only after
    a purge.
    """
    random = np.random.default_rng(2)
    values = np.where(np.arange(60) < 20, 900.0, 300.0) * (1 + 0.01 * random.normal(size=60))
    found = find_levels(rounds(values))
    assert found is not None
    assert [(each.kind, each.start, each.end) for each in found.phases] == [
        (LevelKind.FIRST, 1, 20),
        (LevelKind.STEADY, 21, 60),
    ]


@pytest.mark.parametrize("total_fall", [0.3, 0.6])
def test_what_falls_to_the_end_is_not_called_steady(total_fall: float) -> None:
    """A rate that falls in a straight line until the end of the series is not called steady and has no steady level."""
    random = np.random.default_rng(4)
    values = 1000 * (1 - total_fall * np.arange(300) / 300) * (1 + 0.01 * random.normal(size=300))
    found = find_levels(rounds(values))
    assert found is not None
    assert not found.settled
    assert LevelKind.STEADY not in [each.kind for each in found.phases]


@pytest.mark.parametrize("minutes", [8, 12, 15])
def test_the_bend_of_a_curve_is_no_noise(minutes: float) -> None:
    """A curve that becomes flatter counts as settled only if it hardly falls in its last quarter. It is not enough that
    the curve is smooth.
    """
    minute = np.arange(56)
    fall = np.exp(-np.maximum(0, minute - 13) / minutes)
    values = (48_600 + 45_400 * fall) * (1 + 0.001 * np.random.default_rng(9).normal(size=56))
    found = find_levels(rounds(values), as_new=True)
    assert found is not None
    assert found.settled == (minutes < 10)
    for phase in found.phases:
        if phase.kind is LevelKind.STEADY:
            assert values[int(phase.start) - 1] < 1.1 * np.median(values[-14:])


def test_levels_do_not_depend_on_the_unit() -> None:
    """If all values are multiplied by a thousand, the levels are multiplied as well, and the boundaries do not
    change.
    """
    random = np.random.default_rng(6)
    values = np.interp(np.arange(200), [0, 30, 60, 200], [900, 900, 300, 300])
    values *= 1 + 0.03 * random.normal(size=200)
    one, other = find_levels(rounds(values)), find_levels(rounds(1000 * values))
    assert one is not None
    assert other is not None
    assert [(each.start, each.end) for each in one.phases] == [(each.start, each.end) for each in other.phases]
    assert other.phases[0].value == pytest.approx(1000 * one.phases[0].value)


def test_a_stall_and_a_cliff_are_drops_and_noise_is_none() -> None:
    """A second without I/O, twelve seconds at a tenth of the rate, and a permanent fall are drops. Noise is not a
    drop.
    """
    random = np.random.default_rng(7)
    values = 90_000 * (1 + 0.02 * random.normal(size=900))
    values[100] = 50
    values[400:412] = 9_000
    values[800:] *= 0.2
    one, dip, cliff = find_drops(make_series(np.arange(900.0), values, np.ones(900)))
    assert (one.start, one.end, one.least, one.recovered) == (100, 101, 50, True)
    assert (dip.start, dip.end, dip.least, dip.recovered) == (400, 412, 9_000, True)
    assert (cliff.start, cliff.end, cliff.recovered) == (800, 900, False)
    assert one.before == pytest.approx(90_000, rel=0.03)


def test_a_drop_ends_at_the_level_after_it() -> None:
    """The level after a drop is the median of the following seconds, not the lowest second in the rest of the
    series.
    """
    random = np.random.default_rng(7)
    at = np.arange(3000)
    values = np.where(at < 44, 588_000.0, 284_000.0)
    values[900:] = 284_000 * np.exp(-at[:2100] / 1000)
    values *= 1 + 0.02 * random.normal(size=3000)
    (drop,) = find_drops(make_series(at.astype(float), values, np.ones(3000)))
    assert (drop.start, drop.recovered) == (44, False)
    assert drop.after == pytest.approx(284_000, rel=0.02)
    assert drop.least > 260_000


def test_one_good_second_is_no_recovery() -> None:
    """A single second at the old rate does not end a drop. A cache that has some free space can cause such a second."""
    values = np.where(np.arange(300) < 100, 90_000.0, 20_000.0)
    values[250] = 90_000
    (drop,) = find_drops(make_series(np.arange(300.0), values, np.ones(300)))
    assert (drop.start, drop.end, drop.recovered) == (100, 300, False)


def test_a_series_that_only_noise_hides_is_not_settled() -> None:
    """A rate that falls by half is not a single level, even if noise of 40 % hides the fall within each quarter of the
    series.
    """
    random = np.random.default_rng(1)
    values = np.linspace(25_000, 12_500, 6000) * (1 + 0.4 * random.normal(size=6000))
    found = find_levels(make_series(np.arange(6000.0), values, np.ones(6000)))
    assert found is not None
    assert not found.settled


def _square(seconds: int) -> FloatArray:
    return np.where(np.arange(1800) // seconds % 2 == 0, 10_000.0, 4_000.0)


_AT = np.arange(1800)
SWINGS: dict[str, tuple[FloatArray, float, float, float]] = {
    "square of 30 s": (_square(30), 4_000, 10_000, 7_000),
    "square of 5 s": (_square(5), 4_000, 10_000, 7_000),
    "square of 1 s": (_square(1), 4_000, 10_000, 7_000),
    "sine of 20 %": (10_000 * (1 + 0.2 * np.sin(2 * np.pi * _AT / 60)), 8_100, 11_900, 10_000),
    "sawtooth": (10_000 - 4_000.0 * (_AT % 100) / 100, 6_400, 9_600, 8_000),
}


@pytest.mark.parametrize("how", SWINGS)
@pytest.mark.parametrize("seed", range(5))
def test_a_rate_that_swings_is_not_called_a_level(how: str, seed: int) -> None:
    """A rate that swings is described by its range and its mean, because few of its seconds are close to a level."""
    values, low, high, mean = SWINGS[how]
    values = values * (1 + 0.01 * np.random.default_rng(seed).normal(size=values.size))
    found = find_levels(make_series(_AT.astype(float), values, np.ones(1800)))
    assert found is not None
    assert not found.settled
    assert [phase.kind for phase in found.phases] == [LevelKind.TRANSITION]
    assert found.swing is not None
    seen = (found.swing.low, found.swing.high, found.swing.mean)
    assert seen == pytest.approx((low, high, mean), rel=0.03)
    timelines = find_in_seconds(_seconds_of(values), as_new=True)
    assert describe_timelines(timelines)[0].startswith("Varying between ")


@pytest.mark.parametrize("noise", [0.04, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_a_noisy_rate_has_a_level(noise: float, seed: int) -> None:
    """A rate with noise or a small wave has a level. The mean of a few consecutive seconds is always close to this
    level, and so are most single seconds.
    """
    wave = 10_000 * (1 + 0.05 * np.sin(2 * np.pi * _AT / 60))
    values = wave * (1 + noise * np.random.default_rng(seed).normal(size=1800))
    found = find_levels(make_series(_AT.astype(float), values, np.ones(1800)))
    assert found is not None
    assert found.settled
    assert found.swing is None


@pytest.mark.parametrize(("lasting", "after"), [(90, 5_000), (90, 8_000), (54, 5_000)])
def test_a_cliff_shortly_before_the_end_is_told(lasting: int, after: float) -> None:
    """A cliff shortly before the end of a series splits the series into a level before the cliff and a level after it.
    The series then counts as not settled.
    """
    for seed in range(20):
        values = np.where(1800 - lasting > _AT, 10_000.0, after)
        values *= 1 + 0.01 * np.random.default_rng(seed).normal(size=1800)
        found = find_levels(make_series(_AT.astype(float), values, np.ones(1800)), as_new=True)
        assert found is not None
        assert not found.settled
        first, second = found.phases
        assert (first.kind, first.end) == (LevelKind.FRESH, 1800 - lasting)
        assert (second.kind, second.end) == (LevelKind.SECOND, 1800)
        assert (first.value, second.value) == pytest.approx((10_000, after), rel=0.02)


def test_a_cliff_shortly_before_the_end_is_in_the_sentence() -> None:
    values = np.where(_AT < 1710, 10_000.0, 5_000.0)
    values *= 1 + 0.01 * np.random.default_rng(1).normal(size=1800)
    first, *_ = describe_timelines(find_in_seconds(_seconds_of(values), as_new=False))
    assert "10,000 IOPS for 28 min 30 s" in first
    assert "until 30 min 00 s" in first


@pytest.mark.parametrize(
    ("count", "fall", "noise"), [(10, 0.1, 0.005), (12, 0.3, 0.01), (16, 0.3, 0.01), (20, 0.3, 0.01)]
)
def test_a_short_stream_that_falls_is_not_settled(count: int, fall: float, noise: float) -> None:
    """A short stream that falls is rarely called settled, because a few values cannot show that the end of the stream
    is flat.
    """
    settled = 0
    for seed in range(30):
        values = 10_000 * (1 - fall * np.arange(count) / count)
        values *= 1 + noise * np.random.default_rng(seed).normal(size=count)
        found = find_levels(rounds(values))
        assert found is not None
        settled += found.settled
    assert settled <= 5


def test_a_stream_that_is_too_short_to_tell_says_so() -> None:
    values = 10_000 * (1 - 0.1 * np.arange(10) / 10)
    values *= 1 + 0.005 * np.random.default_rng(1).normal(size=10)
    found = find_levels(rounds(values))
    assert found is not None
    assert found.is_too_short
    sentences = describe_timelines(find_in_seconds(_seconds_of(values), as_new=False))
    assert sentences[0].startswith("Measured for too short a time to tell")


@pytest.mark.parametrize("count", [10, 20, 40])
def test_a_short_flat_stream_is_settled(count: int) -> None:
    settled = 0
    for seed in range(30):
        values = 10_000 * (1 + 0.005 * np.random.default_rng(seed).normal(size=count))
        found = find_levels(rounds(values))
        assert found is not None
        settled += found.settled
    assert settled >= 28


def test_the_shortest_period_is_found() -> None:
    """The shortest period that tkperf can find is four values long. tkperf finds its exact length."""
    latency = 1000 * (1 + 0.05 * np.random.default_rng(1).normal(size=1800))
    latency[::4] *= 2
    spikes = find_periodic_spikes(rounds(latency))
    assert spikes is not None
    assert spikes.period == pytest.approx(4)
    assert spikes.observed == spikes.expected == 450


def test_a_pattern_is_reported_only_with_a_spike_at_most_of_its_places() -> None:
    """tkperf reports a period only if spikes occur at the majority of the times that the period predicts. This rule
    also holds if spikes every 60 s and spikes every 90 s coincide every 180 s.
    """
    latency = 1000 * (1 + 0.05 * np.random.default_rng(1).normal(size=1800))
    latency[::60] *= 5
    latency[30::90] *= 5
    spikes = find_periodic_spikes(rounds(latency))
    assert spikes is not None
    assert spikes.observed >= LEAST_SHARE * spikes.expected


def _seconds_of(iops: FloatArray) -> Seconds:
    nothing = np.full(iops.size, np.nan)
    return Seconds(
        start_s=np.arange(float(iops.size)),
        duration_s=np.ones(iops.size),
        iops=iops,
        latency_mean_us=nothing,
        latency_max_us=nothing,
    )


def test_what_was_not_measured_is_left_out_and_few_values_say_nothing() -> None:
    """A value that was not measured (None or NaN) is left out and does not count as zero. Too few values lead to no
    finding.
    """
    series = make_series([1, 2, 3], [5.0, None, float("nan")])
    assert series.values.tolist() == [5.0]
    assert find_levels(series) is None
    assert find_drops(series) == ()
    assert find_periodic_spikes(series) is None
    with pytest.raises(ValueError, match="one position"):
        make_series([1, 2], [1.0])


def test_seconds_of_a_long_step_tell_drops_apart_from_the_transition() -> None:
    """In the seconds of a long step, a fall before the steady level is part of the transition. A later stall is a
    drop.
    """
    random = np.random.default_rng(8)
    rate = np.where(np.arange(600) < 100, 90_000.0, 20_000.0) * (1 + 0.01 * random.normal(size=600))
    rate[500:505] = 100
    seconds = Seconds(
        start_s=np.arange(600.0),
        duration_s=np.ones(600),
        iops=rate,
        megabytes_per_s=rate * 4096e-6,
        latency_mean_us=np.full(600, 100.0),
        latency_max_us=np.full(600, 400.0),
    )
    found = {each.quantity: each for each in find_in_seconds(seconds, as_new=True)}
    assert [each.kind for each in found["iops"].levels] == [LevelKind.FRESH, LevelKind.STEADY]
    assert [each.start for each in found["iops"].drops] == [500]
    assert found["latency_max_us"].spikes is None


@pytest.mark.parametrize(("seconds", "stall_at"), [(1800, None), (1800, 600), (9000, None), (40, None), (40, 15)])
def test_the_end_of_a_burst_after_idle_time_is_no_drop(seconds: int, stall_at: int | None) -> None:
    """The end of a burst after idle time is not a drop. The series begins slowly, is fast for 19 s and then remains at
    its permanent rate.
    """
    random = np.random.default_rng(1)
    at = np.arange(seconds)
    rate = np.where(at < 7, 44_000.0, np.where(at < 26, 93_800.0, 46_300.0))
    rate *= 1 + 0.008 * random.normal(size=seconds)
    rate[26] = 46_860
    if stall_at is not None:
        rate[stall_at : stall_at + 3] = 100
    found = find_in_seconds(
        Seconds(
            start_s=at.astype(float),
            duration_s=np.ones(seconds),
            iops=rate,
            latency_mean_us=np.full(seconds, 100.0),
            latency_max_us=np.full(seconds, 400.0),
        ),
        as_new=False,
    )
    drops = [drop.start for each in found for drop in each.drops]
    assert drops == ([] if stall_at is None else [stall_at])


def test_sentences_name_places_units_and_how_sure() -> None:
    """The sentences about findings state the time, the unit and the certainty of each finding."""
    values = np.full(120, 300.0)
    values[6::13] = 10_000
    spikes = Timeline(
        workload=work(),
        quantity="latency_max_us",
        recorded=Recorded.ROUNDS,
        values=120,
        spikes=find_periodic_spikes(rounds(values)),
    )
    levels = Timeline(
        workload=work(),
        quantity="iops",
        recorded=Recorded.SLICES,
        values=1440,
        levels=(
            RateLevel(kind=LevelKind.FRESH, start=0, end=540, value=88_800),
            RateLevel(kind=LevelKind.TRANSITION, start=540, end=2460, value=50_000),
            RateLevel(kind=LevelKind.STEADY, start=2460, end=86_400, value=27_000),
        ),
        settled=True,
    )
    first, second = describe_timelines([levels, spikes])
    assert first == ("Fresh out of box 88,800 IOPS for 9 min 00 s, settled at 27,000 IOPS from 41 min 00 s on")
    assert second.startswith(
        "Maximum latency spikes every 13 rounds, first in round 7: at 9 of 9 places, typically "
        "33.3 times the values around them; by chance in at most 1 of 1,000,000 cases"
    )


def test_nothing_is_sought_across_idle_time(tmp_path: Path) -> None:
    """Bursts that are separated by idle time have a summary but no drop, level or spike, because no finding may extend
    across idle time.
    """
    text = (SHIPPED / "quick.toml").read_text(encoding="utf-8")
    for shipped, own in (
        ('name = "quick"', 'name = "pauses"'),
        ('title = "quick look (not a PTS measurement)"', 'title = "pauses"'),
        ("burst_s = 1\nbursts = 3\nidle_s = [1, 2]", "burst_s = 5\nbursts = 40\nidle_s = [3]"),
    ):
        assert shipped in text
        text = text.replace(shipped, own)
    (tmp_path / "pauses.toml").write_text(text, encoding="utf-8")
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", tests=["hir"], profile=str(tmp_path / "pauses.toml"))
    tkperf.run(plan, "run", folder=tmp_path)
    (test,) = tkperf.load(tmp_path / "run.tkperf").tests
    _, bursts, _ = test.sections
    rates = [rate for one in bursts.slices if (rate := one.values.value(IOPS)) is not None]
    assert len(rates) == 40
    (timeline,) = bursts.timelines
    assert timeline.bursts == Bursts(median=median(rates), least=min(rates), most=max(rates))
    assert (timeline.levels, timeline.drops, timeline.settled) == ((), (), None)
    assert [one.key for one in bursts.characteristics] == ["share_of_first_percent"]
    (said,) = describe_timelines(bursts.timelines)
    assert said.startswith("40 bursts, idle time between them: median ")
    known = bursts.cells[0].uncertainty_of(IOPS)
    assert known is not None
    assert known.basis is Basis.ROUNDS


def section_of(path: Path) -> SectionResult:
    (test,) = tkperf.load(path).tests
    (section,) = test.sections
    return section


def test_a_run_has_them_in_every_output(tmp_path: Path) -> None:
    """Every output of a run contains the changes over time. The phases are found in the slices, and finer patterns are
    found in the seconds.
    """
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", tests=["writesat"])
    tkperf.run(plan, "run", folder=tmp_path)
    section = section_of(tmp_path / "run.tkperf")
    by_key = {(str(each.recorded), each.quantity): each for each in section.timelines}
    assert set(by_key) == {
        (recorded, quantity)
        for recorded in ("slices", "seconds")
        for quantity in ("iops", "latency_max_us", "latency_mean_us")
    }
    rate = by_key["seconds", "iops"]
    assert [each.kind for each in rate.levels] == [LevelKind.FRESH, LevelKind.TRANSITION]
    # In its last quarter, the rate still falls by 7 %.
    assert rate.settled is False
    assert rate.still_changes_percent == pytest.approx(-7, abs=1)
    # A finding in the seconds is not repeated for the slices.
    assert (by_key["slices", "iops"].levels, by_key["slices", "iops"].settled) == ((), None)
    assert [each.spikes for each in section.timelines] == [None] * 6
    assert section.is_as_new
    (said,) = describe_timelines(section.timelines)
    assert said.startswith("Fresh out of box 94,000 IOPS for 13 min ")
    assert "still falling at the end, by 7" in said
    assert said in render_markdown(build_view(tkperf.load(tmp_path / "run.tkperf"))).replace("\\", "")
    view = view_of(tmp_path / "run.tkperf")
    (shown,) = view.tests[0].sections
    assert shown.over_time == (said,)
    views = [view for chart in shown.charts for view in chart.views]
    marked = [view.key for view in views if "findings over time" in view.text]
    assert marked == ["writesat0time", "writesat0time2"]
    below = {rule.name: rule.below for rule in curves_of(shown.charts[0]).rules if rule.name}
    assert below == {"fresh out of box": False}


def test_what_was_not_purged_or_was_filled_is_not_fresh(tmp_path: Path) -> None:
    """Without a purge, or after a fill, the same curve has a first level instead of a fresh level."""
    plan = tkperf.make_plan("ssd", "sim:sata-ssd", tests=["writesat"], no_purge=True)
    tkperf.run(plan, "run", folder=tmp_path)
    (levels,) = [each.levels for each in section_of(tmp_path / "run.tkperf").timelines if each.levels]
    assert levels[0].kind is LevelKind.FIRST
