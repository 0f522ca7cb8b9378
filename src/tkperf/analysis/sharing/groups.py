"""Budgets of the parts that drives share, groups within these budgets, and the judgement for each drive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from tkperf.model.drive_path import DrivePath, Part
from tkperf.model.sharing import BudgetState, DriveGroup, PartBudget, ReadsCompared, ReadsState, SharingState

Parallel = Literal["auto", "all"] | int

_BY_READS = {ReadsState.SLOWED: SharingState.SLOWED, ReadsState.NOT_SLOWED: SharingState.NOT_SLOWED}
_BY_BUDGET = {
    BudgetState.OVER: SharingState.OVER_BUDGET,
    BudgetState.WITHIN: SharingState.WITHIN_BUDGET,
    BudgetState.NOT_KNOWN: SharingState.NOT_KNOWN,
}


def build_budgets(paths: Sequence[DrivePath]) -> tuple[PartBudget, ...]:
    """Return the budget of every part that two or more drives share, from the drives to the CPU.

    The demand is what the drives' own links carry in one direction: no drive can exceed it, and many need less.
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
    """Return the groups of drives that run at once, one group after the other.

    ``auto``: each drive, in slot order, goes into the first group where no part that it shares there is
    over its budget. A budget that is not known separates no drives: the group says that it is not known.
    ``all``: one group. A number: groups of so many in slot order, whatever the budgets say.

    Args:
        paths: the drives of one host.

    Raises:
        ValueError: a number below 1.
    """
    ordered = sorted(paths, key=lambda path: path.slot_order)
    if parallel == "auto":
        groups = _first_fit(ordered)
    else:
        size = max(1, len(ordered)) if parallel == "all" else parallel
        if size < 1:
            raise ValueError(f"{size} drives at once: at least 1 is needed")
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
        without_path=tuple(path.drive for path in paths if not path.parts),
    )


def judge_sharing(group: DriveGroup, reads: Mapping[str, ReadsCompared]) -> dict[str, SharingState]:
    """Return for each drive of a group what the others may do to it: by reads where they decide, else by budgets."""
    return {drive: _judge(drive, group, reads.get(drive)) for drive in group.drives}


def _judge(drive: str, group: DriveGroup, reads: ReadsCompared | None) -> SharingState:
    if len(group.drives) == 1:
        return SharingState.ALONE
    if reads is not None and reads.state in _BY_READS:
        return _BY_READS[reads.state]
    mine = tuple(budget for budget in group.budgets if drive in budget.drives)
    return _BY_BUDGET[replace(group, budgets=mine).state]
