"""The distance between the drive and the CPUs that tkperf may run on: I/O between NUMA nodes costs latency."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tkperf.device.sysfs import find_pci_function, number, text
from tkperf.host.audit.finding import Finding, Level, not_known
from tkperf.host.audit.site import Drive, Site, format_list, parse_list, place_of

_WHY = "memory and interrupts of another NUMA node are further away from the drive"


def audit_numa(site: Site, drive: Drive) -> Iterator[Finding]:
    subject = "NUMA node"
    nodes = _read_nodes(site.sys / "devices/system/node")
    if len(nodes) == 1:
        yield Finding(subject=subject, level=Level.OK, found="the host has one", why=_WHY)
        return
    function = find_pci_function(place_of(drive.disk))
    node = None if function is None else number(function / "numa_node")
    if not nodes or node not in nodes:
        because = "the kernel shows none" if not nodes else "the firmware does not tell"
        yield not_known(subject, because, _WHY)
        return
    assert node is not None
    near = nodes[node] & site.cpus
    far = site.cpus - near
    distance = _distances(site, node)
    found = f"drive at node {node}; {len(near)} of the {len(site.cpus)} CPUs that may run are there"
    if far and distance:
        found += f", the others at distance up to {max(distance)} (near: {min(distance)})"
    local = format_list(nodes[node])
    yield Finding(
        subject=subject,
        level=Level.OK if not far else Level.ADVICE if near else Level.DISTURBS,
        found=found,
        why=_WHY,
        command=f"numactl --cpunodebind={node} --membind={node} tkperf ..." if far else None,
        otherwise=f"let tkperf run on CPUs {local}" if far else None,
    )


def _read_nodes(folder: Path) -> dict[int, frozenset[int]]:
    return {
        int(node.name.removeprefix("node")): parse_list(text(node / "cpulist"))
        for node in folder.glob("node[0-9]*")
    }


def _distances(site: Site, node: int) -> list[int]:
    words = (text(site.sys / f"devices/system/node/node{node}/distance") or "").split()
    return [int(word) for word in words]
