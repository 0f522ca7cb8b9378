"""The resources that drives share while they are measured at the same time, such as bandwidth and CPUs, and the effect
on reads. This module contains codes and numbers, but no texts.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec


class PartKind(StrEnum):
    """The kind of a part on the path from a drive to the CPU. The first part of each path is the link of the drive."""

    DRIVE_LINK = "drive's link"
    EXPANDER = "SAS expander"
    USB_HUB = "USB hub"
    CONTROLLER = "controller"
    PCIE_SWITCH = "PCIe switch"
    CHIPSET = "chipset"


class LinkGap(StrEnum):
    """The reason why the bandwidth of a part is not known."""

    NOT_SHOWN = "the kernel shows no link"
    INTEGRATED = "it is built into the CPU or chipset, whose own link the kernel does not show"
    VIRTUAL = "it is a device of a virtual machine"


class PathGap(StrEnum):
    """The reason why the path of a drive is not known."""

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
    """A part on the paths from drives to the CPU, with the link from this part toward the CPU.

    Attributes:
        key: a text that identifies the part among all parts of the host.
        name: the name of the part, as text for people to read.
        link: negotiated speed and width, such as ``PCIe gen 3 x8``. None means that the value is not known.
        bytes_per_s: the bandwidth of the link in one direction, after line encoding. None means that the value is not
            known.
        gap: the reason why ``bytes_per_s`` is not known.
    """

    key: str
    kind: PartKind
    name: str
    link: str | None = None
    bytes_per_s: int | None = None
    gap: LinkGap | None = None


class DrivePath(msgspec.Struct, frozen=True, kw_only=True):
    """The parts between a drive and the CPU.

    Attributes:
        drive: the path of the drive or the name of its run.
        parts: the parts from the drive to the CPU, the link of the drive first. An empty value means that the value is
            not known.
        gap: the reason why the parts are not known.
        slot: slot, bay or port, with the name that the host uses.
        numa_node: the NUMA node of the drive. None means that the value is not known.
        near_cpus: the CPUs nearest to the drive. An empty value means that the value is not known.
    """

    drive: str
    parts: tuple[Part, ...] = ()
    gap: PathGap | None = None
    slot: str | None = None
    numa_node: int | None = None
    near_cpus: tuple[int, ...] = ()

    @property
    def link_bytes_per_s(self) -> int | None:
        """Return the greatest rate of the link of the drive. None means that the value is not known."""
        return self.parts[0].bytes_per_s if self.parts else None

    @property
    def slot_order(self) -> tuple[tuple[str, ...], str, str]:
        """Return a key that sorts drives by controller and expander, and then by slot. Numbers within words are sorted
        by their numerical value.
        """
        above = tuple(_padded(part.key) for part in reversed(self.parts[1:]))
        own = self.slot or (self.parts[0].key if self.parts else "")
        return above, _padded(own), _padded(self.drive)


def _padded(words: str) -> str:
    # Addresses of PCI functions are hexadecimal numbers of equal length, so they need no padding.
    if words.startswith("pci "):
        return words
    return re.sub(r"\d+", lambda found: found[0].zfill(12), words)


class BudgetState(StrEnum):
    """The state of a budget: whether the demand is within the bandwidth. If a value is not known, the state is never
    "within".
    """

    WITHIN = "within budget"
    OVER = "over budget"
    NOT_KNOWN = "not known"


class PartBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of the drives that share a part, and the bandwidth of the part.

    Attributes:
        drives: the drives in slot order.
        demand_bytes_per_s: sum of the bandwidths of the drives' links, as far as the bandwidths are known.
        drives_not_known: the drives with unknown links.
    """

    part: Part
    drives: tuple[str, ...]
    demand_bytes_per_s: int
    drives_not_known: tuple[str, ...] = ()

    @property
    def factor(self) -> float | None:
        """Return the demand divided by the bandwidth of the part. None means that the value is not known. The true
        value may be larger if some links are not known.
        """
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
    """Drives that are measured at the same time, in slot order.

    Attributes:
        budgets: the budget of every part that two or more of the drives share.
        without_path: drives with an unknown path. These drives may share any part with the other drives. Simulated
            drives are not listed here, because they share no parts.
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
    """The CPUs for the load of a drive.

    Attributes:
        threads: the largest number of threads that fio runs at the same time.
        is_shared: whether another drive of the group uses at least one of these CPUs.
        shares_cores: whether another drive uses another CPU of the same core.
        is_near: whether all CPUs belong to the NUMA node of the drive. None means that the node is not known.
    """

    drive: str
    cpus: tuple[int, ...]
    threads: int
    is_shared: bool
    shares_cores: bool
    is_near: bool | None


class CpuBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The threads of drives that use the same CPUs, and these CPUs."""

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
    """The assignment of CPUs to a group of drives. ``rest`` contains the CPU for all other programs. ``rest`` is empty
    if only a single CPU may be used.
    """

    assignments: tuple[CpuAssignment, ...]
    budgets: tuple[CpuBudget, ...]
    rest: tuple[int, ...]


class ReadsState(StrEnum):
    """The outcome of a comparison of reads. The outcome is "not known" if the interval contains the limit, or if no
    interval is known.
    """

    NOT_SLOWED = "not slowed"
    SLOWED = "slowed"
    NOT_KNOWN = "not known"


class ReadsCompared(msgspec.Struct, frozen=True, kw_only=True):
    """The reads of a drive while other drives also read, compared with the reads of the drive alone.

    Attributes:
        alone, together: mean rates of I/Os or of bytes.
        ratio: ``together`` divided by ``alone``. None means that the value is not known, for example if a rate is 0.
        low, high: the 95 % interval of the ratio. None means that the value is not known.
    """

    drive: str
    alone: float
    together: float
    ratio: float | None
    low: float | None
    high: float | None
    state: ReadsState


class SharingState(StrEnum):
    """The influence of the drives of a group on each other. The first two states are results of a comparison of reads.
    The next two states follow from the budgets of shared parts.
    """

    NOT_SLOWED = "not slowed"
    SLOWED = "slowed"
    WITHIN_BUDGET = "within budget"
    OVER_BUDGET = "over budget"
    NOT_KNOWN = "not known"
    ALONE = "alone"
