"""DIRTH of the PTS: demand intensity and response time histograms of one random workload."""

from __future__ import annotations

from typing import Annotated, ClassVar

from tkperf.model.phases import Procedure
from tkperf.model.workload import Access
from tkperf.procedures.demand_grid import (
    DemandGridTable,
    demand_grid,
    section_plan,
)
from tkperf.procedures.demand_grid import describe as describe_grid
from tkperf.procedures.descriptor import Circumstances, Test
from tkperf.procedures.profiles import Profile
from tkperf.procedures.profiles.tables import BlockSizeKib, SteadyStateTable, means


class DemandIntensityTable(DemandGridTable, frozen=True, kw_only=True):
    """The grid with blocks of one size, the operator's choice in the PTS."""

    key: ClassVar[str] = "demand_intensity"

    block_size_kib: Annotated[BlockSizeKib, means("block size, the operator's choice")]


def demand_intensity(profile: Profile, _active_range_bytes: int) -> Procedure:
    """Run blocks of one size, random over the whole range."""
    table = profile.table(DemandIntensityTable)
    workload = profile.workload(Access.RANDOM, table.read_percent, table.block_size_kib)
    return demand_grid(profile, table, workload)


def describe(profile: Profile, circumstances: Circumstances) -> tuple[str, ...]:
    table = profile.table(DemandIntensityTable)
    return describe_grid(profile, circumstances, table, f"RND {table.block_size_kib:g} KiB")


TEST = Test(
    name="dirth",
    title="Demand Intensity (DIRTH)",
    source="PTS-E 1.1, demand intensity / response time histogram test",
    suites=("ssd", "raid"),
    by_default=False,
    table=DemandIntensityTable,
    procedure=demand_intensity,
    describe=describe,
    section_plan=section_plan,
    shared=(SteadyStateTable,),
    tracked=("iops",),
)
