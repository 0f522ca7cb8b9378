"""Purge: put a target in "as new" state (PTS User Guide, section 6).

Each bus has a module here that reads the claims of a device and offers methods. ``plan_purge`` puts
them in order and gives the reasons against others. tkperf uses the first one unless the user names
another. ``run_purge`` executes one with a permit, watches it, and checks that the data is gone. A
purge that fails ends the test: tkperf tries no second method behind the user's back.
"""

from tkperf.device.purge.base import PurgeMethod, PurgeWatch
from tkperf.device.purge.purge_plan import PurgePlan, plan_purge, refuse_purge_under_way, run_purge

__all__ = ["PurgeMethod", "PurgePlan", "PurgeWatch", "plan_purge", "refuse_purge_under_way", "run_purge"]
