"""Looking ahead by replaying procedures with imagined answers."""

from __future__ import annotations

import pytest

from tkperf.phases import Answer, Phase, Purge, Round
from tkperf.plan import Case, _Imagination, following_phases, forecast, phases_of
from tkperf.procedures import SSD_TESTS
from tkperf.profiles import load_profile

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
def test_the_time_budget_is_that_of_the_specification(
    test: str, shortest_s: float, longest_s: float
) -> None:
    """PTS.md 5: IOPS 280-1,400 min, TP 10-50 min a size, LAT 45-225 + 20 min, WSAT 121 min-24 h."""
    profile = load_profile("pts-e-1.1")
    for case, expected_s in ((Case.BEST, shortest_s), (Case.WORST, longest_s)):
        procedure = SSD_TESTS[test].procedure(profile, GIB)
        found = forecast(procedure, (), case, active_range_bytes=GIB)
        assert found.duration_s == pytest.approx(expected_s)


def test_what_follows_is_certain_until_steady_state_is_possible() -> None:
    """Rounds 1-4 are always followed by another; from the fifth on the verdict decides."""
    profile, test = load_profile("quick"), SSD_TESTS["iops"]
    imagine = _Imagination(Case.BEST, GIB)
    answers: list[Answer] = []
    certain: dict[int, bool] = {}

    def answer(phase: Phase) -> Answer:
        if isinstance(phase, Round):
            following, *others = following_phases(
                lambda: test.procedure(profile, GIB), answers, active_range_bytes=GIB
            )
            assert isinstance(following, Round)
            assert following.number == phase.number + 1
            assert others in ([], [None])
            certain[phase.number] = not others
        answers.append(imagine(phase))
        return answers[-1]

    list(phases_of(test.procedure(profile, GIB), answer))
    assert certain == {1: True, 2: True, 3: True, 4: True, 5: False}


def test_after_the_last_phase_nothing_follows() -> None:
    """The end of a test is seen ahead, too."""
    profile, test = load_profile("tkperf-2.2"), SSD_TESTS["writesat"]
    answers: list[Answer] = [None]
    imagine = _Imagination(Case.WORST, GIB)
    phases = list(phases_of(test.procedure(profile, GIB), imagine))
    assert isinstance(phases[0], Purge)
    answers += [imagine(phase) for phase in phases[1:-1]]
    following = following_phases(
        lambda: test.procedure(profile, GIB), answers, active_range_bytes=GIB
    )
    assert following == (None,)
