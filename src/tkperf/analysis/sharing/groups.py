"""Bandwidth budgets of the parts that drives share. The module forms groups of drives that keep within these budgets,
and judges whether drives slow each other down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Literal

import numpy as np
from msgspec.structs import replace

from tkperf.analysis.uncertainty.estimate import Uncertainty, build_ratio
from tkperf.analysis.uncertainty.means import uncertainty_of_mean
from tkperf.analysis.uncertainty.spread import spread_of_series
from tkperf.model.sharing import (
    BudgetState,
    CpuAssignment,
    CpuBudget,
    CpuPlan,
    DriveGroup,
    DrivePath,
    Part,
    PartBudget,
    PathGap,
    ReadsCompared,
    ReadsState,
    SharingState,
)

Parallel = Literal["auto", "all"] | int

_BY_READS = {ReadsState.SLOWED: SharingState.SLOWED, ReadsState.NOT_SLOWED: SharingState.NOT_SLOWED}
_BY_BUDGET = {
    BudgetState.OVER: SharingState.OVER_BUDGET,
    BudgetState.WITHIN: SharingState.WITHIN_BUDGET,
    BudgetState.NOT_KNOWN: SharingState.NOT_KNOWN,
}


def build_budgets(paths: Sequence[DrivePath]) -> tuple[PartBudget, ...]:
    """Return the budget of every part that two or more drives share, in the order from the drives to the CPU.

    The demand is the sum of the bandwidths of all drive links in one direction. This sum is an upper limit: no drive
    can exceed the bandwidth of its link, and many drives need less.
    """
    parts: dict[str, Part] = {}
    passing: dict[str, list[DrivePath]] = {}
    for path in sorted(paths, key=lambda path: path.slot_order):
        for part in path.parts:
            parts.setdefault(part.key, part)
            passing.setdefault(part.key, []).append(path)
    return tuple(
        PartBudget(
            part=parts[key],
            drives=tuple(path.drive for path in users),
            demand_bytes_per_s=sum(path.link_bytes_per_s or 0 for path in users),
            drives_not_known=tuple(path.drive for path in users if path.link_bytes_per_s is None),
        )
        for key, users in passing.items()
        if len(users) > 1
    )


def group_drives(paths: Sequence[DrivePath], parallel: Parallel) -> tuple[DriveGroup, ...]:
    """Return the groups of drives that run at the same time. The groups run one after the other.

    With ``auto``, the drives are assigned in slot order. Each drive joins the first group in which the drive overloads
    no shared part. An unknown budget does not separate drives, but the group records that the budget is not known. With
    ``all``, there is one group. With a number, the drives are divided in slot order into groups of this size, and the
    budgets are ignored.

    Args:
        paths: the drives of one host.

    Raises:
        ValueError: the number is below 1.
    """
    ordered = sorted(paths, key=lambda path: path.slot_order)
    if parallel == "auto":
        groups = _first_fit(ordered)
    else:
        size = max(1, len(ordered)) if parallel == "all" else parallel
        if size < 1:
            raise ValueError(
                f"the number of drives that are measured at the same time must be 1 or more, but it is {size}"
            )
        groups = [ordered[first : first + size] for first in range(0, len(ordered), size)]
    return tuple(_build_group(group) for group in groups)


def _first_fit(ordered: Sequence[DrivePath]) -> list[list[DrivePath]]:
    groups: list[list[DrivePath]] = []
    for path in ordered:
        for group in groups:
            budgets = build_budgets([*group, path])
            if all(budget.state is not BudgetState.OVER for budget in budgets if path.drive in budget.drives):
                group.append(path)
                break
        else:
            groups.append([path])
    return groups


def _build_group(paths: Sequence[DrivePath]) -> DriveGroup:
    return DriveGroup(
        drives=tuple(path.drive for path in paths),
        budgets=build_budgets(paths),
        without_path=tuple(path.drive for path in paths if not path.parts and path.gap is not PathGap.SIMULATED),
    )


def judge_sharing(group: DriveGroup, reads: Mapping[str, ReadsCompared]) -> dict[str, SharingState]:
    """Return, for each drive of a group, whether the other drives may influence this drive. If the result of the
    comparison of reads is known, this result decides. Otherwise, the budgets decide.
    """
    return {drive: _judge(drive, group, reads.get(drive)) for drive in group.drives}


def _judge(drive: str, group: DriveGroup, reads: ReadsCompared | None) -> SharingState:
    if len(group.drives) == 1:
        return SharingState.ALONE
    if reads is not None and reads.state in _BY_READS:
        return _BY_READS[reads.state]
    mine = tuple(budget for budget in group.budgets if drive in budget.drives)
    return _BY_BUDGET[replace(group, budgets=mine).state]


def assign_cpus(
    paths: Sequence[DrivePath],
    threads: Mapping[str, int],
    allowed: AbstractSet[int],
    cores: Mapping[int, Sequence[int]],
) -> CpuPlan:
    """Return the CPUs of drives that run at the same time.

    The first CPU is reserved for all programs that do not belong to a drive. Drives with the same near CPUs are treated
    equally. Either each of these drives receives as many CPUs as it has threads, or all of them share the near CPUs. A
    drive receives the remaining CPUs if its NUMA node is not known, or if no CPU of the node may be used. CPUs of
    different cores are assigned before further CPUs of the same core.

    Args:
        paths: the drives of one group, on one host.
        threads: for each drive, the largest number of threads that fio runs at the same time. A drive that the mapping
            does not contain has 1 thread.
        allowed: CPUs that may be used.
        cores: for each CPU, all CPUs of the same core. A CPU that the mapping does not contain is the only CPU of its
            core.

    Raises:
        ValueError: no CPU may be used.
    """
    if not allowed:
        raise ValueError("the drives cannot be assigned to CPUs, because tkperf is not allowed to use any CPU")
    rest = frozenset({min(allowed)} if len(allowed) > 1 else ())
    free = frozenset(allowed) - rest
    pools: dict[frozenset[int], list[DrivePath]] = {}
    for path in sorted(paths, key=lambda path: path.slot_order):
        pools.setdefault(free.intersection(path.near_cpus), []).append(path)
    given: dict[str, tuple[int, ...]] = {}
    budgets = []
    # Drives that can use any CPU receive their CPUs last.
    for near, drives in sorted(pools.items(), key=lambda pool: not pool[0]):
        taken = {cpu for cpus in given.values() for cpu in cpus}
        within = near or free
        usable = _in_order(within - taken or within, cores, rest)
        needed = [max(1, threads.get(path.drive, 1)) for path in drives]
        is_enough = sum(needed) <= len(usable) and not taken.intersection(usable)
        following = iter(usable)
        for path, count in zip(drives, needed, strict=True):
            given[path.drive] = tuple(sorted(islice(following, count) if is_enough else usable))
        budgets.append(
            CpuBudget(
                numa_node=drives[0].numa_node if near else None,
                cpus=tuple(sorted(usable)),
                drives=tuple(path.drive for path in drives),
                threads=sum(needed),
            )
        )
    return CpuPlan(
        assignments=tuple(_build(path, given, threads, cores) for path in paths),
        budgets=tuple(budgets),
        rest=tuple(rest),
    )


def _in_order(cpus: AbstractSet[int], cores: Mapping[int, Sequence[int]], rest: AbstractSet[int]) -> list[int]:
    """Return the CPUs in the order of assignment. The first CPU of every core precedes the second CPU of any core. The
    core of ``rest`` is last.
    """

    def place(cpu: int) -> tuple[bool, int, int]:
        siblings = sorted(set(cores.get(cpu, (cpu,))) & cpus)
        return not rest.isdisjoint(cores.get(cpu, ())), siblings.index(cpu), cpu

    return sorted(cpus, key=place)


def _build(
    path: DrivePath,
    given: Mapping[str, tuple[int, ...]],
    threads: Mapping[str, int],
    cores: Mapping[int, Sequence[int]],
) -> CpuAssignment:
    mine = set(given[path.drive])
    others = {cpu for drive, cpus in given.items() if drive != path.drive for cpu in cpus}
    siblings = {sibling for cpu in mine for sibling in cores.get(cpu, ())} - mine
    return CpuAssignment(
        drive=path.drive,
        cpus=given[path.drive],
        threads=max(1, threads.get(path.drive, 1)),
        is_shared=not mine.isdisjoint(others),
        shares_cores=not siblings.isdisjoint(others - mine),
        is_near=mine <= set(path.near_cpus) if path.near_cpus else None,
    )


# The largest share of its rate that a drive may lose because of other drives without counting as slowed down.
TOLERATED_LOSS = 0.02


def compare_reads(drive: str, alone: Sequence[float], together: Sequence[float]) -> ReadsCompared:
    """Return whether a drive reads more slowly while other drives also read.

    The drive is slowed down if the whole interval of the ratio is below 1 - ``TOLERATED_LOSS``, or if the drive read
    nothing while other drives read. The drive is not slowed down if no part of the interval is below this limit. In all
    other cases, the result is that the influence is not known.

    Args:
        alone, together: the rate of each second in order. Both arguments must use the same unit: I/Os or bytes.
    """
    (before, of_before), (now, of_now) = _mean(alone), _mean(together)
    known = build_ratio(now, of_now, before, of_before)
    is_stalled = before > 0 and len(together) > 0 and now == 0
    return ReadsCompared(
        drive=drive,
        alone=before,
        together=now,
        ratio=now / before if before > 0 else None,
        low=known.low,
        high=known.high,
        state=ReadsState.SLOWED if is_stalled else _judge_reads(known),
    )


def _mean(rates: Sequence[float]) -> tuple[float, Uncertainty]:
    values = np.array(rates, dtype=np.float64)
    mean = float(values.mean()) if values.size else 0.0
    return mean, uncertainty_of_mean(mean, (), spread_of_series([values]), 0.0)


def _judge_reads(ratio: Uncertainty) -> ReadsState:
    limit = 1 - TOLERATED_LOSS
    if ratio.high is not None and ratio.high < limit:
        return ReadsState.SLOWED
    if ratio.low is not None and ratio.low >= limit:
        return ReadsState.NOT_SLOWED
    return ReadsState.NOT_KNOWN
