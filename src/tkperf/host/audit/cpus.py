"""The audit of the CPUs: their clocks and idle states, their distance from the drive, and the interrupts that they
handle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tkperf.device.sysfs import find_nvme_controller, find_pci_function, number, text
from tkperf.host.audit.audited_host import (
    AuditedDrive,
    AuditedHost,
    AuditLevel,
    AuditResult,
    Topic,
    find_place_on_bus,
    parse_list,
    read_nodes,
)
from tkperf.model.units import format_ranges

# A wake-up time of this many microseconds is a considerable part of the latency of a fast drive.
DEEP_IDLE_US = 20
_POLICIES = "/sys/devices/system/cpu/cpufreq/policy*"
_GOVERNOR = Topic("CPU governor", "I/Os are issued by the CPU: one that clocks down makes them slower, and unevenly so")
_PREFERENCE = Topic("energy preference", "it sets how soon the CPU clocks up under load")
_LIMIT = Topic("CPU frequency limit", "CPUs kept below what they can do issue fewer I/Os")
_TURBO = Topic("turbo", "boosted clocks depend on temperature and on other cores, so that runs differ a little")
_IDLE = Topic("idle states", "a CPU that sleeps deeply takes this long to answer an I/O's interrupt")
_MITIGATIONS = Topic(
    "CPU mitigations", "mitigations make system calls and interrupts slower: hosts compare only with the same ones"
)
_NUMA = Topic("NUMA node", "memory and interrupts of another NUMA node are further away from the drive")
_INTERRUPTS = Topic(
    "interrupts", "the CPU that answers an interrupt completes the I/O: one for all of them is soon a bottleneck"
)
_QUEUES = Topic("NVMe queues", "CPUs that share a queue of the drive wait for each other")
_BALANCING = Topic("irqbalance", "irqbalance moves interrupts between CPUs while it is measured")


def audit_cpus(audited: AuditedHost) -> Iterator[AuditResult]:
    policies = sorted((audited.cpu_folder / "cpufreq").glob("policy*"))
    yield _governor(policies)
    yield from _preference(policies)
    yield from _limits(policies)
    yield _turbo(audited)
    yield _idle_states(audited)
    yield _mitigations(audited)


def _governor(policies: list[Path]) -> AuditResult:
    counts = Counter(text(policy / "scaling_governor") for policy in policies)
    names = set(counts) - {None}
    if not names:
        return _GOVERNOR.not_known("the kernel shows no frequency control here")
    if None in counts:
        return _GOVERNOR.not_known(f"{counts[None]} policies cannot be read")
    if names == {"performance"}:
        return _GOVERNOR.ok("performance")
    # With these drivers, the powersave governor follows the load. With other drivers, the governor keeps the lowest
    # frequency.
    drivers = {text(policy / "scaling_driver") or "" for policy in policies}
    follows = all("pstate" in driver and "passive" not in driver for driver in drivers)
    held_low = "powersave" in names and not follows
    return _GOVERNOR.find(
        AuditLevel.DISTURBS if held_low else AuditLevel.ADVICE,
        _counted(counts) + (", which holds the lowest frequency" if held_low else ""),
        command=f"echo performance | sudo tee {_POLICIES}/scaling_governor",
    )


def _preference(policies: list[Path]) -> Iterator[AuditResult]:
    name = "energy_performance_preference"
    counts = Counter(text(policy / name) for policy in policies)
    names = {value for value in counts if value is not None}
    if names:  # other CPUs have no such preference
        yield _PREFERENCE.advise(
            not names <= {"performance", "0"},
            _counted(counts),
            command=f"echo performance | sudo tee {_POLICIES}/{name}",
        )


def _limits(policies: list[Path]) -> Iterator[AuditResult]:
    lowered = []
    for policy in policies:
        allowed, possible = number(policy / "scaling_max_freq"), number(policy / "cpuinfo_max_freq")
        if allowed is None or possible is None:
            yield _LIMIT.not_known(f"{policy.name} does not show it")
            return
        if allowed < possible:
            lowered.append((allowed, possible))
    if lowered:
        allowed, possible = min(lowered)
        yield _LIMIT.find(
            AuditLevel.ADVICE,
            f"{allowed / 1000:.0f} MHz of {possible / 1000:.0f} MHz in {len(lowered)} of {len(policies)} policies",
            command=f"for p in {_POLICIES}; do sudo tee $p/scaling_max_freq < $p/cpuinfo_max_freq; done",
        )
    elif policies:
        yield _LIMIT.ok("none below the maximum")


def _turbo(audited: AuditedHost) -> AuditResult:
    no_turbo = number(audited.cpu_folder / "intel_pstate/no_turbo")
    boost = number(audited.cpu_folder / "cpufreq/boost")
    is_on = no_turbo == 0 if no_turbo is not None else None if boost is None else boost == 1
    if is_on is None:
        return _TURBO.not_known()
    return _TURBO.note("on" if is_on else "off")


def _idle_states(audited: AuditedHost) -> AuditResult:
    driver = text(audited.cpu_folder / "cpuidle/current_driver")
    states: dict[str, int] = {}
    for cpu in sorted(audited.cpus) or [0]:
        for file in (audited.cpu_folder / f"cpu{cpu}/cpuidle").glob("state*/latency"):
            latency_us, state = number(file), file.parent
            name = text(state / "name")
            if latency_us is not None and name and number(state / "disable") == 0:
                states[name] = max(latency_us, states.get(name, 0))
    if driver is None:
        return _IDLE.not_known("the kernel shows no driver")
    if not states:
        return _IDLE.ok(f"none in use (driver {driver})")
    name, latency_us = max(states.items(), key=lambda item: item[1])
    return _IDLE.advise(
        latency_us >= DEEP_IDLE_US,
        f"as deep as {name}, {latency_us} µs to wake up (driver {driver})",
        command=f"sudo cpupower idle-set --disable-by-latency {DEEP_IDLE_US}",
    )


def _mitigations(audited: AuditedHost) -> AuditResult:
    files = sorted((audited.cpu_folder / "vulnerabilities").glob("*"))
    states = {file.name: text(file) or "" for file in files}
    if not any(states.values()):
        return _MITIGATIONS.not_known("the kernel does not list them")
    active = [name for name, state in states.items() if state.startswith("Mitigation")]
    open_ = [name for name, state in states.items() if state.startswith("Vulnerable")]
    return _MITIGATIONS.note(
        f"{len(active)} in use{': ' + ', '.join(active) if active else ''}"
        + (f"; vulnerable: {', '.join(open_)}" if open_ else "")
    )


def _counted(counts: Counter[str | None]) -> str:
    """Return the values with their counts, such as ``powersave``, or ``powersave (3 of 4 policies), performance (1 of 4
    policies)``.
    """
    if len(counts) == 1:
        return str(next(iter(counts)))
    return ", ".join(
        f"{name or 'not known'} ({count} of {counts.total()} policies)" for name, count in counts.most_common()
    )


def audit_numa(audited: AuditedHost, drive: AuditedDrive) -> Iterator[AuditResult]:
    """Yield the finding on the distance between the drive and the CPUs on which tkperf may run."""
    folder = audited.sys / "devices/system/node"
    nodes = read_nodes(audited.sys)
    if len(nodes) == 1:
        yield _NUMA.ok("the host has one")
        return
    function = find_pci_function(find_place_on_bus(drive.disk))
    node = None if function is None else number(function / "numa_node")
    if node is None or node not in nodes:
        yield _NUMA.not_known("the firmware does not give it" if nodes else "the kernel shows none")
        return
    near = nodes[node] & audited.cpus
    far = audited.cpus - near
    distances = [int(word) for word in (text(folder / f"node{node}/distance") or "").split()]
    found = f"drive at node {node}; {len(near)} of the {len(audited.cpus)} CPUs that may run are there"
    if far and distances:
        found += f", the others at distance up to {max(distances)} (near: {min(distances)})"
    yield _NUMA.find(
        AuditLevel.OK if not far else AuditLevel.ADVICE if near else AuditLevel.DISTURBS,
        found,
        command=f"numactl --cpunodebind={node} --membind={node} tkperf ...",
        otherwise=f"let tkperf run on CPUs {format_ranges(nodes[node])}",
    )


def audit_interrupts(audited: AuditedHost, drive: AuditedDrive) -> Iterator[AuditResult]:
    """Yield findings on the CPUs that handle the drive's interrupts, and on the service that may move the
    interrupts.
    """
    function = find_pci_function(find_place_on_bus(drive.disk))
    vectors = {} if function is None else _read_vectors(audited, function)
    if not vectors:
        yield _INTERRUPTS.not_known("the kernel shows no vectors of a PCI function above the drive")
        return
    cpus = frozenset().union(*vectors.values())
    if not cpus:
        yield _INTERRUPTS.not_known("the kernel does not show their CPUs")
        return
    outside = bool(audited.cpus) and not cpus & audited.cpus
    on_one = len(vectors) > 2 and len(cpus) == 1 and len(audited.cpus) > 1
    allowed = format_ranges(audited.cpus)
    yield _INTERRUPTS.advise(
        on_one or outside,
        f"{len(vectors)} vector{'s' * (len(vectors) > 1)} (IRQ {format_ranges(set(map(int, vectors)))})"
        f" on CPU{'s' * (len(cpus) > 1)} {format_ranges(cpus)}"
        + (f"; tkperf may run on CPUs {allowed} only" if outside else ""),
        command=f"for i in {' '.join(sorted(vectors, key=int))}; do echo {allowed} | "
        "sudo tee /proc/irq/$i/smp_affinity_list; done",
    )
    yield from _queues(audited, drive)
    yield _balancing(audited, drive)


def _read_vectors(audited: AuditedHost, function: Path) -> dict[str, frozenset[int]]:
    """Return the CPUs to which each interrupt vector of a PCI function is delivered. Vectors without a handler are
    omitted.
    """
    numbers = [entry.name for entry in (function / "msi_irqs").glob("[0-9]*")]
    if not numbers and (single := number(function / "irq")):
        numbers = [str(single)]
    vectors = {}
    for irq in numbers:
        folder = audited.proc / "irq" / irq
        cpus = text(folder / "effective_affinity_list") or text(folder / "smp_affinity_list")
        # If no driver uses a vector, the vector has no handler.
        if folder.is_dir() and text(audited.sys / f"kernel/irq/{irq}/actions") is not None:
            vectors[irq] = parse_list(cpus)
    return vectors


def _queues(audited: AuditedHost, drive: AuditedDrive) -> Iterator[AuditResult]:
    """Yield the finding on the number of an NVMe drive's queues, compared with the number of CPUs."""
    if find_nvme_controller(drive.disk) is None:
        return
    if not drive.hardware_queues:
        yield _QUEUES.not_known("the kernel does not list them")
        return
    online = len(parse_list(text(audited.cpu_folder / "online"))) or len(audited.cpus)
    found = f"{drive.hardware_queues} for {online} CPUs"
    yield _QUEUES.ok(found) if drive.hardware_queues >= online else _QUEUES.note(found)


def _balancing(audited: AuditedHost, drive: AuditedDrive) -> AuditResult:
    if audited.processes is None:
        return _BALANCING.not_known("/proc shows no processes")
    if "irqbalance" not in audited.processes:
        return _BALANCING.ok("does not run")
    if drive.is_nvme:
        return _BALANCING.ok("runs, but the kernel itself keeps the vectors of NVMe drives")
    command = "sudo systemctl stop irqbalance"
    return _BALANCING.find(AuditLevel.ADVICE, "runs", command=command)
