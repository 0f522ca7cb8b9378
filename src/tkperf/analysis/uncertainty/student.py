"""Quantiles of Student's t: the coverage factor of a standard uncertainty from few values.

They are computed here because scipy would add 40 MB to the host of the drive under test.
"""

from __future__ import annotations

from functools import cache
from math import atan2, cos, inf, pi, sin, sqrt
from statistics import NormalDist

COVERAGE_PERCENT = 95
COVERED = f"{COVERAGE_PERCENT} %"
"""The coverage of every interval, for people."""
_MANY = 100  # degrees of freedom; above it an expansion is exact to six digits


@cache
def coverage_factor(degrees_of_freedom: float = inf) -> float:
    """Return the factor of a standard uncertainty for a two-sided coverage of 95 %.

    It follows from the distribution's finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4); for many degrees
    of freedom from its expansion around the normal distribution (26.7.5).

    Args:
        degrees_of_freedom: a whole number, or infinite.

    Raises:
        ValueError: fewer than one.
    """
    n = degrees_of_freedom
    if n < 1:
        raise ValueError("nothing is known of the spread of a single value")
    normal = NormalDist().inv_cdf(0.5 + COVERAGE_PERCENT / 200)
    if n == inf:
        return normal
    if n > _MANY:
        z = normal
        return (
            z
            + (z**3 + z) / (4 * n)
            + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        )
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        below = _covered(middle, int(n)) < COVERAGE_PERCENT / 100
        low, high = (middle, high) if below else (low, middle)
    return high


def _covered(t: float, n: int) -> float:
    """Return the share of Student's t with n degrees of freedom between -t and t."""
    angle = atan2(t, sqrt(n))
    odd = n % 2
    term = cos(angle) if odd else 1.0
    total = term if n > 1 else 0.0
    for k in range(3 if odd else 2, n - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    total *= sin(angle)
    return 2 / pi * (angle + total) if odd else total
