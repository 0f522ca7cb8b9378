"""Forecasts. The remaining phases are found by replaying a procedure with assumed results."""

from __future__ import annotations

import pytest

from tkperf.model.measurement import NO_IO, IoStats, Measurement
from tkperf.model.phases import Answer, Continuous, Fill, Idle, Phase, Procedure, Purge, Round
from tkperf.model.workload import Access, Step, Workload
from tkperf.procedures import SSD_TESTS, load_profile
from tkperf.procedures.forecast import Case, _Imagination, following_phases, forecast, phases_of, possible_ends

GIB = 1 << 30
FILL_S = 2 * GIB / 500e6


@pytest.mark.parametrize(
    ("test", "shortest_s", "longest_s"),
    [
        ("iops", 5 * 56 * 60 + FILL_S, 25 * 56 * 60 + FILL_S),
        ("lat", 5 * 9 * 60 + 1200 + FILL_S, 25 * 9 * 60 + 1200 + FILL_S),
        ("tp", 2 * (5 * 2 * 60 + FILL_S), 2 * (25 * 2 * 60 + FILL_S)),
        ("writesat", 121 * 60, 86400),
    ],
)
def test_the_time_budget_is_that_of_the_specification(test: str, shortest_s: float, longest_s: float) -> None:
    """The forecast of each test equals the sum of the times in the specification. The times are 280 to 1,400 min for
    IOPS, 10 to 50 min per block size for TP, 45 to 225 min plus 20 min for LAT, and 121 min to 24 h for WSAT.
    """
    profile = load_profile("pts-e-1.1")
    for case, expected_s in ((Case.BEST, shortest_s), (Case.WORST, longest_s)):
        procedure = SSD_TESTS[test].procedure(profile, GIB)
        found = forecast(procedure, (), case, active_range_bytes=GIB)
        assert sum(found) == pytest.approx(expected_s)


def test_what_follows_is_certain_until_steady_state_is_possible() -> None:
    """Before round 4, a further round is certain. From the fifth round on, the verdict decides whether another round is
    necessary.
    """
    profile, test = load_profile("quick"), SSD_TESTS["iops"]
    imagine = _Imagination(Case.BEST, GIB)
    answers: list[Answer] = []
    certain: dict[int, bool] = {}

    def answer(phase: Phase) -> Answer:
        if isinstance(phase, Round):
            following, *others = following_phases(lambda: test.procedure(profile, GIB), answers, active_range_bytes=GIB)
            assert isinstance(following, Round)
            assert following.number == phase.number + 1
            assert others in ([], [None])
            certain[phase.number] = not others
        answers.append(imagine(phase))
        return answers[-1]

    list(phases_of(test.procedure(profile, GIB), answer))
    assert certain == {1: True, 2: True, 3: True, 4: True, 5: False}


def test_after_the_last_phase_nothing_follows() -> None:
    """After the last phase of a test, the forecast is empty."""
    profile, test = load_profile("tkperf-2.2"), SSD_TESTS["writesat"]
    answers: list[Answer] = [None]
    imagine = _Imagination(Case.WORST, GIB)
    phases = list(phases_of(test.procedure(profile, GIB), imagine))
    assert isinstance(phases[0], Purge)
    answers += [imagine(phase) for phase in phases[1:-1]]
    following = following_phases(lambda: test.procedure(profile, GIB), answers, active_range_bytes=GIB)
    assert following == (None,)


WRITES = Workload(access=Access.RANDOM, read_percent=0, block_size_bytes=4096, jobs=2, io_depth=4)
STEP = Step(workload=WRITES, duration_s=10.0)


def test_idle_times_warm_ups_and_streams_count_in_the_forecast() -> None:
    """A forecast includes idle times, warm-ups and streams with their planned length, in the best case and in the worst
    case.
    """

    def procedure() -> Procedure:
        yield Round(section="S", number=1, steps=(STEP,), warm_up=True)
        yield Idle(section="S", duration_s=5.0)
        for number in (1, 2):
            yield Continuous(section="S", number=number, workload=WRITES, duration_s=60.0, longest_s=120.0)

    for case in Case:
        found = forecast(procedure(), (), case, active_range_bytes=GIB)
        assert (sum(found), len(found)) == (135.0, 4)
    rest = forecast(procedure(), [{WRITES: seen(1000)}, None], case, active_range_bytes=GIB)
    assert (sum(rest), len(rest)) == (120.0, 2)


def seen(ios: int, duration_s: float = 10.0) -> Measurement:
    stats = IoStats(ios=ios, bytes=ios * 4096, latency_ios=ios, latency_sum_ns=round(8 * duration_s * 1e9))
    return Measurement(duration_s=duration_s, read=NO_IO, write=stats)


def test_a_fill_is_no_measure_of_the_stream_after_it() -> None:
    """The forecast of a stream uses the rate of the stream's own slices. A large fill before the stream does not count
    towards the amount that ends the stream.
    """

    def procedure() -> Procedure:
        yield Fill(section="S", workload=WRITES, passes=1)
        slow = yield Continuous(section="S", number=1, workload=WRITES, duration_s=1, longest_s=9)
        assert isinstance(slow, Measurement)
        if slow.write.bytes < 10**6:
            yield Idle(section="S", duration_s=3.0)

    best = forecast(procedure(), [seen(10**6)], Case.BEST, active_range_bytes=GIB)
    assert len(best) == 2


def test_what_is_left_of_a_step_may_change_it_by_so_much() -> None:
    """The forecast assumes three cases for the rest of a step: no I/Os, the rate so far, and twice this rate. Latencies
    are scaled so that the assumed I/Os take up the whole time.
    """
    none, same, double = possible_ends(seen(9000, 9.0), 10.0)
    assert [each.iops for each in (none, same, double)] == [900.0, 1000.0, 1100.0]
    assert {each.duration_s for each in (none, same, double)} == {10.0}
    means_us = [each.latency_mean_us or 0 for each in (none, same, double)]
    assert means_us[1] == pytest.approx(8000.0)
    assert means_us[0] == pytest.approx(8000.0 * 10 / 9)
    assert means_us[2] == pytest.approx(8000.0 * 10 / 11)


def test_what_is_measured_in_full_can_end_in_one_way_only() -> None:
    """A step that was measured completely has only one possible result."""
    whole = seen(10_000)
    assert possible_ends(whole, 10.0) == (whole,)
