"""Median, spread, outliers and trends of a few values that may contain outliers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.analysis.comparing.arrangements import OUTLIER_SCORE, describe_distribution, find_trend

values = st.lists(st.floats(min_value=1, max_value=1e6), min_size=6, max_size=12)


def test_the_modified_z_score_is_iglewicz_and_hoaglins() -> None:
    """The modified z-score is 0.6745 (x - median) / MAD, according to Iglewicz and Hoaglin. The expected median of
    10.025 and MAD of 0.05 were calculated by hand.
    """
    found = describe_distribution([10.0, 10.1, 9.9, 10.0, 10.05, 12.0])
    assert found.median == pytest.approx(10.025)
    assert found.spread == pytest.approx(1.4826 * 0.05)
    assert found.scores is not None
    assert found.scores[5] == pytest.approx(0.6745 * 1.975 / 0.05, rel=1e-4)
    assert [abs(score) > OUTLIER_SCORE for score in found.scores] == [False] * 5 + [True]


def test_where_more_than_half_are_alike_the_mean_stands_for_mad() -> None:
    """If more than half of the values are equal, the mean deviation replaces the MAD. A MAD of 0 would make every other
    value an outlier. Values that are all equal contain no outlier.
    """
    assert describe_distribution([1, 1, 1, 1, 2]).scores == pytest.approx((0, 0, 0, 0, 1 / (1.2533 * 0.2)))
    assert describe_distribution([3.0] * 6).scores == (0.0,) * 6


def test_of_few_runs_nothing_says_which_one_strays() -> None:
    assert describe_distribution([1, 1, 1, 9]).scores is None
    assert describe_distribution([1, 1, 1, 1, 9]).scores is not None


@pytest.mark.parametrize(
    ("count", "low", "high"), [(5, None, None), (6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (15, 4, 12)]
)
def test_the_interval_of_a_median_is_of_order_statistics(count: int, low: int | None, high: int | None) -> None:
    """The interval of a median uses the ranks in Conover's tables. Five values have no interval, because 2 / 2^5 is
    more than 5 %.
    """
    found = describe_distribution(list(range(1, count + 1)))
    assert (found.median_low, found.median_high) == (low, high)


def test_theil_and_sens_slope_of_hollander_and_wolfe() -> None:
    """The slope is the median of the slopes of all pairs. Example 9.1 of Hollander and Wolfe (cloud seeding) has five
    values, so the interval contains all ten slopes.
    """
    trend = find_trend([1, 2, 3, 4, 5], [1.26, 1.27, 1.12, 1.16, 1.03])
    assert trend is not None
    assert trend.slope == pytest.approx((-0.0575 - 0.055) / 2)
    assert (trend.low, trend.high) == pytest.approx((-0.15, 0.04))
    assert trend.beyond_noise is False


def test_the_interval_of_a_slope_leaves_out_what_kendall_does() -> None:
    """The interval of a slope leaves out as many slopes at each end as Kendall's S requires. With ten values and the
    critical value 23, the interval leaves out 11 of the 45 slopes at each end.
    """
    rng = np.random.default_rng(5)
    y = [float(value) for value in rng.normal(size=10)]
    slopes = sorted((y[j] - y[i]) / (j - i) for i in range(10) for j in range(i + 1, 10))
    trend = find_trend(list(range(10)), y)
    assert trend is not None
    assert (trend.low, trend.high) == (slopes[11], slopes[-12])


def test_four_values_and_values_of_one_time_have_no_interval() -> None:
    four = find_trend([1, 2, 3, 4], [1, 2, 3, 4])
    assert four is not None
    assert (four.slope, four.low, four.beyond_noise) == (1.0, None, None)
    tied = find_trend([1, 2, 3, 4, 5, 5], [1, 2, 3, 4, 5, 5])
    assert tied is not None
    assert (tied.slope, tied.low) == (1.0, None)
    assert find_trend([1, 1, 1], [1, 2, 3]) is None


def test_intervals_of_slopes_cover_as_they_say() -> None:
    """The interval of a slope contains the true slope in at least 95 % of 600 seeded series with heavy tails."""
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(600):
        places = [float(place) for place in range(8)]
        noise = rng.standard_t(2, size=8)
        trend = find_trend(places, [2 * place + float(e) for place, e in zip(places, noise, strict=True)])
        assert trend is not None
        assert trend.low is not None
        assert trend.high is not None
        covered += trend.low <= 2 <= trend.high
    assert covered / 600 >= 0.95


@given(values)
def test_scaling_scales_all_but_scores(series: list[float]) -> None:
    """If all values are multiplied by a factor, for example to change the unit, neither the outliers nor the trend
    change.
    """
    plain, scaled = describe_distribution(series), describe_distribution([8 * v for v in series])
    assert scaled.median == pytest.approx(8 * plain.median)
    assert scaled.scores == pytest.approx(plain.scores, rel=1e-6, abs=1e-6)
    places = [float(place) for place in range(len(series))]
    one, other = find_trend(places, series), find_trend(places, [8 * v for v in series])
    assert one is not None
    assert other is not None
    assert other.slope == pytest.approx(8 * one.slope)
    assert other.beyond_noise == one.beyond_noise
