"""Of percentiles: where they would lie if other I/Os of the same kind had been measured.

The share of I/Os up to the percentile has an uncertainty that is found as of any share: by counting,
as if I/Os were independent (binomial), and by what the share does from round to round, as slow I/Os come
in bursts. The wider of the two is turned into latencies by the histogram: the interval's ends are the
percentiles that lie that much lower and higher (Woodruff 1952). No distribution is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt

import numpy as np

from tkperf.analysis.uncertainty.estimate import Basis, Uncertainty
from tkperf.analysis.uncertainty.means import spread_of_rounds
from tkperf.analysis.uncertainty.series import Spread
from tkperf.analysis.uncertainty.student import coverage_factor
from tkperf.histogram import (
    BUCKET_LOWER_NS,
    BUCKET_UPPER_NS,
    Histogram,
    IntArray,
    percentile_rank,
)
from tkperf.measurement import REPORTED_PERCENTILES, IoStats


def uncertainties_of_percentiles(
    whole: IoStats, rounds: Sequence[Histogram], basis: Basis
) -> tuple[Uncertainty | None, ...]:
    """In us, of each of ``REPORTED_PERCENTILES``; None of those that were not measured.

    Args:
        whole: the I/Os of all rounds together.
        rounds: their histograms, or of a stream those of its slices.
        basis: what these are.
    """
    histogram = whole.histogram
    total = histogram.total
    if not total:
        return (None,) * len(REPORTED_PERCENTILES)
    ranks = [percentile_rank(percent, total) for percent in REPORTED_PERCENTILES]
    buckets = histogram.indices[np.searchsorted(histogram.counts.cumsum(), ranks, side="left")]
    spreads = _spreads_of_shares(rounds, buckets)
    return tuple(
        None
        if whole.percentile_ns(percent) is None
        else _of_one(whole, percent / 100, spread, basis)
        for percent, spread in zip(REPORTED_PERCENTILES, spreads, strict=True)
    )


def _spreads_of_shares(rounds: Sequence[Histogram], buckets: IntArray) -> tuple[Spread | None, ...]:
    """Of the share of the I/Os below each of the buckets, or up to it, whichever spreads more."""
    filled = [one for one in rounds if one.total]
    if len(filled) < 2:
        return (None,) * len(buckets)
    totals = np.array([one.total for one in filled], dtype=np.float64)
    running = [np.concatenate(([0], one.counts.cumsum())) for one in filled]
    of_edges = []
    for edge in (0, 1):  # a bucket may hold many I/Os: its lower edge and its upper one
        counts = np.array(
            [
                sums[np.searchsorted(one.indices, buckets + edge, side="left")]
                for one, sums in zip(filled, running, strict=True)
            ],
            dtype=np.float64,
        )
        shares = counts.sum(axis=0) / totals.sum()
        residuals = (counts - shares * totals[:, np.newaxis]) / totals.mean()
        of_edges.append([spread_of_rounds(column) for column in residuals.T])
    return tuple(
        max((below, up_to), key=lambda spread: spread.expanded) if below and up_to else None
        for below, up_to in zip(*of_edges, strict=True)
    )


def _of_one(whole: IoStats, share: float, spread: Spread | None, basis: Basis) -> Uncertainty:
    total = whole.histogram.total
    counted = coverage_factor() * sqrt(share * (1 - share) / total)
    by_rounds = spread is not None and spread.expanded > counted
    half = spread.expanded if spread is not None and by_rounds else counted
    degrees = spread.degrees_of_freedom if spread is not None and by_rounds else None
    low = _edge_us(whole, floor((share - half) * total), BUCKET_LOWER_NS)
    high = _edge_us(whole, ceil((share + half) * total), BUCKET_UPPER_NS)
    return Uncertainty(
        standard=None
        if high is None or low is None
        else (high - low) / 2 / (coverage_factor(degrees) if degrees else coverage_factor()),
        low=low,
        high=high,
        degrees_of_freedom=degrees,
        basis=basis if by_rounds else Basis.COUNTS,
        # Counting alone takes I/Os as independent, which in bursts they are not.
        at_least=spread is None or (by_rounds and spread.at_least),
    )


def _edge_us(whole: IoStats, rank: int, edges_ns: IntArray) -> float | None:
    """The edge of the bucket with the I/O of a rank, within what was measured; None: beyond the slowest."""
    histogram = whole.histogram
    if rank > histogram.total:
        return None
    running = histogram.counts.cumsum()
    place = int(np.searchsorted(running, max(rank, 1), side="left"))
    edge = float(edges_ns[histogram.indices[place]])
    if whole.latency_max_ns is not None:
        edge = min(edge, whole.latency_max_ns)
    if whole.latency_min_ns is not None:
        edge = max(edge, whole.latency_min_ns)
    return edge / 1000
