"""The CPUs: the control of their frequency, the depth of their sleep, the mitigations that slow down system calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tkperf.device.sysfs import number, text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Site

# A wake-up of this many microseconds is no longer small compared with the latency of a fast drive.
DEEP_IDLE_US = 20
_POLICIES = "/sys/devices/system/cpu/cpufreq/policy*"
_GOVERNOR = "I/Os are issued by the CPU: one that clocks down makes them slower, and unevenly so"
_IDLE = "a CPU that sleeps deeply takes this long to answer an I/O's interrupt"
_LIMIT = "CPUs kept below what they can do issue fewer I/Os"


def audit_cpus(site: Site) -> Iterator[Finding]:
    policies = sorted((site.cpu_folder / "cpufreq").glob("policy*"))
    yield _governor(policies)
    yield from _preference(policies)
    yield from _limits(policies)
    yield _boost(site)
    yield _idle_states(site)
    yield _mitigations(site)


def _governor(policies: list[Path]) -> Finding:
    counts = Counter(text(policy / "scaling_governor") for policy in policies)
    names = {name for name in counts if name is not None}
    if not names:
        return not_known("CPU governor", "the kernel shows no frequency control here", _GOVERNOR)
    if None in counts:
        return not_known("CPU governor", f"{counts[None]} policies cannot be read", _GOVERNOR)
    if names == {"performance"}:
        return Finding(subject="CPU governor", level=Level.OK, found="performance", why=_GOVERNOR)
    # With these drivers the powersave governor follows the load; with others it keeps the lowest clock.
    drivers = {text(policy / "scaling_driver") or "" for policy in policies}
    follows = all("pstate" in driver and "passive" not in driver for driver in drivers)
    held_low = "powersave" in names and not follows
    return Finding(
        subject="CPU governor",
        level=Level.DISTURBS if held_low else Level.ADVICE,
        found=_counted(counts) + (", which holds the lowest frequency" if held_low else ""),
        why=_GOVERNOR,
        command=f"echo performance | sudo tee {_POLICIES}/scaling_governor",
    )


def _preference(policies: list[Path]) -> Iterator[Finding]:
    counts = Counter(text(policy / "energy_performance_preference") for policy in policies)
    names = {name for name in counts if name is not None}
    if not names:
        return  # these CPUs take none
    is_best = names <= {"performance", "0"}
    yield Finding(
        subject="energy preference",
        level=Level.OK if is_best else Level.ADVICE,
        found=_counted(counts),
        why="it tells the CPU how soon to clock up under load",
        command=None
        if is_best
        else f"echo performance | sudo tee {_POLICIES}/energy_performance_preference",
    )


def _limits(policies: list[Path]) -> Iterator[Finding]:
    lowered = {}
    for policy in policies:
        allowed, possible = number(policy / "scaling_max_freq"), number(policy / "cpuinfo_max_freq")
        if allowed is None or possible is None:
            yield not_known("CPU frequency limit", f"{policy.name} does not tell", _LIMIT)
            return
        if allowed < possible:
            lowered[policy.name] = (allowed, possible)
    if not policies:
        return
    if not lowered:
        yield Finding(
            subject="CPU frequency limit",
            level=Level.OK,
            found="none below the maximum",
            why=_LIMIT,
        )
        return
    allowed, possible = min(lowered.values())
    yield Finding(
        subject="CPU frequency limit",
        level=Level.ADVICE,
        found=f"{allowed / 1000:.0f} MHz of {possible / 1000:.0f} MHz in {len(lowered)} of "
        f"{len(policies)} policies",
        why=_LIMIT,
        command=f"for p in {_POLICIES}; do sudo tee $p/scaling_max_freq < $p/cpuinfo_max_freq; done",
    )


def _boost(site: Site) -> Finding:
    why = "boosted clocks depend on temperature and on other cores, so that runs differ a little"
    no_turbo = number(site.cpu_folder / "intel_pstate/no_turbo")
    boost = number(site.cpu_folder / "cpufreq/boost")
    is_on = no_turbo == 0 if no_turbo is not None else None if boost is None else boost == 1
    if is_on is None:
        return not_known("turbo", "the kernel does not tell", why)
    return Finding(subject="turbo", level=Level.NOTE, found="on" if is_on else "off", why=why)


def _idle_states(site: Site) -> Finding:
    subject = "idle states"
    driver = text(site.cpu_folder / "cpuidle/current_driver")
    states: dict[str, int] = {}
    for cpu in sorted(site.cpus) or [0]:
        for file in (site.cpu_folder / f"cpu{cpu}/cpuidle").glob("state*/latency"):
            latency_us, state = number(file), file.parent
            name = text(state / "name")
            if latency_us is not None and name and number(state / "disable") == 0:
                states[name] = max(latency_us, states.get(name, 0))
    if driver is None:
        return not_known(subject, "the kernel tells of no driver", _IDLE)
    if not states:
        found = f"none in use (driver {driver})"
        return Finding(subject=subject, level=Level.OK, found=found, why=_IDLE)
    name, latency_us = max(states.items(), key=lambda item: item[1])
    deep = latency_us >= DEEP_IDLE_US
    return Finding(
        subject=subject,
        level=Level.ADVICE if deep else Level.OK,
        found=f"as deep as {name}, {latency_us} µs to wake up (driver {driver})",
        why=_IDLE,
        command=f"sudo cpupower idle-set --disable-by-latency {DEEP_IDLE_US}" if deep else None,
    )


def _mitigations(site: Site) -> Finding:
    why = (
        "mitigations make system calls and interrupts slower: hosts compare only with the same ones"
    )
    files = sorted((site.cpu_folder / "vulnerabilities").glob("*"))
    states = {file.name: text(file) for file in files}
    if not any(states.values()):
        return not_known("CPU mitigations", "the kernel does not list them", why)
    active = [name for name, state in states.items() if (state or "").startswith("Mitigation")]
    open_ = [name for name, state in states.items() if (state or "").startswith("Vulnerable")]
    return Finding(
        subject="CPU mitigations",
        level=Level.NOTE,
        found=f"{len(active)} in use{': ' + ', '.join(active) if active else ''}"
        + (f"; vulnerable: {', '.join(open_)}" if open_ else ""),
        why=why,
    )


def _counted(counts: Counter[str | None]) -> str:
    """Return ``powersave``, or ``powersave (3 of 4 policies), performance (1 of 4 policies)``."""
    if len(counts) == 1:
        return str(next(iter(counts)))
    return ", ".join(
        f"{name or 'not known'} ({count} of {counts.total()} policies)"
        for name, count in counts.most_common()
    )
