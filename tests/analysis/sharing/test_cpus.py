"""Assignment of CPUs to drives that are measured at the same time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tkperf.analysis.sharing.groups import assign_cpus
from tkperf.model.sharing import BudgetState, CpuPlan, DrivePath

NODES = {0: tuple(range(4)), 1: tuple(range(4, 8))}


def drives(*nodes: int | None) -> list[DrivePath]:
    return [
        DrivePath(drive=f"d{n}", numa_node=node, near_cpus=() if node is None else NODES[node])
        for n, node in enumerate(nodes)
    ]


def cpus_of(plan: CpuPlan) -> list[tuple[int, ...]]:
    return [one.cpus for one in plan.assignments]


def test_each_drive_gets_its_own_near_its_node() -> None:
    """Each drive receives as many CPUs as it has threads, near its NUMA node. The first CPU remains for all other
    work.
    """
    plan = assign_cpus(drives(0, 1, 0), {"d1": 3}, set(range(8)), {})
    assert cpus_of(plan) == [(1,), (4, 5, 6), (2,)]
    assert plan.rest == (0,)
    assert not any(one.is_shared or one.shares_cores for one in plan.assignments)
    assert all(one.is_near for one in plan.assignments)
    assert [(one.numa_node, one.threads, one.state) for one in plan.budgets] == [
        (0, 2, BudgetState.WITHIN),
        (1, 3, BudgetState.WITHIN),
    ]


def test_drives_of_a_node_are_treated_alike() -> None:
    """If a node has too few CPUs for its drives, all drives of the node share its CPUs and are marked as shared. Drives
    of another node keep their own CPUs.
    """
    plan = assign_cpus(drives(0, 0, 0, 0, 1), {}, set(range(8)), {})
    assert cpus_of(plan) == [(1, 2, 3)] * 4 + [(4,)]
    assert [one.is_shared for one in plan.assignments] == [True] * 4 + [False]
    assert plan.budgets[0].factor == pytest.approx(4 / 3)
    assert plan.budgets[0].state is BudgetState.OVER


def test_a_drive_whose_node_is_not_known_gets_what_is_left() -> None:
    """A drive with an unknown NUMA node receives CPUs that the other drives do not use. Its CPUs are marked as neither
    near nor far.
    """
    plan = assign_cpus(drives(None, 0), {}, set(range(4)), {})
    assert cpus_of(plan) == [(2,), (1,)]
    assert [one.is_near for one in plan.assignments] == [None, True]


def test_a_node_whose_cpus_may_not_be_used() -> None:
    """If tkperf may not use any CPU of the drive's node, the drive receives CPUs of another node. These CPUs are marked
    as not near.
    """
    plan = assign_cpus(drives(1), {}, {0, 1}, {})
    assert cpus_of(plan) == [(1,)]
    assert plan.assignments[0].is_near is False


def test_cores_come_before_their_siblings() -> None:
    """Drives receive separate cores before they receive sibling threads of used cores. If only two cores remain for
    three drives, the two drives that share a core are marked. The core that is reserved for other work is used last.
    """
    cores = {0: (0, 4), 4: (0, 4), 1: (1, 5), 5: (1, 5), 2: (2, 6), 6: (2, 6)}
    allowed = {0, 1, 2, 4, 5, 6}
    two = assign_cpus(drives(None, None), {}, allowed, cores)
    assert cpus_of(two) == [(1,), (2,)]
    assert not any(one.shares_cores for one in two.assignments)
    three = assign_cpus(drives(None, None, None), {}, allowed, cores)
    assert cpus_of(three) == [(1,), (2,), (5,)]
    assert [one.shares_cores for one in three.assignments] == [True, False, True]


def test_hosts_with_one_or_two_cpus() -> None:
    """If a host has only one or two CPUs, all drives share one CPU. On a host with one CPU, no CPU remains for other
    work. Without any usable CPU, the assignment fails.
    """
    one = assign_cpus(drives(None, None), {}, {0}, {})
    assert (cpus_of(one), one.rest) == ([(0,), (0,)], ())
    two = assign_cpus(drives(None, None), {}, {0, 1}, {})
    assert (cpus_of(two), two.rest) == ([(1,), (1,)], (0,))
    assert all(one.is_shared for one in two.assignments)
    with pytest.raises(ValueError, match="not allowed to use any CPU"):
        assign_cpus(drives(None), {}, set(), {})


@given(
    st.lists(st.sampled_from([None, 0, 1]), max_size=8),
    st.sets(st.integers(0, 7), min_size=1),
    st.lists(st.integers(0, 4), min_size=8, max_size=8),
)
def test_assignments_are_what_they_say(nodes: list[int | None], allowed: set[int], counts: list[int]) -> None:
    """Each drive receives at least one usable CPU. A drive is marked as shared if and only if another drive uses one of
    these CPUs.
    """
    threads = {f"d{n}": count for n, count in enumerate(counts)}
    plan = assign_cpus(drives(*nodes), threads, allowed, {})
    for one in plan.assignments:
        others = {c for other in plan.assignments if other.drive != one.drive for c in other.cpus}
        assert one.cpus
        assert set(one.cpus) <= allowed - set(plan.rest)
        assert one.is_shared == bool(others & set(one.cpus))
