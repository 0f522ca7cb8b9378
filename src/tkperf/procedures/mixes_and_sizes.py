"""Tables of tests that loop over R/W mixes and block sizes."""

from __future__ import annotations

from typing import Annotated, Self

import msgspec

from tkperf.model.units import KIB, format_block_size, format_mix
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.tables import (
    BlockSizeKib,
    BlockSizesKib,
    Percent,
    Percents,
    SteppedTable,
    addressable,
    means,
)


class MixAndSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One cell of the loops."""

    read_percent: Percent
    block_size_kib: BlockSizeKib

    @property
    def text(self) -> str:
        """Cell as text: ``65/35 64k``."""
        size = format_block_size(round(self.block_size_kib * KIB))
        return f"{format_mix(self.read_percent)} {size}"


class MixesAndSizes(SteppedTable, frozen=True, kw_only=True):
    """Loops of a round: ``read_percents`` is the outer loop, ``block_sizes_kib`` the inner one."""

    read_percents: Annotated[Percents, means("R/W mixes, the outer loop, in % of reads")]
    block_sizes_kib: Annotated[BlockSizesKib, means("block sizes, the inner loop")]
    tracking_read_percent: Annotated[Percent, means("mix of the tracking variable")]
    tracking_block_size_kib: Annotated[BlockSizeKib, means("block size of the tracking variable")]

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
        """Tracked cell as text: ``0/100 4k``."""
        return MixAndSize(
            read_percent=self.tracking_read_percent, block_size_kib=self.tracking_block_size_kib
        ).text
