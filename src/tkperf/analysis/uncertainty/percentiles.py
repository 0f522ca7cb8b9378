"""Uncertainty of percentiles: the range in which a percentile would lie if other I/Os of the same kind had been
measured.

First, the uncertainty of the share of I/Os up to the percentile is computed in two ways. The first way uses the number
of I/Os, as if all I/Os were independent (binomial distribution). The second way uses the spread of the share from round
to round, because slow I/Os occur in bursts, and a burst is a single event even if it contains many I/Os. The wider of
the two results is used. Second, this result is converted into latencies with the histogram: the ends of the interval
are the percentiles that are lower and higher by this amount (Woodruff 1952). No distribution of the latencies is
assumed.

If bursts are rarer than rounds, a window contains no more than one burst. Such a window shows little about the number
of bursts that will follow. Intervals of percentiles above ``SUREST_PERCENT`` are therefore only lower limits of the
uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from tkperf.analysis.uncertainty.estimate import Basis, Interval, Uncertainty
from tkperf.analysis.uncertainty.means import spread_of_rounds
from tkperf.analysis.uncertainty.spread import PREDICTED, Spread, coverage_factor
from tkperf.model.histogram import BUCKET_LOWER_NS, BUCKET_UPPER_NS, Histogram, IntArray
from tkperf.model.measurement import FloatArray, IoStats
from tkperf.model.reported_percentiles import REPORTED_PERCENTILES, has_percentile, percentile_rank

SUREST_PERCENT = 99.0
"""Above this percentile, every interval is only a lower limit of the uncertainty.

A burst that changes a lower percentile contains one percent of the I/Os of a window or more. Such a burst takes a long
time, because its I/Os are slow.
"""


def uncertainties_of_percentiles(
    whole: IoStats, rounds: Sequence[Histogram], basis: Basis
) -> tuple[Uncertainty | None, ...]:
    """Return the uncertainty of each of ``REPORTED_PERCENTILES`` in µs, or None if the percentile was not measured.

    Args:
        whole: statistics of the I/Os of all rounds together.
        rounds: the histograms of the rounds, or of the slices of a stream.
        basis: the kind of period that each histogram covers.
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
    by_rounds = [spread is not None and spread.expanded > half for spread, half in zip(spreads, counted, strict=True)]
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
        for percent, interval, level, spread, wider in zip(measured, following, levels, spreads, by_rounds, strict=True)
    ]
    return (*found, *(None,) * (len(REPORTED_PERCENTILES) - len(found)))


def _intervals(whole: IoStats, running: IntArray, shares: FloatArray, halves: FloatArray) -> list[Interval]:
    """Return intervals in µs. The ends of an interval are two percentiles. The shares of these percentiles are lower
    and higher than ``shares``, by ``halves``.
    """
    # Chance changes a small share by a factor and not by percentage points. The computation therefore uses logarithms
    # of the odds.
    odds, apart = shares / (1 - shares), halves / (shares * (1 - shares))
    low_shares, high_shares = (1 - 1 / (1 + odds * np.exp(by)) for by in (-apart, apart))
    total = whole.histogram.total
    lows = _edges_us(whole, running, np.floor(low_shares * total), BUCKET_LOWER_NS)
    # The upper end is the latency of the I/O that follows this rank, so the rank is increased by 1. If no I/O follows,
    # the interval has no upper end.
    highs = _edges_us(whole, running, np.ceil(high_shares * total) + 1, BUCKET_UPPER_NS)
    return [Interval(low=low, high=high if high < inf else None) for low, high in zip(lows, highs, strict=True)]


def _build(interval: Interval, level: Interval, spread: Spread | None, basis: Basis, *, at_least: bool) -> Uncertainty:
    factor = coverage_factor(spread.degrees_of_freedom if spread else inf)
    low, high = interval.low, interval.high
    return Uncertainty(
        standard=None if high is None else (high - low) / 2 / factor,
        low=low,
        high=high,
        level=level,
        degrees_of_freedom=spread.degrees_of_freedom if spread else None,
        basis=basis,
        # The binomial distribution assumes independent I/Os, but the I/Os of a burst are not independent.
        at_least=at_least or (spread is not None and spread.at_least),
    )


def _spreads_of_shares(rounds: Sequence[Histogram], buckets: IntArray) -> tuple[Spread | None, ...]:
    """Return, for each bucket, the wider of two spreads: the spread of the share of I/Os below the bucket, and the
    spread of the share of I/Os up to and including the bucket.
    """
    filled = [one for one in rounds if one.total]
    if len(filled) < 2:
        return (None,) * len(buckets)
    totals = np.array([[one.total] for one in filled], dtype=np.float64)
    # A bucket may contain many I/Os, so the computation uses both the lower and the upper edge of the bucket.
    edges = np.concatenate((buckets, buckets + 1))
    counts = np.array(
        [np.concatenate(([0], one.counts.cumsum()))[np.searchsorted(one.indices, edges)] for one in filled],
        dtype=np.float64,
    )
    residuals = (counts - counts.sum(axis=0) / totals.sum() * totals) / totals.mean()
    widest = np.where(residuals.std(axis=0) >= np.roll(residuals.std(axis=0), len(buckets)), 0, 1)
    columns = np.arange(len(buckets)) + len(buckets) * widest[: len(buckets)]
    return tuple(spread_of_rounds(residuals[:, column]) for column in columns)


def _edges_us(whole: IoStats, running: IntArray, ranks: FloatArray, edges_ns: IntArray) -> list[float]:
    """Return the edges of the buckets that contain the I/Os of these ranks. The edges are limited to the measured
    range.

    An edge beyond the slowest I/O is infinite.
    """
    histogram = whole.histogram
    places = np.searchsorted(running, np.clip(ranks, 1, histogram.total), side="left")
    edges = edges_ns[histogram.indices[places]].astype(np.float64)
    edges = np.clip(edges, whole.latency_min_ns or 0, whole.latency_max_ns or inf) / 1000
    return [float(edge) for edge in np.where(ranks > histogram.total, inf, edges)]
