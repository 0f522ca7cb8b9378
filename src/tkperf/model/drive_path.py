"""The path of a drive: the parts of a host that lie between it and the CPU, with what each carries."""

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
        """What the drive's own link carries; None: not known."""
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
