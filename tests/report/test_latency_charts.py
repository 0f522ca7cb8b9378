"""Curves over a latency histogram, as they are drawn: right at every edge of every bucket."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import io_stats, latency_lists
from tkperf.report.charts.latency import (
    exceedance,
    exceedance_points,
    histogram_rows,
    response_time_histogram,
)
from tkperf.report.charts.vega import Spec

WIDTH, HEIGHT = 1000, 300
# 90 I/Os of 101 us and 10 of 10 ms: nothing took longer than the one and less than the other.
TWO_GROUPS = io_stats([101_000] * 90 + [10_000_000] * 10)


def drawn_curve(spec: Spec) -> list[tuple[float, float]]:
    """The points of a chart's line in its SVG: response time in us, place from 0 (bottom) to 1."""
    svg = vl_convert.vegalite_to_svg(spec | {"width": WIDTH, "height": HEIGHT})
    (path,) = re.findall(r'aria-roledescription="line mark" d="([^"]*)"', svg)
    assert set(re.findall("[A-Z]", path)) <= {"M", "L"}
    low, high = (math.log10(each) for each in x_domain(spec))
    places = [[float(number) for number in pair.split(",")] for pair in re.split("[ML]", path)[1:]]
    return [(10 ** (low + (high - low) * x / WIDTH), 1 - y / HEIGHT) for x, y in places]


def x_domain(spec: Any) -> tuple[float, float]:
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    return low, high


def height_at(curve: list[tuple[float, float]], us: float) -> float:
    """Of the straight lines between the points."""
    for (left, low), (right, high) in pairwise(curve):
        if left <= us <= right:
            return low + (high - low) * (us - left) / (right - left) if right > left else high
    raise AssertionError(f"nothing is drawn at {us} us")


def test_confidence_stays_at_its_share_until_slower_ios() -> None:
    """90 % took no longer than 101 us, and no more took no longer than 9 ms."""
    rows = histogram_rows(TWO_GROUPS)
    curve = drawn_curve(response_time_histogram(rows, [], "t"))
    (_, fast_us), (slow_us, slowest_us) = [(row["lower"], row["upper"]) for row in rows]
    assert curve[0][1] == pytest.approx(0, abs=0.01)
    for us in (float(str(fast_us)), 105, 1_000, 9_000):
        assert height_at(curve, us * 1.0001) == pytest.approx(0.9, abs=0.005)
    assert [us for us, _ in curve[-2:]] == pytest.approx([slow_us, slowest_us], rel=1e-3)
    assert curve[-1][1] == pytest.approx(1, abs=0.005)


def test_exceedance_is_what_confidence_leaves() -> None:
    """10 % took longer than anything from 101 us to 10 ms: a level line, not a point."""
    rows = histogram_rows(TWO_GROUPS)
    spec = exceedance(rows, [], "t")
    curve = drawn_curve(spec)
    # Logarithmic from 10 % at the bottom to 100 % at the top.
    assert [height for _, height in curve] == pytest.approx([1, 0, 0], abs=0.01)
    assert [us for us, _ in curve] == pytest.approx(
        [rows[0]["lower"], rows[0]["upper"], rows[1]["lower"]], rel=1e-3
    )


@given(latency_lists)
def test_exceedance_in_numbers(latencies_ns: list[int]) -> None:
    """At each edge of a bucket exactly the share of the I/Os that took longer, and never 0."""
    rows = histogram_rows(io_stats(latencies_ns))
    points = list(exceedance_points((row["lower"], row["upper"], row["count"]) for row in rows))  # type: ignore[misc]
    assert [us for us, _ in points] == [row[edge] for row in rows for edge in ("lower", "upper")][
        :-1
    ]
    for us, percent in points:
        longer = sum(value >= us * 1000 for value in latencies_ns)
        assert percent == pytest.approx(100 * longer / len(latencies_ns))


@settings(max_examples=20)
@given(st.lists(st.integers(min_value=128, max_value=10**9), min_size=2, max_size=60, unique=True))
def test_both_curves_agree(latencies_ns: list[int]) -> None:
    """What is drawn as confidence and as exceedance adds up to all I/Os at every edge."""
    rows = histogram_rows(io_stats(latencies_ns))
    confidence = drawn_curve(response_time_histogram(rows, [], "t"))
    points = list(exceedance_points((row["lower"], row["upper"], row["count"]) for row in rows))  # type: ignore[misc]
    assert len(confidence) == len(points) + 1
    for (us, height), (edge_us, percent) in zip(confidence, points, strict=False):
        assert us == pytest.approx(edge_us, rel=1e-2)
        assert 100 * height + percent == pytest.approx(100, abs=0.5)
