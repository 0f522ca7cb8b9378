"""The drive's link, if it is below its best, and links upstream that carry less than it."""

from __future__ import annotations

from collections.abc import Iterator

from tkperf.device.link import find_narrower_bridge, read_link
from tkperf.device.sysfs import text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Drive, Site

_WHY = "the slowest link between drive and CPU limits what can be measured"


def audit_links(site: Site, drive: Drive) -> Iterator[Finding]:
    link = read_link(drive.disk)
    subject = "link"
    if link is None:
        yield not_known(subject, "the kernel tells of none", _WHY)
    else:
        unsure = link.downgraded is None
        able = f", the drive could do {link.fastest}" if link.downgraded else ""
        yield Finding(
            subject=subject,
            level=Level.ADVICE if link.downgraded else Level.NOTE if unsure else Level.OK,
            found=link.negotiated
            + (able or (", what it could do is not known" if unsure else ", its fastest")),
            why=_WHY,
            otherwise="move the drive to a faster slot or port, or look at the cable and contacts"
            if link.downgraded
            else None,
        )
    narrower = find_narrower_bridge(drive.disk)
    if narrower is not None:
        yield Finding(
            subject="link upstream",
            level=Level.ADVICE,
            found=f"{narrower.negotiated} at {narrower.source}, less than the drive's own link",
            why=_WHY,
            otherwise="move the drive to a slot with a faster way to the CPU",
        )
    yield from _power(site, drive)


def _power(site: Site, drive: Drive) -> Iterator[Finding]:
    """Check the power management of links: a link that sleeps between I/Os wakes up slowly."""
    why = "a link that sleeps between I/Os takes time to wake up at each of them"
    for folder in drive.disk.resolve().parents:
        if folder.name.startswith("host") and folder.name[4:].isdigit():
            path = f"scsi_host/{folder.name}/link_power_management_policy"
            policy = text(folder / path)
            if policy is None:
                return
            awake = policy in ("max_performance", "keep_firmware_settings")
            yield Finding(
                subject="link power management",
                level=Level.OK if awake else Level.ADVICE,
                found=policy,
                why=why,
                command=None if awake else f"echo max_performance | sudo tee /sys/class/{path}",
            )
            return
    policy = text(site.sys / "module/pcie_aspm/parameters/policy") or ""
    if drive.is_nvme and "[" in policy:
        chosen = policy.partition("[")[2].partition("]")[0]
        sleeps = chosen.startswith(("powersave", "powersupersave"))
        yield Finding(
            subject="link power management",
            level=Level.ADVICE if sleeps else Level.NOTE,
            found=f"PCIe ASPM policy {chosen}",
            why=why,
            command="echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy"
            if sleeps
            else None,
        )
