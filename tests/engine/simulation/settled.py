"""The write amplification that theory has for uniform random writes."""

from __future__ import annotations

from math import exp


def settled_amplification(spare_share: float) -> float:
    """Return the write amplification of uniform random writes over all addresses, in the long run.

    With T bytes of flash for U bytes of addresses, a superblock is collected after T(1-p) bytes of the host's, p
    being the share of it that is still valid then: p = exp(-(1-p) T/U). Xiang and Kurkoski, "An Improved
    Analytical Expression for Write Amplification in NAND Flash", 2011 (arXiv:1110.4245), solve it with
    Lambert's W; with 30 % to spare they have 2.36, and 2.35 in their simulation.
    """
    valid = 0.0
    for _ in range(10_000):
        valid = exp(-(1 - valid) * (1 + spare_share))
    return 1 / (1 - valid)
