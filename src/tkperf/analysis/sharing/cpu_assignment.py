"""CPUs for the drives of a group: each its own near its NUMA node where there are enough, else shared ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from tkperf.model.drive_path import DrivePath
from tkperf.model.sharing import CpuAssignment, CpuBudget, CpuPlan


def assign_cpus(
    paths: Sequence[DrivePath],
    threads: Mapping[str, int],
    allowed: AbstractSet[int],
    cores: Mapping[int, Sequence[int]],
) -> CpuPlan:
    """Return the CPUs of the drives that run at once.

    One CPU, the first, is left for everything else. Drives with the same near CPUs are treated alike: either
    each gets as many of its own as it has threads, or all of them share these CPUs. Drives whose node is not
    known, or has no CPU that may be used, get what is left. Different cores come before siblings of one core.

    Args:
        paths: the drives of one group, on one host.
        threads: job threads of fio at once, at most, by drive; 1 where a drive is missing.
        allowed: CPUs that may be used.
        cores: CPUs of each CPU's core; a CPU that is missing is a core of its own.

    Raises:
        ValueError: no CPU may be used.
    """
    if not allowed:
        raise ValueError("no CPU may be used")
    rest = frozenset({min(allowed)} if len(allowed) > 1 else ())
    free = frozenset(allowed) - rest
    pools: dict[frozenset[int], list[DrivePath]] = {}
    for path in sorted(paths, key=lambda path: path.slot_order):
        pools.setdefault(free.intersection(path.near_cpus), []).append(path)
    given: dict[str, tuple[int, ...]] = {}
    budgets = []
    # Those that may use any CPU come last.
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
    """Return CPUs so that each core gives one before any gives two, the core of the rest last."""

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
