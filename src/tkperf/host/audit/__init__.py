"""The audit of the host before a run. The audit finds conditions that would disturb the run, and changes nothing.

| module | subject |
|---|---|
| ``cpus.py`` | clocks, idle states and mitigations; the NUMA node and the interrupts of the drive |
| ``drives.py`` | the queue and the link of the drive, and other drives on the same link |
| ``system.py`` | virtual machine, io_uring and services; control groups and limits of the process |
| ``activity.py`` | pressure and swap; work on drives that is already running or will start during the run |
| ``audited_host.py`` | the audited host, and the results of the audit |
| ``run_audit.py`` | all these checks in order |

Each module only reads files below ``AuditedHost.root`` and calls tools through ``AuditedHost.run``.
"""

from tkperf.host.audit.audited_host import Audit, AuditedDrive, AuditedHost, AuditLevel, AuditResult
from tkperf.host.audit.run_audit import WATCH_S, audit_host

__all__ = ["WATCH_S", "Audit", "AuditLevel", "AuditResult", "AuditedDrive", "AuditedHost", "audit_host"]
