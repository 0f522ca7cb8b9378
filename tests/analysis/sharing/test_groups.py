"""Budgets of shared parts, groups of drives that respect these budgets, and the judgement of each drive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.host.fake_drives import FakeDrives, nvme_behind_switch, sata_behind_expander, sata_on_chipset
from tkperf.analysis.sharing.groups import build_budgets, compare_reads, group_drives, judge_sharing
from tkperf.host.paths import read_path
from tkperf.model.sharing import BudgetState, DrivePath, Part, PartKind, PathGap, SharingState


def part(key: str, mb_s: int | None, kind: PartKind = PartKind.CONTROLLER) -> Part:
    return Part(key=key, kind=kind, name=key, bytes_per_s=None if mb_s is None else mb_s * 10**6)


def path(drive: str, mb_s: int | None, *above: Part, slot: str | None = None) -> DrivePath:
    own = part(f"link {drive}", mb_s, PartKind.DRIVE_LINK)
    return DrivePath(drive=drive, parts=(own, *above), slot=slot)


EXPANDER, ADAPTER = part("expander", 4800, PartKind.EXPANDER), part("adapter", 7877)
SWITCH = part("switch", 15754, PartKind.PCIE_SWITCH)
SHELF = [path(f"sd{n:02}", 600, EXPANDER, ADAPTER, slot=f"bay {n}") for n in range(24)]
NVME = [path(f"nvme{n}n1", 7877, SWITCH) for n in range(4)]
CHIPSET = [path(name, 600, part("ahci", None)) for name in ("sda", "sdb")]


def sizes(paths: Sequence[DrivePath], parallel: object = "auto") -> list[int]:
    return [len(group.drives) for group in group_drives(paths, parallel)]  # type: ignore[arg-type]


def test_demand_against_what_a_part_carries() -> None:
    """The demand on a part is the sum of the link rates of all drives that share the part."""
    expander, adapter = build_budgets(SHELF)
    assert (expander.part.key, expander.demand_bytes_per_s, expander.factor) == ("expander", 14_400_000_000, 3.0)
    assert expander.state is BudgetState.OVER
    assert adapter.factor == pytest.approx(1.828, abs=1e-3)
    assert len(expander.drives) == len(adapter.drives) == 24


def test_a_drive_alone_shares_nothing() -> None:
    """The link of a single drive is not a shared part, even if a part further up the path is slower than the drive."""
    assert build_budgets([path("nvme0n1", 7877, part("port", 3938))]) == ()


def test_auto_keeps_within_each_budget() -> None:
    """Automatic grouping forms the largest groups that respect each budget. Drives are in slot order, so bay 2 precedes
    bay 10.
    """
    groups = group_drives(SHELF[::-1], "auto")
    assert [group.drives for group in groups] == [
        tuple(f"sd{n:02}" for n in range(first, first + 8)) for first in (0, 8, 16)
    ]
    assert {group.state for group in groups} == {BudgetState.WITHIN}
    assert sizes(NVME) == [2, 2]


def test_drives_on_different_parts_run_together() -> None:
    """A full expander does not limit a drive that is connected to a switch."""
    first, *_ = group_drives([*SHELF, *NVME], "auto")
    assert len(first.drives) == 8 + 2


def test_a_number_and_all_ignore_budgets() -> None:
    """If the user requests groups of a fixed number of drives, or one group of all drives, tkperf forms these groups
    even if they exceed a budget. A group that exceeds a budget has the state OVER.
    """
    (everything,) = group_drives(SHELF, "all")
    assert everything.state is BudgetState.OVER
    assert sizes(SHELF, 10) == [10, 10, 4]
    assert sizes(SHELF, 1) == [1] * 24
    assert sizes(SHELF, 30) == [24]
    assert group_drives([], "all") == group_drives([], "auto") == ()
    with pytest.raises(ValueError, match="must be 1 or more"):
        group_drives(SHELF, 0)


def test_not_known_separates_nothing_and_is_never_within() -> None:
    """If the limit of a shared part is not known, the drives that share the part run at the same time and are not
    judged.
    """
    (group,) = group_drives(CHIPSET, "auto")
    (budget,) = group.budgets
    assert (budget.factor, budget.state) == (None, BudgetState.NOT_KNOWN)
    assert group.state is BudgetState.NOT_KNOWN
    assert judge_sharing(group, {}) == dict.fromkeys(group.drives, SharingState.NOT_KNOWN)


def test_a_drive_whose_link_is_not_known() -> None:
    """A drive with an unknown link adds nothing to the demand of a part. The state of the part is then not known,
    unless the other drives alone exceed the budget.
    """
    (budget,) = build_budgets([path("a", None, SWITCH), path("b", 7877, SWITCH)])
    assert budget.drives_not_known == ("a",)
    assert budget.factor == pytest.approx(0.5)
    assert budget.state is BudgetState.NOT_KNOWN
    (budget,) = build_budgets([path("a", None, SWITCH), *NVME])
    assert budget.state is BudgetState.OVER


def test_drives_without_a_path_are_not_judged() -> None:
    """A loop device has no path. In a group, it is not judged, because it may share parts with the other drives. A loop
    device that runs alone does not share any part.
    """
    loop = DrivePath(drive="loop0", gap=PathGap.LOOP)
    (group,) = group_drives([NVME[0], loop], "auto")
    assert (group.without_path, group.state) == (("loop0",), BudgetState.NOT_KNOWN)
    assert set(judge_sharing(group, {}).values()) == {SharingState.NOT_KNOWN}
    (alone,) = group_drives([loop], "auto")
    assert alone.state is BudgetState.WITHIN
    assert judge_sharing(alone, {}) == {"loop0": SharingState.ALONE}


def test_each_drive_is_judged_by_its_own_parts() -> None:
    """Only the parts that a drive uses decide its judgement. The result of compared reads takes precedence over
    budgets.
    """
    (group,) = group_drives([*NVME[:3], *SHELF[:2]], "all")
    assert judge_sharing(group, {}) == {
        "nvme0n1": SharingState.OVER_BUDGET,
        "nvme1n1": SharingState.OVER_BUDGET,
        "nvme2n1": SharingState.OVER_BUDGET,
        "sd00": SharingState.WITHIN_BUDGET,
        "sd01": SharingState.WITHIN_BUDGET,
    }
    reads = {
        "nvme0n1": compare_reads("nvme0n1", [1000, 1001, 999] * 4, [1001, 999, 1000] * 4),
        "nvme1n1": compare_reads("nvme1n1", [1000, 1001, 999] * 4, [500, 501, 499] * 4),
        "nvme2n1": compare_reads("nvme2n1", [1000], [1000]),
    }
    judged = judge_sharing(group, reads)
    assert judged["nvme0n1"] is SharingState.NOT_SLOWED
    assert judged["nvme1n1"] is SharingState.SLOWED
    assert judged["nvme2n1"] is SharingState.OVER_BUDGET


def test_groups_by_sysfs(tmp_path: Path) -> None:
    """Drives are grouped according to the paths in sysfs. A degraded link lowers the demand, so another drive fits into
    the budget.
    """
    fake = FakeDrives(tmp_path)
    identities = [*nvme_behind_switch(fake), *sata_behind_expander(fake), *sata_on_chipset(fake)]
    paths = [read_path(identity, sys_root=tmp_path) for identity in identities]
    budgets = {budget.part.name: budget for budget in build_budgets(paths)}
    factors = {name: budget.factor and round(budget.factor, 2) for name, budget in budgets.items()}
    assert factors == {
        "SATA controller 0000:00:17.0": None,
        "PCIe switch 0000:01:00.0": 2.0,
        "SAS expander expander-6:0": 3.0,
        "SAS controller 0000:0a:00.0": 1.83,
    }
    assert sizes(paths) == [2 + 2 + 8, 2 + 8, 8]
    for width in tmp_path.glob("**/0000:0[45]:00.0/current_link_width"):
        width.write_text("2\n")
    narrower = [read_path(identity, sys_root=tmp_path) for identity in identities]
    assert sizes(narrower) == [2 + 3 + 8, 1 + 8, 8]


@st.composite
def some_paths(draw: st.DrawFn) -> list[DrivePath]:
    carried = st.one_of(st.none(), st.integers(1, 5000))
    shared = [part(f"part{n}", draw(carried)) for n in range(3)]
    return [
        path(f"d{n}", draw(carried), *draw(st.lists(st.sampled_from(shared), unique=True)))
        for n in range(draw(st.integers(0, 8)))
    ]


@given(some_paths(), st.sampled_from(["auto", "all", 1, 3]))
def test_groups_have_each_drive_once(paths: list[DrivePath], parallel: str | int) -> None:
    """Automatic grouping assigns each drive to exactly one group, and no group exceeds the budget of a part. The order
    of the drives does not matter.
    """
    groups = group_drives(paths, parallel)  # type: ignore[arg-type]
    assert sorted(drive for group in groups for drive in group.drives) == sorted(path.drive for path in paths)
    if parallel == "auto":
        assert all(group.state is not BudgetState.OVER for group in groups)
    assert groups == group_drives(paths[::-1], parallel)  # type: ignore[arg-type]
