"""Comparisons of two measurements of a drive's reads: one while no other drive is read, and one while other drives are
also read.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.analysis.sharing.groups import TOLERATED_LOSS, compare_reads
from tkperf.model.sharing import ReadsState


def rates(mean: float, strays: float = 0.01, seconds: int = 10, seed: int = 1) -> list[float]:
    chance = np.random.default_rng(seed)
    return [float(rate) for rate in chance.normal(mean, strays * mean, seconds)]


@pytest.mark.parametrize(
    ("together", "state"),
    [(1.0, ReadsState.NOT_SLOWED), (0.5, ReadsState.SLOWED), (0.9, ReadsState.SLOWED), (1.2, ReadsState.NOT_SLOWED)],
)
def test_drives_are_slowed_or_not(together: float, state: ReadsState) -> None:
    """The whole interval of the ratio, and not only its middle, decides whether a drive is slowed."""
    compared = compare_reads("sdb", rates(1e5, 0.003), rates(together * 1e5, 0.003, seed=2))
    assert compared.state is state
    assert compared.ratio == pytest.approx(together, rel=0.01)
    assert compared.low is not None
    assert compared.high is not None
    assert compared.low < compared.ratio < compared.high  # type: ignore[operator]


def test_uneven_reads_decide_nothing() -> None:
    """If rates vary by more than the limit, the comparison cannot decide whether a drive is slowed."""
    compared = compare_reads("sdb", rates(1e5, 0.3), rates(0.97e5, 0.3, seed=2))
    assert compared.state is ReadsState.NOT_KNOWN


def test_the_same_in_every_second() -> None:
    """If the rates do not vary, the ratio is exact. The comparison then leads to a decision even if the ratio equals
    the limit.
    """
    assert compare_reads("a", [100.0] * 10, [100.0] * 10).state is ReadsState.NOT_SLOWED
    exact = compare_reads("a", [100.0] * 10, [97.0] * 10)
    assert (exact.state, exact.ratio) == (ReadsState.SLOWED, 0.97)
    assert exact.low == pytest.approx(0.97)


@pytest.mark.parametrize(
    ("alone", "together"), [((), ()), ((1.0,) * 3, (1.0,) * 3), ((0.0,) * 10, (5.0,) * 10), ((5.0,) * 10, ())]
)
def test_too_little_to_compare(alone: tuple[float, ...], together: tuple[float, ...]) -> None:
    """A comparison needs at least four seconds of reads in both measurements, and the drive must complete reads while
    no other drive is read. Otherwise the state is unknown.
    """
    assert compare_reads("a", alone, together).state is ReadsState.NOT_KNOWN


def test_a_drive_that_stalls_is_slowed() -> None:
    """A drive that returns no data while the other drives are read counts as slowed. The ratio for this drive is 0 and
    has no interval.
    """
    compared = compare_reads("a", [100.0] * 10, [0.0] * 10)
    assert (compared.state, compared.ratio, compared.low) == (ReadsState.SLOWED, 0.0, None)


@given(st.floats(0.001, 1000), st.floats(0.3, 1.5))
def test_the_unit_does_not_matter(scale: float, together: float) -> None:
    """A comparison of reads does not depend on the unit. If all rates are multiplied by the same factor, the state and
    the ratio do not change. I/Os and bytes therefore lead to the same result.
    """
    alone, now = rates(1000, 0.02), rates(1000 * together, 0.02, seed=3)
    one = compare_reads("a", alone, now)
    other = compare_reads("a", [scale * r for r in alone], [scale * r for r in now])
    assert other.ratio == pytest.approx(one.ratio)
    limit = 1 - TOLERATED_LOSS
    if min(abs((one.high or 0) - limit), abs((one.low or 0) - limit)) > 1e-6:
        assert other.state is one.state
