"""The comparison of reads: drives that read alone, then together, and which of them the others slow down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tkperf.analysis.uncertainty.estimate import Uncertainty, build_ratio
from tkperf.analysis.uncertainty.means import uncertainty_of_mean
from tkperf.analysis.uncertainty.spread import spread_of_series
from tkperf.model.sharing import ReadsCompared, ReadsState

# A drive that loses less than this share of its rate to the others is not slowed.
TOLERATED_LOSS = 0.02


def compare_reads(drive: str, alone: Sequence[float], together: Sequence[float]) -> ReadsCompared:
    """Compare a drive's reads alone and together with others.

    Slowed: the whole interval of the ratio is below 1 - ``TOLERATED_LOSS``, or nothing was read together; not
    slowed: no part of the interval is below it.

    Args:
        alone, together: the rate of each second, in order; I/Os or bytes, both the same.
    """
    (before, of_before), (now, of_now) = _mean(alone), _mean(together)
    known = build_ratio(now, of_now, before, of_before)
    is_stalled = before > 0 and len(together) > 0 and now == 0
    return ReadsCompared(
        drive=drive,
        alone=before,
        together=now,
        ratio=now / before if before > 0 else None,
        low=known.low,
        high=known.high,
        state=ReadsState.SLOWED if is_stalled else _judge(known),
    )


def _mean(rates: Sequence[float]) -> tuple[float, Uncertainty]:
    values = np.array(rates, dtype=np.float64)
    mean = float(values.mean()) if values.size else 0.0
    return mean, uncertainty_of_mean(mean, (), spread_of_series([values]), 0.0)


def _judge(ratio: Uncertainty) -> ReadsState:
    limit = 1 - TOLERATED_LOSS
    if ratio.high is not None and ratio.high < limit:
        return ReadsState.SLOWED
    if ratio.low is not None and ratio.low >= limit:
        return ReadsState.NOT_SLOWED
    return ReadsState.NOT_KNOWN
