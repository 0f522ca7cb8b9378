"""The paths from drives to the CPU according to sysfs: links, expanders, hubs, controllers and PCIe switches. The
module also finds the nearest CPUs of a drive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.links import Link, read_link, read_pcie_link, read_sas_link, read_usb_link
from tkperf.device.sysfs import SYS_ROOT, find_disk, find_node, find_nvme_controller, find_pci_function, number, text
from tkperf.host.audit.audited_host import USB_HUB_CLASS, find_place_on_bus, parse_list, read_nodes
from tkperf.model.sharing import DrivePath, LinkGap, Part, PartKind, PathGap

_PCI_BRIDGE = "0x0604"
# Controllers by PCI class (PCI Code and ID Assignment Specification).
_CONTROLLERS = {
    "0x0100": "SCSI controller",
    "0x0104": "RAID controller",
    "0x0106": "SATA controller",
    "0x0107": "SAS controller",
    "0x0c03": "USB controller",
}
# PCI vendors of devices that virtual machines emulate: virtio and other devices of QEMU.
_EMULATED_VENDORS = ("0x1af4", "0x1b36")
# The device numbers that Intel's chipsets use on the first bus: USB, SATA, PCIe slots, older SATA. PCIe slots of the
# CPU have other numbers.
_INTEL, _CHIPSET_DEVICES = "0x8086", ("14", "17", "1b", "1c", "1d", "1f")
_ATA_PORT = re.compile(r"ata\d+")


def read_path(identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT) -> DrivePath:
    """Return the path of a drive. If the kernel does not show a part of the path, the part is marked as not known."""
    if identity.kind is not TargetKind.BLOCK or identity.major_minor is None:
        is_file = identity.kind is TargetKind.FILE
        gap = PathGap.FILE if is_file else PathGap.SIMULATED
        return DrivePath(drive=identity.path, gap=gap)
    node = find_node(identity.major_minor, sys_root)
    if (missing := _find_gap(node, sys_root)) is not None:
        return DrivePath(drive=identity.path, gap=missing)
    disk = find_disk(node)
    parts = tuple(_read_parts(disk))
    numa_node, near = _read_cpus(disk, sys_root)
    return DrivePath(
        drive=identity.path,
        parts=parts,
        gap=None if parts else PathGap.NO_HARDWARE,
        slot=_read_slot(disk, sys_root),
        numa_node=numa_node,
        near_cpus=tuple(sorted(near)),
    )


def read_cores(sys_root: Path = SYS_ROOT) -> dict[int, tuple[int, ...]]:
    """Return, for each CPU, all CPUs of the same core in ascending order, including the CPU itself. If the kernel does
    not show the core of a CPU, the CPU is omitted.
    """
    cores = {}
    for folder in (sys_root / "devices/system/cpu").glob("cpu[0-9]*"):
        siblings = parse_list(text(folder / "topology/thread_siblings_list"))
        if siblings:
            cores[int(folder.name.removeprefix("cpu"))] = tuple(sorted(siblings))
    return cores


def _find_gap(node: Path, sys_root: Path) -> PathGap | None:
    if (node / "partition").exists():
        return PathGap.PARTITION
    if node.name.startswith("loop"):
        return PathGap.LOOP
    if (node / "dm").exists():
        return PathGap.MAPPED
    if (node / "md").exists():
        return PathGap.ARRAY
    if any((node / "holders").glob("md*")):
        return PathGap.MEMBER
    controller = find_nvme_controller(node)
    if controller is not None and text(controller / "transport") not in (None, "pcie"):
        return PathGap.NETWORK
    place = find_place_on_bus(node)
    if not node.exists() or place.is_relative_to(sys_root.resolve() / "devices/virtual"):
        return PathGap.NO_HARDWARE
    return None


def _read_parts(disk: Path) -> Iterator[Part]:
    """Yield the parts of the path from the drive to the CPU. Each physical link is yielded once."""
    place = find_place_on_bus(disk)
    function = find_pci_function(place)
    is_nvme = find_nvme_controller(disk) is not None
    is_virtual = function is not None and text(function / "vendor") in _EMULATED_VENDORS
    gap = LinkGap.VIRTUAL if is_virtual else LinkGap.NOT_SHOWN
    if not is_nvme:
        key, name = _name_own_link(disk)
        yield _build(PartKind.DRIVE_LINK, key, name, read_link(disk), gap)
        yield from _read_expanders_and_hubs(disk)
    if function is None:
        return
    key = _key_of_link(function)
    (_, link, is_integrated), *above = _read_pcie_links(function)
    if is_virtual:
        # This link and the links above it are emulated.
        link, above = None, []
    if is_nvme:
        yield _build(PartKind.DRIVE_LINK, key, f"NVMe link {function.name}", link, gap)
    else:
        gap = LinkGap.INTEGRATED if is_integrated and not is_virtual else gap
        yield _build(PartKind.CONTROLLER, key, _name_controller(function), link, gap)
    for switch, link, _ in above:
        name = f"PCIe switch {switch.name}"
        yield _build(PartKind.PCIE_SWITCH, _key_of_link(switch), name, link)
    lowest = above[-1][0] if above else function
    if not is_virtual and (chipset := _find_chipset(_bridge_above(lowest) or lowest)) is not None:
        name = "link of the chipset to the CPU"
        yield _build(PartKind.CHIPSET, chipset, name, None, LinkGap.INTEGRATED)


def _find_chipset(function: Path) -> str | None:
    """Return the key of the chipset to which a function on the first bus belongs. None means that the function belongs
    to the CPU, or that the chipset is not known.
    """
    domain, bus, device = function.name.partition(".")[0].split(":")
    is_chipset = text(function / "vendor") == _INTEL and bus == "00" and device in _CHIPSET_DEVICES
    return f"chipset {domain}" if is_chipset else None


def _read_pcie_links(function: Path | None) -> Iterator[tuple[Path, Link | None, bool]]:
    """Yield the links from a PCI function to the CPU. For each link, yield its lower end, the link itself, and True if
    the link has no upper end.

    The kernel shows a link at both of its ends. If the lower end does not show the link, the upper end is used. The
    function above an upper end belongs to a switch, and is the lower end of the next link.
    """
    while function is not None:
        upper = _bridge_above(function)
        link = read_pcie_link(function)
        if upper is not None and (link is None or link.bytes_per_s is None):
            link = read_pcie_link(upper) or link
        yield function, link, upper is None
        function = None if upper is None else _bridge_above(upper)


def _key_of_link(function: Path) -> str:
    """Return the key of the link of a function. Below a bridge, all functions of a bus have the same key."""
    is_below = _bridge_above(function) is not None
    return f"pci {function.name.rpartition(':')[0] if is_below else function.name}"


def _bridge_above(function: Path) -> Path | None:
    above = function.parent
    return above if (text(above / "class") or "").startswith(_PCI_BRIDGE) else None


def _build(kind: PartKind, key: str, name: str, link: Link | None, gap: LinkGap = LinkGap.NOT_SHOWN) -> Part:
    carried = None if link is None else link.bytes_per_s
    return Part(
        key=key,
        kind=kind,
        name=name,
        link=None if link is None else link.negotiated,
        bytes_per_s=carried,
        gap=gap if carried is None else None,
    )


def _name_own_link(disk: Path) -> tuple[str, str]:
    """Return the key and the name of the link of a drive that is not an NVMe drive."""
    for folder in disk.resolve().parents:
        if folder.name.startswith("end_device-"):
            return f"sas {folder.name}", f"SAS link {folder.name}"
        if _ATA_PORT.fullmatch(folder.name):
            return folder.name, f"SATA port {folder.name}"
        if (folder / "bDeviceClass").exists():
            return f"usb {folder.name}", f"USB port {folder.name}"
    return f"disk {disk.name}", f"link of {disk.name}"


def _read_expanders_and_hubs(disk: Path) -> Iterator[Part]:
    for folder in disk.resolve().parents:
        if folder.name.startswith("expander-"):
            link = read_sas_link(folder)
            yield _build(PartKind.EXPANDER, f"sas {folder.name}", f"SAS expander {folder.name}", link)
        # Each port of a root hub has its own link. The name of a root hub is usb1, usb2 and so on.
        is_hub = text(folder / "bDeviceClass") == USB_HUB_CLASS
        if is_hub and not folder.name.startswith("usb"):
            link = read_usb_link(folder)
            yield _build(PartKind.USB_HUB, f"usb {folder.name}", f"USB hub {folder.name}", link)


def _name_controller(function: Path) -> str:
    kind = _CONTROLLERS.get((text(function / "class") or "")[:6], "controller")
    driver = function / "driver"
    by = f" ({driver.resolve().name})" if driver.exists() else ""
    return f"{kind} {function.name}{by}"


def _read_slot(disk: Path, sys_root: Path) -> str | None:
    """Return the place to which a disk is attached: the slot of an enclosure, the bay of an expander, the PCIe slot, or
    the SATA port.
    """
    for entry in sorted((disk / "device").glob("enclosure_device:*")):
        return entry.name.partition(":")[2]
    place = find_place_on_bus(disk)
    for folder in place.parents:
        if folder.name.startswith("end_device-"):
            bay = number(folder / f"sas_device/{folder.name}/bay_identifier")
            return None if bay is None else f"bay {bay}"
        if _ATA_PORT.fullmatch(folder.name):
            return folder.name
    function = find_pci_function(place)
    if function is None or find_nvme_controller(disk) is None:
        return None
    for slot in sorted((sys_root / "bus/pci/slots").glob("*/address")):
        if text(slot) == function.name.partition(".")[0]:
            return f"PCIe slot {slot.parent.name}"
    return None


def _read_cpus(disk: Path, sys_root: Path) -> tuple[int | None, frozenset[int]]:
    """Return the NUMA node of a drive, and the CPUs of this node."""
    nodes = read_nodes(sys_root)
    function = find_pci_function(find_place_on_bus(disk))
    node = None if function is None else number(function / "numa_node")
    if len(nodes) == 1:
        (node,) = nodes
    if node not in nodes:
        return None, frozenset()
    return node, nodes[node]
