"""The percentiles that results contain, and the number of I/Os that each percentile needs."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from functools import cache


class PercentileUse(StrEnum):
    """Places in the outputs that show only a selection of the percentiles."""

    TAIL = "summaries and headlines, as the one percentile that stands for the slow I/Os"
    CURVES = "tables and curves of single percentiles"
    LEVELS = "the list of offered rates"
    STEPS = "the list of the steps of a workload file"
    STREAMS = "the time of a stream of single I/Os"
    SECONDS = "the seconds of exports"


# Every percentile that a result contains, in percent of the I/Os. Some places in the outputs show only a selection of
# the percentiles. For each percentile, the mapping contains the places that show this percentile.
_USES: dict[float, tuple[PercentileUse, ...]] = {
    50.0: (PercentileUse.CURVES, PercentileUse.LEVELS, PercentileUse.SECONDS),
    90.0: (),
    95.0: (),
    99.0: (
        PercentileUse.CURVES,
        PercentileUse.LEVELS,
        PercentileUse.STEPS,
        PercentileUse.STREAMS,
        PercentileUse.SECONDS,
    ),
    99.9: tuple(PercentileUse),
    99.99: (PercentileUse.CURVES, PercentileUse.LEVELS, PercentileUse.STEPS),
    99.999: (PercentileUse.CURVES,),
}
REPORTED_PERCENTILES = tuple(_USES)


def find_percentiles(use: PercentileUse) -> tuple[float, ...]:
    """Return the percentiles that a place shows, in percent."""
    return tuple(percent for percent, uses in _USES.items() if use in uses)


(TAIL_PERCENT,) = find_percentiles(PercentileUse.TAIL)
# With fewer I/Os than this number beyond a percentile, a single additional slow I/O would change the percentile.
LEAST_IOS_BEYOND = 10


@cache
def _share(percent: float) -> tuple[int, int]:
    """Return a percentage as an exact fraction of two integers, according to its decimal digits. For 99.9, the result
    is 999 and 1000.
    """
    return (Fraction(str(percent)) / 100).as_integer_ratio()


def percentile_rank(percent: float, total: int) -> int:
    """Return the rank of the I/O at a percentile, counted from 1. The result is the smallest rank that covers
    ``percent`` of all I/Os.

    The result is exact: at 99.9 % of 1,000 I/Os, the rank is 999. In floating point, 99.9 / 100 x 1000 is greater than
    999, so the rank would be 1000.
    """
    part, whole = _share(percent)
    return -(-part * total // whole)


def has_percentile(percent: float, total: int) -> bool:
    """Return whether the number of I/Os is sufficient for a percentile. At least ten I/Os must be expected beyond the
    percentile.
    """
    part, whole = _share(percent)
    return (whole - part) * total >= LEAST_IOS_BEYOND * whole
