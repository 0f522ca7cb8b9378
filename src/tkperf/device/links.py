"""Links of drives and bridges according to the kernel: the negotiated link, the fastest possible link, and the
bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tkperf.device.sysfs import binary, find_nvme_controller, find_pci_function, number, text
from tkperf.model.input_files import is_there

# Generations of PCIe. The key is the transfer rate of a lane in GT/s. The second value is the share of bits that are
# data after line encoding. The encodings are 8b/10b, 128b/130b, and flits of 256 bytes with 236 bytes of packets (PCI
# Express base specifications).
PCIE_GENERATIONS = {
    "2.5": (1, 8 / 10),
    "5.0": (2, 8 / 10),
    "8.0": (3, 128 / 130),
    "16.0": (4, 128 / 130),
    "32.0": (5, 128 / 130),
    "64.0": (6, 236 / 256),
}
# Some bridges report 0, 63 or 255 lanes if the width of a link is not known.
_PCIE_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
# SATA and SAS use the line encoding 8b/10b. SAS at 22.5 Gbit/s uses 128b/150b (SAS-4, SPL-4).
_SAS_4_GBPS = 22.5
# The offset of the identify data in the ATA information VPD page (89h, SAT-3).
IDENTIFY_OFFSET = 60
# Bits 1 to 3 of word 76 of the identify data contain the SATA generations that the drive supports (ACS-3).
SATA_CAPABILITIES_WORD = 76
SATA_SPEEDS_GBPS = (1.5, 3.0, 6.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link. ``fastest`` is the fastest link that the drive supports. None means not known.

    ``bytes_per_s`` is the bandwidth in one direction after line encoding. This bandwidth includes the headers of
    packets.
    """

    negotiated: str
    fastest: str | None
    downgraded: bool | None
    source: str
    bytes_per_s: int | None = None


def read_link(disk: Path) -> Link | None:
    """Return the link of a whole disk. ``disk`` is the disk's folder in sysfs. None means that the kernel reports no
    link.
    """
    controller = find_nvme_controller(disk)
    if controller is not None:
        function = find_pci_function(controller)
        return None if function is None else read_pcie_link(function)
    for folder in disk.resolve().parents:
        if folder.name.startswith("end_device-"):
            return read_sas_link(folder)
        if folder.name.startswith("ata") and folder.name[3:].isdigit():
            return _sata(folder, disk)
        if is_there(folder / "bDeviceClass"):
            return read_usb_link(folder)
    return None


def find_narrower_bridge(disk: Path) -> Link | None:
    """Return the narrowest PCIe link between the CPU and the drive or its adapter, if this link has less bandwidth than
    the link of the drive or adapter.

    ``source`` names the bridge of this link. None means that there is no such link, or that the kernel does not report
    it.
    """
    function = find_pci_function(find_nvme_controller(disk) or disk)
    if function is None:
        return None
    least = _carried(function)
    narrowest: Link | None = None
    for bridge in function.parents:
        carried = _carried(bridge)
        if least and carried and carried < least:
            link = read_pcie_link(bridge)
            least, narrowest = carried, link and replace(link, source=f"bridge {bridge.name}")
    return narrowest


def _carried(function: Path) -> float:
    """Return the total transfer rate of all lanes, in GT/s. 0 means that the rate is not known."""
    return _gts(text(function / "current_link_speed")) * _lanes(text(function / "current_link_width"))


