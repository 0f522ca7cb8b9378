"""The execution of the audit: all checks of the host and of the drives, and one observation of the neighbours' I/O."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from tkperf.host.audit.activity import audit_load, audit_timers, audit_work
from tkperf.host.audit.audited_host import Audit, AuditedDrive, AuditedHost, AuditResult, Topic
from tkperf.host.audit.cpus import audit_cpus, audit_interrupts, audit_numa
from tkperf.host.audit.drives import audit_links, audit_neighbours, audit_queue, count_io, find_neighbours
from tkperf.host.audit.system import audit_limits, audit_system
from tkperf.model.errors import reason_of

# The shortest observation of neighbours. At 100 I/Os per second, 20 I/Os occur in this time.
WATCH_S = 0.2


_ODD_KERNEL = "the kernel shows a value that tkperf does not understand"


def audit_host(
    audited: AuditedHost,
    drives: Sequence[AuditedDrive] = (),
    *,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Audit:
    """Return all findings about conditions that might disturb a run on the drives. The function raises no error. If a
    value cannot be read, the finding is "not known".
    """
    neighbours = {drive.name: find_neighbours(audited, drive) for drive in drives}
    # Another drive under test also loads the link, so it counts as a neighbour.
    everyone = tuple(dict.fromkeys(disk for found in neighbours.values() for disk in found))
    names = {disk.name for disk in everyone}
    # While a drive is held for a test, no timer can work on this drive.
    tested = {drive.disk.resolve().name for drive in drives}
    before, began_s = count_io(everyone), clock()
    of_host = [
        *_guarded("CPUs", partial(audit_cpus, audited)),
        *_guarded("system", partial(audit_system, audited, drives)),
        *_guarded("limits", partial(audit_limits, audited, drives)),
        *_guarded("load", partial(audit_load, audited)),
        *_guarded("timers", partial(audit_timers, audited, shares=bool(names - tested))),
        *_guarded("scrubs", partial(audit_work, audited, names)),
    ]
    of_drives = [
        replace(finding, device=drive.name)
        for drive in drives
        for finding in (
            *_guarded("queue settings", partial(audit_queue, audited, drive)),
            *_guarded("interrupts", partial(audit_interrupts, audited, drive)),
            *_guarded("NUMA node", partial(audit_numa, audited, drive)),
            *_guarded("link", partial(audit_links, audited, drive)),
        )
    ]
    if everyone:
        pause(max(0.0, WATCH_S - (clock() - began_s)))
    after, seconds = count_io(everyone), max(clock() - began_s, 1e-3)
    of_links = [
        replace(audit_neighbours(neighbours[drive.name], before, after, seconds), device=drive.name) for drive in drives
    ]
    return Audit((*of_drives, *of_links, *of_host))


def _guarded(subject: str, look: Callable[[], Iterable[AuditResult]]) -> list[AuditResult]:
    """Return the findings of a check. If the kernel reports unexpected values, the remaining findings are "not
    known".
    """
    found: list[AuditResult] = []
    try:
        for finding in look():
            found.append(finding)
    except (OSError, ValueError, LookupError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "a value that cannot be read"
        found.append(Topic(subject, _ODD_KERNEL).not_known(reason))
    return found
