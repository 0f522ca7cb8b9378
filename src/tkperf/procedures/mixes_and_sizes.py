"""Parts of the tables of tests: the loops over R/W mixes and block sizes, and the shares of block sizes and of
addresses.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tkperf.model.units import KIB, format_block_size, format_mix
from tkperf.model.workload import BlockShare, Zone
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import (
    MOST_VALUES,
    BlockSizeKib,
    BlockSizesKib,
    Percent,
    Percents,
    SteppedTable,
    find_size_fault,
    means,
)


class MixAndSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One cell of the loops: a mix and a block size."""

    read_percent: Percent
    block_size_kib: BlockSizeKib

    @property
    def text(self) -> str:
        """The cell as text, such as ``65/35 64k``."""
        size = format_block_size(round(self.block_size_kib * KIB))
        return f"{format_mix(self.read_percent)} {size}"


class MixesAndSizes(SteppedTable, frozen=True, kw_only=True):
    """The loops of a round: ``read_percents`` is the outer loop, and ``block_sizes_kib`` is the inner loop."""

    read_percents: Annotated[Percents, means("R/W mixes (shares of reads, in %), as the outer loop")]
    block_sizes_kib: Annotated[BlockSizesKib, means("block sizes, in KiB, as the inner loop")]
    tracking_read_percent: Annotated[Percent, means("R/W mix of the tracking variable (share of reads, in %)")]
    tracking_block_size_kib: Annotated[BlockSizeKib, means("block size of the tracking variable, in KiB")]

    def fault(self, profile: Profile) -> str | None:
        if self.tracking_read_percent not in self.read_percents:
            return f"tracking_read_percent: not one of {self.key}.read_percents"
        if self.tracking_block_size_kib not in self.block_sizes_kib:
            return f"tracking_block_size_kib: not one of {self.key}.block_sizes_kib"
        return None

    @property
    def tracked(self) -> str:
        """The tracked cell as a text, such as ``0/100 4k``."""
        return MixAndSize(read_percent=self.tracking_read_percent, block_size_kib=self.tracking_block_size_kib).text


Share = Annotated[int, msgspec.Meta(ge=1, le=100)]
BlockShares = tuple[tuple[BlockSizeKib, Share], ...]
ZoneShares = tuple[tuple[Share, Share], ...]
AT_LEAST_ONE = msgspec.Meta(min_length=1, max_length=MOST_VALUES)
AT_MOST = msgspec.Meta(max_length=MOST_VALUES)


def find_share_fault(block_shares: BlockShares, zone_shares: ZoneShares) -> str | None:
    """Return the first fault as ``key: reason``. A fault is an impossible or repeated size, or a sum other than 100.
    None means that there is no fault.
    """
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
    """Return the block shares in the form of a workload."""
    return tuple(BlockShare(round(size_kib * KIB), percent) for size_kib, percent in block_shares)


def zones_of(zone_shares: ZoneShares) -> tuple[Zone, ...]:
    """Return the zones in the form of a workload."""
    return tuple(Zone(accesses, part_of_range) for accesses, part_of_range in zone_shares)
