"""The drives of a batch that are measured at the same time. This module determines the links that these drives share,
the CPUs for each drive, and whether the drives slow each other down.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tkperf.analysis.sharing.groups import assign_cpus, build_budgets, compare_reads, group_drives, judge_sharing
from tkperf.batch.drive_processes import Held
from tkperf.batch.request import BatchRequest
from tkperf.host.paths import read_cores
from tkperf.model.batch_state import BatchPlace
from tkperf.model.errors import RefusedError
from tkperf.model.sharing import BudgetState, CpuPlan, DriveGroup, PathGap, ReadsCompared, ReadsState


def find_neighbours(request: BatchRequest, held: Sequence[Held]) -> Neighbours:
    """Return the drives of a batch, divided into groups that are measured at the same time. The drives are assigned to
    the CPUs that this process may use.

    Raises:
        RefusedError: the batch is strict, and the drives exceed the budget of a link.
    """
    neighbours = Neighbours(request=request, held=held, allowed=os.sched_getaffinity(0), cores=read_cores())
    neighbours.require_within()
    return neighbours


@dataclass(slots=True, kw_only=True)
class Neighbours:
    """The drives in the groups in which they are measured. Each drive is identified by the name of its run.

    Attributes:
        allowed: CPUs that this process may use.
        cores: for each CPU, the CPUs that share its core.
        reads: for each drive, the comparison of the reads of the drive alone with its reads together with other drives;
            empty without such a comparison.
    """

    request: BatchRequest
    held: Sequence[Held]
    allowed: AbstractSet[int]
    cores: Mapping[int, Sequence[int]]
    reads: dict[str, ReadsCompared] = field(default_factory=dict)
    groups: tuple[DriveGroup, ...] = field(init=False)
    cpus: tuple[CpuPlan | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        ways = {one.way.drive: one.way for one in self.held}
        threads = {one.way.drive: one.jobs for one in self.held}
        self.groups = group_drives(tuple(ways.values()), self.request.parallel)
        # A simulated drive needs no separate CPU, because its figures do not depend on the host.
        measured = [
            [ways[name] for name in group.drives if ways[name].gap is not PathGap.SIMULATED] for group in self.groups
        ]
        self.cpus = tuple(
            assign_cpus(paths, threads, self.allowed, self.cores) if self.request.own_cpus and len(paths) > 1 else None
            for paths in measured
        )

    @property
    def numbers(self) -> tuple[tuple[int, ...], ...]:
        """The groups. Each group contains the numbers of its drives in the batch."""
        return tuple(tuple(one.shown.number for one in group) for group in self._held_by_group)

    @property
    def bounds_s(self) -> tuple[float, float]:
        """The shortest and the longest time of the whole batch in s. A group takes as long as its longest run."""
        groups = self._held_by_group
        return (
            sum(max(one.shortest_s for one in group) for group in groups),
            sum(max(one.longest_s for one in group) for group in groups),
        )

    @property
    def _held_by_group(self) -> list[list[Held]]:
        by_name = {one.way.drive: one for one in self.held}
        return [[by_name[name] for name in group.drives] for group in self.groups]

    @property
    def parts(self) -> dict[int, frozenset[str]]:
        """The names of the links that each drive shares with other drives. The number of the drive is the key."""
        shared: dict[str, set[str]] = {one.way.drive: set() for one in self.held}
        for budget in build_budgets([one.way for one in self.held]):
            for name in budget.drives:
                shared[name].add(budget.part.key)
        return {one.shown.number: frozenset(shared[one.way.drive]) for one in self.held}

    def places(self) -> dict[int, BatchPlace]:
        """Return the place of each drive in its group, with the known influence of the other drives. The number of the
        drive is the key.
        """
        states = {name: state for group in self.groups for name, state in judge_sharing(group, self.reads).items()}
        others = {name: len(group.drives) - 1 for group in self.groups for name in group.drives}
        own = {
            one.drive: one.cpus
            for plan in self.cpus
            if plan is not None
            for one in plan.assignments
            if not one.is_shared
        }
        return {
            one.shown.number: BatchPlace(
                name=self.request.name,
                number=one.shown.number,
                slot=one.shown.slot,
                others=others[one.way.drive],
                sharing=states[one.way.drive],
                cpus=own.get(one.way.drive, ()),
            )
            for one in self.held
        }

    def require_within(self) -> None:
        """Refuse a strict batch whose drives exceed the budget of a link."""
        over = {
            budget.part.name: budget.factor
            for group in self.groups
            for budget in group.budgets
            if budget.state is BudgetState.OVER
        }
        if self.request.strict and over:
            parts = ", ".join(f"{name} ({factor:.1f} times)" for name, factor in over.items())
            raise RefusedError(
                "the drives that would be measured at the same time could transfer more data than these "
                f"links: {parts}. Measure fewer drives at the same time, or omit strict. Nothing was "
                "touched"
            )

    def add_reads(self, alone: Mapping[str, Sequence[float]], together: Mapping[str, Sequence[float]]) -> None:
        """Store a comparison of the read rates of drives alone and together, in bytes per second."""
        for name, rates in alone.items():
            if name in together:
                self.reads[name] = compare_reads(name, rates, together[name])

    @property
    def slowed(self) -> tuple[ReadsCompared, ...]:
        """The drives whose reads are slower together than alone."""
        return tuple(one for one in self.reads.values() if one.state is ReadsState.SLOWED)
