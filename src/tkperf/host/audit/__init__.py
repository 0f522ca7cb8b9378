"""The audit of the host before a run: what would disturb it. The audit changes nothing.

| module | subject |
|---|---|
| ``cpus.py`` | clocks, idle states, mitigations; the drive's NUMA node and interrupts |
| ``drives.py`` | the drive's queue and link, and other drives on that link |
| ``system.py`` | virtual machine, io_uring, services; control groups and limits of the process |
| ``activity.py`` | pressure and swap; work on drives that runs already, or is due |
| ``audited_host.py`` | the audited host, and the results of the audit |
| ``run_audit.py`` | all of these, in order |

Each module is pure, except that it reads files below ``AuditedHost.root`` and calls tools through ``AuditedHost.run``.
"""

from tkperf.host.audit.audited_host import Audit, AuditedDrive, AuditedHost, AuditLevel, AuditResult
from tkperf.host.audit.run_audit import WATCH_S, audit_host

__all__ = ["WATCH_S", "Audit", "AuditLevel", "AuditResult", "AuditedDrive", "AuditedHost", "audit_host"]
