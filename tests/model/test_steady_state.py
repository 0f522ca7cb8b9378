"""The steady-state rule of the PTS (docs/explanation/method.md). The tests contain known results and general laws."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tkperf.model.steady_state import Criteria, SteadyStateVerdict, fit_line, judge

values = st.lists(st.floats(min_value=1.0, max_value=1e7, allow_nan=False), min_size=5, max_size=5)


def judge_values(window: Sequence[float], first_round: int = 1) -> SteadyStateVerdict:
    rounds = range(first_round, first_round + len(window))
    return judge(list(rounds), list(window), tracking="t", unit="u")


@pytest.mark.parametrize(
    ("window", "average"),
    [
        ([66737, 69316, 71040, 72609, 72388], 70418),
        ([507174, 507335, 507361, 507352, 507344], 507313.2),
        ([23965.6, 24943.3, 24775.3, 24517.0, 24171.8], 24474.6),
        ([135.079519, 119.728931, 133.018428, 144.784756, 136.254918], 133.7733104),
    ],
)
def test_windows_of_published_reports_are_steady(window: list[float], average: float) -> None:
    """If a published report of TKperf or SNIA calls a window steady, the window is also steady in tkperf, with the same
    average.
    """
    verdict = judge_values(window)
    assert verdict.reached
    assert verdict.average == pytest.approx(average, abs=0.05)


def test_slope_excursion_is_the_fitted_range_over_the_window() -> None:
    """The slope excursion is the range of the fitted line over the window. A line that falls by 6.4 per round has a
    slope excursion of 25.6 over five rounds.
    """
    window = [-6.4 * x + 11746 for x in range(1, 6)]
    verdict = judge_values(window)
    assert verdict.slope_excursion == pytest.approx(25.6)
    assert verdict.fit is not None
    assert verdict.fit.slope == pytest.approx(-6.4)
    assert verdict.fit.intercept == pytest.approx(11746)
    assert verdict.fit.correlation == pytest.approx(-1.0)
    assert verdict.allowed_data_excursion == pytest.approx(0.20 * verdict.average)
    assert verdict.allowed_slope_excursion == pytest.approx(0.10 * verdict.average)


def test_fewer_rounds_than_a_window_are_never_steady() -> None:
    """Four equal rounds are not steady, because a window consists of five rounds."""
    verdict = judge_values([100.0] * 4)
    assert not verdict.reached
    assert verdict.reason == "4 of the 5 rounds a window needs"


def test_only_the_last_five_rounds_count() -> None:
    """Only the last five rounds count, so a large variation in earlier rounds does not matter."""
    verdict = judge_values([1.0, 9000.0, *[100.0] * 5])
    assert verdict.reached
    assert verdict.rounds == (3, 4, 5, 6, 7)


def test_limits_are_inclusive() -> None:
    """The limits are inclusive. A range of exactly 20 % and a slope of exactly 10 % of the average are accepted
    (docs/explanation/method.md).
    """
    # These limits are powers of two, so every step of the computation is exact.
    criteria = Criteria(max_data_excursion=0.25, max_slope_excursion=1.0)
    spread = [98.0, 112.0, 112.0, 112.0, 126.0]  # The average is 112, and the range is 28 = 0.25 x 112.
    assert judge(range(1, 6), spread, tracking="", unit="", criteria=criteria).reached
    exact = Criteria(max_data_excursion=0.5, max_slope_excursion=0.25)
    ramp = [56.0, 60.0, 64.0, 68.0, 72.0]  # The average is 64, and the slope excursion is 16 = 0.25 x 64.
    assert judge(range(1, 6), ramp, tracking="", unit="", criteria=exact).reached


@pytest.mark.parametrize(
    ("window", "says"),
    [
        ([100, 100, 100, 100, 126], "data excursion"),
        ([94, 97, 100, 103, 106], "slope excursion"),
        ([0, 0, 0, 0, 0], "nothing was measured"),
        ([100, 100, math.nan, 100, 100], "nothing was measured"),
    ],
)
def test_a_refusal_says_which_rule_failed(window: list[float], says: str) -> None:
    """If the verdict is "not steady", the verdict names the rule that failed. A device without I/O is never steady."""
    verdict = judge_values(window)
    assert not verdict.reached
    assert says in verdict.reason


@given(values, st.integers(min_value=-40, max_value=40))
def test_scaling_never_changes_a_verdict(window: list[float], exponent: int) -> None:
    """The rule is relative. If all values are in another unit (in this test multiplied by a power of two), the verdict
    does not change.
    """
    scaled = [math.ldexp(value, exponent) for value in window]
    assert judge_values(window).reached == judge_values(scaled).reached


@given(values, st.integers(min_value=2, max_value=1000))
def test_round_numbers_never_change_a_verdict(window: list[float], first: int) -> None:
    """The number of the first round does not influence the verdict."""
    a, b = judge_values(window), judge_values(window, first)
    assume(a.slope_excursion is not None)
    limit = a.allowed_slope_excursion
    assume(a.slope_excursion is not None and abs(a.slope_excursion - limit) > 1e-6 * limit)
    assert a.reached == b.reached


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=2, max_size=25))
def test_the_fit_is_the_least_squares_line(ys: list[float]) -> None:
    """The fitted line is the least-squares line. Its residuals sum to zero and are orthogonal to the numbers of the
    rounds.
    """
    xs = list(range(1, len(ys) + 1))
    fit = fit_line(xs, ys)
    assert fit is not None
    residuals = [y - fit.at(x) for x, y in zip(xs, ys, strict=True)]
    scale = 1 + max(abs(y) for y in ys)
    assert sum(residuals) == pytest.approx(0, abs=1e-6 * scale * len(ys))
    products = [x * residual for x, residual in zip(xs, residuals, strict=True)]
    assert sum(products) == pytest.approx(0, abs=1e-5 * scale * len(ys) ** 2)
    spread = max(ys) - min(ys)
    if spread > 1e-100:  # the squares of smaller values are subnormal numbers, which lose digits
        assert fit.correlation is None or abs(fit.correlation) <= 1 + 1e-9


def test_an_empty_or_uneven_series_is_a_mistake_of_the_caller() -> None:
    """The function judge() requires one value for each round and at least one round."""
    with pytest.raises(ValueError, match="one value for each round"):
        judge([], [], tracking="", unit="")
    with pytest.raises(ValueError, match="one value for each round"):
        judge([1, 2], [1.0], tracking="", unit="")
