"""Purge: put a target into the "as new" state (PTS User Guide, section 6).

For each bus, a module of this package reads which methods a device supports, and offers these methods. ``plan_purge``
sorts the methods by preference, and lists the rejected methods with the reasons. tkperf uses the first method unless
the user names another method. ``run_purge`` executes one method with a permit, monitors it, and checks that the data is
erased. If a purge fails, the test ends. tkperf never tries a second method without the user's knowledge.
"""

from tkperf.device.purge.base import PurgeMethod, PurgeWatch
from tkperf.device.purge.purge_plan import PurgePlan, plan_purge, refuse_purge_under_way, run_purge

__all__ = ["PurgeMethod", "PurgePlan", "PurgeWatch", "plan_purge", "refuse_purge_under_way", "run_purge"]
