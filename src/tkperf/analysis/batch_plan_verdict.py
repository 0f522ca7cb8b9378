"""Outlook on a batch that has not begun: what each drive's run comes to, which drives run at once, whether it would be
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tkperf.analysis.run_estimate import PlanCode, RunEstimate, judge_plan
from tkperf.analysis.verdict import Judgement, NamedReason, VerdictCode, VerdictState, judge_by_gravest
from tkperf.model.sharing import BudgetState, CpuPlan, DriveGroup, PartBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveEstimate:
    """A drive of a batch and the outlook on its run.

    Attributes:
        number: its place in the batch, from 1.
        name: the run's name.
        given: the drive as the user named it.
        path: None: the name leads to no drive.
        fault: why nothing more is known of it; empty: nothing is wrong with it so far.
        estimate: None: it has a fault.
        host: findings about the host and the drive in it.
    """

    number: int
    name: str
    given: str
    path: str | None
    slot: str | None = None
    fault: str = ""
    estimate: RunEstimate | None = None
    host: Sequence[Mapping[str, Any]] = ()

    @property
    def refusals(self) -> tuple[str, ...]:
        """Reasons for which the drive, and with it the batch, would be refused now."""
        if self.estimate is None:
            return (self.fault,)
        return self.estimate.refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEstimate:
    """Everything known of a batch before it begins.

    Attributes:
        groups: the drives without a fault, by their names, as they would be measured at once.
        cpus: CPUs of each group; None: its drives share all.
        bounds_s: shortest and longest time of all groups, one after the other.
        refused: why the batch as a whole would be refused; empty: it would not.
        settings: how the batch would proceed, each with its label.
    """

    name: str
    drives: tuple[DriveEstimate, ...]
    groups: tuple[DriveGroup, ...] = ()
    cpus: tuple[CpuPlan | None, ...] = ()
    bounds_s: tuple[float, float] = (0.0, 0.0)
    refused: str = ""
    settings: tuple[tuple[str, str], ...] = field(default=())

    @property
    def estimates(self) -> tuple[RunEstimate, ...]:
        """The outlooks on the drives without a fault."""
        return tuple(drive.estimate for drive in self.drives if drive.estimate is not None)

    @property
    def refused_drives(self) -> tuple[DriveEstimate, ...]:
        return tuple(drive for drive in self.drives if drive.refusals)

    @property
    def written_bytes(self) -> tuple[float, float]:
        """The least and the greatest amount that is written to all drives."""
        estimates = self.estimates
        return sum(one.least_bytes for one in estimates), sum(one.most_bytes for one in estimates)

    @property
    def shares(self) -> tuple[float, float] | None:
        """Least and most share of a drive's rating, over all drives; None without a rating."""
        shares = [one.shares for one in self.estimates if one.shares is not None]
        if not shares:
            return None
        return min(least for least, _ in shares), max(most for _, most in shares)

    @property
    def lost(self) -> int:
        """Number of drives whose data would be lost."""
        return sum(one.asks for one in self.estimates)

    @property
    def simulated(self) -> bool:
        """Return whether no drive is a real one."""
        found = [drive.estimate for drive in self.drives]
        return all(estimate is not None and estimate.simulated for estimate in found)

    @property
    def over_budget(self) -> tuple[PartBudget, ...]:
        """Parts that drives of one group may overload, each once."""
        found = {
            budget.part.key: budget
            for group in self.groups
            for budget in group.budgets
            if budget.state is BudgetState.OVER
        }
        return tuple(found.values())


def judge_batch_plan(estimate: BatchEstimate) -> Judgement[NamedReason]:
    """Return whether the batch could begin, and with which cautions; a reason names its drives or parts."""
    names: dict[VerdictCode, list[str]] = {}
    for drive in estimate.drives:
        if drive.refusals:
            names.setdefault(PlanCode.REFUSED, []).append(drive.name)
        if drive.estimate is not None:
            for reason in judge_plan(drive.estimate).reasons:
                if reason.code is not PlanCode.REFUSED:
                    names.setdefault(reason.code, []).append(drive.name)
    if estimate.refused:
        names.setdefault(PlanCode.REFUSED, [])
    if estimate.over_budget:
        names[PlanCode.OVER_BUDGET] = [budget.part.name for budget in estimate.over_budget]
    reasons = [NamedReason(code=code, names=tuple(found)) for code, found in names.items()]
    return judge_by_gravest(reasons, VerdictState.CAN_RUN, simulated=estimate.simulated)
