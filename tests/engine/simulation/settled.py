"""The write amplification that theory predicts for uniform random writes."""

from __future__ import annotations

from math import exp


def settled_amplification(spare_share: float) -> float:
    """Return the write amplification of uniform random writes over all addresses after a long time.

    With T bytes of flash for U bytes of addresses, a superblock is collected after the host has written T(1-p) bytes.
    Here p is the share of the superblock that is still valid at this time: p = exp(-(1-p) T/U). Xiang and Kurkoski, "An
    Improved Analytical Expression for Write Amplification in NAND Flash", 2011 (arXiv:1110.4245), solve this equation
    with Lambert's W. With 30 % of spare flash, their equation yields 2.36, and their simulation yields 2.35.
    """
    valid = 0.0
    for _ in range(10_000):
        valid = exp(-(1 - valid) * (1 + spare_share))
    return 1 / (1 - valid)
