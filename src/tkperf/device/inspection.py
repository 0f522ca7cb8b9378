"""All facts about a device and its ATA security, each with its source.

The kernel (sysfs, udev) is asked first, and then the tool for the bus (nvme-cli, hdparm, smartctl). The first source
that contains a fact is used. If a tool is missing, does not end or prints unexpected text, the facts that only this
tool reports stay "not known", and ``gaps`` contains the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.links import read_link
from tkperf.device.sysfs import (
    SYS_ROOT,
    find_disk,
    find_node,
    find_nvme_controller,
    find_pci_function,
    is_scsi,
    number,
    text,
)
from tkperf.model.errors import EngineError
from tkperf.model.input_files import is_there
from tkperf.system.process import RunTool, read_json_object, run_command

TOOL_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AtaSecurity:
    """The state of the ATA security feature set, and the erase commands that the drive supports according to its
    identify data.

    ``enabled`` means that a password is set. ``erase_minutes`` and ``enhanced_erase_minutes`` are the drive's estimates
    of the time for an erase.
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
        """Return the state in the terms of the ATA standard."""
        if not self.supported:
            return "ATA security not supported"
        password = "password set" if self.enabled else "no password"
        locked, frozen = ("" if state else "not " for state in (self.locked, self.frozen))
        return f"ATA security: {password}, {locked}locked, {frozen}frozen"


def read_security(path: str, *, run: RunTool = run_command) -> AtaSecurity:
    """Return the security state of an ATA drive."""
    done = run(["hdparm", "-I", path], timeout_s=TOOL_LIMIT_S)
    return parse_identify(done.stdout, path=path)


def parse_identify(printed: str, *, path: str) -> AtaSecurity:
    """Parse the security section and the sanitize commands of ``hdparm -I``."""
    # For a device that is not an ATA drive, hdparm prints "ATA device" and zeros, but no model, and exits
    # with 0.
    if "ATA device" not in printed or "Model Number:" not in printed:
        raise EngineError(f"'hdparm -I {path}' printed no identify data of an ATA drive")
    sanitize = frozenset(
        name
        for name in ("BLOCK_ERASE_EXT", "CRYPTO_SCRAMBLE_EXT", "OVERWRITE_EXT")
        if re.search(rf"^\s+\*\s+{name} command", printed, re.MULTILINE)
    )
    section = re.search(r"^Security:\s*\n((?:[ \t]+.*\n?)*)", printed, re.MULTILINE)
    if section is None:
        return AtaSecurity(supported=False, sanitize=sanitize)
    # Each line is "\t[not]\t<word>". If a line contains a single word, this word is a state.
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
    """Facts about a device. ``values`` and ``sources`` have the name of the fact as key. ``gaps`` contains the reasons
    for missing facts.
    """

    values: dict[str, object] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)

    def add(self, source: str, **facts: object) -> None:
        """Add the facts of a source that are known and that no earlier source has provided."""
        for name, value in facts.items():
            if value is not None and value != "" and self.values.get(name) is None:
                self.values[name] = value
                self.sources[name] = source

    def as_plain_data(self) -> dict[str, object]:
        """Return the facts, their sources and the gaps as plain data for the run file."""
        return {**self.values, "sources": self.sources, "gaps": self.gaps}


def inspect_device(identity: DeviceIdentity, *, sys_root: Path = SYS_ROOT, run: RunTool = run_command) -> DeviceFacts:
    """Return all facts about a device. The function never raises an error. A fact that cannot be read remains not
    known.
    """
    facts = DeviceFacts()
    kernel = identity.facts()
    source = {TargetKind.BLOCK: "kernel", TargetKind.FILE: "file system"}
    facts.add(source.get(identity.kind, "simulation"), **kernel)
    # Every result contains these names, even if the facts are not known.
    for name in (
        *kernel,
        "vendor",
        "link",
        "link_fastest",
        "link_downgraded",
        "discard",
        "numa_node",
        "host_adapter",
        "security",
        "rotation_rate_rpm",
    ):
        facts.values.setdefault(name, None)
    if identity.major_minor is None:
        return facts
    disk = find_disk(find_node(identity.major_minor, sys_root))
    _ask_sysfs(facts, disk)
    tools: list[Callable[[DeviceFacts, str, RunTool], None]] = []
    if find_nvme_controller(disk) is not None:
        tools = [_ask_nvme]
    elif is_scsi(disk):
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
        facts.add(link.source, link=link.negotiated, link_fastest=link.fastest, link_downgraded=link.downgraded)
    discard_bytes = number(disk / "queue/discard_max_bytes")
    discard = None if discard_bytes is None else discard_bytes > 0
    facts.add("sysfs queue/discard_max_bytes", discard=discard)
    function = find_pci_function(disk)
    if function is not None:
        node = number(function / "numa_node")
        # The value -1 means that the machine has a single NUMA node, or that the firmware does not report the node.
        facts.add(f"sysfs {function.name}/numa_node", numa_node=node if node != -1 else None)
        driver = (function / "driver").resolve().name if is_there(function / "driver") else ""
        adapter = f"{function.name} {text(function / 'vendor')}:{text(function / 'device')} {driver}"
        facts.add("sysfs PCI", host_adapter=adapter.strip())
    vendor = text(disk / "device/vendor")
    facts.add("sysfs device/vendor", vendor=None if vendor in ("ATA", None) else vendor)


def _ask_nvme(facts: DeviceFacts, path: str, run: RunTool) -> None:
    controller = read_json_object(
        ["nvme", "id-ctrl", "-o", "json", path], timeout_s=TOOL_LIMIT_S, run=run, must_succeed=True
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
    """Add the facts from smartctl, which can also read the serial number behind USB bridges."""
    report = read_json_object(["smartctl", "--info", "--json", path], timeout_s=TOOL_LIMIT_S, run=run)
    rotation = report.get("rotation_rate")
    facts.add(
        "smartctl --info",
        model=_word(report.get("model_name") or report.get("scsi_model_name")),
        # smartctl 7.2 prints the names of SCSI values without a prefix.
        vendor=_word(report.get("scsi_vendor") or report.get("vendor")),
        serial=_word(report.get("serial_number")),
        firmware=_word(report.get("firmware_version") or report.get("scsi_revision") or report.get("revision")),
        rotation_rate_rpm=rotation if isinstance(rotation, int) and rotation > 0 else None,
    )


def _ask_hdparm(facts: DeviceFacts, path: str, run: RunTool) -> None:
    facts.add("hdparm -I", security=read_security(path, run=run).describe())


def _word(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
