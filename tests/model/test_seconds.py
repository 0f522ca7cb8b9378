"""The seconds of a long run are reduced to the points of a chart without hiding a spike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.model.measurement import Seconds, join, places_of_extremes, reduce_to_columns

values = st.lists(st.one_of(st.floats(min_value=0, max_value=1e6), st.just(float("nan"))), max_size=300)


@given(values=values, columns=st.integers(min_value=1, max_value=50))
def test_extremes_survive_any_reduction(values: list[float], columns: int) -> None:
    """A reduction returns at most the requested number of columns. The lowest and the highest second are in the
    result.
    """
    measured = np.array(values, dtype=float)
    reduced = reduce_to_columns(np.arange(measured.size, dtype=float), measured, columns)
    assert reduced.at_s.size <= max(columns, 0)
    known = measured[~np.isnan(measured)]
    assert (reduced.at_s.size == 0) == (known.size == 0)
    if known.size:
        assert reduced.low.min() == known.min()
        assert reduced.high.max() == known.max()
        slack = 1e-9 * known.max()
        assert np.all(reduced.low <= reduced.mean + slack)
        assert np.all(reduced.mean <= reduced.high + slack)


def test_few_samples_are_kept_as_they_are() -> None:
    """If the number of samples does not exceed the number of columns, the samples are kept unchanged. A missing sample
    is left out.
    """
    at_s, measured = np.array([0.0, 1.0, 2.0]), np.array([5.0, np.nan, 7.0])
    reduced = reduce_to_columns(at_s, measured, 3)
    assert reduced.at_s.tolist() == [0, 2]
    assert reduced.low.tolist() == reduced.mean.tolist() == reduced.high.tolist() == [5, 7]


def test_a_column_is_the_mean_of_its_samples() -> None:
    """A column contains the mean and the greatest value of its samples."""
    reduced = reduce_to_columns(np.arange(4.0), np.array([1.0, 3.0, 5.0, 100.0]), 2)
    assert reduced.at_s.tolist() == [0, 2]
    assert reduced.mean.tolist() == [2, 52.5]
    assert reduced.high.tolist() == [3, 100]


def test_samples_may_come_in_any_order() -> None:
    """Samples may be in any order, because a damaged file must not prevent a report. At least one column must be
    requested.
    """
    reduced = reduce_to_columns(np.array([3.0, 0.0]), np.array([1.0, 2.0]), 2)
    assert reduced.at_s.tolist() == [0, 3]
    assert reduced.high.tolist() == [2, 1]
    with pytest.raises(ValueError, match="column"):
        reduce_to_columns(np.array([1.0]), np.array([1.0]), 0)


def test_pieces_are_joined_at_their_starts() -> None:
    """Pieces of a series are joined at their given start times. Joining no pieces returns an empty series."""
    one = Seconds(
        start_s=np.array([0.0, 1.0]),
        duration_s=np.ones(2),
        iops=np.array([1.0, 2.0]),
        megabytes_per_s=np.zeros(2),
        latency_mean_us=np.zeros(2),
        latency_max_us=np.zeros(2),
    )
    both = join([one, one], [0.0, 60.0])
    assert both.start_s.tolist() == [0, 1, 60, 61]
    assert both.iops.tolist() == [1, 2, 1, 2]
    assert both.end_s == 62
    assert len(join([], [])) == 0
    assert join([], []).end_s == 0


def test_of_many_values_the_extremes_of_neighbours_are_left() -> None:
    """If many values are reduced, at most the requested number of values is returned, in the original order. The result
    contains the least and the greatest value.
    """
    chance = np.random.default_rng(3)
    values = chance.normal(size=4320).tolist()
    places = places_of_extremes(values, 1500)
    assert len(places) <= 1500
    assert places == sorted(set(places))
    assert {0, 4319, values.index(min(values)), values.index(max(values))} <= set(places)
    # A dip of a single value is kept at any position.
    for dip in range(0, 4320, 97):
        dipped = [*values[:dip], -99.0, *values[dip + 1 :]]
        assert dip in places_of_extremes(dipped, 1500)
    assert places_of_extremes(values[:1500], 1500) == list(range(1500))
    with pytest.raises(ValueError, match="must be 6 or more"):
        places_of_extremes(values, 5)
