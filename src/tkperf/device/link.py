"""The link that a drive hangs on: its negotiated speed, and its fastest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.device.sysfs import binary, find_nvme_controller, find_pci_function, number, text

# Transfer rate of a PCIe lane in GT/s by generation (PCI Express base specifications).
PCIE_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
# Offset of the identify data in the ATA information VPD page (89h, SAT-3).
IDENTIFY_OFFSET = 60
# Identify word 76, bits 1-3: SATA generations that the drive supports (ACS-3).
SATA_CAPABILITIES_WORD = 76
SATA_SPEEDS_GBPS = (1.5, 3.0, 6.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link; ``fastest`` is the best that the drive itself supports. None means not known."""

    negotiated: str
    fastest: str | None
    downgraded: bool | None
    source: str


def read_link(disk: Path) -> Link | None:
    """Return the link of a whole disk, given its sysfs folder; None if the kernel reports none."""
    controller = find_nvme_controller(disk)
    if controller is not None:
        function = find_pci_function(controller)
        return None if function is None else _pcie(function)
    for folder in disk.resolve().parents:
        if folder.name.startswith("end_device-"):
            return _sas(folder)
        if folder.name.startswith("ata") and folder.name[3:].isdigit():
            return _sata(folder, disk)
        if (folder / "bDeviceClass").exists():
            return _usb(folder)
    return None


def find_narrower_bridge(disk: Path) -> Link | None:
    """Return the narrowest PCIe link upstream that carries less than the link of the drive or its adapter.

    ``source`` names its bridge. None: there is none, or the kernel does not report it.
    """
    function = find_pci_function(find_nvme_controller(disk) or disk)
    if function is None:
        return None
    least = _carried(function)
    narrowest: Link | None = None
    for bridge in function.parents:
        carried = _carried(bridge)
        if least and carried and carried < least:
            link = _pcie(bridge)
            least, narrowest = carried, link and replace(link, source=f"bridge {bridge.name}")
    return narrowest


def _carried(function: Path) -> float:
    """Return the transfer rate of all lanes together, in GT/s; 0 means not known."""
    width = text(function / "current_link_width") or ""
    return _gts(text(function / "current_link_speed")) * (int(width) if width.isdigit() else 0)


def _pcie(function: Path) -> Link | None:
    speed, width = (text(function / f"current_link_{what}") for what in ("speed", "width"))
    fastest_speed, widest = (text(function / f"max_link_{what}") for what in ("speed", "width"))
    negotiated, fastest = _pcie_name(speed, width), _pcie_name(fastest_speed, widest)
    if negotiated is None:
        return None
    downgraded = None
    if fastest is not None:
        downgraded = (_gts(speed), int(width or 0)) != (_gts(fastest_speed), int(widest or 0))
    source = f"sysfs {function.name}/current_link_speed"
    return Link(negotiated=negotiated, fastest=fastest, downgraded=downgraded, source=source)


def _pcie_name(speed: str | None, width: str | None) -> str | None:
    """Return ``PCIe gen 4 x4`` for ``16.0 GT/s PCIe`` and ``4``."""
    if speed is None or width is None or not width.isdigit() or int(width) == 0:
        return None
    generation = PCIE_GENERATIONS.get(f"{_gts(speed):.1f}")
    return f"PCIe gen {generation} x{width}" if generation else f"PCIe {speed} x{width}"


def _gts(speed: str | None) -> float:
    try:
        return float((speed or "").split()[0])
    except (IndexError, ValueError):
        return 0.0


def _sata(port: Path, disk: Path) -> Link | None:
    """Return a SATA link; the kernel names the n-th port ata<n> and its link link<n>."""
    speed = text(port / f"link{port.name[3:]}/ata_link/link{port.name[3:]}/sata_spd")
    if speed is None or not speed[0].isdigit():
        return None
    identify = binary(disk / "device/vpd_pg89")[IDENTIFY_OFFSET:]
    word = identify[2 * SATA_CAPABILITIES_WORD : 2 * SATA_CAPABILITIES_WORD + 2]
    bits = int.from_bytes(word, "little")
    is_valid = len(word) == 2 and bits not in (0x0000, 0xFFFF)
    able = [gbps for bit, gbps in enumerate(SATA_SPEEDS_GBPS, 1) if is_valid and bits >> bit & 1]
    return Link(
        negotiated=f"SATA {_gts(speed):g} Gbit/s",
        fastest=f"SATA {max(able):g} Gbit/s" if able else None,
        downgraded=_gts(speed) < max(able) if able else None,
        source=f"sysfs ata_link {speed}",
    )


def _sas(end_device: Path) -> Link | None:
    """Return a SAS link with all phys of the port: a wide port has several."""
    phys = sorted((end_device.parent).glob("phy-*/sas_phy/phy-*"))
    rates = [_gts(text(phy / "negotiated_linkrate")) for phy in phys]
    fastest = [_gts(text(phy / "maximum_linkrate")) for phy in phys]
    if not rates or not min(rates):
        return None
    able = max(fastest, default=0.0)
    return Link(
        negotiated=f"SAS {min(rates):g} Gbit/s x{len(rates)}",
        fastest=f"SAS {able:g} Gbit/s x{len(rates)}" if able else None,
        downgraded=min(rates) < able if able else None,
        source=f"sysfs {phys[0].name}/negotiated_linkrate",
    )


def _usb(device: Path) -> Link | None:
    mbps = number(device / "speed")
    if mbps is None:
        return None
    version = text(device / "version")
    return Link(
        negotiated=f"USB {mbps / 1000:g} Gbit/s",
        fastest=None if version is None else f"USB {version}",
        downgraded=None if version is None else version.startswith("3") and mbps < 5000,
        source=f"sysfs {device.name}/speed",
    )
