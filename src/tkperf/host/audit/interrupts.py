"""The CPUs that answer the drive's interrupts, and the services that may move these meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tkperf.device.sysfs import find_nvme_controller, find_pci_function, number, text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Drive, Site, format_list, parse_list, place_of

_WHY = (
    "the CPU that answers an interrupt completes the I/O: one for all of them is soon a bottleneck"
)


def audit_interrupts(site: Site, drive: Drive) -> Iterator[Finding]:
    function = find_pci_function(place_of(drive.disk))
    vectors = {} if function is None else _read_vectors(site, function)
    subject = "interrupts"
    if not vectors:
        because = "the drive hangs on no PCI function whose vectors the kernel tells of"
        yield not_known(subject, because, _WHY)
        return
    cpus = frozenset().union(*vectors.values())
    if not cpus:
        yield not_known(subject, "the kernel does not tell their CPUs", _WHY)
        return
    outside = site.cpus and not cpus & site.cpus
    on_one = len(vectors) > 2 and len(cpus) == 1 and len(site.cpus) > 1
    numbers = ",".join(sorted(vectors, key=int))
    command = None
    if on_one or outside:
        command = (
            f"for i in {numbers.replace(',', ' ')}; do echo {format_list(site.cpus)} | "
            "sudo tee /proc/irq/$i/smp_affinity_list; done"
        )
    yield Finding(
        subject=subject,
        level=Level.ADVICE if on_one or outside else Level.OK,
        found=f"{len(vectors)} vector{'s' * (len(vectors) > 1)} (IRQ {format_list(set(map(int, vectors)))})"
        f" on CPU{'s' * (len(cpus) > 1)} {format_list(cpus)}"
        + (f"; tkperf may run on CPUs {format_list(site.cpus)} only" if outside else ""),
        why=_WHY,
        command=command,
    )
    yield from _queues(site, drive)
    yield from _balancing(site, drive)


def _read_vectors(site: Site, function: Path) -> dict[str, frozenset[int]]:
    """Return the CPUs that each vector of a PCI function is delivered to, for vectors with a handler."""
    numbers = [entry.name for entry in (function / "msi_irqs").glob("[0-9]*")]
    if not numbers and (single := number(function / "irq")):
        numbers = [str(single)]
    vectors = {}
    for irq in numbers:
        folder = site.proc / "irq" / irq
        cpus = text(folder / "effective_affinity_list") or text(folder / "smp_affinity_list")
        # A vector that no driver has taken has no handler.
        if folder.is_dir() and text(site.sys / f"kernel/irq/{irq}/actions") is not None:
            vectors[irq] = parse_list(cpus)
    return vectors


def _queues(site: Site, drive: Drive) -> Iterator[Finding]:
    """Compare the number of an NVMe drive's queues with the number of CPUs."""
    if find_nvme_controller(drive.disk) is None:
        return
    why = "CPUs that share a queue of the drive wait for each other"
    queues = len(list((drive.disk / "mq").glob("[0-9]*")))
    if not queues:
        yield not_known("NVMe queues", "the kernel does not list them", why)
        return
    online = len(parse_list(text(site.cpu_folder / "online"))) or len(site.cpus)
    yield Finding(
        subject="NVMe queues",
        level=Level.OK if queues >= online else Level.NOTE,
        found=f"{queues} for {online} CPUs",
        why=why,
    )


def _balancing(site: Site, drive: Drive) -> Iterator[Finding]:
    why = "irqbalance moves interrupts between CPUs while it is measured"
    if site.processes is None:
        yield not_known("irqbalance", "/proc shows no processes", why)
        return
    runs = "irqbalance" in site.processes
    if runs and drive.is_nvme:
        found, level = "runs, but the kernel itself keeps the vectors of NVMe drives", Level.OK
    else:
        found, level = ("runs", Level.ADVICE) if runs else ("does not run", Level.OK)
    yield Finding(
        subject="irqbalance",
        level=level,
        found=found,
        why=why,
        command="sudo systemctl stop irqbalance" if level is Level.ADVICE else None,
    )
