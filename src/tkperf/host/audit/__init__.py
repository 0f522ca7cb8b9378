"""The audit of the host before a run: what would disturb it. The audit changes nothing.

| module | subject |
|---|---|
| ``cpu.py`` | governor, frequency limits, idle states, turbo, mitigations |
| ``queue.py`` | the drive's queue: scheduler, requests, completions, merging |
| ``numa.py``, ``interrupts.py`` | the distance of CPUs and interrupts from the drive |
| ``links.py``, ``neighbours.py`` | the drive's link, and other drives on it |
| ``timers.py``, ``scrubs.py`` | work on drives that is due, or runs already |
| ``limits.py`` | control groups and limits of the process |
| ``load.py`` | the present load of the host; swap |
| ``system.py`` | virtual machine, kernel, services |
| ``site.py``, ``finding.py`` | the audited host, and the findings |

Each module is pure, except that it reads files below ``Site.root`` and calls tools through ``Site.run``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tkperf.host.audit.cpu import audit_cpus
from tkperf.host.audit.finding import Audit, Finding, Level, not_known
from tkperf.host.audit.interrupts import audit_interrupts
from tkperf.host.audit.limits import audit_limits
from tkperf.host.audit.links import audit_links
from tkperf.host.audit.load import audit_load
from tkperf.host.audit.neighbours import audit_neighbours, count_io, find_neighbours
from tkperf.host.audit.numa import audit_numa
from tkperf.host.audit.queue import audit_queue
from tkperf.host.audit.scrubs import audit_scrubs
from tkperf.host.audit.site import Drive, Site
from tkperf.host.audit.system import audit_system
from tkperf.host.audit.timers import audit_timers
from tkperf.model.errors import reason_of

# The shortest watch over neighbours: 100 I/Os a second make 20 in it.
WATCH_S = 0.2
_LOOKS: tuple[tuple[str, Callable[[Site, Drive], Iterable[Finding]]], ...] = (
    ("queue settings", audit_queue),
    ("interrupts", audit_interrupts),
    ("NUMA node", audit_numa),
    ("link", audit_links),
)


def audit_host(
    site: Site,
    drives: Sequence[Drive] = (),
    *,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Audit:
    """Return everything that might disturb a run on the drives. Never raises: unreadable values become "not known"."""
    neighbours = {drive.name: find_neighbours(site, drive) for drive in drives}
    # Another tested drive loads the link all the same: it stays a neighbour.
    everyone = tuple({one.name: one for found in neighbours.values() for one in found}.values())
    names = {one.name for one in everyone}
    # No timer works on a drive that is held for a test.
    tested = {drive.disk.resolve().name for drive in drives}
    before = count_io(everyone, clock())
    findings = [
        *_guarded("CPUs", lambda: audit_cpus(site)),
        *_guarded("system", lambda: audit_system(site, drives)),
        *_guarded("limits", lambda: audit_limits(site, drives)),
        *_guarded("load", lambda: audit_load(site)),
        *_guarded("timers", lambda: audit_timers(site, shares=bool(names - tested))),
        *_guarded("scrubs", lambda: audit_scrubs(site, names)),
    ]
    of_drives: list[Finding] = []
    for drive in drives:
        for subject, look in _LOOKS:
            of_drives += _of(drive, _guarded(subject, partial(look, site, drive)))
    if everyone:
        pause(max(0.0, WATCH_S - (clock() - before.at_s)))
    after = count_io(everyone, clock())
    for drive in drives:
        looked = list(audit_neighbours(neighbours[drive.name], before, after))
        of_drives += _of(drive, looked)
    return Audit((*of_drives, *findings))


def _of(drive: Drive, findings: Iterable[Finding]) -> Iterator[Finding]:
    return (replace(finding, device=drive.name) for finding in findings)


def _guarded(subject: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Return the findings of a look, with "not known" for the rest if the kernel gives unexpected values."""
    found: list[Finding] = []
    try:
        for finding in look():
            found.append(finding)
    except (OSError, ValueError, LookupError) as error:
        why = "the kernel says something that tkperf does not understand"
        reason = reason_of(error) if isinstance(error, OSError) else "a value that cannot be read"
        found.append(not_known(subject, reason, why))
    return found


__all__ = ["WATCH_S", "Audit", "Drive", "Finding", "Level", "Site", "audit_host"]
