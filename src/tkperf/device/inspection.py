"""All facts about a device, each with its source.

The kernel comes first (sysfs, udev), then the bus's own tool (nvme-cli, hdparm, smartctl). The first
source that has a fact counts. If a tool is missing, hangs or prints rubbish, the facts that only it
has stay "not known", and ``gaps`` gives the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tkperf.device import ata
from tkperf.device.identity import DeviceIdentity, TargetKind
from tkperf.device.link import read_link
from tkperf.device.sysfs import (
    SYS_ROOT,
    find_disk,
    find_node,
    find_nvme_controller,
    find_pci_function,
    number,
    text,
)
from tkperf.model.errors import EngineError
from tkperf.system.process import Completed, run_command

INSPECTION_LIMIT_S = 30.0


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

    def plain(self) -> dict[str, object]:
        """Return the facts, their sources and the gaps as plain data for the run file."""
        return {**self.values, "sources": self.sources, "gaps": self.gaps}


def inspect_device(
    identity: DeviceIdentity,
    *,
    sys_root: Path = SYS_ROOT,
    run: Callable[..., Completed] = run_command,
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
    if find_nvme_controller(disk) is not None:
        _ask_nvme(facts, identity, run)
    elif (disk / "device/scsi_level").exists():
        _ask_smartctl(facts, identity, run)
        if facts.values["interface"] == "SATA":
            _ask_hdparm(facts, identity, run)
    return facts


def _ask_sysfs(facts: DeviceFacts, disk: Path) -> None:
    link = read_link(disk)
    if link is not None:
        facts.add(link.source, link=link.negotiated, link_fastest=link.fastest,
                  link_downgraded=link.downgraded)  # fmt: skip
    discard_bytes = number(disk / "queue/discard_max_bytes")
    facts.add(
        "sysfs queue/discard_max_bytes",
        discard=None if discard_bytes is None else discard_bytes > 0,
    )
    function = find_pci_function(disk)
    if function is not None:
        node = number(function / "numa_node")
        # -1: the machine has a single node, or the firmware does not report it.
        facts.add(f"sysfs {function.name}/numa_node", numa_node=node if node != -1 else None)
        driver = (function / "driver").resolve().name if (function / "driver").exists() else ""
        facts.add(
            "sysfs PCI",
            host_adapter=f"{function.name} {text(function / 'vendor')}:{text(function / 'device')}"
            f" {driver}".strip(),
        )
    vendor = text(disk / "device/vendor")
    facts.add("sysfs device/vendor", vendor=None if vendor in ("ATA", None) else vendor)


def _ask_nvme(facts: DeviceFacts, identity: DeviceIdentity, run: Callable[..., Completed]) -> None:
    controller = _json(facts, run, ["nvme", "id-ctrl", "-o", "json", identity.path])
    if controller is None:
        return
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


def _ask_smartctl(
    facts: DeviceFacts, identity: DeviceIdentity, run: Callable[..., Completed]
) -> None:
    """Add the facts of smartctl, which reads the serial number behind USB bridges, too."""
    report = _json(facts, run, ["smartctl", "--info", "--json", identity.path])
    if report is None:
        return
    rotation = report.get("rotation_rate")
    facts.add(
        "smartctl --info",
        model=_word(report.get("model_name") or report.get("scsi_model_name")),
        vendor=_word(report.get("scsi_vendor")),
        serial=_word(report.get("serial_number")),
        firmware=_word(report.get("firmware_version") or report.get("scsi_revision")),
        rotation_rate_rpm=rotation if isinstance(rotation, int) and rotation > 0 else None,
    )


def _ask_hdparm(
    facts: DeviceFacts, identity: DeviceIdentity, run: Callable[..., Completed]
) -> None:
    try:
        security = ata.read_security(identity.path, run=run)
    except EngineError as error:
        facts.gaps.append(str(error))
        return
    facts.add("hdparm -I", security=security.describe())


def _json(
    facts: DeviceFacts, run: Callable[..., Completed], argv: Iterable[str]
) -> dict[str, object] | None:
    """Return the JSON object that a tool prints; None, with a gap added, if it prints none."""
    words = list(argv)
    try:
        done = run(words, timeout_s=INSPECTION_LIMIT_S)
    except EngineError as error:
        facts.gaps.append(str(error))
        return None
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        lines = (done.stderr or done.stdout).strip().splitlines()
        facts.gaps.append(
            f"'{' '.join(words)}' printed no JSON (exit status {done.status})"
            + (f": {lines[0][:120]}" if lines else "")
        )
        return None
    return document


def _word(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
