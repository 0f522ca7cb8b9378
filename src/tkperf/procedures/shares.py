"""Shares of block sizes and of addresses, as tables write them: pairs with percentages that add up to 100."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tkperf.model.units import KIB
from tkperf.model.workload import BlockShare, Zone
from tkperf.procedures.profiles.tables import MOST_VALUES, BlockSizeKib, find_size_fault

Share = Annotated[int, msgspec.Meta(ge=1, le=100)]
BlockShares = tuple[tuple[BlockSizeKib, Share], ...]
ZoneShares = tuple[tuple[Share, Share], ...]
AT_LEAST_ONE = msgspec.Meta(min_length=1, max_length=MOST_VALUES)
AT_MOST = msgspec.Meta(max_length=MOST_VALUES)


def find_share_fault(block_shares: BlockShares, zone_shares: ZoneShares) -> str | None:
    """Return the first fault as ``key: reason``: an impossible or repeated size, or a sum other than 100."""
    for size_kib, _ in block_shares:
        if fault := find_size_fault(size_kib):
            return f"block_shares: {fault}"
    if len({size_kib for size_kib, _ in block_shares}) < len(block_shares):
        return "block_shares: a block size occurs twice"
    for name, shares in (
        ("block_shares: the percentages", [percent for _, percent in block_shares]),
        ("zone_shares: the accesses", [percent for percent, _ in zone_shares]),
        ("zone_shares: the parts of the range", [percent for _, percent in zone_shares]),
    ):
        if shares and sum(shares) != 100:
            return f"{name} add up to {sum(shares)}, not to 100"
    return None


def block_mix_of(block_shares: BlockShares) -> tuple[BlockShare, ...]:
    """Return the block shares as a workload has them."""
    return tuple(BlockShare(round(size_kib * KIB), percent) for size_kib, percent in block_shares)


def zones_of(zone_shares: ZoneShares) -> tuple[Zone, ...]:
    """Return the zones as a workload has them."""
    return tuple(Zone(accesses, part_of_range) for accesses, part_of_range in zone_shares)
