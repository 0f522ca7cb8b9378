"""Series of rising offered rates: the rate without a backlog, the rate at saturation, and the waiting time of I/Os."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from tests.analysis.made_up import made_up_cell, made_up_run, made_up_section
from tests.builders import work
from tkperf.analysis.characteristics import NO_BACKLOG, SATURATED
from tkperf.analysis.characteristics_search import has_backlog, with_characteristics
from tkperf.analysis.over_seconds import CLOCK_S, find_median_backlog_ios, mean_wait_s
from tkperf.analysis.results import CellResult, SectionResult
from tkperf.analysis.uncertainty.estimate import Basis
from tkperf.model.measurement import Seconds
from tkperf.model.workload import Arrival

LEVEL_S = 51.0
READS = work(read_percent=100, jobs=32, io_depth=1)


def level(offered_iops: float, done_iops: float) -> CellResult:
    """Return a level with the same length as the levels in the review. The level contains no seconds, but only the
    figures at its end.
    """
    cell = made_up_cell(done_iops, replace(READS, offered_iops=offered_iops))
    ended = {"ios": done_iops * LEVEL_S, "backlog_ios": max(0.0, offered_iops - done_iops) * LEVEL_S}
    return replace(cell, all={**cell.all, **ended})


def raised(*levels: CellResult) -> SectionResult:
    section = made_up_section("Demand 100/0", {READS: [1.0]}, steady=None)
    test = made_up_run("run", {"demand": [replace(section, cells=levels)]}).tests[0]
    return with_characteristics(test).sections[0]


def found(section: SectionResult) -> dict[str, tuple[float | None, float | None, float | None]]:
    return {each.key: (each.value, each.at_least, each.at_most) for each in section.characteristics}


def test_99_percent_done_is_a_backlog_and_beyond_what_the_drive_does() -> None:
    """A level at which 99 % of the I/Os were completed has a backlog, and the drive cannot sustain the offered rate of
    this level. Of 95,000 offered IOPS, 94,152 were completed, and 43,248 I/Os were waiting after 51 s.
    """
    done = {91_000: 91_000, 92_000: 91_890, 93_000: 92_700, 94_000: 93_610, 95_000: 94_152}
    beyond = dict.fromkeys(range(96_000, 101_000, 1000), 93_850)
    section = raised(*(level(offered, iops) for offered, iops in (done | beyond).items()))
    assert found(section) == {
        NO_BACKLOG.key: (91_000, None, None),
        SATURATED.key: (pytest.approx((94_152 + 5 * 93_850) / 6), None, None),
    }
    no_backlog, saturated = section.characteristics
    assert no_backlog.uncertainty is not None
    assert (no_backlog.uncertainty.low, no_backlog.uncertainty.high) == (91_000, 92_000)
    assert saturated.uncertainty is not None
    assert saturated.uncertainty.covers(93_900)
    assert saturated.uncertainty.basis is Basis.LEVELS


def test_levels_that_saturate_are_no_course_in_time() -> None:
    """Levels of an offered rate do not form a series over time. If the completed rate decreases from level to level,
    the decrease therefore counts as spread. It is not extrapolated beyond the last level.
    """
    offered = range(2000, 7000, 1000)
    levels = [level(1000, 1000), *(level(o, 1100 - o / 100) for o in offered)]
    _, saturated = raised(*levels).characteristics
    assert saturated.value == 1060
    assert saturated.uncertainty is not None
    assert saturated.uncertainty.expanded == pytest.approx(2.1 * sqrt(250), rel=0.01)


def test_a_level_of_which_nothing_is_known_is_left_out() -> None:
    """A level with an unknown backlog counts neither as a level with a backlog nor as a level without a backlog."""
    unknown = level(3000, 3000)
    unknown = replace(unknown, all={**unknown.all, "backlog_ios": None})
    levels = [level(1000, 1000), level(2000, 2000), unknown, level(4000, 4000)]
    beyond = [level(5000, 4100), level(6000, 4100)]
    assert found(raised(*levels, *beyond))[NO_BACKLOG.key] == (4000, None, None)
    not_done = [level(1000, 1000), unknown, level(4000, 3100), level(5000, 3100)]
    assert found(raised(*not_done))[NO_BACKLOG.key] == (1000, None, None)


@pytest.mark.parametrize(
    ("waiting", "behind"),
    [
        # Of these 42 I/Os, 32 are outstanding, and 10 more become due within a latency of 10 ms.
        (lambda _at: 42.0, False),
        (lambda _at: 42.1, True),
        (lambda at: 10.0 * at, True),  # In each second, the backlog grows by 1 % of the offered I/Os.
        (lambda at: 500.0 if 9 <= at < 14 else 0.0, False),  # The drive catches up after a stall.
        (lambda at: 500.0 if at == 20 else 0.0, False),
    ],
)
def test_a_backlog_stays_or_grows_over_the_second_half(waiting: Callable[[float], float], behind: bool) -> None:
    """A level has a backlog if I/Os were waiting throughout its second half. The expected values apply to 20 s with
    1,000 offered IOPS and 32 outstanding I/Os.
    """
    seconds = _seconds(lambda at: 1000 * at - (waiting(at) if at else 0.0), 20)
    cell = level(1000, 1000)
    judged = replace(cell, backlog_median_ios=find_median_backlog_ios(cell.workload, seconds))
    assert has_backlog(judged) is behind
    assert find_median_backlog_ios(cell.workload, _seconds(lambda at: at, 3)) is None


def test_a_level_that_leaves_more_than_a_percent_undone_has_a_backlog() -> None:
    """A level at which more than 1 % of the I/Os were not completed has a backlog. The median backlog of the seconds
    does not matter. Of 5,049,000 I/Os, 138,620 were not completed, most of them in the last seconds.
    """
    cell = level(99_000, 99_000 - 138_620 / LEVEL_S)
    assert has_backlog(replace(cell, backlog_median_ios=0.0))
    at_its_end = level(99_000, 99_000 - 4000 / LEVEL_S)
    assert has_backlog(replace(at_its_end, backlog_median_ios=0.0))
    assert not has_backlog(replace(at_its_end, backlog_median_ios=0.0, backlog_noise_ios=2000.0))


def test_no_backlog_never_exceeds_saturation() -> None:
    """The rate without a backlog never exceeds the saturation rate. In this example, the drive sustains 55,000 IOPS for
    one level because of its cache, but it saturates at 40,700 IOPS.
    """
    kept = [level(iops, iops) for iops in range(5000, 60_000, 5000)]
    beyond = [level(iops, 40_700) for iops in range(60_000, 85_000, 5000)]
    no_backlog, saturated = raised(*kept, *beyond).characteristics
    assert (no_backlog.value, saturated.value) == (40_000, 40_700)
    assert no_backlog.uncertainty is not None
    assert (no_backlog.uncertainty.low, no_backlog.uncertainty.high) == (40_000, 45_000)


@pytest.mark.parametrize(("done", "behind"), [(999.2, False), (999.1, True)])
def test_a_level_without_seconds_is_judged_at_its_end(done: float, behind: bool) -> None:
    """A level without recorded seconds is judged at its end. At 1,000 IOPS for 51 s, 42 I/Os may still wait."""
    assert has_backlog(level(1000, done)) is behind


def test_random_arrivals_are_offered_to_within_a_percent() -> None:
    evenly = level(10_000.0, 9920.0)
    at_random = replace(evenly, workload=replace(evenly.workload, arrival=Arrival.POISSON))
    assert (has_backlog(evenly), has_backlog(at_random)) == (True, False)


def test_a_single_level_with_a_backlog_is_passed_over() -> None:
    """A single level with a backlog is ignored, because a drive may do internal work for a minute. Two consecutive
    levels with a backlog set the limit.
    """
    levels = [level(1000, 1000), level(2000, 1500), level(3000, 3000)]
    beyond = [level(4000, 3100), level(5000, 3100)]
    assert found(raised(*levels, *beyond))[NO_BACKLOG.key] == (3000, None, None)
    both = [level(1000, 1000), level(2000, 1500), level(3000, 2400), level(4000, 4000)]
    assert found(raised(*both))[NO_BACKLOG.key] == (1000, None, None)


def test_what_was_not_reached_is_bounded() -> None:
    """If a limit lies outside the offered levels, the first or the last level is a bound of the limit. The saturation
    rate is then such a bound. If even the first level has a backlog, the saturation rate is the measured rate.
    """
    kept = raised(level(1000, 1000), level(2000, 2000))
    assert found(kept) == {NO_BACKLOG.key: (None, 2000, None), SATURATED.key: (None, 2000, None)}
    never = raised(level(1000, 500), level(2000, 500))
    assert found(never) == {NO_BACKLOG.key: (None, None, 1000), SATURATED.key: (500, None, None)}


def test_rates_that_fall_with_each_offer_have_no_mean() -> None:
    """If the completed rate falls with each higher offered rate, no mean over the saturated levels is reported. The
    drive completed 2,000 IOPS, so it does not saturate at the lower mean of the levels beyond 2,000 IOPS.
    """
    done = {1000: 1000, 2000: 2000, 3000: 1500, 4000: 1200, 5000: 1000}
    section = raised(*(level(offered, iops) for offered, iops in done.items()))
    assert found(section) == {NO_BACKLOG.key: (2000, None, None), SATURATED.key: (None, 1000, 2000)}
    assert section.characteristics[1].text() == "between 1,000 and 2,000"


def test_no_bound_contradicts_a_level_without_a_backlog() -> None:
    """A bound never contradicts a level without a backlog. If only the lowest levels have a backlog, no rate without a
    backlog is reported.
    """
    done = {1000: 500, 2000: 1000, 3000: 3000, 4000: 4000}
    section = raised(*(level(offered, iops) for offered, iops in done.items()))
    assert found(section) == {NO_BACKLOG.key: (None, None, None), SATURATED.key: (None, 4000, None)}


def test_only_one_load_at_several_rates_is_looked_at() -> None:
    other = level(2000, 2000)
    other = replace(other, workload=replace(other.workload, read_percent=0))
    assert not raised(level(1000, 1000), other).characteristics
    assert not raised(level(1000, 1000)).characteristics


def _seconds(done: Callable[[float], float], length_s: int) -> Seconds:
    """Return seconds that are computed from the number of I/Os that are completed at each time."""
    counts = np.diff([done(float(at)) for at in range(length_s + 1)])
    return Seconds(start_s=np.arange(length_s, dtype=float), duration_s=np.ones(length_s), iops=counts)


def test_the_mean_wait_is_that_of_each_io_in_a_queue() -> None:
    """The mean wait is the mean over all I/Os of a queue in which 1,000 I/Os are due per second and 800 are
    completed.
    """
    offered_iops, able_iops, length_s = 1000.0, 800.0, 20
    one_place = replace(READS, jobs=1, offered_iops=offered_iops)
    issued = range(int(able_iops * length_s))
    waits = [number / able_iops - number / offered_iops for number in issued]
    found_s = mean_wait_s(one_place, _seconds(lambda at: able_iops * at, length_s))
    assert found_s == pytest.approx(sum(waits) / len(waits), abs=2 * CLOCK_S + 1 / able_iops)


def test_a_stall_that_is_caught_up_with_is_a_wait_and_no_backlog() -> None:
    """If the drive stalls for 2 s and then catches up, the mean wait is about 0.4 s. The level has no backlog, because
    all offered I/Os were completed.
    """

    def done(at: float) -> float:
        return 1000 * (at if at <= 3 or at >= 7 else 3 if at <= 5 else 3 + 2 * (at - 5))

    seconds = _seconds(done, 10)
    assert mean_wait_s(replace(READS, offered_iops=1000.0), seconds) == pytest.approx(0.4, rel=0.05)


def test_no_wait_is_reported_where_fewer_are_due_than_the_places_hold() -> None:
    """The waiting time is 0 if the number of I/Os that are due is below the number of I/Os that may be outstanding.
    Without an offered rate, or without recorded seconds, the waiting time is not known.
    """
    on_their_way = _seconds(lambda at: max(0.0, 1000 * at - 30), 10)
    assert mean_wait_s(replace(READS, offered_iops=1000.0), on_their_way) == 0
    assert mean_wait_s(READS, on_their_way) is None
    assert mean_wait_s(replace(READS, offered_iops=1000.0), Seconds()) is None


def test_random_arrivals_have_no_known_wait() -> None:
    """The number of random arrivals can be lower than requested, so no waiting time is computed for them."""
    at_random = replace(READS, offered_iops=10_000.0, arrival=Arrival.POISSON)
    fewer = _seconds(lambda at: 9950 * at, 51)
    assert mean_wait_s(at_random, fewer) is None
    assert (mean_wait_s(replace(at_random, arrival=Arrival.LINEAR), fewer) or 0) > 0.1
