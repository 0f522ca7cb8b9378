"""Tests of the user's own: a workload file describes a test, which then is like any other."""

from __future__ import annotations

from functools import partial

from tkperf.procedures.descriptor import Test
from tkperf.procedures.own_workloads.course import course
from tkperf.procedures.own_workloads.parts import FillPhase
from tkperf.procedures.own_workloads.tables import OwnWorkloadTable
from tkperf.procedures.own_workloads.words import describe, plan_section
from tkperf.procedures.profiles.tables import PreconditioningTable, SteadyStateTable


def test_of(table: OwnWorkloadTable) -> Test:
    """Return the test that a workload file describes; its numbers come from the profile at run time."""
    type_ = type(table)
    fills = any(isinstance(phase, FillPhase) for phase in table.phases)
    shared = (SteadyStateTable,) if table.tracked_quantities else ()
    return Test(
        name=table.name,
        title=table.title,
        source=table.source,
        suites=("ssd", "hdd", "raid"),
        by_default=False,
        own=True,
        table=type_,
        procedure=partial(course, type_),
        describe=lambda profile, circumstances: describe(
            profile.table(type_), profile, circumstances
        ),
        section_plan=partial(plan_section, table),
        tracked=table.tracked_quantities,
        shared=(*shared, PreconditioningTable) if fills else shared,
    )
