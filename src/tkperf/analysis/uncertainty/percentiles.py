"""Of percentiles: where they would lie if other I/Os of the same kind had been measured.

The share of I/Os up to the percentile has an uncertainty that is found as of any share: by counting,
as if I/Os were independent (binomial), and by what the share does from round to round, as slow I/Os come
in bursts. A burst is one event however many I/Os it has: of those that are rarer than rounds, a window has none or
one, which tells little of how many follow. Intervals beyond ``SUREST_PERCENT`` are therefore lower limits. The wider of the two is turned into latencies by the histogram: the interval's ends are the
percentiles that lie that much lower and higher (Woodruff 1952). No distribution is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from tkperf.analysis.uncertainty.estimate import Basis, Interval, Uncertainty
from tkperf.analysis.uncertainty.means import spread_of_rounds
from tkperf.analysis.uncertainty.series import PREDICTED, Spread
from tkperf.analysis.uncertainty.student import coverage_factor
from tkperf.model.histogram import (
    BUCKET_LOWER_NS,
    BUCKET_UPPER_NS,
    REPORTED_PERCENTILES,
    Histogram,
    IntArray,
    has_percentile,
    percentile_rank,
)
from tkperf.model.measurement import IoStats
from tkperf.model.seconds import FloatArray

SUREST_PERCENT = 99.0
"""A burst that moves a percentile up to this one has a percent of a window's I/Os; slow as they are, that takes long."""


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
    measured = [percent for percent in REPORTED_PERCENTILES if has_percentile(percent, total)]
    if not measured:
        return (None,) * len(REPORTED_PERCENTILES)
    running = histogram.counts.cumsum()
    ranks = [percentile_rank(percent, total) for percent in measured]
    buckets = histogram.indices[np.searchsorted(running, ranks, side="left")]
    shares = np.array(measured) / 100
    of_level = coverage_factor() * np.sqrt(shares * (1 - shares) / total)
    counted = PREDICTED * of_level
    spreads = _spreads_of_shares(rounds, buckets)
    by_rounds = [
        spread is not None and spread.expanded > half
        for spread, half in zip(spreads, counted, strict=True)
    ]
    halves = [spread.expanded if spread else 0.0 for spread in spreads]
    halves_of_level = [spread.expanded_of_level if spread else 0.0 for spread in spreads]
    following = _intervals(whole, running, shares, np.maximum(counted, halves))
    levels = _intervals(whole, running, shares, np.maximum(of_level, halves_of_level))
    found = [
        _build(
            interval,
            level,
            spread if wider else None,
            basis if wider else Basis.COUNTS,
            at_least=spread is None or percent > SUREST_PERCENT,
        )
        for percent, interval, level, spread, wider in zip(
            measured, following, levels, spreads, by_rounds, strict=True
        )
    ]
    return (*found, *(None,) * (len(REPORTED_PERCENTILES) - len(found)))


def _intervals(
    whole: IoStats, running: IntArray, shares: FloatArray, halves: FloatArray
) -> list[Interval]:
    """In us, between the percentiles whose shares are so much lower and higher."""
    # Of a rare share it is times, not percent points, that chance makes of it: as logarithms of the odds.
    odds, apart = shares / (1 - shares), halves / (shares * (1 - shares))
    low_shares, high_shares = (1 - 1 / (1 + odds * np.exp(by)) for by in (-apart, apart))
    total = whole.histogram.total
    lows = _edges_us(whole, running, np.floor(low_shares * total), BUCKET_LOWER_NS)
    # One I/O at least is beyond an upper end.
    highs = _edges_us(whole, running, np.ceil(high_shares * total) + 1, BUCKET_UPPER_NS)
    return [
        Interval(low=low, high=high if high < inf else None)
        for low, high in zip(lows, highs, strict=True)
    ]


def _build(
    interval: Interval, level: Interval, spread: Spread | None, basis: Basis, *, at_least: bool
) -> Uncertainty:
    factor = coverage_factor(spread.degrees_of_freedom if spread else inf)
    low, high = interval.low, interval.high
    return Uncertainty(
        standard=None if high is None else (high - low) / 2 / factor,
        low=low,
        high=high,
        level=level,
        degrees_of_freedom=spread.degrees_of_freedom if spread else None,
        basis=basis,
        # Counting alone takes I/Os as independent, which in bursts they are not.
        at_least=at_least or (spread is not None and spread.at_least),
    )


def _spreads_of_shares(rounds: Sequence[Histogram], buckets: IntArray) -> tuple[Spread | None, ...]:
    """Of the share of the I/Os below each of the buckets, or up to it, whichever spreads more."""
    filled = [one for one in rounds if one.total]
    if len(filled) < 2:
        return (None,) * len(buckets)
    totals = np.array([[one.total] for one in filled], dtype=np.float64)
    # A bucket may hold many I/Os: at its lower edge and at its upper one.
    edges = np.concatenate((buckets, buckets + 1))
    counts = np.array(
        [
            np.concatenate(([0], one.counts.cumsum()))[np.searchsorted(one.indices, edges)]
            for one in filled
        ],
        dtype=np.float64,
    )
    residuals = (counts - counts.sum(axis=0) / totals.sum() * totals) / totals.mean()
    widest = np.where(residuals.std(axis=0) >= np.roll(residuals.std(axis=0), len(buckets)), 0, 1)
    columns = np.arange(len(buckets)) + len(buckets) * widest[: len(buckets)]
    return tuple(spread_of_rounds(residuals[:, column]) for column in columns)


def _edges_us(
    whole: IoStats, running: IntArray, ranks: FloatArray, edges_ns: IntArray
) -> list[float]:
    """The edges of the buckets with the I/Os of these ranks, within what was measured.

    Infinite beyond the slowest.
    """
    histogram = whole.histogram
    places = np.searchsorted(running, np.clip(ranks, 1, histogram.total), side="left")
    edges = edges_ns[histogram.indices[places]].astype(np.float64)
    edges = np.clip(edges, whole.latency_min_ns or 0, whole.latency_max_ns or inf) / 1000
    return [float(edge) for edge in np.where(ranks > histogram.total, inf, edges)]
