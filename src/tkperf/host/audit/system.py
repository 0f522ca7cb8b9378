"""The system itself: a virtual machine, restrictions of the kernel, services that change settings or ask drives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tkperf.device.sysfs import number, text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Drive, Site

# A hypervisor that took more than this share of time since boot took more than rounding explains.
STOLEN_PCT = 0.1
_VIRTUAL = "a hypervisor may take CPUs away at any time, and a virtual drive is measured as the host shows it"
_URING = "without io_uring the I/O is issued by libaio, which costs more CPU time an I/O"
_LOCKDOWN = "a kernel that is locked down keeps tools from some of what they would read"
# Services that set governors and queues again during a run, with their names in the kernel.
_TUNERS = {
    "tuned": "tuned",
    "power-profiles-": "power-profiles-daemon",
    "auto-cpufreq": "auto-cpufreq",
    "thermald": "thermald",
    "cpufreqd": "cpufreqd",
    "laptop_mode": "laptop-mode",
}
_ASKING = {
    "smartd": "smartd asks drives for SMART data, by default every 30 minutes: a SATA drive ends "
    "what is queued first",
    "udisksd": "udisksd asks SATA drives for SMART data every 10 minutes: they end what is queued "
    "first",
}


def audit_system(site: Site, drives: Sequence[Drive]) -> Iterator[Finding]:
    yield _virtual_machine(site)
    yield _io_uring(site)
    yield _lockdown(site)
    yield _tuners(site)
    yield from _asking(site, drives)


def _virtual_machine(site: Site) -> Finding:
    subject = "virtual machine"
    rows = (text(site.proc / "cpuinfo") or "").splitlines()
    flags = next((row for row in rows if row.startswith(("flags", "Features"))), None)
    kind = text(site.sys / "hypervisor/type")
    vendor = text(site.sys / "class/dmi/id/sys_vendor")
    product = text(site.sys / "class/dmi/id/product_name")
    if flags is None and kind is None:
        return not_known(subject, "/proc/cpuinfo does not tell", _VIRTUAL)
    if kind is None and "hypervisor" not in (flags or "").split():
        return Finding(subject=subject, level=Level.OK, found="no", why=_VIRTUAL)
    maker = " ".join(word for word in (kind, vendor, product) if word)
    stolen_pct = _stolen_pct(site)
    stolen = "steal not known" if stolen_pct is None else f"{stolen_pct:.2g} % of CPU time stolen"
    takes = stolen_pct is not None and stolen_pct >= STOLEN_PCT
    return Finding(
        subject=subject,
        level=Level.ADVICE if takes else Level.NOTE,
        found=f"yes{f' ({maker})' if maker else ''}; {stolen} since boot",
        why=_VIRTUAL,
        otherwise="give it CPUs of its own (pinned vCPUs), or measure on the host"
        if takes
        else None,
    )


def _stolen_pct(site: Site) -> float | None:
    """Return the share of CPU time since boot, in percent, that the hypervisor took (proc(5): the eighth number)."""
    words = (text(site.proc / "stat") or "").partition("\n")[0].split()[1:]
    if len(words) < 8 or not all(word.isdecimal() for word in words):
        return None
    times = [int(word) for word in words[:8]]  # guest time is part of user time
    return 100 * times[7] / sum(times) if sum(times) else None


def _io_uring(site: Site) -> Finding:
    file = site.proc / "sys/kernel/io_uring_disabled"
    setting = number(file)
    if setting is None:
        if file.exists():
            return not_known("io_uring", "its switch cannot be read", _URING)
        return Finding(
            subject="io_uring",
            level=Level.OK,
            found="not switched off (no such switch)",
            why=_URING,
        )
    closed = setting == 2 or (setting == 1 and not site.is_root)
    meaning = {0: "open to all", 1: "open to privileged processes", 2: "switched off"}
    return Finding(
        subject="io_uring",
        level=Level.ADVICE if closed else Level.OK,
        found=f"{meaning.get(setting, 'not known to tkperf')} (io_uring_disabled {setting})",
        why=_URING,
        command="sudo sysctl kernel.io_uring_disabled=0" if closed else None,
    )


def _lockdown(site: Site) -> Finding:
    words = text(site.sys / "kernel/security/lockdown")
    if words is None or "[" not in words:
        return not_known("kernel lockdown", "securityfs does not show it", _LOCKDOWN)
    return Finding(
        subject="kernel lockdown",
        level=Level.NOTE,
        found=words.partition("[")[2].partition("]")[0],
        why=_LOCKDOWN,
    )


def _tuners(site: Site) -> Finding:
    subject = "services that change settings"
    why = "they may set the governor or the queue of a drive again while it is measured"
    if site.processes is None:
        return not_known(subject, "/proc shows no processes", why)
    running = [service for name, service in _TUNERS.items() if name in site.processes]
    return Finding(
        subject=subject,
        level=Level.ADVICE if running else Level.OK,
        found=", ".join(running) or "none runs",
        why=why,
        command=f"sudo systemctl stop {' '.join(running)}" if running else None,
    )


def _asking(site: Site, drives: Sequence[Drive]) -> Iterator[Finding]:
    """Yield findings on services that ask drives for their health meanwhile. tkperf does not stop them."""
    for name, why in _ASKING.items():
        if site.processes is None or name not in site.processes:
            continue
        reaches = any(name == "smartd" or not drive.is_nvme for drive in drives)
        if reaches:
            yield Finding(
                subject=name,
                level=Level.ADVICE if name == "smartd" else Level.NOTE,
                found="runs",
                why=why,
                command=f"sudo systemctl stop {'smartmontools' if name == 'smartd' else 'udisks2'}",
            )
