"""Segments do not touch each other and lie inside the range. Their positions depend only on the seed, and all possible
layouts are equally likely.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import run_info
from tkperf.model.errors import UsageError
from tkperf.model.segments import draw_segments
from tkperf.model.units import GIB, KIB, MIB


@given(
    count=st.integers(2, 60),
    length=st.sampled_from([512, 1536, 4 * KIB, 12 * KIB, 8 * MIB]),
    slack=st.integers(0, 40),
    seed=st.integers(0, 2**64 - 1),
)
def test_no_two_touch_and_all_are_inside_and_aligned(count: int, length: int, slack: int, seed: int) -> None:
    """Segments never touch each other. They lie inside the range in ascending order, and are aligned to the largest
    power of two that divides their length, at most 1 MiB.
    """
    step = min(length & -length, MIB)
    within = count * length + (count - 1 + slack) * step
    drawn = draw_segments(count=count, amount_bytes=count * length, within_bytes=within, seed=seed)
    assert len(drawn.starts_bytes) == count
    assert all(a + length < b for a, b in pairwise(drawn.starts_bytes))
    assert all(start % step == 0 for start in drawn.starts_bytes)
    assert drawn.starts_bytes[0] >= 0
    assert drawn.starts_bytes[-1] + length <= within
    assert drawn.amount_bytes == count * length


def test_a_seed_has_the_same_places_for_ever() -> None:
    """A seed leads to the same positions in every version of tkperf, because run files of earlier versions contain the
    seed but not the positions. If the computation of the positions changes, the constant LAYOUT must change too.
    """
    drawn = draw_segments(count=2048, amount_bytes=16 * GIB, within_bytes=192_045_926_912, seed=2_026)
    assert drawn.facts() == {
        "count": 2048,
        "length_bytes": 8 * MIB,
        "within_bytes": 192_045_926_912,
        "seed": 2_026,
        "layout": "tkperf-1",
        "sha256": "ea751c70fce4aadfa0fcef71fbd18ef32839e3a48165c4bc0336d90029fc32a6",
    }
    small = draw_segments(count=3, amount_bytes=12 * KIB, within_bytes=64 * KIB, seed=1)
    assert small.table == "4096 4096\n28672 4096\n57344 4096\n"
    other = draw_segments(count=3, amount_bytes=12 * KIB, within_bytes=64 * KIB, seed=2)
    assert other.check_sum != small.check_sum


def test_every_layout_is_as_likely() -> None:
    """Every layout of segments is equally likely. Each of the six possible layouts occurs in 500 of 3,000 draws, within
    five standard deviations.
    """
    found = Counter(
        draw_segments(count=2, amount_bytes=1024, within_bytes=5 * 512, seed=seed).starts_bytes for seed in range(3000)
    )
    assert len(found) == 6
    assert all(abs(count - 500) < 5 * (500 * 5 / 6) ** 0.5 for count in found.values())


def test_what_does_not_fit_is_refused() -> None:
    """Segments are refused if the range is too small for them and their gaps, even if only one byte is missing."""
    draw_segments(count=4, amount_bytes=16 * KIB, within_bytes=28 * KIB, seed=0)
    with pytest.raises(UsageError) as raised:
        draw_segments(count=4, amount_bytes=16 * KIB, within_bytes=28 * KIB - 1, seed=0)
    assert str(raised.value) == (
        "4 segments of 4.1 kB with gaps between them do not fit into 28.7 kB. Choose fewer segments, "
        "or a smaller amount"
    )


def test_results_say_what_the_range_is_made_of() -> None:
    """For a range that consists of segments, the results contain all facts that are needed to compute the same
    positions again. For a range of one piece, the results contain its start.
    """
    whole = run_info(active_range_length_bytes=16 * GIB, profile={})
    assert whole.active_range_text == "17.2 GB"
    assert whole.active_range_place == "17.2 GB from byte 0"
    drawn = draw_segments(count=4, amount_bytes=16 * KIB, within_bytes=MIB, seed=7)
    pieces = run_info(
        active_range_length_bytes=16 * KIB,
        profile={"active_range": {"segments": 4}},
        device={"segments": drawn.facts(), "layer": "device-mapper (linear)"},
    )
    assert pieces.active_range_text == "16.4 kB in 4 segments"
    assert pieces.active_range_place == (
        "16.4 kB in 4 segments at random places, seed 7 (layout tkperf-1), SHA-256 "
        f"{drawn.check_sum[:16]}, by device-mapper (linear)"
    )
    simulated = run_info(profile={"active_range": {"segments": 4}}, device={})
    assert str(simulated.active_range_place).endswith(" in 4 segments at random places")
    assert run_info(active_range_length_bytes=None).active_range_text is None
