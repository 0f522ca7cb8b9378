"""What the tables of tests share that loop over R/W mixes and block sizes."""

from __future__ import annotations

from typing import Self

import msgspec

from tkperf.profiles import Profile
from tkperf.profiles.tables import (
    BlockSizeKib,
    BlockSizesKib,
    Percent,
    Percents,
    SteppedTable,
    addressable,
)
from tkperf.units import KIB, format_block_size, format_mix


class MixesAndSizes(SteppedTable, frozen=True, kw_only=True):
    """``read_percents`` is the outer loop, ``block_sizes_kib`` the inner one."""

    read_percents: Percents
    block_sizes_kib: BlockSizesKib
    tracking_read_percent: Percent
    tracking_block_size_kib: BlockSizeKib

    def fault(self, profile: Profile) -> str | None:
        if self.tracking_read_percent not in self.read_percents:
            return f"tracking_read_percent: not one of {self.key}.read_percents"
        if self.tracking_block_size_kib not in self.block_sizes_kib:
            return f"tracking_block_size_kib: not one of {self.key}.block_sizes_kib"
        return None

    def fitted(self, logical_block_bytes: int) -> Self:
        kept = addressable(self.block_sizes_kib, logical_block_bytes)
        return msgspec.structs.replace(self, block_sizes_kib=kept)

    @property
    def tracked(self) -> str:
        """``0/100 4k``."""
        size = format_block_size(round(self.tracking_block_size_kib * KIB))
        return f"{format_mix(self.tracking_read_percent)} {size}"