def read_pcie_link(function: Path) -> Link | None:
    """Return the PCIe link of a function or bridge. None means that the kernel reports no link in use, or knows neither
    the speed nor the width of the link.

    A link is downgraded if its speed or its width is known, and is less than the greatest speed or width that the
    kernel reports. For a downgraded link, the name in ``fastest`` omits a greatest value that the kernel does not know.
    If a value that is needed for this comparison is not known, ``downgraded`` is None.
    """
    speed, width = (text(function / f"current_link_{what}") for what in ("speed", "width"))
    fastest_speed, widest = (text(function / f"max_link_{what}") for what in ("speed", "width"))
    if speed is None or width is None or width == "0":  # no link, or no link in use
        return None
    negotiated, fastest = _pcie_name(speed, width), _pcie_name(fastest_speed, widest)
    if negotiated is None:
        return None
    now, best = (_gts(speed), _lanes(width)), (_gts(fastest_speed), _lanes(widest))
    downgraded: bool | None = None
    if any(0 < value < greatest for value, greatest in zip(now, best, strict=True)):
        downgraded = True
    elif not all(best):
        fastest = None
    elif all(now):
        downgraded = False
    source = f"sysfs {function.name}/current_link_speed"
    return Link(
        negotiated=negotiated,
        fastest=fastest,
        downgraded=downgraded,
        source=source,
        bytes_per_s=_pcie_bytes_per_s(speed, width),
    )


def _pcie_name(speed: str | None, width: str | None) -> str | None:
    """Return a name such as ``PCIe gen 4 x4``, for which the kernel's texts are ``16.0 GT/s PCIe`` and ``4``. The name
    omits a speed or a width that the kernel does not know.

    None means that the kernel knows neither.
    """
    generation = PCIE_GENERATIONS.get(f"{_gts(speed):.1f}")
    if generation is not None:
        rate = f"gen {generation[0]}"
    else:
        rate = speed if speed and _gts(speed) else ""
    lanes = f"x{_lanes(width)}" if _lanes(width) else ""
    return " ".join(filter(None, ("PCIe", rate, lanes))) if rate or lanes else None


def _pcie_bytes_per_s(speed: str | None, width: str | None) -> int | None:
    known, lanes = PCIE_GENERATIONS.get(f"{_gts(speed):.1f}"), _lanes(width)
    if known is None or not lanes:
        return None
    return round(_gts(speed) * 1e9 * known[1] / 8) * lanes


def _lanes(width: str | None) -> int:
    """Return the number of lanes. 0 means that the number is not known."""
    lanes = int(width) if width is not None and width.isdigit() else 0
    return lanes if lanes in _PCIE_WIDTHS else 0


def _gts(speed: str | None) -> float:
    try:
        return float((speed or "").split()[0])
    except (IndexError, ValueError):
        return 0.0


def _sata(port: Path, disk: Path) -> Link | None:
    """Return the link of a SATA disk. The kernel names the n-th port ata<n>, and the link of this port link<n>."""
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
        bytes_per_s=_serial_bytes_per_s(_gts(speed)),
    )


def _serial_bytes_per_s(gbps: float) -> int | None:
    """Return the data rate of a SATA link or a SAS phy, in bytes per second. None means that the rate is not known."""
    encoded = 128 / 150 if gbps == _SAS_4_GBPS else 8 / 10
    return round(gbps * 1e9 * encoded / 8) or None


def read_sas_link(device: Path) -> Link | None:
    """Return the SAS link of an end device or expander. If the device's port has several phys (a wide port), the link
    includes all phys of the port.
    """
    phys = sorted(device.parent.glob("phy-*/sas_phy/phy-*"))
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
        bytes_per_s=sum(_serial_bytes_per_s(rate) or 0 for rate in rates),
    )


def read_usb_link(device: Path) -> Link | None:
    """Return the USB link of a device or hub. None means that the kernel reports no link."""
    mbps = number(device / "speed")
    if mbps is None:
        return None
    version = text(device / "version")
    return Link(
        negotiated=f"USB {mbps / 1000:g} Gbit/s",
        fastest=None if version is None else f"USB {version}",
        downgraded=None if version is None else version.startswith("3") and mbps < 5000,
        source=f"sysfs {device.name}/speed",
        bytes_per_s=_usb_bytes_per_s(mbps),
    )


def _usb_bytes_per_s(mbps: int) -> int:
    """Return the bandwidth of a USB link in bytes per second.

    Rates of up to 480 Mbit/s use no line encoding. At 5 Gbit/s, USB uses 8b/10b, and at higher rates 128b/132b.
    """
    encoded = 1.0 if mbps < 5000 else 8 / 10 if mbps == 5000 else 128 / 132
    return round(mbps * 1e6 * encoded / 8)
