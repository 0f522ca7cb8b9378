"""Latency heat maps count each I/O once and leave periods without measurements empty."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tkperf.analysis.details import ON_PAGE, HeatMapSize, LatencyBands, Piece, count_bands, group_pieces
from tkperf.model.histogram import BUCKET_LOWER_NS, BUCKET_UPPER_NS, BUCKETS, Histogram, bands_of_buckets, coarsen
from tkperf.model.measurement import IoStats
from tkperf.model.quantity import Direction

SMALL = HeatMapSize(columns=12, bands=12)
buckets = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 10**9), max_size=6)
gaps_s = st.sampled_from([0.0, 0.0, 0.0, 0.004, 3.0, 400.0])
streams = st.lists(st.tuples(gaps_s, st.sampled_from([0.9, 1.0, 61.0]), buckets, buckets), min_size=1, max_size=60)


def histogram_of(counts: dict[int, int]) -> Histogram:
    return Histogram(sorted(counts), [counts[bucket] for bucket in sorted(counts)])


def stats_of(counts: dict[int, int]) -> IoStats:
    histogram = histogram_of(counts)
    return IoStats(ios=histogram.total, bytes=4096 * histogram.total, histogram=histogram)


def pieces_of(stream: list[tuple[float, float, dict[int, int], dict[int, int]]]) -> list[Piece]:
    """Return consecutive seconds or slices. Each of them begins after the given gap."""
    pieces, at_s = [], 0.0
    for gap_s, duration_s, read, write in stream:
        at_s += gap_s
        pieces.append(Piece(start_s=at_s, duration_s=duration_s, read=stats_of(read), write=stats_of(write)))
        at_s += duration_s
    return pieces


def find_column(bands: LatencyBands, piece: Piece) -> int:
    (found,) = (
        number
        for number, (start, end) in enumerate(zip(bands.starts_s, bands.ends_s, strict=True))
        if start <= piece.start_s < end
    )
    return found


@given(st.integers(1, 12))
def test_each_bucket_is_in_one_band_whether_it_is_fine_or_coarse(per_decade: int) -> None:
    """The bands cover all buckets. Each bucket lies within one band. If buckets are merged into a coarse group, the
    group lies within the same band.
    """
    bands, edges_ns = bands_of_buckets(per_decade)
    assert len(bands) == BUCKETS
    assert (edges_ns[bands] <= BUCKET_LOWER_NS).all()
    assert (edges_ns[bands + 1] > BUCKET_UPPER_NS).all()
    for bucket in range(BUCKETS):
        (coarse,) = coarsen(Histogram([bucket], [1])).indices
        assert bands[coarse] == bands[bucket]


@given(streams, st.sampled_from(Direction))
def test_every_io_is_counted_once_in_its_time_and_band(
    stream: list[tuple[float, float, dict[int, int], dict[int, int]]], direction: Direction
) -> None:
    """The counts of the bands are equal to a direct count of all I/Os by time and bucket."""
    pieces = pieces_of(stream)
    bands = count_bands(pieces, direction, SMALL)
    if bands is None:
        total = sum(piece.histogram(direction).total for piece in pieces)
        assert not total or pieces[-1].end_s < 20 or len(group_pieces(pieces, SMALL.columns)) < 8
        return
    expected: Counter[tuple[int, int]] = Counter()
    for piece in pieces:
        for lower_ns, upper_ns, count in piece.histogram(direction).buckets():
            (band,) = (
                number
                for number, edge_us in enumerate(bands.edges_us[:-1])
                if edge_us * 1000 <= lower_ns and upper_ns < bands.edges_us[number + 1] * 1000
            )
            expected[find_column(bands, piece), band] += count
    counted = {(column, band): ios for column, of in enumerate(bands.counts) for band, ios in enumerate(of) if ios}
    assert counted == expected
    assert len(bands.edges_us) - 1 <= SMALL.bands


@given(streams)
def test_columns_cover_what_was_measured_and_no_long_gap(
    stream: list[tuple[float, float, dict[int, int], dict[int, int]]],
) -> None:
    """Columns do not overlap. A period without measurements that is longer than a column belongs to no column."""
    pieces = pieces_of([*stream, (0.0, 1.0, {500: 1}, {})])
    bands = count_bands(pieces, Direction.ALL, SMALL)
    if bands is None:
        return
    assert all(end <= start for end, start in zip(bands.ends_s, bands.starts_s[1:], strict=False))
    column_s = pieces[-1].end_s / SMALL.columns
    for before, after in pairwise(pieces):
        if after.start_s - before.end_s > column_s:
            assert before.end_s in bands.ends_s
            assert after.start_s in bands.starts_s


def test_a_day_has_few_columns_and_seconds_and_slices_count_alike() -> None:
    """The heat map of a day of slices has no more columns than a page can show. Seconds with coarse buckets lead to the
    same counts as slices.
    """
    of_slice = {600: 10**6, 700: 20, 900: 3}
    slices = pieces_of([(0.0, 60.0, {}, of_slice)] * 1440)
    bands = count_bands(slices, Direction.WRITE, ON_PAGE)
    assert bands is not None
    assert len(bands.counts) == 96
    assert np.isclose(bands.column_s, 900)
    assert sum(map(sum, bands.counts)) == 1440 * sum(of_slice.values())
    coarse = [
        Piece(
            start_s=piece.start_s,
            duration_s=60.0,
            read=IoStats(),
            write=IoStats(ios=piece.write.ios, bytes=0, histogram=coarsen(piece.write.histogram)),
        )
        for piece in slices
    ]
    assert count_bands(coarse, Direction.WRITE, ON_PAGE) == bands


def test_short_streams_and_streams_without_histograms_have_no_heat_map() -> None:
    """A stream of less than 20 s has no heat map, because the map would show no change over time. A stream without
    histograms, for example an imported one, has no heat map either.
    """
    assert count_bands(pieces_of([(0.0, 1.0, {}, {500: 9})] * 19), Direction.ALL, ON_PAGE) is None
    assert count_bands(pieces_of([(0.0, 60.0, {}, {})] * 50), Direction.ALL, ON_PAGE) is None
    assert count_bands([], Direction.ALL, ON_PAGE) is None
