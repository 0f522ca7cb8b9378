"""What drives that are measured at once share: budgets of parts, CPUs, reads alone and together. The module has
codes and numbers, no words.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec


class PartKind(StrEnum):
    """Kind of a part; the drive's own link comes first on each path."""

    DRIVE_LINK = "drive's link"
    EXPANDER = "SAS expander"
    USB_HUB = "USB hub"
    CONTROLLER = "controller"
    PCIE_SWITCH = "PCIe switch"
    CHIPSET = "chipset"


class LinkGap(StrEnum):
    """Reason why a part's bandwidth is not known."""

    NOT_SHOWN = "the kernel shows no link"
    INTEGRATED = "it is built into the CPU or chipset, whose own link the kernel does not show"
    VIRTUAL = "it is a device of a virtual machine"


class PathGap(StrEnum):
    """Reason why a drive has no path."""

    SIMULATED = "a simulated drive"
    FILE = "a file"
    PARTITION = "a partition"
    LOOP = "a loop device"
    MAPPED = "a device of device-mapper"
    ARRAY = "an MD array"
    MEMBER = "a member of an MD array"
    NETWORK = "a drive over a network"
    NO_HARDWARE = "no hardware below it is shown"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part on the paths of drives: its link toward the CPU.

    Attributes:
        key: distinguishes the parts of one host.
        name: its name for people.
        link: negotiated speed and width, such as ``PCIe gen 3 x8``; None: not known.
        bytes_per_s: what that carries in one direction after line encoding; None: not known.
        gap: why ``bytes_per_s`` is not known.
    """

    key: str
    kind: PartKind
    name: str
    link: str | None = None
    bytes_per_s: int | None = None
    gap: LinkGap | None = None


class DrivePath(msgspec.Struct, frozen=True, kw_only=True):
    """The path of a drive.

    Attributes:
        drive: the drive as its target is named.
        parts: from the drive to the CPU, the drive's own link first; empty: not known.
        gap: why there are no parts.
        slot: slot, bay or port by the name that the host gives it.
        numa_node: None: not known.
        near_cpus: CPUs nearest to the drive; empty: not known.
    """

    drive: str
    parts: tuple[Part, ...] = ()
    gap: PathGap | None = None
    slot: str | None = None
    numa_node: int | None = None
    near_cpus: tuple[int, ...] = ()

    @property
    def link_bytes_per_s(self) -> int | None:
        """The greatest rate of the drive's own link; None: not known."""
        return self.parts[0].bytes_per_s if self.parts else None

    @property
    def slot_order(self) -> tuple[tuple[str, ...], str, str]:
        """Key that sorts drives by controller and expander, then by slot, numbers in words by value."""
        above = tuple(_padded(part.key) for part in reversed(self.parts[1:]))
        own = self.slot or (self.parts[0].key if self.parts else "")
        return above, _padded(own), _padded(self.drive)


def _padded(words: str) -> str:
    # Addresses of PCI functions are hexadecimal, and as long as each other.
    if words.startswith("pci "):
        return words
    return re.sub(r"\d+", lambda found: found[0].zfill(12), words)


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
        without_path: drives whose path is not known. They may share any part with the others. Simulated drives are
            not among them, because they share nothing.
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
    """Outcome of the judgement. The first two come from a comparison of reads, the next two from budgets."""

    NOT_SLOWED = "not slowed"
    SLOWED = "slowed"
    WITHIN_BUDGET = "within budget"
    OVER_BUDGET = "over budget"
    NOT_KNOWN = "not known"
    ALONE = "alone"
