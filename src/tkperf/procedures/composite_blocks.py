"""The composite block workload (CBW) test of the PTS: a mix of block sizes over zones of the range, at a grid of
demands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from tkperf.model.phases import Procedure
from tkperf.model.workload import Access, Workload
from tkperf.procedures.demand_intensity import DemandGridTable, demand_grid, describe_grid, section_plan
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.mixes_and_sizes import (
    AT_LEAST_ONE,
    BlockShares,
    ZoneShares,
    block_mix_of,
    find_share_fault,
    zones_of,
)
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.profile_tables import SteadyStateTable, means


class CompositeBlocksTable(DemandGridTable, frozen=True, kw_only=True):
    """The grid of demands for a mix of block sizes.

    ``block_shares`` contains pairs of a block size in KiB and the percentage of all I/Os with this size.
    ``zone_shares`` contains a pair for each zone: the share of the accesses, and the share of the range that receives
    these accesses, both in %. Each zone begins where the previous zone ends, and the first zone begins at the start of
    the range.
    """

    key: ClassVar[str] = "composite_blocks"

    block_shares: Annotated[
        BlockShares, AT_LEAST_ONE, means("pairs of a block size, in KiB, and its share of all I/Os, in %")
    ]
    zone_shares: Annotated[
        ZoneShares,
        AT_LEAST_ONE,
        means(
            "zones of the range, in the order of addresses. Each zone is a pair: the share of the accesses, and the "
            "share of the range that receives these accesses, both in %"
        ),
    ]

    def fault(self, profile: Profile) -> str | None:
        return find_share_fault(self.block_shares, self.zone_shares) or super().fault(profile)


def composite_workload(profile: Profile, table: CompositeBlocksTable) -> Workload:
    """Return the workload with the mix of block sizes, at the demand of the profile."""
    largest_kib = max(size_kib for size_kib, _ in table.block_shares)
    return replace(
        profile.workload(Access.RANDOM, table.read_percent, largest_kib),
        block_mix=block_mix_of(table.block_shares),
        zones=zones_of(table.zone_shares),
    )


def composite_blocks(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Run the mix of block sizes over the zones of the range, at each demand of the grid."""
    table = profile.table(CompositeBlocksTable)
    return demand_grid(profile, table, composite_workload(profile, table))


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(CompositeBlocksTable)
    workload = composite_workload(profile, table)
    mix = f"The mix: RND {workload.blocks_text}; accesses/range in percent, from its start: {workload.zones_text}"
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
