"""Curves over a latency histogram are correct at every edge of every bucket, and all bars have the same width."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import io_stats, latency_lists
from tkperf.model.histogram import BUCKET_LOWER_NS, BUCKET_UPPER_NS, Histogram
from tkperf.model.measurement import IoStats
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES
from tkperf.page.chart import Axis, Bucket, Distribution, Marked, Scale
from tkperf.page.figures.curves import BINS_A_DECADE, exceedance_points, find_buckets
from tkperf.render.charts.axes import draw_value_axis
from tkperf.render.charts.draw import draw
from tkperf.render.charts.frame import TEXT_PX, Spec

WIDTH, HEIGHT = 1000, 300
# 90 I/Os took 101 µs and 10 I/Os took 10 ms. No I/O has a latency in between.
TWO_GROUPS = io_stats([101_000] * 90 + [10_000_000] * 10)


def drawn(buckets: Sequence[Bucket], *, exceedance: bool = False) -> Spec:
    """Return the chart of a distribution without marked values."""
    return draw(Distribution(title="t", buckets=tuple(buckets), marks=(), exceedance=exceedance))


def drawn_curve(spec: Spec) -> list[tuple[float, float]]:
    """Return the points of the line in the SVG of a chart. Each point consists of a response time in µs and a height
    from 0 (bottom) to 1.
    """
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
    """Return the height of the line at a latency. Between the points, the line is straight."""
    for (left, low), (right, high) in pairwise(curve):
        if left <= us <= right:
            return low + (high - low) * (us - left) / (right - left) if right > left else high
    raise AssertionError(f"nothing is drawn at {us} us")


@pytest.mark.parametrize("power", range(1, 12))
def test_bars_have_labels_of_a_few_powers_of_ten(power: int) -> None:
    """The axis of the bars has three to seven labels. The number of I/Os does not matter."""
    buckets = [Bucket(100.0, 101.0, 10**power), Bucket(900.0, 905.0, 1)]
    svg = vl_convert.vegalite_to_svg(drawn(buckets) | {"width": 500})
    texts = re.findall('<text[^>]* opacity="1">([^<]+)</text>', svg)
    labels = texts[texts.index("Response time (µs)") + 1 : texts.index("I/Os (bars)")]
    assert 3 <= len(labels) <= 7


@pytest.mark.parametrize("width", [390, 1000])
def test_names_of_marks_never_run_into_each_other(width: int) -> None:
    """The names of marked latencies in a chart never overlap. The distance between neighbouring names is at least the
    height of a line.
    """
    places = {"ART": 40.0, "99 %": 300.0, "99.9 %": 310.0, "99.99 %": 312.0, "MRT": 900.0}
    marks = tuple(Marked(name, us, name) for name, us in places.items())
    buckets = (Bucket(10.0, 20.0, 1000), Bucket(900.0, 905.0, 1))
    chart = draw(Distribution(title="t", buckets=buckets, marks=marks))
    svg = vl_convert.vegalite_to_svg(chart | {"width": width})
    slanted = r"translate\(([0-9.]+),[^)]*\) rotate\(315\)[^>]*>([^<]+)</text>"
    at = {name: float(x) for x, name in re.findall(slanted, svg)}
    assert list(at) == list(places)
    line_px = TEXT_PX * math.sqrt(2)
    assert all(right - left >= 0.95 * line_px for left, right in pairwise(at.values()))
    assert at["MRT"] < width


def test_confidence_stays_at_its_share_until_slower_ios() -> None:
    """The confidence curve stays at 90 % between 101 µs and 9 ms, because no I/O has a latency in this range."""
    rows = find_buckets(TWO_GROUPS)
    curve = drawn_curve(drawn(rows))
    (_, fast_us), (slow_us, slowest_us) = [row[:2] for row in rows]
    assert curve[0][1] == pytest.approx(0, abs=0.01)
    for us in (float(str(fast_us)), 105, 1_000, 9_000):
        assert height_at(curve, us * 1.0001) == pytest.approx(0.9, abs=0.005)
    assert [us for us, _ in curve[-2:]] == pytest.approx([slow_us, slowest_us], rel=1e-3)
    assert curve[-1][1] == pytest.approx(1, abs=0.005)


def test_exceedance_is_what_confidence_leaves() -> None:
    """The exceedance is 100 % minus the confidence. In this test, 10 % of the I/Os took longer than every value from
    101 µs to 10 ms, so the line is flat in this range.
    """
    rows = find_buckets(TWO_GROUPS)
    spec = drawn(rows, exceedance=True)
    curve = drawn_curve(spec)
    # The axis is logarithmic, from 10 % at the bottom to 100 % at the top.
    assert [height for _, height in curve] == pytest.approx([1, 0, 0], abs=0.01)
    assert [us for us, _ in curve] == pytest.approx([rows[0].lower, rows[0].upper, rows[1].lower], rel=1e-3)


@given(latency_lists)
def test_exceedance_in_numbers(latencies_ns: list[int]) -> None:
    """At each edge of a bucket, the exceedance is exactly the share of the I/Os that took longer. This share is never
    0.
    """
    rows = find_buckets(io_stats(latencies_ns))
    points = list(exceedance_points(rows))
    assert [us for us, _ in points] == [edge for row in rows for edge in row[:2]][:-1]
    for us, percent in points:
        longer = sum(value >= us * 1000 for value in latencies_ns)
        assert percent == pytest.approx(100 * longer / len(latencies_ns))


@settings(max_examples=20)
@given(st.lists(st.integers(min_value=128, max_value=10**9), min_size=2, max_size=60, unique=True))
def test_both_curves_agree(latencies_ns: list[int]) -> None:
    """At every edge, the sum of the drawn confidence and the drawn exceedance is 100 %."""
    rows = find_buckets(io_stats(latencies_ns))
    confidence = drawn_curve(drawn(rows))
    points = list(exceedance_points(rows))
    assert len(confidence) == len(points) + 1
    for (us, height), (edge_us, percent) in zip(confidence, points, strict=False):
        assert us == pytest.approx(edge_us, rel=1e-2)
        assert 100 * height + percent == pytest.approx(100, abs=0.5)


def drawn_bins(rows: Sequence[Bucket]) -> list[tuple[float, float, int]]:
    """Return the bars that Vega-Lite computes from buckets: both edges in µs, and the number of I/Os."""
    histogram: Any = drawn(rows)
    told = "format(datum.lower, '.9e') + ' ' + format(datum.upper, '.9e') + ' ' + datum.count"
    spec = {
        "data": {"values": [row._asdict() for row in rows]},
        "transform": [*histogram["layer"][0]["transform"], {"calculate": told, "as": "told"}],
        "mark": "text",
        "encoding": {"x": {"field": "bin", "type": "quantitative"}, "text": {"field": "told", "type": "nominal"}},
    }
    texts = re.findall(r">([^<>]+e[^<>]+e[^<>]+)</text>", vl_convert.vegalite_to_svg(spec))
    bins = [text.replace("\N{MINUS SIGN}", "-").split() for text in texts]
    return sorted((float(lower), float(upper), int(count)) for lower, upper, count in bins)


def lognormal(median_ns: float, sigma: float, total: int) -> tuple[IoStats, Callable[[float], float]]:
    """Return statistics of the given number of I/Os with a smooth distribution. Also return a function that returns the
    share of I/Os below a time in µs.
    """

    def share_below(ns: Any) -> Any:
        at = np.log(np.maximum(np.asarray(ns, dtype=float), 1e-9) / median_ns) / sigma
        return 0.5 * (1 + np.vectorize(math.erf)(at / math.sqrt(2)))

    shares = share_below(BUCKET_UPPER_NS + 1.0) - share_below(BUCKET_LOWER_NS)
    histogram = Histogram.from_dense(np.rint(total * shares).astype(np.int64))
    return replace(io_stats([1]), histogram=histogram), lambda us: float(share_below(1000 * us))


@settings(max_examples=10, deadline=None)
@given(st.floats(min_value=2_000, max_value=5_000_000), st.floats(min_value=0.2, max_value=1.0))
def test_a_smooth_distribution_has_a_smooth_histogram(median_ns: float, sigma: float) -> None:
    """With a smooth distribution, the number of I/Os in each bar is within 2 % of the number of I/Os between the edges
    of the bar. The bars have no jump at the powers of two, at which the width of fio's buckets doubles.
    """
    total = 10**8
    stats, share_below = lognormal(median_ns, sigma, total)
    bins = drawn_bins(find_buckets(stats))
    for lower, upper, count in bins:
        expected = total * (share_below(upper) - share_below(lower))
        # A bucket contains whole I/Os, so fractions of I/Os far from the median are rounded to zero.
        assert count == pytest.approx(expected, rel=0.02, abs=100)
    steps = [
        here * here / (before * after)
        for (*_, before), (*_, here), (*_, after) in zip(bins, bins[1:], bins[2:], strict=False)
        if min(before, here, after) > total / 1000
    ]
    # On a smooth curve, the height of a bar is close to the geometric mean of its neighbours.
    curvature = math.exp((math.log(10) / BINS_A_DECADE / sigma) ** 2)
    assert all(1 / 1.03 < step / curvature < 1.03 for step in steps)


@settings(max_examples=25, deadline=None)
@given(latency_lists)
def test_bars_have_all_ios_and_equal_widths(latencies_ns: list[int]) -> None:
    """The bars contain all I/Os as whole numbers and have equal widths. A bar contains exactly the I/Os between its
    edges, unless an edge divides a bucket.
    """
    rows = find_buckets(io_stats(latencies_ns))
    bins = drawn_bins(rows)
    assert sum(count for *_, count in bins) == len(latencies_ns)
    for lower, upper, count in bins:
        assert upper / lower == pytest.approx(10 ** (1 / BINS_A_DECADE))
        place = math.log10(lower) * BINS_A_DECADE
        assert place == pytest.approx(round(place), abs=1e-6)
        assert count > 0
        touched = [row for row in rows if row.upper >= lower and row.lower <= upper]
        within = [row for row in touched if row.lower >= lower and row.upper <= upper]
        # At either edge of a bar, half an I/O may be rounded.
        assert sum(row.count for row in within) - 1 <= count
        assert count <= sum(row.count for row in touched)


@given(st.lists(st.integers(min_value=200, max_value=10**9), min_size=1, max_size=400))
def test_curves_agree_with_the_percentiles_of_the_tables(latencies_ns: list[int]) -> None:
    """The curves agree with the percentiles in the tables. In the bucket of percentile p, the confidence reaches p %
    and the exceedance falls to 100 % minus p %.
    """
    stats = io_stats(latencies_ns)
    rows = find_buckets(stats)
    beyond = dict(exceedance_points(rows))
    for percent in REPORTED_PERCENTILES:
        value_ns = stats.percentile_ns(percent)
        if value_ns is None:
            continue
        (bucket,) = [row for row in rows if row.lower <= value_ns / 1000 < row.upper]
        longer_before = beyond[bucket.lower]
        longer_after = beyond.get(bucket.upper, 0.0)
        assert longer_after <= 100 - percent + 1e-9
        assert longer_before > 100 - percent - 1e-9
        assert 100 - longer_before <= percent + 1e-9 <= 100 - longer_after + 2e-9


@pytest.mark.parametrize(
    ("scale", "values_us", "title", "label"),
    [
        (Scale.LINEAR, (20.0, 900.0), "Latency (ms)", "datum.value / 1000"),
        (Scale.LINEAR, (20.0, 400.0), "Latency (µs)", "datum.value"),
        (Scale.LINEAR, (2e6, 9e6), "Latency (s)", "datum.value / 1e+06"),
        (Scale.LOG, (2000.0, 400_000.0), "Latency (ms)", "datum.value / 1000"),
        (Scale.LOG, (20.0, 400_000.0), "Latency", "' ms'"),
        (Scale.LOG, (), "Latency", "' ms'"),
    ],
)
def test_an_axis_of_latencies_has_the_unit_of_its_ticks(
    scale: Scale, values_us: tuple[float, ...], title: str, label: str
) -> None:
    """An axis of latencies has a unit that suits all its ticks. If no unit suits all ticks, or if the chart receives
    its data only in the browser, each tick has its own unit.
    """
    axis: Any = draw_value_axis(Axis(title="Latency (µs)", scale=scale), values_us)
    assert axis["title"] == title
    assert label in axis["axis"]["labelExpr"]
