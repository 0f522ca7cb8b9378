"""All facts about a device, its link and its ATA security, each with its source.

The kernel comes first (sysfs, udev), then the bus's own tool (nvme-cli, hdparm, smartctl). The first
source that has a fact counts. If a tool is missing, hangs or prints rubbish, the facts that only it
has stay "not known", and ``gaps`` gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.sysfs import (
    SYS_ROOT,
    binary,
    find_disk,
    find_node,
    find_nvme_controller,
    find_pci_function,
    number,
    text,
)
from tkperf.model.errors import EngineError
from tkperf.system.process import RunTool, read_json_object, run_command

# Transfer rate of a PCIe lane in GT/s by generation (PCI Express base specifications).
PCIE_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
# Offset of the identify data in the ATA information VPD page (89h, SAT-3).
IDENTIFY_OFFSET = 60
# Identify word 76, bits 1-3: SATA generations that the drive supports (ACS-3).
SATA_CAPABILITIES_WORD = 76
SATA_SPEEDS_GBPS = (1.5, 3.0, 6.0)
TOOL_LIMIT_S = 30.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AtaSecurity:
    """State of the security feature set, with the erase commands that the drive claims.

    ``enabled`` means that a password is set. The minutes are the drive's own estimates.
    """

    supported: bool
    enabled: bool = False
    locked: bool = False
    frozen: bool = False
    enhanced_erase: bool = False
    erase_minutes: int | None = None
    enhanced_erase_minutes: int | None = None
    sanitize: frozenset[str] = frozenset()

    def describe(self) -> str:
        """Return the state for people, in the words of the field."""
        if not self.supported:
            return "ATA security not supported"
        password = "password set" if self.enabled else "no password"
        locked, frozen = ("" if state else "not " for state in (self.locked, self.frozen))
        return f"ATA security: {password}, {locked}locked, {frozen}frozen"


def read_security(path: str, *, run: RunTool = run_command) -> AtaSecurity:
    """Read the security state of an ATA drive.

    Raises:
        EngineError: hdparm is missing, hangs or prints no identify data.
    """
    done = run(["hdparm", "-I", path], timeout_s=TOOL_LIMIT_S)
    return parse_identify(done.stdout, path=path)


def parse_identify(printed: str, *, path: str) -> AtaSecurity:
    """Parse the security section and the sanitize commands of ``hdparm -I``.

    Raises:
        EngineError: the text is not the identify data of an ATA drive.
    """
    if "Capabilities:" not in printed or "ATA device" not in printed:
        raise EngineError(f"'hdparm -I {path}' printed no identify data of an ATA drive")
    sanitize = frozenset(
        name
        for name in ("BLOCK_ERASE_EXT", "CRYPTO_SCRAMBLE_EXT", "OVERWRITE_EXT")
        if re.search(rf"^\s+\*\s+{name} command", printed, re.MULTILINE)
    )
    section = re.search(r"^Security:\s*\n((?:[ \t]+.*\n?)*)", printed, re.MULTILINE)
    if section is None:
        return AtaSecurity(supported=False, sanitize=sanitize)
    # Each line is "\t[not]\t<word>"; the word of a state is alone on its line.
    lines = [line.split() for line in section[1].splitlines()]
    true_words = {" ".join(words) for words in lines if words and words[0] != "not"}
    minutes = re.search(r"(\d+)min(?: or more)? for SECURITY ERASE UNIT", section[1])
    enhanced = re.search(r"(\d+)min(?: or more)? for ENHANCED SECURITY ERASE UNIT", section[1])
    return AtaSecurity(
        supported="supported" in true_words,
        enabled="enabled" in true_words,
        locked="locked" in true_words,
        frozen="frozen" in true_words,
        enhanced_erase="supported: enhanced erase" in true_words,
        erase_minutes=int(minutes[1]) if minutes else None,
        enhanced_erase_minutes=int(enhanced[1]) if enhanced else None,
        sanitize=sanitize,
    )


@dataclass(slots=True)
class DeviceFacts:
    """Facts about a device: values and sources by name; ``gaps`` are reasons for people."""

    values: dict[str, object] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)

    def add(self, source: str, **facts: object) -> None:
        """Add the facts of a source that are known and new."""
        for name, value in facts.items():
            if value is not None and value != "" and self.values.get(name) is None:
                self.values[name] = value
                self.sources[name] = source

    def as_plain_data(self) -> dict[str, object]:
        """Return the facts, their sources and the gaps as plain data for the run file."""
        return {**self.values, "sources": self.sources, "gaps": self.gaps}


def inspect_device(
    identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT, run: RunTool = run_command
) -> DeviceFacts:
    """Return all facts about a device. Never raises: a fact that cannot be read stays not known."""
    facts = DeviceFacts()
    kernel = identity.facts()
    source = {TargetKind.BLOCK: "kernel", TargetKind.FILE: "file system"}
    facts.add(source.get(identity.kind, "simulation"), **kernel)
    # Every result has these names, known or not.
    for name in (*kernel, "vendor", "link", "link_fastest", "link_downgraded", "discard",
                 "numa_node", "host_adapter", "security", "rotation_rate_rpm"):  # fmt: skip
        facts.values.setdefault(name, None)
    if identity.major_minor is None:
        return facts
    disk = find_disk(find_node(identity.major_minor, sys_root))
    _ask_sysfs(facts, disk)
    tools: list[Callable[[DeviceFacts, str, RunTool], None]] = []
    if find_nvme_controller(disk) is not None:
        tools = [_ask_nvme]
    elif (disk / "device/scsi_level").exists():
        tools = [_ask_smartctl, _ask_hdparm] if identity.interface == "SATA" else [_ask_smartctl]
    for ask in tools:
        try:
            ask(facts, identity.path, run)
        except EngineError as error:
            facts.gaps.append(str(error))
    return facts


def _ask_sysfs(facts: DeviceFacts, disk: Path) -> None:
    link = read_link(disk)
    if link is not None:
        facts.add(link.source, link=link.negotiated, link_fastest=link.fastest,
                  link_downgraded=link.downgraded)  # fmt: skip
    discard_bytes = number(disk / "queue/discard_max_bytes")
    discard = None if discard_bytes is None else discard_bytes > 0
    facts.add("sysfs queue/discard_max_bytes", discard=discard)
    function = find_pci_function(disk)
    if function is not None:
        node = number(function / "numa_node")
        # -1: the machine has a single node, or the firmware does not report it.
        facts.add(f"sysfs {function.name}/numa_node", numa_node=node if node != -1 else None)
        driver = (function / "driver").resolve().name if (function / "driver").exists() else ""
        adapter = (
            f"{function.name} {text(function / 'vendor')}:{text(function / 'device')} {driver}"
        )
        facts.add("sysfs PCI", host_adapter=adapter.strip())
    vendor = text(disk / "device/vendor")
    facts.add("sysfs device/vendor", vendor=None if vendor in ("ATA", None) else vendor)


def _ask_nvme(facts: DeviceFacts, path: str, run: RunTool) -> None:
    controller = read_json_object(
        ["nvme", "id-ctrl", "-o", "json", path], timeout_s=TOOL_LIMIT_S, run=run
    )
    oacs = controller.get("oacs")
    security = None
    if isinstance(oacs, int):
        security = f"security commands {'supported' if oacs & 1 else 'not supported'}"
    facts.add(
        "nvme id-ctrl",
        model=_word(controller.get("mn")),
        serial=_word(controller.get("sn")),
        firmware=_word(controller.get("fr")),
        security=security,
    )


def _ask_smartctl(facts: DeviceFacts, path: str, run: RunTool) -> None:
    """Add the facts of smartctl, which reads the serial number behind USB bridges, too."""
    report = read_json_object(
        ["smartctl", "--info", "--json", path], timeout_s=TOOL_LIMIT_S, run=run
    )
    rotation = report.get("rotation_rate")
    facts.add(
        "smartctl --info",
        model=_word(report.get("model_name") or report.get("scsi_model_name")),
        vendor=_word(report.get("scsi_vendor")),
        serial=_word(report.get("serial_number")),
        firmware=_word(report.get("firmware_version") or report.get("scsi_revision")),
        rotation_rate_rpm=rotation if isinstance(rotation, int) and rotation > 0 else None,
    )


def _ask_hdparm(facts: DeviceFacts, path: str, run: RunTool) -> None:
    facts.add("hdparm -I", security=read_security(path, run=run).describe())


def _word(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
