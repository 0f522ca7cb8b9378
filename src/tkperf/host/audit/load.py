"""The present load of the host: pressure on CPUs, memory and I/O; memory that is swapped out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tkperf.device.sysfs import text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Site
from tkperf.model.units import format_capacity

# Share of the last ten seconds in which something had to wait, in percent: the first number makes it advice,
# the second makes it disturb. A desktop at rest stays below 1 %.
PRESSURE_PCT = {"cpu": (2.0, 10.0), "memory": (0.1, 1.0), "io": (5.0, 20.0)}
_SUBJECTS = {"cpu": "CPU pressure", "memory": "memory pressure", "io": "I/O pressure"}
_WAITS = {
    "cpu": "who waits for a CPU issues no I/O meanwhile",
    "memory": "who waits for memory stands still, in the midst of a step, too",
    "io": "somebody's I/O keeps drives busy, and CPUs and links with them",
}
_SWAP = "what was swapped out is read back from a drive when it is needed, and stands still for it"
# Below this share of the memory the kernel begins to reclaim, and to swap.
_LITTLE_MEMORY = 0.05


def audit_load(site: Site) -> Iterator[Finding]:
    for resource in PRESSURE_PCT:
        yield _pressure(site, resource)
    yield _swap(site)


def _pressure(site: Site, resource: str) -> Finding:
    subject, why = _SUBJECTS[resource], _WAITS[resource]
    words = (text(site.proc / "pressure" / resource) or "").split()
    shares = [word.partition("=")[2] for word in words if word.startswith("avg10=")]
    try:
        share_pct = float(shares[0])
    except (IndexError, ValueError):
        if resource == "cpu":
            return _load(site, why)
        return not_known(subject, "the kernel does not measure it (psi=1 lets it)", why)
    advice_pct, disturbs_pct = PRESSURE_PCT[resource]
    level = Level.OK
    if share_pct >= advice_pct:
        level = Level.DISTURBS if share_pct >= disturbs_pct else Level.ADVICE
    return Finding(
        subject=subject,
        level=level,
        found=f"somebody waited for {share_pct:g} % of the last 10 s",
        why=why,
        otherwise="find who with top or pidstat, end it, and wait half a minute"
        if level is not Level.OK
        else None,
        is_setting=False,
    )


def _load(site: Site, why: str) -> Finding:
    """Check the load average, where the kernel measures no pressure: it shows less."""
    words = (text(site.proc / "loadavg") or "").split()
    try:
        load = float(words[0])
    except (IndexError, ValueError):
        return not_known(_SUBJECTS["cpu"], "the kernel tells of no load", why)
    busy = load / max(len(site.cpus), 1)
    return Finding(
        subject=_SUBJECTS["cpu"],
        level=Level.ADVICE if busy >= 0.5 else Level.NOTE,
        found=f"load average {load:g} on {len(site.cpus)} CPUs (the kernel measures no pressure)",
        why=why,
        otherwise="see who with top or pidstat, and end or move it" if busy >= 0.5 else None,
        is_setting=False,
    )


def _swap(site: Site) -> Finding:
    subject = "swap"
    facts = _memory(site.proc / "meminfo")
    total, free = facts.get("SwapTotal"), facts.get("SwapFree")
    memory, available = facts.get("MemTotal"), facts.get("MemAvailable")
    if total is None or free is None or memory is None or available is None:
        return not_known(subject, "/proc/meminfo does not tell", _SWAP)
    used = total - free
    short = available < _LITTLE_MEMORY * memory
    spaces = [row.split()[0] for row in (text(site.proc / "swaps") or "").splitlines()[1:] if row]
    of_drives = [space for space in spaces if "zram" not in space]
    found = (
        f"{format_capacity(used)} of {format_capacity(total)} in use on {', '.join(spaces)}"
        if total
        else "none"
    )
    if short:
        found += f"; only {format_capacity(available)} of memory available"
    stands_out = short or (used > 0 and bool(of_drives))
    fits = used < available - _LITTLE_MEMORY * memory
    return Finding(
        subject=subject,
        level=Level.ADVICE if stands_out else Level.NOTE if used else Level.OK,
        found=found,
        why=_SWAP,
        command="sudo swapoff --all" if stands_out and used and fits else None,
        otherwise="end programs that take memory" if stands_out else None,
        is_setting=False,
    )


def _memory(path: Path) -> dict[str, int]:
    """Return the amounts of ``/proc/meminfo`` in bytes."""
    facts = {}
    for row in (text(path) or "").splitlines():
        words = row.split()
        if len(words) >= 2 and words[1].isdecimal():
            facts[words[0].rstrip(":")] = int(words[1]) * 1024
    return facts
