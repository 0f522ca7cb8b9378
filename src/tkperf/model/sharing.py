"""What drives that are measured at once share: budgets of parts, CPUs, reads alone and together. Codes and numbers
only.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tkperf.model.drive_path import Part


class BudgetState(StrEnum):
    """State of a budget; not known is never within."""

    WITHIN = "within budget"
    OVER = "over budget"
    NOT_KNOWN = "not known"


class PartBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Demand on a part by drives that share it, against what it carries.

    Attributes:
        drives: in slot order.
        demand_bytes_per_s: what the drives' own links carry together, as far as they are known.
        drives_not_known: the drives whose own links are not known.
    """

    part: Part
    drives: tuple[str, ...]
    demand_bytes_per_s: int
    drives_not_known: tuple[str, ...] = ()

    @property
    def factor(self) -> float | None:
        """Demand divided by what the part carries, at least; None: not known."""
        if self.part.bytes_per_s is None:
            return None
        return self.demand_bytes_per_s / self.part.bytes_per_s

    @property
    def state(self) -> BudgetState:
        if self.factor is not None and self.factor > 1:
            return BudgetState.OVER
        if self.factor is None or self.drives_not_known:
            return BudgetState.NOT_KNOWN
        return BudgetState.WITHIN


class DriveGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Drives that are measured at once, in slot order.

    Attributes:
        budgets: of every part that two or more of them share.
        without_path: drives that may share anything with the others.
    """

    drives: tuple[str, ...]
    budgets: tuple[PartBudget, ...] = ()
    without_path: tuple[str, ...] = ()

    @property
    def state(self) -> BudgetState:
        states = {budget.state for budget in self.budgets}
        if BudgetState.OVER in states:
            return BudgetState.OVER
        if BudgetState.NOT_KNOWN in states or (self.without_path and len(self.drives) > 1):
            return BudgetState.NOT_KNOWN
        return BudgetState.WITHIN


class CpuAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """CPUs of a drive's load.

    Attributes:
        threads: job threads of fio at once, at most.
        is_shared: another drive of the group has at least one of these CPUs, too.
        shares_cores: another drive has the sibling of at least one of them.
        is_near: all are at the drive's NUMA node; None: the node is not known.
    """

    drive: str
    cpus: tuple[int, ...]
    threads: int
    is_shared: bool
    shares_cores: bool
    is_near: bool | None


class CpuBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Job threads of drives that draw on the same CPUs, against these CPUs."""

    numa_node: int | None
    cpus: tuple[int, ...]
    drives: tuple[str, ...]
    threads: int

    @property
    def factor(self) -> float:
        return self.threads / len(self.cpus)

    @property
    def state(self) -> BudgetState:
        return BudgetState.OVER if self.factor > 1 else BudgetState.WITHIN


class CpuPlan(msgspec.Struct, frozen=True, kw_only=True):
    """CPUs of a group of drives; ``rest``: the one that is left for everything else, if there is more than one."""

    assignments: tuple[CpuAssignment, ...]
    budgets: tuple[CpuBudget, ...]
    rest: tuple[int, ...]


class ReadsState(StrEnum):
    """Outcome of a comparison of reads; not known: the interval lies on both sides of the limit, or there is none."""

    NOT_SLOWED = "not slowed"
    SLOWED = "slowed"
    NOT_KNOWN = "not known"


class ReadsCompared(msgspec.Struct, frozen=True, kw_only=True):
    """A drive's reads while others read as well, compared with its reads alone.

    Attributes:
        alone, together: mean rates, of I/Os or bytes.
        ratio: together divided by alone; None: not known, as for a rate of 0.
        low, high: interval of 95 % coverage of the ratio of both levels; None: not known.
    """

    drive: str
    alone: float
    together: float
    ratio: float | None
    low: float | None
    high: float | None
    state: ReadsState


class SharingState(StrEnum):
    """Outcome of the judgement: by a comparison of reads the first two, by budgets the next two."""

    NOT_SLOWED = "not slowed"
    SLOWED = "slowed"
    WITHIN_BUDGET = "within budget"
    OVER_BUDGET = "over budget"
    NOT_KNOWN = "not known"
    ALONE = "alone"
