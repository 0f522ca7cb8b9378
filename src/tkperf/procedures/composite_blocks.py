"""Composite block workload of the PTS (CBW in 2.0, ECW in 1.1): a mix of block sizes, unevenly spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import msgspec

from tkperf.phases import Procedure
from tkperf.procedures.demand_grid import DemandGridTable, demand_grid, section_plan
from tkperf.procedures.demand_grid import describe as describe_grid
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.profiles import Profile
from tkperf.profiles.tables import MOST_VALUES, BlockSizeKib, SteadyStateTable, means
from tkperf.units import KIB
from tkperf.workload import Access, BlockShare, Workload, Zone

Share = Annotated[int, msgspec.Meta(ge=1, le=100)]
_MANY = msgspec.Meta(min_length=1, max_length=MOST_VALUES)


class CompositeBlocksTable(DemandGridTable, frozen=True, kw_only=True):
    """The grid with a mix of blocks.

    ``block_shares`` are pairs of a block size in KiB and the percentage of all I/Os that have it;
    ``zone_shares`` pairs of the percentage of accesses and that of the range which they fall into, from
    its start.
    """

    key: ClassVar[str] = "composite_blocks"

    block_shares: Annotated[
        tuple[tuple[BlockSizeKib, Share], ...],
        _MANY,
        means("pairs: a block size in KiB, and the % of all I/Os that have it"),
    ]
    zone_shares: Annotated[
        tuple[tuple[Share, Share], ...],
        _MANY,
        means("pairs: the % of accesses, and the % of the range that they fall into, in its order"),
    ]

    def fault(self, profile: Profile) -> str | None:
        for size_kib, _ in self.block_shares:
            if size_kib * KIB % 512:
                return f"block_shares: {size_kib * KIB:g} bytes is not a multiple of 512 bytes"
        if len({size_kib for size_kib, _ in self.block_shares}) < len(self.block_shares):
            return "block_shares: a block size occurs twice"
        for name, shares in (
            ("block_shares: the percentages", [percent for _, percent in self.block_shares]),
            ("zone_shares: the accesses", [percent for percent, _ in self.zone_shares]),
            ("zone_shares: the parts of the range", [percent for _, percent in self.zone_shares]),
        ):
            if sum(shares) != 100:
                return f"{name} add up to {sum(shares)}, not to 100"
        return super().fault(profile)

    @property
    def block_mix(self) -> tuple[BlockShare, ...]:
        return tuple(
            BlockShare(round(size_kib * KIB), percent) for size_kib, percent in self.block_shares
        )

    @property
    def zones(self) -> tuple[Zone, ...]:
        return tuple(
            Zone(access_percent, range_percent)
            for access_percent, range_percent in self.zone_shares
        )


def composite_workload(profile: Profile, table: CompositeBlocksTable) -> Workload:
    """The mix, at the demand of the profile."""
    largest_kib = max(size_kib for size_kib, _ in table.block_shares)
    return replace(
        profile.workload(Access.RANDOM, table.read_percent, largest_kib),
        block_mix=table.block_mix,
        zones=table.zones,
    )


def composite_blocks(profile: Profile, _active_range_bytes: int) -> Procedure:
    """The mix of block sizes over the zones of the range."""
    table = profile.table(CompositeBlocksTable)
    return demand_grid(profile, table, composite_workload(profile, table))


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(CompositeBlocksTable)
    workload = composite_workload(profile, table)
    mix = (
        f"The mix: RND {workload.blocks_text}; accesses/range in percent, from its start: "
        f"{workload.zones_text}"
    )
    return mix, *describe_grid(profile, circumstances, table, "the mix")


TEST = Test(
    name="cbw",
    title="Composite Block Workload (CBW, ECW)",
    source="PTS-E 1.1, enterprise composite workload (ECW) test; CBW in PTS 2.0",
    suites=("ssd", "raid"),
    by_default=False,
    table=CompositeBlocksTable,
    procedure=composite_blocks,
    describe=describe,
    section_plan=section_plan,
    shared=(SteadyStateTable,),
    tracked=("iops",),
)
